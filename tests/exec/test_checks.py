# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions that check changes of objects before they happen (docs/hooks.md)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

import pyosd
from pyosd import requests as rq
from pyosd.errors import ChangeRefused, Invalid, NotFound, OSDError, VersionMismatch
from pyosd.fs.transfer import Outgoing, put_files
from pyosd.functions import Functions, Hook, HookEvent
from pyosd.types import ROOT, AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import LOGICAL_LENGTH, Page
from pyosd.wire.cdb import AttributeLists, Request
from tests.exec.conftest import Run
from tests.exec.test_views import shows
from tests.serving import Serving

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

CHECK = 0x802E
EXCEPTION, WALL_LIMIT, RESULT_LIMIT = 201, 301, 308
PAGE = 0x10000

TELL = """
import osd

def main(args):
    c = osd.change(args)
    word = c.options.get("word", "")
    told = f"{word}{c.command} {sorted(c.events)} {c.offset}+{c.length} of {c.old_length}"
    if c.data is not None:
        told += f" {c.data[:20]!r}"
    if c.attributes:
        told += f" {[(hex(page), number, value) for page, number, value in c.attributes]}"
    return told

def nothing(args):
    return None

def once(args):  # refuses what is there already
    c = osd.change(args)
    return "written already" if c.old_length else None
"""
BAD = """
import os, time

def raises(args):
    raise ValueError("the age must be a number")

def hangs(args):
    time.sleep(60)

def leaves(args):
    os._exit(3)

def huge(args):
    return b"x" * (17 << 20)

def long(args):
    return "\\u00e4" * 300

def odd(args):
    return ["a", {"b": None}]

def control(args):
    return b"first\\nlast\\x1b[31m"
"""


@pytest.fixture
def tell(functions: Functions) -> ObjectRef:
    return functions.put(TELL, name="tell", methods=["main", "nothing", "once"]).id


def refused(act: Callable[[], object]) -> ChangeRefused:
    """The refusal of a command."""
    with pytest.raises(ChangeRefused) as caught:
        act()
    assert (caught.value.asc << 8 | caught.value.ascq) == CHECK
    return caught.value


def reason(error: ChangeRefused) -> int | None:
    return error.sense.command_information if error.sense else None


def said(error: ChangeRefused) -> str:
    assert error.sense and error.text.startswith(error.sense.text)
    assert error.sense.command_information == 0 and error.sense.information
    return error.sense.text


def whole(target: pyosd.Target, obj: ObjectRef) -> bytes:
    return bytes(target.read(obj, 0, 1 << 20))


def test_each_command_is_asked_about(
    target: pyosd.Target, functions: Functions, tell: ObjectRef, zone: ObjectRef
) -> None:
    partition = zone.partition_id
    old = target.create(partition)
    target.write(old, 0, b"hello")
    functions.hook(ref(partition), Hook(tell))
    assert said(refused(lambda: target.create(partition))) == "CREATE ['create'] 0+0 of 0"
    assert (
        said(refused(lambda: target.create_and_write(partition, b"abc", 3)))
        == "CREATE AND WRITE ['create'] 3+3 of 0 b'abc'"
    )
    assert said(refused(lambda: target.write(old, 2, b"xy"))) == "WRITE ['write'] 2+2 of 5 b'xy'"
    assert said(refused(lambda: target.append(old, b"z"))) == "APPEND ['write'] 5+1 of 5 b'z'"
    assert said(refused(lambda: target.clear(old, 1, 2))) == "CLEAR ['write'] 1+2 of 5"
    assert said(refused(lambda: target.punch(old, 0, 1))) == "PUNCH ['write'] 0+1 of 5"
    assert said(refused(lambda: target.remove(old))) == "REMOVE ['remove'] 0+0 of 5"
    value = AttributeValue(PAGE, 7, b"v")
    assert (
        said(refused(lambda: target.set_attributes(old, [value])))
        == "SET ATTRIBUTES ['set'] 0+0 of 5 [('0x10000', 7, b'v')]"
    )
    length = AttributeValue(*LOGICAL_LENGTH, bytes(8))
    told = said(refused(lambda: target.set_attributes(old, [length])))
    assert told.startswith("SET ATTRIBUTES ['set', 'write'] 0+0 of 5")
    assert whole(target, old) == b"hello"
    assert target.list_objects(partition) == [old]
    functions.unhook(ref(partition))
    target.write(old, 0, b"J")
    target.remove(old)


def test_a_check_that_permits(
    target: pyosd.Target, functions: Functions, tell: ObjectRef, zone: ObjectRef
) -> None:
    partition = zone.partition_id
    functions.hook(ref(partition), Hook(tell, method="nothing"))
    obj = target.create(partition)
    target.write(obj, 0, b"hello")
    target.append(obj, b"!")
    target.set_attributes(obj, [AttributeValue(PAGE, 7, b"v")])
    assert whole(target, obj) == b"hello!"
    target.remove(obj)
    made = target.create_and_write(partition, b"x" * (200 << 10))
    assert len(whole(target, made)) == 200 << 10


def test_an_object_of_a_view(
    target: pyosd.Target, functions: Functions, tell: ObjectRef, zone: ObjectRef
) -> None:
    """The check is about the data that it shows, and permits what is done to these."""
    source = target.create(zone.partition_id)
    target.write(source, 0, b"hello")
    view = ref(functions.view_create(zone.partition_id, [], writable=True).id)
    shown = ref(view.partition_id, source.object_id)
    value = AttributeValue(PAGE, 7, b"v")
    functions.hook(view, Hook(tell))
    assert said(refused(lambda: target.write(shown, 2, b"xy"))) == "WRITE ['write'] 2+2 of 5 b'xy'"
    assert said(refused(lambda: target.remove(shown))) == "REMOVE ['remove'] 0+0 of 5"
    functions.unhook(view)
    functions.hook(view, Hook(tell, method="nothing"))
    target.write(shown, 0, b"J")
    target.set_attributes(shown, [value])
    assert whole(target, source) == b"Jello"
    assert target.get_attribute(shown, PAGE, 7) == b"v"
    version = target.data_version(shown)
    target.write(source, 0, b"C")
    with pytest.raises(VersionMismatch):
        target.write(shown, 0, b"H", if_version=version)
    target.write(shown, 0, b"H", if_version=target.data_version(shown))
    target.remove(shown)
    assert target.list_objects(zone.partition_id) == []


def test_an_object_whose_source_is_gone(
    target: pyosd.Target, functions: Functions, tell: ObjectRef, zone: ObjectRef
) -> None:
    source, shown = target.create(zone.partition_id), target.create(zone.partition_id)
    shows(target, shown, source)
    target.remove(source)
    functions.hook(ref(zone.partition_id), Hook(tell))
    assert said(refused(lambda: target.remove(shown))) == "REMOVE ['remove'] 0+0 of 0"
    functions.unhook(ref(zone.partition_id))
    functions.hook(ref(zone.partition_id), Hook(tell, method="nothing"))
    target.set_attributes(shown, [AttributeValue(PAGE, 7, b"v")])
    target.remove(shown)
    assert target.list_objects(zone.partition_id) == []


def test_events_are_chosen(
    target: pyosd.Target, functions: Functions, tell: ObjectRef, zone: ObjectRef
) -> None:
    partition = zone.partition_id
    functions.hook(ref(partition), Hook(tell, HookEvent.REMOVE))
    obj = target.create(partition)
    target.write(obj, 0, b"hello")
    refused(lambda: target.remove(obj))
    functions.hook(ref(partition), Hook(tell, HookEvent.SET))
    assert [each.events for each in functions.hooks(ref(partition))] == [HookEvent.SET]
    refused(lambda: target.set_attributes(obj, [AttributeValue(PAGE, 7, b"v")]))
    target.remove(obj)


def test_all_levels_are_asked(
    target: pyosd.Target, functions: Functions, tell: ObjectRef, zone: ObjectRef
) -> None:
    """A hook of an object takes none of those above away; each must permit."""
    partition = zone.partition_id
    obj = target.create(partition)
    functions.hook(obj, Hook(tell, parameters="word=own "))
    assert said(refused(lambda: target.write(obj, 0, b"x"))).startswith("own WRITE")
    functions.hook(ref(partition), Hook(tell, parameters="word=partition "))
    assert said(refused(lambda: target.write(obj, 0, b"x"))).startswith("partition WRITE")
    functions.hook(ROOT, Hook(tell, parameters="word=root "))
    assert said(refused(lambda: target.write(obj, 0, b"x"))).startswith("root WRITE")
    for address, next_one in ((ROOT, "partition"), (ref(partition), "own")):
        functions.unhook(address)
        functions.hook(address, Hook(tell, method="nothing"))
        told = said(refused(lambda: target.write(obj, 0, b"x")))
        assert told.startswith(f"{next_one} WRITE"), "the first that permits decides nothing"
    for address in (ROOT, ref(partition), obj):
        functions.unhook(address)
    target.write(obj, 0, b"x")


@pytest.mark.parametrize(
    ("method", "expected", "text"),
    [
        ("raises", EXCEPTION, "ValueError: the age must be a number"),
        ("leaves", 204, ""),
        ("huge", RESULT_LIMIT, ""),
        ("hangs", WALL_LIMIT, ""),
    ],
)
def test_a_function_that_fails_forbids(
    target: pyosd.Target,
    functions: Functions,
    zone: ObjectRef,
    method: str,
    expected: int,
    text: str,
) -> None:
    bad = functions.put(BAD, name="bad", methods=[method]).id
    obj = target.create(zone.partition_id)
    functions.hook(obj, Hook(bad))
    error = refused(lambda: target.write(obj, 0, b"x"))
    assert reason(error) == expected
    assert error.sense and text in error.sense.text and error.sense.text in error.text
    assert whole(target, obj) == b""
    functions.unhook(obj)
    target.write(obj, 0, b"x")


@pytest.mark.parametrize(
    ("method", "text"),
    [
        ("long", "\u00e4" * 64),
        ("odd", '["a", {"b": null}]'),
        ("control", "last [31m"),
    ],
)
def test_texts(
    target: pyosd.Target, functions: Functions, zone: ObjectRef, method: str, text: str
) -> None:
    bad = functions.put(BAD, name="bad", methods=[method]).id
    obj = target.create(zone.partition_id)
    functions.hook(obj, Hook(bad))
    assert said(refused(lambda: target.write(obj, 0, b"x"))) == text


def test_two_writers_of_what_may_be_written_once(
    target: pyosd.Target, functions: Functions, tell: ObjectRef, zone: ObjectRef, serving: Serving
) -> None:
    """Both are asked about the empty object; only one of them finds it so."""
    functions.hook(ref(zone.partition_id), Hook(tell, HookEvent.WRITE, "once"))

    def write(obj: ObjectRef, number: int) -> bool:
        with serving.connect() as own:
            try:
                own.write(obj, 0, bytes((number,)) * 10)
            except ChangeRefused as error:
                assert said(error) == "written already"
                return False
            return True

    for _ in range(5):
        obj = target.create(zone.partition_id)
        with ThreadPoolExecutor(4) as pool:
            won = list(pool.map(partial(write, obj), range(4)))
        assert sum(won) == 1
        assert whole(target, obj) == bytes((won.index(True),)) * 10


@pytest.mark.parametrize("request_of", [rq.flush, lambda obj, **more: rq.read(obj, 0, 10, **more)])
def test_a_command_that_cuts_what_another_client_writes(
    target: pyosd.Target,
    functions: Functions,
    tell: ObjectRef,
    zone: ObjectRef,
    serving: Serving,
    request_of: Callable[..., Request],
) -> None:
    """Both are asked about the empty object.  What is written then, nobody may cut any more."""
    functions.hook(ref(zone.partition_id), Hook(tell, HookEvent.WRITE, "once"))
    cut = AttributeLists((), (AttributeValue(*LOGICAL_LENGTH, bytes(8)),))
    with serving.connect() as own, ThreadPoolExecutor(1) as pool:
        for _ in range(10):
            obj = target.create(zone.partition_id)
            cutting = pool.submit(own.reply, request_of(obj, attributes=cut))
            target.write(obj, 0, b"0123456789")
            error = cutting.result().error
            assert error is None or isinstance(error, ChangeRefused), error
            assert whole(target, obj) == b"0123456789"
        assert isinstance(own.reply(request_of(obj, attributes=cut)).error, ChangeRefused)


def test_what_cannot_be_asked_is_refused(
    target: pyosd.Target,
    functions: Functions,
    tell: ObjectRef,
    zone: ObjectRef,
    run: Run,
    tmp_path: Path,
) -> None:
    """Scripts, copies, commands on many objects and on names do not go round a check."""
    obj = target.create(zone.partition_id)
    target.write(obj, 0, b"hello")
    functions.hook(ref(zone.partition_id), Hook(tell, method="nothing"))
    for line in (
        "u.data[0:1] = b'x'",
        "u.data.append(b'x')",
        "u.remove()",
        "u.setattr([(0x10000, 1, b'x')])",
        "osd.zone.create()",
    ):
        code = f"import osd\nu = osd.userobject({obj.partition_id}, {obj.object_id})\n{line}\n"
        job = run(code, zone=ref(zone.partition_id))
        assert job.reason == EXCEPTION, line
    error = refused(lambda: target.copy(obj, zone.partition_id))
    assert reason(error) is None
    assert "cannot be asked" in error.text
    assert whole(target, obj) == b"hello"
    target.write(obj, 0, b"J")
    assert whole(target, obj) == b"Jello"
    root = ref(zone.partition_id)
    assert "cannot be asked" in refused(lambda: target.put_name(root, "a", b"x")).text
    functions.unhook(root)
    functions.hook(root, Hook(tell, HookEvent.CREATE, method="nothing"))
    top = f"/{zone.partition_id:#x}"
    asked = target.fs.write_bytes(f"{top}/a", b"by CREATE and WRITE")
    assert whole(target, asked) == b"by CREATE and WRITE"
    (tmp_path / "b").write_bytes(b"one more")
    (moved,) = target.carry_stream(put_files(root, [Outgoing(tmp_path / "b", b"b")]))
    assert moved.error is None
    assert bytes(target.fs.read_bytes(f"{top}/b")) == b"one more"


def test_a_refused_file_does_not_end_the_transfer_of_the_others(
    target: pyosd.Target, functions: Functions, tell: ObjectRef, zone: ObjectRef, tmp_path: Path
) -> None:
    root = ref(zone.partition_id)
    functions.hook(root, Hook(tell, HookEvent.CREATE))
    (tmp_path / "small").write_bytes(b"x")
    files = [Outgoing(tmp_path / "small", b"a"), Outgoing(tmp_path / "small", b"b")]
    moved = {each.item: each.error for each in target.carry_stream(put_files(root, files))}
    assert moved.keys() == {*files}
    assert all(isinstance(error, ChangeRefused) for error in moved.values())


def test_a_function_that_is_not_active(
    target: pyosd.Target, functions: Functions, tell: ObjectRef, zone: ObjectRef
) -> None:
    obj = target.create(zone.partition_id)
    functions.hook(obj, Hook(tell, method="nothing"))
    functions.deactivate(tell)
    with pytest.raises(OSDError) as caught:
        target.write(obj, 0, b"x")
    assert (caught.value.asc, caught.value.ascq) == (0x80, 0x17)
    functions.activate(tell)
    target.write(obj, 0, b"x")
    functions.remove(tell, force=True)
    with pytest.raises(OSDError):
        target.write(obj, 0, b"y")
    functions.unhook(obj)
    target.write(obj, 0, b"y")


def test_values_that_are_no_hooks(
    target: pyosd.Target, functions: Functions, tell: ObjectRef, zone: ObjectRef
) -> None:
    obj = target.create(zone.partition_id)
    for value in (b"\1", bytes(28), b"\1\x10" + bytes(26), b"\2\0" + bytes(26)):
        with pytest.raises(Invalid):
            target.set_attributes(obj, [AttributeValue(Page.HOOKS, 1, value)])
    with pytest.raises(Invalid):
        functions.hook(obj, Hook(tell, method="none"))
    with pytest.raises(Invalid):
        functions.hook(obj, Hook(tell, HookEvent.AFTER, page=1))
    with pytest.raises(Invalid):
        target.set_attributes(obj, [AttributeValue(Page.HOOKS, 9, bytes(28))])
    with pytest.raises(NotFound):
        functions.hook(ref(zone.partition_id, 0x77777), Hook(tell))
    assert functions.hooks(obj) == []


def test_stock_worm(target: pyosd.Target, functions: Functions, zone: ObjectRef) -> None:
    worm = functions.put_stock("worm").id
    functions.hook(zone, Hook(worm, HookEvent.WRITE | HookEvent.REMOVE, parameters="append=1"))
    obj = target.create(zone.partition_id)
    target.write(obj, 0, b"once")
    for act in (
        lambda: target.write(obj, 0, b"more"),
        lambda: target.punch(obj, 0, 1),
        lambda: target.remove(obj),
        lambda: target.set_attributes(obj, [AttributeValue(*LOGICAL_LENGTH, bytes(8))]),
    ):
        assert said(refused(act)) == "this object was written once and cannot change"
    target.append(obj, b"!")
    functions.hook(zone, Hook(worm, HookEvent.WRITE | HookEvent.REMOVE, parameters="days=2"))
    error = refused(lambda: target.append(obj, b"!"))
    assert said(error) == "this object cannot change for 2 more days"
    functions.hook(zone, Hook(worm, HookEvent.WRITE | HookEvent.REMOVE, parameters="days=0"))
    target.remove(obj)
    with pytest.raises(TypeError, match=r"parameters are text, as .*, not {'days': 2}"):
        functions.hook(zone, Hook(worm, parameters={"days": 2}))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"target.functions.show\('worm'\).id finds it"):
        functions.hook(zone, Hook("worm"))  # type: ignore[arg-type]
    for wrong, text in (("dayz=2", "unknown parameters: dayz"), ("days=two", "days is a number")):
        functions.hook(zone, Hook(worm, parameters=wrong))
        with pytest.raises(ChangeRefused, match=text):
            target.create(zone.partition_id)
    functions.unhook(zone)
