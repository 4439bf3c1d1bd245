# SPDX-License-Identifier: GPL-2.0-or-later
"""A supervised process: its start, its end, its next start, and what happens when we die."""

from __future__ import annotations

import asyncio
import functools
import os
import re
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from iosd_host.serve import process as service_module
from iosd_host.serve.process import ProcessFailed, SupervisedProcess, as_user, terminate

DEADLINE_S = 60.0


@pytest.fixture(autouse=True)
def killed_in_any_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed process is seen to be gone, however long we are stopped meanwhile."""
    monkeypatch.setattr(service_module, "KILLED_S", DEADLINE_S)


async def always_ready() -> None:
    return


async def never_ready() -> None:
    await asyncio.Event().wait()


def make(
    *command: str,
    ready: Callable[[], Awaitable[None]] = always_ready,
    up: Callable[[bool], None] = lambda again: None,
) -> SupervisedProcess:
    return SupervisedProcess("it", command, {"PATH": os.environ["PATH"]}, ready, terminate, up)


def gone(pid: int) -> bool:
    """Whether a process runs no more (a zombie that nobody has reaped does not run)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


def reached(events: list[bool], count: int) -> bool:
    return len(events) == count


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():
            await asyncio.sleep(0.01)


def test_starts_and_stops() -> None:
    async def body() -> None:
        service = make("sleep", "1000")
        await service.start()
        pid = service.pid
        assert pid is not None
        await service.stop()
        assert service.pid is None
        assert gone(pid)

    asyncio.run(body())


def test_one_that_writes_much_gets_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "SHUTDOWN_S", 0.0)

    async def body() -> None:
        service = make("sh", "-c", "trap 'sleep 0.2; exit 7' TERM; echo trapped; sleep 1000 & wait")
        service.patience = DEADLINE_S
        await service.start()
        await until(lambda: bool(service.lines))
        assert service.process is not None
        await service.stop()
        assert service.process.returncode == 7

    asyncio.run(body())


def blocked(pid: int | str) -> bool:
    """Whether SIGHUP is blocked in a process."""
    found = re.search(r"SigBlk:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    assert found
    return bool(int(found[1], 16) & 1 << signal.SIGHUP - 1)


def test_a_hangup_does_not_end_one_that_starts() -> None:
    async def body() -> None:
        service = make("sleep", "1000")
        await service.start()
        assert service.pid and blocked(service.pid) and not blocked("thread-self")
        await service.stop()

    asyncio.run(body())


def test_one_that_ignores_sigterm_is_killed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(service_module, "SHUTDOWN_S", 0.2)

    async def body() -> None:
        service = make("sh", "-c", "trap '' TERM; echo trapped; sleep 1000 & wait; sleep 1000")
        await service.start()
        pid = service.pid
        assert pid is not None
        await until(lambda: bool(service.lines))
        await service.stop()
        assert gone(pid)

    asyncio.run(body())
    _, asked, killed = capsys.readouterr().err.splitlines()
    assert asked.endswith("info: ending it")
    assert killed.endswith("warning: it has not ended within 0.2 s: it is killed")


def test_a_start_that_the_system_refuses_is_repeated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also one without a process: no memory, no program while a package is replaced."""
    monkeypatch.setattr(service_module, "BACKOFF_FIRST_S", 0.01)
    refusals = iter([True, True])

    async def body() -> None:
        starts: list[bool] = []
        service = make("sleep", "1000", up=starts.append)
        await service.start()
        command = service.command

        def before() -> None:
            service.command = ["/nonexistent"] if next(refusals, False) else command

        service.before = before
        watcher = asyncio.create_task(service.supervise())
        assert service.pid is not None
        os.kill(service.pid, signal.SIGKILL)
        await until(functools.partial(reached, starts, 1))
        await service.stop()
        await watcher

    asyncio.run(body())
    assert capsys.readouterr().err.count("/nonexistent") == 2


HOLD = """setsid sh -c 'echo $$; exec sleep 1000' & exec sleep 1000"""
"""A process of another session has its pipe, too, and says so once it is in that session."""


def test_who_holds_its_pipe_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "BACKOFF_FIRST_S", 0.01)
    monkeypatch.setattr(service_module, "SHUTDOWN_S", DEADLINE_S)

    async def body() -> None:
        starts: list[bool] = []
        service = make("sh", "-c", HOLD, up=starts.append)
        await service.start()
        holders = []

        async def holder() -> None:
            await until(lambda: bool(service.lines))
            holders.append(int(service.lines[0]))

        try:
            await holder()
            watcher = asyncio.create_task(service.supervise())
            assert service.pid is not None
            os.kill(service.pid, signal.SIGKILL)
            await until(functools.partial(reached, starts, 1))
            await holder()
            async with asyncio.timeout(service_module.SHUTDOWN_S - 1):
                await service.stop()
                await watcher
        finally:
            for pid in holders:
                os.kill(pid, signal.SIGKILL)

    asyncio.run(body())


MANY_LINES = "ready full\\n" + "a pool has ended\\n" * 2 * service_module.LAST_LINES


def test_a_sign_is_seen_also_if_many_lines_follow_at_once() -> None:
    async def body() -> None:
        async def ready() -> None:
            await until(lambda: bool(service.lines) and "ready full" not in service.lines)
            await until(lambda: service.said is not None)

        service = make("sh", "-c", f"printf '{MANY_LINES}'; exec sleep 1000", ready=ready)
        service.sign = "ready "
        await service.start()
        assert service.said == "ready full"
        await service.stop()

    asyncio.run(body())


def test_a_death_leads_to_a_new_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "BACKOFF_FIRST_S", 0.01)

    async def body() -> None:
        starts: list[bool] = []
        service = make("sleep", "1000", up=starts.append)
        await service.start()
        watcher = asyncio.create_task(service.supervise())
        pids = set()
        for count in range(1, 4):
            assert service.pid is not None
            pids.add(service.pid)
            os.kill(service.pid, signal.SIGKILL)
            await until(functools.partial(reached, starts, count))
        assert len(pids) == 3
        await service.stop()
        await asyncio.wait_for(watcher, DEADLINE_S)
        assert starts == [True, True, True]

    asyncio.run(body())


def test_failed_start_tells_the_last_words() -> None:
    async def body() -> None:
        service = make("sh", "-c", "echo no room here >&2; exit 3", ready=never_ready)
        with pytest.raises(ProcessFailed, match=r"(?s)ended with 3.*no room here"):
            await service.start()
        assert service.pid is None

    asyncio.run(body())


def test_not_ready_in_time_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_module, "START_S", 0.05)

    async def body() -> None:
        service = make("sleep", "1000", ready=never_ready)
        with pytest.raises(ProcessFailed, match="did not get ready"):
            await service.start()
        assert service.pid is None

    asyncio.run(body())


PARENT = """
import subprocess, sys, time
from iosd_host.serve.process import as_user
child = subprocess.Popen([*as_user(None), "sleep", "1000"])
print(child.pid, flush=True)
time.sleep(1000)
"""


def test_children_die_with_a_killed_parent() -> None:
    root = Path(__file__).resolve().parents[2]
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True, cwd=root
    )
    assert parent.stdout is not None
    with parent.stdout:
        pid = int(parent.stdout.readline())
    asyncio.run(until(lambda: Path(f"/proc/{pid}/comm").read_text() == "sleep\n"))
    parent.kill()
    parent.wait()
    asyncio.run(until(lambda: gone(pid)))


@pytest.mark.skipif(os.geteuid() != 0, reason="changes the uid")
def test_runs_as_another_user() -> None:
    done = subprocess.run([*as_user(64733), "id", "-u"], capture_output=True, text=True, check=True)
    assert done.stdout == "64733\n"
