# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd fn log``: the calls of a function, and why the last ones failed."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from datetime import datetime

import click

from pyosd.cli.frame.verb import Settings, Verb
from pyosd.cli.functions.names import NAME, PARTITION, functions_of
from pyosd.cli.jobs.job_filter import submitted
from pyosd.cli.jobs.job_view import last_line
from pyosd.cli.output.tables import JsonRow, counted, format_time, print_json, print_lines
from pyosd.cli.output.terminal import TEXT_OR_JSON
from pyosd.functions import Function, FunctionCalls, FunctionFailure
from pyosd.jobs.dialogues.record import record_of
from pyosd.jobs.listed import of_partitions_with_jobs
from pyosd.jobs.reasons import REASONS
from pyosd.target import Target
from pyosd.types import ObjectRef
from pyosd.wire.job_status import JobStatus

__all__ = ["log"]

LAST_LINES = 10  # of each call's standard error


def milliseconds(when: datetime | None) -> int | None:
    """Milliseconds since 1970; None stays None."""
    return None if when is None else round(when.timestamp() * 1000)


def failure_record(failure: FunctionFailure | None) -> JsonRow | None:
    """The last failure, as JSON has it."""
    if failure is None:
        return None
    return {
        "ended_ms": milliseconds(failure.when),
        "reason": failure.reason,
        "method": failure.method,
        "report": failure.report,
    }


def heading(function: Function, calls: FunctionCalls) -> str:
    """The line of counts."""
    name = f"{function.name} ({function.id})" if function.name else str(function.id)
    if not function.active:
        return f"{name} is not active: the target counts calls of active functions only"
    last = f", the last one at {format_time(milliseconds(calls.last))}" if calls.last else ""
    return (
        f"{name}: {counted(calls.plain, 'call')} without a record, {calls.recorded} with one, "
        f"{calls.failed} failed{last}"
    )


def failure_lines(failure: FunctionFailure) -> Iterator[str]:
    """The last failure, for people."""
    reason = REASONS.get(failure.reason)
    label = f": {reason.label}" if reason else ""
    yield (
        f"The last failure: {format_time(milliseconds(failure.when))}, entry point "
        f"{failure.method}, reason {failure.reason}{label}"
    )
    yield from (f"  {line}" for line in failure.report.splitlines())


def job_lines(target: Target, status: JobStatus) -> Iterator[str]:
    """A call with a record: how it ended, and the end of its standard error."""
    when = format_time(milliseconds(status.submitted))
    yield f"{when} {last_line(status) if status.done else f'{status.id} {status.state}'}"
    if status.stderr_length:
        lines = collections.deque(target.job(status.id).logs(stream="stderr"), LAST_LINES)
        yield from (f"  {line}" for line in lines)


def recorded(target: Target, function: ObjectRef, tail: int) -> list[JobStatus]:
    """The last calls with a record, the earliest first."""
    every = of_partitions_with_jobs(target, target.jobs)
    found = (each for each in every if each.function == function)
    by_time = sorted(found, key=lambda each: (submitted(each), each.id))
    return by_time[max(0, len(by_time) - tail) :]


@click.command(cls=Verb)
@click.argument("name", type=NAME)
@click.option(
    "--tail",
    type=click.IntRange(0),
    default=10,
    metavar="N",
    help="Show only the last N calls that have a record.  [10]",
)
@PARTITION
@TEXT_OR_JSON
@click.pass_obj
def log(settings: Settings, name: str | int | ObjectRef, tail: int, partition: int | None) -> None:
    """Show the calls of a function: their number, the last failure, and those with a record.

    The target counts in memory: from the activation of the function, or from its own start. Of the
    last call that failed without a record it keeps the last 4 KiB of the report. Calls with a record
    are shown with the last 10 lines of their standard error.
    """
    with settings.connect() as target:
        functions = functions_of(target, partition)
        function = functions.show(name)
        calls = functions.calls(function)
        jobs = recorded(target, function.id, tail)
        if settings.output == "json":
            print_json(
                {
                    "schema": "iosd.function_log/1",
                    "id": str(function.id),
                    "name": function.name,
                    "plain": calls.plain,
                    "recorded": calls.recorded,
                    "failed": calls.failed,
                    "last_ms": milliseconds(calls.last),
                    "failure": failure_record(calls.failure),
                    "under_way": [
                        {"job": each.job and str(each.job), "principal": each.principal}
                        for each in calls.under_way
                    ],
                    "jobs": [record_of(each) for each in jobs],
                }
            )
            return
        lines = [heading(function, calls)]
        lines += [f"Under way: {each}" for each in calls.under_way]
        if calls.failure:
            lines += failure_lines(calls.failure)
        for each in jobs:
            lines += job_lines(target, each)
        print_lines(lines)
