# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls of functions without a record when the target ends, or is killed, below the transport."""

from __future__ import annotations

import pytest

from pyosd import requests as rq
from pyosd.commands.execute import CALL_ATTRIBUTES
from pyosd.errors import SessionLost
from pyosd.functions import Function, Functions
from pyosd.types import ROOT, AttributeId, AttributeValue, ObjectRef
from pyosd.wire.attributes import Information, Page
from pyosd.wire.cdb import AttributeLists, Request, encode
from pyosd.wire.exec_params import (
    ArgsEncoding,
    CallRecord,
    ExecParams,
    FunctionCall,
    ResultForm,
)
from pyosd.wire.reply import Reply, decode_call, decode_reply
from tests.jobs.conftest import DEADLINE_S, Target
from tests.waiting import until

FOREVER = b"import time\ndef main(args):\n    while True: time.sleep(1)\n"
TARGET_RESTARTED = 405


QUICK = b"def main(args):\n    return args\n"
ROOT_NAME = AttributeId(Page.ROOT_INFORMATION, Information.NAME)
LEAST_METHOD = AttributeId(Page.ROOT_SECURITY, 1)
OWN = AttributeId(Page.APPLICATION, 1)
EXEC_PARAMETERS = 48


def call_of(
    function: Function,
    zone: ObjectRef,
    attributes: AttributeLists = CALL_ATTRIBUTES,
    record: CallRecord = CallRecord.IF_NEEDED,
) -> Request:
    ids = function.id.partition_id, function.id.object_id
    named = FunctionCall(*ids, "", ArgsEncoding.JSON, record)
    params = ExecParams(function=named, wait=DEADLINE_S)
    return rq.execute_function(zone, b"0", params, attributes=attributes)


@pytest.fixture
def function(target: Target) -> Function:
    """Only a call makes the pool busy: the sandbox that looked at the code is free again."""
    found = Functions(target.commands).put(FOREVER, name="forever")
    until(lambda: not any(pool.busy for pool in target.commands.pools()))
    return found


def test_a_target_that_closes_ends_its_calls(target: Target, function: Function) -> None:
    """They have failed.  A job would go on."""
    request = call_of(function, target.partition)
    command, layout = encode(request)
    pending = target.transport.submit(command)
    until(lambda: any(pool.busy for pool in target.commands.pools()))
    target.transport.close()
    reply = decode_call(decode_reply(request, layout, pending.result(DEADLINE_S)))
    assert reply.form is ResultForm.REPORT and not reply.still_running
    assert reply.error is not None and reply.error.sense is not None
    assert reply.error.sense.command_information == TARGET_RESTARTED
    target.start()


def test_nothing_is_left_of_a_call_by_a_target_that_is_killed(
    target: Target, function: Function
) -> None:
    before = target.commands.list_objects(target.partition.partition_id)
    pending = target.transport.submit(encode(call_of(function, target.partition))[0])
    until(lambda: any(pool.busy for pool in target.commands.pools()))
    target.kill()
    with pytest.raises(SessionLost):
        pending.result(DEADLINE_S)
    target.start()
    assert target.commands.list_objects(target.partition.partition_id) == before
    assert target.commands.list_collections(target.partition.partition_id) == []
    assert Functions(target.commands).show("forever").active


def answer_of(target: Target, request: Request) -> Reply:
    command, layout = encode(request)
    return decode_reply(request, layout, target.transport.submit(command).result(DEADLINE_S))


@pytest.mark.parametrize("record", [CallRecord.IF_NEEDED, CallRecord.NEVER])
def test_attributes_along_are_not_the_roots(target: Target, record: CallRecord) -> None:
    """They are those of the surrogate, so a call that may have none is refused."""
    quick = Functions(target.commands).put(QUICK, name="quick")
    before = target.commands.get_attributes(ROOT, [ROOT_NAME])
    taken = AttributeLists(set=(AttributeValue(*ROOT_NAME, b"taken"),))
    seen = AttributeLists((LEAST_METHOD,), (), 512)
    for lists in (taken, seen):
        reply = answer_of(target, call_of(quick, target.partition, lists, record))
        found = reply.retrieved.find(LEAST_METHOD)
        assert found is None or not found.value
        if record is CallRecord.NEVER:
            assert reply.error is not None and reply.error.field_pointer == EXEC_PARAMETERS
    assert target.commands.get_attributes(ROOT, [ROOT_NAME]) == before


def test_attributes_along_are_the_surrogates(target: Target) -> None:
    quick = Functions(target.commands).put(QUICK, name="quick")
    lists = AttributeLists((*CALL_ATTRIBUTES.get, OWN), (AttributeValue(*OWN, b"mine"),), 512)
    reply = answer_of(target, call_of(quick, target.partition, lists))
    job = decode_call(reply).job
    assert job is not None and reply.attributes[-1].value == b"mine"
    assert target.commands.get_attributes(job, [OWN]) == (AttributeValue(*OWN, b"mine"),)
