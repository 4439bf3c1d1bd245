# SPDX-License-Identifier: GPL-2.0-or-later
"""Progress for people: a bar where stderr is a terminal, nothing where it is not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyosd.cli.output.tables import colour_wanted

__all__ = ["byte_bar", "step_bar", "watched"]

REDRAWS_PER_S = 10


def watched(quiet: bool = False) -> bool:
    """Whether a person sees what goes to stderr."""
    return not quiet and sys.stderr.isatty()


@contextmanager
def byte_bar(label: str, total: int | None, quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """Show a bar of bytes; yields what to call with the bytes moved more.

    Args:
        label: stands before the bar.
        total: bytes in all; None: unknown, shown as a moving bar and never as a made-up share.
        quiet: show nothing.
    """
    if not watched(quiet):
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TransferSpeedColumn,
    )

    console = Console(stderr=True, no_color=not colour_wanted("auto", sys.stderr))
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=None),
        DownloadColumn(binary_units=True),
        TransferSpeedColumn(),
        TimeElapsedColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, refresh_per_second=REDRAWS_PER_S
    ) as progress:
        task = progress.add_task(label, total=total)
        yield lambda count: progress.advance(task, count)


@contextmanager
def step_bar(quiet: bool = False) -> Iterator[Callable[[str, int, int], None]]:
    """Show how far the present step is; yields what to call with its name, the number done, and all."""
    if not watched(quiet):
        yield lambda step, done, total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True, no_color=not colour_wanted("auto", sys.stderr))
    with Progress(console=console, transient=True, refresh_per_second=REDRAWS_PER_S) as progress:
        task = progress.add_task("", total=None)
        yield lambda step, done, total: progress.update(
            task, description=step, completed=done, total=total
        )
