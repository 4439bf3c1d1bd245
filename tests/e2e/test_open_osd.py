# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands of Linux's open-osd initiator and exofs, replayed byte for byte (open_osd.trace).

That initiator takes sense keys 0 and 1 as success, ignores residuals, and expects the attributes of a
list in the order it asked for; so statuses, sense and every byte of Data-In are compared.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import pyosd
from pyosd.types import Sense
from pyosd.wire.sense import decode
from pyosd.wire.transport import Command
from tests.machine import unavailable
from tests.serving import Serving, missing

ANY = None  # a byte of Data-In that may be anything
Pattern = list[int | None]


@dataclass
class Exchange:
    """A command and its end. ends: in the form of the trace. data_in: the expected bytes."""

    name: str
    command: Command
    ends: str
    data_in: Pattern


def expand(tokens: list[str]) -> Pattern:
    """The bytes that tokens of the trace stand for."""
    found: Pattern = []
    for token in tokens:
        if token == "-":
            continue
        what, _, count = token.partition("*")
        if what == "..":
            found += [ANY] * int(count)
        elif what.startswith("words:"):
            first = int(what[6:])
            found += struct.pack(f"<{count}I", *range(first, first + int(count)))
        elif count:
            found += bytes.fromhex(what) * int(count)
        else:
            found += bytes.fromhex(token)
    return found


def literal(tokens: list[str]) -> bytes:
    return bytes(byte for byte in expand(tokens) if byte is not None)


def recorded() -> dict[str, list[Exchange]]:
    """The exchanges of each program, in their order."""
    programs: dict[str, list[Exchange]] = {}
    text = Path(__file__).with_name("open_osd.trace").read_text(encoding="ascii")
    for block in text.split("\n\n"):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        if not lines:
            continue
        if lines[0].startswith("= "):
            exchanges = programs[lines[0][2:]] = []
            continue
        name, *rest = lines
        parts = {key: value.split() for key, _, value in (line.partition(" ") for line in rest)}
        length, *data_in = parts["in"]
        command = Command(literal(parts["cdb"]), literal(parts["out"]), int(length))
        exchanges.append(Exchange(name, command, " ".join(parts["ends"]), expand(data_in)))
    return programs


TRACE = recorded()


@pytest.fixture(scope="module")
def served() -> Iterator[pyosd.Target]:
    why = missing()
    if why:
        unavailable("tgtd", why)
    with Serving("--security", "nosec") as serving, serving.connect() as target:
        yield target


def sense_of(data: bytes) -> Sense:
    found = decode(data)
    assert found is not None
    return found


def outcome(status: int, sense: bytes) -> str:
    """An answer's end in the words of the trace."""
    if status == 0:
        return "good"
    assert status == 2, f"SAM status {status:#x}"
    found = sense_of(sense)
    text = f"{found.sense_key}/{found.asc:02x}{found.ascq:02x}"
    if found.field_pointer is not None:
        text += f" field={found.field_pointer}"
    return text + (f" bytes={found.command_information}" if found.sense_key == 1 else "")


@pytest.mark.parametrize("program", ["mkfs.exofs+exofs", "osd_test"])
def test_replay(served: pyosd.Target, program: str) -> None:
    """A new file system and its use; the library's own test, which formats as well."""
    for exchange in (each for part in program.split("+") for each in TRACE[part]):
        answer = served.transport.submit(exchange.command).result()
        name = exchange.name
        assert outcome(answer.status, bytes(answer.sense)) == exchange.ends, name
        came = list(answer.data_in)
        assert len(came) == len(exchange.data_in), name
        pairs = enumerate(zip(came, exchange.data_in, strict=True))
        wrong = [at for at, (byte, wanted) in pairs if wanted not in (ANY, byte)]
        assert not wrong, f"{name}: Data-In differs at bytes {wrong[:8]}"


def test_a_read_past_the_end_is_as_long_as_asked_for() -> None:
    """The trace has each form that leaves a hole to the initiator: this kernel reads what is missing
    from whatever was in its pages."""
    short = [each for part in TRACE.values() for each in part if each.ends.startswith("1/3b17")]
    assert len(short) >= 6
    assert all(len(each.data_in) >= each.command.data_in_length for each in short)


def test_login_probe(served: pyosd.Target) -> None:
    """Requests of the kernel's SCSI layer before those of open-osd: type 11h, identities, one
    unit."""

    def data_in(cdb: str, length: int) -> bytes:
        command = Command(bytes.fromhex(cdb), b"", length)
        for _ in range(2):
            answer = served.transport.submit(command).result()
            if answer.status == 0:
                return bytes(answer.data_in)
            assert sense_of(bytes(answer.sense)).sense_key == 6, "a unit attention, once"
        raise AssertionError(cdb)

    inquiry = data_in("120000002400", 36)
    assert inquiry[0] & 0x1F == 0x11
    assert data_in("12000000ff00", 255)[:8] == inquiry[:8]
    pages = data_in("12010000ff00", 255)
    assert {0x80, 0x83} <= set(pages[4 : 4 + pages[3]])
    for page in (0x80, 0x83):
        found = data_in(f"1201{page:02x}00ff00", 255)
        assert found[1] == page
        assert found[3] > 0
    luns = data_in("a00000000000000010000000", 4096)
    assert int.from_bytes(luns[:4], "big") >= 8
    data_in("000000000000", 0)
