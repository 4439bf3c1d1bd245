# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd version``."""

from __future__ import annotations

import sys
from importlib.metadata import version

import click

from pyosd.cli.frame.verb import LocalVerb

__all__ = ["version_command"]


@click.command("version", cls=LocalVerb)
def version_command() -> None:
    """Print the version of iosd and of its Python."""
    click.echo(f"iosd {version('iosd')} (Python {sys.version.split()[0]})")
