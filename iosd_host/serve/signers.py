# SPDX-License-Identifier: GPL-2.0-or-later
"""The file in which the module finds the policy and the list of signers of functions.

The target's user need not be able to read the administrator's list, so it gets a copy, which changes
only with a reload (target/function/signers.h).  The module's own code reads the list here first: a start,
a reload and `osd config check` refuse the same lines.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from pathlib import Path

from iosd_host.common.paths import SIGNERS, MissingComponent, find_component
from iosd_host.common.whole_file import write_whole
from iosd_host.config.schema import ConfigError

__all__ = ["signers_beside", "signers_text", "write_signers"]

MOST = 4 << 20
MESSAGE = 256  # bytes


def signers_beside(pools: Path) -> Path:
    """The place of that file, given the file of the pools."""
    return pools.with_name("signers")


def signers_text(policy: str, signers: str | None) -> str:
    """The text of the file.

    Args: signers: a file as allowed_signers of ssh-keygen; None: nobody.

    Raises: ConfigError: the file cannot be read, or a line of it is wrong.
    """
    try:
        listed = Path(signers).read_text(encoding="utf-8") if signers else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"function_signers: cannot read {signers}: {error}") from None
    if len(listed) > MOST - len(policy) - 16:
        raise ConfigError(f"function_signers: {signers} must be at most 4 MiB")
    text = f"policy {policy}\n{listed}"
    if fault := fault_of(text):
        raise ConfigError(f"function_signers: {signers}: {fault}")
    return text


@functools.cache
def _library() -> ctypes.CDLL:
    """The module's reader of such files.  Raises: MissingComponent."""
    library = ctypes.CDLL(str(find_component(SIGNERS)))
    library.osd_signers_read.argtypes = (ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p)
    library.osd_signers_free.restype = None
    library.osd_signers_free.argtypes = (ctypes.c_void_p,)
    return library


def fault_of(text: str) -> str:
    """Why the module would refuse the file; "": it would not, or its reader is not installed."""
    with contextlib.suppress(MissingComponent):
        library = _library()
        message, found = ctypes.create_string_buffer(MESSAGE), ctypes.c_void_p()
        with os.fdopen(os.memfd_create("signers"), "wb") as file:
            file.write(text.encode())
            file.flush()
            path = f"/proc/self/fd/{file.fileno()}".encode()
            if library.osd_signers_read(path, message, ctypes.byref(found)):
                return message.value.decode(errors="replace")
        library.osd_signers_free(found)
    return ""


def write_signers(text: str, path: Path) -> None:
    """Whole or not at all, whatever is in its place; readable for tgtd."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text.encode(), 0o644)
