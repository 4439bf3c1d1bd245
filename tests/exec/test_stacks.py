# SPDX-License-Identifier: GPL-2.0-or-later
"""Stacks: functions that the data of objects pass through when they are read (docs/views.md)."""

from __future__ import annotations

import contextlib
import gzip
import os
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import pyosd
from pyosd.errors import Invalid, OSDError
from pyosd.functions import Access, Contract, Functions, FunctionStage, OutputSize, RecordForm
from pyosd.types import ROOT, AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import LOGICAL_LENGTH, Page
from tests.exec.conftest import await_sandboxes
from tests.serving import Serving
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

FUNCTIONS = PartitionId(0x12)
CONTRACT, STAGE = 0x802C, 0x802D
TOO_LARGE, NO_CHANGE, NO_INVERSE, SCATTERED = 2, 3, 4, 5
EXCEPTION, WALL_LIMIT, RESULT_LIMIT = 201, 301, 308
STAGE_MOST = 16 << 20

XOR = """
import osd

def main(args):
    stage = osd.stage(args)
    key = int(stage.options.get("key", "255"))
    return bytes(each ^ key for each in stage.data)
"""
POSITIONS = """
import osd

def main(args):  # each byte tells which block it was computed in
    stage = osd.stage(args)
    assert stage.offset % 4096 == 0
    at = range(stage.offset, stage.offset + len(stage.data))
    return bytes((byte + each // 4096) % 256 for byte, each in zip(stage.data, at))
"""
GZIP = """
import gzip, osd

def decompress(args):
    return gzip.decompress(osd.stage(args).data)

def compress(args):
    return gzip.compress(osd.stage(args).data, mtime=0)

def fails(args):
    raise ValueError("no such thing")
"""
SELECT = """
import osd

def main(args):
    stage = osd.stage(args)
    wanted = stage.options["user"].encode()
    return b"".join(line for line in stage.data.splitlines(keepends=True) if wanted in line)
"""
DOUBLE = """
import osd

def main(args):
    return osd.stage(args).data * 2
"""
SLOW = """
import time, osd

def main(args):  # marks where a call's data begin
    stage = osd.stage(args)
    if stage.offset >= int(stage.options.get("fails", "100000000")):
        raise ValueError("no such thing")
    end = time.process_time() + len(stage.view) / (256 << 20)
    while time.process_time() < end:
        pass
    return b"!" + stage.view[1:]
"""
ODD = """
import time, osd

def main(args):
    stage = osd.stage(args)
    how = stage.options["how"]
    if how == "raises":
        raise ValueError("no such thing")
    if how == "hangs":
        while True:
            time.sleep(1)
    if how == "floods":
        return bytes(17 << 20)
    if how == "short":
        return stage.data[1:]
    if how == "json":
        return ["data"]
    if how == "peeks":
        return osd.partition(stage.offset or 0x10000).collections()
    if how == "dies":
        import os
        os._exit(1)
    return stage.data
"""
SAME = Contract(OutputSize.SAME, deterministic=True)
BLOCKS = Contract(OutputSize.SAME, block=4096, inverse="main", deterministic=True)
UNKNOWN = Contract(OutputSize.UNKNOWN)


@contextlib.contextmanager
def function_partition(target: pyosd.Target, partition: PartitionId) -> Iterator[Functions]:
    """Functions in a partition that is removed at the end; the stages of the root are, too."""
    target.create_partition(partition)
    yield Functions(target, partition)
    Functions(target, partition).detach(ROOT)
    target.remove_partition(partition, contents=True)


@pytest.fixture
def functions(target: pyosd.Target) -> Iterator[Functions]:
    with function_partition(target, FUNCTIONS) as made:
        yield made


def put(functions: Functions, code: str, contract: Contract, **options: object) -> ObjectRef:
    return functions.put(code, contract=contract, **options).id  # type: ignore[arg-type]


@pytest.fixture
def obj(target: pyosd.Target, zone: ObjectRef) -> ObjectRef:
    return target.create(zone.partition_id)


def refusal(caught: pytest.ExceptionInfo[OSDError]) -> tuple[int, int | None]:
    sense = caught.value.sense
    assert sense is not None
    return sense.asc << 8 | sense.ascq, sense.command_information


def whole(target: pyosd.Target, obj: ObjectRef) -> bytes:
    return b"".join(target.iter_read(obj))


def length(target: pyosd.Target, obj: ObjectRef) -> bytes:
    return bytes(target.get_attribute(obj, *LOGICAL_LENGTH))


# ---- reads ----


def test_data_pass_through_a_function(
    target: pyosd.Target, functions: Functions, obj: ObjectRef
) -> None:
    xor = put(functions, XOR, SAME)
    target.write(obj, 0, b"abc")
    functions.attach(obj, [FunctionStage(xor, parameters="key=1")])
    assert bytes(target.read(obj, 0, 3)) == b"`cb"
    assert bytes(target.read(obj, 1, 1)) == b"c"
    assert whole(target, obj) == b"`cb"
    assert length(target, obj) == (3).to_bytes(8)
    assert functions.attached(obj) == [FunctionStage(xor, parameters="key=1")]
    functions.detach(obj)
    assert functions.attached(obj) == []
    assert bytes(target.read(obj, 0, 3)) == b"abc"


def test_stages_in_the_order_of_a_read(
    target: pyosd.Target, functions: Functions, obj: ObjectRef
) -> None:
    text = b"alice 1\nbob 2\nalice 3\n" * 1000
    target.write(obj, 0, gzip.compress(text))
    unzip = put(functions, GZIP, Contract(inverse="compress"), methods=("decompress", "compress"))
    select = put(functions, SELECT, UNKNOWN)
    functions.attach(obj, [FunctionStage(unzip), FunctionStage(select, parameters="user=bob")])
    assert whole(target, obj) == b"bob 2\n" * 1000
    assert length(target, obj) == b"", "not known before it is computed"
    assert target.known_length(obj) is None
    with pytest.raises(OSDError, match="not known"):
        target.length(obj)
    functions.attach(obj, [FunctionStage(unzip)])
    assert whole(target, obj) == text
    assert bytes(target.read(obj, 8, 6)) == b"bob 2\n"


def test_a_stage_of_a_method(target: pyosd.Target, functions: Functions, obj: ObjectRef) -> None:
    both = put(functions, GZIP, Contract(inverse="compress"), methods=("decompress", "compress"))
    target.write(obj, 0, b"text" * 100)
    functions.attach(obj, [FunctionStage(both, "compress")])
    assert gzip.decompress(whole(target, obj)) == b"text" * 100
    with pytest.raises(Invalid):
        functions.attach(obj, [FunctionStage(both, "unheard")])


def test_ranges_of_blocks(target: pyosd.Target, functions: Functions, obj: ObjectRef) -> None:
    at = put(functions, POSITIONS, BLOCKS)
    stored = bytes(range(256)) * 100
    made = bytes((byte + at // 4096) % 256 for at, byte in enumerate(stored))
    target.write(obj, 0, stored)
    functions.attach(obj, [FunctionStage(at)])
    for start, count in ((0, 1), (4095, 2), (4096, 4096), (5000, 9000), (25599, 1), (0, 25600)):
        assert bytes(target.read(obj, start, count)) == made[start : start + count]
    assert target.read_pieces(obj, [(20000, 10), (1, 3), (25590, 20)]) == (
        made[20000:20010] + made[1:4] + made[25590:]  # the zeros behind the end are cut off
    )


def test_the_end_of_the_data(target: pyosd.Target, functions: Functions, obj: ObjectRef) -> None:
    double = Contract(OutputSize.FIXED, ratio=(0, 2, 1))
    functions.attach(obj, [FunctionStage(put(functions, DOUBLE, double))])
    assert length(target, obj) == bytes(8)
    assert bytes(target.read(obj, 0, 10)) == b"", "no bytes pass through no function"
    functions.detach(obj)
    target.write(obj, 0, b"abc")
    functions.attach(obj, [FunctionStage(functions.show(functions.ls()[0].id).id)])
    assert length(target, obj) == (6).to_bytes(8)
    assert bytes(target.read(obj, 2, 10)) == b"cabc"
    assert bytes(target.read(obj, 6, 10)) == b""
    with pytest.raises(OSDError) as caught:
        target.read(obj, 7, 1)
    assert caught.value.sense is not None and caught.value.sense.field_pointer == 40


def test_more_than_one_call_can_take(
    target: pyosd.Target, functions: Functions, obj: ObjectRef
) -> None:
    """Blocks are computed in pieces; a sequential function needs all at once."""
    flip = """
import osd

def main(args):
    return osd.stage(args).data.translate(bytes(255 - each for each in range(256)))
"""
    blocks = put(functions, flip, Contract(OutputSize.SAME, block=1000), name="blocks")
    size = STAGE_MOST + 12345
    for start in range(0, size, 1 << 20):
        target.write(obj, start, bytes(range(256)) * 4096)
    target.set_attributes(obj, [AttributeValue(*LOGICAL_LENGTH, size.to_bytes(8))])
    functions.attach(obj, [FunctionStage(blocks)])
    read = target.read(obj, 0, size)
    pattern = bytes(255 - each for each in range(256))
    assert read == (pattern * (size // 256 + 1))[:size]
    functions.attach(obj, [FunctionStage(put(functions, flip, SAME, name="all"))])
    with pytest.raises(OSDError) as caught:
        target.read(obj, 0, 1)
    assert refusal(caught) == (CONTRACT, TOO_LARGE)


# ---- levels ----


def test_the_nearest_level_counts(
    target: pyosd.Target, functions: Functions, zone: ObjectRef, obj: ObjectRef
) -> None:
    xor = put(functions, XOR, BLOCKS)
    target.write(obj, 0, b"\0")

    def stage(key: int, inherited: bool = True) -> list[FunctionStage]:
        return [FunctionStage(xor, parameters=f"key={key}", inherited=inherited)]

    functions.attach(ROOT, stage(1))
    assert bytes(target.read(obj, 0, 1)) == b"\1"
    functions.attach(zone, stage(2, inherited=False))
    assert bytes(target.read(obj, 0, 1)) == b"\1"
    functions.attach(zone, stage(2))
    assert bytes(target.read(obj, 0, 1)) == b"\2"
    functions.attach(obj, stage(4))
    assert bytes(target.read(obj, 0, 1)) == b"\4"
    functions.attach(obj, [FunctionStage(None)])
    assert bytes(target.read(obj, 0, 1)) == b"\0"
    functions.detach(obj)
    functions.attach(zone, [FunctionStage(None)])
    assert bytes(target.read(obj, 0, 1)) == b"\0"
    functions.detach(zone)
    functions.detach(ROOT)
    assert bytes(target.read(obj, 0, 1)) == b"\0"


def test_what_cannot_be_attached(
    target: pyosd.Target, functions: Functions, zone: ObjectRef, obj: ObjectRef
) -> None:
    plain = functions.put(XOR, name="plain").id
    stored = functions.put(XOR, name="stored", contract=SAME, activate=False).id
    for stage in (
        FunctionStage(plain),
        FunctionStage(stored),
        FunctionStage(obj),
        FunctionStage(ref(FUNCTIONS, 0x7777)),
    ):
        with pytest.raises(Invalid):
            functions.attach(obj, [stage])
    good = put(functions, XOR, SAME)
    for where in (good, ref(FUNCTIONS)):
        with pytest.raises(OSDError):
            functions.attach(where, [FunctionStage(good)])
    with pytest.raises(ValueError, match="at most 16"):
        functions.attach(obj, [FunctionStage(good)] * 17)
    functions.attach(obj, [FunctionStage(good)] * 16)
    with pytest.raises(Invalid):
        target.set_attributes(obj, [AttributeValue(Page.STACK, 17, b"x")])
    target.write(ref(zone.partition_id, target.create(zone.partition_id).object_id), 0, b"x")
    assert functions.attached(obj) == [FunctionStage(good)] * 16


def test_contracts_that_contradict_themselves(functions: Functions) -> None:
    for contract in (
        Contract(OutputSize.UNKNOWN, block=16),
        Contract(OutputSize.FIXED),
        Contract(OutputSize.SAME, ratio=(0, 1, 1)),
        Contract(OutputSize.SAME, inverse="unheard"),
        Contract(OutputSize.SAME, block=16, records=RecordForm.LINES),
        Contract(OutputSize.FIXED, ratio=(0, 1, 1), records=RecordForm.LINES),
    ):
        with pytest.raises(OSDError) as caught:
            functions.put(XOR, contract=contract)
        assert refusal(caught)[0] == CONTRACT
    with pytest.raises(OSDError) as caught:
        functions.put(XOR, contract=SAME, access=Access.READ)
    assert refusal(caught)[0] == CONTRACT
    with pytest.raises(Invalid):
        functions.put(XOR, contract=Contract(OutputSize.SAME, block=(1 << 20) + 1))
    for contract in (BLOCKS, Contract(OutputSize.SAME, records=RecordForm.TABLE)):
        shown = functions.put(XOR, contract=contract)
        assert functions.show(shown.id).manifest.contract == contract


# ---- functions that come and go, and fail ----


def test_a_function_that_is_gone(
    target: pyosd.Target, functions: Functions, obj: ObjectRef
) -> None:
    xor = put(functions, XOR, SAME)
    target.write(obj, 0, b"abc")
    functions.attach(obj, [FunctionStage(xor)])
    functions.deactivate(xor)
    with pytest.raises(OSDError) as caught:
        target.read(obj, 0, 3)
    assert refusal(caught)[0] == 0x8017
    assert length(target, obj) == b""
    functions.activate(xor)
    assert bytes(target.read(obj, 0, 1)) == bytes((ord("a") ^ 255,))
    functions.remove(xor)
    with pytest.raises(OSDError) as caught:
        target.read(obj, 0, 3)
    assert refusal(caught)[0] == 0x8017


def read_in_time(target: pyosd.Target, obj: ObjectRef, length: int, *, limited: bool) -> bytes:
    """READ from the begin; again if its function came to its limit, as on a busy machine it may."""

    def read() -> bytes | None:
        try:
            return bytes(target.read(obj, 0, length))
        except OSDError as error:
            assert limited and error.sense is not None
            assert error.sense.command_information == WALL_LIMIT
            return None

    return until(read, "it comes to its limit each time")


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("raises", EXCEPTION),
        ("short", EXCEPTION),
        ("json", EXCEPTION),
        ("peeks", EXCEPTION),
        ("floods", RESULT_LIMIT),
        ("hangs", WALL_LIMIT),
        ("dies", 0),
    ],
)
def test_a_failure_is_no_data(
    target: pyosd.Target, functions: Functions, obj: ObjectRef, how: str, reason: int
) -> None:
    limits = pyosd.Limits(wall=1.0 if how == "hangs" else 30)
    odd = put(functions, ODD, SAME, limits=limits)
    target.write(obj, 0, b"abc" * 1000)
    functions.attach(obj, [FunctionStage(odd, parameters=f"how={how}")])
    with pytest.raises(OSDError) as caught:
        target.read(obj, 0, 3000)
    code, found = refusal(caught)
    assert code == STAGE and (found == reason or not reason)
    assert caught.value.sense is not None and caught.value.sense.information
    functions.attach(obj, [FunctionStage(odd, parameters="how=fine")])
    assert read_in_time(target, obj, 3000, limited=how == "hangs") == b"abc" * 1000


def test_an_optional_function_may_fail(
    target: pyosd.Target, functions: Functions, obj: ObjectRef
) -> None:
    odd = put(functions, ODD, Contract(OutputSize.SAME, optional=True))
    xor = put(functions, XOR, SAME, name="xor")
    target.write(obj, 0, b"abc")
    stages = [FunctionStage(xor, parameters="key=1"), FunctionStage(odd, parameters="how=raises")]
    functions.attach(obj, stages)
    assert bytes(target.read(obj, 0, 3)) == b"`cb"


def at_once(target: pyosd.Target, obj: ObjectRef, start: int, count: int) -> list[int]:
    """Where the calls of a READ begin that passes in two halves; the first READ tells how long it takes."""
    deadline = time.monotonic() + 30
    while True:
        read = bytes(target.read(obj, start, count))
        marks = [at for at, byte in enumerate(read) if byte == ord("!")]
        assert read.replace(b"!", b".") == b"." * count
        if len(marks) == 2 - bool(start % 4096) or time.monotonic() > deadline:
            return marks


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor")
def test_two_halves_at_a_time(target: pyosd.Target, functions: Functions, obj: ObjectRef) -> None:
    size = (1 << 20) - 5
    target.write(obj, 0, b"." * size)
    blocks = Contract(OutputSize.SAME, block=4096)
    slow = put(functions, SLOW, blocks)
    functions.attach(obj, [FunctionStage(slow)])
    assert at_once(target, obj, 0, size) == [0, 1 << 19]
    assert at_once(target, obj, 4097, 520000) == [66 * 4096 - 4097 - 4096]
    for fails in (0, 4096):  # both halves, the second
        functions.attach(obj, [FunctionStage(slow, parameters=f"fails={fails}")])
        with pytest.raises(OSDError) as caught:
            at_once(target, obj, 0, size)
        assert refusal(caught) == (STAGE, EXCEPTION)
        assert caught.value.sense is not None and caught.value.sense.information
    both = [FunctionStage(slow), FunctionStage(put(functions, XOR, blocks, name="xor"))]
    functions.attach(obj, both)
    read = bytes(target.read(obj, 0, size))
    assert set(read) == {ord(".") ^ 255, ord("!") ^ 255} and read[0] == ord("!") ^ 255


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor")
def test_both_halves_are_kept(target: pyosd.Target, functions: Functions, obj: ObjectRef) -> None:
    slow = put(functions, SLOW, Contract(OutputSize.SAME, block=4096, deterministic=True))
    size = 1 << 20
    for turn in range(3):  # from the second on, the time is known
        functions.detach(obj)
        target.write(obj, 0, b"." * size)  # another version
        functions.attach(obj, [FunctionStage(slow)])
        first = bytes(target.read(obj, 0, size))
        assert first.replace(b"!", b".") == b"." * size and first[0] == ord("!")
        assert bytes(target.read(obj, 0, size)) == first, turn


# ---- many at a time ----


def test_more_readers_than_slots(
    target: pyosd.Target, functions: Functions, obj: ObjectRef
) -> None:
    """Each READ has two stages, and holds one slot at a time."""
    xor = put(functions, XOR, BLOCKS)
    target.write(obj, 0, bytes(8192))
    functions.attach(
        obj, [FunctionStage(xor, parameters="key=1"), FunctionStage(xor, parameters="key=2")]
    )

    def read(at: int) -> bytes:
        return bytes(target.read(obj, at * 100, 100))

    with ThreadPoolExecutor(16) as threads:
        assert list(threads.map(read, range(64))) == [b"\3" * 100] * 64


def test_a_reader_does_not_keep_a_worker(
    target: pyosd.Target, functions: Functions, obj: ObjectRef, zone: ObjectRef
) -> None:
    odd = put(functions, ODD, SAME, limits=pyosd.Limits(wall=2.5))
    other = target.create(zone.partition_id)
    target.write(obj, 0, b"abc")
    target.write(other, 0, b"abc")
    functions.attach(obj, [FunctionStage(odd, parameters="how=hangs")])
    failures: list[OSDError] = []

    def read() -> None:
        try:
            target.read(obj, 0, 3)
        except OSDError as error:
            failures.append(error)

    def others_go_on() -> bool:
        failures.clear()
        readers = [threading.Thread(target=read) for _ in range(3)]
        for each in readers:
            each.start()
        for _ in range(20):
            assert bytes(target.read(other, 0, 3)) == b"abc"
        hang_still = not failures
        for each in readers:
            each.join()
        assert len(failures) == 3
        return hang_still

    # More than once: a busy machine may take longer than the limit of the functions.
    until(others_go_on, "other READs wait for the functions that hang")


def test_stacks_survive_a_restart(own_serving: Serving) -> None:
    with own_serving.connect() as target:
        functions = Functions(target)
        xor = put(functions, XOR, BLOCKS, name="xor")
        zone = ref(target.create_partition())
        near, far, plain = (target.create(zone.partition_id) for _ in range(3))
        for each in (near, far, plain):
            target.write(each, 0, b"\0")
        functions.attach(zone, [FunctionStage(xor, parameters="key=2")])
        functions.attach(near, [FunctionStage(xor, parameters="key=4")])
        functions.attach(plain, [FunctionStage(None)])
        own_serving.kill("tgtd")
        own_serving.restarted()
    with own_serving.connect() as target:
        await_sandboxes(target)
        read = [bytes(target.read(each, 0, 1)) for each in (near, far, plain)]
        assert read == [b"\4", b"\2", b"\0"]
        assert Functions(target).attached(plain) == [FunctionStage(None)]


def test_a_pool_of_one_slot() -> None:
    """A READ holds no slot while its next stage waits for one."""
    with (
        Serving("--isolation", "best", "--slots", "1") as served,
        served.connect() as target,
        ThreadPoolExecutor(8) as threads,
    ):
        functions = Functions(target)
        xor = put(functions, XOR, BLOCKS, name="xor")
        obj = target.create(target.create_partition())
        target.write(obj, 0, bytes(100))
        stages = [FunctionStage(xor, parameters=f"key={key}") for key in (1, 2, 4)]
        functions.attach(obj, stages)
        read = threads.map(lambda at: bytes(target.read(obj, at, 1)), range(32))
        assert list(read) == [b"\7"] * 32
