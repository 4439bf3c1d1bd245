# SPDX-License-Identifier: GPL-2.0-or-later
"""The policy's input and output: loads and decisions.  Values only.

A load is one reading of one target (docs/control.md, SNAPSHOT), a decision one request to it.  The
policy between them (policy.py) knows no sockets and no clock: time is in the load.  Times are seconds,
of the target's monotonic clock; sizes are bytes; shares lie between 0 and 1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

__all__ = [
    "Bounds",
    "Decision",
    "Load",
    "Mode",
    "PoolLoad",
    "Pressure",
    "Scale",
    "SetActive",
    "SetSpares",
    "SetWorkers",
    "Shed",
    "WorkerLoad",
]


class Mode(StrEnum):
    """Of a pool, as an administrator sets it."""

    RUNNING = "running"
    PAUSED = "paused"
    DRAINING = "draining"


@dataclass(frozen=True)
class WorkerLoad:
    """The threads that run ordinary commands.

    Attributes:
        count: there are so many.
        busy: of them at work.
        queued: commands that wait for one.
        oldest: how long the first of these has waited.
    """

    count: int
    busy: int
    queued: int
    oldest: float = 0.0


@dataclass(frozen=True)
class PoolLoad:
    """One pool.

    Attributes:
        min, max: bounds of active, as configured or set by an administrator.
        active: slots that may work now.
        busy: slots at work.
        warm_spare: sandboxes kept warm beyond those at work.
        ready, warming: sandboxes that wait for a job, and those that come up.
        queued: jobs that wait and could run.
        oldest: how long the first of these has waited.
        arrived, started, ended: jobs since the target started.
        run_seconds: total of the ended ones' time at work.
        warm_seconds: how long a sandbox takes to come up, lately.
        memory_per_slot: what one job may use at most.
    """

    name: str
    mode: Mode
    serving: bool
    min: int
    max: int
    active: int
    busy: int
    warm_spare: int
    ready: int
    warming: int
    queued: int
    oldest: float
    arrived: int
    started: int
    ended: int
    run_seconds: float
    warm_seconds: float
    memory_per_slot: int


@dataclass(frozen=True)
class Pressure:
    """Share of the last 10 s in which something waited for the resource (pressure-stall `some`); None: the
    kernel does not tell."""

    cpu: float | None = None
    memory: float | None = None
    io: float | None = None


@dataclass(frozen=True)
class Load:
    """A reading of one target."""

    at: float
    workers: WorkerLoad
    pools: tuple[PoolLoad, ...]
    pressure: Pressure = Pressure()
    shedding: bool = False


@dataclass(frozen=True)
class Scale:
    """How a pool or the workers follow their load (pools.md, [pool.scale]).

    Attributes:
        auto: whether they do; else an administrator has set the size.
        interval: between two looks, except when jobs wait.
        wait_count: looks in a row that must agree before something is made smaller.
        up_factor: at most so much larger at a time.
        cooldown: after a change the other way round, except up when jobs wait.
        spares: least and most sandboxes kept warm beyond those at work; of a pool.
    """

    auto: bool = True
    interval: float = 1.0
    wait_count: int = 3
    up_factor: float = 2.0
    cooldown: float = 5.0
    spares: tuple[int, int] = (1, 128)


@dataclass(frozen=True)
class Bounds:
    """Limits of the policy for one target.

    Attributes:
        workers: least and most threads for commands.
        workers_scale: how they follow.
        pools: by name; a pool that is not here has Scale's defaults.
        memory: for all jobs together; None: not declared.
        cores: processors of the target's host.
        patience: a command may wait so long for a worker; beyond that jobs give way.
        sandboxes: of all pools together, at work or not (iosd-sandboxd's bound).
    """

    workers: tuple[int, int] = (1, 8)
    workers_scale: Scale = Scale()
    pools: dict[str, Scale] = field(default_factory=dict)
    memory: int | None = None
    cores: int = 1
    patience: float = 0.05
    sandboxes: int = 320


@dataclass(frozen=True)
class SetWorkers:
    """Threads for commands."""

    count: int
    why: str


@dataclass(frozen=True)
class SetActive:
    """Slots of a pool that may work."""

    pool: str
    active: int
    why: str


@dataclass(frozen=True)
class SetSpares:
    """Sandboxes of a pool kept warm beyond those at work."""

    pool: str
    spares: int
    why: str


@dataclass(frozen=True)
class Shed:
    """Whether new jobs are refused."""

    on: bool
    why: str


Decision = SetWorkers | SetActive | SetSpares | Shed
