# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd mount``: files of a target as a file system of this machine."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from pyosd.cli.frame.params import DURATION, completing
from pyosd.cli.frame.verb import Settings, Verb

__all__ = ["mount"]


@click.command(cls=Verb)
@click.argument("source", metavar="PATH", shell_complete=completing("paths"))
@click.argument("place", metavar="MOUNTPOINT", type=click.Path(path_type=Path))
@click.option(
    "--allow-other/--no-allow-other",
    "others",
    default=None,
    help="Let other users of this machine use it.  [only if mounted by root]",
)
@click.option(
    "--cache",
    type=DURATION,
    metavar="DURATION",
    help="How long names and attributes are used without asking the target.  [1s]",
)
@click.option(
    "--patience",
    type=DURATION,
    default="30s",
    metavar="DURATION",
    help="How long operations wait for a target that is away, before they fail.  [30s]",
)
@click.pass_obj
def mount(
    settings: Settings,
    source: str,
    place: Path,
    others: bool | None,
    cache: float | None,
    patience: float,
) -> None:
    """Mount the files of a target on a directory.

    PATH is /PARTITION/NAME/... for a partition or directory, or / for all partitions. A target's URL
    stands for all its partitions. The program runs until 'umount MOUNTPOINT', SIGINT, SIGTERM, or the
    end of its terminal.
    """
    import os

    from pyosd.cli.output.log_lines import log_to_stderr
    from pyosd.fronts.osdfs.run import CacheTimes, MountOptions
    from pyosd.fronts.osdfs.run import mount as run
    from pyosd.fronts.osdfs.server import MountLoop

    url, path = (source, "/") if source.startswith("iscsi://") else ("", source)
    url = url or settings.url()
    chap, credentials = settings.access(url)
    options = MountOptions(
        url,
        settings.path(path),
        chap,
        credentials,
        cached=CacheTimes() if cache is None else CacheTimes(cache, cache, cache),
        patience=patience,
        others=os.geteuid() == 0 if others is None else others,
    )
    log_to_stderr()
    with asyncio.Runner(loop_factory=MountLoop) as runner:
        runner.run(run(options, place, lambda: settings.say(f"mounted on {place}")))
