# SPDX-License-Identifier: GPL-2.0-or-later
"""The layout of --help: options under headings, the common options last, then examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import click

__all__ = ["COMMON", "HelpPage"]

COMMON = "Common options"


class HelpPage(click.Command):
    """A command whose --help has headings and examples.

    sections: heading -> names of the options below it.  Options in no section come under "Options".
    common: names of the options that many verbs share; they come last.
    """

    sections: Mapping[str, Sequence[str]] = MappingProxyType({})
    common: frozenset[str] = frozenset()

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options under their headings."""
        placed = {name: title for title, names in self.sections.items() for name in names}
        placed |= dict.fromkeys(self.common, COMMON)
        titles = [*self.sections, "Options", COMMON]
        rows: dict[str, list[tuple[str, str]]] = {title: [] for title in titles}
        for each in self.get_params(ctx):
            record = each.get_help_record(ctx)
            if record is not None and record[1]:  # an argument is described in the text above
                rows[placed.get(each.name or "", "Options")].append(record)
        for title in titles:
            if rows[title]:
                with formatter.section(title):
                    formatter.write_dl(rows[title])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        from pyosd.cli.frame.examples import EXAMPLES

        lines = EXAMPLES.get(ctx.command_path, ())
        if lines:
            with formatter.section("Examples"):
                for line in lines:
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
        super().format_epilog(ctx, formatter)
