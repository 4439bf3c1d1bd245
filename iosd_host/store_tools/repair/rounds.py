# SPDX-License-Identifier: GPL-2.0-or-later
"""Repairs a store: checks it, repairs each problem as it is met, and again until nothing is left.

Every repair is one transaction, or a transaction and renames that the next run can finish. It is
logged in repair.log before. After a kill at any point, the next run continues.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from iosd_host.store_tools.check.problems import Problem, ProblemKind
from iosd_host.store_tools.check.whole_store import check_store
from iosd_host.store_tools.opening.bdb import DatabaseError, Table, text_of
from iosd_host.store_tools.opening.store import Store, StoreProgress
from iosd_host.store_tools.repair.context import RepairContext
from iosd_host.store_tools.repair.lost_and_found import LostAndFound
from iosd_host.store_tools.repair.methods import set_lost_methods
from iosd_host.store_tools.repair.objects import OBJECT_REPAIRS
from iosd_host.store_tools.repair.records import REPAIRS

__all__ = ["LOG", "RepairOutcome", "repair_store"]

LOG = "repair.log"
ROUNDS = 8
"""A problem may bring another to light, hardly ever a third."""
ALL_REPAIRS = REPAIRS | OBJECT_REPAIRS
# repaired when the database is opened
OPENING = {ProblemKind.LOG_DAMAGED, ProblemKind.TABLE_MISSING, ProblemKind.TABLE_DAMAGED}

Told = Callable[[Problem, str], None]
"""Called with each repaired problem and the action."""


@dataclass
class RepairOutcome:
    """Result of a repair. left: errors that remain."""

    repaired: int = 0
    left: list[Problem] = field(default_factory=list)


class Log:
    """One JSON line for each thing done, on disk before the next is begun."""

    def __init__(self, path: Path) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
        self._descriptor = os.open(path, flags, 0o600)

    def __enter__(self) -> Log:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def write(self, event: str, problem: Problem | None = None, done: str = "") -> None:
        """A line."""
        line = {"schema": "iosd.repair-log/1", "time": time.time(), "event": event}
        if problem is not None:
            line |= {"kind": problem.kind.slug, "where": problem.where, "detail": problem.detail}
            line |= {"table": problem.table.value if problem.table else None}
            line |= {"key": problem.key.hex(), "done": done}
        os.write(self._descriptor, json.dumps(line).encode() + b"\n")
        os.fsync(self._descriptor)


def repair_store(store: Store, progress: StoreProgress, told: Told) -> RepairOutcome:
    """Repair all problems that can be repaired."""
    outcome = RepairOutcome()
    with Log(store.roots.main.path / LOG) as log:
        log.write("begin")
        context = RepairContext(store, LostAndFound(store))
        finished = context.lost.finish_moves()
        if finished:
            log.write(f"finished {finished} moves of an earlier run")
        if Table.ATTRIBUTES in {*store.health.missing, *store.health.damaged}:
            report_methods(store, told, log)
        for _ in range(ROUNDS):
            outcome.left.clear()
            if not repair_round(context, progress, told, log, outcome):
                break
        log.write("end")
    return outcome


def report_methods(store: Store, told: Told, log: Log) -> None:
    """The methods were in the table of attributes.  Without them everybody could do everything."""
    if count := set_lost_methods(store):
        problem = Problem(
            ProblemKind.TABLE_DAMAGED,
            f"db/{Table.ATTRIBUTES.value}",
            f"security methods lost: {count}",
            Table.ATTRIBUTES,
        )
        done = "the root or partition requires capabilities, at least by CAPKEY"
        log.write("mended", problem, done)
        told(problem, done)


def repair_round(
    context: RepairContext, progress: StoreProgress, told: Told, log: Log, outcome: RepairOutcome
) -> int:
    """One walk over everything.  Returns the number of repairs."""
    repaired = 0
    for problem in check_store(context.store, progress):
        if not problem.kind.is_error:
            continue
        opening = problem.kind in OPENING
        context.void_versions()
        done = problem.kind.remedy if opening else repair_problem(context, problem, log)
        if done is None:
            outcome.left.append(problem)
            continue
        log.write("mended", problem, done)
        told(problem, done)
        repaired += 1
    context.store.health.clear()
    outcome.repaired += repaired
    return repaired


def repair_problem(context: RepairContext, problem: Problem, log: Log) -> str | None:
    """The action; None: none.  Failed repairs are left for the next run."""
    repair = ALL_REPAIRS.get(problem.kind)
    if repair is None:
        return None
    log.write("found", problem)
    try:
        return repair(context, problem)
    except DatabaseError as error:
        log.write("failed", problem, text_of(error))
    except OSError as error:
        log.write("failed", problem, str(error))
    return None
