# SPDX-License-Identifier: GPL-2.0-or-later
"""Mends a store: checks it, mends each problem as it is met, and again until nothing is left.

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
from iosd_host.store_tools.opening.bdb import DatabaseError, text_of
from iosd_host.store_tools.opening.store import Store, StoreProgress
from iosd_host.store_tools.repair.lost_and_found import LostAndFound
from iosd_host.store_tools.repair.mending import Mending
from iosd_host.store_tools.repair.objects import OBJECT_MENDERS
from iosd_host.store_tools.repair.records import MENDERS

__all__ = ["LOG", "RepairOutcome", "repair_store"]

LOG = "repair.log"
ROUNDS = 8
"""A problem may bring another to light, hardly ever a third."""
ALL_MENDERS = MENDERS | OBJECT_MENDERS
# repaired when the database is opened
OPENING = {ProblemKind.LOG_DAMAGED, ProblemKind.TABLE_MISSING, ProblemKind.TABLE_DAMAGED}

Told = Callable[[Problem, str], None]
"""Called with each repaired problem and the action."""


@dataclass
class RepairOutcome:
    """Result of a repair. left: errors that remain."""

    mended: int = 0
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
        mending = Mending(store, LostAndFound(store))
        finished = mending.lost.finish_moves()
        if finished:
            log.write(f"finished {finished} moves of an earlier run")
        for _ in range(ROUNDS):
            outcome.left.clear()
            if not repair_round(mending, progress, told, log, outcome):
                break
        log.write("end")
    return outcome


def repair_round(
    mending: Mending, progress: StoreProgress, told: Told, log: Log, outcome: RepairOutcome
) -> int:
    """One walk over everything.  Returns the number of repairs."""
    mended = 0
    for problem in check_store(mending.store, progress):
        if not problem.kind.is_error:
            continue
        opening = problem.kind in OPENING
        mending.void_versions()
        done = problem.kind.remedy if opening else mend(mending, problem, log)
        if done is None:
            outcome.left.append(problem)
            continue
        log.write("mended", problem, done)
        told(problem, done)
        mended += 1
    mending.store.health.clear()
    outcome.mended += mended
    return mended


def mend(mending: Mending, problem: Problem, log: Log) -> str | None:
    """The action; None: none.  Failed repairs are left for the next run."""
    mender = ALL_MENDERS.get(problem.kind)
    if mender is None:
        return None
    log.write("found", problem)
    try:
        return mender(mending, problem)
    except DatabaseError as error:
        log.write("failed", problem, text_of(error))
    except OSError as error:
        log.write("failed", problem, str(error))
    return None
