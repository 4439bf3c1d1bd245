# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions: code that lives in the store, is activated, and is called by name (docs/functions.md)."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import pyosd
from pyosd import requests
from pyosd.errors import Invalid, NotFound, OSDError
from pyosd.types import AttributeValue, ObjectRef, PartitionId, TaskManagement, ref
from pyosd.wire.attributes import Page
from pyosd.wire.exec_params import (
    ArgsEncoding,
    CallRecord,
    ExecFlag,
    ExecParams,
    FunctionCall,
    Limits,
    ResultForm,
)
from pyosd.wire.reply import CallReply
from tests.command.test_perform import COMPLETE, manage
from tests.exec.conftest import WAIT_S, remove_functions
from tests.expect import TASK_ABORTED
from tests.serving import Serving
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

FUNCTIONS = PartitionId(0x11)
"""The function partition of these tests."""
PAGE = Page.FUNCTION
STATE, ENGINE, ACCESS, ALIAS, METHODS, WALL, SHA256 = 1, 2, 5, 6, 8, 10, 14
DESCRIPTION, POOL, MEMORY, USERS = 7, 9, 12, 0x21
NONE, READ, WRITE = b"\0", b"\1", b"\2"
ROOM = 1 << 16
INACTIVE, NO_ENGINE = 0x8017, 0x8018
EXCEPTION, WALL_LIMIT, RESULT_LIMIT, ZONE_REMOVED = 201, 301, 308, 605

COUNT = """
import osd

def main(args):
    return {"args": args, "lines": osd.zone.data.read().count(b"\\n")}

def twice(args):
    return args * 2

def scribble(args):
    osd.zone.data.write(args)
"""


def be(number: int) -> bytes:
    return number.to_bytes(8, "big")


@pytest.fixture
def functions(target: pyosd.Target) -> Iterator[ObjectRef]:
    """A function partition, with everything in it removed at the end."""
    partition = target.create_partition(FUNCTIONS)
    assert partition == FUNCTIONS
    yield ref(partition)
    remove_functions(target, partition)


def put(target: pyosd.Target, code: str, **manifest: bytes) -> ObjectRef:
    """A function object, not active yet."""
    obj = target.create(FUNCTIONS)
    target.write(obj, 0, code.encode())
    numbers = {"engine": ENGINE, "access": ACCESS, "alias": ALIAS, "methods": METHODS, "wall": WALL}
    values = [AttributeValue(PAGE, numbers[name], value) for name, value in manifest.items()]
    target.set_attributes(obj, values)
    return obj


def active(target: pyosd.Target, code: str = COUNT, **manifest: bytes) -> ObjectRef:
    obj = put(target, code, **manifest)
    target.activate_function(obj)
    return obj


def call(
    target: pyosd.Target,
    zone: ObjectRef,
    function: int | str,
    args: object = None,
    method: str = "",
    limits: Limits = Limits(),  # noqa: B008 -- frozen
    record: CallRecord = CallRecord.IF_NEEDED,
    room: int = ROOM,
    **params: Any,
) -> CallReply:
    if isinstance(args, bytes):
        encoding, data = ArgsEncoding.BYTES, args
    else:
        encoding, data = ArgsEncoding.JSON, json.dumps(args).encode()
    named = FunctionCall(FUNCTIONS, function, method, encoding, record)
    options = ExecParams(function=named, limits=limits, **params)
    return target.call_function(zone, data, options, result_allocation_length=room)


def result(target: pyosd.Target, reply: CallReply) -> object:
    """What the call returned; a record says the same."""
    assert reply.error is None, reply.error
    assert len(reply.result) == reply.length
    value = json.loads(reply.result) if reply.form is ResultForm.JSON else reply.result
    if reply.job is not None:
        assert target.job(reply.job).result() == value
    return value


def reason(reply: CallReply) -> int:
    assert reply.error is not None and reply.error.sense is not None
    return reply.error.sense.command_information or 0


def refused(target: pyosd.Target, zone: ObjectRef, function: int | str, code: int) -> None:
    with pytest.raises(OSDError) as caught:
        call(target, zone, function)
    sense = caught.value.sense
    assert sense is not None and (sense.asc << 8 | sense.ascq) == code


@pytest.fixture
def lines(target: pyosd.Target, zone: ObjectRef) -> ObjectRef:
    obj = target.create(zone.partition_id)
    target.write(obj, 0, b"one\ntwo\nthree\n")
    return obj


def attribute(target: pyosd.Target, obj: ObjectRef, number: int) -> bytes:
    return bytes(target.get_attribute(obj, PAGE, number))


# ---- life ----


def test_a_function_is_stored_then_active(
    target: pyosd.Target, functions: ObjectRef, lines: ObjectRef
) -> None:
    obj = put(target, COUNT, alias=b"count", access=READ)
    assert attribute(target, obj, STATE) == b"\0"
    refused(target, lines, obj.object_id, INACTIVE)
    target.activate_function(obj)
    assert attribute(target, obj, STATE) == b"\1"
    digest = hashlib.sha256(COUNT.encode()).digest()
    assert attribute(target, obj, SHA256) == digest
    for name in (obj.object_id, "count", digest.hex(), digest.hex()[:8]):
        answer = result(target, call(target, lines, name, [1, "two"]))
        assert answer == {"args": [1, "two"], "lines": 3}
    target.activate_function(obj, deactivate=True)
    assert attribute(target, obj, STATE) == b"\0"
    refused(target, lines, obj.object_id, INACTIVE)


def test_other_code_is_not_run_before_it_is_activated(
    target: pyosd.Target, functions: ObjectRef, lines: ObjectRef
) -> None:
    obj = active(target, "def main(args): return 1\n")
    assert result(target, call(target, lines, obj.object_id)) == 1
    target.write(obj, 0, b"def main(args): return 2\n")
    refused(target, lines, obj.object_id, INACTIVE)
    target.activate_function(obj)
    assert result(target, call(target, lines, obj.object_id)) == 2


def test_the_manifest_of_an_active_function_is_fixed(
    target: pyosd.Target, functions: ObjectRef
) -> None:
    obj = active(target, access=NONE)
    with pytest.raises(OSDError):
        target.set_attributes(obj, [AttributeValue(PAGE, ACCESS, WRITE)])
    target.activate_function(obj, deactivate=True)
    target.set_attributes(obj, [AttributeValue(PAGE, ACCESS, WRITE)])


@pytest.mark.parametrize(
    ("number", "value"),
    [
        (STATE, b"\1"),
        (SHA256, bytes(32)),
        (ACCESS, b"\3"),
        (ACCESS, b"\0\0"),
        (ALIAS, b"with space"),
        (ALIAS, b"deadbeef"),
        (ALIAS, b"x" * 65),
        (METHODS, b"main  twice"),
        (METHODS, b" main"),
        (WALL, bytes(8)),
        (WALL, b"\1"),
        (99, b"x"),
    ],
)
def test_the_manifest_takes_only_what_makes_sense(
    target: pyosd.Target, functions: ObjectRef, number: int, value: bytes
) -> None:
    obj = put(target, COUNT)
    with pytest.raises(OSDError):
        target.set_attributes(obj, [AttributeValue(PAGE, number, value)])


def test_ordinary_objects_have_no_manifest(target: pyosd.Target, lines: ObjectRef) -> None:
    with pytest.raises(OSDError):
        target.set_attributes(lines, [AttributeValue(PAGE, ACCESS, READ)])
    assert target.get_attribute(lines, PAGE, STATE) == b""
    with pytest.raises(NotFound):
        target.activate_function(lines)


def test_what_cannot_be_activated(target: pyosd.Target, functions: ObjectRef) -> None:
    with pytest.raises(OSDError):
        target.activate_function(put(target, ""))
    with pytest.raises(OSDError) as caught:
        target.activate_function(put(target, COUNT, engine=b"cobol"))
    assert caught.value.sense is not None
    assert (caught.value.sense.asc << 8 | caught.value.sense.ascq) == NO_ENGINE
    active(target, alias=b"count")
    other = put(target, COUNT, alias=b"count")
    with pytest.raises(OSDError):
        target.activate_function(other)
    assert attribute(target, other, STATE) == b"\0"


def test_a_new_version_replaces_the_old_one_at_once(
    serving: Serving, target: pyosd.Target, functions: ObjectRef, zone: ObjectRef
) -> None:
    """A client that calls all the time finds one of the two each time, and then the new one."""
    versions = [f"def main(args): return {number}\n" for number in range(10)]
    first = active(target, versions[0], alias=b"count")
    stop = threading.Event()

    def caller() -> list[object]:
        with serving.connect() as client:
            found = [result(client, call(client, zone, "count"))]
            while not stop.is_set():
                found.append(result(client, call(client, zone, "count")))
            return found

    with ThreadPoolExecutor(2) as pool:
        callers = [pool.submit(caller) for _ in range(2)]
        try:
            for code in versions[1:]:
                target.activate_function(put(target, code, alias=b"count"), replace=True)
                assert result(target, call(target, zone, "count")) == int(code.split()[-1])
        finally:
            stop.set()
        for each in callers:
            found = each.result(WAIT_S)
            assert found == sorted(found)  # type: ignore[type-var]
    assert attribute(target, first, STATE) == b"\0"
    target.activate_function(first, replace=True)
    assert result(target, call(target, zone, "count")) == 0


def test_a_removed_function_is_gone(
    target: pyosd.Target, functions: ObjectRef, lines: ObjectRef
) -> None:
    obj = active(target, alias=b"count")
    target.remove(obj)
    for name in (obj.object_id, "count"):
        with pytest.raises(NotFound):
            call(target, lines, name)
    again = target.create(FUNCTIONS, obj.object_id)
    target.write(again, 0, COUNT.encode())
    refused(target, lines, again.object_id, INACTIVE)
    active(target, alias=b"count")


def test_code_that_was_written_again_is_checked_again(
    target: pyosd.Target, functions: ObjectRef, lines: ObjectRef
) -> None:
    """The target keeps the code of the last call.  The same bytes are the same function, others are not."""
    code = b"def main(args): return 1\n"
    obj = active(target, code.decode())
    for _ in range(2):
        assert result(target, call(target, lines, obj.object_id)) == 1
    target.write(obj, 0, code)
    assert result(target, call(target, lines, obj.object_id)) == 1
    target.append(obj, b"#")
    refused(target, lines, obj.object_id, INACTIVE)
    target.set_attributes(obj, [AttributeValue(Page.USER_INFORMATION, 0x82, be(len(code)))])
    assert result(target, call(target, lines, obj.object_id)) == 1


def test_more_code_than_the_target_keeps(
    target: pyosd.Target, functions: ObjectRef, lines: ObjectRef
) -> None:
    """Six functions of 15 MiB, where memory has room for four."""
    padding = "#" * (15 << 20)
    found = [active(target, f"def main(args): return {n}\n{padding}") for n in range(6)]
    for _ in range(2):
        for n, each in enumerate(found):
            assert result(target, call(target, lines, each.object_id)) == n


# ---- calls ----


def test_methods(target: pyosd.Target, functions: ObjectRef, lines: ObjectRef) -> None:
    obj = active(target, access=READ, methods=b"twice main")
    assert result(target, call(target, lines, obj.object_id, "ab")) == "abab"
    assert result(target, call(target, lines, obj.object_id, b"ab", "twice")) == b"abab"
    assert result(target, call(target, lines, obj.object_id, 0, "main")) == {"args": 0, "lines": 3}
    with pytest.raises(OSDError):
        call(target, lines, obj.object_id, 0, "scribble")


def test_the_access_class_is_enforced(
    target: pyosd.Target, functions: ObjectRef, lines: ObjectRef
) -> None:
    names = b"main scribble"
    nothing = active(target, access=NONE, methods=names).object_id
    reads = active(target, access=READ, methods=names).object_id
    writes = active(target, access=WRITE, methods=names).object_id
    for function, method in ((nothing, "main"), (nothing, "scribble"), (reads, "scribble")):
        for record in (CallRecord.NEVER, CallRecord.ALWAYS):
            reply = call(target, lines, function, b"ONE", method, record=record)
            assert reason(reply) == EXCEPTION
            assert (reply.job is None) == (record is CallRecord.NEVER)
            report = target.job(reply.job).traceback() if reply.job else reply.result.decode()
            assert "access class" in report
    assert bytes(target.read(lines, 0, 3)) == b"one"
    assert result(target, call(target, lines, reads, 0, "main")) == {"args": 0, "lines": 3}
    assert call(target, lines, writes, b"ONE", "scribble").error is None
    assert bytes(target.read(lines, 0, 3)) == b"ONE"


def test_limits_of_the_manifest_bound_those_of_the_call(
    target: pyosd.Target, functions: ObjectRef, lines: ObjectRef
) -> None:
    forever = active(
        target,
        "import time\ndef main(args):\n    time.sleep(600)\n",  # which uses up no other limit
        wall=(300_000).to_bytes(8, "big"),
    )
    for limits in (Limits(), Limits(wall=30)):
        assert reason(call(target, lines, forever.object_id, limits=limits)) == WALL_LIMIT
        reply = call(target, lines, forever.object_id, limits=limits, record=CallRecord.ALWAYS)
        assert reply.job is not None
        status = target.job(reply.job).wait(WAIT_S)
        assert status.reason == 301 and status.limits.wall == pytest.approx(0.3)


def test_an_asynchronous_call_is_a_job(
    target: pyosd.Target, functions: ObjectRef, lines: ObjectRef
) -> None:
    obj = active(target, access=READ, alias=b"count")
    params = ExecParams(function=FunctionCall(FUNCTIONS, "count", "", ArgsEncoding.JSON))
    reply = target.call_function(lines, b"5", params, synchronous=False)
    assert reply.job is not None
    job = target.job(reply.job)
    assert job.wait(WAIT_S).name == "count"
    assert job.result() == {"args": 5, "lines": 3}
    target.remove(obj)


@pytest.mark.parametrize(
    "params",
    [
        ExecParams(),
        ExecParams(function=FunctionCall(FUNCTIONS, "count"), engine="python"),
        ExecParams(function=FunctionCall(FUNCTIONS, "count"), args_encoding=ArgsEncoding.BYTES),
        ExecParams(function=FunctionCall(FUNCTIONS, "count"), predecessor=ref(0x10000, 0x10000)),
        ExecParams(function=FunctionCall(FUNCTIONS, "x" * 65)),
        ExecParams(function=FunctionCall(FUNCTIONS, "count", "x" * 65)),
        ExecParams(function=FunctionCall(FUNCTIONS, "")),
    ],
)
def test_what_a_call_cannot_say(
    target: pyosd.Target, functions: ObjectRef, lines: ObjectRef, params: ExecParams
) -> None:
    active(target, alias=b"count")
    with pytest.raises(OSDError):
        target.call_function(lines, b"", params)


def test_names_that_nothing_has(
    target: pyosd.Target, functions: ObjectRef, lines: ObjectRef
) -> None:
    active(target, COUNT + "# one\n", alias=b"one")
    for name in ("two", "0" * 8, "0" * 64, 0x99999):
        with pytest.raises(NotFound):
            call(target, lines, name)


def test_exec_takes_no_function(target: pyosd.Target, zone: ObjectRef) -> None:
    params = ExecParams(function=FunctionCall(FUNCTIONS, "count"))
    with pytest.raises(OSDError):
        target.exec_code(zone, b"pass", params)


# ---- calls without a record ----

PLAIN = """
import os, sys, time

def main(args):
    return args

def long(args):
    return b"r" * args

def nothing(args):
    print("seen by nobody")

def fails(args):
    raise ValueError("no such " + args)

def dies(args):
    os._exit(7)

def forever(args):
    while True:
        time.sleep(1)
"""


@pytest.fixture
def plain(target: pyosd.Target, functions: ObjectRef) -> int:
    names = b"main long nothing fails dies forever"
    return active(target, PLAIN, alias=b"plain", methods=names, access=READ).object_id


def test_a_plain_call_leaves_nothing(target: pyosd.Target, zone: ObjectRef, plain: int) -> None:
    for method, args in (("main", [1]), ("fails", "x"), ("nothing", 0)):
        assert call(target, zone, plain, args, method).job is None
    assert target.list_objects(zone.partition_id) == []
    assert target.list_collections(zone.partition_id) == []
    assert call(target, zone, plain, 1, record=CallRecord.ALWAYS).job is not None
    assert len(list(target.jobs(zone.partition_id))) == 1


def test_the_length_is_that_of_the_whole_result(
    target: pyosd.Target, zone: ObjectRef, plain: int
) -> None:
    for record in (CallRecord.NEVER, CallRecord.ALWAYS):
        for length in (0, 1, 60 << 10, (60 << 10) + 1, 1 << 20):
            reply = call(target, zone, plain, length, "long", record=record, room=100)
            assert reply.error is None and reply.length == length
            assert reply.result == b"r" * min(length, 100)
    assert call(target, zone, plain, 0, "nothing").form is ResultForm.NONE


def test_a_longer_result_needs_a_record(target: pyosd.Target, zone: ObjectRef, plain: int) -> None:
    length = (1 << 20) + 1
    assert reason(call(target, zone, plain, length, "long")) == RESULT_LIMIT
    reply = call(target, zone, plain, length, "long", record=CallRecord.ALWAYS)
    assert reply.error is None and reply.length == length


def test_the_answer_says_why_a_plain_call_failed(
    target: pyosd.Target, zone: ObjectRef, plain: int
) -> None:
    reply = call(target, zone, plain, "thing", "fails")
    assert reason(reply) == EXCEPTION and reply.form is ResultForm.REPORT
    assert reply.result.decode().endswith("ValueError: no such thing\n")
    assert call(target, zone, plain, "thing", "fails", room=5).result == reply.result[:5]
    assert reason(call(target, zone, plain, 0, "dies")) != 0
    assert result(target, call(target, zone, plain, 5)) == 5


def test_a_plain_call_ends_with_its_wait(target: pyosd.Target, zone: ObjectRef, plain: int) -> None:
    """The slot is free again: as many calls as there are slots, and then another."""
    for _ in range(3):
        assert reason(call(target, zone, plain, 0, "forever", wait=0.1)) == WALL_LIMIT
    assert result(target, call(target, zone, plain, 5)) == 5


def test_a_plain_call_ends_with_its_client(serving: Serving, plain: int, zone: ObjectRef) -> None:
    named = FunctionCall(FUNCTIONS, plain, "forever", ArgsEncoding.JSON)
    request = requests.execute_function(zone, b"0", ExecParams(function=named, wait=50))
    with serving.connect() as target:
        target.test_unit_ready()  # the first command of a session is sent twice
        calls = [target.submit(request) for _ in range(8)]
        assert manage(target, TaskManagement.ABORT_TASK_SET) == COMPLETE
        assert {each.reply(WAIT_S).response.status for each in calls} == {TASK_ABORTED}
        assert result(target, call(target, zone, plain, 6)) == 6


def test_a_plain_call_ends_with_its_zone(
    serving: Serving, target: pyosd.Target, plain: int
) -> None:
    zone = ref(target.create_partition())
    named = FunctionCall(FUNCTIONS, plain, "forever", ArgsEncoding.JSON)
    request = requests.execute_function(zone, b"0", ExecParams(function=named, wait=50))
    with serving.connect() as other:
        other.test_unit_ready()
        pending = other.submit(request)
        until(lambda: attribute(target, ref(FUNCTIONS, plain), USERS))
        target.remove_partition(zone.partition_id)
        error = pending.reply(WAIT_S).error
    assert error is not None and error.sense is not None
    assert error.sense.command_information == ZONE_REMOVED


@pytest.mark.parametrize(
    "params",
    [
        {"key": b"k"},
        {"tags": {"a": "b"}},
        {"expiry": 60},
        {"flags": ExecFlag.HOLD},
        {"array": (0, 1, 0)},
        {"surrogate": ref(0x10000, 0x20000)},
    ],
    ids=lambda params: next(iter(params)),
)
def test_what_only_a_record_can_give(
    target: pyosd.Target, zone: ObjectRef, plain: int, params: dict[str, Any]
) -> None:
    with pytest.raises(Invalid) as caught:
        call(target, zone, plain, 0, record=CallRecord.NEVER, **params)
    assert caught.value.field_pointer == 48


def test_a_plain_call_cannot_be_asynchronous(
    target: pyosd.Target, zone: ObjectRef, plain: int
) -> None:
    named = FunctionCall(FUNCTIONS, plain, "", ArgsEncoding.JSON, CallRecord.NEVER)
    with pytest.raises(Invalid):
        target.call_function(zone, b"0", ExecParams(function=named), synchronous=False)


def test_a_call_that_may_write_has_a_record(
    target: pyosd.Target, functions: ObjectRef, zone: ObjectRef
) -> None:
    writes = active(target, access=WRITE, methods=b"twice").object_id
    assert call(target, zone, writes, 1).job is not None
    with pytest.raises(Invalid):
        call(target, zone, writes, 1, record=CallRecord.NEVER)


def test_plain_calls_of_a_zone_that_is_not_there(
    target: pyosd.Target, zone: ObjectRef, plain: int
) -> None:
    for missing in (ref(zone.partition_id, 0x7777_7777), ref(0x7777_7777_0000)):
        with pytest.raises(NotFound):
            call(target, missing, plain)


def test_plain_calls_of_many_clients(serving: Serving, plain: int, zone: ObjectRef) -> None:
    """Each gets its own answer."""

    def client(number: int) -> list[object]:
        with serving.connect() as target:
            return [result(target, call(target, zone, plain, [number, n])) for n in range(20)]

    with ThreadPoolExecutor(4) as pool:
        for number, found in enumerate(pool.map(client, range(4))):
            assert found == [[number, n] for n in range(20)]


# ---- restarts ----


def test_active_functions_survive_a_kill() -> None:
    with Serving() as serving:
        with serving.connect() as target:
            zone = ref(target.create_partition())
            target.create_partition(FUNCTIONS)
            stored = put(target, COUNT, alias=b"stored")
            obj = active(target, "def main(args): return 7\n", alias=b"seven", access=NONE)
            serving.kill("tgtd")
            serving.restarted()
        with serving.connect() as target:
            target.exec("pass", zone=zone).wait(WAIT_S)  # there are sandboxes again
            assert result(target, call(target, zone, "seven")) == 7
            assert result(target, call(target, zone, obj.object_id)) == 7
            refused(target, zone, stored.object_id, INACTIVE)
            assert target.get_attribute(obj, PAGE, STATE) == b"\1"


def test_format_forgets_functions() -> None:
    with Serving() as serving, serving.connect() as target:
        target.create_partition(FUNCTIONS)
        active(target, alias=b"count")
        target.format_osd()
        zone = ref(target.create_partition())
        with pytest.raises(NotFound):
            call(target, zone, "count")
