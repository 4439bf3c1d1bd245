# SPDX-License-Identifier: GPL-2.0-or-later
"""The manual pages of a target's host: iosd.toml(5) from the schema, iosd-sandbox(8) from the usage text of
iosd-sandboxd, iosd-manager(8) from its command.
"""

from __future__ import annotations

import re
from pathlib import Path

import click

from iosd_host.cli.iosd_manager import main as manager
from tools.configdoc import ROWS, SECTIONS
from tools.manpage import entry, manual_page, option_rows, plain, usage

__all__ = ["host_pages", "sandboxd_options"]

ROOT = Path(__file__).resolve().parents[1]
TOML = """\
TOML tables, read by `osd target serve` and by what systemd's units start. For what stands nowhere
the default holds; flags of `osd target serve` win over the file. A pool may have a file of its own,
`pools.d/NAME.toml` beside this one, with tables `[pool]`, `[pool.limits]`, `[pool.maximum]` and
`[pool.scale]`, which wins over this one.

Sizes and times are texts with units: "256MiB" (B, KiB, MiB, GiB, TiB), "30s" (us, ms, s, min, h,
d). A key that does not exist is an error, which names the nearest one that does. `osd config check`
says what serving with a file would do, `osd config show --origin` what holds now and where it was
said.

The file that is installed has every key, commented out. Where a key below has no default there, or
one that depends on the host, an example stands in its place.
"""
SANDBOX = """\
iosd-sandboxd makes the processes in which scripts of an iosd target run, limits them, and kills
what is left of them. It serves one target at a time, through a Unix socket; when that closes, all
sandboxes end. It runs as root to give the strongest isolation; iosd-security(7) says what that
consists of and what it is worth, `osd doctor` what this host can give. Which pools there are, and
their package sets, is said by options: `osd target serve` and `osd target sandboxd` give those that
follow from iosd.toml(5), so nobody needs to write them.

**Under systemd** `iosd-sandboxd.service` runs it. Jobs wait while it is away; it is started again
when it dies. Sandboxes have control groups below its own (`Delegate=yes`), and uids of their own,
N+1 and up of `--uid-base`: nothing else of the host may use those. One that runs out of memory is
killed alone.

It tells its readiness by a line on standard output and to systemd, its log to standard error;
SIGTERM and SIGINT end it in order. Exit status 0 after that, 1 when it cannot serve as asked, 2
when an option is wrong.
"""
MANAGER = """\
iosd-manager watches targets through their control sockets and has the numbers of their workers,
slots and warm sandboxes follow the load, within the bounds of iosd.toml(5). It answers the verbs of
osd-pool(1) and others by keys, keeps what administrators set, the log of changes and history, and
has metrics and a console where configured. A target without a manager goes on with the sizes that
it has.

**Under systemd** `iosd-manager.service` runs it as the user iosd, by `osd target manager`, which
gives the options that follow from iosd.toml(5). SIGHUP has it read configuration and keys again;
SIGTERM ends it in order. A second one on the same state stands by until the first is gone.
"""


def sandboxd_options() -> list[tuple[str, str]]:
    """What the usage text of sandbox/options.c says: an option with its argument, and its words."""
    source = (ROOT / "sandbox" / "options.c").read_text()
    found = re.search(r"usage\[\] =\n(.*?);\n", source, re.DOTALL)
    assert found is not None
    lines = re.findall(r'"(.*)\\n"', found[1])
    rows: list[tuple[str, str]] = []
    for line in lines:
        if option := re.match(r" {2}(--\S+(?: [A-Z]+)?) +(.*)", line):
            rows.append((option[1], option[2]))
        elif line.startswith("   ") and rows:
            rows[-1] = (rows[-1][0], f"{rows[-1][1]} {line.strip()}")
    return rows


def toml_page() -> str:
    """iosd.toml(5)."""
    parts = [
        "## NAME\n\niosd.toml - what an iosd target is served with",
        "## SYNOPSIS",
        "*/etc/iosd/iosd.toml*\\\n*/etc/iosd/pools.d/NAME.toml*",
        "## DESCRIPTION",
        TOML,
    ]
    for section, (_, about) in SECTIONS.items():
        shown = section.replace("pools.default", "pools.NAME")
        parts += [f"## `[{shown}]`", plain(about)]
        for row in ROWS:
            if row.section == section:
                word = "default" if row.default else "example"
                parts.append(entry(row.name, plain(f"{row.meaning}; {word}: {row.value}")))
    parts += ["## SEE ALSO", "osd-config(1), osd-target(1), osd-pool(1), iosd(7)"]
    return manual_page("IOSD.TOML", 5, parts)


def sandbox_page() -> str:
    """iosd-sandbox(8)."""
    parts = [
        "## NAME\n\niosd-sandbox, iosd-sandboxd - processes in which scripts run next to the data",
        "## SYNOPSIS",
        usage("iosd-sandboxd", "--socket PATH --python-dir DIR [OPTION...]")
        + "\\\n**iosd-sandboxd --print-level**",
        "## DESCRIPTION",
        SANDBOX,
        "## OPTIONS",
        *(entry(name, plain(words)) for name, words in sandboxd_options()),
        "## SEE ALSO",
        "osd-doctor(1), osd-target(1), iosd.toml(5), iosd(7), iosd-security(7)",
    ]
    return manual_page("IOSD-SANDBOX", 8, parts)


def manager_page() -> str:
    """iosd-manager(8)."""
    context = click.Context(manager, info_name="iosd-manager")
    short = (manager.help or "").partition("\n")[0].rstrip(".")
    parts = [
        f"## NAME\n\niosd-manager - {plain(short[:1].lower() + short[1:])}",
        "## SYNOPSIS",
        usage("iosd-manager", " ".join(manager.collect_usage_pieces(context))),
        "## DESCRIPTION",
        MANAGER,
        "## OPTIONS",
        *option_rows(manager, context),
        "## SEE ALSO",
        "osd-pool(1), osd-target(1), iosd.toml(5), iosd(7)",
    ]
    return manual_page("IOSD-MANAGER", 8, parts)


def host_pages() -> dict[str, str]:
    """File name below the manual's folder -> content."""
    return {
        "man5/iosd.toml.5": toml_page(),
        "man8/iosd-sandbox.8": sandbox_page(),
        "man8/iosd-manager.8": manager_page(),
    }
