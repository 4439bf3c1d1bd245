# SPDX-License-Identifier: GPL-2.0-or-later
"""The 236-byte OSD-2 CDB and the segments of its data buffers.

Lives here: Request (a command in words), encode() (its CDB and Data-Out), decode_data_in().
Not here: the fields that each command uses (requests/), sending (transport.py).
Source: osd2-wire sections 2-4; byte numbers stand at the right of each field.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from pyosd.types import AttributeId, AttributeValue, Buffer, MutableBuffer
from pyosd.wire.attributes import (
    PageForm,
    Retrieved,
    allocation_for,
    decode_page,
    decode_retrieved,
    encode_get_list,
    encode_set_list,
)
from pyosd.wire.capability import Need, Permission
from pyosd.wire.transport import Command

OPCODE = 0x7F
CDB_LENGTH = 236
CAPABILITY_LENGTH = 104
OFFSET_UNUSED = 0xFFFF_FFFF
OFFSET_MAX = (1 << 43) - (1 << 15)
LIST_HEADER_LENGTH = 24

_FORMAT_SET_ONE, _FORMAT_PAGE, _FORMAT_LIST = 0x10, 0x20, 0x30
_SET_ONE_MAX = 18
_DPO, _FUA = 0x10, 0x08
_TIMESTAMPS_BYPASS = 0x7F


class ServiceAction(IntEnum):
    """Service actions of OSD-2, and those of iosd: 8F81h and above (docs/wire.md)."""

    __hash__ = int.__hash__  # looked up for every command; by default by name, and slowly

    OBJECT_STRUCTURE_CHECK = 0x8880
    FORMAT_OSD = 0x8881
    CREATE = 0x8882
    LIST = 0x8883
    PUNCH = 0x8884
    READ = 0x8885
    WRITE = 0x8886
    APPEND = 0x8887
    FLUSH = 0x8888
    CLEAR = 0x8889
    REMOVE = 0x888A
    CREATE_PARTITION = 0x888B
    REMOVE_PARTITION = 0x888C
    GET_ATTRIBUTES = 0x888E
    SET_ATTRIBUTES = 0x888F
    CREATE_AND_WRITE = 0x8892
    COPY_USER_OBJECTS = 0x8893
    CREATE_USER_TRACKING_COLLECTION = 0x8894
    CREATE_COLLECTION = 0x8895
    REMOVE_COLLECTION = 0x8896
    LIST_COLLECTION = 0x8897
    SET_KEY = 0x8898
    SET_MASTER_KEY = 0x8899
    FLUSH_COLLECTION = 0x889A
    FLUSH_PARTITION = 0x889B
    FLUSH_OSD = 0x889C
    QUERY = 0x88A0
    REMOVE_MEMBER_OBJECTS = 0x88A1
    GET_MEMBER_ATTRIBUTES = 0x88A2
    SET_MEMBER_ATTRIBUTES = 0x88A3
    READ_MAP = 0x88B1
    READ_MAPS_AND_COMPARE = 0x88B2
    PERFORM_SCSI_COMMAND = 0x8F7C
    PERFORM_TASK_MANAGEMENT_FUNCTION = 0x8F7D
    EXEC = 0x8F81
    EXECUTE_FUNCTION = 0x8F82
    ACTIVATE_FUNCTION = 0x8F83
    COMPARE_AND_SWAP = 0x8F84
    FETCH_AND_ADD = 0x8F85
    GENERIC_COMPARE_AND_SWAP = 0x8F86
    CONDITIONAL_SET_ATTRIBUTES = 0x8F87
    READ_NAMES = 0x8F88
    CHANGE_NAMES = 0x8F89


class Duplication(IntEnum):
    """How COPY USER OBJECTS copies (byte 14)."""

    DEFAULT = 0x00
    SPACE_EFFICIENT = 0x01
    PRE_ALLOCATED = 0x41
    BYTE_BY_BYTE = 0x81
    FASTER_COPY = 0xFD
    HIGHER_DATA_AVAILABILITY = 0xFE
    DO_NOT_CARE = 0xFF


class Isolation(IntEnum):
    """Isolation methods of the options byte."""

    DEFAULT = 0
    NONE = 1
    STRICT = 2
    RANGE = 4
    FUNCTIONAL = 5
    VENDOR = 7


class Options(NamedTuple):
    """Options of every command: bytes 10 and 12 of the CDB."""

    fua: bool = False
    """Force unit access: what the command changed survives power loss before it is acknowledged."""
    dpo: bool = False
    isolation: Isolation = Isolation.DEFAULT
    no_timestamps: bool = False
    """Leave the object's timestamps alone."""


class AttributeLists(NamedTuple):
    """List format: attributes to retrieve and to set, in this order.

    allocation: bytes for the answer; None: an estimate.  A cut answer says how many it needs.
    """

    get: tuple[AttributeId, ...] = ()
    set: tuple[AttributeValue, ...] = ()
    allocation: int | None = None


class AttributePage(NamedTuple):
    """Page format: one page to retrieve (0: none) in its fixed form, one attribute to set."""

    page: int = 0
    allocation: int = 0
    set: AttributeValue | None = None


class SetOne(NamedTuple):
    """Set one attribute of at most 18 bytes from inside the CDB; nothing can be retrieved."""

    attribute: AttributeValue


Attributes = AttributeLists | AttributePage | SetOne
NO_ATTRIBUTES = AttributeLists()
NO_PERMISSION = Permission(0)
DEFAULT_OPTIONS = Options()


@dataclass(slots=True)
class Descriptor:
    """One descriptor of the CDB continuation segment."""

    type: int
    content: bytes

    def encode(self) -> bytes:
        """Header, content and pad."""
        pad = -len(self.content) % 8
        return struct.pack(">HxBI", self.type, pad, len(self.content)) + self.content + bytes(pad)


@dataclass(slots=True)  # not frozen, as Command
class Request:
    """One OSD command before it becomes bytes.  Fields are named by CDB position where their
    meaning
    depends on the service action; requests/ gives each command its own names."""

    service_action: int
    partition_id: int = 0  # 16-23
    object_id: int = 0  # 24-31
    length: int = 0  # 32-39
    address: int = 0  # 40-47
    word48: int | None = None  # 48-51; None: the continuation's length
    bits11: int = 0  # 11, without the attribute format
    byte14: int = 0  # 14
    descriptors: tuple[Descriptor, ...] = ()
    data: Buffer = b""
    data_in_length: int = 0
    """Bytes of command data the answer may hold, from Data-In offset 0."""
    data_in_buffer: MutableBuffer | None = None
    """Buffer for Data-In, at least as long as the whole Data-In, or None."""
    data_out_room: MutableBuffer | None = None
    """Buffer that begins with the data, where lists of attributes can follow them without a copy."""
    attributes: Attributes = NO_ATTRIBUTES
    options: Options = DEFAULT_OPTIONS
    capability: bytes = field(default=bytes(CAPABILITY_LENGTH), repr=False)  # 80-183
    permissions: Permission = NO_PERMISSION
    """Asked for beyond what the command needs: what a job may do in its zone."""
    grants: tuple[Need, ...] = ()
    """Leave that it shall carry for further objects (extension capabilities)."""


@dataclass(slots=True)
class Layout:
    """Offsets of the segments that the decoder of the answer needs."""

    retrieved_offset: int
    retrieved_length: int
    page_format: bool


NO_LAYOUT = Layout(0, 0, False)


@lru_cache(maxsize=256)
def encode_offset(offset: int) -> tuple[int, int]:
    """Encode a buffer offset (osd2-wire 2.10).

    Returns: the 32-bit field, and the offset it stands for: the first representable one >= offset.
    Raises: ValueError: offset negative or above OFFSET_MAX.
    """
    if not 0 <= offset <= OFFSET_MAX:
        raise ValueError(f"offset {offset} cannot be encoded")
    if offset == 0:
        return 0, 0
    for shift in range(3, 16):
        mantissa = offset + (1 << shift) - 1 >> shift
        encoded = (shift - 8 & 0xF) << 28 | mantissa & 0x0FFF_FFFF
        if mantissa < 1 << 28 and encoded != OFFSET_UNUSED:
            return encoded, mantissa << shift
    raise ValueError(f"offset {offset} cannot be encoded")


def decode_offset(encoded: int) -> int:
    """Byte offset of a field, in any spelling.  Raises: ValueError: unused, exponent -8..-6."""
    exponent = (encoded >> 28 ^ 8) - 8
    if encoded == OFFSET_UNUSED or exponent < -5:
        raise ValueError(f"offset field {encoded:#010x} is unused or invalid")
    return (encoded & 0x0FFF_FFFF) << exponent + 8


def encode_continuation(service_action: int, descriptors: tuple[Descriptor, ...]) -> bytes:
    """The CDB continuation segment; b"" without descriptors.  Its check value is zero."""
    if not descriptors:
        return b""
    header = struct.pack(">BxHxxxx32x", 1, service_action)
    return header + b"".join(each.encode() for each in descriptors)


class DataOut:
    """Data-Out under construction.  Keeps the caller's buffer uncopied while it is the only
    segment.

    parts: what it consists of, pads included.  set_list, get_list: which of them these are.
    """

    def __init__(self) -> None:
        self.parts: list[Buffer] = []
        self.length = 0
        self.set_list = self.get_list = b""

    def append(self, part: Buffer) -> None:
        """Put a part behind the others."""
        view = memoryview(part)
        if view.nbytes:
            self.parts.append(part)
            self.length += view.nbytes

    def append_aligned(self, part: bytes) -> int:
        """Append at the next encodable offset; returns the encoded offset."""
        encoded, real = encode_offset(self.length)
        self.append(bytes(real - self.length))
        self.append(part)
        return encoded

    def value(self, room: MutableBuffer | None = None) -> Buffer:
        """All of it.  room: a buffer that begins with the first part: what follows is put behind it."""
        if len(self.parts) == 1:
            return self.parts[0]
        if room is None or not self.parts or memoryview(room).nbytes < self.length:
            return b"".join(self.parts)
        view = memoryview(room).cast("B")
        at = memoryview(self.parts[0]).nbytes
        for part in self.parts[1:]:
            there = at + memoryview(part).nbytes
            view[at:there] = part
            at = there
        return view[:at]


def _encode_lists(lists: AttributeLists, out: DataOut, data_in: int) -> tuple[bytes, Layout]:
    wanted = tuple(lists.get)
    get_list, set_list = encode_get_list(wanted), encode_set_list(lists.set) if lists.set else b""
    allocation = allocation_for(wanted) if lists.allocation is None else lists.allocation
    out.set_list, out.get_list = set_list, get_list
    # The get list goes last: OSC's target wants it to end Data-Out.
    set_offset = out.append_aligned(set_list) if set_list else OFFSET_UNUSED
    get_offset = out.append_aligned(get_list) if get_list else OFFSET_UNUSED
    retrieved, real = encode_offset(data_in) if allocation else (OFFSET_UNUSED, data_in)
    parameters = struct.pack(
        ">IIIIIII",
        len(get_list),  # 52
        get_offset,  # 56
        allocation,  # 60
        retrieved,  # 64
        len(set_list),  # 68
        set_offset,  # 72
        0,  # 76
    )
    return parameters, Layout(real, allocation, False)


def _encode_page(page: AttributePage, out: DataOut, data_in: int) -> tuple[bytes, Layout]:
    value = page.set.value if page.set else b""
    out.set_list = value
    allocation = page.allocation if page.page else 0
    set_offset = out.append_aligned(value) if value else OFFSET_UNUSED
    retrieved, real = encode_offset(data_in) if allocation else (OFFSET_UNUSED, data_in)
    parameters = struct.pack(
        ">IIIIIII",
        page.page,  # 52
        allocation,  # 56
        retrieved,  # 60
        page.set.page if page.set else 0,  # 64
        page.set.number if page.set else 0,  # 68
        len(value),  # 72
        set_offset,  # 76
    )
    return parameters, Layout(real, allocation, True)


def _encode_set_one(one: SetOne, data_in: int) -> tuple[bytes, Layout]:
    value = one.attribute.value
    if len(value) > _SET_ONE_MAX:
        raise ValueError(f"at most {_SET_ONE_MAX} bytes fit the CDB, not {len(value)}")
    parameters = struct.pack(
        ">IIH18s",
        one.attribute.page,  # 52
        one.attribute.number,  # 56
        len(value),  # 60
        value,  # 62
    )
    return parameters, Layout(data_in, 0, False)


_READING = {
    ServiceAction.LIST,
    ServiceAction.READ,
    ServiceAction.GET_ATTRIBUTES,
    ServiceAction.LIST_COLLECTION,
    ServiceAction.GET_MEMBER_ATTRIBUTES,
    ServiceAction.READ_MAP,
    ServiceAction.READ_NAMES,
}


def only_reads(request: Request) -> bool:
    """Whether the command changes nothing but timestamps, so that it may be sent twice."""
    attributes = request.attributes
    return request.service_action in _READING and not (
        isinstance(attributes, SetOne) or attributes.set
    )


class Assembled(NamedTuple):
    """A request as bytes whose security parameters (CDB 184-235) are zero."""

    cdb: bytes
    out: DataOut
    continuation_length: int
    layout: Layout
    data_in_length: int


def _misfit(request: Request, error: struct.error) -> str:
    """The argument that does not fit the CDB."""
    names = ("partition_id", "object_id", "length", "address")
    for name in names:
        value = getattr(request, name)
        if not isinstance(value, int):
            return f"{name.replace('_', ' ')} {value!r} is not an integer"
        if not 0 <= value < 1 << 64:
            return f"{name.replace('_', ' ')} {value} does not fit 64 bits unsigned"
    return f"a field of the CDB is out of range: {error}"


def assemble(
    request: Request, attributes: Attributes, descriptors: tuple[Descriptor, ...]
) -> Assembled:
    """The CDB of a request and the segments of its Data-Out; attributes and descriptors are given
    apart, since they may be others than the request's own.

    Raises: ValueError: a field does not fit its place; nothing else.
    """
    continuation = encode_continuation(request.service_action, descriptors)
    out = DataOut()
    out.append(continuation)
    out.append(request.data)
    if isinstance(attributes, AttributePage):
        parameters, layout = _encode_page(attributes, out, request.data_in_length)
        attribute_format = _FORMAT_PAGE
    elif isinstance(attributes, SetOne):
        parameters, layout = _encode_set_one(attributes, request.data_in_length)
        attribute_format = _FORMAT_SET_ONE
    else:
        parameters, layout = _encode_lists(attributes, out, request.data_in_length)
        attribute_format = _FORMAT_LIST
    options = request.options
    try:
        cdb = struct.pack(
            ">BB5xBHBBBxBxQQQQI28s104s32x12x4x4x",
            OPCODE,  # 0
            0,  # 1 CONTROL
            CDB_LENGTH - 8,  # 7
            request.service_action,  # 8
            options.dpo * _DPO | options.fua * _FUA | options.isolation,  # 10
            request.bits11 | attribute_format,  # 11
            _TIMESTAMPS_BYPASS if options.no_timestamps else 0,  # 12
            request.byte14,  # 14
            request.partition_id,  # 16
            request.object_id,  # 24
            request.length,  # 32
            request.address,  # 40
            len(continuation) if request.word48 is None else request.word48,  # 48
            parameters,  # 52
            request.capability,  # 80
        )
    except struct.error as error:
        raise ValueError(_misfit(request, error)) from None
    end = layout.retrieved_offset + layout.retrieved_length
    data_in_length = end if layout.retrieved_length else request.data_in_length
    return Assembled(cdb, out, len(continuation), layout, data_in_length)


def encode(request: Request) -> tuple[Command, Layout]:
    """Encode a request: its CDB, Data-Out and the length of its Data-In.

    Returns: the command, and what decode_data_in() needs to take the answer apart.
    Raises: ValueError: a field does not fit its place; nothing else.
    """
    cdb, out, _, layout, length = assemble(request, request.attributes, request.descriptors)
    data = out.value(None if request.descriptors else request.data_out_room)
    return Command(cdb, data, length, request.data_in_buffer, only_reads(request)), layout


def lists_of(
    get: Iterable[AttributeId], set_: Iterable[AttributeValue], allocation: int | None = None
) -> AttributeLists:
    """Attributes to get and to set, in list format; allocation: as AttributeLists has it."""
    wanted, values = tuple(get), tuple(set_)
    return AttributeLists(wanted, values, allocation) if wanted or values else NO_ATTRIBUTES


class Encoded(NamedTuple):
    """A request with what encode() made of it: for those who send the same again and again."""

    request: Request
    command: Command
    layout: Layout

    @classmethod
    def of(cls, request: Request) -> Encoded:
        """Encode it.  Raises: as encode()."""
        return cls(request, *encode(request))


@dataclass(slots=True)
class DataIn:
    """Data-In taken apart: command data, and the attributes in the format asked for."""

    data: memoryview
    retrieved: Retrieved
    page: PageForm | None


def decode_data_in(request: Request, layout: Layout, data_in: memoryview) -> DataIn:
    """Take an answer's Data-In apart; whatever is cut or absent is left out.  Never raises."""
    data = data_in[: request.data_in_length]
    segment = data_in[layout.retrieved_offset :][: layout.retrieved_length]
    if not layout.retrieved_length:
        return DataIn(data, Retrieved(), None)
    if layout.page_format:
        return DataIn(data, Retrieved(), decode_page(segment))
    return DataIn(data, decode_retrieved(segment), None)
