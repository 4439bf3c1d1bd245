# SPDX-License-Identifier: GPL-2.0-or-later
"""Drive one connection of the core from threads that may block.

Lives here: Connection, which has a socket, its _core.Session and the commands under way.
async_connection.py is the same for an event loop.
Not here: reconnecting and retrying (session.py), the text of a login (login.py).

Any thread may submit and wait.  One waiting thread at a time, the leader, polls the socket without
holding the lock; the others sleep.  A thread that finds answers while it sends wakes the leader through
an eventfd.
An interrupt (Ctrl-C) may come to the main thread at the end of any call.  So a thread gives the lock up
before it waits, and takes it by `with` alone: where it would take it back, an interrupt leaves it with a
lock to release that is another thread's.  threading.Condition has such a place.
"""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections.abc import Callable, Generator
from itertools import chain, starmap
from typing import Any, TypeVar

from pyosd import _core
from pyosd.errors import CommandTimeout, ProtocolError, SessionLost, Unreachable
from pyosd.iscsi.login import (
    ChapAnswer,
    LoginParameters,
    PduRequest,
    login,
    logout_request,
    task_management_request,
)
from pyosd.wire.transport import Command, Response

T = TypeVar("T")
_REJECT = 0x3F
TASK_ABORTED = 0x40  # SAM status
CLOSED = "the session was closed"
_LOGOUT_TIMEOUT = 2.0
_TASKS_MOST = _core.TASKS_MAX - 16  # some are kept for logout and task management
_OPCODE_MASK = 0x3F
_LONGEST_WAIT = 3600.0  # seconds in one call: those of the kernel end


class Task:
    """A request under way on one connection.  answer counts once done is true."""

    __slots__ = ("answer", "done", "tag")

    def __init__(self) -> None:
        self.tag = -1
        self.done = False
        self.answer: tuple[int, bytes, object, int, int, int] | ChapAnswer | None = None


def submit(core: _core.Session, command: Command, lun: int) -> int:
    """Send a SCSI command; its tag.  Raises: as the core's submit()."""
    return core.submit(
        lun, command.cdb, command.data_out, command.data_in_buffer, command.data_in_length
    )


def scsi_response(answer: object) -> Response:
    """The core's answer to a SCSI command as a Response.

    Raises: SessionLost: the target could not deliver it.
    """
    assert isinstance(answer, tuple)
    status, sense, data_in, received, residual_in, residual_out = answer
    if status < 0:
        raise SessionLost("the target failed to deliver the command's answer")
    view = memoryview(data_in)[:received]
    return Response(status, sense, view, residual_in, residual_out)


def message_meaning(header: bytes) -> str:
    """Why an asynchronous message or reject ends the session, or "" when it does not."""
    if header[0] & _OPCODE_MASK == _REJECT:
        return f"the target rejected a PDU (reason {header[2]:02x}h)"
    event = header[36]
    if event in (1, 2, 3):
        return f"the target asked to end the session (event {event})"
    return ""


def peer_name(host: str) -> Any:
    """A host as getaddrinfo() takes it, which would import the codec of international names for a str."""
    return host.encode() if host.isascii() else host


def ready_socket(sock: socket.socket) -> socket.socket:
    """A connected socket with the options of a session."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    sock.setblocking(False)
    return sock


def cannot_connect(host: str, port: int, error: OSError) -> Unreachable:
    """The exception for a target that TCP does not reach."""
    return Unreachable(f"cannot connect to {host}:{port}: {error.strerror or error}")


def open_socket(host: str, port: int, timeout: float) -> socket.socket:
    """Connect over TCP, non-blocking from then on.  Raises: Unreachable."""
    try:
        wait = min(timeout, _LONGEST_WAIT)
        return ready_socket(socket.create_connection((peer_name(host), port), wait))
    except OSError as error:
        raise cannot_connect(host, port, error) from None


class Connection:
    """One logged-in connection.  Thread-safe; see the head of this file."""

    def __init__(
        self, address: tuple[str, int], parameters: LoginParameters, timeout: float
    ) -> None:
        """Connect and log in within timeout seconds.  Raises: Unreachable and its children."""
        deadline = time.monotonic() + timeout
        self._timeout = timeout
        self._sock = open_socket(*address, timeout)
        self._core = _core.Session(self._sock.fileno(), parameters.max_segment)
        self._lock = threading.Lock()
        self._leader: object = None  # of the thread that polls
        self._asleep: list[threading.Lock] = []  # of threads that wait
        self._tasks: dict[int, Task] = {}
        self._finished: list[tuple[int, Any]] = []
        self._failure: tuple[type[Unreachable], str] | None = None
        self._closing = False
        self._wake = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poll = select.poll()
        self._poll.register(self._sock, select.POLLIN)
        self._poll.register(self._wake, select.POLLIN)
        self._polled_events = select.POLLIN
        try:
            agreed = self.converse(login(parameters), deadline)
            with self._lock:
                self._core.start(*agreed)
        except BaseException:
            self.abandon("the login did not succeed")
            raise
        self.negotiated = agreed

    def __del__(self) -> None:
        if getattr(self, "_wake", -1) >= 0:  # nobody has closed the session
            os.close(self._wake)

    # ---- figures ------------------------------------------------------------------------------

    @property
    def failed(self) -> bool:
        """Whether the session is over."""
        return self._failure is not None

    @property
    def bytes_sent(self) -> int:
        """Bytes put on the socket, all headers included."""
        return self._core.bytes_sent

    @property
    def bytes_received(self) -> int:
        """Bytes taken from the socket, all headers included."""
        return self._core.bytes_received

    # ---- requests -------------------------------------------------------------------------------

    def submit(self, command: Command, lun: int) -> Task:
        """Send a SCSI command.  Raises: SessionLost; ValueError: an argument is out of range."""
        task = Task()
        while True:
            with self._lock:
                self._check()
                if self._core.outstanding < _TASKS_MOST:
                    task.tag = submit(self._core, command, lun)
                    self._register(task)
                    return task
            self._wait_until(self._has_room, time.monotonic() + self._timeout)

    def _has_room(self) -> bool:
        """Whether another command can be sent, or none any more.  Lock held."""
        return self._failure is not None or self._core.outstanding < _TASKS_MOST

    def request(self, request: PduRequest) -> Task:
        """Send a PDU that is no SCSI command.  Raises: SessionLost."""
        task = Task()
        with self._lock:
            self._check()
            task.tag = self._core.request(
                request.opcode, request.header, request.data, request.immediate
            )
            self._register(task)
        return task

    def task_management(self, function: int, lun: int, task: Task | None, timeout: float) -> int:
        """Send a task management function and wait.  Returns: its response code (0: complete)."""
        with self._lock:
            number = self._core.command_number(task.tag) if task else 0
        tag = task.tag if task else 0xFFFF_FFFF
        request = task_management_request(function, lun, tag, number or 0)
        header, _ = self.plain_answer(self.request(request), time.monotonic() + timeout)
        return header[2]

    def settle_aborted(self, task: Task) -> None:
        """Call a task aborted, if it has no answer."""
        with self._lock:
            if not task.done:
                task.answer = (TASK_ABORTED, b"", b"", 0, 0, 0)
                task.done = True
                self._wake_others()

    def converse(self, dialogue: Generator[PduRequest, ChapAnswer, T], deadline: float) -> T:
        """Carry a dialogue of login.py to its end.  Raises: what it raises; SessionLost."""
        try:
            request = next(dialogue)
            while True:
                answer = self.plain_answer(self.request(request), deadline)
                request = dialogue.send(answer)
        except StopIteration as stop:
            result: T = stop.value
            return result

    def plain_answer(self, task: Task, deadline: float) -> ChapAnswer:
        """Wait for the answer to request()."""
        answer = self.wait(task, deadline)
        assert isinstance(answer, tuple) and len(answer) == 2
        return answer

    # ---- waiting --------------------------------------------------------------------------------

    def wait(self, task: Task, deadline: float) -> object:
        """Wait until monotonic time deadline for a task.

        Returns: the core's answer.
        Raises: CommandTimeout: none came, and the session was dropped; SessionLost: it was lost.
        """
        if not task.done:
            self._wait_until(lambda: task.done, deadline)
        if task.answer is None:
            raise self._error()
        return task.answer

    def _wait_until(self, happened: Callable[[], bool], deadline: float) -> None:
        """Serve the socket, or have another thread do it, until something has happened.  Lock not held.

        happened: called with the lock held.
        Raises: CommandTimeout: it did not, and the session was dropped.
        """
        me = object()
        while True:
            asleep = None
            try:
                with self._lock:
                    if self._leader is None:
                        self._harvest()  # what an interrupted thread has left
                    if happened():
                        return
                    left = deadline - time.monotonic()
                    if left <= 0:
                        self._fail(SessionLost, "the session was dropped: a command got no answer")
                        raise CommandTimeout("no answer from the target in time")
                    if self._leader is None:
                        self._leader = me
                        self._poll_for_events()
                    else:
                        asleep = threading.Lock()
                        asleep.acquire()
                        self._asleep.append(asleep)
                if asleep is not None:
                    asleep.acquire(timeout=min(left, _LONGEST_WAIT))
                else:
                    self._lead(happened, deadline)
            finally:
                if self._leader is me:
                    try:
                        self._resign(me)
                    except BaseException:  # an interrupt
                        self._resign(me)
                        raise

    def _lead(self, happened: Callable[[], bool], deadline: float) -> None:
        """Poll and serve the socket until that happened or it is too late.  Lock not held."""
        while (left := deadline - time.monotonic()) > 0:
            ready = self._poll.poll(min(left, _LONGEST_WAIT) * 1000 + 1)
            with self._lock:
                if (self._wake, select.POLLIN) in ready:
                    os.eventfd_read(self._wake)
                if self._failure is None:
                    self._service()
                if happened():
                    self._end_leading()
                    return
                self._poll_for_events()

    def _poll_for_events(self) -> None:
        """Have the next poll() wait for what the core waits for.  Lock held."""
        events = self._core.events()
        if events != self._polled_events:
            self._poll.modify(self._sock, events)
            self._polled_events = events

    def _end_leading(self) -> None:
        """Let another thread lead.  Lock held."""
        self._wake_others()
        if self._closing:
            self._release()
        self._leader = None  # the last: after an interrupt all of this is repeated

    def _resign(self, leader: object) -> None:
        """Let another thread lead, if this one still does."""
        with self._lock:
            if self._leader is leader:
                self._end_leading()

    def _wake_others(self) -> None:
        """Let all threads that sleep see what has happened.  Lock held.

        An interrupt leaves them to the next time: then some have got their locks already.
        """
        for each in self._asleep:
            if each.locked():
                each.release()
        self._asleep.clear()

    def _error(self) -> Unreachable:
        kind, text = self._failure or (SessionLost, "the session was lost")
        return kind(text)

    def _check(self) -> None:
        if self._failure is not None:
            raise self._error()

    def _register(self, task: Task) -> None:
        """Remember a task just submitted, and send what the socket takes.  Lock held."""
        self._tasks[task.tag] = task
        try:
            found = self._service()
        except BaseException:  # an interrupt, which may have come before others got their answers
            self._harvest()
            self._wake_others()
            if self._leader:
                os.eventfd_write(self._wake, 1)
            raise
        if self._leader and (found or self._core.events() != self._polled_events):
            os.eventfd_write(self._wake, 1)

    def _service(self) -> bool:
        """Let the core send and receive; hand out what is done, if anything.  Lock held."""
        try:
            self._core.service()
        except _core.ProtocolViolation as error:
            self._fail(ProtocolError, f"the target broke the protocol: {error}")
            return True
        except ConnectionError as error:
            self._fail(SessionLost, str(error))
            return True
        found = self._harvest()
        for header, _ in self._core.messages():
            meaning = message_meaning(header)
            if meaning:
                self._fail(SessionLost, meaning)
        return found

    def _harvest(self) -> bool:
        """Hand out what is done.  An interrupt leaves the rest for the next time."""
        # Not `+= self._core.done()`: an interrupt at the end of that call would drop its value.
        self._finished += chain.from_iterable(starmap(self._core.done, [()]))
        found = bool(self._finished)
        while self._finished:
            tag, answer = self._finished[-1]
            task = self._tasks.get(tag)
            if task is not None:  # Ctrl-C may have come between the core's submit() and _register()
                task.answer, task.done = answer, True
                self._tasks.pop(tag, None)
            self._finished.pop()
        if found:
            self._wake_others()
        return found

    def _fail(self, kind: type[Unreachable], text: str) -> None:
        """End the session: every task without an answer is done without one.  Lock held."""
        if self._failure is None:
            self._failure = (kind, text)
            self._core.fail()
            self._harvest()
            self._wake_others()
            if self._leader:
                os.eventfd_write(self._wake, 1)

    # ---- ending ---------------------------------------------------------------------------------

    def abandon(self, reason: str) -> None:
        """Drop the connection without a word.  Never raises; may be repeated."""
        with self._lock:
            self._fail(SessionLost, reason)
            self._closing = True
            if not self._leader:
                self._release()

    def forget(self) -> None:
        """Leave the session to the parent, in a process that fork() has made.  Nothing is sent.

        Two processes on one connection would take each other's answers.  The other threads, which may
        have held the lock or been inside the core, are not in this process.
        """
        self._lock = threading.Lock()
        self._leader = None
        self._asleep.clear()
        self._failure = self._failure or (SessionLost, "the session is the parent process's")
        for task in self._tasks.values():
            task.done = True
        self._tasks.clear()
        self._release()

    def _release(self) -> None:
        """Close the descriptors, once nobody polls them.  Lock held."""
        self._sock.close()
        if self._wake >= 0:
            os.close(self._wake)
            self._wake = -1

    def close(self) -> None:
        """Log out, at most 2 s, and close.  Never raises; may be repeated."""
        try:
            if not self.failed:
                deadline = time.monotonic() + _LOGOUT_TIMEOUT
                self.plain_answer(self.request(logout_request()), deadline)
        except Unreachable:
            pass
        finally:  # also after Ctrl-C
            self.abandon(CLOSED)
