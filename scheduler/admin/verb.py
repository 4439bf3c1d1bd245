# SPDX-License-Identifier: GPL-2.0-or-later
"""What the administrators' verbs share: flags, the connection, how answers are printed and errors end.

`osd` itself is another package (pyosd), which we do not import: it leaves the function that prints
its tables in the context (SHOW).
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from scheduler.admin.client import Manager, ManagerError

__all__ = [
    "SHOW",
    "Admin",
    "AdminVerb",
    "Change",
    "Fields",
    "Listing",
    "ago",
    "check_size",
    "day_and_time",
    "seconds",
    "when",
]

SHOW = "iosd.show"  # in click's meta: show(records, columns, output, schema, name, header, colour)
FORMATS = ("table", "wide", "json", "jsonl", "id")
INTERRUPTED = 130
Fields = dict[str, Any]


def check_size(size: int | None, auto: bool, least: int | None, most: int | None) -> None:
    """Either a size, or what it follows the load between.  Raises: click.UsageError."""
    follows = auto or least is not None or most is not None
    if size is not None and follows:
        raise click.UsageError("either N, or --auto, --min, --max")
    if size is None and not follows:
        raise click.UsageError("say N, or --auto, --min or --max")


@dataclass
class Admin:
    """The common flags of one invocation."""

    manager: str | None = None
    key: Path | None = None
    target: str | None = None
    output: str = "table"
    header: bool = True
    colour: str = "auto"
    quiet: bool = False
    why: str = ""
    dry_run: bool = False

    def connect(self) -> Manager:
        """The manager.  Raises: ManagerError."""
        return Manager.find(self.manager, self.key, target=self.target_said)

    @property
    def target_said(self) -> str | None:
        """The name or URL of the target that is meant; None: the manager's only one."""
        return self.target or os.environ.get("IOSD_TARGET")

    @property
    def target_name(self) -> str | None:
        """Its iSCSI name."""
        return target_name(self.target_said)

    def say(self, text: str) -> None:
        """Talk to the person, on stderr."""
        if not self.quiet:
            click.echo(text, err=True)

    def show(
        self,
        records: Sequence[Fields],
        columns: Sequence[Mapping[str, Any]],
        schema: str,
        name: str,
    ) -> None:
        """Print a listing in the format asked for.

        columns: fields of pyosd's Column.  schema, name: of its JSON object, and of the list in it.
        """
        printer: Callable[..., None] = click.get_current_context().meta[SHOW]
        printer(
            records,
            columns,
            output=self.output,
            schema=schema,
            name=name,
            header=self.header,
            colour=self.colour,
        )

    @property
    def machine(self) -> bool:
        """Whether a program reads what is printed."""
        return self.output in ("json", "jsonl")

    def show_json(self, schema: str, fields: Fields) -> None:
        """Print one object."""
        click.echo(json.dumps({"schema": schema, **fields}, ensure_ascii=False))

    def show_change(self, what: str, result: Fields) -> None:
        """Print what a change came to: what was and what is."""
        if self.machine:
            self.show_json("iosd.change/1", result)
            return
        note = f"; {result['note']}" if result.get("note") else ""
        click.echo(f"{what}: {differences(result.get('was'), result.get('is'))}{note}")


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
    """A time for people, as pyosd's tables say it."""
    if value is None:
        return "-"
    if value < 60:
        return f"{value * 1e3:.1f} ms" if 0 < value < 1 else f"{value:.2f} s"
    minutes, rest = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def when(at: float | None) -> str:
    """A point in time, in milliseconds since 1970, as local time to the second."""
    if not at:
        return "-"
    return datetime.fromtimestamp(at / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def day_and_time(at: float | None) -> str:
    """The same without its year, where there is little room."""
    return when(at)[5:] if at else "-"


def ago(at: float | None) -> str:
    """How long since a point in time."""
    return seconds(max(0.0, time.time() - at / 1000)) if at else "-"


class AdminVerb(click.Command):
    """A verb that asks the manager; its function gets the Admin first (click.pass_obj)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *self.own_options(), *common_options()]

    def own_options(self) -> list[click.Parameter]:
        """Flags of this kind of verb."""
        return []

    def invoke(self, ctx: click.Context) -> Any:
        """Make the Admin, run, and turn an error into words and a code."""
        names = ("manager", "key", "target", "output", "header", "quiet", "why", "dry_run")
        taken = {name: ctx.params.pop(name) for name in names if name in ctx.params}
        ctx.obj = Admin(colour=ctx.params.pop("color"), **taken)
        try:
            return super().invoke(ctx)
        except ManagerError as error:
            click.echo(f"osd: {error}", err=True)
            if error.remedy:
                click.echo(f"  {error.remedy}", err=True)
            ctx.exit(error.exit_code)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except BrokenPipeError:
            os.dup2(
                os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno()
            )  # nothing to flush any more
            ctx.exit(1)


def format_options(*formats: str) -> list[click.Parameter]:
    """-o and --no-header."""
    return [
        click.Option(
            ["-o", "--output"],
            type=click.Choice(formats),
            default="table",
            help="How it is printed.  [table]",
        ),
        click.Option(
            ["--no-header", "header"],
            flag_value=False,
            default=True,
            type=bool,
            help="No line of headings.",
        ),
    ]


class Listing(AdminVerb):
    """A verb that prints records."""

    def own_options(self) -> list[click.Parameter]:
        """-o and --no-header."""
        return format_options(*FORMATS)


class Change(AdminVerb):
    """A verb that changes something."""

    def own_options(self) -> list[click.Parameter]:
        """--why, and -o."""
        return [
            click.Option(["--why"], default="", metavar="TEXT", help="For the log of changes."),
            click.Option(
                ["-o", "--output"],
                type=click.Choice(["table", "json"]),
                default="table",
                help="How it is printed.  [table]",
            ),
        ]


def common_options() -> list[click.Parameter]:
    """Fresh copies of the flags that every verb of administrators takes."""
    return [
        click.Option(
            ["--manager"],
            metavar="URL",
            help="Resource manager: ipc://PATH, tcp://ADDRESS:PORT.  [IOSD_MANAGER, or this host's]",
        ),
        click.Option(
            ["--key"],
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Key to prove who you are.  [IOSD_MANAGER_KEY, or this host's]",
        ),
        click.Option(
            ["--target"],
            metavar="NAME",
            help="Which, where the manager looks after several; its URL will do.  [IOSD_TARGET]",
        ),
        click.Option(
            ["--color"],
            type=click.Choice(["auto", "always", "never"]),
            default="auto",
            help="Colours; auto: on a terminal.  [auto]",
        ),
        click.Option(["-q", "--quiet"], is_flag=True, help="Say nothing beside data and errors."),
    ]
