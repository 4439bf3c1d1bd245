# SPDX-License-Identifier: GPL-2.0-or-later
"""The security manager as a process: its parts put together, and served until a signal ends it."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import signal
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
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
from iosd_secmgr.records.database import DatabaseFault
from iosd_secmgr.records.store import TargetRecord
from pyosd.secmgr.errors import SecmgrError

__all__ = ["Certificates", "connect", "serve", "service_of"]

LOG = logging.getLogger("iosd.secmgr")

LOCK_FILE = "lock"
DEVICE_TIMEOUT_S = 10.0
HEAD_EVERY_S = 60.0
CERTIFICATE_EVERY_S = 3600.0


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
        service = service_of(opened, connect)
        authority, own, password = service.authority, certificates is None, None
        _renew(authority, folder, own)
        _warn(authority, folder)
        if certificates is None:
            certificates = Certificates(
                folder / pki.SERVER, folder / pki.SERVER_KEY, folder / pki.CA
            )
            password = opened.sealer.password(pki.SERVER_KEY)
        files = certificates
        context = web.server_context(files.certificate, files.key, files.client_ca, password)
        service.keys.start()

        def renew() -> None:
            if _renew(authority, folder, own):  # for connections that begin from now on
                _warn(authority, folder)
                context.load_cert_chain(files.certificate, files.key, password=password or b"")
                context.load_verify_locations(files.client_ca)

        try:
            asyncio.run(_serve(service, address, context, ready, renew))
        finally:
            service.keys.close()
            with contextlib.suppress(DatabaseFault):  # the file has the head of a minute ago
                opened.audit.keep_head()
            opened.database.close()


def _renew(authority: Authority | None, folder: Path, server: bool) -> bool:
    """Renew the authority's certificate, and the server's, if it is time.

    One that cannot be renewed is used as it is.  server: the server's is of this authority.
    """
    renewed = 0
    if authority is None:
        return False
    try:
        if authority.renew(folder):
            LOG.info("the authority's certificate is renewed for %d days", pki.CA_DAYS)
            renewed += 1
    except SecmgrError as error:
        LOG.warning("the authority's certificate is not renewed: %s", error)
    try:
        if server and authority.renew_server(folder):
            LOG.info("the server's certificate is renewed for %d days", pki.SERVER_DAYS)
            renewed += 1
    except SecmgrError as error:
        LOG.warning("the server's certificate is not renewed: %s", error)
    return bool(renewed)


def _warn(authority: Authority | None, folder: Path) -> None:
    """Log until when clients can use copies of the file that the authority's renewal has replaced."""
    until = authority and authority.former_until
    if until and until > datetime.now(UTC):
        LOG.warning(
            "clients with a copy of the former %s are refused from %s on: give them the present "
            "%s before",
            *(pki.CA, until.strftime("%Y-%m-%d %H:%M UTC"), folder / pki.CA),
        )


async def _serve(
    service: Service,
    address: str,
    context: ssl.SSLContext,
    ready: Callable[[str], None],
    renew: Callable[[], None],
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    signals = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
        signals.append(signal.SIGHUP)  # the end of its terminal
    for number in signals:
        loop.add_signal_handler(number, stop.set)
    tasks = [
        asyncio.create_task(_keep_heads(service.audit)),
        asyncio.create_task(_keep_certificate(renew)),
    ]
    try:
        await web.run(service, address, context, ready, stop)
    finally:
        for task in tasks:
            task.cancel()


async def _keep_certificate(renew: Callable[[], None]) -> None:
    while True:
        await asyncio.sleep(CERTIFICATE_EVERY_S)
        try:
            renew()
        except Exception:  # the next hour may be better
            LOG.exception("certificates are not renewed")


async def _keep_heads(audit: Audit) -> None:
    """The log's head, now and then in its file and in the journal, where it cannot be taken back."""
    last = -1
    while True:
        try:
            head = await asyncio.to_thread(audit.keep_head)
        except DatabaseFault as error:  # it may be back the next time
            LOG.warning("the head of the audit log is not kept: %s", error)
        except Exception:
            LOG.exception("the head of the audit log is not kept")
        else:
            if head.seq != last:
                LOG.info("audit head %s", head)
            last = head.seq
        await asyncio.sleep(HEAD_EVERY_S)
