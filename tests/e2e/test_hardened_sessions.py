# SPDX-License-Identifier: GPL-2.0-or-later
"""Attacks that crash or stall a stock tgtd, or that it lets pass: one test for each patch of
target/tgt-patches. The hardened daemon must survive each. The distribution's must not, because
otherwise the patch is not needed.

Here: sessions: numbers of commands, queues, who does not read, how they begin and end.  Single
PDUs: test_hardened_pdus.py.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable

import pytest

import pyosd
from pyosd import requests as rq
from tests.e2e.raw_iscsi import FINAL, READ, WRITE
from tests.e2e.trial import (
    FORMAT,
    GOOD,
    INQUIRY,
    LIST,
    SHORT_S,
    TASK_ABORTED,
    Trial,
    cdb_of,
    held,
    recorded,
    taken,
    write_of,
)
from tests.tgtd import (
    ABORT_TASK,
    ANSWER_S,
    DATA_IN,
    HEAD_OF_QUEUE,
    IMMEDIATE,
    LOGICAL_UNIT_RESET,
    LOGIN,
    NO_TAG,
    ORDERED,
    RESPONSE,
    TEST_UNIT_READY,
    TEXT,
    TMF_RESPONSE,
    Attacker,
    Daemon,
)
from tests.waiting import until

pytestmark = pytest.mark.tgtd

SLOW_READER_MENDED = (1, 0, 89)


def test_command_window(trial: Trial) -> None:
    """Of 40 commands that nobody can do yet, those behind MaxCmdSN are not taken."""
    daemon = trial.daemon(MaxQueueCmd="8")
    daemon.gate.touch()
    session = trial.session(daemon).ready()
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
            first, last = struct.unpack(">II", header[28:36])
            if first == 1 + answered:  # all that were taken
                session.socket.settimeout(SHORT_S)
    trial.judge(answered == 40)
    if trial.hardened:
        assert 8 <= answered <= 9
        assert first == 1 + answered and last >= first, "and there is room again"


@pytest.mark.parametrize("serial", [0, 900])
def test_command_number_outside_of_the_window(trial: Trial, serial: int) -> None:
    """Ignored, silently (RFC 7143, 4.2.2.1)."""
    session = trial.session(trial.daemon()).ready()
    session.scsi(TEST_UNIT_READY, serial=serial, tag=5)
    session.scsi(TEST_UNIT_READY, tag=6)
    if serial == 0:
        trial.offends(session)
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
    trial.offends(session)
    tags = set()
    with contextlib.suppress(OSError):
        for _ in range(3):
            tags.add(session.answer()[0][19])
    trial.judge(8 not in tags)


READING = (16 << 20) - 1024


def test_slow_reader(trial: Trial) -> None:
    """Nobody else is served while one does not read what it asked for."""
    daemon = trial.daemon()
    slow = trial.session(daemon, MaxRecvDataSegmentLength=str(READING)).ready()
    for _ in range(4):
        slow.scsi(TEST_UNIT_READY, FINAL | READ, length=READING)
    slow.socket.recv(1, socket.MSG_PEEK)  # the first answer has begun
    mended = trial.hardened or trial.version >= SLOW_READER_MENDED
    trial.judge(not daemon.serves(ANSWER_S if mended else 1.5), SLOW_READER_MENDED)
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


@pytest.mark.parametrize("attribute", [ORDERED, HEAD_OF_QUEUE])
def test_order_of_another_initiator(trial: Trial, attribute: int) -> None:
    """A command that takes long, and demands that nobody passes it, holds up its own session alone."""
    daemon = trial.daemon()
    daemon.gate.touch()
    session = trial.session(daemon).ready()
    session.osd(FORMAT, tag=100, attribute=attribute)
    session.scsi(TEST_UNIT_READY, tag=101)
    taken(session)
    trial.judge(not daemon.serves(ANSWER_S if trial.hardened else 1.5))
    if trial.hardened:
        daemon.gate.unlink()
        assert [session.answer()[0][19] for _ in range(2)] == [100, 101]


def test_reset_by_another_initiator(trial: Trial) -> None:
    """LOGICAL UNIT RESET ends no command of others, who hear nothing of it."""
    daemon = trial.daemon()
    session = held(trial, daemon)
    other = trial.session(daemon).ready()
    other.manage(LOGICAL_UNIT_RESET, NO_TAG, 101)
    header, _ = other.answer()
    assert (header[0] & 0x3F, header[2], header[19]) == (TMF_RESPONSE, 0, 101)
    daemon.gate.unlink()
    statuses = [session.answer()[0][3]]
    session.scsi(TEST_UNIT_READY, tag=102)
    statuses.append(session.answer()[0][3])
    trial.judge(statuses != [GOOD, GOOD])


def test_flood_of_pings(trial: Trial) -> None:
    """From an initiator that does not read, the daemon does not read either. Its memory is
    bounded."""
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
    trial.offends(session)
    with recorded(session) as twice:  # the first one must not have been answered yet
        for tag in (101, 102):
            session.manage(ABORT_TASK, 100, tag)
    session.socket.sendall(twice)
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
    """A session must not read bytes of another session from a buffer that nobody filled."""
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
