# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads a script and the options it carries: lines ``#OSD --limit-mem 256MiB`` at its top."""

from __future__ import annotations

import codecs
import shlex

import click

from pyosd.cli.codes import Exit

__all__ = ["embedded_options", "late_options", "read_script"]

MARK = "#OSD"
LARGEST = 16 << 20  # bytes of code an EXEC carries (design D26)
META = "pyosd.cli.script"


class Unreadable(click.ClickException):
    """The script is not there."""

    exit_code = Exit.NO_INPUT


def read_script(ctx: click.Context, file: str) -> bytes:
    """Read the script; stdin, which can be read only once, is kept in the context."""
    if META not in ctx.meta:
        try:
            with click.open_file(file, "rb") as source:
                code = source.read(LARGEST + 1)
        except OSError as error:
            raise Unreadable(f"{file}: {error.strerror}") from None
        if not code:
            name = "standard input" if file == "-" else f"'{file}'"
            raise click.UsageError(f"{name} is empty")
        if len(code) > LARGEST:
            raise click.UsageError(f"'{file}' is longer than {LARGEST >> 20} MiB")
        ctx.meta[META] = code
    kept = ctx.meta[META]
    assert isinstance(kept, bytes)
    return kept


def embedded_options(code: bytes) -> list[tuple[int, list[str]]]:
    """Return the words of the #OSD lines among the comments that open a script, by line number."""
    found: list[tuple[int, list[str]]] = []
    for number, line in enumerate(_lines(code), 1):
        if line and not line.startswith(b"#"):
            break
        if _marked(line):
            text = line[len(MARK) :].decode(errors="replace")
            try:
                found.append((number, shlex.split(text, comments=True)))
            except ValueError as error:
                raise click.UsageError(f"line {number} of the script: {error}") from None
    return found


def late_options(code: bytes) -> list[int]:
    """The numbers of the #OSD lines that come too late to be options."""
    marked = [number for number, line in enumerate(_lines(code), 1) if _marked(line)]
    read = {number for number, _ in embedded_options(code)}
    return [number for number in marked if number not in read]


def _lines(code: bytes) -> list[bytes]:
    return [line.strip() for line in code.removeprefix(codecs.BOM_UTF8).split(b"\n")]


def _marked(line: bytes) -> bool:
    return line.startswith(MARK.encode()) and line[len(MARK) :][:1].isspace()
