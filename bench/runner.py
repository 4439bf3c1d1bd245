# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs groups, one after the other, whatever becomes of each."""

from __future__ import annotations

import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import FrameType

from bench.groups import Group
from bench.machine import commit
from bench.plan import Plan
from bench.required import not_measured
from bench.saved import Report, Took
from bench.stats import REPORTED, Curve, Row, missing

LIMIT_S = 900  # of a group, unless everything is measured at length


class TooLong(Exception):
    """A group that does not end."""


@contextmanager
def _within(seconds: int) -> Iterator[None]:
    """Raise TooLong in the block after so long; 0: never."""

    def ring(_number: int, _frame: FrameType | None) -> None:
        raise TooLong(f"not done after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def run_group(group: Group, plan: Plan, report: Report) -> None:
    """Measure the group into the report, and what it does not measure as missing, with the reason."""
    size = "quick" if plan.quick else "full" if plan.full else "usual"
    tree, date = commit(), datetime.now(UTC).isoformat(timespec="seconds")
    found: list[Row | Curve] = []
    reason = ""
    start = time.monotonic()
    try:
        with _within(0 if plan.full else LIMIT_S):
            for each in group.rows(plan):
                found.append(each)
                _tell(each)
    except (Exception, SystemExit) as error:
        traceback.print_exc()
        reason = f"{type(error).__name__}: {error}"
    seconds = time.monotonic() - start
    ids = {each.id for each in found}
    lacking = not_measured(group.name, ids, reason or f"the group {group.name} did not give it")
    if reason and not lacking:
        lacking = [missing(f"{group.name}_rest", REPORTED, reason)]
    took = Took(group.title, round(seconds, 1), tree, date, size, reason)
    report.add(group.name, took, [*found, *lacking])
    print(f"{group.name}: {seconds:.0f} s {reason}".rstrip(), file=sys.stderr)


def _tell(found: Row | Curve) -> None:
    if isinstance(found, Row) and found.ratio is None:
        print(f"  {found.id}: {found.reason}", file=sys.stderr)
    else:
        print(f"  {found.id} measured", file=sys.stderr)
