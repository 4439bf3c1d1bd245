# SPDX-License-Identifier: GPL-2.0-or-later
"""Long commands that wait: the option hold makes one wait between its steps as long as a file exists,
so each test sees it where it wants to, after its first step of 1,024 members.

Lives here: a harness with such commands, and what tests ask of it.  Not here: the tests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import AttributeValue, ObjectRef, TaskManagement, ref
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists, Request
from pyosd.wire.reply import Reply
from pyosd.wire.tracking import CommandTracking
from tests.command.test_collection import membership
from tests.expect import CHECK_CONDITION, OK, TASK_ABORTED, check
from tests.harness import Harness
from tests.waiting import until

STEP = 1024
MANY = 3 * STEP + 7
IMMED_TR = 0x80
SET_MEMBERS, REMOVE_MEMBERS, REMOVE, QUERY, CREATE = 0x88A3, 0x88A1, 0x8896, 0x88A0, 0x8894
RED = AttributeValue(Page.APPLICATION, 1, b"red")
BLUE = AttributeValue(Page.APPLICATION, 1, b"blue")


def ended(osd: Commands, collection: ObjectRef) -> CommandTracking:
    """The page when no command is in progress."""
    until(lambda: not osd.tracking(collection).active)
    return osd.tracking(collection)


create_tracking = rq.create_user_tracking_collection


@dataclass
class Held:
    """A harness whose long commands wait after each step."""

    harness: Harness
    gate: Path

    @property
    def osd(self) -> Commands:
        return self.harness.osd

    def let_go(self) -> None:
        self.gate.unlink()

    def grant_step(self) -> None:
        """One step of the one command that waits.  Returns when it has begun."""
        granted = self.gate.with_suffix(".step")
        granted.touch()
        until(lambda: not granted.exists())

    def begin_copy(self, collection: ObjectRef, action: int) -> ObjectRef:
        """QUERY or CREATE in the background, which copies from the collection.  Returns: where to."""
        tracker = ref(collection.partition_id, 0x5_0000)
        if action == QUERY:
            self.osd.create_tracking_collection(tracker.partition_id, tracker.object_id)
            request = rq.query_into(collection, [], tracker.object_id, immediate=True)
        else:
            request = create_tracking(tracker.partition_id, tracker.object_id, collection.object_id)
            request = replace(request, bits11=IMMED_TR)
        check(self.osd.reply(request), OK)
        return tracker

    def check_source_gone(self, tracker: ObjectRef, action: int) -> None:
        """The copy ended because its collection is not there, and its page says which field named it."""
        page = ended(self.osd, tracker)
        assert page.ended == CHECK_CONDITION
        assert page.sense is not None
        assert page.sense.field_pointer == (24 if action == QUERY else 40)

    def populate(self, count: int = MANY) -> ObjectRef:
        """A linked collection with so many members."""
        pid = self.osd.create_partition()
        collection = self.osd.create_collection(pid)
        for left in range(count, 0, -4096):
            self.osd.create_many(pid, min(left, 4096), attributes=[membership(collection)])
        return collection

    def first_step(self, collection: ObjectRef, action: int, done: int | None = STEP) -> None:
        """Wait until it has been done."""

        def there() -> bool:
            page = self.osd.tracking(collection)
            return (page.active, page.ended, page.done) == (action, 0xFFFF, done)

        until(there)

    def red(self, collection: ObjectRef) -> int:
        found = self.osd.get_member_attributes(collection, [RED.id])
        return sum(each.attributes[0].value == b"red" for each in found)

    def start(self, request: Request) -> Pending:
        return Pending(self.osd, request)


class Pending:
    """A request under way on the harness."""

    def __init__(self, osd: Commands, request: Request) -> None:
        self.pending = osd.submit(request)
        self.tag: int = self.pending.pending.tag  # type: ignore[attr-defined]

    def reply(self) -> Reply:
        return self.pending.reply()


def replace_collection(held: Held, collection: ObjectRef) -> None:
    """Another collection gets the id.  All objects of the partition are its members."""
    pid = collection.partition_id
    held.osd.remove_collection(collection, with_members=True)
    assert held.osd.create_collection(pid, collection.object_id) == collection
    for each in held.osd.list_objects(pid):
        held.osd.set_attributes(each, [membership(collection)])


def set_red(collection: ObjectRef, immediate: bool = False) -> Request:
    lists = AttributeLists((), (RED,))
    return rq.set_member_attributes(collection, immediate, attributes=lists)


def abort(held: Held, command: Pending) -> None:
    """ABORT TASK, and see that it was."""
    answer = held.osd.perform_task_management(TaskManagement.ABORT_TASK, command.tag)
    assert answer.response == 0
    assert command.reply().response.status == TASK_ABORTED


def check_aborted(held: Held, collection: ObjectRef, done: int = STEP) -> None:
    page = held.osd.tracking(collection)
    assert (page.active, page.ended, page.sense) == (0, TASK_ABORTED, None)
    assert page.done == done
