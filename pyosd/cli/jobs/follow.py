# SPDX-License-Identifier: GPL-2.0-or-later
"""Waits for jobs where a person or a program looks on.

On a terminal, stderr shows a bar or spinner for one job and a table for many. Elsewhere each change
of state is a line. At the end come the state, the duration, and the commands for more.  All jobs of
a partition are asked for in one command.  They go on whatever happens here.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager

import click

from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.verb import Failure, Settings
from pyosd.cli.jobs.job_view import WATCH_COLUMNS, by_interest, last_line
from pyosd.cli.output.progress import REDRAWS_PER_S, watched
from pyosd.cli.output.tables import colour_wanted, table_lines
from pyosd.cli.output.terminal import harmless
from pyosd.errors import OSDError, Unreachable
from pyosd.jobs.dialogues.followed import Backoff
from pyosd.jobs.dialogues.record import record_of
from pyosd.jobs.job import Job
from pyosd.jobs.polling import job_statuses
from pyosd.wire.job_status import WATCH_IDS, JobState, JobStatus

__all__ = ["FollowedJobs", "await_end", "follow", "id_kept", "interrupted", "left_by"]

LONGEST_PAUSE_S = 0.5  # between two polls of watched jobs
SOME_IDS = 3  # that a sentence names


def at_now(status: JobStatus) -> str:
    """Its state, and what it waits for."""
    waits = f": {status.reason_label}" if status.reason_label and not status.done else ""
    return f"{status.state.name}{waits}"


class FollowedJobs:
    """Jobs that are polled together, and their last states."""

    def __init__(self, jobs: Iterable[Job]) -> None:
        self.jobs = list({job.id: job for job in jobs}.values())
        self.said: dict[Job, JobStatus | None] = {}
        self.changed: list[Job] = []

    def poll(self) -> float:
        """Ask for those that go on; `changed` are those whose state is another now.

        Returns: the seconds that the target suggests to wait, the least of all.
        """
        fresh = job_statuses(self.going, WATCH_IDS)
        self.changed = [job for job in fresh if self._differs(job, fresh[job])]
        self.said.update(fresh)
        return min((each.poll_interval for each in fresh.values() if each), default=0.0)

    def complete_changed(self) -> None:
        """Ask the `changed` jobs for their whole status, since polls ask only for what a table shows."""
        self.said.update(job_statuses(self.changed))

    def _differs(self, job: Job, now: JobStatus | None) -> bool:
        before = self.said.get(job)
        return job not in self.said or (before and before.state) != (now and now.state)

    @property
    def going(self) -> list[Job]:
        """Those that have not ended, as far as is known."""
        return [job for job in self.jobs if job not in self.said or not self.ended(job)]

    def ended(self, job: Job) -> bool:
        """Whether it has ended; one whose record is gone has."""
        status = self.said[job]
        return status is None or status.done

    def summary(self) -> str:
        """How many there are of each state."""
        counts = Counter(status.state.name if status else "GONE" for status in self.said.values())
        names = [*(state.name for state in JobState), "GONE"]
        return ", ".join(f"{counts[name]} {name}" for name in names if counts[name])


Show = Callable[[FollowedJobs], None]


@contextmanager
def bar(settings: Settings) -> Iterator[Show]:
    """A bar as long as the script says how far it is, else a spinner with the time passed."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, no_color=not colour_wanted(settings.colour, sys.stderr))
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        TimeElapsedColumn(),
        BarColumn(),
        TextColumn("{task.fields[message]}", markup=False),
    )
    with Progress(
        *columns, console=console, transient=True, refresh_per_second=REDRAWS_PER_S
    ) as progress:
        task = progress.add_task("", total=None, message="")

        def show(crowd: FollowedJobs) -> None:
            for job, status in crowd.said.items():
                if status is not None:
                    progress.update(
                        task,
                        description=f"{job.id} {at_now(status)}",
                        total=None if status.progress is None else 1.0,
                        completed=status.progress or 0.0,
                        message=harmless(status.message),
                    )

        yield show


@contextmanager
def table(settings: Settings) -> Iterator[Show]:
    """A table that is drawn anew at most ten times a second, and stays when all is over."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    colour = colour_wanted(settings.colour, sys.stderr)
    console = Console(stderr=True, no_color=not colour, highlight=False)
    with Live(console=console, auto_refresh=False) as live:
        drawn = -1.0

        def show(crowd: FollowedJobs) -> None:
            nonlocal drawn
            now = time.monotonic()
            if crowd.going and now < drawn + 1 / REDRAWS_PER_S:
                return
            drawn = now
            lines = crowd_lines(crowd, console.size.width, console.size.height - 3, colour)
            live.update(Text.from_ansi("\n".join(lines)), refresh=True)

        yield show


def crowd_lines(crowd: FollowedJobs, width: int, height: int, colour: bool) -> list[str]:
    """The table of jobs, those that need looking at first, and under it how many there are of each
    state.
    """
    known = sorted((each for each in crowd.said.values() if each), key=by_interest)
    shown = known[: max(1, height)]
    rows = [record_of(each) for each in shown]
    lines = table_lines(WATCH_COLUMNS, rows, colour=colour, room=width)
    hidden = len(known) - len(shown)
    more = f" ({hidden} not shown)" if hidden else ""
    return [*lines, f"{crowd.summary()}{more}"]


@contextmanager
def lines(settings: Settings, *, ends: bool = True) -> Iterator[Show]:
    """One line for each change of state; ends: also of the last."""

    def show(crowd: FollowedJobs) -> None:
        for job in crowd.changed:
            status = crowd.said[job]
            if status is None and len(crowd.jobs) == 1:
                continue  # who asked for it will be told
            if status is None:
                settings.say(f"{job.id} GONE; its record was removed, or it expired")
            elif status.done and ends:
                settings.say(last_line(status))
            elif not status.done:
                settings.say(f"{job.id} {at_now(status)}")

    yield show


@contextmanager
def left_by(going: Callable[[], str], jobs: list[Job]) -> Iterator[None]:
    """Wait for jobs inside.  Ctrl-C and a target that is lost end the wait with the jobs' ids.

    Args: going: what an interrupted wait says of the jobs.
    Raises: Failure: interrupted (130), or the target cannot be reached (69).
    """
    try:
        yield
    except KeyboardInterrupt:
        raise interrupted(going()) from None
    except Unreachable as error:
        text = f"{error}; when the target is back: osd job wait {named(jobs)}"
        raise Failure(Exit.UNREACHABLE, text) from None


@contextmanager
def id_kept(job: Job) -> Iterator[None]:
    """Print or follow a job that was just submitted inside.

    If standard output fails, its id goes to standard error, since otherwise nobody would know it.
    """
    try:
        yield
    except OSDError:
        raise  # some of them are an OSError, too
    except OSError:
        click.echo(f"osd: the output was cut off; the job is {job.id}", err=True)
        raise


def interrupted(text: str) -> Failure:
    """The exception after Ctrl-C. A second Ctrl-C ends the program at once."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(Exit.INTERRUPTED))
    return Failure(Exit.INTERRUPTED, f"interrupted; {text}")


def named(jobs: list[Job]) -> str:
    """The ids for a command line, a few of them."""
    ids = [str(job.id) for job in jobs[:SOME_IDS]]
    return " ".join(ids) + (" ..." if len(jobs) > SOME_IDS else "")


def go_on(crowd: FollowedJobs) -> str:
    """That jobs go on, and how to wait for them."""
    left = crowd.going
    if len(crowd.jobs) == 1:
        return f"job {crowd.jobs[0].id} continues: osd job wait {crowd.jobs[0].id}"
    verb = "continues" if len(left) == 1 else "continue"
    return f"{len(left)} of {len(crowd.jobs)} jobs {verb}: osd job wait {named(left)}"


def shown_by(settings: Settings, crowd: FollowedJobs) -> AbstractContextManager[Show]:
    """How these jobs are shown here."""
    if not watched(settings.quiet):
        return lines(settings)
    return bar(settings) if len(crowd.jobs) == 1 else table(settings)


def follow(
    crowd: FollowedJobs,
    shown: AbstractContextManager[Show],
    *,
    timeout: float | None = None,
    enough: Callable[[FollowedJobs], bool] = lambda crowd: False,
) -> None:
    """Poll jobs until all have ended, or enough has happened.

    Raises:
        Failure: the time ran out (124), the person interrupted (130), or the target cannot be reached
            (69).  Its text names the jobs.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    backoff = Backoff()
    with left_by(lambda: go_on(crowd), crowd.jobs), shown as show:
        while True:
            suggested = crowd.poll()
            show(crowd)
            if not crowd.going or enough(crowd):
                return
            if crowd.changed:
                backoff = Backoff()
            left = LONGEST_PAUSE_S if deadline is None else deadline - time.monotonic()
            if left <= 0:
                raise Failure(Exit.WAIT_OVER, go_on(crowd))
            time.sleep(min(backoff.next(suggested), LONGEST_PAUSE_S, left))


def await_end(
    job: Job,
    settings: Settings,
    timeout: float | None = None,
    before_last: Callable[[], None] = lambda: None,
) -> JobStatus:
    """Wait until the job has ended, and say how it did.

    Args:
        job: which.
        settings: -q silences everything but errors.
        timeout: seconds; None: for ever.
        before_last: what is done when it has ended, before the line that says so.

    Raises:
        Failure: the time ran out (124), or the person interrupted (130); the job goes on.
        JobExpired: it has no record (any more).
    """
    shown = bar(settings) if watched(settings.quiet) else lines(settings, ends=False)
    follow(FollowedJobs([job]), shown, timeout=timeout)
    status = job.status()
    before_last()
    settings.say(last_line(status))
    return status
