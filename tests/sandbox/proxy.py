# SPDX-License-Identifier: GPL-2.0-or-later
"""A test proxy: speaks iosd-sandboxd's protocol and plays the target's side of a sandbox.

It trusts the frames of target/wire/{sandboxd_frame,proxy_frame}.h and nothing of the C code, so a
mistake shared by both C ends shows here.  Objects live in a dictionary (MemoryObjects).
"""

from __future__ import annotations

import ctypes
import mmap
import os
import select
import signal
import socket
import struct
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.machine import SHARE_OF_TESTS

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "sandbox"
SANDBOXD = BUILD / "iosd-sandboxd"

HELLO, SPAWN, LIMITS, KILL, JOB, ROTATE, FORGET, NUDGE, CPU_GOT, BOUND = range(1, 11)
WELCOME, SPAWNED, EXITED, REFUSED, LIMITS_SET, POOL, ROTATED = 17, 18, 19, 20, 21, 22, 23
READY, FAILED, RUN, SHARE = 1, 2, 3, 4

TEXTS_AT = 8192 + (1 << 20) + (64 << 10)
SHM_BYTES = TEXTS_AT + (32 << 20) + (64 << 10)
CALL_AT, ANSWER_AT, CONTROL_AT, WORD_AT = (64, 192), (128, 256), 320, 384
HEEDED_AT, PEAK_AT = 388, 576
FRAME_AT, BODY_AT, FRAME_BYTES = (4096, 4096 + 128), (8192, 8192 + (512 << 10)), 64
AHEAD, RESULT, WRITE, APPEND = 1, 3, 33, 34

HEADER = struct.Struct(">HHIQ")
LIMITS_BODY = struct.Struct(">QIII")
EXIT_BODY = struct.Struct(">iQQQB")
CALL = struct.Struct(">HHHHI4xQQQQ16x")
ANSWER = struct.Struct(">HHHHI4x16xQQ16x")
JOB_RUN = struct.Struct(">HHBBBBQQQQIIII8xIBBBBI")

NEXT, FINISH_KEPT = 4, 0x100
CLEAN, CLEAN_LIGHTLY = 1, 2
FINISH_OK, FINISH_EXCEPTION, FINISH_EXIT, FINISH_MEMORY, FINISH_ENDED = range(5)
CONTROL_PING, CONTROL_END = 1, 2
FUTEX_WAKE = 1
SYS_FUTEX = 202
DEADLINE_S = 300.0
"""A sandbox gets the time that nobody else wants, and no target asks for a share for these: only a
sandbox that hangs takes as long."""

libc = ctypes.CDLL(None, use_errno=True)


class Timeout(AssertionError):
    """What was waited for did not happen; never expected in a passing test."""


@dataclass
class Limits:
    """struct osd_sandbox_limits."""

    memory_bytes: int = 256 << 20
    cpu_seconds: int = 60
    processes: int = 1
    open_files: int = 256

    def encode(self) -> bytes:
        return LIMITS_BODY.pack(
            self.memory_bytes, self.cpu_seconds, self.processes, self.open_files
        )


@dataclass
class Exit:
    """struct osd_sandbox_exit."""

    wait_status: int
    cpu_user_usec: int
    cpu_system_usec: int
    peak_bytes: int
    out_of_memory: bool

    @property
    def code(self) -> int:
        """Exit code, or minus the signal."""
        return os.waitstatus_to_exitcode(self.wait_status)


@dataclass
class Outcome:
    """How a job ended, as the target would learn it."""

    stdout: bytes = b""
    stderr: bytes = b""
    exit_code: int | None = None  # of FINISH; None: there was none
    kind: int | None = None
    traceback: str = ""
    line: str = ""
    status: Exit | None = None
    result: bytearray = field(default_factory=bytearray)
    result_encoding: int | None = None
    kept: bool = False  # the sandbox says that it keeps the code
    progress: list[tuple[int, str]] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    placed: bool = False  # the result was left in the shared memory
    pieces: int = 0  # calls made ahead, and the last of each row


STARTING, SERVING, FAILING = range(3)  # states of a pool


@dataclass
class PoolNews:
    """struct osd_pool_news."""

    state: int
    name: str
    set: str
    why: str

    @classmethod
    def decode(cls, body: bytes) -> PoolNews:
        texts, at = [], 1
        for _ in range(3):
            length = int.from_bytes(body[at : at + 2], "big")
            texts.append(body[at + 2 : at + 2 + length].decode())
            at += 2 + length
        assert at == len(body)
        return cls(body[0], *texts)


class Daemon:
    """A running iosd-sandboxd and the one connection to it.

    tells: says while jobs run that they get too little processor time, as a target does.
    """

    tells = True

    def __init__(
        self,
        folder: Path,
        *options: str,
        most: int = 4,
        stderr: int | None = None,
        wait: bool = True,
    ) -> None:
        self.path = folder / "sandboxd"
        command = [SANDBOXD, "--socket", self.path, "--python-dir", ROOT / "pyosd"]
        command += ["--cpu-share", str(SHARE_OF_TESTS), *options]
        self.process = subprocess.Popen(
            [str(word) for word in command], stdout=subprocess.PIPE, stderr=stderr, text=True
        )
        self.socket: socket.socket | None = None
        self.pending: list[tuple[int, int, bytes, list[int]]] = []
        self.next_id = 1
        if wait:
            self.wait_until_ready(most)

    def wait_until_ready(self, most: int) -> None:
        assert self.process.stdout
        self.level = self.process.stdout.readline().removeprefix("ready ").strip()
        if self.level:
            self.connect(most)

    def connect(self, most: int) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(DEADLINE_S)
        self.socket.connect(str(self.path))
        self.send(HELLO, 0, struct.pack(">I", most))
        self.welcome = self.wait_for(WELCOME, 0)[0]

    def send(self, kind: int, sandbox_id: int, body: bytes = b"") -> None:
        assert self.socket
        self.socket.send(HEADER.pack(1, kind, len(body), sandbox_id) + body)

    def tell(self, per_mille: int) -> None:
        """What jobs get of the processor time that they want."""
        if self.tells:
            self.send(CPU_GOT, 0, struct.pack(">I", per_mille))

    def receive(self) -> tuple[int, int, bytes, list[int]]:
        assert self.socket
        data, fds, _, _ = socket.recv_fds(self.socket, 8192, 8)
        if not data:
            raise EOFError("iosd-sandboxd closed the connection")
        version, kind, length, sandbox_id = HEADER.unpack_from(data)
        assert version == 1 and len(data) == HEADER.size + length
        return kind, sandbox_id, data[HEADER.size :], list(fds)

    def wait_for(self, kind: int, sandbox_id: int) -> tuple[bytes, list[int]]:
        """The message of that kind about that sandbox; others are kept for those who ask later."""
        for i, message in enumerate(self.pending):
            if message[:2] == (kind, sandbox_id):
                return self.pending.pop(i)[2:]
        while True:
            message = self.receive()
            if message[:2] == (kind, sandbox_id):
                return message[2:]
            if message[0] == REFUSED and message[1] == sandbox_id:
                raise PermissionError(message[2].decode())
            self.pending.append(message)

    def wait_for_pool(self, name: str, *states: int) -> PoolNews:
        """The pool's next news, of one of these states."""
        while True:
            for i, message in enumerate(self.pending):
                if message[0] == POOL and (news := PoolNews.decode(message[2])).name == name:
                    self.pending.pop(i)
                    if news.state in states:
                        return news
                    break
            else:
                self.pending.append(self.receive())

    def spawn(self, limits: Limits | None = None, pool: str = "") -> Sandbox:
        sandbox_id = self.next_id
        self.next_id += 1
        self.send(SPAWN, sandbox_id, (limits or Limits()).encode() + pool.encode())
        body, fds = self.wait_for(SPAWNED, sandbox_id)
        return Sandbox(self, sandbox_id, int.from_bytes(body, "big"), fds)

    def run(
        self, code: str | bytes, limits: Limits | None = None, pool: str = "", **job: object
    ) -> Outcome:
        """One job in a sandbox of its own, from spawn to exit."""
        sandbox = self.spawn(limits, pool)
        try:
            sandbox.wait_ready()
            sandbox.start(code, **job)  # type: ignore[arg-type]
            return sandbox.finish()
        finally:
            sandbox.close()

    def stop(self) -> int:
        if self.socket:
            self.socket.close()
        self.process.terminate()
        return self.wait()

    def wait(self) -> int:
        """The daemon's exit code."""
        code = self.process.wait(DEADLINE_S)
        if self.process.stdout:
            self.process.stdout.close()
        if self.process.stderr:
            self.process.stderr.close()
        return code


class Sandbox:
    """One sandbox, seen from its proxy."""

    def __init__(self, daemon: Daemon, sandbox_id: int, pid: int, fds: list[int]) -> None:
        self.daemon, self.id, self.pid = daemon, sandbox_id, pid
        self.pidfd, shm, job, self.stdout, self.stderr = fds
        self.memory = mmap.mmap(shm, SHM_BYTES)
        os.close(shm)
        self.job = socket.socket(fileno=job)
        self.job.settimeout(DEADLINE_S)
        self.outcome = Outcome()
        self.seen = [0, 0]
        self.area = 0
        self.ahead = self.follows = False  # the call under way: another follows, it follows another
        self.failed: bytes | None = None  # the answer to a piece, given to all that follow
        self.objects = None
        self.ending = False  # told to
        self.rests = False  # its last job is over: it calls NEXT before another
        self.open_pipes = {self.stdout: "stdout", self.stderr: "stderr"}
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))

    # -- before the job

    def wait_ready(self) -> None:
        """Raises: RuntimeError: it failed, or ended instead."""
        if self.rests:
            call = self.next_call()
            if call is None:
                raise RuntimeError("the sandbox has ended")
            assert call == (NEXT, 0, 0, 0, 0, b""), call
            return
        message = self.job.recv(4096)
        version, kind = struct.unpack_from(">HH", message)
        assert version == 1
        if kind != READY:
            raise RuntimeError(message[4:].decode())

    def start(
        self,
        code: str | bytes,
        *,
        name: str = "job.py",
        args: bytes = b"",
        args_encoding: int = 0,
        zone: tuple[int, int, int] = (1, 0, 0),
        job: tuple[int, int] = (0x10000, 0x10007),
        in_memfd: bool = False,
        in_shared: bool = False,
        form: int = 0,
        method: str = "",
        slot: int = 0,
        kept: bool = False,
        by_socket: bool = False,
        native: bool = False,
        compiles: bool = False,
        stage: bool = False,
        machine: bytes = b"",
    ) -> None:
        """Hand the job over; zone: type, partition, object; method: the entry point of a function.

        slot: where the code may be kept; kept: it is there, and not sent.
        by_socket: also where the sandbox waits in NEXT.  native: as signed for the engine native.
        compiles: the result is the machine code.  machine: machine code of this code.
        in_shared: the texts lie in the shared memory.  stage: the arguments are data.
        """
        self.daemon.tell(0)
        source = code.encode() if isinstance(code, str) else code
        header = JOB_RUN.pack(
            *(
                1,
                RUN,
                zone[0],
                args_encoding,
                in_memfd + 2 * in_shared,
                form,
                *job,
                zone[1],
                zone[2],
            ),
            *(len(name), len(args), len(source), 20000, len(method), native, slot, kept),
            *(compiles + 2 * stage, len(machine)),
        )
        texts = name.encode() + method.encode() + args + (b"" if kept else source + machine)
        if in_shared:
            self.memory[TEXTS_AT : TEXTS_AT + len(texts)] = texts
            texts = b""
        if self.rests and not (in_memfd or by_socket):
            self.answer(body=header + texts)
            return
        self.send(header, texts, in_memfd)
        if self.rests:
            self.answer()

    def send(self, header: bytes, texts: bytes, in_memfd: bool) -> None:
        """RUN, on the job socket."""
        if not in_memfd:
            self.job.send(header + texts)
            return
        fd = os.memfd_create("job", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.write(fd, texts)
        socket.send_fds(self.job, [header], [fd])
        os.close(fd)

    # -- while it runs

    def word(self, at: int) -> int:
        return int(struct.unpack_from("=I", self.memory, at)[0])

    def post(self, line: int) -> None:
        struct.pack_into("=I", self.memory, line, (self.word(line) + 1) & 0xFFFFFFFF)
        if self.word(line + 4):
            libc.syscall(
                SYS_FUTEX, ctypes.c_void_p(self.address + line), FUTEX_WAKE, 1, None, None, 0
            )

    def control(self, word: int) -> None:
        struct.pack_into("=I", self.memory, WORD_AT, word)
        self.post(CONTROL_AT)
        self.ending |= word == CONTROL_END
        self.daemon.send(NUDGE, self.id)

    def heeded(self) -> bool:
        """Whether the last word has been."""
        return self.word(HEEDED_AT) == self.word(CONTROL_AT)

    def drain(self, timeout: float = 0.0) -> None:
        """What the script printed so far."""
        for fd in select.select(list(self.open_pipes), [], [], timeout)[0]:
            data = os.read(fd, 1 << 16)
            name = self.open_pipes[fd]
            setattr(self.outcome, name, getattr(self.outcome, name) + data)
            if not data:
                del self.open_pipes[fd]

    def read_until(self, words: bytes) -> None:
        """Wait for words on standard output."""
        deadline = time.monotonic() + DEADLINE_S
        while words not in self.outcome.stdout:
            if not self.open_pipes or time.monotonic() > deadline:
                raise Timeout(f"{words!r} was not printed: {self.outcome}")
            self.drain(1)

    def dead(self) -> bool:
        return bool(select.select([self.pidfd], [], [], 0)[0])

    def wait_for_call(self) -> bool:
        """False: the sandbox is dead."""
        line, seen = CALL_AT[self.area], self.seen[self.area]
        deadline = time.monotonic() + DEADLINE_S
        told = time.monotonic()
        while self.word(line) == seen:
            if time.monotonic() > told + 1:
                told += 1
                self.daemon.tell(
                    1000
                )  # not less than their share: the weight stays, and is not raised
            if self.dead() and self.word(line) == seen:
                return False
            if time.monotonic() > deadline:
                raise Timeout("the sandbox neither calls nor ends")
            if self.ending:
                self.daemon.send(NUDGE, self.id)
            self.drain(0.0005)
        self.seen[self.area] = self.word(line)
        return True

    def next_call(self) -> tuple[int, int, int, int, int, bytes] | None:
        """op, partition, object, a, b, body; None once the sandbox is dead."""
        while self.wait_for_call():
            version, op, flags, zero, length, partition, obj, a, b = CALL.unpack_from(
                self.memory, FRAME_AT[self.area]
            )
            assert version == 1 and zero == 0 and flags in (0, AHEAD)
            self.follows, self.ahead = self.ahead, flags == AHEAD
            if self.ahead or self.follows:
                assert op in (RESULT, WRITE, APPEND) and 0 < length <= 512 << 10
                self.outcome.pieces += 1
            if not self.follows:
                self.failed = None
            if self.failed is None:
                begin = BODY_AT[self.area]
                return op, partition, obj, a, b, self.memory[begin : begin + length]
            self.answer(self.failed[0], body=self.failed[1:])
        return None

    def answer(
        self, code: int = 0, a: int = 0, b: int = 0, body: bytes = b"", flags: int = 0, fds: int = 0
    ) -> None:
        begin, frame = BODY_AT[self.area], FRAME_AT[self.area]
        self.memory[begin : begin + len(body)] = body
        ANSWER.pack_into(self.memory, frame + FRAME_BYTES, 1, code, flags, fds, len(body), a, b)
        self.post(ANSWER_AT[self.area])
        if code:
            self.failed = bytes([code]) + body
        self.area = 1 - self.area if self.ahead else 0

    def finish(self, objects: object = None) -> Outcome:
        """Serve calls until the sandbox is dead; the daemon's word on its end."""
        from objects import MemoryObjects

        store = objects or MemoryObjects()
        while (call := self.next_call()) is not None:
            self.outcome.calls.append(call[0])
            store.serve(self, *call)  # type: ignore[attr-defined]
        while self.open_pipes:
            self.drain(DEADLINE_S)
        self.outcome.status = self.wait_exit()
        return self.outcome

    def run_another(
        self, code: str | bytes, objects: object = None, *, lightly: bool = False, **job: object
    ) -> Outcome:
        """One job of several in this sandbox: up to its FINISH, which is answered with "again".

        lightly: a call of the same function follows.
        """
        from objects import MemoryObjects

        store = objects or MemoryObjects()
        self.outcome = Outcome()
        self.start(code, **job)  # type: ignore[arg-type]
        while (call := self.next_call()) is not None:
            self.outcome.calls.append(call[0])
            if call[0] == 1:
                store.op_1(self, call[1:3], *call[3:])  # type: ignore[attr-defined]
                self.drain()
                self.answer(a=CLEAN_LIGHTLY if lightly else CLEAN)
                self.rests = True
                break
            store.serve(self, *call)  # type: ignore[attr-defined]
        return self.outcome

    # -- after it

    def kill(self) -> None:
        self.daemon.send(KILL, self.id)

    def wait_exit(self) -> Exit:
        body = self.daemon.wait_for(EXITED, self.id)[0]
        status, user, system, peak, oom = EXIT_BODY.unpack(body)
        return Exit(status, user, system, peak, bool(oom))

    def close(self) -> None:
        self.address = 0
        for fd in (self.pidfd, self.stdout, self.stderr):
            os.close(fd)
        self.job.close()


def gone(pids: list[int]) -> bool:
    """Wait until none of these is a living process."""
    deadline = time.monotonic() + DEADLINE_S
    while any(alive(pid) for pid in pids):
        if time.monotonic() > deadline:
            return False
        os.sched_yield()
    return True


def alive(pid: int) -> bool:
    """Whether a process is there (a zombie is not)."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return "State:\tZ" not in status and "State:\tX" not in status


BEGUN = time.time()


def control_groups(pid: int) -> list[str]:
    """What a daemon of this run has made; an earlier one of that id may have left others."""
    return [
        folder
        for folder, _, _ in os.walk("/sys/fs/cgroup")
        if folder.endswith(f"/iosd-sandboxd-{pid}") and Path(folder).stat().st_mtime > BEGUN
    ]


__all__ = [name for name in dir() if name[0].isupper()] + ["alive", "control_groups", "signal"]
