# SPDX-License-Identifier: GPL-2.0-or-later
"""Stacks: functions that data pass through when objects are written (docs/views.md)."""

from __future__ import annotations

import contextlib
import gzip
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

import pyosd
from pyosd.errors import Invalid, OSDError, TargetBusy, VersionMismatch
from pyosd.functions import Contract, Functions, FunctionStage, OutputSize
from pyosd.types import AttributeValue, ObjectRef, PartitionId
from pyosd.wire.attributes import LOGICAL_LENGTH
from tests.exec.conftest import await_sandboxes
from tests.exec.test_stacks import (
    BLOCKS,
    CONTRACT,
    EXCEPTION,
    GZIP,
    NO_CHANGE,
    NO_INVERSE,
    SCATTERED,
    SELECT,
    STAGE,
    UNKNOWN,
    XOR,
    function_partition,
    length,
    put,
    refusal,
    whole,
)
from tests.serving import Serving
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

FUNCTIONS = PartitionId(0x16)
SLOW = """
import time

import osd

def main(args):
    stage = osd.stage(args)
    if stage.data[:4] == b"slow":
        time.sleep(1)
    return bytes(each ^ 255 for each in stage.data)
"""


@pytest.fixture
def functions(target: pyosd.Target) -> Iterator[Functions]:
    with function_partition(target, FUNCTIONS) as made:
        yield made


@pytest.fixture
def obj(target: pyosd.Target, zone: ObjectRef) -> ObjectRef:
    return target.create(zone.partition_id)


def test_changes_without_an_inverse_are_refused(
    target: pyosd.Target, functions: Functions, obj: ObjectRef
) -> None:
    target.write(obj, 0, b"abc")
    functions.attach(obj, [FunctionStage(put(functions, SELECT, UNKNOWN), parameters="user=a")])
    for change, why in (
        (lambda: target.append(obj, b"x"), NO_CHANGE),
        (lambda: target.clear(obj, 0, 1), NO_CHANGE),
        (lambda: target.punch(obj, 0, 1), NO_CHANGE),
        (lambda: target.write(obj, 0, b"x"), NO_INVERSE),
    ):
        with pytest.raises(OSDError) as caught:
            change()
        assert refusal(caught) == (CONTRACT, why)
    with pytest.raises(Invalid):
        target.set_attributes(obj, [AttributeValue(*LOGICAL_LENGTH, (1).to_bytes(8))])
    target.set_attributes(obj, [AttributeValue(*LOGICAL_LENGTH, bytes(8))])
    functions.detach(obj)
    assert bytes(target.read(obj, 0, 3)) == b""


def test_writes_through_a_sequential_stack(
    target: pyosd.Target, functions: Functions, obj: ObjectRef
) -> None:
    both = put(functions, GZIP, Contract(inverse="compress"), methods=("decompress", "compress"))
    functions.attach(obj, [FunctionStage(both)])
    text = b"one two three " * 5000
    target.write(obj, 0, text)
    assert whole(target, obj) == text
    target.write(obj, 4, b"TWO")
    target.write(obj, len(text) + 10, b"end")
    changed = text[:4] + b"TWO" + text[7:] + bytes(10) + b"end"
    assert whole(target, obj) == changed
    functions.detach(obj)
    stored = whole(target, obj)
    assert gzip.decompress(stored) == changed and len(stored) < len(changed) // 10
    functions.attach(
        obj, [FunctionStage(both), FunctionStage(put(functions, XOR, BLOCKS, name="xor"))]
    )
    target.set_attributes(obj, [AttributeValue(*LOGICAL_LENGTH, bytes(8))])
    target.write(obj, 0, b"secret")
    assert whole(target, obj) == b"secret"
    functions.detach(obj)
    assert gzip.decompress(whole(target, obj)) == bytes(each ^ 255 for each in b"secret")


def test_writes_of_blocks(target: pyosd.Target, functions: Functions, obj: ObjectRef) -> None:
    code = """
import osd

def unmix(args):  # a block of 64 bytes backwards, so that each byte depends on where the block is
    data = osd.stage(args).data
    return b"".join(data[at : at + 64][::-1] for at in range(0, len(data), 64))
"""
    contract = Contract(OutputSize.SAME, block=64, inverse="unmix")
    functions.attach(obj, [FunctionStage(put(functions, code, contract, methods=("unmix",)))])
    model = bytearray()
    for start, data in (
        (0, b"a" * 100),
        (100, b"b" * 28),
        (30, b"c" * 5),
        (64, b"d" * 64),
        (300, b"e"),
        (250, b"f" * 200),
        (0, b"g" * 64),
    ):
        target.write(obj, start, data)
        model.extend(bytes(max(0, start + len(data) - len(model))))
        model[start : start + len(data)] = data
        assert whole(target, obj) == model
        assert length(target, obj) == len(model).to_bytes(8)


def test_an_object_is_made_through_the_stack_of_its_partition(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    both = put(functions, GZIP, Contract(inverse="compress"), methods=("decompress", "compress"))
    functions.attach(zone, [FunctionStage(both)])
    made = target.create_and_write(zone.partition_id, b"text " * 1000)
    assert whole(target, made) == b"text " * 1000
    functions.attach(made, [FunctionStage(None)])
    assert gzip.decompress(whole(target, made)) == b"text " * 1000
    named = target.put_name(zone, "file", b"word " * 1000).object
    assert whole(target, named) == b"word " * 1000
    assert target.lookup_data(zone, "file", 100)[1] is None
    path = f"/{zone.partition_id:#x}/file"
    assert bytes(target.fs.read_bytes(path)) == b"word " * 1000
    functions.attach(named, [FunctionStage(None)])
    assert gzip.decompress(whole(target, named)) == b"word " * 1000
    found = target.lookup_data(zone, "file", 100)[1]
    assert found is not None and gzip.decompress(bytes(found.data)) == b"word " * 1000


def test_scattered_writes_are_refused(
    target: pyosd.Target, functions: Functions, obj: ObjectRef
) -> None:
    functions.attach(obj, [FunctionStage(put(functions, XOR, BLOCKS))])
    with pytest.raises(OSDError) as caught:
        target.write_pieces(obj, [(0, 1), (5, 1)], b"ab")
    assert refusal(caught) == (CONTRACT, SCATTERED)


def test_a_write_that_fails_changes_nothing(
    target: pyosd.Target, functions: Functions, obj: ObjectRef
) -> None:
    both = put(functions, GZIP, Contract(inverse="fails"), methods=("decompress", "fails"))
    stored = gzip.compress(b"text", mtime=0)
    target.write(obj, 0, stored)
    functions.attach(obj, [FunctionStage(both)])
    with pytest.raises(OSDError) as caught:
        target.write(obj, 0, b"new")
    assert refusal(caught) == (STAGE, EXCEPTION)
    functions.detach(obj)
    assert whole(target, obj) == stored


def test_writes_at_a_time_are_all_there(
    target: pyosd.Target, functions: Functions, obj: ObjectRef
) -> None:
    """Each WRITE computes anew if another one has changed the object meanwhile.  After a while it gives
    up with BUSY, and has done nothing."""
    both = put(functions, GZIP, Contract(inverse="compress"), methods=("decompress", "compress"))
    functions.attach(obj, [FunctionStage(both)])
    target.write(obj, 0, bytes(8))

    def write(at: int) -> None:
        while True:
            with contextlib.suppress(TargetBusy):
                return target.write(obj, at, bytes((at + 1,)))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(8)))
    assert whole(target, obj) == bytes(range(1, 9))


def test_an_object_is_emptied_while_a_write_is_computed(
    target: pyosd.Target, functions: Functions, obj: ObjectRef
) -> None:
    """Zeros are in front of what is written, and not what the functions make of a hole."""
    slow = put(functions, SLOW, Contract(OutputSize.SAME, block=64, inverse="main"))
    functions.attach(obj, [FunctionStage(slow)])
    target.write(obj, 0, b"a" * 128)
    with ThreadPoolExecutor() as pool:
        written = pool.submit(target.write, obj, 64, b"slow" * 16)
        until(lambda: functions.calls(slow).under_way or written.done(), "the function never ran")
        target.set_attributes(obj, [AttributeValue(*LOGICAL_LENGTH, bytes(8))])
        written.result()
    assert whole(target, obj) in (bytes(64) + b"slow" * 16, b"")


def test_a_wanted_version(target: pyosd.Target, functions: Functions, obj: ObjectRef) -> None:
    functions.attach(obj, [FunctionStage(put(functions, XOR, BLOCKS))])
    target.write(obj, 0, b"abc")
    data, version = target.read_with_version(obj, 0, 3)
    assert bytes(data) == b"abc"
    target.write(obj, 1, b"B", if_version=version)
    with pytest.raises(VersionMismatch):
        target.write(obj, 0, b"A", if_version=version)
    assert whole(target, obj) == b"aBc"


def killed_while_writing(
    serving: Serving, obj: ObjectRef, texts: Sequence[bytes], delay: float
) -> None:
    """Kill the target in the middle of WRITEs of texts in turn, and start it again."""
    with serving.connect() as target:

        def overwrite() -> None:
            with contextlib.suppress(OSDError):
                for turn in range(1000):
                    target.write(obj, 0, texts[turn % len(texts)])

        writer = threading.Thread(target=overwrite)
        writer.start()
        time.sleep(delay)  # any moment will do
        serving.kill("tgtd")
        writer.join()
        serving.restarted()
    with serving.connect() as target:
        await_sandboxes(target)


def test_a_write_is_there_or_not_after_a_kill(own_serving: Serving) -> None:
    """The result of a sequential stack takes the place of all stored bytes in one step."""
    texts = [bytes((letter,)) * 300_000 for letter in b"ab"]
    with own_serving.connect() as target:
        functions = Functions(target)
        gzipped = functions.put_stock("gzip").id
        obj = target.create(target.create_partition())
        functions.attach(obj, [FunctionStage(gzipped, parameters="level=0")])
        target.write(obj, 0, texts[0])
    for delay in (0.02, 0.05, 0.1):
        killed_while_writing(own_serving, obj, texts, delay)
        with own_serving.connect() as target:
            assert whole(target, obj) in texts
