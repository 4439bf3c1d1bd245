# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd target df``: how full the store is, and its devices, and each partition."""

from __future__ import annotations

import click

from pyosd.cli.frame.verb import Listing, Settings
from pyosd.cli.host.heads import figures_of
from pyosd.cli.output.tables import Column, JsonRow, format_bytes, print_json
from pyosd.commands import Commands
from pyosd.errors import PermissionDenied
from pyosd.types import ROOT, AttributeId, ref
from pyosd.wire.attributes import Information, Page

__all__ = ["df"]

SCHEMA = "iosd.space/1"
# Of the root: the standard's Information page, and our page of figures.
ROOT_WANTED = {
    "capacity_bytes": AttributeId(Page.ROOT_INFORMATION, Information.TOTAL_CAPACITY),
    "data_bytes": AttributeId(Page.ROOT_INFORMATION, Information.USED_CAPACITY),
    "partitions": AttributeId(Page.ROOT_INFORMATION, Information.NUMBER_OF_PARTITIONS),
    "objects": AttributeId(Page.STORE_ROOT, 10),
    "used_bytes": AttributeId(Page.STORE_ROOT, 11),
    "free_bytes": AttributeId(Page.STORE_ROOT, 12),
}
PARTITION_WANTED = {
    "data_bytes": AttributeId(Page.PARTITION_INFORMATION, Information.USED_CAPACITY),
    "objects": AttributeId(Page.PARTITION_INFORMATION, Information.NUMBER_OF_OBJECTS),
    "quota_bytes": AttributeId(Page.PARTITION_QUOTAS, 0x10001),
    "used_bytes": AttributeId(Page.CHARGED, 1),
}
PARTITION_NAME = AttributeId(Page.PARTITION_INFORMATION, Information.NAME)
TIERS = {"ssd": "ssd", "main": "hdd"}  # our word, and that of root page B000_0003h


def size(row: JsonRow, key: str) -> str:
    """Bytes for people; "-": not known, or no limit."""
    return "-" if row.get(key) is None else format_bytes(row[key])


def share(row: JsonRow) -> str:
    """How much of it is used."""
    total, used = row.get("total_bytes"), row.get("used_bytes")
    return "-" if not total or used is None else f"{100 * used / total:.0f}%"


COLUMNS = (
    Column("WHERE", lambda row: row["id"]),
    Column("SIZE", lambda row: size(row, "total_bytes"), right=True),
    Column("USED", lambda row: size(row, "used_bytes"), right=True),
    Column("FREE", lambda row: size(row, "free_bytes"), right=True),
    Column("USE%", share, right=True),
    Column("DATA", lambda row: size(row, "data_bytes"), right=True),
    Column("OBJECTS", lambda row: str(row.get("objects", "-")), right=True, drop=1),
    Column("NAME", lambda row: row.get("name") or "-", shrink=True, drop=2),
)


def devices(commands: Commands, data_bytes: int) -> list[JsonRow]:
    """The file system of each device, and how much of the objects' data is there."""
    figures = figures_of(commands)
    on_ssd = figures.get("heads_on_ssd_bytes", 0)
    data = {"ssd": on_ssd, "main": max(0, data_bytes - on_ssd)}
    found = []
    for tier, word in TIERS.items():
        total, free = figures.get(f"{word}_total_bytes"), figures.get(f"{word}_free_bytes")
        if total is not None and free is not None:
            found.append(
                {
                    "id": tier,
                    "total_bytes": total,
                    "used_bytes": total - min(free, total),
                    "free_bytes": free,
                    "data_bytes": data[tier],
                }
            )
    return found


def partition(commands: Commands, pid: int, capacity: int) -> JsonRow:
    """One partition; its size is its quota, None where it has none.

    Only its id is known if the user may not read its attributes.
    """
    wanted = [*PARTITION_WANTED.values(), PARTITION_NAME]
    try:
        values = {value.id: value for value in commands.get_attributes(ref(pid), wanted)}
    except PermissionDenied as error:
        if not error.verified:
            raise
        return {"id": str(ref(pid)), "total_bytes": None, "free_bytes": None, "name": ""}
    found = {key: values[each].uint for key, each in PARTITION_WANTED.items() if each in values}
    quota, used = found.pop("quota_bytes", capacity), found.get("used_bytes", 0)
    limited = quota < capacity  # without a quota the target shows the capacity
    return {
        "id": str(ref(pid)),
        "total_bytes": quota if limited else None,
        "free_bytes": max(0, quota - used) if limited else None,
        "name": values[PARTITION_NAME].text if PARTITION_NAME in values else "",
        **found,
    }


def describe(commands: Commands, *, with_partitions: bool) -> JsonRow:
    """All figures, in the form of -o json."""
    values = {v.id: v for v in commands.get_attributes(ROOT, [*ROOT_WANTED.values()])}
    store = {key: values[each].uint for key, each in ROOT_WANTED.items() if each in values}
    record = {
        "schema": SCHEMA,
        **store,
        "devices": devices(commands, store.get("data_bytes", 0)),
    }
    if with_partitions:
        capacity = store.get("capacity_bytes", 0)
        pids = commands.list_partitions()
        record["partition_list"] = [partition(commands, pid, capacity) for pid in pids]
    return record


@click.command(cls=Listing)
@click.option("--partitions", is_flag=True, help="Also list each partition with its quota.")
@click.pass_obj
def df(settings: Settings, partitions: bool) -> None:
    """Show used and free space of devices, store and partitions.

    The row of a device describes its file system: SIZE, USED and FREE count all files there. DATA
    is the length of the objects' data. The row 'store' describes the capacity of the target: USED
    counts data, attributes and jobs, and FREE is the space that can still be written. A partition's
    SIZE is its capacity quota.
    """
    with settings.connect() as target:
        record = describe(target, with_partitions=partitions)
    if settings.output in ("json", "jsonl"):
        print_json(record)
        return
    store = {**record, "id": "store", "total_bytes": record.get("capacity_bytes")}
    rows = [*record["devices"], store, *record.get("partition_list", [])]
    settings.show(rows, COLUMNS, SCHEMA, "rows")
