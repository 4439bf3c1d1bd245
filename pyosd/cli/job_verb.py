# SPDX-License-Identifier: GPL-2.0-or-later
"""What the verbs about jobs share: how a job is named, and what it means that one is absent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import click

from pyosd.cli.codes import Exit
from pyosd.cli.params import JOB, MemberRef
from pyosd.cli.verb import Failure, Listing, Settings, Verb
from pyosd.job import Job
from pyosd.job_array import known
from pyosd.target import Target
from pyosd.types import ObjectRef, ref

__all__ = [
    "JobListing",
    "JobVerb",
    "any_jobs",
    "job_of",
    "jobs_of",
    "one_job",
    "some_jobs",
    "whole_of",
    "wholes_of",
]


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


def any_jobs(function: Function) -> Function:
    """The arguments [JOB]..., of which there may be none."""
    return click.argument("addresses", metavar="[JOB]...", type=JOB, nargs=-1)(function)


def job_of(settings: Settings, target: Target, address: ObjectRef) -> Job:
    """The job that was named; an array may be behind it."""
    named = settings.job(address)
    if not isinstance(named, MemberRef):
        return target.job(named)
    array = target.array(ref(named.partition_id, named.object_id))
    try:
        return array.member(named.index)
    except (ValueError, IndexError) as error:
        raise Failure(Exit.JOB_UNKNOWN, str(error)) from None


def jobs_of(settings: Settings, target: Target, addresses: Sequence[ObjectRef]) -> Iterator[Job]:
    """The jobs that were named; arrays may be behind some of them."""
    for address in addresses:
        yield job_of(settings, target, address)


def whole_of(target: Target, job: Job) -> Job:
    """The same job, as a JobArray where it is one (asks the target)."""
    return job if job.member_of else known(target, job.status())


def wholes_of(settings: Settings, target: Target, addresses: Sequence[ObjectRef]) -> Iterator[Job]:
    """The jobs that were named, arrays as such (asks the target)."""
    for job in jobs_of(settings, target, addresses):
        yield whole_of(target, job)
