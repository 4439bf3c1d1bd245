# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd target serve`: its options, and what it prints."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from iosd_host.cli.param_type import Duration, ModuleOption, Portal, Size
from iosd_host.cli.target_config import flags_given, pool_flags, read_config, target_config
from iosd_host.common import logs, paths
from iosd_host.common.exit_codes import EXIT_CONFIG, EXIT_FAILED
from iosd_host.common.users import target_uid
from iosd_host.config.files import DEFAULT_FILE, METHODS
from iosd_host.config.source import Source
from iosd_host.serve.parts import DEFAULT_NAME
from iosd_host.serve.preconditions import LEVELS, CannotServe
from iosd_host.serve.process import ProcessFailed
from iosd_host.serve.supervise import serve as run_target
from pyosd.cli.frame.failure import print_error
from pyosd.cli.frame.help import HelpPage

__all__ = ["Without", "serve", "standards"]


@dataclass(frozen=True)
class Without:
    """The object of a context that ignores keys of the file: they name files that this user cannot read."""

    keys: frozenset[str]


def take_defaults(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    """What the file says of the target is what flags say that are not given."""
    ignored = ctx.obj.keys if isinstance(ctx.obj, Without) else frozenset()
    flags = {key: flag for key, flag in read_config(value).flags.items() if key not in ignored}
    ctx.default_map = {**(ctx.default_map or {}), **flags}
    return value


def source_of(ctx: click.Context, options: dict[str, Any]) -> Source:
    """Where the configuration of `serve` comes from."""
    flags = tuple(pool_flags(options["pool"], options["slots"], options["reuse"]))
    file, sets = options["config_file"], options["package_sets"]
    return Source(file, flags, sets, flags_given(ctx), standards())


def standards() -> dict[str, Any]:
    """What is served with where neither flags nor files say anything."""
    return {str(param.name): param.default for param in serve.params}


def administrators(credential: str | None, wanted: bool) -> str:
    """Whose commands a target obeys, for the person who serves it."""
    if credential:
        return f"its administrator is this user, by the credential {credential}"
    if wanted:
        return "its keys are a security manager's: clients get credentials there"
    return "it gives its user no credential (--security nosec)"


@click.command(cls=HelpPage)
@click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    is_eager=True,
    callback=take_defaults,
    help=f"Configuration file; options override it.  [default: {DEFAULT_FILE}, if it exists]",
)
@click.option(
    "--data", type=click.Path(path_type=Path), help="Folder of the store; created if absent."
)
@click.option(
    "--ssd",
    type=click.Path(path_type=Path),
    help="Folder on an SSD for the heads (first bytes) of objects.",
)
@click.option(
    "--portal",
    type=Portal(),
    default="127.0.0.1:3260",
    show_default=True,
    help="Address and port where initiators log in.",
)
@click.option(
    "--unsafe-portal",
    is_flag=True,
    help="Allow a portal that is not loopback with a tgtd that is not hardened.",
)
@click.option(
    "--tgtd",
    metavar="PATH|stock|hardened",
    envvar="IOSD_TGTD",
    help="Program to run as iSCSI daemon: the distribution's, or that of 'make tgtd' "
    "(docs/hardened-tgtd.md).  [default: hardened, if built]",
)
@click.option(
    "--allow",
    multiple=True,
    metavar="ADDRESS",
    help="Address or network of initiators that may log in.",
)
@click.option(
    "--name",
    metavar="NAME",
    default=DEFAULT_NAME,
    show_default=True,
    help="iSCSI name of the target.",
)
@click.option(
    "--chap-user",
    metavar="NAME",
    help="CHAP name that initiators log in with; the secret is in IOSD_CHAP_SECRET or "
    "--chap-secret-file.",
)
@click.option(
    "--chap-secret-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the secret of --chap-user, readable by its owner alone.",
)
@click.option(
    "--chap-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="TOML file with CHAP accounts and the target's own account, readable by its owner alone.",
)
@click.option(
    "--security",
    type=click.Choice(METHODS),
    help="Lowest security method of a store that is created or formatted now; nosec: "
    "every user of this host is an administrator (docs/security.md).  [default: "
    "capkey on loopback, else cmdrsp]",
)
@click.option(
    "--master-key",
    type=click.Path(path_type=Path),
    help="File for a new store's master key, out of tgtd's reach.  [default: DATA.master-key]",
)
@click.option(
    "--uid",
    type=click.IntRange(0),
    metavar="N",
    help="User to run tgtd as.  [default, as root: the owner of DATA, or one of its "
    "own for a new store]",
)
@click.option(
    "--uid-base",
    type=click.IntRange(1, 2**31 - 2049),
    metavar="N",
    help="User id before the first one of the sandboxes; no other user of this host "
    "may have the ids that follow.  [default: 2130706432]",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    metavar="N",
    help="Number of threads that run commands.",
)
@click.option(
    "--slots",
    type=click.IntRange(1, 64),
    metavar="N",
    help="Number of jobs that pool default runs at once.",
)
@click.option(
    "--pool",
    multiple=True,
    metavar="NAME[:KEY=VALUE,...]",
    help="Add a pool of sandboxes to those of the configuration (docs/pools.md).  May "
    "be given more than once.",
)
@click.option(
    "--package-sets", type=click.Path(path_type=Path), help="Folder that holds the package sets."
)
@click.option(
    "--isolation",
    type=click.Choice([*LEVELS, "best"]),
    default="full",
    show_default=True,
    help="Least isolation of scripts; best: the most that this host supports (docs/security.md).",
)
@click.option(
    "--cpu-share",
    type=click.IntRange(0, 90),
    metavar="PERCENT",
    help="Per cent of a processor that all scripts together get at least while four "
    "other programs compute on it; 0: idle time only (docs/serving.md).  "
    "[default: 5]",
)
@click.option(
    "--reuse",
    type=click.Choice(["never", "verified", "trusted"]),
    help="When a used sandbox of pool default runs another job of the same principal: "
    "never, if CHAP has proved its name, or always.  Faster, but no security "
    "boundary (docs/security.md).  [default: never]",
)
@click.option(
    "--allow-bytecode",
    is_flag=True,
    help="Accept jobs that are .pyc files; trust these as much as native code (docs/security.md).",
)
@click.option(
    "--queue-per-principal",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Most jobs that one principal may have in the queue; also the longest array."
    "  [default: 1000]",
)
@click.option("--no-sandboxes", is_flag=True, help="Serve storage only; run no scripts.")
@click.option(
    "--no-manager",
    is_flag=True,
    help="Keep the configured sizes of pools and workers; start no resource manager.",
)
@click.option(
    "--durability",
    type=click.Choice(["process", "sync"]),
    default="process",
    show_default=True,
    help="What an acknowledged write survives: a crash of the target, or power loss too.",
)
@click.option(
    "--io",
    type=click.Choice(["cached", "direct"]),
    default="cached",
    show_default=True,
    help="How to read and write object data: through the page cache, or directly (docs/tiers.md).",
)
@click.option(
    "--checksums",
    type=click.Choice(["as-stored", "on", "off"]),
    default="as-stored",
    show_default=True,
    help="Checksums of every 4 KiB of data: as the store has it (a new one: off), on, "
    "or off (docs/reliability.md).",
)
@click.option(
    "--verify",
    type=click.Choice(["scrub", "always"]),
    default="scrub",
    show_default=True,
    help="When to compare data with its checksums: in the scrub, or also at every READ.",
)
@click.option(
    "--scrub-rate",
    type=Size("64KiB"),
    default="64MiB",
    show_default=True,
    help="Most bytes per second that the scrub reads.",
)
@click.option(
    "--scrub-days",
    type=click.IntRange(0, 3650),
    metavar="N",
    default=30,
    show_default=True,
    help="Days from the end of one scrub to the start of the next; 0: only on request.",
)
@click.option(
    "--head-size",
    type=Size("0"),
    help="Bytes of a new object that are stored on the SSD; 0 is allowed.  [default: "
    "as formatted; 2MiB]",
)
@click.option(
    "--head-policy",
    type=click.Choice(["first", "small-only", "off"]),
    default="first",
    show_default=True,
    help="Which new objects begin on the SSD: all, those not longer than the head size, or none.",
)
@click.option(
    "--head-high-water",
    type=click.IntRange(1, 99),
    metavar="N",
    default=95,
    show_default=True,
    help="Per cent of the SSD in use above which new heads are stored in --data.",
)
@click.option(
    "--head-low-water",
    type=click.IntRange(1, 99),
    metavar="N",
    default=90,
    show_default=True,
    help="Per cent of the SSD in use below which heads move back to it.",
)
@click.option(
    "--head-rate",
    type=Size("64KiB"),
    default="64MiB",
    show_default=True,
    help="Most bytes per second that move between the SSD and --data.",
)
@click.option(
    "--on-ssd-loss",
    type=click.Choice(["fail", "read-through"]),
    default="fail",
    show_default=True,
    help="What to do without the SSD folder: do not start, or serve the data in --data"
    " (docs/tiers.md).",
)
@click.option(
    "--script-turn",
    type=Duration(0, 0.01),
    default=1000,
    help="Time slice of a script on a processor while commands arrive; 0s: the "
    "kernel's own.  [default: 1ms]",
)
@click.option(
    "--osc-compat",
    is_flag=True,
    help="Use OSC's dialect where it contradicts OSD-2 (docs/commands.md).",
)
@click.option(
    "--log-format",
    type=click.Choice(logs.FORMATS),
    envvar="IOSD_LOG_FORMAT",
    help="Format of the log on stderr: text lines or JSON objects (docs/logs.md).  [default: text]",
)
@click.option(
    "--log-level",
    type=click.Choice(logs.LEVELS),
    envvar="IOSD_LOG_LEVEL",
    help="Lowest level to log.  info logs at most 20 jobs a second, debug all of them."
    "  [info; warning on a terminal]",
)
@click.option("--module", type=click.Path(exists=True, dir_okay=False, path_type=Path), hidden=True)
@click.option("--module-option", multiple=True, type=ModuleOption(), hidden=True)
@click.option(
    "--ready-fd",
    type=click.IntRange(1),
    metavar="N",
    help="Write the JSON lines about the start to file descriptor N.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    help="Output format: text or json.  [text]",
)
def serve(
    *,
    log_format: str | None,
    log_level: str | None,
    ready_fd: int | None,
    output: str,
    **options: Any,
) -> None:
    """Serve a target in the foreground; restart its processes if they die.

    Runs tgtd, the hardened one if it is built, with the module bs_iosd.so, iosd-sandboxd for its scripts,
    and the resource manager by which workers and pools follow the load.

    Ends cleanly on SIGTERM and SIGINT, or with its terminal, and leaves no process behind.  On SIGHUP it
    reads the configuration again, as 'osd config reload' has it do.
    """
    if log_level is None and log_format != "json" and sys.stderr.isatty():
        log_level = "warning"  # a person at the terminal wants to read what follows the URL
    logs.configure(log_format, log_level)
    source = source_of(click.get_current_context(), options)
    config = target_config(**options)
    if config.uid is not None and options["uid"] is None:  # as root
        own = target_uid(config.data)
        config = config if own is None else replace(config, uid=own)

    def announce(line: dict[str, Any]) -> None:
        text = json.dumps(line)
        if ready_fd is not None:
            with contextlib.suppress(BrokenPipeError):
                os.write(ready_fd, f"{text}\n".encode())
        if output == "json":
            logs.echo(text)
        elif line["event"] == "ready":
            logs.echo(line["url"])
            logs.echo(
                f"serving {line['data']}, isolation {line['isolation'] or 'none, storage only'}, "
                f"{line['tgtd']['kind']} tgtd {line['tgtd']['version']}\n"
                f"{administrators(line['credential'], config.local_credential)}\n"
                f"try: export IOSD_TARGET={line['url']}\n"
                "     osd target ping",
                err=True,
            )

    try:
        run_target(config, announce, source)
    except CannotServe as error:
        print_error(EXIT_CONFIG, str(error))
        sys.exit(EXIT_CONFIG)
    except (ProcessFailed, paths.MissingComponent) as error:
        print_error(EXIT_FAILED, str(error))
        sys.exit(EXIT_FAILED)
