# SPDX-License-Identifier: GPL-2.0-or-later
"""Sessions with a target: connect, reconnect, send again what is safe to repeat.

Lives here: IscsiTransport (a Transport over connection.Connection), URLs of targets, discovery.
Not here: commands (commands/), coroutines (async_session.py).
"""

from __future__ import annotations

import os
import random
import re
import socket
import threading
import time
from copy import copy
from dataclasses import replace
from enum import IntEnum
from typing import NamedTuple, TypedDict, Unpack
from urllib.parse import unquote

from pyosd.errors import CommandTimeout, LoginRejected, SessionLost, Unreachable
from pyosd.forks import after_fork
from pyosd.iscsi.connection import CLOSED, Connection, Task, scsi_response
from pyosd.iscsi.login import Chap, LoginParameters, ping_request, send_targets
from pyosd.wire.sense import is_unit_attention
from pyosd.wire.transport import Command, Response

DEFAULT_PORT = 3260
DEFAULT_TIMEOUT = 30.0
"""Seconds a command may take, unless it says otherwise."""
STARTING = {0x0203, 0x0301}
"""Login status of a target that listens before its names and rights are there; it had been there."""
RETRY_FIRST, RETRY_MOST = 0.05, 1.0
REPEATS_MAX = 3
ATTENTIONS_MAX = 2  # power on, and a reset by somebody else meanwhile


class TaskFunction(IntEnum):
    """Task management functions of iSCSI.  A stock tgtd has the first two and LOGICAL_UNIT_RESET."""

    ABORT_TASK = 1
    ABORT_TASK_SET = 2
    CLEAR_ACA = 3
    CLEAR_TASK_SET = 4
    LOGICAL_UNIT_RESET = 5
    TARGET_WARM_RESET = 6
    TARGET_COLD_RESET = 7


class TaskResponse(IntEnum):
    """The target's answers to task management functions."""

    COMPLETE = 0
    NO_TASK = 1
    NO_LOGICAL_UNIT = 2
    STILL_ALLEGIANT = 3
    NO_REASSIGNMENT = 4
    NOT_SUPPORTED = 5
    NOT_AUTHORIZED = 6
    REJECTED = 255


def default_initiator_name() -> str:
    """iSCSI name of this client: IOSD_INITIATOR, or one with the host's name in it."""
    name = os.environ.get("IOSD_INITIATOR")
    host = re.sub("[^a-z0-9.-]", "-", os.uname().nodename.lower())
    return name or f"iqn.2026-11.org.iosd:client.{host}"


def local_address(host: str, port: int) -> str:
    """The address of this host that a peer sees; "" where there is no way to it.  Nothing is sent."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[
            0
        ]
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0])
    except OSError:
        return ""


class TargetAddress(NamedTuple):
    """An iscsi:// URL taken apart.  lun: 0-16383."""

    host: str
    port: int
    target: str
    lun: int
    chap: Chap | None = None

    @classmethod
    def parse(cls, url: str) -> TargetAddress:
        """Read ``iscsi://[user%secret@]host[:port]/target-name/lun``; parts may be %-quoted.

        host: a name, an IPv4 address, or an IPv6 address in brackets.
        Raises: ValueError: not such a URL; TypeError: no text; nothing else.
        """
        if not isinstance(url, str):
            raise TypeError(f"a URL is text, iscsi://HOST[:PORT]/NAME/LUN, not {url!r}")
        rest = url.removeprefix("iscsi://")
        authority, slash, path = rest.partition("/")
        target, slash2, lun = path.partition("/")
        if rest == url or not slash or not slash2 or not target or not lun.isascii():
            shown = re.sub("//.*@", "//...@", url)  # not the secret
            hint = f"; add the LUN: {shown}/1" if rest != url and target and not slash2 else ""
            raise ValueError(f"'{shown}' is not iscsi://HOST[:PORT]/NAME/LUN{hint}")
        login, at, place = authority.rpartition("@")
        chap = None
        if at:
            user, percent, secret = login.partition("%")
            if not percent:
                raise ValueError("the URL's login is not user%secret")
            chap = Chap(unquote(user), unquote(secret))
        host, port = _split_port(place)
        if not lun.isdecimal() or int(lun) > 16383:
            raise ValueError(f"'{lun}' is not a LUN of 0-16383")
        return cls(host, port, unquote(target), int(lun), chap)


def _split_port(place: str) -> tuple[str, int]:
    if place.startswith("["):
        host, _, tail = place[1:].partition("]")
        port = tail.removeprefix(":")
    else:
        host, _, port = place.partition(":")
    if not host or (port and not (port.isascii() and port.isdecimal() and int(port) < 65536)):
        raise ValueError(f"'{place}' is not host[:port]")
    return host, int(port) if port else DEFAULT_PORT


class SessionOptions(TypedDict, total=False):
    """Options of a session, see Reconnecting."""

    initiator: str
    header_digest: bool
    timeout: float
    reconnect_timeout: float


class PendingCommand:
    """A command under way; repeats it where that is safe."""

    def __init__(self, transport: IscsiTransport, command: Command) -> None:
        self._transport = transport
        self._command = command
        self._connection, self._task = transport.send(command)

    def result(self, timeout: float | None = None) -> Response:
        """The answer, waited for so many seconds (None: the transport's timeout).

        Raises: CommandTimeout; SessionLost: it is not known whether the command was carried out.
        """
        deadline = time.monotonic() + (self._transport.timeout if timeout is None else timeout)
        attentions = repeats = 0
        while True:
            try:
                response = scsi_response(self._connection.wait(self._task, deadline))
            except CommandTimeout:
                raise
            except SessionLost:
                repeats += 1
                late = time.monotonic() >= deadline
                if late or repeats > REPEATS_MAX or not self._command.repeatable:
                    raise
                self._connection, self._task = self._transport.send(self._command)
                continue
            if attentions == ATTENTIONS_MAX or not is_unit_attention(
                response.status, response.sense
            ):
                return response
            # The command was not executed; each condition is reported once (SAM).
            attentions += 1
            self._connection, self._task = self._transport.send(self._command)

    def abort(self, timeout: float = 5.0) -> int:
        """ABORT TASK.  Returns: the response code, 0: done, 1: there is no such task (any more)."""
        lun, function = self._transport.address.lun, TaskFunction.ABORT_TASK
        response = self._connection.task_management(function, lun, self._task, timeout)
        if response == TaskResponse.COMPLETE:  # of an aborted task no status comes (SAM, TAS 0)
            self._connection.settle_aborted(self._task)
        return response


class Reconnecting:
    """The common part of both faces of a session: address, and time to reconnect."""

    def __init__(
        self,
        address: TargetAddress,
        *,
        initiator: str = "",
        header_digest: bool = False,
        timeout: float = DEFAULT_TIMEOUT,
        reconnect_timeout: float = 10.0,
    ) -> None:
        """Args: timeout: seconds a command, and a login, may take.
        reconnect_timeout: seconds in which it tries to connect anew; 0: once.
        """
        if not timeout > 0:
            raise ValueError(f"timeout is more than 0 seconds, not {timeout}")
        if not reconnect_timeout >= 0:
            raise ValueError(f"reconnect_timeout is at least 0 seconds, not {reconnect_timeout}")
        self.address = address
        self.timeout = timeout
        self._reconnect_timeout = reconnect_timeout
        self._parameters = LoginParameters(
            initiator or default_initiator_name(), address.target, address.chap, header_digest
        )
        self._closed = False
        self._sent_before = self._received_before = 0
        self._in_vain: list[Unreachable] = []  # the last attempt to connect anew, which failed

    def _begin_anew(self, since: float) -> Patience:
        """Have a new session identifier: the target may still know the old session.

        since: time.monotonic() when the caller found the session lost.  It may have waited for others.
        """
        self._parameters = replace(self._parameters, isid=LoginParameters("", "").isid)
        return Patience(since + self._reconnect_timeout - time.monotonic())

    def _share(self, seen: list[Unreachable], since: float) -> None:
        """Fail as the attempt of others, if the caller's time is over: one by one they would wait longer.

        seen: _in_vain before the wait for their attempt.  since: as for _begin_anew().
        """
        if self._in_vain is not seen and time.monotonic() >= since + self._reconnect_timeout:
            raise copy(self._in_vain[0])


class Patience:
    """Pauses between attempts to connect, for so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._deadline = time.monotonic() + seconds
        self._delay = RETRY_FIRST

    def pause(self, error: Unreachable) -> float:
        """Seconds to the next attempt.

        Raises: the error: time is over, or it is a LoginRejected by a target that is not starting.
        """
        final = isinstance(error, LoginRejected) and error.status not in STARTING
        if final or time.monotonic() + self._delay > self._deadline:
            raise error
        delay, self._delay = self._delay, min(self._delay * 1.5, RETRY_MOST)
        return delay * random.uniform(0.8, 1.2)


class IscsiTransport(Reconnecting):
    """Commands to one logical unit over iSCSI; connects anew when the session was lost.

    A command without an answer when the session is lost raises SessionLost, unless it only reads:
    that is sent again.  Thread-safe.
    """

    def __init__(self, address: TargetAddress, **options: Unpack[SessionOptions]) -> None:
        """Connect and log in.  Args: as Reconnecting.  Raises: Unreachable, LoginRejected."""
        super().__init__(address, **options)
        self._lock = threading.Lock()
        self._connection = self._connect()
        after_fork(self, IscsiTransport.forget)

    @property
    def bytes_sent(self) -> int:
        """Bytes put on sockets since this transport was made, iSCSI headers included."""
        return self._sent_before + self._connection.bytes_sent

    @property
    def bytes_received(self) -> int:
        """Bytes taken from sockets since this transport was made, iSCSI headers included."""
        return self._received_before + self._connection.bytes_received

    def _connect(self) -> Connection:
        place = (self.address.host, self.address.port)
        return Connection(place, self._parameters, self.timeout)

    def _live(self) -> Connection:
        """The connection, a new one if need be."""
        seen, since = self._in_vain, time.monotonic()
        with self._lock:
            if self._closed:
                raise SessionLost(CLOSED)
            if self._connection.failed:
                self._share(seen, since)
                old = self._connection
                old.abandon("replaced")
                try:
                    self._connection = self._reconnect(since)
                except Unreachable as error:
                    self._in_vain = [error]
                    raise
                self._sent_before += old.bytes_sent
                self._received_before += old.bytes_received
            return self._connection

    def _reconnect(self, since: float) -> Connection:
        """Connect again with patience.  Raises: as Patience.pause(); SessionLost: closed meanwhile."""
        patience = self._begin_anew(since)
        while True:
            try:
                return self._connect()
            except Unreachable as error:
                pause = patience.pause(error)
            if self._closed:
                raise SessionLost(CLOSED)
            time.sleep(pause)

    def send(self, command: Command) -> tuple[Connection, Task]:
        """Send a command once on a live connection."""
        for _ in range(REPEATS_MAX):
            connection = self._live()
            try:
                return connection, connection.submit(command, self.address.lun)
            except SessionLost:
                continue  # lost before it was sent: another connection is safe
        raise SessionLost("the target drops every session")

    def submit(self, command: Command) -> PendingCommand:
        """Send a command without waiting (Transport.submit)."""
        return PendingCommand(self, command)

    def execute(self, command: Command, timeout: float | None = None) -> Response:
        """Send a command and wait for its answer (Transport.execute)."""
        return PendingCommand(self, command).result(timeout)

    def ping(self) -> float:
        """NOP-Out and back.  Returns: seconds it took."""
        connection, start = self._live(), time.monotonic()
        connection.plain_answer(connection.request(ping_request()), start + self.timeout)
        return time.monotonic() - start

    def manage_tasks(self, function: TaskFunction) -> int:
        """A task management function on the logical unit; ABORT TASK: see a pending command's abort.

        Returns: the response code (TaskResponse), 0: done.
        """
        if function is TaskFunction.ABORT_TASK:
            raise ValueError("ABORT TASK needs the task: use abort() of what submit() gave")
        return self._live().task_management(function, self.address.lun, None, self.timeout)

    def drop(self) -> None:
        """Cut the connection without logging out; the next command connects anew."""
        self._connection.abandon("the connection was dropped")

    def close(self) -> None:
        """Log out and close (Transport.close)."""
        self._closed = True  # ends a thread's attempts to connect, which hold the lock
        with self._lock:
            connection = self._connection
        connection.close()

    def forget(self) -> None:
        """Leave the session to the parent (Connection.forget); the next command connects anew."""
        self._lock = threading.Lock()
        self._connection.forget()


def discover(
    host: str, port: int = DEFAULT_PORT, *, chap: Chap | None = None, timeout: float = 10.0
) -> list[tuple[str, list[str]]]:
    """Ask a portal for its targets (SendTargets).

    Returns: (target name, its addresses "host:port,group").  Raises: Unreachable, LoginRejected.
    """
    parameters = LoginParameters(default_initiator_name(), "", chap)
    connection = Connection((host, port), parameters, timeout)
    try:
        return connection.converse(send_targets(), time.monotonic() + timeout)
    finally:
        connection.close()
