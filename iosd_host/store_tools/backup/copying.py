# SPDX-License-Identifier: GPL-2.0-or-later
"""Copies the files of a store into a folder, again where they change, and takes their digests.

A target changes data files in place.  The kernel's time of change (ctime) tells: it moves with every
write and nobody can set it.  It advances in ticks of some milliseconds. A file that changed less
than a second before its inspection can therefore change again at the same time. Such a file is
never taken for unchanged (`Taken.sure`).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from iosd_host.store_tools.opening.folders import FICLONE, PIECE, ZEROS, data_of

__all__ = [
    "Copier",
    "CopyState",
    "Foreign",
    "Taken",
    "UnreadableSource",
    "copy_plain",
    "copy_with_digest",
    "digest_of",
]

SLACK_NS = 1_000_000_000
TICK_NS = 20_000_000
LEFT_OUT = frozenset({"lock", "ballast", "superblock.new", "restore.unfinished", "machine"})
MAIN, DATABASE = "main", "db"
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
GONE = (errno.ENOENT, errno.ENOTDIR)


class Foreign(Exception):
    """The store's folder has a file that does not belong to the store."""


class UnreadableSource(OSError):
    """A file cannot be read, in contrast to the failures of writing its copy."""


@dataclass(frozen=True)
class CopyState:
    """The state of a file, to find out whether it has changed."""

    inode: int
    size: int
    modified_ns: int
    changed_ns: int

    @classmethod
    def of(cls, found: os.stat_result) -> CopyState:
        """From stat(2)."""
        return cls(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


@dataclass(frozen=True)
class Taken:
    """A file that has been copied.

    Attributes:
        state: of the original, read before the copy.
        sure: the state shows any later change.
        digest: of the copy; "": not known yet.
        copied: False: it is a link to the same file of an earlier backup.
    """

    state: CopyState
    sure: bool
    digest: str = ""
    copied: bool = True

    def same(self, state: CopyState) -> bool:
        """Whether the original has surely not changed."""
        return self.sure and self.state == state


# ---- one file ----------------------------------------------------------------------------------


def pieces_of(
    descriptor: int, failures: list[OSError] | None = None
) -> Iterator[tuple[int, bytes]]:
    """Offsets and bytes in aligned pieces, without those that have only zeros.

    Args: failures: gets the failures of pieces that cannot be read: they are left out.
    Raises: UnreadableSource: a piece cannot be read, and failures is None; the extents cannot be read.
    """
    done = 0
    try:
        for begin, end in data_of(descriptor):
            at = max(done, begin - begin % PIECE)
            while at < end:
                piece = read_piece(descriptor, at, failures)
                if not piece:
                    return
                if piece != ZEROS[: len(piece)]:
                    yield at, piece
                at += PIECE
            done = at
    except OSError as error:
        raise UnreadableSource(error.errno, error.strerror) from None


def read_piece(descriptor: int, offset: int, failures: list[OSError] | None) -> bytes:
    """A piece; only the one at the end of the file is shorter.  After a failure that is noted: zeros.

    A read that meets a bad sector returns the bytes before it: only the next one fails.
    """
    piece = b""
    try:
        while left := PIECE - len(piece):
            if not (more := os.pread(descriptor, left, offset + len(piece))):
                break
            piece += more
    except OSError as error:
        if failures is None:
            raise
        failures.append(error)
        return ZEROS
    return piece


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """The exception about a file that cannot be read gets the file's path."""
    try:
        yield
    except UnreadableSource as error:
        error.filename = str(path)
        raise


def digest_of(descriptor: int) -> tuple[str, int]:
    """SHA-256 of what a file holds, and its size.  Holes count as zeros and cost nothing: it is that
    of each aligned piece of 256 KiB that is not all zeros, behind its offset, and then of the size."""
    digest = hashlib.sha256()
    for offset, piece in pieces_of(descriptor):
        digest.update(offset.to_bytes(8, "big"))
        digest.update(piece)
    size = os.fstat(descriptor).st_size
    digest.update(size.to_bytes(8, "big"))
    return digest.hexdigest(), size


def copy_with_digest(source: int, target: int, failures: list[OSError] | None = None) -> str:
    """Copy a file and return the digest of the bytes that were written.

    Args: failures: as of pieces_of(); the copy has holes there.
    Raises: UnreadableSource: as pieces_of(); OSError: the copy cannot be written.
    """
    digest = hashlib.sha256()
    end = os.fstat(source).st_size
    for offset, piece in pieces_of(source, failures):
        digest.update(offset.to_bytes(8, "big"))
        digest.update(piece)
        write_all(target, piece, offset)
        end = max(end, offset + len(piece))
    os.ftruncate(target, end)
    digest.update(end.to_bytes(8, "big"))
    return digest.hexdigest()


def copy_plain(source: int, target: int) -> None:
    """Copy a file as fast as the file systems can: shared blocks, or within the kernel."""
    try:
        fcntl.ioctl(target, FICLONE, source)
        return
    except OSError:
        pass
    for offset, piece in pieces_of(source):
        write_all(target, piece, offset)
    os.ftruncate(target, os.fstat(source).st_size)


def write_all(descriptor: int, data: bytes, offset: int) -> None:
    """All of it."""
    rest = memoryview(data)
    while rest:
        put = os.pwrite(descriptor, rest, offset)
        rest, offset = rest[put:], offset + put


# ---- a store -----------------------------------------------------------------------------------


def scan(folder: Path, inside: str = "") -> Iterator[tuple[str, CopyState]]:
    """Its files by relative name, without the database and what a copy does not need.  Files that
    disappear meanwhile are skipped."""
    try:
        entries = list(os.scandir(folder))
    except OSError as error:
        if error.errno in GONE:
            return
        raise
    for entry in entries:
        name = inside + entry.name
        if name in LEFT_OUT or name == DATABASE:
            continue
        try:
            if entry.is_dir(follow_symlinks=False):
                yield from scan(Path(entry.path), name + "/")
            elif entry.is_file(follow_symlinks=False):
                yield name, CopyState.of(entry.stat(follow_symlinks=False))
        except FileNotFoundError:
            continue


class Copier:
    """Brings a folder up to what the roots of a store hold, pass after pass.

    Args:
        roots: by the name that the root has in the copy.
        target: the folder; a subfolder for each root.
        base: what an earlier backup of this store took, and its folder: files that did not change
            since become links to its.
        owner: whose files the store's are; others are refused.
    """

    def __init__(
        self,
        roots: Mapping[str, Path],
        target: Path,
        base: tuple[Mapping[str, Taken], Path] | None,
        owner: int,
        tell: Callable[[str, int, int], None] = lambda section, done, total: None,
    ) -> None:
        self.roots, self.target, self.owner, self.tell = roots, target, owner, tell
        self.base, self.base_folder = base or ({}, target)
        self.taken: dict[str, Taken] = {}
        self.folders: set[Path] = set()
        self.copied_bytes = 0
        self.poll: Callable[[], None] = lambda: None
        """Called now and then while files are copied."""

    def run(self, *, still: bool, names: Iterable[str] | None = None) -> int:
        """One pass.  Returns how many files were copied.

        Args:
            still: nothing changes meanwhile: the database is copied too, and digests wait.
            names: those that may have changed since the last pass; None: any.
        Raises: OSError, UnreadableSource for a file of the store; Foreign.
        """
        found = self.everything() if names is None else self.some(names)
        count = 0
        for done, (name, (state, now)) in enumerate(found.items()):
            had = self.taken.get(name)
            if state is None or had is None or names is not None or not had.same(state):
                count += self.bring(name, state, now, still)
            if not still and done % 64 == 0:
                self.tell("copy", done, len(found))
                self.poll()
        if still:
            count += self.copy_database()
        return count

    def everything(self) -> dict[str, tuple[CopyState | None, int]]:
        """All files, and those that are gone; and when they were inspected."""
        found: dict[str, tuple[CopyState | None, int]] = {}
        for label, root in self.roots.items():
            now = time.time_ns()
            for name, state in scan(root):
                found[f"{label}/{name}"] = state, now
        for name in self.taken.keys() - found.keys():
            found[name] = None, 0
        return found

    def some(self, names: Iterable[str]) -> dict[str, tuple[CopyState | None, int]]:
        """The same of some names."""
        found: dict[str, tuple[CopyState | None, int]] = {}
        for name in names:
            label, _, inside = name.partition("/")
            if inside.partition("/")[0] in LEFT_OUT:
                continue
            now = time.time_ns()
            try:
                info = (self.roots[label] / inside).lstat()
            except OSError as error:
                if error.errno not in GONE:
                    raise
                found[name] = None, now
                continue
            if stat.S_ISREG(info.st_mode):
                found[name] = CopyState.of(info), now
        return found

    def copy_database(self) -> int:
        """All of its files."""
        count = 0
        for path in sorted((self.roots[MAIN] / DATABASE).iterdir()):
            info = path.lstat()
            if stat.S_ISREG(info.st_mode):
                name = f"{MAIN}/{DATABASE}/{path.name}"
                count += self.bring(name, CopyState.of(info), time.time_ns(), True)
        return count

    def bring(self, name: str, state: CopyState | None, now: int, still: bool) -> int:
        """Copy or link a file that is new or has changed; None: it is gone.  Returns how many were
        copied."""
        known = name in self.taken
        if known:
            self.forget(name)
        if state is None or (not known and self.link(name, state)):
            return 0
        label, _, inside = name.partition("/")
        return self.copy(
            name, self.roots[label] / inside, state, state.changed_ns < now - SLACK_NS, still
        )

    def missed(self, before_ns: int) -> bool:
        """Whether a file changed before that time and was not copied since: asked when all passes that
        were told names are over, in case the names were not all."""
        for name, (state, _) in self.everything().items():
            if state is None or state.changed_ns >= before_ns - TICK_NS:
                continue
            had = self.taken.get(name)
            if had is None or had.state != state:
                return True
        return False

    def forget(self, name: str) -> None:
        """Its copy goes: the original has changed, or is gone."""
        del self.taken[name]
        (self.target / name).unlink(missing_ok=True)

    def link(self, name: str, state: CopyState) -> bool:
        """Take it from the earlier backup.  False: it has changed since, or cannot be linked."""
        old = self.base.get(name)
        if old is None or not old.same(state):
            return False
        try:
            if (self.base_folder / name).lstat().st_size != state.size:
                return False  # it is damaged
            os.link(self.base_folder / name, self.place(name), follow_symlinks=False)
        except OSError as error:
            if error.errno in (*GONE, errno.EMLINK, errno.EXDEV, errno.EPERM):
                return False
            raise
        self.taken[name] = Taken(state, True, old.digest, copied=False)
        return True

    def copy(self, name: str, path: Path, state: CopyState, sure: bool, still: bool) -> bool:
        """Copy it.  False: it is gone."""
        with contextlib.ExitStack() as stack:
            try:
                source = os.open(path, READ)
            except OSError as error:
                if error.errno in GONE:
                    return False
                raise
            stack.callback(os.close, source)
            found = os.fstat(source)
            if not stat.S_ISREG(found.st_mode) or found.st_uid != self.owner:
                raise Foreign(f"'{path}' is not a file of the store's owner, uid {self.owner}")
            target = os.open(self.place(name), WRITE, 0o600)
            stack.callback(os.close, target)
            digest = ""
            with naming(path):
                if still:
                    copy_plain(source, target)
                else:
                    digest = copy_with_digest(source, target)
            self.copied_bytes += os.fstat(target).st_blocks * 512
        self.taken[name] = Taken(state, sure, digest)
        return True

    def place(self, name: str) -> Path:
        """Path of a copy; its folders are made."""
        path = self.target / name
        if path.parent not in self.folders:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.folders.add(path.parent)
        return path

    def finish(self) -> None:
        """Digests of what was copied in a still pass."""
        for name, each in self.taken.items():
            if each.digest:
                continue
            descriptor = os.open(self.target / name, READ)
            try:
                with naming(self.target / name):
                    digest, _ = digest_of(descriptor)
            finally:
                os.close(descriptor)
            self.taken[name] = Taken(each.state, each.sure, digest, each.copied)
