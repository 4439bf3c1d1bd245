# SPDX-License-Identifier: GPL-2.0-or-later
"""`python -m tests.conformance [URL]`: options, our own target where no URL is given, exit code."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import click

import pyosd
from pyosd.errors import OSDError
from tests.conformance import report as written
from tests.conformance.cells import TESTS, Test
from tests.conformance.commands import BY_NAME, ROWS
from tests.conformance.lu import Failed, LogicalUnit
from tests.conformance.runner import Outcome, Report, Result, Runner

SOURCE = Path(__file__).resolve().parents[2]
OUTPUT = SOURCE / "build" / "conformance"
PAGE = SOURCE / "docs" / "conformance.md"
TABLE = SOURCE / "docs" / "commands.md"
BEGIN, END = "<!-- matrix begins -->", "<!-- matrix ends -->"
UNUSABLE = 2


def documented() -> set[str]:
    """The commands docs/commands.md says our target supports."""
    rows = re.findall(r"^\| ([0-9A-F]{4}) \| [^|]+ \| yes \|", TABLE.read_text(), re.MULTILINE)
    codes = {int(code, 16) for code in rows}
    return {row.name for row in ROWS if row.code in codes}


def required(words: str) -> set[str]:
    """--require: names of commands between commas, "all", or nothing.

    Raises: click.BadParameter: a name that is none.
    """
    names = {each.strip().upper() for each in words.split(",") if each.strip()}
    if names == {"ALL"}:
        return set(BY_NAME)
    if unknown := names - set(BY_NAME):
        raise click.BadParameter(f"no such command: {', '.join(sorted(unknown))}")
    return names


def chosen(words: tuple[str, ...]) -> list[Test]:
    """--only: tests in whose name or condition every word occurs."""

    def has(test: Test) -> bool:
        whole = f"{test.name} [{test.condition}]".lower()
        return all(word.lower() in whole for word in words)

    return [test for test in TESTS if has(test)]


def into_page(page: str, report: Report) -> str:
    """docs/conformance.md with the matrix of a run between its marks."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    shown = f"```\n{written.matrix(report)}\n\n{written.summary(report)}\n```"
    return f"{before}{BEGIN}\n{shown}\n{END}{after}"


def tell(result: Result) -> None:
    """Failures as they come; talk belongs on stderr."""
    if result.outcome is Outcome.FAILED:
        click.echo(written.failure(result), err=True)


@contextlib.contextmanager
def our_target() -> Iterator[str]:
    """A target of our own on a store that is thrown away.  Yields: its URL."""
    from tests.serving import Serving, missing

    if why := missing():
        raise click.ClickException(f"no target can be served here: {why}")
    with Serving("--no-sandboxes") as served:
        yield served.url


@click.command()
@click.argument("url", required=False)
@click.option("--require", default="", help="Commands that must be supported: names, or 'all'.")
@click.option("--destructive", is_flag=True, help="Allow FORMAT OSD: ERASES THE LOGICAL UNIT.")
@click.option("--only", multiple=True, metavar="WORD", help="Only tests whose name has the word.")
@click.option("--timeout", default=30.0, show_default=True, help="Seconds one command may take.")
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    default=OUTPUT,
    show_default=True,
    help="Folder of report.txt and report.json.",
)
@click.option("--quiet", "-q", is_flag=True, help="No matrix on the terminal.")
def main(
    url: str | None,
    require: str,
    destructive: bool,
    only: tuple[str, ...],
    timeout: float,
    output: Path,
    quiet: bool,
) -> None:
    """Run the OSD-2 conformance suite against the target at URL (iscsi://host:port/name/lun).

    Without URL a target of our own is started, formatted and removed, everything docs/commands.md
    lists is required, and the matrix in docs/conformance.md is written anew.
    """
    ours = url is None
    needed = required(require) | (documented() if ours else set())
    try:
        with (
            our_target() if url is None else contextlib.nullcontext(url) as place,
            pyosd.connect(place, timeout=timeout) as session,
        ):
            click.echo(f"conformance of {urlsplit(place).path.strip('/')}", err=True)
            t = LogicalUnit(session.transport, destructive=destructive or ours)
            report = Runner(t, require=needed, told=tell).run(chosen(only))
    except (OSDError, Failed, ValueError) as error:
        click.echo(f"the target cannot be tested: {error}", err=True)
        sys.exit(UNUSABLE)
    output.mkdir(parents=True, exist_ok=True)
    (output / "report.txt").write_text(written.text(report))
    (output / "report.json").write_text(written.as_json(report))
    if ours and not only:
        PAGE.write_text(into_page(PAGE.read_text(), report))
    if not quiet:
        click.echo(f"{written.identity(report)}\n\n{written.matrix(report)}\n")
    click.echo(written.summary(report))
    for complaint in report.complaints:
        click.echo(complaint, err=True)
    click.echo(f"written: {output}/report.txt, report.json", err=True)
    sys.exit(0 if report.good else 1)
