# SPDX-License-Identifier: GPL-2.0-or-later
"""One supervised process: started, awaited until it serves, restarted with backoff, ended.

Not here: the list of processes (supervise.py) and their options (parts.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from iosd_host.common import logs
from iosd_host.common.users import group_of

__all__ = ["ProcessFailed", "SupervisedProcess", "as_user", "terminate"]

COMPONENT = "iosd-supervisor"
BACKOFF_FIRST_S = 0.1
BACKOFF_LAST_S = 10.0
STEADY_S = 30.0  # a process that has run so long starts again without delay
START_S = 300.0  # recovery of a large store included
LAST_LINES = 20
SHUTDOWN_S = 5.0  # to end in its own way
LAST_WORDS_S = 1.0
KILLED_S = 2.0  # to be gone then: a process in the midst of a system call may take its time


class ProcessFailed(Exception):
    """A process did not come up; the text holds its last words."""


def as_user(uid: int | None) -> list[str]:
    """Return the words before a command that make it run as `uid` and die with its parent.

    The order matters: the kernel forgets the parent-death signal when the uid changes.
    """
    words = ["setpriv", "--pdeathsig", "KILL", "--no-new-privs"]
    if uid is not None:
        words += [f"--reuid={uid}", f"--regid={group_of(uid)}", "--clear-groups"]
    if uid:
        words += ["--inh-caps=-all", "--bounding-set=-all"]
    return [*words, "--"]


async def connected(readable: int) -> tuple[asyncio.ReadTransport, asyncio.StreamReader]:
    """The reading end of a pipe, which the transport closes."""
    lines = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(lines)
    pipe = os.fdopen(readable, "rb", 0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, pipe)
    return transport, lines


async def terminate(process: asyncio.subprocess.Process) -> None:
    """The usual way to ask it to end."""
    process.terminate()


@contextlib.contextmanager
def _hangups_kept() -> Iterator[None]:
    """Have processes that start meanwhile begin with SIGHUP blocked: they unblock it when they can
    handle it.  Before that it would end them.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})


@dataclass
class SupervisedProcess:
    """A process that shall run until `stop`.

    Args:
        name: for log lines.
        command, environment: what to run.
        ready: returns once the process serves; raises ProcessFailed when it cannot.
        end: asks the running process to end in its own way; one that does not in time is killed.
        up: called after each successful start, with True for a restart.
        noise: texts; the log leaves out lines with one of them.
        before: called before each start.
        patience: seconds that the process may take to end in its own way; None: SHUTDOWN_S.
        sign: how a line begins that `ready` waits for; `said` is the first such line of this start.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    ready: Callable[[], Awaitable[None]]
    end: Callable[[asyncio.subprocess.Process], Awaitable[None]]
    up: Callable[[bool], None] = lambda again: None
    noise: Sequence[str] = ()
    before: Callable[[], None] = lambda: None
    patience: float | None = None
    sign: str | None = None
    reader: asyncio.Task[None] | None = None
    process: asyncio.subprocess.Process | None = None
    pipe: asyncio.ReadTransport | None = None
    lines: list[str] = field(default_factory=list)
    said: str | None = None
    stopping: bool = False

    @property
    def pid(self) -> int | None:
        """The running process's id."""
        return self.process.pid if self.process and self.process.returncode is None else None

    async def start(self) -> None:
        """Start the process and wait until it serves.

        Raises:
            ProcessFailed: it ended, or did not serve in time; it runs no more.
        """
        self.lines = []
        self.said = None
        self.before()
        # A pipe of our own: wait() of Python 3.11 waits until one of its own is closed by all, also by
        # those whom the process has left behind.
        readable, writable = os.pipe()
        try:
            self.pipe, lines = await connected(readable)
            with _hangups_kept():
                self.process = await asyncio.create_subprocess_exec(
                    *self.command,
                    env=dict(self.environment),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=writable,
                    stderr=asyncio.subprocess.STDOUT,
                    start_new_session=True,  # a Ctrl-C is for the supervisor, which knows the order
                )
        except BaseException:
            if self.pipe is not None:
                self.pipe.close()
            raise
        finally:
            os.close(writable)
        self.reader = asyncio.create_task(self._read_log(lines))
        ready = asyncio.ensure_future(self.ready())
        ended = asyncio.create_task(self.process.wait())
        try:
            await asyncio.wait((ready, ended), timeout=START_S, return_when=asyncio.FIRST_COMPLETED)
            if ready.done():
                ready.result()
                return
            why = f"ended with {self.process.returncode}" if ended.done() else "did not get ready"
            raise ProcessFailed(f"{self.name} {why}")
        except BaseException as error:
            await self.kill()
            if isinstance(error, ProcessFailed) and self.lines:
                raise ProcessFailed("\n  ".join([str(error), *self.lines])) from None
            raise
        finally:
            for task in (ready, ended):
                task.cancel()

    async def supervise(self) -> None:
        """Wait for the started process to end, and start it again, until `stop` is called."""
        delay = BACKOFF_FIRST_S
        clock = asyncio.get_running_loop().time
        born = clock()
        while True:
            assert self.process is not None
            code = await self.process.wait()
            if self.stopping:
                return
            await self._let_go()
            if clock() - born > STEADY_S:
                delay = BACKOFF_FIRST_S
            logs.say(COMPONENT, "warning", f"{self.name} ended with {code}; again in {delay:.1f} s")
            await asyncio.sleep(delay)
            delay = min(delay * 2, BACKOFF_LAST_S)
            born = clock()
            try:
                await self.start()
            except (ProcessFailed, OSError) as error:
                logs.say(COMPONENT, "error", str(error))
            else:
                self.up(True)

    async def stop(self) -> None:
        """End the process in its own way where it lets itself be ended so in time, else by SIGKILL.

        The log says when it is asked to, and what it did not do: it is the step that is under way.
        """
        self.stopping = True
        if self.process is None or self.process.returncode is not None:
            return
        logs.say(COMPONENT, "info", f"ending {self.name}")
        patience = SHUTDOWN_S if self.patience is None else self.patience
        try:
            async with asyncio.timeout(patience):
                await self.end(self.process)
                await self.process.wait()
        except ProcessLookupError:
            pass
        except TimeoutError:
            why = f"{self.name} has not ended within {patience:g} s: it is killed"
            logs.say(COMPONENT, "warning", why)
        await self.kill()

    async def kill(self) -> None:
        """End the process and what it left in its session, and wait for that in bounded time."""
        assert self.process is not None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        try:
            await asyncio.wait_for(self.process.wait(), KILLED_S)
        except TimeoutError:
            why = f"{self.name}, process {self.process.pid}, is still in the kernel after SIGKILL"
            logs.say(COMPONENT, "error", why)
        await self._let_go()

    async def _let_go(self) -> None:
        """Log its last words; a grandchild that holds the pipe open must not keep us."""
        assert self.reader is not None
        assert self.pipe is not None
        await asyncio.wait((self.reader,), timeout=LAST_WORDS_S)
        self.reader.cancel()
        self.pipe.close()

    async def _read_log(self, lines: asyncio.StreamReader) -> None:
        while True:
            try:
                raw = await lines.readline()
            except ValueError:  # a line longer than the buffer: its parts come one by one
                continue
            if not raw:
                return
            line = raw.decode(errors="backslashreplace").rstrip()
            if not line or any(part in line for part in self.noise):
                continue
            if self.said is None and self.sign is not None and line.startswith(self.sign):
                self.said = line  # apart: more lines may come with it than `lines` keeps
            self.lines = [*self.lines[1 - LAST_LINES :], line]
            logs.relay(self.name, line)
