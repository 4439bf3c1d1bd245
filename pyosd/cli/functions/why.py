# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd why``: how the data of an object came about when it was last read."""

from __future__ import annotations

from dataclasses import asdict

import click

from pyosd.cli.frame.params import OBJECT
from pyosd.cli.frame.verb import Settings, Verb
from pyosd.cli.functions.names import functions_of
from pyosd.cli.output.tables import (
    JsonRow,
    format_seconds,
    format_time,
    print_json,
    print_prose,
)
from pyosd.cli.output.terminal import TEXT_OR_JSON, harmless
from pyosd.functions import DataOrigin, OriginStage
from pyosd.types import ObjectRef
from pyosd.wire.job_status import is_apart

__all__ = ["why"]


def sentence_of(stage: OriginStage) -> str:
    """A line about a stage."""
    signed = f"signed by {stage.signer}" if stage.signer else "not signed"
    name = stage.name or str(stage.function)
    return (
        f"  {name}@{stage.method} ({stage.function}, {stage.engine}, SHA-256 {stage.sha256[:16]}, "
        f"{signed})"
    )


def explanation(obj: ObjectRef, found: DataOrigin | None) -> list[str]:
    """The lines for people."""
    if found is None:
        return [
            f"The target knows of no READ of {obj} that passed through functions since it started.",
            f"See: osd attached {obj}",
        ]
    of = "its stored bytes" if found.source == obj else f"the stored bytes of {found.source}"
    lines = [f"A READ of {obj} returns {of}, passed through:"]
    lines += [sentence_of(each) for each in found.stages]
    if found.read:
        how = "was kept from a READ before" if found.read.kept else "was computed"
        lines += [
            f"The last READ ended at {format_time(found.read.ended_ms)}. Its result {how}; it took "
            f"{format_seconds(found.read.seconds)}.",
            f"It had version {found.read.version.hex()} of the stored bytes.",
        ]
    if not found.deterministic:
        lines.append("Its result is never kept: not all functions are deterministic.")
    if not found.current:
        lines.append("The functions have changed since. The next READ passes the present ones.")
    return lines


def record_of(obj: ObjectRef, found: DataOrigin | None) -> JsonRow:
    """The record."""
    record: JsonRow = {"schema": "iosd.origin/1", "id": str(obj), "origin": None}
    if found is None:
        return record
    read = found.read and {**asdict(found.read), "version": found.read.version.hex()}
    stages = [{**asdict(each), "function": str(each.function)} for each in found.stages]
    origin = {**asdict(found), "source": str(found.source), "stages": stages, "read": read}
    return {**record, "origin": origin}


@click.command(cls=Verb)
@click.argument("address", type=OBJECT)
@TEXT_OR_JSON
@click.pass_obj
def why(settings: Settings, address: ObjectRef) -> None:
    """Explain how the data of an object came about when it was last read.

    Shows the object with the stored bytes and the functions that they passed through. For the last
    READ: the version of the stored bytes, and whether its result was kept or computed, and its time.
    For a job, see 'osd job why'.
    """
    if is_apart(address):
        raise click.UsageError(f"{address} is a job: osd job why {address}")
    with settings.connect() as target:
        found = functions_of(target, None).origin(address)
    if settings.output == "json":
        print_json(record_of(address, found))
    else:
        print_prose(harmless(line) for line in explanation(address, found))
