# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd target attach`, `detach`, `sandboxd`, `manager`: what systemd's units run, by the configuration."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from scheduler import logs, paths
from scheduler.__main__ import main as run_manager
from scheduler.attach import Places, write_pools
from scheduler.attach import attach as attach_target
from scheduler.attach import detach as detach_target
from scheduler.commands import EXIT_CONFIG, EXIT_FAILED, serve, target_config
from scheduler.config import DEFAULT_FILE
from scheduler.param_type import Seconds
from scheduler.parts import TargetConfig, manager_options, sandboxd_command
from scheduler.schema import ConfigError
from scheduler.service import ServiceFailed
from scheduler.supervise import Refused, plain_environment

FC = TypeVar("FC", bound=Callable[..., Any] | click.Command)

__all__ = ["attach", "detach", "manager", "sandboxd"]

SANDBOXD_SOCKET = Path("/run/iosd-sandboxd/socket")
POOLS_FILE = Path("/run/iosd-attach/pools")
CONTROL_SOCKET = Path("/run/iosd-target/control")
MANAGER_RUN = Path("/run/iosd")
MANAGER_PLACE = Path("/run/iosd/manager-iosd.json")
SANDBOXD_GROUP = Path("/sys/fs/cgroup/system.slice/iosd-sandboxd.service")
NOT_WANTED = 1  # to systemd's ExecCondition=: leave it, that is no failure
NOTIFY = "NOTIFY_SOCKET"

CONFIG = click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help=f"Configuration.  [default: {DEFAULT_FILE}, if there]",
)


def place(flag: str, default: Path, what: str) -> Callable[[FC], FC]:
    """An option that says where something is, or shall be."""
    return click.option(
        flag,
        type=click.Path(path_type=Path),
        default=default,
        show_default=True,
        help=what,
    )


SOCKET = place("--socket", SANDBOXD_SOCKET, "Of iosd-sandboxd.")
CONTROL = place(
    "--control", CONTROL_SOCKET, "Socket of the module in tgtd, for the resource manager."
)
SAYS = {"there": "are the same", "changed": "have been read again"}
WAIT = click.option(
    "--wait",
    type=Seconds(0.1, 3600),
    default="30s",
    help="Time that tgtd may take, at most 1h.  [30s]",
)


def configured(path: Path | None, *, secrets: bool = True) -> TargetConfig:
    """What `osd target serve` would serve with this file and no flag.

    secrets: also the CHAP accounts, whose file only its owner reads.
    """
    words = [] if path is None else ["--config", str(path)]
    with serve.make_context("serve", words) as context:
        given = dict(context.params)
    logs.configure(given.pop("log_format"), given.pop("log_level"))
    del given["ready_fd"], given["output"]
    if not secrets:
        given |= {"chap_user": None, "chap_secret_file": None, "chap_file": None}
    return target_config(**given)


def fail(error: Exception, code: int) -> None:
    """Say it, and leave."""
    click.echo(f"osd: {error}", err=True)
    sys.exit(code)


@click.command()
@CONFIG
@SOCKET
@place("--pools-file", POOLS_FILE, "Written for the module to read.")
@CONTROL
@WAIT
def attach(config: Path | None, socket: Path, pools_file: Path, control: Path, wait: float) -> None:
    """Make the target in a tgtd that runs already (tgt.service).

    As `osd target serve` would, by the configuration alone.  A target that is there stays, and reads
    its pools again where they have changed.  tgtd listens on the configured portal alone
    afterwards, unless unsafe_portal is set.
    """
    try:
        url, what = attach_target(configured(config), Places(socket, pools_file, control), wait)
    except (Refused, ConfigError) as error:
        fail(error, EXIT_CONFIG)
    except (ServiceFailed, paths.MissingComponent) as error:
        fail(error, EXIT_FAILED)
    else:
        click.echo(url)
        if what != "made":
            click.echo(f"osd: it was there already; its pools {SAYS[what]}", err=True)


@click.command()
@CONFIG
@WAIT
def detach(config: Path | None, wait: float) -> None:
    """Take the target out of tgtd: sessions and store are closed, tgtd goes on."""
    wanted = configured(config)
    try:
        if not detach_target(wanted, wait):
            click.echo(f"osd: tgtd has no target {wanted.name}", err=True)
    except (ServiceFailed, paths.MissingComponent) as error:
        fail(error, EXIT_FAILED)


@click.command()
@CONFIG
@SOCKET
@click.option("--reload", is_flag=True, help="Only write its file of pools, which SIGHUP reads.")
def sandboxd(config: Path | None, socket: Path, reload: bool) -> None:
    """Become iosd-sandboxd, for the pools of the configuration.

    They are in the file `pools` beside the socket.
    """
    wanted = configured(config, secrets=False)
    pools = socket.with_name("pools")
    try:
        write_pools(wanted, pools)
        if reload:
            return
        command = sandboxd_command(wanted, socket, wanted.isolation, pools)
    except Refused as error:
        fail(error, EXIT_CONFIG)
    except paths.MissingComponent as error:
        fail(error, EXIT_FAILED)
    else:
        # In our place, so that its process is the one that systemd knows.
        kept = {NOTIFY: os.environ[NOTIFY]} if NOTIFY in os.environ else {}
        os.execve(command[0], command, plain_environment() | kept)


@click.command()
@CONFIG
@CONTROL
@place("--folder", MANAGER_RUN, "Of its socket for this host.")
@place("--announce", MANAGER_PLACE, "File that says where it is.")
@place(
    "--cgroup",
    SANDBOXD_GROUP,
    "Of the sandboxes; where it tells its pressure (cgroup v2) the manager shows it.",
)
@click.option(
    "--wanted",
    is_flag=True,
    help="Only tell whether the configuration wants one: exit code 0, or 1.",
)
def manager(
    config: Path | None, control: Path, folder: Path, announce: Path, cgroup: Path, wanted: bool
) -> None:
    """Run iosd-manager for the target of the configuration."""
    settings = configured(config, secrets=False)
    if settings.manager is None:
        click.echo("osd: the configuration wants no manager: [manager] enabled = false", err=True)
        sys.exit(NOT_WANTED if wanted else EXIT_CONFIG)
    if wanted:
        return
    options = manager_options({settings.name: control}, settings.manager, folder)
    options += ["--announce", str(announce)]
    if (cgroup / "cpu.pressure").exists():
        options += ["--cgroup", str(cgroup)]
    if config is not None:
        options += ["--config", str(config)]
    run_manager.main(options, prog_name="iosd-manager")
