# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of nouns and top-level verbs of ``osd``.

A noun's file is imported when its name is typed, so that ``osd --help`` and completion stay quick.
"""

from __future__ import annotations

from importlib.metadata import version

import click

__all__ = ["main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Store objects, and run Python scripts next to them, on an iosd target."""


@main.command("version")
def version_command() -> None:
    """Print the version of iosd."""
    click.echo(f"iosd {version('iosd')}")
