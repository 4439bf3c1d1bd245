# SPDX-License-Identifier: GPL-2.0-or-later
"""Random stacks of functions with inverses: reads, writes, attach and detach agree with a model.

The model has the stored bytes, and the same functions in Python.  The stack is the object's own, or
that of its collection, directory or partition.  Commands address the object, one that shows it
through one more function, or that of a writable view of the partition.  They also make the object
anew: by CREATE AND WRITE, as a copy, or with a name.
"""

from __future__ import annotations

import gzip
import itertools
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

SERIAL = itertools.count()

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
LEVELS = st.sampled_from(["object", "collection", "directory", "partition"])
PLACES = st.sampled_from(["source", "shown", "view"])
IN_VIEW = st.booleans()
STEPS = st.one_of(
    st.tuples(st.just("attach"), LEVELS, STACKS),
    st.tuples(st.just("address"), PLACES),
    st.tuples(st.just("read"), st.integers(0, MOST), st.integers(1, MOST)),
    st.tuples(st.just("write"), st.integers(0, MOST), st.integers(1, 3000), st.integers()),
    st.tuples(st.just("empty")),
    st.tuples(st.just("length")),
    st.tuples(st.just("create"), IN_VIEW, st.booleans(), st.integers(1, 3000), st.integers()),
    st.tuples(st.just("copy"), IN_VIEW),
    st.tuples(st.just("put"), IN_VIEW, st.booleans(), st.integers(1, 3000), st.integers()),
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
def view(
    target: pyosd.Target, functions: dict[str, ObjectRef], zone: ObjectRef
) -> Iterator[PartitionId]:
    """A writable view of the zone."""
    table = Functions(target, FUNCTIONS)
    made = table.view_create(zone.partition_id, stages(functions, [VIEW]), writable=True).id
    yield made
    table.view_remove(made)


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
    """An object in a collection and a directory, two that show it, and their model."""

    def __init__(
        self,
        target: pyosd.Target,
        functions: dict[str, ObjectRef],
        zone: ObjectRef,
        shelf: ObjectRef,
        view: PartitionId,
    ) -> None:
        self.target, self.functions, self.shelf = target, functions, shelf.partition_id
        self.bases = {False: zone.partition_id, True: view}
        self.name = f"d{next(SERIAL)}"
        self.directory = target.make_directory(zone, self.name).object
        self.collection = target.create_collection(zone.partition_id)
        self.levels = {
            "collection": self.collection,
            "directory": self.directory,
            "partition": zone,
        }
        self.place, self.level, self.attached = "source", "object", list[Kind]()
        self.take(target.create(zone.partition_id), b"")

    def take(self, made: ObjectRef, stored: bytes, joined: str = "") -> None:
        """Go on with a new object of the base."""
        if self.level == "object":
            self.attached = []
        source = ref(self.bases[False], made.object_id)
        if joined != "collection":
            self.target.add_member(self.collection, source)
        if joined != "directory":
            self.target.link(self.levels["partition"], f"{self.name}/{next(SERIAL)}", source)
        self.levels["object"], self.stored = source, stored
        value = source.partition_id.to_bytes(8) + source.object_id.to_bytes(8) + b"\1"
        shown = self.target.create(self.shelf, attributes=[AttributeValue(Page.STACK, 17, value)])
        Functions(self.target, FUNCTIONS).attach(shown, stages(self.functions, [VIEW]))
        self.places = {
            "source": source,
            "shown": shown,
            "view": ref(self.bases[True], made.object_id),
        }

    @property
    def obj(self) -> ObjectRef:
        return self.places[self.place]

    @property
    def stack(self) -> list[Kind]:
        """What the data of the addressed object pass through."""
        return self.attached + ([VIEW] if self.place != "source" else [])

    def inherited(self, view: bool, joined: str = "") -> list[Kind]:
        """What the data of a new object pass through."""
        counts = self.level in ("partition", joined)
        return (self.attached if counts else []) + ([VIEW] if view else [])

    def attach(self, level: str, stack: list[Kind]) -> None:
        self.level, self.attached = level, stack
        table = Functions(self.target, FUNCTIONS)
        for each in self.levels.values():
            table.detach(each)
        table.attach(self.levels[level], stages(self.functions, stack))

    def address(self, place: str) -> None:
        self.place = place

    def create(self, view: bool, member: bool, length: int, seed: int) -> None:
        """Only an object of the base can name a collection of the base."""
        data, joined = random.Random(seed).randbytes(length), ""
        attributes = []
        if member and not view:
            value = self.collection.object_id.to_bytes(8)
            attributes, joined = [AttributeValue(Page.USER_COLLECTIONS, 1, value)], "collection"
        made = self.target.create_and_write(self.bases[view], data, attributes=attributes)
        self.take(made, write(self.inherited(view, joined), data), joined)

    def copy(self, view: bool) -> None:
        """Stored bytes are copied unless a view takes part, or there are none to compute."""
        plain = self.place == "source" and not view
        seen = self.stored if plain else self.seen()
        try:
            made = self.target.copy(self.obj, self.bases[view], with_attributes=False)
        except OSDError as error:
            assert seen is None and error.asc << 8 | error.ascq == STAGE_FAILED
            return
        assert seen is not None
        self.take(made, seen if plain or not seen else write(self.inherited(view), seen))

    def put(self, view: bool, inside: bool, length: int, seed: int) -> None:
        """With a name, which later ones take.  The data do not pass the directory's functions."""
        data, joined = random.Random(seed).randbytes(length), "directory" if inside else ""
        path = f"{self.name}/a" if inside else "a"
        top = ref(self.bases[view])
        made = self.target.put_name(top, path, data, replace=True).object
        assert self.target.lookup(top, path).object == made
        self.take(made, write(self.inherited(view), data), joined)

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
            assert self.place != "source" or {name for name, _ in self.stack} & {"gzip", "hex"}

    def check(self) -> None:
        """Compare the stored bytes."""
        self.attach("object", [])
        assert b"".join(self.target.iter_read(self.levels["object"])) == self.stored


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
    view: PartitionId,
    steps: list[tuple[object, ...]],
) -> None:
    machine = Machine(target, functions, zone, shelf, view)
    for name, *arguments in steps:
        getattr(machine, str(name))(*arguments)
    machine.check()
