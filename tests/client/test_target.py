# SPDX-License-Identifier: GPL-2.0-or-later
"""The typed commands and whole-object transfers against a real target."""

from __future__ import annotations

import functools
import io
import os
import pickle
import subprocess
import sys
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

import pyosd
from pyosd import (
    AttributeId,
    AttributeLists,
    AttributeValue,
    Conflict,
    NotFound,
    ObjectRef,
    OSDError,
    ProtocolError,
    SetOne,
    Target,
    ref,
    requests,
)
from pyosd.types import PartitionId
from pyosd.wire.attributes import ALL, CURRENT_APPEND_START, LOGICAL_LENGTH, Page
from tests.client.faces import Face

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

APPLICATION = AttributeId(Page.APPLICATION, 1)


@pytest.mark.parametrize("size", [0, 1, 4095, 1 << 20, (9 << 20) + 3])
def test_whole_objects(target: Target, zone: ObjectRef, size: int) -> None:
    data = os.urandom(size)
    obj = target.create(zone.partition_id)
    assert target.write_range(obj, 0, data) == size
    assert target.length(obj) == size
    assert target.read_range(obj) == data
    before = target.bytes_received
    assert b"".join(target.iter_read(obj)) == data
    assert target.bytes_received - before < size + (128 << 10)  # few of the zeros past the end
    assert target.read_range(obj, size // 2) == data[size // 2 :]
    assert target.read_range(obj, 0, size + 100) == data


@pytest.mark.parametrize("wrong", ["0x10000", None, ref(0x10000)])
def test_an_id_that_is_no_number(target: Target, wrong: object) -> None:
    for call in (target.list_objects, target.list_collections, ref):
        with pytest.raises(TypeError, match="id is a number, as 0x10000, not "):
            call(wrong)  # type: ignore[arg-type, operator, unused-ignore]
    with pytest.raises(TypeError, match="an id is a number"):
        ref(0x10000, wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("method", "args", "text"),
    [
        (
            "read",
            ("/a", 0, 1),
            r"obj is an ObjectRef.* not '/a': target.fs.resolve\('/a'\) finds it",
        ),
        ("write", ("0x10000/0x10000", 0, b""), r"ObjectRef.parse\('0x10000/0x10000'\) reads"),
        ("remove", ("/a",), "obj is an ObjectRef"),
        ("get_attributes", ("x" * 1000, [APPLICATION]), r"not 'x{79}\.\.\.$"),
        ("iter_read", (5,), "obj is an ObjectRef"),
        ("lookup", ("/a", "b"), "directory is an ObjectRef"),
        (
            "read",
            (ref(0x10000, 0x10000), "0", 1),
            r"start is a number, not '0': int\('0', 0\) reads text",
        ),
        ("write", (ref(0x10000, 0x10000), 0, "text"), r"data are bytes, not 'text': .*encode\(\)"),
        ("write_from", (ref(0x10000, 0x10000), "/tmp/a"), r"source is a file, as open\("),
        ("read", (ref(0x10000, 0x10000), 0, 1), "into is a bytearray or another buffer"),
        ("get_attributes", (ref(0x10000), [5]), r"list of pyosd.AttributeId\(page, number\)"),
        ("set_attributes", (ref(0x10000), {"a": 1}), r"AttributeValue\(.*\), not {'a': 1}"),
        ("retry", (ref(0x10000),), r"a Job, as target.job\(id\) returns"),
        ("remove_partition", ("/a",), r"target.fs.resolve\('/a'\).partition_id finds it"),
        ("list_objects", (ref(0x10000),), "give its partition_id"),
    ],
)
def test_an_argument_of_the_wrong_type(
    face: Face, method: str, args: tuple[object, ...], text: str
) -> None:
    kwargs = {"into": b"no room"} if "into" in text else {}
    with pytest.raises(TypeError, match=text):
        getattr(face, method)(*args, **kwargs)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"name": 5}, "name is a str, not 5"),
        ({"tags": ["a"]}, r"tags is a dict, not \['a'\]"),
        ({"after": "job"}, "a job in after is an ObjectRef"),
        ({"over": ["/a"]}, r"over is a list of ObjectRef"),
        ({"surrogate": "/a"}, "surrogate is an ObjectRef"),
        ({"priority": "high"}, "priority is a number, not 'high'"),
        ({"priority": 101}, "priority must be -100 to 100"),
        ({"rights": "read"}, "rights are a Permission of .* such as READ_ONLY, not 'read'"),
    ],
)
def test_an_option_of_the_wrong_type(
    face: Face, zone: ObjectRef, options: dict[str, Any], text: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=text):
        face.exec("pass", zone=zone, **options)


def test_an_option_of_the_wrong_type_given_to_others_than_exec(
    target: Target, zone: ObjectRef
) -> None:
    wrong: Any = {"priority": "high"}
    with pyosd.Executor(target, zone=zone, **wrong) as executor:
        for call in (
            lambda: executor.submit(len, "abc"),
            lambda: target.run("pass", zone=zone, **wrong),
        ):
            with pytest.raises(TypeError, match="priority is a number, not 'high'"):
                call()


def test_what_belongs_to_a_session_is_not_pickled(face: Face, zone: ObjectRef) -> None:
    job = face.exec("pass", zone=zone)
    for thing, remedy in (
        (face.behind, "connect in each process"),
        (face.behind.fs, "connect in each process"),
        (job.behind, r"target.job\(id\) makes another"),
    ):
        with pytest.raises(TypeError, match=remedy):
            pickle.dumps(thing)


def test_what_is_no_job() -> None:
    wrong: Any = [5]
    for call in (pyosd.wait, lambda jobs: list(pyosd.as_completed(jobs))):
        with pytest.raises(
            TypeError, match=r"these are jobs, as target.exec\(\) returns, and not 5"
        ):
            call(wrong)
    with pytest.raises(TypeError, match="the text of an id is a str, not 5"):
        ObjectRef.parse(5)  # type: ignore[arg-type]


def test_a_function_that_is_none(target: Target, zone: ObjectRef) -> None:
    with pytest.raises(TypeError, match="only a plain function can be sent, not int"):
        target.functions.put(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="number is a number, not 'x'"):
        target.functions.unhook(zone, "x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"resolve\('/a'\).partition_id finds it"):
        target.functions.view("/a")  # type: ignore[arg-type]


def test_a_place_to_run_that_does_not_exist(target: Target, zone: ObjectRef) -> None:
    with pytest.raises(ValueError, match="where is one of auto, near, local, not 'moon'"):
        target.run("pass", zone=zone, where="moon")  # type: ignore[arg-type]


def test_a_path_of_the_wrong_type(face: Face) -> None:
    fs = Face(face.behind.fs, face._run)
    for method, path, text in (
        ("read_bytes", ref(0x10000), "the methods of the target itself take an ObjectRef"),
        ("info", PurePosixPath("/a"), r"path is a str, .* str\(\) makes it one"),
        ("ls", b"/a", r"os.fsdecode\(\) makes it a str"),
    ):
        with pytest.raises(TypeError, match=text):
            getattr(fs, method)(path)


def test_no_target() -> None:
    @pyosd.function
    def nothing() -> None:
        pass

    wrong: Any = "x"
    for call in (nothing.on, functools.partial(pyosd.Executor, zone=ref(0x10000))):
        with pytest.raises(TypeError, match=r"the target is what .*connect\(\) returns, not 'x'"):
            call(wrong)


def test_copy_from_a_file(target: Target, zone: ObjectRef) -> None:
    data = os.urandom(3 << 20)
    obj = target.create(zone.partition_id)
    assert target.write_from(obj, io.BytesIO(data), 100) == len(data)
    assert target.read_range(obj) == bytes(100) + data


def test_read_into_a_buffer(target: Target, zone: ObjectRef) -> None:
    obj = target.create_and_write(zone.partition_id, b"0123456789")
    buffer = bytearray(b"." * 16)
    assert target.read_into(obj, 4, memoryview(buffer)[2:]) == 6
    assert buffer == b"..456789" + bytes(8)
    assert bytes(target.read(obj, 8, 100)) == b"89"
    assert not target.read(obj, 100, 100)


def test_append_clear_punch(target: Target, zone: ObjectRef) -> None:
    obj = target.create(zone.partition_id)
    assert [target.append(obj, b"abc") for _ in range(3)] == [0, 3, 6]
    target.clear(obj, 1, 2)
    target.punch(obj, 3, 3)
    assert target.read_range(obj) == b"a\0\0abc"
    with pytest.raises(OSDError) as caught:
        target.punch(obj, 100, 1)
    assert caught.value.field_pointer == 40


def test_pieces(target: Target, zone: ObjectRef) -> None:
    obj = target.create(zone.partition_id)
    try:
        target.write_pieces(obj, [(0, 2), (10, 3)], b"abcde")
    except OSDError as error:
        assert error.sense_key == 5
        pytest.skip("scatter/gather is not offered")
    assert bytes(target.read_pieces(obj, [(10, 3), (0, 2)])) == b"cdeab"


def test_attributes_with_a_write(target: Target, zone: ObjectRef) -> None:
    obj = target.create(zone.partition_id, attributes=[AttributeValue(Page.APPLICATION, 1, b"new")])
    lists = AttributeLists(
        (APPLICATION, LOGICAL_LENGTH), (AttributeValue(Page.APPLICATION, 1, b"set"),)
    )
    reply = target.call(requests.write(obj, 0, b"hello", attributes=lists))
    assert [each.value for each in reply.attributes] == [b"set", (5).to_bytes(8, "big")]
    reply = target.call(requests.read(obj, 0, 100, attributes=AttributeLists((APPLICATION,))))
    assert bytes(reply.data) == b"hello" and reply.attributes[0].value == b"set"
    one = SetOne(AttributeValue(Page.APPLICATION, 1, b"inside the CDB"))
    target.call(requests.set_attributes(obj, attributes=one))
    assert target.get_attribute(obj, *_pair(APPLICATION)) == b"inside the CDB"


def _pair(wanted: AttributeId) -> tuple[int, int]:
    return wanted.page, wanted.number


def test_long_values_after_setting(target: Target, zone: ObjectRef) -> None:
    """Nothing of what set_attributes() reads is cut, however long and however many values there are."""
    obj = target.create(zone.partition_id)
    values = [
        AttributeValue(Page.APPLICATION, number, bytes([number]) * 60_000)
        for number in range(1, 20)
    ]
    ids = [each.id for each in values]
    assert target.set_attributes(obj, values[:1], ids[:1]) == (values[0],)
    assert target.set_attributes(obj, values, ids) == tuple(values)
    page = target.set_attributes(obj, values[:1], [AttributeId(Page.APPLICATION, ALL)])
    assert [each.value for each in page if each.number] == [each.value for each in values]


def test_a_cut_list_is_an_error(target: Target, zone: ObjectRef) -> None:
    """Attributes retrieved with too small an allocation length are never taken for the whole list."""
    obj = target.create(zone.partition_id)
    value = AttributeValue(Page.APPLICATION, 1, bytes(5000))
    target.set_attributes(obj, [value])
    lists = AttributeLists((value.id, CURRENT_APPEND_START), (), 4096)
    reply = target.call(requests.append(obj, b"x", attributes=lists))
    with pytest.raises(ProtocolError, match="were cut"):
        _ = reply.attributes


def test_more_attributes_than_expected(target: Target, zone: ObjectRef) -> None:
    obj = target.create(zone.partition_id)
    values = [AttributeValue(Page.APPLICATION, n, bytes([n]) * 5000) for n in range(1, 33)]
    target.set_attributes(obj, values)
    assert list(target.get_attributes(obj, [each.id for each in values])) == values
    found = target.get_attributes(obj, [AttributeId(Page.APPLICATION, ALL)])
    assert [each for each in found if each.number] == values


def test_what_does_not_fit_one_command(target: Target, zone: ObjectRef) -> None:
    obj = target.create(zone.partition_id)
    with pytest.raises(OSDError, match=r"at most 64 MiB: read_range\(\)"):
        target.read(obj, 0, 1 << 30)
    with pytest.raises(TypeError, match="partition_id is a number, as 0x10000, not '0x10000'"):
        target.create("0x10000")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="address -1 does not fit"):
        target.read(obj, -1, 1)


def test_lists(target: Target, zone: ObjectRef) -> None:
    many = target.create_many(zone.partition_id, 300)
    assert len({each.object_id for each in many}) == 300
    assert target.list_objects(zone.partition_id) == many
    page = target.list_page(zone, count=100)
    assert len(page.ids) == 100 and page.continuation_id == many[100].object_id
    assert zone.partition_id in target.list_partitions()


def test_collections(target: Target, zone: ObjectRef) -> None:
    members = target.create_many(zone.partition_id, 3)
    collection = target.create_collection(zone.partition_id)
    value = AttributeValue(Page.USER_COLLECTIONS, 1, collection.object_id.to_bytes(8, "big"))
    for each in members[:2]:
        target.set_attributes(each, [value])
    assert target.list_collections(zone.partition_id) == [collection]
    assert target.list_members(collection) == members[:2]
    found = target.get_member_attributes(collection, [LOGICAL_LENGTH])
    assert [each.object_id for each in found] == [each.object_id for each in members[:2]]
    with pytest.raises(Conflict):
        target.remove_collection(collection)
    target.remove_collection(collection, with_members=True)
    assert target.list_collections(zone.partition_id) == []


def test_errors_say_what_and_where(target: Target, zone: ObjectRef) -> None:
    absent = ref(zone.partition_id, 0x99999)
    with pytest.raises(NotFound) as caught:
        target.read(absent, 0, 1)
    assert caught.value.named_object == absent and caught.value.field_pointer == 24
    with pytest.raises(NotFound):
        target.create(PartitionId(0x7777_7777))
    taken = target.create(zone.partition_id)
    with pytest.raises(Conflict, match="taken"):
        target.create(zone.partition_id, taken.object_id)
    with pytest.raises(Conflict, match="contains"):
        target.remove_partition(zone.partition_id)
    target.remove_partition(zone.partition_id, contents=True)
    with pytest.raises(NotFound):
        target.list_objects(zone.partition_id)


def test_flush_family(target: Target, zone: ObjectRef) -> None:
    obj = target.create_and_write(zone.partition_id, b"data")
    collection = target.create_collection(zone.partition_id)
    target.flush(obj)
    target.flush_collection(collection)
    target.flush_partition(zone.partition_id)
    target.flush_osd()


def test_example(osd_url: str) -> None:
    """examples/client.py does what it says."""
    script = Path(__file__).resolve().parents[2] / "examples/client.py"
    command = [sys.executable, str(script), osd_url]
    environment = dict(os.environ, PYTHONPATH=str(script.parents[1]))
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "Sacred Emily: a rose is a rose is a rose"
    assert lines[1] == "{'a': 3, 'rose': 3, 'is': 2}"
    assert lines[2].startswith("COMPLETED after")
