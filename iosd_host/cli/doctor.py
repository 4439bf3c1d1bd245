# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd doctor`: prints what each layer of this host has or lacks (serve/doctor.py)."""

from __future__ import annotations

import json
import sys

import click

from iosd_host.cli.output import print_lines
from iosd_host.common.exit_codes import EXIT_FAILED
from iosd_host.serve import doctor as layers
from pyosd.cli.frame.help import HelpPage

__all__ = ["doctor"]


@click.command(cls=HelpPage)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json"]),
    default="table",
    help="Output format: table or json.  [table]",
)
def doctor(output: str) -> None:
    """Check whether this host can serve a target; exit 1 if not."""
    findings = list(layers.examine())
    ok = all(finding.state != "fail" for finding in findings)
    if output == "json":
        rows = [vars(finding) for finding in findings]
        click.echo(json.dumps({"schema": "iosd.doctor/1", "ok": ok, "layers": rows}))
    else:
        width = max(len(finding.layer) for finding in findings)
        print_lines(
            line
            for each in findings
            for line in (
                f"{each.state:<5} {each.layer:<{width}} {each.detail}",
                *([f"{'':<{width + 7}}{each.hint}"] if each.hint else []),
            )
        )
    if not ok:
        sys.exit(EXIT_FAILED)
