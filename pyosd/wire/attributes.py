# SPDX-License-Identifier: GPL-2.0-or-later
"""Attribute pages and numbers by name, value encodings, and the list formats.

Lives here: everything about attributes that is independent of the CDB that carries them.
Not here: where the lists sit in the data buffers (cdb.py).
Source: OSD-2 attribute lists (osd2-wire section 5); pages 2000_000xh and B000_0001h: docs/attributes.md.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from pyosd import _core
from pyosd.types import AttributeId, AttributeValue, ObjectAttributes

LIST_GET = 0x1
LIST_SET = 0x9
LIST_MULTI_OBJECT = 0xE

ALL = 0xFFFF_FFFF
"""As a page: all pages; as a number: all attributes of the page (get only)."""
VALUE_MAX = 0xFFFE
"""Longest attribute value, bytes."""


class Page(IntEnum):
    """Attribute pages with a name."""

    USER_DIRECTORY = 0x0000_0000
    USER_INFORMATION = 0x0000_0001
    USER_QUOTAS = 0x0000_0002
    USER_TIMESTAMPS = 0x0000_0003
    USER_COLLECTIONS = 0x0000_0004
    USER_SECURITY = 0x0000_0005
    USER_RECOVERY = 0x0000_0006
    APPLICATION = 0x0001_0000
    JOB_STATUS = 0x2000_0001
    JOB_PAYLOAD = 0x2000_0002
    JOB_CONTROL = 0x2000_0003
    HEAD = 0x2000_0004
    VERSION = 0x2000_0005
    FUNCTION = 0x2000_0006
    JOB_USED = 0x2000_0007
    STACK = 0x2000_0020
    HOOKS = 0x2000_0021
    PARTITION_DIRECTORY = 0x3000_0000
    PARTITION_INFORMATION = 0x3000_0001
    PARTITION_QUOTAS = 0x3000_0002
    PARTITION_TIMESTAMPS = 0x3000_0003
    PARTITION_ACCESS = 0x3000_0004
    PARTITION_SECURITY = 0x3000_0005
    PARTITION_RECOVERY = 0x3000_0006
    INDEX = 0x5000_0001
    CHARGED = 0x5000_0002
    PARTITION_STACK = 0x5000_0020
    PARTITION_HOOKS = 0x5000_0021
    COLLECTION_DIRECTORY = 0x6000_0000
    COLLECTION_INFORMATION = 0x6000_0001
    COLLECTION_TIMESTAMPS = 0x6000_0003
    COLLECTION_TRACKING = 0x6000_0004
    COLLECTION_SECURITY = 0x6000_0005
    COLLECTION_RECOVERY = 0x6000_0006
    MEMBERS_VERSION = 0x8000_0001
    COLLECTION_STACK = 0x8000_0020
    ROOT_DIRECTORY = 0x9000_0000
    ROOT_INFORMATION = 0x9000_0001
    ROOT_QUOTAS = 0x9000_0002
    ROOT_TIMESTAMPS = 0x9000_0003
    ROOT_SECURITY = 0x9000_0005
    ROOT_RECOVERY = 0x9000_0006
    EXEC_ROOT = 0xB000_0001
    STORE_ROOT = 0xB000_0002
    HEADS_ROOT = 0xB000_0003
    SUMS_ROOT = 0xB000_0004
    ROOT_STACK = 0xB000_0020
    ROOT_HOOKS = 0xB000_0021
    FUNCTIONS_ROOT = 0xB000_0005
    CURRENT_COMMAND = 0xFFFF_FFFE


class Information(IntEnum):
    """Numbers on the Information pages."""

    PARTITION_ID = 0x1
    OBJECT_ID = 0x2
    SYSTEM_ID = 0x3
    VENDOR_IDENTIFICATION = 0x4
    PRODUCT_IDENTIFICATION = 0x5
    PRODUCT_MODEL = 0x6
    PRODUCT_REVISION_LEVEL = 0x7
    PRODUCT_SERIAL_NUMBER = 0x8
    NAME = 0x9
    """OSD NAME on the root, username elsewhere."""
    MAXIMUM_CDB_CONTINUATION_LENGTH = 0xA
    """On the root; on a collection: collection type."""
    TOTAL_CAPACITY = 0x80
    USED_CAPACITY = 0x81
    LOGICAL_LENGTH = 0x82
    NUMBER_OF_PARTITIONS = 0xC0
    NUMBER_OF_OBJECTS = 0xC1
    CLOCK = 0x100


class Timestamp(IntEnum):
    """Numbers on the Timestamps pages; each value 6 bytes, ms since 1970-01-01 UT."""

    CREATED = 1
    ATTRIBUTES_ACCESSED = 2
    ATTRIBUTES_MODIFIED = 3
    DATA_ACCESSED = 4
    DATA_MODIFIED = 5


class Current(IntEnum):
    """Numbers on the Current Command page."""

    RESPONSE_INTEGRITY_CHECK_VALUE = 1
    OBJECT_TYPE = 2
    PARTITION_ID = 3
    OBJECT_ID = 4
    STARTING_BYTE_ADDRESS = 5
    CHANGE_IN_USED_CAPACITY = 6


CURRENT_TYPE = AttributeId(Page.CURRENT_COMMAND, Current.OBJECT_TYPE)
CURRENT_PRINCIPAL = AttributeId(Page.CURRENT_COMMAND, 0x8000_0001)
"""As whom the target knows the sender: the principal its jobs would have."""
CURRENT_RESULT_LENGTH = AttributeId(Page.CURRENT_COMMAND, 0x8000_0002)
CURRENT_RESULT_FORM = AttributeId(Page.CURRENT_COMMAND, 0x8000_0003)
CURRENT_CHECKSUM = AttributeId(Page.CURRENT_COMMAND, 0x8000_0004)
"""CRC-32C of the command's data, as the target has them in memory."""
CURRENT_CACHED_RESULT = AttributeId(Page.CURRENT_COMMAND, 0x8000_0005)
CURRENT_PARTITION_ID = AttributeId(Page.CURRENT_COMMAND, Current.PARTITION_ID)
CURRENT_OBJECT_ID = AttributeId(Page.CURRENT_COMMAND, Current.OBJECT_ID)
CURRENT_APPEND_START = AttributeId(Page.CURRENT_COMMAND, Current.STARTING_BYTE_ADDRESS)
DATA_VERSION = AttributeId(Page.VERSION, 1)
"""Of a user object: 12 bytes that change with its data."""
MEMBERS_VERSION = AttributeId(Page.MEMBERS_VERSION, 1)
"""Of a collection: 12 bytes that change with its members."""
LOGICAL_LENGTH = AttributeId(Page.USER_INFORMATION, Information.LOGICAL_LENGTH)

# Room to ask for per attribute: of the relative standard pages, else _DEFAULT_ROOM.  If the answer
# needs more, its list length has the size, and get_attributes() repeats the command.
_KNOWN_ROOM = {
    (1, 0x3): 20,
    (1, 0x5): 16,
    (1, 0x6): 32,
    (1, 0x8): 64,
    (1, 0x9): 256,
}
_JOB_STATUS_ROOM = {
    0x09: 256,
    0x1C: 32,
    0x1D: 17,
    0x1E: 64,
    0x20: 64,
    0x21: 64,
    0x22: 64,
    0x24: 128,
    0x25: 512,
    0x26: 128,
    0x27: 16,
    0x2A: 16,
    0x2B: 20,
    0x2C: 96,
    0x2D: 10_000,
    0x2E: 8,
}
_DEFAULT_ROOM = 1024
_ALL_ROOM = 64 << 10
_SMALL_PAGES = {
    Page.CURRENT_COMMAND,
    Page.VERSION,
    Page.MEMBERS_VERSION,
    Page.USER_TIMESTAMPS,
    Page.ROOT_TIMESTAMPS,
}


def _room(wanted: AttributeId, usual: int) -> int:
    """Value bytes to allow for an attribute; usual: where its page sets no bound."""
    if wanted.number == ALL or wanted.page == ALL:
        return _ALL_ROOM
    if wanted.number == 0:
        return 40
    if wanted.page in _SMALL_PAGES:
        return 64
    if wanted.page == Page.JOB_STATUS:
        return _JOB_STATUS_ROOM.get(wanted.number, 8)
    known = _KNOWN_ROOM.get((wanted.page & 0x0FFF_FFFF, wanted.number))
    if known is None and wanted.page & 0x0FFF_FFFF in (1, 2, 3):
        return 8
    return known or usual


@lru_cache(maxsize=64)  # polls request the same attributes again and again
def allocation_for(wanted: tuple[AttributeId, ...], *, longest: bool = False) -> int:
    """A GET ATTRIBUTES ALLOCATION LENGTH: bytes, a multiple of 8; 0 for an empty list.

    longest: enough for the longest value each attribute can have, for a command that must not be
    sent a second time.  Whole pages have no such bound.  Without it, enough for usual values.
    """
    usual = VALUE_MAX if longest else _DEFAULT_ROOM
    rooms = [16 + (_room(each, usual) + 7 & ~7) for each in wanted]
    return 8 + sum(rooms) if rooms else 0


def encode_value(value: str | int | bytes | bytearray | memoryview) -> bytes:
    """Encode as the `osd` package does: str as UTF-8, int as 8 bytes big-endian, bytes as they are.

    Bytes of the command line or of file names that are no UTF-8 (surrogates in a str) stay as they are.

    Raises: ValueError: an int outside 0..2**64-1, or more than VALUE_MAX bytes.
    """
    if isinstance(value, str):
        data = value.encode("utf-8", "surrogateescape")
    elif isinstance(value, int):
        if not 0 <= value < 1 << 64:
            raise ValueError(f"attribute value {value} does not fit 64 bits unsigned")
        data = value.to_bytes(8, "big")
    else:
        data = bytes(value)
    if len(data) > VALUE_MAX:
        raise ValueError(f"attribute value of {len(data)} bytes is longer than {VALUE_MAX}")
    return data


@lru_cache(maxsize=64)
def encode_get_list(wanted: tuple[AttributeId, ...]) -> bytes:
    """List type 1: the attributes to retrieve.  b"" for none."""
    entries = b"".join(struct.pack(">II", *each) for each in wanted)
    return struct.pack(">BxxxI", LIST_GET, len(entries)) + entries if entries else b""


def encode_entry(attribute: AttributeValue) -> bytes:
    """One entry of list type 9, padded to a multiple of 8."""
    if isinstance(attribute.value, str | int):
        raise TypeError(f"the value of an attribute is bytes, not {attribute.value!r}")
    if len(attribute.value) > VALUE_MAX:
        raise ValueError(f"attribute {attribute.id} is longer than {VALUE_MAX} bytes")
    head = struct.pack(">II6xH", attribute.page, attribute.number, len(attribute.value))
    return head + attribute.value + bytes(-len(attribute.value) % 8)


def encode_set_list(attributes: Iterable[AttributeValue]) -> bytes:
    """List type 9: the attributes to set.  b"" for none."""
    entries = b"".join(map(encode_entry, attributes))
    return struct.pack(">BxxxI", LIST_SET, len(entries)) + entries if entries else b""


@dataclass(slots=True)
class Retrieved:
    """A retrieved list.  needed: bytes the whole list takes; complete: all of it arrived."""

    attributes: tuple[AttributeValue, ...] = ()
    members: tuple[ObjectAttributes, ...] = ()
    needed: int = 0
    complete: bool = True

    def find(self, wanted: AttributeId) -> AttributeValue | None:
        """The entry with that id, or None where it was not returned."""
        page, number = wanted
        for each in self.attributes:
            if each.number == number and each.page == page:
                return each
        return None


def decode_entries(data: bytes | memoryview) -> tuple[AttributeValue, ...]:
    """The whole entries of list type 9 in data; an entry that is cut is left out.  Never raises."""
    return _core.decode_entries(data, AttributeValue)


def decode_members(data: bytes | memoryview) -> tuple[ObjectAttributes, ...]:
    """The whole groups of list type Eh (and id blocks of a LIST with attributes).  Never raises."""
    return _core.decode_groups(data, ObjectAttributes, AttributeValue)


def decode_retrieved(data: bytes | memoryview) -> Retrieved:
    """Decode the retrieved attributes segment, type 9 or Eh, without what is cut.  Never raises."""
    if len(data) < 8:
        return Retrieved()
    kind, length = data[0] & 0x0F, int.from_bytes(data[4:8], "big")
    body = data[8 : 8 + length]
    complete = len(body) == length
    if kind == LIST_MULTI_OBJECT:
        return Retrieved((), decode_members(body), 8 + length, complete)
    return Retrieved(decode_entries(body), (), 8 + length, complete)


class PageForm(NamedTuple):
    """A page in its fixed form.  length: bytes of the full page after its header; 0: no form."""

    page: int
    length: int
    body: bytes


def decode_page(data: bytes | memoryview) -> PageForm | None:
    """Decode a page-format answer; None when not even the header arrived.  Never raises."""
    if len(data) < 8:
        return None
    page, length = struct.unpack_from(">II", data)
    return PageForm(page, length, bytes(data[8 : 8 + length]))
