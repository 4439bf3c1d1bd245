# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd config``: its verbs come from the package that runs on the target's host, by entry point."""

from __future__ import annotations

import click

from pyosd.cli.frame.nouns import Nouns

__all__ = ["config"]


@click.group(cls=Nouns, prefix="config.", table={})
def config() -> None:
    """Show, check and reload the configuration of a target."""
