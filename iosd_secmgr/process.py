# SPDX-License-Identifier: GPL-2.0-or-later
"""The security manager as a process: its parts put together, and served until a signal ends it."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import signal
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyosd
from iosd_secmgr.folder import Opened
from iosd_secmgr.http import web
from iosd_secmgr.keys import pki
from iosd_secmgr.keys.device import Device, IscsiDevice
from iosd_secmgr.keys.manager import Connect, KeyManager
from iosd_secmgr.keys.pki import Authority
from iosd_secmgr.methods.admin import admin_methods
from iosd_secmgr.methods.service import Service
from iosd_secmgr.records.audit import Audit
from iosd_secmgr.records.store import TargetRecord
from pyosd.secmgr.errors import SecmgrError

__all__ = ["Certificates", "connect", "serve", "service_of"]

LOG = logging.getLogger("iosd.secmgr")

LOCK_FILE = "lock"
DEVICE_TIMEOUT_S = 10.0
HEAD_EVERY_S = 60.0


def connect(record: TargetRecord, login: str) -> Device:
    """A session of the key manager's."""
    user, _, secret = login.partition("%")
    chap = pyosd.Chap(user, secret) if login else None
    return IscsiDevice(record.url, chap, DEVICE_TIMEOUT_S)


def service_of(opened: Opened, connect: Connect) -> Service:
    """All of it but the HTTP end."""
    keys = KeyManager(opened.database, opened.sealer, opened.audit, connect)
    authority = Authority.load(opened.folder, opened.sealer)
    service = Service(opened.database, opened.audit, keys, authority)
    service.methods |= admin_methods(service)
    return service


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
        try:
            head = await asyncio.to_thread(audit.keep_head)
        except Exception:  # of the disk or the database: it may be back the next time
            LOG.exception("the head of the audit log is not kept")
        else:
            if head.seq != last:
                LOG.info("audit head %s", head)
            last = head.seq
        await asyncio.sleep(HEAD_EVERY_S)
