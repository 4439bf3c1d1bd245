# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd doctor`: prints what each layer of this host has or lacks (serve/doctor.py)."""

from __future__ import annotations

import json
import sys

import click

from iosd_host.cli.host_verb import HostVerb, Settings
from iosd_host.common.exit_codes import EXIT_FAILED
from iosd_host.serve import doctor as layers
from pyosd.cli.output.tables import print_lines
from pyosd.cli.output.terminal import output_option

__all__ = ["doctor"]


@click.command(cls=HostVerb)
@output_option("table", "json")
@click.pass_obj
def doctor(settings: Settings) -> None:
    """Check whether this host can serve a target; exit 1 if not."""
    findings = list(layers.examine())
    ok = all(finding.state != "fail" for finding in findings)
    if settings.output == "json":
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
