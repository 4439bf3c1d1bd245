# SPDX-License-Identifier: GPL-2.0-or-later
"""The Python codec against the golden frames, which the C codecs' unit tests read too."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyosd import requests
from pyosd.osd._query import Criterion
from pyosd.types import AttributeId, AttributeValue, ref
from pyosd.wire import attributes as attr
from pyosd.wire import sense
from pyosd.wire.cdb import AttributeLists, AttributePage, Options, Request, SetOne, encode
from pyosd.wire.exec_params import After, ArgsEncoding, ExecFlag, ExecParams, Limits
from pyosd.wire.list_data import decode_list
from pyosd.wire.names import (
    ListedName,
    NamedData,
    NameEntry,
    NameFlag,
    NameList,
    NameParams,
    NameVerb,
    decode_entry,
    decode_found,
    decode_names,
    decode_params,
)

CURRENT_COMMAND = 0xFFFF_FFFE
ROOT_INFORMATION = 0x9000_0001
OBJECT = ref(0x10000, 0x10001)


def golden() -> dict[str, bytes]:
    """Frames by name."""
    lines = Path(__file__).with_name("golden").read_text(encoding="ascii").splitlines()
    named = (line.split() for line in lines if line and not line.startswith("#"))
    return {name: bytes.fromhex(digits) for name, digits in named}


FRAMES = golden()
RANGE = Criterion(0x10000, 1, b"\0\0\0\4", b"\0\0\0\x50")
SMALL = ExecParams(engine="python", limits=Limits(wall="5s"), name="count requests")
FULL = ExecParams(
    engine="python",
    args=b'{"n": 7}',
    args_encoding=ArgsEncoding.JSON,
    limits=Limits("10s", "5s", "64MiB", 1, "1MiB", 32, "1GiB"),
    priority=-5,
    name="job1",
    tags={"team": "blue", "a": "b"},
    key=b"key-1",
    surrogate=ref(0x10000, 0x20000),
    wait="2s",
    flags=ExecFlag.HOLD | ExecFlag.IDEMPOTENT | ExecFlag.END_ON_ABORT,
    retry_exit=75,
    after=(
        After(ref(0x10000, 0x10005)),
        After(ref(0x7FFF_FFFF_0000_0000, 0x10006), completed=False),
    ),
    array=(0, 15, 4),
    pool="bulk",
    expiry="1h",
)
RANGES = ExecParams(
    array=(1, 32, 2), array_ranges=(range(1, 4, 2), range(10, 21, 5), range(32, 33))
)


def ids(page: int, *numbers: int) -> tuple[AttributeId, ...]:
    return tuple(AttributeId(page, number) for number in numbers)


REQUESTS: dict[str, Request] = {
    "cdb.get_attributes": requests.get_attributes(
        ref(0), attributes=AttributeLists(get=ids(ROOT_INFORMATION, 4, 0xC0), allocation=56)
    ),
    "cdb.write": requests.write(
        OBJECT,
        100,
        b"hello",
        attributes=AttributeLists(set=(AttributeValue(0x10000, 1, bytes([1, 2, 3, 4])),)),
    ),
    "cdb.read_pieces": requests.read_pieces(OBJECT, [(0, 4096), (65536, 8192)]),
    "cdb.create": requests.create(
        0x10000,
        count=3,
        attributes=AttributePage(CURRENT_COMMAND, 76),
        options=Options(fua=True, no_timestamps=True),
    ),
    "cdb.copy": requests.copy_user_object(OBJECT, 0x10000, 0x10005, method=0x81),
    "cdb.query": requests.query(ref(0x10000, 0x10002), [RANGE], 4096),
    "cdb.query_into": requests.query_into(ref(0x10000, 0x10002), [RANGE], 0x10003, immediate=True),
    "cdb.create_tracking": requests.create_user_tracking_collection(0x10000, 0, 0x10002),
    "cdb.read_map": requests.read_map(OBJECT, 4096, 1024, 1),
    "cdb.set_one": requests.set_attributes(
        OBJECT, attributes=SetOne(AttributeValue(0x10000, 2, b"\xca\xfe"))
    ),
    "cdb.remove_collection": requests.remove_collection(ref(0x10000, 0x10002), True),
    "cdb.exec": requests.execute(
        ref(0x10000),
        b'print("hi")',
        SMALL,
        result_allocation_length=4096,
        attributes=AttributeLists(get=ids(CURRENT_COMMAND, 2, 3, 4), allocation=80),
    ),
}
DATA_OUT = {
    "cdb.get_attributes": "attrs.get",
    "cdb.write": "data_out.write",
    "cdb.read_pieces": "continuation.read_pieces",
    "cdb.exec": "data_out.exec",
    "cdb.copy": "continuation.copy",
    "cdb.query": "continuation.query",
    "cdb.query_into": "continuation.query_into",
    "cdb.create_tracking": "continuation.create_tracking",
}


def without_list_length(data_out: bytes, frame: bytes) -> bytes:
    """Initiators may leave a list's own length 0, as the frames do; the target ignores it."""
    return bytes(
        0 if wanted == 0 and at >= 4 and frame[at - at % 8] in (1, 9) and at % 8 >= 4 else got
        for at, (got, wanted) in enumerate(zip(data_out, frame, strict=True))
    )


@pytest.mark.parametrize("name", REQUESTS)
def test_requests(name: str) -> None:
    command, _ = encode(REQUESTS[name])
    assert command.cdb.hex() == FRAMES[name].hex()
    frame = FRAMES.get(DATA_OUT.get(name, ""), b"")
    assert without_list_length(bytes(command.data_out), frame).hex() == frame.hex()


@pytest.mark.parametrize(
    ("params", "name"),
    [
        (SMALL, "exec_params.small"),
        (FULL, "exec_params.full"),
        (RANGES, "exec_params.ranges"),
    ],
)
def test_exec_params(params: ExecParams, name: str) -> None:
    descriptor = params.descriptor()
    assert descriptor is not None
    assert descriptor.content.hex() == FRAMES[name].hex()


NAMES = {
    "names.rename": NameParams(
        NameVerb.RENAME, b"a/b", b"c", flags=NameFlag.REPLACE, expected=0x10001
    ),
    "names.list": NameParams(NameVerb.LIST, b"d", b"b", b"x", flags=NameFlag.ATTRIBUTES, most=100),
    "names.put": NameParams(
        NameVerb.PUT,
        b"a/b",
        flags=NameFlag.REPLACE | NameFlag.CHECKSUM,
        expected=0x10001,
        data=b"hello",
        checksum=0x9A71BB4C,
    ),
    "names.lookup": NameParams(NameVerb.LOOKUP, b"a", most=5),
}


@pytest.mark.parametrize("name", NAMES)
def test_parameters_of_names(name: str) -> None:
    assert NAMES[name].encode().hex() == FRAMES[name].hex()
    assert decode_params(FRAMES[name]) == NAMES[name]


def test_answers_of_names() -> None:
    assert decode_entry(FRAMES["names.entry"]) == NameEntry(OBJECT, False, 2, made=True)
    entry, data = decode_found(FRAMES["names.found"])
    assert entry == NameEntry(OBJECT, False, 1)
    assert data == NamedData(memoryview(b"hello"), 7, bytes.fromhex("000000010000000000000002"))
    for cut in (*range(24), *range(24, len(FRAMES["names.found"]))):
        with pytest.raises(ValueError, match="bytes"):
            decode_found(FRAMES["names.found"][:cut])
    created, modified = 0x1A1_EE56_5E00, 0x1A1_EE56_5E64
    versions = [bytes.fromhex("00000001") + each.to_bytes(8, "big") for each in (2, 3)]
    assert decode_names(FRAMES["names.listed"], 0x10000) == NameList(
        (
            ListedName(b"d", ref(0x10000, 0x10002), True, 0, created, modified, versions[0]),
            ListedName(b"notes.txt", OBJECT, False, 5, created, modified, versions[1]),
        ),
        True,
    )
    for cut in range(len(FRAMES["names.listed"])):
        with pytest.raises(ValueError, match="list of names"):
            decode_names(FRAMES["names.listed"][:cut], 0x10000)


@pytest.mark.parametrize("wrong", [b"notes/txt", b"../../etc", b"/etc/pass", b"notes\0txt"])
def test_names_that_cannot_be(wrong: bytes) -> None:
    """A client makes paths of its own machine of the names."""
    frame = FRAMES["names.listed"]
    with pytest.raises(ValueError, match="list of names has"):
        decode_names(frame.replace(b"notes.txt", wrong), 0x10000)
    for each in (b".", b"/", b"\0"):
        with pytest.raises(ValueError, match="list of names has"):
            decode_names(frame.replace(b"d" + bytes(7), each + bytes(7)), 0x10000)
    with pytest.raises(ValueError, match="has none"):
        decode_names(bytes((0, 0, 0, 0, 1, 0, 0, 0)), 0x10000)


def test_retrieved() -> None:
    found = attr.decode_retrieved(FRAMES["attrs.retrieved"])
    assert found.complete
    assert [(each.number, each.value) for each in found.attributes] == [
        (4, b"ACME    "),
        (0xC0, (1).to_bytes(8, "big")),
    ]


def test_groups() -> None:
    members = attr.decode_retrieved(FRAMES["attrs.groups"]).members
    assert [member.object_id for member in members] == [0x10000, 0x10001]
    assert [each.value for member in members for each in member.attributes] == [b"\xca\xfe", b""]


def test_lists() -> None:
    whole = decode_list(FRAMES["list.objects"])
    assert list(whole.ids) == [0x10000, 0x10001, 0x10005]
    assert decode_list(FRAMES["list.partitions_cut"]).continuation_id == 0x10001


@pytest.mark.parametrize(
    ("name", "key", "code", "field", "command_information"),
    [
        ("sense.no_object", 5, (0x24, 0x00), 24, None),
        ("sense.short_read", 1, (0x3B, 0x17), None, 3),
        ("sense.read_only", 5, (0x26, 0x00), 8, None),
        ("sense.opcode", 5, (0x20, 0x00), None, None),
        ("sense.job_failed", 0xB, (0x80, 0x02), None, 202),
    ],
)
def test_sense(
    name: str, key: int, code: tuple[int, int], field: int | None, command_information: int | None
) -> None:
    got = sense.decode(FRAMES[name])
    assert got is not None
    assert (got.sense_key, (got.asc, got.ascq)) == (key, code)
    assert got.field_pointer == field
    assert got.command_information == command_information
