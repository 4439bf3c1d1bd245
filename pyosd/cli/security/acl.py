# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd acl``: who may do what, by rules of the security manager.  Users, groups, tokens: acl_people.py."""

from __future__ import annotations

import time
from difflib import get_close_matches

import click

from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.group import Group
from pyosd.cli.frame.params import DURATION, NUMBER
from pyosd.cli.frame.verb import Listing, Settings
from pyosd.cli.output.tables import Column, JsonRow, format_time, print_lines
from pyosd.cli.output.terminal import harmless
from pyosd.cli.security.acl_people import certificate, group, token, user
from pyosd.cli.security.secmgr_verb import (
    METHOD,
    TYPE,
    Asking,
    AskingListing,
    ask,
    number,
    target_of,
    text,
)
from pyosd.secmgr.names import names_of, permissions_of
from pyosd.secmgr.roles import ROLES, rules_of
from pyosd.types import ref

__all__ = ["acl"]

LIFETIME_S = 600


@click.group(cls=Group)
def acl() -> None:
    """Manage access rules, users, groups and tokens."""


for each in (user, group, token, certificate):
    acl.add_command(each)

RULE_COLUMNS = (
    number("ID", "id"),
    Column("WHO", lambda row: f"{'@' if row['group'] else ''}{row['subject']}", shrink=True),
    text("OBJECT", "object"),
    Column("KIND", lambda row: row["kind"], drop=2),
    Column("PERMISSIONS", lambda row: ",".join(row["permissions"]), shrink=True),
    Column("UNTIL", lambda row: format_time(row["until_ms"]), drop=3),
    number("TAG", "tag", drop=5),
    number("SECONDS", "lifetime_s", wide=True),
    text("METHOD", "method", drop=4),
    text("TARGET", "target", shrink=True, drop=1),
    text("BY", "made_by", wide=True),
    Column("MADE", lambda row: format_time(row["made_ms"]), wide=True),
    text("NOTE", "note", shrink=True, drop=6),
)


ROLE_COLUMNS = (
    text("ROLE", "role"),
    text("OBJECT", "object"),
    text("KIND", "kind"),
    Column("PERMISSIONS", lambda row: ",".join(row["permissions"]), shrink=True),
    text("PURPOSE", "purpose", wide=True),
)


def split(words: str) -> list[str]:
    """READ,WRITE as a list."""
    return [word for word in words.split(",") if word]


def who_of(name: str) -> dict[str, str]:
    """USER or @GROUP."""
    return {"group": name[1:]} if name.startswith("@") else {"user": name}


@acl.command(cls=AskingListing)
@click.option("--who", metavar="USER|@GROUP", help="Show only rules that name this user or group.")
@click.pass_obj
def ls(settings: Settings, who: str | None) -> None:
    """List rules."""
    found = ask(settings, "acl.ls")["rules"]
    records: list[JsonRow] = [{"schema": "iosd.acl/1", **each} for each in found]
    if who is not None:
        wanted = (who.removeprefix("@"), who.startswith("@"))
        records = [each for each in records if (each["subject"], each["group"]) == wanted]
    settings.show(records, RULE_COLUMNS, "iosd.acls/1", "rules")


@acl.command(cls=Asking)
@click.argument("who", metavar="USER|@GROUP")
@click.argument("permissions", metavar="PERMISSION[,...]|ROLE")
@click.argument("object_", metavar="OBJECT")
@click.option("--type", "type_", type=TYPE, help="Type of OBJECT, if its form does not show it.")
@click.option(
    "--target-name", metavar="NAME", help="iSCSI name of the target, or * for all.  [the target's]"
)
@click.option(
    "--policy-tag", type=NUMBER, help="Apply the rule only to objects with this policy access tag."
)
@click.option("--for", "for_", type=DURATION, help="Time for which the rule is valid.  [no end]")
@click.option(
    "--lifetime",
    type=DURATION,
    default=LIFETIME_S,
    help="Longest lifetime of a credential that this rule permits.  [10m]",
)
@click.option(
    "--method",
    type=METHOD,
    default="CAPKEY",
    help="Lowest security method of a credential that this rule permits.  [capkey]",
)
@click.option(
    "--note", default="", metavar="TEXT", help="Note to keep with the rule, such as its reason."
)
@click.pass_obj
def add(
    settings: Settings,
    who: str,
    permissions: str,
    object_: str,
    type_: str | None,
    target_name: str | None,
    policy_tag: int | None,
    for_: float | None,
    lifetime: float,
    method: str,
    note: str,
) -> None:
    """Grant permissions to a user or a group; print the new rules' ids.

    ROLE with a PID makes all rules for one kind of work in a partition: read, write, run (scripts
    that read), run-write (scripts that also change), owner. 'osd acl roles' lists the permissions
    of each.

    OBJECT is PID/OID, or PID/* for all user objects of a partition (with --type collection, its
    collections), or PID for the partition itself. It can also be root, or * for everything. 0 with
    --type partition means partitions that do not exist yet.

    PERMISSION is READ, WRITE, APPEND, CREATE, REMOVE, GET_ATTR, SET_ATTR, OBJ_MGMT, DEV_MGMT,
    GLOBAL, POL_SEC, M_OBJECT, QUERY, GBL_REM, FUN_EXE (or EXEC: run scripts there).
    """
    role = permissions in ROLES
    if not role:
        try:
            permissions_of(split(permissions))
        except ValueError as error:
            near = get_close_matches(permissions.lower(), ROLES, 1)
            hint = f" (did you mean '{near[0]}'?)" if near else ""
            roles = f"{error}; and the roles {', '.join(ROLES)}{hint}"
            raise click.UsageError(roles) from None
    found = ask(
        settings,
        "acl.add",
        **who_of(who),
        role=permissions if role else None,
        permissions=None if role else split(permissions),
        object=object_,
        type=type_,
        target=target_of(settings, target_name),
        tag=policy_tag,
        until_ms=int((time.time() + for_) * 1000) if for_ else None,
        lifetime_s=int(lifetime),
        method=method.upper(),
        note=note,
    )
    print_lines(str(each["id"]) for each in found["rules"])


@acl.command(cls=Listing)
@click.pass_obj
def roles(settings: Settings) -> None:
    """List the roles and the rules that each one creates."""
    records: list[JsonRow] = [
        {
            "schema": "iosd.role/1",
            "role": name,
            "purpose": role.purpose,
            "object": str(scope).replace("0x10000", "PID"),
            "kind": str(scope.kind),
            "permissions": names_of(permissions),
        }
        for name, role in ROLES.items()
        for scope, permissions in rules_of(name, ref(0x1_0000))
    ]
    settings.show(records, ROLE_COLUMNS, "iosd.roles/1", "roles")


@acl.command(cls=Asking)
@click.argument("ids", metavar="ID...", type=click.IntRange(1), nargs=-1, required=True)
@click.pass_obj
def rm(settings: Settings, ids: tuple[int, ...]) -> None:
    """Remove rules.  Credentials issued by these rules remain valid until they expire, or until
    'osd key freeze'."""
    for id_ in ids:
        ask(settings, "acl.rm", id=id_)


@acl.command(cls=Asking)
@click.argument("permissions", metavar="PERMISSION[,...]")
@click.argument("object_", metavar="OBJECT")
@click.option("--type", "type_", type=TYPE, help="Type of OBJECT, if its form does not show it.")
@click.option(
    "--user",
    metavar="USER",
    help="User to check; only administrators may name another user.  [you]",
)
@click.option("--target-name", metavar="NAME", help="iSCSI name of the target.  [the target's]")
@click.pass_context
def check(
    ctx: click.Context,
    permissions: str,
    object_: str,
    type_: str | None,
    user: str | None,
    target_name: str | None,
) -> None:
    """Check whether the rules permit an access; exit 77 if not.

    OBJECT: as for 'osd acl add'; PID/* asks for all user objects of a partition (or, with --type
    collection, its collections) at once.
    """
    settings: Settings = ctx.obj
    found = ask(
        settings,
        "acl.check",
        user=user,
        permissions=split(permissions),
        object=object_,
        type=type_,
        target=target_of(settings, target_name),
    )
    if not found["permitted"]:
        click.echo(harmless(f"not permitted: {found['why']}"))
        ctx.exit(Exit.NOT_PERMITTED)
    rules = ", ".join(map(str, found["rules"]))
    until = format_time(found["expires_ms"])
    click.echo(harmless(f"permitted by rule {rules}, {found['method']}, until {until}"))


@acl.command(cls=Asking)
@click.argument("object_", metavar="OBJECT")
@click.option("--type", "type_", type=TYPE, help="Type of OBJECT.  [user]")
@click.option("--target-name", metavar="NAME", help="iSCSI name of the target.  [the target's]")
@click.pass_obj
def revoke(settings: Settings, object_: str, type_: str | None, target_name: str | None) -> None:
    """Revoke all credentials for an object by a new policy access tag.

    Credentials issued for this object alone are no longer valid. Jobs that use them end. The first
    revocation only gives the object a tag. To end older credentials without a tag, use 'osd key
    freeze'.
    """
    target = target_of(settings, target_name)
    found = ask(settings, "acl.revoke", target=target, object=object_, type=type_)
    click.echo(harmless(str(found["tag"])))
