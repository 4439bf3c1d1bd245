# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd secmgr init``, ``serve``, and ``audit verify`` of a folder; joined to `osd` by entry points.

The server is imported when a command runs, so that help and completion need none of its libraries.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import click

from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.params import InputPath
from pyosd.cli.frame.verb import Failure, Settings, Verb
from pyosd.cli.security.secmgr import print_verified, verify_by_asking
from pyosd.cli.security.secmgr_verb import Asking

__all__ = ["init", "serve", "verify"]

DEFAULT_LISTEN = "127.0.0.1:8471"
DATA = click.option(
    "--data",
    type=click.Path(path_type=Path),
    help="Folder of the security manager.  [/var/lib/iosd-secmgr; ~/.local/share/iosd-secmgr]",
)
FILE = InputPath(dir_okay=False, path_type=Path)


def folder_of(data: Path | None) -> Path:
    """The one said, or the usual one."""
    from iosd_secmgr import folder as folders

    return data or folders.default_folder()


def ask_passphrase() -> str:
    """On a terminal, or the first line of stdin."""
    if sys.stdin.isatty():
        return str(click.prompt("Passphrase", hide_input=True, err=True))
    return sys.stdin.readline().rstrip("\n")


@click.command(cls=Verb)
@DATA
@click.option(
    "--admin", default="admin", metavar="USER", help="Name of the first administrator.  [admin]"
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="NAME",
    help="Host name for the server's certificate.  May be given more than once.  [this host's]",
)
@click.option(
    "--database",
    envvar="IOSD_SECMGR_DATABASE",
    metavar="URL",
    default="",
    help="Use the PostgreSQL database at postgresql://... instead of SQLite.  Pass a "
    "URL with a password in IOSD_SECMGR_DATABASE.",
)
@click.option(
    "--passphrase",
    is_flag=True,
    help="Seal the keys with a passphrase that is asked for, not with a key file.",
)
@click.option(
    "--no-ca",
    is_flag=True,
    help="Create no certificate authority; certificates come from elsewhere.",
)
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
    """Create a security manager and a token for its administrator."""
    from iosd_secmgr import folder as folders
    from iosd_secmgr import hardening
    from iosd_secmgr.keys import pki

    hardening.harden()
    folder = folder_of(data)
    token = folders.make(
        folder,
        admin=admin,
        names=[*names, *pki.default_names()],
        database=database,
        passphrase=ask_passphrase() if passphrase else None,
        authority=not no_ca,
    )
    host = names[0] if names else "localhost"
    listen = f" --listen ADDRESS:8471    # an address of {host}" if names else ""
    click.echo(token)
    settings.say(
        f"the token of {admin} is in this file; next:\n"
        f"  osd secmgr serve --data {folder}{listen}\n"
        f"  export IOSD_SECMGR=https://{host}:8471 IOSD_SECMGR_TOKEN_FILE={token}"
        + ("" if no_ca else f" IOSD_SECMGR_CA={folder / pki.CA}")
    )


@click.command(cls=Verb)
@DATA
@click.option(
    "--listen",
    default=DEFAULT_LISTEN,
    metavar="ADDRESS:PORT",
    help=f"Address and port to listen on.  [{DEFAULT_LISTEN}]",
)
@click.option("--certificate", type=FILE, help="Certificate of the server.  [its own]")
@click.option("--key", type=FILE, help="Private key of --certificate.")
@click.option(
    "--client-ca", type=FILE, help="Certificate authority that signs the certificates of users."
)
@click.pass_obj
def serve(
    settings: Settings,
    data: Path | None,
    listen: str,
    certificate: Path | None,
    key: Path | None,
    client_ca: Path | None,
) -> None:
    """Run the security manager in the foreground.  Prints its URL; ends on SIGTERM.

    Exit 69: its database cannot be used now; 78: it cannot serve as it is set up.
    """
    from iosd_secmgr import folder as folders
    from iosd_secmgr import hardening, process
    from iosd_secmgr.records.database import DatabaseFault
    from pyosd.cli.output.log_lines import log_to_stderr

    given = None
    if certificate or key or client_ca:
        if not (certificate and key and client_ca):
            raise click.UsageError("--certificate, --key and --client-ca go together")
        given = process.Certificates(certificate, key, client_ca)
    hardening.harden()
    log_to_stderr("%(levelname)s %(name)s: %(message)s", logging.INFO)

    def ready(url: str) -> None:
        click.echo(url)
        sys.stdout.flush()
        hardening.tell_systemd("READY=1")

    try:
        opened = folders.open_folder(folder_of(data), ask_passphrase)
        process.serve(opened, listen, ready, given)
    except (
        DatabaseFault
    ) as error:  # may be over soon: systemd starts it again, which it does not after 78
        raise Failure(Exit.UNREACHABLE, str(error)) from None


@click.command(cls=Asking)
@DATA
@click.option(
    "--head",
    metavar="SEQ:HASH",
    help="Hash of the newest entry, kept elsewhere, which the log must contain.",
)
@click.pass_obj
def verify(settings: Settings, data: Path | None, head: str | None) -> None:
    """Verify the audit log and print its head; exit 65 if it is damaged.

    With --data the command reads the folder. Otherwise the running security manager checks its log.
    """
    if data is None:
        print_verified(*verify_by_asking(settings, head))
    else:
        print_verified(*verify_folder(data, head))


def verify_folder(data: Path, head: str | None) -> tuple[list[str], str]:
    """The same without a server."""
    from iosd_secmgr import folder as folders
    from iosd_secmgr import hardening
    from iosd_secmgr.records.audit import Head

    hardening.become_owner(data)
    hardening.harden()
    opened = folders.open_folder(data, ask_passphrase)
    try:
        problems = list(opened.audit.verify(Head.parse(head) if head else None))
        return problems, str(opened.audit.head())
    finally:
        opened.database.close()
