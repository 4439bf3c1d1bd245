# SPDX-License-Identifier: GPL-2.0-or-later
"""User objects as rows: what verbs that list or find them show."""

from __future__ import annotations

from collections.abc import Iterable

from pyosd import errors
from pyosd.cli.frame.verb import Settings
from pyosd.cli.output.tables import Column, JsonRow, format_bytes, format_time
from pyosd.commands import Commands
from pyosd.types import AttributeId, AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import Information, Page, Timestamp

__all__ = ["COLUMNS", "USERNAME", "describe", "show_objects", "show_partition"]

SCHEMA = "iosd.object/1"
WANTED = {
    "length_bytes": AttributeId(Page.USER_INFORMATION, Information.LOGICAL_LENGTH),
    "used_bytes": AttributeId(Page.USER_INFORMATION, Information.USED_CAPACITY),
    "created_ms": AttributeId(Page.USER_TIMESTAMPS, Timestamp.CREATED),
    "modified_ms": AttributeId(Page.USER_TIMESTAMPS, Timestamp.DATA_MODIFIED),
}
USERNAME = AttributeId(Page.USER_INFORMATION, Information.NAME)


def shown(length: int | None) -> str:
    """A length; "?": it is not known before the data are read."""
    return "?" if length is None else str(length)


COLUMNS = (
    Column("OBJECT", lambda row: row["id"]),
    Column("LENGTH", lambda row: shown(row["length_bytes"]), right=True),
    Column("USED", lambda row: format_bytes(row["used_bytes"]), right=True, wide=True),
    Column("CREATED", lambda row: format_time(row["created_ms"]), wide=True),
    Column("MODIFIED", lambda row: format_time(row["modified_ms"])),
    Column("NAME", lambda row: row["name"] or "-", shrink=True),
)


def describe(commands: Commands, address: ObjectRef) -> JsonRow:
    """One object's record."""
    return record_of(address, commands.get_attributes(address, [*WANTED.values(), USERNAME]))


def record_of(address: ObjectRef, values: Iterable[AttributeValue]) -> JsonRow:
    """The record of an object from its attributes, which WANTED and USERNAME name."""
    found = {value.id: value for value in values}
    numbers: JsonRow = {
        key: found[wanted].uint if wanted in found else 0 for key, wanted in WANTED.items()
    }
    length = found.get(WANTED["length_bytes"])
    if length is None or not length.value:  # functions make the data (docs/views.md)
        numbers["length_bytes"] = None
    name = found[USERNAME].text if USERNAME in found else ""
    return {"schema": SCHEMA, "id": str(address), **numbers, "name": name}


def show_partition(settings: Settings, commands: Commands, partition_id: PartitionId) -> None:
    """Print the objects of a partition, some thousand by each command.

    Without the permission for that (M_OBJECT on the partition) each object is asked for by itself.
    """
    if settings.output == "id":
        show_objects(settings, commands, commands.list_objects(partition_id))
        return
    try:
        listed = list(commands.list_attributes(partition_id, [*WANTED.values(), USERNAME]))
    except errors.PermissionDenied:
        show_objects(settings, commands, commands.list_objects(partition_id))
        return
    records = [record_of(ref(partition_id, each.object_id), each.attributes) for each in listed]
    settings.show(records, COLUMNS, "iosd.objects/1", "objects")


def show_objects(settings: Settings, commands: Commands, found: Iterable[ObjectRef]) -> None:
    """Print objects; only where more than ids are wanted the target is asked for it."""
    if settings.output == "id":
        records: list[JsonRow] = [{"id": str(each)} for each in found]
    else:
        records = [describe(commands, each) for each in found]
    settings.show(records, COLUMNS, "iosd.objects/1", "objects")
