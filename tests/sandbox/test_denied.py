# SPDX-License-Identifier: GPL-2.0-or-later
"""What a hostile script tries, from inside a sandbox at level full.  Everything here must fail as an
exception of the script, with arguments that do no harm should it succeed.

System calls Python has no function for are tried by sandbox/test_syscalls.c.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from denied import DENIED
from proxy import FINISH_OK, Daemon, Limits

from tests.processes import memory_of


@pytest.mark.parametrize("what", DENIED)
def test_denied(daemon: Daemon, what: str) -> None:
    out = daemon.run(
        "import os\n"
        "try:\n"
        f"    {DENIED[what]}\n"
        "except (OSError, ImportError, RuntimeError) as error:\n"
        "    print('denied', type(error).__name__, error)\n"
        "else:\n"
        "    print('got through')\n"
    )
    assert out.kind == FINISH_OK, out.stderr.decode()
    assert out.stdout.startswith(b"denied"), out.stdout


def test_open_descriptors_are_the_four(daemon: Daemon) -> None:
    out = daemon.run(
        "import os\n"
        "def is_open(fd):\n"
        "    try: return os.fstat(fd) is not None\n"
        "    except OSError: return False\n"
        "print([fd for fd in range(4096) if is_open(fd)])"
    )
    assert out.stdout == b"[0, 1, 2, 4]\n"


def test_who_a_sandbox_is(daemon: Daemon) -> None:
    out = daemon.run(
        "import os; print(os.getpid(), os.getppid(), os.getuid() == os.geteuid() > 0, os.getgroups(),"
        " os.getcwd(), os.uname().nodename == os.uname().nodename, dict(os.environ).get('PATH'))"
    )
    assert re.fullmatch(rb"1 0 True \[\] /scratch/[0-9]+ True /nonexistent\n", out.stdout)


def test_each_slot_has_a_user_of_its_own(daemon: Daemon) -> None:
    sandboxes = [daemon.spawn() for _ in range(3)]
    users = set()
    for sandbox in sandboxes:
        sandbox.wait_ready()
        status = Path(f"/proc/{sandbox.pid}/status").read_text()
        users.add(next(line for line in status.splitlines() if line.startswith("Uid:")).split()[1])
        assert "NoNewPrivs:\t1" in status
        assert "Seccomp:\t2" in status
        assert "Threads:\t1" in status
        assert "CapEff:\t0000000000000000" in status
        assert "CapPrm:\t0000000000000000" in status
    assert len(users) == 3
    assert all(2130706432 < int(user) <= 2130706432 + 320 for user in users)
    for sandbox in sandboxes:
        sandbox.kill()
        sandbox.wait_exit()
        sandbox.close()


def test_no_memory_is_both_written_and_executed(daemon: Daemon) -> None:
    sandbox = daemon.spawn()
    sandbox.wait_ready()
    modes = [line.split()[1] for line in Path(f"/proc/{sandbox.pid}/maps").read_text().splitlines()]
    assert any("x" in mode for mode in modes)
    assert not [mode for mode in modes if "w" in mode and "x" in mode]
    sandbox.kill()
    sandbox.wait_exit()
    sandbox.close()


def test_nothing_of_the_job_before(daemon: Daemon) -> None:
    """The same slot, one job after the other: what the first planted, the second does not find."""
    first = (
        "import builtins, sys, os, random, signal, json, osd\n"
        "builtins.planted = sys.planted = 'secret-0xfeed'; sys.path.append('/secret-0xfeed')\n"
        "json.dumps = None; os.environ['PLANTED'] = 'secret-0xfeed'; osd.planted = 1\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN); sys.modules['planted'] = sys\n"
        "sys.setrecursionlimit(100)\n"
    )
    second = (
        "import builtins, sys, os, signal, json, osd, gc\n"
        "assert not hasattr(builtins, 'planted') and not hasattr(sys, 'planted')\n"
        "assert '/secret-0xfeed' not in sys.path and 'PLANTED' not in os.environ\n"
        "assert json.dumps and not hasattr(osd, 'planted') and 'planted' not in sys.modules\n"
        "assert sys.getrecursionlimit() == 1000\n"
        "print(signal.getsignal(signal.SIGINT))"
    )
    assert daemon.run(first).kind == FINISH_OK
    out = daemon.run(second)
    assert out.kind == FINISH_OK, out.stderr.decode()


def test_a_secret_is_nowhere_in_the_next_one_s_memory(daemon: Daemon) -> None:
    secret = b"a secret of job A: 5d1f77"
    daemon.run(b"import osd; x = [b'" + secret + b"' * i for i in range(99)]; osd.log(x[3])")
    sandbox = daemon.spawn()
    sandbox.wait_ready()
    found = [line for line, content in memory_of(sandbox.pid) if secret in content]
    sandbox.kill()
    sandbox.wait_exit()
    sandbox.close()
    assert not found


def test_random_numbers_differ(daemon: Daemon) -> None:
    code = "import random, uuid, os; print(random.random(), uuid.uuid4(), os.urandom(4))"
    outputs = {daemon.run(code, Limits()).stdout for _ in range(3)}
    assert len(outputs) == 3
