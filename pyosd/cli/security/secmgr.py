# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd secmgr``: the state of a security manager, and its audit log.

The package iosd_secmgr brings what runs on its own host: init, serve, and audit verify --data.
"""

from __future__ import annotations

import time
from typing import Any

import click

from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.nouns import Nouns
from pyosd.cli.frame.verb import Failure, Settings
from pyosd.cli.output.tables import Column, JsonRow, counted, format_time, print_json
from pyosd.cli.output.terminal import harmless
from pyosd.cli.security.secmgr_verb import Asking, AskingListing, ask, number, text

__all__ = ["print_verified", "secmgr", "verify_by_asking"]


@click.group(cls=Nouns, table={}, prefix="secmgr.")
def secmgr() -> None:
    """Run and inspect the security manager."""


@secmgr.command(cls=AskingListing)
@click.pass_obj
def status(settings: Settings) -> None:
    """Show the targets whose keys it has, and any problems."""
    found = ask(settings, "status")
    records: list[JsonRow] = [
        {"schema": "iosd.secmgr-target/1", "id": each["name"], **each} for each in found["targets"]
    ]
    if settings.output in ("json", "jsonl"):
        print_json({**found, "schema": "iosd.secmgr-status/1"})
        return
    settings.say(
        f"up since {format_time(found['started_ms'])}; {counted(found['users'], 'user')}, "
        f"{counted(found['groups'], 'group')}, {counted(found['rules'], 'rule')}; "
        f"{counted(found['audit_records'], 'record')} in the log"
    )
    former_ms = (found.get("authority") or {}).get("former_until_ms") or 0
    if former_ms > time.time() * 1000:
        settings.say(
            f"clients with a copy of the former ca.pem are refused from {format_time(former_ms)} on: "
            "give them the present one from the security manager's folder before"
        )
    settings.show(records, STATUS_COLUMNS, "", "")


STATUS_COLUMNS = (
    text("TARGET", "name", shrink=True),
    text("METHOD", "method"),
    Column("ROTATES", lambda row: f"{row['rotate_s']} s" if row["rotate_s"] else "never"),
    text("URL", "url", wide=True),
    Column(
        "TROUBLE",
        lambda row: row["trouble"] or "-",
        shrink=True,
        colour=lambda row: "red" if row["trouble"] else None,
    ),
)


@secmgr.group(cls=Nouns, table={}, prefix="secmgr.audit.")
def audit() -> None:
    """Read and verify the audit log."""


def detail_words(record: JsonRow) -> str:
    """Fields of a record in a line."""
    detail: dict[str, Any] = record["detail"]
    return " ".join(
        f"{key}={','.join(map(str, value)) if isinstance(value, list) else value}"
        for key, value in detail.items()
    )


AUDIT_COLUMNS = (
    number("ID", "id"),
    Column("WHEN", lambda row: format_time(row["at_ms"])),
    text("WHO", "who", shrink=True),
    text("WHAT", "what"),
    Column("DETAIL", detail_words, shrink=True),
)


@audit.command("show", cls=AskingListing)
@click.option(
    "-n",
    "--most",
    type=click.IntRange(1, 1000),
    metavar="N",
    default=50,
    help="Show at most N entries.  [50]",
)
@click.option(
    "--after",
    type=click.IntRange(0),
    metavar="ID",
    help="Show only entries with a greater id.  [the newest]",
)
@click.option("--who", metavar="USER", help="Show only entries of this user.")
@click.option(
    "--what",
    metavar="NAME",
    help="Show only events of this kind, such as credential, credential.refused, acl.add.",
)
@click.pass_obj
def show(
    settings: Settings, most: int, after: int | None, who: str | None, what: str | None
) -> None:
    """Show entries of the audit log."""
    found = ask(settings, "audit.show", most=most, after=after, who=who, what=what)
    records = [{"schema": "iosd.audit/1", **each} for each in found["records"]]
    settings.show(records, AUDIT_COLUMNS, "iosd.audit-records/1", "records")


@audit.command(cls=Asking)
@click.option(
    "--head",
    metavar="SEQ:HASH",
    help="Hash of the newest entry, kept elsewhere, which the log must contain.",
)
@click.pass_obj
def verify(settings: Settings, head: str | None) -> None:
    """Verify the audit log and print its head; exit 65 if it is damaged."""
    print_verified(*verify_by_asking(settings, head))


def verify_by_asking(settings: Settings, head: str | None) -> tuple[list[str], str]:
    """Have the running security manager check its log.  Returns: its problems, and its head."""
    found = ask(settings, "audit.verify", head=head)
    return found["problems"], found["head"]


def print_verified(problems: list[str], head: str) -> None:
    """Print the head of a log that is whole; else its problems.  Raises: Failure."""
    for problem in problems:
        click.echo(harmless(f"osd: {problem}"), err=True)
    if problems:
        raise Failure(Exit.STORE_DAMAGED, "the audit log was changed, or a part of it is missing")
    click.echo(harmless(head))
