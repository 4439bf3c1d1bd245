# SPDX-License-Identifier: GPL-2.0-or-later
"""Secrets at rest: sealed with AES-256-GCM under one key, which is kept apart from them.

Lives here: sealing, and the three places that the sealing key can come from: a file that only its owner
reads, a passphrase (scrypt), a credential of systemd.  Nothing here prints or logs a secret.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from pyosd.secmgr.errors import SecmgrError
from pyosd.secmgr.files import read_private, write_private

KEY_FILE = "sealing.key"
SALT_FILE = "sealing.scrypt"
CREDENTIAL = "iosd-secmgr-sealing-key"
"""Name of systemd's credential (LoadCredential=, SetCredentialEncrypted=)."""
FIRST_LINE = "iosd sealing key 1"
SCRYPT_FIRST = "iosd sealing passphrase 1"
SCRYPT = {"n": 1 << 15, "r": 8, "p": 1}
VERSION = b"\1"
NONCE_LENGTH = 12


class SealError(SecmgrError):
    """Sealed bytes do not open: another sealing key, another place, or they were changed."""


class Sealer:
    """Seals and opens.  Any thread.  key: 32 bytes."""

    def __init__(self, key: bytes) -> None:
        self._aead = AESGCM(_derived(key, "seal"))
        self._mac = _derived(key, "mac")
        self._words = _derived(key, "password")

    def seal(self, secret: bytes, place: str) -> bytes:
        """Seal for one place: the same bytes moved to another do not open."""
        nonce = secrets.token_bytes(NONCE_LENGTH)
        return VERSION + nonce + self._aead.encrypt(nonce, secret, place.encode())

    def open(self, sealed: bytes, place: str) -> bytes:
        """The reverse.  Raises: SealError."""
        nonce, rest = sealed[1 : 1 + NONCE_LENGTH], sealed[1 + NONCE_LENGTH :]
        try:
            if sealed[:1] != VERSION:
                raise InvalidTag
            return self._aead.decrypt(nonce, rest, place.encode())
        except (InvalidTag, ValueError):
            raise SealError(f"the sealed {place} does not open with this sealing key") from None

    def mac(self, data: bytes) -> bytes:
        """32 bytes that only who has the sealing key can make."""
        return hmac.digest(self._mac, data, "sha256")

    def password(self, name: str) -> bytes:
        """A password for a file that another library encrypts."""
        return hmac.digest(self._words, name.encode(), "sha256").hex().encode()


def _derived(key: bytes, use: str) -> bytes:
    return hmac.digest(key, f"iosd secmgr {use}".encode(), "sha256")


def make_key_file(folder: Path) -> Sealer:
    """A new sealing key in a file beside the rest."""
    key = secrets.token_bytes(32)
    write_private(folder / KEY_FILE, f"{FIRST_LINE}\nkey {key.hex()}\n".encode())
    return Sealer(key)


def make_passphrase(folder: Path, passphrase: str) -> Sealer:
    """Seal by a passphrase; the file holds only what scrypt needs."""
    if len(passphrase) < 12:
        raise SecmgrError("a passphrase has 12 characters at least")
    salt = secrets.token_bytes(16)
    key = _stretched(passphrase, salt, SCRYPT)
    numbers = "".join(f"{name} {value}\n" for name, value in SCRYPT.items())
    check = _derived(key, "check").hex()
    text = f"{SCRYPT_FIRST}\nsalt {salt.hex()}\n{numbers}check {check}\n"
    write_private(folder / SALT_FILE, text.encode())
    return Sealer(key)


def load(folder: Path, ask: Callable[[], str] | None = None) -> Sealer:
    """The sealer of a folder.

    ask: gives the passphrase where one is needed.
    Raises: SecmgrError: there is no sealing key, or a wrong passphrase.
    """
    credentials = os.environ.get("CREDENTIALS_DIRECTORY")
    for place in (credentials and Path(credentials) / CREDENTIAL, folder / KEY_FILE):
        if place and place.exists():
            # systemd itself sees to who may read its credentials.
            text = place.read_text() if credentials and place.name == CREDENTIAL else None
            return Sealer(_key_of(text if text is not None else read_private(place), place))
    if not (folder / SALT_FILE).exists():
        if folder.is_dir() and any(folder.iterdir()):
            raise SecmgrError(
                f"no sealing key in {folder}: restore it from its backup; no other opens the keys there"
            )
        raise SecmgrError(f"no security manager in {folder}: 'osd secmgr init' makes one")
    if ask is None:
        raise SecmgrError("the sealing key is a passphrase, and there is no terminal to enter it")
    return _open_passphrase(folder / SALT_FILE, ask())


def _fields(text: str, first: str, place: Path) -> dict[str, str]:
    lines = text.splitlines()
    if not lines or lines[0] != first:
        raise SecmgrError(f"{place} does not begin with '{first}'")
    return dict(line.split(" ", 1) for line in lines[1:] if " " in line)


def _key_of(text: str, place: Path) -> bytes:
    try:
        key = bytes.fromhex(_fields(text, FIRST_LINE, place).get("key", ""))
    except ValueError:
        key = b""
    if len(key) != 32:
        raise SecmgrError(f"{place} holds no key of 64 hexadecimal digits")
    return key


def _open_passphrase(place: Path, passphrase: str) -> Sealer:
    fields = _fields(read_private(place), SCRYPT_FIRST, place)
    try:
        numbers = {name: int(fields[name]) for name in SCRYPT}
        key = _stretched(passphrase, bytes.fromhex(fields["salt"]), numbers)
        check = fields["check"]
    except (KeyError, ValueError):
        raise SecmgrError(f"{place} is damaged") from None
    if not hmac.compare_digest(_derived(key, "check").hex(), check):
        raise SecmgrError("this is not the passphrase")
    return Sealer(key)


def _stretched(passphrase: str, salt: bytes, numbers: dict[str, int]) -> bytes:
    most = 256 * numbers["n"] * numbers["r"]
    return hashlib.scrypt(passphrase.encode(), salt=salt, maxmem=most, dklen=32, **numbers)
