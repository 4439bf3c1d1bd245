# SPDX-License-Identifier: GPL-2.0-or-later
"""`iosd-manager`: the resource manager as a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from scheduler.admin import places
from scheduler.admin.places import Place
from scheduler.events import Bounds
from scheduler.key_requests import key_methods
from scheduler.keys import Keys, KeysError
from scheduler.manager import Manager, Target
from scheduler.requests import Requests
from scheduler.server import Server, ServerError, make_pair
from scheduler.state_store import FolderLock, StateError, StateStore

__all__ = ["main"]

LOG = logging.getLogger("iosd.manager")

EXIT_FAILED = 1
STANDBY_S = 0.5  # between two looks whether the other manager has gone
STATE = Path("/var/lib/iosd-manager")
LISTEN = "ipc:///run/iosd/manager.sock"


@dataclass(frozen=True)
class Settings:
    """What the command line says.

    Attributes:
        targets: name and control socket of each.
        listen: endpoints.
        announce: the file that says where we are (admin/places.py).
    """

    targets: dict[str, Path]
    state: Path
    keys: Path
    listen: Sequence[str]
    announce: Path


def notify(words: str) -> None:
    """Tell who started us (sd_notify), if they listen."""
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


def announce(settings: Settings, manager: Manager, keys: Keys) -> Place | None:
    """Say where administrators of this host find us; None: it cannot be said."""
    fields = {"schema": places.SCHEMAS[places.MANAGER], "pid": os.getpid(), "url": manager.url}
    fields |= {"key": keys.server.public, "key_file": str(keys.local.resolve())}
    fields |= {"targets": [*settings.targets], "started": round(manager.started * 1000)}
    try:
        place = Place(settings.announce)
        place.write(fields)
    except OSError as error:
        LOG.warning("administrators must say --manager %s: %s", manager.url, error)
        return None
    return place


async def manage(settings: Settings, stop: asyncio.Event, reload: asyncio.Event) -> None:
    """Run until `stop`."""
    keys = Keys(settings.keys, make_pair)
    manager = Manager(
        StateStore(settings.state), [Target(name, Bounds()) for name in settings.targets]
    )
    keeping = key_methods(keys, lambda change: manager.stored(manager.store.change, [change]))
    place: Place | None = None
    server = Server(keys, Requests([*manager.methods(), *keeping]).answer)
    try:
        for wrong in keys.reload():
            LOG.warning("%s", wrong)
        for endpoint in server.bind(settings.listen):
            LOG.info("listening at %s", endpoint)
        manager.url = server.endpoints[0]
        place = announce(settings, manager, keys)
        serving = asyncio.create_task(server.run())
        notify("READY=1\nSTATUS=managing")
        ending = asyncio.create_task(stop.wait())
        await asyncio.wait((serving, ending), return_when=asyncio.FIRST_COMPLETED)
        notify("STOPPING=1")
        for task in (serving, ending):
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await serving
    finally:
        server.close()
        manager.close()
        if place is not None:
            place.close()


async def run(settings: Settings) -> None:
    """All of the process's life."""
    stop, reload = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.add_signal_handler(signal.SIGHUP, reload.set)
    lock = FolderLock(settings.state)
    turn = asyncio.create_task(wait_turn(lock))
    ending = asyncio.create_task(stop.wait())
    await asyncio.wait((turn, ending), return_when=asyncio.FIRST_COMPLETED)
    if not stop.is_set():
        turn.result()
        await manage(settings, stop, reload)
    for task in (turn, ending):
        task.cancel()
    lock.close()


class TargetSocket(click.ParamType[tuple[str, Path]]):
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
    "--target", "targets", multiple=True, type=TargetSocket(), help="Control socket of a target."
)
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    default=STATE,
    show_default=True,
    help="Folder of what it remembers; made if absent.",
)
@click.option(
    "--keys",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of its own and its clients' keys.  [default: keys in --state]",
)
@click.option(
    "--listen",
    multiple=True,
    metavar="ENDPOINT",
    default=(LISTEN,),
    show_default=True,
    help="ipc://PATH, or tcp://ADDRESS:PORT for other hosts.",
)
@click.option(
    "--announce",
    "announced",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File that says where it is.  [default: /run/iosd/manager-PID.json, or below IOSD_RUN]",
)
def main(
    targets: tuple[tuple[str, Path], ...],
    state: Path,
    keys: Path | None,
    listen: tuple[str, ...],
    announced: Path | None,
) -> None:
    """Manage the resources of targets: workers and pools follow the load.

    Ends cleanly on SIGTERM; SIGHUP: reads configuration and keys again.
    """
    if len({name for name, _ in targets}) < len(targets):
        raise click.UsageError("two targets of one name: write --target NAME=SOCKET")
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    place = announced or places.own_path(places.MANAGER)
    settings = Settings(dict(targets), state, keys or state / "keys", listen, place)
    try:
        asyncio.run(run(settings))
    except (KeysError, ServerError, StateError) as error:
        click.echo(f"iosd-manager: {error}", err=True)
        sys.exit(EXIT_FAILED)


if __name__ == "__main__":
    main(prog_name="iosd-manager")
