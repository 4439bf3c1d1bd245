# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd target check`, `repair` and `dump`: the commands for a store that no target serves."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from iosd_host.cli.host_verb import HostVerb, Settings
from iosd_host.cli.target_config import default_data
from iosd_host.common.exit_codes import EXIT_FAILED, EXIT_NO_INPUT, EXIT_PROBLEMS
from iosd_host.store_tools.check.problems import ProblemKind
from iosd_host.store_tools.check.sums import Pace, keeps_sums, trusted_epoch
from iosd_host.store_tools.check.whole_store import check_store
from iosd_host.store_tools.dump import SCHEMA, StoreAddress, dump_store, write_data
from iosd_host.store_tools.format.records import FormatError
from iosd_host.store_tools.opening.bdb import DatabaseError, text_of
from iosd_host.store_tools.opening.folders import Refused
from iosd_host.store_tools.opening.store import Store
from iosd_host.store_tools.repair.rounds import LOG, repair_store
from iosd_host.store_tools.report import Report, print_row, shown_progress
from iosd_host.store_tools.session import looking, repairing
from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.param_type import ParamType
from pyosd.cli.frame.params import SizeParam
from pyosd.cli.output.terminal import output_option

__all__ = ["StoreVerb", "check", "dump", "json_lines", "repair", "store_options"]

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class AddressType(ParamType[StoreAddress]):
    """``root``, PID or PID/OID."""

    name = "ADDRESS"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> StoreAddress:
        """Parse it."""
        if isinstance(value, StoreAddress):
            return value
        try:
            return StoreAddress.parse(str(value))
        except ValueError:
            self.fail(f"'{value}' is not root, PID or PID/OID (decimal or 0x)", param, ctx)


def store_options(command: Decorated) -> Decorated:
    """Which store."""
    folder = click.Path(path_type=Path, readable=False)  # its opening says what to do
    ssd = click.option("--ssd", type=folder, help="Folder of the store on its SSD, if it has one.")
    data = click.option(
        "--data", type=folder, help="Folder of the store, as for 'osd target serve'."
    )
    return data(ssd(command))


def work_option(command: Decorated) -> Decorated:
    """Folder for the copy of the database."""
    folder = click.Path(path_type=Path, exists=True, file_okay=False)
    return click.option(
        "--work", type=folder, help="Folder with room for a copy of the database.  [TMPDIR]"
    )(command)


def json_lines(text: str) -> Callable[[Decorated], Decorated]:
    """The option -o.  text: the lines that json prints."""
    return output_option("text", "json", text=f"Output format: text, or {text}.")


class StoreVerb(HostVerb):
    """A verb about a store that no target serves."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Earlier releases had --json, which scripts may use: it is -o json."""
        return super().parse_args(ctx, ["--output=json" if x == "--json" else x for x in args])

    def explain(self, error: BaseException) -> tuple[Exit, str]:
        """Refusals of the tools, and failures of the database and the disk."""
        if isinstance(error, Refused):
            return Exit(error.code), str(error)
        if isinstance(error, DatabaseError):
            return Exit.FAILED, f"the database fails: {text_of(error)}"
        if isinstance(error, OSError):
            where = f"'{error.filename}': " if error.filename else ""
            return Exit.FAILED, f"{where}{error.strerror or error}"
        return super().explain(error)


def report_check(store: Store, as_json: bool, verbose: bool, compare: Pace | None = None) -> Report:
    """Find everything and print it.  compare: data with its checksums, at that pace."""
    report = Report(store, as_json, verbose)
    with shown_progress(not as_json) as progress:
        for problem in check_store(store, progress, compare):
            report.problem(problem)
    return report


def compared(store: Store, pace: Pace) -> str:
    """The result of comparing data with checksums, as text."""
    if not keeps_sums(store):
        return "no checksums to compare: this store keeps none"
    text = f"{pace.read >> 20} MiB compared with their checksums"
    if trusted_epoch(store) is None:
        text += "; those of what was written lately do not hold: the machine was restarted, or it is a copy"
    return text


@click.command(cls=StoreVerb)
@store_options
@work_option
@click.option("--checksums", is_flag=True, help="Read all data and compare it with its checksums.")
@click.option(
    "--rate",
    type=SizeParam(most="1TiB"),
    default="0",
    show_default=True,
    help="Most bytes per second to read with --checksums; 0: no limit.",
)
@json_lines("one JSON line for each problem, then a summary")
@click.pass_obj
def check(
    settings: Settings,
    /,
    *,
    data: Path | None,
    ssd: Path | None,
    work: Path | None,
    checksums: bool,
    rate: int,
) -> None:
    """Check a store that no target serves; change nothing.

    The check finds records that do not decode, data files without records and records without
    files. It also finds wrong lengths and counts, incomplete memberships and jobs, and counters
    that are too low.

    It prints a line for each problem: its kind, its place, and the action of 'osd target repair'.
    With -v it also prints a line for what needs no repair.

    With --checksums it reads all data. A hard disk reads about 500 GB per hour, an SSD ten times as
    much.

    Exit 0: clean; 65: there is something to repair; 18: the store is in use.
    """
    as_json = settings.output == "json"
    with looking(data or default_data(), ssd, work) as store:
        pace = Pace(rate) if checksums else None
        report = report_check(store, as_json, settings.verbose, pace)
        report.end_check()
        if pace is not None and not as_json:
            click.echo(compared(store, pace))
    if report.errors:
        sys.exit(EXIT_PROBLEMS)


@click.command(cls=StoreVerb)
@store_options
@work_option
@click.option(
    "-n", "--dry-run", is_flag=True, help="Show what would be repaired, but change nothing."
)
@click.option("-y", "--yes", is_flag=True, help="Repair without a first check and a question.")
@json_lines("one JSON line for each problem, then a summary")
@click.pass_obj
def repair(
    settings: Settings,
    /,
    *,
    data: Path | None,
    ssd: Path | None,
    work: Path | None,
    dry_run: bool,
    yes: bool,
) -> None:
    """Repair a store that no target serves.

    The repair never deletes users' data. Data that belongs to no object becomes an object in the
    lost+found partition 0x7fffffff00000001. Its name and attributes describe its origin.

    The command checks first, and asks for confirmation. You can interrupt it and run it again.  All
    repairs are logged in repair.log in the store's folder.

    Exit 0: the store is clean; 65: some damage could not be repaired; 18: the store is in use.
    """
    folder = data or default_data()
    as_json = settings.output == "json"
    if dry_run or not yes:
        with looking(folder, ssd, work) as store:
            report = report_check(store, as_json, False)
            report.end_check()
        if dry_run:
            sys.exit(EXIT_PROBLEMS if report.errors else 0)
        if not report.errors:
            return
        settings.confirm_all(f"Repair {folder}?", yes)
    with repairing(folder, ssd) as store:
        left = report_repair(store, as_json)
    if left:
        sys.exit(EXIT_PROBLEMS)


def report_repair(store: Store, as_json: bool) -> int:
    """Repair everything and print it.  Returns how much is left."""
    report = Report(store, as_json, False)
    with shown_progress(not as_json) as progress:
        outcome = repair_store(store, progress, report.problem)
    report.end_repair(outcome.repaired, outcome.left)
    if not as_json:
        click.echo(f"the log is {store.roots.main.path / LOG}", err=True)
    if any(each.kind is ProblemKind.STORE_IDS_DIFFER for each in outcome.left):
        click.echo("osd: the SSD directory belongs to another store: give the right one", err=True)
    return len(outcome.left)


@click.command(cls=StoreVerb)
@click.argument("address", type=AddressType(), required=False)
@store_options
@work_option
@json_lines("one JSON line for each record, with bytes in hexadecimal")
@click.option(
    "--data-to",
    type=click.File("wb", lazy=False),
    metavar="FILE",
    help="Write the object's data to FILE instead of printing records; -: stdout.",
)
@click.pass_obj
def dump(
    settings: Settings,
    /,
    *,
    address: StoreAddress | None,
    data: Path | None,
    ssd: Path | None,
    work: Path | None,
    data_to: Any,
) -> None:
    """Print the records of a store that no target serves.

    It prints a line for each superblock, record, attribute, membership, job and pending removal.
    Records that do not decode are printed as bytes. It also reads stores that a target refuses to
    open.

    Exit 0: done; 66: there is no such object; 18: the store is in use.
    """
    if data_to is not None and (address is None or not address.object_id):
        raise click.UsageError("--data-to needs the address of an object, PID/OID")
    with looking(data or default_data(), ssd, work) as store:
        if data_to is not None and address is not None:
            dump_data(store, address, data_to)
            return
        found = False
        for row in dump_store(store, address):
            found = True
            print_row(row, SCHEMA, settings.output == "json")
    if not found:
        raise Refused(EXIT_NO_INPUT, "there is no such object")


def dump_data(store: Store, address: StoreAddress, output: Any) -> None:
    """The bytes of one object."""
    try:
        length = write_data(store, address, output)
    except FormatError as error:
        raise Refused(EXIT_FAILED, f"its record does not decode: {error}") from None
    if length is None:
        raise Refused(EXIT_NO_INPUT, "there is no such object")
    click.echo(f"{length} bytes", err=True)
