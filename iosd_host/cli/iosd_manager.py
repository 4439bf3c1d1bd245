# SPDX-License-Identifier: GPL-2.0-or-later
"""`iosd-manager`: the resource manager as a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from iosd_host.common import logs, places
from iosd_host.common.exit_codes import EXIT_CONFIG, EXIT_FAILED
from iosd_host.common.places import PlaceFile
from iosd_host.common.users import group_of
from iosd_host.config.files import DEFAULT_FILE
from iosd_host.config.schema import ConfigError, Setting
from iosd_host.control.link import Timing
from iosd_host.http.console import (
    AddressTaken,
    Console,
    ConsoleError,
    Sessions,
    TokenError,
    make_tokens,
)
from iosd_host.manager.confine import ConfineError, confine, drop_capabilities
from iosd_host.manager.key_methods import key_methods
from iosd_host.manager.keys import ClientKeys, KeysError
from iosd_host.manager.manager import VERSION, Manager
from iosd_host.manager.methods import methods
from iosd_host.manager.requests import Requests
from iosd_host.manager.server import Server, ServerError, make_pair
from iosd_host.manager.settings import TargetSettings, configured, served
from iosd_host.manager.state_store import FolderLock, StateError, StateStore
from iosd_host.manager.target import ManagedTarget
from iosd_host.policy.policy import Policy
from pyosd.cli.frame.param_type import ParamType

__all__ = ["main"]

LOG = logging.getLogger("iosd.manager")

PR_SET_PDEATHSIG = 1
STANDBY_S = 0.5  # between two checks whether the other manager has gone
STATE = Path("/var/lib/iosd-manager")
LISTEN = "ipc:///run/iosd/manager.sock"
HTTP = "127.0.0.1:8470"
ENDS = (ConfigError, ConfineError, ConsoleError, KeysError, ServerError, StateError, TokenError)


@dataclass(frozen=True)
class ManagerOptions:
    """The settings of the command line.

    Attributes:
        targets: name and control socket of each.
        listen: endpoints.
        announce: the file that says where we are (common/places.py).
        http: address of metrics, health and console; None: no.
        http_asked: somebody said so; else another port is taken where this one is in use.
        http_names: that Host may have.
        config: of the targets whose supervisor does not say what it serves.
        cgroup: of the sandboxes; None: not read.
    """

    targets: dict[str, Path]
    state: Path
    keys: Path
    listen: Sequence[str]
    announce: Path
    http: str | None = None
    http_asked: bool = False
    http_names: Sequence[str] = ()
    config: Path | None = None
    cgroup: Path | None = None


def notify(words: str) -> None:
    """Tell who started us (sd_notify), if they listen: one datagram is not worth a dependency."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    with (
        contextlib.suppress(OSError),
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender,
    ):
        sender.connect(f"\0{address[1:]}" if address.startswith("@") else address)
        sender.send(words.encode())


async def wait_turn(lock: FolderLock) -> None:
    """Until the state folder is ours: two managers never share one."""
    if lock.take():
        return
    LOG.warning("process %s manages with this state already; standing by", lock.holder())
    notify("READY=1\nSTATUS=standing by")
    while not lock.take():
        await asyncio.sleep(STANDBY_S)
    LOG.warning("the other manager is gone, going on in its place")


def announce(
    options: ManagerOptions, manager: Manager, keys: ClientKeys, http: str | None
) -> PlaceFile | None:
    """Say where administrators of this host find us; None: it cannot be said."""
    fields = {"schema": places.SCHEMAS[places.MANAGER], "pid": os.getpid(), "url": manager.url}
    fields |= {"key": keys.server.public, "key_file": str(keys.local.resolve())}
    fields |= {"targets": [*options.targets], "started": round(manager.started * 1000)}
    fields |= {"http": http}
    try:
        place = PlaceFile(options.announce)
        place.write(fields)
    except OSError as error:
        LOG.warning("administrators must say --manager %s: %s", manager.url, error)
        return None
    return place


def configuration(name: str, options: ManagerOptions) -> dict[str, Setting]:
    """Of a target.  Raises: ConfigError."""
    found = served(name, options.targets[name])
    return configured(options.config) if found is None else found


def become(uid: int) -> None:
    """Run as that user from here on, and still end with our parent."""
    parent = os.getppid()
    group = group_of(uid)
    drop_capabilities()
    os.setgroups([])
    os.setresgid(group, group, group)
    os.setresuid(uid, uid, uid)
    # The kernel has forgotten the signal with the uid.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(EXIT_FAILED)


class Process:
    """The manager, its server and its keys, from start to stop."""

    def __init__(self, options: ManagerOptions) -> None:
        self.options = options
        self.keys = ClientKeys(options.keys, make_pair)
        configurations = {name: configuration(name, options) for name in options.targets}
        self.manager = Manager(StateStore(options.state), lambda name: configuration(name, options))
        who = f"iosd-manager {VERSION}"  # the target knows the process
        for name, path in options.targets.items():
            settings = TargetSettings(configurations[name], self.manager.store.overrides(name))
            log, cgroup = self.manager.log, options.cgroup
            target = ManagedTarget(name, path, who, settings, Policy, log, Timing(), cgroup)
            self.manager.add(target)
        keeping = key_methods(self.keys, self.manager.logged)
        requests = Requests([*methods(self.manager), *keeping])
        self.server = Server(self.keys, requests.answer)
        self.tokens = options.keys / "console.tokens"
        names, sessions = options.http_names, Sessions(self.tokens)
        self.console = Console(self.manager, requests.answer, sessions, names)
        self.http: str | None = None
        self.place: PlaceFile | None = None

    async def listen(self) -> None:
        """Say where.  Raises: ServerError, ConsoleError."""
        self._read_keys()
        for endpoint in self.server.bind(self.options.listen):
            LOG.info("listening at %s", endpoint)
        self.manager.url = self.server.endpoints[0]
        await self._listen_http()
        self.place = announce(self.options, self.manager, self.keys, self.http)

    async def _listen_http(self) -> None:
        if self.options.http is None:
            return
        make_tokens(self.tokens)
        try:
            self.http = await self.console.start(self.options.http)
        except AddressTaken as error:
            if self.options.http_asked:
                raise
            # Another process listens there, perhaps a stranger's. Requests to this address would
            # reach it.
            LOG.warning("%s; another port is taken for metrics and console", error)
            host = self.options.http.rpartition(":")[0]
            self.http = await self.console.start(f"{host}:0")
        LOG.info("metrics and console at %s", self.http)

    def _read_keys(self) -> None:
        for wrong in self.keys.reload():
            LOG.warning("%s", wrong)

    def reload(self) -> None:
        """Read keys and configuration again; what is wrong changes nothing."""
        self._read_keys()
        for name, target in self.manager.targets.items():
            try:
                base = configuration(name, self.options)
            except ConfigError as error:
                LOG.error("configuration of %s stays as it is: %s", name, error)
                continue
            target.use(TargetSettings(base, target.settings.overrides.values()))
        LOG.info("keys and configuration have been read again")

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.server.run())
            group.create_task(self.manager.run())

    async def close(self) -> None:
        """The end."""
        await self.console.close()
        self.server.close()
        self.manager.close()
        if self.place is not None:
            self.place.close()


async def manage(options: ManagerOptions, stop: asyncio.Event) -> None:
    """Run until `stop`."""
    process = Process(options)
    try:
        await process.listen()
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, process.reload)
        running = asyncio.create_task(process.run())
        notify("READY=1\nSTATUS=managing")
        ending = asyncio.create_task(stop.wait())
        await asyncio.wait((running, ending), return_when=asyncio.FIRST_COMPLETED)
        notify("STOPPING=1")
        for task in (running, ending):
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
    finally:
        await process.close()


async def run(options: ManagerOptions) -> None:
    """All of the process's life."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(
        signal.SIGHUP, lambda: None
    )  # nothing has been read that could be again
    # `osd target serve` blocks it, since it would end us before.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})
    lock = FolderLock(options.state)
    turn = asyncio.create_task(wait_turn(lock))
    ending = asyncio.create_task(stop.wait())
    await asyncio.wait((turn, ending), return_when=asyncio.FIRST_COMPLETED)
    if not stop.is_set():
        turn.result()
        await manage(options, stop)
    for task in (turn, ending):
        task.cancel()
    lock.close()


class TargetSocket(ParamType[tuple[str, Path]]):
    """[NAME=]SOCKET."""

    name = "[NAME=]SOCKET"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Path]:
        """Without a name it is the one of the socket's file."""
        name, equals, path = str(value).rpartition("=")
        if not path or (equals and not name):
            self.fail(f"'{value}' is not [NAME=]SOCKET", param, ctx)
        return name or Path(path).stem, Path(path)


@click.command()
@click.option(
    "--target",
    "targets",
    multiple=True,
    type=TargetSocket(),
    help="Control socket of a target to manage.  May be given more than once.",
)
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    default=STATE,
    show_default=True,
    help="Folder for the manager's state; created if absent.",
)
@click.option(
    "--keys",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the keys of the manager and its clients.  [default: keys in --state]",
)
@click.option(
    "--listen",
    multiple=True,
    metavar="ENDPOINT",
    default=(LISTEN,),
    show_default=True,
    help="Address to listen on: ipc://PATH, or tcp://ADDRESS:PORT for other hosts.",
)
@click.option(
    "--http",
    metavar="ADDRESS:PORT",
    help="Address for metrics, health and the console; none: no HTTP.  Everybody who reaches it can "
    "read; changes require a login, which only a loopback address offers.  "
    f"[default: {HTTP}, or a free port]",
)
@click.option(
    "--http-name",
    "http_names",
    multiple=True,
    metavar="NAME",
    help="Host name that browsers use for the HTTP address, for example a proxy's name.",
)
@click.option(
    "--announce",
    "announced",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File in which to announce the manager's address.  [default: "
    "/run/iosd/manager-PID.json, or below IOSD_RUN]",
)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help=f"Configuration file for targets that 'osd target serve' does not serve.  [{DEFAULT_FILE}]",
)
@click.option(
    "--uid", type=click.IntRange(0), metavar="N", hidden=True, help="User to run as after start-up."
)
@click.option(
    "--cgroup",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Control group of the sandboxes, whose pressure to report beside the host's.",
)
def main(
    targets: tuple[tuple[str, Path], ...],
    state: Path,
    keys: Path | None,
    listen: tuple[str, ...],
    http: str | None,
    http_names: tuple[str, ...],
    announced: Path | None,
    config: Path | None,
    cgroup: Path | None,
    uid: int | None,
) -> None:
    """Manage the resources of targets: workers and pools follow the load.

    Ends cleanly on SIGTERM; SIGHUP: reads configuration and keys again.
    """
    if len({name for name, _ in targets}) < len(targets):
        raise click.UsageError("two targets of one name: write --target NAME=SOCKET")
    logs.take_over("iosd-manager")
    if uid is not None:
        become(uid)
    place = announced or places.own_path(places.MANAGER)
    own = keys or state / "keys"
    where = None if http == "none" else http or HTTP
    options = ManagerOptions(
        dict(targets),
        state,
        own,
        listen,
        place,
        where,
        bool(http),
        http_names,
        config,
        cgroup,
    )
    try:
        confine()
        asyncio.run(run(options))
    except ENDS as error:
        click.echo(f"iosd-manager: {error}", err=True)
        sys.exit(EXIT_CONFIG if isinstance(error, ConfigError) else EXIT_FAILED)
