# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd view``: partitions whose objects show the data of other objects, through functions."""

from __future__ import annotations

from dataclasses import asdict

import click

from pyosd import errors
from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.group import Group
from pyosd.cli.frame.params import ADDRESS, NEW_PARTITION, completing
from pyosd.cli.frame.verb import YES, Failure, Listing, Settings, Verb
from pyosd.cli.functions.attach import names_of, stage_of
from pyosd.cli.functions.names import PARTITION, functions_of
from pyosd.cli.output.tables import Column, JsonRow, format_bytes, format_seconds
from pyosd.functions import Functions, FunctionStage, View
from pyosd.types import AttributeId, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import Information, Page

__all__ = ["view"]

NAME = AttributeId(Page.PARTITION_INFORMATION, Information.NAME)
COLUMNS = (
    Column("VIEW", lambda row: row["id"]),
    Column("OF", lambda row: row["base"]),
    Column("STAGES", lambda row: ", ".join(row["stages"]) or "-", shrink=True),
    Column("WRITABLE", lambda row: "yes" if row["writable"] else "no"),
    Column("NAME", lambda row: row["name"] or "-", shrink=True),
)


def words_of(stage: FunctionStage, names: dict[ObjectRef, str]) -> str:
    """A stage as 'osd attach' takes it."""
    name = (stage.function and names.get(stage.function)) or str(stage.function or "none")
    method = f"@{stage.method}" if stage.method else ""
    return f"{name}{method}" + (f":{stage.parameters}" if stage.parameters else "")


def records_of(functions: Functions, views: list[View]) -> list[JsonRow]:
    """The records of views."""
    names = names_of(functions, [stage for each in views for stage in each.stages])
    records = list[JsonRow]()
    for found in views:
        name = functions.target.get_attributes(ref(found.id), [NAME])
        record: JsonRow = {
            "schema": "iosd.view/1",
            "id": f"{found.id:#x}",
            "base": str(found.source) if found.collection else f"{found.base:#x}",
            "stages": [words_of(each, names) for each in found.stages],
            "writable": found.writable,
            "name": name[0].text if name else "",
        }
        records.append(record)
    return records


@click.group(cls=Group)
def view() -> None:
    """Manage views: partitions that show the data of others through functions."""


def partition_of(address: ObjectRef) -> PartitionId:
    """The partition that was named.  Raises: UsageError: it is none."""
    if address.object_id or not address.partition_id:
        raise click.UsageError(f"{address} is no partition")
    return address.partition_id


@view.command(cls=Verb)
@click.argument("view", metavar="VIEW", type=NEW_PARTITION)
@click.argument("stages", metavar="[STAGE]...", nargs=-1, shell_complete=completing("functions"))
@click.option(
    "--of",
    "base",
    type=ADDRESS,
    required=True,
    help="Partition, collection or directory whose objects it shows.",
)
@click.option("--writable", is_flag=True, help="Let WRITEs of the view change its base.")
@PARTITION
@click.pass_obj
def create(
    settings: Settings,
    view: int | str,
    stages: tuple[str, ...],
    base: ObjectRef,
    writable: bool,
    partition: int | None,
) -> None:
    """Make the partition VIEW, whose objects show those of another one, and print its id.

    A view of a collection shows the members. A directory is a collection: the view has the files in
    it, and not those in directories below it.

    VIEW: /NAME for a name, and the target picks the id; or an id.

    STAGE: NAME[@METHOD][:PARAMETERS] of a function, in the order of a READ. Without one, the view
    shows the data as they are.
    """
    with settings.connect() as target:
        functions = functions_of(target, partition)
        chosen = [stage_of(functions, each, inherited=True) for each in stages]
        try:
            made = functions.view_create(
                base if base.object_id else partition_of(base),
                chosen,
                view if isinstance(view, int) else 0,
                name=view if isinstance(view, str) else "",
                writable=writable,
            )
        except errors.NameExists:
            raise Failure(Exit.FAILED, f"'/{view}' exists") from None
    click.echo(f"{made.id:#x}")


@view.command("ls", cls=Listing)
@click.pass_obj
def list_(settings: Settings) -> None:
    """List the views of the target."""
    with settings.connect() as target:
        functions = functions_of(target, None)
        records = records_of(functions, functions.views())
    settings.show(records, COLUMNS, "iosd.views/1", "views")


@view.command(cls=Listing)
@click.argument("view", metavar="VIEW", type=ADDRESS)
@click.pass_obj
def show(settings: Settings, view: ObjectRef) -> None:
    """Show a view."""
    with settings.connect() as target:
        functions = functions_of(target, None)
        record = records_of(functions, [functions.view(partition_of(view))])
    settings.show_one(record[0], COLUMNS)


FIGURES = (
    Column("KEPT", lambda row: format_bytes(row["kept"]), right=True),
    Column("QUOTA", lambda row: format_bytes(row["quota"]), right=True),
    Column("HITS", lambda row: str(row["hits"]), right=True),
    Column("COMPUTED", lambda row: str(row["computed"]), right=True),
    Column("SHARED", lambda row: str(row["shared"]), right=True),
    Column("EVICTED", lambda row: str(row["evicted"]), right=True),
    Column("FAILED", lambda row: str(row["failed"]), right=True),
    Column("TIME", lambda row: format_seconds(row["computing"]), right=True),
)


@view.command(cls=Listing)
@click.pass_obj
def stats(settings: Settings) -> None:
    """Show the results of functions that the target keeps for later READs.

    Counted since the target started. HITS: READs whose data were kept. COMPUTED: READs that computed,
    and TIME: how long these took. SHARED: READs that waited for another one to compute the same.
    EVICTED: results removed for room. FAILED: results that could not be written or read.
    """
    with settings.connect() as target:
        found = functions_of(target, None).results()
    settings.show_one({"schema": "iosd.results/1", **asdict(found)}, FIGURES)


@view.command(cls=Verb)
@click.argument("view", metavar="VIEW", type=ADDRESS)
@click.pass_obj
def refresh(settings: Settings, view: ObjectRef) -> None:
    """Complete a view whose creation was interrupted, or whose base was removed.

    Otherwise the objects of a view always are those of its base.
    """
    with settings.connect() as target:
        added, removed = functions_of(target, None).view_refresh(partition_of(view))
    click.echo(f"{added} added, {removed} removed")


@view.command(cls=Verb)
@click.argument("view", metavar="VIEW", type=ADDRESS)
@YES
@click.pass_obj
def rm(settings: Settings, view: ObjectRef, yes: bool) -> None:
    """Remove a view.  Its base stays."""
    if not yes:
        settings.confirm(f"Remove the view {view}?")
    with settings.connect() as target:
        functions_of(target, None).view_remove(partition_of(view))
