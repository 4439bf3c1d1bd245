# SPDX-License-Identifier: GPL-2.0-or-later
"""The policy's input and output: loads and decisions.  Values only.

A load is one reading of one target (docs/control.md, SNAPSHOT).  A decision is one request to it.  The
policy between them (policy.py) uses no sockets and no clock: the load has the time.  Times are seconds
of the target's monotonic clock, sizes bytes, and shares 0 to 1.
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
    """The mode of a pool, as an administrator sets it."""

    RUNNING = "running"
    PAUSED = "paused"
    DRAINING = "draining"


@dataclass(frozen=True)
class WorkerLoad:
    """The threads that run ordinary commands.

    Attributes:
        count: number of workers.
        busy: number of workers that run a command.
        queued: commands that wait for a worker.
        oldest: how long the first of them has waited.
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
        active: slots that can run jobs now.
        busy: slots that run a job.
        warm_spare: prestarted sandboxes to keep, beyond those that run a job.
        ready, warming: sandboxes that wait for a job, and sandboxes that are starting.
        queued: jobs that wait and could run.
        oldest: how long the first of them has waited.
        arrived, started, ended: number of jobs since the target started.
        run_seconds: total run time of the ended jobs.
        warm_seconds: how long the start of a sandbox has taken lately.
        memory_per_slot: most memory of one job.
        places: jobs that have not started, or are being accepted; held ones too.
        jobs: accepted jobs that have not ended.
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
    places: int = 0
    jobs: int = 0


@dataclass(frozen=True)
class Pressure:
    """Share of the last 10 s in which a task waited for the resource (pressure-stall `some`).

    None: the kernel does not report it.
    """

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
        auto: follow the load; False: an administrator has set the size.
        interval: seconds between two checks; jobs that wait are checked earlier.
        wait_count: consecutive checks that must agree before a size is reduced.
        up_factor: greatest factor of one increase.
        cooldown: seconds before a change in the other direction, except an increase for waiting jobs.
        spares: least and most prestarted sandboxes of a pool, beyond those that run a job.
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
        workers_scale: how their number follows the load.
        pools: by name; other pools have the defaults of Scale.
        memory: for all jobs together; None: not declared.
        cores: processors of the target's host.
        patience: how long a command can wait for a worker before jobs give way.
        sandboxes: most sandboxes of all pools together, with or without a job (iosd-sandboxd's limit).
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
    """Slots of a pool that can run jobs."""

    pool: str
    active: int
    why: str


@dataclass(frozen=True)
class SetSpares:
    """Prestarted sandboxes of a pool, beyond those that run a job."""

    pool: str
    spares: int
    why: str


@dataclass(frozen=True)
class Shed:
    """Whether the target refuses new jobs."""

    on: bool
    why: str


Decision = SetWorkers | SetActive | SetSpares | Shed
