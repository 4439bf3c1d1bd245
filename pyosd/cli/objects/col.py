# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd col``: collections of user objects."""

from __future__ import annotations

import click

from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.group import Group
from pyosd.cli.frame.params import ADDRESS, ATTRIBUTE, COLLECTION
from pyosd.cli.frame.verb import YES, Failure, Listing, Settings, Verb, expected_empty
from pyosd.cli.objects.attr import record_of, takes_value
from pyosd.cli.objects.criteria import CRITERION, CRITERION_HELP, condition_of
from pyosd.cli.output.tables import Column, JsonRow
from pyosd.commands import Commands
from pyosd.errors import Invalid, NotFound
from pyosd.osd._query import Condition, Query
from pyosd.types import AttributeId, AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import Page
from pyosd.wire.sense import describe as describe_sense

__all__ = ["col"]

SCHEMA = "iosd.collection/1"
MATCHES_FIELD = 40  # of the CDB of QUERY: the collection that is filled
USERNAME = AttributeId(Page.COLLECTION_INFORMATION, 0x9)
KIND = AttributeId(Page.COLLECTION_INFORMATION, 0xA)
KINDS = {0x00: "linked", 0x01: "tracking", 0xEF: "spontaneous"}

COLUMNS = (
    Column("COLLECTION", lambda row: row["id"]),
    Column("TYPE", lambda row: row["type"]),
    Column("MEMBERS", lambda row: str(row["members"]), right=True),
    Column("NAME", lambda row: row["name"] or "-", shrink=True),
)
STAT_COLUMNS = (
    *COLUMNS,
    Column("AT WORK", lambda row: row["active"] or "-"),
    Column("DONE", lambda row: "-" if row["percent"] is None else f"{row['percent']}%", right=True),
    Column("LAST", lambda row: row["ended"], shrink=True),
)
ID_COLUMNS = (Column("OBJECT", lambda row: row["id"]),)
VALUE_COLUMNS = (
    Column("OBJECT", lambda row: row["object"]),
    Column("BYTES", lambda row: str(row["bytes"]), right=True),
    Column("VALUE", lambda row: row["text"], shrink=True),
)


def describe(commands: Commands, address: ObjectRef, *, tracked: bool = False) -> JsonRow:
    """One collection's record; tracked: with the command at work on it."""
    found = {each.id: each for each in commands.get_attributes(address, [KIND, USERNAME])}
    tracking = commands.tracking(address)
    kind = found[KIND].uint if KIND in found else 0
    record: JsonRow = {
        "schema": SCHEMA,
        "id": str(address),
        "type": KINDS.get(kind, f"{kind:#x}"),
        "members": tracking.members or commands.list_page(address).total_count,
        "name": found[USERNAME].text if USERNAME in found else "",
    }
    if tracked:
        record |= {
            "active": f"{tracking.active:#x}" if tracking.active else "",
            "percent": tracking.percent,
            "done": tracking.done,
            "ended": describe_sense(tracking.sense) if tracking.sense else "well",
        }
    return record


@click.group(cls=Group)
def col() -> None:
    """Manage collections: named sets of objects of one partition."""


@col.command(cls=Verb)
@click.argument("address", type=ADDRESS)
@click.option(
    "--tracking",
    is_flag=True,
    help="Create a tracking collection, which queries and long commands fill.",
)
@click.option(
    "--from",
    "source",
    type=COLLECTION,
    help="Copy the members of this collection into the new one.",
)
@click.pass_obj
def create(
    settings: Settings, address: ObjectRef, tracking: bool, source: ObjectRef | None
) -> None:
    """Create a collection and print its id.

    ADDRESS is PID/CID with the new id, or a partition: then the target chooses the id.
    """
    if source and (not tracking or source.partition_id != address.partition_id):
        raise click.UsageError("--from goes with --tracking, and stays in the partition")
    pid, wanted = address.partition_id, address.object_id
    with settings.connect() as target:
        if tracking:
            first = source.object_id if source else 0
            click.echo(target.create_tracking_collection(pid, wanted, first))
        else:
            click.echo(target.create_collection(pid, wanted))


@col.command("ls", cls=Listing)
@click.argument("address", metavar="PID", type=ADDRESS)
@click.pass_obj
def list_(settings: Settings, address: ObjectRef) -> None:
    """List the collections of a partition."""
    if not address.partition_id:
        raise click.UsageError("collections are listed by partition; see 'osd part ls'")
    with settings.connect() as target:
        records = [describe(target, each) for each in target.list_collections(address.partition_id)]
    settings.show(records, COLUMNS, "iosd.collections/1", "collections")


@col.command(cls=Listing)
@click.argument("address", metavar="PID/CID", type=COLLECTION)
@click.pass_obj
def stat(settings: Settings, address: ObjectRef) -> None:
    """Show a collection and the progress of the command that works on it."""
    with settings.connect() as target:
        record = describe(target, address, tracked=True)
    settings.show_one(record, STAT_COLUMNS)


@col.command(cls=Listing)
@click.argument("address", metavar="PID/CID", type=COLLECTION)
@click.pass_obj
def members(settings: Settings, address: ObjectRef) -> None:
    """List the objects in a collection."""
    with settings.connect() as target:
        found = target.list_members(address)
    records: list[JsonRow] = [{"schema": "iosd.member/1", "id": str(each)} for each in found]
    settings.show(records, ID_COLUMNS, "iosd.members/1", "members")


@col.command(cls=Verb)
@click.argument("address", metavar="PID/CID", type=COLLECTION)
@click.argument("objects", metavar="OID...", nargs=-1, required=True, type=ADDRESS)
@click.pass_obj
def add(settings: Settings, address: ObjectRef, objects: tuple[ObjectRef, ...]) -> None:
    """Add objects to a collection.  OID: a number, or PID/OID."""
    with settings.connect() as target:
        for each in objects:
            target.add_member(address, member_of(address, each))


@col.command(cls=Verb)
@click.argument("address", metavar="PID/CID", type=COLLECTION)
@click.argument("objects", metavar="OID...", nargs=-1, required=True, type=ADDRESS)
@click.pass_obj
def drop(settings: Settings, address: ObjectRef, objects: tuple[ObjectRef, ...]) -> None:
    """Take objects out of a collection.  OID: a number, or PID/OID."""
    with settings.connect() as target:
        for each in objects:
            member = member_of(address, each)
            try:
                left = target.remove_member(address, member)
            except NotFound:
                raise Failure(Exit.NO_INPUT, f"{member} does not exist") from None
            if not left:
                raise Failure(Exit.NO_INPUT, f"{member} is not in {address}")


@col.command(cls=Verb)
@click.argument("addresses", metavar="PID/CID...", type=COLLECTION, nargs=-1, required=True)
@click.option(
    "--force",
    is_flag=True,
    help="Remove the collection even if it has members; the member objects stay.",
)
@click.option("--objects", is_flag=True, help="Remove the member objects too.")
@YES
@click.pass_obj
def rm(
    settings: Settings, addresses: tuple[ObjectRef, ...], force: bool, objects: bool, yes: bool
) -> None:
    """Remove empty collections; with --force or --objects, any.

    --objects asks for confirmation. Without a terminal it requires --yes.
    """
    names = ", ".join(map(str, addresses))
    if objects:
        settings.confirm_all(f"Remove {names} and every object in it?", yes)
    elif not yes:
        settings.confirm(f"Remove {names}?")
    with settings.connect() as target:
        for each in addresses:
            if objects:
                target.remove_member_objects(each)
            with expected_empty(each, "--force leaves its members, --objects removes them, too"):
                target.remove_collection(each, with_members=force)


QUERY_HELP = f"""Fill a tracking collection (PID/CID) with the objects of WHERE that match.

WHERE: a partition, or another collection.  {CRITERION_HELP}
"""


@col.command(cls=Verb, help=QUERY_HELP)
@click.argument("matches", metavar="PID/CID", type=COLLECTION)
@click.argument("where", type=ADDRESS)
@click.argument("criteria", metavar="CRITERION...", type=CRITERION, nargs=-1)
@click.option(
    "--any",
    "match_any",
    is_flag=True,
    help="Select objects that match at least one criterion.  [all criteria]",
)
@click.option(
    "--immediate", is_flag=True, help="Return at once; 'osd col stat' shows the progress."
)
@click.pass_obj
def query(
    settings: Settings,
    matches: ObjectRef,
    where: ObjectRef,
    criteria: tuple[Condition, ...],
    match_any: bool,
    immediate: bool,
) -> None:
    """Fill a collection: QUERY_HELP has the words for people."""
    if where.partition_id != matches.partition_id:
        raise click.UsageError("a query stays in one partition")
    condition = condition_of(criteria, match_any)
    queries: list[Query] = [Query(())] if condition is None else condition.queries()
    if len(queries) != 1:
        raise click.UsageError("this is not one query of the target; use 'osd obj find'")
    asked = queries[0]
    with settings.connect() as target:
        try:
            target.query_into(where, asked.criteria, matches, asked.match_all, immediate=immediate)
        except Invalid as error:
            if error.field_pointer != MATCHES_FIELD:
                raise
            raise Failure(
                Exit.FAILED,
                f"{matches} cannot have the matches of a query: 'osd col create --tracking' makes a "
                "collection for them",
            ) from None


@col.command(cls=Listing)
@click.argument("address", metavar="PID/CID", type=COLLECTION)
@click.argument("attribute", type=ATTRIBUTE)
@click.pass_obj
def get(settings: Settings, address: ObjectRef, attribute: tuple[int, int]) -> None:
    """Read an attribute of every member, in one command."""
    with settings.connect() as target:
        wanted = [AttributeId(*attribute)]
        found = target.get_member_attributes(address, wanted)
    records = [
        record_of(value) | {"object": str(ref(address.partition_id, member.object_id))}
        for member in found
        for value in member.attributes
    ]
    settings.show(records, VALUE_COLUMNS, "iosd.member-attributes/1", "attributes")


@col.command("set", cls=Verb)
@click.argument("address", metavar="PID/CID", type=COLLECTION)
@takes_value
@click.pass_obj
def set_(settings: Settings, address: ObjectRef, value: AttributeValue) -> None:
    """Set an attribute of every member, in one command."""
    with settings.connect() as target:
        target.set_member_attributes(address, [value])


def member_of(collection: ObjectRef, given: ObjectRef) -> ObjectRef:
    """The object meant: PID/OID of the same partition, or the OID alone."""
    if not given.object_id:
        return ref(collection.partition_id, given.partition_id)
    if given.partition_id != collection.partition_id:
        raise click.UsageError(f"{given} is in another partition than {collection}")
    return given
