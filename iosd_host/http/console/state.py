# SPDX-License-Identifier: GPL-2.0-or-later
"""The state of a target as the console's page gets it: one JSON object a reading.

Its figures are the samples of /metrics of the same reading, so that the two never disagree.  The rest
(bounds, modes, reasons) is the manager's status.  Not here: HTTP (app.py), the page's looks (static/).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from iosd_host.http.metrics import samples
from iosd_host.http.readings import Histogram, Reading, Sample, at, number, table
from iosd_host.manager.state_store import merge

if TYPE_CHECKING:
    from iosd_host.manager.manager import Manager
    from iosd_host.manager.target import ManagedTarget

__all__ = [
    "SCHEMA",
    "STALE_S",
    "is_stale",
    "pushed",
    "reading_of",
    "serial_of",
    "state_of",
    "thinned",
    "unready",
]

SCHEMA = "iosd.console/1"
STALE_S = 5.0
PUSHED_MOST, PUSHED_TEXT = 16, 64
PUSHED_WORDS = ("name", "principal", "pool", "stage", "reason")
PUSHED_NUMBERS = ("at_ms", "near", "wait", "client")
LAST_MS = 8.64e15  # that a browser has a date of


def reading_of(target: ManagedTarget) -> Reading:
    """The target's last, with whether the target can be reached now."""
    up = target.status()["role"] != "lost" and not is_stale(target, time.time())
    return Reading(target.snapshot or {}, getattr(target, "decisions", {}), up)


def serial_of(target: ManagedTarget) -> str:
    """A name for the reading: other readings have others."""
    if target.snapshot is None:
        return "none"
    moment = table(target.snapshot.get("target"))
    return f"{str(moment.get('boot'))[:16]}-{moment.get('monotonic')}"


def is_stale(target: ManagedTarget, now: float) -> bool:
    """Whether the last reading is from long ago; there may be none."""
    return target.snapshot is None or now - target.at > STALE_S


def unready(targets: Iterable[ManagedTarget], now: float) -> list[dict[str, str]]:
    """Why the manager is not doing its work; nothing: it is."""
    found = []
    for target in targets:
        said, why = target.status(), None
        if said["role"] == "lost":
            why = f"no connection to the target: {said['trouble']}"
        elif is_stale(target, now):
            why = f"no figures for {now - target.at:.0f} s" if target.at else "no figures yet"
        elif said["role"] != "manager":
            why = f"another manager manages it (we are {said['role']})"
        if why is not None:
            found.append({"target": target.name, "reason": why})
    return found


def value_of(sample: Sample) -> Any:
    """The value in its JSON form."""
    value = sample.value
    if isinstance(value, Histogram):
        return {"bounds": value.bounds, "counts": value.counts, "sum": value.total}
    return value


def figures(reading: Reading | None) -> dict[str, Any]:
    """By metric: its labels, and a row of their texts and the value for each sample."""
    if reading is None:
        return {}
    return {
        metric.name: {
            "labels": metric.labels,
            "rows": [[*sample.labels, value_of(sample)] for sample in found],
        }
        for metric, found in samples(reading)
    }


def pushed(reading: Reading) -> list[dict[str, Any]]:
    """Jobs that the target gave back to their clients, the last first, and the times it compared."""
    found = at(reading.snapshot, "offload.recent")
    return [
        {
            **{key: str(row.get(key, ""))[:PUSHED_TEXT] for key in PUSHED_WORDS},
            **{key: min(number(row.get(key)) or 0, LAST_MS) for key in PUSHED_NUMBERS},
        }
        for row in map(table, (found if isinstance(found, list) else [])[:PUSHED_MOST])
    ]


def thinned(loads: Iterable[Mapping[str, Any]], step: int) -> list[dict[str, Any]]:
    """One row of history for all of each `step` seconds."""
    groups = itertools.groupby(loads, key=lambda load: load["at"] // (1000 * step))
    return [merge(list(group)) for _, group in groups]


def state_of(
    manager: Manager, target: ManagedTarget, changes: Iterable[Mapping[str, Any]]
) -> dict[str, Any]:
    """All of it."""
    now = time.time()
    return {
        "schema": SCHEMA,
        "serial": serial_of(target),
        "at": round(target.at * 1000),
        "now": round(now * 1000),
        "stale": is_stale(target, now),
        "manager": manager.status()["manager"],
        "targets": [{"name": name} for name in manager.targets],
        "target": target.status(),
        "figures": figures(reading_of(target)),
        "changes": list(changes),
    }
