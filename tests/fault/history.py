# SPDX-License-Identifier: GPL-2.0-or-later
"""One history of changes for all fault loops, and what must be true of a store it was cut in.

Not here: what makes it fail, and where (test_*.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from pyosd import Criterion
from pyosd.commands import Commands
from pyosd.errors import OSDError, TargetBusy, Unreachable
from pyosd.types import AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import Page
from tests.harness import Harness

GREEN = AttributeValue(Page.APPLICATION, 1, b"green")
STEPS = 17


def history(osd: Commands) -> Iterator[None]:
    """One of every kind of change; yields after each so that the caller sees where it failed."""
    pid = osd.create_partition(0x5_0000)
    yield
    collection = osd.create_collection(pid, 0x9_0000)
    yield
    obj = osd.create(pid, 0x1_0000, attributes=[GREEN])
    yield
    osd.write(obj, 0, b"w" * 100_000)
    yield
    joined = AttributeValue(Page.USER_COLLECTIONS, 1, collection.object_id.to_bytes(8, "big"))
    osd.set_attributes(obj, [joined, AttributeValue(Page.APPLICATION, 2, b"two")])
    yield
    osd.append(obj, b"a" * 5000)
    yield
    osd.clear(obj, 10, 4096)
    yield
    osd.punch(obj, 50_000, 1000)
    yield
    osd.create_and_write(pid, b"second", requested_id=0x1_0001)
    yield
    osd.remove(ref(pid, 0x1_0001))
    yield
    osd.remove_collection(collection, with_members=True)
    yield
    osd.flush_partition(pid)
    yield
    osd.set_attributes(ref(pid), [AttributeValue(Page.INDEX, Page.APPLICATION, b"\1")])
    yield
    assert osd.copy(obj, pid, 0x1_0002) == ref(pid, 0x1_0002)
    yield
    tracking = osd.create_tracking_collection(pid, 0x9_0001)
    yield
    osd.query_into(ref(pid), [Criterion(Page.APPLICATION, 2, b"two", b"two")], tracking)
    yield
    osd.remove_member_objects(tracking)
    yield


def consistent(osd: Commands) -> None:
    """After every history lists, counts and attributes agree, and everything can be read."""
    for pid in osd.list_partitions():
        objects, collections = osd.list_objects(pid), osd.list_collections(pid)
        count = osd.get_attribute(ref(pid), Page.PARTITION_INFORMATION, 0xC1)
        assert int.from_bytes(count, "big") == len(objects) + len(collections)
        members = {each: osd.list_members(each) for each in collections if linked(osd, each)}
        for obj in objects:
            length = int.from_bytes(osd.get_attribute(obj, Page.USER_INFORMATION, 0x82), "big")
            assert len(osd.read(obj, 0, length + 1)) == length
            cid = osd.get_attribute(obj, Page.USER_COLLECTIONS, 1)
            inside = [c.object_id.to_bytes(8, "big") for c, who in members.items() if obj in who]
            assert inside == ([cid] if cid else [])


def linked(osd: Commands, collection: ObjectRef) -> bool:
    """Whether members join and leave it by their own attributes."""
    return osd.get_attribute(collection, Page.COLLECTION_INFORMATION, 0xA) == b"\0"


def acknowledged(osd: Commands, done: int) -> None:
    """After so many steps of the history."""
    pid, obj = 0x5_0000, ref(0x5_0000, 0x1_0000)
    assert done < 1 or pid in osd.list_partitions()
    if 2 <= done < 10:  # the next step but one removes it
        assert ref(pid, 0x9_0000) in osd.list_collections(PartitionId(pid))
    if done >= 10:
        assert ref(pid, 0x1_0001) not in osd.list_objects(PartitionId(pid))
    if done >= STEPS - 1:  # the last step removes what the query found
        assert done < STEPS or osd.list_objects(PartitionId(pid)) == []
        return
    if done >= 3:
        assert osd.get_attribute(obj, GREEN.page, GREEN.number) == b"green"
    if done >= 4:
        length = int.from_bytes(osd.get_attribute(obj, Page.USER_INFORMATION, 0x82), "big")
        assert length in {
            4: (100_000, 105_000),
            5: (100_000, 105_000),
            6: (105_000,),
            7: (105_000, 104_000),
        }.get(done, (104_000,))
    if done >= 5:
        assert osd.get_attribute(obj, GREEN.page, 2) == b"two"
    if done >= 14:
        assert osd.read(ref(pid, 0x1_0002), 0, 200_000) == osd.read(obj, 0, 200_000)


SENSE_KEYS = {0x3, 0x4, 0x7}
"""MEDIUM ERROR, HARDWARE ERROR, DATA PROTECT: what a failing store may be reported as."""


def run_history(harness: Harness) -> bool:
    """Run the history; returns whether a command failed, which must be told in the right words."""
    return run_steps(harness) < STEPS


def is_told_right(error: OSDError) -> bool:
    """Whether a command that failed says why in the right words."""
    no_memory_to_take_it = isinstance(error, TargetBusy)
    return no_memory_to_take_it or error.sense_key in SENSE_KEYS


def run_steps(harness: Harness) -> int:
    """Run the history up to a command that fails, which must be told in the right words; returns
    how many steps were acknowledged."""
    done = 0
    try:
        for _ in history(harness.osd):
            done += 1
    except Unreachable:
        raise AssertionError(f"the harness died:\n{harness.log.read_text()}") from None
    except OSDError as error:
        assert is_told_right(error), error
    return done
