# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd key``: the keys of targets, which the security manager keeps."""

from __future__ import annotations

from pathlib import Path

import click

from pyosd.cli.frame.group import Group
from pyosd.cli.frame.params import DURATION, NUMBER, InputPath
from pyosd.cli.frame.verb import YES, Settings
from pyosd.cli.output.tables import Column, JsonRow, format_time
from pyosd.cli.output.terminal import harmless
from pyosd.cli.security.secmgr_verb import (
    METHOD,
    Asking,
    AskingListing,
    ask,
    number,
    target_of,
    text,
)

__all__ = ["key"]

TARGET = click.option(
    "--target-name", metavar="NAME", help="iSCSI name of the target.  [the target's]"
)
COLUMNS = (
    text("LEVEL", "level"),
    Column("PARTITION", lambda row: f"{row['partition']:#x}", right=True),
    number("VERSION", "version"),
    Column("STATE", lambda row: "current" if row["current"] else "older"),
    text("IDENTIFIER", "identifier"),
    Column("MADE", lambda row: format_time(row["made_ms"])),
    Column("RETIRED", lambda row: format_time(row["retired_ms"]), wide=True),
)


@click.group(cls=Group)
def key() -> None:
    """Manage keys of targets."""


@key.command(cls=AskingListing)
@TARGET
@click.pass_obj
def ls(settings: Settings, target_name: str | None) -> None:
    """List the keys of a target, without their values."""
    found = ask(settings, "key.ls", target=target_of(settings, target_name))["keys"]
    records: list[JsonRow] = [
        {
            "schema": "iosd.key/1",
            "id": f"{each['level']}/{each['partition']:#x}/{each['version']}",
            **each,
        }
        for each in found
    ]
    settings.show(records, COLUMNS, "iosd.keys/1", "keys")


@key.command("import", cls=Asking)
@click.argument("file", type=InputPath(dir_okay=False, path_type=Path))
@click.option(
    "--method",
    type=METHOD,
    default="CAPKEY",
    help="Lowest security method of credentials for the target.  [capkey]",
)
@click.option(
    "--rotate",
    type=DURATION,
    default=86400,
    help="Time between two changes of the working keys; 0: never change them.  [1d]",
)
@click.option(
    "--sha1", is_flag=True, help="Use HMAC-SHA1, for a target that supports nothing else."
)
@click.option("--keep-master", is_flag=True, help="Keep the master key; do not replace it.")
@click.pass_obj
def import_(
    settings: Settings, file: Path, method: str, rotate: float, sha1: bool, keep_master: bool
) -> None:
    """Import a target into the security manager by its master key file.

    The target's URL is that of --target or the profile, with its CHAP name and secret. Its master
    key is changed at once. The file is then useless: delete it.
    """
    from pyosd.secmgr.files import read_private

    identity = settings.identity()
    if "%" in (identity.chap_user or ""):  # it ends the name in what the security manager stores
        raise click.UsageError("the security manager accepts no CHAP name with '%'")
    login = f"{identity.chap_user}%{identity.secret()}" if identity.chap_user else None
    url = settings.url()
    found = ask(
        settings,
        "key.import",
        target=target_of(settings, None),
        url=url,
        master=read_private(file),
        method=method.upper(),
        rotate_s=int(rotate),
        algorithm="HMAC_SHA1" if sha1 else None,
        login=login,
        keep_master=keep_master or None,
    )
    settings.say(f"{found['target']}: {found['keys']} keys")
    if found.get("open"):  # older security managers do not look
        warning = f"osd: warning: {open_to_all(found['target'], found['open'])}"
        click.echo(harmless(warning), err=True)


def open_to_all(target: str, partitions: list[int]) -> str:
    """The note about a target that obeys everybody."""
    where = "" if partitions[0] == 0 else f" for {', '.join(f'{each:#x}' for each in partitions)}"
    return (
        f"{target} demands no capabilities{where} (security method NOSEC): it obeys everybody there, "
        "whatever the rules say; see docs/security.md"
    )


@key.command(cls=Asking)
@TARGET
@click.option(
    "--partition",
    type=NUMBER,
    metavar="PID",
    help="Partition whose keys to change; 0: partition zero.  [all]",
)
@click.option(
    "--level",
    type=click.Choice(["working", "partition", "root"]),
    default="working",
    help="Level of the key to change.  Above working, all credentials issued so far "
    "become invalid.  [working]",
)
@click.pass_obj
def rotate(settings: Settings, target_name: str | None, partition: int | None, level: str) -> None:
    """Replace keys of a target.  Credentials that working keys have signed stay good until they expire."""
    target = target_of(settings, target_name)
    found = ask(settings, "key.rotate", target=target, partition=partition, level=level)
    settings.say(f"{len(found['partitions'])} partitions have new working keys")


@key.command(cls=Asking)
@click.argument("partition", type=NUMBER, metavar="PID")
@TARGET
@click.pass_obj
def freeze(settings: Settings, partition: int, target_name: str | None) -> None:
    """Invalidate all credentials issued so far for a partition.

    Credentials for the root, and to create and remove partitions, are no longer valid either. Clients
    with permission get new ones.
    """
    ask(settings, "key.freeze", target=target_of(settings, target_name), partition=partition)


@key.command("set-master", cls=Asking)
@TARGET
@click.option(
    "--group",
    type=click.Choice(["14", "15"]),
    default="14",
    help="Diffie-Hellman group of the exchange.  [14]",
)
@click.pass_obj
def set_master(settings: Settings, target_name: str | None, group: str) -> None:
    """Replace the master key and all keys below it."""
    ask(settings, "key.set-master", target=target_of(settings, target_name), group=int(group))


@key.command(cls=Asking)
@TARGET
@YES
@click.pass_obj
def forget(settings: Settings, target_name: str | None, yes: bool) -> None:
    """Delete the keys of a target and the rules about it.  Nobody can set its keys any more."""
    target = target_of(settings, target_name)
    settings.confirm_all(f"Delete all keys of {target}?", yes)
    ask(settings, "key.forget", target=target)
