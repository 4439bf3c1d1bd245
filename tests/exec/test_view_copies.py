# SPDX-License-Identifier: GPL-2.0-or-later
"""COPY USER OBJECTS and QUERY of objects of views (docs/views.md, "Copies")."""

from __future__ import annotations

import gzip
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

import pyosd
from pyosd import Duplication
from pyosd.errors import Invalid, OSDError
from pyosd.functions import Contract, Functions, FunctionStage, OutputSize
from pyosd.osd._query import attr
from pyosd.types import AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import Page
from tests.exec.test_stacks import CONTRACT, NO_INVERSE, XOR, refusal, whole
from tests.exec.test_views import SAME, TEXT

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

TOO_LARGE, STAGE_FAILED = 2, 0x802D
NOTE = AttributeValue(Page.APPLICATION, 1, b"of the view")


def test_a_copy_from_a_view(target: pyosd.Target, functions: Functions, zone: ObjectRef) -> None:
    """It has the data and the attributes that the view shows."""
    source = target.create_and_write(zone.partition_id, TEXT)
    stages = [FunctionStage(functions.put_stock("csv").id, parameters="columns=name")]
    view = functions.view_create(zone.partition_id, stages)
    shown = ref(view.id, source.object_id)
    target.set_attributes(shown, [NOTE])
    elsewhere = target.create_partition()
    for with_attributes in (True, False):
        copied = target.copy(shown, elsewhere, with_attributes=with_attributes)
        assert whole(target, copied) == b"name\nalice\nbob\n"
        note = bytes(target.get_attribute(copied, NOTE.page, NOTE.number))
        assert note == (NOTE.value if with_attributes else b"")
    with pytest.raises(Invalid):
        target.copy(shown, elsewhere, method=Duplication.SPACE_EFFICIENT)
    empty = target.create(zone.partition_id)
    assert whole(target, target.copy(ref(view.id, empty.object_id), elsewhere)) == b""
    target.remove_partition(elsewhere, contents=True)


def test_a_long_copy(
    target: pyosd.Target, functions: Functions, zone: ObjectRef, seed: int
) -> None:
    """In pieces: of blocks, of kept results, and without functions."""
    line = random.Random(seed).randbytes(500).hex().encode() + b"\n"
    data = line * 18_000
    source = target.create_and_write(zone.partition_id, data)
    xor = functions.put(XOR, name="xor", contract=SAME).id
    elsewhere = target.create_partition()
    for stages in ([], [FunctionStage(functions.put_stock("lines").id, parameters="contains=a")]):
        view = functions.view_create(zone.partition_id, stages)
        copied = target.copy(ref(view.id, source.object_id), elsewhere)
        assert whole(target, copied) == data
    view = functions.view_create(zone.partition_id, [FunctionStage(xor)], writable=True)
    with pytest.raises(OSDError) as caught:
        target.copy(source, view.id)
    assert refusal(caught) == (CONTRACT, TOO_LARGE)
    target.remove_partition(elsewhere, contents=True)


def test_a_copy_to_a_view(target: pyosd.Target, functions: Functions, zone: ObjectRef) -> None:
    """The data pass the inverse functions, as those of CREATE AND WRITE."""
    gzipped = functions.put_stock("gzip").id
    csv = functions.put_stock("csv").id
    source = target.create_and_write(zone.partition_id, TEXT, attributes=[NOTE])
    base = target.create_partition()
    plain = functions.view_create(base, [], writable=True)
    view = functions.view_create(base, [FunctionStage(gzipped)], writable=True)
    forward = functions.view_create(base, [FunctionStage(csv)], writable=True)
    copied = target.copy(source, view.id)
    assert copied.partition_id == view.id and whole(target, copied) == TEXT
    assert bytes(target.get_attribute(copied, NOTE.page, NOTE.number)) == NOTE.value
    assert gzip.decompress(whole(target, ref(base, copied.object_id))) == TEXT
    again = target.copy(copied, view.id)
    assert whole(target, again) == TEXT and again != copied
    raw = target.copy(copied, plain.id, 0x55555)
    assert whole(target, raw) == TEXT == whole(target, ref(base, 0x55555))
    assert whole(target, target.copy(target.create(zone.partition_id), view.id)) == b""
    with pytest.raises(OSDError) as caught:
        target.copy(source, forward.id)
    assert refusal(caught) == (CONTRACT, NO_INVERSE)
    target.remove_partition(base, contents=True)


def test_data_from_a_view_pass_the_functions_of_the_destination(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    source = target.create_and_write(zone.partition_id, TEXT)
    view = functions.view_create(zone.partition_id, [])
    packed = ref(target.create_partition())
    functions.attach(packed, [FunctionStage(functions.put_stock("gzip").id)])
    copied = target.copy(ref(view.id, source.object_id), packed.partition_id)
    assert whole(target, copied) == TEXT
    functions.detach(packed)
    assert gzip.decompress(whole(target, copied)) == TEXT
    target.remove_partition(packed.partition_id, contents=True)


def test_a_copy_that_fails(target: pyosd.Target, functions: Functions, zone: ObjectRef) -> None:
    """Nothing is made."""
    source = target.create_and_write(zone.partition_id, b"no gzip")
    view = functions.view_create(
        zone.partition_id, [FunctionStage(functions.put_stock("gzip").id)], writable=True
    )
    elsewhere = target.create_partition()
    with pytest.raises(OSDError) as caught:
        target.copy(ref(view.id, source.object_id), elsewhere)
    assert refusal(caught)[0] == STAGE_FAILED
    assert target.list_objects(elsewhere) == []
    target.remove_partition(elsewhere)


def test_copies_while_the_source_changes(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    """Each copy is of one moment."""
    texts = [bytes((letter,)) * 100_000 for letter in b"ab"]
    source = target.create_and_write(zone.partition_id, texts[0])
    unsure = Contract(OutputSize.SAME, block=4096, inverse="main")
    xor = functions.put(XOR, name="xor", contract=unsure).id
    view = functions.view_create(zone.partition_id, [FunctionStage(xor, parameters="key=0")])
    elsewhere = target.create_partition()
    with ThreadPoolExecutor(3) as threads:
        copies = [
            threads.submit(target.copy, ref(view.id, source.object_id), elsewhere) for _ in range(8)
        ]
        for turn in range(16):
            target.write(source, 0, texts[turn % 2])
        assert all(whole(target, each.result()) in texts for each in copies)
    target.remove_partition(elsewhere, contents=True)


def test_a_query_of_a_view(target: pyosd.Target, functions: Functions, zone: ObjectRef) -> None:
    """It finds objects by the attributes that they have in the view."""
    view = functions.view_create(zone.partition_id, [])
    made = [target.create(zone.partition_id, attributes=[NOTE]) for _ in range(2)]
    target.set_attributes(ref(view.id, made[1].object_id), [NOTE])
    found = target.query(ref(view.id), attr(NOTE.page, NOTE.number) == NOTE.value)
    assert [each.object_id for each in found] == [made[1].object_id]
