# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd part``: partitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from pyosd import errors
from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.group import Group
from pyosd.cli.frame.params import ADDRESS, DURATION, NumberParam
from pyosd.cli.frame.verb import YES, Failure, Listing, Settings, Verb, expected_empty
from pyosd.cli.output.tables import Column, JsonRow, format_bytes, format_time
from pyosd.commands import Commands
from pyosd.types import AttributeId, ObjectRef, ref
from pyosd.wire.attributes import Information, Page, Timestamp
from pyosd.wire.capability import method_name

__all__ = ["part"]

SCHEMA = "iosd.partition/1"
WANTED = {
    "used_bytes": AttributeId(Page.PARTITION_INFORMATION, Information.USED_CAPACITY),
    "objects": AttributeId(Page.PARTITION_INFORMATION, Information.NUMBER_OF_OBJECTS),
    "created_ms": AttributeId(Page.PARTITION_TIMESTAMPS, Timestamp.CREATED),
}
METHOD = AttributeId(Page.PARTITION_SECURITY, 0x1)
USERNAME = AttributeId(Page.PARTITION_INFORMATION, Information.NAME)


def shown(value: int | None, form: Callable[[int], str]) -> str:
    """The text of a number; "-": it is not known."""
    return "-" if value is None else form(value)


COLUMNS = (
    Column("PARTITION", lambda row: row["id"]),
    Column("OBJECTS", lambda row: shown(row["objects"], str), right=True),
    Column("USED", lambda row: shown(row["used_bytes"], format_bytes), right=True),
    Column("SECURITY", lambda row: row["security"] or "-", wide=True),
    Column("CREATED", lambda row: format_time(row["created_ms"]), wide=True),
    Column("NAME", lambda row: row["name"] or "-", shrink=True),
)

CHECK_COLUMNS = (
    Column("PARTITION", lambda row: row["id"]),
    Column("DAMAGED OBJECTS", lambda row: str(row["damaged"]), right=True),
)


def describe_permitted(commands: Commands, partition: ObjectRef) -> JsonRow:
    """One partition's record; only its id, if the user may not read its attributes."""
    try:
        return describe(commands, partition)
    except errors.PermissionDenied as error:
        if not error.verified:
            raise
        unknown = dict.fromkeys(WANTED)
        return {"schema": SCHEMA, "id": str(partition), **unknown, "name": "", "security": None}


def describe(commands: Commands, partition: ObjectRef) -> JsonRow:
    """One partition's record."""
    values = commands.get_attributes(partition, [*WANTED.values(), USERNAME, METHOD])
    found = {value.id: value for value in values}
    numbers = {key: found[wanted].uint if wanted in found else 0 for key, wanted in WANTED.items()}
    name = found[USERNAME].text if USERNAME in found else ""
    security = method_name(found[METHOD].uint if METHOD in found else 0)
    return {
        "schema": SCHEMA,
        "id": str(partition),
        **numbers,
        "name": name,
        "security": security,
    }


@click.group(cls=Group)
def part() -> None:
    """Manage partitions, which contain objects and jobs."""


class NewId(NumberParam):
    """The id of a partition that is to be made."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse to an int of at most 64 bits."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            name = str(value).strip("/")
            if not name[:1].isalpha() or "/" in name:
                raise
            words = f"{error.message}; 'osd mkdir /{name}' makes a partition with a name"
            raise click.BadParameter(words, ctx, param) from None


@part.command(cls=Verb)
@click.argument("pid", type=NewId(), default=0, required=False)
@click.option("--name", default="", help="Name of the partition in paths: /NAME/...")
@click.pass_obj
def create(settings: Settings, pid: int, name: str) -> None:
    """Create a partition and print its id.

    PID is the new id, 0x10000 or more. Without PID the target chooses an id. 'osd mv' gives a
    partition a name later.
    """
    with settings.connect() as target:
        try:
            click.echo(ref(target.create_partition(pid, name=name)))
        except errors.NameExists:
            raise Failure(Exit.FAILED, f"a partition has the name '{name}' already") from None


@part.command("ls", cls=Listing)
@click.pass_obj
def list_(settings: Settings) -> None:
    """List the partitions.

    A partition whose attributes the user may not read is listed with its id alone.
    """
    with settings.connect() as target:
        records = [describe_permitted(target, ref(pid)) for pid in target.list_partitions()]
    settings.show(records, COLUMNS, "iosd.partitions/1", "partitions")


@part.command(cls=Listing)
@click.argument("address", metavar="PID", type=ADDRESS)
@click.pass_obj
def stat(settings: Settings, address: ObjectRef) -> None:
    """Show one partition."""
    with settings.connect() as target:
        record = describe(target, ref(address.partition_id))
    settings.show_one(record, COLUMNS)


@part.command(cls=Verb)
@click.argument("addresses", metavar="PID...", type=ADDRESS, nargs=-1, required=True)
@click.option("--contents", is_flag=True, help="Remove all objects and collections inside too.")
@YES
@click.pass_obj
def rm(settings: Settings, addresses: tuple[ObjectRef, ...], contents: bool, yes: bool) -> None:
    """Remove empty partitions; with --contents, also non-empty ones.

    --contents asks for confirmation. Without a terminal it requires --yes.
    """
    names = ", ".join(map(str, addresses))
    if contents:
        settings.confirm_all(f"Remove partition {names} and everything inside?", yes)
    elif not yes:
        settings.confirm(f"Remove partition {names}?")
    with settings.connect() as target:
        for address in addresses:
            with expected_empty(address, "--contents also removes its contents"):
                target.remove_partition(address.partition_id, contents)


@part.command(cls=Listing)
@click.argument("addresses", metavar="PID|root...", type=ADDRESS, nargs=-1, required=True)
@click.option("--timeout", type=DURATION, default=600, help="Longest time to wait.  [600s]")
@click.pass_obj
def check(settings: Settings, addresses: tuple[ObjectRef, ...], timeout: float) -> None:
    """Check partitions on a running target, or all with root.

    The target compares its records of objects with their files and memberships (OBJECT STRUCTURE
    CHECK). It continues to serve meanwhile. 'osd target check' is a different command. It runs on
    the target's host, reads the store of a stopped target, and finds more.
    """
    for address in addresses:
        if address.object_id:
            raise click.UsageError(f"'{address}' is neither a partition nor root")
    with settings.connect() as target:
        damaged = {
            address: target.object_structure_check(address.partition_id, timeout)
            for address in addresses
        }
    records: list[JsonRow] = [
        {"schema": "iosd.structure/1", "id": str(address), "damaged": count}
        for address, count in damaged.items()
    ]
    settings.show(records, CHECK_COLUMNS, "iosd.structures/1", "checked")
    if any(damaged.values()):
        raise Failure(Exit.FAILED, "there is damage; the target's log names the objects")
