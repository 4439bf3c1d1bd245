# SPDX-License-Identifier: GPL-2.0-or-later
"""Attacks that crash or stall a stock tgtd, or that it lets pass: one test for each patch of
target/tgt-patches. The hardened daemon must survive each. The distribution's must not, because
otherwise the patch is not needed.

Here: one PDU or command, ill-formed or longer than it may be.  Sessions: test_hardened_sessions.py.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Callable

import pytest

import pyosd
from pyosd import requests as rq
from tests.e2e.raw_iscsi import FINAL, READ, WRITE
from tests.e2e.trial import (
    CHECK_CONDITION,
    FORMAT,
    GOOD,
    INQUIRY,
    INVALID_FIELD,
    LIST,
    NOT_SUPPORTED,
    OUT_OF_RESOURCES,
    PROTOCOL_ERROR,
    REPORT_LUNS,
    Trial,
    cdb_of,
    recorded,
    write_of,
)
from tests.tgtd import (
    ABORT_TASK,
    DATA_IN,
    IMMEDIATE,
    NO_TAG,
    NOP_IN,
    RESPONSE,
    TEST_UNIT_READY,
    Attacker,
    Daemon,
    ahs_cdb,
    ahs_length,
)

pytestmark = pytest.mark.tgtd


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
    trial.offends(session)
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
    session = trial.session(daemon)
    trial.offends(session)
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
    """Out of the buffer: written there, or spun on.  With a wrong tag: accepted nevertheless."""

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
        session.data_out(ttt, 0, b"A" * 512, number=1)
    trial.judge(session.outcome() == f"{RESPONSE:#x}")


def numbered(trial: Trial, *numbers: int) -> str | int:
    """The outcome of a write of two Data-Out PDUs with these DataSN, in answer to one R2T."""
    session = trial.session(trial.daemon()).ready()
    write_of(1024, session)
    ttt, _ = session.r2t()
    with contextlib.suppress(OSError):
        for at, number in enumerate(numbers):
            session.data_out(ttt, 512 * at, b"A" * 512, final=at == 1, number=number)
    return session.outcome()


def test_data_sn_in_order(trial: Trial) -> None:
    assert numbered(trial, 0, 1) == f"{RESPONSE:#x}"


@pytest.mark.parametrize("numbers", [(1, 2), (0, 0), (0, 2), (0xFFFF_FFFF, 0)], ids=str)
def test_data_sn(trial: Trial, numbers: tuple[int, int]) -> None:
    """A Data-Out was lost or repeated, and the command was executed nevertheless."""
    trial.judge(numbered(trial, *numbers) != PROTOCOL_ERROR)


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
    trial.offends(session)
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
    trial.offends(session)
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
        if unasked == 1024:
            trial.offends(session)
        outcomes.append(session.outcome())
    assert outcomes[0] == "0x31", "an R2T for the rest"
    trial.judge(outcomes[1] != PROTOCOL_ERROR)


LARGE = {
    "MaxRecvDataSegmentLength": "262144",
    "FirstBurstLength": "262144",
    "InitialR2T": "No",
}


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


def test_ping_without_answer(trial: Trial) -> None:
    """Answers behind it in the queue are sent, if they come in one segment."""
    session = trial.session(trial.daemon()).ready()
    with recorded(session) as pdus:
        for _ in range(3):
            session.ping(NO_TAG)
        session.scsi(TEST_UNIT_READY)
    trial.offends(session)
    session.socket.sendall(pdus)
    trial.judge(session.outcome() != f"{RESPONSE:#x}")


def test_answer_to_a_ping_fits(trial: Trial) -> None:
    daemon = trial.daemon(MaxRecvDataSegmentLength="8192")
    session = trial.session(daemon, MaxRecvDataSegmentLength="512").ready()
    session.ping(9, data=bytes(4001))
    header, data = session.answer()
    assert header[0] & 0x3F == NOP_IN
    trial.judge(len(data) > 512)
