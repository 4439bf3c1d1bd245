# SPDX-License-Identifier: GPL-2.0-or-later
"""PUT of CHANGE NAMES, and LOOKUP with data (docs/names.md): a whole file in one command."""

from __future__ import annotations

import itertools
import os
import struct
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.commands.names import put_params
from pyosd.errors import (
    IsADirectory,
    NameChanged,
    NameExists,
    NoSuchName,
    NotADirectory,
    NotFound,
)
from pyosd.types import AttributeId, AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import CURRENT_OBJECT_ID, DATA_VERSION, Page
from pyosd.wire.cdb import AttributeLists, Request
from pyosd.wire.names import DATA_MAX, FOUND_BYTES, NameFlag, NameParams, NameVerb, decode_entry
from tests.conftest import MakeHarness
from tests.expect import CDB_FIELD, OK, QUOTA, check
from tests.waiting import until

COLOUR = AttributeValue(Page.APPLICATION, 1, b"green")
USED, CAPACITY_QUOTA = (Page.PARTITION_INFORMATION, 0x81), 0x1_0001


def putting(root: ObjectRef, path: bytes, data: bytes) -> Request:
    return rq.names(root, put_params(path, data, replace=False))


def used(osd: Commands, root: ObjectRef) -> int:
    return int.from_bytes(osd.get_attribute(root, *USED))


def refused_in_data(osd: Commands, request: Request, field: int) -> None:
    sense = osd.reply(request).sense
    assert sense is not None
    assert (sense.asc, sense.ascq, sense.field_in_data_out) == (0x26, 0x00, True)
    assert sense.field_pointer == field


@pytest.mark.parametrize("size", [0, 1, 4096, 100_000, DATA_MAX])
def test_a_file_is_stored_and_read_in_one_command(
    osd: Commands, root: ObjectRef, size: int
) -> None:
    data = os.urandom(size)
    osd.make_directory(root, "d")
    lists = AttributeLists((CURRENT_OBJECT_ID, DATA_VERSION), (COLOUR,), 256)
    params = put_params(b"d/f", data, replace=False)
    reply = osd.reply(rq.names(root, params, attributes=lists))
    check(reply, OK)
    made = decode_entry(reply.data)
    assert (made.made, made.names, made.removed, made.is_directory) == (True, 1, False, False)
    assert reply.attribute(CURRENT_OBJECT_ID).uint == made.object.object_id
    assert osd.get_attribute(made.object, Page.APPLICATION, 1) == b"green"
    assert osd.get_attribute(made.object, 1, 9) == b"f"
    assert bytes(osd.read_range(made.object)) == data
    assert osd.list_members(osd.lookup(root, "d").object) == [made.object]
    entry, found = osd.lookup_data(root, "d/f", DATA_MAX)
    assert entry == replace(made, made=False)
    assert found is not None
    assert (bytes(found.data), found.length) == (data, size)
    assert found.version == osd.data_version(made.object) == reply.attribute(DATA_VERSION).value
    (listed,) = osd.list_names(root, "d", details=True).entries
    assert (listed.length, listed.version) == (size, found.version)


def test_a_file_is_replaced_whole(osd: Commands, root: ObjectRef) -> None:
    old = osd.put_name(root, "a", b"old")
    with pytest.raises(NameExists):
        osd.put_name(root, "a", b"new")
    with pytest.raises(NameChanged):
        osd.put_name(root, "a", b"new", replace=True, expected=old.object.object_id + 1)
    with pytest.raises(NoSuchName):
        osd.put_name(root, "b", b"new", replace=True, expected=old.object.object_id)
    new = osd.put_name(root, "a", b"newer", replace=True, expected=old.object.object_id)
    assert (new.made, new.removed, new.names) == (True, True, 1)
    with pytest.raises(NotFound):
        osd.length(old.object)
    osd.link(root, "again", "a")
    third = osd.put_name(root, "a", b"third", replace=True)
    assert not third.removed
    assert bytes(osd.read(new.object, 0, 5)) == b"newer"
    assert osd.put_name(root, "fresh", b"x", replace=True).made
    osd.make_directory(root, "d")
    with pytest.raises(IsADirectory):
        osd.put_name(root, "d", b"x", replace=True)
    with pytest.raises(NotADirectory):
        osd.put_name(root, "a/b", b"x")
    with pytest.raises(NoSuchName):
        osd.put_name(root, "none/b", b"x")
    assert [each.name for each in osd.list_names(root).entries] == [b"a", b"again", b"d", b"fresh"]


def test_what_is_refused_leaves_nothing(osd: Commands, root: ObjectRef) -> None:
    osd.put_name(root, "a", b"12345")
    before = (used(osd, root), osd.list_objects(root.partition_id))
    for _ in range(3):
        with pytest.raises(NameExists):
            osd.put_name(root, "a", bytes(100_000))
    for path in (b"/x", b"x/", b"..", b"", b"x" * 256):
        refused_in_data(osd, putting(root, path, b"data"), 32)
    wrong = NameParams(NameVerb.PUT, b"b", flags=NameFlag.CHECKSUM, data=b"data", checksum=1)
    refused_in_data(osd, rq.names(root, wrong), 16)
    quota = AttributeValue(
        Page.PARTITION_QUOTAS, CAPACITY_QUOTA, (before[0] + 50_000).to_bytes(8, "big")
    )
    osd.set_attributes(root, [quota])
    check(osd.reply(putting(root, b"b", bytes(100_000))), QUOTA)
    check(osd.reply(putting(ref(), b"part/b", b"x")), CDB_FIELD.at(16))
    assert (used(osd, root), osd.list_objects(root.partition_id)) == before
    assert osd.put_name(root, "b", bytes(40_000)).made


def test_lengths_that_do_not_add_up(osd: Commands, root: ObjectRef) -> None:
    good = putting(root, b"a", b"12345")
    data = bytes(good.data)

    def changed(at: int, value: bytes) -> Request:
        return replace(good, data=data[:at] + value + data[at + len(value) :])

    for count in (0, 4, 6, DATA_MAX, 0xFFFF_FFFF):
        sense = osd.reply(changed(8, struct.pack(">I", count))).sense
        assert sense is not None
        assert (sense.asc, sense.ascq) == (0x1A, 0x00)
    for at, value in {1: b"\x01", 2: b"\1", 16: b"\1"}.items():
        refused_in_data(osd, changed(at, value), at)
    without = NameParams(NameVerb.PUT, b"a", data=b"12345", checksum=7)
    refused_in_data(osd, rq.names(root, without), 16)
    long = bytes(DATA_MAX + 1)
    refused_in_data(osd, putting(root, b"a", long), 8)
    huge = bytes(DATA_MAX + 3 * 4096 + 33)
    check(osd.reply(replace(good, data=huge, length=len(huge))), CDB_FIELD.at(32))
    moved = replace(good, service_action=0x8F88)
    refused_in_data(osd, moved, 0)
    refused_in_data(osd, rq.names(root, NameParams(NameVerb.LOOKUP, b"a", most=DATA_MAX + 1)), 8)
    assert osd.list_names(root).entries == ()
    assert osd.put_name(root, "a", b"12345").made


def test_the_data_of_a_lookup(osd: Commands, root: ObjectRef) -> None:
    made = osd.put_name(root, "a", b"0123456789")
    osd.make_directory(root, "d")
    assert osd.lookup_data(root, "d", 10)[1] is None
    assert osd.lookup_data(root, "", 10)[1] is None
    for most in (1, 9, 10, 11, 5000, 100_000):
        found = osd.lookup_data(root, "a", most)[1]
        assert found is not None
        assert (bytes(found.data), found.length) == (b"0123456789"[:most], 10)
    params = NameParams(NameVerb.LOOKUP, b"a", most=5)
    for room in (0, 23, FOUND_BYTES - 1):
        check(osd.reply(rq.names(root, params, room)), CDB_FIELD.at(40))
    short = osd.reply(rq.names(root, params, FOUND_BYTES + 2))
    assert bytes(short.data[FOUND_BYTES:]) == b"01"
    lists = AttributeLists((DATA_VERSION, AttributeId(1, 9)), (), 256)
    both = osd.reply(rq.names(root, params, FOUND_BYTES + 5, attributes=lists))
    assert both.attribute(DATA_VERSION).value == osd.data_version(made.object)
    assert both.attribute(AttributeId(1, 9)).value == b"a"
    setting = osd.reply(
        rq.names(root, params, FOUND_BYTES + 5, attributes=AttributeLists(set=(COLOUR,)))
    )
    assert len(setting.data) == 24  # no data, but the attribute is set
    assert osd.get_attribute(made.object, Page.APPLICATION, 1) == b"green"
    osd.clear(made.object, 0, 200_000)
    found = osd.lookup_data(root, "a", 200_000)[1]
    assert found is not None
    assert bytes(found.data) == bytes(200_000)
    with pytest.raises(NoSuchName):
        osd.lookup_data(root, "none", 10)


def test_readers_find_the_old_file_or_the_new_one(osd: Commands, root: ObjectRef) -> None:
    files = [bytes([n + 65]) * (n * 700 + 1) for n in range(16)]
    osd.put_name(root, "f", files[0])
    stop = threading.Event()
    seen = set[bytes]()

    def read() -> None:
        while not stop.is_set():
            found = osd.lookup_data(root, "f", 20_000)[1]
            assert found is not None
            data = bytes(found.data)
            assert data in files and found.length == len(data)
            seen.add(data)

    reader = threading.Thread(target=read)
    reader.start()
    count = itertools.count()

    def replaced_and_seen() -> bool:  # the reader may have got nowhere yet
        n = next(count)
        osd.put_name(root, "f", files[n % 16], replace=True)
        return n >= 159 and len(seen) > 1

    try:
        until(replaced_and_seen, "the reader sees one file at most", pause=0)
    finally:
        stop.set()
        reader.join()
    assert len(osd.list_objects(root.partition_id)) == 1


def test_files_survive_kill(tmp_path: Path, make_harness: MakeHarness) -> None:
    harness = make_harness(dir=tmp_path / "store")
    root = ref(harness.osd.create_partition())
    harness.osd.put_name(root, "a", b"first")
    harness.osd.put_name(root, "b", bytes(range(256)) * 300)
    harness.osd.put_name(root, "a", b"second", replace=True)
    harness.kill()
    osd = make_harness(dir=tmp_path / "store").osd
    for path, data in (("a", b"second"), ("b", bytes(range(256)) * 300)):
        entry, found = osd.lookup_data(root, path, DATA_MAX)
        assert found is not None and bytes(found.data) == data
        assert osd.length(entry.object) == len(data)
    assert len(osd.list_objects(root.partition_id)) == 2
