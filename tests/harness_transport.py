# SPDX-License-Identifier: GPL-2.0-or-later
"""A Transport over the pipes of osd_harness: the target's core without tgtd or sockets.

Frames, big-endian.  Request: be32 4F534451h "OSDQ", be64 tag, be32 CDB length, be32 Data-Out
length,
be32 Data-In capacity, CDB, Data-Out.  Answer: be32 4F534441h "OSDA", be64 tag, u8 SAM status, 3
pad,
be32 sense length, be32 Data-In length, sense, Data-In.  Answers come in any order.
"""

from __future__ import annotations

import itertools
import select
import struct
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import IO

from pyosd.errors import CommandTimeout, SessionLost
from pyosd.wire.transport import Command, Response

_REQUEST = struct.Struct(">IQIII")
_ANSWER = struct.Struct(">IQB3xII")
_REQUEST_MAGIC, _ANSWER_MAGIC = 0x4F53_4451, 0x4F53_4441
DEFAULT_TIMEOUT = 60.0


@dataclass(frozen=True)
class HarnessPending:
    """A command the harness has.  tag: its task tag."""

    transport: HarnessTransport
    future: Future[Response]
    tag: int

    def result(self, timeout: float | None = None) -> Response:
        deadline = time.monotonic() + (DEFAULT_TIMEOUT if timeout is None else timeout)
        self.transport.read_until(self.future, deadline)
        try:
            return self.future.result(max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            raise CommandTimeout("the harness did not answer in time") from None


class HarnessTransport:
    """Runs osd_harness with the arguments given and talks to it; many commands may be under way.

    Thread-safe.  process: for tests that kill it; stderr: its log goes there.

    A command's thread reads the answer itself: to be woken by another takes longer than most commands.
    From the first command on that is sent while another is under way, a thread of ours reads all.
    """

    def __init__(
        self,
        argv: Sequence[str],
        stderr: IO[bytes] | int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            argv, stdin=pipe, stdout=pipe, stderr=stderr, env=environment
        )
        self._tags = itertools.count(1)
        self._lock = threading.Lock()
        self._write_lock = threading.Lock()
        self._waiting: dict[int, tuple[Command, Future[Response]]] = {}
        self._ended = False
        self._reading = threading.Lock()
        self._comes = select.poll()
        self._comes.register(self.process.stdout, select.POLLIN)  # type: ignore[arg-type]
        self._reader: threading.Thread | None = None

    def submit(self, command: Command) -> HarnessPending:
        assert self.process.stdin is not None
        tag = next(self._tags)
        future: Future[Response] = Future()
        data_out = memoryview(command.data_out)
        with self._lock:
            if self._ended:
                raise SessionLost("the harness has ended")
            if self._waiting:
                self._start_reader()
            self._waiting[tag] = (command, future)
        head = _REQUEST.pack(
            _REQUEST_MAGIC, tag, len(command.cdb), data_out.nbytes, command.data_in_length
        )
        try:
            with self._write_lock:
                self.process.stdin.write(head + command.cdb)
                self.process.stdin.write(data_out)
                self.process.stdin.flush()
        except (OSError, ValueError):
            raise SessionLost("the harness has ended") from None
        return HarnessPending(self, future, tag)

    def execute(self, command: Command, timeout: float | None = None) -> Response:
        return self.submit(command).result(timeout)

    def close(self) -> None:
        """End of input: the harness finishes what it has and leaves; it is killed after 60 s."""
        assert self.process.stdin is not None and self.process.stdout is not None
        with self._lock:
            self._start_reader()  # a thread that reads itself would read on while stdout is closed
        try:
            with self._write_lock:
                self.process.stdin.close()
        except OSError:
            pass
        try:
            self.process.wait(DEFAULT_TIMEOUT)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self._reader:
            self._reader.join()
        self.process.stdout.close()

    def __enter__(self) -> HarnessTransport:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _start_reader(self) -> None:
        """Called with the lock."""
        if self._reader is None:
            self._reader = threading.Thread(target=self._read_all, daemon=True)
            self._reader.start()

    def read_until(self, future: Future[Response], deadline: float) -> None:
        """Read until this one's answer is there or the time is over, unless another thread reads."""
        if not self._reading.acquire(blocking=False):
            with self._lock:
                self._start_reader()
            return
        try:
            while not future.done() and self._reader is None:
                if not self._comes.poll(max(0.0, deadline - time.monotonic()) * 1000):
                    break
                if not self._read_answer():
                    self._end()
        finally:
            self._reading.release()

    def _read_all(self) -> None:
        with self._reading:
            while self._read_answer():
                pass
            self._end()

    def _read_answer(self) -> bool:
        """Take an answer and give it to its command; False: there are no more."""
        assert self.process.stdout is not None
        read = self.process.stdout.read
        head = read(_ANSWER.size)
        if len(head) != _ANSWER.size:
            return False
        magic, tag, status, sense_length, data_in_length = _ANSWER.unpack(head)
        if magic != _ANSWER_MAGIC:
            return False
        sense, data_in = read(sense_length), read(data_in_length)
        if len(data_in) != data_in_length:
            return False
        with self._lock:
            command, future = self._waiting.pop(tag)
        if command.data_in_buffer is not None:
            view = memoryview(command.data_in_buffer)[:data_in_length]
            view[:] = data_in
        else:
            view = memoryview(data_in)
        residual = command.data_in_length - data_in_length
        future.set_result(Response(status, sense, view, residual_in=residual))
        return True

    def _end(self) -> None:
        with self._lock:
            self._ended = True
            lost = list(self._waiting.values())
            self._waiting.clear()
        for _, future in lost:
            future.set_exception(SessionLost("the harness ended before the answer came"))
