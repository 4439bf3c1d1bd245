# SPDX-License-Identifier: GPL-2.0-or-later
"""The isolation levels of iosd-sandboxd: each runs jobs, and keeps few privileges."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from proxy import (
    CONTROL_END,
    FINISH_ENDED,
    FINISH_OK,
    LIMITS,
    LIMITS_SET,
    NUDGE,
    ROOT,
    SANDBOXD,
    Daemon,
    Limits,
    control_groups,
    gone,
)

from tests.processes import descendants, zygotes_of
from tests.waiting import until

LEVELS = ("full", "no-cgroup", "no-userns", "minimal")


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_runs_jobs(own, level: str) -> None:
    daemon = own("--isolation", level)
    assert daemon.level == level
    out = daemon.run("import osd, os; print(osd.zone, os.getuid() != 0 and os.getgid() != 0)")
    assert out.kind == FINISH_OK, out.stderr
    assert out.stdout == b"osd.root() True\n"
    pids = descendants(daemon.process.pid)
    assert pids
    assert daemon.stop() == 0
    assert gone(pids)


DAC_OVERRIDE, DAC_READ_SEARCH, KILL, SETGID, SETUID = 1, 2, 5, 6, 7
SYS_ADMIN, SYS_RESOURCE = 21, 24
OF_THE_DAEMON = {DAC_READ_SEARCH, SETGID, SETUID, SYS_RESOURCE}
# more of the daemon; of the zygote, at full and no-cgroup in its own user namespace
OF_LEVELS = {
    "full": (set(), {SETGID, SETUID, SYS_ADMIN}),
    "no-cgroup": (set(), {SETGID, SETUID, SYS_ADMIN}),
    "no-userns": ({KILL, SYS_ADMIN}, {SETGID, SETUID, SYS_ADMIN}),
    "minimal": ({KILL}, {SETGID, SETUID, KILL}),
}


def privileges(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def capabilities(pid: int, which: str) -> set[int]:
    bits = int(privileges(pid)[which], 16)
    return {number for number in range(64) if bits >> number & 1}


def confined(daemon: Daemon, name: str) -> list[int]:
    """Processes of the daemon that have this name, and their filter, which is the last thing they take."""
    found = []
    for pid in descendants(daemon.process.pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            status = privileges(pid)
            if (status["Name"], status["Seccomp"]) == (name, "2"):
                found.append(pid)
    return found


def own_capabilities() -> set[int]:
    return capabilities(os.getpid(), "CapEff")


@pytest.mark.parametrize("level", LEVELS)
def test_what_daemon_janitor_and_zygote_keep_of_root(own, level: str) -> None:
    daemon = own("--isolation", level, "--uid", "65533")
    more, of_zygote = OF_LEVELS[level]
    (zygote,) = zygotes_of(daemon.process.pid)
    # It is started before the zygote, and may give its own up later.
    until(lambda: len(confined(daemon, "iosd-janitor")) == (level == "full"))
    others = descendants(daemon.process.pid) - {zygote}
    of_daemon = (OF_THE_DAEMON | more) & own_capabilities()
    for which in ("CapEff", "CapPrm", "CapBnd"):
        # where only CAP_SYS_ADMIN makes user namespaces, the daemon keeps it
        assert capabilities(daemon.process.pid, which) - {SYS_ADMIN} == of_daemon - {SYS_ADMIN}
        if which != "CapBnd":
            assert capabilities(zygote, which) == of_zygote, which
    # only in a user namespace of its own it may lower this one, too
    assert capabilities(zygote, "CapBnd") <= of_zygote | of_daemon
    for which in ("CapInh", "CapAmb"):
        assert not capabilities(daemon.process.pid, which) | capabilities(zygote, which)
    janitors = [pid for pid in others if privileges(pid)["Name"] == "iosd-janitor"]
    assert len(janitors) == (level == "full")
    for pid in janitors:
        for which in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb"):
            # the root of a v1 hierarchy may be writable for nobody
            assert capabilities(pid, which) <= {DAC_OVERRIDE}
    for pid in (daemon.process.pid, zygote, *janitors):
        assert privileges(pid)["Seccomp"] == "2"
        assert privileges(pid)["NoNewPrivs"] == "1"
    # limits can still be set (of another user only with CAP_SYS_RESOURCE), and a sandbox killed
    sandbox = daemon.spawn(Limits(memory_bytes=64 << 20))
    sandbox.wait_ready()
    if level in ("full", "no-cgroup") or SYS_RESOURCE in own_capabilities():
        daemon.send(LIMITS, sandbox.id, Limits(memory_bytes=512 << 20, open_files=900).encode())
        daemon.wait_for(LIMITS_SET, sandbox.id)
    sandbox.kill()
    assert sandbox.wait_exit().code == -signal.SIGKILL
    sandbox.close()
    assert daemon.stop() == 0
    assert gone([zygote, *janitors])
    assert not control_groups(daemon.process.pid)


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_ends_who_reads_for_ever(own, level: str) -> None:
    daemon = own("--isolation", level)
    daemon.send(NUDGE, 99)  # no such sandbox: it may have ended in between
    sandbox = daemon.spawn()
    sandbox.wait_ready()
    sandbox.start("import os\nprint('on')\nos.read(4, 1)")
    sandbox.read_until(b"on\n")
    sandbox.control(CONTROL_END)
    assert sandbox.finish().kind == FINISH_ENDED
    sandbox.close()


@pytest.mark.parametrize("level", LEVELS[1:])
def test_a_lower_level_still_denies(own, level: str) -> None:
    daemon = own("--isolation", level)
    for code in (
        "os.fork()",
        "open('/etc/passwd')",
        "__import__('socket').socket()",
        "os.kill(1, 0)",
        "__import__('mmap').mmap(os.open('/dev/zero', os.O_RDWR), 1 << 20)",
        "__import__('mmap').mmap(os.open('/dev/zero', os.O_RDONLY), 1 << 20)",
        "__import__('mmap').mmap(-1, 1 << 20, 0x122)  # private, anonymous, growing down",
    ):
        out = daemon.run(f"import os\ntry: {code}\nexcept OSError: print('denied')")
        assert out.stdout == b"denied\n", code


IN_A_BARE_CHROOT = """
cd "$1" && mkdir usr etc dev proc sys && ln -s usr/lib usr/lib64 usr/bin . || exit
for each in usr etc dev proc sys; do mount --rbind "/$each" "$each" || exit; done
mkdir -p "./$2" && mount --bind "$2" "./$2" && exec chroot . "$2/iosd-sandboxd" --print-level
"""


def test_a_root_that_is_no_mount_gives_no_mount_namespace(tmp_path: Path) -> None:
    script = ["unshare", "-m", "sh", "-c", IN_A_BARE_CHROOT, "sh", tmp_path, SANDBOXD.parent]
    done = subprocess.run(script, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["level"] == "minimal"
    assert "mountns: Invalid argument" in found["missing"]


def test_level_is_printed_for_people_and_programs() -> None:
    done = subprocess.run([SANDBOXD, "--print-level"], capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    assert answer["level"] == "full"
    assert answer["missing"] == []
    header = (ROOT / "sandbox" / "layers.h").read_text()
    assert [row["name"] for row in answer["layers"]] == re.findall(r'X\(\w+,\s+"(\w+)"', header)


def test_a_level_out_of_reach_is_refused_with_what_is_missing(tmp_path: Path) -> None:
    """As an ordinary user: no namespaces with users of their own, no control groups."""
    command = [SANDBOXD, "--socket", tmp_path / "s", "--python-dir", ROOT / "pyosd"]
    done = subprocess.run(
        ["setpriv", "--reuid", "65534", "--clear-groups", *command],
        capture_output=True,
        text=True,
        check=False,
    )
    if "cannot open" in done.stderr or "execute" in done.stderr:
        pytest.skip("the tree lies where others may not look")
    assert done.returncode == 1
    assert "isolation level full is not available here" in done.stderr
    assert "uid (" in done.stderr


def test_unknown_level_and_bad_options(tmp_path: Path) -> None:
    base = [SANDBOXD, "--socket", tmp_path / "s", "--python-dir", ROOT / "pyosd"]
    for options, code in ((["--isolation", "most"], 1), (["--max", "0"], 2), (["--max", "x"], 2)):
        done = subprocess.run([*base, *options], capture_output=True, check=False)
        assert done.returncode == code
    assert subprocess.run([SANDBOXD], capture_output=True, check=False).returncode == 2
