# SPDX-License-Identifier: GPL-2.0-or-later
"""The directories of a store: taken exclusively, their superblocks read, their database copied.

The order is that of the target (target/store/media.c): the lock first, then anything else.  A store
that must not be opened is refused with a sentence and an exit code.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from iosd_host.common.exit_codes import (
    EXIT_CONFIG,
    EXIT_FAILED,
    EXIT_NO_INPUT,
    EXIT_NOT_PERMITTED,
    EXIT_WRONG_STATE,
)
from iosd_host.common.whole_file import read_small, write_whole
from iosd_host.store_tools.format.marked import is_marked
from iosd_host.store_tools.format.records import ALL, FormatError, Unknown
from iosd_host.store_tools.format.superblock import RootRole, Superblock

__all__ = [
    "Refused",
    "Root",
    "Roots",
    "as_owner",
    "check_usable",
    "copy_file",
    "data_of",
    "open_roots",
    "private_copy",
    "sync_file_system",
    "write_superblock",
]

FICLONE = 0x4004_9409
PIECE = 256 << 10
ZEROS = bytes(PIECE)
SETTINGS = "DB_CONFIG"  # that Berkeley DB reads in its folder; no target makes it
COPY, COPY_MADE_S = "iosd-store.", 60
ROOM = 64 << 20
"""Recovery of a copy writes log: bytes to have free beyond the copy's own."""


class Refused(Exception):
    """The store is not touched.  code: of the program; the text says what to do."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass
class Root:
    """One directory: its superblock, or what is wrong with that."""

    path: Path
    role: RootRole
    superblock: Superblock | None = None
    damage: str = ""

    @property
    def data(self) -> Path:
        """Folder of its data files."""
        return self.path / "data"


@dataclass
class Roots:
    """The directories of one store; heads: the SSD directory of a store with two."""

    main: Root
    heads: Root | None = None

    def __iter__(self) -> Iterator[Root]:
        yield self.main
        if self.heads is not None:
            yield self.heads

    @property
    def database(self) -> Path:
        """The folder of the environment."""
        return self.main.path / "db"

    @property
    def head_bytes(self) -> int:
        """The head size of new objects."""
        if self.main.superblock is not None:
            return self.main.superblock.head_bytes
        if self.heads is not None and self.heads.superblock is not None:
            return self.heads.superblock.head_bytes
        return ALL

    @property
    def of_one_store(self) -> bool:
        """Both superblocks name the same store, as far as they can be read."""
        blocks = [each.superblock for each in self if each.superblock is not None]
        return len({each.store_id for each in blocks}) <= 1


@contextlib.contextmanager
def as_owner(folder: Path) -> Iterator[None]:
    """Root works as the user the store belongs to, or the target could not open what it made."""
    try:
        owner = folder.stat()
    except OSError as error:
        raise refusal(error, folder) from None
    if os.geteuid() != 0 or owner.st_uid == 0:
        yield
        return
    group, groups = os.getegid(), os.getgroups()
    os.setgroups([])
    os.setegid(owner.st_gid)
    os.seteuid(owner.st_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)


def refusal(error: OSError, folder: Path) -> Refused:
    """An error of the system about a folder, as an exit."""
    text = f"cannot open '{error.filename or folder}': {os.strerror(error.errno or errno.EIO)}"
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return Refused(EXIT_NO_INPUT, f"{text}; --data says where the store is")
    if error.errno in (errno.EACCES, errno.EPERM):
        remedy = "run it as the store's owner or as root"
        if os.getuid() == 0:  # which works as the owner
            remedy = "the store's owner must be able to read and write it: chown, chmod"
        return Refused(EXIT_NOT_PERMITTED, f"{text}; {remedy}")
    return Refused(EXIT_FAILED, text)


def lock(path: Path) -> int:
    """Take the lock; the descriptor holds it.  Raises: Refused: another process has it."""
    with as_owner(path):  # the target must be able to open it, too
        descriptor = os.open(
            path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if error.errno != errno.EWOULDBLOCK:
            raise
        raise Refused(
            EXIT_WRONG_STATE,
            f"'{path}' is in use, most likely by a target that serves it: stop that first "
            "(end its 'osd target serve' or tgtd), then run this again",
        ) from None
    return descriptor


def is_store(path: Path, role: RootRole) -> bool:
    """Something of a store is there, if only its database."""
    if (path / "superblock").exists():
        return True
    if role is RootRole.HEADS:
        return (path / "data").is_dir()
    return any((path / "db").glob("*.db"))


def read_root(path: Path, role: RootRole) -> Root:
    """Read a superblock.  Raises: Refused: not ours to touch."""
    root = Root(path, role)
    try:
        data = read_small(path / "superblock", Superblock.READ)
        if is_marked(data):
            text = "is a backup, or a restore that did not end: 'osd target restore' restores it"
            raise Refused(EXIT_CONFIG, f"'{path}' {text}")
        root.superblock = Superblock.decode(data)
    except FileNotFoundError:
        root.damage = "it is missing"
    except Unknown as error:
        raise Refused(EXIT_CONFIG, f"'{path}': {error}; use the release that wrote it") from None
    except FormatError as error:
        root.damage = str(error)
    if root.superblock is not None and root.superblock.role is not role:
        raise Refused(
            EXIT_CONFIG,
            f"'{path}' is the other root of a store with two: exchange --data and --ssd",
        )
    return root


def agree(roots: Roots) -> None:
    """One root or two, as formatted.  Raises: Refused."""
    block = roots.main.superblock
    if block is None:
        return
    if block.head_bytes != ALL and roots.heads is None:
        text = f"'{roots.main.path}' was formatted with two roots: give its SSD directory as --ssd"
        raise Refused(EXIT_CONFIG, text)
    if block.head_bytes == ALL and roots.heads is not None:
        text = f"'{roots.main.path}' was formatted with one root: it takes no --ssd"
        raise Refused(EXIT_CONFIG, text)
    other = roots.heads.superblock if roots.heads is not None else None
    if roots.heads is None or other is None or not roots.of_one_store or block.fits(other):
        return
    older = roots.heads if other.opening < block.opening else roots.main
    text = (
        f"'{older.path}' is an older copy than the store's other directory: give the newest of each"
    )
    raise Refused(EXIT_CONFIG, text)


@contextlib.contextmanager
def open_roots(data: Path, ssd: Path | None) -> Iterator[Roots]:
    """Take a store for oneself until the end.

    Raises: Refused: it is served, absent, of another release, or the directories do not fit.
    """
    wanted = [(data, RootRole.MAIN)] + ([(ssd, RootRole.HEADS)] if ssd is not None else [])
    with contextlib.ExitStack() as stack:
        roots = []
        for path, role in wanted:
            try:
                if not stat.S_ISDIR(path.stat().st_mode):
                    raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
                if not is_store(path, role):
                    raise Refused(EXIT_NO_INPUT, f"'{path}' holds no iosd store")
                stack.callback(os.close, lock(path))
                roots.append(read_root(path, role))
            except OSError as error:
                raise refusal(error, path) from None
        opened = Roots(*roots)
        agree(opened)
        yield opened


def write_superblock(path: Path, superblock: Superblock) -> None:
    """Whole or not at all: the name appears once the bytes are on disk."""
    write_whole(path / "superblock", superblock.encode())


def sync_file_system(folder: Path) -> None:
    """Everything written to the file system of this folder survives power loss.

    Raises: OSError: some of it was not written; sync(2) would not report that.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if libc.syncfs(descriptor):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(folder))
    finally:
        os.close(descriptor)


def database_files(folder: Path) -> list[Path]:
    """Tables and log files."""
    files = (each for each in folder.glob("*") if each.is_file() and not each.is_symlink())
    return sorted(each for each in files if each.name != SETTINGS)


def check_usable(folder: Path) -> None:
    """A file of the database that may not be opened is not damaged.  Raises: Refused."""
    if os.path.lexists(folder / SETTINGS):
        text = f"'{folder / SETTINGS}' can have Berkeley DB write elsewhere: remove it"
        raise Refused(EXIT_CONFIG, text)
    for path in database_files(folder):
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
        except OSError as error:
            raise refusal(error, folder.parent) from None


def copy_file(source: Path, target: Path) -> None:
    """Without new blocks where the file system can share them, and none for zeros: log files are
    filled with them."""
    with source.open("rb") as old, target.open("wb") as new:
        try:
            fcntl.ioctl(new, FICLONE, old.fileno())
            return
        except OSError:
            pass
        for begin, end in data_of(old.fileno()):
            old.seek(begin)
            new.seek(begin)
            while piece := old.read(min(PIECE, end - old.tell())):
                if piece == ZEROS[: len(piece)]:
                    new.seek(len(piece), os.SEEK_CUR)
                else:
                    new.write(piece)
        new.truncate(os.fstat(old.fileno()).st_size)


def data_of(descriptor: int) -> Iterator[tuple[int, int]]:
    """Extents of a file: from, to."""
    end = 0
    while True:
        try:
            begin = os.lseek(descriptor, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
            raise
        end = os.lseek(descriptor, begin, os.SEEK_HOLE)
        yield begin, end


def remove_copies(place: Path) -> None:
    """Those of runs that were killed: nobody holds them."""
    for path in place.glob(COPY + "*"):
        with contextlib.suppress(OSError):
            holder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                found = os.fstat(holder)
                fcntl.flock(holder, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # One that is just being made is not held yet.
                if found.st_uid == os.geteuid() and found.st_mtime < time.time() - COPY_MADE_S:
                    shutil.rmtree(path)
            finally:
                os.close(holder)


@contextlib.contextmanager
def private_copy(roots: Roots, work: Path | None) -> Iterator[Path]:
    """The database in a folder of our own, removed at the end: recovery may write there.

    Args: work: where there is room; None: the usual place for temporary files.
    Raises: Refused: there is none.
    """
    files = database_files(roots.database)
    needed = sum(each.stat().st_size for each in files) + ROOM
    place = work or Path(tempfile.gettempdir())
    with contextlib.ExitStack() as stack:
        try:
            free = shutil.disk_usage(place).free
            if free < needed:
                raise Refused(
                    EXIT_FAILED,
                    f"a copy of the database needs {needed >> 20} MiB and '{place}' has "
                    f"{free >> 20} MiB free: give a folder with room as --work",
                )
            remove_copies(place)
            made = tempfile.TemporaryDirectory(prefix=COPY, dir=place)
            folder = Path(stack.enter_context(made))
            holder = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
            stack.callback(os.close, holder)
            fcntl.flock(holder, fcntl.LOCK_EX)
            for each in files:
                copy_file(each, folder / each.name)
        except OSError as error:
            raise refusal(error, place) from None
        yield folder
