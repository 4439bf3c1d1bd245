# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd sync``: a directory of the target made equal to a local folder, or the other way round."""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import click

from pyosd import errors
from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.verb import YES, Failure, Settings, Verb
from pyosd.cli.output.tables import counted
from pyosd.cli.output.terminal import harmless, print_names
from pyosd.cli.paths.moving import (
    CHECK,
    OPERAND,
    PARALLEL,
    VERIFY,
    CopyReport,
    Operand,
    below,
    check_sides,
    download,
    encoded_name,
    in_partition,
    partition_of,
    say_left_out,
    upload,
)
from pyosd.fs.faces import FileSystem
from pyosd.fs.local.local_tree import local_tree
from pyosd.fs.paths import PathInfo, encoded, join, split
from pyosd.fs.transfer import Incoming, Outgoing
from pyosd.target import Target
from pyosd.types import ROOT
from pyosd.wire.attributes import Information, Page

__all__ = ["sync"]

CLOCKS_AGREE_MS = 1000
_TICK_MS = 10
"""The kernel gives files the time of its last tick: it is late by so much at most."""


@dataclass(frozen=True)
class LocalEntry:
    """A file or folder: whether it is a folder, length, when its data changed, and when data, name or
    permissions did.
    """

    is_directory: bool
    length: int
    modified_ms: int
    changed_ms: int

    @classmethod
    def of(cls, path: Path, is_directory: bool) -> LocalEntry:
        """Of a path, or the file that a link leads to."""
        state = path.stat()
        times = (each // 1_000_000 for each in (state.st_mtime_ns, state.st_ctime_ns))
        return cls(is_directory, state.st_size, *times)


@click.command(cls=Verb)
@click.argument("source", metavar="SOURCE", type=OPERAND)
@click.argument("destination", metavar="DESTINATION", type=OPERAND)
@click.option("--delete", is_flag=True, help="Remove files of DESTINATION that SOURCE lacks.")
@click.option("-n", "--dry-run", is_flag=True, help="Print what would be done, and do nothing.")
@click.option("--size-only", is_flag=True, help="Compare lengths only, not times.")
@click.option(
    "--exclude",
    multiple=True,
    metavar="GLOB",
    help="Leave out names or relative paths that match the pattern, and all below them.",
)
@click.option("--names", is_flag=True, help="Print the name of each file that is copied.")
@YES
@VERIFY
@CHECK
@PARALLEL
@click.pass_obj
def sync(
    settings: Settings,
    source: Operand,
    destination: Operand,
    delete: bool,
    dry_run: bool,
    size_only: bool,
    exclude: tuple[str, ...],
    names: bool,
    yes: bool,
    verify: bool,
    check: bool,
    parallel: int,
) -> None:
    """Copy what is new or changed from one folder to another.

    One of both is a directory of the target, such as osd:/photos/2024. A file is copied if it is
    absent, has another length, or has changed since the copy was made. A copy that was interrupted
    goes on when the command is repeated. --delete asks for confirmation on a terminal.
    """
    check_sides([source, destination])
    if source.remote and destination.remote:
        raise click.UsageError("one of both folders is local; 'osd cp -r' copies inside the target")
    report = CopyReport(settings, names, verify, check)
    with settings.connect() as target:
        if source.remote:
            here, there = Path(destination.text), settings.path(source.text)
        else:
            here, there = Path(source.text), in_partition(settings.path(destination.text))
        plan = Plan(target, here, there, exclude)
        plan.read(to_target=destination.remote)
        wanted = plan.changed(destination.remote, size_only)
        extra = plan.extra(destination.remote) if delete else []
        if dry_run:
            print_names([*(f"copy {n}" for n in wanted), *(f"remove {n}" for n in extra)])
            if destination.remote and plan.is_new_partition():
                settings.say(f"{partition_of(there)} would be a new partition")
            return
        if extra and not yes:
            settings.confirm(f"Remove {counted(len(extra), 'file')} of {destination.text}?")
        plan.copy(settings, wanted, destination.remote, parallel, report)
        plan.remove(extra, destination.remote)
    report.end(f"; removed {len(extra)}" if extra else "")


class Plan:
    """Both folders, by names relative to them."""

    def __init__(self, target: Target, here: Path, there: str, exclude: Iterable[str]) -> None:
        self.target, self.fs = target, target.fs
        self.here, self.there = here, there
        self.exclude = tuple(exclude)
        self.local = dict[str, LocalEntry]()
        self.remote = dict[str, PathInfo]()
        self.left_out = set[str]()
        self.stay = set[str]()  # directories of the destination with something that was left out

    def _skipped(self, path: Path) -> None:
        """Report what is neither a file nor a folder, unless it is excluded anyway."""
        name = str(path.relative_to(self.here))
        self.left_out.add(name)
        if not self._excluded(name):
            say_left_out(path)

    def _vanished(self, path: str) -> None:
        """Keep the copies of a directory that was removed or renamed while the source was listed."""
        self.left_out.add(path[len(self.there.rstrip("/")) + 1 :])
        click.echo(harmless(f"osd: {path}: left out: it was removed meanwhile"), err=True)

    def _stays(self, path: Path) -> None:
        """Nothing removes a link, socket or device of the destination."""
        self.stay.update(with_above(str(path.relative_to(self.here))))

    def read(self, to_target: bool) -> None:
        """List both.  Raises: Failure, NoSuchName: the source is absent, or no directory, or the target's
        side is removed meanwhile.
        """
        if self.here.is_dir():
            skipped = self._skipped if to_target else self._stays
            for path, name, is_folder in local_tree(self.here, skipped):
                if not self._excluded(name):
                    self.local[name] = LocalEntry.of(path, is_folder)
                elif not to_target:
                    self._stays(path)
        elif to_target:
            raise Failure(Exit.NO_INPUT, f"'{self.here}' is no folder")
        if to_target and not self.fs.is_dir(self.there):
            return
        if not to_target and not self.fs.info(self.there).is_directory:
            raise Failure(Exit.NO_INPUT, f"'{self.there}' is no directory")
        start = len(self.there.rstrip("/")) + 1
        vanished = None if to_target else self._vanished
        for info in self.fs.walk(self.there, vanished=vanished):
            name = info.path[start:]
            if name and not self._excluded(name):
                self.remote[name] = info
            elif to_target:
                self.stay.update(with_above(name))

    def is_new_partition(self) -> bool:
        """Whether the target's side is in a partition that is absent, if the user may know that."""
        with suppress(errors.PermissionDenied):
            return not self.fs.exists(partition_of(self.there))
        return False

    def _excluded(self, name: str) -> bool:
        return any(
            fnmatch.fnmatchcase(text, each)
            for each in self.exclude
            for text in (*with_above(name), *name.split("/"))
        )

    def changed(self, to_target: bool, size_only: bool) -> list[str]:
        """Names to copy, directories first."""
        sources: dict[str, LocalEntry] | dict[str, PathInfo]
        sources, others = self._sides(to_target)
        found = list[str]()
        for name, each in sources.items():
            other = others.get(name)
            if other is not None and other.is_directory != each.is_directory:
                raise Failure(Exit.FAILED, f"'{name}' is a directory on one side only")
            if other is None or (
                not each.is_directory
                and (
                    other.length != each.length
                    or (not size_only and self._has_changed(name, to_target))
                )
            ):
                found.append(name)
        return found

    def _has_changed(self, name: str, to_target: bool) -> bool:
        """Whether a file of the same length may have other data than its copy.

        A file that was moved to its place can be older than the copy of the one before it.  A copy from the
        target has the time of its source.
        """
        here, there = self.local[name], self.remote[name].modified_ms
        if here.modified_ms == there:
            return False
        if to_target:
            return max(here.modified_ms, here.changed_ms) > there - self._ahead_ms - _TICK_MS
        return there > 0  # else the target does not know it

    @cached_property
    def _ahead_ms(self) -> int:
        return clock_ahead(self.target)

    def extra(self, to_target: bool) -> list[str]:
        """Names that only the destination has, the deepest first.

        The source has a name that was left out, such as a link to a disk that is not mounted, or may have
        it: a directory that vanished.  Names that were left out of the destination stay there, in their
        directories.
        """
        sources, others = self._sides(to_target)
        found = (name for name in others if name not in sources and name not in self.stay)
        return sorted((n for n in found if self.left_out.isdisjoint(with_above(n))), reverse=True)

    def _sides(
        self, to_target: bool
    ) -> tuple[
        dict[str, LocalEntry] | dict[str, PathInfo], dict[str, LocalEntry] | dict[str, PathInfo]
    ]:
        return (self.local, self.remote) if to_target else (self.remote, self.local)

    def copy(
        self,
        settings: Settings,
        wanted: list[str],
        to_target: bool,
        parallel: int,
        report: CopyReport,
    ) -> None:
        """Copy names."""
        if to_target:
            folders = [
                self.there,
                *(join(self.there, n) for n in wanted if self.local[n].is_directory),
            ]
            prefix = encoded(split(self.there)[1:])
            files = [
                Outgoing(self.here / name, prefix + b"/" * bool(prefix) + encoded_name(name))
                for name in wanted
                if not self.local[name].is_directory
            ]
            upload(settings, self.target, self.there, files, folders, True, parallel, report)
            return
        places = {name: below(self.here, name) for name in wanted}
        local_folders = [self.here, *(places[n] for n in wanted if self.remote[n].is_directory)]
        incoming = [
            Incoming(self.remote[name], places[name])
            for name in wanted
            if not self.remote[name].is_directory
        ]
        download(settings, self.target, self.here, incoming, local_folders, parallel, report)

    def remove(self, names: list[str], at_target: bool) -> None:
        """Remove names of the destination, unless they are gone: the copy may have used a file that an
        interrupted one had left.
        """
        for name in names:
            with suppress(FileNotFoundError):  # NoSuchName is one, too
                if at_target:
                    remove_there(self.fs, join(self.there, name), self.remote[name].is_directory)
                elif self.local[name].is_directory:
                    (self.here / name).rmdir()
                else:
                    (self.here / name).unlink()


def clock_ahead(target: Target) -> int:
    """By how many ms the target's clock is ahead of ours at most: to copy a file once too often does no
    harm, to take a change for older than the copy does.

    A clock that is late by little counts as equal: it may have been set since the copy was made.
    """
    before = time.time()
    try:
        clock = target.get_attribute(ROOT, Page.ROOT_INFORMATION, Information.CLOCK)
    except errors.PermissionDenied as error:
        if not error.verified:
            raise
        clock = b""
    if not clock:  # the user may not know it, or the target does not say it
        return CLOCKS_AGREE_MS
    ahead = int.from_bytes(clock) - int(before * 1000)
    return 0 if -CLOCKS_AGREE_MS <= ahead < 0 else ahead


def with_above(name: str) -> list[str]:
    """A relative path, and the paths of the directories that it leads through."""
    names = name.split("/")
    return ["/".join(names[:count]) for count in range(1, len(names) + 1)]


def remove_there(fs: FileSystem, path: str, is_directory: bool) -> None:
    """Remove one name of the target."""
    if is_directory:
        fs.rmdir(path)
    else:
        fs.unlink(path)
