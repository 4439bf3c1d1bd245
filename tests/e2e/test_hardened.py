# SPDX-License-Identifier: GPL-2.0-or-later
"""What stock tgtd dies of, hangs at, gives away or lets pass, one test for each patch of
target/tgt-patches: done to the hardened daemon, which must bear it, and to the distribution's, which must
not: where it does, the patch is needed no more.
"""

from __future__ import annotations

import contextlib
import re
import struct
import time
from collections.abc import Callable, Iterator

import pytest

import pyosd
from pyosd import requests as rq
from pyosd.cdb import Request, encode
from scheduler import paths
from scheduler.tgtd import Tgtd, find_tgtd
from tests.command.held import until
from tests.conftest import unavailable
from tests.e2e.raw_iscsi import FINAL, READ, WRITE
from tests.serving import missing
from tests.tgtd import (
    ABORT_TASK,
    DATA_IN,
    IMMEDIATE,
    LOGIN,
    NO_TAG,
    NOP_IN,
    ORDERED,
    RESPONSE,
    TEST_UNIT_READY,
    TEXT,
    TMF_RESPONSE,
    Attacker,
    Daemon,
    ahs_cdb,
    ahs_length,
)

pytestmark = pytest.mark.tgtd

# Where these defects were seen; of a later release nothing is known.
DEFECTIVE = ((1, 0, 85), (1, 0, 97))
SLOW_READER_MENDED = (1, 0, 89)
SHORT_S = 0.5  # to see that no answer comes
PROTOCOL_ERROR, NOT_SUPPORTED, OUT_OF_RESOURCES, INVALID_FIELD = 4, 5, 0xA, 9
INQUIRY = bytes([0x12, 0, 0, 0, 96, 0])
REPORT_LUNS = bytes([0xA0, 0, 0, 0, 0, 0, 0, 0, 1, 0])
GOOD, CHECK_CONDITION, TASK_ABORTED = 0, 2, 0x40


def cdb_of(request: Request) -> bytes:
    return bytes(encode(request)[0].cdb)


LIST = cdb_of(rq.list_objects())
FORMAT = cdb_of(rq.format_osd())


class Trial:
    """One daemon of one kind; `judge` says whether it does as it should."""

    def __init__(self, tgtd: Tgtd) -> None:
        self.tgtd, self.hardened = tgtd, tgtd.hardened
        self.stack = contextlib.ExitStack()

    def daemon(self, **parameters: str) -> Daemon:
        return self.stack.enter_context(Daemon(self.tgtd, **parameters))

    def session(self, daemon: Daemon, timeout: float | None = None, /, **keys: str) -> Attacker:
        patience = timeout or (10.0 if self.hardened else 1.0)
        return self.stack.enter_context(Attacker(daemon, patience, **keys))

    def judge(self, defect: bool, mended: tuple[int, ...] | None = None) -> None:
        """Args: defect: whether it was seen.  mended: the first release without it."""
        if self.hardened:
            assert not defect
            return
        version = tuple(map(int, re.findall(r"\d+", self.tgtd.version)[:3]))
        if not DEFECTIVE[0] <= version <= DEFECTIVE[1]:
            pytest.skip(f"not known of tgt {self.tgtd.version}; seen: {defect}")
        assert defect == (mended is None or version < mended), (
            f"tgt {self.tgtd.version} is known to have this defect, and has not shown it"
        )

    def bears(self, attack: Callable[[Daemon], object], **parameters: str) -> None:
        """The attack says what a sound daemon answers, which serves others afterwards.  A stock one
        answers otherwise or dies; of what it does to its memory perhaps not at once."""
        for _ in range(1 if self.hardened else 5):
            daemon = self.daemon(**parameters)
            try:
                attack(daemon)
                defect = not daemon.serves(10.0 if self.hardened else 2.0)
            except (AssertionError, OSError):
                if self.hardened:
                    raise
                defect = True
            if defect:
                break
        self.judge(defect)


@pytest.fixture(params=["hardened", "stock"])
def trial(request: pytest.FixtureRequest) -> Iterator[Trial]:
    why = missing()
    if why:
        unavailable("tgtd", why)
    try:
        tgtd = find_tgtd(request.param)
    except paths.MissingComponent as error:
        pytest.skip(str(error))
    if request.param == "stock" and tgtd.hardened:
        pytest.skip("the distribution's tgtd is one of ours")
    found = Trial(tgtd)
    with found.stack:
        yield found


def test_unknown_pdu(trial: Trial) -> None:
    """A Reject, and the connection ends; without a word from a stock daemon."""
    session = trial.session(trial.daemon())
    session.send(IMMEDIATE | 0x1E, FINAL, bytes(40))
    outcome = session.outcome()
    trial.judge(outcome == "closed")
    assert outcome in (NOT_SUPPORTED, "closed")
    with pytest.raises(ConnectionError):
        session.answer()


def test_cdb_longer_than_260(trial: Trial) -> None:
    session = trial.session(trial.daemon()).ready()
    session.socket.settimeout(5 if trial.hardened else SHORT_S)
    session.scsi(LIST, ahs=ahs_cdb(300 - 15, LIST[16:] + bytes(64)))
    outcome = session.outcome()
    trial.judge(outcome == "nothing")
    if trial.hardened:
        assert outcome == f"{RESPONSE:#x}"
        session.scsi(TEST_UNIT_READY)
        assert session.answer()[0][3] == GOOD


AHS = {
    "longer than all": ahs_cdb(1000, bytes(220)),
    "length 65535": ahs_cdb(0xFFFF, bytes(220)),
    "twice": ahs_cdb(105, bytes(104)) * 2,
    "read length of 6": struct.pack(">HBBII", 9, 2, 0, 64, 0),
    "read length twice": ahs_length(64) * 2,
}


@pytest.mark.parametrize("name", AHS)
def test_header_segment(trial: Trial, name: str) -> None:
    """By a stock daemon not answered, or not seen."""
    daemon = trial.daemon()
    session = trial.session(daemon, None if trial.hardened else SHORT_S)
    outcome: str | int = "closed"
    with contextlib.suppress(OSError):
        session.scsi(LIST, FINAL | READ, length=64, ahs=AHS[name])
        outcome = session.outcome()
    trial.judge(outcome != INVALID_FIELD)
    if trial.hardened:
        assert daemon.serves()


def test_header_segment_of_length_0(trial: Trial) -> None:
    def attack(daemon: Daemon) -> None:
        session = trial.session(daemon).ready()
        session.scsi(LIST, FINAL | READ, length=64, ahs=ahs_cdb(0, b""))
        assert session.outcome() == INVALID_FIELD

    trial.bears(attack)


@pytest.mark.parametrize("name", ["before the CDB", "after an odd CDB"])
def test_order_of_header_segments(trial: Trial, name: str) -> None:
    session = trial.session(trial.daemon()).ready()
    cdb = ahs_cdb(len(LIST) - 15, LIST[16:])
    if name == "before the CDB":
        session.scsi(LIST, FINAL | READ, length=4096, ahs=ahs_length(4096) + cdb)
        trial.judge(session.answer()[0][3] != GOOD)
        return
    cdb = ahs_cdb(len(LIST) - 15 + 1, LIST[16:] + b"\0")
    session.scsi(LIST, FINAL | READ | WRITE, length=0, ahs=cdb + ahs_length(4096))
    header, _ = session.answer()
    trial.judge(int.from_bytes(header[40:44], "big") != 4096)  # all of it is residual


def test_ping_with_header_segment(trial: Trial) -> None:
    """Read into what the command before had."""

    def attack(daemon: Daemon) -> None:
        session = trial.session(daemon).ready()
        session.osd(LIST, FINAL | READ, length=64)
        session.answer()
        session.ping(9, ahs=bytes(1020))
        assert session.outcome() == INVALID_FIELD

    trial.bears(attack)


@pytest.mark.parametrize("kind", ["task management", "command"])
def test_data_segment_without_place(trial: Trial, kind: str) -> None:
    """The same."""

    def attack(daemon: Daemon) -> None:
        session = trial.session(daemon).ready()
        session.scsi(REPORT_LUNS.ljust(16, b"\0"), FINAL | READ, length=4096)
        session.answer()
        if kind == "command":
            session.scsi(TEST_UNIT_READY, data=b"A" * 8192)
        else:
            session.manage(ABORT_TASK, 77, 9, data=b"A" * 8192)
        assert session.outcome() == INVALID_FIELD

    trial.bears(attack)


def write_of(length: int, session: Attacker, **more: object) -> None:
    """A WRITE to an object that is not there; which the daemon learns when it has the data."""
    cdb = cdb_of(rq.write(pyosd.types.ref(0x1_0000, 0x1_0000), 0, bytes(length)))
    session.osd(cdb, FINAL | WRITE, length=length, **more)


OFFENCES: dict[str, Callable[[Attacker, int], None]] = {
    "longer": lambda s, ttt: s.data_out(ttt, 0, b"A" * 8192),
    "out of bounds": lambda s, ttt: s.data_out(ttt, 0xF000_0000, b"A" * 512),
    "beyond": lambda s, ttt: s.data_out(ttt, 16 << 20, b"A" * 512),
    "another tag": lambda s, ttt: s.data_out(ttt ^ 1, 0, b"A" * 512),
    "another command": lambda s, ttt: s.data_out(ttt, 0, b"A" * 512, tag=77),
    "unsolicited": lambda s, ttt: s.data_out(NO_TAG, 0, b"A" * 512),
}


@pytest.mark.parametrize("name", OFFENCES)
def test_data_out(trial: Trial, name: str) -> None:
    """Out of the buffer: written there, or spun on.  With a wrong tag: taken all the same."""

    def attack(daemon: Daemon) -> None:
        session = trial.session(daemon).ready()
        write_of(512, session)
        OFFENCES[name](session, session.r2t()[0])
        assert session.outcome() in (PROTOCOL_ERROR, INVALID_FIELD)

    trial.bears(attack)


def test_data_out_that_leaves_a_hole(trial: Trial) -> None:
    """Twice the same half: what was in memory before is written to the other."""
    session = trial.session(trial.daemon()).ready()
    write_of(1024, session)
    ttt, length = session.r2t()
    assert length == 1024
    session.data_out(ttt, 0, b"A" * 512, final=False)
    with contextlib.suppress(OSError):
        session.data_out(ttt, 0, b"A" * 512)
    trial.judge(session.outcome() == f"{RESPONSE:#x}")


def test_data_out_twice(trial: Trial) -> None:
    """For a command that runs already: it was submitted twice."""

    def attack(daemon: Daemon) -> None:
        daemon.gate.touch()
        session = trial.session(daemon).ready()
        session.osd(FORMAT, FINAL | WRITE, length=512)
        ttt, _ = session.r2t()
        for _ in range(2):
            session.data_out(ttt, 0, bytes(512))
        outcome = session.outcome()
        daemon.gate.unlink()
        assert outcome == PROTOCOL_ERROR

    trial.bears(attack)


@pytest.mark.parametrize("length", [0x8000_0000, 0xFFFF_FFFD])
@pytest.mark.parametrize("cdb", [INQUIRY, REPORT_LUNS], ids=["INQUIRY", "REPORT LUNS"])
def test_transfer_length(trial: Trial, cdb: bytes, length: int) -> None:
    def attack(daemon: Daemon) -> None:
        session = trial.session(daemon).ready()
        session.scsi(cdb.ljust(16, b"\0"), FINAL | READ, length=length)
        header, _ = session.answer()
        assert (header[0], header[3]) == (RESPONSE, CHECK_CONDITION)

    trial.bears(attack)


def test_transfer_length_of_a_write(trial: Trial) -> None:
    session = trial.session(trial.daemon()).ready()
    session.osd(LIST, FINAL | WRITE, length=0xFFFF_FFFD)
    trial.judge(session.outcome() != OUT_OF_RESOURCES)


def test_bidirectional_read_length(trial: Trial) -> None:
    """An empty buffer of 4 GiB."""

    def attack(daemon: Daemon) -> None:
        session = trial.session(daemon).ready()
        cdb = REPORT_LUNS[:6] + b"\0\x01\0\0\0\0"
        session.scsi(cdb, FINAL | READ | WRITE, lun=0, ahs=ahs_length(0xFFFF_FFFF))
        header, _ = session.answer()
        assert (header[0], header[3]) == (RESPONSE, CHECK_CONDITION)

    trial.bears(attack)


# parameters of the target, keys of the login, length, immediate data, final
LIMITS = {
    "ImmediateData": ({"ImmediateData": "No"}, {}, 512, 512, True),
    "InitialR2T": ({"InitialR2T": "Yes"}, {}, 512, 0, False),
    "FirstBurstLength": ({"FirstBurstLength": "512"}, {"ImmediateData": "Yes"}, 4096, 1024, True),
    "immediate data": ({}, {"ImmediateData": "Yes"}, 512, 1024, True),
    "MaxRecvDataSegmentLength": (
        {"MaxRecvDataSegmentLength": "1024", "FirstBurstLength": "65536"},
        {"ImmediateData": "Yes"}, 4096, 4096, True),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_negotiated_limits(trial: Trial, name: str) -> None:
    parameters, keys, length, immediate, final = LIMITS[name]
    session = trial.session(trial.daemon(**parameters), **keys).ready()
    cdb = cdb_of(rq.write(pyosd.types.ref(0x1_0000, 0x1_0000), 0, bytes(length)))
    flags = WRITE | (FINAL if final else 0)
    session.socket.settimeout(5 if trial.hardened else SHORT_S)
    session.osd(cdb, flags, length=length, data=bytes(immediate))
    outcome = session.outcome()
    trial.judge(outcome not in (PROTOCOL_ERROR, INVALID_FIELD))


def test_first_burst_by_data_out(trial: Trial) -> None:
    """FirstBurstLength ends what comes unasked; within it all is well."""
    parameters = {"FirstBurstLength": "1024", "InitialR2T": "No"}
    daemon = trial.daemon(**parameters)
    keys = {"InitialR2T": "No", "ImmediateData": "Yes", "FirstBurstLength": "1024"}
    outcomes = []
    for unasked in (512, 1024):
        session = trial.session(daemon, **keys).ready()
        cdb = cdb_of(rq.write(pyosd.types.ref(0x1_0000, 0x1_0000), 0, bytes(4096)))
        session.osd(cdb, WRITE, length=4096, data=bytes(512))
        session.data_out(NO_TAG, 512, bytes(unasked))
        outcomes.append(session.outcome())
    assert outcomes[0] == "0x31", "an R2T for the rest"
    trial.judge(outcomes[1] != PROTOCOL_ERROR)


def taken(session: Attacker) -> None:
    """All that was sent has been read: a ping behind it is answered, past commands that wait."""
    session.ping(250)
    assert session.answer()[0][0] == NOP_IN


def test_command_window(trial: Trial) -> None:
    """Of 40 commands that nobody can do yet, those behind MaxCmdSN are not taken."""
    daemon = trial.daemon(MaxQueueCmd="8")
    daemon.gate.touch()
    session = trial.session(daemon, SHORT_S).ready()
    session.osd(FORMAT, tag=100, attribute=ORDERED)
    for tag in range(101, 140):
        session.osd(LIST, FINAL | READ, length=64, tag=tag)
    taken(session)
    daemon.gate.unlink()
    answered = 0
    with contextlib.suppress(TimeoutError):
        while answered < 40:
            header, _ = session.answer()
            answered += header[0] != DATA_IN or header[1] & 1
    trial.judge(answered == 40)
    if trial.hardened:
        assert 8 <= answered <= 9
        first, last = struct.unpack(">II", header[28:36])
        assert first == 1 + answered and last >= first, "and there is room again"


@pytest.mark.parametrize("serial", [0, 900])
def test_command_number_outside_of_the_window(trial: Trial, serial: int) -> None:
    """Ignored, silently (RFC 7143, 4.2.2.1)."""
    session = trial.session(trial.daemon()).ready()
    session.scsi(TEST_UNIT_READY, serial=serial, tag=5)
    session.scsi(TEST_UNIT_READY, tag=6)
    session.socket.settimeout(5 if trial.hardened else SHORT_S)
    tags = []
    with contextlib.suppress(OSError):
        tags.append(int.from_bytes(session.answer()[0][16:20], "big"))
    if serial == 0:
        trial.judge(tags != [6])
        return
    assert tags == [6]
    if trial.hardened:  # a stock daemon keeps it for when its number comes
        session.scsi(TEST_UNIT_READY, tag=7)
        assert session.answer()[0][19] == 7


def test_command_number_twice(trial: Trial) -> None:
    """A number that waits twice for the one before it: all behind it waited for good."""
    session = trial.session(trial.daemon()).ready()
    for tag in (5, 6):
        session.scsi(TEST_UNIT_READY, tag=tag, serial=2)
    session.scsi(TEST_UNIT_READY, tag=8, serial=3)
    session.scsi(TEST_UNIT_READY, tag=7, serial=1)
    session.socket.settimeout(5 if trial.hardened else SHORT_S)
    tags = set()
    with contextlib.suppress(OSError):
        for _ in range(3):
            tags.add(session.answer()[0][19])
    trial.judge(8 not in tags)


READING = (16 << 20) - 1024
LARGE = {
    "MaxRecvDataSegmentLength": "262144",
    "FirstBurstLength": "262144",
    "InitialR2T": "No",
}


def test_slow_reader(trial: Trial) -> None:
    """Nobody else is served while one does not read what it asked for."""
    daemon = trial.daemon()
    slow = trial.session(daemon, MaxRecvDataSegmentLength=str(READING)).ready()
    for _ in range(4):
        slow.scsi(TEST_UNIT_READY, FINAL | READ, length=READING)
    time.sleep(0.1)  # the sockets fill; nothing tells us
    trial.judge(not daemon.serves(10.0 if trial.hardened else 1.5), SLOW_READER_MENDED)
    if trial.hardened:
        left = 4 * READING
        while left:
            left -= len(slow.answer()[1])


def test_order_behind_a_slow_reader(trial: Trial) -> None:
    """Of one logical unit: the next command need not wait until an answer has been taken."""

    def attack(daemon: Daemon) -> None:
        slow = trial.session(daemon, MaxRecvDataSegmentLength=str(READING)).ready()
        for _ in range(4):
            slow.scsi(TEST_UNIT_READY, FINAL | READ, length=READING, attribute=ORDERED)
        taken_by = trial.session(daemon)
        taken_by.ping(9)
        taken_by.answer()

    trial.bears(attack)


def test_flood_of_pings(trial: Trial) -> None:
    """Who asks without reading is not read from either; what it takes is bounded."""
    if not trial.hardened:
        pytest.skip("a stock daemon spins in the write instead: test_slow_reader")
    daemon = trial.daemon()
    session = trial.session(daemon).ready()
    before = daemon.resident()
    session.socket.settimeout(1.0)
    with pytest.raises(TimeoutError):
        for _ in range(20_000):
            session.ping(9, data=bytes(8192))
    assert daemon.resident() - before < 64 << 20
    assert daemon.serves()
    session.socket.close()
    until(lambda: not daemon.connected())


@pytest.mark.parametrize("segment", [513, 8190])
def test_odd_segment(trial: Trial, segment: int) -> None:
    daemon = trial.daemon(**LARGE)
    pattern = bytes(1 + at % 255 for at in range(65536))
    with pyosd.connect(daemon.url) as target:
        obj = target.create_and_write(target.create_partition(), pattern)
    session = trial.session(daemon, MaxRecvDataSegmentLength=str(segment)).ready()
    session.osd(cdb_of(rq.read(obj, 0, 65536)), FINAL | READ, length=65536)
    found = b""
    while len(found) < 65536:
        header, data = session.answer()
        assert header[0] & 0x3F == DATA_IN
        assert len(data) <= segment
        found += data
    trial.judge(found != pattern)


@contextlib.contextmanager
def recorded(session: Attacker) -> Iterator[bytearray]:
    """What is sent meanwhile goes nowhere, but here."""
    sent = bytearray()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "socket", Recorder(sent))
        yield sent


class Recorder:
    """A socket that keeps what it is to send."""

    def __init__(self, sent: bytearray) -> None:
        self.sent = sent

    def sendall(self, data: bytes) -> None:
        self.sent += data


def test_ping_without_answer(trial: Trial) -> None:
    """What is behind it in the queue is sent, if they come in one segment."""
    session = trial.session(trial.daemon()).ready()
    with recorded(session) as pdus:
        for _ in range(3):
            session.ping(NO_TAG)
        session.scsi(TEST_UNIT_READY)
    session.socket.settimeout(5 if trial.hardened else SHORT_S)
    session.socket.sendall(pdus)
    trial.judge(session.outcome() != f"{RESPONSE:#x}")


def test_answer_to_a_ping_fits(trial: Trial) -> None:
    daemon = trial.daemon(MaxRecvDataSegmentLength="8192")
    session = trial.session(daemon, MaxRecvDataSegmentLength="512").ready()
    session.ping(9, data=bytes(4001))
    header, data = session.answer()
    assert header[0] & 0x3F == NOP_IN
    trial.judge(len(data) > 512)


def test_close_within_data_out(trial: Trial) -> None:
    """A write that waits for its number, a part of its data, and the end."""

    def attack(daemon: Daemon) -> None:
        for _ in range(20):
            session = trial.session(daemon, InitialR2T="No").ready()
            cdb = cdb_of(rq.write(pyosd.types.ref(0x1_0000, 0x1_0000), 0, bytes(4096)))
            session.osd(cdb, WRITE, length=4096, serial=2)
            with recorded(session) as pdu:
                session.data_out(NO_TAG, 0, bytes(4096))
            session.socket.sendall(pdu[:1000])
            session.socket.close()

    trial.bears(attack, InitialR2T="No", FirstBurstLength="65536")


def held(trial: Trial, daemon: Daemon) -> Attacker:
    """A session with a command, 100, that runs until `gate` is gone."""
    daemon.gate.touch()
    session = trial.session(daemon).ready()
    session.osd(FORMAT, tag=100)
    return session


def test_abort_of_a_queued_command(trial: Trial) -> None:
    def attack(daemon: Daemon) -> None:
        session = held(trial, daemon)
        session.scsi(INQUIRY.ljust(16, b"\0"), FINAL | READ, length=96, tag=101, attribute=ORDERED)
        with recorded(session) as twice:
            session.manage(ABORT_TASK, 101, 102)
            session.manage(ABORT_TASK, 101, 103)
        session.socket.sendall(twice)
        header, data = session.answer()
        assert (header[0] & 0x3F, header[3], data) == (RESPONSE, TASK_ABORTED, b"")
        for tag in (102, 103):
            header, _ = session.answer()
            assert (header[0] & 0x3F, header[19]) == (TMF_RESPONSE, tag)
        daemon.gate.unlink()
        header, _ = session.answer()
        assert (header[3], header[19]) == (GOOD, 100)

    trial.bears(attack)


def test_loss_of_queued_commands(trial: Trial) -> None:
    """Nothing is malformed: ORDERED commands wait, and their connection ends."""

    def attack(daemon: Daemon) -> None:
        session = held(trial, daemon)
        for tag in range(101, 110):
            session.scsi(TEST_UNIT_READY, tag=tag, attribute=ORDERED)
        taken(session)
        session.socket.close()
        daemon.gate.unlink()
        until(lambda: daemon.process.poll() is not None or not daemon.connected())

    trial.bears(attack)


def test_two_requests_for_one_command(trial: Trial) -> None:
    """Both are answered; a stock daemon forgets one, and keeps the session for good."""
    daemon = trial.daemon()
    session = held(trial, daemon)
    session.socket.settimeout(5 if trial.hardened else 2)
    for tag in (101, 102):
        session.manage(ABORT_TASK, 100, tag)
    answered: list[tuple[int, int]] = []
    with contextlib.suppress(TimeoutError):
        while len(answered) < 3:
            header, _ = session.answer()
            answered.append((header[0] & 0x3F, header[19]))
    trial.judge(len(answered) < 3)
    session.socket.close()
    if trial.hardened:
        assert set(answered) == {(RESPONSE, 100), (TMF_RESPONSE, 101), (TMF_RESPONSE, 102)}
        until(lambda: not daemon.connected())


SECRET = b"SECRET 4711 " * 5460
STALE: dict[str, Callable[[Attacker, int], None]] = {
    "TEST UNIT READY": lambda s, size: s.ready().scsi(TEST_UNIT_READY, FINAL | READ, length=size),
    "unit attention": lambda s, size: s.osd(LIST, FINAL | READ, length=size),
    "wrong LUN": lambda s, size: s.scsi(TEST_UNIT_READY, FINAL | READ, length=size, lun=5),
    "NACA": lambda s, size: s.osd(LIST[:1] + b"\x04" + LIST[2:], FINAL | READ, length=size),
}


@pytest.mark.parametrize("name", STALE)
def test_stale_data(trial: Trial, name: str) -> None:
    """What one session wrote, another must not read from a buffer that nobody filled."""
    daemon = trial.daemon(MaxRecvDataSegmentLength="65536", FirstBurstLength="65536")
    seen = False
    for size in (65536, 65536, 61440, 49152, 32768, 16384, 8192):  # which block it gets is chance
        victim = trial.session(daemon, ImmediateData="Yes").ready()
        thief = trial.session(daemon)
        write_of(len(SECRET), victim, data=SECRET)
        victim.answer()
        STALE[name](thief, size)
        header, data = thief.answer()
        seen = seen or b"SECRET" in data
        assert header[0] & 0x3F in (DATA_IN, RESPONSE)
    trial.judge(seen)


def test_names_of_targets_before_login(trial: Trial) -> None:
    daemon = trial.daemon()
    session = Attacker(daemon)  # nobody logs in
    fields = bytes(8) + struct.pack(">IIII", 1, NO_TAG, 0, 1)
    session.send(IMMEDIATE | TEXT, FINAL, fields, data=b"SendTargets=All\0")
    try:
        told = b"iqn" in session.answer()[1]
    except ConnectionError:
        told = False
    session.socket.close()
    trial.judge(told)


def test_joining_a_session(trial: Trial) -> None:
    """MaxConnections is 1: nobody sends commands as the session's own who knows its name and number."""
    daemon = trial.daemon()
    keys = {"InitiatorName": "iqn.2026-11.org.iosd:raw", "AuthMethod": "None"}
    number, status = 0, 0
    for _ in range(2):
        session = Attacker(daemon)
        trial.stack.callback(session.socket.close)
        names = {**keys, "TargetName": session.address.target}
        text = b"".join(f"{key}={value}\0".encode() for key, value in names.items())
        fields = b"\x80rawid" + struct.pack(">HI", number, 1)
        for flags, data in ((0x81, text), (0x87, b""), (0x87, b""), (0x87, b"")):
            session.send(IMMEDIATE | LOGIN, flags, fields, data=data)
            header, _ = session.answer()
            status = int.from_bytes(header[36:38], "big")
            if status or header[1] == 0x87:
                break
        number = number or int.from_bytes(header[14:16], "big")
        assert number, "of the session that there is"
    trial.judge(status == 0)
    if trial.hardened:
        assert status == 0x208
