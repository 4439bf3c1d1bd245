# SPDX-License-Identifier: GPL-2.0-or-later
"""Every way a script can end, each with its exact state and reason number (design D14, issue)."""

from __future__ import annotations

from pathlib import Path

import pytest

import pyosd
from pyosd.job_status import JobFlag, JobState
from pyosd.types import ObjectRef
from tests.exec.conftest import WAIT_S, Run, ended
from tests.processes import descendants
from tests.serving import Serving

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

QUICK = pyosd.Limits(wall=2.0)

FAILED, OK, LIMIT = JobState.FAILED, JobState.COMPLETED, JobState.LIMIT_EXCEEDED

EXITS = {
    "returns": ("pass", OK, 0, 0),
    "exits 0": ("import sys; sys.exit(0)", OK, 0, 0),
    "exits without a code": ("raise SystemExit", OK, 0, 0),
    "exits 1": ("import sys; sys.exit(1)", FAILED, 202, 1),
    "exits 255": ("import sys; sys.exit(255)", FAILED, 202, 255),
    "exits with words": ("raise SystemExit('bad input')", FAILED, 202, 1),
    "raises": ("1 / 0", FAILED, 201, 1),
    "raises KeyboardInterrupt": ("raise KeyboardInterrupt", FAILED, 201, 1),
    "is no Python": ("this is not Python", FAILED, 201, 1),
    "has no encoding": ("\x00", FAILED, 201, 1),
    "prints a lone surrogate": ("print('\\ud800')", FAILED, 201, 1),
    "recurses": ("def f(): f()\nf()", FAILED, 201, 1),
    "closes its output": ("import sys; sys.stdout.close()", OK, 0, 0),
    "prints bytes that are no text": (
        "import sys; sys.stdout.buffer.write(bytes(range(256)))",
        OK,
        0,
        0,
    ),
}


@pytest.mark.parametrize("name", EXITS)
def test_exit(run: Run, name: str) -> None:
    script, state, reason, exit_code = EXITS[name]
    status = ended(run(script, limits=QUICK), state, reason)
    assert status.exit_code == exit_code


def test_output_is_byte_for_byte(run: Run, target: pyosd.Target) -> None:
    status = run("import sys; sys.stdout.buffer.write(bytes(range(256)) * 1000)")
    assert target.read_range(status.id) == bytes(range(256)) * 1000
    assert status.stdout_length == 256_000


def test_words_of_the_exit_are_on_stderr(run: Run, target: pyosd.Target) -> None:
    status = run("raise SystemExit('bad input')")
    assert b"bad input" in target.job(status.id).stderr()


def test_leaves_without_a_word(run: Run) -> None:
    """os._exit cannot be told from a crash but by its code."""
    status = run("import os; os._exit(0)")
    assert status.state is FAILED
    assert status.reason in (202, 203, 204)


@pytest.mark.parametrize("number", [6, 9, 11, 15])
def test_dies_by_a_signal(run: Run, number: int) -> None:
    status = run(f"import os; os.kill(os.getpid(), {number})\nwhile True: pass", limits=QUICK)
    assert status.done
    assert status.state in (FAILED, JobState.SANDBOX_LOST, JobState.TIMEOUT)
    if status.reason == 203:
        assert status.signal == number


def test_crashes_in_native_code(run: Run) -> None:
    """Deep recursion in C runs over the stack."""
    status = run(
        """
        import sys
        sys.setrecursionlimit(1 << 30)
        class A:
            def __getattr__(self, name): return getattr(self, name)
        A().x
        """,
        limits=pyosd.Limits(wall=10.0),
    )
    assert status.state in (FAILED, JobState.OUT_OF_MEMORY)
    if status.reason == 203:
        assert status.signal in (6, 11)
    else:
        assert status.reason in (201, 303)


def test_never_ends(run: Run) -> None:
    status = run("while True: pass", limits=pyosd.Limits(wall=0.3))
    ended(status, JobState.TIMEOUT, 301)
    assert 0.3 <= status.run_time < 3


def test_waits_for_ever(run: Run) -> None:
    status = run("import time; time.sleep(1000)", limits=pyosd.Limits(wall=0.3))
    ended(status, JobState.TIMEOUT, 301)


def test_ignores_being_asked_to_end(run: Run) -> None:
    status = run(
        """
        while True:
            try:
                while True: pass
            except BaseException:
                pass
        """,
        limits=pyosd.Limits(wall=0.3),
    )
    ended(status, JobState.TIMEOUT, 301)


def test_loop_in_native_code(run: Run) -> None:
    """No bytecode runs, so nothing in the interpreter notices."""
    status = run("10 ** (10 ** 9)", limits=pyosd.Limits(wall=0.3))
    ended(status, JobState.TIMEOUT, 301)


def test_uses_up_its_processor_time(run: Run) -> None:
    status = run("while True: pass", limits=pyosd.Limits(wall=20.0, cpu=0.3))
    ended(status, LIMIT, 302)


@pytest.mark.parametrize(
    "script",
    [
        "x = bytearray(1 << 40)",
        "x = bytearray(b'x') * (1 << 30)",
        "x = []\nwhile True: x.append(bytes(1 << 20))",
        "x = 'x'\nwhile True: x += x",
    ],
    ids=["one that no host has", "one too large", "many", "doubling"],
)
def test_eats_memory(run: Run, script: str) -> None:
    """Out of memory: the limit says so, or Python does first by MemoryError."""
    status = run(script, limits=pyosd.Limits(wall=20.0, mem="64MiB"))
    assert (status.state, status.reason) in (
        (JobState.OUT_OF_MEMORY, 303),
        (FAILED, 201),
    ), status


@pytest.mark.parametrize(
    "script",
    [
        "import os\nwhile True: os.fork()",
        "import os\nos.fork()",
        "import threading\nwhile True: threading.Thread(target=threading.Event().wait).start()",
        "import subprocess\nsubprocess.run(['/bin/true'])",
    ],
    ids=["forks without end", "forks once", "threads without end", "runs a program"],
)
def test_makes_processes(run: Run, target: pyosd.Target, script: str) -> None:
    """Refused: an exception in the script, or the limit."""
    status = run(script, limits=pyosd.Limits(wall=5.0))
    assert (status.state, status.reason) in ((FAILED, 201), (LIMIT, 305)), status


def test_prints_without_end(run: Run, target: pyosd.Target) -> None:
    status = run("while True: print('x' * 1000)", limits=pyosd.Limits(wall=20.0, output="1MiB"))
    ended(status, LIMIT, 304)
    assert status.flags & JobFlag.STDOUT_CUT
    length = target.length(status.id)
    assert 0 < length <= 1 << 20
    assert status.stdout_length == length


def test_prints_errors_without_end(run: Run, target: pyosd.Target) -> None:
    """stderr keeps its first 20 and last 40 KiB, and ends nothing."""
    status = run(
        """
        import sys
        for n in range(20_000):
            sys.stderr.write(f"line {n:6}\\n")
        """
    )
    ended(status, OK, 0)
    assert status.flags & JobFlag.STDERR_CUT
    assert status.stderr_length == 20_000 * 12
    kept = target.job(status.id).stderr()
    assert kept.startswith(b"line      0\n")
    assert kept.endswith(b"line  19999\n")
    assert len(kept) <= 61 << 10


def test_result_over_its_limit(run: Run) -> None:
    status = run("import osd; osd.result(b'x' * (2 << 20))")
    ended(status, OK, 0)
    assert status.result_length == 2 << 20


HOST = {
    "socket": "import socket; socket.socket()",
    "unix socket": "import socket; socket.socket(socket.AF_UNIX).connect('\\0x')",
    "connect": "import socket; socket.create_connection(('127.0.0.1', 22), 1)",
    "passwd": "open('/etc/passwd').read()",
    "own memory": "open('/proc/self/mem', 'rb').read(1)",
    "init": "open('/proc/1/environ', 'rb').read()",
    "write": "open('/tmp/planted', 'w').write('x')",
    "home": "import os; os.listdir('/root')",
    "devices": "open('/dev/mem', 'rb')",
    "parent": "import os; os.kill(os.getppid(), 9)",
    "everybody": "import os; os.kill(-1, 9)",
    "become root": "import os; os.setuid(0)",
    "chroot": "import os; os.chroot('/')",
    "native code": "import ctypes; ctypes.CDLL(None).ptrace(0, 0, 0, 0)",
}


@pytest.mark.parametrize("name", HOST)
def test_reaches_for_the_host(run: Run, serving: Serving, target: pyosd.Target, name: str) -> None:
    """Each is an error in the script (or its death), never a success; the target serves on."""
    before = dict(serving.pids)
    status = run(HOST[name], limits=pyosd.Limits(wall=5.0))
    assert status.state is not OK, f"it could: {status}"
    assert status.state in (FAILED, LIMIT, JobState.SANDBOX_LOST), status
    target.ping()
    assert serving.pids == before


def test_the_next_job_knows_nothing_of_the_last(run: Run, target: pyosd.Target) -> None:
    """Every job gets a pristine interpreter."""
    run(
        """
        import builtins, sys, os
        builtins.planted = "secret of A"
        sys.modules["planted"] = sys
        os.environ["PLANTED"] = "secret of A"
        len = None
        """
    )
    status = run(
        """
        import builtins, sys, os
        print(hasattr(builtins, "planted"), "planted" in sys.modules, "PLANTED" in os.environ)
        """
    )
    assert target.read_range(status.id) == b"False False False\n"


def test_random_numbers_differ_between_jobs(run: Run, target: pyosd.Target) -> None:
    """Sandboxes are forked from one zygote, but its random state is not theirs."""
    script = "import random, os; print(random.random(), os.urandom(8).hex(), hash('x'))"
    seen = {bytes(target.read_range(run(script).id)) for _ in range(4)}
    assert len(seen) == 4


def test_a_kill_leaves_no_process(serving: Serving, target: pyosd.Target, zone: ObjectRef) -> None:
    """Sandboxes of killed jobs go away; spares take their place, no more of them than before."""
    target.exec("pass", zone=zone).wait(WAIT_S)
    before = len(serving.everything())
    for _ in range(5):
        job = target.exec("print('up', flush=True)\nwhile True: pass", zone=zone)
        next(job.iter_output(follow=True))
        job.kill(WAIT_S)
    target.exec("pass", zone=zone).wait(WAIT_S)
    assert len(serving.everything()) <= before + 2


def test_kernel_would_end_a_sandbox_first(
    serving: Serving, target: pyosd.Target, zone: ObjectRef
) -> None:
    """Short of memory the kernel chooses by oom_score_adj: any sandbox before any daemon."""
    job = target.exec("print('up', flush=True)\nwhile True: pass", zone=zone)
    next(job.iter_output(follow=True))
    daemons = {pid: oom_score_adj(pid) for pid in serving.pids.values()}
    sandboxes = descendants(serving.pids["iosd-sandboxd"])
    computing = [pid for pid in sandboxes if oom_score_adj(pid) > max(daemons.values())]
    assert len(computing) >= 1, daemons
    job.kill(WAIT_S)


def oom_score_adj(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/oom_score_adj").read_text())
    except OSError:
        return -1000
