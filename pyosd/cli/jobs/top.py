# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd top``: a live screen of what the target does with jobs.

Every figure is the target's own, or the difference of two of its answers; what it does not tell is
not shown.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import time
import tty
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click

from pyosd.cli.frame.params import DURATION
from pyosd.cli.frame.verb import Settings, Verb
from pyosd.cli.host.pool import record_of_pool
from pyosd.cli.jobs.follow import LONGEST_PAUSE_S
from pyosd.cli.jobs.job_view import WATCH_COLUMNS, by_interest
from pyosd.cli.output.progress import REDRAWS_PER_S
from pyosd.cli.output.tables import (
    JsonRow,
    colour_wanted,
    print_json,
    print_lines,
    table_lines,
    width_of_stdout,
)
from pyosd.cli.output.terminal import output_option
from pyosd.commands.pool_status import PoolStatus
from pyosd.errors import NotFound
from pyosd.jobs.dialogues.record import record_of
from pyosd.jobs.listed import of_partitions_with_jobs
from pyosd.target import Target
from pyosd.types import JOBS_COLLECTION, ROOT, AttributeId, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import Page
from pyosd.wire.job_status import WATCH_IDS, JobState, JobStatus, decode_status

__all__ = ["top"]

QUEUE_DEPTH, RETRY_AFTER, ISOLATION = 5, 6, 7  # of root page B000_0001h
BUSY_SHARE = 0.1  # of the time that asking may take
INTERRUPT = 3  # Ctrl-C, where the terminal sends no signal for it


@dataclass(frozen=True)
class TargetSample:
    """One look at the target.  when: of our monotonic clock; cost: seconds that it took."""

    when: float
    cost: float
    queue_depth: int
    retry_after_ms: int
    isolation: str
    jobs: dict[ObjectRef, JobStatus]
    pools: tuple[PoolStatus, ...] = ()

    def counts(self) -> dict[str, int]:
        """How many jobs there are of each state that there is; of an array its members count."""
        found: Counter[JobState] = Counter()
        for each in self.jobs.values():
            found.update(each.counts or {each.state: 1})
        return {state.name: found[state] for state in JobState if found[state]}

    def rates(self, before: TargetSample | None) -> dict[str, float | None]:
        """Jobs a second since the last look, of those that are still there; None: no last look."""
        if before is None:
            return {"submitted_per_s": None, "ended_per_s": None}
        seconds = self.when - before.when
        fresh = sum(size(status) for each, status in self.jobs.items() if each not in before.jobs)
        ended = sum(
            ended_in(status) - (ended_in(before.jobs[each]) if each in before.jobs else 0)
            for each, status in self.jobs.items()
        )
        return {"submitted_per_s": fresh / seconds, "ended_per_s": ended / seconds}


def size(status: JobStatus) -> int:
    """One job, or as many as an array has members."""
    return sum(status.counts.values()) or 1


def ended_in(status: JobStatus) -> int:
    """How many of them have ended."""
    if not status.counts:
        return int(status.done)
    return sum(count for state, count in status.counts.items() if state.terminal)


def take(target: Target) -> TargetSample:
    """Look at the root's page and at the jobs collection of each partition."""
    start = time.monotonic()
    wanted = [AttributeId(Page.EXEC_ROOT, n) for n in (QUEUE_DEPTH, RETRY_AFTER, ISOLATION)]
    page = {each.number: each for each in target.get_attributes(ROOT, wanted)}

    def watched(pid: PartitionId) -> list[JobStatus]:
        try:
            members = target.get_member_attributes(ref(pid, JOBS_COLLECTION), WATCH_IDS)
        except NotFound:  # a partition without jobs has no such collection
            return []
        found = (decode_status(ref(pid, each.object_id), each.attributes) for each in members)
        return [*filter(None, found)]

    jobs = {status.id: status for status in of_partitions_with_jobs(target, watched)}
    now = time.monotonic()
    return TargetSample(
        now,
        now - start,
        page[QUEUE_DEPTH].uint if QUEUE_DEPTH in page else 0,
        page[RETRY_AFTER].uint if RETRY_AFTER in page else 0,
        page[ISOLATION].text if ISOLATION in page else "",
        jobs,
        tuple(target.pools()),
    )


def record(now: TargetSample, before: TargetSample | None = None) -> JsonRow:
    """The fields of "iosd.top/1"; of the jobs, those that have not ended."""
    going = sorted((each for each in now.jobs.values() if not each.done), key=by_interest)
    return {
        "schema": "iosd.top/1",
        "queue_depth": now.queue_depth,
        "retry_after_ms": now.retry_after_ms,
        "isolation": now.isolation or None,
        "states": now.counts(),
        **now.rates(before),
        "pools": [record_of_pool(each) for each in now.pools],
        "jobs": [record_of(each) for each in going],
    }


def rate(value: float | None) -> str:
    """Jobs a second for people."""
    return "-" if value is None else f"{value:.1f}/s"


def wrapped(parts: list[str], width: int | None) -> list[str]:
    """Parts, two spaces between them, in lines of so many columns."""
    lines = [""]
    for part in parts:
        longer = f"{lines[-1]}  {part}" if lines[-1] else part
        if width is not None and lines[-1] and len(longer) > width:
            lines.append(part)
        else:
            lines[-1] = longer
    return lines


def pool_words(found: JsonRow) -> str:
    """A pool in few words."""
    if found["state"] != "serving":
        why = f" ({found['why']})" if found["why"] else ""
        return f"{found['id']} {found['state']}, {found['queued']} queued{why}"
    mode = "" if found["mode"] == "running" else f" {found['mode']}"
    room = "" if found["active"] == found["max"] else f" of {found['max']}"
    late = found["pushed_back"]["deadline"]
    back = f", {late} given back: deadline" if late else ""
    return f"{found['id']}{mode} {found['busy']}/{found['active']}{room}, {found['queued']} queued{back}"


def screen_lines(found: JsonRow, width: int | None, height: int | None, colour: bool) -> list[str]:
    """The screen.  width, height: None: all that there is."""
    states: dict[str, int] = found["states"]
    head = [
        f"queue {found['queue_depth']}",
        f"running {states.get('RUNNING', 0)}",
        f"submitted {rate(found['submitted_per_s'])}",
        f"ended {rate(found['ended_per_s'])}",
        f"retry after {found['retry_after_ms']} ms",
        f"isolation {found['isolation'] or 'none: no sandbox service'}",
    ]
    lines = wrapped(head, width)
    plain = all(
        each["mode"] == "running"
        and each["active"] == each["max"]
        and not each["pushed_back"]["deadline"]
        for each in found["pools"]
    )
    if len(found["pools"]) > 1 or not plain:
        lines += wrapped([pool_words(each) for each in found["pools"]], width)
    lines += wrapped([f"{count} {name}" for name, count in states.items()] or ["no jobs"], width)
    jobs = found["jobs"]
    if not jobs:
        return lines
    room = None if height is None else max(1, height - len(lines) - 3)
    lines += ["", *table_lines(WATCH_COLUMNS, jobs[:room], colour=colour, room=width)]
    hidden = 0 if room is None else len(jobs) - room
    return [*lines, f"{hidden} more"] if hidden > 0 else lines


@contextlib.contextmanager
def keys() -> Iterator[int | None]:
    """Have the terminal give keys as they are typed; yields its descriptor, None: there is none."""
    if not sys.stdin.isatty():
        yield None
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    try:
        yield descriptor
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def quit_within(seconds: float, descriptor: int | None) -> bool:
    """Wait so long; True: q was typed, or the terminal is gone."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        if descriptor is None:
            time.sleep(left)
        elif select.select([descriptor], [], [], min(left, LONGEST_PAUSE_S))[0]:
            typed = os.read(descriptor, 64)
            if not typed or b"q" in typed.lower() or INTERRUPT in typed:
                return True
    return False


def ended_by(number: int, _: Any) -> None:
    """Leave by way of the blocks that put the terminal right."""
    sys.exit(128 + number)


def live(target: Target, settings: Settings, interval: float) -> None:
    """Draw until q or Ctrl-C."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    colour = colour_wanted(settings.colour, sys.stdout)
    console = Console(no_color=not colour, highlight=False)
    signal.signal(signal.SIGTERM, ended_by)
    before: TargetSample | None = None
    with (
        contextlib.suppress(KeyboardInterrupt),
        keys() as descriptor,
        Live(console=console, screen=True, auto_refresh=False) as view,
    ):
        while True:
            now = take(target)
            width, height = console.size
            lines = screen_lines(record(now, before), width, height - 1, colour)
            view.update(Text.from_ansi("\n".join([*lines, "q: quit"])), refresh=True)
            before = now
            if quit_within(max(interval, now.cost / BUSY_SHARE), descriptor):
                return


@click.command(cls=Verb)
@click.option("--once", is_flag=True, help="Print one screen and exit.  [unless on a terminal]")
@click.option(
    "--interval", type=DURATION, default=1.0, help="Time between two updates, at least 100ms.  [1s]"
)
@output_option("table", "json")
@click.pass_obj
def top(settings: Settings, once: bool, interval: float) -> None:
    """Show the queue, the rates and the unfinished jobs, live.

    q or Ctrl-C ends it. Rates are averages between two readings. Readings take at most a tenth of
    the time.
    """
    with settings.connect() as target:
        if not once and settings.output == "table" and sys.stdout.isatty():
            live(target, settings, max(interval, 1 / REDRAWS_PER_S))
            return
        found = record(take(target))
    if settings.output == "json":
        print_json(found)
        return
    colour = settings.colour_on_stdout
    print_lines(screen_lines(found, width_of_stdout(), None, colour), colour)
