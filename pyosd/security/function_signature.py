# SPDX-License-Identifier: GPL-2.0-or-later
"""Signatures of functions: the statement that is signed, and ssh-keygen that signs it.

docs/functions.md, "Signatures"; the target makes the same statement (target/function/page.c).
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Mapping

__all__ = ["MANIFEST_NAMES", "NAMESPACE", "SIGNATURE", "sign", "statement"]

NAMESPACE = "iosd-function"
SIGNATURE = 0x10
"""Number of the signature in page 2000_0006h."""
MANIFEST_NAMES = {
    2: "engine",
    3: "abi",
    4: "version",
    5: "access",
    6: "alias",
    7: "description",
    8: "methods",
    9: "pool",
    10: "wall_usec",
    11: "cpu_usec",
    12: "memory_bytes",
    13: "output_bytes",
    20: "size",
    21: "block",
    22: "ratio",
    23: "inverse",
    24: "deterministic",
    25: "optional",
    26: "records",
}
"""Numbers of page 2000_0006h that a statement has, in its order."""
_NUMBERS = frozenset({3, 10, 11, 12, 13, 21, 24, 25})
_RATIO = 22
_WORDS = {
    5: ("none", "read", "write"),
    20: ("", "same", "fixed", "unknown"),
    26: ("", "lines", "table"),
}


def _shown(number: int, value: bytes) -> str:
    if number in _WORDS:
        return _WORDS[number][value[0]]
    if number == _RATIO:
        return " ".join(str(int.from_bytes(value[at : at + 4])) for at in (0, 4, 8))
    return str(int.from_bytes(value)) if number in _NUMBERS else value.decode()


def statement(code: bytes, manifest: Mapping[int, bytes]) -> bytes:
    """The text that a signature of a function covers.

    Args: manifest: the values of page 2000_0006h by number, as they are stored; what the target sets
    itself, and the signature, are ignored.
    """
    lines = ["iosd-function 1", f"sha256 {hashlib.sha256(code).hexdigest()}"]
    lines += [
        f"{name} {_shown(number, value)}"
        for number, name in MANIFEST_NAMES.items()
        if (value := manifest.get(number))
    ]
    return "".join(f"{line}\n" for line in lines).encode()


def sign(text: bytes, key: str | os.PathLike[str]) -> bytes:
    """The signature of a statement, by ssh-keygen: the value of attribute 10h.

    Args: key: a private key's file, or a public key's file if ssh-agent has the private key.

    Raises: FileNotFoundError: ssh-keygen is not installed.  ValueError: it does not sign with this key.
    """
    command = ["ssh-keygen", "-q", "-Y", "sign", "-n", NAMESPACE, "-f", os.fspath(key)]
    try:
        done = subprocess.run(command, input=text, capture_output=True, check=False)
    except FileNotFoundError:
        raise FileNotFoundError("ssh-keygen is not installed: install openssh-client") from None
    if done.returncode:
        why = done.stderr.decode(errors="replace").strip()
        raise ValueError(f"ssh-keygen does not sign with {key}: {why}")
    return done.stdout
