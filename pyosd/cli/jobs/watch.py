# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd job wait`` and ``osd job watch``: until jobs have ended, or something has happened to them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click

from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.param_type import ParamType
from pyosd.cli.frame.params import DURATION
from pyosd.cli.frame.verb import Settings
from pyosd.cli.jobs.follow import FollowedJobs, Show, await_end, follow, lines, shown_by, table
from pyosd.cli.jobs.job_verb import JobVerb, any_jobs, jobs_of, some_jobs
from pyosd.cli.jobs.job_view import exit_code
from pyosd.cli.output.progress import watched
from pyosd.cli.output.tables import print_json
from pyosd.cli.output.terminal import output_option
from pyosd.jobs.dialogues.followed import expired
from pyosd.jobs.dialogues.record import record_of
from pyosd.jobs.job import Job
from pyosd.jobs.listed import of_partitions_with_jobs
from pyosd.target import Target
from pyosd.types import ObjectRef
from pyosd.wire.job_status import JobState, JobStatus

__all__ = ["wait", "watch"]

QUANTIFIERS: dict[str, Callable[[Iterator[bool]], bool]] = {
    "any": any,
    "all": all,
    "none": lambda each: not any(each),
}
# Besides the states' own names.
GROUPS: dict[str, Callable[[JobState], bool]] = {
    "ended": lambda state: state.terminal,
    "unsuccessful": lambda state: state.terminal and state is not JobState.COMPLETED,
    "started": lambda state: state not in (JobState.QUEUED, JobState.HELD),
}


@dataclass(frozen=True)
class AwaitedState:
    """Leave with a code when any, all or none of the jobs are in a state."""

    quantifier: str
    state: str
    code: int

    def holds(self, crowd: FollowedJobs) -> bool:
        """Whether it is so now; a job without a record has ended, and is in no state of its own."""
        return QUANTIFIERS[self.quantifier](map(self._fits, crowd.said.values()))

    def _fits(self, status: JobStatus | None) -> bool:
        if status is None:
            return self.state == "ended"
        if self.state in GROUPS:
            return GROUPS[self.state](status.state)
        return status.state.name.lower() == self.state


class ConditionType(ParamType[AwaitedState]):
    """WHICH:STATE:CODE."""

    name = "WHICH:STATE:CODE"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> AwaitedState:
        """Parse, such as any:failed:10."""
        if isinstance(value, AwaitedState):
            return value
        quantifier, _, rest = str(value).lower().partition(":")
        state, _, code = rest.partition(":")
        if quantifier not in QUANTIFIERS:
            self.fail(f"'{quantifier}' is not any, all or none", param, ctx)
        if state not in GROUPS and state.upper() not in JobState.__members__:
            known = ", ".join([*(each.name.lower() for each in JobState), *GROUPS])
            self.fail(f"'{state}' is not one of {known}", param, ctx)
        if not code.isdecimal() or int(code) > 255:
            self.fail(f"'{code}' is not an exit code of 0 to 255", param, ctx)
        return AwaitedState(quantifier, state, int(code))


def code_of(crowd: FollowedJobs, style: str = "state") -> int:
    """The exit code of the first job that is not COMPLETED; 0 when all are.

    Raises: JobExpired: that one is no job, or its record is gone.
    """
    for job in crowd.jobs:
        status = crowd.said[job]
        if status is None:
            raise expired(job.id, job)
        code = exit_code(status, style)
        if code:
            return code
    return Exit.OK


@click.command(cls=JobVerb)
@some_jobs
@click.option("--timeout", type=DURATION, help="Stop waiting after this time (exit code 124).")
@click.option(
    "--exit-code",
    "style",
    type=click.Choice(["state", "script", "worst"]),
    default="state",
    help="Exit with a code for the state, the script's own, or the worst of an array's members.  "
    "[state]",
)
@click.pass_obj
def wait(
    settings: Settings, addresses: tuple[ObjectRef, ...], timeout: float | None, style: str
) -> None:
    """Wait until jobs have ended.

    The exit code is that of the first job that is not COMPLETED.
    """
    with settings.connect() as target:
        crowd = FollowedJobs(jobs_of(settings, target, addresses))
        if len(crowd.jobs) == 1:
            sys.exit(exit_code(await_end(crowd.jobs[0], settings, timeout), style))
        follow(crowd, shown_by(settings, crowd), timeout=timeout)
        sys.exit(code_of(crowd, style))


@contextmanager
def records(settings: Settings) -> Iterator[Show]:
    """A record on stdout for each change of state, with all that a record has."""

    def show(crowd: FollowedJobs) -> None:
        crowd.complete_changed()
        for job in crowd.changed:
            status = crowd.said[job]
            gone = {"schema": "iosd.job/1", "id": str(job.id), "state": None}
            print_json(gone if status is None else record_of(status))
            sys.stdout.flush()

    yield show


def unfinished(target: Target) -> list[Job]:
    """All jobs that have not ended."""
    every = of_partitions_with_jobs(target, target.jobs)
    return [target.job(each.id) for each in every if not each.done]


@click.command(cls=JobVerb)
@any_jobs
@click.option(
    "--exit",
    "conditions",
    type=ConditionType(),
    multiple=True,
    help="Exit with CODE when WHICH (any, all, none) of the jobs are in STATE: a "
    "state's name, ended, unsuccessful or started.  May be given more than once; "
    "the first that holds counts.",
)
@click.option("--timeout", type=DURATION, help="Stop watching after this time (exit code 124).")
@output_option(
    "table",
    "jsonl",
    text="Output format; jsonl: the whole record of a job at each change of state.",
)
@click.pass_obj
def watch(
    settings: Settings,
    addresses: tuple[ObjectRef, ...],
    conditions: tuple[AwaitedState, ...],
    timeout: float | None,
) -> None:
    """Show the progress of jobs until all have ended.

    Without JOB it shows all unfinished jobs. On a terminal stderr shows a live table, elsewhere a
    line for each change of state. The exit code is that of the first job that is not COMPLETED,
    unless a condition of --exit is met before.
    """
    with settings.connect() as target:
        named = jobs_of(settings, target, addresses) if addresses else unfinished(target)
        crowd = FollowedJobs(named)
        if not crowd.jobs:
            settings.say("there are no unfinished jobs")
            return

        def enough(crowd: FollowedJobs) -> bool:
            return any(each.holds(crowd) for each in conditions)

        if settings.output == "jsonl":
            shown = records(settings)
        else:
            shown = table(settings) if watched(settings.quiet) else lines(settings)
        follow(crowd, shown, timeout=timeout, enough=enough)
        held = [each.code for each in conditions if each.holds(crowd)]
        sys.exit(held[0] if held else code_of(crowd))
