# SPDX-License-Identifier: GPL-2.0-or-later
"""Every attribute of every standard page: its length, who sets it, what is refused, the page's name
and form (osd2-wire 5.7-5.18); the values of those that are not obvious."""

from __future__ import annotations

import time

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import ROOT, AttributeId, AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import ALL, Page
from pyosd.wire.cdb import AttributeLists, AttributePage, SetOne
from tests.command.standard_pages import DIRECTORIES, PAGES, C, P, R, StandardPage, U
from tests.expect import CDB_FIELD, LIST_FIELD, OK, check, mangled

Objects = dict[int, ObjectRef]

each_page = pytest.mark.parametrize("page", PAGES, ids=str)


@pytest.fixture
def objects(obj: ObjectRef, collection: ObjectRef) -> Objects:
    """An object of each kind, by the base of its pages."""
    return {R: ROOT, P: ref(obj.partition_id), C: collection, U: obj}


def get_all(osd: Commands, where: ObjectRef, page: StandardPage) -> dict[int, bytes]:
    """The page's attributes one by one, undefined ones too."""
    wanted = [AttributeId(page.number, each.number) for each in page.attributes]
    return {each.number: each.value for each in osd.get_attributes(where, wanted)}


def set_to(osd: Commands, where: ObjectRef, value: AttributeValue, ok: bool) -> None:
    """Set one attribute; if it is refused, then naming it."""
    reply = osd.reply(rq.set_attributes(where, attributes=AttributeLists((), (value,))))
    check(reply, OK) if ok else check(reply, LIST_FIELD, value.id)


# ---- each attribute ----


@each_page
def test_lengths(osd: Commands, objects: Objects, page: StandardPage) -> None:
    found = get_all(osd, objects[page.base], page)
    assert len(found) == len(page.attributes), "one entry for each asked for"
    for each in page.attributes:
        length = len(found[each.number])
        least, most = each.lengths
        if length or not each.optional:
            assert least <= length <= most, f"{page}h #{each.number:X}h has {length} bytes"


@each_page
def test_all_of_the_page(osd: Commands, objects: Objects, page: StandardPage) -> None:
    """Exactly those that have a value, in order, and the identification."""
    where = objects[page.base]
    one_by_one = {number: value for number, value in get_all(osd, where, page).items() if value}
    together = osd.get_attributes(where, [AttributeId(page.number, ALL)])
    assert [each.number for each in together] == [0, *sorted(one_by_one)]
    assert all(each.value for each in together)


@each_page
def test_set(osd: Commands, objects: Objects, page: StandardPage) -> None:
    """Settable ones take the value they have; others none of any length."""
    where = objects[page.base]
    now = get_all(osd, where, page)
    for each in page.attributes:
        value = now[each.number] or bytes(max(each.lengths[0], 1))
        set_to(osd, where, AttributeValue(page.number, each.number, value), each.set)
        if not each.set:
            set_to(osd, where, AttributeValue(page.number, each.number, b""), False)
        elif each.number == 0x9 and not now[each.number]:
            osd.set_attributes(where, [AttributeValue(page.number, each.number, b"")])
    set_to(osd, where, AttributeValue(page.number, 0, b"IOSD    x\0"), False)
    set_to(osd, where, AttributeValue(page.number, 0xFFFF_FFFF, b"x"), False)
    if page.number not in (P + 4, U + 4):
        set_to(osd, where, AttributeValue(page.number, 0x7654, b"x"), False)


@each_page
def test_set_wrong_length(osd: Commands, objects: Objects, page: StandardPage) -> None:
    where = objects[page.base]
    before = get_all(osd, where, page)
    for each in page.attributes:
        if not each.set:
            continue
        least, most = each.lengths
        wrong = {least - 1, most + 1} - {0}
        for length in wrong:
            if length <= 0xFFFE:
                value = AttributeValue(page.number, each.number, bytes(length))
                set_to(osd, where, value, False)
        if least == most:
            set_to(osd, where, AttributeValue(page.number, each.number, bytes(most + 2)), False)
    after = get_all(osd, where, page)
    moving = {0x100, 0x9} if page.base == R else set()
    if page.number & 0xF not in (3,):
        assert {n: v for n, v in after.items() if n not in moving} == {
            n: v for n, v in before.items() if n not in moving
        }


@each_page
def test_read_only_in_the_cdb(osd: Commands, objects: Objects, page: StandardPage) -> None:
    """CDBFMT 1: 24/00 with the attribute named (osd2-wire 5.2)."""
    for each in page.attributes:
        if not each.set and each.lengths[1] <= 18:
            value = AttributeValue(page.number, each.number, bytes(each.lengths[1]))
            request = rq.set_attributes(objects[page.base], attributes=SetOne(value))
            check(osd.reply(request), CDB_FIELD.at(52), value.id)
            break


@each_page
def test_other_objects_do_not_have_it(osd: Commands, objects: Objects, page: StandardPage) -> None:
    for base, where in objects.items():
        if base == page.base:
            continue
        wanted = AttributeId(page.number, 1)
        reply = osd.reply(rq.get_attributes(where, attributes=AttributeLists((wanted,), (), 256)))
        check(reply, LIST_FIELD, wanted)
        set_to(osd, where, AttributeValue(page.number, 1, b"x"), False)
        request = rq.get_attributes(where, attributes=AttributePage(page.number, 256))
        check(osd.reply(request), CDB_FIELD.at(52))


# ---- names and forms ----


def identification(osd: Commands, where: ObjectRef, page: int, number: int) -> bytes:
    value = osd.get_attribute(where, page, number)
    assert len(value) == 40
    assert value[:8] == b"INCITS  "
    return value[8:].rstrip(b"\0 ")


@each_page
def test_name(osd: Commands, objects: Objects, page: StandardPage) -> None:
    """From the page itself, and from the directory."""
    where = objects[page.base]
    assert identification(osd, where, page.number, 0) == page.name.encode()
    assert identification(osd, where, page.base, page.number) == page.name.encode()


@pytest.mark.parametrize("base", DIRECTORIES, ids=DIRECTORIES.values())
def test_directory(osd: Commands, objects: Objects, base: int) -> None:
    where = objects[base]
    assert identification(osd, where, base, 0) == DIRECTORIES[base].encode()
    assert identification(osd, where, base, 0xFFFF_FFFE) == b"T10 Current Command"
    listed = {each.number for each in osd.get_attributes(where, [AttributeId(base, ALL)])}
    assert {page.number for page in PAGES if page.base == base} < listed
    assert 0xFFFF_FFFE in listed
    set_to(osd, where, AttributeValue(base, base + 1, b"x"), False)


@each_page
def test_page_form(osd: Commands, objects: Objects, page: StandardPage) -> None:
    """Without one, a page of length 0."""
    got = osd.get_page(objects[page.base], page.number)
    assert (got.page, got.length) == (page.number, page.form or 0)
    assert len(got.body) == (page.form or 0)


@pytest.mark.parametrize("page", [0x80, 0x7FFF, 0xC000_0000, 0xEFFF_FFFF, ALL])
def test_page_form_of_no_page(osd: Commands, obj: ObjectRef, page: int) -> None:
    request = rq.get_attributes(obj, attributes=AttributePage(page, 64))
    check(osd.reply(request), CDB_FIELD.at(52))


KEYS = -1  # which of the root's key identifiers are there
FORMS: dict[int, list[tuple[int | None, int]]] = {
    R + 2: [(1, 8), (0x1_0001, 8), (0x1_0002, 8), (0x1_0081, 4), (0x2_0002, 8)],
    P + 2: [(1, 8), (0x1_0001, 8), (0x1_0002, 8), (0x1_0081, 4)],
    U + 2: [(1, 8)],
    P + 3: [(n, 6) for n in (1,)],
    C + 3: [(n, 6) for n in (1,)],
    R + 5: [
        *((0x1, 1), (0x6, 1), (0x7, 2), (0x2, 6), (0x3, 6), (KEYS, 1), (0x7FFD, 7), (None, 7)),
        *((0x8000_0000 + each, 1) for each in range(32)),
        *((None, 1), (0xA, 2)),
    ],
    P + 5: [
        (None, 3),
        (0x1, 1),
        (0x2, 6),
        (0x3, 6),
        (0x4, 2),
        (0x5, 2),
        (0x4000_0001, 4),
        (0x4000_0002, 4),
        (None, 3 + 7 + 16 * 7),
    ],
    C + 5: [(0x4000_0001, 4)],
    U + 5: [(0x4000_0001, 4)],
    R + 6: [(None, 2), (6, 6), (1, 1), (2, 1), (3, 6), (4, 6), (5, 6)],
    P + 6: [(None, 2), (6, 6), (1, 1), (2, 1), (3, 6), (4, 6), (5, 6)],
    C + 6: [(1, 1), (None, 1), (3, 6), (4, 6)],
    U + 6: [(1, 1), (None, 1), (3, 6), (4, 6)],
}
"""Fields of the page forms as far as they do not move: number (None: zeros), bytes."""


def field(osd: Commands, where: ObjectRef, page: int, number: int | None, width: int) -> bytes:
    """The required contents of the form."""
    if number is None:
        return bytes(width)
    if number == KEYS:
        return b"\2" if osd.get_attribute(where, page, 0x7FFD) else b"\0"
    return osd.get_attribute(where, page, number).ljust(width, b"\0")


@pytest.mark.parametrize("number", FORMS, ids=lambda number: f"{number:08X}")
def test_fields_of_the_form(osd: Commands, objects: Objects, number: int) -> None:
    where = objects[number & 0xF000_0000]
    if number == P + 5:
        osd.set_attributes(
            where,
            [
                AttributeValue(number, 2, (1000).to_bytes(6, "big")),
                AttributeValue(number, 3, (2000).to_bytes(6, "big")),
                AttributeValue(number, 5, b"\x80\x01"),
                AttributeValue(number, 0x4000_0001, b"part"),
                AttributeValue(number, 0x4000_0002, b"user"),
            ],
        )
    body = osd.get_page(where, number).body
    at = 0
    for attribute, width in FORMS[number]:
        wanted = field(osd, where, number, attribute, width)
        assert body[at : at + width] == wanted, f"at {at} of {number:08X}h"
        at += width


# ---- values ----


def number_of(osd: Commands, where: ObjectRef, page: int, number: int) -> int:
    return int.from_bytes(osd.get_attribute(where, page, number), "big")


def test_largest_descriptors(osd: Commands) -> None:
    """A continuation of the maximum length holds one descriptor of the largest length."""
    longest = number_of(osd, ROOT, Page.ROOT_INFORMATION, 0xA)
    assert longest % 8 == 0
    for kind in (0x1, 0x2, 0xF081, 0xFFEE):
        largest = number_of(osd, ROOT, Page.ROOT_INFORMATION, 0x700_0000 + kind)
        assert longest - 40 - 8 - 15 <= largest <= longest - 40 - 8
    assert number_of(osd, ROOT, Page.ROOT_INFORMATION, 0x700_0101) == 20
    assert number_of(osd, ROOT, Page.ROOT_INFORMATION, 0x700_0001) % 16 == 0


def test_isolation(osd: Commands, obj: ObjectRef) -> None:
    """The bit map says which methods a CDB, and the default, may name."""
    default = AttributeId(Page.ROOT_INFORMATION, 0x110)
    before = osd.get_attribute(ROOT, default.page, default.number)
    assert before == b"\x04"
    supported = osd.get_attribute(ROOT, Page.ROOT_INFORMATION, 0x111)
    assert supported[1:] == bytes(31)
    for method in range(8):
        ok = bool(supported[0] >> (7 - method) & 1)
        value = AttributeValue(default.page, default.number, bytes([method]))
        set_to(osd, ROOT, value, ok)
        request = rq.read(obj, 0, 0)
        named = mangled(osd, request, {10: bytes([method])})
        if method:
            check(named, OK if ok else CDB_FIELD.at(10))
        if ok:
            assert osd.get_attribute(ROOT, default.page, default.number) == bytes([method])
            check(osd.reply(request), OK)
    set_to(osd, ROOT, AttributeValue(default.page, default.number, b"\x08"), False)
    osd.set_attributes(ROOT, [AttributeValue(default.page, default.number, before)])


def test_atomicity(osd: Commands) -> None:
    size, alignment, attributes, both = (
        number_of(osd, ROOT, Page.ROOT_INFORMATION, n) for n in (0x120, 0x121, 0x122, 0x123)
    )
    assert size == alignment == 512
    assert attributes == 64 << 20
    assert both == 0


@pytest.mark.parametrize("number", [0x1, 0x6])
@pytest.mark.parametrize("method", [4, 16, 255])
def test_methods_that_are_none_are_refused(osd: Commands, number: int, method: int) -> None:
    assert osd.get_attribute(ROOT, Page.ROOT_SECURITY, 0x7) == b"\0\x0f"
    set_to(osd, ROOT, AttributeValue(Page.ROOT_SECURITY, number, bytes([method])), False)


@pytest.mark.parametrize("method", range(4))
def test_security_method_of_a_partition(osd: Commands, method: int) -> None:
    partition = ref(osd.create_partition())
    set_to(osd, partition, AttributeValue(Page.PARTITION_SECURITY, 1, bytes([4])), False)
    set_to(osd, partition, AttributeValue(Page.PARTITION_SECURITY, 1, bytes([method])), True)
    reply = osd.reply(rq.flush_partition(partition.partition_id))
    check(reply, CDB_FIELD.at(80) if method else OK)
    osd.remove_partition(partition.partition_id)


def test_policy_values_are_kept(osd: Commands, pid: int) -> None:
    page = Page.PARTITION_SECURITY
    values = [
        AttributeValue(page, 2, (123).to_bytes(6, "big")),
        AttributeValue(page, 3, (456).to_bytes(6, "big")),
        AttributeValue(page, 5, b"\x00\x07"),
        AttributeValue(page, 0x4000_0001, b"\x01\x02\x03\x04"),
    ]
    osd.set_attributes(ref(pid), values)
    assert osd.get_attributes(ref(pid), [each.id for each in values]) == tuple(values)
    undefined = [AttributeValue(page, each.number, b"") for each in values]
    osd.set_attributes(ref(pid), undefined)
    again = osd.get_attributes(ref(pid), [each.id for each in values])
    limits = [each.to_bytes(6, "big") for each in (60_000, 10_000)]
    assert [each.value for each in again] == [*limits, bytes(2), bytes(4)]
    for value in (0, 99, 60_001):  # too near, or beyond the root's
        set_to(osd, ref(pid), AttributeValue(page, 2, value.to_bytes(6, "big")), False)


def test_policy_access_tags(osd: Commands, pid: PartitionId) -> None:
    """New user objects begin with the partition's default; collections and old ones do not."""
    old = osd.create(pid)
    tag = AttributeId(Page.USER_SECURITY, 0x4000_0001)
    osd.set_attributes(ref(pid), [AttributeValue(Page.PARTITION_SECURITY, 0x4000_0002, b"deft")])
    made = osd.create_many(pid, 3)
    made.append(osd.create(pid))
    for each in made:
        assert osd.get_attribute(each, tag.page, tag.number) == b"deft"
    assert osd.get_attribute(old, tag.page, tag.number) == bytes(4)
    cid = osd.create_collection(pid)
    assert osd.get_attribute(cid, Page.COLLECTION_SECURITY, tag.number) == bytes(4)
    for where, page in ((old, Page.USER_SECURITY), (cid, Page.COLLECTION_SECURITY)):
        osd.set_attributes(where, [AttributeValue(page, tag.number, b"mine")])
        assert osd.get_attribute(where, page, tag.number) == b"mine"
    osd.set_attributes(old, [AttributeValue(tag.page, tag.number, bytes(4))])
    assert osd.get_attribute(old, tag.page, tag.number) == bytes(4)


def test_adjustable_clock_runs_on(osd: Commands) -> None:
    page, number = Page.ROOT_SECURITY, 0x9
    ahead = time.time_ns() // 1_000_000 + 3_600_000
    osd.set_attributes(ROOT, [AttributeValue(page, number, ahead.to_bytes(6, "big"))])
    first = number_of(osd, ROOT, page, number)
    assert ahead <= first < ahead + 60_000
    assert number_of(osd, ROOT, page, number) >= first
    assert number_of(osd, ROOT, Page.ROOT_INFORMATION, 0x100) < ahead
    behind = (1000).to_bytes(6, "big")
    osd.set_attributes(ROOT, [AttributeValue(page, number, behind)])
    assert number_of(osd, ROOT, page, number) < 61_000
    now = time.time_ns() // 1_000_000
    osd.set_attributes(ROOT, [AttributeValue(page, number, now.to_bytes(6, "big"))])


def test_boot_epoch(osd: Commands) -> None:
    assert number_of(osd, ROOT, Page.ROOT_SECURITY, 0xA) > 0


def test_attributes_access(osd: Commands, pid: int) -> None:
    """Pairs of page and number, under any number."""
    page = P + 4
    pairs = bytes.fromhex("00010000 00000001 ffffffff ffffffff")
    for number in (1, 2, 0x7FFF_FFFF, 0xFFFF_FFFE):
        osd.set_attributes(ref(pid), [AttributeValue(page, number, pairs)])
        assert osd.get_attribute(ref(pid), page, number) == pairs
    for length in (1, 4, 7, 9, 12, 15, 17):
        set_to(osd, ref(pid), AttributeValue(page, 1, bytes(length)), False)
    listed = osd.get_attributes(ref(pid), [AttributeId(page, ALL)])
    assert [each.number for each in listed] == [0, 1, 2, 0x7FFF_FFFF, 0xFFFF_FFFE]
    osd.set_attributes(ref(pid), [AttributeValue(page, 2, b"")])
    assert osd.get_attribute(ref(pid), page, 2) == b""


def test_no_damage(osd: Commands, objects: Objects) -> None:
    for base, where in objects.items():
        found = osd.get_attributes(where, [AttributeId(base + 6, ALL)])
        assert not any(any(each.value) for each in found if each.number)


def test_actual_data_space(osd: Commands, obj: ObjectRef) -> None:
    """A hole has none; used capacity is the length."""
    page = Page.USER_INFORMATION
    osd.write(obj, 16 << 20, b"x" * 4096)
    assert number_of(osd, obj, page, 0x81) == (16 << 20) + 4096
    assert number_of(osd, obj, page, 0xD1) < 16 << 20
