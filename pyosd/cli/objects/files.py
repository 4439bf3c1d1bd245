# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd put`` and ``osd get``: files and folders into a partition, and back."""

from __future__ import annotations

import fnmatch
import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import click

from pyosd import errors, files
from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.hints import hints
from pyosd.cli.frame.params import ADDRESS, InputPath
from pyosd.cli.frame.verb import Failure, Settings, Verb
from pyosd.cli.output.progress import byte_bar
from pyosd.cli.output.tables import counted, format_bytes
from pyosd.cli.output.terminal import escaped, harmless, print_names
from pyosd.cli.paths.moving import CHECK, continued, interruptible, size_of, why
from pyosd.fs.local.transfer_record import TransferRecords
from pyosd.target import Target
from pyosd.types import ObjectRef

__all__ = ["get", "put"]

PARALLEL = click.option(
    "-P",
    "--parallel",
    type=click.IntRange(1, 64),
    metavar="N",
    default=files.PARALLEL,
    help=f"Number of files to transfer at once.  [{files.PARALLEL}]",
)
WORDS = ("replace", "skip", "fail")


def if_exists(what: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """The option that says what happens to what has the same name."""
    return click.option(
        "--if-exists",
        type=click.Choice(WORDS),
        default="replace",
        help=f"Treatment of {what} with the same name: replace them, skip them, or fail before "
        "the first transfer.  [replace]",
    )


@click.command(cls=Verb)
@click.argument(
    "sources",
    metavar="SOURCE...",
    type=InputPath(path_type=Path),
    nargs=-1,
    required=True,
)
@click.argument("partition", metavar="PID", type=ADDRESS)
@click.option("--prefix", default="", metavar="TEXT", help="Put TEXT before each name.")
@if_exists("objects")
@CHECK
@PARALLEL
@click.pass_obj
def put(
    settings: Settings,
    sources: tuple[Path, ...],
    partition: ObjectRef,
    prefix: str,
    if_exists: str,
    check: bool,
    parallel: int,
) -> None:
    """Store files and folders as objects of a partition.

    Prints the id and the name of each object.  An object's name is the path of its file, beginning with
    the folder that was given: 'osd put photos PID' makes photos/2024/a.jpg.  A new object gets its name
    when all its bytes are stored.  Then the object that it replaces is removed.  Files with paths, which
    'osd cp' stores, are not replaced.
    """
    if not partition.partition_id or partition.object_id:
        raise click.UsageError("the last argument must be the PID of a partition, such as 0x10000")
    found = files_to_store(sources, prefix)
    with settings.connect() as target:
        there = named(target, partition)
        if if_exists == "fail" and (taken := next((n for _, n in found if n in there), None)):
            raise Failure(
                Exit.FAILED,
                f"{partition} has an object named '{taken}' already: nothing is stored; replace it with "
                "--if-exists replace, or leave it with --if-exists skip",
            )
        if if_exists == "skip":
            found = [(path, name) for path, name in found if name not in there]
        total = sum(size_of(path) for path, _ in found)
        with byte_bar(f"put {counted(len(found), 'file')}", total, settings.quiet) as progress:
            moved = files.put_many(
                target,
                partition.partition_id,
                found,
                replace=lambda name: there.get(name, []),
                parallel=parallel,
                checked=check,
                records=TransferRecords(target.url),
                progress=progress,
            )
            report(settings, moved, len(found), total, lambda each: f"{each.obj} {each.name}")


def files_to_store(sources: Iterable[Path], prefix: str) -> list[tuple[Path, str]]:
    """The files, with the names of their objects.

    Raises: Failure: a name is not UTF-8; UsageError: get could not use the names.
    """
    try:
        found = [
            (path, prefix + name) for each in sources for path, name in files.files_below(each)
        ]
    except ValueError as error:
        raise Failure(Exit.FAILED, str(error)) from None
    wrong = next((name for _, name in found if not files.fits(name)), None)
    if wrong is not None:
        raise click.UsageError(
            f"osd get could not make a file of the name {wrong!r}: give a --prefix without '..', without "
            "'/' at its beginning, and without parts of more than 255 bytes"
        )
    twice = duplicate(name for _, name in found)
    if twice is not None:
        raise click.UsageError(
            f"two files would have the name '{twice}': store them one by one, with different --prefix"
        )
    return found


def named(target: Target, partition: ObjectRef) -> dict[str, list[ObjectRef]]:
    """The objects of a partition that have names, without those that have paths: 'osd cp' stores these.

    Raises: Failure: there is no such partition.
    """
    found: dict[str, list[ObjectRef]] = {}
    try:
        for entry in files.entries(target, partition.partition_id):
            if entry.name and not entry.placed:
                found.setdefault(entry.name, []).append(entry.obj)
    except errors.NotFound:
        raise Failure(
            Exit.NO_INPUT,
            f"there is no partition {partition}: nothing is stored\n"
            f"  make it with: osd part create {partition}",
        ) from None
    return found


def duplicate(names: Iterable[str]) -> str | None:
    """A name that occurs more than once, if there is one."""
    times = Counter(names)
    return next((name for name, count in times.items() if count > 1), None)


@click.command(cls=Verb)
@click.argument("addresses", metavar="ADDRESS...", type=ADDRESS, nargs=-1, required=True)
@click.argument("destination", metavar="FOLDER", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    "--name",
    "pattern",
    metavar="GLOB",
    help="Select only objects whose names match the pattern, such as 'logs/*.gz'.",
)
@if_exists("files")
@CHECK
@PARALLEL
@click.pass_obj
def get(
    settings: Settings,
    addresses: tuple[ObjectRef, ...],
    destination: Path,
    pattern: str | None,
    if_exists: str,
    check: bool,
    parallel: int,
) -> None:
    """Fetch objects as files into a folder and print their paths.

    ADDRESS is a partition, for all its objects, or PID/OID. A file gets the path or the name of its
    object, or the object's id if it has neither. Missing folders are created. A file appears when all its
    bytes are stored.
    """
    if any(not each.partition_id for each in addresses):
        raise click.UsageError("give partitions as PID, or objects as PID/OID")
    with settings.connect() as target:
        wanted, failed = files_to_fetch(target, addresses, destination, pattern)
        if pattern is not None and not wanted and not failed:
            settings.say(f"no object has a name that matches '{pattern}'; osd obj ls shows names")
        if if_exists == "fail" and (taken := next((p for p, _ in wanted if p.exists()), None)):
            raise Failure(
                Exit.FAILED,
                f"{taken} exists already: nothing is fetched; replace it with --if-exists replace, or "
                "leave it with --if-exists skip",
            )
        if if_exists == "skip":
            wanted = [(path, entry) for path, entry in wanted if not path.exists()]
        total = sum(entry.length for _, entry in wanted)
        with byte_bar(f"get {counted(len(wanted), 'file')}", total, settings.quiet) as progress:
            moved = files.get_many(
                target,
                wanted,
                top=destination,
                parallel=parallel,
                checked=check,
                records=TransferRecords(target.url),
                progress=progress,
            )
            report(settings, moved, len(wanted), total, lambda each: str(each.path), failed)


def files_to_fetch(
    target: Target, addresses: Iterable[ObjectRef], destination: Path, pattern: str | None
) -> tuple[list[tuple[Path, files.Entry]], int]:
    """The objects with names that match, with their paths below the destination.

    Returns: those, and the number of objects with a name that no file can have, which are reported.

    Raises: Failure: two objects have the same path.
    """
    wanted = list[tuple[Path, files.Entry]]()
    failed = 0
    places = dict[Path, ObjectRef]()
    for entry in itertools.chain.from_iterable(listed(target, each) for each in addresses):
        if pattern is not None and not fnmatch.fnmatchcase(entry.name, pattern):
            continue
        try:
            place = files.place_of(destination, entry)
        except ValueError as error:  # others store names, too: theirs do not stop ours
            failed += 1
            click.echo(harmless(f"osd: {entry.obj}: {error}"), err=True)
            continue
        if place not in places:
            places[place] = entry.obj
            wanted.append((place, entry))
        elif places[place] != entry.obj:
            both = f"{places[place]} and {entry.obj} would both be the file {place}"
            raise Failure(Exit.FAILED, f"{both}: get them into different folders")
    return wanted, failed


def listed(target: Target, address: ObjectRef) -> Iterator[files.Entry]:
    """The object that an address names."""
    if not address.object_id:
        try:
            yield from files.entries(target, address.partition_id)
        except errors.NotFound:
            raise Failure(Exit.NO_INPUT, f"there is no partition {address}") from None
    else:
        try:
            yield files.entry(target, address)
        except errors.Invalid:  # a collection has no length
            raise Failure(
                Exit.FAILED,
                f"{address} is a directory, or another collection; osd cp -r copies a directory",
            ) from None


def report(
    settings: Settings,
    moved: Iterable[files.Moved],
    count: int,
    total: int,
    line: Callable[[files.Moved], str],
    failed: int = 0,
) -> None:
    """Print each as it is done, and each that failed with the reason; then sum up.

    Args:
        failed: others, which have been reported.

    Raises: Failure: not all were moved.
    """
    count, done = count + failed, 0
    remedies = dict[str, None]()
    with interruptible(lambda: done):
        for each in moved:
            if each.error is None:
                if each.kept:
                    settings.say(continued(str(each.path), each.kept))
                print_names([line(each)])
                done += 1
                continue
            failed += 1
            remedies.update(dict.fromkeys(hints(each.error)))
            click.echo(escaped(f"osd: {harmless(str(each.path))}: {why(each.error)}"), err=True)
    if failed:
        text = f"{failed} of {counted(count, 'file')} failed"
        raise Failure(Exit.FAILED, "\n  ".join([text, *remedies]))
    settings.say(f"{counted(count, 'file')}, {format_bytes(total)}")
