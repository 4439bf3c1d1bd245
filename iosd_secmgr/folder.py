# SPDX-License-Identifier: GPL-2.0-or-later
"""The folder of a security manager: how it is made, and how it is opened."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from iosd_secmgr.keys.pki import Authority
from iosd_secmgr.records import sealing, store
from iosd_secmgr.records.audit import HEAD_FILE, Audit
from iosd_secmgr.records.database import Database, open_database
from iosd_secmgr.records.sealing import Sealer
from pyosd.secmgr.errors import SecmgrError
from pyosd.secmgr.files import read_private, write_private
from pyosd.wire.capability import milliseconds

DATABASE_FILE = "secmgr.db"
URL_FILE = "database.url"
ADMIN_TOKEN = "admin.token"


def default_folder() -> Path:
    """Its default path."""
    if os.geteuid() == 0:
        return Path("/var/lib/iosd-secmgr")
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "iosd-secmgr"


@dataclass
class Opened:
    """Contents of a folder."""

    folder: Path
    sealer: Sealer
    database: Database
    audit: Audit


def _open(folder: Path, sealer: Sealer) -> Opened:
    url = folder / URL_FILE
    place = read_private(url).strip() if url.exists() else folder / DATABASE_FILE
    database = open_database(place)
    database.create()
    return Opened(folder, sealer, database, Audit(database, sealer, folder / HEAD_FILE))


def make(
    folder: Path,
    *,
    admin: str,
    names: Sequence[str],
    database: str = "",
    passphrase: str | None = None,
    authority: bool = True,
) -> Path:
    """A new folder, with its first administrator.  Returns: the file with their token.

    Args: names: of the server's certificate.  authority: False: certificates come from elsewhere.
    Raises: SecmgrError: there is one already, or it cannot be made.
    """
    store.checked_name(admin, "user")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        raise SecmgrError(f"cannot make {folder}: {error.strerror}") from None
    left = sorted(each.name for each in folder.iterdir())
    if left:
        raise SecmgrError(f"{folder} is not empty: {', '.join(left[:3])}")
    try:
        if passphrase is None:
            sealer = sealing.make_key_file(folder)
        else:
            sealer = sealing.make_passphrase(folder, passphrase)
        if database:
            write_private(folder / URL_FILE, database.encode() + b"\n")
        if authority:
            Authority.make(folder, sealer).make_server(folder, sealer, names)
        opened = _open(folder, sealer)
        try:
            _first_admin(opened, admin)
        finally:
            opened.database.close()
    except BaseException:
        for each in folder.iterdir():  # so that it can be tried again
            each.unlink()
        raise
    return folder / ADMIN_TOKEN


def _first_admin(opened: Opened, admin: str) -> None:
    """Add the first administrator, and write their token to its file."""
    now_ms = milliseconds(time.time())
    with opened.database.transaction() as tx:
        if store.users(tx):
            raise SecmgrError("this database is a security manager's already")
        store.add_group(tx, store.ADMIN, now_ms)
        store.add_user(tx, admin, now_ms)
        store.set_member(tx, store.ADMIN, admin, True)
        id_, token = store.add_token(tx, admin, "made by init", 0, now_ms)
        opened.audit.append(tx, admin, "init", token=id_)
        write_private(opened.folder / ADMIN_TOKEN, token.encode() + b"\n")


def open_folder(folder: Path, ask: Callable[[], str] | None = None) -> Opened:
    """Open the folder that osd secmgr init made. ask: for the passphrase.  Raises: SecmgrError."""
    opened = _open(folder, sealing.load(folder, ask))
    with opened.database.transaction() as tx:
        made = tx.run("SELECT name FROM meta LIMIT 1")  # by the first record of the log
    if not made:
        opened.database.close()
        raise SecmgrError(
            f"the database of {folder} is empty, not the one that 'osd secmgr init' made: restore it from "
            "its backup"
        )
    return opened
