# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd cp`` and ``osd cat``: files between this machine, the target, stdin and stdout."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

from pyosd import errors
from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.params import PATH, SIZE
from pyosd.cli.frame.verb import Failure, Settings, Verb
from pyosd.cli.output.progress import byte_bar
from pyosd.cli.output.terminal import RAW, output_to
from pyosd.cli.paths.change import destinations
from pyosd.cli.paths.listing import matches
from pyosd.cli.paths.moving import (
    CHECK,
    OPERAND,
    PARALLEL,
    SYNC,
    VERIFY,
    CopyReport,
    Operand,
    below,
    check_apart,
    check_sides,
    download,
    encoded_name,
    in_partition,
    say_left_out,
    say_made,
    upload,
)
from pyosd.fs.faces import FileSystem
from pyosd.fs.local.local_tree import local_tree
from pyosd.fs.paths import PathInfo, encoded, join, split
from pyosd.fs.transfer import Incoming, Outgoing
from pyosd.target import Target

__all__ = ["cat", "cp"]

COPY_PIECE = 4 << 20


@click.command(cls=Verb)
@click.argument("paths", metavar="PATH...", type=PATH, nargs=-1, required=True)
@click.option("--offset", type=SIZE, default=0, help="First byte to read.  [0]")
@click.option("--length", type=SIZE, help="Number of bytes to read.  [to the end]")
@RAW
@click.pass_obj
def cat(
    settings: Settings, paths: tuple[str, ...], offset: int, length: int | None, raw: bool
) -> None:
    """Print the data of files, one after the other."""
    out = output_to(sys.stdout, raw)
    with settings.connect() as target:
        for each in matches(settings, target.fs, paths):
            if each.is_directory:
                raise Failure(Exit.NO_INPUT, f"'{each.path}' is a directory")
            wanted = length
            if each.length:  # 0 also stands for a length that the target does not know
                there = max(each.length - offset, 0)
                wanted = there if length is None else min(there, length)
            for piece in target.fs.iter_data(each, offset, wanted):
                out.write(piece)
    out.flush()


@click.command(cls=Verb)
@click.argument("sources", metavar="SOURCE...", type=OPERAND, nargs=-1, required=True)
@click.argument("destination", metavar="DESTINATION", type=OPERAND)
@click.option("-r", "-R", "--recursive", is_flag=True, help="Copy directories and all below them.")
@click.option(
    "--if-exists",
    type=click.Choice(("replace", "skip", "fail")),
    default="replace",
    help="Treatment of files that exist: replace them, skip them, or fail.  [replace]",
)
@click.option("--names", is_flag=True, help="Print the name of each file that is copied.")
@VERIFY
@CHECK
@PARALLEL
@click.pass_obj
def cp(
    settings: Settings,
    sources: tuple[Operand, ...],
    destination: Operand,
    recursive: bool,
    if_exists: str,
    names: bool,
    verify: bool,
    check: bool,
    parallel: int,
) -> None:
    """Copy files to the target, from it, or inside it.

    A path of the target begins with osd:, such as osd:/photos/2024/a.jpg, and may have patterns.
    Other paths are local; - is stdin or stdout. As with cp(1), an existing directory as DESTINATION
    gets the copies inside. A file has its new name when all its bytes are there. Copies inside the
    target do not travel.
    """
    check_sides([*sources, destination])
    if any(each.stream for each in (*sources, destination)):
        with settings.connect() as target:
            copy_stream(settings, target, sources, destination, if_exists)
        return
    sides = {each.remote for each in sources}
    if len(sides) > 1:
        raise click.UsageError("give sources of one side: of the target, or local ones")
    report = CopyReport(settings, names, verify, check)
    with settings.connect() as target:
        if not destination.remote:
            fetch(
                settings,
                target,
                sources,
                Path(destination.text),
                recursive,
                if_exists,
                parallel,
                report,
            )
        elif sides == {True}:
            inside(settings, target.fs, sources, destination, recursive, if_exists, report)
        else:
            store(settings, target, sources, destination, recursive, if_exists, parallel, report)
    report.end()


def copy_stream(
    settings: Settings,
    target: Target,
    sources: tuple[Operand, ...],
    destination: Operand,
    if_exists: str,
) -> None:
    """stdin to a file of the target, or such a file to stdout."""
    if len(sources) != 1:
        raise click.UsageError("with - give exactly one other path")
    if destination.stream:
        with (
            target.open(settings.path(sources[0].text), "rb") as file,
            click.open_file("-", "wb") as out,
        ):
            shutil.copyfileobj(file, out, COPY_PIECE)
        return
    path = settings.path(destination.text)
    if if_exists == "skip" and target.fs.exists(path):
        return
    with (
        target.open(path, "wb" if if_exists == "replace" else "xb") as file,
        click.open_file("-", "rb") as source,
        byte_bar(f"store {path}", None, settings.quiet) as progress,
    ):
        while piece := source.read(COPY_PIECE):
            file.write(piece)
            progress(len(piece))


def store(
    settings: Settings,
    target: Target,
    sources: tuple[Operand, ...],
    destination: Operand,
    recursive: bool,
    if_exists: str,
    parallel: int,
    report: CopyReport,
) -> None:
    """Local files to the target."""
    fs, top = target.fs, in_partition(settings.path(destination.text))
    files, folders = list[Outgoing](), list[str]()
    local = [named(each.text) for each in sources]
    for source, new in destinations(fs, local, top):
        path = Path(source)
        if not path.is_dir():
            files.append(Outgoing(path, encoded(split(new)[1:])))
            continue
        if not recursive:
            raise Failure(Exit.FAILED, f"'{source}' is a directory; -r copies it")
        folders.append(new)
        if new == top:
            report.rest = SYNC
        prefix = encoded(split(new)[1:])
        for each, name, is_folder in local_tree(path, say_left_out):
            if is_folder:
                folders.append(f"{new}/{name}")
            else:
                files.append(Outgoing(each, prefix + b"/" * bool(prefix) + encoded_name(name)))
    partition = "/" + split(top)[0]
    check_apart((str(each.source), f"{partition}/{os.fsdecode(each.path)}") for each in files)
    if if_exists == "skip":
        there = existing(fs, partition, folders, files)
        files = [each for each in files if each.path not in there]
    upload(settings, target, top, files, folders, if_exists == "replace", parallel, report)


def named(source: str) -> str:
    """A local path that ends in the name that its copy gets; "." stands for what is in the folder."""
    return str(Path(source).resolve()) if Path(source).name == ".." else source.rstrip("/") or "/."


def existing(
    fs: FileSystem, partition: str, folders: list[str], files: list[Outgoing]
) -> set[bytes]:
    """Paths in the partition that exist already, of those that files would get."""
    found = set[bytes]()
    for folder in folders:
        if fs.is_dir(folder):
            found |= {encoded(split(each.path)[1:]) for each in fs.iterdir(folder)}
    listed = {encoded(split(folder)[1:]) for folder in folders}
    alone = (each.path for each in files if each.path.rpartition(b"/")[0] not in listed)
    return found | {each for each in alone if fs.exists(join(partition, os.fsdecode(each)))}


def fetch(
    settings: Settings,
    target: Target,
    sources: tuple[Operand, ...],
    destination: Path,
    recursive: bool,
    if_exists: str,
    parallel: int,
    report: CopyReport,
) -> None:
    """Files of the target to this machine."""
    fs = target.fs
    found = list(matches(settings, fs, [each.text for each in sources]))
    into = destination.is_dir()
    if len(found) > 1 and not into:
        raise Failure(Exit.FAILED, f"'{destination}' is no folder")
    files, folders = list[Incoming](), list[Path]()
    for each in found:
        new = below(destination, each.name) if into and each.name else destination
        if not each.is_directory:
            files.append(Incoming(each, new))
            continue
        if not recursive:
            raise Failure(Exit.FAILED, f"'{each.path}' is a directory; -r copies it")
        folders.append(new)
        if not into:
            report.rest = SYNC
        start = len(each.path.rstrip("/")) + 1
        for info in fs.walk(each.path):
            place = below(new, info.path[start:])
            if info.is_directory:
                folders.append(place)
            else:
                files.append(Incoming(info, place))
    check_apart((each.info.path, str(each.destination)) for each in files)
    if if_exists != "replace":
        taken = [each for each in files if each.destination.exists()]
        if taken and if_exists == "fail":
            raise Failure(Exit.FAILED, f"{taken[0].destination} exists; nothing is fetched")
        files = [each for each in files if not each.destination.exists()]
    download(settings, target, destination, files, folders, parallel, report)


def inside(
    settings: Settings,
    fs: FileSystem,
    sources: tuple[Operand, ...],
    destination: Operand,
    recursive: bool,
    if_exists: str,
    report: CopyReport,
) -> None:
    """Files of the target to other paths there."""
    found = {each.path: each for each in matches(settings, fs, [each.text for each in sources])}
    copies = list[tuple[PathInfo, str]]()
    for source, new in destinations(fs, [*found], settings.path(destination.text)):
        first = found[source]
        if first.is_directory and not recursive:
            raise Failure(Exit.FAILED, f"'{source}' is a directory; -r copies it")
        if first.is_directory and (new + "/").startswith(source.rstrip("/") + "/"):
            raise Failure(Exit.FAILED, f"'{new}' is inside '{source}'")
        for info in [first] if not first.is_directory else [first, *fs.walk(source)]:
            copies.append((info, new + info.path[len(source) :]))
    check_apart((info.path, new) for info, new in copies if not info.is_directory)
    for info, new in copies:
        copy_one(fs, info, new, if_exists, report)
    say_made(settings, fs)


def copy_one(fs: FileSystem, info: PathInfo, new: str, if_exists: str, report: CopyReport) -> None:
    """Copy one file or make one directory."""
    if info.is_directory:
        fs.mkdir(new, parents=True, exist_ok=True)
        return
    if if_exists == "skip" and fs.exists(new):
        return
    try:
        fs.copy(info.path, new, replace=if_exists == "replace")
    except errors.Unreachable:
        raise
    except errors.OSDError as error:
        report.fail(new, error)
        return
    report.count(new, info.length)
