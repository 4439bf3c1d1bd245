# SPDX-License-Identifier: GPL-2.0-or-later
"""Groups of verbs that help those who mistype one, or say an option too early."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import click

__all__ = ["LONGEST", "Group"]

LONGEST = 200  # characters of a short help: enough for any first sentence


class Group(click.Group):
    """A group of verbs, or of groups.

    elsewhere: verbs that people look for here, and where they are.
    """

    elsewhere: Mapping[str, str] = MappingProxyType({})

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Options belong to the verbs, so they come after them."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            verb = next((word for word in args if word in self.list_commands(ctx)), "VERB")
            raise click.UsageError(
                f"{error.format_message()} Options come after the verb: "
                f"{ctx.command_path} {verb} {error.option_name}",
                ctx,
            ) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the members with their whole first sentence."""
        rows = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is not None and not command.hidden:
                rows.append((name, command.get_short_help_str(LONGEST)))
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb, or say which it may have been."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            text = error.format_message()
            if "Did you mean" in text:
                raise
            known = self.list_commands(ctx)
            close = [self.elsewhere[args[0]]] if args[0] in self.elsewhere else []
            if not close:
                from difflib import get_close_matches

                close = get_close_matches(args[0], known, 1)
            if not close:
                raise
            raise click.UsageError(f"{text} Did you mean '{close[0]}'?", ctx) from None
