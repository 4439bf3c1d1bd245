# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd obj copy`` and ``osd obj map``: copies inside the target, and where an object has data."""

from __future__ import annotations

import click

from pyosd.cli.frame.params import ADDRESS, OBJECT, SIZE
from pyosd.cli.frame.verb import Listing, Settings, Verb
from pyosd.cli.output.tables import Column, JsonRow, format_bytes
from pyosd.types import ObjectRef
from pyosd.wire.cdb import Duplication
from pyosd.wire.list_data import MapType

__all__ = ["copy", "map_"]

METHODS = {
    "default": Duplication.DEFAULT,
    "space": Duplication.SPACE_EFFICIENT,
    "bytes": Duplication.BYTE_BY_BYTE,
    "fast": Duplication.FASTER_COPY,
}
TYPES = {
    "all": MapType.ALL,
    "data": MapType.WRITTEN,
    "hole": MapType.HOLE,
    "damaged": MapType.DAMAGED,
}
NAMES: dict[int, str] = {
    MapType.WRITTEN: "data",
    MapType.HOLE: "hole",
    MapType.DAMAGED: "damaged",
    MapType.DAMAGED_ATTRIBUTES: "damaged attributes",
}
COLUMNS = (
    Column("OFFSET", lambda row: str(row["offset"]), right=True),
    Column("LENGTH", lambda row: str(row["length"]), right=True),
    Column("SIZE", lambda row: format_bytes(row["length"]), right=True, wide=True),
    Column("TYPE", lambda row: row["type"]),
)


@click.command(cls=Verb)
@click.argument("source", type=OBJECT)
@click.argument("destination", type=ADDRESS)
@click.option("--no-attributes", is_flag=True, help="Copy only the data, without the attributes.")
@click.option(
    "--method",
    type=click.Choice(list(METHODS)),
    default="default",
    help="Method of the copy.  [default]",
)
@click.pass_obj
def copy(
    settings: Settings,
    source: ObjectRef,
    destination: ObjectRef,
    no_attributes: bool,
    method: str,
) -> None:
    """Copy an object inside the target and print the copy's id.

    DESTINATION is PID/OID with the new id, or a partition: then the target chooses the id. --method
    space shares blocks if the file system supports that; bytes never does.
    """
    if not destination.partition_id:
        raise click.UsageError("a copy goes to a partition: PID or PID/OID")
    with settings.connect() as target:
        made = target.copy(
            source,
            destination.partition_id,
            destination.object_id,
            with_attributes=not no_attributes,
            method=METHODS[method],
        )
    click.echo(made)


@click.command("map", cls=Listing)
@click.argument("address", type=OBJECT)
@click.option("--offset", type=SIZE, default=0, help="First byte of the range to show.  [0]")
@click.option(
    "--type",
    "kind",
    type=click.Choice(list(TYPES)),
    default="all",
    help="Show only extents of this kind.  [all]",
)
@click.pass_obj
def map_(settings: Settings, address: ObjectRef, offset: int, kind: str) -> None:
    """Show which ranges of an object have data and which are holes."""
    with settings.connect() as target:
        extents = target.read_map(address, offset, TYPES[kind])
    records: list[JsonRow] = [
        {
            "schema": "iosd.extent/1",
            "id": str(each.start),
            "offset": each.start,
            "length": each.length,
            "type": NAMES.get(each.type, str(each.type)),
        }
        for each in extents
    ]
    settings.show(records, COLUMNS, "iosd.extents/1", "extents")
