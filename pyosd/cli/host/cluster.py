# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd cluster``: copies of objects on several targets."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pyosd import errors
from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.group import Group
from pyosd.cli.frame.params import ADDRESS, SIZE, InputPath
from pyosd.cli.frame.verb import Failure, Listing, Settings, explain
from pyosd.cli.host.everywhere import handle_of, targets_option
from pyosd.cli.output.progress import step_bar
from pyosd.cli.output.tables import (
    Column,
    JsonRow,
    counted,
    format_bytes,
    format_seconds,
    print_json,
)
from pyosd.cluster.at_once import NAMED, at_once
from pyosd.cluster.map_object import MapConflict
from pyosd.cluster.survey import CopyFinding, Prefer
from pyosd.cluster.upkeep import ClusterReport, Upkeep
from pyosd.types import ObjectRef
from pyosd.wire.reply import TRANSFER_MAX

if TYPE_CHECKING:
    from pyosd.cluster.many import Many

__all__ = ["cluster"]

Function = TypeVar("Function", bound=Callable[..., object])
SCHEMA = "iosd.cluster/1"
AWAY = (
    "run it again when the target answers: it continues. If the target stays down, --without leaves it "
    "out (ls, check, repair); for put and rebalance, remove it from the file of targets"
)
COLUMNS = (
    Column("OBJECT", lambda row: row["id"]),
    Column("TARGET", lambda row: row["target"] or "-"),
    Column("FAULT", lambda row: row["fault"]),
    Column("DETAIL", lambda row: row["detail"] or "-", shrink=True),
)
PLACES = (
    Column("OBJECT", lambda row: row["id"]),
    Column("TARGETS", lambda row: " ".join(row["targets"])),
)


class ClusterVerb(Listing):
    """A verb about several targets."""

    left_out = frozenset({"target"})


def partition_argument(function: Function) -> Function:
    """The argument PID."""
    return click.argument("partition", metavar="PID", type=ADDRESS)(function)


def work_options(function: Function) -> Function:
    """The options of verbs that write copies."""
    for option in (
        click.option(
            "--at-once",
            type=click.IntRange(1, 64),
            default=4,
            metavar="N",
            help="Objects to work on at a time.  [4]",
        ),
        click.option(
            "--rate",
            type=SIZE,
            default=0,
            help="Copy at most so many bytes per second.  [no limit]",
        ),
        click.option(
            "--prefer",
            type=click.Choice([each.value for each in Prefer]),
            help="If copies differ, keep the newest, or the one unchanged since it was written.  "
            "[report and keep all]",
        ),
    ):
        function = option(function)
    return function


ALL_DATA = click.option(
    "--all-data",
    is_flag=True,
    help="Read all data, instead of those that changed since the last repair.",
)
TARGETS = targets_option("File with the names and URLs of the targets.  [IOSD_TARGETS, profile]")
WITHOUT = click.option(
    "--without",
    metavar="NAME",
    multiple=True,
    help="Leave out this target, which is down; others take its copies meanwhile.  May be given more "
    "than once.",
)


def number_of(partition: ObjectRef) -> int:
    """The partition's id.  Raises: UsageError: it is no partition."""
    if partition.object_id or not partition.partition_id:
        raise click.UsageError(f"'{partition}' is not a partition: give its PID")
    return partition.partition_id


def record_of(finding: CopyFinding) -> JsonRow:
    """A fault as JSON has it."""
    return {
        "schema": "iosd.fault/1",
        "id": str(finding.object),
        "target": finding.target,
        "fault": finding.fault.value,
        "detail": finding.detail,
    }


def finish(settings: Settings, report: ClusterReport, done: str = "") -> None:
    """Print a report.  Raises: Failure: there are faults."""
    faults = [record_of(each) for each in report.findings]
    maps = {name: each and each.version for name, each in report.maps.items()}
    if settings.output == "json":
        print_json(
            {
                "schema": SCHEMA,
                "objects": report.objects,
                "copies": report.copies,
                "maps": maps,
                "written": report.written,
                "removed": report.removed,
                "written_bytes": report.bytes,
                "faults": faults,
            }
        )
    elif faults or settings.output != "table":
        settings.show(faults, COLUMNS, SCHEMA, "faults")
    found = f"{counted(report.objects, 'object')}, {counted(report.copies, 'copy', 'copies')}"
    if len({*maps.values()}) > 1:
        versions = ", ".join(f"{name} {version or 'none'}" for name, version in maps.items())
        settings.say(f"the targets have different maps: {versions}; osd cluster rebalance")
    if report.other_targets:
        settings.say(report.other_targets)
    if faults:
        raise Failure(Exit.FAILED, f"{counted(len(faults), 'fault')} in {found}{done}")
    settings.say(f"no fault in {found}{done}")


def work(
    settings: Settings,
    handle: Many,
    partition: ObjectRef,
    how: dict[str, Any],
    act: Callable[[Upkeep], ClusterReport],
) -> None:
    """Do it and print the report.  how: options of Upkeep."""
    begin, pid = time.monotonic(), number_of(partition)
    try:
        with step_bar(settings.quiet) as bar:
            report = act(Upkeep(handle, pid, progress=bar, **how))
    except MapConflict as error:
        raise Failure(Exit.WRONG_STATE, str(error)) from None
    except KeyboardInterrupt:
        raise Failure(Exit.INTERRUPTED, "interrupted; run it again: it continues") from None
    spent = format_seconds(time.monotonic() - begin)
    written = counted(report.written, "copy", "copies")
    text = f"; wrote {written} ({format_bytes(report.bytes)}), removed {report.removed}, in {spent}"
    finish(settings, report, text)


@contextmanager
def handle_for(
    settings: Settings, targets_file: str | None, partition: ObjectRef
) -> Iterator[Many]:
    """The targets; a refusal because one has no such partition, or is away, names it.

    Raises: Failure.
    """
    pid = number_of(partition)
    with handle_of(settings, targets_file) as handle:
        try:
            yield handle
        except errors.NotFound as error:
            lacking: list[str] = []
            with suppress(errors.OSDError):  # the permission to list partitions, for example
                there = {name: handle.target(name).list_partitions() for name in handle.names}
                lacking = [name for name, pids in there.items() if pid not in pids]
            if not lacking:
                raise noted(error) from None
            raise Failure(
                Exit.NO_INPUT,
                f"{partition} does not exist at {', '.join(lacking)}; each target needs it: "
                f"'osd part create {partition} --target URL'",
            ) from None
        except errors.Unreachable as error:
            with handle_of(settings, targets_file) as again:  # its sessions wait for no other ones
                ends = at_once(again.target, again.names)
            away = ", ".join(name for name, end in ends.items() if end.exception())
            lines = [f"{away} does not answer: {error}", AWAY]
            if not away:
                lines = [
                    f"a target was lost during the work: {error}",
                    "run it again when it works: it continues",
                ]
            notes = getattr(error, "__notes__", ())
            lines += [each for each in notes if not (away and each.startswith(NAMED))]
            raise Failure(Exit.UNREACHABLE, "\n  ".join(lines)) from None
        except errors.OSDError as error:
            raise noted(error) from None


def noted(error: errors.OSDError) -> Failure:
    """A refusal with its notes: the target's name, and what may be left."""
    code, text = explain(error)
    return Failure(code, "\n  ".join([text, *getattr(error, "__notes__", ())]))


@click.group(cls=Group)
def cluster() -> None:
    """Manage copies of objects on several targets."""


@cluster.command(cls=ClusterVerb)
@click.argument("files", metavar="FILE...", type=InputPath(dir_okay=False), nargs=-1,
                required=True)  # fmt: skip
@partition_argument
@click.option(
    "--copies",
    type=click.IntRange(1),
    default=2,
    metavar="N",
    help="Copies of each object, each on another target.  [2]",
)
@TARGETS
@click.pass_obj
def put(
    settings: Settings,
    files: tuple[str, ...],
    partition: ObjectRef,
    copies: int,
    targets_file: str | None,
) -> None:
    """Store each FILE as an object with copies on several targets.

    A file has at most 64 MiB.
    """
    rows = []
    with handle_for(settings, targets_file, partition) as handle:
        try:
            for name in files:
                size = Path(name).stat().st_size
                if size > TRANSFER_MAX:
                    raise Failure(Exit.USAGE, f"{name}: {size} bytes are more than {TRANSFER_MAX}")
                made = handle.put(number_of(partition), Path(name).read_bytes(), copies=copies)
                rows.append(
                    {"schema": "iosd.copies/1", "id": str(made.object), "targets": made.targets}
                )
        finally:  # the objects before one that fails are stored: without their ids nobody finds them
            if rows:
                settings.show(rows, PLACES, SCHEMA, "objects")


@cluster.command(cls=ClusterVerb)
@partition_argument
@TARGETS
@WITHOUT
@click.pass_obj
def ls(
    settings: Settings, partition: ObjectRef, targets_file: str | None, without: tuple[str, ...]
) -> None:
    """List the objects of a partition at all targets, and the targets that have copies."""
    with handle_for(settings, targets_file, partition) as handle:
        found = handle.objects(number_of(partition), without=without)
    rows: list[JsonRow] = [
        {"schema": "iosd.copies/1", "id": str(each.object), "targets": each.targets}
        for each in sorted(found, key=lambda each: each.object)
    ]
    settings.show(rows, PLACES, SCHEMA, "objects")


@cluster.command(cls=ClusterVerb)
@partition_argument
@TARGETS
@WITHOUT
@ALL_DATA
@click.pass_obj
def check(
    settings: Settings,
    partition: ObjectRef,
    targets_file: str | None,
    without: tuple[str, ...],
    all_data: bool,
) -> None:
    """Compare the copies of a partition and report faults; exit 1 if there are any.

    Jobs at the targets compute the hashes of data that changed since the last repair.
    """
    with handle_for(settings, targets_file, partition) as handle:
        pid = number_of(partition)
        with step_bar(settings.quiet) as bar:
            upkeep = Upkeep(handle, pid, without=without, all_data=all_data, progress=bar)
            report = upkeep.check()
        finish(settings, report)


@cluster.command(cls=ClusterVerb)
@partition_argument
@TARGETS
@WITHOUT
@ALL_DATA
@work_options
@click.pass_obj
def repair(
    settings: Settings,
    /,
    partition: ObjectRef,
    targets_file: str | None,
    without: tuple[str, ...],
    all_data: bool,
    **how: Any,
) -> None:
    """Restore missing copies, and replace copies that cannot be used.

    If the command is interrupted, run it again: it continues.
    """
    prefer, how["without"], how["all_data"] = how.pop("prefer"), without, all_data
    with handle_for(settings, targets_file, partition) as handle:
        chosen = prefer and Prefer(prefer)
        work(settings, handle, partition, how, lambda upkeep: upkeep.repair(prefer=chosen))


@cluster.command(cls=ClusterVerb)
@partition_argument
@TARGETS
@ALL_DATA
@click.option(
    "--copies",
    type=click.IntRange(1),
    metavar="N",
    help="Copies that each object shall have.  [as many as now]",
)
@click.option(
    "--leaving",
    metavar="NAME",
    multiple=True,
    help="Move all copies of this target to the others.  May be given more than once.",
)
@work_options
@click.pass_obj
def rebalance(
    settings: Settings,
    /,
    partition: ObjectRef,
    targets_file: str | None,
    all_data: bool,
    copies: int | None,
    leaving: tuple[str, ...],
    **how: Any,
) -> None:
    """Spread the objects of a partition over the targets of the file.

    Writes a new version of the partition's map to each target if the targets are others than before.
    Copies are removed last.  If the command is interrupted, run it again: it continues.
    """
    prefer, how["all_data"] = how.pop("prefer"), all_data
    chosen = prefer and Prefer(prefer)

    def act(upkeep: Upkeep) -> ClusterReport:
        return upkeep.rebalance(copies=copies, prefer=chosen, leaving=leaving)

    with handle_for(settings, targets_file, partition) as handle:
        work(settings, handle, partition, how, act)
