# SPDX-License-Identifier: GPL-2.0-or-later
"""Attributes of files as attributes of objects: page F001_0000h (docs/osdfs.md).  Pure.

Objects of other clients have none of these attributes.  Then the defaults of the mount hold.
"""

from __future__ import annotations

import stat as modes
from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from struct import error as struct_error

from pyosd.errors import ProtocolError
from pyosd.fronts.osdfs.kernel import Stat
from pyosd.types import AttributeId, AttributeValue, ObjectRef
from pyosd.wire.attributes import DATA_VERSION, LOGICAL_LENGTH, MEMBERS_VERSION, Page, Timestamp

__all__ = [
    "ENTRIES",
    "LINK_TARGET",
    "NOTHING",
    "XATTRS",
    "Defaults",
    "Facts",
    "decode_xattrs",
    "encode_xattrs",
    "facts_of",
    "kind_of",
    "owner_value",
    "root_facts",
    "time_values",
    "wanted_of",
]

PAGE = 0xF001_0000
OWNER = AttributeId(PAGE, 1)
"""Mode, user, group, device number or length of a symbolic link: 4 bytes each."""
MODIFIED = AttributeId(PAGE, 2)
"""A time of modification that was set: seconds, ns, the version of the data that it is about."""
ACCESSED = AttributeId(PAGE, 3)
"""The same of access, with the target's time of access in ms."""
LINK_TARGET = AttributeId(PAGE, 4)
XATTRS = AttributeId(PAGE, 5)
NOTHING = AttributeValue(PAGE, 6, b"")
"""Setting it changes nothing but the time of the last change of attributes."""

_OWNER = Struct(">IIII")
_TIME = Struct(">qI")
_MS, _S = 10**6, 10**9
_MS_MOST, _SIZE_MOST = (1 << 48) - 1, (1 << 63) - 1


@dataclass(frozen=True)
class Defaults:
    """Owner and permissions of objects that have none."""

    uid: int
    gid: int
    file_mode: int = 0o644
    directory_mode: int = 0o755


@dataclass(slots=True)
class Facts:
    """Facts about an object, from the target.

    version: of the data, or of a directory's entries; b"": the root directory of a partition has none.
    accessed_ms, modified_ms: the target's own times.  xattrs: the value of XATTRS; None: it was too long.
    length_unknown: functions make the data, and only a READ tells how long they are.
    """

    stat: Stat
    version: bytes = b""
    accessed_ms: int = 0
    modified_ms: int = 0
    xattrs: bytes | None = None
    length_unknown: bool = False


def _times(page: Page) -> tuple[AttributeId, ...]:
    numbers = (Timestamp.ATTRIBUTES_MODIFIED, Timestamp.DATA_ACCESSED, Timestamp.DATA_MODIFIED)
    return tuple(AttributeId(page, each) for each in numbers)


_OURS = (OWNER, MODIFIED, ACCESSED)
_FILE = (*_OURS, *_times(Page.USER_TIMESTAMPS), DATA_VERSION, LOGICAL_LENGTH, XATTRS)
_DIRECTORY = (*_OURS, *_times(Page.COLLECTION_TIMESTAMPS), MEMBERS_VERSION, XATTRS)
_PARTITION = (*_OURS, *_times(Page.PARTITION_TIMESTAMPS), XATTRS)
ENTRIES = (*_FILE[:-1], *_DIRECTORY[len(_OURS) :])
"""Of a directory's entries.  Each has those of its type, in the order of wanted_of()."""


def wanted_of(obj: ObjectRef, *, is_directory: bool) -> tuple[AttributeId, ...]:
    """The attributes that facts_of() takes, in this order."""
    if not is_directory:
        return _FILE
    return _DIRECTORY if obj.object_id else _PARTITION


def facts_of(
    values: Sequence[AttributeValue], defaults: Defaults, *, is_directory: bool, links: int
) -> Facts:
    """Facts from the values of wanted_of().  Raises: ProtocolError: they cannot be these."""
    try:
        return _facts(values, defaults, is_directory=is_directory, links=links)
    except (ValueError, IndexError, OverflowError):
        raise ProtocolError("the attributes of an object are not those asked for") from None


def _facts(
    values: Sequence[AttributeValue], defaults: Defaults, *, is_directory: bool, links: int
) -> Facts:
    xattrs = values[-1].value if values[-1].id == XATTRS else None
    given = values if xattrs is None else values[:-1]
    owner, modified, accessed, changed, read, written, *rest = (each.value for each in given)
    version = rest[0] if rest else b""
    accessed_ms, written_ms, changed_ms = (
        int.from_bytes(each) for each in (read, written, changed)
    )
    stat = _owned(owner, defaults, is_directory=is_directory)
    stat.links = 1 if is_directory else links
    stat.accessed = _set_time(accessed, accessed_ms.to_bytes(6), accessed_ms * _MS)
    stat.modified = _set_time(modified, version or written_ms.to_bytes(6), written_ms * _MS)
    stat.changed = max(changed_ms, written_ms) * _MS
    has_length = not is_directory and not modes.S_ISLNK(stat.mode)
    if has_length:
        stat.size = int.from_bytes(rest[1])
    if max(written_ms, changed_ms) > _MS_MOST or stat.size > _SIZE_MOST:
        raise ValueError
    unknown = has_length and not rest[1]
    return Facts(stat, version, accessed_ms, written_ms, xattrs, unknown)


def _owned(value: bytes, defaults: Defaults, *, is_directory: bool) -> Stat:
    kind = modes.S_IFDIR if is_directory else modes.S_IFREG
    try:
        mode, uid, gid, device = _OWNER.unpack(value)
    except struct_error:  # none, or not ours
        mode = defaults.directory_mode if is_directory else defaults.file_mode
        return Stat(kind | mode, uid=defaults.uid, gid=defaults.gid)
    if is_directory or not modes.S_IFMT(mode) or modes.S_ISDIR(mode):
        mode = kind | modes.S_IMODE(mode)
    if modes.S_ISLNK(mode):
        return Stat(mode, size=device, uid=uid, gid=gid)
    return Stat(mode, uid=uid, gid=gid, device=device)


def kind_of(owner: bytes) -> int:
    """The type bits of a file whose attribute OWNER has this value."""
    return modes.S_IFMT(_owned(owner, Defaults(0, 0), is_directory=False).mode)


def _set_time(value: bytes, state: bytes, otherwise: int) -> int:
    """A time that was set, in ns, if the object is still as it was then."""
    if len(value) <= _TIME.size or value[_TIME.size :] != state:
        return otherwise
    seconds, ns = _TIME.unpack_from(value)
    return int(seconds * _S + ns) if ns < _S else otherwise  # which the kernel could not be told


def owner_value(stat: Stat) -> AttributeValue:
    """Mode and owner as an attribute."""
    device = stat.size if modes.S_ISLNK(stat.mode) else stat.device
    return AttributeValue(*OWNER, _OWNER.pack(stat.mode, stat.uid, stat.gid, device))


def time_values(facts: Facts, accessed: int | None, modified: int | None) -> list[AttributeValue]:
    """Times in ns as attributes.  They hold until the object of these facts is read or written."""
    found = []
    if accessed is not None:
        state = facts.accessed_ms.to_bytes(6)
        found.append(AttributeValue(*ACCESSED, _TIME.pack(*divmod(accessed, 10**9)) + state))
    if modified is not None:
        state = facts.version or facts.modified_ms.to_bytes(6)
        found.append(AttributeValue(*MODIFIED, _TIME.pack(*divmod(modified, 10**9)) + state))
    return found


def root_facts(defaults: Defaults) -> Facts:
    """Of the root, whose entries are the partitions."""
    mode = modes.S_IFDIR | defaults.directory_mode
    return Facts(Stat(mode, uid=defaults.uid, gid=defaults.gid))


# ---- extended attributes: lengths of name and value, 2 and 4 bytes, then both -------------------------

_XATTR = Struct(">HI")


def decode_xattrs(value: bytes) -> dict[bytes, bytes]:
    """Extended attributes of an object, by name.  Raises: ValueError: the attribute is not ours."""
    found, at = dict[bytes, bytes](), 0
    while at < len(value):
        if at + _XATTR.size > len(value):
            raise ValueError("extended attributes end within an entry")
        name_length, length = _XATTR.unpack_from(value, at)
        at += _XATTR.size
        end = at + name_length + length
        if end > len(value):
            raise ValueError("extended attributes end within an entry")
        found[value[at : at + name_length]] = value[at + name_length : end]
        at = end
    return found


def encode_xattrs(values: dict[bytes, bytes]) -> bytes:
    """The attribute for decode_xattrs()."""
    return b"".join(
        _XATTR.pack(len(name), len(value)) + name + value for name, value in sorted(values.items())
    )
