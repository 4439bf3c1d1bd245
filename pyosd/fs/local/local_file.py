# SPDX-License-Identifier: GPL-2.0-or-later
"""Local files that appear when they are whole."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pyosd import _core
from pyosd.commands.data import CHUNK
from pyosd.fs.local.transfer_record import TransferFacts, TransferRecord
from pyosd.fs.new_file import is_final
from pyosd.fs.paths import PathInfo

__all__ = ["Incoming", "LocalFile", "make_folder"]

_NEW_FILE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_EARLIER_FILE = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True)
class Incoming:
    """A file of the target and the local file that it becomes."""

    info: PathInfo
    destination: Path


def make_folder(top: Path, folder: Path) -> None:
    """Make a folder, which is another one or below it.

    Raises: OSError: one between them is a link, which would lead the files to another place.
    """
    top.mkdir(parents=True, exist_ok=True)
    for name in folder.relative_to(top).parts:
        top /= name
        if top.is_symlink():
            raise OSError(errno.ELOOP, f"'{top}' is a link", str(top))
        top.mkdir(exist_ok=True)


def check_replaceable(path: Path) -> None:
    """A file must not take the place of a device, a FIFO or a socket: cp(1) would write into it.

    Raises: OSError: it is one of these, or a link such as /dev/stdout.
    """
    link = path.is_symlink() and str(path.readlink()).startswith("/proc/")
    if link or (path.exists() and not path.is_file() and not path.is_dir()):
        raise OSError(errno.EEXIST, "it is no file that can be replaced; - is stdout", str(path))


def file_at(path: Path) -> os.stat_result | None:
    """The state of a file that a new one would replace; None: there is none, or a link."""
    try:
        state = path.lstat()
    except OSError:
        return None
    return state if stat.S_ISREG(state.st_mode) else None


def keep_access(path: Path, descriptor: int) -> None:
    """Give a new file the mode of the one that it replaces, and its owner, as far as that is permitted.

    Some file systems have neither, and a container has no number for some owners.
    """
    old, new = file_at(path), os.fstat(descriptor)
    if old is None:
        return
    with suppress(OSError):
        os.fchmod(descriptor, old.st_mode & 0o777)
        if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid):
            os.fchown(descriptor, old.st_uid, old.st_gid)


class LocalFile:
    """A local file that appears at the end of the with block, or not at all.

    keep: whether it appears.  With a record it stays under another name if the transfer is cut off, and
    continue_() finds it again.
    """

    def __init__(
        self,
        item: Incoming,
        record: TransferRecord | None = None,
        facts: TransferFacts | None = None,
    ) -> None:
        self.destination, self.modified_ms = item.destination, item.info.modified_ms
        self.temporary = self._beside(f".osd-{secrets.token_hex(8)}")
        self.keep = True
        self._record, self._facts = record, facts or {}

    def _beside(self, name: str) -> Path:
        return self.destination.parent / name

    def __enter__(self) -> LocalFile:
        check_replaceable(self.destination)
        earlier = self._earlier()
        if earlier is None:
            mode = 0o600 if file_at(self.destination) else 0o666  # a private one is so meanwhile
            self.descriptor = os.open(self.temporary, _NEW_FILE, mode)
            if self._record:
                self._record.begin({**self._facts, "temporary": self.temporary.name})
        return self

    def _earlier(self) -> Path | None:
        """Open the file that an earlier transfer of the same data has left."""
        if self._record is None:
            return None
        name = self._record.facts.get("temporary")
        if not isinstance(name, str) or not name.startswith(".osd-") or "/" in name:
            return None
        path = self._beside(name)
        if not self._facts.items() <= self._record.facts.items():
            path.unlink(missing_ok=True)
            return None
        try:
            self.descriptor = os.open(path, _EARLIER_FILE)
        except OSError:
            return None
        self.temporary = path
        return path

    def continue_(self) -> int:
        """Go behind the pieces that an earlier transfer has stored, and that are as it stored them.

        Returns: the position.
        """
        if self._record is None:
            return 0
        count = 0
        for expected in self._record.checksums:
            piece = os.pread(self.descriptor, CHUNK, count * CHUNK)
            if len(piece) < CHUNK or _core.crc32c(piece).to_bytes(4) != expected:
                break
            count += 1
        self._record.keep(count)
        os.ftruncate(self.descriptor, count * CHUNK)
        return os.lseek(self.descriptor, count * CHUNK, os.SEEK_SET)

    def write(self, data: memoryview, checksum: int | None = None) -> None:
        """Write all of a piece.  checksum: its CRC-32C, for the record."""
        rest = data
        while rest:
            rest = rest[os.write(self.descriptor, rest) :]
        if self._record and checksum is not None and len(data) == CHUNK:
            self._record.add(checksum)

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        keep = self.keep and error is None
        cut_off = self._record is not None and error is not None and not is_final(error)
        try:
            try:
                if keep:
                    keep_access(self.destination, self.descriptor)
                if keep and self.modified_ms:
                    os.utime(self.descriptor, ns=(self.modified_ms * 1_000_000,) * 2)
            finally:
                os.close(self.descriptor)
            if keep:
                self.temporary.replace(self.destination)
        except OSError:
            keep = False
            raise
        finally:
            if not keep and not cut_off:
                self.temporary.unlink(missing_ok=True)
            if self._record and (keep or (error and not cut_off)):
                self._record.remove()
