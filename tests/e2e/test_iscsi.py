# SPDX-License-Identifier: GPL-2.0-or-later
"""Over a stock tgtd: identity, two initiators, connections dropped in every phase, CHAP, residuals.

tests/command tests the effects of each command, over iSCSI too.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import pyosd
from iosd_host.common.paths import MissingComponent
from iosd_host.serve.tgtd import find_tgtd
from pyosd import requests as rq
from pyosd.errors import LoginRejected, OSDError, SessionLost
from pyosd.types import ROOT, AttributeValue, ObjectRef, PartitionId
from pyosd.wire.attributes import CURRENT_APPEND_START, LOGICAL_LENGTH, Page
from pyosd.wire.cdb import AttributeLists, encode
from pyosd.wire.transport import Command
from tests.e2e.raw_iscsi import RawSession, reset_on_close
from tests.expect import BEYOND_END, NO_OBJECT, OBJECT_TAKEN, OK, PAST_END, check, mangled
from tests.machine import unavailable
from tests.serving import Serving, missing, shared
from tests.tgtd import Daemon
from tests.waiting import until

pytestmark = pytest.mark.tgtd

GREEN = AttributeValue(Page.APPLICATION, 1, b"green")
MEGABYTE = 1 << 20


@pytest.fixture
def pid(target: pyosd.Target) -> Iterator[int]:
    partition_id = target.create_partition()
    yield partition_id
    target.remove_partition(partition_id, contents=True)


@pytest.fixture
def obj(target: pyosd.Target, pid: PartitionId) -> ObjectRef:
    return target.create(pid)


# ---- identity ----


def test_inquiry(target: pyosd.Target) -> None:
    data = target.inquiry()
    assert data[0] == 0x11, "an OSD"
    assert data[4] + 5 == len(data)
    versions = {int.from_bytes(data[at : at + 2], "big") for at in range(58, min(74, len(data)), 2)}
    assert versions & {0x0440, 0x0444, 0x0446, 0x0448}, "OSD-2 among the version descriptors"
    vendor = target.get_attribute(ROOT, Page.ROOT_INFORMATION, 4)
    product = target.get_attribute(ROOT, Page.ROOT_INFORMATION, 5)
    assert (data[8:16], data[16:32]) == (vendor, product)


def test_vital_product_data(target: pyosd.Target) -> None:
    """Every page of the list is there; 80h and 83h carry the identity that the root's attributes have."""
    listed = list(target.inquiry(0x00)[4:])
    assert listed == [0x00, 0x80, 0x83, 0xB0, 0xB1]
    for page in listed[1:]:
        data = target.inquiry(page)
        assert (data[0], data[1]) == (0x11, page)
        assert int.from_bytes(data[2:4], "big") == len(data) - 4 > 0
    with pytest.raises(OSDError):
        target.inquiry(0xB2)
    serial = target.get_attribute(ROOT, Page.ROOT_INFORMATION, 8).rstrip(b"\0 ")
    assert target.inquiry(0x80)[4:] == serial
    system_id = target.get_attribute(ROOT, Page.ROOT_INFORMATION, 3)
    designators = target.inquiry(0x83)[4:]
    assert designators[:20] == system_id and len(designators) == 32
    assert designators[20:24] == bytes.fromhex("01030008") and designators[24] >> 4 == 3


def test_targets_are_distinguished_by_inquiry() -> None:
    """By the store's identity, which it keeps: target number and LUN are all alike."""
    folder = Path(tempfile.mkdtemp(prefix="iosd-test-"))
    folder.chmod(0o755)
    seen = []
    try:
        for name in ("one", "two", "one"):
            with Serving("--no-sandboxes", data=folder / name) as served, served.connect() as each:
                seen.append((each.inquiry(0x80), each.inquiry(0x83)))
    finally:
        shutil.rmtree(folder)
    assert seen[0] == seen[2]
    assert seen[0][0] != seen[1][0] and seen[0][1] != seen[1][1]


@pytest.mark.parametrize("kind", ["stock", "hardened"])
def test_parameters_of_block_devices(kind: str) -> None:
    """tgtd would write to pages that an OSD has not: refused, and the daemon goes on."""
    try:
        tgtd = find_tgtd(kind)
    except MissingComponent as error:
        unavailable("tgtd", str(error))
    with Daemon(tgtd) as daemon:
        for parameter in ("thin_provisioning=1", "rotation_rate=1", "optimal_xfer_len=8"):
            assert tuned(daemon, parameter) != 0
        assert tuned(daemon, "scsi_sn=other") == 0
        assert daemon.serves()


def tuned(daemon: Daemon, parameter: str) -> int:
    """Exit status of tgtadm when it sets a parameter of the unit."""
    command = ["tgtadm", "-C", "1", "--lld", "iscsi", "--op", "update", "--mode", "logicalunit"]
    command += ["--tid", "1", "--lun", "1", "--params", parameter]
    return subprocess.run(command, env=daemon.environment, timeout=60, check=False).returncode


def test_security_token_page(target: pyosd.Target) -> None:
    """16 random bytes per logical unit and boot, in VPD page B1h."""
    token = target.inquiry(0xB1)
    assert token[1] == 0xB1
    body = token[4 : 4 + int.from_bytes(token[2:4], "big")]
    assert len(body) >= 16
    assert body != bytes(len(body))


def test_test_unit_ready(target: pyosd.Target) -> None:
    target.test_unit_ready()


def test_ping(target: pyosd.Target) -> None:
    assert 0 < target.ping() < 10


def test_discovery(serving: Serving) -> None:
    raw = RawSession(serving.url, login=False)
    raw.socket.close()
    found = pyosd.discover(raw.address.host, raw.address.port)
    assert [name for name, _ in found] == [raw.address.target]


# ---- two initiators ----


def test_two_initiators_see_the_same(
    serving: Serving, target: pyosd.Target, obj: ObjectRef
) -> None:
    with serving.connect(initiator="iqn.2026-11.org.iosd:second") as second:
        target.write(obj, 0, b"from the first", attributes=[GREEN])
        assert bytes(second.read(obj, 0, 100)) == b"from the first"
        assert second.get_attribute(obj, GREEN.page, GREEN.number) == b"green"
        second.remove(obj)
        check(target.reply(rq.read(obj, 0, 1)), NO_OBJECT)


def test_each_session_has_its_initiator_s_name(serving: Serving, pid: PartitionId) -> None:
    """Also one after the other, and in turn: names are kept for a moment."""
    names = [f"iqn.2026-11.org.iosd:name{number}" for number in range(4)]
    with (
        serving.connect(initiator=names[0]) as first,
        serving.connect(initiator=names[1]) as second,
    ):
        for number, session in enumerate((first, second, first)):
            check(session.reply(rq.create(pid, number + 1)), OBJECT_TAKEN)
    for number, name in enumerate(names[2:], 3):
        with serving.connect(initiator=name) as session:
            check(session.reply(rq.create(pid, number + 1)), OBJECT_TAKEN)
    used = [*names[:2], names[0], *names[2:]]

    def logged() -> list[str]:
        lines = [line for line in serving.text().splitlines() if f"CREATE ({pid:#x}/0x" in line]
        return [line.split("'")[1] for line in lines if line.count("'") > 1]

    until(
        lambda: len(logged()) >= len(used), serving.text
    )  # tgtd logs through a process of its own
    assert logged() == used


def race(*parties: Callable[[], None]) -> None:
    """All at once; the first failure of any is raised."""
    failures: list[BaseException] = []

    def run(party: Callable[[], None]) -> None:
        try:
            party()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(party,)) for party in parties]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if failures:
        raise failures[0]


def test_racing_appends_never_overlap(
    serving: Serving, target: pyosd.Target, obj: ObjectRef
) -> None:
    starts: dict[int, bytes] = {}

    def append(session: pyosd.Target, byte: int) -> None:
        lists = AttributeLists((CURRENT_APPEND_START,))
        for turn in range(60):
            piece = bytes([byte]) * (turn * 37 % 500 + 1)
            reply = check(session.reply(rq.append(obj, piece, attributes=lists)), OK)
            start = reply.attribute(CURRENT_APPEND_START).uint
            assert start not in starts
            starts[start] = piece

    with serving.connect() as second:
        race(lambda: append(target, 1), lambda: append(second, 2))
    data = target.read_range(obj)
    assert len(data) == sum(map(len, starts.values()))
    for start, piece in starts.items():
        assert data[start : start + len(piece)] == piece


def test_racing_writes_are_never_mixed(
    serving: Serving, target: pyosd.Target, obj: ObjectRef
) -> None:
    """A WRITE is atomic against READs and WRITEs of the same object."""
    size = 300_000
    target.write(obj, 0, b"\0" * size)

    def write(session: pyosd.Target, byte: int) -> None:
        for _ in range(40):
            session.write(obj, 0, bytes([byte]) * size)

    def read() -> None:
        with serving.connect() as third:
            for _ in range(60):
                data = bytes(third.read(obj, 0, size))
                assert data.count(data[:1]) == size, "bytes of two WRITEs in one READ"

    with serving.connect() as second:
        race(lambda: write(target, 1), lambda: write(second, 2), read)
    data = bytes(target.read(obj, 0, size))
    assert data in (b"\1" * size, b"\2" * size)


def test_racing_attributes_are_all_or_none(
    serving: Serving, target: pyosd.Target, obj: ObjectRef
) -> None:
    ids = [AttributeValue(Page.APPLICATION, number, b"").id for number in range(1, 6)]

    def set_all(session: pyosd.Target, value: bytes) -> None:
        for _ in range(60):
            session.set_attributes(
                obj, [AttributeValue(each.page, each.number, value) for each in ids]
            )

    def look() -> None:
        with serving.connect() as third:
            for _ in range(100):
                values = {each.value for each in third.get_attributes(obj, ids)}
                assert len(values) == 1, values

    target.set_attributes(obj, [AttributeValue(each.page, each.number, b"0") for each in ids])
    with serving.connect() as second:
        race(lambda: set_all(target, b"1"), lambda: set_all(second, b"2"), look)


def test_create_and_remove_race(serving: Serving, target: pyosd.Target, pid: PartitionId) -> None:
    """Of two who make, or remove, the same id exactly one succeeds."""
    made: list[bool] = []
    removed: list[bool] = []

    def work(session: pyosd.Target) -> None:
        for number in range(40):
            reply = session.reply(rq.create(pid, 0x2_0000 + number))
            made.append(reply.error is None)
            barrier.wait(30)
            reply = session.reply(rq.remove(pyosd.ref(pid, 0x2_0000 + number)))
            removed.append(reply.error is None)
            barrier.wait(30)

    barrier = threading.Barrier(2)
    with serving.connect() as second:
        race(lambda: work(target), lambda: work(second))
    assert (sum(made), sum(removed)) == (40, 40)


SESSIONS = 64


def test_many_sessions(serving: Serving, target: pyosd.Target, pid: PartitionId) -> None:
    """As many as are promised, all at work at once; tgtd has no limit of its own, so that the next
    one is let in too, and none is left behind."""
    with contextlib.ExitStack() as stack:
        sessions = [
            stack.enter_context(serving.connect(initiator=f"iqn.2026-11.org.iosd:n{number}"))
            for number in range(SESSIONS)
        ]
        for _ in range(3):
            made = [
                s.submit(rq.create_and_write(pid, 0, 0, b"%d" % n)) for n, s in enumerate(sessions)
            ]
            for each in made:
                check(each.reply(), OK)
        lists = [session.submit(rq.list_objects(pid)) for session in sessions]
        for listing in lists:
            check(listing.reply(), OK)
        found = target.list_objects(pid)
        assert len(found) == 3 * SESSIONS
        assert len({bytes(target.read_range(each)) for each in found}) == SESSIONS
        with serving.connect(initiator="iqn.2026-11.org.iosd:more") as more:
            assert more.list_objects(pid) == found
    assert target.list_objects(pid) == found


def test_many_commands_under_way(target: pyosd.Target, obj: ObjectRef) -> None:
    pending = [target.submit(rq.write(obj, 4096 * n, bytes([n]) * 4096)) for n in range(100)]
    for each in pending:
        check(each.reply(), OK)
    assert target.read_range(obj) == b"".join(bytes([n]) * 4096 for n in range(100))


# ---- connections that end in the middle ----


def after_drop(serving: Serving, pid: PartitionId, obj: ObjectRef) -> None:
    """The same tgtd serves on, and the object is as it was."""
    with serving.connect(reconnect_timeout=0) as session:
        assert bytes(session.read(obj, 0, 100)) == b"as it was"
        assert session.list_objects(pid) == [obj]
        session.write(obj, 0, b"as it was")
    assert serving.process.poll() is None


@pytest.fixture
def kept(target: pyosd.Target, obj: ObjectRef) -> ObjectRef:
    target.write(obj, 0, b"as it was")
    return obj


def big_write(obj: ObjectRef) -> tuple[bytes, bytes]:
    """CDB and data of a WRITE that takes several R2Ts."""
    command, _ = encode(rq.write(obj, 0, b"never to be seen" * 65536))
    return command.cdb, bytes(command.data_out)


def end(raw: RawSession, how: str) -> None:
    if how == "reset":
        reset_on_close(raw.socket)
    raw.socket.close()


HOW = pytest.mark.parametrize("how", ["close", "reset"])


@HOW
def test_dropped_before_login(
    serving: Serving, pid: PartitionId, kept: ObjectRef, how: str
) -> None:
    end(RawSession(serving.url, login=False), how)
    after_drop(serving, pid, kept)


@HOW
@pytest.mark.parametrize("sent", [1, 47, 48, 100])
def test_dropped_in_login(
    serving: Serving, pid: PartitionId, kept: ObjectRef, sent: int, how: str
) -> None:
    raw = RawSession(serving.url, login=False)
    raw.socket.sendall(raw.login_pdu()[:sent])
    end(raw, how)
    after_drop(serving, pid, kept)


@HOW
def test_dropped_after_login(serving: Serving, pid: PartitionId, kept: ObjectRef, how: str) -> None:
    end(RawSession(serving.url), how)
    after_drop(serving, pid, kept)


@HOW
@pytest.mark.parametrize("sent", [10, 48, 60, 271])
def test_dropped_in_the_command(
    serving: Serving, pid: PartitionId, kept: ObjectRef, sent: int, how: str
) -> None:
    raw = RawSession(serving.url)
    cdb, data = big_write(kept)
    raw.socket.sendall(raw.command(cdb, data_out=len(data))[:sent])
    end(raw, how)
    after_drop(serving, pid, kept)


@HOW
def test_dropped_before_the_data(
    serving: Serving, pid: PartitionId, kept: ObjectRef, how: str
) -> None:
    raw = RawSession(serving.url)
    cdb, data = big_write(kept)
    raw.socket.sendall(raw.command(cdb, data_out=len(data)))
    header, _ = raw.receive()
    assert header[0] & 0x3F == 0x31, "an R2T"
    end(raw, how)
    after_drop(serving, pid, kept)


@HOW
@pytest.mark.parametrize("sent", [20, 48, 5000])
def test_dropped_in_the_data(
    serving: Serving, pid: PartitionId, kept: ObjectRef, sent: int, how: str
) -> None:
    raw = RawSession(serving.url)
    cdb, data = big_write(kept)
    raw.socket.sendall(raw.command(cdb, data_out=len(data)))
    header, _ = raw.receive()
    transfer_tag = int.from_bytes(header[20:24], "big")
    raw.socket.sendall(raw.data(2, transfer_tag, 0, data[:8192], False)[:sent])
    end(raw, how)
    after_drop(serving, pid, kept)


@HOW
def test_dropped_while_commands_run(
    serving: Serving, target: pyosd.Target, pid: PartitionId, kept: ObjectRef, how: str
) -> None:
    """Commands that were begun run to their end, though nobody hears of it: in a partition of their own,
    since that may be at any time."""
    other = target.create_partition()
    raw = RawSession(serving.url)
    for number in range(20):
        command, _ = encode(rq.create(other, 0x7_0000 + number))
        raw.socket.sendall(raw.command(command.cdb, tag=2 + number, serial=number))
    raw.receive()  # a unit attention: the first command of a session
    header, _ = raw.receive()
    assert header[3] == 0, "a CREATE has succeeded"
    end(raw, how)
    assert target.list_objects(other)
    after_drop(serving, pid, kept)
    target.remove_partition(other, contents=True)


@HOW
def test_dropped_in_the_answer(
    serving: Serving, target: pyosd.Target, pid: PartitionId, kept: ObjectRef, how: str
) -> None:
    other = target.create_partition()
    large = target.create(other)
    target.write_range(large, 0, b"x" * (8 * MEGABYTE))
    raw = RawSession(serving.url)
    command, _ = encode(rq.read(large, 0, 8 * MEGABYTE))
    for serial in (0, 1):
        if serial:
            raw.receive()  # a unit attention: the first command of a session
        raw.socket.sendall(raw.command(command.cdb, data_in=8 * MEGABYTE, serial=serial))
    assert raw.exactly(1000)
    end(raw, how)
    after_drop(serving, pid, kept)
    target.remove_partition(other, contents=True)


def test_session_comes_back_by_itself(target: pyosd.Target, kept: ObjectRef) -> None:
    target.transport.drop()  # type: ignore[attr-defined]
    assert bytes(target.read(kept, 0, 100)) == b"as it was"


def test_command_without_answer_is_told_as_lost(
    serving: Serving, target: pyosd.Target, kept: ObjectRef
) -> None:
    with serving.connect(reconnect_timeout=0) as session:
        pending = session.submit(rq.append(kept, b"perhaps" * 100_000))
        session.transport.drop()  # type: ignore[attr-defined]
        with contextlib.suppress(SessionLost):  # unless the answer was quicker
            assert pending.reply().error is None
    length = int.from_bytes(target.get_attribute(kept, *id_()), "big")
    assert length in (9, 9 + 700_000), "it happened or it did not"


def id_() -> tuple[int, int]:
    return LOGICAL_LENGTH.page, LOGICAL_LENGTH.number


# ---- residuals ----


def bidi(obj: ObjectRef, out: bytes, room: int) -> Command:
    """WRITE with a get list: Data-Out one way, attributes the other."""
    lists = AttributeLists((LOGICAL_LENGTH,), (), room)
    command, _ = encode(rq.write(obj, 0, out, attributes=lists))
    return command


def test_bidi_without_residual(target: pyosd.Target, obj: ObjectRef) -> None:
    command = bidi(obj, b"12345678", 32)
    response = target.transport.execute(command)
    assert response.status == 0
    assert (response.residual_in, response.residual_out) == (0, 0)
    assert len(response.data_in) == 32


def test_bidi_data_in_underflow(target: pyosd.Target, obj: ObjectRef) -> None:
    command = bidi(obj, b"12345678", 512)
    response = target.transport.execute(command)
    assert response.status == 0
    assert response.residual_in == 512 - 32
    assert response.residual_out == 0
    assert len(response.data_in) == 32


def test_bidi_data_in_overflow(target: pyosd.Target, obj: ObjectRef) -> None:
    command = bidi(obj, b"12345678", 32)
    cut = Command(command.cdb, command.data_out, 16)
    response = target.transport.execute(cut)
    assert response.status == 0
    assert response.residual_in <= 0
    assert len(response.data_in) == 16


def test_bidi_data_out_underflow(target: pyosd.Target, obj: ObjectRef) -> None:
    """More Data-Out than the command takes: done, and the surplus told."""
    command = bidi(obj, b"12345678", 32)
    more = Command(command.cdb, bytes(command.data_out) + bytes(512), 32)
    response = target.transport.execute(more)
    assert response.status == 0
    assert response.residual_out in (0, 512)
    assert response.residual_in == 0
    assert bytes(target.read(obj, 0, 100)) == b"12345678"


def test_read_residuals(target: pyosd.Target, obj: ObjectRef) -> None:
    target.write(obj, 0, b"12345")
    reply = check(target.reply(rq.read(obj, 0, 4096)), PAST_END)
    assert reply.response.residual_in == 0, "all 4,096 bytes were sent, zeros behind the data"
    reply = check(mangled(target, rq.read(obj, 0, 5), {}, data_in_length=4096), OK)
    assert reply.response.residual_in == 4096 - 5


def test_residual_of_a_refused_command_is_everything(target: pyosd.Target, obj: ObjectRef) -> None:
    """Nothing of what lay in the buffer goes out."""
    lists = AttributeLists((GREEN.id,))
    reply = check(target.reply(rq.punch(obj, 5, 1, attributes=lists)), BEYOND_END)
    assert reply.response.data_in.nbytes == 0
    assert reply.response.residual_in > 0


# ---- CHAP ----


@pytest.fixture(scope="module")
def guarded() -> Iterator[Serving]:
    """A target that asks for CHAP, and has no sandboxes."""
    why = missing()
    if why:
        unavailable("tgtd", why)
    secret = {"IOSD_CHAP_SECRET": "correct-horse-battery"}
    with shared("--no-sandboxes", "--chap-user", "alice", environment=secret) as served:
        yield served


def test_chap(guarded: Serving) -> None:
    with guarded.connect(chap=pyosd.Chap("alice", "correct-horse-battery")) as session:
        session.create_partition()


@pytest.mark.parametrize(
    ("user", "secret"),
    [("alice", "wrong-horse-battery"), ("mallory", "correct-horse-battery")],
)
def test_chap_wrong(guarded: Serving, user: str, secret: str) -> None:
    with pytest.raises(LoginRejected):
        guarded.connect(chap=pyosd.Chap(user, secret))


def test_chap_absent(guarded: Serving) -> None:
    with pytest.raises(LoginRejected):
        guarded.connect()
