# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes the policy's input (events.Load) from a target's report and the kernel's figures."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from iosd_host.control.messages import FrameError
from iosd_host.policy.events import Load, Mode, PoolLoad, Pressure, WorkerLoad

__all__ = ["load_of", "pressure_of", "summary"]

PROC = Path("/proc/pressure")
RESOURCES = ("cpu", "memory", "io")
POOLS_MOST = 64
SOME = re.compile(r"^some avg10=([0-9]+\.[0-9]+)", re.MULTILINE)

T = TypeVar("T")


def load_of(snapshot: Mapping[str, Any], pressure: Pressure) -> Load:
    """The load in a SNAPSHOT.

    Raises:
        FrameError: it lacks something, or something is not of its kind.
    """
    target, pools = snapshot.get("target"), snapshot.get("pools", [])
    if not isinstance(target, Mapping) or not isinstance(pools, list) or len(pools) > POOLS_MOST:
        raise FrameError("SNAPSHOT without target or pools")
    return Load(
        at=_number(target, "monotonic"),
        workers=_values(WorkerLoad, snapshot.get("workers")),
        pools=tuple(pool for each in pools if (pool := _pool(each)) is not None),
        pressure=pressure,
        shedding=snapshot.get("shedding") is True,
    )


def _pool(table: object) -> PoolLoad | None:
    """None: it is not configured any more, and only ends what it has."""
    if isinstance(table, Mapping) and table.get("gone") is True:
        return None
    # No sandbox of it has come up yet; an older target does not count its jobs.
    unknown = {"warm_seconds": 0.0, "jobs": 0}
    return _values(PoolLoad, {**unknown, **table} if isinstance(table, Mapping) else table)


def _number(table: Mapping[str, Any], name: str) -> float:
    found = table.get(name)
    if isinstance(found, bool) or not isinstance(found, int | float):
        raise FrameError(f"SNAPSHOT: {name} is {found!r:.40}")
    if not 0 <= found <= sys.float_info.max:  # an integer can be larger than any float
        raise FrameError(f"SNAPSHOT: {name} is {found!r:.40}")
    return found


def _whole(table: Mapping[str, Any], name: str) -> int:
    found = _number(table, name)
    if not isinstance(found, int):
        raise FrameError(f"SNAPSHOT: {name} is {found!r:.40}")
    return found


def _flag(table: Mapping[str, Any], name: str) -> bool:
    found = table.get(name)
    if not isinstance(found, bool):
        raise FrameError(f"SNAPSHOT: {name} is {found!r:.40}")
    return found


def _text(table: Mapping[str, Any], name: str) -> str:
    found = table.get(name)
    if not isinstance(found, str) or not found or len(found) > 128:
        raise FrameError(f"SNAPSHOT: {name} is {found!r:.40}")
    return found


def _mode(table: Mapping[str, Any], name: str) -> Mode:
    try:
        return Mode(_text(table, name))
    except ValueError:
        raise FrameError(f"SNAPSHOT: {name} is {table.get(name)!r:.40}") from None


KINDS: dict[str, Callable[[Mapping[str, Any], str], Any]] = {
    "int": _whole,
    "float": _number,
    "bool": _flag,
    "str": _text,
    "Mode": _mode,
}


def _values(kind: type[T], table: object) -> T:
    """Every field of a class of policy/events.py, by its own name and type."""
    if not isinstance(table, Mapping):
        raise FrameError(f"SNAPSHOT: no {kind.__name__}")
    found = fields(kind)  # type: ignore[arg-type]
    return kind(**{each.name: KINDS[str(each.type)](table, each.name) for each in found})


def pressure_of(folder: Path = PROC, suffix: str = "") -> Pressure:
    """Of the host, or of a cgroup (suffix ".pressure")."""
    found: dict[str, float | None] = {}
    for name in RESOURCES:
        found[name] = None
        with contextlib.suppress(OSError, ValueError):
            some = SOME.search((folder / f"{name}{suffix}").read_text())
            found[name] = float(some[1]) / 100 if some else None
    return Pressure(**found)


def summary(load: Load) -> dict[str, Any]:
    """The stored part (state_store.merge combines several)."""
    workers, pressure = load.workers, load.pressure
    return {
        "workers": {"count": workers.count, "busy": workers.busy, "queued": workers.queued},
        "pools": {
            pool.name: {
                "active": pool.active,
                "busy": pool.busy,
                "queued": pool.queued,
                "oldest": round(pool.oldest, 3),
                "arrived": pool.arrived,
                "ended": pool.ended,
            }
            for pool in load.pools
        },
        "pressure": {name: getattr(pressure, name) for name in RESOURCES},
    }
