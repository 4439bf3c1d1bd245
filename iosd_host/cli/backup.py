# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd target backup make`, `ls`, `verify`, and `osd target restore`."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from iosd_host.cli.host_verb import Settings
from iosd_host.cli.store import StoreVerb, json_lines
from iosd_host.cli.target_config import default_data
from iosd_host.common.exit_codes import EXIT_FAILED, EXIT_PROBLEMS
from iosd_host.store_tools.backup.make import BackupSettings, back_up
from iosd_host.store_tools.backup.repository import (
    About,
    Damaged,
    Digests,
    Repository,
    mark_damaged,
    problems_of,
)
from iosd_host.store_tools.backup.restore import restore as restore_store
from iosd_host.store_tools.opening.folders import Refused
from iosd_host.store_tools.report import shown_progress
from pyosd.cli.frame.group import Group
from pyosd.cli.frame.params import DurationParam
from pyosd.cli.output.terminal import harmless

__all__ = ["backup", "restore"]

FOLDER = click.Path(path_type=Path, file_okay=False, readable=False)
JSON = json_lines("one JSON line for each backup")


@contextlib.contextmanager
def private() -> Iterator[None]:
    """Nobody else reads what is made meanwhile."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


@contextlib.contextmanager
def room_in(*folders: Path | None, otherwise: str) -> Iterator[None]:
    """A full disk as a sentence with the folder: the system's own does not name one.

    Args: otherwise: what a full disk leaves.
    Raises: Refused: there was no space.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        where = " and ".join(f"'{each}'" for each in folders if each is not None)
        text = f"no space left in {where}: {otherwise}; make room there and run this again"
        raise Refused(EXIT_FAILED, text) from None


def text_of(about: About) -> str:
    """A line about a backup."""
    moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(about.moment_ms / 1000))
    size = f"{about.bytes / (1 << 20):.1f} MiB"
    new = f"{about.copied_bytes / (1 << 20):.1f} MiB"
    how = f"served, paused {about.pause_ms:.0f} ms" if about.hot else "not served"
    return f"{about.name}  {moment}  {about.files} files  {size}  {new} copied  {how}"


def show(about: About, settings: Settings) -> None:
    """Print it."""
    click.echo(json.dumps(asdict(about)) if settings.output == "json" else harmless(text_of(about)))


@click.group(cls=Group)
def backup() -> None:
    """Back up a store, even while a target serves it.

    A backup is the store as it was at one moment.  Everything that a target acknowledged before that
    moment is in it.
    """


@backup.command(cls=StoreVerb)
@click.argument("folder", type=FOLDER)
@click.option("--data", type=FOLDER, help="Folder of the store, as for 'osd target serve'.")
@click.option("--ssd", type=FOLDER, help="Folder of the store on its SSD, if it has one.")
@click.option(
    "--keep",
    type=click.IntRange(1),
    metavar="N",
    help="Keep the newest N backups in FOLDER and remove the older ones, but none that was renamed.  "
    "[keep all]",
)
@click.option(
    "--pause",
    type=DurationParam(0.001, 30),
    default="5s",
    show_default=True,
    help="Longest time that commands of clients may wait, up to 30s.",
)
@click.option(
    "--control",
    type=click.Path(path_type=Path),
    metavar="SOCKET",
    help="Control socket of the target that serves the store.  [searched for]",
)
@JSON
@click.pass_obj
def make(
    settings: Settings,
    /,
    *,
    folder: Path,
    data: Path | None,
    ssd: Path | None,
    keep: int | None,
    pause: float,
    control: Path | None,
) -> None:
    """Add a backup to FOLDER.

    Files that did not change since the newest backup there are shared with it (hard links).  Use one
    FOLDER for each store, on another disk.

    The target continues to serve.  At the end the last changed files and the database are copied.
    Commands that change something wait meanwhile: about 0.1 s, and 1 s more for each GB of
    database.

    Protect FOLDER like the store: it holds the data and the keys.

    Exit 0: the backup is complete; 1: no backup was made; 18: the target that serves the store was
    not found, or another backup is running.
    """
    how = BackupSettings(control, int(pause * 1000), keep)
    with (
        private(),
        room_in(folder, otherwise="nothing is taken"),
        shown_progress(settings.output != "json") as progress,
    ):
        made, gone = back_up(data or default_data(), ssd, Repository(folder), how, progress)
    show(made.about, settings)
    for name in gone:
        click.echo(f"removed {name}", err=True)


@backup.command("ls", cls=StoreVerb)
@click.argument("folder", type=FOLDER)
@JSON
@click.pass_obj
def list_(settings: Settings, /, *, folder: Path) -> None:
    """List the backups in FOLDER, oldest first.

    An interrupted backup is incomplete and not listed. The next backup removes it.

    Exit 0: all are listed; 65: a backup is damaged, and a line on standard error names it.
    """
    bad = 0
    for each in Repository(folder).backups():
        if isinstance(each, Damaged):
            bad += 1
            click.echo(harmless(f"osd: {each}"), err=True)
        else:
            show(each.about, settings)
    if bad:
        sys.exit(EXIT_PROBLEMS)


@backup.command(cls=StoreVerb)
@click.argument("folder", type=FOLDER)
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Verify every backup in FOLDER.")
@JSON
@click.pass_obj
def verify(settings: Settings, /, *, folder: Path, name: str | None, everything: bool) -> None:
    """Compare the files of a backup with its manifest (SHA-256).

    Without NAME it reads the newest backup. It records which files are damaged: the next backup
    copies these from the store again.

    Exit 0: no file has changed since the backup; 65: a file has changed.
    """
    if everything and name:
        raise click.UsageError("--all and NAME exclude each other")
    bad, as_json = 0, settings.output == "json"
    repository = Repository(folder)
    names = repository.names() if everything else [name]
    known: Digests = {}
    for path in map(repository.folder, names):
        with shown_progress(not as_json) as progress:
            problems = list(problems_of(path, progress, known))
        mark_damaged(path, [file for file, _ in problems])
        bad += len(problems)
        if as_json:
            rows = [{"file": file, "problem": why} for file, why in problems]
            record = {"schema": "iosd.backup-check/1", "name": path.name, "problems": rows}
            click.echo(json.dumps(record))
            continue
        for file, why in problems:
            click.echo(harmless(f"{path / file}: {why}"))
        click.echo(harmless(f"{path.name}: damaged files: {len(problems)}"))
    if bad:
        sys.exit(EXIT_PROBLEMS)


@click.command(cls=StoreVerb)
@click.argument("folder", type=FOLDER)
@click.argument("name", required=False)
@click.option(
    "--data", type=FOLDER, help="Empty or new folder for the store, as for 'osd target serve'."
)
@click.option("--ssd", type=FOLDER, help="Empty or new folder on an SSD, if the store had one.")
@click.option(
    "--new-identity",
    is_flag=True,
    help="Give the store a new OSD system id.  Use it when the original store is served too.",
)
@click.option(
    "--new-keys",
    is_flag=True,
    help="Restore without the secret keys: the first start makes a master key.  Use it when the security "
    "manager has replaced the master key since the backup.",
)
@click.option(
    "--accept-damage",
    is_flag=True,
    help="Restore without missing data files, and with damaged ones as far as they can be read; name "
    "both.  Use it if no backup is whole.",
)
@JSON
@click.pass_obj
def restore(
    settings: Settings,
    /,
    *,
    folder: Path,
    name: str | None,
    data: Path | None,
    ssd: Path | None,
    new_identity: bool,
    new_keys: bool,
    accept_damage: bool,
) -> None:
    """Restore a store from the newest backup in FOLDER, or from NAME.

    Every file is compared with the manifest while it is copied. No target serves the new store
    before it is complete. To continue an interrupted restore, run the command again: it starts from
    the beginning.

    If you run it as root, the store belongs to the owner of the folder of --data. If that folder
    does not exist yet, it belongs to the owner of the original store.

    Exit 0: the store can be served; 1: the backup is damaged, and not restored; 65: restored with
    --accept-damage, but the named data files are damaged, unreadable or missing; 78: a folder is
    not empty.
    """
    target = data or default_data()
    with (
        private(),
        room_in(target, ssd, otherwise="the store is not whole, and no target serves it"),
        shown_progress(settings.output != "json") as progress,
    ):
        found = Repository(folder).find(name)
        block, damaged = restore_store(
            found,
            target,
            ssd,
            progress,
            new_identity=new_identity,
            new_keys=new_keys,
            accept_damage=accept_damage,
        )
    if settings.output == "json":
        row = {"name": found.about.name, "data": str(target), "system_id": block.system_id.hex()}
        click.echo(json.dumps(row))
    else:
        click.echo(
            harmless(
                f"restored {found.about.name} to {target}, OSD system id {block.system_id.hex()}"
            )
        )
    for sentence in damaged:
        click.echo(harmless(f"osd: {sentence}"), err=True)
    if damaged:
        click.echo("osd: 'osd target repair' fits the records to what is there", err=True)
        sys.exit(EXIT_PROBLEMS)
