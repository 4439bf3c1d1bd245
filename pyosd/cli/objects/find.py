# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd obj find`` and ``osd obj index``: search by attribute value, and what makes it quick."""

from __future__ import annotations

from itertools import islice

import click

from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.params import ADDRESS, NUMBER
from pyosd.cli.frame.verb import Failure, Listing, Settings
from pyosd.cli.objects.criteria import CRITERION, CRITERION_HELP, condition_of
from pyosd.cli.objects.object_table import show_objects
from pyosd.cli.output.tables import Column, JsonRow
from pyosd.functions.hooks import CURRENT
from pyosd.osd._query import Condition, attr
from pyosd.types import AttributeId, AttributeValue, ObjectRef
from pyosd.wire.attributes import ALL, Page

__all__ = ["find", "index"]

STATES = {1: "building", 2: "ready"}
INDEX_COLUMNS = (
    Column("PAGE", lambda row: row["id"]),
    Column("STATE", lambda row: row["state"]),
)


FIND_HELP = f"""Find objects by the values of their attributes.

ADDRESS: a partition, or a collection (PID/CID).  {CRITERION_HELP}

Without an index (see 'osd obj index') the target reads every member.
"""


@click.command(cls=Listing, help=FIND_HELP)
@click.argument("address", type=ADDRESS)
@click.argument("criteria", metavar="CRITERION...", type=CRITERION, nargs=-1)
@click.option(
    "--any", "match_any", is_flag=True, help="Select objects that match at least one criterion."
)
@click.option(
    "--all",
    "match_all",
    is_flag=True,
    help="Select objects that match all criteria.  [the default]",
)
@click.option(
    "--current",
    is_flag=True,
    help="Select objects whose derived attributes are of their present data.",
)
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Stop after N objects.")
@click.pass_obj
def find(
    settings: Settings,
    address: ObjectRef,
    criteria: tuple[Condition, ...],
    match_any: bool,
    match_all: bool,
    current: bool,
    limit: int | None,
) -> None:
    """Find objects: FIND_HELP has the words for people."""
    if match_any and match_all:
        raise click.UsageError("--any or --all, not both")
    if not address.partition_id:
        raise click.UsageError("objects are found in a partition or a collection")
    condition = condition_of(criteria, match_any)
    if current:
        is_current = attr(Page.HOOKS, CURRENT) == b"\x01"
        condition = is_current if condition is None else condition & is_current
    with settings.connect() as target:
        show_objects(settings, target, islice(target.query(address, condition), limit))


@click.command(cls=Listing)
@click.argument("address", metavar="PID", type=ADDRESS)
@click.option(
    "--add",
    "added",
    type=NUMBER,
    multiple=True,
    metavar="PAGE",
    help="Add an attribute page to the index.",
)
@click.option(
    "--drop",
    "dropped",
    type=NUMBER,
    multiple=True,
    metavar="PAGE",
    help="Remove an attribute page from the index.",
)
@click.pass_obj
def index(
    settings: Settings, address: ObjectRef, added: tuple[int, ...], dropped: tuple[int, ...]
) -> None:
    """Show, add or drop the attribute indexes of a partition.

    With an index, 'osd obj find' does not read every object. Setting attributes of its pages
    becomes slower. An index is not used before it is complete.
    """
    partition = ObjectRef(address.partition_id)
    if not address.partition_id or address.object_id:
        raise click.UsageError("an index belongs to a partition: PID")
    changes = [AttributeValue(Page.INDEX, page, b"\x01") for page in added]
    changes += [AttributeValue(Page.INDEX, page, b"") for page in dropped]
    if any(each.number >= ALL for each in changes):
        raise click.UsageError("a page's number has 32 bits")
    with settings.connect() as target:
        if changes:
            target.set_attributes(partition, changes)
        found = target.get_attributes(partition, [AttributeId(Page.INDEX, ALL)])
    states = {each.number: each.uint for each in found if len(each.value) == 1}
    if not states and dropped and not added:
        settings.say("no page is indexed")
    for page in added:
        if page not in states:
            raise Failure(Exit.FAILED, f"the target took page {page:#x} but does not show it")
    records: list[JsonRow] = [
        {
            "schema": "iosd.index/1",
            "id": f"{page:#x}",
            "page": page,
            "state": STATES.get(state, str(state)),
        }
        for page, state in sorted(states.items())
    ]
    settings.show(records, INDEX_COLUMNS, "iosd.indexes/1", "pages")
