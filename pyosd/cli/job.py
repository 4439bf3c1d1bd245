# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd job`` and ``osd ps``: jobs, what they do, what they left, and how to end them."""

from __future__ import annotations

import collections
import sys
from collections.abc import Iterator

import click

from pyosd.cli.codes import Exit
from pyosd.cli.group import Group
from pyosd.cli.job_verb import (
    JobListing,
    JobVerb,
    any_jobs,
    job_of,
    jobs_of,
    one_job,
    some_jobs,
    whole_of,
    wholes_of,
)
from pyosd.cli.job_view import COLUMNS, counted, explanation, record_of, standing
from pyosd.cli.logs import logs
from pyosd.cli.output import harmless, print_json, print_lines
from pyosd.cli.params import MOMENT
from pyosd.cli.report import report, retry
from pyosd.cli.terminal import RAW, output_to
from pyosd.cli.verb import Failure, Settings
from pyosd.cli.watch import wait, watch
from pyosd.job_array import JobArray, known
from pyosd.job_status import JobState, JobStatus
from pyosd.target import Target
from pyosd.types import ObjectRef

__all__ = ["job", "ls"]

LAST_LINES = 10
WELL = (JobState.COMPLETED, JobState.CANCELLED)


@click.group(cls=Group)
def job() -> None:
    """Jobs: scripts that run, will run or have run next to the data."""


@job.command(cls=JobListing)
@any_jobs
@click.option(
    "--state",
    "states",
    type=click.Choice([state.name for state in JobState], case_sensitive=False),
    multiple=True,
    help="Only jobs in this state; may be given again.",
)
@click.option("--since", type=MOMENT, help="Only jobs submitted then or later: 1h, or a time.")
@click.option("--until", type=MOMENT, help="Only jobs submitted before then.")
@click.option("--head", type=click.IntRange(0), metavar="N", help="Only the first N submitted.")
@click.option("--tail", type=click.IntRange(0), metavar="N", help="Only the last N submitted.")
@click.option("--members", is_flag=True, help="Instead of an array its members, a line each.")
@click.pass_obj
def ls(
    settings: Settings,
    addresses: tuple[ObjectRef, ...],
    states: tuple[str, ...],
    since: float | None,
    until: float | None,
    head: int | None,
    tail: int | None,
    members: bool,
) -> None:
    """List jobs in the order they were submitted: those named, else all there are.

    An array of jobs is one line; its members are named ARRAY[INDEX].
    """
    if head is not None and tail is not None:
        raise click.UsageError("--head and --tail exclude each other")
    with settings.connect() as target:
        if addresses:
            found = [each.status() for each in jobs_of(settings, target, addresses)]
        else:
            found = [each for pid in target.list_partitions() for each in target.jobs(pid)]
        if members:
            found = [each for status in found for each in members_of(target, status)]
    chosen = [
        each
        for each in found
        if (not states or each.state.name in states) and within(each, since, until)
    ]
    chosen.sort(key=lambda each: (submitted(each), each.id))
    chosen = chosen[:head] if tail is None else chosen[max(0, len(chosen) - tail) :]
    settings.show([record_of(each) for each in chosen], COLUMNS, "iosd.jobs/1", "jobs")


def members_of(target: Target, status: JobStatus) -> Iterator[JobStatus]:
    """The members of an array; of another job itself."""
    array = known(target, status)
    return array.statuses() if isinstance(array, JobArray) else iter([status])


def submitted(status: JobStatus) -> float:
    """When, in seconds since 1970 by the target's clock; 0: it does not say."""
    return status.submitted.timestamp() if status.submitted else 0.0


def within(status: JobStatus, since: float | None, until: float | None) -> bool:
    """Whether the job was submitted in that time."""
    when = submitted(status)
    return (since is None or when >= since) and (until is None or when < until)


@job.command(cls=JobListing)
@some_jobs
@click.pass_obj
def status(settings: Settings, addresses: tuple[ObjectRef, ...]) -> None:
    """Show what jobs do now, or how they ended."""
    with settings.connect() as target:
        found = [each.status() for each in jobs_of(settings, target, addresses)]
    records = [record_of(each) for each in found]
    if len(records) == 1:
        settings.show_one(records[0], COLUMNS, wide=True)
    else:
        settings.show(records, COLUMNS, "iosd.jobs/1", "jobs", wide=True)


@job.command(cls=JobVerb)
@one_job
@RAW
@click.pass_obj
def result(settings: Settings, address: ObjectRef, raw: bool) -> None:
    """Print what the script gave to osd.result().

    Bytes come as they are, but for control characters on a terminal.  Anything else comes as JSON; of an
    array the list of its members' results.
    """
    with settings.connect() as target:
        each = whole_of(target, job_of(settings, target, address))
        state = each.status().state
        if not state.terminal:
            raise Failure(Exit.WRONG_STATE, f"{each.id} is {state.name}: osd job wait {each.id}")
        value = each.result()
    if value is None:
        settings.say(f"{each.id} left no result")
    elif isinstance(value, bytes):
        output_to(sys.stdout, raw).write(value)
    else:
        try:
            print_json(value)
        except TypeError:
            text = f"members of {each.id} left bytes: osd job result '{each.id}[INDEX]'"
            raise Failure(Exit.FAILED, text) from None


@job.command(cls=JobVerb)
@some_jobs
@click.pass_obj
def cancel(settings: Settings, addresses: tuple[ObjectRef, ...]) -> None:
    """End jobs that have not started; refused (18) for one that has.

    Of an array the members that have not.
    """
    with settings.connect() as target:
        for each in wholes_of(settings, target, addresses):
            if not each.cancel():
                raise Failure(
                    Exit.WRONG_STATE,
                    f"{each.id} is {standing(each.status())}; to end a running one: osd job kill",
                )
            settings.say(f"{each.id} {standing(each.status())}")


@job.command(cls=JobVerb)
@some_jobs
@click.pass_obj
def kill(settings: Settings, addresses: tuple[ObjectRef, ...]) -> None:
    """End jobs for sure, and say which state won."""
    with settings.connect() as target:
        for each in jobs_of(settings, target, addresses):
            each.kill()
            settings.say(f"{each.id} {standing(each.status())}")


@job.command(cls=JobVerb)
@some_jobs
@click.pass_obj
def hold(settings: Settings, addresses: tuple[ObjectRef, ...]) -> None:
    """Keep queued jobs from starting."""
    with settings.connect() as target:
        for each in jobs_of(settings, target, addresses):
            state = each.hold()
            if state is not JobState.HELD and not each.status().counts.get(JobState.HELD):
                raise Failure(Exit.WRONG_STATE, f"{each.id} is {state.name}")
            settings.say(f"{each.id} {standing(each.status())}")


@job.command(cls=JobVerb)
@some_jobs
@click.pass_obj
def release(settings: Settings, addresses: tuple[ObjectRef, ...]) -> None:
    """Let held jobs start."""
    with settings.connect() as target:
        for each in jobs_of(settings, target, addresses):
            each.release()
            settings.say(f"{each.id} {standing(each.status())}")


@job.command(cls=JobVerb)
@some_jobs
@click.pass_obj
def rm(settings: Settings, addresses: tuple[ObjectRef, ...]) -> None:
    """Remove ended jobs: record, output and result."""
    settings.confirm(f"Remove {', '.join(map(str, addresses))} with output and result?")
    with settings.connect() as target:
        for each in jobs_of(settings, target, addresses):
            each.remove()


@job.command(cls=JobVerb)
@one_job
@click.pass_obj
def why(settings: Settings, address: ObjectRef) -> None:
    """Say what a job waits for, or how it ended."""
    with settings.connect() as target:
        each = whole_of(target, job_of(settings, target, address))
        state = each.status()
        log: list[str] = []
        more = array_lines(each) if isinstance(each, JobArray) else []
        if state.done and not more:
            log = [*collections.deque(each.logs(stream="stderr"), LAST_LINES)]
    print_lines(harmless(line) for line in [*explanation(state, log), *more])


def array_lines(array: JobArray) -> list[str]:
    """What there is to say of an array's members."""
    place, counts = array.place, array.status().counts
    most = f", at most {place.at_once} at once" if place.at_once else ""
    lines = [f"Members {place.index} to {place.indices[-1]}{most}: {counted(counts)}."]
    states = zip(place.indices, array.states(), strict=True)
    bad = [(index, state) for index, state in states if state.terminal and state not in WELL]
    lines += [f"  {array.id}[{index}] {state.name}" for index, state in bad[:LAST_LINES]]
    if bad:
        lines.append(f"See: osd job why '{array.id}[{bad[0][0]}]'")
    return lines


for each in (wait, watch, logs, report, retry):
    job.add_command(each)
