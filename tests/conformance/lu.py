# SPDX-License-Identifier: GPL-2.0-or-later
"""The logical unit under test: sends requests, checks answers, owns what the suite makes there.

Lives here: the only use of pyosd, as a carrier of raw commands; words for what every test needs
(an object, its bytes, an attribute); the partitions that are removed at the end.  Not here: what a
cell expects.
"""

from __future__ import annotations

import random
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from pyosd.wire.transport import Command, CommandTransport
from tests.conformance import sense as s
from tests.conformance import wire as w
from tests.conformance.sense import Malformed, Sense

GOOD, CHECK_CONDITION = 0x00, 0x02
ABSENT = 0x7000_0000_0000
"""An id no partition of the suite has an object under."""
Place = int | tuple[int, ...] | None
"""The CDB byte a refusal points at, several that would do, or any."""


class Failed(AssertionError):
    """The target did not do what the standard says; the text has everything needed to repeat it."""


class Skipped(Exception):
    """A test that cannot run here; the text says why."""


@dataclass(frozen=True)
class Answer:
    """The answer. data: all of Data-In. residual_in: expected less transferred bytes."""

    built: w.Built
    status: int
    sense_data: bytes
    data: bytes
    residual_in: int

    @property
    def retrieved(self) -> bytes:
        """Data-In from the retrieved attributes on."""
        return self.data[self.built.retrieved_at :]

    @property
    def values(self) -> list[bytes]:
        """Values of the retrieved attributes, in order."""
        return w.ValueList.read(self.retrieved).values()

    @property
    def sense(self) -> Sense | None:
        """Sense data taken apart.  Raises: Malformed."""
        return s.decode(self.sense_data) if self.sense_data else None


def dump(data: bytes, limit: int = 512) -> str:
    """Bytes in rows of 32, a run of equal rows as one line, as much as a person looks at."""
    lines: list[str] = []
    skipped = False
    for at in range(0, min(len(data), limit), 32):
        row = data[at : at + 32]
        if at and row == data[at - 32 : at] and at + 32 < len(data):
            skipped = True
            continue
        if skipped:
            lines.append("  *")
            skipped = False
        lines.append(
            f"  {at:04X}  " + " ".join(row[i : i + 4].hex() for i in range(0, len(row), 4))
        )
    if len(data) > limit:
        lines.append(f"  ... {len(data)} bytes in all")
    return "\n".join(lines) if lines else "  none"


def described(answer: Answer) -> str:
    """A command and its answer, complete enough to send it again by hand."""
    built = answer.built
    parts = [("CDB", built.cdb), ("Data-Out", built.data_out), ("Sense data", answer.sense_data)]
    parts.append((f"Data-In, of {built.data_in_length} expected", answer.data))
    return "\n".join(f"{name}:\n{dump(data)}" for name, data in parts)


def ended(answer: Answer) -> str:
    """How a command ended, in words."""
    if answer.status == GOOD and not answer.sense_data:
        return "GOOD"
    try:
        return f"SAM status {answer.status:02X}h, sense {answer.sense}"
    except Malformed as error:
        return f"SAM status {answer.status:02X}h, sense data malformed: {error}"


class LogicalUnit:
    """One logical unit, behind whatever carries commands.

    Args: transport: of pyosd.  residuals: the transport reports what did not fit, too.
        choose: where random ids come from.  destructive: FORMAT OSD is allowed.
    """

    def __init__(
        self,
        transport: CommandTransport,
        *,
        residuals: bool = True,
        choose: random.Random | None = None,
        destructive: bool = False,
    ) -> None:
        self.transport = transport
        self.residuals = residuals
        self.destructive = destructive
        self.last: deque[Answer] = deque(maxlen=2)
        chosen = (choose or random.SystemRandom()).getrandbits(28)
        self.base = 0x7000_0000_0000_0000 | chosen << 32
        self.partitions: set[int] = set()
        self.supported: set[str] = set()
        self._next_pid = self.base | 0xFFFF
        self._next_oid = 0x4000_0000
        self.pid = self._second = self._former = 0
        self.security_method = 0

    # ---- sending ----

    def submit(self, request: w.Request) -> Callable[[], Answer]:
        """Send without waiting; the result waits."""
        built = request.build()
        command = Command(built.cdb, built.data_out, built.data_in_length)
        pending = self.transport.submit(command)

        def wait() -> Answer:
            response = pending.result()
            residual = response.residual_in
            data = bytes(response.data_in)
            answer = Answer(built, response.status, bytes(response.sense), data, residual)
            self.last.append(answer)
            return answer

        return wait

    def send(self, request: w.Request) -> Answer:
        return self.submit(request)()

    def together(self, requests: Sequence[w.Request]) -> list[Answer]:
        """Send many at once and wait for all."""
        return [wait() for wait in [self.submit(each) for each in requests]]

    # ---- checking ----

    def skip(self, why: str) -> NoReturn:
        raise Skipped(why)

    def need(self, command: str) -> None:
        """Skip where the target does not have a command the test is not about."""
        if command not in self.supported:
            self.skip(f"needs {command}")

    def fail(self, answer: Answer | None, expected: str, got: str | None = None) -> Failed:
        text = f"expected: {expected}"
        if answer is not None:
            text += f"\ngot:      {got or ended(answer)}\n{described(answer)}"
        elif got:
            text += f"\ngot:      {got}"
        return Failed(text)

    def check(self, holds: bool, answer: Answer | None, expected: str, got: object = None) -> None:
        """Fail unless it holds."""
        if not holds:
            raise self.fail(answer, expected, None if got is None else str(got))

    def same(self, got: object, expected: object, what: str, answer: Answer | None = None) -> None:
        """Fail unless two values are equal."""

        def shown(value: object) -> str:
            return value.hex(" ", 4) if isinstance(value, bytes) else repr(value)

        if got != expected:
            raise self.fail(answer, f"{what}: {shown(expected)}", shown(got))

    def is_good(self, answer: Answer) -> Answer:
        if answer.status != GOOD or answer.sense_data:
            raise self.fail(answer, "GOOD")
        return answer

    def good(self, request: w.Request) -> Answer:
        """Send; anything but GOOD fails."""
        return self.is_good(self.send(request))

    def is_refused(
        self,
        answer: Answer,
        code: int,
        at: Place = None,
        *,
        key: int = s.ILLEGAL,
        attribute: w.AttributeName | None = None,
    ) -> Answer:
        places = (at,) if isinstance(at, int) else at
        expected = f"CHECK CONDITION {key:X}/{code >> 8:02X}/{code & 0xFF:02X}"
        if places:
            expected += f" at CDB byte {' or '.join(map(str, places))}"
        if attribute:
            expected += f", descriptor 08h with {attribute[0]:X}h #{attribute[1]:X}h"
        try:
            found = answer.sense
        except Malformed:
            raise self.fail(answer, expected) from None
        if answer.status != CHECK_CONDITION or found is None:
            raise self.fail(answer, expected)
        right = (found.key, found.code) == (key, code) and (not places or found.pointer in places)
        if not right or (attribute and attribute not in found.attributes):
            raise self.fail(answer, expected)
        if code != s.INVALID_OPCODE and 0x06 not in found.kinds:
            raise self.fail(answer, f"{expected} with object identification (descriptor 06h)")
        return answer

    def refused(
        self,
        request: w.Request,
        code: int,
        at: Place = None,
        *,
        key: int = s.ILLEGAL,
        attribute: w.AttributeName | None = None,
    ) -> Answer:
        """Send; the command must be refused so."""
        return self.is_refused(self.send(request), code, at, key=key, attribute=attribute)

    def bad_field(self, request: w.Request, at: Place = None) -> Answer:
        """Send; it must be refused with INVALID FIELD IN CDB."""
        return self.refused(request, s.INVALID_FIELD_IN_CDB, at)

    # ---- what tests need ----

    def free_oid(self) -> int:
        """An object id in none of the suite's partitions."""
        self._next_oid -= 1
        return self._next_oid

    def free_pid(self) -> int:
        """A partition id nobody has; removed at the end if it comes to exist."""
        self._next_pid -= 1
        self.partitions.add(self._next_pid)
        return self._next_pid

    def absent_pid(self) -> int:
        return self.base | 0x8000_0000

    def second_partition(self) -> int:
        """A partition beside the suite's own, empty; the same one for all tests."""
        if not self._second:
            self._second = self.partition()
        return self._second

    def partition(self) -> int:
        """A new partition."""
        pid = self.free_pid()
        self.good(w.Request(0x888B, pid))
        return pid

    def object(self, data: bytes = b"", pid: int = 0) -> int:
        """A new user object, with data."""
        oid = self.free_oid()
        self.good(w.Request(0x8882, pid or self.pid, oid))
        if data:
            self.write(oid, 0, data, pid)
        return oid

    def collection(self, *members: int, pid: int = 0) -> int:
        """A new linked collection with user objects in it."""
        self.need("CREATE COLLECTION")
        cid = self.free_oid()
        self.good(w.Request(0x8895, pid or self.pid, cid))
        for number, oid in enumerate(members):
            self.set(oid, 0x4, 0x100 + number + (cid & 0xFFFF) * 16, struct.pack(">Q", cid), pid)
        return cid

    def write(self, oid: int, at: int, data: bytes, pid: int = 0) -> None:
        self.good(w.Request(0x8886, pid or self.pid, oid, len(data), at, data=data))

    def read(self, oid: int, at: int = 0, length: int = 4096, pid: int = 0) -> bytes:
        """Bytes of an object, up to its end."""
        answer = self.send(w.Request(0x8885, pid or self.pid, oid, length, at, data_in=length))
        if answer.status == GOOD and len(answer.data) == length:
            return answer.data
        self.is_refused(answer, s.READ_PAST_END, key=s.RECOVERED)
        assert answer.sense is not None
        came = answer.sense.information
        self.check(came is not None and came <= length, answer, "the bytes read, in descriptor 01h")
        assert came is not None
        zeros = answer.data[:came] + bytes(length - came)
        self.check(answer.data == zeros, answer, "all of LENGTH, zeros behind the logical end")
        return answer.data[:came]

    def get(self, oid: int, page: int, number: int, pid: int | None = None) -> bytes:
        """One attribute; b"": undefined.  pid 0 names the root, oid 0 the partition."""
        request = w.Request(
            0x888E,
            self.pid if pid is None else pid,
            oid,
            byte12=0x7F,
            gets=((page, number),),
            allocation=1024,
        )
        answer = self.good(request)
        values = answer.values
        self.check(len(values) == 1, answer, "one retrieved attribute", f"{len(values)}")
        return values[0]

    def number(self, oid: int, page: int, number: int, pid: int | None = None) -> int:
        return int.from_bytes(self.get(oid, page, number, pid), "big")

    def set(self, oid: int, page: int, number: int, value: bytes, pid: int | None = None) -> None:
        """Set one attribute; b"": make it undefined."""
        place = pid or self.pid
        self.good(w.Request(0x888F, place, oid, sets=((page, number, value),)))

    def exists(self, oid: int, pid: int = 0) -> bool:
        """Is there an object under that id?"""
        answer = self.send(w.Request(0x888E, pid or self.pid, oid))
        if answer.status == GOOD:
            return True
        self.is_refused(answer, s.INVALID_FIELD_IN_CDB, (16, 24))
        return False

    def members(self, cid: int, pid: int = 0, action: int = 0x8897) -> list[int]:
        """Members of a collection; cid 0: the collections of the partition."""
        request = w.Request(action, pid or self.pid, cid, 65536, data_in=65536)
        return w.ObjectList.read(self.good(request).data).ids()

    def until(self, holds: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
        """Ask again until something holds; it is no use to sleep between round trips."""
        deadline = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > deadline:
                raise self.fail(self.last[-1], f"{what}, within {seconds:.0f} seconds")

    def user_objects(self, pid: int = 0) -> list[int]:
        return self.members(0, pid, 0x8883)

    # ---- from the beginning to the end ----

    def begin(self) -> None:
        """Make the partition the tests work in; also when FORMAT OSD took the last one away."""
        self.partitions.clear()
        self.pid = self._second = 0
        self.pid = self.partition()

    def still_there(self) -> bool:
        """Does the suite's partition exist?"""
        return self.send(w.Request(0x888E, self.pid)).status == GOOD

    def destroy(self) -> None:
        """The test destroys everything on the logical unit: skip it unless that is allowed."""
        if not self.destructive:
            self.skip("formats the logical unit: --destructive")
        self.need("FORMAT OSD")

    def formatted(self) -> int:
        """A partition that was there before a FORMAT OSD, done once for all tests that ask."""
        if not self._former:
            self.destroy()
            former = self.pid
            self.good(w.Request(0x8881))
            self.begin()
            self._former = former
        return self._former

    def clean_up(self) -> list[int]:
        """Remove every partition the suite made.  Returns: those that would not go."""
        left = []
        for pid in sorted(self.partitions | ({self.pid} if self.pid else set())):
            removed = self.send(w.Request(0x888C, pid, byte11=1)).status == GOOD
            there = not removed and self.send(w.Request(0x888E, pid)).status == GOOD
            if there and not self._emptied(pid):
                left.append(pid)
        return left

    def _emptied(self, pid: int) -> bool:
        """The long way, for a target that does not know how to remove a partition's contents."""
        for oid in self.user_objects(pid):
            self.send(w.Request(0x888A, pid, oid))
        for cid in self.members(0, pid) if "LIST COLLECTION" in self.supported else []:
            self.send(w.Request(0x8896, pid, cid, byte11=1))
        return self.send(w.Request(0x888C, pid)).status == GOOD
