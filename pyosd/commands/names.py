# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands on names of objects (docs/names.md).

directory is a partition, which is its own root directory, or a directory in it.  A path is relative to
it: names with "/" between them.  A str is sent as UTF-8.  If directory is the root, ref(), the first name
of a path is a partition's.  The head of unit.py says what every method raises.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyosd import _core, requests
from pyosd.commands.dialogue import Dialogue, Sleep, call
from pyosd.errors import IntegrityError, Invalid, OSDError, ProtocolError, TargetBusy
from pyosd.types import AttributeId, AttributeValue, Buffer, ObjectRef
from pyosd.wire.cdb import NO_ATTRIBUTES, AttributeLists, lists_of
from pyosd.wire.names import (
    FOUND_BYTES,
    NO_NAME_FLAGS,
    NamedData,
    NameEntry,
    NameFlag,
    NameList,
    NameParams,
    NameVerb,
    decode_entry,
    decode_found,
    decode_names,
)
from pyosd.wire.reply import Reply

_LIST_ROOM = 256 << 10
_NO_LIST = 8  # bytes of the list of retrieved attributes: the entries have them
# A transaction on a directory that many clients change may lose to others again and again.  Then the
# target answers BUSY, and has done nothing.
BUSY_MOST, BUSY_S = 20, 0.001
VERB_FIELD, MOST_FIELD, CHECKSUM_FIELD = 0, 8, 16
"""Bytes of the parameters, for is_about()."""


def _bytes(path: str | bytes) -> bytes:
    return path.encode("utf-8", "surrogateescape") if isinstance(path, str) else path


def _act(
    directory: ObjectRef, params: NameParams, attributes: Iterable[AttributeValue] = ()
) -> Dialogue[NameEntry]:
    return (yield from act(directory, params, attributes))[0]


def act(
    directory: ObjectRef,
    params: NameParams,
    attributes: Iterable[AttributeValue] = (),
    wanted: Iterable[AttributeId] = (),
) -> Dialogue[tuple[NameEntry, tuple[AttributeValue, ...]]]:
    """Any verb but LIST, which also sets attributes of the object and then reads some.

    Returns: the entry; the attributes in the order asked for.
    Raises: as the verbs; Invalid: a wanted page does not fit the type of the object.
    """
    request = requests.names(directory, params, attributes=lists_of(wanted, attributes))
    for lost in range(1, BUSY_MOST + 1):
        try:
            reply = yield from call(request)
        except TargetBusy:
            if lost == BUSY_MOST:
                raise
            yield Sleep(BUSY_S * lost)
        else:
            break
    return entry_of(reply), reply.attributes


def entry_of(reply: Reply) -> NameEntry:
    """The entry in an answer.  Raises: ProtocolError: there is none."""
    try:
        return decode_entry(reply.data)
    except ValueError as error:
        raise ProtocolError(str(error)) from None


def _flags(*chosen: tuple[bool, NameFlag]) -> NameFlag:
    flags = NO_NAME_FLAGS
    for wanted, flag in chosen:
        if wanted:
            flags |= flag
    return flags


def lookup(directory: ObjectRef, path: str | bytes) -> Dialogue[NameEntry]:
    """Find the object at a path, in one command (READ NAMES, 8F88h).

    Raises: NoSuchName; NotADirectory: a name before the last is no directory.
    """
    return (yield from _act(directory, NameParams(NameVerb.LOOKUP, _bytes(path))))


def list_names(
    directory: ObjectRef,
    path: str | bytes = b"",
    *,
    after: str | bytes = b"",
    prefix: str | bytes = b"",
    most: int = 0,
    details: bool = False,
    wanted: Iterable[AttributeId] = (),
) -> Dialogue[NameList]:
    """List entries of a directory, in the order of their bytes (READ NAMES, 8F88h).

    Args:
        after: list only names that follow this one.
        prefix: list only names that begin with this.
        most: number of entries; 0: as many as fit one answer of 256 KiB.
        details: return lengths, times and versions, too.
        wanted: attributes to return of each entry, if objects of its type have their pages.

    Returns: NameList; if NameList.more, continue after its last name.
    Raises: NoSuchName; NotADirectory.
    """
    each = tuple(wanted)
    flags = _flags((details, NameFlag.ATTRIBUTES), (bool(each), NameFlag.EACH))
    params = NameParams(
        NameVerb.LIST, _bytes(path), _bytes(after), _bytes(prefix), flags=flags, most=most
    )
    lists = AttributeLists(each, (), _NO_LIST) if each else NO_ATTRIBUTES
    reply = yield from call(requests.names(directory, params, _LIST_ROOM, attributes=lists))
    try:
        found = decode_names(reply.data, directory.partition_id, padded=reply.padded)
    except ValueError as error:
        raise ProtocolError(str(error)) from None
    if found.more and found.entries[-1].name <= params.other:
        raise ProtocolError("the target's list of names does not go on")
    return found


def create_name(
    directory: ObjectRef,
    path: str | bytes,
    *,
    exclusive: bool = True,
    attributes: Iterable[AttributeValue] = (),
) -> Dialogue[NameEntry]:
    """Make a user object with a name, in one transaction (CHANGE NAMES, 8F89h).

    Args:
        exclusive: fail if the name exists; if False, return the object that has it.
        attributes: to set on the object.

    Raises: NameExists; NoSuchName: a directory of the path; NoSpace.
    """
    flags = _flags((not exclusive, NameFlag.OPEN_EXISTING))
    params = NameParams(NameVerb.CREATE, _bytes(path), flags=flags)
    return (yield from _act(directory, params, attributes))


def put_name(
    directory: ObjectRef,
    path: str | bytes,
    data: Buffer,
    *,
    replace: bool = False,
    expected: int = 0,
    attributes: Iterable[AttributeValue] = (),
) -> Dialogue[NameEntry]:
    """Make a user object with data and a name, in one command (CHANGE NAMES, 8F89h).

    Others see the name with all data, or the object that had the name before.

    Args:
        directory: a partition, or a directory in it.
        data: at most 1 MiB, which the target compares with a checksum before it stores them.
        replace: take the name from an object that has it; without another name it is removed.
        expected: id of the object that must have the name now (compare and swap).
        attributes: to set on the object.

    Raises: NameExists; NameChanged; NoSuchName: a directory of the path; IsADirectory; NoSpace;
        IntegrityError: the network has changed the data; nothing was stored.
    """
    params = put_params(_bytes(path), data, replace=replace, expected=expected)
    try:
        return (yield from _act(directory, params, attributes))
    except Invalid as error:
        raise put_failed(error) from None


def put_params(path: bytes, data: Buffer, *, replace: bool, expected: int = 0) -> NameParams:
    """The parameters of put_name()."""
    return NameParams(
        NameVerb.PUT,
        path,
        flags=_flags((replace, NameFlag.REPLACE), (True, NameFlag.CHECKSUM)),
        expected=expected,
        data=data,
        checksum=_core.crc32c(data),
    )


def put_failed(error: OSDError) -> OSDError:
    """The exception for a refusal of put_params(): IntegrityError if it is about the checksum."""
    if is_about(error, CHECKSUM_FIELD):
        return IntegrityError(0, 0, 0, "the data are not those that were sent")
    return error


def is_about(error: OSDError, field: int) -> bool:
    """Whether a command on names was refused because of a byte of its parameters."""
    sense = error.sense
    return sense is not None and sense.field_in_data_out and sense.field_pointer == field


def lookup_data(
    directory: ObjectRef, path: str | bytes, most: int
) -> Dialogue[tuple[NameEntry, NamedData | None]]:
    """Find the object at a path, and read its first bytes, in one command (READ NAMES, 8F88h).

    Args:
        most: bytes to read, 1 to 1 MiB.

    Returns: the entry, and the data; None: it is a directory, or functions make the data, or they cannot
        be read.  read() gives the reason then.
    Raises: as lookup().
    """
    return (yield from find(directory, path, most))[:2]


def find(
    directory: ObjectRef, path: str | bytes, most: int, wanted: Iterable[AttributeId] = ()
) -> Dialogue[tuple[NameEntry, NamedData | None, tuple[AttributeValue, ...]]]:
    """lookup_data(), and attributes of the object in the order asked for, which may be later ones.

    Raises: as lookup(); Invalid: a wanted page does not fit the type of the object.
    """
    params = NameParams(NameVerb.LOOKUP, _bytes(path), most=most)
    room, lists = FOUND_BYTES + most, lists_of(wanted, ())
    reply = yield from call(requests.names(directory, params, room, attributes=lists))
    try:
        return *decode_found(reply.data, padded=reply.padded), reply.attributes
    except ValueError as error:
        raise ProtocolError(str(error)) from None


def make_directory(
    directory: ObjectRef, path: str | bytes, *, exclusive: bool = True
) -> Dialogue[NameEntry]:
    """Make a directory (CHANGE NAMES, 8F89h); exclusive: as for create_name().

    Raises: NameExists; NoSuchName: a directory of the path; NoSpace.
    """
    flags = _flags((not exclusive, NameFlag.OPEN_EXISTING))
    return (yield from _act(directory, NameParams(NameVerb.MKDIR, _bytes(path), flags=flags)))


def link(
    directory: ObjectRef,
    path: str | bytes,
    target: ObjectRef | str | bytes,
    *,
    replace: bool = False,
    expected: int = 0,
) -> Dialogue[NameEntry]:
    """Give an object one more name (CHANGE NAMES, 8F89h).

    Args:
        path: the new name.
        target: the object, by another path, or by its ids if directory is a partition.  If directory is
            the root, the partition.
        replace: take the name from an object that has it; without another name it is removed.
        expected: id of the object that must have the name now (compare and swap).

    Raises: NameExists; NameChanged: another object than expected has the name; NoSuchName.
    """
    flags = _flags((replace, NameFlag.REPLACE))
    if isinstance(target, ObjectRef):
        other, object_id = b"", int(target.object_id or target.partition_id)
    else:
        other, object_id = _bytes(target), 0
    params = NameParams(
        NameVerb.LINK, _bytes(path), other, flags=flags, object_id=object_id, expected=expected
    )
    return (yield from _act(directory, params))


def unlink(directory: ObjectRef, path: str | bytes, *, expected: int = 0) -> Dialogue[NameEntry]:
    """Remove a name of a user object; with its last name the object is removed (CHANGE NAMES, 8F89h).

    Raises: NoSuchName; IsADirectory; NameChanged: another object than expected has the name.
    """
    return (
        yield from _act(directory, NameParams(NameVerb.UNLINK, _bytes(path), expected=expected))
    )


def remove_directory(
    directory: ObjectRef, path: str | bytes, *, expected: int = 0
) -> Dialogue[NameEntry]:
    """Remove an empty directory (CHANGE NAMES, 8F89h).

    Raises: NoSuchName; NotADirectory; NotEmpty; NameChanged.
    """
    return (yield from _act(directory, NameParams(NameVerb.RMDIR, _bytes(path), expected=expected)))


def rename(
    directory: ObjectRef,
    path: str | bytes,
    new_path: str | bytes,
    *,
    replace: bool = False,
    exchange: bool = False,
    expected: int = 0,
) -> Dialogue[NameEntry]:
    """Move a name, in one transaction (CHANGE NAMES, 8F89h).

    Args:
        new_path: relative to the same directory.
        replace: take the new name from a file or an empty directory that has it.
        exchange: exchange both names; excludes replace.
        expected: id of the object that must have the old name.

    Raises: NameExists; NoSuchName; NotEmpty; NameChanged; Invalid: a directory would move below
        itself.
    """
    flags = _flags((replace, NameFlag.REPLACE), (exchange, NameFlag.EXCHANGE))
    params = NameParams(
        NameVerb.RENAME, _bytes(path), _bytes(new_path), flags=flags, expected=expected
    )
    return (yield from _act(directory, params))
