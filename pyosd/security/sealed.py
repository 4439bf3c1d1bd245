# SPDX-License-Identifier: GPL-2.0-or-later
"""Bytes of a protected command: seal() puts a request's security parameters in, open_reply() checks
those of its answer.  Pure.

Not here: which credential, when to try again (signing.py).
Source: docs/security-protocol.md, whose sections are named.
"""

from __future__ import annotations

import hmac
import struct
from dataclasses import replace
from math import inf
from typing import NamedTuple

from pyosd.errors import UnprovenAnswer
from pyosd.security.credentials import Credential
from pyosd.types import AttributeId, AttributeValue, Buffer
from pyosd.wire.attributes import ALL, Page, Retrieved, allocation_for
from pyosd.wire.capability import CHECK_LENGTH, SecurityMethod, digest_of
from pyosd.wire.cdb import (
    NO_ATTRIBUTES,
    NO_LAYOUT,
    OFFSET_UNUSED,
    AttributeLists,
    AttributePage,
    DataOut,
    Descriptor,
    Layout,
    Request,
    ServiceAction,
    SetOne,
    assemble,
    encode_offset,
    only_reads,
)
from pyosd.wire.reply import Reply, decode_reply
from pyosd.wire.sense import GOOD, TASK_ABORTED, decode, error_for
from pyosd.wire.transport import Command, Response

_CAPABILITY, _CHECK, _NONCE = slice(80, 184), slice(184, 216), slice(216, 228)
_OFFSETS = struct.Struct(">II")  # 228 Data-In, 232 Data-Out
_CONTINUATION_CHECK = slice(8, 40)
_EXTENSION, _EXTENSION_HEAD, _EXTENSION_ENTRY, _EXTENSIONS_MAX = 0xFFEE, 8, 136, 16
_ZEROS = bytes(CHECK_LENGTH)
_BLOCK = 64  # of both hash functions
_COUNTS_OUT, _COUNTS_IN = struct.Struct(">QQQ"), struct.Struct(">QQ")
_DATA_IN_INFO = _COUNTS_IN.size + CHECK_LENGTH
_PAGE = struct.Struct(">II32sB3xQQQQ")
_WHOLE_PAGE = AttributeId(Page.CURRENT_COMMAND, ALL)
_ONLY_PAGE = AttributePage(Page.CURRENT_COMMAND, _PAGE.size)
_PAGE_ROOM = allocation_for(tuple(AttributeId(Page.CURRENT_COMMAND, each) for each in range(7)))
MARGIN_S = 5.0
"""A credential that expires within so many seconds is not used any more."""
_PAGE_NUMBERS = 6  # behind its identification
_RESPONSE_DESCRIPTOR = b"\x07\x20"
_MEMBERS = {
    ServiceAction.GET_MEMBER_ATTRIBUTES,
    ServiceAction.SET_MEMBER_ATTRIBUTES,
    ServiceAction.REMOVE_MEMBER_OBJECTS,
}
_VALUE_FIRST = {
    ServiceAction.GENERIC_COMPARE_AND_SWAP,
    ServiceAction.CONDITIONAL_SET_ATTRIBUTES,
}
_VALUE_ROOM = 16 + (1 << 16)
_NO_PAGE_FORM = (
    "attribute pages in their fixed form have no room for the proof of an answer: ask for "
    "attributes instead"
)


class Grant:
    """A credential ready for use, until that time.time()."""

    __slots__ = ("_inner", "_outer", "_token", "capability", "credential", "method", "until")

    def __init__(self, credential: Credential) -> None:
        self.credential = credential
        self.capability = credential.capability.encode()
        self.method = credential.capability.method
        # HMAC's two halves (RFC 2104): to copy them takes less than to copy a hmac.HMAC.
        digest = digest_of(credential.capability.algorithm)
        key = credential.key.ljust(_BLOCK, b"\0")
        self._inner = digest(bytes(byte ^ 0x36 for byte in key))
        self._outer = digest(bytes(byte ^ 0x5C for byte in key))
        self._token = (b"", b"")
        expires = credential.capability.expires_ms
        self.until = expires / 1000 - MARGIN_S if expires else inf

    def proof_by_token(self, token: bytes) -> bytes:
        """The request check value under CAPKEY, which is the same for all commands."""
        if self._token[0] != token:
            self._token = token, self.mac(token)
        return self._token[1]

    def mac(self, *parts: Buffer) -> bytes:
        """A check value over the parts, one after the other."""
        state = self._inner.copy()
        for part in parts:
            state.update(part)
        outer = self._outer.copy()
        outer.update(state.digest())
        return outer.digest().ljust(CHECK_LENGTH, b"\0")


class Sealed(NamedTuple):
    """A protected command, and what its answer must agree with.

    whole_page: the Current Command page was put in front of what it gets.  integrity: where
    Data-In's integrity information lies; -1: nowhere.
    """

    command: Command
    layout: Layout
    grant: Grant
    nonce: bytes
    whole_page: bool
    integrity: int


# ---- request --------------------------------------------------------------------------------------


def seal(request: Request, grants: list[Grant], nonce: bytes, token: bytes) -> Sealed:
    """Protect a request by its first grant's method; the other grants become extension capabilities.

    Args: nonce: for CMDRSP and ALLDATA.  token: the target's security token, for CAPKEY.
    Raises: ValueError: a field does not fit, or more than 16 further grants.
    """
    grant = grants[0]
    method = grant.method
    if method < SecurityMethod.CMDRSP:
        return _seal_simply(request, grants, token)
    attributes, whole_page = _with_page(request)
    descriptors = _with_extensions(request.descriptors, grants)
    plain, out, continuation_length, layout, data_in_length = assemble(
        request, attributes, descriptors
    )
    cdb, integrity, data_in, data_out = bytearray(plain), -1, OFFSET_UNUSED, OFFSET_UNUSED
    if method is SecurityMethod.ALLDATA:
        data_in, integrity = encode_offset(data_in_length)
        data_in_length = integrity + _DATA_IN_INFO
        if out.length:
            data_out = _append_integrity(out, request, grant, nonce)
    cdb[_CAPABILITY] = grant.capability
    cdb[_NONCE] = nonce
    _OFFSETS.pack_into(cdb, _NONCE.stop, data_in, data_out)
    cdb[_CHECK] = grant.mac(cdb)
    if continuation_length:
        segment = bytearray(out.parts[0])
        _put_extensions(segment, grants, bytes(cdb[_CHECK]))
        segment[_CONTINUATION_CHECK] = grant.mac(nonce, segment)
        out.parts[0] = segment
    # Without the caller's buffer: nothing gets there before it is known to be right.
    command = Command(bytes(cdb), out.value(), data_in_length, None, only_reads(request))
    return Sealed(command, layout, grant, nonce, whole_page, integrity)


def _seal_simply(request: Request, grants: list[Grant], token: bytes) -> Sealed:
    """NOSEC and CAPKEY: nothing depends on the command."""
    grant = grants[0]
    descriptors = request.descriptors
    if len(grants) > 1:
        descriptors = _with_extensions(descriptors, grants)
    plain, out, _, layout, data_in_length = assemble(request, request.attributes, descriptors)
    check = _ZEROS
    if grant.method is SecurityMethod.CAPKEY:
        check = grant.proof_by_token(token)
        if len(grants) > 1:
            segment = bytearray(out.parts[0])
            _put_extensions(segment, grants, token)
            out.parts[0] = segment
    cdb = plain[: _CAPABILITY.start] + grant.capability + check + plain[_CHECK.stop :]
    command = Command(cdb, out.value(), data_in_length, request.data_in_buffer, only_reads(request))
    return Sealed(command, layout, grant, b"", False, -1)


def _with_page(request: Request) -> tuple[AttributeLists | AttributePage, bool]:
    """Attributes that get the Current Command page too, in page format where that does.

    Returns: also whether it was put into a list.
    """
    attributes = request.attributes
    if attributes is NO_ATTRIBUTES and request.service_action not in _MEMBERS:
        return _ONLY_PAGE, False
    if isinstance(attributes, AttributePage):
        if attributes.page not in (0, Page.CURRENT_COMMAND):
            raise ValueError(_NO_PAGE_FORM)
        return AttributePage(Page.CURRENT_COMMAND, _PAGE.size, attributes.set), False
    sets = (attributes.attribute,) if isinstance(attributes, SetOne) else attributes.set
    gets = () if isinstance(attributes, SetOne) else attributes.get
    if not gets and len(sets) <= 1 and request.service_action not in _MEMBERS:
        return AttributePage(Page.CURRENT_COMMAND, _PAGE.size, sets[0] if sets else None), False
    room = None if isinstance(attributes, SetOne) else attributes.allocation
    if room is None:
        room = allocation_for(gets)
    if request.service_action in _VALUE_FIRST:
        room += _VALUE_ROOM  # the value before may be of any length, and the page comes behind it
    return AttributeLists((_WHOLE_PAGE, *gets), sets, room + 8 + 16 + _PAGE_ROOM), True


def _with_extensions(
    descriptors: tuple[Descriptor, ...], grants: list[Grant]
) -> tuple[Descriptor, ...]:
    """Descriptors with room for all grants but the first at their end, if there are more."""
    others = grants[1:]
    if len(others) > _EXTENSIONS_MAX:
        raise ValueError(f"a command carries at most {_EXTENSIONS_MAX} further capabilities")
    if not others:
        return descriptors
    content = struct.pack(">H6x", len(others)) + b"".join(g.capability + _ZEROS for g in others)
    kept = tuple(each for each in descriptors if each.type != _EXTENSION)
    return (*kept, Descriptor(_EXTENSION, content))


def _put_extensions(segment: bytearray, grants: list[Grant], bound_to: bytes) -> None:
    """Check values of extension capabilities, the last descriptor of the segment."""
    at = len(segment) - _EXTENSION_ENTRY * len(grants[1:])
    for grant in grants[1:]:
        at += _EXTENSION_ENTRY
        segment[at - CHECK_LENGTH : at] = grant.mac(bound_to)


def _append_integrity(out: DataOut, request: Request, grant: Grant, nonce: bytes) -> int:
    """Data-Out integrity information.  Returns: its encoded offset."""
    data = memoryview(request.data)
    counts = _COUNTS_OUT.pack(data.nbytes, len(out.set_list), len(out.get_list))
    check = grant.mac(nonce, data, out.set_list, out.get_list, counts)
    return out.append_aligned(counts + check)


# ---- answer ---------------------------------------------------------------------------------------


def open_reply(request: Request, sealed: Sealed, response: Response) -> Reply:
    """Check and decode an answer; request: as it was before it was sealed.

    Raises: UnprovenAnswer: what it should prove it does not.
    """
    layout = sealed.layout
    if sealed.grant.method < SecurityMethod.CMDRSP:
        return decode_reply(request, layout, response)
    most = request.data_in_length
    if not _check_status(sealed, response):
        response = replace(response, data_in=memoryview(b""))
    elif sealed.integrity >= 0:
        response, layout, most = _check_data_in(sealed, response, most)
    if not sealed.whole_page:
        if response.status == GOOD:
            at = layout.retrieved_offset
            _check_page(sealed, bytes(response.data_in[at : at + _PAGE.size]), response)
        if not (isinstance(request.attributes, AttributePage) and request.attributes.page):
            layout = NO_LAYOUT  # nobody has asked for the page
    reply = decode_reply(request, layout, response)
    data, retrieved, page = reply.data[:most], reply.retrieved, reply.page
    if sealed.whole_page:
        if response.status == GOOD:
            _check_page(sealed, _listed_page(retrieved), response)
        retrieved = _without_page(retrieved)
    elif request.data_in_buffer is None and len(data) == len(reply.data):
        return reply
    if request.data_in_buffer is not None:
        view = memoryview(request.data_in_buffer)[: len(data)]
        view[:] = data
        data = view
    return Reply(request, response, data, retrieved, page, reply.sense, reply.error)


def _wrong(text: str, response: Response) -> UnprovenAnswer:
    sense = decode(response.sense)
    code = (sense.sense_key, sense.asc, sense.ascq) if sense else (0, 0, 0)
    return UnprovenAnswer(*code, text, sense=sense, sam_status=response.status)


def _response_check(sealed: Sealed, status: int, before: Buffer, after: Buffer) -> bytes:
    return sealed.grant.mac(b"".join((sealed.nonce, bytes((status,)), before, _ZEROS, after)))


def _check_status(sealed: Sealed, response: Response) -> bool:
    """Check the sense data of an answer other than GOOD, which has none.

    Returns: False: it is a refusal that cannot prove itself.
    """
    status, sense = response.status, response.sense
    if status == GOOD:
        if sense:
            raise _wrong("sense data came with GOOD", response)
        return True
    if status == TASK_ABORTED:  # says nothing, but that nobody knows
        return False
    if sense[8:10] == _RESPONSE_DESCRIPTOR and len(sense) >= 10 + CHECK_LENGTH:
        expected = _response_check(sealed, status, sense[:10], sense[10 + CHECK_LENGTH :])
        if not hmac.compare_digest(sense[10 : 10 + CHECK_LENGTH], expected):
            raise _wrong("the response check value of sense data is wrong", response)
        return True
    found = decode(sense)
    if found is None or (found.asc, found.ascq, found.field_pointer) != (
        0x24,
        0,
        _CAPABILITY.start,
    ):
        raise _wrong("an answer came without its response check value", response)
    return False


def _check_page(sealed: Sealed, page: bytes, response: Response) -> None:
    """Check the Current Command page of a GOOD answer."""
    expected = _response_check(sealed, response.status, page[:8], page[40:])
    if not hmac.compare_digest(page[8:40], expected):
        raise _wrong("the response check value of an answer is wrong", response)


def _check_data_in(sealed: Sealed, response: Response, most: int) -> tuple[Response, Layout, int]:
    """Check Data-In by its integrity information.

    Args: most: bytes of command data that were asked for.
    Returns: the response without Data-In where it may have none; how much of retrieved attributes,
    and of command data, there is.
    """
    data_in, at, layout = response.data_in, sealed.integrity, sealed.layout
    info = bytes(data_in[at : at + _DATA_IN_INFO])
    if len(info) < _DATA_IN_INFO:
        if error_for(response.status, decode(response.sense)) is None:
            raise _wrong("Data-In came without its integrity information", response)
        return replace(response, data_in=memoryview(b"")), layout, 0
    data, retrieved = _COUNTS_IN.unpack_from(info)
    start = layout.retrieved_offset
    if data > most or retrieved > layout.retrieved_length:
        raise _wrong("Data-In says it is longer than asked for", response)
    expected = sealed.grant.mac(
        sealed.nonce, data_in[:data], data_in[start : start + retrieved], info[: _COUNTS_IN.size]
    )
    if not hmac.compare_digest(info[_COUNTS_IN.size :], expected):
        raise _wrong("the integrity check value of Data-In is wrong", response)
    return response, replace(layout, retrieved_length=retrieved), data


def _listed_page(retrieved: Retrieved) -> bytes:
    """The Current Command page of an answer that has it in a list, in page form."""
    attributes = retrieved.attributes
    if retrieved.members:
        attributes = retrieved.members[0].attributes
    at = _page_start(attributes)
    entries = attributes[at + 1 : at + 1 + _PAGE_NUMBERS]
    values = [each.value for each in entries]
    if [len(each) for each in values] != [CHECK_LENGTH, 1, 8, 8, 8, 8]:
        return b""
    check, kind, *numbers = values
    return _PAGE.pack(
        Page.CURRENT_COMMAND,
        _PAGE.size - 8,
        check,
        kind[0],
        *(int.from_bytes(each, "big") for each in numbers),
    )


def _page_start(attributes: tuple[AttributeValue, ...]) -> int:
    """Offset of the page's entries, or the end of all entries if it has none."""
    places = (at for at, each in enumerate(attributes) if each.id == (Page.CURRENT_COMMAND, 0))
    return next(places, len(attributes))


def _without_page(retrieved: Retrieved) -> Retrieved:
    """Attributes as asked for."""
    if retrieved.members:
        return replace(retrieved, members=retrieved.members[1:])
    at = _page_start(retrieved.attributes)
    behind = at + 1 + _PAGE_NUMBERS
    return replace(retrieved, attributes=retrieved.attributes[:at] + retrieved.attributes[behind:])
