# SPDX-License-Identifier: GPL-2.0-or-later
"""The common part of ``osd cp`` and ``osd sync``: operands, options, and the report about many files."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pyosd import errors
from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.hints import hints
from pyosd.cli.frame.param_type import ParamType
from pyosd.cli.frame.params import completed
from pyosd.cli.frame.verb import Failure, Settings
from pyosd.cli.output.progress import byte_bar
from pyosd.cli.output.tables import counted, format_bytes
from pyosd.cli.output.terminal import escaped, harmless, print_names
from pyosd.commands.dialogue import Stream
from pyosd.fs.faces import FileSystem
from pyosd.fs.local.local_file import make_folder
from pyosd.fs.local.transfer_record import TransferRecords
from pyosd.fs.partitions import named_refusal
from pyosd.fs.paths import SCHEME, join
from pyosd.fs.transfer import (
    SMALL_FILES,
    FileMoved,
    Incoming,
    Outgoing,
    differs,
    get_files,
    put_files,
)
from pyosd.target import Target

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

__all__ = [
    "CHECK",
    "OPERAND",
    "PARALLEL",
    "SYNC",
    "VERIFY",
    "CopyReport",
    "Operand",
    "below",
    "check_apart",
    "continued",
    "download",
    "encoded_name",
    "in_partition",
    "interruptible",
    "partition_of",
    "say_left_out",
    "say_made",
    "size_of",
    "upload",
    "why",
]

PARALLEL = click.option(
    "-P",
    "--parallel",
    type=click.IntRange(1, 256),
    metavar="N",
    default=SMALL_FILES,
    help=f"Number of small files to transfer at once.  [{SMALL_FILES}]",
)


@dataclass(frozen=True)
class Operand:
    """A path on one side: of the target, of this machine, or - for stdin or stdout."""

    text: str
    remote: bool

    @property
    def stream(self) -> bool:
        """Whether it is stdin or stdout."""
        return self.text == "-" and not self.remote


class OperandParam(ParamType[Operand]):
    """osd:/PARTITION/NAME/..., a local path, or -."""

    name = "PATH"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete osd:/PATH with names that the target has now, other words with local files."""
        from click.shell_completion import CompletionItem

        if incomplete.startswith(SCHEME):
            return completed("paths", ctx, incomplete)
        return [CompletionItem(incomplete, type="file")]

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Operand:
        """Decide the side."""
        text = str(value)
        if not text or "\0" in text:
            self.fail("a path has at least one character, and none is NUL", param, ctx)
        return Operand(text, text.startswith(SCHEME))


OPERAND = OperandParam()


REPEAT, SYNC = "repeat the command", "use 'osd sync SOURCE DESTINATION'"
"""How an interrupted copy continues.  A directory that exists would get the copy of 'cp -r' inside."""
VERIFY = click.option(
    "--verify", is_flag=True, help="Read each copy back, and compare it with its source."
)
CHECK = click.option(
    "--check",
    is_flag=True,
    help="Compare checksums with the target's for small files, too, as for files above 1 MiB.",
)


def check_sides(operands: Iterable[Operand]) -> None:
    """Raises: click.UsageError: no operand is on the target."""
    texts = list(operands)
    if not any(each.remote for each in texts):
        raise click.UsageError(
            f"no path is one of the target: write osd:{texts[-1].text} for a path there"
        )


def in_partition(path: str) -> str:
    """The path, where files can be stored.  Raises: Failure: it is the root."""
    if path == "/":
        raise Failure(Exit.FAILED, "files are stored in a partition: osd:/PARTITION/...")
    return path


def encoded_name(name: str) -> bytes:
    """The bytes of a local name."""
    return os.fsencode(name)


def below(folder: Path, relative: str) -> Path:
    """The local path for a path of the target.

    Raises: Failure: a name of it is none of a file here, and would lead out of the folder.
    """
    if any(name in ("", ".", "..") or "\0" in name for name in relative.split("/")):
        raise Failure(Exit.FAILED, f"no file can have the name '{relative}'")
    return folder / relative


def check_apart(copies: Iterable[tuple[str, str]]) -> None:
    """Check sources and their new paths.  Raises: Failure: two would get one path."""
    sources = dict[str, str]()
    for source, new in copies:
        other = sources.setdefault(new, source)
        if other != source:
            both = f"'{other}' and '{source}' would both be '{new}'"
            raise Failure(Exit.FAILED, f"{both}: give them different directories")


class CopyReport:
    """Counts what was moved, and prints each failure as it comes.

    names: whether to print the name of each file, too.  verify: compare each copy with its source.
    check: compare checksums of small files, too.
    """

    def __init__(self, settings: Settings, names: bool, verify: bool, check: bool) -> None:
        self.settings, self.names, self.verify, self.check = settings, names, verify, check
        self.files = self.bytes = self.failed = 0
        self.remedies = dict[str, None]()
        self.rest = REPEAT

    def of(self, target: Target, moved: Stream[FileMoved], above: str = "/") -> None:
        """Take outcomes as they come.  above: the path of the partition that files go to."""
        with interruptible(lambda: self.files, self.rest):
            self._take(target, moved, above)

    def _take(self, target: Target, moved: Stream[FileMoved], above: str) -> None:
        """The same, to the end."""
        for each in target.carry_stream(moved):
            error = each.error or (self._difference(target, each) if self.verify else None)
            if isinstance(error, errors.OSDError) and isinstance(each.item, Outgoing):
                error = named_refusal(error, join(above, os.fsdecode(each.item.path)))
            if error is not None:
                self.fail(str(each.local), error)
            else:
                if each.kept:
                    self.settings.say(continued(str(each.local), each.kept))
                self.count(str(each.local), each.length)

    def _difference(self, target: Target, moved: FileMoved) -> Exception | None:
        """Why a copy is not equal to its source; None: it is."""
        try:
            different = target.carry(differs(moved))
        except errors.Unreachable:
            raise
        except (OSError, errors.OSDError) as error:
            return error
        return OSError(errno.EIO, "the copy differs from its source") if different else None

    def count(self, name: str, length: int) -> None:
        """One that was moved."""
        self.files += 1
        self.bytes += length
        if self.names:
            print_names([name])

    def fail(self, name: str, error: Exception) -> None:
        """One that was not moved."""
        self.failed += 1
        self.remedies.update(dict.fromkeys(hints(error)))
        click.echo(escaped(f"osd: {harmless(name)}: {why(error)}"), err=True)

    def end(self, more: str = "") -> None:
        """Sum up.  Raises: Failure: not all were moved."""
        if self.failed:
            total = counted(self.files + self.failed, "file")
            text = f"{self.failed} of {total} failed"
            raise Failure(Exit.FAILED, "\n  ".join([text, *self.remedies]))
        self.settings.say(f"{counted(self.files, 'file')}, {format_bytes(self.bytes)}{more}")


def say_left_out(path: Path) -> None:
    """Report a path that cannot be copied."""
    kind = "a link to a folder" if path.is_dir() else "no file, or a link that leads nowhere"
    click.echo(harmless(f"osd: {path}: left out: it is {kind}"), err=True)


@contextmanager
def interruptible(done: Callable[[], int], rest: str = REPEAT) -> Iterator[None]:
    """Say how to continue what Ctrl-C, or the loss of the target, ends.

    done: how many files were moved.  rest: how to move the rest.
    """
    try:
        yield
    except (KeyboardInterrupt, errors.Unreachable) as error:
        how = "interrupted" if isinstance(error, KeyboardInterrupt) else "the target was lost"
        text = f"{how}, {counted(done(), 'file')} done; {rest} for the rest"
        click.echo(f"osd: {text}", err=True)
        raise


def continued(name: str, kept: int) -> str:
    """The line about a file of which an earlier transfer had moved the beginning."""
    return f"{harmless(name)}: continued at {format_bytes(kept)}"


def why(error: Exception) -> str:
    """The reason, without the name of a file that the line has already."""
    if isinstance(error, OSError) and not isinstance(error, errors.OSDError) and error.strerror:
        return error.strerror
    return str(error)


def partition_of(path: str) -> str:
    """The path of the partition that a path of the target is in."""
    return "/" + path.split("/")[1]


def say_made(settings: Settings, fs: FileSystem) -> None:
    """Report the partitions that were made: a name may be a typing error."""
    while fs.made:
        settings.say(f"{fs.made.pop(0)} is a new partition")


def upload(
    settings: Settings,
    target: Target,
    destination: str,
    files: list[Outgoing],
    folders: Iterable[str],
    replace: bool,
    parallel: int,
    report: CopyReport,
) -> None:
    """Make folders of the target, then store files.  destination: a path of the partition."""
    fs = target.fs
    above = partition_of(destination)
    for folder in folders:
        fs.mkdir(folder, parents=True, exist_ok=True)
    say_made(settings, fs)
    base = fs.resolve(above)
    total = sum(size_of(each.source) for each in files)
    with byte_bar(f"store {counted(len(files), 'file')}", total, settings.quiet) as progress:
        stream = put_files(
            base,
            files,
            replace=replace,
            parallel=parallel,
            checked=report.check,
            records=TransferRecords(target.url),
            progress=progress,
        )
        report.of(target, stream, above)


def download(
    settings: Settings,
    target: Target,
    top: Path,
    files: list[Incoming],
    folders: Iterable[Path],
    parallel: int,
    report: CopyReport,
) -> None:
    """Make local folders, then fetch files.  A folder that cannot be made fails alone, with its files.

    top: what is below it does not go through links.
    """
    failed = dict[Path, OSError]()
    for folder in folders:
        try:
            make_folder(top, folder)
        except OSError as error:
            failed[folder] = error
            report.fail(str(folder), error)
    for each in files:
        if why_not := failed.get(each.destination.parent):
            report.fail(str(each.destination), why_not)
    files = [each for each in files if each.destination.parent not in failed]
    total = sum(each.info.length for each in files)
    with byte_bar(f"fetch {counted(len(files), 'file')}", total, settings.quiet) as progress:
        stream = get_files(
            files,
            fs=target.fs,
            parallel=parallel,
            checked=report.check,
            records=TransferRecords(target.url),
            progress=progress,
        )
        report.of(target, stream)


def size_of(path: Path) -> int:
    """Of a file; 0 if it has vanished, which is an error of that file alone."""
    try:
        return path.stat().st_size
    except OSError:
        return 0
