# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd job inputs``, ``outputs`` and ``export``: the objects that a job has used."""

from __future__ import annotations

import click

from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.verb import Failure, Settings
from pyosd.cli.jobs.job_verb import JobListing, JobVerb, ended_job, job_of, one_job
from pyosd.cli.output.tables import Column, JsonRow, print_json
from pyosd.errors import Conflict
from pyosd.jobs.job import Job
from pyosd.types import ObjectRef
from pyosd.wire.used import CHANGES, READS, Used, UsedKind, UsedObject

__all__ = ["export", "inputs", "outputs"]

SCHEMA = "iosd.job-used/1"


@click.command(cls=JobListing)
@one_job
@click.pass_obj
def inputs(settings: Settings, address: ObjectRef) -> None:
    """List the objects that a job has read, with the versions of their data.

    The list is stored when the job ends.  A version changes with each change of an object's data.
    """
    columns = (
        Column("VERSION", lambda row: row["version"] or "-"),
        Column("BYTES", ranges_text, shrink=True),
    )
    show(settings, address, READS, columns)


@click.command(cls=JobListing)
@one_job
@click.pass_obj
def outputs(settings: Settings, address: ObjectRef) -> None:
    """List the objects that a job has changed, made or removed, with the versions of their data."""
    columns = (
        Column("BEFORE", lambda row: row["before"] or "-"),
        Column("AFTER", lambda row: row["after"] or "-"),
    )
    show(settings, address, CHANGES, columns)


@click.command(cls=JobVerb)
@one_job
@click.option("--prov", is_flag=True, help="Write PROV-JSON of the W3C.")
@click.pass_obj
def export(settings: Settings, address: ObjectRef, prov: bool) -> None:
    """Write how the result of an ended job came about, for other programs.

    The document names the job, its user, code, package set and times, and the objects that it used, with
    their versions. Of an array, export each member.
    """
    if not prov:
        raise click.UsageError("name the form: --prov")
    with settings.connect() as target:
        job, _ = ended_job(settings, target, address)
        try:
            print_json(job.provenance())
        except Conflict as error:
            raise Failure(Exit.WRONG_STATE, str(error)) from None


def show(
    settings: Settings, address: ObjectRef, kinds: UsedKind, columns: tuple[Column, ...]
) -> None:
    """Print the objects that were used in one of these ways."""
    with settings.connect() as target:
        job = job_of(settings, target, address)
        found = used_by(job).only(kinds)
    records = [record_of(each, kinds) for each in found.objects]
    if settings.output == "json":
        print_json(
            {"schema": SCHEMA, "job": str(job.id), "left_out": found.left_out, "objects": records}
        )
        return
    if not found.complete:
        settings.say(f"too many objects: {found.left_out} uses of further objects are not listed")
    first = Column("OBJECT", lambda row: row["id"])
    how = Column("HOW", lambda row: ",".join(row["how"]), shrink=True)
    settings.show(records, (first, how, *columns), SCHEMA, "objects")


def used_by(job: Job) -> Used:
    """The objects that a job has used.  Raises: Failure: they are not known."""
    try:
        return job.used()
    except Conflict as error:
        raise Failure(Exit.WRONG_STATE, str(error)) from None


def record_of(used: UsedObject, kinds: UsedKind) -> JsonRow:
    """One object as JSON."""
    return {
        "schema": "iosd.used-object/1",
        "id": str(used.object),
        "how": [each.name.lower() for each in UsedKind if each & used.kinds & kinds and each.name],
        "version": used.version.hex(),
        "ranges": [list(each) for each in used.ranges],
        "before": used.before.hex(),
        "after": used.after.hex(),
    }


def ranges_text(record: JsonRow) -> str:
    """The bytes that were read: START-END, END not included."""
    if "whole" in record["how"]:
        return "unknown"
    return ",".join(f"{start}-{end}" for start, end in record["ranges"]) or "-"
