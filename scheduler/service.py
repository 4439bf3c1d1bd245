# SPDX-License-Identifier: GPL-2.0-or-later
"""One supervised process: started, awaited until it serves, restarted with backoff, ended.

Not here: which processes there are, and what they are told (supervise.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import pwd
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from scheduler import logs

__all__ = ["Service", "ServiceFailed", "as_user", "group_of"]

COMPONENT = "iosd-supervisor"
BACKOFF_FIRST_S = 0.1
BACKOFF_LAST_S = 10.0
STEADY_S = 30.0  # who has lived that long starts again without delay
START_S = 300.0  # recovery of a large store included
LAST_LINES = 20


class ServiceFailed(Exception):
    """A process did not come up; the text holds its last words."""


def group_of(uid: int) -> int:
    """The group a user's processes have: of the same number where the host does not know the user."""
    try:
        return pwd.getpwuid(uid).pw_gid
    except KeyError:
        return uid


def as_user(uid: int | None) -> list[str]:
    """Return the words before a command that make it run as `uid` and die with its parent.

    The order matters: the kernel forgets the parent-death signal when the uid changes.
    """
    words = ["setpriv", "--pdeathsig", "KILL", "--no-new-privs"]
    if uid is not None:
        words += [f"--reuid={uid}", f"--regid={group_of(uid)}", "--clear-groups"]
    return [*words, "--"]


@dataclass
class Service:
    """A process that shall run until `stop`.

    Args:
        name: for log lines.
        command, environment: what to run.
        ready: returns once the process serves; raises ServiceFailed when it cannot.
        end: asks the running process to end in its own way, before it is killed.
        up: told after each successful start, with True for a restart.
        noise: parts of lines that say nothing.
        before: called before each start.
    """

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    ready: Callable[[], Awaitable[None]]
    end: Callable[[asyncio.subprocess.Process], Awaitable[None]]
    up: Callable[[bool], None] = lambda again: None
    noise: Sequence[str] = ()
    before: Callable[[], None] = lambda: None
    reader: asyncio.Task[None] | None = None
    process: asyncio.subprocess.Process | None = None
    lines: list[str] = field(default_factory=list)
    stopping: bool = False

    @property
    def pid(self) -> int | None:
        """The running process's id."""
        return self.process.pid if self.process and self.process.returncode is None else None

    async def start(self) -> None:
        """Start the process and wait until it serves.

        Raises:
            ServiceFailed: it ended, or did not serve in time; it runs no more.
        """
        self.lines = []
        self.before()
        self.process = await asyncio.create_subprocess_exec(
            *self.command,
            env=dict(self.environment),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,  # a Ctrl-C is for the supervisor, which knows the order
        )
        self.reader = asyncio.create_task(self._read_log(self.process))
        ready = asyncio.ensure_future(self.ready())
        ended = asyncio.create_task(self.process.wait())
        try:
            await asyncio.wait((ready, ended), timeout=START_S, return_when=asyncio.FIRST_COMPLETED)
            if ready.done():
                ready.result()
                return
            why = f"ended with {self.process.returncode}" if ended.done() else "did not get ready"
            raise ServiceFailed(f"{self.name} {why}")
        except BaseException as error:
            await self.kill()
            if isinstance(error, ServiceFailed) and self.lines:
                raise ServiceFailed("\n  ".join([str(error), *self.lines])) from None
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
            if clock() - born > STEADY_S:
                delay = BACKOFF_FIRST_S
            logs.say(COMPONENT, "warning", f"{self.name} ended with {code}; again in {delay:.1f} s")
            await asyncio.sleep(delay)
            delay = min(delay * 2, BACKOFF_LAST_S)
            born = clock()
            try:
                await self.start()
            except ServiceFailed as error:
                logs.say(COMPONENT, "error", str(error))
            else:
                self.up(True)

    async def stop(self) -> None:
        """End the process in its own way where it lets itself be ended so, else by SIGKILL."""
        self.stopping = True
        if self.process is None or self.process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            await self.end(self.process)
        await self.kill()

    async def kill(self) -> None:
        """End the process and what it left in its session, and wait until it is gone."""
        assert self.process is not None
        assert self.reader is not None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        await self.process.wait()
        # A grandchild that holds the pipe open must not keep us.
        await asyncio.wait((self.reader,), timeout=1.0)
        self.reader.cancel()

    async def _read_log(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while True:
            try:
                raw = await process.stdout.readline()
            except ValueError:  # a line longer than the buffer: its parts come one by one
                continue
            if not raw:
                return
            line = raw.decode(errors="backslashreplace").rstrip()
            if not line or any(part in line for part in self.noise):
                continue
            self.lines = [*self.lines[1 - LAST_LINES :], line]
            logs.relay(self.name, line)
