# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd acl user``, ``group``, ``token`` and ``certificate``: whom rules are about, and how they prove
it.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Iterator
from pathlib import Path

import click

from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.group import Group
from pyosd.cli.frame.params import DURATION
from pyosd.cli.frame.verb import Failure, Settings
from pyosd.cli.output.tables import Column, format_time
from pyosd.cli.output.terminal import harmless
from pyosd.cli.security.secmgr_verb import Asking, AskingListing, ask, text

__all__ = ["certificate", "group", "token", "user"]

NEW_FILE = click.Path(path_type=Path)
TIME_COLUMNS = (
    Column("UNTIL", lambda row: format_time(row["until_ms"])),
    Column("MADE", lambda row: format_time(row["made_ms"]), wide=True),
)


@click.group(cls=Group)
def user() -> None:
    """Manage users of the security manager."""


def principal_of(name: str) -> str:
    """A user's name at targets, as their capabilities have it (docs/secmgr.md, rules)."""
    return f"audit:{hashlib.sha256(name.encode()).digest()[:20].hex()}"


@user.command("ls", cls=AskingListing)
@click.pass_obj
def users(settings: Settings) -> None:
    """List users.  -o wide: also their names in 'osd pool usage' and 'osd ps'."""
    found = ask(settings, "user.ls")["users"]
    records = [
        {
            "schema": "iosd.secmgr-user/1",
            "id": each["name"],
            **each,
            "principal": principal_of(each["name"]),
        }
        for each in found
    ]
    columns = (
        text("USER", "name"),
        Column("GROUPS", lambda row: ",".join(row["groups"]) or "-", shrink=True),
        Column("STATE", lambda row: "disabled" if row["disabled"] else "active"),
        text("PRINCIPAL", "principal", wide=True),
    )
    settings.show(records, columns, "iosd.secmgr-users/1", "users")


@user.command("add", cls=Asking)
@click.argument("name")
@click.pass_obj
def add_user(settings: Settings, name: str) -> None:
    """Add a user without permissions."""
    ask(settings, "user.add", name=name)
    settings.say(f"next: osd acl token add {name} --save FILE; osd acl add {name} READ OBJECT")


@user.command("rm", cls=Asking)
@click.argument("name")
@click.pass_obj
def remove_user(settings: Settings, name: str) -> None:
    """Remove a user with their tokens, certificates and rules."""
    ask(settings, "user.rm", name=name)


@user.command(cls=Asking)
@click.argument("name")
@click.pass_obj
def disable(settings: Settings, name: str) -> None:
    """Disable a user: issue no more credentials to them."""
    ask(settings, "user.disable", name=name)


@user.command(cls=Asking)
@click.argument("name")
@click.pass_obj
def enable(settings: Settings, name: str) -> None:
    """Enable a disabled user."""
    ask(settings, "user.disable", name=name, enable=True)


@click.group(cls=Group)
def group() -> None:
    """Manage groups of users."""


@group.command("ls", cls=AskingListing)
@click.pass_obj
def groups(settings: Settings) -> None:
    """List groups and their members."""
    found = ask(settings, "group.ls")["groups"]
    records = [{"schema": "iosd.secmgr-group/1", "id": each["name"], **each} for each in found]
    columns = (
        text("GROUP", "name"),
        Column("MEMBERS", lambda row: ",".join(row["members"]) or "-", shrink=True),
    )
    settings.show(records, columns, "iosd.secmgr-groups/1", "groups")


@group.command("add", cls=Asking)
@click.argument("name")
@click.pass_obj
def add_group(settings: Settings, name: str) -> None:
    """Add a group."""
    ask(settings, "group.add", name=name)


@group.command("rm", cls=Asking)
@click.argument("name")
@click.pass_obj
def remove_group(settings: Settings, name: str) -> None:
    """Remove a group and its rules."""
    ask(settings, "group.rm", name=name)


@group.command(cls=Asking)
@click.argument("name", metavar="GROUP")
@click.argument("users", metavar="USER...", nargs=-1, required=True)
@click.pass_obj
def join(settings: Settings, name: str, users: tuple[str, ...]) -> None:
    """Add users to a group."""
    for each in users:
        ask(settings, "group.join", group=name, user=each)


@group.command(cls=Asking)
@click.argument("name", metavar="GROUP")
@click.argument("users", metavar="USER...", nargs=-1, required=True)
@click.pass_obj
def leave(settings: Settings, name: str, users: tuple[str, ...]) -> None:
    """Remove users from a group."""
    for each in users:
        ask(settings, "group.join", group=name, user=each, leave=True)


@contextlib.contextmanager
def new_private(path: Path, text: bytes) -> Iterator[None]:
    """A new file of mode 0600.  It is removed again if what it is for fails: a second try can make it."""
    from pyosd.secmgr.files import write_private

    write_private(path, text)
    try:
        yield
    except BaseException:
        path.unlink(missing_ok=True)
        raise


@click.group(cls=Group)
def token() -> None:
    """Manage login tokens of users."""


@token.command("ls", cls=AskingListing)
@click.pass_obj
def tokens(settings: Settings) -> None:
    """List tokens, without their secrets."""
    found = ask(settings, "token.ls")["tokens"]
    records = [{"schema": "iosd.secmgr-token/1", **each} for each in found]
    columns = (text("ID", "id"), text("USER", "user"), text("LABEL", "label"), *TIME_COLUMNS)
    settings.show(records, columns, "iosd.secmgr-tokens/1", "tokens")


@token.command("add", cls=Asking)
@click.argument("name", metavar="USER")
@click.option(
    "--save",
    type=NEW_FILE,
    required=True,
    help="New file to save the token in, readable by its owner alone.",
)
@click.option("--label", default="", metavar="TEXT", help="Label that says what the token is for.")
@click.option("--for", "for_", type=DURATION, help="Time for which the token is valid.  [no end]")
@click.pass_obj
def add_token(settings: Settings, name: str, save: Path, label: str, for_: float | None) -> None:
    """Create a token for a user; print its id."""
    until_ms = int((time.time() + for_) * 1000) if for_ else None
    with new_private(save, b""):  # before there is a token that could not be kept
        found = ask(settings, "token.add", user=name, label=label, until_ms=until_ms)
        save.write_text(found["token"] + "\n")
    click.echo(harmless(found["id"]))


@token.command("rm", cls=Asking)
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.pass_obj
def remove_token(settings: Settings, ids: tuple[str, ...]) -> None:
    """Revoke tokens."""
    for id_ in ids:
        ask(settings, "token.rm", id=id_)


@click.group(cls=Group)
def certificate() -> None:
    """Manage certificates of users."""


@certificate.command("ls", cls=AskingListing)
@click.pass_obj
def certificates(settings: Settings) -> None:
    """List certificates."""
    found = ask(settings, "certificate.ls")["certificates"]
    records = [{"schema": "iosd.secmgr-certificate/1", **each} for each in found]
    columns = (text("ID", "id", shrink=True), text("USER", "user"), *TIME_COLUMNS)
    settings.show(records, columns, "iosd.secmgr-certificates/1", "certificates")


@certificate.command("add", cls=Asking)
@click.argument("name", metavar="USER")
@click.option(
    "--save",
    type=NEW_FILE,
    required=True,
    help="New files to save the certificate and key in: FILE.pem and FILE.key.",
)
@click.option(
    "--days",
    type=click.IntRange(1, 825),
    metavar="N",
    default=90,
    help="Days for which the certificate is valid.  [90]",
)
@click.pass_obj
def add_certificate(settings: Settings, name: str, save: Path, days: int) -> None:
    """Create a key and a certificate for a user; print its id.  The key does not leave this host."""
    try:
        from pyosd.secmgr.certificate_request import new_request
    except ModuleNotFoundError as error:
        if error.name != "cryptography":
            raise
        text = (
            "certificates need the package cryptography: pip install cryptography "
            "(Debian: python3-cryptography)"
        )
        raise Failure(Exit.FAILED, text) from None
    key, request = new_request(name)
    with new_private(save.with_name(f"{save.name}.key"), key):
        found = ask(settings, "certificate.sign", user=name, request=request.decode(), days=days)
        save.with_name(f"{save.name}.pem").write_text(found["certificate"])
    click.echo(harmless(found["id"]))


@certificate.command("rm", cls=Asking)
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@click.pass_obj
def remove_certificate(settings: Settings, ids: tuple[str, ...]) -> None:
    """Revoke certificates."""
    for id_ in ids:
        ask(settings, "certificate.rm", id=id_)
