# SPDX-License-Identifier: GPL-2.0-or-later
"""The osc-compat switch: OSC's dialect with it, the standard without (osd2-wire 9)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import AttributeId, AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists, SetOne
from pyosd.wire.list_data import MapType
from pyosd.wire.reply import Reply
from tests.command.test_atomic_commands import ADD, CAS, COND_SET, GEN_CAS, VALUE, counter, exchange
from tests.expect import CDB_FIELD, NO_PARTITION, OK, PAST_END, UNSUPPORTED, check, mangled
from tests.harness import Harness
from tests.machine import unavailable
from tests.processes import long_lived
from tests.serving import Serving, arguments, missing
from tests.waiting import until

ABSENT_PARTITION = ref(0x7777_0000_0000)
BYPASS = {12: b"\x7f"}


@pytest.fixture(scope="module")
def unit(tmp_path_factory: pytest.TempPathFactory, sanitized_program: Path) -> Iterator[Commands]:
    """A logical unit with the switch on, built with sanitizers."""
    folder = tmp_path_factory.mktemp("osc")
    options = {"dir": folder / "store", "osc_compat": 1}
    harness = Harness(sanitized_program, options, folder / "log")
    long_lived.add(harness.pid)
    yield harness.osd
    harness.finish()
    long_lived.discard(harness.pid)


@pytest.fixture
def part(unit: Commands) -> int:
    return unit.create_partition()


@pytest.fixture
def thing(unit: Commands, part: PartitionId) -> ObjectRef:
    return unit.create(part)


def data_modified(osd: Commands, obj: ObjectRef) -> bytes:
    return osd.get_attribute(obj, Page.USER_TIMESTAMPS, 5)


def test_timestamps_byte(osd: Commands, obj: ObjectRef, unit: Commands, thing: ObjectRef) -> None:
    """OSC's initiator always sends 7Fh, and its tests want to see time move (9-4)."""
    before = data_modified(osd, obj)
    check(mangled(osd, rq.write(obj, 0, b"x"), BYPASS), OK)
    assert data_modified(osd, obj) == before
    before = data_modified(unit, thing)

    def moves() -> bool:  # a WRITE in the millisecond of the CREATE does not show
        check(mangled(unit, rq.write(thing, 0, b"x"), BYPASS), OK)
        return data_modified(unit, thing) != before

    until(moves, "the time of the last change stays")
    check(mangled(unit, rq.write(thing, 0, b"x"), {12: b"\x01"}), OK)


def test_removing_an_absent_partition(osd: Commands, unit: Commands, part: int) -> None:
    """9-29; a partition that is there is removed as ever."""
    request = rq.remove_partition(ABSENT_PARTITION.partition_id)
    check(osd.reply(request), NO_PARTITION)
    check(unit.reply(request), OK)
    check(unit.reply(rq.remove_partition(part)), OK)
    assert part not in unit.list_partitions()


# ---- private service actions ----


@pytest.mark.parametrize(
    ("code", "vendor"), [(0x888D, CAS), (0x8890, ADD), (0x8891, COND_SET), (0x88A5, GEN_CAS)]
)
def test_private_codes(
    osd: Commands, obj: ObjectRef, unit: Commands, thing: ObjectRef, code: int, vendor: int
) -> None:
    """OSC's codes stand in the standard's range: unknown without the switch."""
    for action in (code, vendor):
        if code in (0x888D, 0x8890):
            check(counter(unit, thing, action, 0, 0), OK)
        else:
            check(exchange(unit, thing, action, (VALUE, b""), (VALUE, b"")), OK)
    check(mangled(osd, rq.read(obj, 0, 0), {8: code.to_bytes(2, "big")}), UNSUPPORTED)


# ---- data distribution ----

SGL, VEC, RESERVED = b"\x01", b"\x02", b"\x03"


def sgl(*pieces: tuple[int, int]) -> bytes:
    """be64 count, then offset and length of each piece."""
    return struct.pack(">Q", len(pieces)) + b"".join(struct.pack(">QQ", *each) for each in pieces)


def write_with(
    osd: Commands, obj: ObjectRef, kind: bytes, head: bytes, data: bytes, start: int = 0
) -> Reply:
    """LENGTH counts the header."""
    return mangled(osd, rq.write(obj, start, head + data), {10: kind})


def read_with(
    osd: Commands, obj: ObjectRef, kind: bytes, head: bytes, length: int, start: int = 0
) -> Reply:
    """LENGTH does not count the header, which is all of Data-Out."""
    return mangled(osd, rq.read(obj, start, length), {10: kind}, data_out=head)


def test_scattered(unit: Commands, thing: ObjectRef) -> None:
    pieces = sgl((4, 2), (0, 3), (8, 1))
    check(write_with(unit, thing, SGL, pieces, b"abcdef", start=10), OK)
    assert bytes(unit.read(thing, 0, 100)) == bytes(10) + b"cde\0ab\0\0f"
    reply = check(read_with(unit, thing, SGL, pieces, 6, start=10), OK)
    assert bytes(reply.response.data_in) == b"abcdef"


def test_strided(unit: Commands, thing: ObjectRef) -> None:
    """Element i at start + i x stride, the last one short."""
    head = struct.pack(">QQ", 5, 2)
    check(write_with(unit, thing, VEC, head, b"aabbc", start=1), OK)
    assert bytes(unit.read(thing, 0, 100)) == b"\0aa\0\0\0bb\0\0\0c"
    reply = check(read_with(unit, thing, VEC, head, 5, start=1), OK)
    assert bytes(reply.response.data_in) == b"aabbc"
    short = check(read_with(unit, thing, VEC, head, 6, start=1), PAST_END)
    assert short.sense is not None
    assert short.sense.command_information == 5
    created = mangled(unit, rq.create_and_write(thing.partition_id, 0, 0, head + b"xxy"), {10: VEC})
    check(created, OK)


def test_elements_that_overlap(unit: Commands, thing: ObjectRef) -> None:
    """Stride below the element length, and 0: later elements overwrite earlier ones."""
    check(write_with(unit, thing, VEC, struct.pack(">QQ", 1, 2), b"abcd"), OK)
    assert bytes(unit.read(thing, 0, 9)) == b"acd"
    check(write_with(unit, thing, VEC, struct.pack(">QQ", 0, 1), b"xyz"), OK)
    assert bytes(unit.read(thing, 0, 9)) == b"zcd"
    check(write_with(unit, thing, VEC, struct.pack(">QQ", 9, 4), b""), OK)
    check(write_with(unit, thing, SGL, sgl(), b""), OK)


@pytest.mark.parametrize(
    ("kind", "head"),
    [
        (SGL, b""),
        (SGL, bytes(7)),
        (SGL, struct.pack(">Q", 2) + bytes(16)),
        (SGL, struct.pack(">Q", 65534)),
        (SGL, struct.pack(">Q", 2**64 - 1)),
        (SGL, struct.pack(">Q", 2**60)),
        (VEC, b""),
        (VEC, bytes(15)),
        (VEC, bytes(16)),
        (VEC, struct.pack(">QQ", 2**63, 1)),
    ],
)
def test_headers_that_do_not_hold(
    unit: Commands, thing: ObjectRef, kind: bytes, head: bytes
) -> None:
    """Cut short, too many pieces, no element length, an offset beyond 64 bits."""
    check(read_with(unit, thing, kind, head, 8), CDB_FIELD.at(32))
    data = b"x" * 8 if len(head) > 15 and kind == VEC else b""
    check(write_with(unit, thing, kind, head, data), CDB_FIELD.at(32))
    assert unit.get_attribute(thing, Page.USER_INFORMATION, 0x82) == bytes(8)


def test_pieces_that_do_not_add_up(unit: Commands, thing: ObjectRef) -> None:
    """As in a continuation segment."""
    for pieces in (sgl((0, 4)), sgl((0, 9)), sgl((2**64 - 1, 8)), sgl((0, 2**63), (0, 2**63 + 8))):
        check(write_with(unit, thing, SGL, pieces, b"12345678"), CDB_FIELD.at(48))
        check(read_with(unit, thing, SGL, pieces, 8), CDB_FIELD.at(48))
    many = struct.pack(">QQ", 1, 1)
    check(read_with(unit, thing, VEC, many, 65534), CDB_FIELD.at(32))
    check(read_with(unit, thing, VEC, many, 65533), PAST_END)


@pytest.mark.parametrize("byte", [RESERVED, b"\x05", b"\x06", b"\x07"])
def test_never_together_with_isolation(unit: Commands, thing: ObjectRef, byte: bytes) -> None:
    check(write_with(unit, thing, byte, sgl((0, 1)), b"x"), CDB_FIELD.at(10))
    check(mangled(unit, rq.write(thing, 0, b"x"), {10: b"\x04"}), OK)


def test_never_together_with_a_continuation(unit: Commands, thing: ObjectRef) -> None:
    request = rq.write_pieces(thing, [(0, 1)], b"x")
    for kind in (SGL, VEC):
        check(mangled(unit, request, {10: kind}), CDB_FIELD.at(48))
    check(unit.reply(request), OK)


def test_isolation_where_there_is_no_distribution(
    osd: Commands, obj: ObjectRef, unit: Commands, thing: ObjectRef
) -> None:
    """Without the switch the bits are isolation; with it, too, in any other command."""
    for kind in (SGL, VEC):
        check(mangled(osd, rq.write(obj, 0, sgl((0, 1))), {10: kind}), OK)
        check(mangled(unit, rq.append(thing, b"x"), {10: kind}), OK)
        check(mangled(unit, rq.clear(thing, 0, 1), {10: kind}), OK)


# ---- attributes of many objects ----


def created_pairs(osd: Commands, pid: int) -> tuple[int, list[tuple[int, int, bytes]]]:
    """CREATE three; the list's type and its (id, number, value) in order, as OSC's form has them."""
    sets = tuple(AttributeValue(Page.APPLICATION, n, bytes([n]) * n) for n in (1, 9))
    gets = tuple(AttributeId(Page.APPLICATION, n) for n in (9, 1, 5))
    lists = AttributeLists(gets, sets, allocation=1024)
    reply = check(osd.reply(rq.create(pid, count=3, attributes=lists)), OK)
    data, at, found = bytes(reply.response.data_in), 8, []
    kind, length = struct.unpack_from(">B3xI", data)
    while at < 8 + length:
        oid, page, number, size = struct.unpack_from(">QII6xH", data, at)
        assert page == Page.APPLICATION
        found.append((oid, number, data[at + 24 : at + 24 + size]))
        at += (24 + size + 7) // 8 * 8
    assert at == 8 + length
    return kind, found


def test_created_objects(unit: Commands, part: int) -> None:
    """The first attribute of all objects, then the second, in a list of type Fh (9-7)."""
    kind, found = created_pairs(unit, part)
    first = found[0][0]
    ids = (first, first + 1, first + 2)
    expected = ((9, bytes([9]) * 9), (1, b"\1"), (5, b""))
    assert found == [(oid, *attribute) for attribute in expected for oid in ids]
    assert kind == 0xF


def test_members_of_a_collection(unit: Commands, part: PartitionId) -> None:
    collection = unit.create_collection(part)
    members = [unit.create(part) for _ in range(2)]
    for each in members:
        join = AttributeValue(Page.USER_COLLECTIONS, 1, struct.pack(">Q", collection.object_id))
        unit.set_attributes(each, [join])
    lists = AttributeLists((AttributeId(Page.USER_INFORMATION, 2),), allocation=256)
    reply = check(unit.reply(rq.get_member_attributes(collection, attributes=lists)), OK)
    data = bytes(reply.response.data_in)
    assert data[0] == 0xF
    for at, each in zip((8, 40), members, strict=True):
        assert struct.unpack_from(">Q", data, at) == (each.object_id,)
        assert struct.unpack_from(">Q", data, at + 24) == (each.object_id,)


# ---- QUERY ----


@pytest.mark.parametrize("pad", [0, 1, 4])
def test_plain_query_list(unit: Commands, part: PartitionId, pad: int) -> None:
    """The list plain in Data-Out, of any length, the answer behind a header of 13 bytes (9-6, 9-6b)."""
    ids = [unit.create(part).object_id for _ in range(3)]
    for number, oid in enumerate(ids):
        unit.set_attributes(ref(part, oid), [AttributeValue(Page.APPLICATION, 1, bytes([number]))])
    criterion = struct.pack(">HHIIHBHB", 0, 14, Page.APPLICATION, 1, 1, 1, 1, 2)
    plain = b"\1\0\0\0" + criterion + bytes(pad)
    request = rq.query(ref(part, 0x1000), (), 256, plain=True)
    word48 = {48: len(plain).to_bytes(4, "big")}
    reply = check(mangled(unit, request, word48, data_out=plain), OK)
    data = bytes(reply.response.data_in)
    assert data[:13] == struct.pack(">Q4xB", 5 + 8 * 2, 0x84)
    assert sorted(struct.unpack(">QQ", data[13:29])) == ids[1:]
    segment = b"\1\0\x88\xa0" + bytes(36) + struct.pack(">HxxI", 2, 24) + plain[:22] + bytes(2)
    same = {48: len(segment).to_bytes(4, "big")}
    reply = check(mangled(unit, request, same, data_out=segment), OK)
    assert bytes(reply.response.data_in) == data


def test_plain_query_list_is_not_standard(
    osd: Commands, pid: int, unit: Commands, part: int
) -> None:
    """Without the switch it is a continuation segment that is none; nor is every content a list."""
    for target, partition, bad in ((osd, pid, b"\1\0\0\0"), (unit, part, b"\1\2\0\0")):
        request = rq.query(ref(partition, 0x1000), (), 256, plain=True)
        for content in (bad, bad.ljust(48, b"\0"), b"\1"):
            word48 = {48: len(content).to_bytes(4, "big")}
            check(mangled(target, request, word48, data_out=content), CDB_FIELD.at(48))
    every = rq.query(ref(part, 0x1000), (), 256, plain=True)
    check(mangled(unit, every, {48: b"\0\0\0\4"}, data_out=bytes(4)), OK)


# ---- refusals of OSC's target ----


def test_page_zero_of_one_attribute(osd: Commands, unit: Commands, part: int, pid: int) -> None:
    """CDBFMT 1 with page 0 sets nothing by the standard; OSC's target refuses it (9-13)."""
    for target, partition, outcome in ((unit, part, CDB_FIELD.at(52)), (osd, pid, OK)):
        thing = target.create(PartitionId(partition))
        one = SetOne(AttributeValue(0x10000, 1, b"x"))
        request = rq.set_attributes(thing, attributes=one)
        check(mangled(target, request, {52: bytes(4)}), outcome)
        check(target.reply(request), OK)


def test_flush_of_a_range_beyond_the_end(
    osd: Commands, unit: Commands, part: int, pid: int
) -> None:
    """The three FLUSH calls of OSC's osd-test.c, on an object of 27 bytes."""
    for target, partition, refused in ((unit, part, True), (osd, pid, False)):
        thing = target.create(PartitionId(partition))
        target.write(thing, 0, bytes(27))
        for length, start, outcome in ((5, 30, CDB_FIELD.at(40)), (7, 0, OK), (20, 10, OK)):
            span = {10: b"\2", 32: length.to_bytes(8, "big"), 40: start.to_bytes(8, "big")}
            check(mangled(target, rq.flush(thing), span), outcome if refused else OK)


@pytest.mark.parametrize("allocation", [1, 7, 8, 23, 24])
def test_map_of_less_than_one_descriptor(
    unit: Commands, part: PartitionId, allocation: int
) -> None:
    thing = unit.create(part)
    unit.write(thing, 0, b"Te")
    request = rq.read_map(thing, 0, allocation, MapType.WRITTEN)
    check(unit.reply(request), OK if allocation >= 24 else CDB_FIELD.at(32))
    check(unit.reply(rq.read_map(thing, 0, 0, MapType.WRITTEN)), OK)


# ---- the switch itself ----


@pytest.mark.tgtd
def test_through_tgtd() -> None:
    """`osd target serve --osc-compat` reaches the logical unit."""
    why = missing()
    if why:
        unavailable("tgtd", why)
    with Serving(*arguments(["--osc-compat"])) as served, served.connect() as target:
        thing = target.create(target.create_partition())
        assert check(counter(target, thing, 0x888D, 0, 7), OK).response.data_in == bytes(8)
        assert check(counter(target, thing, 0x8890, 7), OK).response.data_in == bytes(8)
