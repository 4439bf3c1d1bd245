# SPDX-License-Identifier: GPL-2.0-or-later
"""The file in which a new target leaves its master key for its first administrator."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from pyosd.security.credentials import read_secret
from pyosd.wire.capability import SYSTEM_ID_LENGTH

__all__ = ["MasterKey"]

_TITLE = "iosd master key 1"
_KEY_LENGTH = 32


@dataclass(frozen=True)
class MasterKey:
    """A master key, its two parts, and whose it is."""

    authentication: bytes = field(repr=False)
    generation: bytes = field(repr=False)
    system_id: bytes

    @classmethod
    def parse(cls, text: str) -> MasterKey:
        """Of such a file.  Raises: ValueError, which does not say what was there: it may be the secret."""
        title, _, rest = text.partition("\n")
        if title != _TITLE:
            raise ValueError(f"it does not begin with '{_TITLE}'")
        said = dict(line.split(" ", 1) for line in rest.splitlines() if " " in line)
        try:
            key = cls(
                *(bytes.fromhex(said[n]) for n in ("authentication", "generation", "system-id"))
            )
        except (KeyError, ValueError):
            raise ValueError("it lacks a key or the system id") from None
        if {len(key.authentication), len(key.generation)} != {_KEY_LENGTH}:
            raise ValueError(f"a key has {2 * _KEY_LENGTH} hexadecimal digits")
        if len(key.system_id) != SYSTEM_ID_LENGTH:
            raise ValueError(f"a system id has {2 * SYSTEM_ID_LENGTH} hexadecimal digits")
        return key

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> MasterKey:
        """Raises: OSError; ValueError: it is not such a file, or others may read it."""
        text = read_secret(path)
        try:
            return cls.parse(text)
        except ValueError as error:
            raise ValueError(f"{os.fspath(path)} is no master key file: {error}") from None
