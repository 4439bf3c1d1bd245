# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd fn engines``: the engines of a target, and its room for functions."""

from __future__ import annotations

from dataclasses import asdict

import click

from pyosd.cli.frame.verb import Settings, Verb
from pyosd.cli.functions.names import functions_of
from pyosd.cli.output.tables import (
    Column,
    JsonRow,
    format_bytes,
    format_seconds,
    print_json,
    print_lines,
    table_lines,
)
from pyosd.cli.output.terminal import TEXT_OR_JSON
from pyosd.functions.capacity import FunctionCapacity

__all__ = ["engines"]


def most(row: JsonRow, limit: str) -> str:
    """The greatest value that a call may have."""
    value = row["limits"].get(limit, (None, None))[1]
    if value is None:
        return "-"
    return format_bytes(int(value)) if limit == "memory" else format_seconds(value)


COLUMNS = (
    Column("ENGINE", lambda row: row["name"]),
    Column("ABI", lambda row: "-".join(map(str, sorted({*row["abi"]})))),
    Column("ACTIVE", lambda row: str(row["active"]), right=True),
    Column("RESERVED", lambda row: format_bytes(row["reserved"]), right=True),
    Column("POOL", lambda row: row["pool"]),
    Column("MAX WALL", lambda row: most(row, "wall"), right=True),
    Column("MAX CPU", lambda row: most(row, "cpu"), right=True),
    Column("MAX MEMORY", lambda row: most(row, "memory"), right=True),
)


def summary(room: FunctionCapacity) -> str:
    """The line for people."""
    bound = f" of {format_bytes(room.most_reserved)}" if room.most_reserved is not None else ""
    return (
        f"{room.active} of {room.most_active} functions are active; they reserve "
        f"{format_bytes(room.reserved)}{bound} of memory; {format_bytes(room.kept)} of "
        f"{format_bytes(room.most_kept)} of code is in memory"
    )


@click.command(cls=Verb)
@TEXT_OR_JSON
@click.pass_obj
def engines(settings: Settings) -> None:
    """List the engines of the target, and its room for functions.

    ABI: the versions of the engine's interface that a manifest may name. RESERVED: the memory limits
    of the active functions. MAX: the limits of one call in the engine's first pool.
    """
    with settings.connect() as target:
        room = functions_of(target, None).capacity()
    if settings.output == "json":
        print_json({"schema": "iosd.engines/1", **asdict(room)})
        return
    rows = [asdict(each) for each in room.engines]
    print_lines([*table_lines(COLUMNS, rows), summary(room)])
