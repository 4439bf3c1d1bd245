# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd secmgr``: making and running a security manager, and its audit log."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import click

from pyosd.cli.codes import Exit
from pyosd.cli.group import Group
from pyosd.cli.output import Column, Record, counted, format_time, print_json
from pyosd.cli.secmgr_verb import Asking, AskingListing, ask, number, text
from pyosd.cli.verb import Failure, Settings, Verb

__all__ = ["secmgr"]

DEFAULT_LISTEN = "127.0.0.1:8471"
DATA = click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Its folder.  [/var/lib/iosd-secmgr; ~/.local/share/iosd-secmgr]",
)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group(cls=Group)
def secmgr() -> None:
    """The security manager: hands out credentials, keeps the keys of targets, and a log."""


def folder_of(data: Path | None) -> Path:
    """The one said, or the usual one."""
    from pyosd.secmgr.setup import default_folder

    return data or default_folder()


def ask_passphrase() -> str:
    """On a terminal, or the first line of stdin."""
    if sys.stdin.isatty():
        return str(click.prompt("Passphrase", hide_input=True, err=True))
    return sys.stdin.readline().rstrip("\n")


@secmgr.command(cls=Verb)
@DATA
@click.option("--admin", default="admin", metavar="USER", help="First administrator.  [admin]")
@click.option(
    "--name", "names", multiple=True, metavar="NAME", help="Of this host, for its certificate."
)
@click.option(
    "--database",
    envvar="IOSD_SECMGR_DATABASE",
    metavar="URL",
    default="",
    help="postgresql://..., rather than SQLite; with a password in the environment: "
    "IOSD_SECMGR_DATABASE.",
)
@click.option("--passphrase", is_flag=True, help="Seal by one that is asked for, not by a file.")
@click.option("--no-ca", is_flag=True, help="Certificates come from elsewhere.")
@click.pass_obj
def init(
    settings: Settings,
    data: Path | None,
    admin: str,
    names: tuple[str, ...],
    database: str,
    passphrase: bool,
    no_ca: bool,
) -> None:
    """Make the folder of a new security manager, and a token for its administrator."""
    from pyosd.secmgr import pki, process, setup

    process.harden()
    folder = folder_of(data)
    token = setup.make(
        folder,
        admin=admin,
        names=[*names, *pki.default_names()],
        database=database,
        passphrase=ask_passphrase() if passphrase else None,
        authority=not no_ca,
    )
    click.echo(token)
    settings.say(
        f"the token of {admin} is in this file; next:\n"
        f"  osd secmgr serve --data {folder}\n"
        f"  export IOSD_SECMGR=https://localhost:8471 IOSD_SECMGR_TOKEN_FILE={token}"
        + ("" if no_ca else f" IOSD_SECMGR_CA={folder / pki.CA}")
    )


@secmgr.command(cls=Verb)
@DATA
@click.option(
    "--listen",
    default=DEFAULT_LISTEN,
    metavar="ADDRESS:PORT",
    help=f"Where it answers.  [{DEFAULT_LISTEN}]",
)
@click.option("--certificate", type=FILE, help="Of the server, rather than its own.")
@click.option("--key", type=FILE, help="To the certificate.")
@click.option("--client-ca", type=FILE, help="Who signs certificates of users.")
@click.pass_obj
def serve(
    settings: Settings,
    data: Path | None,
    listen: str,
    certificate: Path | None,
    key: Path | None,
    client_ca: Path | None,
) -> None:
    """Run the security manager in the foreground.  Prints its URL; ends on SIGTERM."""
    from pyosd.secmgr import process, setup

    given = None
    if certificate or key or client_ca:
        if not (certificate and key and client_ca):
            raise click.UsageError("--certificate, --key and --client-ca go together")
        given = setup.Certificates(certificate, key, client_ca)
    process.harden()
    logging.basicConfig(
        level=logging.INFO, format="%(levelname)s %(name)s: %(message)s", stream=sys.stderr
    )

    def ready(url: str) -> None:
        click.echo(url)
        sys.stdout.flush()
        process.tell_systemd("READY=1")

    opened = setup.open_folder(folder_of(data), ask_passphrase)
    setup.serve(opened, listen, ready, given)


@secmgr.command(cls=AskingListing)
@click.pass_obj
def status(settings: Settings) -> None:
    """Show which targets it has keys of, and what troubles it."""
    found = ask(settings, "status")
    records: list[Record] = [
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


@secmgr.group()
def audit() -> None:
    """The audit log: what was given, refused and changed."""


def detail_words(record: Record) -> str:
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
    help="At most so many.  [50]",
)
@click.option(
    "--after", type=click.IntRange(0), metavar="ID", help="Those with a greater id.  [the newest]"
)
@click.option("--who", metavar="USER", help="Of this user.")
@click.option("--what", metavar="NAME", help="Such as credential, credential.refused, acl.add.")
@click.pass_obj
def show(
    settings: Settings, most: int, after: int | None, who: str | None, what: str | None
) -> None:
    """Show records of the log."""
    found = ask(settings, "audit.show", most=most, after=after, who=who, what=what)
    records = [{"schema": "iosd.audit/1", **each} for each in found["records"]]
    settings.show(records, AUDIT_COLUMNS, "iosd.audit-records/1", "records")


@audit.command(cls=Asking)
@DATA
@click.option("--head", metavar="SEQ:HASH", help="Kept elsewhere; the log must contain it.")
@click.pass_obj
def verify(settings: Settings, data: Path | None, head: str | None) -> None:
    """Check the log, and print its head; exit 65 and what is wrong, if it is not whole.

    With --data the folder is read, else the running security manager checks.
    """
    if data is not None:
        problems, end = verify_folder(data, head)
    else:
        found = ask(settings, "audit.verify", head=head)
        problems, end = found["problems"], found["head"]
    for problem in problems:
        click.echo(f"osd: {problem}", err=True)
    if problems:
        raise Failure(Exit.STORE_DAMAGED, "the audit log is not whole")
    click.echo(end)


def verify_folder(data: Path, head: str | None) -> tuple[list[str], str]:
    """The same without a server."""
    from pyosd.secmgr import process, setup
    from pyosd.secmgr.audit import Head

    process.harden()
    opened = setup.open_folder(data, ask_passphrase)
    try:
        problems = list(opened.audit.verify(Head.parse(head) if head else None))
        return problems, str(opened.audit.head())
    finally:
        opened.database.close()
