# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd reasons``: what reason numbers mean, without asking a target."""

from __future__ import annotations

import textwrap

import click

from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.verb import Failure, Listing, Settings
from pyosd.cli.output.tables import Column, print_lines, print_records, width_of_stdout
from pyosd.jobs.reasons import REASONS, Reason

__all__ = ["explain_reason", "reasons"]

WIDTH = 88
INDENT = "  "
COLUMNS = (
    Column("REASON", lambda row: str(row["number"]), right=True),
    Column("STATE", lambda row: row["state"] or "-"),
    Column("WHAT", lambda row: row["label"]),
    Column("DO", lambda row: row["hint"], shrink=True, drop=1),
)


def explain_reason(reason: Reason, width: int = WIDTH) -> list[str]:
    """A reason's paragraph in lines of that width."""
    lines: list[str] = []
    for n, text in enumerate(reason.paragraph()):
        indent = INDENT if n else ""
        lines += textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=INDENT)
    return lines


@click.command(cls=Listing)
@click.argument("numbers", type=int, nargs=-1, metavar="[NUMBER]...")
@click.pass_obj
def reasons(settings: Settings, numbers: tuple[int, ...]) -> None:
    """Explain reason NUMBERs of jobs, or list all reasons.

    The same as iosd-reasons(7).
    """
    unknown = [number for number in numbers if number not in REASONS]
    if unknown:
        raise Failure(Exit.NO_INPUT, f"no reason has number {unknown[0]}")
    chosen = [REASONS[number] for number in numbers or REASONS]
    if numbers and settings.output == "table":
        width = min(WIDTH, width_of_stdout() or WIDTH)
        print_lines(
            line
            for each in chosen
            for line in [*explain_reason(each, width), *[""] * (each is not chosen[-1])]
        )
        return
    print_records(
        [{"id": str(each.number), **vars(each)} for each in chosen],
        COLUMNS,
        output=settings.output,
        schema="iosd.reasons/1",
        name="reasons",
        header=settings.header,
        colour=settings.colour_on_stdout,
    )
