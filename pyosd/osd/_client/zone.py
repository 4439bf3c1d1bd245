# SPDX-License-Identifier: GPL-2.0-or-later
"""The zone of a script at a client.  The target enforces the zone of a job; this file enforces that of a
script that runs here.  The rules are those of target/exec/session/serve.c and attrs.c.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from pyosd import errors
from pyosd.types import FIRST_ID, ObjectRef, ObjectType, ref
from pyosd.wire.attributes import Page

from .._errors import PermissionDenied
from .._query import PAGE_END as PAGE_PARTITION_BASE
from .._transport import Call
from .._values import decode_entries

if TYPE_CHECKING:
    from pyosd.commands import Commands

    from .._transport import Context

__all__ = ["Zone"]

THE_JOB = frozenset({Call.FINISH, Call.PROGRESS, Call.RESULT, Call.ENTER, Call.CODE, Call.LEAVE})
ROOT_ONLY = frozenset({Call.CREATE_PARTITION, Call.REMOVE_PARTITION})
MEMBERS = frozenset({Call.REMOVE_COLLECTION, Call.COLLECTION_ADD, Call.COLLECTION_DROP})
WHOLE_PARTITION = MEMBERS | {Call.CREATE, Call.CREATE_COLLECTION}
SETS = frozenset({Call.SETATTR, Call.SWAPATTR, Call.ADDATTR})
PAGE_RESERVED = 0xC000_0000
REL_COLLECTIONS, REL_SECURITY = 4, 5
LIST_PARTITIONS, LIST_USER_OBJECTS, LIST_COLLECTIONS, LIST_MEMBERS = range(4)


def refuse(obj: ObjectRef, why: str = "outside the job's zone") -> NoReturn:
    raise PermissionDenied(f"{obj}: {why}")


class Zone:
    """The zone of the script's context, and the questions asked of it before every call."""

    def __init__(self, context: Context, commands: Commands) -> None:
        self.type = context.zone_type
        self.id = ref(*context.zone)
        self.has_job = context.job != (0, 0)
        self.commands = commands
        self.reached = set[ObjectRef]()  # by a path below the directory that is the zone

    def check(self, op: int, obj: ObjectRef, a: int, body: memoryview) -> None:
        """Raise PermissionDenied where the target would refuse a job this call."""
        if op in THE_JOB or (self.type == ObjectType.ROOT and op not in SETS and op not in MEMBERS):
            return
        if op == Call.TYPE and not (self.has_job or obj.partition_id):
            return  # osd.job, which is asked whether it exists
        if op in ROOT_ONLY and self.type != ObjectType.ROOT:
            refuse(obj)
        if op in WHOLE_PARTITION:
            if not self.owns(obj.partition_id):
                refuse(obj)
            if op in MEMBERS and obj.object_id < FIRST_ID:
                refuse(obj, "the target keeps this collection itself")
        elif op == Call.LIST:
            self.check_list(obj, a)
        elif op == Call.QUERY and not obj.object_id:
            if not self.owns(obj.partition_id):
                refuse(obj)
        else:
            self.check_object(obj)
        if op in SETS:
            self.check_pages(op, obj, a, body)

    def owns(self, partition_id: int) -> bool:
        """Whether all of a partition is inside."""
        if self.type == ObjectType.PARTITION:
            return partition_id == self.id.partition_id
        return self.type == ObjectType.ROOT

    def check_object(self, obj: ObjectRef) -> None:
        """Raise PermissionDenied unless the object is inside; members are looked up each time."""
        if self.owns(obj.partition_id) or obj == self.id:
            return
        if self.type != ObjectType.COLLECTION or obj.partition_id != self.id.partition_id:
            refuse(obj)
        if obj not in self.reached and (not obj.object_id or not self.has_member(obj)):
            refuse(obj)

    def has_member(self, obj: ObjectRef) -> bool:
        """Whether the collection that is the zone has an object."""
        try:
            page = self.commands.list_page(self.id, obj.object_id, 1)
        except errors.NotFound:
            return False
        return page.ids[:1] == (obj.object_id,)

    def check_list(self, obj: ObjectRef, kind: int) -> None:
        """The container of a list must be completely inside the zone."""
        if kind == LIST_PARTITIONS:
            refuse(obj)
        if kind in (LIST_USER_OBJECTS, LIST_COLLECTIONS) and not self.owns(obj.partition_id):
            refuse(obj)
        if kind == LIST_MEMBERS:
            self.check_object(obj)

    def check_pages(self, op: int, obj: ObjectRef, a: int, body: memoryview) -> None:
        """Scripts set no policies, no security, and membership only where they own the partition.

        A collection that is the zone is there to be read.
        """
        if self.type == ObjectType.COLLECTION and obj == self.id:
            refuse(obj)
        if op != Call.SETATTR:
            self.check_page(obj, a >> 32)
            return
        for page, _, _ in decode_entries(bytes(body)):
            self.check_page(obj, page)

    def check_page(self, obj: ObjectRef, page: int) -> None:
        """Raise PermissionDenied for a page that no script may set."""
        relative = page % PAGE_PARTITION_BASE
        fine = page < PAGE_RESERVED and page != Page.JOB_CONTROL and relative != REL_SECURITY
        if fine and page == REL_COLLECTIONS:
            fine = self.owns(obj.partition_id)
        if not fine:
            refuse(obj, "scripts may not set this attribute page")
