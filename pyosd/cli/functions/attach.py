# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd attach``, ``osd detach``, ``osd attached``: functions that the data of objects pass through."""

from __future__ import annotations

import click

from pyosd.cli.frame.params import ADDRESS, completing
from pyosd.cli.frame.verb import Listing, Settings, Verb
from pyosd.cli.functions.names import NAME, PARTITION, functions_of
from pyosd.cli.output.tables import Column, JsonRow
from pyosd.functions import Functions, FunctionStage
from pyosd.functions.stock import STOCK
from pyosd.types import ObjectRef

__all__ = ["attach", "attached", "detach"]

COLUMNS = (
    Column("READ", lambda row: str(row["place"]), right=True),
    Column("FUNCTION", lambda row: row["name"] or row["function"] or "none"),
    Column("METHOD", lambda row: row["method"] or "-"),
    Column("PARAMETERS", lambda row: row["parameters"] or "-", shrink=True),
    Column("INHERITED", lambda row: "yes" if row["inherited"] else "no"),
    Column("ID", lambda row: row["function"] or "-", wide=True),
)


def stage_of(functions: Functions, text: str, inherited: bool) -> FunctionStage:
    """A stage as people write it: NAME, NAME@METHOD, NAME:PARAMETERS, NAME@METHOD:PARAMETERS."""
    head, _, parameters = text.partition(":")
    name, _, method = head.partition("@")
    found = functions.show(NAME.convert(name, None, None))
    stock = STOCK.get(found.manifest.name)
    if stock and found.sha256 == stock.sha256:
        try:
            stock.check(name, parameters)
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    return FunctionStage(found.id, method, parameters, inherited)


@click.command(cls=Verb)
@click.argument("address", type=ADDRESS)
@click.argument("stages", metavar="STAGE...", nargs=-1, shell_complete=completing("functions"))
@click.option("--none", "cut", is_flag=True, help="Attach nothing, not even inherited functions.")
@click.option(
    "--inherit/--no-inherit",
    "inherited",
    default=True,
    help="Of a collection, a partition or the root: hold for the objects in it.  [yes]",
)
@PARTITION
@click.pass_obj
def attach(
    settings: Settings,
    address: ObjectRef,
    stages: tuple[str, ...],
    cut: bool,
    inherited: bool,
    partition: int | None,
) -> None:
    """Let the data of objects pass through functions when they are read.

    ADDRESS: a user object; or a collection or directory, a partition or the root, for the objects in
    it. STAGE: NAME[@METHOD][:PARAMETERS], in the order of a READ; a WRITE passes them in the other
    order.
    """
    if cut == bool(stages):
        raise click.UsageError("name functions, or use --none")
    with settings.connect() as target:
        functions = functions_of(target, partition)
        chosen = [stage_of(functions, each, inherited) for each in stages]
        functions.attach(address, chosen or [FunctionStage(None, inherited=inherited)])


@click.command(cls=Verb)
@click.argument("address", type=ADDRESS)
@click.pass_obj
def detach(settings: Settings, address: ObjectRef) -> None:
    """Remove the functions that were attached to an object, a collection, a partition or the root."""
    with settings.connect() as target:
        functions_of(target, None).detach(address)


def names_of(functions: Functions, stages: list[FunctionStage]) -> dict[ObjectRef, str]:
    """Names of the functions; one that was removed has none."""
    partitions = {each.function.partition_id for each in stages if each.function}
    found = [each for pid in partitions for each in Functions(functions.target, pid).ls()]
    return {each.id: each.name for each in found}


@click.command(cls=Listing)
@click.argument("address", type=ADDRESS)
@click.pass_obj
def attached(settings: Settings, address: ObjectRef) -> None:
    """List the functions that are attached to an object, a collection, a partition or the root.

    Inherited functions are listed with the collection, partition or root that they are attached to.
    """
    with settings.connect() as target:
        functions = functions_of(target, None)
        stages = functions.attached(address)
        names = names_of(functions, stages)
    records: list[JsonRow] = [
        {
            "schema": "iosd.stage/1",
            "place": place,
            "function": str(each.function) if each.function else "",
            "name": names.get(each.function, "") if each.function else "",
            "method": each.method,
            "parameters": each.parameters,
            "inherited": each.inherited,
        }
        for place, each in enumerate(stages, 1)
    ]
    settings.show(records, COLUMNS, "iosd.stages/1", "stages")
