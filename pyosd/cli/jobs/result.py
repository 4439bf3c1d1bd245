# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd job result``: what jobs gave to osd.result(), also of an array of which some members failed."""

from __future__ import annotations

import base64
import sys
from math import isfinite
from typing import Any

import click

from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.verb import Failure, Settings
from pyosd.cli.jobs.job_verb import JobVerb, job_of, one_job, whole_of
from pyosd.cli.jobs.job_view import exit_code
from pyosd.cli.output.tables import JsonRow, print_json
from pyosd.cli.output.terminal import RAW, output_option, output_to
from pyosd.errors import JobError
from pyosd.jobs.job import Job
from pyosd.jobs.job_array import JobArray
from pyosd.types import ObjectRef

__all__ = ["print_result", "result"]

NAMED_MOST = 10  # failed members that the last line names


@click.command(cls=JobVerb)
@one_job
@RAW
@output_option(
    "text",
    "json",
    text="Output format: text, or one JSON object for a job or array.",
)
@click.pass_obj
def result(settings: Settings, address: ObjectRef, raw: bool) -> None:
    """Print what the script gave to osd.result().

    Bytes are printed unchanged; on a terminal control characters are escaped. Other values are
    printed as JSON: arrays of numpy as nested lists, nan and inf as text. For an array of jobs the
    result is a list of its members' results, in order of index.

    A member that did not complete has null in that list, and a line on standard error names it. The
    exit code is that of the array (10 if a member failed).  With -o json each member has its state,
    and its error or its result.
    """
    with settings.connect() as target:
        job = whole_of(target, job_of(settings, target, address))
        state = job.status().state
        if not state.terminal:
            raise Failure(Exit.WRONG_STATE, f"{job.id} is {state.name}: osd job wait {job.id}")
        if isinstance(job, JobArray):
            sys.exit(print_array(settings, job))
        if settings.output == "json":
            print_json({"schema": "iosd.result/1", **outcome_of(job)})
            sys.exit(exit_code(job.status()))
        print_value(settings, job, raw)


def print_value(settings: Settings, job: Job, raw: bool) -> None:
    """Print the result of one job that has ended."""
    value = job.result()
    if value is None and not job.status().result_length:  # osd.result(None) leaves one: null
        settings.say(f"{job.label} left no result")
    else:
        print_result(value, raw)


def print_result(value: Any, raw: bool) -> None:
    """Print what a script gave to osd.result()."""
    if isinstance(value, bytes):
        output_to(sys.stdout, raw).write(value)
    else:
        print_json(as_lists(value))


def as_lists(value: Any) -> Any:
    """A result with its arrays as nested lists; complex numbers, nan and inf, which JSON lacks, as text.

    An array without elements is []: a script can give it any lengths in its other dimensions.
    """
    if isinstance(value, dict):
        return {key: as_lists(each) for key, each in value.items()}
    if isinstance(value, list):
        return [as_lists(each) for each in value]
    if isinstance(value, complex) or (isinstance(value, float) and not isfinite(value)):
        return str(value)
    if not hasattr(value, "tolist"):
        return value
    return as_lists(value.tolist()) if value.size else []


def outcome_of(job: Job) -> JsonRow:
    """State and result or error of a job that has ended."""
    error = job.exception()
    known: JsonRow = {"id": str(job.id)}
    if isinstance(error, JobError):
        return {**known, "state": job.status().state.name, "error": str(error)}
    if error is not None:
        raise error
    value = job.result()
    known["state"] = job.status().state.name
    if isinstance(value, bytes):
        return {**known, "result_base64": base64.b64encode(value).decode()}
    return {**known, "result": as_lists(value)}


def print_array(settings: Settings, array: JobArray) -> int:
    """Print the results of all members that completed, and name the others.

    Returns: the exit code.
    """
    for _ in array.as_completed():  # fetches all ends, many commands under way at a time
        pass
    outcomes = [
        {"index": index, **outcome_of(member)}
        for index, member in zip(array.indices, array, strict=True)
    ]
    failed = [each for each in outcomes if "error" in each]
    if settings.output == "json":
        print_json({"schema": "iosd.results/1", "id": str(array.id), "members": outcomes})
    elif len(failed) == len(array):
        pass  # nothing to print, and a list of nulls would hide that
    elif any("result_base64" in each for each in outcomes):
        text = f"members of {array.id} left bytes: osd job result '{array.id}[INDEX]', or -o json"
        raise Failure(Exit.FAILED, text)
    else:
        print_json([each.get("result") for each in outcomes])
    if failed:
        settings.say(missing(array, failed))
    return exit_code(array.status())


def missing(array: JobArray, failed: list[dict[str, Any]]) -> str:
    """The line that names the members without a result."""
    named = ", ".join(f"[{each['index']}] {each['state']}" for each in failed[:NAMED_MOST])
    more = len(failed) - NAMED_MOST
    rest = f" and {more} more" if more > 0 else ""
    return (
        f"{len(failed)} of {len(array)} members did not complete: {named}{rest}; "
        f"run them again: osd job retry {array.id} --failed"
    )
