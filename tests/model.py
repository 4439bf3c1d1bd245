# SPDX-License-Identifier: GPL-2.0-or-later
"""The expected contents of a store: objects with data and attributes, partitions, collections.

Pure; knows nothing of commands or bytes on the wire.  Used by the property tests (the answers must
be the model's) and by the crash tests (what was acknowledged must be there afterwards).
"""

from __future__ import annotations

from dataclasses import dataclass, field

FIRST_ID = 0x10000
IDS_COUNTED = 1 << 62
"""Requested ids from here on do not move the mark of their partition, or of the root."""

Attributes = dict[tuple[int, int], bytes]


@dataclass
class ObjectModel:
    """A user object: its bytes, its attributes by (page, number), its collections by number."""

    data: bytearray = field(default_factory=bytearray)
    attributes: Attributes = field(default_factory=dict)
    memberships: dict[int, int] = field(default_factory=dict)

    def copy(self) -> ObjectModel:
        return ObjectModel(bytearray(self.data), dict(self.attributes), dict(self.memberships))

    def extend(self, length: int) -> None:
        """Zeros up to length, if it is not that long yet."""
        if len(self.data) < length:
            self.data.extend(bytes(length - len(self.data)))

    def write(self, start: int, data: bytes) -> None:
        if data:
            self.extend(start + len(data))
            self.data[start : start + len(data)] = data

    def append(self, data: bytes) -> int:
        """Returns where it went."""
        start = len(self.data)
        self.data += data
        return start

    def clear(self, start: int, length: int) -> None:
        self.write(start, bytes(length))

    def punch(self, start: int, length: int) -> bool:
        """Returns whether it may be done: start is not beyond the end."""
        if start > len(self.data):
            return False
        del self.data[start : start + length]
        return True

    def truncate(self, length: int) -> None:
        self.extend(length)
        del self.data[length:]

    def set(self, page: int, number: int, value: bytes) -> None:
        """An empty value undefines."""
        if value:
            self.attributes[page, number] = value
        else:
            self.attributes.pop((page, number), None)


@dataclass
class PartitionModel:
    """A partition: user objects and collections share one name space of ids."""

    objects: dict[int, ObjectModel] = field(default_factory=dict)
    collections: set[int] = field(default_factory=set)
    """Linked ones: their members say so."""
    tracking: dict[int, set[int]] = field(default_factory=dict)
    """Tracking collections and their members."""
    next_id: int = FIRST_ID

    def taken(self, object_id: int) -> bool:
        return object_id in self.objects or self.is_collection(object_id)

    def is_collection(self, object_id: int) -> bool:
        return object_id in self.collections or object_id in self.tracking

    def remove(self, object_id: int) -> None:
        """A user object, out of all its collections."""
        del self.objects[object_id]
        for members in self.tracking.values():
            members.discard(object_id)

    def remove_collection(self, collection: int) -> None:
        """A collection; its members stay, and are free of it."""
        self.collections.discard(collection)
        self.tracking.pop(collection, None)
        for obj in self.objects.values():
            obj.memberships = {n: c for n, c in obj.memberships.items() if c != collection}

    def give_id(self, requested: int, count: int = 1) -> int:
        """Id of the (first) new object; ids of removed ones are not given again.

        Requested ids from IDS_COUNTED on do not move the mark, so free ids must be looked for there.
        """
        first = requested or self.next_free(count)
        if first < IDS_COUNTED or not requested:
            self.next_id = max(self.next_id, first + count)
        return first

    def next_free(self, count: int) -> int:
        first = self.next_id
        while first >= IDS_COUNTED:
            taken = [oid for oid in range(first, first + count) if self.taken(oid)]
            if not taken:
                break
            first = taken[-1] + 1
        return first

    def members(self, collection: int) -> list[int]:
        if collection in self.tracking:
            return sorted(self.tracking[collection])
        return sorted(
            oid for oid, obj in self.objects.items() if collection in obj.memberships.values()
        )

    def empty(self) -> bool:
        return not self.objects and not self.collections and not self.tracking


@dataclass
class StoreModel:
    """Everything."""

    partitions: dict[int, PartitionModel] = field(default_factory=dict)
    next_id: int = FIRST_ID

    def give_id(self, requested: int) -> int:
        given = requested or self.next_id
        while not requested and given in self.partitions:
            given += 1
        if given < IDS_COUNTED or not requested:
            self.next_id = max(self.next_id, given + 1)
        return given
