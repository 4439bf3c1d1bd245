# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd manager status`, `changes`, `keys ls|add|rm`, and `osd target workers`."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TextIO

import click

from iosd_host.cli.pool import POOL, duration, number
from iosd_host.cli.verb import (
    Admin,
    AdminChange,
    AdminListing,
    Fields,
    ago,
    check_size,
    day_and_time,
    differences,
    when,
)
from iosd_host.common.words import waiting
from iosd_host.manager.client import ManagerError, make_pair
from pyosd.cli.frame.group import Group
from pyosd.cli.output.tables import Column
from pyosd.cli.output.terminal import harmless

__all__ = ["manager", "workers"]

SHADES = {"running": "green", "paused": "yellow", "draining": "yellow"}


class Piece(io.StringIO):
    """Text for a stream that may be a terminal."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self.stream = stream

    def isatty(self) -> bool:
        """Whether a person reads it in the end."""
        return self.stream.isatty()


@contextmanager
def in_one_piece() -> Iterator[None]:
    """Collect the output and print it in one piece, or nothing after a failure."""
    with redirect_stdout(Piece(sys.stdout)) as piece:
        yield
    click.echo(piece.getvalue(), nl=False, color=True)  # colours are decided already


@click.group(cls=Group)
def manager() -> None:
    """Inspect the resource manager and manage its users."""


# ---- status ----

STATUS_COLUMNS = (
    Column("POOL", lambda row: row["name"], shrink=True),
    Column("MODE", lambda row: row["mode"], colour=lambda row: SHADES.get(row["mode"])),
    number("BUSY", "busy"),
    number("ACTIVE", "active"),
    Column("BOUNDS", lambda row: f"{row['min']}-{row['max']}", right=True, drop=2),
    number("WARM_SPARE", "warm_spare", wide=True),
    number("READY", "ready", drop=3),
    number("WARMING", "warming", wide=True),
    number("QUEUED", "queued"),
    duration("OLDEST", "oldest", drop=4),
    Column("AUTO", lambda row: "yes" if auto_of(row) else "no", drop=5),
    number("ENDED", "ended", wide=True),
    Column("WHY", lambda row: row.get("why") or "-", wide=True),
)


def auto_of(found: Fields) -> bool:
    """Whether a size follows the load."""
    return bool(found.get("auto", found.get("scale", {}).get("auto", True)))


def share(value: float | None) -> str:
    """A share of the time as per cent."""
    return "-" if value is None else f"{value * 100:.0f}%"


def lines_of(target: Fields) -> Iterator[str]:
    """A target in a line or three; its pools are a table."""
    trouble = f": {target['trouble']}" if target.get("trouble") else ""
    yield f"{target['name']}: {ROLES.get(target.get('role', ''), target.get('role'))}{trouble}"
    found = target.get("workers")
    if not found:
        return
    size = "follow the load" if auto_of(found) else "set by an administrator"
    why = f" ({found['why']})" if found.get("why") else ""
    yield (
        f"  workers {found['count']}, {found.get('min', '-')} to {found.get('max', '-')}, {size}{why}; "
        f"{found['busy']} busy, {waiting(found['queued'], 'command')}"
    )
    pressure = ", ".join(f"{key} {share(value)}" for key, value in target["pressure"].items())
    yield f"  pressure {pressure}" + ("; new jobs are refused" if target["shedding"] else "")


def reasons_of(pools: Sequence[Fields]) -> Iterator[str]:
    """Why pools have the size they have."""
    for pool in pools:
        if pool.get("why"):
            by = "" if pool.get("by") in (None, "policy") else f"{pool['by']}: "
            yield f"  {pool['name']} has {pool['active']} for {ago(pool.get('since'))}: {by}{pool['why']}"


ROLES = {
    "manager": "managed",
    "standby": "managed by another manager",
    "lost": "not connected",
}


@manager.command(cls=AdminListing)
@click.pass_obj
def status(admin: Admin) -> None:
    """Show the managed targets, the manager's actions and their reasons.

    It shows workers and pressure of each target, and the mode, the size and its reason for each
    pool.
    """
    with admin.manager_client() as client:
        found = client.ask("status")
        url = client.access.url
    targets = [each for each in found["targets"] if admin.target_name in (None, each["name"])]
    if not targets:
        names = ", ".join(each["name"] for each in found["targets"])
        raise ManagerError(
            "no-such-target", f"no target '{admin.target_name}'", f"there are: {names}"
        )
    if admin.machine:
        admin.show_json("iosd.status/1", {**found, "targets": targets})
        return
    with in_one_piece():
        show_status(admin, found, targets, url)


def show_status(admin: Admin, found: Fields, targets: Sequence[Fields], url: str) -> None:
    """The manager, then its targets."""
    if admin.output != "id":
        me = found["manager"]
        you = f"; you are {me['you']} ({me['role']})" if me.get("you") else ""
        line = f"manager {me['version']}, pid {me['pid']}, up {ago(me['started'])}, {url}{you}"
        click.echo(harmless(line))
    for target in targets:
        pools = [{"schema": "", "id": each["name"], **each} for each in target.get("pools", [])]
        if admin.output != "id":
            for line in lines_of(target):
                click.echo(harmless(line))
        if pools:
            admin.show(pools, STATUS_COLUMNS, "", "")
        if admin.output == "table":
            for line in reasons_of(pools):
                click.echo(harmless(line))


# ---- changes ----

CHANGE_COLUMNS = (
    Column("WHEN", lambda row: day_and_time(row["at"])),
    Column("WHO", lambda row: row["by"] or "-", shrink=True),
    Column("POOL", lambda row: row.get("pool") or "-"),
    Column("WHAT", lambda row: row["what"]),
    Column("CHANGE", lambda row: differences(row.get("was"), row.get("is")), shrink=True),
    Column("WHY", lambda row: row["why"] or "-", shrink=True),
    Column("TIME", lambda row: when(row["at"]), wide=True),
    number("ID", "id", wide=True),
    Column("TARGET", lambda row: row["target"], wide=True),
)


@manager.command(cls=AdminListing)
@click.option(
    "-n",
    "--most",
    type=click.IntRange(1, 10_000),
    metavar="N",
    default=20,
    help="Show at most N changes.  [20]",
)
@click.option(
    "--after", type=click.IntRange(0), metavar="ID", help="Show only changes with a greater id."
)
@click.option("--pool", type=POOL, help="Show only changes of this pool.")
@click.option(
    "--who",
    metavar="NAME",
    help="Show only changes by NAME.  policy: automatic scaling; people: all but the "
    "resource manager's own.",
)
@click.pass_obj
def changes(admin: Admin, most: int, after: int | None, pool: str | None, who: str | None) -> None:
    """Show the newest changes with author, reason, old and new value.

    NAME is a name from the column WHO. You can omit the part in brackets.
    """
    filters = {"pool": pool, "who": who}
    with admin.manager_client() as client:
        found = client.ask(
            "changes",
            target=admin.target_name,
            since=after,
            most=most,
            **{key: value for key, value in filters.items() if value is not None},
        )
    records = [{"schema": "iosd.change/1", **each} for each in found["changes"]]
    admin.show(records, CHANGE_COLUMNS, "iosd.changes/1", "changes")


# ---- keys ----


@manager.group(cls=Group)
def keys() -> None:
    """Manage the keys of administrators and viewers."""


KEY_COLUMNS = (
    Column("NAME", lambda row: row["name"], shrink=True),
    Column("ROLE", lambda row: row["role"]),
    Column("PUBLIC KEY", lambda row: row.get("public") or "-", wide=True),
)


@keys.command("ls", cls=AdminListing)
@click.pass_obj
def keys_ls(admin: Admin) -> None:
    """List the keys that the manager knows."""
    with admin.manager_client() as client:
        found = client.ask("keys.ls")["keys"]
    records = [{"schema": "iosd.key/1", "id": each["name"], **each} for each in found]
    admin.show(records, KEY_COLUMNS, "iosd.keys/1", "keys")


def write_secret(path: Path, fields: dict[str, str], public: str, secret: str) -> None:
    """A file for its owner alone, never over one that is there."""
    lines = ["metadata", *(f'    {key} = "{value}"' for key, value in fields.items())]
    lines += ["curve", f'    public-key = "{public}"', f'    secret-key = "{secret}"']
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write("\n".join(lines) + "\n")


@keys.command("add", cls=AdminChange)
@click.argument("name")
@click.option("--viewer", is_flag=True, help="Grant read access only.")
@click.option(
    "--file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write the secret key to.  [NAME.key_secret]",
)
@click.option(
    "--url", metavar="URL", help="Manager's address as NAME reaches it.  [the address in use here]"
)
@click.option("--public", metavar="KEY", help="Public key of NAME.  No secret key is created here.")
@click.pass_obj
def keys_add(
    admin: Admin, name: str, viewer: bool, file: Path | None, url: str | None, public: str | None
) -> None:
    """Add the key of an administrator or a viewer.

    The command creates a pair of keys. The manager keeps the public key. The command writes the
    secret key to a file. NAME copies it to ~/.config/iosd/manager.key_secret, or names it in
    IOSD_MANAGER_KEY.
    """
    path = file or Path(f"{name}.key_secret")
    role = "viewer" if viewer else "admin"
    with admin.manager_client() as client:
        if public is None and path.exists():
            raise ManagerError("failed", f"{path} is there already", "another one: --file")
        pair = make_pair()
        result = client.ask(
            "keys.add", name=name, role=role, public=public or pair.public, why=admin.why
        )
        if public is None:
            where = {"url": url or client.access.url, "server": client.access.server}
            assert pair.secret is not None
            try:
                write_secret(path, where, pair.public, pair.secret)
            except OSError as error:
                client.ask("keys.rm", name=name, why="its secret could not be written")
                raise ManagerError("failed", f"{path}: {error.strerror}") from None
    if admin.machine:
        admin.show_json("iosd.key/1", {**result, "file": None if public else str(path)})
    elif public is None:
        click.echo(path)
        admin.say(
            f"{name} is {article(role)} now; the file is the secret of {name}, who shall have it alone"
        )
        if where["url"].startswith("ipc:"):
            admin.say(
                f"the file names {where['url']}, which only root and the manager's user reach; for "
                "another user: --url tcp://HOST:PORT, an address of [manager] listen"
            )


def article(role: str) -> str:
    """A role with its article."""
    return f"{'an' if role[0] in 'aeiou' else 'a'} {role}"


@keys.command("rm", cls=AdminChange)
@click.argument("name")
@click.pass_obj
def keys_rm(admin: Admin, name: str) -> None:
    """Remove a key.  Its requests are refused at once, also on open connections."""
    with admin.manager_client() as client:
        result = client.ask("keys.rm", name=name, why=admin.why)
    if admin.machine:
        admin.show_json("iosd.key/1", result)
    else:
        click.echo(harmless(f"key {name}: {result.get('role', 'gone')} -> none"))


# ---- workers ----


@click.command(cls=AdminChange)
@click.argument("count", type=click.IntRange(1, 64), required=False, metavar="[N]")
@click.option(
    "--auto", is_flag=True, help="Resize automatically with the load, between --min and --max."
)
@click.option(
    "--min",
    "least",
    type=click.IntRange(1, 64),
    metavar="N",
    help="Smallest number of worker threads.",
)
@click.option(
    "--max",
    "most",
    type=click.IntRange(1, 64),
    metavar="N",
    help="Largest number of worker threads.",
)
@click.option("--reset", is_flag=True, help="Return to the configured values.")
@click.pass_obj
def workers(
    admin: Admin, count: int | None, auto: bool, least: int | None, most: int | None, reset: bool
) -> None:
    """Set the number of worker threads, or resize automatically."""
    if reset:
        if any((count, auto, least, most)):
            raise click.UsageError("--reset goes alone")
        with admin.manager_client() as client:
            result = client.ask("workers.reset", target=admin.target_name, why=admin.why)
        admin.show_change("workers", result)
        return
    check_size(count, auto, least, most)
    with admin.manager_client() as client:
        result = client.ask(
            "workers.set",
            target=admin.target_name,
            count=count,
            auto=auto or None,
            min=least,
            max=most,
            why=admin.why,
        )
    admin.show_change("workers", result)
