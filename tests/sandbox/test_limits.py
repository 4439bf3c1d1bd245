# SPDX-License-Identifier: GPL-2.0-or-later
"""Limits of a job, and what happens to a script that runs into one."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest
from proxy import FINISH_MEMORY, FINISH_OK, LIMITS, LIMITS_SET, Daemon, Limits

MIB = 1 << 20
SHARES = "/sys/fs/cgroup"


@pytest.mark.parametrize(
    "code",
    [
        "x = bytes(1 << 40)",
        "x = bytearray(300 << 20)",
        "x = []\nwhile True: x.append(bytes(1 << 20))",
        "x = []\nwhile True: x.append([1, 2, 3])",
        "x = 'ab'\nwhile True: x += x",
        "import zlib\nbomb = zlib.compress(bytes(1 << 26))\nx = []\n"
        "while True: x.append(zlib.decompress(bomb))",
        "import mmap\nx = []\nwhile True:\n"
        "    x.append(mmap.mmap(-1, 1 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))\n"
        "    x[-1][:] = bytes(1 << 20)",
    ],
)
def test_memory_is_refused_before_the_kernel_kills(daemon: Daemon, code: str) -> None:
    out = daemon.run(code, Limits(memory_bytes=64 * MIB))
    assert out.status
    assert not out.status.out_of_memory
    assert out.status.peak_bytes < 80 * MIB
    assert out.kind == FINISH_MEMORY  # though mmap says OSError: ENOMEM
    assert "MemoryError" in out.line or "Cannot allocate memory" in out.line


def test_memory_within_the_limit_is_there(daemon: Daemon) -> None:
    out = daemon.run("x = bytearray(200 << 20); x[::4096] = b'x' * len(x[::4096])")
    assert out.kind == FINISH_OK, out.stderr


def group_of(pid: int, controller: str) -> Path:
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            return Path("/sys/fs/cgroup") / controller / path.lstrip("/")
    path = Path(f"/proc/{pid}/cgroup").read_text().split("::")[1].strip()
    return Path("/sys/fs/cgroup") / path.lstrip("/")


def test_the_control_group_kills_what_the_limit_missed(daemon: Daemon) -> None:
    """The group's limit set below the resource limit, from outside, stands for a hole in the latter."""
    sandbox = daemon.spawn()
    sandbox.wait_ready()
    group = group_of(sandbox.pid, "memory")
    file = group / "memory.limit_in_bytes"
    file = file if file.exists() else group / "memory.max"
    usual = file.read_text()
    file.write_text(str(32 * MIB))
    sandbox.start("x = bytearray(200 << 20); x[::4096] = b'x' * len(x[::4096])")
    out = sandbox.finish()
    sandbox.close()
    file.write_text(usual)  # iosd-sandboxd knows what it wrote, and does not write that again
    assert out.status
    assert out.status.code == -signal.SIGKILL
    assert out.status.out_of_memory
    assert daemon.run("pass").status.out_of_memory is False  # the next in the slot is not blamed


@pytest.mark.parametrize("code", ["while True: pass", "10 ** (10 ** 9)", "list(iter(int, 1))"])
def test_processor_time_ends_for_good(daemon: Daemon, code: str) -> None:
    sandbox = daemon.spawn()
    sandbox.wait_ready()
    daemon.send(LIMITS, sandbox.id, Limits(cpu_seconds=1).encode())
    daemon.wait_for(LIMITS_SET, sandbox.id)
    sandbox.start(code)
    out = sandbox.finish()
    sandbox.close()
    assert out.status
    if out.kind is None:
        assert out.status.code == -signal.SIGKILL
        assert 0.8e6 <= out.status.cpu_user_usec + out.status.cpu_system_usec <= 3e6
    else:
        assert out.kind == FINISH_MEMORY


def test_a_script_that_ignores_signals_is_killed(daemon: Daemon) -> None:
    sandbox = daemon.spawn()
    sandbox.wait_ready()
    sandbox.start(
        "import signal\n"
        "for s in (2, 15, 24): signal.signal(s, signal.SIG_IGN)\n"
        "print('on')\nwhile True:\n"
        "    try:\n        while True: pass\n"
        "    except BaseException: pass"
    )
    sandbox.read_until(b"on\n")
    sandbox.control(2)
    sandbox.kill()
    assert sandbox.wait_exit().code == -signal.SIGKILL
    sandbox.close()


@pytest.mark.parametrize(("processes", "threads"), [(1, 0), (2, 1), (5, 4)])
def test_threads_are_counted(daemon: Daemon, processes: int, threads: int) -> None:
    out = daemon.run(
        "import threading\n"
        "stop = threading.Event()\n"
        "made = []\n"
        "try:\n"
        "    for i in range(20):\n"
        "        t = threading.Thread(target=stop.wait); t.start(); made.append(t)\n"
        "except RuntimeError: pass\n"
        "print(len(made)); stop.set()",
        Limits(processes=processes),
    )
    assert out.stdout == b"%d\n" % threads
    assert out.kind == FINISH_OK


def test_open_files(daemon: Daemon) -> None:
    out = daemon.run(
        "import os\nx = []\n"
        "try:\n    while True: x.append(open('/dev/null'))\n"
        "except OSError as error: print(len(x) <= 16, error.errno)",
        Limits(open_files=8),
    )
    assert out.stdout == b"True 24\n"


@pytest.mark.parametrize("before", [16, 1024])
def test_limits_of_the_job_replace_those_of_the_spare(daemon: Daemon, before: int) -> None:
    """Lower or higher; also where the daemon may not raise a hard limit (CAP_SYS_RESOURCE)."""
    sandbox = daemon.spawn(Limits(memory_bytes=(32 + before) * MIB, cpu_seconds=before))
    sandbox.wait_ready()
    job = Limits(memory_bytes=96 * MIB, cpu_seconds=70, processes=3, open_files=900)
    daemon.send(LIMITS, sandbox.id, job.encode())
    daemon.wait_for(LIMITS_SET, sandbox.id)
    limits = Path(f"/proc/{sandbox.pid}/limits").read_text()
    for name, number in (("data size", 96 * MIB), ("cpu time", 70), ("open files", 908)):
        assert re.search(rf"Max {name} +{number} +{number} ", limits), limits
    sandbox.start("x = bytearray(80 << 20); x = None; x = bytearray(100 << 20)")
    assert sandbox.finish().kind == FINISH_MEMORY
    sandbox.close()


@pytest.mark.parametrize(
    "limits",
    [
        Limits(memory_bytes=1),
        Limits(cpu_seconds=0),
        Limits(processes=0),
        Limits(open_files=1 << 20),
    ],
)
def test_limits_out_of_reason_are_refused(daemon: Daemon, limits: Limits) -> None:
    with pytest.raises(PermissionError, match="limits out of range"):
        daemon.spawn(limits)


def test_the_host_kills_a_sandbox_before_the_daemon(daemon: Daemon) -> None:
    sandbox = daemon.spawn()
    sandbox.wait_ready()
    own = int(Path(f"/proc/{daemon.process.pid}/oom_score_adj").read_text())
    score = int(Path(f"/proc/{sandbox.pid}/oom_score_adj").read_text())
    sandbox.kill()
    sandbox.wait_exit()
    sandbox.close()
    assert score >= min(own + 500, 1000) > own


def test_usage_is_reported(daemon: Daemon) -> None:
    out = daemon.run(
        "x = bytearray(50 << 20); x[::4096] = b'x' * len(x[::4096]); sum(range(10**6))"
    )
    assert out.status
    assert out.status.cpu_user_usec + out.status.cpu_system_usec > 1000
    assert 50 * MIB < out.status.peak_bytes < 70 * MIB
