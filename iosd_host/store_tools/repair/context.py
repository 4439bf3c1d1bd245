# SPDX-License-Identifier: GPL-2.0-or-later
"""The base of all repairs.

A repair checks again before it acts, because an earlier repair may have solved its problem. It returns a
description of its action, or None if there was nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from iosd_host.store_tools.check.problems import Problem
from iosd_host.store_tools.format.jobs import JobId, JobKey
from iosd_host.store_tools.format.records import MetaKind
from iosd_host.store_tools.opening.bdb import Table
from iosd_host.store_tools.opening.store import Store
from iosd_host.store_tools.repair.lost_and_found import LostAndFound

__all__ = ["Repair", "RepairContext", "keep_job", "keep_record", "remove_record"]


@dataclass
class RepairContext:
    """Context of repairs."""

    store: Store
    lost: LostAndFound

    def put(self, table: Table, key: bytes, value: bytes) -> None:
        """One change that stands alone."""
        with self.store.db.transaction() as transaction:
            transaction.put(table, key, value)

    def remove(self, table: Table, key: bytes) -> None:
        """One removal that stands alone."""
        with self.store.db.transaction() as transaction:
            transaction.remove(table, key)

    def void_versions(self) -> None:
        """Repairs can change data, or records about them.  Without this record, the target gives
        every object another version.
        """
        if self.store.db.get(Table.META, MetaKind.VERSIONS.key) is not None:
            self.remove(Table.META, MetaKind.VERSIONS.key)


Repair = Callable[[RepairContext, Problem], str | None]


def keep_record(context: RepairContext, problem: Problem) -> str | None:
    """Moved, with its key."""
    assert problem.table is not None
    label = f"{problem.table.value} {problem.key.hex()[:64]}"
    return _keep(context, problem, problem.table, label)


def keep_job(context: RepairContext, problem: Problem) -> str | None:
    """A job's record or part: all that is kept of one job comes together."""
    assert problem.table is not None
    job = problem.subject if isinstance(problem.subject, JobId) else JobKey.decode(problem.key).job
    return _keep(context, problem, problem.table, f"job {job}")


def _keep(context: RepairContext, problem: Problem, table: Table, label: str) -> str | None:
    value = context.store.db.get(table, problem.key)
    if value is None:
        return None
    record = (table, problem.key, value)
    return f"moved to {context.lost.keep(label, problem.kind, records=[record])}"


def remove_record(context: RepairContext, problem: Problem) -> str | None:
    """For records that can be derived from others, or that belong to nothing."""
    assert problem.table is not None
    value = context.store.db.get(problem.table, problem.key)
    if value is None:
        return None
    context.remove(problem.table, problem.key)
    return f"removed {problem.key.hex()}={value.hex()[:128]}"
