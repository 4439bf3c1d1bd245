# SPDX-License-Identifier: GPL-2.0-or-later
"""The columns of the matrix, the tests that fill its cells, and the cells no test can fill.

Lives here: conditions, the registry tests enter themselves into, not_applicable.toml.  Not here:
running them (runner.py).
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.conformance.commands import BY_NAME, ROWS, Row
from tests.conformance.lu import LogicalUnit

REASONS = Path(__file__).with_name("not_applicable.toml")


@dataclass(frozen=True)
class Condition:
    """A column.  group: conditions that are shown together."""

    name: str
    group: str
    meaning: str


def _group(group: str, *columns: tuple[str, str]) -> list[Condition]:
    return [Condition(name, group, meaning) for name, meaning in columns]


CONDITIONS = [
    *_group(
        "does its work",
        ("ok", "does what its section says, with everything valid"),
        ("known", "is executed, or refused with 24/00 at byte 8 or 20/00"),
        ("zero length", "a length of 0 is no error and changes nothing"),
        ("beyond end", "a range that begins or ends past the logical end"),
        ("concurrency", "many at once: each is done once, none is half seen"),
        ("isolation", "announced isolation methods are taken, others refused at byte 10"),
        ("FUA, DPO", "the two bits of byte 10 change nothing that can be seen"),
        ("timestamps kept", "TIMESTAMPS CONTROL 7Fh leaves all timestamps as they were"),
        ("continuation", "what a CDB continuation segment adds"),
    ),
    *_group(
        "refuses",
        ("not OSD-2", "byte 7 or the action of OSD-1: 20/00"),
        ("bad isolation", "reserved isolation methods: 24/00 at 10"),
        ("timestamps byte", "reserved values of byte 12: 24/00 at 12"),
        ("bad partition", "a partition that does not exist: 24/00 at 16"),
        ("reserved partition", "partition ids 1 to FFFFh: 24/00 at 16"),
        ("bad object", "an object or collection that does not exist: 24/00 at 24"),
        ("reserved object", "reserved object ids: 24/00 at 24"),
        ("wrong type", "an object of another type: 24/00 at 24"),
        ("duplicate id", "a requested id in use: 24/00 at 24 or 16"),
        ("own fields", "reserved values and combinations of the command's own fields"),
        ("range overflow", "start + length beyond 64 bits: 24/00"),
        ("not empty", "2C/0A"),
        ("quota", "55/07"),
        ("sense data", "the bytes of the descriptors of a refusal"),
    ),
    *_group(
        "attributes",
        ("list format", "set and retrieved in one command, in the order asked for"),
        ("page format", "a page retrieved and a value set in page format"),
        ("set-one format", "one attribute from the CDB"),
        ("page 0", "page 0 in CDBFMT 1 and 2: nothing is set or retrieved"),
        ("all attributes", "number and page FFFF_FFFFh"),
        ("undefined", "undefined attributes are retrieved with length 0"),
        ("current command", "page FFFF_FFFEh: type and ids of the object"),
        ("set/get order", "the order of command, set and get of section 3.7"),
        ("multi-object", "retrieved lists of several objects (type Eh, LIST_ATTR)"),
        ("CDBFMT 0", "24/00 at 11"),
        ("CDBFMT limits", "lengths, pages and numbers formats 1 and 2 do not allow"),
        ("bad page", "a page of another object type, or reserved: 26/00 with 08h"),
        ("read-only", "an attribute that cannot be set: 26/00, CDBFMT 1 24/00, with 08h"),
        ("list length", "list lengths 1 to 7, or no multiple of 8: 1A/00"),
        ("entry overrun", "an entry that runs past its list: 1A/00"),
        ("list type", "a list of another type: 26/00"),
        ("all or nothing", "a refused attribute leaves nothing of the command behind"),
    ),
    *_group(
        "buffers",
        ("short data", "Data-Out without all of the command data: 24/00 at the length"),
        ("short list", "Data-Out without all of a list: 24/00 at its length"),
        ("surplus", "Data-Out longer than needed is no error"),
        ("no offset", "offset FFFF_FFFFh with a length: 24/00 at the offset"),
        ("offset forms", "other spellings of an offset; exponents -8 to -6: 24/00"),
        ("segment order", "lists anywhere in Data-Out, in any order, with gaps"),
        ("allocation 0", "nothing is transferred, no error"),
        ("truncated", "a small allocation truncates; the full length is reported"),
        ("residual", "less produced than expected: a residual"),
        ("Data-In short", "less room than needed: filled as far as it goes, a residual"),
        ("overlap", "retrieved attributes inside the command data: 24/00 at their offset"),
        ("gap", "zeros between command data and retrieved attributes"),
        ("segment format", "continuation format other than 01h: 24/00"),
        ("segment action", "continuation of another service action: 24/00"),
        ("segment type", "unknown, foreign or repeated descriptors: 24/00"),
        ("segment pad", "pad and length of a descriptor that do not fit: 24/00"),
        ("segment length", "below 40, no multiple of 8, beyond Data-Out: 24/00"),
    ),
    *_group(
        "security, jobs, format",
        ("no capability", "capability format 0: 24/00 at 80 (methods above NOSEC)"),
        ("forged", "a request integrity check value that is wrong: 24/00 at 80"),
        ("expired", "a capability past its time: 24/00 at 84"),
        ("stale nonce", "a nonce out of its window: 24/07; repeated: 24/06"),
        ("no permission", "a capability without the permission: 24/00 at 129"),
        ("unfinished job", "an unfinished job's object (vendor): 80/11"),
        ("after format", "what FORMAT OSD took away is gone: 24/00 at 16"),
    ),
]
COLUMNS = {each.name: each for each in CONDITIONS}
Key = tuple[str, str]
"""Names of a command and a condition."""


@dataclass(frozen=True)
class Test:
    """A test of a cell.  clause: where the standard, or osd2-wire for it, says so."""

    __test__ = False  # not pytest's

    row: Row
    condition: str
    clause: str
    title: str
    run: Callable[[LogicalUnit], None]

    @property
    def key(self) -> Key:
        return self.row.name, self.condition

    @property
    def name(self) -> str:
        return f"{self.clause}: {self.row.name}, {self.title}"


TESTS: list[Test] = []


def _enter(
    row: Row, condition: str, clause: str, name: str, run: Callable[[LogicalUnit], None]
) -> None:
    assert condition in COLUMNS, condition
    TESTS.append(Test(row, condition, clause, name.replace("_", " "), run))


def cell(
    command: str, condition: str, clause: str
) -> Callable[[Callable[[LogicalUnit], None]], Callable[[LogicalUnit], None]]:
    """Enter a function as a test of one cell; its name is the title."""

    def enter(run: Callable[[LogicalUnit], None]) -> Callable[[LogicalUnit], None]:
        _enter(BY_NAME[command], condition, clause, run.__name__, run)
        return run

    return enter


RowTest = Callable[[LogicalUnit, Row], None]


def each(rows: Iterable[Row], condition: str, clause: str) -> Callable[[RowTest], RowTest]:
    """Enter a function as a test of one condition for many commands."""
    chosen = list(rows)

    def enter(run: RowTest) -> RowTest:
        for row in chosen:
            _enter(row, condition, clause, run.__name__, _about(run, row))
        return run

    return enter


def _about(run: RowTest, row: Row) -> Callable[[LogicalUnit], None]:
    return lambda t: run(t, row)


def rows_but(*names: str, having: Callable[[Row], bool] = lambda row: True) -> list[Row]:
    """All rows that have something, but for some."""
    return [row for row in ROWS if having(row) and row.name not in names]


@dataclass(frozen=True)
class Reason:
    """Why a cell is not tested.  unless: "security": it is, where a method above NOSEC is in force."""

    text: str
    unless: str | None = None


@cache
def reasons() -> dict[Key, Reason]:
    """not_applicable.toml, cell by cell.

    Raises: ValueError: an entry names what is not there, or a cell has two reasons.
    """
    found: dict[Key, Reason] = {}
    table = tomllib.loads(REASONS.read_text())
    groups: dict[str, list[str]] = table["groups"] | {"all": list(BY_NAME)}

    def expanded(names: list[str]) -> set[str]:
        flat = {
            each
            for name in names
            for each in (groups[name[1:]] if name.startswith("@") else [name])
        }
        if unknown := flat - set(BY_NAME):
            raise ValueError(f"{REASONS.name}: no such commands: {sorted(unknown)}")
        return flat

    for entry in table["cells"]:
        commands = expanded(entry["commands"]) - expanded(entry.get("but", []))
        if unknown := set(entry["conditions"]) - set(COLUMNS):
            raise ValueError(f"{REASONS.name}: no such conditions: {sorted(unknown)}")
        for key in [(command, name) for command in commands for name in entry["conditions"]]:
            if key in found:
                raise ValueError(f"{REASONS.name}: two reasons for {key}: {entry['reason']}")
            found[key] = Reason(entry["reason"], entry.get("unless"))
    return found


def tested() -> set[Key]:
    return {test.key for test in TESTS}
