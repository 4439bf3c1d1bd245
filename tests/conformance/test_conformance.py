# SPDX-License-Identifier: GPL-2.0-or-later
"""The conformance suite itself: every cell has a test or a reason, it leaves nothing, it can fail.

The sanitized harness takes the tests without a transport between.  Over iSCSI: test_cells.py.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import click
import pytest

import pyosd
from pyosd.wire.transport import Command, CommandTransport, Pending, Response
from tests import warm
from tests.conformance import cells, program, report, sense, wire
from tests.conformance.cells import CONDITIONS, TESTS, reasons
from tests.conformance.commands import MANDATORY, PRIVATE, ROWS
from tests.conformance.conftest import Run, run_program
from tests.conformance.lu import LogicalUnit
from tests.conformance.runner import Outcome, Report, Runner
from tests.conftest import MakeHarness
from tests.harness import SOURCE, Harness

CELLS_AT_LEAST = 600
Change = Callable[[Command, Response], Response]


# ---- the matrix itself ----


def test_every_cell_is_a_test_or_has_a_reason_and_never_both() -> None:
    known = reasons()
    everything = {(row.name, each.name) for row in ROWS for each in CONDITIONS}
    assert everything - cells.tested() - set(known) == set(), "neither a test nor a reason"
    both = {key for key in cells.tested() if key in known and known[key].unless is None}
    assert both == set(), "a test and a reason"
    empty = {key for key, reason in known.items() if reason.unless and key not in cells.tested()}
    assert empty == set(), "a reason with an exception, and no test for the exception"


def test_names_of_tests_are_unique_and_cite_a_clause() -> None:
    names = [(test.name, test.condition) for test in TESTS]
    assert len(set(names)) == len(names)
    assert all(test.clause.startswith(("osd2-wire ", "docs/")) for test in TESTS)


def test_panels_show_every_column_once_within_a_terminal() -> None:
    shown = [each.name for columns in report.panels() for each in columns]
    assert sorted(shown) == sorted(each.name for each in CONDITIONS)
    found = Report({}, set(), set())
    assert max(map(len, report.matrix(found).splitlines())) <= 96
    panels = report.matrix(found).split("+ passed")[0].splitlines()
    assert max(map(len, panels)) <= 80


def test_rows_are_the_service_actions_docs_list() -> None:
    """Rows and docs/commands.md name the same codes, but for codes other vendors took."""
    page = program.TABLE.read_text()
    for row in ROWS:
        if row.level != "OSC":
            assert f"| {row.code:04X} | {row.name} |" in page


# ---- the suite's own reading and writing ----


@pytest.mark.parametrize(
    ("wanted", "coded", "real"),
    [
        (0, 0x0000_0000, 0),
        (1, 0xB000_0001, 8),
        (8, 0xB000_0001, 8),
        (256, 0xB000_0020, 256),
        (4096, 0xB000_0200, 4096),
        (4100, 0xB000_0201, 4104),
        (0x1_0000, 0xB000_2000, 0x1_0000),
        (0x7FFF_FFF8, 0xBFFF_FFFF, 0x7FFF_FFF8),
        (0x8000_0000, 0xC800_0000, 0x8000_0000),
        (0x8000_0001, 0xC800_0001, 0x8000_0010),
        (0x1_0000_0000, 0xD800_0000, 0x1_0000_0000),
        (1 << 40, 0x5800_0000, 1 << 40),
        ((1 << 43) - (1 << 15), 0x7FFF_FFFF, (1 << 43) - (1 << 15)),
    ],
)
def test_offsets_of_the_reference(wanted: int, coded: int, real: int) -> None:
    """The table of osd2-wire 2.10."""
    assert wire.offset(wanted) == (coded, real)


MISSING = bytes.fromhex(
    "72052400 00000028 061E000000000000 B0103030 00000000 0000000000010000 0000000000012345"
    "02060000 C0001800"
)


def test_sense_data_of_the_reference() -> None:
    """osd2-wire A.4."""
    found = sense.decode(MISSING)
    assert (found.key, found.code, found.pointer) == (5, 0x2400, 24)
    assert found.identified == (0x1_0000, 0x1_2345)
    assert (found.not_initiated, found.completed) == (0xB010_3030, 0)


@pytest.mark.parametrize(
    "broken",
    [
        MISSING[:7],
        b"\x70" + MISSING[1:],
        MISSING[:-1],
        MISSING[:7] + b"\x29" + MISSING[8:],
        MISSING[:9] + b"\x1f" + MISSING[10:],
        MISSING[:8] + MISSING[40:] + MISSING[40:],
    ],
    ids=["header", "fixed format", "cut", "length", "descriptor length", "twice"],
)
def test_malformed_sense_data_are_told(broken: bytes) -> None:
    with pytest.raises(sense.Malformed):
        sense.decode(broken)


def test_names_of_required_commands() -> None:
    assert program.required("query, Read Map") == {"QUERY", "READ MAP"}
    assert program.required("all") == {row.name for row in ROWS}
    with pytest.raises(click.BadParameter):
        program.required("QUERRY")


# ---- our target over iSCSI, by the very program people run ----


@pytest.mark.tgtd
def test_enough_cells_run_and_the_exit_code_says_so(over_iscsi: Run) -> None:
    counts = over_iscsi.found["counts"]
    assert isinstance(counts, dict)
    assert counts["passed"] + counts["failed"] >= CELLS_AT_LEAST
    assert over_iscsi.code == (1 if counts["failed"] or over_iscsi.found["complaints"] else 0)
    assert over_iscsi.found["schema"] == report.SCHEMA
    assert "+ passed" in over_iscsi.text


@pytest.mark.tgtd
def test_nothing_is_left_on_the_target(over_iscsi: Run, throwaway: str) -> None:
    assert over_iscsi.found["complaints"] == []
    with pyosd.connect(throwaway) as target:
        assert target.list_partitions() == []


@pytest.mark.tgtd
def test_page_shows_what_the_run_found(over_iscsi: Run) -> None:
    """docs/conformance.md is generated: `make conformance` writes it."""
    page = program.PAGE.read_text()
    shown = page.split(program.BEGIN)[1].split(program.END)[0]
    matrix = over_iscsi.text.split("\n\n", 1)[1].rsplit("\n\n", 1)[0]
    assert matrix.strip() in shown, "stale: run 'make conformance'"


@pytest.mark.tgtd
def test_a_stranger_s_target_is_not_formatted(
    throwaway: str, over_iscsi: Run, tmp_path: Path
) -> None:
    """Without --destructive FORMAT OSD is skipped, not tried."""
    run = run_program(tmp_path, throwaway, "--only", "FORMAT OSD", "-q")
    assert run.code == 0, run.errors
    outcomes = {each["outcome"] for each in run.found["tests"]}  # type: ignore[attr-defined]
    assert outcomes <= {"skipped", "not applicable", "passed"}
    assert over_iscsi.found["target"] == run.found["target"]


def test_no_target_at_all_is_exit_code_2() -> None:
    command = [sys.executable, "-m", "tests.conformance", "iscsi://127.0.0.1:1/iqn.nobody/1"]
    ended = warm.run(command, cwd=SOURCE, capture_output=True, text=True, timeout=100)
    assert ended.returncode == 2, ended.stderr


# ---- the core under AddressSanitizer ----


@pytest.fixture(scope="session")
def sanitized(
    sanitized_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Report]:
    folder = tmp_path_factory.mktemp("conformance-sanitized")
    harness = Harness(sanitized_program, {"dir": folder / "store"}, folder / "log")
    t = LogicalUnit(harness.transport, residuals=False, destructive=True)
    found = Runner(t, require=program.documented()).run()
    harness.finish()
    yield found


def test_sanitized_core_conforms_too(sanitized: Report) -> None:
    failed = [f"{each.test.name}\n{each.message}" for each in sanitized.failures]
    assert not failed, "\n".join([f"{len(failed)} failed", *failed[:3]])
    assert not sanitized.complaints


# ---- targets unlike ours ----


class Faulty:
    """A transport that changes answers; `change` gets the command and the answer."""

    def __init__(self, under: CommandTransport, change: Change) -> None:
        self.under, self.change = under, change

    def submit(self, command: Command) -> Pending:
        return Changed(command, self.under.submit(command), self.change)

    def execute(self, command: Command, timeout: float | None = None) -> Response:
        return self.submit(command).result(timeout)

    def close(self) -> None: ...


@dataclass(frozen=True)
class Changed:
    """The answer to come, changed."""

    command: Command
    pending: Pending
    change: Change

    def result(self, timeout: float | None = None) -> Response:
        return self.change(self.command, self.pending.result(timeout))


def wrong_pointer(command: Command, response: Response) -> Response:
    sense = response.sense.replace(b"\x02\x06\0\0\xc0\0\x18\0", b"\x02\x06\0\0\xc0\0\x19\0")
    return replace(response, sense=sense)


def no_identification(command: Command, response: Response) -> Response:
    return replace(response, sense=response.sense[:7] + b"\0" if response.sense else b"")


def always_good(command: Command, response: Response) -> Response:
    return replace(response, status=0, sense=b"")


def a_flipped_bit(command: Command, response: Response) -> Response:
    data = bytearray(response.data_in)
    if data:
        data[-1] ^= 1
    return replace(response, data_in=memoryview(data))


@pytest.mark.parametrize("change", [wrong_pointer, no_identification, always_good, a_flipped_bit])
def test_a_target_that_lies_is_found_out(make_harness: MakeHarness, change: Change) -> None:
    harness = make_harness(memory=1)
    t = LogicalUnit(harness.transport, residuals=False)
    runner = Runner(t)
    t.transport = Faulty(harness.transport, change)
    wanted = ("bad object", "ok", "list format", "sense data")
    tests = [test for test in TESTS if test.condition in wanted and test.row.name == "READ"]
    found = runner.run(tests)
    assert found.failures
    assert all(each.outcome is not Outcome.NOT_SUPPORTED for each in found.results)
    assert "expected:" in found.failures[0].message


@pytest.mark.parametrize(
    "refusal",
    [
        bytes.fromhex("70000500 0000000A 00000000 20000000 0000"),
        bytes.fromhex("7205200000000000"),
        b"",
    ],
    ids=["fixed sense data", "descriptor sense data", "no sense data"],
)
def test_a_disk_is_no_osd_and_no_crash(make_harness: MakeHarness, refusal: bytes) -> None:
    def disk(command: Command, response: Response) -> Response:
        return Response(2, refusal)

    t = LogicalUnit(Faulty(make_harness(memory=1).transport, disk), residuals=False)
    found = Runner(t).run()
    assert not found.good
    assert "the run ended early" in found.complaints[0]
    assert report.text(found)
    assert report.as_json(found)


def test_a_target_without_the_optional_commands_does_not_fail_for_it(
    make_harness: MakeHarness,
) -> None:
    """Their cells are not supported, and what needs them is skipped."""
    optional = {row.code.to_bytes(2, "big") for row in ROWS if row.level != MANDATORY}
    refusal = bytes.fromhex("72052400 00000028 061E000000000000 B0103030 00000000")
    refusal += bytes(16) + bytes.fromhex("02060000 C0000800")

    def poorer(command: Command, response: Response) -> Response:
        if command.cdb[0] == 0x7F and command.cdb[8:10] in optional:
            return Response(2, refusal)
        return response

    harness = make_harness(memory=1)
    t = LogicalUnit(Faulty(harness.transport, poorer), residuals=False)
    tests = [test for test in TESTS if test.condition not in ("not OSD-2", "known")]
    found = Runner(t).run(tests)
    failed = [each.test.name for each in found.failures]
    assert not failed and not found.complaints
    outcomes = {each.outcome for each in found.results if each.test.row.name == "CREATE COLLECTION"}
    assert outcomes <= {Outcome.NOT_SUPPORTED, Outcome.NOT_APPLICABLE}


def test_capabilities_are_tested_where_a_method_is_announced(make_harness: MakeHarness) -> None:
    """A target that announces CMDRSP, refuses what is forged, and takes what has no capability at all; what
    needs keys cannot be tried.
    """

    def announcing(command: Command, response: Response) -> Response:
        if bytes.fromhex("90000005 00000001") in bytes(command.data_out):
            changed = bytearray(response.data_in)
            changed[24] = 2
            return replace(response, data_in=memoryview(changed))
        return response

    harness = make_harness(memory=1)
    t = LogicalUnit(Faulty(harness.transport, announcing), residuals=False)
    about = {name for (_, name), reason in cells.reasons().items() if reason.unless}
    tests = [test for test in TESTS if test.condition in about]
    found = Runner(t).run(tests)
    assert found.security_method == 2
    assert {"SET KEY", "SET MASTER KEY"} <= found.required
    outcomes: dict[str, set[Outcome]] = {}
    for each in found.results:
        if each.outcome is not Outcome.NOT_SUPPORTED:
            outcomes.setdefault(each.test.condition, set()).add(each.outcome)
    assert outcomes.pop("no capability") == {Outcome.FAILED}
    assert outcomes.pop("forged") == {Outcome.PASSED}
    assert set.union(*outcomes.values()) == {Outcome.SKIPPED}


def test_private_commands_of_osc_compat(make_harness: MakeHarness) -> None:
    """Our target has them behind a switch; these rows are run with it on."""
    harness = make_harness(memory=1, osc_compat=1)
    t = LogicalUnit(harness.transport, residuals=False)
    tests = [test for test in TESTS if test.row.level == PRIVATE]
    found = Runner(t).run(tests)
    assert [each.message for each in found.failures] == []
    assert Outcome.NOT_SUPPORTED not in {each.outcome for each in found.results}
