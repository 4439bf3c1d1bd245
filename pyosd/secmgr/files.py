# SPDX-License-Identifier: GPL-2.0-or-later
"""Files with secrets: created for their owner alone, and refused if others can read them."""

from __future__ import annotations

import os
from pathlib import Path

from pyosd.secmgr.errors import SecmgrError
from pyosd.security.credentials import read_secret


def write_private(path: Path, text: bytes) -> None:
    """A new file of mode 0600.  Raises: SecmgrError: it is there, or cannot be made."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise SecmgrError(f"cannot make {path}: {error.strerror}") from None
    with os.fdopen(file, "wb") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())


def read_private(path: Path) -> str:
    """A file that nobody else may read.  Raises: SecmgrError: somebody may, or it is not there."""
    try:
        return read_secret(path)
    except OSError as error:
        raise SecmgrError(f"cannot read {path}: {error.strerror}") from None
    except ValueError as error:
        raise SecmgrError(str(error)) from None
