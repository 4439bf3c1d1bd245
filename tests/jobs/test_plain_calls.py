# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls of functions without a record when the target ends, or is killed, below the transport."""

from __future__ import annotations

import pytest

from pyosd import requests as rq
from pyosd.commands.execute import CALL_ATTRIBUTES
from pyosd.errors import SessionLost
from pyosd.functions import Function, Functions
from pyosd.types import ObjectRef
from pyosd.wire.cdb import Request, encode
from pyosd.wire.exec_params import ArgsEncoding, ExecParams, FunctionCall, ResultForm
from pyosd.wire.reply import decode_call, decode_reply
from tests.jobs.conftest import DEADLINE_S, Target
from tests.waiting import until

FOREVER = b"import time\ndef main(args):\n    while True: time.sleep(1)\n"
TARGET_RESTARTED = 405


def call_of(function: Function, zone: ObjectRef) -> Request:
    named = FunctionCall(function.id.partition_id, function.id.object_id, "", ArgsEncoding.JSON)
    return rq.execute_function(
        zone,
        b"0",
        ExecParams(function=named, wait=DEADLINE_S),
        attributes=CALL_ATTRIBUTES,
    )


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
