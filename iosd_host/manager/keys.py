# SPDX-License-Identifier: GPL-2.0-or-later
"""Keys of the resource manager's clients, in files, and the role of each client.

    FOLDER/server.key, server.key_secret    the manager's own pair, made at the first start
    FOLDER/local.key_secret                 of this host's administrators, made with it
    FOLDER/authorized/NAME.key              a client's public key, with role admin or viewer

Files have the format of pyzmq's certificates: `public-key = "..."`, `secret-key`, and of a client's
`role = admin`; without that it is a viewer.  Not here: the cryptography (server.py).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from iosd_host.common.whole_file import write_whole
from iosd_host.manager.state_store import OURSELVES, PEOPLE, POLICY

__all__ = [
    "ADMIN",
    "LOCAL",
    "NOBODY",
    "VIEWER",
    "Answer",
    "ClientKeys",
    "CurvePair",
    "KeyHolder",
    "KeysError",
    "name_fault",
    "read_key",
]

ADMIN, VIEWER = "admin", "viewer"
LOCAL = "local"  # the name of the client whose key is made here
FILE_MOST = 16384
CLIENTS_MOST = 1000
NAME = re.compile(r"[A-Za-z0-9_.@-]{1,64}")
RESERVED = frozenset((POLICY, PEOPLE, OURSELVES))  # their changes would look like the policy's
LINE = re.compile(r"^\s*([a-z-]+)\s*[=:]\s*[\"']?(.*?)[\"']?\s*$", re.MULTILINE)
KEY = re.compile(r"[0-9A-Za-z.\-:+=^!/*?&<>()\[\]{}@%$#]{40}")  # 32 bytes in Z85


class KeysError(Exception):
    """The keys cannot be used; the text says why."""


@dataclass(frozen=True)
class CurvePair:
    """Z85 texts of 40 characters; secret: None where only the public key is known."""

    public: str
    secret: str | None = None


@dataclass(frozen=True)
class KeyHolder:
    """Owner of a key, and its role: ADMIN or VIEWER."""

    name: str
    role: str


NOBODY = KeyHolder("", "")
Answer = Callable[[KeyHolder, bytes], Awaitable[bytes]]
"""Answers a request of a key's holder; both are JSON."""


def name_fault(name: str) -> str:
    """Why a client cannot have this name; "": it can."""
    if name in RESERVED:
        return f"'{name}' stands for others in the log of changes"
    return "" if NAME.fullmatch(name) else f"'{name}' is no name: letters, digits, _ . @ -"


def read_file(path: Path) -> dict[str, str]:
    """The `name = value` lines of a certificate.  Raises: KeysError."""
    try:
        with path.open(encoding="utf-8") as file:
            words = file.read(FILE_MOST)
    except (OSError, UnicodeDecodeError) as error:
        raise KeysError(f"{path}: {error}") from None
    kept = "\n".join(line for line in words.splitlines() if not line.lstrip().startswith("#"))
    return dict(LINE.findall(kept))


def read_key(path: Path) -> CurvePair:
    """The keys of a certificate.

    Raises:
        KeysError: it is none, or holds a secret that others than its owner can read.
    """
    found = read_file(path)
    public, secret = found.get("public-key", ""), found.get("secret-key")
    if not KEY.fullmatch(public) or (secret is not None and not KEY.fullmatch(secret)):
        raise KeysError(f"{path}: holds no key of 40 characters in Z85")
    if secret is not None and path.stat().st_mode & 0o077:
        raise KeysError(f"{path}: others can read this secret: chmod 600 {path}")
    return CurvePair(public, secret)


def write_key(path: Path, pair: CurvePair, role: str | None = None) -> None:
    """Write a certificate; mode 0600 where it holds the secret.  Never over one that is there."""
    lines = ["metadata"] + ([f'    role = "{role}"'] if role else [])
    lines += ["curve", f'    public-key = "{pair.public}"']
    if pair.secret is not None:
        lines.append(f'    secret-key = "{pair.secret}"')
    text = "".join(f"{line}\n" for line in lines)
    write_whole(path, text.encode(), 0o644 if pair.secret is None else 0o600)


class ClientKeys:
    """The folder of keys.  One thread.

    Args: folder: made when absent.  make_pair: a new public and secret key.

    Raises:
        KeysError: the server's own key cannot be read or made.
    """

    def __init__(self, folder: Path, make_pair: Callable[[], CurvePair]) -> None:
        self.folder = folder
        self.authorized = folder / "authorized"
        self.local = folder / f"{LOCAL}.key_secret"
        self.clients: dict[str, KeyHolder] = {}
        secret = folder / "server.key_secret"
        try:
            self.authorized.mkdir(mode=0o755, parents=True, exist_ok=True)
            if not secret.exists():
                self._make(secret, make_pair)
        except OSError as error:
            raise KeysError(f"cannot make keys in {folder}: {error.strerror}") from None
        self.server = read_key(secret)
        if self.server.secret is None:
            raise KeysError(f"{secret}: holds no secret key")

    def _make(self, secret: Path, make_pair: Callable[[], CurvePair]) -> None:
        """All pairs; the server's secret last: what is there with it is complete."""
        client, server = make_pair(), make_pair()
        write_key(self.local, client)
        write_key(self.authorized / f"{LOCAL}.key", CurvePair(client.public), ADMIN)
        write_key(self.folder / "server.key", CurvePair(server.public))
        write_key(secret, server)

    def reload(self) -> list[str]:
        """Read the clients' keys again; returns what is wrong with files, which count as absent."""
        found: dict[str, KeyHolder] = {}
        wrong = []
        for path in sorted(self.authorized.glob("*.key"))[:CLIENTS_MOST]:
            try:
                client, public = self._client(path)
            except (KeysError, OSError) as error:  # it may go while we look
                wrong.append(str(error))
                continue
            if public in found:
                wrong.append(f"{path}: the same key as that of '{found[public].name}'")
                continue
            found[public] = client
        self.clients = found
        return wrong

    @staticmethod
    def _client(path: Path) -> tuple[KeyHolder, str]:
        if fault := name_fault(path.stem):
            raise KeysError(f"{path}: {fault}")
        if path.stat().st_mode & 0o022:
            raise KeysError(f"{path}: others can write it: chmod 644 {path}")
        role = read_file(path).get("role", VIEWER)
        if role not in (ADMIN, VIEWER):
            raise KeysError(f"{path}: role must be {ADMIN} or {VIEWER}, not '{role}'")
        return KeyHolder(path.stem, role), read_key(path).public

    def who(self, public: str) -> KeyHolder | None:
        """The client that has this key now; None: nobody."""
        return self.clients.get(public)
