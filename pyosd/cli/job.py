# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd job`` and ``osd ps``: jobs, what they do, what they left, and how to end them."""

from __future__ import annotations

import collections
import json
import sys

import click

from pyosd.cli.codes import Exit
from pyosd.cli.job_verb import JobListing, JobVerb, any_jobs, jobs_of, one_job, some_jobs
from pyosd.cli.job_view import COLUMNS, explanation, record_of
from pyosd.cli.logs import logs
from pyosd.cli.params import MOMENT
from pyosd.cli.report import report, retry
from pyosd.cli.verb import Failure, Settings
from pyosd.cli.watch import wait, watch
from pyosd.job_status import JobState, JobStatus
from pyosd.jobs import Job
from pyosd.types import ObjectRef

__all__ = ["job", "ls"]

LAST_LINES = 10


@click.group()
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
@click.pass_obj
def ls(
    settings: Settings,
    addresses: tuple[ObjectRef, ...],
    states: tuple[str, ...],
    since: float | None,
    until: float | None,
    head: int | None,
    tail: int | None,
) -> None:
    """List jobs in the order they were submitted: those named, else all there are."""
    if head is not None and tail is not None:
        raise click.UsageError("--head and --tail exclude each other")
    with settings.connect() as target:
        if addresses:
            found = [each.status() for each in jobs_of(settings, target, addresses)]
        else:
            found = [each for pid in target.list_partitions() for each in target.jobs(pid)]
    chosen = [
        each
        for each in found
        if (not states or each.state.name in states) and within(each, since, until)
    ]
    chosen.sort(key=lambda each: (submitted(each), each.id))
    chosen = chosen[:head] if tail is None else chosen[max(0, len(chosen) - tail) :]
    settings.show([record_of(each) for each in chosen], COLUMNS, "iosd.jobs/1", "jobs")


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
@click.pass_obj
def result(settings: Settings, address: ObjectRef) -> None:
    """Print what the script gave to osd.result().

    Bytes come as they are, anything else as JSON.
    """
    with settings.connect() as target:
        each = target.job(settings.job(address))
        state = each.status().state
        if not state.terminal:
            raise Failure(Exit.WRONG_STATE, f"{each.id} is {state.name}: osd job wait {each.id}")
        value = each.result()
    if value is None:
        settings.say(f"{each.id} left no result")
    elif isinstance(value, bytes):
        sys.stdout.buffer.write(value)
    else:
        click.echo(json.dumps(value, ensure_ascii=False))


@job.command(cls=JobVerb)
@some_jobs
@click.pass_obj
def cancel(settings: Settings, addresses: tuple[ObjectRef, ...]) -> None:
    """End jobs that have not started; refused (18) for one that has."""
    with settings.connect() as target:
        for each in jobs_of(settings, target, addresses):
            if not each.cancel():
                state = each.status().state.name
                raise Failure(
                    Exit.WRONG_STATE, f"{each.id} is {state}; to end a running one: osd job kill"
                )
            settings.say(f"{each.id} CANCELLED")


@job.command(cls=JobVerb)
@some_jobs
@click.pass_obj
def kill(settings: Settings, addresses: tuple[ObjectRef, ...]) -> None:
    """End jobs for sure, and say which state won."""
    with settings.connect() as target:
        for each in jobs_of(settings, target, addresses):
            settings.say(f"{each.id} {each.kill().name}")


@job.command(cls=JobVerb)
@some_jobs
@click.pass_obj
def hold(settings: Settings, addresses: tuple[ObjectRef, ...]) -> None:
    """Keep queued jobs from starting."""
    with settings.connect() as target:
        for each in jobs_of(settings, target, addresses):
            settings.say(f"{each.id} {expect(each, each.hold(), JobState.HELD).name}")


@job.command(cls=JobVerb)
@some_jobs
@click.pass_obj
def release(settings: Settings, addresses: tuple[ObjectRef, ...]) -> None:
    """Let held jobs start."""
    with settings.connect() as target:
        for each in jobs_of(settings, target, addresses):
            settings.say(f"{each.id} {each.release().name}")


def expect(each: Job, state: JobState, wanted: JobState) -> JobState:
    """Refuse when another state won."""
    if state is not wanted:
        raise Failure(Exit.WRONG_STATE, f"{each.id} is {state.name}")
    return state


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
        each = target.job(settings.job(address))
        state = each.status()
        log: list[str] = []
        if state.done:
            log = [*collections.deque(each.logs(stream="stderr"), LAST_LINES)]
    for line in explanation(state, log):
        click.echo(line)


for each in (wait, watch, logs, report, retry):
    job.add_command(each)
