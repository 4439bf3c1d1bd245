# SPDX-License-Identifier: GPL-2.0-or-later
"""iosd-sandboxd itself: its protocol, its levels, and that no death leaves anything behind."""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import stat
import struct
import subprocess
import time
from pathlib import Path

import pytest
from proxy import (
    CPU_GOT,
    EXITED,
    FINISH_OK,
    HEADER,
    HELLO,
    JOB,
    REFUSED,
    SANDBOXD,
    SPAWN,
    WELCOME,
    Daemon,
    Limits,
    control_groups,
    gone,
)
from proxy import KILL as KILL_SANDBOX

from tests.processes import descendants, zygotes_of

PATIENCE_S = 60.0


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


def test_a_target_that_does_not_read_is_dropped(own) -> None:
    """Its answers fill the socket: the connection ends, and what was made for it."""
    daemon = own(stderr=subprocess.DEVNULL)
    sandbox = daemon.spawn()
    sandbox.wait_ready()
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        while True:
            daemon.send(HELLO, 0, struct.pack(">I", 1 << 20))  # refused
    assert gone([sandbox.pid])
    daemon.socket.close()
    daemon.connect(1)
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
    # Five a minute, and the minute may change once: then one line more counts those before it.
    assert 1 <= len(said) <= 11
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
    (zygote,) = zygotes_of(daemon.process.pid)
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
    pids = [daemon.process.pid, *descendants(daemon.process.pid)]
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
        seen |= zygotes_of(daemon.process.pid)
        sandbox.start("pass")
        assert sandbox.finish().kind == FINISH_OK
        sandbox.close()
    assert len(seen) >= 3
    # the old ones leave when their last sandbox has
    assert len(zygotes_of(daemon.process.pid)) <= 3


def test_memory_does_not_grow_with_jobs(own) -> None:
    daemon = own()

    def resident() -> int:
        pids = [daemon.process.pid, *descendants(daemon.process.pid)]
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
