# SPDX-License-Identifier: GPL-2.0-or-later
"""Random stacks of functions with inverses: reads, writes, attach and detach agree with a model.

The model has the stored bytes, and the same functions in Python.  The stack is the object's own, or
that of its collection or partition.  Commands address the object, or one of a writable view, which
shows it through one more function.
"""

from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pyosd
from pyosd.errors import OSDError
from pyosd.functions import Contract, Functions, FunctionStage, OutputSize
from pyosd.types import AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import LOGICAL_LENGTH, Page
from tests.serving import Serving

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

FUNCTIONS = PartitionId(0x13)
STAGE_FAILED = 0x802D
MOST = 20_000  # bytes of the object
MIX = """
import osd

def decode(args):
    stage = osd.stage(args)
    size = int(stage.options["size"])
    at = range(0, len(stage.data), size)
    return b"".join(stage.data[each : each + size][::-1] for each in at)
"""
SHIFT = """
import osd

def decode(args):
    stage = osd.stage(args)
    key = int(stage.options["key"])
    at = range(stage.offset, stage.offset + len(stage.data))
    return bytes((byte - key - each // 16) % 256 for byte, each in zip(stage.data, at))

def encode(args):
    stage = osd.stage(args)
    key = int(stage.options["key"])
    at = range(stage.offset, stage.offset + len(stage.data))
    return bytes((byte + key + each // 16) % 256 for byte, each in zip(stage.data, at))
"""
HEX = """
import osd

def decode(args):
    return bytes.fromhex(osd.stage(args).data.decode())

def encode(args):
    return osd.stage(args).data.hex().encode()
"""

Transform = Callable[[bytes], bytes]
Kind = tuple[str, int]
"""A function's name, and its parameter."""


def mix(data: bytes, size: int) -> bytes:
    return b"".join(data[at : at + size][::-1] for at in range(0, len(data), size))


def shift(data: bytes, key: int) -> bytes:
    return bytes((byte + key + at // 16) % 256 for at, byte in enumerate(data))


def unshift(data: bytes, key: int) -> bytes:
    return bytes((byte - key - at // 16) % 256 for at, byte in enumerate(data))


def transforms(kind: Kind) -> tuple[Transform, Transform]:
    """What a READ does, and what a WRITE does."""
    name, number = kind
    if name == "mix":
        return (lambda data: mix(data, 48),) * 2
    if name == "shift":
        return (lambda data: unshift(data, number)), (lambda data: shift(data, number))
    if name == "gzip":
        return gzip.decompress, (lambda data: gzip.compress(data, 6, mtime=0))
    return (lambda data: bytes.fromhex(data.decode())), (lambda data: data.hex().encode())


def read(stack: list[Kind], stored: bytes) -> bytes:
    """What a READ of everything returns.  Raises: what the function raises."""
    for kind in stack if stored else []:
        stored = transforms(kind)[0](stored)
    return stored


def write(stack: list[Kind], data: bytes) -> bytes:
    """What a WRITE of everything stores."""
    for kind in reversed(stack):
        data = transforms(kind)[1](data)
    return data


KINDS = st.one_of(
    st.just(("mix", 0)),
    st.tuples(st.just("shift"), st.integers(0, 255)),
    st.just(("gzip", 0)),
    st.just(("hex", 0)),
)
STACKS = st.lists(KINDS, max_size=3)
LEVELS = st.sampled_from(["object", "collection", "partition"])
STEPS = st.one_of(
    st.tuples(st.just("attach"), LEVELS, STACKS),
    st.tuples(st.just("address"), st.booleans()),
    st.tuples(st.just("read"), st.integers(0, MOST), st.integers(1, MOST)),
    st.tuples(st.just("write"), st.integers(0, MOST), st.integers(1, 3000), st.integers()),
    st.tuples(st.just("empty")),
    st.tuples(st.just("length")),
)


@pytest.fixture(scope="module")
def functions(serving: Serving) -> Iterator[dict[str, ObjectRef]]:
    """The functions by name."""
    with serving.connect() as target:
        target.create_partition(FUNCTIONS)
        table = Functions(target, FUNCTIONS)
        mixing = Contract(OutputSize.SAME, block=48, inverse="decode", deterministic=True)
        shifting = Contract(OutputSize.SAME, block=16, inverse="encode", deterministic=True)
        hexing = Contract(OutputSize.UNKNOWN, inverse="encode", deterministic=True)
        both = ("decode", "encode")
        yield {
            "mix": table.put(MIX, name="mix", contract=mixing, methods=("decode",)).id,
            "shift": table.put(SHIFT, name="shift", contract=shifting, methods=both).id,
            "hex": table.put(HEX, name="hex", contract=hexing, methods=both).id,
            "gzip": table.put_stock("gzip").id,
        }
        target.remove_partition(FUNCTIONS, contents=True)


@pytest.fixture
def shelf(target: pyosd.Target) -> Iterator[ObjectRef]:
    """A partition for objects that show others."""
    made = ref(target.create_partition())
    yield made
    target.remove_partition(made.partition_id, contents=True)


def stages(functions: dict[str, ObjectRef], stack: list[Kind]) -> list[FunctionStage]:
    texts = {"mix": "size=48", "shift": "key={}", "hex": "", "gzip": ""}
    return [
        FunctionStage(functions[name], "", texts[name].format(number)) for name, number in stack
    ]


VIEW: Kind = ("shift", 7)
"""What the view adds to the stack of the object."""


class Machine:
    """An object that is in a collection, one of a view that shows it, and their model."""

    def __init__(
        self,
        target: pyosd.Target,
        functions: dict[str, ObjectRef],
        zone: ObjectRef,
        shelf: ObjectRef,
    ) -> None:
        self.target, self.functions, self.source = (
            target,
            functions,
            target.create(zone.partition_id),
        )
        collection = target.create_collection(zone.partition_id)
        target.add_member(collection, self.source)
        self.levels = {"object": self.source, "collection": collection, "partition": zone}
        value = self.source.partition_id.to_bytes(8) + self.source.object_id.to_bytes(8) + b"\1"
        shows = AttributeValue(Page.STACK, 17, value)
        self.shown = target.create(shelf.partition_id, attributes=[shows])
        Functions(target, FUNCTIONS).attach(self.shown, stages(functions, [VIEW]))
        self.obj = self.source
        self.stored, self.attached = b"", list[Kind]()

    @property
    def stack(self) -> list[Kind]:
        """What the data of the addressed object pass through."""
        return self.attached + ([VIEW] if self.obj == self.shown else [])

    def attach(self, level: str, stack: list[Kind]) -> None:
        self.attached = stack
        table = Functions(self.target, FUNCTIONS)
        for each in self.levels.values():
            table.detach(each)
        table.attach(self.levels[level], stages(self.functions, stack))

    def address(self, view: bool) -> None:
        self.obj = self.shown if view else self.source

    def seen(self) -> bytes | None:
        """What readers see; None: a function fails."""
        try:
            return read(self.stack, self.stored)
        except (ValueError, OSError, EOFError, zlib.error):
            return None

    def read(self, start: int, length: int) -> None:
        seen = self.seen()
        try:
            got: bytes | None = bytes(self.target.read(self.obj, start, length))
        except OSDError as error:
            assert error.sense is not None
            if error.sense.field_pointer == 40:
                got = b""
                assert seen is not None and start > len(seen)
            else:
                got = None
                assert error.asc << 8 | error.ascq == STAGE_FAILED
        assert got == (None if seen is None else seen[start : start + length])

    def write(self, start: int, length: int, seed: int) -> None:
        data, seen = random.Random(seed).randbytes(length), self.seen()
        try:
            self.target.write(self.obj, start, data)
        except OSDError as error:
            assert seen is None and error.asc << 8 | error.ascq == STAGE_FAILED
            return
        if seen is None:  # nothing had to be computed: all is new
            assert start == 0
            seen = b""
        seen += bytes(max(0, start - len(seen)))
        self.stored = write(self.stack, seen[:start] + data + seen[start + length :])

    def empty(self) -> None:
        self.target.set_attributes(self.obj, [AttributeValue(*LOGICAL_LENGTH, bytes(8))])
        self.stored = b""

    def length(self) -> None:
        value = bytes(self.target.get_attribute(self.obj, *LOGICAL_LENGTH))
        seen = self.seen()
        if value:
            assert seen is not None and int.from_bytes(value) == len(seen)
        else:
            assert self.obj == self.shown or {name for name, _ in self.stack} & {"gzip", "hex"}

    def check(self) -> None:
        """Compare the stored bytes."""
        self.attach("object", [])
        assert b"".join(self.target.iter_read(self.source)) == self.stored


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(STEPS, min_size=3, max_size=12))
def test_stacks_agree_with_a_model(
    target: pyosd.Target,
    functions: dict[str, ObjectRef],
    zone: ObjectRef,
    shelf: ObjectRef,
    steps: list[tuple[object, ...]],
) -> None:
    machine = Machine(target, functions, zone, shelf)
    for name, *arguments in steps:
        getattr(machine, str(name))(*arguments)
    machine.check()
