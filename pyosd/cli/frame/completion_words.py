# SPDX-License-Identifier: GPL-2.0-or-later
"""Words for a shell's completion: ids of the partitions, objects and jobs, and names of the functions
and pools, that exist now.

A completion that is slow or fails is worse than none: after a fifth of a second there are no words.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pyosd.target import Target

__all__ = ["addresses", "collections", "functions", "jobs", "paths", "pools"]

PATIENCE_S = 0.2
MOST = 200  # words that a person can still look through
PLAIN = re.compile(r"[\w./:@%+=,-]*")  # nothing that bash interprets


def addresses(ctx: click.Context, incomplete: str) -> list[str]:
    """Partitions; behind a slash, the objects of the one before it."""
    return _collect(ctx, incomplete, _addresses)


def collections(ctx: click.Context, incomplete: str) -> list[str]:
    """Partitions; behind a slash, the collections of the one before it."""
    return _collect(ctx, incomplete, _collections)


def paths(ctx: click.Context, incomplete: str) -> list[str]:
    """Entries of the directory before the last slash; directories end in one."""
    return _collect(ctx, incomplete, _paths)


def jobs(ctx: click.Context, incomplete: str) -> list[str]:
    """Jobs of all partitions."""
    return _collect(ctx, incomplete, _jobs)


def functions(ctx: click.Context, incomplete: str) -> list[str]:
    """Names of functions."""
    return _collect(ctx, incomplete, _functions)


def pools(ctx: click.Context, incomplete: str) -> list[str]:
    """Names of pools that take jobs."""
    return _collect(ctx, incomplete, _pools)


def _pools(target: Target, _incomplete: str) -> Iterator[str]:
    from pyosd.commands.pool_status import GONE

    yield from sorted(each.name for each in target.pools() if each.state not in GONE)


def _functions(target: Target, incomplete: str) -> Iterator[str]:
    yield from sorted({each.name for each in target.functions.ls() if each.name})


def _paths(target: Target, incomplete: str) -> Iterator[str]:
    from pyosd.fs.paths import SCHEME

    scheme = SCHEME if incomplete.startswith(SCHEME) else ""
    above = incomplete.removeprefix(scheme).rpartition("/")[0]
    for each in target.fs.iterdir(above or "/"):
        yield f"{scheme}{above}/{each.name}" + ("/" if each.is_directory else "")


def _addresses(target: Target, incomplete: str) -> Iterator[str]:
    from pyosd.types import ref

    if incomplete.startswith("/"):
        yield from _paths(target, incomplete)
        return

    partition, slash, _ = incomplete.partition("/")
    if slash:
        yield from map(str, target.list_objects(ref(int(partition, 0)).partition_id))
    else:
        yield from (f"{pid:#x}" for pid in target.list_partitions())


def _collections(target: Target, incomplete: str) -> Iterator[str]:
    from pyosd.types import ref

    partition, slash, _ = incomplete.partition("/")
    if slash:
        yield from map(str, target.list_collections(ref(int(partition, 0)).partition_id))
    else:
        yield from (f"{pid:#x}" for pid in target.list_partitions())


def _jobs(target: Target, incomplete: str) -> Iterator[str]:
    from pyosd.jobs.listed import of_partitions_with_jobs

    yield from (str(status.id) for status in of_partitions_with_jobs(target, target.jobs))


def _collect(
    ctx: click.Context, incomplete: str, words: Callable[[Target, str], Iterator[str]]
) -> list[str]:
    """Ask the target in a thread that nobody waits for when it takes too long."""
    from pyosd.cli.frame.verb import Settings

    settings = Settings(target=ctx.params.get("target"), profile_name=ctx.params.get("profile"))
    found: list[str] = []

    def ask() -> None:
        try:
            with settings.connect() as target:
                found.extend(words(target, incomplete))
        except Exception:  # whatever it is: no words
            return

    asker = threading.Thread(target=ask, daemon=True)
    asker.start()
    asker.join(PATIENCE_S)
    fit = (each for each in [*found] if each.startswith(incomplete) and is_harmless(each))
    return [*islice(fit, MOST)]


def is_harmless(word: str) -> bool:
    """Whether the shell can have it: others choose names.

    Shells print words as they are.  bash puts them into the command line as they are, too, and would run
    the commands in them; zsh and fish quote them.
    """
    if os.environ.get("_OSD_COMPLETE", "").startswith("bash"):
        return PLAIN.fullmatch(word) is not None
    return word.isprintable()
