# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints all lines with one write, so that a reader such as `head` may close the pipe early.

Not here: tables (pyosd/cli/output/tables.py).
"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO

import click

__all__ = ["in_one_piece", "print_lines"]


def print_lines(lines: Iterable[str]) -> None:
    """Print lines in one piece."""
    click.echo("".join(f"{line}\n" for line in lines), nl=False)


class Piece(io.StringIO):
    """Text for a stream that may be a terminal."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self.stream = stream

    def isatty(self) -> bool:
        """Whether a person reads it in the end."""
        return self.stream.isatty()


@contextmanager
def in_one_piece() -> Iterator[None]:
    """Collect the output and print it in one piece, or nothing after a failure."""
    with redirect_stdout(Piece(sys.stdout)) as piece:
        yield
    click.echo(piece.getvalue(), nl=False, color=True)  # colours are decided already
