# SPDX-License-Identifier: GPL-2.0-or-later
"""The conformance suite itself: every cell has a test or a reason, it leaves nothing, it can fail.

The sanitized harness takes the tests without a transport between.  Over iSCSI: test_cells.py.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyosd.transport import Command, Pending, Response
from tests.conformance import cells, program, report
from tests.conformance.cells import CONDITIONS, TESTS, reasons
from tests.conformance.commands import ROWS
from tests.conformance.conftest import OPEN, Run, run_program
from tests.conformance.lu import LogicalUnit
from tests.conformance.runner import Outcome, Report, Runner
from tests.harness import SOURCE, Harness

CELLS_AT_LEAST = 600


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
def test_nothing_is_left_on_the_target(over_iscsi: Run) -> None:
    assert over_iscsi.found["complaints"] == []


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
    ended = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True, timeout=100)
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
    failed = [
        f"{each.test.name}\n{each.message}"
        for each in sanitized.failures
        if not each.test.name.endswith(OPEN)
    ]
    assert not failed, "\n".join([f"{len(failed)} failed", *failed[:3]])
    assert not sanitized.complaints


# ---- the suite can fail ----


class Faulty:
    """A transport that changes answers: the suite must notice."""

    def __init__(self, under: object, change: object) -> None:
        self.under, self.change = under, change

    def submit(self, command: Command) -> Pending:
        pending, change = self.under.submit(command), self.change  # type: ignore[attr-defined]

        class Changed:
            def result(self, timeout: float | None = None) -> Response:
                return change(command, pending.result(timeout))  # type: ignore[operator,no-any-return]

        return Changed()

    def execute(self, command: Command, timeout: float | None = None) -> Response:
        return self.submit(command).result(timeout)

    def close(self) -> None: ...


def wrong_pointer(command: Command, response: Response) -> Response:
    sense = response.sense.replace(b"\x02\x06\0\0\xc0\0\x18\0", b"\x02\x06\0\0\xc0\0\x19\0")
    return Response(response.status, sense, response.data_in, response.residual_in)


def no_identification(command: Command, response: Response) -> Response:
    bare = response.sense[:7] + b"\0" if response.sense else b""
    return Response(response.status, bare, response.data_in, response.residual_in)


def always_good(command: Command, response: Response) -> Response:
    return Response(0, b"", response.data_in, response.residual_in)


def a_flipped_bit(command: Command, response: Response) -> Response:
    data = bytearray(response.data_in)
    if data:
        data[-1] ^= 1
    return Response(response.status, response.sense, memoryview(data), response.residual_in)


@pytest.mark.parametrize("change", [wrong_pointer, no_identification, always_good, a_flipped_bit])
def test_a_target_that_lies_is_found_out(make_harness: object, change: object) -> None:
    harness = make_harness(memory=1)  # type: ignore[operator]
    t = LogicalUnit(harness.transport, residuals=False)
    runner = Runner(t)
    t.transport = Faulty(harness.transport, change)
    wanted = ("bad object", "ok", "list format", "sense data")
    tests = [test for test in TESTS if test.condition in wanted and test.row.name == "READ"]
    found = runner.run(tests)
    assert found.failures
    assert all(each.outcome is not Outcome.NOT_SUPPORTED for each in found.results)
    told = found.failures[0].message
    assert "expected:" in told
