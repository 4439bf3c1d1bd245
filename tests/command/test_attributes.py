# SPDX-License-Identifier: GPL-2.0-or-later
"""GET and SET ATTRIBUTES: three formats, order, truncation, lists that lie, what may be set
(osd2-wire 2.5-2.7, 3.7, 5)."""

from __future__ import annotations

import struct

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import ROOT, AttributeId, AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import ALL, CURRENT_OBJECT_ID, LOGICAL_LENGTH, Page, encode_set_list
from pyosd.wire.cdb import AttributeLists, AttributePage, SetOne
from pyosd.wire.reply import Reply
from tests.expect import CDB_FIELD, LIST_FIELD, LIST_LENGTH, OK, check, mangled

GREEN = AttributeValue(Page.APPLICATION, 1, b"green")
BLUE = AttributeValue(Page.APPLICATION, 1, b"blue!")
OTHER = AttributeValue(Page.APPLICATION, 2, b"\0\1\2")


def value(osd: Commands, obj: ObjectRef, of: AttributeValue) -> bytes:
    return osd.get_attribute(obj, of.page, of.number)


def set_(osd: Commands, obj: ObjectRef, *values: AttributeValue) -> Reply:
    return osd.reply(rq.set_attributes(obj, attributes=AttributeLists((), values)))


def raw_set(osd: Commands, obj: ObjectRef, set_list: bytes) -> Reply:
    """SET ATTRIBUTES with a set list of one's own bytes at Data-Out 0."""
    changes = {68: len(set_list).to_bytes(4, "big"), 72: bytes(4)}
    return mangled(osd, rq.set_attributes(obj), changes, data_out=set_list)


def raw_get(osd: Commands, obj: ObjectRef, get_list: bytes, allocation: int = 4096) -> Reply:
    """GET ATTRIBUTES with a get list of one's own bytes at Data-Out 0."""
    lists = AttributeLists((GREEN.id,), (), allocation)
    request = rq.get_attributes(obj, attributes=lists)
    return mangled(osd, request, {52: len(get_list).to_bytes(4, "big")}, data_out=get_list)


# ---- simple ----


@pytest.mark.parametrize("size", [1, 7, 8, 9, 18, 255, 4096, 0xFFFE])
def test_set_then_get(osd: Commands, obj: ObjectRef, size: int) -> None:
    attribute = AttributeValue(Page.APPLICATION, 5, b"v" * size)
    osd.set_attributes(obj, [attribute])
    assert value(osd, obj, attribute) == attribute.value


def test_undefined_is_length_0_in_its_place(osd: Commands, obj: ObjectRef) -> None:
    osd.set_attributes(obj, [OTHER])
    wanted = [GREEN.id, OTHER.id, AttributeId(0x2_0000, 77), AttributeId(0xF123_4567, 1)]
    found = osd.get_attributes(obj, wanted)
    assert [each.id for each in found] == wanted
    assert [each.value for each in found] == [b"", OTHER.value, b"", b""]


def test_order_is_as_asked_also_twice(osd: Commands, obj: ObjectRef) -> None:
    osd.set_attributes(obj, [GREEN, OTHER])
    wanted = [OTHER.id, GREEN.id, OTHER.id]
    assert [each.id for each in osd.get_attributes(obj, wanted)] == wanted


def test_set_with_length_0_undefines(osd: Commands, obj: ObjectRef) -> None:
    osd.set_attributes(obj, [GREEN])
    osd.set_attributes(obj, [AttributeValue(GREEN.page, GREEN.number, b"")])
    assert value(osd, obj, GREEN) == b""
    assert GREEN.id not in [each.id for each in osd.get_attributes(obj, [AttributeId(ALL, ALL)])]


def test_undefine_what_is_not_defined(osd: Commands, obj: ObjectRef) -> None:
    check(set_(osd, obj, AttributeValue(GREEN.page, GREEN.number, b"")), OK)


def test_replace(osd: Commands, obj: ObjectRef) -> None:
    osd.set_attributes(obj, [GREEN])
    osd.set_attributes(obj, [BLUE])
    assert value(osd, obj, GREEN) == BLUE.value


def test_last_of_two_in_one_list_wins(osd: Commands, obj: ObjectRef) -> None:
    osd.set_attributes(obj, [GREEN, BLUE])
    assert value(osd, obj, GREEN) == BLUE.value


def test_pages_of_every_class(osd: Commands, obj: ObjectRef) -> None:
    """Application pages of the object, vendor-free ranges, and pages any object has."""
    for page in (0x1_0000, 0x1FFF_FFFF, 0xF000_0000, 0xFFFF_FFFD, 0xA, 0xB):
        attribute = AttributeValue(page, 3, b"x")
        osd.set_attributes(obj, [attribute])
        assert value(osd, obj, attribute) == b"x", hex(page)


@pytest.mark.parametrize(
    ("where", "page"),
    [("root", 0x9001_0000), ("partition", 0x3001_0000), ("collection", 0x6001_0000)],
)
def test_application_pages_elsewhere(
    osd: Commands, collection: ObjectRef, where: str, page: int
) -> None:
    obj = {"root": ROOT, "partition": ref(collection.partition_id), "collection": collection}[where]
    attribute = AttributeValue(page, 3, where.encode())
    osd.set_attributes(obj, [attribute])
    assert value(osd, obj, attribute) == where.encode()
    osd.set_attributes(obj, [AttributeValue(page, 3, b"")])


@pytest.mark.parametrize("page", [0x3001_0000, 0x6001_0000, 0x9001_0000, 0xC000_0000, 0xE000_0000])
def test_page_of_another_kind(osd: Commands, obj: ObjectRef, page: int) -> None:
    wrong = AttributeValue(page, 1, b"x")
    check(set_(osd, obj, wrong), LIST_FIELD, wrong.id)
    request = rq.get_attributes(obj, attributes=AttributeLists((wrong.id,)))
    check(osd.reply(request), LIST_FIELD, wrong.id)


@pytest.mark.parametrize("page", [0x80, 0x7FFF, 0x8000, 0xEFFF, 0xF000, 0x2000_0000, 0x2FFF_FFFF])
def test_pages_clients_may_not_set(osd: Commands, obj: ObjectRef, page: int) -> None:
    wrong = AttributeValue(page, 1, b"x")
    check(set_(osd, obj, wrong), LIST_FIELD, wrong.id)


@pytest.mark.parametrize(
    ("page", "number", "size"),
    [
        (Page.USER_DIRECTORY, 1, 40),
        (Page.USER_INFORMATION, 0, 40),
        (Page.USER_INFORMATION, 1, 8),
        (Page.USER_INFORMATION, 2, 8),
        (Page.USER_INFORMATION, 0x81, 8),
        (Page.USER_TIMESTAMPS, 1, 6),
        (Page.USER_TIMESTAMPS, 5, 6),
        (Page.CURRENT_COMMAND, 4, 8),
        (Page.JOB_STATUS, 3, 1),
    ],
)
def test_read_only(osd: Commands, obj: ObjectRef, page: int, number: int, size: int) -> None:
    wrong = AttributeValue(page, number, b"x" * size)
    check(set_(osd, obj, wrong), LIST_FIELD, wrong.id)
    if size <= 18:
        reply = osd.reply(rq.set_attributes(obj, attributes=SetOne(wrong)))
        check(reply, CDB_FIELD)
        assert reply.sense is not None
        assert wrong.id in reply.sense.attributes


def test_set_of_all_numbers(osd: Commands, obj: ObjectRef) -> None:
    for wrong in (AttributeValue(GREEN.page, ALL, b"x"), AttributeValue(ALL, 1, b"x")):
        check(set_(osd, obj, wrong), LIST_FIELD, wrong.id)


def test_a_failed_set_undoes_the_whole_list(osd: Commands, obj: ObjectRef) -> None:
    bad = AttributeValue(Page.USER_INFORMATION, 1, bytes(8))
    check(set_(osd, obj, GREEN, OTHER, bad), LIST_FIELD, bad.id)
    assert value(osd, obj, GREEN) == value(osd, obj, OTHER) == b""


def test_page_can_be_named(osd: Commands, obj: ObjectRef) -> None:
    name = b"ACME    " + b"colours".ljust(32, b"\0")
    osd.set_attributes(obj, [AttributeValue(GREEN.page, 0, name)])
    assert osd.get_attribute(obj, GREEN.page, 0) == name


def test_page_without_name_but_with_attributes(osd: Commands, obj: ObjectRef) -> None:
    osd.set_attributes(obj, [GREEN])
    name = osd.get_attribute(obj, GREEN.page, 0)
    assert name.rstrip(b"\0 ") == b" " * 8 + b"unidentified attributes page"


# ---- get and set in one command, and their order ----


def test_get_attributes_gets_first(osd: Commands, obj: ObjectRef) -> None:
    osd.set_attributes(obj, [GREEN])
    lists = AttributeLists((GREEN.id,), (BLUE,))
    reply = check(osd.reply(rq.get_attributes(obj, attributes=lists)), OK)
    assert reply.attributes == (GREEN,)
    assert value(osd, obj, GREEN) == BLUE.value


def test_set_attributes_sets_first(osd: Commands, obj: ObjectRef) -> None:
    osd.set_attributes(obj, [GREEN])
    assert osd.set_attributes(obj, [BLUE], [GREEN.id]) == (BLUE,)


def test_data_command_then_set_then_get(osd: Commands, obj: ObjectRef) -> None:
    """WRITE 8 bytes, set the length to 3, get the length: command, set, get."""
    cut = AttributeValue(LOGICAL_LENGTH.page, LOGICAL_LENGTH.number, (3).to_bytes(8, "big"))
    lists = AttributeLists((LOGICAL_LENGTH,), (cut,))
    reply = check(osd.reply(rq.write(obj, 0, b"12345678", attributes=lists)), OK)
    assert reply.attribute(LOGICAL_LENGTH).uint == 3
    assert bytes(osd.read(obj, 0, 8)) == b"123"


def test_page_format_gets_and_sets(osd: Commands, obj: ObjectRef) -> None:
    request = rq.set_attributes(obj, attributes=AttributePage(Page.CURRENT_COMMAND, 76, GREEN))
    page = check(osd.reply(request), OK).page
    assert page is not None
    assert (page.page, page.length) == (Page.CURRENT_COMMAND, 0x44)
    assert value(osd, obj, GREEN) == GREEN.value


def test_page_format_undefines(osd: Commands, obj: ObjectRef) -> None:
    osd.set_attributes(obj, [GREEN])
    nothing = AttributeValue(GREEN.page, GREEN.number, b"")
    check(osd.reply(rq.set_attributes(obj, attributes=AttributePage(set=nothing))), OK)
    assert value(osd, obj, GREEN) == b""


@pytest.mark.parametrize("size", [0, 1, 18])
def test_set_one_in_the_cdb(osd: Commands, obj: ObjectRef, size: int) -> None:
    one = AttributeValue(GREEN.page, GREEN.number, b"x" * size)
    osd.set_attributes(obj, [GREEN])
    check(osd.reply(rq.set_attributes(obj, attributes=SetOne(one))), OK)
    assert value(osd, obj, GREEN) == b"x" * size


def test_set_one_with_surplus_data_out(osd: Commands, obj: ObjectRef) -> None:
    """OSC's initiator sends the value in Data-Out too (osd2-wire 2.7)."""
    request = rq.set_attributes(obj, attributes=SetOne(GREEN))
    check(mangled(osd, request, {}, data_out=encode_set_list([GREEN])), OK)
    assert value(osd, obj, GREEN) == GREEN.value


def test_get_list_before_set_list(osd: Commands, obj: ObjectRef) -> None:
    """Segments of Data-Out may come in any order; offsets rule."""
    get_list = struct.pack(">BxxxIII", 1, 8, GREEN.page, GREEN.number)
    set_list = encode_set_list([GREEN])
    request = rq.set_attributes(obj, attributes=AttributeLists((GREEN.id,), (GREEN,)))
    changes = {56: bytes(4), 72: (0xB000_0002).to_bytes(4, "big")}
    reply = mangled(osd, request, changes, data_out=get_list + set_list)
    assert check(reply, OK).attributes == (GREEN,)


# ---- truncation ----


def test_allocation_too_small_for_the_second_entry(osd: Commands, obj: ObjectRef) -> None:
    osd.set_attributes(obj, [GREEN, OTHER])
    lists = AttributeLists((GREEN.id, OTHER.id), (), 8 + 24 + 8)
    reply = check(osd.reply(rq.get_attributes(obj, attributes=lists)), OK)
    assert reply.retrieved.attributes == (GREEN,)
    assert reply.retrieved.needed == 8 + 24 + 24
    assert not reply.retrieved.complete


@pytest.mark.parametrize("allocation", [0, 1, 7, 8, 9])
def test_allocation_smaller_than_anything(osd: Commands, obj: ObjectRef, allocation: int) -> None:
    lists = AttributeLists((GREEN.id,), (), allocation)
    reply = check(osd.reply(rq.get_attributes(obj, attributes=lists)), OK)
    assert reply.response.data_in.nbytes <= allocation


def test_page_form_truncated(osd: Commands, obj: ObjectRef) -> None:
    request = rq.get_attributes(obj, attributes=AttributePage(Page.USER_TIMESTAMPS, 14))
    page = check(osd.reply(request), OK).page
    assert page is not None
    assert page.length == 0x1E, "of the whole page"
    assert len(page.body) == 6


def test_data_in_shorter_than_the_allocation(osd: Commands, obj: ObjectRef) -> None:
    """The transport's room is smaller than what the CDB allows: cut, never refused."""
    osd.set_attributes(obj, [GREEN])
    request = rq.get_attributes(obj, attributes=AttributeLists((GREEN.id,), (), 512))
    whole = bytes(check(osd.reply(request), OK).response.data_in)
    for room in (0, 7, 8, 12, 25, 29):
        reply = check(mangled(osd, request, {}, data_in_length=room), OK)
        got = bytes(reply.response.data_in)
        assert len(got) == min(room, len(whole))
        assert whole.startswith(got.rstrip(b"\0")), "an entry without room to begin is zeros"
    assert len(got) == 29, "a value is cut where the room ends"


def test_all_attributes_with_room_to_spare(osd: Commands, obj: ObjectRef) -> None:
    """OSC asks for all pages with 512 KiB of room."""
    osd.set_attributes(obj, [GREEN, OTHER])
    lists = AttributeLists((AttributeId(ALL, ALL),), (), 512 << 10)
    reply = check(osd.reply(rq.get_attributes(obj, attributes=lists)), OK)
    found = {each.id: each.value for each in reply.attributes}
    assert found[GREEN.id] == GREEN.value
    assert found[OTHER.id] == OTHER.value
    assert found[LOGICAL_LENGTH] == bytes(8)


def test_all_attributes_of_a_page(osd: Commands, obj: ObjectRef) -> None:
    osd.set_attributes(obj, [GREEN, OTHER, AttributeValue(0x2_0000, 1, b"elsewhere")])
    found = osd.get_attributes(obj, [AttributeId(GREEN.page, ALL)])
    assert [each for each in found if each.number] == [GREEN, OTHER]


# ---- lists that lie ----


def test_length_field_of_the_list_is_ignored(osd: Commands, obj: ObjectRef) -> None:
    for claimed in (0, 1, 0xFFFF_FFFF):
        body = encode_set_list([GREEN])[8:]
        check(raw_set(osd, obj, struct.pack(">BxxxI", 9, claimed) + body), OK)
        assert value(osd, obj, GREEN) == GREEN.value


@pytest.mark.parametrize("length", [6, 8, 0x100, 0xFFFE, 0xFFFF])
def test_entry_longer_than_the_list(osd: Commands, obj: ObjectRef, length: int) -> None:
    entry = struct.pack(">II6xH", OTHER.page, OTHER.number, length) + b"12345"
    good = encode_set_list([GREEN])
    reply = raw_set(osd, obj, good + entry.ljust(21, b"\0"))
    check(reply, LIST_LENGTH)
    assert value(osd, obj, GREEN) == b"", "nothing of a bad list is done"


@pytest.mark.parametrize("cut", [1, 4, 8, 15])
def test_set_list_ends_inside_an_entry(osd: Commands, obj: ObjectRef, cut: int) -> None:
    two = encode_set_list([GREEN, AttributeValue(OTHER.page, OTHER.number, b"12345678")])
    check(raw_set(osd, obj, two[:-cut]), LIST_LENGTH)
    assert value(osd, obj, GREEN) == b""


@pytest.mark.parametrize("length", [9, 12, 15])
def test_get_list_is_no_multiple_of_8(osd: Commands, obj: ObjectRef, length: int) -> None:
    get_list = struct.pack(">BxxxIII", 1, 8, GREEN.page, GREEN.number)
    check(raw_get(osd, obj, get_list[:length]), LIST_LENGTH)


@pytest.mark.parametrize("kind", [0x0, 0x9, 0xE, 0xF])
def test_get_list_of_another_type(osd: Commands, obj: ObjectRef, kind: int) -> None:
    get_list = struct.pack(">BxxxIII", kind, 8, GREEN.page, GREEN.number)
    check(raw_get(osd, obj, get_list), LIST_FIELD)


@pytest.mark.parametrize("kind", [0x0, 0x1, 0xE, 0xF])
def test_set_list_of_another_type(osd: Commands, obj: ObjectRef, kind: int) -> None:
    set_list = bytearray(encode_set_list([GREEN]))
    set_list[0] = kind
    check(raw_set(osd, obj, bytes(set_list)), LIST_FIELD)


def test_empty_lists(osd: Commands, obj: ObjectRef) -> None:
    """A header and no entry: nothing to do, and a list without entries to return."""
    check(raw_set(osd, obj, struct.pack(">BxxxI", 9, 0)), OK)
    reply = check(raw_get(osd, obj, struct.pack(">BxxxI", 1, 0)), OK)
    assert bytes(reply.response.data_in) == struct.pack(">BxxxI", 9, 0)


def test_get_in_page_format_of_a_page_without_form(osd: Commands, obj: ObjectRef) -> None:
    for page in (Page.USER_INFORMATION, Page.APPLICATION):
        request = rq.get_attributes(obj, attributes=AttributePage(page, 64))
        reply = osd.reply(request)
        if reply.error:
            check(reply, CDB_FIELD.at(52))
        else:
            assert reply.page is not None
            assert reply.page.length == 0


def test_unknown_numbers_on_known_pages(osd: Commands, obj: ObjectRef) -> None:
    for page in (Page.USER_INFORMATION, Page.USER_TIMESTAMPS, Page.USER_COLLECTIONS, 7):
        assert osd.get_attribute(obj, page, 0x7777) == b""


def test_set_and_current_command_in_one(osd: Commands, obj: ObjectRef) -> None:
    lists = AttributeLists((CURRENT_OBJECT_ID,), (GREEN,))
    reply = check(osd.reply(rq.set_attributes(obj, attributes=lists)), OK)
    assert reply.attribute(CURRENT_OBJECT_ID).uint == obj.object_id


def test_many_attributes_on_one_object(osd: Commands, obj: ObjectRef) -> None:
    values = [
        AttributeValue(0x1_0000 + n % 7, n + 1, bytes([n % 256]) * (n % 50 + 1)) for n in range(500)
    ]
    osd.set_attributes(obj, values)
    found = osd.get_attributes(obj, [each.id for each in values])
    assert found == tuple(values)
