# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions: code that lives in the store, is activated, and is called by name (docs/functions.md)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

import pytest

import pyosd
from pyosd.errors import NotFound, OSDError
from pyosd.types import AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.exec_params import ArgsEncoding, ExecParams, FunctionCall, Limits
from pyosd.wire.reply import ExecReply
from tests.exec.conftest import WAIT_S
from tests.serving import Serving

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

FUNCTIONS = PartitionId(0x11)
"""The function partition of these tests."""
PAGE = 0x2000_0010
STATE, ENGINE, ACCESS, ALIAS, METHODS, WALL, SHA256 = 1, 2, 5, 6, 8, 10, 14
DESCRIPTION, POOL, MEMORY = 7, 9, 12
NONE, READ, WRITE = b"\0", b"\1", b"\2"
ROOM = 1 << 16
INACTIVE, NO_ENGINE = 0x8017, 0x8018

COUNT = """
import osd

def main(args):
    return {"args": args, "lines": osd.zone.data.read().count(b"\\n")}

def twice(args):
    return args * 2

def scribble(args):
    osd.zone.data.write(args)
"""


@pytest.fixture
def functions(target: pyosd.Target) -> Iterator[ObjectRef]:
    """A function partition, with everything in it removed at the end."""
    partition = target.create_partition(FUNCTIONS)
    assert partition == FUNCTIONS
    yield ref(partition)
    target.remove_partition(partition, contents=True)


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
) -> ExecReply:
    if isinstance(args, bytes):
        encoding, data = ArgsEncoding.BYTES, args
    else:
        encoding, data = ArgsEncoding.JSON, json.dumps(args).encode()
    named = FunctionCall(FUNCTIONS, function, method, encoding)
    params = ExecParams(function=named, limits=limits)
    return target.call_function(zone, data, params, result_allocation_length=ROOM)


def result(target: pyosd.Target, reply: ExecReply) -> object:
    assert reply.error is None, reply.error
    assert reply.job is not None
    return target.job(reply.job).result()


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
        reply = call(target, lines, function, b"ONE", method)
        assert reply.error is not None and reply.job is not None
        assert "access class" in target.job(reply.job).traceback()
    assert bytes(target.read(lines, 0, 3)) == b"one"
    assert result(target, call(target, lines, reads, 0, "main")) == {"args": 0, "lines": 3}
    assert call(target, lines, writes, b"ONE", "scribble").error is None
    assert bytes(target.read(lines, 0, 3)) == b"ONE"


def test_limits_of_the_manifest_bound_those_of_the_call(
    target: pyosd.Target, functions: ObjectRef, lines: ObjectRef
) -> None:
    forever = active(
        target, "def main(args):\n    while True: pass\n", wall=(300_000).to_bytes(8, "big")
    )
    for limits in (Limits(), Limits(wall=30)):
        reply = call(target, lines, forever.object_id, limits=limits)
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
