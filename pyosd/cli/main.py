# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of nouns and top-level verbs of ``osd``.

A noun's file is imported when its name is typed, so that ``osd --help`` and completion stay quick.
Verbs that belong to the target's host come from other packages by the entry points "iosd.commands".
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import Any

import click

from pyosd.cli.codes import Exit
from pyosd.cli.group import Group

__all__ = ["Nouns", "main"]

ENTRY_POINTS = "iosd.commands"
SHOW = "iosd.show"  # in click's meta, for verbs that other packages bring: how to print

# what people type -> (module, attribute, one line for --help)
COMMANDS = {
    "exec": ("pyosd.cli.exec", "exec_command", "Run a script next to the data."),
    "ps": ("pyosd.cli.job", "ls", "Short for: osd job ls."),
    "top": ("pyosd.cli.top", "top", "Show queue and jobs live."),
    "job": ("pyosd.cli.job", "job", "Jobs: list, watch, wait, logs, result, kill, why, report."),
    "part": ("pyosd.cli.part", "part", "Partitions: create, list, check, remove."),
    "col": ("pyosd.cli.col", "col", "Collections: create, fill by a query, list, remove."),
    "put": ("pyosd.cli.files", "put", "Store files and folders as objects."),
    "get": ("pyosd.cli.files", "get", "Store objects as files."),
    "obj": ("pyosd.cli.obj", "obj", "Objects: create, read, write, find, attributes."),
    "pool": ("pyosd.cli.pool", "pool", "Pools of sandboxes: list, show, build package sets."),
    "target": ("pyosd.cli.target", "target", "Targets: serve, info, heads, ping."),
    "secmgr": ("pyosd.cli.secmgr", "secmgr", "The security manager: init, serve, audit log."),
    "acl": ("pyosd.cli.acl", "acl", "Access control: rules, users, groups, tokens."),
    "key": ("pyosd.cli.key", "key", "Keys of targets: import, rotate, freeze."),
    "cred": ("pyosd.cli.cred", "cred", "Credentials: get, show, list what was given."),
    "reasons": ("pyosd.cli.reasons", "reasons", "Say what reason numbers of jobs mean."),
    "config": (
        "pyosd.cli.config_noun",
        "config",
        "The serving side's configuration: show, check, reload.",
    ),
    "completion": ("pyosd.cli.completion", "completion", "Print shell completion."),
    "version": ("pyosd.cli.version", "version_command", "Print the version of iosd."),
}


# verbs that people type without their noun
ELSEWHERE = MappingProxyType(
    {
        **{
            verb: f"osd job {verb}"
            for verb in ("wait", "watch", "logs", "result", "kill", "cancel")
        },
        **{
            verb: f"osd job {verb}"
            for verb in ("status", "why", "retry", "report", "hold", "release")
        },
        **dict.fromkeys(("run", "submit", "map", "start"), "osd exec"),
        **dict.fromkeys(("upload", "import"), "osd put"),
        **dict.fromkeys(("download", "export"), "osd get"),
        **dict.fromkeys(("ls", "list"), "osd obj ls"),
        **dict.fromkeys(("rm", "delete"), "osd obj rm"),
        **{verb: f"osd obj {verb}" for verb in ("find", "read", "write", "stat")},
        "cat": "osd obj read",
        "jobs": "osd ps",
        "serve": "osd target serve",
        "ping": "osd target ping",
        "df": "osd target df",
    }
)


class Nouns(Group):
    """A group whose members are imported when they are used.

    Args:
        table: name -> (module, attribute, help).
        prefix: what precedes the name of an entry point that belongs to this group.
    """

    def __init__(
        self, *args: Any, table: dict[str, tuple[str, str, str]], prefix: str = "", **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.table = table
        self.prefix = prefix

    def _brought(self) -> dict[str, Any]:
        found = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
        start = len(self.prefix)
        return {
            name[start:]: point
            for name, point in found.items()
            if name.startswith(self.prefix) and "." not in name[start:]
        }

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Ours in the table's order, then those that were brought, by name."""
        own = [*self.table, *super().list_commands(ctx)]
        return own + sorted(self._brought().keys() - set(own))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of that name."""
        if cmd_name in self.table:
            module, attribute, _ = self.table[cmd_name]
            command = getattr(import_module(module), attribute)
            assert isinstance(command, click.Command)
            return command
        brought = self._brought().get(cmd_name)
        if brought is not None:
            command = brought.load()
            assert isinstance(command, click.Command)
            return command
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the members with the table's own words, without importing them."""
        rows = [(name, text) for name, (_, _, text) in self.table.items()]
        for name in self.list_commands(ctx):
            if name not in self.table:
                command = self.get_command(ctx, name)
                rows.append((name, command.get_short_help_str(72) if command else ""))
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class Program(Nouns):
    """The program itself: what is the same whatever verb was typed."""

    elsewhere = ELSEWHERE

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run it; an interrupt, and output that cannot be written, end it with a documented code."""
        open_closed()
        try:
            try:
                return super().main(*args, **kwargs)
            finally:
                sys.stdout.flush()
        except OSError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is left of it, when Python ends
            if error.errno != errno.EPIPE:
                click.echo(
                    f"osd: {error.filename or 'input or output'}: {error.strerror or error}",
                    err=True,
                )
            sys.exit(Exit.FAILED)

    def invoke(self, ctx: click.Context) -> Any:
        """An interrupt while a verb is imported, or in one without the common flags."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(Exit.INTERRUPTED)


def open_closed() -> None:
    """Give a standard stream that was closed to us /dev/null: what is written is nobody's to read.

    Reading it fails, for nobody has said that there is nothing.  Else the next file or socket would be it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            fd = os.open(os.devnull, os.O_WRONLY)
            if fd != number:
                os.dup2(fd, number)
                os.close(fd)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def show(
    records: Sequence[dict[str, Any]],
    columns: Sequence[Mapping[str, Any]],
    *,
    colour: str,
    **options: Any,
) -> None:
    """Print records as our own verbs do.

    columns: fields of Column.  colour: auto, always, never.
    """
    from pyosd.cli.output import Column, colour_wanted, print_records

    shown = [Column(**each) for each in columns]
    print_records(records, shown, colour=colour_wanted(colour, sys.stdout), **options)


@click.group(cls=Program, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="iosd", message="iosd %(version)s")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Store objects, and run Python scripts next to them, on an iosd target."""
    ctx.meta[SHOW] = show
