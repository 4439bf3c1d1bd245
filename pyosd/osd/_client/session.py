# SPDX-License-Identifier: GPL-2.0-or-later
"""The transport at a client: calls become OSD commands of a pyosd session.

Rights are those of the session, and end at the zone as a job's do (zone.py).
Not here: the session itself and what the environment says (connect.py).
"""

from __future__ import annotations

import os
import sys
import time
from bisect import bisect_left
from collections import OrderedDict
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from pyosd import errors, requests
from pyosd.commands.data import made_length
from pyosd.types import AttributeId, AttributeValue, ObjectRef, ObjectType, ref
from pyosd.wire.attributes import CURRENT_TYPE, LOGICAL_LENGTH
from pyosd.wire.names import NameVerb, decode_entry, decode_names, decode_params

from .._errors import (
    Conflict,
    Exists,
    Invalid,
    NoSpace,
    NotEmpty,
    NotFound,
    OSDError,
    PermissionDenied,
    StorageError,
)
from .._query import Query
from .._transport import CALL_IO_MAX, Call, Context
from .._values import NAME, decode_entries, encode_entries
from .functions import CalledFunctions
from .zone import THE_JOB, Zone, refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from _typeshed import ReadableBuffer, WriteableBuffer

    from pyosd.commands import Commands

    from .._transport import Mapping

__all__ = ["SessionTransport", "translated"]

CallAnswer = tuple[int, int, bytes]
NOTHING: CallAnswer = (0, 0, b"")
ID_BYTES = ADDEND_BYTES = 8
CALL_IDS = 4096  # ids in one answer, as in a sandbox
QUERIES_KEPT = 4
RESULT_KINDS = ("bytes", "json")
PROGRESS_FULL = 1000
PROGRESS_PACE_S = 0.05
LIST_PARTITIONS, LIST_USER_OBJECTS, LIST_COLLECTIONS, LIST_MEMBERS = range(4)
READ_PIECE = 4 << 20
NAMES_HEADER = 8  # of a list of names
USER_OBJECTS_ONLY = frozenset(
    {Call.READ, Call.WRITE, Call.APPEND, Call.TRUNCATE, Call.CLEAR, Call.PUNCH, Call.LENGTH}
    | {Call.FLUSH, Call.REMOVE, Call.SWAPATTR, Call.ADDATTR}
)
KINDS: dict[str, type[OSDError]] = {
    each.__name__: each
    for each in (
        Conflict,
        Exists,
        Invalid,
        NoSpace,
        NotEmpty,
        NotFound,
        OSDError,
        PermissionDenied,
        StorageError,
    )
}


def translate(error: errors.OSDError) -> OSDError:
    """Say in this package's exceptions what the target answered: they have the same names."""
    names = (each.__name__ for each in type(error).__mro__)
    kind: type[OSDError] = next(KINDS[name] for name in names if name in KINDS)
    return kind(error.text)


@contextmanager
def translated() -> Iterator[None]:
    try:
        yield
    except errors.Unreachable:
        raise
    except errors.OSDError as error:
        raise translate(error) from None


class SessionTransport:
    """Carries the calls of this package over a session's commands."""

    def __init__(self, commands: Commands, context: Context | None = None) -> None:
        self.commands = commands
        self._context = context or Context()
        self.zone = Zone(self._context, commands)
        self.called = CalledFunctions(commands)
        self.result = bytearray()
        self.result_kind: str | None = None
        self._progress_next = 0.0
        self._found: OrderedDict[tuple[ObjectRef, bytes], tuple[int, ...]] = OrderedDict()

    @property
    def context(self) -> Context:
        return self._context

    def call(
        self,
        op: int,
        partition_id: int,
        object_id: int,
        a: int = 0,
        b: int = 0,
        body: ReadableBuffer = b"",
    ) -> CallAnswer:
        with translated():
            obj, view = ref(partition_id, object_id), memoryview(body)
            self.check(op, obj, a, view)
            with self.of_user_object(op, obj):
                return HANDLERS[Call(op)](self, obj, a, b, view)

    def check(self, op: int, obj: ObjectRef, a: int, body: memoryview) -> None:
        """Raise PermissionDenied where the target would refuse a job in this zone the call."""
        if op not in THE_JOB and not self.called.permits(op):
            refuse(
                obj, "the function's access class does not permit it: 'osd fn put --access' sets it"
            )
        self.zone.check(op, obj, a, body)

    def write_long(
        self,
        op: int,
        partition_id: int,
        object_id: int,
        offset: int,
        data: ReadableBuffer,
        b: int = 0,
    ) -> tuple[int, int]:
        piece = memoryview(data)[:CALL_IO_MAX]
        return self.call(op, partition_id, object_id, offset, b, piece)[0], len(piece)

    def readinto(
        self, partition_id: int, object_id: int, offset: int, buffer: WriteableBuffer
    ) -> int:
        view = memoryview(buffer).cast("B")[:READ_PIECE]
        with translated():
            obj = ref(partition_id, object_id)
            self.check(Call.READ, obj, offset, memoryview(b""))
            with self.of_user_object(Call.READ, obj):
                # Not into the buffer: a target sends zeros beyond the end, and a sandbox writes none.
                data = self.commands.read(obj, offset, len(view))
        view[: len(data)] = data
        return len(data)

    @contextmanager
    def of_user_object(self, op: int, obj: ObjectRef) -> Iterator[None]:
        """Say NotFound, as a sandbox does, where what is named is there but no user object."""
        try:
            yield
        except errors.OSDError:
            if op not in USER_OBJECTS_ONLY:
                raise
            found = self.type_of(obj, 0, 0, memoryview(b""))[0]
            if found in (0, ObjectType.USER_OBJECT):  # 0: there is nothing
                raise
            raise NotFound(f"{obj} is no user object") from None

    def block(self, partition_id: int, object_id: int, offset: int, size: int) -> memoryview | None:
        """None: nothing is in memory before it is asked for."""
        del partition_id, object_id, offset, size
        return None

    def map(self, partition_id: int, object_id: int) -> Mapping | None:
        """Nothing to map here."""
        return None

    # -- the job itself

    def finish(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> NoReturn:
        raise Invalid("a script at a client ends by ending")

    def progress(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        """Say so on standard error, where that is wanted; as seldom as a job's record would."""
        now = time.monotonic()
        if os.environ.get("IOSD_PROGRESS") and now >= self._progress_next:
            self._progress_next = now + PROGRESS_PACE_S
            share = "" if a > PROGRESS_FULL else f"{a / PROGRESS_FULL:.0%} "
            print(f"progress: {share}{bytes(body).decode(errors='replace')}", file=sys.stderr)
        return NOTHING

    def leave_result(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        del self.result[a:]
        self.result += body
        self.result_kind = RESULT_KINDS[b]
        return NOTHING

    # -- functions

    def enter(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        return self.called.enter(obj, bytes(body), a)

    def send_code(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        return 0, 0, self.called.piece(a)

    def leave(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        self.called.leave()
        return NOTHING

    # -- existence and life cycle

    def type_of(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        try:
            (found,) = self.commands.get_attributes(obj, [CURRENT_TYPE])
        except errors.NotFound:
            return NOTHING
        return found.uint, 0, b""

    def create_partition(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        return self.commands.create_partition(obj.partition_id), 0, b""

    def remove_partition(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        self.commands.remove_partition(obj.partition_id, bool(a))
        return NOTHING

    def create(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        if a == 1:
            return self.commands.create(obj.partition_id, obj.object_id).object_id, 0, b""
        if obj.object_id:
            raise Invalid("many objects are created with ids of the target's choice")
        return self.commands.create_many(obj.partition_id, a)[0].object_id, 0, b""

    def remove(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        self.commands.remove(obj)
        return NOTHING

    def create_collection(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        made = self.commands.create_collection(obj.partition_id, obj.object_id)
        return made.object_id, 0, b""

    def remove_collection(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        self.commands.remove_collection(obj, bool(a))
        return NOTHING

    # -- membership

    def collection_add(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        if self.type_of(obj, 0, 0, body)[0] != ObjectType.COLLECTION:
            raise NotFound(f"no collection {obj}")
        self.commands.add_member(obj, ref(obj.partition_id, a))
        return NOTHING

    def collection_drop(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        member = ref(obj.partition_id, a)
        if not self.commands.remove_member(obj, member):
            raise NotFound(f"{member} is not in {obj}")
        return NOTHING

    # -- listing and attributes

    def list_ids(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        page = self.commands.list_page(obj, b, collections=a == LIST_COLLECTIONS)
        ids = b"".join(each.to_bytes(ID_BYTES, "big") for each in page.ids)
        more = page.continuation_id if page.continuation_id > b else 0
        return more, len(page.ids), ids

    def getattr(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        wanted = [AttributeId(*NAME.unpack_from(body, at)) for at in range(0, len(body), NAME.size)]
        return 0, 0, as_entries(self.commands.get_attributes(obj, wanted))

    def query(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        """Ids from a on, of one QUERY: asked when an iteration begins, handed out in pieces."""
        key = (obj, bytes(body))
        found = self._found.pop(key, None) if a else None
        if found is None:
            found = self.commands.query_ids(obj, Query.decode(key[1]))
        at = bisect_left(found, a)
        piece, rest = found[at : at + CALL_IDS], found[at + CALL_IDS :]
        if rest:
            self._found[key] = found
            while len(self._found) > QUERIES_KEPT:
                self._found.popitem(last=False)
        ids = b"".join(each.to_bytes(ID_BYTES, "big") for each in piece)
        return rest[0] if rest else 0, len(piece), ids

    def swapattr(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        expected, new = bytes(body[:b]), bytes(body[b:])
        attribute = AttributeId(a >> 32, a & 0xFFFF_FFFF)
        before = self.commands.swap_attribute(obj, attribute, expected, new)
        return before == expected, 0, before

    def addattr(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        """Swap until nobody else came in between."""
        attribute = AttributeId(a >> 32, a & 0xFFFF_FFFF)
        before = self.commands.get_attribute(obj, attribute.page, attribute.number)
        while True:
            if len(before) not in (0, ADDEND_BYTES):
                raise Invalid(f"{obj}: the attribute is no number of 8 bytes")
            number = int.from_bytes(before, "big")
            total = (number + b) % (1 << 64)
            expected = before
            new = total.to_bytes(ADDEND_BYTES, "big")
            before = self.commands.swap_attribute(obj, attribute, expected, new)
            if before == expected:
                return number, 0, b""

    def setattr(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        values = [AttributeValue(*entry) for entry in decode_entries(bytes(body))]
        self.commands.set_attributes(obj, values)
        return NOTHING

    def listattr(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        found = self.commands.get_attributes(obj, [AttributeId(a, 0xFFFF_FFFF)])
        return 0, 0, as_entries(tuple(each for each in found if each.value)[b:])

    def names(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        """LOOKUP or LIST.  A path of the zone leads to an object in the zone."""
        try:
            params = decode_params(body)
        except ValueError as error:
            raise Invalid(str(error)) from None
        if not params.verb.only_reads:
            raise Invalid("a script only looks names up")
        if params.verb is NameVerb.LOOKUP:
            reply = self.commands.call(requests.names(obj, params))
            entry = decode_entry(reply.data)
            self.zone.reached.add(entry.object)
            kind = ObjectType.COLLECTION if entry.is_directory else ObjectType.USER_OBJECT
            whole = not entry.object.object_id
            return entry.object.object_id, ObjectType.PARTITION if whole else kind, b""
        reply = self.commands.call(requests.names(obj, params, CALL_IO_MAX))
        found = decode_names(reply.data, obj.partition_id, padded=reply.padded)
        self.zone.reached.update(each.object for each in found.entries)
        return len(found.entries), found.more, bytes(reply.data[NAMES_HEADER:])

    # -- data

    def read(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        data = bytes(self.commands.read(obj, a, min(b, CALL_IO_MAX)))
        return len(data), 0, data

    def write(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        self.commands.write(obj, a, body)
        return NOTHING

    def append(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        return self.commands.append(obj, body), 0, b""

    def truncate(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        value = a.to_bytes(8, "big")
        attribute = AttributeValue(LOGICAL_LENGTH.page, LOGICAL_LENGTH.number, value)
        self.commands.set_attributes(obj, [attribute])
        return NOTHING

    def clear(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        self.commands.clear(obj, a, b)
        return NOTHING

    def punch(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        self.commands.punch(obj, a, b)
        return NOTHING

    def length(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        found, kind = self.commands.get_attributes(obj, [LOGICAL_LENGTH, CURRENT_TYPE])
        if found.value:
            return found.uint, 0, b""
        if kind.uint != ObjectType.USER_OBJECT:
            raise NotFound(f"{obj} is no user object")
        return self.commands.carry(made_length(obj)), 0, b""  # functions make the data

    def flush(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> CallAnswer:
        self.commands.flush(obj)
        return NOTHING

    def not_here(self, obj: ObjectRef, a: int, b: int, body: memoryview) -> NoReturn:
        raise Invalid("descriptors are not passed over a network")


HANDLERS: dict[Call, Callable[[SessionTransport, ObjectRef, int, int, memoryview], CallAnswer]] = {
    Call.FINISH: SessionTransport.finish,
    Call.PROGRESS: SessionTransport.progress,
    Call.RESULT: SessionTransport.leave_result,
    Call.TYPE: SessionTransport.type_of,
    Call.CREATE_PARTITION: SessionTransport.create_partition,
    Call.REMOVE_PARTITION: SessionTransport.remove_partition,
    Call.CREATE: SessionTransport.create,
    Call.REMOVE: SessionTransport.remove,
    Call.CREATE_COLLECTION: SessionTransport.create_collection,
    Call.REMOVE_COLLECTION: SessionTransport.remove_collection,
    Call.COLLECTION_ADD: SessionTransport.collection_add,
    Call.COLLECTION_DROP: SessionTransport.collection_drop,
    Call.LIST: SessionTransport.list_ids,
    Call.GETATTR: SessionTransport.getattr,
    Call.SETATTR: SessionTransport.setattr,
    Call.LISTATTR: SessionTransport.listattr,
    Call.QUERY: SessionTransport.query,
    Call.SWAPATTR: SessionTransport.swapattr,
    Call.ADDATTR: SessionTransport.addattr,
    Call.READ: SessionTransport.read,
    Call.WRITE: SessionTransport.write,
    Call.APPEND: SessionTransport.append,
    Call.TRUNCATE: SessionTransport.truncate,
    Call.CLEAR: SessionTransport.clear,
    Call.PUNCH: SessionTransport.punch,
    Call.LENGTH: SessionTransport.length,
    Call.FLUSH: SessionTransport.flush,
    Call.SHARE: SessionTransport.not_here,
    Call.UNSHARE: SessionTransport.not_here,
    Call.ENTER: SessionTransport.enter,
    Call.CODE: SessionTransport.send_code,
    Call.LEAVE: SessionTransport.leave,
    Call.NAMES: SessionTransport.names,
}


def as_entries(attributes: tuple[AttributeValue, ...]) -> bytes:
    return b"".join(encode_entries((each.page, each.number, each.value) for each in attributes))
