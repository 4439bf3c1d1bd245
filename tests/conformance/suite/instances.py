# SPDX-License-Identifier: GPL-2.0-or-later
"""One valid request for each command, on objects made for it, and the rows generic tests take."""

from __future__ import annotations

import struct
from collections.abc import Callable

from tests.conformance import wire as w
from tests.conformance.cells import rows_but
from tests.conformance.commands import COLLECTIONS, PARTITIONS, PRIVATE, ROOT, USER, VENDOR, Row
from tests.conformance.lu import ABSENT, Answer, LogicalUnit
from tests.conformance.sense import ILLEGAL, INVALID_FIELD_IN_CDB, INVALID_OPCODE, Malformed
from tests.conformance.wire import Request

CONTENT = bytes(range(1, 65))
ROOM = 4096
HOLD_JOB = struct.pack(">HHHHI", 1, 1, 17, 1, 4) + struct.pack(">I4x", 1)
"""EXEC PARAMETERS of a job that is accepted but held, so that it runs nowhere."""


def harmless(t: LogicalUnit, row: Row) -> Request:
    """A request that cannot do anything, by which a target shows whether it knows the command."""
    request = Request(row.code, t.absent_pid(), ABSENT)
    if row.name == "CREATE PARTITION":
        return request.but(pid=1, form=0)
    if row.name in ("SET KEY", "SET MASTER KEY"):
        return request.but(byte11=2 if row.name == "SET MASTER KEY" else 0)
    return request.but(byte10=3) if row.name == "FORMAT OSD" else request


def said_unsupported(answer: Answer) -> bool:
    """Was the command refused as one the target does not have: 24/00 at 8, or 20/00?"""
    try:
        found = answer.sense
    except Malformed:
        return False
    if found is None or found.key != ILLEGAL:
        return False
    return found.code == INVALID_OPCODE or (found.code, found.pointer) == (INVALID_FIELD_IN_CDB, 8)


def user_object(t: LogicalUnit) -> int:
    return t.object(CONTENT)


def pair(t: LogicalUnit) -> int:
    """A collection of two objects."""
    return t.collection(t.object(), t.object())


def query_list(*criteria: tuple[int, int, bytes, bytes], kind: int = 1) -> bytes:
    """A QUERY LIST descriptor: (page, number, minimum, maximum); kind 0 any, 1 all."""
    content = struct.pack(">B3x", kind)
    for page, number, low, high in criteria:
        content += struct.pack(">2xHII", 12 + len(low) + len(high), page, number)
        content += struct.pack(">H", len(low)) + low + struct.pack(">H", len(high)) + high
    content += bytes(4)
    return w.descriptor(0x0002, content + bytes(-len(content) % 8))


def copy_source(pid: int, oid: int, attributes: bool = False) -> bytes:
    content = struct.pack(">QQBB2x", pid, oid, int(attributes), 0)
    return w.descriptor(0x0101, content)


def tracking(t: LogicalUnit, source: int = 0) -> int:
    """A tracking collection, of the members of another where one is named."""
    t.need("CREATE USER TRACKING COLLECTION")
    cid = t.free_oid()
    t.good(Request(0x8894, t.pid, cid, address=source))
    return cid


def query(
    t: LogicalUnit, cid: int, *descriptors: bytes, matches: int = 0, room: int = ROOM
) -> Request:
    chosen = descriptors or (query_list(),)
    if matches:
        room = 0
    return Request(
        *(0x88A0, t.pid, cid, room, matches), segment=w.segment(0x88A0, *chosen), data_in=room
    )


def copy(t: LogicalUnit, source: int, oid: int, attributes: bool = False) -> Request:
    part = w.segment(0x8893, copy_source(t.pid, source, attributes))
    return Request(0x8893, t.pid, oid, segment=part)


def scattered(action: int, t: LogicalUnit, oid: int) -> Request:
    """READ, WRITE or CREATE AND WRITE of two pieces."""
    parts = w.segment(action, w.pieces((0, 4), (16, 8)))
    data = b"" if action == 0x8885 else b"abcdABCDEFGH"
    return Request(
        action, t.pid, oid, 12, segment=parts, data=data, data_in=12 if action == 0x8885 else 0
    )


def held_job(t: LogicalUnit) -> Request:
    code = b"print('never')\n"
    part = w.segment(0x8F81, w.descriptor(0xF081, HOLD_JOB))
    return Request(0x8F81, t.pid, length=len(code), byte11=0x80, segment=part, data=code)


FUNCTIONS = 0xC0DE
"""The function partition of the suite."""


def function(t: LogicalUnit) -> int:
    """A function object, not active."""
    t.need("ACTIVATE FUNCTION")
    if FUNCTIONS not in t.partitions:
        t.good(Request(0x888B, FUNCTIONS))
        t.partitions.add(FUNCTIONS)
    return t.object(b"def main(args): return args\n", FUNCTIONS)


def call_parameters(oid: int) -> bytes:
    """Of a call by the function's id, as a job that is held."""
    value = struct.pack(">QQHH", FUNCTIONS, oid, 1, 0)
    parameters = struct.pack(">HH", 1, 2) + struct.pack(">HHII4x", 17, 1, 4, 1)
    return parameters + struct.pack(">HHI", 25, 1, len(value)) + value + bytes(-len(value) % 8)


def held_call(t: LogicalUnit) -> Request:
    """A call of an active function."""
    oid = function(t)
    t.good(Request(0x8F83, FUNCTIONS, oid))
    part = w.segment(0x8F82, w.descriptor(0xF081, call_parameters(oid)))
    return Request(0x8F82, t.pid, length=4, byte11=0x80, segment=part, data=b"args")


READ_NAMES, CHANGE_NAMES = 0x8F88, 0x8F89
FIRST_CHANGE = 0x11


def naming(
    t: LogicalUnit,
    verb: int,
    path: bytes,
    other: bytes = b"",
    prefix: bytes = b"",
    *,
    flags: int = 0,
    expected: int = 0,
    action: int = 0,
    room: int = ROOM,
    most: int = 0,
    data: bytes = b"",
) -> Request:
    """READ NAMES or CHANGE NAMES, as the verb needs, in the root directory of the suite's partition."""
    t.need("READ NAMES")
    lengths = (len(path), len(other), most or len(data), len(prefix))
    head = struct.pack(">BB2xHHIH2xQQ", verb, flags, *lengths, 0, expected)
    data = head + path + other + prefix + data
    action = action or (CHANGE_NAMES if verb >= FIRST_CHANGE else READ_NAMES)
    return Request(action, t.pid, 0, len(data), room, data=data, data_in=room)


def _new_name(t: LogicalUnit) -> Request:
    """CREATE of a name that the object keeps; both go with the partition."""
    return naming(t, FIRST_CHANGE, b"made%d" % t.free_oid(), room=24)


def _task_management(t: LogicalUnit) -> Request:
    return Request(0x8F7D, length=8 << 48 | 0x81, data_in=8)


MAKE: dict[str, Callable[[LogicalUnit], Request]] = {
    "OBJECT STRUCTURE CHECK": lambda t: Request(0x8880, t.pid),
    "FORMAT OSD": lambda t: Request(0x8881),
    "CREATE": lambda t: Request(0x8882, t.pid, t.free_oid()),
    "LIST": lambda t: Request(0x8883, t.pid, 0, ROOM, data_in=ROOM),
    "PUNCH": lambda t: Request(0x8884, t.pid, user_object(t), 8, 4),
    "READ": lambda t: Request(0x8885, t.pid, user_object(t), 16, 0, data_in=16),
    "WRITE": lambda t: Request(0x8886, t.pid, user_object(t), 5, 0, data=b"hello"),
    "APPEND": lambda t: Request(0x8887, t.pid, user_object(t), 5, data=b"hello"),
    "FLUSH": lambda t: Request(0x8888, t.pid, user_object(t)),
    "CLEAR": lambda t: Request(0x8889, t.pid, user_object(t), 8, 4),
    "REMOVE": lambda t: Request(0x888A, t.pid, user_object(t)),
    "CREATE PARTITION": lambda t: Request(0x888B, t.free_pid()),
    "REMOVE PARTITION": lambda t: Request(0x888C, t.partition()),
    "CAS": lambda t: Request(0x888D, t.pid, user_object(t), 8, data=bytes(16), data_in=8),
    "GET ATTRIBUTES": lambda t: Request(0x888E, t.pid, user_object(t)),
    "SET ATTRIBUTES": lambda t: Request(0x888F, t.pid, user_object(t)),
    "FA": lambda t: Request(0x8890, t.pid, user_object(t), 8, data=bytes(8), data_in=8),
    "COND SETATTR": lambda t: Request(
        0x8891, t.pid, user_object(t), sets=((0x1_0000, 1, b""), (0x1_0000, 1, b"new"))
    ),
    "CREATE AND WRITE": lambda t: Request(0x8892, t.pid, t.free_oid(), 5, 0, data=b"hello"),
    "COPY USER OBJECTS": lambda t: copy(t, user_object(t), t.free_oid()),
    "CREATE USER TRACKING COLLECTION": lambda t: Request(0x8894, t.pid, t.free_oid()),
    "CREATE COLLECTION": lambda t: Request(0x8895, t.pid, t.free_oid()),
    "REMOVE COLLECTION": lambda t: Request(0x8896, t.pid, t.collection()),
    "LIST COLLECTION": lambda t: Request(0x8897, t.pid, pair(t), ROOM, data_in=ROOM),
    "FLUSH COLLECTION": lambda t: Request(0x889A, t.pid, pair(t)),
    "FLUSH PARTITION": lambda t: Request(0x889B, t.pid),
    "FLUSH OSD": lambda t: Request(0x889C),
    "QUERY": lambda t: query(t, pair(t)),
    "REMOVE MEMBER OBJECTS": lambda t: Request(0x88A1, t.pid, pair(t)),
    "GET MEMBER ATTRIBUTES": lambda t: Request(0x88A2, t.pid, pair(t)),
    "SET MEMBER ATTRIBUTES": lambda t: Request(0x88A3, t.pid, pair(t)),
    "GEN CAS": lambda t: Request(
        0x88A5, t.pid, user_object(t), sets=((0x1_0000, 1, b""), (0x1_0000, 1, b"new"))
    ),
    "READ MAP": lambda t: Request(0x88B1, t.pid, user_object(t), ROOM, data_in=ROOM),
    "PERFORM SCSI COMMAND": lambda t: Request(0x8F7C),
    "PERFORM TASK MANAGEMENT FUNCTION": _task_management,
    "EXEC": held_job,
    "EXECUTE FUNCTION": held_call,
    "ACTIVATE FUNCTION": lambda t: Request(0x8F83, FUNCTIONS, function(t)),
    "READ NAMES": lambda t: naming(t, 1, b"", room=24),
    "CHANGE NAMES": _new_name,
}
UNKNOWN_CDB = tuple(row.name for row in rows_but() if row.name not in MAKE)
"""No source gives the fields of these commands (SET KEY's are known, but they change keys)."""

FLUSHES = ("FLUSH", "FLUSH COLLECTION", "FLUSH PARTITION", "FLUSH OSD")
MEMBERS = ("GET MEMBER ATTRIBUTES", "SET MEMBER ATTRIBUTES")
PRIVATES = tuple(row.name for row in rows_but() if row.level == PRIVATE)
KEEPS = ("REMOVE", "REMOVE PARTITION", "REMOVE COLLECTION")
"""Commands after which the object named is gone."""
RETURNING = ("LIST", "READ", "LIST COLLECTION", "QUERY", "READ MAP")
"""Commands with data of their own in Data-In, besides attributes."""


def known(*names: str, having: Callable[[Row], bool] = lambda row: True) -> list[Row]:
    """Rows that can be sent, but for some."""
    return rows_but("FORMAT OSD", *UNKNOWN_CDB, *names, having=having)


def standard(*names: str, having: Callable[[Row], bool] = lambda row: True) -> list[Row]:
    """The same without private and vendor commands."""
    return [each for each in known(*names, having=having) if each.level not in (PRIVATE, VENDOR)]


def listed(*names: str) -> list[Row]:
    """Rows whose CDB names attributes of one object, which the tests may name too."""
    return standard(*names, having=lambda row: row.pages is not None)


def with_lists(*names: str) -> list[Row]:
    """Rows whose CDB may hold attribute lists at all."""
    rows = standard(*names)
    return [each for each in rows if each.pages is not None or each.name in MEMBERS]


def of_user_objects(row: Row) -> bool:
    return row.addresses == "object"


def pages(row: Row) -> int:
    """Base of the pages a row's lists name; members are user objects."""
    return USER if row.pages is None else row.pages


def application(row: Row) -> int:
    """A page on which clients set what they like."""
    return pages(row) + 0x1_0000


def foreign(row: Row) -> int:
    """An information page of another object type."""
    return (PARTITIONS if pages(row) == USER else USER) + 1


def kind_and_ids(row: Row, request: Request) -> tuple[bytes, bytes, bytes]:
    """The Current Command page about the addressed object."""
    kind = {USER: w.USER_OBJECT, PARTITIONS: w.PARTITION, COLLECTIONS: w.COLLECTION, ROOT: w.ROOT}
    ids = struct.pack(">QQ", request.pid, request.oid)
    return bytes([kind[pages(row)]]), ids[:8], ids[8:]
