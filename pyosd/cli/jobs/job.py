# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd job`` and ``osd ps``: jobs, what they do, what they left, and how to end them."""

from __future__ import annotations

import collections
import sys
from collections.abc import Iterator
from typing import Any

import click

from pyosd.cli.frame.addresses import LoneId
from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.group import Group
from pyosd.cli.frame.verb import Failure, Settings
from pyosd.cli.host.everywhere import at_each, handle_of, report_errors, targets_option
from pyosd.cli.jobs.job_filter import JobFilter, filter_options, submitted
from pyosd.cli.jobs.job_verb import (
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
from pyosd.cli.jobs.job_view import COLUMNS, explanation, last_lines, standing
from pyosd.cli.jobs.logs import logs
from pyosd.cli.jobs.report import report, retry
from pyosd.cli.jobs.result import result
from pyosd.cli.jobs.watch import wait, watch
from pyosd.cli.output.tables import Column, print_lines, print_prose
from pyosd.cli.output.terminal import harmless
from pyosd.cli.replay.replay import diff, replay
from pyosd.cli.replay.used import export, inputs, outputs
from pyosd.jobs.dialogues.record import counted, record_of
from pyosd.jobs.job_array import JobArray, known
from pyosd.jobs.listed import of_partitions_with_jobs
from pyosd.target import Target
from pyosd.types import ObjectRef
from pyosd.wire.job_status import JobState, JobStatus

__all__ = ["job", "ls"]

LAST_LINES = 10
WELL = (JobState.COMPLETED, JobState.CANCELLED)


@click.group(cls=Group)
def job() -> None:
    """Manage jobs: scripts that run next to the data."""


@job.command(cls=JobListing)
@any_jobs
@filter_options
@click.option(
    "--head", type=click.IntRange(0), metavar="N", help="Show only the first N jobs submitted."
)
@click.option(
    "--tail", type=click.IntRange(0), metavar="N", help="Show only the last N jobs submitted."
)
@click.option(
    "--members",
    is_flag=True,
    help="Show the members of an array, one line each, instead of the array.",
)
@targets_option("List the jobs of all targets of this file.")
@click.option(
    "--all",
    "everywhere",
    is_flag=True,
    help="List the jobs of all targets that IOSD_TARGETS or the profile names.",
)
@click.pass_obj
def ls(
    settings: Settings,
    /,
    addresses: tuple[ObjectRef, ...],
    head: int | None,
    tail: int | None,
    members: bool,
    targets_file: str | None,
    everywhere: bool,
    **wanted: Any,
) -> None:
    """List jobs in the order of submission: the jobs named, or all.

    JOB is an id, PID/OID, a name, or a partition, PID, for all its jobs. An array of jobs is one
    line; its members are named ARRAY[INDEX]. Several options select the jobs that match all of
    them.
    """
    chosen_by = JobFilter(**wanted)
    if head is not None and tail is not None:
        raise click.UsageError("--head and --tail exclude each other")

    def chosen_at(name: str, target: Target) -> list[tuple[str, JobStatus]]:
        found = list(listed(settings, target, addresses, chosen_by.partition))
        if members:
            found = [each for status in found for each in members_of(target, status)]
        return [(name, each) for each in chosen_by.of(target, found)]

    code, many = Exit.OK, everywhere or targets_file is not None
    if many:
        if addresses or settings.target:
            raise click.UsageError(
                "--targets and --all list the jobs of all targets: name no other"
            )
        with handle_of(settings, targets_file) as handle:
            at, errors = at_each(handle, chosen_at)
        chosen = [each for pairs in at.values() for each in pairs]
        code = report_errors(errors)
    else:
        with settings.connect() as target:
            chosen = chosen_at("", target)
    chosen.sort(key=lambda each: (submitted(each[1]), each[1].id))
    chosen = chosen[:head] if tail is None else chosen[max(0, len(chosen) - tail) :]
    records = [record_of(status) | ({"target": name} if many else {}) for name, status in chosen]
    columns = (Column("TARGET", lambda row: row["target"]), *COLUMNS) if many else COLUMNS
    settings.show(records, columns, "iosd.jobs/1", "jobs")
    if code:
        sys.exit(code)


def members_of(target: Target, status: JobStatus) -> Iterator[JobStatus]:
    """The members of an array; of another job itself."""
    array = known(target, status)
    return array.statuses() if isinstance(array, JobArray) else iter([status])


def listed(
    settings: Settings,
    target: Target,
    addresses: tuple[ObjectRef, ...],
    partition: ObjectRef | None,
) -> Iterator[JobStatus]:
    """The jobs named, all of the partitions named, or all there are: a command for each partition."""
    for address in addresses:
        if isinstance(address, LoneId) and settings.profile.partition is None:
            yield from target.jobs(address.partition_id)
        else:
            yield job_of(settings, target, address).status()
    if addresses:
        return
    if partition is None:
        yield from of_partitions_with_jobs(target, target.jobs)
    else:
        yield from target.jobs(partition.partition_id)


@job.command(cls=JobListing)
@some_jobs
@click.pass_obj
def status(settings: Settings, addresses: tuple[ObjectRef, ...]) -> None:
    """Show the state of jobs, or how they ended."""
    with settings.connect() as target:
        found = [each.status() for each in jobs_of(settings, target, addresses)]
    records = [record_of(each) for each in found]
    if len(records) == 1:
        settings.show_one(records[0], COLUMNS, wide=True)
    else:
        settings.show(records, COLUMNS, "iosd.jobs/1", "jobs", wide=True)


@job.command(cls=JobVerb)
@some_jobs
@click.pass_obj
def cancel(settings: Settings, addresses: tuple[ObjectRef, ...]) -> None:
    """Cancel jobs that have not started; exit 18 if one has.

    Of an array, cancel the members that have not started.
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
    """Kill jobs and print the state in which each ended."""
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
    """Remove ended jobs with their record, output and result."""
    settings.confirm(f"Remove {', '.join(map(str, addresses))} with output and result?")
    with settings.connect() as target:
        for each in jobs_of(settings, target, addresses):
            each.remove()


@job.command(cls=JobVerb)
@one_job
@click.pass_obj
def why(settings: Settings, address: ObjectRef) -> None:
    """Explain why a job waits, or why it ended."""
    with settings.connect() as target:
        each = whole_of(target, job_of(settings, target, address))
        state = each.status()
        log: list[str] = []
        more = array_lines(each) if isinstance(each, JobArray) else []
        if state.done and not more:
            log = [*collections.deque(each.logs(stream="stderr"), LAST_LINES)]
    print_prose(harmless(line) for line in [*explanation(state, []), *more])
    print_lines(last_lines(log))


def array_lines(array: JobArray) -> list[str]:
    """Lines about the members of an array."""
    place, counts = array.place, array.status().counts
    most = f", at most {place.at_once} at once" if place.at_once else ""
    lines = [f"Members {place.text}{most}: {counted(counts)}."]
    states = zip(place.indices, array.states(), strict=True)
    bad = [(index, state) for index, state in states if state.terminal and state not in WELL]
    lines += [f"  {array.id}[{index}] {state.name}" for index, state in bad[:LAST_LINES]]
    if bad:
        lines.append(f"See: osd job why '{array.id}[{bad[0][0]}]'")
    return lines


for each in (wait, watch, logs, report, result, retry, inputs, outputs, export, replay, diff):
    job.add_command(each)
