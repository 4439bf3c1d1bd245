# SPDX-License-Identifier: GPL-2.0-or-later
"""Repairs the records of secret keys and of times of nonces."""

from __future__ import annotations

from iosd_host.store_tools.check.problems import Problem
from iosd_host.store_tools.format.keys import KeyKind, KeyName, use_nonces
from iosd_host.store_tools.format.records import FormatError
from iosd_host.store_tools.opening.bdb import Table
from iosd_host.store_tools.opening.store import Life
from iosd_host.store_tools.repair.context import RepairContext, remove_record
from iosd_host.store_tools.repair.lost_and_found import now_ms

__all__ = ["key_record"]


def key_record(context: RepairContext, problem: Problem) -> str | None:
    """Removed.  Without times of nonces, commands that were used before could be used again: so all
    nonces until now count as used."""
    try:
        name = KeyName.decode(problem.key)
    except FormatError:
        return remove_record(context, problem)
    dead = name.place.partition_id and context.store.life(name.place) is not Life.LIVE
    if name.kind is not KeyKind.NONCES or dead:
        return remove_record(context, problem)
    context.put(Table.KEYS, problem.key, use_nonces(None, now_ms()))
    return "all nonces until now count as used"
