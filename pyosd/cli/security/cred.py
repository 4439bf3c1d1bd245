# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd cred``: credentials by hand; other verbs get theirs by themselves."""

from __future__ import annotations

from pathlib import Path

import click

from pyosd.cli.frame.group import Group
from pyosd.cli.frame.params import DURATION, InputPath
from pyosd.cli.frame.verb import Listing, Settings
from pyosd.cli.output.tables import Column, JsonRow, format_time, print_lines
from pyosd.cli.security.secmgr_verb import METHOD, TYPE, Asking, AskingListing, ask, target_of, text
from pyosd.security.credentials import StaticSource, read_secret
from pyosd.wire.capability import Capability, Permission

__all__ = ["cred"]

COLUMNS = (
    text("ID", "id"),
    text("USER", "user"),
    text("OBJECT", "object"),
    Column("PERMISSIONS", lambda row: ",".join(row["permissions"]), shrink=True),
    Column("EXPIRES", lambda row: format_time(row["expires_ms"])),
    text("METHOD", "method", drop=1),
    Column("KEY", lambda row: str(row["key_version"]), right=True, wide=True),
    Column("TAG", lambda row: str(row["tag"]), right=True, wide=True),
)


@click.group(cls=Group)
def cred() -> None:
    """Request, show and list credentials."""


@cred.command(cls=Asking)
@click.argument("permissions", metavar="PERMISSION[,...]")
@click.argument("objects", metavar="OBJECT...", nargs=-1, required=True)
@click.option(
    "--type",
    "type_",
    type=TYPE,
    help="Type of OBJECT; with a PID, user selects all user objects of the partition.",
)
@click.option(
    "--lifetime",
    type=DURATION,
    default=600,
    help="Time for which the credentials are valid.  [10m]",
)
@click.option("--method", type=METHOD, help="Lowest security method to accept.")
@click.option(
    "--range",
    "range_",
    metavar="START:LENGTH",
    help="Restrict the credential to this range of bytes.",
)
@click.option("--target-name", metavar="NAME", help="iSCSI name of the target.  [the target's]")
@click.option(
    "--save",
    type=click.Path(path_type=Path),
    required=True,
    help="New file to save the credentials in, readable by its owner alone.",
)
@click.pass_obj
def get(
    settings: Settings,
    permissions: str,
    objects: tuple[str, ...],
    type_: str | None,
    lifetime: float,
    method: str | None,
    range_: str | None,
    target_name: str | None,
    save: Path,
) -> None:
    """Save credentials to a file for --credentials."""
    from pyosd.secmgr.capabilities import from_json

    common = {
        "permissions": [word for word in permissions.split(",") if word],
        "type": type_,
        "lifetime_s": int(lifetime),
        "method": method and method.upper(),
        "range": range_of(range_),
        "target": target_of(settings, target_name),
    }
    said = {name: value for name, value in common.items() if value is not None}
    found = [ask(settings, "credentials", object=each, **said) for each in objects]
    credentials = [from_json(each) for each in found]
    StaticSource(credentials).write(save)
    print_lines(each.capability.discriminator.hex() for each in credentials)


def range_of(words: str | None) -> list[int] | None:
    """START:LENGTH."""
    if words is None:
        return None
    start, _, length = words.partition(":")
    try:
        return [int(start, 0), int(length, 0)]
    except ValueError:
        raise click.UsageError(f"'{words}' is not START:LENGTH") from None


def record_of(capability: Capability) -> JsonRow:
    """A capability for people: no key."""
    return {
        "schema": "iosd.capability/1",
        "id": capability.discriminator.hex(),
        "user": capability.audit.hex(),
        "object": str(capability.obj),
        "type": capability.object_type.name.lower(),
        "permissions": [str(each.name) for each in Permission if each in capability.permissions],
        "method": capability.method.name,
        "key_version": capability.key_version,
        "tag": capability.policy_access_tag,
        "expires_ms": capability.expires_ms,
        "range": [capability.range_start, capability.range_length],
    }


@cred.command(cls=Listing)
@click.argument("file", type=InputPath(dir_okay=False, path_type=Path))
@click.pass_obj
def show(settings: Settings, file: Path) -> None:
    """Show what a file of credentials permits, without its keys.

    The column USER has the first 20 bytes of the SHA-256 of the user's name (AUDIT).
    """
    import json

    StaticSource.read(file)  # says what is wrong with it
    found = json.loads(read_secret(file))["credentials"]
    records = [record_of(Capability.decode(bytes.fromhex(each["capability"]))) for each in found]
    settings.show(records, COLUMNS, "iosd.capabilities/1", "capabilities")


@cred.command(cls=AskingListing)
@click.option(
    "--user",
    metavar="USER",
    help="Show credentials of this user; only administrators may name another user.  "
    "[you; for an administrator: all users]",
)
@click.option(
    "--id", "discriminator", metavar="ID", help="Show the credential with this discriminator."
)
@click.option(
    "-n",
    "--most",
    type=click.IntRange(1, 1000),
    metavar="N",
    default=50,
    help="Show at most N credentials.  [50]",
)
@click.pass_obj
def ls(settings: Settings, user: str | None, discriminator: str | None, most: int) -> None:
    """List issued credentials from the audit log, the newest last."""
    found = ask(settings, "credentials.issued", user=user, discriminator=discriminator, most=most)[
        "credentials"
    ]
    records = [{"schema": "iosd.issued/1", **each} for each in found]
    settings.show(records, COLUMNS, "iosd.issued-list/1", "credentials")
