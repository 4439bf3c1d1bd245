# SPDX-License-Identifier: GPL-2.0-or-later
"""Waits for a job where a person or a program looks on.

A bar or spinner where stderr is a terminal, one line for each change of state elsewhere; at the end
the state, the duration and where the rest is.  The job goes on whatever happens here.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyosd._polling import Backoff
from pyosd.cli.codes import Exit
from pyosd.cli.job_view import last_line
from pyosd.cli.output import colour_wanted
from pyosd.cli.screen import REDRAWS_PER_S, watched
from pyosd.cli.verb import Failure, Settings
from pyosd.job_status import JobState, JobStatus
from pyosd.jobs import Job

__all__ = ["await_end", "print_output"]

Show = Callable[[JobStatus], None]
LONGEST_PAUSE_S = 0.5  # between two looks at a job that somebody watches


@contextmanager
def bar(job: Job, settings: Settings) -> Iterator[Show]:
    """A bar as long as the script says how far it is, else a spinner with the time passed."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, no_color=not colour_wanted(settings.colour, sys.stderr))
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[message]}", markup=False),
        TimeElapsedColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, refresh_per_second=REDRAWS_PER_S
    ) as progress:
        task = progress.add_task(str(job.id), total=None, message="")

        def show(status: JobStatus) -> None:
            progress.update(
                task,
                description=f"{job.id} {status.state.name}",
                total=None if status.progress is None else 1.0,
                completed=status.progress or 0.0,
                message=status.message,
            )

        yield show


@contextmanager
def lines(job: Job, settings: Settings) -> Iterator[Show]:
    """One line for each change of state."""
    seen: list[JobState] = []

    def show(status: JobStatus) -> None:
        if seen[-1:] != [status.state] and not status.done:
            seen.append(status.state)
            settings.say(f"{job.id} {status.state.name}")

    yield show


def await_end(job: Job, settings: Settings, timeout: float | None = None) -> JobStatus:
    """Wait until the job has ended, and say how it did.

    Args:
        job: which.
        settings: -q silences everything but errors.
        timeout: seconds; None: for ever.

    Raises:
        Failure: the time ran out (124), or the person interrupted (130); the job goes on.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    shown = bar(job, settings) if watched(settings.quiet) else lines(job, settings)
    backoff = Backoff()
    try:
        with shown as show:
            while not (status := job.status()).done:
                show(status)
                left = LONGEST_PAUSE_S if deadline is None else deadline - time.monotonic()
                if left <= 0:
                    raise Failure(Exit.WAIT_OVER, f"job {job.id} goes on: osd job wait {job.id}")
                time.sleep(min(backoff.next(status.poll_interval), LONGEST_PAUSE_S, left))
    except KeyboardInterrupt:
        raise Failure(
            Exit.INTERRUPTED, f"interrupted; job {job.id} goes on: osd job wait {job.id}"
        ) from None
    settings.say(last_line(status))
    return status


def print_output(job: Job, *, follow: bool) -> None:
    """Copy the job's standard output to ours.

    Raises:
        Failure: the person interrupted; the job goes on.
    """
    out = sys.stdout.buffer
    try:
        for piece in job.iter_output(follow=follow):
            out.write(piece)
            out.flush()
    except KeyboardInterrupt:
        raise Failure(
            Exit.INTERRUPTED, f"interrupted; job {job.id} goes on: osd job logs -f {job.id}"
        ) from None
