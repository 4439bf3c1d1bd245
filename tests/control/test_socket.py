# SPDX-License-Identifier: GPL-2.0-or-later
"""Access to the control socket, and the treatment of peers that misbehave."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from iosd_host.control import messages
from iosd_host.control.messages import Frame, TargetError, Type
from tests.conftest import MakeHarness
from tests.control.peer import Peer
from tests.fuzz.run import golden_frames
from tests.harness import SOURCE, Harness, StartFailed
from tests.waiting import until

PEERS = 16
NOBODY = 65534
MANAGER = 2047000001
SPEAKER = f"""
import os, socket, sys
sys.path.insert(0, {str(SOURCE)!r})
from iosd_host.control.messages import Type, encode, request
os.setgroups([]); os.setgid({{gid}}); os.setuid({{uid}})
peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
peer.connect(sys.argv[1])
peer.settimeout(20)
peer.send(encode(request(Type.HELLO, 1, {{{{"role": "manager", "who": "m", "versions": "1-1"}}}})))
sys.exit(0 if peer.recv(1 << 16) else 1)
"""
STRANGER = f"""
import os, socket, sys
os.setgid({NOBODY}); os.setuid({NOBODY})
peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
peer.connect(sys.argv[1])
peer.settimeout(20)
sys.exit(len(peer.recv(100)))
"""


@pytest.fixture
def log(harness: Harness) -> Path:
    return harness.log


def told(log: Path, words: str) -> None:
    until(lambda: words in log.read_text(), f"{words!r} is not in the log")


# ---- the socket file ----


def test_only_its_owner_may_connect(harness: Harness, path: Path) -> None:
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    harness.finish()
    assert not path.exists()


def test_stale_socket_is_replaced(harness: Harness, path: Path) -> None:
    harness.kill()
    assert path.is_socket()
    harness.start()
    with Peer(path) as peer:
        assert peer.snapshot()["target"]["pid"] == harness.pid


def test_socket_in_use_is_not_taken(
    harness: Harness, make_harness: MakeHarness, path: Path
) -> None:
    with pytest.raises(StartFailed, match="another target listens there"):
        make_harness(memory=1, control=path)
    with Peer(path) as peer:
        assert peer.snapshot()["target"]["pid"] == harness.pid


def test_other_file_is_left_alone(make_harness: MakeHarness, path: Path) -> None:
    path.write_text("mine")
    with pytest.raises(StartFailed, match="something else is there"):
        make_harness(memory=1, control=path)
    assert path.read_text() == "mine"


def test_socket_that_is_not_ours_any_more_is_left(harness: Harness, path: Path) -> None:
    path.unlink()
    path.write_text("another's")
    harness.finish()
    assert path.read_text() == "another's"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be somebody else")
def test_a_stranger_cannot_hold_up_the_start(make_harness: MakeHarness) -> None:
    """A user who can open the folder can lock it."""
    with tempfile.TemporaryDirectory(prefix="iosd-test-") as folder:
        Path(folder).chmod(0o755)
        held = os.open(folder, os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_EX)
        path = Path(folder, "control")
        harness = make_harness(memory=1, control=path)
        with Peer(path) as peer:
            assert peer.snapshot()["target"]["pid"] == harness.pid
        assert [each.name for each in Path(folder).iterdir()] == ["control"]
        os.close(held)
        harness.finish()


# ---- who ----


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be somebody else")
def test_the_managers_user_is_let_in(make_harness: MakeHarness) -> None:
    """By the group of the folder, and its number; a third user of that group is not."""
    with tempfile.TemporaryDirectory(prefix="iosd-test-") as name:
        path = Path(name, "control")
        os.chown(name, 0, MANAGER)
        Path(name).chmod(0o2710)
        harness = make_harness(memory=1, control=path, control_uid=MANAGER)
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
        hello = SPEAKER.format(uid=MANAGER, gid=MANAGER)
        subprocess.run([sys.executable, "-c", hello, path], check=True, timeout=30)
        other = SPEAKER.format(uid=NOBODY, gid=MANAGER)
        done = subprocess.run(
            [sys.executable, "-c", other, path], capture_output=True, check=False, timeout=30
        )
        assert done.returncode != 0
        told(harness.log, f"user {NOBODY}")
        stranger = SPEAKER.format(uid=NOBODY, gid=NOBODY)
        done = subprocess.run(
            [sys.executable, "-c", stranger, path], capture_output=True, check=False, timeout=30
        )
        assert b"PermissionError" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be somebody else")
def test_other_users_are_not_let_in(make_harness: MakeHarness) -> None:
    """Also where somebody has opened the file to all."""
    with tempfile.TemporaryDirectory(prefix="iosd-test-") as folder:
        path = Path(folder, "control")
        harness = make_harness(memory=1, control=path)
        Path(folder).chmod(0o755)
        path.chmod(0o666)
        subprocess.run([sys.executable, "-c", STRANGER, str(path)], check=True, timeout=30)
        told(harness.log, f"user {NOBODY}")
        harness.finish()


def test_seventeenth_is_turned_away(harness: Harness, path: Path, log: Path) -> None:
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(Peer(path)) for _ in range(PEERS)]
        with Peer(path, role=None) as late:
            with pytest.raises(TargetError, match="too many"):
                messages.answer_fields(late.receive())
            assert late.is_closed()
        told(log, "is not let in: 16 are connected")
        assert all(peer.snapshot() for peer in peers)
        peers[3].close()
        until(lambda: welcomed(path), "no place has become free")


def welcomed(path: Path) -> bool:
    with Peer(path, role=None) as peer, contextlib.suppress(TargetError, EOFError, OSError):
        return bool(peer.hello("tool"))
    return False


# ---- nonsense ----


def version_2() -> bytes:
    return golden_frames()["control.version_2"]


def test_other_version(harness: Harness, path: Path) -> None:
    with Peer(path, role=None) as peer:
        peer.send(version_2())
        frame = peer.receive()
        assert frame.serial == 5
        with pytest.raises(TargetError) as caught:
            messages.answer_fields(frame)
        assert caught.value.code == "version"
        assert peer.is_closed()


@pytest.mark.parametrize(
    "packet",
    [
        b"OSDC",
        b"OSDX" + messages.encode(Frame(Type.SNAPSHOT, 1))[4:],
        messages.encode(Frame(Type.SNAPSHOT, 1)) + b"x",
        messages.encode(Frame(Type.OK, 1, bytes(messages.FRAME_MAX - 16))) + b"x",
    ],
)
def test_what_is_no_frame(harness: Harness, path: Path, packet: bytes) -> None:
    with Peer(path) as peer:
        peer.send(packet)
        with pytest.raises(TargetError) as caught:
            messages.answer_fields(peer.receive())
        assert caught.value.code == "frame"
        assert peer.is_closed()


def test_unknown_type_is_answered_and_no_more(harness: Harness, path: Path) -> None:
    """A newer manager may ask for what this release does not know."""
    with Peer(path) as peer:
        for kind in (0, 14, 99, 100, 0xFFFF):
            peer.send(messages.encode(Frame(kind, 7)))
            frame = peer.receive()
            assert (frame.type, frame.serial) == (Type.ERROR, 7)
        assert peer.snapshot()


FRAMES = st.builds(
    lambda kind, serial, text: messages.encode(Frame(kind, serial, text)),
    st.sampled_from([*range(14), 100, 103, 0xFFFF]),
    st.integers(0, 0xFFFF_FFFF),
    st.one_of(
        st.binary(max_size=200),
        st.lists(
            st.tuples(
                st.sampled_from(
                    ["role", "who", "name", "count", "on", "max", "mode", "interval_ms"]
                ),
                st.sampled_from(
                    ["0", "1", "manager", "default", "99999999999999999999", "-1", ";"]
                ),
            ),
            max_size=5,
        ).map(lambda pairs: "".join(f"{key}={value}\n" for key, value in pairs).encode()),
    ),
)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(packets=st.lists(st.one_of(FRAMES, st.binary(min_size=1, max_size=300)), max_size=8))
def test_nonsense(sanitized: tuple[Harness, Path], packets: list[bytes]) -> None:
    """With every input the target continues and answers the next peer."""
    _, path = sanitized
    with Peer(path) as peer:
        for packet in packets:
            with contextlib.suppress(OSError):
                peer.send(packet)
    with Peer(path) as other:
        assert other.snapshot()["workers"]["count"] >= 1


# ---- readers that do not read ----


def test_answers_that_nobody_reads(harness: Harness, path: Path, log: Path) -> None:
    """The connection ends; who reads is served meanwhile, and commands are, too."""
    with Peer(path) as deaf, Peer(path) as other:
        deaf.socket.settimeout(0.01)
        ask = messages.encode(messages.request(Type.SNAPSHOT, 1))
        with contextlib.suppress(OSError, TimeoutError):
            for _ in range(100_000):
                deaf.send(ask)
        told(log, "does not read its answers")
        assert other.snapshot()
        assert harness.osd.create_partition()


def unread(peer: Peer) -> int:
    """Bytes that wait in the peer's socket."""
    count: int = struct.unpack("i", fcntl.ioctl(peer.socket, termios.FIONREAD, bytes(4)))[0]
    return count


def test_one_reading_waits_at_most(harness: Harness, path: Path) -> None:
    """A watcher that sleeps finds the last reading but one, not all it has slept through."""
    with Peer(path) as sleepy, Peer(path) as other:
        sleepy.ask(Type.WATCH, interval_ms=20)
        until(lambda: unread(sleepy) > 0, "nothing is pushed")
        first = unread(sleepy)
        start = other.snapshot()["target"]["monotonic"]
        until(
            lambda: other.snapshot()["target"]["monotonic"] > start + 0.2, "the clock stands still"
        )
        assert unread(sleepy) == first
        before, now = sleepy.push(), sleepy.push()
        assert now["target"]["monotonic"] > before["target"]["monotonic"] + 0.15
