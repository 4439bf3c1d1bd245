# SPDX-License-Identifier: GPL-2.0-or-later
"""FORMAT OSD, and what every command finds after it.  Only run with --destructive, and last."""

from __future__ import annotations

from tests.conformance import wire as w
from tests.conformance.cells import cell, each
from tests.conformance.commands import Row
from tests.conformance.lu import GOOD, LogicalUnit
from tests.conformance.sense import INVALID_FIELD_IN_LIST, LIST_LENGTH_ERROR, NOT_READY
from tests.conformance.suite.instances import MAKE, known
from tests.conformance.suite.refusals import in_partition
from tests.conformance.wire import CURRENT_COMMAND, PAGE, SET_ONE, Request

NAME = (0x9000_0001, 9)
FORMAT = Request(0x8881)
CAPACITY = 1 << 30
COMMAND = 0x1000_0000


def refusing(t: LogicalUnit) -> Request:
    """A FORMAT that is refused as long as anything in it is checked at all."""
    t.destroy()
    return FORMAT


@cell("FORMAT OSD", "bad isolation", "osd2-wire 2.2 ISOLATION 3 and 6")
def reserved_isolation_of_format(t: LogicalUnit) -> None:
    for method in (3, 6):
        t.bad_field(refusing(t).but(byte10=method), 10)


@cell("FORMAT OSD", "timestamps byte", "osd2-wire 2.4 TIMESTAMPS CONTROL")
def reserved_timestamps_control_of_format(t: LogicalUnit) -> None:
    for value in (0x01, 0x80):
        t.bad_field(refusing(t).but(byte12=value), 12)


@cell("FORMAT OSD", "CDBFMT 0", "osd2-wire 2.3 CDBFMT 0")
def reserved_format_of_format(t: LogicalUnit) -> None:
    t.bad_field(refusing(t).but(form=0), 11)


@cell("FORMAT OSD", "CDBFMT limits", "osd2-wire 2.7 CDBFMT 1")
def limits_of_set_one_in_format(t: LogicalUnit) -> None:
    request = refusing(t).but(form=SET_ONE, set_one=(*NAME, b"x"))
    t.bad_field(request.patched(60, b"\0\x13"), 60)


@cell("FORMAT OSD", "list length", "osd2-wire 2.6 list lengths 1 to 7")
def list_lengths_of_format(t: LogicalUnit) -> None:
    request = refusing(t).but(sets=((*NAME, b"x"),))
    t.refused(request.patched(68, b"\0\0\0\7"), LIST_LENGTH_ERROR)


@cell("FORMAT OSD", "entry overrun", "osd2-wire 5.3 entry past the list")
def entry_overrun_of_format(t: LogicalUnit) -> None:
    sets = w.set_list() + w.value_entry(*NAME, b"x" * 8, 0x100)
    t.refused(refusing(t).but(raw_sets=sets), LIST_LENGTH_ERROR)


@cell("FORMAT OSD", "list type", "osd2-wire 5.3 wrong list type")
def list_type_of_format(t: LogicalUnit) -> None:
    sets = w.set_list((*NAME, b"x"), kind=w.GET_LIST)
    t.refused(refusing(t).but(raw_sets=sets), INVALID_FIELD_IN_LIST)


@cell("FORMAT OSD", "short list", "osd2-wire 8.4 Data-Out too short for a list")
def list_of_format_beyond_data_out(t: LogicalUnit) -> None:
    t.bad_field(refusing(t).but(sets=((*NAME, b"x"),), cut_out=8), 68)


@cell("FORMAT OSD", "no offset", "osd2-wire 2.10 a length with offset FFFF_FFFFh")
def offset_of_format_missing(t: LogicalUnit) -> None:
    request = refusing(t).but(sets=((*NAME, b"x"),))
    t.bad_field(request.patched(72, b"\xff" * 4), 72)


@cell("FORMAT OSD", "bad page", "osd2-wire 5.1 page of another object type")
def page_of_another_type_in_format(t: LogicalUnit) -> None:
    name = (0x1_0000, 1)
    request = refusing(t).but(sets=((*name, b"x"),))
    t.refused(request, INVALID_FIELD_IN_LIST, attribute=name)


@cell("FORMAT OSD", "all or nothing", "osd2-wire 3.7, 7.3 COMPLETED FUNCTIONS")
def sense_data_say_whether_it_formatted(t: LogicalUnit) -> None:
    """An attribute is refused: COMMAND is among the completed functions, or nothing was done."""
    t.destroy()
    oid, name = t.object(b"kept"), (0x9000_0001, 0x81)
    request = FORMAT.but(sets=((*name, bytes(8)),))
    answer = t.refused(request, INVALID_FIELD_IN_LIST, attribute=name)
    assert answer.sense is not None
    if answer.sense.completed & COMMAND:
        t.bad_field(Request(0x888E, t.pid), 16)
    else:
        t.check(t.still_there(), answer, "the partition: COMMAND is not among the completed")
        t.same(t.read(oid), b"kept", "the object")


@cell("FORMAT OSD", "ok", "osd2-wire 3.2, 5.21 OSD name set by FORMAT")
def everything_is_gone_and_the_name_is_set(t: LogicalUnit) -> None:
    t.destroy()
    t.object(b"gone")
    t.good(FORMAT.but(sets=((*NAME, b"conformance"),)))
    listed = t.good(Request(0x8883, length=4096, data_in=4096))
    t.same(w.ObjectList.read(listed.data).ids(), [], "partitions", listed)
    t.same(t.get(0, *NAME, 0), b"conformance", "OSD name")
    t.same(t.number(0, 0x9000_0001, 0xC0, 0), 0, "number of partitions")
    t.good(FORMAT.but(sets=((*NAME, b""),)))


@cell("FORMAT OSD", "list format", "osd2-wire 3.7 command, set, get")
def sets_and_gets_of_format(t: LogicalUnit) -> None:
    t.destroy()
    gets = (NAME, (CURRENT_COMMAND, 2), (0x9000_0001, 0xC0))
    answer = t.good(FORMAT.but(sets=((*NAME, b"new"),), gets=gets))
    t.same(answer.values, [b"new", b"\x01", bytes(8)], "name, object type, partitions", answer)
    t.good(Request(0x888F, sets=((*NAME, b""),)))


@cell("FORMAT OSD", "set-one format", "osd2-wire 2.7")
def name_from_the_cdb(t: LogicalUnit) -> None:
    t.destroy()
    t.good(FORMAT.but(form=SET_ONE, set_one=(*NAME, b"one")))
    t.same(t.get(0, *NAME, 0), b"one", "OSD name")
    t.good(FORMAT.but(form=SET_ONE, set_one=(*NAME, b"")))


@cell("FORMAT OSD", "page format", "osd2-wire 5.19 Current Command page")
def current_command_page_of_format(t: LogicalUnit) -> None:
    t.destroy()
    answer = t.good(FORMAT.but(form=PAGE, page=CURRENT_COMMAND))
    got = w.page_fields(answer.retrieved)
    t.same(got[:2], (CURRENT_COMMAND, 0x44), "page number and length", answer)
    t.same(got[2][32], w.ROOT, "object type", answer)


@cell("FORMAT OSD", "surplus", "osd2-wire 2.7, 8.4 surplus Data-Out")
def surplus_data_out_of_format(t: LogicalUnit) -> None:
    t.destroy()
    t.good(FORMAT.but(surplus=b"\xee" * 24))


@cell("FORMAT OSD", "own fields", "osd2-wire 3.2 FORMATTED CAPACITY")
def capacity_that_is_asked_for(t: LogicalUnit) -> None:
    """It becomes the total capacity, or is refused at 32 as more than there is."""
    t.destroy()
    answer = t.send(FORMAT.but(length=CAPACITY))
    if answer.status == GOOD:
        t.same(t.number(0, 0x9000_0001, 0x80, 0), CAPACITY, "total capacity")
        t.good(FORMAT)
    else:
        t.is_refused(answer, 0x2400, 32)
    t.bad_field(FORMAT.but(length=2**64 - 1), 32)


@cell("FORMAT OSD", "concurrency", "osd2-wire 7.4 format running")
def commands_beside_a_format(t: LogicalUnit) -> None:
    """Each sees the OSD before or after, or is told to wait (2/04/04)."""
    t.destroy()
    oid = t.object(b"x")
    read = Request(0x8885, t.pid, oid, 1, data_in=1)
    for answer in t.together([read, read, FORMAT, read, read]):
        if answer.status != GOOD and answer.sense and answer.sense.key == 2:
            t.is_refused(answer, 0x0404, key=NOT_READY)
        elif answer.status != GOOD:
            t.is_refused(answer, 0x2400, (16, 24))


@cell("FORMAT OSD", "sense data", "osd2-wire 7.2 sense-key specific descriptor")
def refused_field_of_format_is_pointed_at(t: LogicalUnit) -> None:
    answer = t.bad_field(refusing(t).but(byte12=1), 12)
    wanted = bytes.fromhex("0206 0000 C0 000C 00")
    t.check(wanted in answer.sense_data, answer, "descriptor 02h: " + wanted.hex())


@cell("FORMAT OSD", "isolation", "osd2-wire 2.2, 5.8 #111h")
def isolation_methods_of_format(t: LogicalUnit) -> None:
    t.destroy()
    bits = t.get(0, 0x9000_0001, 0x111, 0)
    for method in (1, 2, 4, 5, 7):
        request = FORMAT.but(byte10=method)
        if bits[0] & 0x80 >> method:
            t.good(request)
        else:
            t.bad_field(request, 10)


@cell("FORMAT OSD", "FUA, DPO", "osd2-wire 2.2 b4, b3")
def caching_bits_of_format(t: LogicalUnit) -> None:
    t.destroy()
    t.good(FORMAT.but(byte10=w.FUA | w.DPO))


@cell("FORMAT OSD", "set/get order", "osd2-wire 3.7 command, set, get")
def order_of_format(t: LogicalUnit) -> None:
    t.destroy()
    t.good(Request(0x888F, sets=((*NAME, b"old"),)))
    answer = t.good(FORMAT.but(sets=((*NAME, b"new"),), gets=(NAME,)))
    t.same(answer.values, [b"new"], "name retrieved with the set of 'new'", answer)
    t.good(Request(0x888F, sets=((*NAME, b""),)))


@cell("FORMAT OSD", "current command", "osd2-wire 5.19 in list form")
def current_command_of_format(t: LogicalUnit) -> None:
    t.destroy()
    answer = t.good(FORMAT.but(gets=tuple((CURRENT_COMMAND, each) for each in (2, 3, 4))))
    t.same(answer.values, [b"\x01", bytes(8), bytes(8)], "type, partition, object", answer)


@cell("FORMAT OSD", "undefined", "osd2-wire 5.4, 9-9 undefined attributes")
def undefined_attributes_after_format(t: LogicalUnit) -> None:
    t.destroy()
    t.good(Request(0x888F, sets=((0x9001_0000, 7, b"gone"),)))
    answer = t.good(FORMAT.but(gets=((0x9001_0000, 7), (0x9000_0001, 0x7E))))
    t.same(answer.values, [b"", b""], "attributes of a formatted root", answer)


@cell("FORMAT OSD", "read-only", "osd2-wire 5.2 setting a read-only attribute")
def read_only_attributes_of_format(t: LogicalUnit) -> None:
    for number in (0, 0x80, 0xC0):
        name = (0x9000_0001, number)
        t.destroy()
        t.refused(FORMAT.but(sets=((*name, bytes(8)),)), INVALID_FIELD_IN_LIST, attribute=name)


@each(known(having=in_partition), "after format", "osd2-wire 3.2 FORMAT destroys everything")
def former_partition_is_gone(t: LogicalUnit, row: Row) -> None:
    old = t.formatted()
    t.bad_field(MAKE[row.name](t).but(pid=old), 16)


@cell("CREATE PARTITION", "after format", "osd2-wire 3.2 FORMAT destroys everything")
def former_id_is_free(t: LogicalUnit) -> None:
    old = t.formatted()
    t.good(Request(0x888B, old))
    t.same(t.user_objects(old), [], "user objects")
    t.good(Request(0x888C, old))
