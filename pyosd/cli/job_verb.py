# SPDX-License-Identifier: GPL-2.0-or-later
"""What the verbs about jobs share: how a job is named, and what it means that one is absent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import click

from pyosd.cli.codes import Exit
from pyosd.cli.params import JOB
from pyosd.cli.verb import Listing, Settings, Verb
from pyosd.jobs import Job
from pyosd.target import Target
from pyosd.types import ObjectRef

__all__ = ["JobListing", "JobVerb", "any_jobs", "jobs_of", "one_job", "some_jobs"]


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


def jobs_of(settings: Settings, target: Target, addresses: Sequence[ObjectRef]) -> Iterator[Job]:
    """The jobs that were named."""
    for address in addresses:
        yield target.job(settings.job(address))
