# SPDX-License-Identifier: GPL-2.0-or-later
"""A model of the store against the real one: partitions, linked collections, user objects,
attributes, sparse writes, append, clear, punch, truncation and lists in parts; restarts in between.

Not here: tracking collections, queries, member commands, copies (members_machine.py).
"""

from __future__ import annotations

import hashlib
import sys
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.errors import StopTest
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from pyosd import requests as rq
from pyosd.types import AttributeId, AttributeValue, PartitionId, ref
from pyosd.wire.attributes import CURRENT_APPEND_START, CURRENT_OBJECT_ID, LOGICAL_LENGTH, Page
from pyosd.wire.cdb import AttributeLists, Request
from tests.expect import (
    ANOTHER_VERSION,
    BEYOND_END,
    LIST_FIELD,
    NO_OBJECT,
    NO_PARTITION,
    NOT_EMPTY,
    OBJECT_TAKEN,
    OK,
    PARTITION_TAKEN,
    Outcome,
    check,
)
from tests.harness import Harness
from tests.model import ObjectModel, PartitionModel, StoreModel

LONGEST = 3 << 20
VERSION_BYTES = 12
PARTITIONS = [0x10000, 0x10001, 0x10002, 0x2_0000, 2**64 - 1]
OBJECTS = [0x10000 + each for each in range(12)] + [0x1_8000, 2**62 - 1, 2**62 + 3, 2**64 - 2]
PAGES = [0xA, 0x1_0000, 0x1_0001, 0xF000_0001]

partition_ids = st.sampled_from(PARTITIONS)
object_ids = st.sampled_from(OBJECTS)
offsets = st.one_of(
    st.integers(0, 300),
    st.sampled_from([511, 512, 4095, 4096, 4097, 65535, 65536, 1 << 20, (1 << 20) + 1, 2 << 20]),
)
lengths = st.one_of(st.integers(0, 300), st.sampled_from([4095, 4096, 4097, 65536, 65537, 200_000]))
bytes_ = st.integers(0, 250)
attribute_ids = st.tuples(st.sampled_from(PAGES), st.integers(1, 4))
values = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([0, 1500, 5000, 0xFFFE]).map(lambda length: b"v" * length),
)


def filled(length: int, byte: int) -> bytes:
    return bytes((byte + at) % 251 + 1 for at in range(min(length, 251))) * (length // 251 + 1)


class StoreMachine(RuleBasedStateMachine):
    """Every rule runs one command and compares its answer with the model's."""

    harness: Harness
    restarts: bool
    failures: ClassVar[list[BaseException]]

    def __init__(self) -> None:
        super().__init__()
        self.outside = (
            sys.exception()
        )  # hypothesis may be handling one while it tries a history again

    @initialize()
    def start(self) -> None:
        """A harness that an earlier history ended is started again: how a history ends depends on that
        history alone, or hypothesis calls the strategies flaky and hides the failure."""
        if self.harness.ended():
            self.harness.start()
        self.osd = self.harness.osd
        self.osd.format_osd()
        self.model = StoreModel()
        self.versions: dict[tuple[int, int, bytes], bytes] = {}
        self.create_partition(0)  # most of what follows needs one

    def expect(self, request: Request, outcome: Outcome) -> Any:
        return check(self.harness.osd.reply(request), outcome)

    def find(self, pid: int, oid: int) -> tuple[Outcome, ObjectModel]:
        """How a command on that user object ends, and the object if it is there."""
        partition = self.model.partitions.get(pid)
        if partition is None:
            return NO_PARTITION, ObjectModel()
        if oid not in partition.objects:
            return NO_OBJECT, ObjectModel()
        return OK, partition.objects[oid]

    def is_collection(self, pid: int, oid: int) -> bool:
        """Then attribute commands reach it too, but not by pages of user objects."""
        partition = self.model.partitions.get(pid)
        return partition is not None and partition.is_collection(oid)

    # ---- life cycle ----

    @rule(requested=st.one_of(st.just(0), partition_ids))
    def create_partition(self, requested: int) -> None:
        if requested in self.model.partitions:
            self.expect(rq.create_partition(requested), PARTITION_TAKEN)
            return
        assert self.harness.osd.create_partition(requested) == self.model.give_id(requested)
        made = requested or self.model.next_id - 1
        self.model.partitions[made] = PartitionModel()

    @rule(pid=partition_ids, contents=st.booleans())
    def remove_partition(self, pid: int, contents: bool) -> None:
        partition = self.model.partitions.get(pid)
        outcome = OK
        if partition is None:
            outcome = NO_PARTITION
        elif not contents and not partition.empty():
            outcome = NOT_EMPTY
        self.expect(rq.remove_partition(pid, contents), outcome)
        if outcome is OK:
            del self.model.partitions[pid]

    @rule(pid=partition_ids, requested=st.one_of(st.just(0), object_ids), attribute=attribute_ids)
    def create(self, pid: int, requested: int, attribute: tuple[int, int]) -> None:
        value = AttributeValue(*attribute, b"born")
        lists = AttributeLists((CURRENT_OBJECT_ID, value.id), (value,))
        request = rq.create(pid, requested, attributes=lists)
        partition = self.model.partitions.get(pid)
        if partition is None:
            self.expect(request, NO_PARTITION)
        elif requested and partition.taken(requested):
            self.expect(request, OBJECT_TAKEN)
        else:
            reply = self.expect(request, OK)
            made = partition.give_id(requested)
            assert reply.attribute(CURRENT_OBJECT_ID).uint == made
            assert reply.attribute(value.id) == value
            partition.objects[made] = ObjectModel(attributes={attribute: b"born"})

    @rule(pid=partition_ids, count=st.integers(2, 5))
    def create_many(self, pid: PartitionId, count: int) -> None:
        partition = self.model.partitions.get(pid)
        if partition is None:
            self.expect(rq.create(pid, 0, count), NO_PARTITION)
        else:
            first = partition.give_id(0, count)
            made = self.harness.osd.create_many(pid, count)
            assert [each.object_id for each in made] == list(range(first, first + count))
            partition.objects |= {each.object_id: ObjectModel() for each in made}

    @rule(pid=partition_ids, oid=object_ids)
    def remove(self, pid: int, oid: int) -> None:
        outcome, _ = self.find(pid, oid)
        self.expect(rq.remove(ref(pid, oid)), outcome)
        if outcome is OK:
            self.model.partitions[pid].remove(oid)

    # ---- data ----

    @rule(pid=partition_ids, oid=object_ids, start=offsets, length=lengths, byte=bytes_)
    def write(self, pid: int, oid: int, start: int, length: int, byte: int) -> None:
        data = filled(length, byte)[:length]
        outcome, obj = self.find(pid, oid)
        self.expect(rq.write(ref(pid, oid), start, data), outcome)
        obj.write(start, data)

    @rule(pid=partition_ids, oid=object_ids, length=lengths, byte=bytes_)
    def append(self, pid: int, oid: int, length: int, byte: int) -> None:
        outcome, obj = self.find(pid, oid)
        if len(obj.data) + length > LONGEST:
            return
        data = filled(length, byte)[:length]
        lists = AttributeLists((CURRENT_APPEND_START,))
        reply = self.expect(rq.append(ref(pid, oid), data, attributes=lists), outcome)
        start = obj.append(data)
        if outcome is OK:
            assert reply.attribute(CURRENT_APPEND_START).uint == start

    @rule(pid=partition_ids, oid=object_ids, start=offsets, length=lengths)
    def clear(self, pid: int, oid: int, start: int, length: int) -> None:
        outcome, obj = self.find(pid, oid)
        self.expect(rq.clear(ref(pid, oid), start, length), outcome)
        obj.clear(start, length)

    @rule(pid=partition_ids, oid=object_ids, start=offsets, length=lengths)
    def punch(self, pid: int, oid: int, start: int, length: int) -> None:
        outcome, obj = self.find(pid, oid)
        if outcome is OK and not obj.punch(start, length):
            outcome = BEYOND_END
        self.expect(rq.punch(ref(pid, oid), start, length), outcome)

    @rule(pid=partition_ids, oid=object_ids, length=offsets)
    def truncate(self, pid: int, oid: int, length: int) -> None:
        if self.is_collection(pid, oid):
            return
        outcome, obj = self.find(pid, oid)
        value = AttributeValue(*id_(LOGICAL_LENGTH), length.to_bytes(8, "big"))
        lists = AttributeLists((LOGICAL_LENGTH,), (value,))
        reply = self.expect(rq.set_attributes(ref(pid, oid), attributes=lists), outcome)
        obj.truncate(length)
        if outcome is OK:
            assert reply.attribute(LOGICAL_LENGTH).uint == length

    @rule(pid=partition_ids, oid=object_ids, start=offsets, length=lengths)
    def read(self, pid: int, oid: int, start: int, length: int) -> None:
        outcome, obj = self.find(pid, oid)
        reply = self.harness.osd.reply(rq.read(ref(pid, oid), start, length))
        if outcome is not OK:
            check(reply, outcome)
            return
        assert reply.error is None
        assert bytes(reply.data) == bytes(obj.data[start : start + length])

    # ---- attributes ----

    @rule(pid=partition_ids, oid=object_ids)
    def version(self, pid: int, oid: int) -> None:
        """A version stands for one content, or membership, whatever happens between."""
        self.find(pid, oid)
        self.note_version(pid, oid)

    def note_version(self, pid: int, oid: int) -> bytes:
        """What the model has now goes with the version that the object has now."""
        partition = self.model.partitions.get(pid)
        if partition is None:
            return b""
        if oid in partition.objects:
            content = bytes(partition.objects[oid].data)
            version = self.harness.osd.data_version(ref(pid, oid))
        elif self.is_collection(pid, oid):
            members = [
                each
                for each, obj in sorted(partition.objects.items())
                if oid in obj.memberships.values()
            ]
            content = repr(members).encode()
            version = self.harness.osd.members_version(ref(pid, oid))
        else:
            return b""
        digest = hashlib.sha256(content).digest()
        assert self.versions.setdefault((pid, oid, version), digest) == digest
        return version

    def wanted(self, pid: int, oid: int, old: bool) -> tuple[bytes, bool]:
        """The version of an object or collection, or an earlier or another one's; whether it is its own.

        b"": there is none.
        """
        now = self.note_version(pid, oid)
        others = [version for _, _, version in self.versions if version != now]
        wanted = others[-1] if old and others else now
        return (wanted if len(wanted) == VERSION_BYTES else b""), wanted == now

    @rule(pid=partition_ids, oid=object_ids, start=offsets, length=lengths, old=st.booleans())
    def write_if(self, pid: int, oid: int, start: int, length: int, old: bool) -> None:
        """Only with the object's version; an earlier one, or another object's, does not do."""
        outcome, obj = self.find(pid, oid)
        wanted, own = self.wanted(pid, oid, old)
        if not wanted:
            return
        if outcome is OK and not own:
            outcome = ANOTHER_VERSION
        data = filled(length, start % 251)[:length]
        self.expect(rq.write(ref(pid, oid), start, data, if_version=wanted), outcome)
        if outcome is OK:
            obj.write(start, data)

    @rule(pid=partition_ids, oid=object_ids, old=st.booleans())
    def remove_if(self, pid: int, oid: int, old: bool) -> None:
        """REMOVE, or of a collection REMOVE COLLECTION, with a version."""
        wanted, own = self.wanted(pid, oid, old)
        if not wanted:
            return
        collection = self.is_collection(pid, oid)
        if collection:
            request = rq.remove_collection(ref(pid, oid), True, if_members=wanted)
        else:
            request = rq.remove(ref(pid, oid), if_version=wanted)
        outcome = OK if collection else self.find(pid, oid)[0]
        if outcome is OK and not own:
            outcome = ANOTHER_VERSION
        self.expect(request, outcome)
        if outcome is OK and collection:
            self.model.partitions[pid].remove_collection(oid)
        elif outcome is OK:
            self.model.partitions[pid].remove(oid)

    @rule(pid=partition_ids, oid=object_ids, attribute=attribute_ids, old=st.booleans())
    def set_if(self, pid: int, oid: int, attribute: tuple[int, int], old: bool) -> None:
        """SET ATTRIBUTES of a user object with a version; setting does not change it."""
        if self.is_collection(pid, oid):
            return
        outcome, obj = self.find(pid, oid)
        wanted, own = self.wanted(pid, oid, old)
        if not wanted:
            return
        if outcome is OK and not own:
            outcome = ANOTHER_VERSION
        lists = AttributeLists((), (AttributeValue(*attribute, b"if"),))
        self.expect(rq.set_attributes(ref(pid, oid), if_version=wanted, attributes=lists), outcome)
        if outcome is OK:
            obj.set(*attribute, b"if")
            assert self.note_version(pid, oid) == wanted

    @rule(
        pid=partition_ids,
        oid=object_ids,
        new=st.lists(st.tuples(attribute_ids, values), max_size=4),
        wanted=st.lists(attribute_ids, max_size=3),
        first=st.booleans(),
    )
    def attributes(
        self,
        pid: int,
        oid: int,
        new: list[tuple[tuple[int, int], bytes]],
        wanted: list[tuple[int, int]],
        first: bool,
    ) -> None:
        """GET ATTRIBUTES gets first, SET ATTRIBUTES sets first."""
        if self.is_collection(pid, oid):
            return
        outcome, obj = self.find(pid, oid)
        lists = AttributeLists(
            tuple(AttributeId(*each) for each in wanted),
            tuple(AttributeValue(*each, value) for each, value in new),
            1 << 20 if wanted else None,
        )
        make = rq.get_attributes if first else rq.set_attributes
        before = [obj.attributes.get(each, b"") for each in wanted]
        for each, value in new:
            obj.set(*each, value)
        after = [obj.attributes.get(each, b"") for each in wanted]
        reply = self.expect(make(ref(pid, oid), attributes=lists), outcome)
        if outcome is OK:
            assert [each.value for each in reply.attributes] == (before if first else after)

    # ---- collections ----

    @rule(pid=partition_ids, requested=st.one_of(st.just(0), object_ids))
    def create_collection(self, pid: PartitionId, requested: int) -> None:
        partition = self.model.partitions.get(pid)
        if partition is None:
            self.expect(rq.create_collection(pid, requested), NO_PARTITION)
        elif requested and partition.taken(requested):
            self.expect(rq.create_collection(pid, requested), OBJECT_TAKEN)
        else:
            made = partition.give_id(requested)
            assert self.harness.osd.create_collection(pid, requested) == ref(pid, made)
            partition.collections.add(made)

    @rule(pid=partition_ids, cid=object_ids, force=st.booleans())
    def remove_collection(self, pid: int, cid: int, force: bool) -> None:
        partition = self.model.partitions.get(pid)
        outcome = OK
        if partition is None:
            outcome = NO_PARTITION
        elif not partition.is_collection(cid):
            outcome = NO_OBJECT
        elif partition.members(cid) and not force:
            outcome = NOT_EMPTY
        self.expect(rq.remove_collection(ref(pid, cid), force), outcome)
        if outcome is OK and partition is not None:
            partition.remove_collection(cid)

    @rule(pid=partition_ids, oid=object_ids, cid=object_ids, number=st.integers(1, 3))
    def join(self, pid: int, oid: int, cid: int, number: int) -> None:
        if self.is_collection(pid, oid):
            return
        outcome, obj = self.find(pid, oid)
        if outcome is OK:
            elsewhere = {each for n, each in obj.memberships.items() if n != number}
            if cid not in self.model.partitions[pid].collections or cid in elsewhere:
                outcome = LIST_FIELD
        value = AttributeValue(Page.USER_COLLECTIONS, number, cid.to_bytes(8, "big"))
        lists = AttributeLists((), (value,))
        self.expect(rq.set_attributes(ref(pid, oid), attributes=lists), outcome)
        if outcome is OK:
            obj.memberships[number] = cid

    @rule(pid=partition_ids, oid=object_ids, number=st.integers(1, 3))
    def leave(self, pid: int, oid: int, number: int) -> None:
        if self.is_collection(pid, oid):
            return
        outcome, obj = self.find(pid, oid)
        lists = AttributeLists((), (AttributeValue(Page.USER_COLLECTIONS, number, b""),))
        self.expect(rq.set_attributes(ref(pid, oid), attributes=lists), outcome)
        obj.memberships.pop(number, None)

    # ---- lists ----

    @rule(pid=partition_ids, count=st.integers(1, 5), initial=st.one_of(st.just(0), object_ids))
    def list_in_parts(self, pid: int, count: int, initial: int) -> None:
        partition = self.model.partitions.get(pid)
        if partition is None:
            self.expect(rq.list_objects(pid, 64), NO_PARTITION)
            return
        expected = sorted(each for each in partition.objects if each >= initial)
        seen: list[int] = []
        while True:
            page = self.harness.osd.list_page(ref(pid), initial, count)
            assert page.total_count == len(expected) - len(seen)
            seen += page.ids
            if not page.continuation_id:
                break
            assert len(page.ids) == count
            initial = page.continuation_id
        assert seen == expected

    @rule(pid=partition_ids)
    def list_collections(self, pid: PartitionId) -> None:
        partition = self.model.partitions.get(pid)
        if partition is None:
            self.expect(rq.list_collection(ref(pid), 64), NO_PARTITION)
            return
        found = [each.object_id for each in self.harness.osd.list_collections(pid)]
        expected = sorted(partition.collections | partition.tracking.keys())
        assert [each for each in found if each >= 0x10000] == expected
        for cid in expected:
            members = [each.object_id for each in self.harness.osd.list_members(ref(pid, cid))]
            assert members == partition.members(cid)

    @precondition(lambda self: self.restarts)
    @rule(chance=st.integers(0, 9), kill=st.booleans())
    def restart(self, chance: int, kill: bool) -> None:
        """Now and then: in good order, or by kill -9; every answer was an acknowledgement."""
        if chance:
            return
        if kill:
            self.harness.kill()
        self.harness.restart()

    @invariant()
    def partitions_are_the_models(self) -> None:
        if hasattr(self, "model"):
            assert self.harness.osd.list_partitions() == sorted(self.model.partitions)

    def teardown(self) -> None:
        """Everything there is, compared, unless the history has failed already."""
        error = sys.exception()
        if error is not None and error is not self.outside:
            if not isinstance(error, StopTest):
                self.failures.append(error)
            return
        if not hasattr(self, "model"):
            return
        for pid, partition in self.model.partitions.items():
            found = [each.object_id for each in self.harness.osd.list_objects(PartitionId(pid))]
            assert found == sorted(partition.objects)
            for oid, obj in partition.objects.items():
                self.compare(pid, oid, obj)

    def compare(self, pid: int, oid: int, obj: ObjectModel) -> None:
        osd = self.harness.osd
        assert bytes(osd.read(ref(pid, oid), 0, len(obj.data) + 10)) == bytes(obj.data)
        self.note_version(pid, oid)
        wanted = [AttributeId(page, number) for page in PAGES for number in range(1, 5)]
        wanted += [AttributeId(Page.USER_COLLECTIONS, number) for number in range(1, 4)]
        for each in osd.get_attributes(ref(pid, oid), wanted):
            if each.page == Page.USER_COLLECTIONS:
                assert each.uint == obj.memberships.get(each.number, 0)
            else:
                assert each.value == obj.attributes.get((each.page, each.number), b"")


def id_(attribute: AttributeId) -> tuple[int, int]:
    return attribute.page, attribute.number
