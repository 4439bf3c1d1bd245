# SPDX-License-Identifier: GPL-2.0-or-later
"""Groups of verbs that are imported when they are used, and verbs that other packages bring."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from pyosd.cli.frame.brought import NOUNS, brought, package_of
from pyosd.cli.frame.group import LONGEST, Group

__all__ = ["Nouns"]


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
        start = len(self.prefix)
        return {
            name[start:]: point
            for name, point in brought().items()
            if name.startswith(self.prefix) and "." not in name[start:]
        }

    def _has(self, name: str) -> bool:
        """Whether the table has it; a noun without verbs of ours counts if others have brought some."""
        if name not in self.table:
            return False
        full = self.prefix + name
        return full not in NOUNS or any(each.startswith(f"{full}.") for each in brought())

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Ours in the table's order, then those that were brought, by name."""
        own = [*filter(self._has, self.table), *super().list_commands(ctx)]
        return own + sorted(self._brought().keys() - set(own))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command of that name."""
        if self._has(cmd_name):
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

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb, or name the package that brings it."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            package = package_of(self.prefix + args[0])
            if package is None or self.get_command(ctx, args[0]) is not None:
                raise
            text = f"{ctx.command_path} {args[0]}: not installed, install {package}"
            raise click.UsageError(text, ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the members with the table's own words, without importing them."""
        rows = [(name, text) for name, (_, _, text) in self.table.items() if self._has(name)]
        for name in self.list_commands(ctx):
            if name not in self.table:
                command = self.get_command(ctx, name)
                rows.append((name, command.get_short_help_str(LONGEST) if command else ""))
        with formatter.section("Commands"):
            formatter.write_dl(rows)
