# SPDX-License-Identifier: GPL-2.0-or-later
"""CHAP names and secrets, read from private files."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Accounts", "ChapAccount", "SecretError", "read_accounts", "read_secret"]

SECRET_LENGTHS = range(12, 257)
FILE_MAX = 64 << 10


class SecretError(ValueError):
    """A file of secrets is wrong; the text says why, and nothing of what is in it."""


@dataclass(frozen=True)
class ChapAccount:
    """A name, and the secret that proves it."""

    user: str
    secret: str = field(repr=False)


@dataclass(frozen=True)
class Accounts:
    """Accounts that can log in, and the account with which the target proves itself."""

    incoming: tuple[ChapAccount, ...]
    outgoing: ChapAccount | None = None


def read_secret(path: Path) -> str:
    """Text of a file that nobody but its owner may read or write.

    Raises: SecretError: others may; it cannot be read.
    """
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise SecretError(f"{path} is not its owner's alone: chmod 600 it")
            return file.read(FILE_MAX).decode()
    except OSError as error:
        raise SecretError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SecretError(f"{path} is no text") from None


def checked(user: str, secret: str, where: str) -> ChapAccount:
    """An account that tgtd takes.  Raises: SecretError."""
    if not user or not user.isprintable() or "," in user or " " in user or len(user) > 223:
        raise SecretError(f"{where}: a user is 1 to 223 characters without comma and blank")
    if len(secret) not in SECRET_LENGTHS or not secret.isprintable() or "," in secret:
        first, last = SECRET_LENGTHS[0], SECRET_LENGTHS[-1]
        raise SecretError(
            f"{where}: a secret of {first} to {last} characters is wanted for '{user}', no comma in it"
        )
    return ChapAccount(user, secret)


def read_accounts(path: Path) -> Accounts:
    """The accounts of a TOML file: tables [[incoming]], at least one, and [outgoing], each with user
    and secret.

    Raises: SecretError: it is not such a file, or not its owner's alone.
    """
    try:
        table = tomllib.loads(read_secret(path))
    except tomllib.TOMLDecodeError:
        raise SecretError(f"{path} is no TOML") from None
    unknown = sorted(table.keys() - {"incoming", "outgoing"})
    if unknown or not isinstance(table.get("incoming"), list) or not table["incoming"]:
        raise SecretError(f"{path}: wanted are [[incoming]], once or more, and [outgoing]")
    incoming = tuple(_account(each, path) for each in table["incoming"])
    outgoing = _account(table["outgoing"], path) if "outgoing" in table else None
    names = [each.user for each in (*incoming, *([outgoing] if outgoing else []))]
    if len(set(names)) < len(names):
        raise SecretError(f"{path}: a user is named twice")
    if outgoing and outgoing.secret in {each.secret for each in incoming}:
        raise SecretError(f"{path}: the target's own secret must be no one else's")
    return Accounts(incoming, outgoing)


def _account(table: Any, path: Path) -> ChapAccount:
    if not isinstance(table, dict) or table.keys() != {"user", "secret"}:
        raise SecretError(f"{path}: an account has 'user' and 'secret'")
    if not all(isinstance(each, str) for each in table.values()):
        raise SecretError(f"{path}: 'user' and 'secret' are text")
    return checked(table["user"], table["secret"], str(path))
