# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd target serve`: its options, and what it prints."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from iosd_host.cli.host_verb import HostVerb, Settings
from iosd_host.cli.serve_options import given, key_options
from iosd_host.cli.target_config import pool_flags, target_config
from iosd_host.common import logs
from iosd_host.common.users import target_uid
from iosd_host.config.files import DEFAULT_FILE
from iosd_host.config.source import Source
from iosd_host.serve.supervise import serve as run_target
from pyosd.cli.frame.param_type import ParamType
from pyosd.cli.output.terminal import output_option

__all__ = ["serve", "source_of"]


class ModuleOption(ParamType[str]):
    """KEY=VALUE for the module."""

    name = "KEY=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse what would not survive tgtd's own option string."""
        text = str(value)
        if "=" not in text or "," in text or ";" in text:
            self.fail("must be KEY=VALUE without comma or semicolon", param, ctx)
        return text


def source_of(ctx: click.Context) -> Source:
    """The source of the configuration of `serve`."""
    params = ctx.params
    flags = tuple(pool_flags(params["pool"], params["slots"], params["reuse"]))
    return Source(params["config_file"], flags, given(ctx))


def administrators(credential: str | None, wanted: bool) -> str:
    """The users whose commands a target accepts, for the person who serves it."""
    if credential:
        return f"its administrator is this user, by the credential {credential}"
    if wanted:
        return "its keys are a security manager's: clients get credentials there"
    return "it gives its user no credential (--security nosec)"


def advice(line: dict[str, Any], credential_wanted: bool) -> str:
    """The served target and the next commands, for the person who serves it."""
    return (
        f"serving {line['data']}, isolation {line['isolation'] or 'none, storage only'}, "
        f"{line['tgtd']['kind']} tgtd {line['tgtd']['version']}\n"
        f"{administrators(line['credential'], credential_wanted)}\n"
        f"try: export IOSD_TARGET={line['url']}\n"
        "     osd target ping"
    )


@click.command(cls=HostVerb)
@click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help=f"Configuration file; options override it.  [default: {DEFAULT_FILE}, if it exists]",
)
@key_options
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
    "--reuse",
    type=click.Choice(["never", "verified", "trusted"]),
    help="When a used sandbox of pool default runs another job of the same principal: "
    "never, if CHAP has proved its name, or always.  Faster, but no security "
    "boundary (docs/security.md).  [default: never]",
)
@click.option(
    "--no-manager",
    is_flag=True,
    help="Keep the configured sizes of pools and workers; start no resource manager.",
)
@click.option("--module", type=click.Path(exists=True, dir_okay=False, path_type=Path), hidden=True)
@click.option("--module-option", multiple=True, type=ModuleOption(), hidden=True)
@click.option(
    "--ready-fd",
    type=click.IntRange(1),
    metavar="N",
    help="Write the JSON lines about the start to file descriptor N.",
)
@output_option("text", "json")
@click.pass_context
def serve(
    ctx: click.Context,
    /,
    *,
    module: Path | None,
    module_option: tuple[str, ...],
    no_manager: bool,
    ready_fd: int | None,
    **_: Any,
) -> None:
    """Serve a target in the foreground; restart its processes if they die.

    Runs tgtd, the hardened one if it is built, with the module bs_iosd.so, iosd-sandboxd for its scripts,
    and the resource manager by which workers and pools follow the load.

    Ends cleanly on SIGTERM and SIGINT, or with its terminal, and leaves no process behind.  On SIGHUP it
    reads the configuration again, as for 'osd config reload'.
    """
    common: Settings = ctx.obj
    source = source_of(ctx)
    settings = source.read()[0]
    log_format, log_level = (settings.target[f"log_{each}"].value for each in ("format", "level"))
    if log_level is None and log_format != "json" and sys.stderr.isatty():
        log_level = "warning"  # a person at the terminal wants to read what follows the URL
    logs.configure(log_format, log_level)
    config = target_config(
        settings, module=module, module_options=module_option, manager=not no_manager
    )
    if config.uid is not None and settings.target["uid"].value is None:  # as root
        own = target_uid(config.data)
        config = config if own is None else replace(config, uid=own)

    def announce(line: dict[str, Any]) -> None:
        text = json.dumps(line)
        if ready_fd is not None:
            with contextlib.suppress(BrokenPipeError):
                os.write(ready_fd, f"{text}\n".encode())
        if common.output == "json":
            logs.echo(text)
        elif line["event"] == "ready":
            logs.echo(line["url"])
            if not common.quiet:
                logs.echo(advice(line, config.local_credential), err=True)

    gc.freeze()  # what was imported stays: no collection need look at it, not even the last one
    run_target(config, announce, source)
