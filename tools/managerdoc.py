# SPDX-License-Identifier: GPL-2.0-or-later
"""The table and the plot of docs/manager.md.  `python -m tools.managerdoc` simulates and writes both.

tests/host/test_simulation.py holds the same cases against a fluid's waiting time and the table.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from iosd_host.policy.events import Bounds, Scale, SetActive
from iosd_host.policy.simulate import (
    SimulatedCommands,
    SimulatedPool,
    SimulatedTarget,
    SimulationRecord,
    exponential,
    fluid_wait,
    run,
    turns,
)
from iosd_host.policy.traces import Trace, burst, diurnal, saw_tooth, square, steady

DOCS = Path(__file__).resolve().parent.parent / "docs"
BEGIN, END = "<!-- python -m tools.managerdoc: -->", "<!-- end -->"
HEADING = (
    "| Load | Slots, at most | Jobs | Mean wait | Least possible | Longest | Slots, on average "
    "| Turns a minute |",
    "|---|---|---|---|---|---|---|---|",
)


@dataclass(frozen=True)
class Case:
    """A load that is more than all slots can do, for a time: so the wait is that of a fluid, at best."""

    name: str
    trace: Trace
    slots: int = 64
    work: float = 0.2
    seconds: float = 120.0


CASES = (
    Case("square wave, 20 s", square(16, 480, 20)),
    Case("square wave, 6 s", square(16, 480, 6)),
    Case("square wave, 2 min, idle between", square(0, 480, 120, 0.3), seconds=240),
    Case("saw-tooth, 40 s", saw_tooth(0, 480, 40)),
    Case("one burst of 3,200", burst(8, 3200, 30), seconds=60),
    Case("days of 2 min", diurnal(240, 0.9, 120)),
    Case("up to 16,000 a second", square(2000, 16000, 20), 1000, 0.1, 40),
)


@dataclass(frozen=True)
class Simulated:
    """Outcome of a case."""

    case: Case
    pool: SimulatedPool
    target: SimulatedTarget
    bounds: Bounds
    record: SimulationRecord

    def row(self) -> str:
        """Of the table."""
        case, pool = self.case, self.pool
        fluid = fluid_wait(case.trace, case.slots, case.work, case.seconds)
        sizes = [(0.0, 1), *self.record.sizes(SetActive, pool.name)]
        spans = pairwise([*sizes, (case.seconds, 0)])
        mean = sum(size * (end - at) for (at, size), (end, _) in spans) / case.seconds
        return (
            f"| {case.name} | {case.slots} | {pool.arrived:,} | {pool.mean_wait(self.target.now):.2f} s | "
            f"{fluid:.2f} s | {pool.waited_most:.1f} s | {mean:.0f} | {turns(sizes)} |"
        )


def simulated(case: Case) -> Simulated:
    """The case under the policy, from one slot on."""
    pool = SimulatedPool(
        "default", 1, case.slots, case.trace, exponential(case.work), active=1, even=True
    )
    target = SimulatedTarget([pool], cores=case.slots)
    scale = Scale(spares=(1, 2 * case.slots))
    bounds = Bounds(pools={"default": scale}, sandboxes=5 * case.slots)
    return Simulated(case, pool, target, bounds, run(target, bounds, case.seconds))


def commands_first() -> SimulationRecord:
    """Jobs that would take every processor, and for 100 s commands that need them."""
    pool = SimulatedPool("default", 1, 4, steady(100), exponential(0.5), active=4)
    target = SimulatedTarget(
        [pool], SimulatedCommands(square(1000, 20000, 400, 0.25), hindered=3.0)
    )
    return run(target, Bounds(workers=(2, 8)), 240.0)


def plot(path: Path, records: dict[str, SimulationRecord]) -> None:
    """Slots and what waits, for each."""
    import matplotlib as mpl
    from matplotlib import pyplot

    mpl.use("Agg")
    page, axes = pyplot.subplots(
        2, len(records), figsize=(4 * len(records), 5), sharex="col", layout="constrained"
    )
    for (above, below), (title, record) in zip(axes.T, records.items(), strict=True):
        loads = [load for load, _ in record.steps]
        times, pools = [load.at for load in loads], [load.pools[0] for load in loads]
        above.set_title(title, fontsize=10)
        above.plot(
            times, [pool.busy for pool in pools], linewidth=0.5, color="0.6", label="at work"
        )
        above.step(times, [pool.active for pool in pools], where="post", label="active")
        if any(load.workers.queued for load in loads):
            above.step(times, [load.workers.count for load in loads], where="post", label="workers")
            below.plot(times, [load.workers.oldest * 1000 for load in loads], linewidth=0.8)
            below.set_ylabel("the first command waits, ms")
        else:
            below.plot(times, [pool.queued for pool in pools], linewidth=0.8)
            below.set_ylabel("jobs that wait")
        above.legend(fontsize=8)
        below.set_xlabel("seconds")
        for axis in (above, below):
            axis.set_ylim(bottom=0)
    page.savefig(path, dpi=80)
    pyplot.close(page)


def main() -> None:
    """Write table and plot."""
    found = [simulated(case) for case in CASES]
    page = DOCS / "manager.md"
    before, rest = page.read_text().split(BEGIN)
    _, after = rest.split(END)
    lines = [BEGIN, "", *HEADING, *(each.row() for each in found), "", END]
    page.write_text(before + "\n".join(lines) + after)
    records = {each.case.name: each.record for each in (found[2], found[3], found[4])}
    plot(DOCS / "manager.png", records | {"commands first": commands_first()})


if __name__ == "__main__":
    main()
