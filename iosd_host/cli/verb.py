# SPDX-License-Identifier: GPL-2.0-or-later
"""The verbs that ask the resource manager: their options, the connection, and how errors end.

They are verbs of pyosd/cli/frame/verb.py: profile, colours, -v, --no-input and -o are the same.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from iosd_host.cli.host_verb import HostVerb
from iosd_host.manager.client import ManagerClient, ManagerError
from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.verb import Listing, Settings
from pyosd.cli.output.tables import format_seconds, format_time, print_json
from pyosd.cli.output.terminal import harmless

__all__ = [
    "Admin",
    "AdminChange",
    "AdminListing",
    "AdminVerb",
    "Fields",
    "admin_options",
    "ago",
    "check_size",
    "day_and_time",
    "seconds",
    "when",
]

Fields = dict[str, Any]


def check_size(size: int | None, auto: bool, least: int | None, most: int | None) -> None:
    """Either a size, or what it follows the load between.  Raises: click.UsageError."""
    follows = auto or least is not None or most is not None
    if size is not None and follows:
        raise click.UsageError("either N, or --auto, --min, --max")
    if size is None and not follows:
        raise click.UsageError("say N, or --auto, --min or --max")


@dataclass
class Admin(Settings):
    """The common options of one invocation."""

    manager: str | None = None
    key: Path | None = None
    why: str = ""
    dry_run: bool = False

    def manager_client(self) -> ManagerClient:
        """Connect to the resource manager.  Raises: ManagerError."""
        return ManagerClient.find(self.manager, self.key, target=self.target_said)

    @property
    def target_said(self) -> str | None:
        """The name or URL of the target: option, environment, profile; None: the manager's only one."""
        return self.target or os.environ.get("IOSD_TARGET") or self.profile.target

    @property
    def target_name(self) -> str | None:
        """Its iSCSI name."""
        return target_name(self.target_said)

    @property
    def machine(self) -> bool:
        """Whether a program reads what is printed."""
        return self.output in ("json", "jsonl")

    def show_json(self, schema: str, fields: Fields) -> None:
        """Print one object."""
        print_json({"schema": schema, **fields})

    def show_change(self, what: str, result: Fields) -> None:
        """Print what a change came to: what was and what is."""
        if self.machine:
            self.show_json("iosd.change/1", result)
            return
        note = f"; {result['note']}" if result.get("note") else ""
        change = differences(result.get("was"), result.get("is"))
        click.echo(harmless(f"{what}: {change}{note}"))


def target_name(text: str | None) -> str | None:
    """The name in a target's URL, or the text itself."""
    found = re.fullmatch(r"iscsi://[^/]+/(.+?)(/\d+)?", text or "")
    return found[1] if found else text


def text_of(key: str, value: object) -> str:
    """A value of a change."""
    if value is None:
        return "as the load needs" if key in ("active", "count") else "not set"
    return str(value)


def differences(was: object, now: object) -> str:
    """ "max 4 -> 6, min 1 -> 2"; what has not changed is said to be so."""
    if not isinstance(was, Mapping) or not isinstance(now, Mapping):
        return "done"
    words = [
        f"{key} {text_of(key, was.get(key))} -> {text_of(key, value)}"
        if was.get(key) != value
        else f"{key} is {text_of(key, value)} already"
        for key, value in now.items()
    ]
    return ", ".join(words) or "done"


def seconds(value: float | None) -> str:
    """A duration for people; "-": unknown."""
    if value is None:
        return "-"
    return format_seconds(value) if value else "0.00 s"


def when(at: float | None) -> str:
    """A point in time, in milliseconds since 1970, as local time to the second."""
    return format_time(int(at)) if at else "-"


def day_and_time(at: float | None) -> str:
    """The same without its year, where there is little room."""
    return when(at)[5:] if at else "-"


def ago(at: float | None) -> str:
    """How long since a point in time."""
    return seconds(max(0.0, time.time() - at / 1000)) if at else "-"


class AdminVerb(HostVerb):
    """A verb that asks the manager; its function gets the Admin first (click.pass_obj)."""

    settings_class = Admin
    left_out = frozenset({"target", "credentials"})

    def shared_options(self) -> list[click.Parameter]:
        """Those that name the manager, and the options of all verbs but --credentials."""
        return [*admin_options(), *super().shared_options()]

    def explain(self, error: BaseException) -> tuple[Exit, str]:
        """Give the manager's own code and remedy."""
        if isinstance(error, ManagerError):
            remedy = f"\n  {error.remedy}" if error.remedy else ""
            return Exit(error.exit_code), f"{error}{remedy}"
        return super().explain(error)


class AdminListing(AdminVerb, Listing):
    """A verb that prints records."""


class AdminChange(AdminVerb):
    """A verb that changes something."""

    def own_options(self) -> list[click.Parameter]:
        """--why, and -o."""
        return [
            click.Option(
                ["--why"],
                default="",
                metavar="TEXT",
                help="Reason for the change, kept in the log of changes.",
            ),
            click.Option(
                ["-o", "--output"],
                type=click.Choice(["table", "json"]),
                default="table",
                help="Output format: table or json.  [table]",
            ),
        ]


def admin_options() -> list[click.Parameter]:
    """Fresh copies of the options that name the manager and its target."""
    return [
        click.Option(
            ["--manager"],
            metavar="URL",
            help="Address of the resource manager: ipc://PATH, tcp://ADDRESS:PORT.  [IOSD_MANAGER, or "
            "this host's]",
        ),
        click.Option(
            ["--key"],
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="File with the secret key to log in with.  [IOSD_MANAGER_KEY, or this host's]",
        ),
        click.Option(
            ["--target"],
            metavar="NAME",
            help="Name or URL of the target, if the manager has several.  [IOSD_TARGET, profile]",
        ),
    ]
