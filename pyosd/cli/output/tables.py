# SPDX-License-Identifier: GPL-2.0-or-later
"""Print tables, JSON and prose to stdout.

In a table numbers are aligned right.  To fit a terminal, columns with `shrink` are cut, then whole columns
with `drop` are left out.  Colour repeats what a text says and never replaces it.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import click

from pyosd.cli.output.terminal import harmless, print_names
from pyosd.wire.times import time_of

__all__ = [
    "FORMATS",
    "LONGEST",
    "Column",
    "JsonRow",
    "colour_wanted",
    "counted",
    "folded",
    "format_bytes",
    "format_seconds",
    "format_time",
    "local_time",
    "print_json",
    "print_lines",
    "print_prose",
    "print_records",
    "table_lines",
    "width_of_stdout",
]

FORMATS = ("table", "wide", "json", "jsonl", "id")
# json.dumps() escapes the ASCII control characters except DEL.  These are the characters that json_line()
# escapes, too: the other control characters, those that change the direction of text, and the surrogates
# that stand for bytes of a name that is not UTF-8.
UNSEEN = "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
SHORTEST = 6  # characters to which a column can be cut
LONGEST = 80  # characters to which a text widens its column if the output is no terminal

JsonRow = dict[str, Any]
"""One row, with the keys of its JSON schema."""


class Column(NamedTuple):
    """One column of a table.  text, colour: functions of a record that give the cell.

    right: align right, as numbers.  shrink: the texts can be cut.  wide: show only with -o wide.
    drop: leave out if the terminal is too narrow, the column with the greatest number first; 0: never.
    """

    header: str
    text: Callable[[JsonRow], str]
    right: bool = False
    shrink: bool = False
    wide: bool = False
    drop: int = 0
    colour: Callable[[JsonRow], str | None] = lambda record: None


def colour_wanted(choice: str, stream: Any) -> bool:
    """Whether to colour: as the flag says; for "auto" on a terminal, unless NO_COLOR or TERM=dumb."""
    if choice != "auto":
        return choice == "always"
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not plain and bool(stream.isatty())


def width_of_stdout() -> int | None:
    """Columns of the terminal; None: stdout is no terminal, so nothing must be cut."""
    if not sys.stdout.isatty():
        return None
    import shutil

    return shutil.get_terminal_size().columns


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: max(width - 1, 0)] + "…"


def _fit(columns: Sequence[Column], widths: list[int], room: int) -> bool:
    """Narrow the widest column that can shrink until all fit.  Returns: False: they cannot."""
    excess = sum(widths) + 2 * (len(widths) - 1) - room
    while excess > 0:
        able = [n for n, each in enumerate(columns) if each.shrink and widths[n] > SHORTEST]
        if not able:
            return False
        widest = max(able, key=lambda n: widths[n])
        widths[widest] -= 1
        excess -= 1
    return True


def _without_least(columns: Sequence[Column]) -> list[Column]:
    """The columns without the one to drop first; all of them if none can be dropped."""
    most = max(columns, key=lambda each: each.drop)
    return [each for each in columns if each is not most or not most.drop]


def table_lines(
    columns: Sequence[Column],
    rows: Sequence[JsonRow],
    *,
    header: bool = True,
    colour: bool = False,
    room: int | None = None,
) -> list[str]:
    """The lines of a table, with two spaces between columns.

    Args: room: columns of the terminal; None: nothing is cut.
    """
    table = [[harmless(column.text(row)) for column in columns] for row in rows]
    widths = [
        max([len(column.header) * header, *(len(texts[n]) for texts in table)])
        for n, column in enumerate(columns)
    ]
    if room is None:  # a text that is longer than most moves its own line alone
        widths = [
            min(width, LONGEST) if column.shrink else width
            for column, width in zip(columns, widths, strict=True)
        ]
    elif not _fit(columns, widths, room):
        fewer = _without_least(columns)
        if len(fewer) < len(columns):
            return table_lines(fewer, rows, header=header, colour=colour, room=room)

    def line(texts: Sequence[str], row: JsonRow | None) -> str:
        cells = []
        for column, text, width in zip(columns, texts, widths, strict=True):
            cell = _cut(text, width) if column.shrink and room is not None else text
            cell = cell.rjust(width) if column.right else cell.ljust(width)
            shade = column.colour(row) if row is not None and colour else None
            cells.append(click.style(cell, fg=shade) if shade else cell)
        return "  ".join(cells).rstrip()

    head = [line([column.header for column in columns], None)] if header else []
    return head + [line(texts, row) for row, texts in zip(rows, table, strict=True)]


def print_lines(lines: Iterable[str], colour: bool = False) -> None:
    """Print lines with one write, so that a reader such as `head` can close the pipe after the first.

    Others may have written parts of them: control characters are escaped, unless the lines have colours.
    """
    shown = lines if colour else map(harmless, lines)
    click.echo("".join(f"{line}\n" for line in shown), nl=False, color=colour or None)


def folded(line: str, width: int | None, hang: int = 2) -> list[str]:
    """Break a line of prose at blanks, so that each part fits.

    Args:
        width: columns; None: the line stays one.
        hang: columns by which the parts after the first are indented, beyond the line's own indentation.
    """
    if width is None or len(line) <= width:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + hang)
    import textwrap

    return textwrap.wrap(
        line,
        max(width, len(indent) + SHORTEST),
        subsequent_indent=indent,
        break_long_words=False,  # ids, digests and commands must stay easy to copy
        break_on_hyphens=False,
        replace_whitespace=False,
        expand_tabs=False,
    )


def print_prose(lines: Iterable[str], hang: int = 2) -> None:
    """Print sentences, broken to fit a terminal; without a terminal each line stays one."""
    width = width_of_stdout()
    print_lines(part for line in lines for part in folded(line, width, hang))


def print_table(
    columns: Sequence[Column], rows: Iterable[JsonRow], header: bool, colour: bool
) -> None:
    """Print rows; on a terminal they are cut to its width."""
    room = width_of_stdout()
    print_lines(table_lines(columns, [*rows], header=header, colour=colour, room=room), colour)


def json_line(value: Any) -> str:
    """One JSON value on one line, with all control characters escaped."""
    text = json.dumps(value, ensure_ascii=False)
    if text.isprintable():
        return text
    return re.sub(UNSEEN, lambda found: f"\\u{ord(found[0]):04x}", text)


def print_json(value: Any) -> None:
    """Print one JSON value on one line."""
    click.echo(json_line(value))


def print_records(
    records: Iterable[JsonRow],
    columns: Sequence[Column],
    *,
    output: str,
    schema: str,
    name: str,
    header: bool = True,
    colour: bool = False,
) -> None:
    """Print a listing.

    Args:
        records: each with "schema" and "id".
        columns: of the table.
        output: the format, one of FORMATS.
        schema: of the JSON object that holds the records.
        name: the key of the list in that object.
        header: whether a table has a line of headers.
        colour: whether a table is coloured.
    """
    if output == "json":
        print_json({"schema": schema, name: list(records)})
    elif output == "jsonl":
        print_lines(json_line(record) for record in records)
    elif output == "id":
        print_names(record["id"] for record in records)
    else:
        shown = [column for column in columns if output == "wide" or not column.wide]
        print_table(shown, records, header, colour)


def counted(count: int, one: str, many: str = "") -> str:
    """A number with its noun: "1 job", "2 jobs"."""
    return f"{count} {one if count == 1 else many or one + 's'}"


def format_bytes(count: int) -> str:
    """A size with three or four digits and a binary unit."""
    size = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def format_seconds(seconds: float) -> str:
    """A duration with a fitting unit: "12 us", "3.4 ms", "5.60 s", "1:02", "1:02:03"."""
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} us"
    if seconds < 1:
        return f"{seconds * 1e3:.1f} ms"
    if seconds < 60:
        return f"{seconds:.2f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def format_time(milliseconds: int | None) -> str:
    """A point in time, given in ms since 1970, as local time in seconds; "-" for None and 0."""
    if not milliseconds:
        return "-"
    return local_time(milliseconds).strftime("%Y-%m-%d %H:%M:%S")


def local_time(milliseconds: int) -> datetime:
    """A point in time, given in ms since 1970, in the local time zone."""
    return time_of(milliseconds).astimezone()
