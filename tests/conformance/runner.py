# SPDX-License-Identifier: GPL-2.0-or-later
"""Run the tests against a logical unit: what is supported, one outcome for each test and cell."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from pyosd.errors import Unreachable
from pyosd.wire.transport import Command
from tests.conformance import suite
from tests.conformance.cells import COLUMNS, TESTS, Key, Test, reasons
from tests.conformance.commands import MANDATORY, ROWS, SECURITY, Row
from tests.conformance.lu import GOOD, Failed, LogicalUnit, Skipped
from tests.conformance.suite.instances import harmless, said_unsupported

assert suite.__all__  # importing it has entered the tests
ROOT_POLICY = 0x9000_0005
LOST_MAX = 3


class Outcome(Enum):
    """How a test ended, and a cell: its worst test's."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    NOT_SUPPORTED = "not supported"
    NOT_APPLICABLE = "not applicable"


@dataclass(frozen=True)
class Result:
    """One test's outcome.  message: why it failed or was not run."""

    test: Test
    outcome: Outcome
    message: str = ""


@dataclass
class Report:
    """A whole run.  identity: what the target says it is.  left: partitions that would not go."""

    identity: dict[str, str]
    supported: set[str]
    required: set[str]
    results: list[Result] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    security_method: int = 0

    @property
    def failures(self) -> list[Result]:
        return [each for each in self.results if each.outcome is Outcome.FAILED]

    @property
    def good(self) -> bool:
        return not self.failures and not self.complaints

    @cached_property
    def _by_cell(self) -> dict[Key, list[Result]]:
        found: dict[Key, list[Result]] = {}
        for each in self.results:
            found.setdefault(each.test.key, []).append(each)
        return found

    def cell(self, key: Key) -> tuple[Outcome, str]:
        """A cell's outcome, and the first message of that outcome.  Ask when the run is over."""
        found = self._by_cell.get(key, [])
        for outcome in (Outcome.FAILED, Outcome.PASSED, Outcome.SKIPPED, Outcome.NOT_SUPPORTED):
            for each in found:
                if each.outcome is outcome:
                    return outcome, each.message
        reason = reasons().get(key)
        if reason is None:
            return Outcome.SKIPPED, "not among the tests chosen"
        return Outcome.NOT_APPLICABLE, reason.text

    def count(self, outcome: Outcome) -> int:
        """Cells of an outcome."""
        keys = [(row.name, name) for row in ROWS for name in COLUMNS]
        return len([key for key in keys if self.cell(key)[0] is outcome])


def identify(t: LogicalUnit) -> dict[str, str]:
    """The target's identification by root information and INQUIRY, as text."""

    def text(value: bytes) -> str:
        return value.rstrip(b"\0 ").decode("ascii", "replace")

    names = {"vendor": 4, "product": 5, "model": 6, "revision": 7, "serial": 8, "name": 9}
    found = {name: text(asked(t, 0x9000_0001, number)) for name, number in names.items()}
    found["system id"] = asked(t, 0x9000_0001, 3).hex()
    response = t.transport.execute(Command(bytes.fromhex("120000006000"), b"", 96))
    if response.status == GOOD and len(response.data_in) >= 36:
        data = bytes(response.data_in)
        found["inquiry"] = f"type {data[0]:02X}h, {text(data[8:16])} {text(data[16:32])}"
    return found


def asked(t: LogicalUnit, page: int, number: int) -> bytes:
    """A root attribute; b"" where the target will not say."""
    try:
        return t.get(0, page, number, 0)
    except Failed:
        return b""


def find_supported(t: LogicalUnit) -> set[str]:
    """Send each command once, about objects that do not exist (instances.harmless)."""
    found = set()
    for row in ROWS:
        if row.name == "FORMAT OSD" and not t.destructive:
            continue
        if not said_unsupported(t.send(harmless(t, row))):
            found.add(row.name)
    return found


def mandatory(t: LogicalUnit) -> set[str]:
    """Commands every target must have; those about keys where keys mean something."""
    levels = {MANDATORY, SECURITY} if t.security_method else {MANDATORY}
    return {row.name for row in ROWS if row.level in levels}


class Runner:
    """Runs tests in order, those that format last.

    Args: require: names of commands that must be supported.  told: called with each result.
    """

    def __init__(
        self,
        t: LogicalUnit,
        *,
        require: Iterable[str] = (),
        told: Callable[[Result], None] | None = None,
    ) -> None:
        self.t = t
        self.told = told
        self.lost = 0
        policy = asked(t, ROOT_POLICY, 1)
        t.security_method = policy[0] if policy else 0
        t.supported = find_supported(t)
        required = set(require) | mandatory(t)
        self.report = Report(identify(t), t.supported, required, security_method=t.security_method)

    def run(self, tests: Iterable[Test] = TESTS) -> Report:
        """Everything, and clean up.  Raises: nothing a target does."""
        ordered = sorted(tests, key=lambda each: each.key[1] == "after format")
        ordered.sort(key=lambda each: each.row.name == "FORMAT OSD" and each.condition != "known")
        try:
            self.t.begin()
            for test in ordered:
                self._enter(test)
        except (Failed, Unreachable) as error:
            self.report.complaints.append(f"the run ended early: {error}")
        finally:  # somebody's interrupt leaves nothing behind either
            self._clean_up()
        return self.report

    def _enter(self, test: Test) -> None:
        outcome, message = self._outcome(test)
        result = Result(test, outcome, message)
        self.report.results.append(result)
        if self.told:
            self.told(result)
        formats = test.row.name == "FORMAT OSD" and outcome is not Outcome.SKIPPED
        if (formats or outcome is Outcome.FAILED) and not self.t.still_there():
            self.t.begin()

    def _outcome(self, test: Test) -> tuple[Outcome, str]:
        reason = reasons().get(test.key)
        if reason and (reason.unless is None or not self.t.security_method):
            return Outcome.NOT_APPLICABLE, reason.text
        if test.row.name in self.t.supported:
            return self._attempt(test)
        if test.condition != "known":
            return self._unsupported(test.row)
        if test.row.name in self.report.required:
            return Outcome.FAILED, f"{test.row} must be supported, and is not"
        return self._attempt(test)

    def _unsupported(self, row: Row) -> tuple[Outcome, str]:
        if row.name == "FORMAT OSD" and not self.t.destructive:
            return Outcome.SKIPPED, "formats the logical unit: --destructive"
        return Outcome.NOT_SUPPORTED, "the target does not have this command"

    def _attempt(self, test: Test) -> tuple[Outcome, str]:
        self.t.last.clear()
        try:
            test.run(self.t)
        except Skipped as skipped:
            return Outcome.SKIPPED, str(skipped)
        except Failed as failed:
            return Outcome.FAILED, str(failed)
        except Unreachable as error:
            self.lost += 1
            if self.lost > LOST_MAX:
                raise
            return Outcome.FAILED, f"the session was lost, or no answer came: {error}"
        except Exception:  # an answer no reader of the suite could take apart
            return Outcome.FAILED, f"an answer that cannot be read:\n{traceback.format_exc()}"
        return Outcome.PASSED, ""

    def _clean_up(self) -> None:
        try:
            left = self.t.clean_up()
        except (Failed, Unreachable) as error:
            self.report.complaints.append(f"could not clean up: {error}")
            return
        if left:
            names = ", ".join(f"{pid:X}h" for pid in left)
            self.report.complaints.append(f"partitions left behind: {names}")
