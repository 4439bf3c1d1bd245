# SPDX-License-Identifier: GPL-2.0-or-later
"""LIST of READ NAMES (docs/names.md): where it goes on, little room, details, attributes of entries."""

from __future__ import annotations

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.errors import Invalid
from pyosd.types import AttributeId, AttributeValue, ObjectRef
from pyosd.wire.attributes import LOGICAL_LENGTH, MEMBERS_VERSION, Page
from pyosd.wire.cdb import AttributeLists
from pyosd.wire.names import ListedName, NameFlag, NameParams, NameVerb
from tests.expect import CDB_FIELD, OK, check

COLOUR = AttributeValue(Page.APPLICATION, 1, b"green")


def test_lists_go_on_where_they_ended(osd: Commands, root: ObjectRef) -> None:
    directory = osd.make_directory(root, "d").object
    wanted = sorted(f"{kind}{number}".encode() for kind in "xy" for number in range(25))
    for name in wanted:
        osd.create_name(directory, name)
    found, after, more = list[bytes](), b"", True
    while more:
        page = osd.list_names(directory, after=after, most=7)
        assert len(page.entries) <= 7
        found += [each.name for each in page.entries]
        after, more = found[-1], page.more
    assert found == wanted
    ys = [each for each in wanted if each.startswith(b"y")]
    assert [e.name for e in osd.list_names(directory, prefix="y").entries] == ys
    page = osd.list_names(directory, prefix="y", after="y10")
    assert [e.name for e in page.entries] == [each for each in ys if each > b"y10"]
    assert osd.list_names(directory, prefix="x", after="y").entries == ()
    page = osd.list_names(directory, prefix="y", after="a")
    assert [e.name for e in page.entries] == ys


def test_a_list_in_little_room(osd: Commands, root: ObjectRef) -> None:
    for name in ("a", "b", "c"):
        osd.create_name(root, name)
    params = NameParams(NameVerb.LIST, b"")
    check(osd.reply(rq.names(root, params, 7)), CDB_FIELD.at(40))
    check(osd.reply(rq.names(root, params, 8)), CDB_FIELD.at(40))
    reply = osd.reply(rq.names(root, params, 8 + 2 * 64 + 63))
    check(reply, OK)
    assert bytes(reply.data[:5]) == b"\0\0\0\2\1"


def test_a_list_with_details(osd: Commands, root: ObjectRef) -> None:
    directory = osd.make_directory(root, "d").object
    file = osd.create_name(root, "f").object
    osd.write(file, 0, b"12345")
    first, second = osd.list_names(root, details=True).entries
    assert (first.object, first.is_directory, first.length) == (directory, True, 0)
    assert (second.object, second.is_directory, second.length) == (file, False, 5)
    assert second.version == osd.data_version(file)
    assert first.version == osd.members_version(directory)
    assert 0 < second.created_ms <= second.modified_ms


def test_a_list_with_attributes_of_each_entry(osd: Commands, root: ObjectRef) -> None:
    directory = osd.make_directory(root, "d").object
    osd.create_name(root, "d/f", attributes=[AttributeValue(0xF001_0000, 1, b"any page")])
    file = osd.link(root, "d/g", "d/f").object
    osd.write(file, 0, b"12345")
    osd.make_directory(root, "d/sub")
    wanted = [LOGICAL_LENGTH, AttributeId(0xF001_0000, 1), MEMBERS_VERSION]
    found = osd.list_names(root, "d", details=True, wanted=wanted).entries
    assert [(e.name, e.names, e.length) for e in found] == [
        (b"f", 2, 5),
        (b"g", 2, 5),
        (b"sub", 1, 0),
    ]
    values = [[(v.id, v.value) for v in each.attributes] for each in found]
    of_file = [(LOGICAL_LENGTH, (5).to_bytes(8)), (wanted[1], b"any page")]
    version = osd.members_version(found[2].object)
    assert values == [of_file, of_file, [(wanted[1], b""), (MEMBERS_VERSION, version)]]
    one = osd.list_names(root, "d", most=1, wanted=wanted)
    assert one.more and one.entries[0].attributes == found[0].attributes
    # Entries that are there already are left out if their attributes do not fit.
    params = NameParams(NameVerb.LIST, b"d", flags=NameFlag.EACH)
    lists = AttributeLists(tuple(wanted), (), 8)
    reply = osd.reply(rq.names(root, params, 8 + 64 + 48, attributes=lists))
    check(reply, OK)
    assert bytes(reply.data[:5]) == b"\0\0\0\1\1"
    check(osd.reply(rq.names(root, params, 8 + 64 + 47, attributes=lists)), CDB_FIELD.at(40))
    setting = AttributeLists(tuple(wanted), (COLOUR,), 8)
    for wrong in rq.names(root, params, 4096), rq.names(root, params, 4096, attributes=setting):
        with pytest.raises(Invalid):
            osd.call(wrong)
    assert directory == osd.lookup(root, "d").object


def test_a_list_with_many_names_of_few_objects(osd: Commands, root: ObjectRef) -> None:
    """The target looks at each object once.  Each entry is as if it had been asked for alone."""
    osd.make_directory(root, "d")
    files = [osd.create_name(root, f"d/{number}").object for number in range(3)]
    for number, file in enumerate(files):
        osd.write(file, 0, bytes(number + 1))
        osd.set_attributes(file, [AttributeValue(0xF001_0000, 1, bytes(number * 9))])
    for number in range(3, 20):
        osd.link(root, f"d/{number}", files[number % 3])
    wanted = [LOGICAL_LENGTH, AttributeId(0xF001_0000, 1)]
    found = osd.list_names(root, "d", details=True, wanted=wanted).entries
    after, alone = b"", list[ListedName]()
    while len(alone) < len(found):
        alone += osd.list_names(root, "d", after=after, most=1, details=True, wanted=wanted).entries
        after = alone[-1].name
    assert [*found] == alone
    assert {(e.object, e.names, e.length) for e in found} == {
        (file, 7 - (number == 2), number + 1) for number, file in enumerate(files)
    }
