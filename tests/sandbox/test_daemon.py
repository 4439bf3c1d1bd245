# SPDX-License-Identifier: GPL-2.0-or-later
"""iosd-sandboxd itself: its protocol, its levels, and that no death leaves anything behind."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import socket
import stat
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
from proxy import (
    BOUND,
    CONTROL_END,
    CPU_GOT,
    EXITED,
    FAILING,
    FINISH_ENDED,
    FINISH_OK,
    HEADER,
    HELLO,
    JOB,
    LIMITS,
    LIMITS_SET,
    NUDGE,
    REFUSED,
    ROOT,
    SANDBOXD,
    SERVING,
    SPAWN,
    WELCOME,
    Daemon,
    Limits,
    PoolNews,
    control_groups,
    gone,
)
from proxy import KILL as KILL_SANDBOX

PATIENCE_S = 60.0
LEVELS = ("full", "no-cgroup", "no-userns", "minimal")


def children(pid: int) -> list[int]:
    found = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        found += [int(child), *children(int(child))]
    return found


def zygotes(daemon: Daemon) -> list[int]:
    found = (
        Path(f"/proc/{daemon.process.pid}/task/{daemon.process.pid}/children").read_text().split()
    )
    return [
        int(pid)
        for pid in found
        if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"iosd-zygote\0")
    ]


@pytest.fixture
def own():
    """A daemon of this test's own, in a folder that every user can search; cleaned up whatever happens."""
    folder = Path(tempfile.mkdtemp(prefix="iosd-test-"))
    folder.chmod(0o755)
    made = []

    def start(*options: str, **how: object) -> Daemon:
        made.append(Daemon(folder, *options, **how))  # type: ignore[arg-type]
        return made[-1]

    yield start
    for daemon in made:
        if daemon.socket:
            daemon.socket.close()
        if daemon.process.poll() is None:
            daemon.process.terminate()
        daemon.wait()
    shutil.rmtree(folder)


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_runs_jobs(own, level: str) -> None:
    daemon = own("--isolation", level)
    assert daemon.level == level
    out = daemon.run("import osd, os; print(osd.zone, os.getuid() != 0 and os.getgid() != 0)")
    assert out.kind == FINISH_OK, out.stderr
    assert out.stdout == b"osd.root() True\n"
    pids = children(daemon.process.pid)
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


def own_capabilities() -> set[int]:
    return capabilities(os.getpid(), "CapEff")


@pytest.mark.parametrize("level", LEVELS)
def test_what_daemon_janitor_and_zygote_keep_of_root(own, level: str) -> None:
    daemon = own("--isolation", level, "--uid", "65533")
    more, of_zygote = OF_LEVELS[level]
    (zygote,) = zygotes(daemon)
    others = set(children(daemon.process.pid)) - {zygote}
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


def test_no_more_sandboxes_than_asked_for(own) -> None:
    daemon = own("--max", "3", most=2)
    first, second = daemon.spawn(), daemon.spawn()
    with pytest.raises(PermissionError, match="as many sandboxes are alive"):
        daemon.spawn()
    first.kill()
    first.wait_exit()
    third = daemon.spawn()
    third.wait_ready()
    for sandbox in (first, second, third):
        sandbox.close()


def test_more_than_were_asked_for_at_first(own) -> None:
    """A target whose pools grow says HELLO again; sandboxes that are there go on."""
    daemon = own("--max", "3", most=1)
    first = daemon.spawn()
    daemon.send(HELLO, 0, struct.pack(">I", 4))
    assert b"keeps 1 to 3" in daemon.wait_for(REFUSED, 0)[0]
    daemon.send(HELLO, 0, struct.pack(">I", 3))
    daemon.wait_for(WELCOME, 0)
    more = [daemon.spawn(), daemon.spawn()]
    for sandbox in (first, *more):
        sandbox.wait_ready()
        sandbox.close()


def test_hello_beyond_the_daemon_s_own_number(own) -> None:
    daemon = own("--max", "2", most=2)
    daemon.socket.close()
    with pytest.raises(PermissionError, match="keeps 1 to 2"):
        daemon.connect(3)


def test_the_same_id_twice(own) -> None:
    daemon = own()
    sandbox = daemon.spawn()
    daemon.send(SPAWN, sandbox.id, Limits().encode())
    assert b"of this id" in daemon.wait_for(REFUSED, sandbox.id)[0]
    sandbox.close()


def test_a_target_of_another_version_is_told(own) -> None:
    daemon = own()
    daemon.socket.send(HEADER.pack(2, HELLO, 4, 0) + struct.pack(">I", 4))
    text = b"the target speaks version 2, iosd-sandboxd 1: install both of one release"
    with pytest.raises(PermissionError, match=text.decode()):
        daemon.wait_for(WELCOME, 0)
    with pytest.raises(EOFError):
        daemon.receive()
    daemon.socket.close()
    daemon.connect(4)  # who speaks its version is served
    assert daemon.run("pass").kind == FINISH_OK


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\0" * 3,
        HEADER.pack(2, HELLO, 0, 0),
        HEADER.pack(1, 99, 0, 0),
        HEADER.pack(1, EXITED, 0, 0),
        HEADER.pack(1, SPAWN, 5, 1) + b"abc",
        HEADER.pack(1, SPAWN, 1 << 31, 1),
        HEADER.pack(1, CPU_GOT, 3, 0) + bytes(3),
        HEADER.pack(1, CPU_GOT, 5, 0) + bytes(5),
        HEADER.pack(1, JOB, 15, 1) + bytes(15),
        HEADER.pack(1, JOB, 17, 1) + bytes(17),
    ],
)
def test_nonsense_ends_the_connection_and_its_sandboxes(own, message: bytes) -> None:
    daemon = own()
    sandbox = daemon.spawn()
    sandbox.wait_ready()
    pid = sandbox.pid
    if message:
        daemon.socket.send(message)
    else:
        daemon.socket.shutdown(socket.SHUT_WR)
    assert gone([pid])
    daemon.socket.close()
    daemon.connect(1)  # and it serves the next
    assert daemon.run("print(1)").stdout == b"1\n"
    sandbox.close()


def test_a_target_that_dies_sends_no_nonsense(own) -> None:
    """A connection that ends with answers unread is reset: that is no message."""
    daemon = own(stderr=subprocess.PIPE)
    sandbox = daemon.spawn()
    daemon.send(KILL_SANDBOX, sandbox.id)
    assert select.select([daemon.socket], [], [], PATIENCE_S)[0]
    daemon.socket.close()
    daemon.connect(1)
    daemon.socket.close()
    daemon.process.terminate()
    said = daemon.process.stderr.read()
    sandbox.close()
    assert "something else than a request" not in said
    assert "the connection to the target is lost: Connection reset by peer" in said


def test_lines_name_the_job_that_the_target_names(own) -> None:
    daemon = own(stderr=subprocess.PIPE)
    daemon.send(JOB, 99, bytes(16))  # no such sandbox: it may have ended in between
    sandbox = daemon.spawn()
    sandbox.wait_ready()
    daemon.send(JOB, sandbox.id, (0x10000).to_bytes(8, "big") + (0x10007).to_bytes(8, "big"))
    daemon.send(KILL_SANDBOX, sandbox.id)
    sandbox.wait_exit()
    daemon.socket.close()
    daemon.process.terminate()
    about = f"job=0x10000/0x10007 pool=default sandbox={sandbox.id} "
    said = [line.partition(about)[2] for line in daemon.process.stderr if about in line]
    sandbox.close()
    assert said == [
        f"works for the job, host pid {sandbox.pid}\n",
        f"sandbox exit: signal 9, host pid {sandbox.pid}\n",
    ]


def weights(daemon: Daemon) -> tuple[list[str], list[int]]:
    """cpu.idle and the weight of the daemon's group."""
    groups = [Path(group) for group in control_groups(daemon.process.pid)]
    idle = [file.read_text().strip() for group in groups for file in group.glob("cpu.idle")]
    files = [file for group in groups for file in (group / "cpu.shares", group / "cpu.weight")]
    return idle, [int(file.read_text()) for file in files if file.exists()]


def wait_until(true) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def answered(daemon: Daemon) -> None:
    """It has acted on what was sent before.  Without a fork: a late one is a reason for a weight, too."""
    daemon.send(HELLO, 0, struct.pack(">I", 4))
    daemon.wait_for(WELCOME, 0)


def test_scripts_that_starve_get_a_weight_for_a_while(own) -> None:
    daemon = own("--cpu-share", "10")
    daemon.tells = False
    idle, (weight,) = weights(daemon)  # while the first zygote starts, and for 3 s
    if not idle:
        pytest.skip("this kernel knows no idle groups")
    assert idle == ["0"]
    wait_until(lambda: weights(daemon)[0] == ["1"])
    daemon.send(CPU_GOT, 0, struct.pack(">I", 450))  # a little, and more than their share
    answered(daemon)
    assert weights(daemon)[0] == ["1"]
    daemon.send(CPU_GOT, 0, struct.pack(">I", 99))
    wait_until(lambda: weights(daemon) == (["0"], [weight]))
    time.sleep(0.25)  # the weight has had its time to show an effect
    daemon.send(CPU_GOT, 0, struct.pack(">I", 99))
    wait_until(lambda: weights(daemon) == (["0"], [2 * weight]))
    daemon.send(CPU_GOT, 0, struct.pack(">I", 99))  # too soon for another raise
    answered(daemon)
    assert weights(daemon) == (["0"], [2 * weight])
    wait_until(lambda: weights(daemon)[0] == ["1"])


def test_no_share_at_all(own) -> None:
    daemon = own("--cpu-share", "0")
    daemon.tells = False
    daemon.send(CPU_GOT, 0, struct.pack(">I", 0))
    daemon.run("pass")
    assert weights(daemon)[0] in (["1"], [])


def test_spawn_before_hello(own) -> None:
    daemon = own()
    daemon.socket.close()
    raw = daemon.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    raw.settimeout(PATIENCE_S)
    raw.connect(str(daemon.path))
    daemon.send(SPAWN, 1, Limits().encode())
    assert raw.recv(100) == b""


STRANGER = 65534
TRY_TO_CONNECT = """
import socket, sys
for _ in range(int(sys.argv[2])):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(20)
    try:
        s.connect(sys.argv[1])
        print("closed" if s.recv(1) == b"" else "served")
    except PermissionError:
        print("denied")
"""


def connect_as(uid: int, path: Path, times: int = 1) -> list[str]:
    """What became of connections of this user: denied, closed or served."""
    change = ["setpriv", f"--reuid={uid}", "--clear-groups"]
    command = [*change, "/usr/bin/python3", "-c", TRY_TO_CONNECT, str(path), str(times)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
    return done.stdout.split()


@pytest.mark.parametrize("options", [(), ("--uid", "65533")])
def test_the_socket_is_for_the_target_s_user_alone(own, options: tuple[str, ...]) -> None:
    daemon = own(*options)
    status = daemon.path.stat()
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert status.st_uid == (int(options[1]) if options else os.geteuid())
    # They cannot even wait in the backlog, where the target would wait behind them.
    assert connect_as(STRANGER, daemon.path) == ["denied"]
    daemon.socket.close()
    daemon.connect(1)


def test_the_target_s_user_may_connect(own) -> None:
    daemon = own("--uid", "65533")
    daemon.socket.close()
    script = (
        "import socket, struct, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\n"
        "s.settimeout(20); s.connect(sys.argv[1]); s.send(bytes.fromhex(sys.argv[2]))\n"
        "print(struct.unpack('>H', s.recv(4096)[2:4])[0])"
    )
    hello = HEADER.pack(1, HELLO, 4, 0) + struct.pack(">I", 1)
    change = ["setpriv", "--reuid=65533", "--clear-groups"]
    done = subprocess.run(
        [*change, "/usr/bin/python3", "-c", script, str(daemon.path), hello.hex()],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert int(done.stdout) == WELCOME


def test_refused_peers_do_not_fill_the_log(own) -> None:
    """Somebody has opened the socket's mode to all; the credentials of each peer are checked."""
    daemon = own(stderr=subprocess.PIPE)
    daemon.socket.close()
    daemon.path.chmod(0o666)
    assert connect_as(STRANGER, daemon.path, 40) == ["closed"] * 40
    daemon.connect(1)
    daemon.socket.close()
    daemon.process.terminate()
    said = [line for line in daemon.process.stderr if "refused" in line]
    assert 1 <= len(said) <= 10  # five a minute, and the minute may change once
    assert f"refused a connection of uid {STRANGER}" in said[0]


def test_kill_before_it_has_started(own) -> None:
    daemon = own()
    daemon.send(SPAWN, 7, Limits().encode())
    daemon.send(KILL_SANDBOX, 7)
    status = struct.unpack(">i", daemon.wait_for(EXITED, 7)[0][:4])[0]
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
    _, fds = daemon.wait_for(18, 7)
    for fd in fds:
        os.close(fd)


def busy(daemon: Daemon) -> object:
    sandbox = daemon.spawn()
    sandbox.wait_ready()
    sandbox.start("print('on')\nwhile True: pass")
    sandbox.read_until(b"on\n")
    return sandbox


def test_target_s_death_ends_its_sandboxes(own) -> None:
    daemon = own()
    sandboxes = [busy(daemon), daemon.spawn()]
    daemon.socket.close()
    assert gone([sandbox.pid for sandbox in sandboxes])
    for sandbox in sandboxes:
        sandbox.close()
    daemon.connect(4)
    assert daemon.run("print(1)").stdout == b"1\n"


def test_zygote_s_death_ends_its_sandboxes_and_another_takes_over(own) -> None:
    daemon = own(stderr=subprocess.DEVNULL)
    sandboxes = [busy(daemon), busy(daemon)]
    (zygote,) = zygotes(daemon)
    os.kill(zygote, signal.SIGKILL)
    for sandbox in sandboxes:
        assert sandbox.wait_exit().code == -signal.SIGKILL
        assert gone([sandbox.pid])
        sandbox.close()
    assert daemon.run("print(1)").stdout == b"1\n"


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_daemon_s_death_leaves_nothing(own, how: signal.Signals) -> None:
    daemon = own()
    sandboxes = [busy(daemon), daemon.spawn()]
    pids = [daemon.process.pid, *children(daemon.process.pid)]
    daemon.process.send_signal(how)
    assert daemon.process.wait(PATIENCE_S) == (0 if how != signal.SIGKILL else -how)
    assert gone(pids)
    deadline = time.monotonic() + PATIENCE_S
    while control_groups(daemon.process.pid) and time.monotonic() < deadline:
        os.sched_yield()
    assert not control_groups(daemon.process.pid)
    for sandbox in sandboxes:
        sandbox.close()


def test_zygotes_take_turns(own) -> None:
    daemon = own("--rotate-after", "5")
    seen = set()
    for _ in range(500):
        if len(seen) >= 3:
            break
        sandbox = daemon.spawn()
        sandbox.wait_ready()
        seen |= set(zygotes(daemon))
        sandbox.start("pass")
        assert sandbox.finish().kind == FINISH_OK
        sandbox.close()
    assert len(seen) >= 3
    # the old ones leave when their last sandbox has
    assert len(zygotes(daemon)) <= 3


def test_memory_does_not_grow_with_jobs(own) -> None:
    daemon = own()

    def resident() -> int:
        pids = [daemon.process.pid, *children(daemon.process.pid)]
        return sum(
            int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1])
            for pid in pids
        )

    for _ in range(50):  # caches and malloc's arenas have found their size
        daemon.run("pass")
    before = resident()
    descriptors = len(list(Path(f"/proc/{daemon.process.pid}/fd").iterdir()))
    for _ in range(200):
        daemon.run("pass")
    assert resident() - before < 2048  # KiB, of three processes; a leaked fork would be more
    open_now = len(list(Path(f"/proc/{daemon.process.pid}/fd").iterdir()))
    assert open_now < descriptors + 5  # some come and go with the last job


def test_no_interpreter_is_ever_taken_down_and_up_again() -> None:
    """A new interpreter is a new process: the zygote never ends one to begin another."""
    done = subprocess.run(
        ["nm", "-D", "--undefined-only", SANDBOXD.with_name("iosd-zygote")],
        capture_output=True,
        text=True,
        check=True,
    )
    names = done.stdout.split()
    assert "Py_InitializeFromConfig" in names
    assert not {"Py_Finalize", "Py_FinalizeEx", "Py_NewInterpreter"} & set(names)


def quotas(daemon: Daemon) -> list[str]:
    """Of the groups of pools."""
    groups = [Path(group) for group in control_groups(daemon.process.pid)]
    names = ("cpu.cfs_quota_us", "cpu.max")
    files = [file for group in groups for name in names for file in group.glob(f"pool-*/{name}")]
    return [file.read_text().split()[0] for file in files]


def bound(daemon: Daemon, percent: int) -> PoolNews:
    daemon.pending.clear()
    daemon.send(BOUND, 0, struct.pack(">I", percent) + b"default")
    return daemon.wait_for_pool("default", SERVING, FAILING)


def test_a_pool_s_share_of_the_processors(own) -> None:
    """A group of its own bounds its sandboxes, and is removed with the daemon."""
    daemon = own()
    processors = os.sysconf("SC_NPROCESSORS_ONLN")
    daemon.run("pass")
    assert quotas(daemon) == []
    assert bound(daemon, 100).state == SERVING
    assert quotas(daemon) == []  # it needs none
    news = bound(daemon, 50)
    if news.state == FAILING:
        pytest.skip(news.why)
    assert quotas(daemon) == [str(100_000 * processors * 50 // 100)]
    sandbox = daemon.spawn()
    sandbox.wait_ready()
    assert "/pool-0" in Path(f"/proc/{sandbox.pid}/cgroup").read_text()
    daemon.send(KILL_SANDBOX, sandbox.id)
    sandbox.wait_exit()
    sandbox.close()
    bound(daemon, 100)
    assert quotas(daemon)[0] in ("-1", "max")
    bound(daemon, 1)
    daemon.socket.close()
    wait_until(lambda: quotas(daemon)[0] in ("-1", "max"))  # another target may want all of them
    daemon.process.terminate()
    assert daemon.wait() == 0
    assert not control_groups(daemon.process.pid)


def test_a_share_that_cannot_be_enforced(own) -> None:
    daemon = own("--isolation", "no-cgroup")
    daemon.run("pass")  # the pool serves
    news = bound(daemon, 50)
    assert news.state == FAILING
    assert "no control group" in news.why
    with pytest.raises(PermissionError, match="no control group"):
        daemon.spawn()
    assert bound(daemon, 100).state == SERVING
    daemon.run("pass")


@pytest.mark.parametrize("body", [b"", bytes(3), bytes(4), struct.pack(">I", 101)])
def test_a_share_that_is_none_ends_the_connection(own, body: bytes) -> None:
    daemon = own()
    daemon.send(BOUND, 0, body)
    with pytest.raises((EOFError, ConnectionResetError)):
        daemon.wait_for_pool("nosuch", SERVING)
