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
The configuration of an iosd target, as TOML tables. `osd target serve` and systemd's units read it.
If a key is missing, its default holds. Flags of `osd target serve` override the file. A pool may
have a file of its own, `pools.d/NAME.toml` beside this one, with tables `[pool]`, `[pool.limits]`,
`[pool.maximum]` and `[pool.scale]`. That file overrides this one.

Sizes and times are texts with units: "256MiB" (B, KiB, MiB, GiB, TiB), "30s" (us, ms, s, min, h,
d). An unknown key is an error, which names the most similar key. `osd config check` checks a file
and shows what a reload would change. `osd config show --origin` shows the present values and their
sources.

The installed file has every key, commented out. If a key below has no default, or one that depends
on the host, an example stands in its place.
"""
SANDBOX = """\
iosd-sandboxd makes the processes in which scripts of an iosd target run, limits them, and kills
their remains. It serves one target at a time, through a Unix socket. When the connection closes,
all sandboxes end. It runs as root to give the strongest isolation: iosd-security(7) describes the
layers, and `osd doctor` shows those that this host supports. Options name the pools and their
package sets. `osd target serve` and `osd target sandboxd` derive these options from iosd.toml(5).

**Under systemd** `iosd-sandboxd.service` runs it, and restarts it when it dies. Jobs wait
meanwhile. Sandboxes have control groups below its own (`Delegate=yes`), and uids of their own, from
N+1 of `--uid-base` on. No other program of the host may use these uids. A sandbox that runs out of
memory is killed alone.

It reports its readiness by a line on standard output and to systemd, and logs to standard error.
SIGTERM and SIGINT end it in order. The exit status is 0 after that, 1 if it cannot serve as
requested, 2 if an option is wrong.
"""
MANAGER = """\
iosd-manager is the resource manager. It watches targets through their control sockets, and adjusts
the numbers of their workers, slots and prestarted sandboxes to the load, within the bounds of
iosd.toml(5). It answers the verbs of osd-pool(1) and others to holders of a key. It stores the
settings of administrators, the log of changes and the history, and has metrics and a console if
they are configured. A target without a manager keeps its present sizes.

**Under systemd** `iosd-manager.service` runs it as the user iosd-manager, by `osd target manager`,
which derives its options from iosd.toml(5). SIGHUP makes it read configuration and keys again.
SIGTERM ends it in order. A second manager on the same state waits until the first has ended.
"""


def sandboxd_options() -> list[tuple[str, str]]:
    """The options in the usage text of sandbox/options.c: each with its argument and its description."""
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
        "## NAME\n\niosd.toml - configuration of an iosd target",
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
