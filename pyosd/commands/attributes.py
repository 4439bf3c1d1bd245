# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands on attributes of any object, and those that read a value and change it in one step.

The head of unit.py says what every method raises.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyosd import requests
from pyosd.commands.dialogue import Dialogue, call
from pyosd.errors import ProtocolError
from pyosd.types import AttributeId, AttributeValue, ObjectRef
from pyosd.wire.attributes import PageForm, Retrieved, allocation_for
from pyosd.wire.cdb import (
    DEFAULT_OPTIONS,
    AttributeLists,
    AttributePage,
    Options,
    Request,
    lists_of,
)
from pyosd.wire.reply import TRANSFER_MAX

_PAGE_HEADER = 8
_OPERAND_BYTES = 8
_RETRIEVED_MAX = 8 << 20  # of a list retrieved by a command that changes something


def more_room(found: Retrieved, room: int | None, spare: int = 0) -> int:
    """Bytes to ask for after a list of attributes did not fit.

    Args:
        room: bytes that it had; None: as many as are usual.
        spare: bytes beyond those that the target says it needs.

    Raises: ProtocolError: it had room, or is longer than one command may bring: nobody makes a
        buffer of any length that a target names.
    """
    if room and found.needed <= room:
        raise ProtocolError("the target left out attributes that there was room for")
    if found.needed > TRANSFER_MAX:
        raise ProtocolError(
            f"the attributes take {found.needed} bytes, and one command brings at most "
            f"{TRANSFER_MAX >> 20} MiB: name fewer of them"
        )
    return (found.needed + spare + 7) & ~7


def get_attributes(
    obj: ObjectRef, wanted: Iterable[AttributeId]
) -> Dialogue[tuple[AttributeValue, ...]]:
    """Read attributes of any object (GET ATTRIBUTES, 888Eh).

    Args:
        wanted: ids; number ALL: the whole page; page and number ALL: every page.

    Returns: the attributes in the order of wanted; one that is undefined has an empty value.
    Raises: NotFound; OSDError 26/00: a page does not fit the object (see OSDError.attributes).
    """
    ids, room = tuple(wanted), None  # type: tuple[AttributeId, ...], int | None
    while True:
        lists = AttributeLists(ids, (), room)
        retrieved = (yield from call(requests.get_attributes(obj, attributes=lists))).retrieved
        if retrieved.complete:
            return retrieved.attributes
        room = more_room(retrieved, room, 4096)  # values may grow before the next command


def get_attribute(obj: ObjectRef, page: int, number: int) -> Dialogue[bytes]:
    """The value of one attribute; b"": it is undefined."""
    found = yield from get_attributes(obj, [AttributeId(page, number)])
    return found[0].value if found else b""


def set_attributes(
    obj: ObjectRef,
    values: Iterable[AttributeValue],
    get: Iterable[AttributeId] = (),
    *,
    if_version: bytes | None = None,
    if_members: bytes | None = None,
    options: Options = DEFAULT_OPTIONS,
) -> Dialogue[tuple[AttributeValue, ...]]:
    """Set attributes of any object, all or none, then read some (SET ATTRIBUTES, 888Fh).

    Args:
        values: an attribute with an empty value becomes undefined.
        get: attributes to read afterwards, in the same command.  If they are whole pages (number ALL), or
            have many MiB, a second command reads them.
        if_version: the version that a user object's data must have (see data_version()).
        if_members: the version that a collection's membership must have (see members_version()).

    Raises: VersionMismatch: the object has another version; nothing was set.
    """
    ids = tuple(get)
    room = min(allocation_for(ids, longest=True), _RETRIEVED_MAX)
    lists = lists_of(ids, values, room)
    request = requests.set_attributes(
        obj, if_version=if_version, if_members=if_members, attributes=lists, options=options
    )
    retrieved = (yield from call(request)).retrieved
    return retrieved.attributes if retrieved.complete else (yield from get_attributes(obj, ids))


def get_page(obj: ObjectRef, page: int, allocation_length: int = 4096) -> Dialogue[PageForm]:
    """Read a page in its fixed form (GET ATTRIBUTES, page format).

    Returns: PageForm; length 0: the page has no fixed form.
    """
    attributes = AttributePage(page, allocation_length)
    form = (yield from call(requests.get_attributes(obj, attributes=attributes))).page
    if form is None:
        raise ProtocolError(f"the target returned no attribute page {page:#x}")
    if len(form.body) < form.length and allocation_length < form.length + _PAGE_HEADER:
        return (yield from get_page(obj, page, form.length + _PAGE_HEADER + 7 & ~7))
    return form


# ---- read and change in one step ---------------------------------------------------------------


def _before(request: Request) -> Dialogue[int]:
    data = (yield from call(request)).data
    if len(data) < _OPERAND_BYTES:
        raise ProtocolError("the target did not return the value before")
    return int.from_bytes(data[:_OPERAND_BYTES], "big")


def compare_and_swap(obj: ObjectRef, compare: int, swap: int) -> Dialogue[int]:
    """Set the object's atomic word (attribute 7h/1h) to swap if it equals compare (8F84h).

    Returns: the value before; 0: it was undefined.
    """
    return (yield from _before(requests.compare_and_swap(obj, compare, swap)))


def fetch_and_add(obj: ObjectRef, addend: int) -> Dialogue[int]:
    """Add to the object's atomic counter (attribute 7h/2h), modulo 2**64 (8F85h).

    Returns: the value before; 0: it was undefined.
    """
    return (yield from _before(requests.fetch_and_add(obj, addend)))


def swap_attribute(
    obj: ObjectRef,
    attribute: AttributeId,
    compare: bytes,
    swap: bytes,
    others: Iterable[AttributeValue] = (),
) -> Dialogue[bytes]:
    """Set an attribute to swap if it equals compare (CONDITIONAL SET ATTRIBUTES, 8F87h).

    The same transaction sets others.  b"" stands for undefined.

    Returns: the value before; if it equals compare, the attributes were set.
    """
    expected, extra = AttributeValue(attribute.page, attribute.number, compare), tuple(others)
    room: int | None = None
    while True:
        request = requests.conditional_set_attributes(obj, expected, swap, extra, allocation=room)
        found = (yield from call(request)).retrieved
        if found.attributes and found.attributes[0].id == attribute:
            return found.attributes[0].value
        # A value longer than there is room for is not the one expected: nothing was changed.
        if found.complete:
            raise ProtocolError("the target did not return the value before")
        room = more_room(found, room)
