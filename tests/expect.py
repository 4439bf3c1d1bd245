# SPDX-License-Identifier: GPL-2.0-or-later
"""Outcomes a command may have, each named once, and the one way to check for them.

Lives here: SAM status, sense key, ASC/ASCQ and field pointer by meaning; byte-exact sense data;
CDBs with single bytes changed.  Not here: what a command should give (the tests say that).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace

from pyosd.commands import Commands
from pyosd.types import AttributeId, ObjectRef
from pyosd.wire.cdb import Layout, Request, decode_data_in, encode
from pyosd.wire.reply import Reply
from pyosd.wire.sense import decode, error_for
from pyosd.wire.transport import Command

CHECK_CONDITION = 0x02
BUSY = 0x08
TASK_ABORTED = 0x40
NOTHING_DONE = 0xB010_3030
"""Function bits of sense descriptor 06h when nothing was initiated."""


@dataclass(frozen=True)
class Outcome:
    """How a command ends: sense key, ASC/ASCQ, and the CDB byte pointed at (None: any)."""

    name: str
    sense_key: int
    asc: int
    ascq: int
    field: int | None = None

    def at(self, field: int) -> Outcome:
        """The same, pointing at another byte of the CDB."""
        return replace(self, name=f"{self.name} at byte {field}", field=field)


OK = Outcome("success", 0, 0, 0)
PAST_END = Outcome("read past the end", 1, 0x3B, 0x17)
STILL_RUNNING = Outcome("the job goes on", 1, 0x80, 0x10)
NOT_READY = Outcome("format in progress", 2, 0x04, 0x04)
MEDIUM = Outcome("backing device failed", 3, 0x11, 0x00)
INTERNAL = Outcome("internal failure", 4, 0x44, 0x00)
OPCODE = Outcome("not an OSD-2 CDB", 5, 0x20, 0x00)
CDB_FIELD = Outcome("invalid field in CDB", 5, 0x24, 0x00)
UNSUPPORTED = CDB_FIELD.at(8)
NO_PARTITION = replace(CDB_FIELD, name="no such partition", field=16)
NO_OBJECT = replace(CDB_FIELD, name="no such object", field=24)
PARTITION_TAKEN = replace(CDB_FIELD, name="partition id taken or reserved", field=16)
OBJECT_TAKEN = replace(CDB_FIELD, name="object id taken or reserved", field=24)
BEYOND_END = replace(CDB_FIELD, name="start beyond the end", field=40)
LIST_LENGTH = Outcome("parameter list length error", 5, 0x1A, 0x00)
LIST_FIELD = Outcome("invalid field in parameter list", 5, 0x26, 0x00)
NOT_EMPTY = Outcome("contains user objects", 5, 0x2C, 0x0A)
ANOTHER_VERSION = Outcome("the data have another version", 0xE, 0x1D, 0x00)
QUOTA = Outcome("quota exceeded or no space", 7, 0x55, 0x07)
JOB_IN_WAY = Outcome("an unfinished job stands in the way", 5, 0x80, 0x11)
KEY_CLASH = Outcome("idempotency key in use with other content", 5, 0x80, 0x12)
ISOLATION = Outcome("isolation level not available", 5, 0x80, 0x13)


def check(reply: Reply, outcome: Outcome, attribute: AttributeId | None = None) -> Reply:
    """Assert that a command ended so; returns the reply.

    attribute: the attribute sense descriptor 08h must name.
    """
    response, sense = reply.response, reply.sense
    if outcome is OK:
        assert response.status == 0, f"refused: {reply.error or sense}"
        assert not response.sense
        return reply
    assert response.status == CHECK_CONDITION, f"{outcome.name} expected, SAM {response.status:#x}"
    assert sense is not None, f"no usable sense data: {response.sense.hex()}"
    got = (sense.sense_key, sense.asc, sense.ascq)
    assert got == (outcome.sense_key, outcome.asc, outcome.ascq), (
        f"{outcome.name} expected: {sense}"
    )
    if outcome.field is not None:
        assert sense.field_pointer == outcome.field, f"{outcome.name} expected: {sense}"
        assert not sense.field_in_data_out
    if attribute is not None:
        assert attribute in sense.attributes, f"{attribute} expected in {sense}"
    check_sense_form(response.sense)
    return reply


def check_sense_form(sense: bytes) -> None:
    """Descriptor format, lengths that add up, descriptors in the order initiators rely on."""
    assert sense[0] == 0x72
    assert sense[1] & 0xF0 == 0
    assert sense[4:7] == bytes(3)
    assert len(sense) == 8 + sense[7] <= 252
    kinds, at = [], 8
    while at < len(sense):
        kinds.append(sense[at])
        at += 2 + sense[at + 1]
    assert at == len(sense), f"descriptors run past the end: {sense.hex()}"
    assert len(set(kinds)) == len(kinds)
    if 0x08 in kinds:
        assert kinds[-1] == 0x08, "Linux reads nothing behind descriptor 08h"
    if 0x06 in kinds:
        assert kinds[0] == 0x06


def refusal(
    outcome: Outcome, obj: ObjectRef, not_initiated: int = NOTHING_DONE, completed: int = 0
) -> bytes:
    """Sense data of a refused command, byte for byte: header, descriptors 06h and 02h."""
    head = struct.pack(">BBBB3xB", 0x72, outcome.sense_key, outcome.asc, outcome.ascq, 40)
    identification = struct.pack(
        ">BB6xIIQQ", 6, 0x1E, not_initiated, completed, obj.partition_id, obj.object_id
    )
    pointer = struct.pack(">BB2xBHx", 2, 6, 0xC0, outcome.field or 0)
    return head + identification + pointer


def mangled(
    osd: Commands,
    request: Request,
    changes: dict[int, bytes],
    *,
    cdb_length: int | None = None,
    data_out: bytes | None = None,
    data_in_length: int | None = None,
) -> Reply:
    """Send a request whose CDB, Data-Out or expected Data-In were tampered with.

    changes: CDB offset -> bytes put there.  cdb_length: cut or padded with zeros to that.
    """
    command, layout = encode(request)
    cdb = bytearray(command.cdb)
    for at, value in changes.items():
        cdb[at : at + len(value)] = value
    if cdb_length is not None:
        cdb = cdb[:cdb_length].ljust(cdb_length, b"\0")
    out = command.data_out if data_out is None else data_out
    room = command.data_in_length if data_in_length is None else data_in_length
    return send(osd, request, Command(bytes(cdb), out, room), layout)


def send(osd: Commands, request: Request, command: Command, layout: Layout) -> Reply:
    """Send prepared bytes and decode the answer as the request's."""
    response = osd.transport.execute(command)
    sense = decode(response.sense)
    error = error_for(response.status, sense, request.service_action)
    parts = decode_data_in(request, layout, response.data_in)
    data, retrieved, page = parts.data, parts.retrieved, parts.page
    return Reply(request, response, data, retrieved, page, sense, error)
