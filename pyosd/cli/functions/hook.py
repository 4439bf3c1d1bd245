# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd hook``: functions that check changes of objects, or follow them."""

from __future__ import annotations

import click

from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.group import Group
from pyosd.cli.frame.params import ADDRESS, NUMBER, completing
from pyosd.cli.frame.verb import Failure, Listing, Settings, Verb
from pyosd.cli.functions.attach import stage_of
from pyosd.cli.functions.names import PARTITION, functions_of
from pyosd.cli.output.tables import Column, JsonRow
from pyosd.functions import Access, Functions, Hook, HookEvent
from pyosd.functions.stock import STOCK
from pyosd.types import ObjectRef

__all__ = ["hook"]

OWN_PAGES = range(0x10000, 0x20000000)  # those of applications
EVENTS = {each.name.lower(): each for each in HookEvent if each.name}
COLUMNS = (
    Column("HOOK", lambda row: str(row["number"]), right=True),
    Column("EVENTS", lambda row: ",".join(row["events"])),
    Column("FUNCTION", lambda row: row["name"] or row["function"]),
    Column("METHOD", lambda row: row["method"] or "-"),
    Column("PARAMETERS", lambda row: row["parameters"] or "-", shrink=True),
    Column("PAGE", lambda row: row["page"] or "-"),
    Column("ID", lambda row: row["function"], wide=True),
)


@click.group(cls=Group)
def hook() -> None:
    """Manage functions that check changes of objects, or follow them."""


@hook.command(cls=Verb)
@click.argument("address", type=ADDRESS)
@click.argument("function", metavar="FUNCTION", shell_complete=completing("functions"))
@click.option(
    "--check",
    "checked",
    type=click.Choice(["create", "write", "remove", "set"]),
    multiple=True,
    help="Ask the function before these changes.  [all]",
)
@click.option(
    "--after",
    "page",
    type=NUMBER,
    metavar="PAGE",
    help="Run it after each change of data, and store its attributes in this page: 0x10000 to "
    "0x1fffffff.",
)
@PARTITION
@click.pass_obj
def add(
    settings: Settings,
    address: ObjectRef,
    function: str,
    checked: tuple[str, ...],
    page: int | None,
    partition: int | None,
) -> None:
    """Let a function check changes of objects, or follow them; print the number of the hook.

    ADDRESS: a user object, or a partition or the root for the objects in it. FUNCTION:
    NAME[@METHOD][:PARAMETERS]. Without --after, the function is asked before each change.
    """
    if page is not None and checked:
        raise click.UsageError("--check or --after, not both")
    if page is not None and page not in OWN_PAGES:
        first, last = OWN_PAGES[0], OWN_PAGES[-1]
        raise click.UsageError(f"--after: the page must be from {first:#x} to {last:#x}")
    events = HookEvent.AFTER if page is not None else HookEvent(0)
    for each in checked:
        events |= EVENTS[each]
    with settings.connect() as target:
        functions = functions_of(target, partition)
        named = stage_of(functions, function, inherited=True)
        assert named.function is not None
        check_use(functions, named.function, follows=page is not None)
        wanted = Hook(
            named.function,
            events or HookEvent.CHANGES,
            named.method,
            named.parameters,
            page or 0,
        )
        click.echo(functions.hook(address, wanted).number)


def check_use(functions: Functions, function: ObjectRef, *, follows: bool) -> None:
    """Functions of iosd are for checks or for following.  Raises: UsageError: it is for the other."""
    found = functions.show(function)
    name = found.manifest.name
    if name not in STOCK or found.sha256 != STOCK[name].sha256 or STOCK[name].contract:
        return
    is_follower = STOCK[name].access is Access.READ  # a check has no access to objects
    if is_follower and not follows:
        raise click.UsageError(f"'{name}' follows changes: --after PAGE, such as --after 0x10000")
    if follows and not is_follower:
        raise click.UsageError(f"'{name}' checks changes: --check, and no --after")


def names_of(functions: Functions, hooks: list[Hook]) -> dict[ObjectRef, str]:
    """Names of the functions; one that was removed has none."""
    partitions = {each.function.partition_id for each in hooks}
    found = [each for pid in partitions for each in Functions(functions.target, pid).ls()]
    return {each.id: each.name for each in found}


@hook.command("ls", cls=Listing)
@click.argument("address", type=ADDRESS)
@click.pass_obj
def list_(settings: Settings, address: ObjectRef) -> None:
    """List the hooks of an object, a partition or the root itself."""
    with settings.connect() as target:
        functions = functions_of(target, None)
        hooks = functions.hooks(address)
        names = names_of(functions, hooks)
    records: list[JsonRow] = [
        {
            "schema": "iosd.hook/1",
            "number": each.number,
            "events": [name for name, bit in EVENTS.items() if bit in each.events],
            "function": str(each.function),
            "name": names.get(each.function, ""),
            "method": each.method,
            "parameters": each.parameters,
            "page": f"{each.page:#x}" if each.page else "",
        }
        for each in hooks
    ]
    settings.show(records, COLUMNS, "iosd.hooks/1", "hooks")


@hook.command(cls=Verb)
@click.argument("addresses", metavar="ADDRESS...", type=ADDRESS, nargs=-1, required=True)
@click.pass_obj
def run(settings: Settings, addresses: tuple[ObjectRef, ...]) -> None:
    """Let functions that follow changes run for user objects now.

    For objects that were there before the hook.
    """
    for each in addresses:
        if not each.object_id:
            raise click.UsageError(f"'{each}' is no user object: name the objects themselves")
    with settings.connect() as target:
        for each in addresses:
            functions_of(target, None).follow(each)


@hook.command(cls=Verb)
@click.argument("address", type=ADDRESS)
@click.argument("numbers", metavar="[HOOK]...", type=click.IntRange(1, 8), nargs=-1)
@click.option("--all", "all_", is_flag=True, help="Remove all hooks of ADDRESS.")
@click.pass_obj
def rm(settings: Settings, address: ObjectRef, numbers: tuple[int, ...], all_: bool) -> None:
    """Remove hooks of an object, a partition or the root.

    HOOK: its number, as 'osd hook ls' shows it.
    """
    if all_ == bool(numbers):
        raise click.UsageError("name hooks, or use --all")
    with settings.connect() as target:
        functions = functions_of(target, None)
        there = {each.number for each in functions.hooks(address)} if numbers else set()
        for each in numbers:
            if each not in there:
                raise Failure(
                    Exit.NO_INPUT, f"{address} has no hook {each}; 'osd hook ls' lists them"
                )
            functions.unhook(address, each)
        if all_:
            functions.unhook(address)
