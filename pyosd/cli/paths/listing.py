# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd ls``, ``osd stat``, ``osd find`` and ``osd du``: what the paths of a target lead to."""

from __future__ import annotations

import fnmatch
import sys
from collections.abc import Iterable, Iterator

import click

from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.params import MOMENT, PATH, SIZE
from pyosd.cli.frame.verb import Failure, Listing, Settings
from pyosd.cli.output.tables import Column, JsonRow, format_time
from pyosd.cli.output.terminal import output_to, print_names
from pyosd.fs.faces import FileSystem
from pyosd.fs.lookup import entry_at
from pyosd.fs.paths import PathInfo
from pyosd.osd._paths.patterns import has_pattern

__all__ = ["du", "find", "ls", "matches", "stat"]

SCHEMA = "iosd.path/1"
KINDS = {"f": False, "d": True}

COLUMNS = (
    Column("OBJECT", lambda row: row["object"], wide=True),
    Column("LENGTH", lambda row: "-" if row["directory"] else str(row["length_bytes"]), right=True),
    Column("CREATED", lambda row: format_time(row["created_ms"]), wide=True),
    Column("MODIFIED", lambda row: format_time(row["modified_ms"])),
    Column("PATH", lambda row: row["shown"]),
)
USE_COLUMNS = (
    Column("BYTES", lambda row: str(row["length_bytes"]), right=True),
    Column("FILES", lambda row: str(row["files"]), right=True),
    Column("PATH", lambda row: row["id"]),
)


def record(info: PathInfo, shown: str = "") -> JsonRow:
    """The row of a path.  shown: its text in tables; "": all of it."""
    slash = "/" if info.is_directory and info.path != "/" else ""
    return {
        "schema": SCHEMA,
        "id": info.path,
        "object": str(info.object),
        "directory": info.is_directory,
        "length_bytes": info.length,
        "created_ms": info.created_ms,
        "modified_ms": info.modified_ms,
        "version": info.version.hex(),
        "shown": (shown or info.path) + slash,
    }


def matches(
    settings: Settings, fs: FileSystem, paths: Iterable[str], *, measured: bool = True
) -> Iterator[PathInfo]:
    """The files that paths and patterns of a command line name.

    measured: the lengths of data that functions make are wanted, too; functions may fail.

    Raises: NoSuchName; Failure: nothing matches a pattern.
    """
    for text in paths:
        path = settings.path(text)
        if not has_pattern(path) or fs.exists(path):
            yield fs.info(path) if measured else fs.carry(entry_at(fs, path))
            continue
        found = fs.glob(path)
        first = next(found, None)
        if first is None:
            raise Failure(Exit.NO_INPUT, f"nothing matches '{path}'")
        yield first
        yield from found


@click.command(cls=Listing)
@click.argument("paths", metavar="[PATH...]", type=PATH, nargs=-1)
@click.option("-R", "-r", "--recursive", is_flag=True, help="List all directories below, too.")
@click.option("-d", "--directory", is_flag=True, help="List directories themselves.")
@click.option("-l", "--long", "wide", is_flag=True, help="Show ids and created times, too.")
@click.pass_obj
def ls(
    settings: Settings, paths: tuple[str, ...], recursive: bool, directory: bool, wide: bool
) -> None:
    """List files and directories.

    PATH is /PARTITION/NAME/..., with the id or the name of a partition; it may have the patterns
    * ? [a-z] within a name, and ** for any directories. Without PATH: the profile's partition, or all
    partitions. Jobs are below /.jobs/PARTITION. Other objects without a name are not listed: 'osd
    obj ls' has them.
    """
    with settings.connect() as target:
        fs = target.fs
        rows = list[JsonRow]()
        for each in matches(settings, fs, paths or (default_path(settings),)):
            if directory or not each.is_directory:
                rows.append(record(each))
                continue
            above = each.path.rstrip("/") + "/"
            inside = fs.walk(each.path) if recursive else fs.iterdir(each.path)
            alone = len(paths) < 2 and not has_pattern("".join(paths))
            rows += [record(info, info.path[len(above) :] if alone else "") for info in inside]
    settings.show(rows, COLUMNS, "iosd.paths/1", "paths", wide=wide)


def default_path(settings: Settings) -> str:
    """The path that is meant if none is said."""
    partition = settings.profile.partition
    return "/" if partition is None else f"/{partition:#x}"


@click.command(cls=Listing)
@click.argument("paths", metavar="PATH...", type=PATH, nargs=-1, required=True)
@click.pass_obj
def stat(settings: Settings, paths: tuple[str, ...]) -> None:
    """Show files or directories: object, length, times."""
    with settings.connect() as target:
        rows = [record(each) for each in matches(settings, target.fs, paths)]
    if len(rows) == 1:
        settings.show_one(rows[0], COLUMNS, wide=True)
    else:
        settings.show(rows, COLUMNS, "iosd.paths/1", "paths", wide=True)


@click.command(cls=Listing)
@click.argument("paths", metavar="[PATH...]", type=PATH, nargs=-1)
@click.option("--name", metavar="GLOB", help="Select names that match the pattern, such as '*.gz'.")
@click.option(
    "--type",
    "kind",
    type=click.Choice([*KINDS]),
    help="Select files (f) or directories (d).",
)
@click.option("--larger", type=SIZE, metavar="SIZE", help="Select files of more than SIZE.")
@click.option("--smaller", type=SIZE, metavar="SIZE", help="Select files of less than SIZE.")
@click.option(
    "--newer",
    type=MOMENT,
    metavar="TIME",
    help="Select what was modified after TIME, or DURATION ago.",
)
@click.option("--older", type=MOMENT, metavar="TIME", help="Select what was modified before TIME.")
@click.option(
    "--max-depth",
    type=click.IntRange(1),
    metavar="N",
    help="Go down at most N levels; 1: only the entries of PATH.  [all]",
)
@click.option("-0", "--print0", is_flag=True, help="End each path with NUL, for 'xargs -0'.")
@click.pass_obj
def find(
    settings: Settings,
    paths: tuple[str, ...],
    name: str | None,
    kind: str | None,
    larger: int | None,
    smaller: int | None,
    newer: float | None,
    older: float | None,
    max_depth: int | None,
    print0: bool,
) -> None:
    """Find files and directories below paths, and print their paths.

    'osd obj find' finds objects by the values of attributes, without reading directories.
    """

    def selected(info: PathInfo) -> bool:
        return (
            (name is None or fnmatch.fnmatchcase(info.name, name))
            and (kind is None or KINDS[kind] is info.is_directory)
            and (larger is None or (info.length > larger and not info.is_directory))
            and (smaller is None or (info.length < smaller and not info.is_directory))
            and (newer is None or info.modified_ms > newer * 1000)
            and (older is None or info.modified_ms < older * 1000)
        )

    with settings.connect() as target:
        found = [
            info
            for top in matches(settings, target.fs, paths or (default_path(settings),))
            for info in target.fs.walk(top.path, max_depth)
            if selected(info)
        ]
    if print0:
        out = output_to(sys.stdout, raw=True)
        out.write("".join(f"{each.path}\0" for each in found).encode("utf-8", "surrogateescape"))
        out.flush()
    elif settings.output == "table":
        print_names(each.path for each in found)
    else:
        settings.show([record(each) for each in found], COLUMNS, "iosd.paths/1", "paths")


@click.command(cls=Listing)
@click.argument("paths", metavar="[PATH...]", type=PATH, nargs=-1)
@click.option("-s", "--summarize", is_flag=True, help="Print only the sum of each PATH.")
@click.pass_obj
def du(settings: Settings, paths: tuple[str, ...], summarize: bool) -> None:
    """Sum up the lengths of files below paths.

    Prints a line for each directory, with everything below it. A file with several names counts
    once for each.
    """
    with settings.connect() as target:
        rows = list[JsonRow]()
        for top in matches(settings, target.fs, paths or (default_path(settings),)):
            sums = summed(target.fs, top)
            kept = [top.path] if summarize else sorted(sums)
            rows += [
                {
                    "schema": "iosd.use/1",
                    "id": path,
                    "files": sums[path][0],
                    "length_bytes": sums[path][1],
                }
                for path in kept
            ]
    settings.show(rows, USE_COLUMNS, "iosd.uses/1", "uses")


def summed(fs: FileSystem, top: PathInfo) -> dict[str, list[int]]:
    """Directory -> files and bytes below it; of a file, its own."""
    sums = {top.path: [0, 0]}
    for each in fs.walk(top.path):
        if each.is_directory:
            sums.setdefault(each.path, [0, 0])
            continue
        above = each.path
        while above != top.path:
            above = above.rpartition("/")[0] or "/"
            count = sums.setdefault(above, [0, 0])
            count[0] += 1
            count[1] += each.length
        if each.path == top.path:
            sums[top.path] = [1, each.length]
    return sums
