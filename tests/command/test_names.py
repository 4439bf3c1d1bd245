# SPDX-License-Identifier: GPL-2.0-or-later
"""READ NAMES and CHANGE NAMES (docs/names.md): every verb, what is refused, and kill -9."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.errors import (
    Invalid,
    IsADirectory,
    NameChanged,
    NameExists,
    NoSuchName,
    NotADirectory,
    NotEmpty,
    NotFound,
    OSDError,
)
from pyosd.types import AttributeId, AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import CURRENT_OBJECT_ID, Page
from pyosd.wire.cdb import AttributeLists
from pyosd.wire.names import NameParams, NameVerb
from pyosd.wire.reply import Reply
from tests.conftest import MakeHarness
from tests.expect import CDB_FIELD, OK, check

USERNAME = (1, 9)
COLOUR = AttributeValue(Page.APPLICATION, 1, b"green")


def username(osd: Commands, obj: ObjectRef) -> bytes:
    return osd.get_attribute(obj, *USERNAME)


def names(osd: Commands, directory: ObjectRef, path: str = "") -> list[bytes]:
    return [each.name for each in osd.list_names(directory, path).entries]


def test_an_object_is_made_with_its_name(osd: Commands, root: ObjectRef) -> None:
    made = osd.create_name(root, "a", attributes=[COLOUR])
    assert (made.made, made.names, made.is_directory) == (True, 1, False)
    assert osd.lookup(root, "a") == replace(made, made=False)
    assert username(osd, made.object) == b"a"
    assert osd.get_attribute(made.object, Page.APPLICATION, 1) == b"green"
    with pytest.raises(NameExists) as caught:
        osd.create_name(root, "a")
    assert isinstance(caught.value, FileExistsError)
    again = osd.create_name(root, "a", exclusive=False)
    assert (again.object, again.made) == (made.object, False)


def test_a_path_is_looked_up_in_one_command(osd: Commands, root: ObjectRef) -> None:
    path = ""
    for name in ("one", "two", "three", "four"):
        path = f"{path}/{name}" if path else name
        assert osd.make_directory(root, path).made
    file = osd.create_name(root, f"{path}/file")
    lists = AttributeLists((CURRENT_OBJECT_ID, AttributeId(*USERNAME)), (), 256)
    request = rq.names(root, NameParams(NameVerb.LOOKUP, f"{path}/file".encode()), attributes=lists)
    reply = osd.reply(request)
    check(reply, OK)
    assert reply.attribute(CURRENT_OBJECT_ID).uint == file.object.object_id
    assert reply.attribute(AttributeId(*USERNAME)).value == b"file"
    two = osd.lookup(root, "one/two")
    assert osd.lookup(two.object, "three/four/file").object == file.object
    assert osd.lookup(two.object, "").object == two.object
    assert osd.list_members(osd.lookup(root, path).object) == [file.object]


@pytest.mark.parametrize(
    ("path", "error", "component"),
    [
        ("absent", NoSuchName, 1),
        ("d/absent", NoSuchName, 2),
        ("absent/f", NoSuchName, 1),
        ("d/f/g", NotADirectory, 2),
    ],
)
def test_the_sense_says_which_name(
    osd: Commands, root: ObjectRef, path: str, error: type[OSDError], component: int
) -> None:
    osd.make_directory(root, "d")
    osd.create_name(root, "d/f")
    with pytest.raises(error, match=f"name {component} of the path") as caught:
        osd.lookup(root, path)
    assert isinstance(caught.value, OSError)


def refused_in_data(reply: Reply, field: int) -> None:
    sense = reply.sense
    assert sense is not None
    assert (sense.asc, sense.ascq, sense.field_in_data_out) == (0x26, 0x00, True)
    assert sense.field_pointer == field


BAD_PATHS = [b"/a", b"a/", b"a//b", b".", b"..", b"a\0b", b"x" * 256, b"d/.."]


@pytest.mark.parametrize("path", BAD_PATHS)
def test_what_is_no_path(osd: Commands, root: ObjectRef, path: bytes) -> None:
    osd.make_directory(root, "d")
    osd.make_directory(root, "a")
    for verb in (NameVerb.LOOKUP, NameVerb.CREATE):
        refused_in_data(osd.reply(rq.names(root, NameParams(verb, path))), 32)
    assert names(osd, root) == [b"a", b"d"]


def test_a_name_may_be_any_other_bytes(osd: Commands, root: ObjectRef) -> None:
    odd = [b"\xff\xfe", b"...", b" ", b"x" * 255, "Grüße".encode()]
    for name in odd:
        osd.create_name(root, name)
    assert names(osd, root) == sorted(odd)
    for name in odd:
        assert osd.unlink(root, name).removed


def test_bad_parameters(osd: Commands, root: ObjectRef) -> None:
    good = rq.names(root, NameParams(NameVerb.CREATE, b"a"))
    data = bytes(good.data)

    def changed(at: int, value: bytes) -> bytes:
        return data[:at] + value + data[at + len(value) :]

    fields = {0: b"\x01", 1: b"\x02", 2: b"\0\1", 14: b"\1", 8: b"\1", 16: b"\1", 24: b"\1"}
    for at, value in fields.items():
        field = 2 if at == 14 else at
        refused_in_data(osd.reply(replace(good, data=changed(at, value))), field)
    for short in (data[:31], b""):
        check(osd.reply(replace(good, data=short, length=len(short))), CDB_FIELD.at(32))
    for lengths in (struct.pack(">H", 2), struct.pack(">H", 0)):
        sense = osd.reply(replace(good, data=changed(4, lengths))).sense
        assert sense is not None
        assert (sense.asc, sense.ascq) == (0x1A, 0x00)
    assert names(osd, root) == []


def test_names_of_one_object(osd: Commands, root: ObjectRef) -> None:
    directory = osd.make_directory(root, "d").object
    file = osd.create_name(root, "d/a").object
    assert osd.link(root, "d/b", "d/a").names == 2
    assert osd.link(root, "c", file).names == 3
    assert username(osd, file) == b"c"
    assert osd.list_members(directory) == [file]
    assert not osd.unlink(root, "d/a").removed
    assert osd.list_members(directory) == [file]
    osd.unlink(root, "d/b")
    assert osd.list_members(directory) == []
    assert osd.lookup(root, "c").names == 1
    assert osd.unlink(root, "c").removed
    assert osd.list_objects(root.partition_id) == []


def test_compare_and_swap(osd: Commands, root: ObjectRef) -> None:
    old, new = osd.create_name(root, "old").object, osd.create(root.partition_id)
    with pytest.raises(NameExists):
        osd.link(root, "old", new)
    with pytest.raises(NameChanged):
        osd.link(root, "old", new, replace=True, expected=new.object_id)
    assert osd.link(root, "old", new, replace=True, expected=old.object_id).removed
    assert osd.lookup(root, "old").object == new
    assert osd.list_objects(root.partition_id) == [new]
    with pytest.raises(NameChanged):
        osd.unlink(root, "old", expected=old.object_id)
    with pytest.raises(NoSuchName):
        osd.link(root, "none", new, replace=True, expected=old.object_id)


def test_what_a_link_refuses(osd: Commands, root: ObjectRef) -> None:
    directory = osd.make_directory(root, "d").object
    collection = osd.create_collection(root.partition_id)
    loose = osd.create(root.partition_id)
    for target in (directory, collection):
        with pytest.raises(Invalid, match="cannot have the name"):
            osd.link(root, "x", target)
    for base, absent in ((directory, loose), (root, ref(root.partition_id, 0x77_0000))):
        with pytest.raises(Invalid):
            osd.link(base, "x", absent)
    with pytest.raises(NoSuchName):
        osd.link(root, "x", "absent")


def test_directories(osd: Commands, root: ObjectRef) -> None:
    directory = osd.make_directory(root, "d").object
    osd.create_name(root, "d/f")
    with pytest.raises(NotEmpty):
        osd.remove_directory(root, "d")
    for with_members in (False, True):
        with pytest.raises(NotEmpty):
            osd.remove_collection(directory, with_members)
    with pytest.raises(IsADirectory):
        osd.unlink(root, "d")
    with pytest.raises(NotADirectory):
        osd.remove_directory(root, "d/f")
    osd.unlink(root, "d/f")
    assert osd.remove_directory(root, "d").removed
    assert names(osd, root) == []
    assert osd.list_collections(root.partition_id) == []


def test_ordinary_collections_are_no_directories(
    osd: Commands, root: ObjectRef, collection: ObjectRef, obj: ObjectRef
) -> None:
    with pytest.raises(NotADirectory):
        osd.create_name(collection, "x")
    directory = osd.make_directory(root, "d").object
    with pytest.raises(Invalid):
        osd.add_member(directory, obj)
    assert osd.list_members(directory) == []


def test_removal_by_id_takes_the_names(osd: Commands, root: ObjectRef) -> None:
    osd.make_directory(root, "d")
    empty = osd.make_directory(root, "d/e").object
    file = osd.create_name(root, "d/f").object
    osd.link(root, "g", "d/f")
    osd.remove(file)
    osd.remove_collection(empty)
    assert names(osd, root) == [b"d"]
    assert names(osd, root, "d") == []
    many = osd.lookup(root, "d").object
    for number in range(20):
        osd.create_name(many, f"{number:02}")
    osd.remove_member_objects(many)
    assert names(osd, many) == []
    assert osd.remove_directory(root, "d").removed


def test_rename(osd: Commands, root: ObjectRef) -> None:
    for path in ("a", "a/b", "c"):
        osd.make_directory(root, path)
    file = osd.create_name(root, "a/b/f").object
    assert osd.rename(root, "a/b/f", "c/g").object == file
    assert username(osd, file) == b"g"
    assert osd.list_members(osd.lookup(root, "c").object) == [file]
    assert osd.list_members(osd.lookup(root, "a/b").object) == []
    osd.rename(root, "a/b", "c/b")
    assert (names(osd, root, "a"), names(osd, root, "c")) == ([], [b"b", b"g"])
    osd.make_directory(root, "c/b/deep")
    for new in ("c/b/c", "c/b/x", "c/x", "c/b/deep/x"):
        with pytest.raises(Invalid, match="below itself"):
            osd.rename(root, "c", new)
    with pytest.raises(NoSuchName):
        osd.rename(root, "absent", "x")
    with pytest.raises(NoSuchName):
        osd.rename(root, "a", "absent/x")


def test_rename_onto_a_name(osd: Commands, root: ObjectRef) -> None:
    first, second = (osd.create_name(root, each).object for each in "ab")
    for path in ("d", "e", "e/f"):
        osd.make_directory(root, path)
    with pytest.raises(NameExists):
        osd.rename(root, "a", "b")
    with pytest.raises(IsADirectory):
        osd.rename(root, "a", "d", replace=True)
    with pytest.raises(NotADirectory):
        osd.rename(root, "d", "a", replace=True)
    with pytest.raises(NotEmpty):
        osd.rename(root, "d", "e", replace=True)
    assert osd.rename(root, "a", "b", replace=True).removed
    assert osd.list_objects(root.partition_id) == [first]
    with pytest.raises(NotFound):
        osd.length(second)
    osd.rename(root, "e", "d", replace=True)
    assert (names(osd, root), names(osd, root, "d")) == ([b"b", b"d"], [b"f"])
    osd.link(root, "same", "b")
    assert osd.rename(root, "same", "b", replace=True).names == 2


def test_exchange(osd: Commands, root: ObjectRef) -> None:
    directory = osd.make_directory(root, "d").object
    file = osd.create_name(root, "f").object
    inner = osd.create_name(root, "d/inner").object
    osd.rename(root, "d", "f", exchange=True)
    assert (osd.lookup(root, "f").object, osd.lookup(root, "d").object) == (directory, file)
    osd.rename(root, "f/inner", "d", exchange=True)
    assert (osd.lookup(root, "f/inner").object, osd.lookup(root, "d").object) == (file, inner)
    for pair in (("f", "f/inner"), ("f/inner", "f")):
        with pytest.raises(Invalid, match="below itself"):
            osd.rename(root, *pair, exchange=True)
    with pytest.raises(NoSuchName):
        osd.rename(root, "f", "absent", exchange=True)


def test_a_lookup_that_expects_an_object(osd: Commands, root: ObjectRef) -> None:
    made = osd.create_name(root, "a").object

    def set_colour(expected: int) -> None:
        params = NameParams(NameVerb.LOOKUP, b"a", expected=expected)
        lists = AttributeLists((), (COLOUR,), None)
        osd.call(rq.names(root, params, attributes=lists))

    with pytest.raises(NameChanged):
        set_colour(made.object_id + 1)
    assert osd.get_attribute(made, *COLOUR.id) == b""
    set_colour(made.object_id)
    assert osd.get_attribute(made, *COLOUR.id) == COLOUR.value


def test_the_version_of_a_directory_says_that_it_changed(osd: Commands, root: ObjectRef) -> None:
    directory = osd.make_directory(root, "d").object
    seen = [osd.members_version(directory)]
    steps: list[Callable[[], object]] = [
        lambda: osd.create_name(directory, "a"),
        lambda: osd.rename(directory, "a", "b"),
        lambda: osd.link(directory, "c", "b"),
        lambda: osd.unlink(directory, "c"),
        lambda: osd.make_directory(directory, "e"),
        lambda: osd.remove_directory(directory, "e"),
    ]
    for step in steps:
        step()
        seen.append(osd.members_version(directory))
    assert len(set(seen)) == len(seen)


def test_partitions_are_removed_with_their_names(osd: Commands) -> None:
    pid = osd.create_partition()
    osd.create_name(ref(pid), "f")
    osd.unlink(ref(pid), "f")
    osd.remove_partition(pid)
    assert osd.create_partition(pid) == pid
    assert names(osd, ref(pid)) == []
    osd.remove_partition(pid)
    with pytest.raises(NotFound):
        osd.lookup(ref(pid), "f")


def test_names_survive_kill(tmp_path: Path, make_harness: MakeHarness) -> None:
    """What was answered is there after each kill, and what was not is whole or absent."""
    harness = make_harness(dir=tmp_path / "store")
    pid = harness.osd.create_partition()
    root = ref(pid)
    harness.osd.make_directory(root, "d")
    for number in range(12):
        osd = harness.osd
        made = osd.create_name(root, f"d/{number}")
        osd.rename(root, f"d/{number}", f"moved{number}")
        osd.link(root, f"d/link{number}", f"moved{number}")
        harness.kill()
        harness.restart()
        osd = harness.osd
        assert osd.lookup(root, f"moved{number}").object == made.object
        assert osd.lookup(root, f"d/link{number}").names == 2
    assert len(names(harness.osd, root, "d")) == 12


# ---- the root ------------------------------------------------------------------------------------


def test_partitions_have_names_on_the_root(osd: Commands) -> None:
    root = ref()
    first, second = osd.create_partition(), osd.create_partition()
    assert osd.list_names(root).entries == ()
    made = osd.link(root, "photos", ref(first))
    assert (made.object, made.names, made.is_directory) == (ref(first), 1, True)
    assert osd.get_attribute(ref(first), Page.PARTITION_INFORMATION, 9) == b"photos"
    osd.link(root, "logs", ref(second))
    assert osd.lookup(root, "photos") == replace(made, made=False)
    details = osd.list_names(root, details=True).entries
    assert [(e.name, e.object) for e in details] == [
        (b"logs", ref(second)),
        (b"photos", ref(first)),
    ]
    assert all(each.is_directory and each.created_ms > 0 for each in details)
    with pytest.raises(Invalid, match="cannot have the name"):
        osd.link(root, "again", ref(first))
    with pytest.raises(NameExists):
        osd.rename(root, "photos", "logs")
    osd.rename(root, "photos", "logs", exchange=True)
    assert osd.lookup(root, "logs").object == ref(first)
    osd.rename(root, "logs", "photos", replace=True)
    assert [each.object for each in osd.list_names(root).entries] == [ref(first)]
    assert osd.lookup(ref(second), "").names == 0
    with pytest.raises(NameChanged):
        osd.unlink(root, "photos", expected=second)
    assert not osd.unlink(root, "photos", expected=first).removed
    assert {first, second} <= set(osd.list_partitions())
    for pid in (first, second):
        osd.remove_partition(pid)


def test_a_path_from_the_root(osd: Commands) -> None:
    root, pid = ref(), osd.create_partition()
    osd.link(root, "photos", ref(pid))
    osd.make_directory(root, "photos/2024")
    made = osd.create_name(root, "photos/2024/a", attributes=[COLOUR])
    assert made.object.partition_id == pid
    assert osd.lookup(ref(pid), "2024/a").object == made.object
    lists = AttributeLists((CURRENT_OBJECT_ID, COLOUR.id), (), 256)
    request = rq.names(root, NameParams(NameVerb.LOOKUP, b"photos/2024/a"), attributes=lists)
    reply = osd.reply(request)
    check(reply, OK)
    assert reply.attribute(COLOUR.id).value == COLOUR.value
    assert names(osd, root, "photos") == [b"2024"]
    assert names(osd, root, "photos/2024") == [b"a"]
    osd.rename(root, "photos/2024/a", "photos/b")
    assert osd.link(root, "photos/c", "photos/b").names == 2
    for path, component in (("none", 1), ("photos/none", 2), ("photos/2024/none", 3)):
        with pytest.raises(NoSuchName, match=f"name {component} of the path"):
            osd.lookup(root, path)
    assert not osd.unlink(root, "photos/c").removed
    assert osd.unlink(root, "photos/b").removed
    assert osd.remove_directory(root, "photos/2024").removed
    for path in ("photos/", "/photos", "photos//a"):
        with pytest.raises(Invalid):
            osd.lookup(root, path)
    osd.remove_partition(pid)
    with pytest.raises(NoSuchName):
        osd.lookup(root, "photos/b")


def test_what_the_root_refuses(osd: Commands, pid: int, obj: ObjectRef) -> None:
    root, other = ref(), osd.create_partition()
    osd.link(root, "one", ref(pid))
    osd.link(root, "two", ref(other))
    osd.create_name(root, "one/f")
    directory = osd.make_directory(root, "one/d").object
    refused: list[Callable[[], object]] = [
        lambda: osd.create_name(root, "x"),
        lambda: osd.make_directory(root, "x"),
        lambda: osd.create_name(root, "one", exclusive=False),
        lambda: osd.rename(root, "one/f", "two/f"),
        lambda: osd.rename(root, "one/f", "f"),
        lambda: osd.rename(root, "one", "two/one"),
        lambda: osd.link(root, "two/f", "one/f"),
        lambda: osd.link(root, "three", "one"),
        lambda: osd.link(ref(other), "x", ref(pid)),
        lambda: osd.link(root, "x", ref(0x7777_0000)),
    ]
    for act in refused:
        with pytest.raises(Invalid):
            act()
    with pytest.raises(NotADirectory):
        osd.remove_directory(root, "one")
    with pytest.raises(NotADirectory):
        osd.lookup(root, "one/f/g")
    assert names(osd, root) == [b"one", b"two"]
    assert names(osd, ref(pid)) == [b"d", b"f"]
    assert osd.lookup(directory, "").object == directory
    osd.unlink(root, "one")
    osd.remove_partition(other, contents=True)
    assert names(osd, root) == []


def test_names_of_partitions_end_with_them(tmp_path: Path, make_harness: MakeHarness) -> None:
    harness = make_harness(dir=tmp_path / "store")
    osd, root = harness.osd, ref()
    for name in ("a", "b"):
        osd.link(root, name, ref(osd.create_partition()))
    first = osd.lookup(root, "a").object
    osd.remove_partition(first.partition_id)
    harness.kill()
    harness.restart()
    osd = harness.osd
    assert names(osd, root) == [b"b"]
    assert osd.create_partition(first.partition_id) == first.partition_id
    assert osd.lookup(first, "").names == 0
    osd.link(root, "a", first)
    osd.format_osd()
    assert names(osd, root) == []
    osd.link(root, "b", ref(osd.create_partition()))
    harness.kill()
    harness.restart()
    assert names(harness.osd, root) == [b"b"]
    with pytest.raises(NoSuchName):
        harness.osd.lookup(root, "a")


def test_paths_looked_up_again_are_those_of_now(osd: Commands, root: ObjectRef) -> None:
    """Every change of what a path leads to is seen by the next LOOKUP, which may know the path."""
    osd.make_directory(root, "d")
    osd.make_directory(root, "d/e")
    first = osd.create_name(root, "d/e/f").object

    def now(path: str = "d/e/f") -> ObjectRef | None:
        try:
            found = {osd.lookup(root, path).object for _ in range(3)}
        except NoSuchName:
            return None
        assert len(found) == 1
        return found.pop()

    assert now() == first
    osd.rename(root, "d/e", "d/x")
    assert (now(), now("d/x/f")) == (None, first)
    osd.rename(root, "d/x", "d/e")
    assert now() == first
    for expected in (2, 3):
        osd.link(root, f"link{expected}", "d/e/f")
        assert osd.lookup(root, "d/e/f").names == expected == osd.lookup(root, "d/e/f").names
    second = osd.create_name(root, "other").object
    osd.rename(root, "other", "d/e/f", exchange=True)
    assert (now(), now("other")) == (second, first)
    osd.remove(second)
    assert now() is None
    assert now("other") == first
    osd.remove_partition(root.partition_id, contents=True)
    with pytest.raises(NotFound):
        osd.lookup(root, "other")
    assert osd.create_partition(root.partition_id) == root.partition_id
    assert now("other") is None
