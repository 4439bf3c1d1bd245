# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd job`` and ``osd ps``: jobs, what they do, what they left, and how to end them."""

from __future__ import annotations

import collections
import json
import sys
from collections.abc import Callable, Iterator, Sequence

import click

from pyosd.cli.codes import Exit
from pyosd.cli.follow import await_end, print_output
from pyosd.cli.job_view import COLUMNS, exit_code, explanation, record_of
from pyosd.cli.output import print_json, print_records
from pyosd.cli.params import DURATION, JOB
from pyosd.cli.verb import Failure, Listing, Settings, Verb
from pyosd.job_status import JobState, JobStatus
from pyosd.jobs import Job
from pyosd.target import Target
from pyosd.types import ObjectRef

__all__ = ["job", "ls"]

LAST_LINES = 10


class JobVerb(Verb):
    """A verb about jobs, where something absent is a job."""

    absent = Exit.JOB_UNKNOWN


class JobListing(Listing):
    """A listing of jobs."""

    absent = Exit.JOB_UNKNOWN


Function = Callable[..., None]


def one_job(function: Function) -> Function:
    """The argument JOB."""
    return click.argument("address", metavar="JOB", type=JOB)(function)


def some_jobs(function: Function) -> Function:
    """The arguments JOB..."""
    return click.argument("addresses", metavar="JOB...", type=JOB, nargs=-1, required=True)(
        function
    )


def jobs_of(settings: Settings, target: Target, addresses: Sequence[ObjectRef]) -> Iterator[Job]:
    """The jobs that were named."""
    for address in addresses:
        yield target.job(settings.job(address))


def show(settings: Settings, statuses: list[JobStatus]) -> None:
    """Print jobs in the format asked for."""
    print_records(
        [record_of(status) for status in statuses],
        COLUMNS,
        output=settings.output,
        schema="iosd.jobs/1",
        name="jobs",
        header=settings.header,
        colour=settings.colour_on_stdout,
    )


@click.group()
def job() -> None:
    """Jobs: scripts that run, will run or have run next to the data."""


@job.command(cls=JobListing)
@click.argument("addresses", metavar="[JOB]...", type=JOB, nargs=-1)
@click.option(
    "--state",
    "states",
    type=click.Choice([state.name for state in JobState], case_sensitive=False),
    multiple=True,
    help="Only jobs in this state; may be given again.",
)
@click.pass_obj
def ls(settings: Settings, addresses: tuple[ObjectRef, ...], states: tuple[str, ...]) -> None:
    """List jobs: those named, else all there are."""
    with settings.connect() as target:
        if addresses:
            found = [each.status() for each in jobs_of(settings, target, addresses)]
        else:
            found = [each for pid in target.list_partitions() for each in target.jobs(pid)]
    show(settings, [each for each in found if not states or each.state.name in states])


@job.command(cls=JobListing)
@some_jobs
@click.pass_obj
def status(settings: Settings, addresses: tuple[ObjectRef, ...]) -> None:
    """Show what jobs do now, or how they ended."""
    with settings.connect() as target:
        found = [each.status() for each in jobs_of(settings, target, addresses)]
    if settings.output == "json" and len(found) == 1:
        print_json(record_of(found[0]))
    else:
        settings.output = "wide" if settings.output == "table" else settings.output
        show(settings, found)


@job.command(cls=JobVerb)
@some_jobs
@click.option("--timeout", type=DURATION, help="Give up waiting after so long (exit code 124).")
@click.option(
    "--exit-code",
    "style",
    type=click.Choice(["state", "script"]),
    default="state",
    help="Exit with a code for the state, or the script's own.  [state]",
)
@click.pass_obj
def wait(
    settings: Settings, addresses: tuple[ObjectRef, ...], timeout: float | None, style: str
) -> None:
    """Wait until jobs have ended.

    The first that is not COMPLETED gives the exit code.
    """
    code = 0
    with settings.connect() as target:
        for each in jobs_of(settings, target, addresses):
            ended = await_end(each, settings, timeout)
            code = code or exit_code(ended, style)
    sys.exit(code)


@job.command(cls=JobVerb)
@one_job
@click.option("-f", "--follow", is_flag=True, help="Go on until the job has ended.")
@click.option("--stderr", is_flag=True, help="Standard error, once the job has ended.")
@click.option("--tail", type=click.IntRange(0), help="Only the last so many lines.")
@click.pass_obj
def logs(
    settings: Settings, address: ObjectRef, follow: bool, stderr: bool, tail: int | None
) -> None:
    """Print what the script has printed so far."""
    with settings.connect() as target:
        each = target.job(settings.job(address))
        if tail is None and not stderr:
            each.poll()  # an object that is no job shall not be printed
            print_output(each, follow=follow)
            return
        lines = each.logs(follow=follow, stream="stderr" if stderr else "stdout")
        each.poll()
        for line in lines if tail is None else collections.deque(lines, tail):
            click.echo(line)


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
