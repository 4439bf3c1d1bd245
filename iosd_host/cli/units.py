# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd target attach`, `detach`, `sandboxd`, `manager`: the commands that systemd's units run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from iosd_host.cli.host_verb import HostVerb
from iosd_host.cli.iosd_manager import main as run_manager
from iosd_host.cli.serve import serve, source_of
from iosd_host.cli.target_config import target_config
from iosd_host.common import logs
from iosd_host.common.exit_codes import EXIT_CONFIG
from iosd_host.common.places import CONTROL_SOCKET
from iosd_host.config.files import DEFAULT_FILE, in_force, load, needs_restart
from iosd_host.serve.attach import Attached, Places, attached, write_pools
from iosd_host.serve.attach import attach as attach_target
from iosd_host.serve.attach import detach as detach_target
from iosd_host.serve.parts import TargetConfig, manager_options, sandboxd_command
from iosd_host.serve.supervise import plain_environment
from pyosd.cli.frame.params import DurationParam

FC = TypeVar("FC", bound=Callable[..., Any] | click.Command)

__all__ = ["attach", "detach", "manager", "sandboxd"]

SANDBOXD_SOCKET = Path("/run/iosd-sandboxd/socket")
POOLS_FILE = Path("/run/iosd-attach/pools")
MANAGER_RUN = Path("/run/iosd")
MANAGER_PLACE = Path("/run/iosd/manager-iosd.json")
SANDBOXD_GROUP = Path("/sys/fs/cgroup/system.slice/iosd-sandboxd.service")
NOT_WANTED = 1  # to systemd's ExecCondition=: leave it, that is no failure
NOTIFY = "NOTIFY_SOCKET"

CONFIG = click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help=f"Configuration file.  [default: {DEFAULT_FILE}, if it exists]",
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


SOCKET = place("--socket", SANDBOXD_SOCKET, "Socket of iosd-sandboxd.")
CONTROL = place(
    "--control", CONTROL_SOCKET, "Socket of the module in tgtd, for the resource manager."
)
SAYS = {"there": "are the same", "changed": "have been read again"}
WAIT = click.option(
    "--wait",
    type=DurationParam(0.1, 3600),
    default="30s",
    help="Longest time to wait for tgtd, at most 1h.  [30s]",
)


def configured(path: Path | None, *, secrets: bool = True) -> TargetConfig:
    """The configuration that `osd target serve` would serve with this file and no flag. secrets:
    also the CHAP accounts, whose file only its owner can read.
    """
    words = [] if path is None else ["--config", str(path)]
    with serve.make_context("serve", words) as context:  # its variables of the environment hold
        config, _ = source_of(context).read()
    logs.configure(*(config.target[f"log_{each}"].value for each in ("format", "level")))
    return target_config(config, secrets=secrets)


def file_of(config: Path | None) -> Path:
    """The configuration file that is used."""
    return (config or DEFAULT_FILE).resolve()


def settings_of(config: Path | None) -> dict[str, Any]:
    """The settings of the target that hold from its making on."""
    found = in_force(load(config))
    return {
        name: each.value
        for name, each in found.items()
        if name.startswith(("target.", "heads.")) and needs_restart(name)
    }


@click.command(cls=HostVerb)
@CONFIG
@SOCKET
@place("--pools-file", POOLS_FILE, "File of pools to write for the module in tgtd.")
@CONTROL
@WAIT
def attach(config: Path | None, socket: Path, pools_file: Path, control: Path, wait: float) -> None:
    """Create the target in a running tgtd (tgt.service).

    As `osd target serve` would, by the configuration alone.  A target that is there stays, and reads
    its pools again where they have changed.  tgtd listens on the configured portal alone
    afterwards, unless unsafe_portal is set.
    """
    settings = settings_of(config)
    places = Places(file_of(config), settings, socket, pools_file, control)
    url, what = attach_target(configured(config), places, wait)
    click.echo(url)
    if what == "made":
        return
    click.echo(f"osd: it was there already; its pools {SAYS[what]}", err=True)
    before = attached(places.config, pools_file)
    was = {} if before is None else before.settings
    if names := sorted(name for name in {**was, **settings} if was.get(name) != settings.get(name)):
        text = f"changes of {', '.join(names)} take effect at a restart"
        click.echo(f"osd: {text}: systemctl restart iosd-attach", err=True)


@click.command(cls=HostVerb)
@CONFIG
@WAIT
def detach(config: Path | None, wait: float) -> None:
    """Remove the target from tgtd, which keeps running.

    The target is the one that `osd target attach` made last, also if the configuration has changed
    since.
    """
    what = attached(file_of(config), POOLS_FILE)
    if what is None:
        wanted = configured(config, secrets=False)
        what = Attached(wanted.name, wanted.portal)
    if not detach_target(what, wait):
        click.echo(f"osd: tgtd has no target {what.name}", err=True)


@click.command(cls=HostVerb)
@CONFIG
@SOCKET
@click.option(
    "--reload",
    is_flag=True,
    help="Write only the file of pools, which iosd-sandboxd reads again on SIGHUP.",
)
def sandboxd(config: Path | None, socket: Path, reload: bool) -> None:
    """Run iosd-sandboxd for the pools of the configuration.

    They are in the file `pools` beside the socket.
    """
    wanted = configured(config, secrets=False)
    pools = socket.with_name("pools")
    write_pools(wanted, pools)
    if reload:
        return
    command = sandboxd_command(wanted, socket, wanted.isolation, pools)
    # In our place, so that its process is the one that systemd knows.
    kept = {NOTIFY: os.environ[NOTIFY]} if NOTIFY in os.environ else {}
    os.execve(command[0], command, plain_environment() | kept)


@click.command(cls=HostVerb)
@CONFIG
@CONTROL
@place("--folder", MANAGER_RUN, "Folder for the manager's socket.")
@place("--announce", MANAGER_PLACE, "File in which to announce the manager's address.")
@place(
    "--cgroup",
    SANDBOXD_GROUP,
    "Control group of the sandboxes.  The manager shows its pressure on cgroup v2.",
)
@click.option(
    "--wanted",
    is_flag=True,
    help="Only test whether the configuration requires a resource manager: exit code 0, or 1.",
)
def manager(
    config: Path | None, control: Path, folder: Path, announce: Path, cgroup: Path, wanted: bool
) -> None:
    """Run iosd-manager for the target of the configuration."""
    settings = configured(config, secrets=False)
    if settings.manager is None:
        click.echo("osd: the configuration has no manager: [manager] enabled = false", err=True)
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
