# SPDX-License-Identifier: GPL-2.0-or-later
"""Markdown, as the pages of docs/ and docstrings use it, to the man macros of roff."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from pathlib import Path

import click

__all__ = ["as_roff", "escaped", "literal", "option_rows", "title"]

VERSION = (Path(__file__).resolve().parents[1] / "VERSION").read_text().strip()
SPECIAL = str.maketrans(
    {"\\": "\\e", "-": "\\-", "–": "\\(en", "→": "\\(->", "≥": "\\(>=", "≤": "\\(<=", "×": "\\(mu"}
    | {"µ": "\\(mc", "…": "...", "é": "\\('e", "├": "|", "└": "`", "─": "\\-", "│": "|"}
    | {'"': "\\(dq", "“": "\\(dq", "”": "\\(dq", "'": "\\(aq", "`": "\\(ga"}
    | {"^": "\\(ha", "~": "\\(ti", "‑": "\\-"}
)
TABLE_RULE = re.compile(r"^\|[ :|-]+\|$")
BULLET = re.compile(r"^(?:[-*]|\d+\.) +(.*)$")


def title(name: str, number: int) -> str:
    """The macro that opens a page."""
    return f'.TH {name} {number} "" "iosd {VERSION}" "iosd"'


def escaped(text: str) -> str:
    """Plain text on a line, or several, none of which is a request."""
    lines = text.translate(SPECIAL).splitlines()
    return "\n".join(f"\\&{line}" if line.startswith((".", "\\(aq")) else line for line in lines)


def literal(lines: list[str]) -> str:
    """Lines as they stand."""
    return "\n".join(
        [".PP", ".RS 4", ".nf", *(escaped(line) or "\\&" for line in lines), ".fi", ".RE"]
    )


def inline(text: str) -> str:
    """Code and emphasis within a line."""
    pieces = re.split(r"(`[^`]+`|\*\*[^*]+\*\*|\*\w[^*]*\*|\[[^\]]+\]\([^)]+\))", text)
    made = []
    for piece in pieces:
        if len(piece) > 2 and piece[0] == piece[-1] == "`":
            made.append(f"\\fB{escaped(piece[1:-1])}\\fR")
        elif piece.startswith("**") and piece.endswith("**"):
            made.append(f"\\fB{escaped(piece[2:-2])}\\fR")
        elif len(piece) > 2 and piece[0] == piece[-1] == "*":
            made.append(f"\\fI{escaped(piece[1:-1])}\\fR")
        elif link := re.fullmatch(r"\[([^\]]+)\]\([^)]+\)", piece):
            made.append(escaped(link[1]))
        else:
            made.append(piece.translate(SPECIAL))
    joined = "".join(made)
    return f"\\&{joined}" if joined.startswith((".", "'")) else joined


def cells(row: str) -> list[str]:
    """The cells of a table's row."""
    return [each.strip() for each in re.split(r"(?<!\\)\|", row.strip().strip("|"))]


def table(rows: list[str]) -> list[str]:
    """A list: the first cell, then the others with what stands above them."""
    head, *body = (cells(row) for row in rows if not TABLE_RULE.match(row))
    made = []
    for first, *others in body:
        named = zip(head[1:], others, strict=False)
        text = "; ".join(
            f"{name.lower()}: {each}" if name and len(head) > 2 else each
            for name, each in named
            if each
        )
        made += [".TP", f"\\fB{inline(first or ' ')}\\fR", inline(text or " ")]
    return made


def as_roff(text: str) -> str:
    """A text of headings, paragraphs, lists, tables and code."""
    made: list[str] = []
    code: list[str] | None = None
    rows: list[str] = []
    for line in [*text.splitlines(), ""]:
        if line.startswith("```"):
            if code is not None:
                made.append(literal(code))
            code = [] if code is None else None
            continue
        if code is not None:
            code.append(line)
            continue
        if line.startswith("|"):
            rows.append(line)
            continue
        if rows:
            made += table(rows)
            rows = []
        made += one_line(line, made)
    while made and made[-1] == ".PP":
        made.pop()
    return "\n".join(made)


def one_line(line: str, before: list[str]) -> list[str]:
    """A line that is no code and of no table."""
    text = line.strip()
    if not text:
        return [] if not before or before[-1] == ".PP" else [".PP"]
    heading = re.match(r"(#+) +(.*)", text)
    if heading:
        macro = ".SH" if len(heading[1]) == 2 else ".SS"
        words = heading[2].upper() if macro == ".SH" else heading[2]
        return [f'{macro} "{inline(words)}"']
    bullet = BULLET.match(text)
    if bullet and not line.startswith("    "):
        return [".IP \\(bu 2", inline(bullet[1])]
    return [inline(text)]


def option_rows(
    command: click.Command, context: click.Context, left_out: Collection[str | None] = ()
) -> Iterator[str]:
    """The options of a command with their words, but --help and those of the names left out."""
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is None or parameter.name in left_out or not record[0].startswith("-"):
            continue
        if "--help" not in record[0]:
            yield f".TP\n\\fB{escaped(record[0])}\\fR\n{escaped(record[1] or ' ')}"
