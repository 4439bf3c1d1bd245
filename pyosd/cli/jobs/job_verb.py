# SPDX-License-Identifier: GPL-2.0-or-later
"""Common parts of the verbs about jobs: names of jobs, and errors about absent jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import click

from pyosd.cli.frame.addresses import JobName, MemberRef
from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.params import JOB
from pyosd.cli.frame.verb import Failure, Listing, Settings, Verb, explain
from pyosd.errors import PermissionDenied
from pyosd.jobs.job import Job
from pyosd.jobs.listed import of_partitions_with_jobs
from pyosd.target import Target
from pyosd.types import ObjectRef, ref
from pyosd.wire.job_status import JobStatus

__all__ = [
    "JobListing",
    "JobVerb",
    "any_jobs",
    "ended_job",
    "job_of",
    "jobs_of",
    "one_job",
    "some_jobs",
    "whole_of",
    "wholes_of",
]


OTHER_TYPE = 128  # the byte of the CDB at fault when the capability is for another type of object


class AboutJobs(Verb):
    """A verb that ends with JOB_UNKNOWN if a job is absent, or is another user's and concealed."""

    absent = Exit.JOB_UNKNOWN

    def explain(self, error: BaseException) -> tuple[Exit, str]:
        """Give one answer for a job that is absent and for another user's job.

        The target conceals from a user with the role `run` whether an object exists: it refuses the
        capability in both cases.
        """
        if isinstance(error, PermissionDenied) and error.field_pointer == OTHER_TYPE:
            text = f"{error.named_object} is no job of this user, or its record is gone"
            return Exit.JOB_UNKNOWN, f"{text}\n  osd ps lists the jobs that this user can follow"
        return explain(error)


class JobVerb(AboutJobs):
    """A verb about jobs."""


class JobListing(AboutJobs, Listing):
    """A listing of jobs."""


VerbBody = Callable[..., None]
NAMED_SHOWN = 10  # jobs of one name


def one_job(function: VerbBody) -> VerbBody:
    """The argument JOB."""
    return click.argument("address", metavar="JOB", type=JOB)(function)


def some_jobs(function: VerbBody) -> VerbBody:
    """The arguments JOB..."""
    return click.argument("addresses", metavar="JOB...", type=JOB, nargs=-1, required=True)(
        function
    )


def any_jobs(function: VerbBody) -> VerbBody:
    """The arguments [JOB]..., of which there may be none."""
    return click.argument("addresses", metavar="[JOB]...", type=JOB, nargs=-1)(function)


def job_of(settings: Settings, target: Target, address: ObjectRef) -> Job:
    """The job that was named; an array may be behind it."""
    named = settings.job(address)
    if isinstance(named, JobName):
        return target.job(with_name(target, named.name))
    if not isinstance(named, MemberRef):
        return target.job(named)
    place = with_name(target, named.name) if named.name else named
    array = target.array(ref(place.partition_id, place.object_id))
    try:
        return array.member(named.index)
    except (ValueError, IndexError) as error:
        raise Failure(Exit.JOB_UNKNOWN, str(error)) from None


def ended_job(settings: Settings, target: Target, address: ObjectRef) -> tuple[Job, JobStatus]:
    """The same, and its status.  Raises: Failure: it has not ended."""
    job = job_of(settings, target, address)
    status = job.status()
    if not status.done:
        raise Failure(Exit.WRONG_STATE, f"{job.id} is {status.state.name}: osd job wait {job.id}")
    return job, status


def with_name(target: Target, name: str) -> ObjectRef:
    """The one job that has this name.  Raises: Failure: none has, or several have."""
    found = [each for each in of_partitions_with_jobs(target, target.jobs) if each.name == name]
    if not found:
        raise Failure(Exit.JOB_UNKNOWN, f"no job has the name '{name}', and it is no job's id")
    if len(found) > 1:
        from pyosd.cli.jobs.job_filter import submitted

        found.sort(key=submitted, reverse=True)
        ids = ", ".join(f"{each.id} ({each.state.name})" for each in found[:NAMED_SHOWN])
        more = f" and {len(found) - NAMED_SHOWN} more" if len(found) > NAMED_SHOWN else ""
        text = f"{len(found)} jobs have the name '{name}'; say which by its id, the last first: "
        raise Failure(Exit.USAGE, text + ids + more)
    return found[0].id


def jobs_of(settings: Settings, target: Target, addresses: Sequence[ObjectRef]) -> Iterator[Job]:
    """The jobs that were named; arrays may be behind some of them."""
    for address in addresses:
        yield job_of(settings, target, address)


def whole_of(target: Target, job: Job) -> Job:
    """The same job, as a JobArray where it is one (asks the target)."""
    from pyosd.jobs.job_array import known

    return job if job.member_of else known(target, job.status())


def wholes_of(settings: Settings, target: Target, addresses: Sequence[ObjectRef]) -> Iterator[Job]:
    """The jobs that were named, arrays as such (asks the target)."""
    for job in jobs_of(settings, target, addresses):
        yield whole_of(target, job)
