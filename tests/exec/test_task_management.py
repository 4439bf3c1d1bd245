# SPDX-License-Identifier: GPL-2.0-or-later
"""PERFORM TASK MANAGEMENT FUNCTION against commands that wait (osd2-wire 3.18): by tag and by set,
through tgtd; tests/jobs has the same below it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

import pyosd
from pyosd import requests as rq
from pyosd.types import ObjectRef, TaskManagement
from pyosd.wire.cdb import Request, encode
from pyosd.wire.reply import PendingReply
from tests.command.test_perform import COMPLETE, SUCCEEDED, manage
from tests.e2e.raw_iscsi import FINAL, RawSession
from tests.exec.conftest import WAIT_S, end_jobs
from tests.expect import OK, TASK_ABORTED, check
from tests.serving import Serving

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

FOREVER = b"import time\nwhile True: time.sleep(60)\n"
TAG = 0x1234_5678


def send(raw: RawSession, request: Request, tag: int, serial: int) -> None:
    """One command, its Data-Out in answer to an R2T."""
    command, _ = encode(request)
    out = bytes(command.data_out)
    raw.socket.sendall(
        raw.command(
            command.cdb,
            data_out=len(out),
            data_in=command.data_in_length,
            tag=tag,
            serial=serial,
        )
    )
    if not out:
        return
    header, _ = raw.receive()
    assert header[0] & 0x3F == 0x31, "an R2T"
    raw.socket.sendall(raw.data(tag, int.from_bytes(header[20:24], "big"), 0, out, True))


def answer(raw: RawSession) -> tuple[int, int | None, bytes]:
    """Tag, status if this PDU has one, and data."""
    header, data = raw.receive()
    opcode, tag = header[0] & 0x3F, int.from_bytes(header[16:20], "big")
    assert opcode in (0x21, 0x25), f"opcode {opcode:#x}"
    has_status = opcode == 0x21 or header[1] & 0x01
    assert header[1] & FINAL or opcode == 0x25
    return tag, header[3] if has_status else None, data


def ask(raw: RawSession, function: int, serial: int) -> tuple[int, dict[int, int]]:
    """The response to a function on TAG, and what other commands were answered meanwhile."""
    send(raw, rq.perform_task_management(function, TAG), serial, serial)
    others: dict[int, int] = {}
    data = b""
    while True:
        tag, status, piece = answer(raw)
        if tag != serial:
            assert status is not None
            others[tag] = status
            continue
        data += piece
        if status is not None:
            assert (status, data[:4]) == (0, bytes([0, 6, 0, 0]))
            return data[4], others


def test_abort_by_initiator_task_tag(
    serving: Serving, target: pyosd.Target, zone: ObjectRef
) -> None:
    """The tag is the one of the iSCSI header; the answer comes when the command has ended."""
    with RawSession(serving.url) as raw:
        send(raw, rq.get_attributes(zone), 0, 0)
        assert answer(raw)[:2] == (0, 2), "a new nexus begins with a unit attention"
        send(raw, rq.execute(zone, FOREVER, synchronous=True), TAG, 1)
        assert ask(raw, TaskManagement.QUERY_TASK, 2) == (SUCCEEDED, {})
        response, others = ask(raw, TaskManagement.ABORT_TASK, 3)
        while TAG not in others:
            tag, status, _ = answer(raw)
            assert status is not None
            others[tag] = status
        assert (response, others) == (COMPLETE, {TAG: TASK_ABORTED})
        assert ask(raw, TaskManagement.QUERY_TASK, 4) == (COMPLETE, {})
        assert ask(raw, TaskManagement.ABORT_TASK, 5) == (COMPLETE, {})
    end_jobs(target, zone.partition_id)


@contextmanager
def waiting(target: pyosd.Target, zone: ObjectRef, after: int = 0) -> Iterator[PendingReply]:
    """An EXEC that will not end by itself, once its job is there."""
    pending = target.submit(rq.execute(zone, FOREVER, synchronous=True))
    while len([each for each in target.jobs(zone.partition_id) if not each.done]) == after:
        pass
    yield pending
    end_jobs(target, zone.partition_id)


def test_another_nexus_is_not_touched(
    serving: Serving, target: pyosd.Target, zone: ObjectRef
) -> None:
    """ABORT and QUERY TASK SET are about the asker's nexus; a cleared or reset unit is all."""
    with serving.connect() as other, waiting(target, zone) as pending:
        assert manage(target, TaskManagement.QUERY_TASK_SET) == SUCCEEDED
        assert manage(other, TaskManagement.QUERY_TASK_SET) == COMPLETE
        assert manage(other, TaskManagement.ABORT_TASK_SET) == COMPLETE
        assert manage(target, TaskManagement.QUERY_TASK_SET) == SUCCEEDED
        assert manage(target, TaskManagement.ABORT_TASK_SET) == COMPLETE
        assert pending.reply(WAIT_S).response.status == TASK_ABORTED


@pytest.mark.parametrize(
    "function", [TaskManagement.CLEAR_TASK_SET, TaskManagement.LOGICAL_UNIT_RESET]
)
def test_all_commands_of_the_unit(
    serving: Serving, target: pyosd.Target, zone: ObjectRef, function: int
) -> None:
    with serving.connect() as other, waiting(target, zone) as pending:
        assert manage(other, function) == COMPLETE
        assert pending.reply(WAIT_S).response.status == TASK_ABORTED
    check(target.reply(rq.get_attributes(zone)), OK)
