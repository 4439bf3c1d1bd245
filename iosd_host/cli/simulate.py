# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd pool simulate`: the decisions of the resource manager for a measured or an assumed load."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import TextIO

import click

from iosd_host.cli.host_verb import HostVerb, Settings
from iosd_host.cli.target_config import pool_flags
from iosd_host.config.files import DEFAULT_FILE
from iosd_host.config.schema import Setting
from iosd_host.manager.settings import TargetSettings, configured
from iosd_host.policy.events import Bounds, SetActive, SetSpares
from iosd_host.policy.simulate import (
    SimulatedPool,
    SimulatedTarget,
    SimulationRecord,
    constant,
    exponential,
    fluid_wait,
    run,
    turns,
)
from iosd_host.policy.traces import Trace, table
from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.params import DurationParam, InputFile
from pyosd.cli.frame.verb import Failure
from pyosd.cli.output.tables import print_lines
from pyosd.cli.output.terminal import output_option

__all__ = ["simulate"]

SECONDS_MOST, JOBS_MOST = 86_400.0, 10_000_000
TIME = DurationParam(0.0001, SECONDS_MOST)


@dataclass(frozen=True)
class Moment:
    """A moment of the simulation; waited: seconds that the first in the queue has."""

    time: float
    came: int
    active: int
    busy: int
    warm_spare: int
    queued: int
    waited: float


@dataclass(frozen=True)
class Summary:
    """Of the whole: waits in seconds; best_wait is the mean that no manager could better."""

    jobs: int
    mean_wait: float
    longest_wait: float
    best_wait: float
    most_active: int
    most_turns: int


def read_trace(source: TextIO) -> list[tuple[float, float]]:
    """Rows of a CSV of time,jobs, a heading allowed: jobs that come from then to the next row.

    Raises:
        ValueError: says what is wrong, with the line.
    """
    rows: list[tuple[float, float]] = []
    for number, words in enumerate(csv.reader(source), 1):
        if not words or words[0].lstrip().startswith("#"):
            continue
        try:
            at, jobs = (float(word) for word in words)
            if not math.isfinite(at):
                raise ValueError
        except ValueError:
            if number == 1:
                continue
            raise ValueError(f"line {number}: '{','.join(words)}' is not TIME,JOBS") from None
        if not 0 <= jobs <= JOBS_MOST or not (not rows or at > rows[-1][0]):
            raise ValueError(f"line {number}: times must rise, jobs be 0 to {JOBS_MOST}")
        rows.append((at, jobs))
    if len(rows) < 2:
        raise ValueError("there must be two rows at least: the last says only when it ends")
    if rows[-1][0] - rows[0][0] > SECONDS_MOST or sum(jobs for _, jobs in rows) > JOBS_MOST:
        raise ValueError(f"more than a day, or than {JOBS_MOST} jobs: take a part of it")
    return rows


def rates(rows: Sequence[tuple[float, float]]) -> Trace:
    """Jobs a second, from time 0 on."""
    start = rows[0][0]
    steps = [(at - start, jobs / (end - at)) for (at, jobs), (end, _) in pairwise(rows)]
    return table([*steps, (rows[-1][0] - start, 0.0)])


def rows_of(record: SimulationRecord, seconds: float, count: int) -> list[Moment]:
    """About so many moments, evenly spread; `came` since the one before."""
    found: list[Moment] = []
    arrived = 0
    for load, _ in record.steps:
        if load.at + 1e-9 < len(found) * seconds / count:
            continue
        pool = load.pools[0]
        came, arrived = pool.arrived - arrived, pool.arrived
        found.append(
            Moment(load.at, came, pool.active, pool.busy, pool.warm_spare, pool.queued, pool.oldest)
        )
    return found


def table_lines(rows: Iterable[Moment], summary: Summary) -> Iterator[str]:
    """For people."""
    yield "   TIME     CAME   ACTIVE     BUSY   WARM_SPARE   QUEUED   WAITED"
    for row in rows:
        texts = f"{row.came:9}{row.active:9}{row.busy:9}{row.warm_spare:13}{row.queued:9}"
        yield f"{row.time:6.0f}s{texts}{row.waited:8.2f}s"
    yield (
        f"{summary.jobs} jobs waited {summary.mean_wait:.3f} s on average, "
        f"{summary.longest_wait:.2f} s at most;"
    )
    yield (
        f"with {summary.most_active} slots all the time it would have been "
        f"{summary.best_wait:.3f} s at best."
    )
    yield f"The size turned round {summary.most_turns} times within a minute at most."


def reason_lines(record: SimulationRecord) -> Iterator[str]:
    """Every decision."""
    for load, decisions in record.steps:
        for each in decisions:
            if isinstance(each, SetActive | SetSpares):
                size = each.active if isinstance(each, SetActive) else each.spares
                what = "active" if isinstance(each, SetActive) else "warm_spare"
                yield f"{load.at:8.2f}s  {what} {size}: {each.why}"


def plot(path: Path, record: SimulationRecord, title: str) -> None:
    """Slots, jobs that wait, and for how long.  Raises: ImportError: no matplotlib."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    loads = [load for load, _ in record.steps]
    page, axes = pyplot.subplots(3, 1, figsize=(8, 6), sharex=True, layout="constrained")
    times = [load.at for load in loads]
    pools = [load.pools[0] for load in loads]
    axes[0].step(times, [pool.active for pool in pools], where="post", label="active")
    axes[0].step(times, [pool.busy for pool in pools], where="post", label="at work", linewidth=0.7)
    axes[0].step(
        times, [pool.warm_spare for pool in pools], where="post", label="warm_spare", linewidth=0.7
    )
    axes[0].set_ylabel("slots, sandboxes")
    axes[0].legend(fontsize=8)
    axes[1].plot(times, [pool.queued for pool in pools], linewidth=0.8)
    axes[1].set_ylabel("jobs that wait")
    axes[2].plot(times, [pool.oldest for pool in pools], linewidth=0.8)
    axes[2].set_ylabel("wait of the first, s")
    axes[2].set_xlabel("seconds")
    for axis in axes:
        axis.set_ylim(bottom=0)
    page.suptitle(title, fontsize=10)
    page.savefig(path, dpi=80)
    pyplot.close(page)


def pool_and_bounds(path: Path | None, words: str) -> tuple[str, dict[str, Setting], Bounds]:
    """The pool's name, all settings, and what follows for the policy.  Raises: ConfigError."""
    flags = pool_flags((words,), None, None)
    found = configured(path, flags)
    return flags[0][1], found, TargetSettings(found, ()).bounds()


@click.command(cls=HostVerb)
@click.argument("trace", type=InputFile())
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help=f"Configuration file.  [{DEFAULT_FILE}, if it exists]",
)
@click.option(
    "--pool",
    "words",
    default="default",
    metavar="NAME[:KEY=VALUE,...]",
    help="Pool to simulate, and values to try instead of the configured ones.  [default]",
)
@click.option("--work", type=TIME, default="1s", help="Mean run time of a job.  [1s]")
@click.option(
    "--alike",
    is_flag=True,
    help="Give every job the same run time.  [most are shorter, some longer]",
)
@click.option("--warm", type=TIME, default="50ms", help="Time to start a sandbox.  [50ms]")
@click.option(
    "--rows",
    type=click.IntRange(1, 10_000),
    metavar="N",
    default=20,
    help="Number of rows in the table.  [20]",
)
@click.option(
    "--why", is_flag=True, help="Show every decision with its reason instead of the table."
)
@click.option(
    "--plot",
    "image",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Also write a plot to this file (requires matplotlib).",
)
@click.option("--seed", type=int, default=1, help="Seed of the random numbers.  [1]")
@output_option("table", "json", "csv")
@click.pass_obj
def simulate(
    common: Settings, trace: TextIO, config: Path | None, words: str, work: float, alike: bool,
    warm: float, rows: int, why: bool, image: Path | None, seed: int,
) -> None:  # fmt: skip
    """Simulate how a pool is resized under a load.

    TRACE is a CSV file with the columns time,jobs: seconds, and the number of jobs that arrive
    until the next row's time. - is standard input. The simulation needs no target.
    """
    try:
        measured = read_trace(trace)
    except (ValueError, UnicodeDecodeError) as error:
        raise click.UsageError(f"{trace.name}: {error}") from None
    name, settings, bounds = pool_and_bounds(config, words)
    low, high = (int(settings[f"pools.{name}.{key}"].value) for key in ("min", "max"))
    load, seconds = rates(measured), measured[-1][0] - measured[0][0]
    pool = SimulatedPool(name, low, high, load, constant(work) if alike else exponential(work),
                         warm, active=max(1, low))  # fmt: skip
    target = SimulatedTarget([pool], cores=bounds.cores, seed=seed)
    record = run(target, bounds, seconds)
    sizes = [(0.0, max(1, low)), *record.sizes(SetActive, name)]
    summary = Summary(
        pool.arrived, pool.mean_wait(target.now),
        max(pool.waited_most, target.now - pool.waiting[0][0] if pool.waiting else 0.0),
        fluid_wait(load, high, work, seconds), high, turns(sizes),
    )  # fmt: skip
    tell(record, rows_of(record, seconds, rows), summary, common.output, why)
    if image is not None:
        try:
            plot(
                image,
                record,
                f"{trace.name}: pool {name}, {low} to {high} slots, {work:g} s a job",
            )
        except ImportError:
            raise Failure(Exit.FAILED, "no plot: matplotlib is not installed") from None


def tell(
    record: SimulationRecord, rows: list[Moment], summary: Summary, output: str, why: bool
) -> None:
    """The outcome, in the requested format."""
    if output == "json":
        shown = {"schema": "iosd.simulation/1", "rows": [asdict(row) for row in rows]}
        click.echo(json.dumps(shown | {"summary": asdict(summary)}))
    elif output == "csv":
        writer = csv.writer(text := io.StringIO())
        writer.writerow(asdict(rows[0]))
        writer.writerows(asdict(row).values() for row in rows)
        click.echo(text.getvalue(), nl=False)
    else:
        print_lines(reason_lines(record) if why else table_lines(rows, summary))
