# SPDX-License-Identifier: GPL-2.0-or-later
"""The rest of the commands against the model: tracking collections, queries with and without an
index, member commands, copies, maps, structure checks.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import rule

from pyosd import Criterion
from pyosd import requests as rq
from pyosd.types import OBJECTS_COLLECTION, AttributeId, AttributeValue, ref
from pyosd.wire.attributes import CURRENT_OBJECT_ID, Page
from pyosd.wire.cdb import AttributeLists
from pyosd.wire.list_data import MapType
from tests.expect import (
    CDB_FIELD,
    NO_OBJECT,
    NO_PARTITION,
    OBJECT_TAKEN,
    OK,
    Outcome,
)
from tests.model import ObjectModel, PartitionModel
from tests.property.store_machine import (
    PAGES,
    StoreMachine,
    attribute_ids,
    bytes_,
    filled,
    lengths,
    object_ids,
    offsets,
    partition_ids,
    values,
)

USER_PAGES = [page for page in PAGES if page < 0x3000_0000]
NO_SOURCE = CDB_FIELD.at(40)
bounds = st.one_of(
    st.just(b""),
    st.binary(min_size=1, max_size=3),
    st.sampled_from([b"born", b"v", b"v" * 64, b"v" * 65, b"v" * 1500]),
)
criteria = st.builds(Criterion, st.sampled_from(USER_PAGES), st.integers(1, 4), bounds, bounds)
places = st.one_of(st.just(OBJECTS_COLLECTION), object_ids)


def matches(obj: ObjectModel, criterion: Criterion) -> bool:
    value = obj.attributes.get((criterion.page, criterion.number), b"")
    low, high = criterion.minimum, criterion.maximum
    return bool(value) and low <= value and (not high or value <= high)


class MembersMachine(StoreMachine):
    """Adds to the rules of StoreMachine."""

    def find_collection(self, pid: int, cid: int) -> tuple[Outcome, PartitionModel, list[int]]:
        """How a command on that collection ends, where it is, and its members."""
        partition = self.model.partitions.get(pid)
        if partition is None:
            return NO_PARTITION, PartitionModel(), []
        if cid == OBJECTS_COLLECTION:
            return OK, partition, sorted(partition.objects)
        if not partition.is_collection(cid):
            return NO_OBJECT, PartitionModel(), []
        return OK, partition, partition.members(cid)

    # ---- tracking collections and queries ----

    @rule(
        pid=partition_ids,
        requested=st.one_of(st.just(0), object_ids),
        source=st.one_of(st.just(0), object_ids),
    )
    def create_tracking_collection(self, pid: int, requested: int, source: int) -> None:
        partition = self.model.partitions.get(pid)
        lists = AttributeLists((CURRENT_OBJECT_ID,))
        request = rq.create_user_tracking_collection(pid, requested, source, attributes=lists)
        if partition is None:
            self.expect(request, NO_PARTITION)
        elif source and not partition.is_collection(source):
            taken = requested and partition.taken(requested)
            reply = self.harness.osd.reply(request)
            assert reply.error, "a source that does not exist"
            assert reply.error.field_pointer == 40 or (taken and reply.error.field_pointer == 24)
        elif requested and partition.taken(requested):
            self.expect(request, OBJECT_TAKEN)
        else:
            made = partition.give_id(requested)
            assert self.expect(request, OK).attribute(CURRENT_OBJECT_ID).uint == made
            partition.tracking[made] = set(partition.members(source)) if source else set()

    def selected(
        self, partition: PartitionModel, members: list[int], wanted: list[Criterion], every: bool
    ) -> list[int]:
        """What a query finds."""
        rule_of = all if every or not wanted else any
        return [
            oid
            for oid in members
            if rule_of(matches(partition.objects[oid], each) for each in wanted)
        ]

    @rule(pid=partition_ids, cid=places, wanted=st.lists(criteria, max_size=3), every=st.booleans())
    def query(self, pid: int, cid: int, wanted: list[Criterion], every: bool) -> None:
        outcome, partition, members = self.find_collection(pid, cid)
        if outcome is not OK:
            self.expect(rq.query(ref(pid, cid), wanted, 4096, every), outcome)
            return
        found = self.harness.osd.query(ref(pid, cid), wanted, every)
        assert [each.object_id for each in found] == self.selected(
            partition, members, wanted, every
        )

    @rule(
        pid=partition_ids,
        cid=places,
        into=object_ids,
        wanted=st.lists(criteria, max_size=2),
        every=st.booleans(),
    )
    def query_into(
        self, pid: int, cid: int, into: int, wanted: list[Criterion], every: bool
    ) -> None:
        outcome, partition, members = self.find_collection(pid, cid)
        if cid == into:
            return
        request = rq.query_into(ref(pid, cid), wanted, into, every)
        if outcome is OK and into not in partition.tracking:
            self.expect(request, NO_SOURCE)
            return
        self.expect(request, outcome)
        if outcome is OK:
            partition.tracking[into] = set(self.selected(partition, members, wanted, every))

    @rule(pid=partition_ids, page=st.sampled_from(USER_PAGES), declare=st.booleans())
    def index(self, pid: int, page: int, declare: bool) -> None:
        """Changes no answer, only what it costs."""
        value = AttributeValue(Page.INDEX, page, b"\1" if declare else b"")
        request = rq.set_attributes(ref(pid), attributes=AttributeLists((), (value,)))
        self.expect(request, OK if pid in self.model.partitions else NO_PARTITION)

    # ---- member commands ----

    @rule(pid=partition_ids, cid=places, attribute=attribute_ids)
    def get_member_attributes(self, pid: int, cid: int, attribute: tuple[int, int]) -> None:
        outcome, partition, members = self.find_collection(pid, cid)
        wanted = AttributeId(*attribute)
        if outcome is not OK:
            lists = AttributeLists((wanted,), (), 4096)
            self.expect(rq.get_member_attributes(ref(pid, cid), attributes=lists), outcome)
            return
        found = self.harness.osd.get_member_attributes(ref(pid, cid), [wanted])
        assert [each.object_id for each in found] == members
        for each in found:
            expected = partition.objects[each.object_id].attributes.get(attribute, b"")
            assert each.attributes[0].value == expected

    @rule(pid=partition_ids, cid=places, attribute=attribute_ids, value=values)
    def set_member_attributes(
        self, pid: int, cid: int, attribute: tuple[int, int], value: bytes
    ) -> None:
        outcome, partition, members = self.find_collection(pid, cid)
        lists = AttributeLists((), (AttributeValue(*attribute, value),))
        self.expect(rq.set_member_attributes(ref(pid, cid), attributes=lists), outcome)
        for oid in members:
            partition.objects[oid].set(*attribute, value)

    @rule(pid=partition_ids, cid=object_ids)
    def remove_member_objects(self, pid: int, cid: int) -> None:
        outcome, partition, members = self.find_collection(pid, cid)
        self.expect(rq.remove_member_objects(ref(pid, cid)), outcome)
        for oid in members:
            partition.remove(oid)

    # ---- whole objects ----

    @rule(
        pid=partition_ids,
        requested=st.one_of(st.just(0), object_ids),
        start=offsets,
        length=lengths,
        byte=bytes_,
        attribute=attribute_ids,
    )
    def create_and_write(
        self,
        pid: int,
        requested: int,
        start: int,
        length: int,
        byte: int,
        attribute: tuple[int, int],
    ) -> None:
        data = filled(length, byte)[:length]
        value = AttributeValue(*attribute, b"born")
        lists = AttributeLists((CURRENT_OBJECT_ID,), (value,))
        request = rq.create_and_write(pid, requested, start, data, attributes=lists)
        partition = self.model.partitions.get(pid)
        if partition is None:
            self.expect(request, NO_PARTITION)
        elif requested and partition.taken(requested):
            self.expect(request, OBJECT_TAKEN)
        else:
            made = self.expect(request, OK).attribute(CURRENT_OBJECT_ID).uint
            assert made == partition.give_id(requested)
            partition.objects[made] = ObjectModel(attributes={attribute: b"born"})
            partition.objects[made].write(start, data)

    @rule(
        pid=partition_ids,
        oid=object_ids,
        to=partition_ids,
        requested=st.one_of(st.just(0), object_ids),
        whole=st.booleans(),
    )
    def copy(self, pid: int, oid: int, to: int, requested: int, whole: bool) -> None:
        outcome, obj = self.find(pid, oid)
        partition = self.model.partitions.get(to)
        lists = AttributeLists((CURRENT_OBJECT_ID,))
        request = rq.copy_user_object(
            ref(pid, oid), to, requested, with_attributes=whole, attributes=lists
        )
        if partition is None:
            self.expect(request, NO_PARTITION)
        elif outcome is not OK or (requested and partition.taken(requested)):
            assert self.harness.osd.reply(request).error, "no source, or the id is taken"
        else:
            made = self.expect(request, OK).attribute(CURRENT_OBJECT_ID).uint
            assert made == partition.give_id(requested)
            attributes = dict(obj.attributes) if whole else {}
            partition.objects[made] = ObjectModel(bytearray(obj.data), attributes)

    @rule(pid=partition_ids, oid=object_ids)
    def read_map(self, pid: int, oid: int) -> None:
        """Holes are zeros; extents follow each other from the first byte to the last."""
        outcome, obj = self.find(pid, oid)
        if outcome is not OK:
            self.expect(rq.read_map(ref(pid, oid), 0, 4096), outcome)
            return
        at = 0
        for each in self.harness.osd.iter_map(ref(pid, oid)):
            assert each.start == at
            at = each.end
            assert each.type == MapType.WRITTEN or not any(obj.data[each.start : each.end])
        assert at == len(obj.data)

    @rule(pid=partition_ids)
    def structure_check(self, pid: int) -> None:
        """Whatever happened before, nothing is damaged."""
        outcome = OK if pid in self.model.partitions else NO_PARTITION
        self.expect(rq.object_structure_check(pid), outcome)
