# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd mkdir``, ``osd rm`` and ``osd mv``: paths that come, go and change."""

from __future__ import annotations

from contextlib import suppress

import click

from pyosd import errors
from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.params import PATH
from pyosd.cli.frame.verb import YES, Failure, Settings, Verb
from pyosd.cli.output.tables import counted
from pyosd.cli.paths.listing import matches
from pyosd.cli.paths.moving import check_apart
from pyosd.fs.faces import FileSystem
from pyosd.fs.job_files import check_not_jobs
from pyosd.fs.paths import join, split

__all__ = ["destinations", "mkdir", "mv", "rm"]


@click.command(cls=Verb)
@click.argument("paths", metavar="PATH...", type=PATH, nargs=-1, required=True)
@click.option(
    "-p", "--parents", is_flag=True, help="Make the directories above, too; accept one that exists."
)
@click.pass_obj
def mkdir(settings: Settings, paths: tuple[str, ...], parents: bool) -> None:
    """Make directories.

    A PATH of one name, such as /photos, makes a partition with that name.
    """
    with settings.connect() as target:
        for path in map(settings.path, paths):
            target.fs.mkdir(path, parents=parents, exist_ok=parents)


@click.command(cls=Verb)
@click.argument("paths", metavar="PATH...", type=PATH, nargs=-1, required=True)
@click.option(
    "-r", "-R", "--recursive", is_flag=True, help="Remove directories and everything below them."
)
@click.option("-f", "--force", is_flag=True, help="Ignore paths that are absent.")
@YES
@click.pass_obj
def rm(settings: Settings, paths: tuple[str, ...], recursive: bool, force: bool, yes: bool) -> None:
    """Remove files, and with -r directories.

    An object is removed with its last name. A partition stays: 'osd part rm' removes it. -r asks for
    confirmation on a terminal.
    """
    with settings.connect() as target:
        fs, found = target.fs, []
        for path in paths:
            try:
                found += list(matches(settings, fs, [path], measured=False))
            except (errors.NoSuchName, errors.NotADirectory):
                if not force:
                    raise
            except Failure as failure:
                if not force or failure.code is not Exit.NO_INPUT:
                    raise
        folders = [each for each in found if each.is_directory]
        if folders and not recursive:
            raise Failure(Exit.FAILED, f"'{folders[0].path}' is a directory; -r removes it")
        if any(each.path == "/" for each in folders):
            raise Failure(Exit.FAILED, "'/' is all partitions: name one")
        if recursive and not yes and not force:
            settings.confirm(f"Remove {', '.join(each.path for each in found)}?")
        removed = 0
        for each in found:
            with suppress(errors.NoSuchName):  # it was below an earlier one
                removed += fs.rmtree(each.path) if each.is_directory else unlinked(fs, each.path)
    settings.say(f"removed {counted(removed, 'name')}")


def unlinked(fs: FileSystem, path: str) -> int:
    """Remove one name.  Returns: 1."""
    fs.unlink(path)
    return 1


@click.command(cls=Verb)
@click.argument("sources", metavar="SOURCE...", type=PATH, nargs=-1, required=True)
@click.argument("destination", metavar="DESTINATION", type=PATH)
@click.option("-n", "--no-clobber", is_flag=True, help="Fail if the new path exists.")
@click.pass_obj
def mv(settings: Settings, sources: tuple[str, ...], destination: str, no_clobber: bool) -> None:
    """Move files and directories of the target to other paths, or rename a partition.

    With several sources, or if DESTINATION is a directory, they go into it. Within a partition each
    is moved in one step. Between partitions a file is copied inside the target, then removed. A path
    of one name is a partition's: 'osd mv /0x10000 /photos' gives it a name.
    """
    with settings.connect() as target:
        fs = target.fs
        found = [each.path for each in matches(settings, fs, sources, measured=False)]
        moves = destinations(fs, found, settings.path(destination))
        check_apart(moves)
        for source, new in moves:
            check_not_jobs(fs, source)
            if in_one_partition(fs, source, new):
                fs.rename(source, new, replace=not no_clobber)
                continue
            if fs.is_dir(source):
                raise Failure(
                    Exit.FAILED,
                    f"'{source}' is a directory, and '{new}' is in another partition: copy it with "
                    "osd cp -r, then remove it",
                )
            was = fs.resolve(source)
            fs.copy(source, new, replace=not no_clobber)
            fs.unlink(source, expected=was)


def in_one_partition(fs: FileSystem, source: str, new: str) -> bool:
    """Whether the target moves it in one step: within a partition, or as the partition's own name.

    One path can have the id of a partition, and the other its name.
    """
    old, there = split(source), split(new)
    if old[:1] == there[:1] or len(old) == len(there) == 1:
        return True
    return bool(old) and fs.resolve(f"/{old[0]}") == fs.resolve(f"/{there[0]}")


def destinations(fs: FileSystem, sources: list[str], destination: str) -> list[tuple[str, str]]:
    """Each source with its new path.  Raises: Failure: several have no directory to go to."""
    if fs.is_dir(destination):
        return [(each, join(destination, each.rpartition("/")[2])) for each in sources]
    if len(sources) != 1:
        raise Failure(Exit.FAILED, f"'{destination}' is no directory")
    return [(sources[0], destination)]
