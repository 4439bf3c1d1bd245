# SPDX-License-Identifier: GPL-2.0-or-later
"""Somebody on the way changes, drops, repeats and reorders what goes through: nothing of it makes a wrong
result.  A table in docs/security.md lists changes that no method detects, and the test compares it
with the outcome.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

import pyosd
from pyosd import requests as rq
from pyosd.errors import (
    CommandTimeout,
    IntegrityError,
    NotFound,
    OSDError,
    PermissionDenied,
    TaskAborted,
    Unreachable,
)
from pyosd.types import AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import Page
from pyosd.wire.capability import SecurityMethod
from pyosd.wire.cdb import AttributeLists, AttributePage, Request, decode_offset
from pyosd.wire.reply import Reply
from tests.security.conftest import BEFORE, COLOUR, Guarded
from tests.security.mitm import (
    COMMAND,
    DATA_IN,
    RESPONSE,
    Meddle,
    Mitm,
    Pdu,
    between,
    honest,
)

pytestmark = pytest.mark.tgtd
NOSEC, CAPKEY, CMDRSP, ALLDATA = SecurityMethod
PROVING = [CMDRSP, ALLDATA]
AFTER = b"fedcba9876543210"
RED = AttributeValue(*COLOUR.id, b"red, eight bytes or more")
LISTS = AttributeLists((COLOUR.id,), (RED,))
PIECES = ((0, 8), (8, 8))
CDB_BYTES = 236
TIMEOUT_S = 0.5  # until an answer that does not come is given up
ANSWERED_S = 60.0  # for one that comes


@dataclass
class Way:
    """A session through the relay."""

    guarded: Guarded
    target: pyosd.Target
    mitm: Mitm
    seen: list[Pdu] = field(default_factory=list)

    @property
    def obj(self) -> ObjectRef:
        return self.guarded.obj

    def refuses(
        self, request: Request, *kinds: type[OSDError], seconds: float = TIMEOUT_S
    ) -> OSDError:
        """The request must come to an error of these kinds.

        seconds: until the session is given up, ANSWERED_S where an answer comes.
        """
        with pytest.raises(kinds or OSDError) as caught:
            self.target.call(request, seconds)
        return caught.value

    def commands(self, change: Callable[[Pdu], None]) -> None:
        """Change every command."""
        self.mitm.to_target = on(COMMAND, change)

    def answers(self, opcode: int, change: Callable[[Pdu], None]) -> None:
        """Change every answer of a kind."""
        self.mitm.to_initiator = on(opcode, change)

    def honest(self) -> None:
        self.mitm.to_target = self.mitm.to_initiator = honest

    def recorded(self, request: Request) -> tuple[Reply, list[Pdu]]:
        """Call, and what went through meanwhile, both ways."""
        seen: list[Pdu] = []

        def keep(pdu: Pdu) -> list[Pdu]:
            seen.append(Pdu(bytearray(pdu.header), bytearray(pdu.additional), bytearray(pdu.data)))
            return [pdu]

        self.mitm.to_target = self.mitm.to_initiator = keep
        reply = self.target.reply(request)
        self.honest()
        return reply, seen


def on(opcode: int, change: Callable[[Pdu], None]) -> Meddle:
    def meddle(pdu: Pdu) -> list[Pdu]:
        if pdu.opcode == opcode:
            change(pdu)
        return [pdu]

    return meddle


def flipped(at: int, bit: int = 1) -> Callable[[Pdu], None]:
    """A bit of a PDU's data."""

    def change(pdu: Pdu) -> None:
        if at < len(pdu.data):
            pdu.data[at] ^= bit

    return change


def only(seen: list[Pdu], opcode: int) -> Pdu:
    (found,) = (each for each in seen if each.opcode == opcode)
    return found


@pytest.fixture(params=PROVING, ids=["CMDRSP", "ALLDATA"])
def way(request: pytest.FixtureRequest, guarded: Guarded) -> Iterator[Way]:
    yield from ways(guarded, request.param)


@pytest.fixture
def alldata(guarded: Guarded) -> Iterator[Way]:
    yield from ways(guarded, ALLDATA)


def ways(guarded: Guarded, method: SecurityMethod) -> Iterator[Way]:
    guarded.reset()
    with between(guarded.served.url) as (url, mitm):
        target = guarded.connect(method, url)
        target.read(guarded.obj, 0, 1)  # nothing is to be fetched any more
        yield Way(guarded, target, mitm)
        target.close()


def writing(obj: ObjectRef) -> Request:
    """Command data, a list of attributes to set, and one to get."""
    return rq.write(obj, 0, AFTER, attributes=LISTS)


def scattered(obj: ObjectRef) -> Request:
    """With a continuation segment."""
    return rq.write_pieces(obj, PIECES, AFTER)


# ---- requests -------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [writing, scattered])
def test_no_changed_cdb_is_acted_upon(way: Way, make: Callable[[ObjectRef], Request]) -> None:
    before = way.guarded.state()
    for at in range(CDB_BYTES):
        way.commands(partial(Pdu.flip, at=at))
        way.refuses(make(way.obj), PermissionDenied, IntegrityError, Unreachable)
    way.honest()
    assert way.guarded.state() == before == (BEFORE, COLOUR.value)
    way.target.call(make(way.obj))
    assert way.guarded.state()[0] == AFTER


@pytest.mark.parametrize("make", [writing, scattered])
def test_no_changed_data_out_is_acted_upon(
    alldata: Way, make: Callable[[ObjectRef], Request]
) -> None:
    """Command data, lists, continuation, integrity information: there are no gaps between these."""
    _, seen = alldata.recorded(make(alldata.obj))
    alldata.guarded.reset()
    length = len(only(seen, COMMAND).data)
    for at in range(length):
        alldata.commands(flipped(at))
        error = alldata.refuses(make(alldata.obj), PermissionDenied, OSDError, seconds=ANSWERED_S)
        assert not isinstance(error, IntegrityError | Unreachable), at  # the target says so itself
    alldata.honest()
    assert alldata.guarded.state() == (BEFORE, COLOUR.value)


def test_no_cut_data_out_is_acted_upon(alldata: Way) -> None:
    def cut(pdu: Pdu) -> None:
        del pdu.data[-8:]
        pdu.header[20:24] = len(pdu.data).to_bytes(4, "big")

    alldata.commands(cut)
    alldata.refuses(writing(alldata.obj))
    assert alldata.guarded.state() == (BEFORE, COLOUR.value)


def test_no_changed_continuation_is_acted_upon_under_cmdrsp(guarded: Guarded) -> None:
    for way in ways(guarded, CMDRSP):
        for at in range(40 + 8 + 16 * len(PIECES)):
            way.commands(flipped(at))
            way.refuses(scattered(way.obj), PermissionDenied, OSDError)
        assert guarded.state()[0] == BEFORE


# ---- answers --------------------------------------------------------------------------------------


def test_no_changed_data_in_is_believed(alldata: Way) -> None:
    """Of 16 bytes of data, the page, and integrity information there are no gaps in between."""
    request = rq.read(alldata.obj, 0, len(BEFORE))
    reply, seen = alldata.recorded(request)
    data = only(seen, DATA_IN).data
    assert bytes(reply.data) == BEFORE and len(data) == 16 + 76 + 4 + 48
    gap = range(16 + 76, 16 + 76 + 4)
    for at in range(len(data)):
        alldata.answers(DATA_IN, flipped(at))
        if at in gap:
            assert bytes(alldata.target.call(request).data) == BEFORE
        else:
            alldata.refuses(request, IntegrityError, seconds=ANSWERED_S)


def test_no_changed_list_is_believed(alldata: Way) -> None:
    request = rq.get_attributes(alldata.obj, attributes=AttributeLists((COLOUR.id,), (), 1024))
    reply, seen = alldata.recorded(request)
    data = only(seen, DATA_IN).data
    length = 8 + int.from_bytes(data[4:8], "big")
    assert length + 48 < len(data)  # a gap, for there was room for more
    for at in range(0, len(data), 3):
        alldata.answers(DATA_IN, flipped(at))
        if at < length or at >= len(data) - 48:
            alldata.refuses(request, IntegrityError, seconds=ANSWERED_S)
        else:
            assert alldata.target.call(request).attributes == reply.attributes


def test_no_changed_page_is_believed(way: Way) -> None:
    request = rq.write(way.obj, 0, BEFORE)
    _, seen = way.recorded(request)
    assert len(only(seen, DATA_IN).data) >= 76
    for at in range(76):
        way.answers(DATA_IN, flipped(at))
        way.refuses(request, IntegrityError, seconds=ANSWERED_S)


def test_no_changed_sense_is_believed(way: Way) -> None:
    """Of its length only what makes it shorter changes it: more than there is is not looked at."""
    request = rq.read(ref(way.obj.partition_id, 0x7FFF_0000), 0, 1)
    reply, seen = way.recorded(request)
    assert isinstance(reply.error, NotFound)
    data = only(seen, RESPONSE).data
    for at in range(len(data)):
        way.answers(RESPONSE, flipped(at))
        longer = at < 2 and not data[at] & 1
        way.refuses(request, NotFound if longer else IntegrityError, Unreachable)


@pytest.mark.parametrize("bit", [1 << each for each in range(8)])
def test_no_changed_status_is_believed(way: Way, bit: int) -> None:
    def change(pdu: Pdu) -> None:
        pdu.header[3] ^= bit

    for request in (
        rq.write(way.obj, 0, BEFORE),
        rq.read(ref(way.obj.partition_id, 1 << 20), 0, 1),
    ):
        for opcode in (RESPONSE, DATA_IN):
            _, seen = way.recorded(request)
            if (
                any(each.opcode == opcode and each.header[1] & 1 for each in seen)
                or opcode == RESPONSE
            ):
                way.answers(opcode, change)
                if any(each.opcode == opcode for each in seen):
                    way.refuses(request, IntegrityError, Unreachable, TaskAborted)
        way.honest()


def test_good_in_place_of_a_refusal_is_not_believed(way: Way) -> None:
    def good(pdu: Pdu) -> None:
        pdu.header[3] = 0
        pdu.data.clear()

    way.answers(RESPONSE, good)
    way.refuses(rq.read(ref(way.obj.partition_id, 1 << 20), 0, 8), IntegrityError, Unreachable)


@pytest.mark.parametrize("opcode", [RESPONSE, DATA_IN])
def test_changed_headers_make_no_wrong_result(alldata: Way, opcode: int) -> None:
    """Those of iSCSI have no check value: what they say is checked, or is in what has one."""
    absent = rq.read(ref(alldata.obj.partition_id, 0x7FFF_0000), 0, 1)
    request = absent if opcode == RESPONSE else rq.read(alldata.obj, 0, len(BEFORE))
    for at in [*range(4), *range(8, 48)]:  # not the lengths, which the relay puts right

        def change(pdu: Pdu, at: int = at) -> None:
            pdu.header[at] ^= 1

        alldata.answers(opcode, change)
        try:
            reply = alldata.target.reply(request, TIMEOUT_S / 2)
        except (IntegrityError, Unreachable):
            continue
        finally:
            alldata.honest()
        assert isinstance(reply.error, NotFound) if opcode == RESPONSE else reply.error is None
        assert bytes(reply.data) == (b"" if opcode == RESPONSE else BEFORE), at


# ---- replays, drops, another order ------------------------------------------------------------------


def test_a_repeated_command_is_refused(way: Way) -> None:
    """Somebody who has heard a command sends it from a session of their own."""
    _, seen = way.recorded(rq.append(way.obj, AFTER))
    command = only(seen, COMMAND)
    before = way.guarded.state()
    response = way.guarded.plain.execute(command.cdb, bytes(command.data), 4096)
    assert response.status == 2 and response.sense[1:4] == b"\x05\x24\x06"
    assert way.guarded.state() == before


def test_an_answer_of_before_is_not_believed(way: Way) -> None:
    request = rq.read(way.obj, 0, len(BEFORE))
    _, seen = way.recorded(request)
    old = only(seen, DATA_IN).data
    way.target.write(way.obj, 0, AFTER)

    def replay(pdu: Pdu) -> None:
        pdu.data[:] = old

    way.answers(DATA_IN, replay)
    way.refuses(request, IntegrityError, seconds=ANSWERED_S)


def test_exchanged_answers_are_not_believed(alldata: Way) -> None:
    """Those of two commands that are under way together."""
    held: list[Pdu] = []
    lock = threading.Lock()

    def exchange(pdu: Pdu) -> list[Pdu]:
        if pdu.opcode != DATA_IN:
            return [pdu]
        with lock:
            held.append(pdu)
            if len(held) < 2:
                return []
            first, second = held
            first.data, second.data = second.data, first.data
            held.clear()
            return [first, second]

    alldata.mitm.to_initiator = exchange
    pending = [alldata.target.submit(rq.read(alldata.obj, at, 8)) for at in (0, 8)]
    for each in pending:
        with pytest.raises((IntegrityError, Unreachable)):
            each.reply(2 * TIMEOUT_S)


@pytest.mark.parametrize("opcode", [COMMAND, DATA_IN, RESPONSE])
def test_what_is_dropped_ends_in_an_error(alldata: Way, opcode: int) -> None:
    request = rq.read(ref(alldata.obj.partition_id, 1 << 20), 0, 8)
    if opcode != RESPONSE:
        request = rq.append(alldata.obj, AFTER)

    def drop(pdu: Pdu) -> list[Pdu]:
        return [] if pdu.opcode == opcode else [pdu]

    alldata.mitm.to_target = alldata.mitm.to_initiator = drop
    alldata.refuses(request, CommandTimeout, Unreachable, IntegrityError)
    alldata.honest()
    assert bytes(alldata.target.read(alldata.obj, 0, 8)) == BEFORE[:8]


def test_a_lost_read_is_sent_again_with_another_nonce(alldata: Way) -> None:
    """The first is cut off behind the target: its nonce is in use."""
    cuts = iter([True])

    def cut(pdu: Pdu) -> list[Pdu]:
        if pdu.opcode in (DATA_IN, RESPONSE) and next(cuts, False):
            alldata.mitm.cut()
            return []
        return [pdu]

    alldata.mitm.to_initiator = cut
    assert bytes(alldata.target.read(alldata.obj, 0, 8)) == BEFORE[:8]


def test_a_forged_refusal_does_nothing_twice(way: Way) -> None:
    """24/00 at 80 needs no proof. An APPEND that was executed nevertheless is not repeated."""
    forged = bytes((0x72, 5, 0x24, 0, 0, 0, 0, 8, 2, 6, 0, 0, 0xC0, 0, 80, 0))

    def forge(pdu: Pdu) -> list[Pdu]:
        if pdu.opcode == DATA_IN and not pdu.header[1] & 1:
            return []
        if pdu.opcode in (RESPONSE, DATA_IN):
            header = bytearray(48)
            header[0], header[1], header[3] = RESPONSE, 0x80, 2
            header[16:20], header[24:36] = pdu.header[16:20], pdu.header[24:36]
            return [Pdu(header, bytearray(), bytearray(len(forged).to_bytes(2, "big") + forged))]
        return [pdu]

    way.mitm.to_initiator = forge
    error = way.refuses(rq.append(way.obj, AFTER), seconds=ANSWERED_S)
    assert isinstance(error, IntegrityError | PermissionDenied)
    way.honest()
    assert way.guarded.state()[0] == BEFORE + AFTER


# ---- which bytes no method covers -----------------------------------------------------------------

DOCUMENT = Path(__file__).parents[2] / "docs" / "security.md"
REFUSED, TAKEN, NO_EFFECT = "refused", "taken", "no effect"
DATA = b"x" * 12  # so that something lies between it and what follows
BOTH_LISTS = AttributeLists((COLOUR.id,), (RED,))


def field_at(cdb: bytes, at: int) -> int:
    return int.from_bytes(cdb[at : at + 4], "big")


def end_of_segment(where: str, pdu: Pdu) -> int:
    """The last byte of a segment of Data-Out; of Data-In where the PDU has none of it."""
    cdb, continuation = pdu.cdb, field_at(pdu.cdb, 48)
    data = continuation + len(DATA)
    return {
        "continuation": lambda: continuation - 9,  # where the last piece goes
        "command data": lambda: data - 1,
        "gap": lambda: data,
        "set list": lambda: decode_offset(field_at(cdb, 72)) + field_at(cdb, 68) - 1,
        "get list": lambda: decode_offset(field_at(cdb, 56)) + field_at(cdb, 52) - 1,
        "integrity": lambda: decode_offset(field_at(cdb, 232)) + 56 - 1,
    }[where]()


def of_data_out(way: Way, where: str) -> str:
    """One bit of a segment is changed on its way to the target."""
    request = rq.write_pieces(way.obj, ((0, 8), (8, 4)), DATA, attributes=BOTH_LISTS)
    _, seen = way.recorded(request)
    expected = way.guarded.state()
    if where == "integrity" and only(seen, COMMAND).cdb[82] != ALLDATA:
        return "absent"
    way.guarded.reset()
    way.commands(flipped(end_of_segment(where, only(seen, COMMAND)), 2))
    try:
        reply = way.target.call(request, ANSWERED_S)
    except OSDError:
        return REFUSED
    same = way.guarded.state() == expected and reply.attributes == (RED,)
    return NO_EFFECT if same else TAKEN


def of_data_in(way: Way, where: str) -> str:
    """One bit of a segment is changed on its way to the initiator."""
    wanted = AttributeLists((COLOUR.id,))
    request = rq.read(way.obj, 0, len(DATA), attributes=wanted)
    if where == "page":
        page = AttributePage(Page.CURRENT_COMMAND, 76)
        request = rq.write(way.obj, 0, BEFORE, attributes=page)
    expected, seen = way.recorded(request)
    cdb = only(seen, COMMAND).cdb
    retrieved = decode_offset(field_at(cdb, 60 if where == "page" else 64))
    listed = bytes(only(seen, DATA_IN).data).find(COLOUR.value)
    if where == "integrity" and cdb[82] != ALLDATA:
        return "absent"
    at = {
        "command data": lambda: len(DATA) - 1,
        "gap": lambda: len(DATA),
        "retrieved": lambda: listed,
        "page": lambda: retrieved + 75,
        "integrity": lambda: decode_offset(field_at(cdb, 228)) + 47,
    }[where]()
    way.answers(DATA_IN, flipped(at, 2))
    try:
        reply = way.target.call(request, ANSWERED_S)
    except IntegrityError:
        return REFUSED
    same = (reply.data, reply.attributes, reply.page) == (
        expected.data,
        expected.attributes,
        expected.page,
    )
    return NO_EFFECT if same else TAKEN


def of_cdb(way: Way, where: str) -> str:
    """The address of a WRITE."""
    way.commands(lambda pdu: pdu.flip(47, 2))
    try:
        way.target.call(rq.write(way.obj, 0, DATA), ANSWERED_S)
    except OSDError:
        return REFUSED
    return TAKEN


def of_answer(way: Way, where: str) -> str:
    """Status or sense data of a refusal."""

    def change(pdu: Pdu) -> None:
        if where == "status":
            pdu.header[3] ^= 0x0A  # BUSY
        else:
            pdu.data[2 + 7 + pdu.data[2 + 7]] ^= 1

    way.answers(RESPONSE, change)
    try:
        way.target.call(rq.read(ref(way.obj.partition_id, 1 << 20), 0, 1), ANSWERED_S)
    except IntegrityError:
        return REFUSED
    except OSDError:
        return TAKEN
    return TAKEN


CLASSES: dict[str, tuple[Callable[[Way, str], str], str]] = {
    "CDB": (of_cdb, ""),
    "continuation segment": (of_data_out, "continuation"),
    "command data of Data-Out": (of_data_out, "command data"),
    "set attributes list": (of_data_out, "set list"),
    "get attributes list": (of_data_out, "get list"),
    "Data-Out integrity information": (of_data_out, "integrity"),
    "gaps in Data-Out": (of_data_out, "gap"),
    "status": (of_answer, "status"),
    "sense data": (of_answer, "sense"),
    "Current Command page": (of_data_in, "page"),
    "command data of Data-In": (of_data_in, "command data"),
    "retrieved attributes": (of_data_in, "retrieved"),
    "Data-In integrity information": (of_data_in, "integrity"),
    "gaps in Data-In": (of_data_in, "gap"),
}


def test_table_of_what_is_covered(guarded: Guarded) -> None:
    found = {}
    for name, (measure, where) in CLASSES.items():
        found[name] = [
            measure(way, where)
            for method in (CAPKEY, CMDRSP, ALLDATA)
            for way in ways(guarded, method)
        ]
    text = DOCUMENT.read_text()
    rows = {
        name: re.findall(rf"^\| {name} \| (.+?) \| (.+?) \| (.+?) \|$", text, re.MULTILINE)
        for name in CLASSES
    }
    assert {name: [*each[0]] if each else [] for name, each in rows.items()} == found
