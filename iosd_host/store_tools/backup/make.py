# SPDX-License-Identifier: GPL-2.0-or-later
"""Takes a backup of a store, which a target may serve meanwhile (docs/backup.md).

The files are copied while the target serves, and changed files are copied again. Then the target
pauses changes for a moment (FREEZE, docs/control.md). In this moment the last changed files and the
database are copied.  So a backup is what a crash at that moment would have left, and nothing that
was acknowledged before it is missing.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

from iosd_host.common import places
from iosd_host.common.exit_codes import EXIT_CONFIG, EXIT_FAILED, EXIT_WRONG_STATE
from iosd_host.common.places import CONTROL_SOCKET
from iosd_host.common.whole_file import write_whole
from iosd_host.control.messages import ErrorCode, FrameError, TargetError, Type
from iosd_host.control.tool_link import ToolLink
from iosd_host.store_tools.backup.copying import Copier, Foreign
from iosd_host.store_tools.backup.repository import PARTIAL, About, Backup, Repository, made_as
from iosd_host.store_tools.backup.watching import Watcher
from iosd_host.store_tools.format.marked import marked
from iosd_host.store_tools.format.superblock import RootRole, Superblock
from iosd_host.store_tools.opening.folders import (
    Refused,
    Root,
    Roots,
    agree,
    open_roots,
    read_root,
)
from iosd_host.store_tools.opening.store import StoreProgress

__all__ = ["REAL", "BackupSettings", "back_up"]

REAL = "superblock.real"
"""The store's own superblock in a backup; `superblock` there is one that no target serves."""
WHO = f"osd target backup, process {os.getpid()}"
WAIT_MS = 1000
PASSES = 5
FEW = 64
TRIES = 3
TICK_S = 1.1
ANSWER_S = 30.0


class BackupSettings:
    """How a backup is taken.

    Args:
        control: socket of the target that serves the store; None: it is looked for.
        pause_ms: for how long commands may wait at most.
        keep: how many backups stay; None: all.
    """

    def __init__(
        self, control: Path | None = None, pause_ms: int = 5000, keep: int | None = None
    ) -> None:
        self.control, self.pause_ms, self.keep = control, pause_ms, keep


def sockets(control: Path | None) -> list[Path]:
    """Sockets on which a target can answer."""
    if control is not None:
        return [control]
    found = [each.get("control") for each in places.running(places.TARGET)]
    return [*(Path(each) for each in found if each), *filter(Path.exists, (CONTROL_SOCKET,))]


def find_target(system_id: bytes, control: Path | None) -> ToolLink:
    """The target that serves the store.  Raises: Refused: it is not found."""
    reasons = []
    for path in sockets(control):
        try:
            link = ToolLink(path, WHO, ANSWER_S)
        except (OSError, FrameError, TargetError) as error:
            reasons.append(f"{path}: {error}")
            continue
        if control is not None or serves(link, system_id):
            return link
        link.close()
    text = "the store is in use, and the target that serves it is not found"
    why = f" ({'; '.join(reasons)})" if reasons else ""
    raise Refused(
        EXIT_WRONG_STATE,
        f"{text}{why}: run this as the target's user or as root, or name its socket with --control",
    )


def serves(link: ToolLink, system_id: bytes) -> bool:
    """Whether it is that store."""
    try:
        store = link.ask(Type.SNAPSHOT)["store"]
    except (OSError, FrameError, TargetError):
        return False
    return isinstance(store, dict) and store.get("system_id") == system_id.hex()


# ---- taking one --------------------------------------------------------------------------------


@contextlib.contextmanager
def held_or_served(
    data: Path, ssd: Path | None, control: Path | None
) -> Iterator[tuple[Roots, ToolLink | None]]:
    """The store: taken for oneself, or with the target that serves it."""
    try:
        with open_roots(data, ssd) as roots:
            yield roots, None
            return
    except Refused as error:
        if error.code != EXIT_WRONG_STATE:
            raise
    roots = Roots(read_root(data, RootRole.MAIN), read_root(ssd, RootRole.HEADS) if ssd else None)
    agree(roots)
    with contextlib.closing(find_target(superblock_of(roots.main).system_id, control)) as link:
        yield roots, link


def superblock_of(root: Root) -> Superblock:
    """Raises: Refused: it is damaged."""
    if root.superblock is None:
        text = f"the superblock of '{root.path}' is damaged: {root.damage}; 'osd target repair'"
        raise Refused(EXIT_CONFIG, f"{text} repairs the store")
    return root.superblock


def named_roots(roots: Roots) -> dict[str, Root]:
    """By their names in a backup."""
    found = {"main": roots.main}
    if roots.heads is not None:
        found["ssd"] = roots.heads
    return found


def back_up(
    data: Path,
    ssd: Path | None,
    repository: Repository,
    settings: BackupSettings,
    tell: StoreProgress,
) -> tuple[Backup, list[str]]:
    """Take one.  Returns it, and the names of those removed because of `keep`.

    Raises: Refused; OSError.
    """
    with held_or_served(data, ssd, settings.control) as (roots, link):
        block = superblock_of(roots.main)
        for each in roots:
            superblock_of(each)
        refuse_inside(repository.path, roots)
        store = block.store_id.hex()
        with repository.opened(store):
            partial = new_folder(repository)
            try:
                copier = new_copier(roots, partial, repository, tell)
                moment_ms, pause_ms = copy_all(copier, link, block, settings)
                copier.finish()
                mark_roots(copier, roots, partial)
            except BaseException as error:
                with contextlib.suppress(OSError):
                    shutil.rmtree(partial)
                if isinstance(error, Foreign):
                    raise Refused(EXIT_FAILED, str(error)) from None
                if isinstance(error, (FrameError, TargetError, ConnectionError, TimeoutError)):
                    raise Refused(EXIT_FAILED, f"the target: {error}; nothing is taken") from None
                raise
            taken = copier.taken
            about = About(
                name=partial.stem,
                store=store,
                system_id=block.system_id.hex(),
                moment_ms=moment_ms,
                hot=link is not None,
                pause_ms=round(pause_ms, 1),
                ssd=roots.heads is not None,
                uid=copier.owner,
                files=0,
                bytes=0,
                copied_files=sum(each.copied for each in taken.values()),
                copied_bytes=copier.copied_bytes,
                version=version("iosd"),
                manifest="",
            )
            backup = repository.publish(partial, about, taken)
            return backup, repository.keep(settings.keep) if settings.keep else []


def refuse_inside(folder: Path, roots: Roots) -> None:
    """Raises: Refused: the backup would be a part of what it copies."""
    for each in roots:
        if folder.resolve().is_relative_to(each.path.resolve()):
            text = f"'{folder}' is within the store's folder '{each.path}'"
            raise Refused(EXIT_CONFIG, f"{text}: give a folder outside it, best on another disk")


def new_folder(repository: Repository) -> Path:
    """For a backup, named after the time; names sort as they were made."""
    names = repository.names()
    newest = made_as(repository.path / names[-1]) if names else ""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    number = 0
    while f"{stamp}-{number:02d}" <= newest:
        number += 1
        if number > 99:
            text = f"the clock is behind that of '{names[-1]}': set it right, or move that backup"
            raise Refused(EXIT_FAILED, f"{text} to another folder if its time is wrong")
    folder = repository.path / f"{stamp}-{number:02d}{PARTIAL}"
    folder.mkdir(mode=0o700)
    return folder


def new_copier(roots: Roots, folder: Path, repository: Repository, tell: StoreProgress) -> Copier:
    """One that links to the newest backup where it can."""
    before = repository.base()
    base = None
    if before is not None:
        with contextlib.suppress(Refused):
            rows, damaged = before.rows(), repository.damaged_in(before)
            taken = {row.name: row.taken for row in rows if row.name not in damaged}
            base = taken, before.path
    owner = roots.main.path.stat().st_uid
    paths = {label: root.path for label, root in named_roots(roots).items()}
    return Copier(paths, folder, base, owner, tell)


def copy_all(
    copier: Copier, link: ToolLink | None, block: Superblock, settings: BackupSettings
) -> tuple[int, float]:
    """All passes.  Returns the backup's moment in ms since 1970, and the pause in ms."""
    if link is None:
        moment_ms = time.time_ns() // 1_000_000
        copier.run(still=False)
        copier.run(still=True, names=())
        return moment_ms, 0.0
    with Watcher(copier.roots) as watcher:
        copier.poll = watcher.collect
        copier.run(still=False)
        for _ in range(PASSES):
            if copier.run(still=False, names=watcher.changed()) <= FEW:
                break
        for _ in range(TRIES):
            moment_ms = time.time_ns() // 1_000_000
            begin = time.monotonic()
            freeze(link, block.system_id, settings.pause_ms)
            copier.run(still=True, names=watcher.changed())
            lasted = link.ask(Type.THAW)["lasted"]
            pause_ms = (time.monotonic() - begin) * 1000
            if lasted and not copier.missed(moment_ms * 1_000_000):
                return moment_ms, pause_ms
            watcher.blind = watcher.blind or bool(lasted)
            copier.run(still=False, names=watcher.changed())
    raise Refused(
        EXIT_FAILED,
        f"the files that changed could not be copied within {settings.pause_ms} ms: nothing is "
        "taken; try at a quieter time, or give a longer --pause",
    )


def freeze(link: ToolLink, system_id: bytes, pause_ms: int) -> None:
    """Have the target keep its files still.  Raises: TargetError."""
    for left in reversed(range(TRIES)):
        try:
            link.ask(
                Type.FREEZE,
                store=system_id.hex(),
                wait_ms=min(WAIT_MS, pause_ms),
                freeze_ms=pause_ms,
            )
            return
        except TargetError as error:
            if error.code != ErrorCode.FAILED or not left:
                raise
            time.sleep(TICK_S)  # a long command is at work


def mark_roots(copier: Copier, roots: Roots, folder: Path) -> None:
    """Replace the superblocks by such as no target serves; the real ones are beside them."""
    for label, root in named_roots(roots).items():
        name = f"{label}/superblock"
        copied = Superblock.decode((folder / name).read_bytes())
        if copied.store_id != superblock_of(root).store_id:
            raise Refused(EXIT_FAILED, f"'{root.path}' has become another store: nothing is taken")
        (folder / name).rename(folder / label / REAL)
        copier.taken[f"{label}/{REAL}"] = copier.taken.pop(name)
        write_whole(folder / name, marked(copied))
