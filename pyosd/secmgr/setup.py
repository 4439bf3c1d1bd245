# SPDX-License-Identifier: GPL-2.0-or-later
"""The folder of a security manager: making it, opening it, serving from it."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import signal
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyosd
from pyosd.credentials import milliseconds
from pyosd.secmgr import pki, sealing, store
from pyosd.secmgr.audit import HEAD_FILE, Audit
from pyosd.secmgr.database import Database, open_database
from pyosd.secmgr.device import Device, IscsiDevice
from pyosd.secmgr.errors import SecmgrError
from pyosd.secmgr.files import read_private, write_private
from pyosd.secmgr.keys import Connect, KeyManager
from pyosd.secmgr.pki import Authority
from pyosd.secmgr.sealing import Sealer
from pyosd.secmgr.service import Service
from pyosd.secmgr.store import TargetRecord

LOG = logging.getLogger("iosd.secmgr")

DATABASE_FILE = "secmgr.db"
URL_FILE = "database.url"
LOCK_FILE = "lock"
ADMIN_TOKEN = "admin.token"
DEVICE_TIMEOUT_S = 10.0
HEAD_EVERY_S = 60.0


def default_folder() -> Path:
    """Where it is unless told otherwise."""
    if os.geteuid() == 0:
        return Path("/var/lib/iosd-secmgr")
    base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "iosd-secmgr"


@dataclass
class Opened:
    """What is in a folder."""

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
        token = _first_admin(opened, admin)
    finally:
        opened.database.close()
    write_private(folder / ADMIN_TOKEN, token.encode() + b"\n")
    return folder / ADMIN_TOKEN


def _first_admin(opened: Opened, admin: str) -> str:
    now_ms = milliseconds(time.time())
    with opened.database.transaction() as tx:
        if store.users(tx):
            raise SecmgrError("this database is a security manager's already")
        store.add_group(tx, store.ADMIN, now_ms)
        store.add_user(tx, admin, now_ms)
        store.set_member(tx, store.ADMIN, admin, True)
        id_, token = store.add_token(tx, admin, "made by init", 0, now_ms)
        opened.audit.append(tx, admin, "init", token=id_)
    return token


def open_folder(folder: Path, ask: Callable[[], str] | None = None) -> Opened:
    """What osd secmgr init made.  ask: for the passphrase.  Raises: SecmgrError."""
    return _open(folder, sealing.load(folder, ask))


def connect(record: TargetRecord, login: str) -> Device:
    """A session of the key manager's."""
    user, _, secret = login.partition("%")
    chap = pyosd.Chap(user, secret) if login else None
    return IscsiDevice(record.url, chap, DEVICE_TIMEOUT_S)


def service_of(opened: Opened, connect: Connect) -> Service:
    """All of it but the HTTP end."""
    keys = KeyManager(opened.database, opened.sealer, opened.audit, connect)
    authority = Authority.load(opened.folder, opened.sealer)
    return Service(opened.database, opened.audit, keys, authority)


@dataclass(frozen=True)
class Certificates:
    """Given ones instead of our own."""

    certificate: Path
    key: Path
    client_ca: Path


def serve(
    opened: Opened,
    address: str,
    ready: Callable[[str], None],
    certificates: Certificates | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT.  Raises: SecmgrError."""
    from pyosd.secmgr import web

    folder = opened.folder
    with (folder / LOCK_FILE).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SecmgrError(f"another security manager serves {folder}") from None
        opened.database.claim()
        password = None
        if certificates is None:
            certificates = Certificates(
                folder / pki.SERVER, folder / pki.SERVER_KEY, folder / pki.CA
            )
            password = opened.sealer.password(pki.SERVER_KEY)
        context = web.server_context(
            *(certificates.certificate, certificates.key, certificates.client_ca, password)
        )
        service = service_of(opened, connect)
        service.keys.start()
        try:
            asyncio.run(_serve(service, address, context, ready))
        finally:
            service.keys.close()
            opened.audit.keep_head()
            opened.database.close()


async def _serve(
    service: Service, address: str, context: ssl.SSLContext, ready: Callable[[str], None]
) -> None:
    from pyosd.secmgr import web

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    heads = asyncio.create_task(_keep_heads(service.audit))
    try:
        await web.run(service, address, context, ready, stop)
    finally:
        heads.cancel()


async def _keep_heads(audit: Audit) -> None:
    """The log's head, now and then in its file and in the journal, where it cannot be taken back."""
    last = -1
    while True:
        head = await asyncio.to_thread(audit.keep_head)
        if head.seq != last:
            LOG.info("audit head %s", head)
        last = head.seq
        await asyncio.sleep(HEAD_EVERY_S)
