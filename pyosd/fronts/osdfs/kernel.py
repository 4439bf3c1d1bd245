# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests and replies of the kernel's FUSE protocol, version 7.38 (linux/fuse.h).  Pure.

The kernel is trusted: lengths within a request are its own.  Numbers are in the byte order of the machine.
"""

from __future__ import annotations

import errno
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from struct import Struct
from typing import NamedTuple

MAJOR, MINOR = 7, 38
ROOT_ID = 1
PAGE = 4096
WRITE_MOST = 1 << 20
"""Bytes of one WRITE or READ."""
READ_AHEAD = 8 * WRITE_MOST
"""Bytes that the kernel may read ahead."""
BUFFER = WRITE_MOST + PAGE
"""Bytes that the longest request fits."""
NAME_MAX = 255
_S = 10**9

_OUT_HEADER = Struct("=IiQ")
_ATTR = Struct("=QQQqqqIIIIIIIIII")
_ENTRY = Struct("=QQQQII")
_ATTR_HEAD = Struct("=QII")
_OPENED = Struct("=QII")
_INIT_OUT = Struct("=IIIIHHIIHHI28x")
_STATFS = Struct("=QQQQQIIII24x")
_DIRENT = Struct("=QQII")
_INVAL_INODE = Struct("=Qqq")
_NOTIFY_INVAL_INODE = 2

INIT_IN = Struct("=IIII")
GETATTR_IN = Struct("=IIQ")
SETATTR_IN = Struct("=IIQQQqqqIIIIIIII")
MKNOD_IN = Struct("=IIII")
MKDIR_IN = Struct("=II")
RENAME2_IN = Struct("=QII")
LINK_IN = Struct("=Q")
OPEN_IN = Struct("=II")
CREATE_IN = Struct("=IIII")
RELEASE_IN = Struct("=QIIQ")
READ_IN = Struct("=QQIIQII")
WRITE_IN = Struct("=QQIIQII")
WRITE_OUT = Struct("=II")
SETXATTR_IN = Struct("=II")
GETXATTR_IN = Struct("=II")
HANDLE_IN = Struct("=Q")
FALLOCATE_IN = Struct("=QQQII")
FORGET_IN = Struct("=Q")
BATCH_FORGET_IN = Struct("=II")
FORGET_ONE = Struct("=QQ")


class Op(IntEnum):
    """Operations that the kernel asks for."""

    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    SETATTR = 4
    READLINK = 5
    SYMLINK = 6
    MKNOD = 8
    MKDIR = 9
    UNLINK = 10
    RMDIR = 11
    RENAME = 12
    LINK = 13
    OPEN = 14
    READ = 15
    WRITE = 16
    STATFS = 17
    RELEASE = 18
    FSYNC = 20
    SETXATTR = 21
    GETXATTR = 22
    LISTXATTR = 23
    REMOVEXATTR = 24
    FLUSH = 25
    INIT = 26
    OPENDIR = 27
    READDIR = 28
    RELEASEDIR = 29
    FSYNCDIR = 30
    CREATE = 35
    DESTROY = 38
    BATCH_FORGET = 42
    FALLOCATE = 43
    READDIRPLUS = 44
    RENAME2 = 45


class Feature(IntFlag):
    """Flags of INIT that this file system uses."""

    ASYNC_READ = 1 << 0
    ATOMIC_O_TRUNC = 1 << 3
    BIG_WRITES = 1 << 5
    DO_READDIRPLUS = 1 << 13
    READDIRPLUS_AUTO = 1 << 14
    ASYNC_DIO = 1 << 15
    PARALLEL_DIROPS = 1 << 18
    ABORT_ERROR = 1 << 21
    MAX_PAGES = 1 << 22
    HANDLE_KILLPRIV_V2 = 1 << 28


ALL_FEATURES = Feature(sum(Feature))


class SetattrFlag(IntFlag):
    """Attributes that SETATTR sets."""

    MODE = 1 << 0
    UID = 1 << 1
    GID = 1 << 2
    SIZE = 1 << 3
    ATIME = 1 << 4
    MTIME = 1 << 5
    FH = 1 << 6
    ATIME_NOW = 1 << 7
    MTIME_NOW = 1 << 8
    KILL_SUIDGID = 1 << 11


FOPEN_DIRECT_IO, FOPEN_KEEP_CACHE, FOPEN_NOFLUSH = 1 << 0, 1 << 1, 1 << 5
KILL_SUIDGID_AT_OPEN = 1 << 0
WRITE_CACHE, KILL_SUIDGID_AT_WRITE = 1 << 0, 1 << 2
RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE, FALLOC_ZERO_RANGE = 1, 2, 16
XATTR_CREATE, XATTR_REPLACE = 1, 2


class KernelRequest(NamedTuple):
    """A request: the user, the operation and the node.

    body: what follows the header.  pid: of the thread.
    """

    op: int
    unique: int
    node: int
    uid: int
    gid: int
    body: memoryview
    pid: int


def names_in(body: memoryview, count: int = 1) -> list[bytes]:
    """Texts that end with NUL, from the beginning of a body on."""
    return bytes(body).split(b"\0")[:count]


def error_reply(unique: int, number: int) -> bytes:
    """A reply that says an errno."""
    return _OUT_HEADER.pack(_OUT_HEADER.size, -number, unique)


def old_attributes(node: int) -> bytes:
    """A notification: what the kernel knows of a node's attributes is old."""
    length = _OUT_HEADER.size + _INVAL_INODE.size
    return _OUT_HEADER.pack(length, _NOTIFY_INVAL_INODE, 0) + _INVAL_INODE.pack(node, -1, 0)


# ---- parts of replies ----------------------------------------------------------------------------


@dataclass(slots=True)
class Stat:
    """Attributes of a file, as stat(2) has them; times in ns since 1970."""

    mode: int
    size: int = 0
    links: int = 1
    uid: int = 0
    gid: int = 0
    device: int = 0
    accessed: int = 0
    modified: int = 0
    changed: int = 0

    @property
    def shown(self) -> tuple[int, ...]:
        """All that the kernel remembers, save the time of access."""
        owner = self.uid, self.gid
        return (self.mode, self.links, *owner, self.size, self.modified, self.changed)


def _attr(number: int, stat: Stat) -> bytes:
    accessed, modified, changed = stat.accessed, stat.modified, stat.changed
    return _ATTR.pack(
        number,
        stat.size,
        (stat.size + 511) // 512,
        *(accessed // _S, modified // _S, changed // _S),
        *(accessed % _S, modified % _S, changed % _S),
        stat.mode,
        stat.links,
        stat.uid,
        stat.gid,
        stat.device,
        PAGE,
        0,
    )


def _duration(seconds: float) -> tuple[int, int]:
    return int(seconds), int(seconds % 1 * 10**9)


def entry_out(node: int, number: int, stat: Stat, name_s: float, attributes_s: float) -> bytes:
    """A node under its name.  number: of its inode.  Seconds: how long it is kept."""
    (name, name_ns), (rest, rest_ns) = _duration(name_s), _duration(attributes_s)
    return _ENTRY.pack(node, 0, name, rest, name_ns, rest_ns) + _attr(number, stat)


def attr_out(number: int, stat: Stat, attributes_s: float) -> bytes:
    """Attributes alone."""
    return _ATTR_HEAD.pack(*_duration(attributes_s), 0) + _attr(number, stat)


def opened_out(handle: int, flags: int = 0) -> bytes:
    """An open file or directory."""
    return _OPENED.pack(handle, flags, 0)


def init_out(features: int) -> bytes:
    """The answer to INIT.  The kernel takes the smaller one of this READ_AHEAD and its own limit."""
    pages = WRITE_MOST // PAGE
    return _INIT_OUT.pack(
        *(MAJOR, MINOR, READ_AHEAD, features & ALL_FEATURES, 64, 48, WRITE_MOST, 1, pages, 0, 0)
    )


class Space(NamedTuple):
    """The reply to statfs(2), in blocks of PAGE bytes."""

    blocks: int
    free: int
    files: int


def statfs_out(space: Space) -> bytes:
    """The answer to STATFS."""
    spare = 1 << 40  # names: the target has no limit
    return _STATFS.pack(
        *(space.blocks, space.free, space.free, space.files + spare, spare),
        *(PAGE, NAME_MAX, PAGE, 0),
    )


class Dirent(NamedTuple):
    """An entry of a directory.  kind: the type bits of a mode, 0: not known."""

    number: int
    kind: int
    name: bytes


def dirent_out(entry: Dirent, after: int) -> bytes:
    """An entry; after: the position behind it."""
    data = _DIRENT.pack(entry.number, after, len(entry.name), entry.kind >> 12) + entry.name
    return data + bytes(-len(data) % 8)


def filled(pieces: Iterable[bytes], room: int) -> tuple[bytes, int]:
    """As many whole pieces as there is room for, and their number."""
    found, used = list[bytes](), 0
    for piece in pieces:
        if used + len(piece) > room:
            break
        found.append(piece)
        used += len(piece)
    return b"".join(found), len(found)


class WithErrno(Exception):
    """An operation fails with an errno."""

    def __init__(self, number: int) -> None:
        super().__init__(errno.errorcode.get(number, str(number)))
        self.number = number
