# SPDX-License-Identifier: GPL-2.0-or-later
"""Views: objects that show the data of other objects (docs/views.md, "Views")."""

from __future__ import annotations

import contextlib
import gzip
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import pyosd
from pyosd.errors import (
    ChangeRefused,
    Invalid,
    NotFound,
    OSDError,
    TargetBusy,
    VersionMismatch,
)
from pyosd.functions import Contract, Functions, FunctionStage, Hook, OutputSize
from pyosd.types import AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import LOGICAL_LENGTH, Page
from tests.exec.conftest import WAIT_S
from tests.exec.test_stack_writes import killed_while_writing
from tests.exec.test_stacks import CONTRACT, NO_CHANGE, NO_INVERSE, XOR, refusal, whole
from tests.serving import Serving

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

SOURCE, SOURCE_GONE = 17, 6
TEXT = b"name,age\nalice,7\nbob,8\n"
SAME = Contract(OutputSize.SAME, block=64, inverse="main", deterministic=True)


@pytest.fixture
def base(target: pyosd.Target, zone: ObjectRef) -> ObjectRef:
    """A partition with two objects."""
    for _ in range(2):
        target.write(target.create(zone.partition_id), 0, TEXT)
    return zone


def shows(target: pyosd.Target, obj: ObjectRef, source: ObjectRef, writable: bool = False) -> None:
    value = source.partition_id.to_bytes(8) + source.object_id.to_bytes(8)
    value += b"\1" if writable else b""
    target.set_attributes(obj, [AttributeValue(Page.STACK, SOURCE, value)])


def test_a_view_of_a_partition(target: pyosd.Target, functions: Functions, base: ObjectRef) -> None:
    names = functions.put_stock("csv").id
    view = functions.view_create(
        base.partition_id, [FunctionStage(names, parameters="columns=name")]
    )
    objects = target.list_objects(view.id)
    assert [each.object_id for each in objects] == [
        each.object_id for each in target.list_objects(base.partition_id)
    ]
    for each in objects:
        assert whole(target, each) == b"name\nalice\nbob\n"
        assert bytes(target.read(each, 5, 5)) == b"alice"
        assert bytes(target.get_attribute(each, *LOGICAL_LENGTH)) == b"", "it is not known"
    target.write(
        ref(base.partition_id, objects[0].object_id), 0, b"name,age\neve,1\n" + b"x,2\n" * 2
    )
    assert whole(target, objects[0]) == b"name\neve\nx\nx\n"
    assert functions.views() == [view] and functions.view(view.id) == view
    with pytest.raises(NotFound):
        functions.view(base.partition_id)
    functions.view_remove(view.id)
    assert target.list_objects(base.partition_id)


def test_the_length_of_an_object_of_a_view(
    target: pyosd.Target, functions: Functions, base: ObjectRef
) -> None:
    """That of its source, whose own stages count, and which may have grown a moment ago."""
    xor = functions.put(XOR, name="xor", contract=SAME).id
    source = target.list_objects(base.partition_id)[0]
    plain = functions.view_create(base.partition_id, [])
    view = functions.view_create(plain.id, [FunctionStage(xor, parameters="key=2")])

    def lengths() -> list[bytes]:
        shown = (ref(each.id, source.object_id) for each in (plain, view))
        return [bytes(target.get_attribute(each, *LOGICAL_LENGTH)) for each in shown]

    for size in (70_000, 70_001):
        target.write(source, size - 1, b"x")
        assert lengths() == [size.to_bytes(8)] * 2
    functions.attach(source, [FunctionStage(functions.put_stock("gzip").id)])
    assert lengths() == [b"", b""], "the size of a function is not known"
    functions.detach(source)
    assert lengths() == [(70_001).to_bytes(8)] * 2
    longer, double = (
        functions.put(XOR, contract=Contract(OutputSize.FIXED, ratio=ratio)).id
        for ratio in ((5, 1, 1), (0, 2, 1))
    )
    functions.attach(source, [FunctionStage(longer)])
    twice = ref(functions.view_create(plain.id, [FunctionStage(double)]).id, source.object_id)
    assert bytes(target.get_attribute(twice, *LOGICAL_LENGTH)) == (2 * 70_006).to_bytes(8)


def test_a_later_object_with_the_id_of_the_source(
    target: pyosd.Target, functions: Functions, base: ObjectRef
) -> None:
    shown = target.create(target.create_partition())
    old = target.list_objects(base.partition_id)[0]
    shows(target, shown, old)
    target.remove(old)
    again = target.create(base.partition_id, old.object_id)
    target.write(again, 0, b"of another user")
    with pytest.raises(OSDError) as caught:
        target.read(shown, 0, 1)
    assert refusal(caught) == (CONTRACT, SOURCE_GONE)
    target.remove_partition(shown.partition_id, contents=True)


def test_views_of_views(target: pyosd.Target, functions: Functions, base: ObjectRef) -> None:
    """The stages of the base come first, then those of each view."""
    xor = functions.put(XOR, name="xor", contract=SAME).id
    functions.attach(base, [FunctionStage(xor, parameters="key=1")])
    source = target.list_objects(base.partition_id)[0]
    plain = bytes(target.read(source, 0, 4))
    chain = [source]
    for key in (2, 4, 8, 16, 32):
        chain.append(target.create(base.partition_id))
        functions.attach(chain[-1], [FunctionStage(xor, parameters=f"key={key}")])
        shows(target, chain[-1], chain[-2])
    seen = 0
    for key, each in zip((2, 4, 8, 16), chain[1:], strict=False):
        seen ^= key
        assert bytes(target.read(each, 0, 4)) == bytes(byte ^ seen for byte in plain)
    with pytest.raises(OSDError) as caught:
        target.read(chain[-1], 0, 4)
    assert refusal(caught) == (CONTRACT, SOURCE_GONE), "a chain has an end"
    shows(target, chain[1], chain[4])
    with pytest.raises(OSDError) as caught:
        target.read(chain[1], 0, 4)
    assert refusal(caught) == (CONTRACT, SOURCE_GONE), "a circle has none"


def test_a_list_of_views_costs_a_command_for_each_partition(
    target: pyosd.Target,
    functions: Functions,
    base: ObjectRef,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = [functions.view_create(base.partition_id, []) for _ in range(3)]
    partitions, reply = target.list_partitions(), pyosd.Target.reply
    sent = list[object]()

    def counted(self: pyosd.Target, request: Any, *more: Any) -> Any:
        sent.append(request)
        return reply(self, request, *more)

    monkeypatch.setattr(pyosd.Target, "reply", counted)
    found = functions.views()
    assert len(sent) == 1 + len(partitions)
    assert [each for each in found if each in made] == made


def test_ranges_of_a_view(target: pyosd.Target, functions: Functions, base: ObjectRef) -> None:
    partitions = target.list_partitions()
    with pytest.raises(TypeError, match="a stage is"):
        functions.view_create(base.partition_id, ["names"])  # type: ignore[list-item]
    assert target.list_partitions() == partitions
    view = functions.view_create(base.partition_id, [])
    obj = target.list_objects(view.id)[0]
    for start, length in ((0, 3), (5, 9), (len(TEXT) - 1, 5), (len(TEXT), 1)):
        assert bytes(target.read(obj, start, length)) == TEXT[start : start + length]
    with pytest.raises(OSDError) as caught:
        target.read(obj, len(TEXT) + 1, 1)
    assert caught.value.sense is not None and caught.value.sense.field_pointer == 40
    data, version = target.read_with_version(obj, 0, 3)
    base_object = ref(base.partition_id, obj.object_id)
    assert data == TEXT[:3] and version == target.data_version(base_object)


def test_a_view_is_read_only(target: pyosd.Target, functions: Functions, base: ObjectRef) -> None:
    view = functions.view_create(base.partition_id, [])
    obj = target.list_objects(view.id)[0]
    for change in (
        lambda: target.write(obj, 0, b"x"),
        lambda: target.append(obj, b"x"),
        lambda: target.punch(obj, 0, 1),
    ):
        with pytest.raises(OSDError) as caught:
            change()
        assert refusal(caught) == (CONTRACT, NO_CHANGE)
    for length in (1, 0):
        with pytest.raises(Invalid):
            target.set_attributes(obj, [AttributeValue(*LOGICAL_LENGTH, length.to_bytes(8))])
    assert whole(target, ref(base.partition_id, obj.object_id)) == TEXT


def test_sources_that_cannot_be(
    target: pyosd.Target, functions: Functions, base: ObjectRef
) -> None:
    obj = target.create(base.partition_id)
    code = functions.put(XOR, name="xor", contract=SAME).id
    for value in (b"x", bytes(16), bytes(8) + b"1" * 8, b"1" * 17, b"1" * 22, b"1" * 23):
        with pytest.raises(OSDError):
            target.set_attributes(obj, [AttributeValue(Page.STACK, SOURCE, value)])
    with pytest.raises(Invalid):
        shows(target, obj, code)
    with pytest.raises(Invalid):
        shows(target, code, obj)
    shows(target, obj, target.create(base.partition_id))
    assert bytes(target.read(obj, 0, 1)) == b""


# ---- writes ----


def emptied(target: pyosd.Target, obj: ObjectRef) -> None:
    target.set_attributes(obj, [AttributeValue(*LOGICAL_LENGTH, bytes(8))])


def test_writes_through_blocks(target: pyosd.Target, functions: Functions, base: ObjectRef) -> None:
    """In place: what the base stores is what the functions would have to be given."""
    xor = functions.put(XOR, name="xor", contract=SAME).id
    functions.attach(base, [FunctionStage(xor, parameters="key=1")])
    stages = [FunctionStage(xor, parameters="key=2")]
    view = functions.view_create(base.partition_id, stages, writable=True)
    assert functions.view(view.id).writable
    obj = target.list_objects(view.id)[0]
    source = ref(base.partition_id, obj.object_id)
    before, data = target.data_version(source), bytearray(target.read(obj, 0, 1000))
    for start, text in ((3, b"middle"), (60, b"t" * 100), (300, b"end")):
        target.write(obj, start, text)
        data += bytes(max(0, start + len(text) - len(data)))
        data[start : start + len(text)] = text
        assert whole(target, obj) == data
    assert whole(target, source) == bytes(each ^ 2 for each in data)
    functions.detach(base)
    assert whole(target, source) == bytes(each ^ 3 for each in data)
    assert target.data_version(source) != before
    assert bytes(target.read(obj, 0, 1)) == bytes((data[0] ^ 1,))


def test_writes_through_a_sequential_function(
    target: pyosd.Target, functions: Functions, base: ObjectRef
) -> None:
    """The result takes the place of all bytes of the source."""
    gzipped = functions.put_stock("gzip").id
    functions.attach(base, [FunctionStage(gzipped)])
    source = target.list_objects(base.partition_id)[0]
    emptied(target, source)
    target.write(source, 0, b"one two " * 1000)
    view = functions.view_create(base.partition_id, [], writable=True)
    shown = ref(view.id, source.object_id)
    target.write(shown, 4, b"TWO")
    assert whole(target, shown) == b"one TWO " + b"one two " * 999
    emptied(target, shown)
    assert whole(target, source) == b"" == whole(target, shown)
    target.write(shown, 0, b"short")
    functions.detach(base)
    assert gzip.decompress(whole(target, source)) == b"short"


def test_a_writable_view_without_functions(
    target: pyosd.Target, functions: Functions, base: ObjectRef
) -> None:
    view = functions.view_create(base.partition_id, [], writable=True)
    obj = target.list_objects(view.id)[0]
    source = ref(base.partition_id, obj.object_id)
    target.write(obj, 0, b"NAME")
    target.write_pieces(obj, [(5, 1), (8, 2)], b"A,,")
    assert whole(target, source) == b"NAME,Age,,lice,7\nbob,8\n"
    with pytest.raises(OSDError) as caught:
        target.append(obj, b"x")
    assert refusal(caught) == (CONTRACT, NO_CHANGE)
    target.write(obj, 0, b"name", attributes=[AttributeValue(Page.APPLICATION, 1, b"mine")])
    assert bytes(target.get_attribute(obj, Page.APPLICATION, 1)) == b"mine"
    assert not target.get_attribute(source, Page.APPLICATION, 1)
    assert bytes(target.read(source, 0, 4)) == b"name"


def test_a_function_without_an_inverse(
    target: pyosd.Target, functions: Functions, base: ObjectRef
) -> None:
    names = functions.put_stock("csv").id
    view = functions.view_create(base.partition_id, [FunctionStage(names)], writable=True)
    obj = target.list_objects(view.id)[0]
    with pytest.raises(OSDError) as caught:
        target.write(obj, 0, b"x")
    assert refusal(caught) == (CONTRACT, NO_INVERSE)
    assert whole(target, ref(base.partition_id, obj.object_id)) == TEXT


def test_each_view_of_a_chain_must_be_writable(
    target: pyosd.Target, functions: Functions, base: ObjectRef
) -> None:
    xor = functions.put(XOR, name="xor", contract=SAME).id
    source = target.list_objects(base.partition_id)[0]
    near, far = (target.create(base.partition_id) for _ in range(2))
    for each in (source, near, far):
        functions.attach(each, [FunctionStage(xor, parameters="key=4")])
    for first, second in ((True, False), (False, True)):
        shows(target, near, source, writable=first)
        shows(target, far, near, writable=second)
        with pytest.raises(OSDError) as caught:
            target.write(far, 0, b"x")
        assert refusal(caught) == (CONTRACT, NO_CHANGE)
    shows(target, near, source, writable=True)
    target.write(far, 0, b"x")
    assert [bytes(target.read(each, 0, 1)) for each in (far, near, source)] == [
        bytes((ord("x") ^ key,)) for key in (0, 4, 0)
    ]
    target.remove(source)
    with pytest.raises(OSDError) as caught:
        target.write(far, 0, b"x")
    assert refusal(caught) == (CONTRACT, SOURCE_GONE)


def test_a_wanted_version_of_the_source(
    target: pyosd.Target, functions: Functions, base: ObjectRef
) -> None:
    xor = functions.put(XOR, name="xor", contract=SAME).id
    stages = [FunctionStage(xor)]
    view = functions.view_create(base.partition_id, stages, writable=True)
    obj = target.list_objects(view.id)[0]
    data, version = target.read_with_version(obj, 0, 3)
    target.write(obj, 0, bytes(data)[::-1], if_version=version)
    for length in (1, 64):
        with pytest.raises(VersionMismatch):
            target.write(obj, 0, b"x" * length, if_version=version)
    assert bytes(target.read(obj, 0, 3)) == bytes(data)[::-1]


@pytest.mark.parametrize("way", ["write", "empty"])
def test_a_source_with_a_check_is_not_changed_through_a_view(
    target: pyosd.Target, functions: Functions, base: ObjectRef, way: str
) -> None:
    """The check would permit it, but it is asked about WRITEs of the source alone."""
    permits = functions.put("def main(args): return None", name="permits").id
    view = functions.view_create(base.partition_id, [], writable=True)
    source = target.list_objects(base.partition_id)[0]
    shown = ref(view.id, source.object_id)
    functions.hook(source, Hook(permits))

    def change(obj: ObjectRef) -> None:
        target.write(obj, 0, b"x") if way == "write" else emptied(target, obj)

    with pytest.raises(ChangeRefused):
        change(shown)
    assert whole(target, source) == TEXT
    change(source)
    functions.unhook(source)
    change(shown)


def test_writers_of_a_base_and_of_its_views(
    target: pyosd.Target, functions: Functions, base: ObjectRef
) -> None:
    """No WRITE is lost, whichever way it takes."""
    both = functions.put_stock("gzip").id
    functions.attach(base, [FunctionStage(both)])
    source = target.list_objects(base.partition_id)[0]
    emptied(target, source)
    target.write(source, 0, bytes(12))
    views = [functions.view_create(base.partition_id, [], writable=True) for _ in range(2)]
    ways = [source, *(ref(each.id, source.object_id) for each in views)]

    def write(at: int) -> None:
        while True:
            with contextlib.suppress(TargetBusy):
                return target.write(ways[at % 3], at, bytes((at + 1,)))

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(write, range(12)))
    for each in ways:
        assert whole(target, each) == bytes(range(1, 13))


def test_a_write_through_a_view_is_there_or_not_after_a_kill(own_serving: Serving) -> None:
    texts = [bytes((letter,)) * 300_000 for letter in b"ab"]
    with own_serving.connect() as target:
        table = Functions(target)
        gzipped = table.put_stock("gzip").id
        source = target.create(target.create_partition())
        stages = [FunctionStage(gzipped, parameters="level=0")]
        view = table.view_create(source.partition_id, stages, writable=True)
        obj = ref(view.id, source.object_id)
        target.write(obj, 0, texts[0])
    for delay in (0.02, 0.1):
        killed_while_writing(own_serving, obj, texts, delay)
        with own_serving.connect() as target:
            assert whole(target, obj) in texts
            assert gzip.decompress(whole(target, source)) in texts


def test_the_object_of_a_job_has_no_source(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    """The removal of a job removes no object of the base."""
    view = functions.view_create(zone.partition_id, [], writable=True).id
    later = target.create(zone.partition_id).object_id + 1
    job = target.exec("pass", zone=zone, surrogate=ref(view, later))
    job.wait(WAIT_S)
    source = target.create(zone.partition_id)
    assert source.object_id == later
    with pytest.raises(Invalid):
        shows(target, job.id, source)
    job.remove()
    target.write(source, 0, TEXT)
