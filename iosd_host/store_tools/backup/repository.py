# SPDX-License-Identifier: GPL-2.0-or-later
"""A folder of backups of one store: what is in it, which are whole, what is removed.

    FOLDER/iosd-backups           marks the folder; which store it is for
    FOLDER/lock                   held while a backup is made
    FOLDER/NAME/backup.json       written last: what the backup is
    FOLDER/NAME/manifest          a JSON line for each file: name, size, digest, state of the original
    FOLDER/NAME/main/..., ssd/... the files
    FOLDER/NAME/damaged           those of them that `verify` has found damaged, a JSON string each
    FOLDER/NAME.partial           one that is being made, or was when its maker died
    FOLDER/NAME.removed           one that is being removed

Only a whole backup has a name without a dot: the folder gets it when all its bytes are on disk.

A file that two backups share is damaged in both.  So a new backup links to no file that `verify` has
found damaged in any of them.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from iosd_host.common.exit_codes import (
    EXIT_CONFIG,
    EXIT_FAILED,
    EXIT_NO_INPUT,
    EXIT_NOT_PERMITTED,
    EXIT_WRONG_STATE,
)
from iosd_host.common.whole_file import sync_folder, write_whole
from iosd_host.store_tools.backup.copying import READ, CopyState, Taken, digest_of
from iosd_host.store_tools.opening.folders import (
    Refused,
    sync_file_system,
)

__all__ = [
    "About",
    "Backup",
    "Damaged",
    "Digests",
    "ManifestRow",
    "Repository",
    "made_as",
    "mark_damaged",
    "problems_of",
]

MARK, LOCK, ABOUT, MANIFEST = "iosd-backups", "lock", "backup.json", "manifest"
DAMAGED = "damaged"
BACKUP_NAME = re.compile(r"\d{8}T\d{6}Z-\d\d")
PARTIAL, REMOVED = ".partial", ".removed"
SCHEMA, REPOSITORY = "iosd.backup/1", "iosd.backups/1"


class Damaged(Refused):
    """A file that describes a backup cannot be used."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(EXIT_FAILED, f"'{path}' is damaged ({reason}): use another backup")
        self.path, self.reason = path, reason


@dataclass(frozen=True)
class About:
    """Description of a backup.

    Attributes:
        store, system_id: identities of the store, hexadecimal.
        moment_ms: ms since 1970: everything acknowledged before is in it.
        pause_ms: for how long commands waited at most; 0: no target served the store.
        uid: owner of the store's files.
        copied_files, copied_bytes: without links to an earlier backup's files.
        manifest: SHA-256 of the manifest.
    """

    name: str
    store: str
    system_id: str
    moment_ms: int
    hot: bool
    pause_ms: float
    ssd: bool
    uid: int
    files: int
    bytes: int
    copied_files: int
    copied_bytes: int
    version: str
    manifest: str
    schema: str = SCHEMA


@dataclass(frozen=True)
class ManifestRow:
    """A line of the manifest."""

    name: str
    size: int
    digest: str
    taken: Taken


@dataclass(frozen=True)
class Backup:
    """A whole backup."""

    path: Path
    about: About

    def rows(self) -> list[ManifestRow]:
        """Its files.  Raises: Damaged: the manifest."""
        path = self.path / MANIFEST
        try:
            data = path.read_bytes()
        except OSError as error:
            raise Damaged(path, os.strerror(error.errno or 0)) from None
        if hashlib.sha256(data).hexdigest() != self.about.manifest:
            raise Damaged(path, "its bytes are not those that were written")
        found = []
        for line in data.splitlines():
            try:
                row = json.loads(line)
                taken = Taken(CopyState(*row["state"]), row["sure"], row["sha256"])
                found.append(ManifestRow(row["name"], row["size"], row["sha256"], taken))
            except (ValueError, TypeError, KeyError, RecursionError):
                raise Damaged(path, "a line describes no file") from None
            if not is_inside(row["name"]):
                raise Damaged(path, f"it names '{row['name']}'")
        return found


def is_inside(name: object) -> bool:
    """Whether it can only be a file of a store: a backup may come from somebody else.

    DB_CONFIG would tell Berkeley DB to write elsewhere.
    """
    if not isinstance(name, str) or "\0" in name or str(Path(name)) != name:
        return False
    parts = Path(name).parts
    return len(parts) > 1 and not {"/", "..", "DB_CONFIG"} & {*parts}


def read_backup(path: Path) -> Backup:
    """One of a repository, under the name that its folder has now.  Raises: Damaged: it cannot be read."""
    try:
        found = json_object(path / ABOUT)
        if found.get("schema") != SCHEMA:
            raise ValueError(f"schema {found.get('schema')}")
        names = {each.name for each in fields(About)}
        values = {key: each for key, each in found.items() if key in names}
        return Backup(path, About(**values | {"name": path.name}))
    except OSError as error:
        raise Damaged(path / ABOUT, os.strerror(error.errno or 0)) from None
    except (ValueError, TypeError) as error:
        raise Damaged(path / ABOUT, str(error)) from None


def is_made(name: str) -> bool:
    """Whether a backup has a name as `make` gives it; others are given by people."""
    return BACKUP_NAME.fullmatch(name) is not None


def made_as(path: Path) -> str:
    """The name that a backup got from the time when it was made; "": nobody knows it.

    The folder can have another name since: an administrator has renamed or copied it.
    """
    found = [path.name]
    with contextlib.suppress(OSError, ValueError, RecursionError):
        found.insert(0, str(json_object(path / ABOUT).get("name")))
    return next(filter(is_made, found), "")


def json_object(path: Path) -> dict[str, Any]:
    """Raises: OSError; ValueError: the file holds something else."""
    found = json.loads(path.read_bytes())
    if not isinstance(found, dict):
        raise ValueError("not a JSON object")
    return found


class Repository:
    """A folder of backups."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def check(self) -> dict[str, Any]:
        """Contents of its mark.  Raises: Refused: it is no such folder."""
        try:
            found = json_object(self.path / MARK)
        except FileNotFoundError:
            raise Refused(EXIT_NO_INPUT, f"'{self.path}' holds no backups") from None
        except PermissionError:
            text = (
                f"cannot open '{self.path / MARK}': run this as the owner of the backups or as root"
            )
            raise Refused(EXIT_NOT_PERMITTED, text) from None
        except (OSError, ValueError) as error:
            raise Refused(EXIT_FAILED, f"'{self.path / MARK}' cannot be read: {error}") from None
        if found.get("schema") != REPOSITORY:
            text = f"'{self.path}' is of another release: {found.get('schema')}"
            raise Refused(EXIT_CONFIG, text)
        return found

    @contextlib.contextmanager
    def opened(self, store: str) -> Iterator[None]:
        """Take it for oneself to add a backup of this store; it is made where it is absent.

        Raises: Refused: it is another store's, holds something else, or is in use.
        """
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.is_marked()
        lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                text = f"another backup into '{self.path}' is being made: wait for its end"
                raise Refused(EXIT_WRONG_STATE, text) from None
            if not self.is_marked():
                mark = json.dumps({"schema": REPOSITORY, "store": store}) + "\n"
                write_whole(self.path / MARK, mark.encode())
            if self.check().get("store") != store:
                text = f"'{self.path}' holds backups of another store: give a folder for each store"
                raise Refused(EXIT_CONFIG, text)
            self.clear()
            yield
        finally:
            os.close(lock)

    def is_marked(self) -> bool:
        """False: it is empty.  Raises: Refused: it holds something that is no backup."""
        names = {each.name for each in self.path.iterdir()}
        if MARK in names:
            return True
        if names - {"lost+found", LOCK, MARK + ".new"}:
            text = f"'{self.path}' is not empty and holds no backups: give an empty folder"
            raise Refused(EXIT_CONFIG, text)
        return False

    def clear(self) -> None:
        """Remove what earlier backups left when they were interrupted."""
        for path in self.path.iterdir():
            if path.suffix in (PARTIAL, REMOVED):
                shutil.rmtree(path)

    def names(self) -> list[str]:
        """Of whole backups, oldest first; one behind its copies with other names."""
        self.check()
        names = (
            each.name
            for each in self.path.iterdir()
            if each.is_dir()
            and (is_made(each.name) or (not each.suffix and (each / ABOUT).exists()))
        )
        return sorted(names, key=lambda name: (made_as(self.path / name), is_made(name), name))

    def backups(self) -> Iterator[Backup | Damaged]:
        """Whole backups, oldest first.  Raises: Refused."""
        for name in self.names():
            try:
                yield read_backup(self.path / name)
            except Damaged as error:
                if (self.path / name).exists():  # otherwise --keep has just removed it
                    yield error

    def folder(self, name: str | None) -> Path:
        """That of a backup; None: of the newest.  Raises: Refused: there is none."""
        names = self.names()
        if not names or (name is not None and name not in names):
            text = f"has no backup '{name}'" if name else "has no backup that is whole"
            raise Refused(EXIT_NO_INPUT, f"'{self.path}' {text}")
        return self.path / (name or names[-1])

    def find(self, name: str | None) -> Backup:
        """That backup; None: the newest.  Raises: Refused: there is none."""
        return read_backup(self.folder(name))

    def base(self) -> Backup | None:
        """The newest, for one that links to it; None: there is none that can be read."""
        for name in reversed(self.names()):
            with contextlib.suppress(Refused):
                return read_backup(self.path / name)
        return None

    def damaged_in(self, backup: Backup) -> set[str]:
        """Its files that are known to be damaged, in this backup or in another that shares them."""
        found = set()
        for name in self.names():
            for file in marked_damaged(self.path / name):
                with contextlib.suppress(OSError):
                    if (self.path / name / file).samefile(backup.path / file):
                        found.add(file)
        return found

    def publish(self, partial: Path, about: About, taken: Mapping[str, Taken]) -> Backup:
        """Make a backup whole: everything of it reaches the disk, then it gets its name."""
        lines = []
        size = 0
        for name in sorted(taken):
            each = taken[name]
            bytes_ = (partial / name).lstat().st_size
            size += bytes_
            state = each.state
            row = {
                "name": name,
                "size": bytes_,
                "sha256": each.digest,
                "state": [state.inode, state.size, state.modified_ns, state.changed_ns],
                "sure": each.sure,
            }
            lines.append(json.dumps(row, separators=(",", ":")) + "\n")
        manifest = "".join(lines).encode()
        write_whole(partial / MANIFEST, manifest)
        values = asdict(about) | {
            "files": len(taken),
            "bytes": size,
            "manifest": hashlib.sha256(manifest).hexdigest(),
        }
        sync_file_system(partial)  # the files: many are new, and so are their folders
        write_whole(partial / ABOUT, (json.dumps(values, indent=1) + "\n").encode())
        path = partial.with_suffix("")
        partial.rename(path)
        sync_folder(self.path)
        return read_backup(path)

    def keep(self, count: int) -> list[str]:
        """Remove all but the newest count, and no backup to which somebody has given a name.

        Returns: the names of those removed.
        """
        gone = [*filter(is_made, self.names())][:-count]
        for name in gone:
            removed = self.path / (name + REMOVED)
            (self.path / name).rename(removed)
            sync_folder(self.path)
            shutil.rmtree(removed)
        return gone


def marked_damaged(folder: Path) -> list[str]:
    """Files of a backup that were found damaged."""
    try:
        found = [json.loads(line) for line in (folder / DAMAGED).read_bytes().splitlines()]
    except (OSError, ValueError, RecursionError):
        return []
    return [each for each in found if is_inside(each)]


def mark_damaged(folder: Path, names: Iterable[str]) -> None:
    """Note which files of a backup are damaged; who may only read the folder notes nothing."""
    text = "".join(json.dumps(name) + "\n" for name in names)
    with contextlib.suppress(OSError):
        if text:
            write_whole(folder / DAMAGED, text.encode())
        else:
            (folder / DAMAGED).unlink(missing_ok=True)


Digests = dict[tuple[int, int], tuple[str, int]]
"""SHA-256 and size of files that several backups share, by device and inode."""


def digest_once(descriptor: int, known: Digests) -> tuple[str, int]:
    """SHA-256 and size of a file.  One with several links is read once.  Raises: OSError."""
    info = os.fstat(descriptor)
    if info.st_nlink == 1:
        return digest_of(descriptor)
    key = info.st_dev, info.st_ino
    if key not in known:
        known[key] = digest_of(descriptor)
    return known[key]


def problems_of(folder: Path, tell: Any, known: Digests) -> Iterator[tuple[str, str]]:
    """Faults of the files of a backup: name and reason.

    Args: known: of files that were read for other backups; those of this one are added.
    """
    try:
        backup = read_backup(folder)
        rows = backup.rows()
    except Damaged as error:
        yield error.path.name, error.reason
        return
    for done, row in enumerate(rows):
        if done % 64 == 0:
            tell("verify", done, len(rows))
        try:
            descriptor = os.open(backup.path / row.name, READ)
        except OSError as error:
            yield row.name, os.strerror(error.errno or 0)
            continue
        try:
            digest, size = digest_once(descriptor, known)
        except OSError as error:
            yield row.name, os.strerror(error.errno or 0)
            continue
        finally:
            os.close(descriptor)
        if size != row.size:
            yield row.name, f"{size} bytes instead of {row.size}"
        elif digest != row.digest:
            yield row.name, "its bytes are not those that were backed up"
