# SPDX-License-Identifier: GPL-2.0-or-later
"""Targets in memory for the upkeep of copies; the client can be killed at any of its commands."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, cast

import pyosd
from pyosd.cluster.many import Many
from pyosd.errors import Exists, NotFound, VersionMismatch
from pyosd.types import AttributeId, AttributeValue, ObjectAttributes, ObjectId, ObjectRef
from pyosd.wire.attributes import ALL, DATA_VERSION, LOGICAL_LENGTH, Page, Timestamp

CLOCK = itertools.count(1)
_MODIFIED = AttributeId(Page.USER_TIMESTAMPS, Timestamp.DATA_MODIFIED)


class Killed(BaseException):
    """The client ends here."""


@dataclass
class Stored:
    """One object."""

    data: bytearray = field(default_factory=bytearray)
    attributes: dict[AttributeId, bytes] = field(default_factory=dict)
    version: bytes = b""

    def changed(self) -> None:
        self.version = next(CLOCK).to_bytes(12, "big")

    def get(self, wanted: AttributeId) -> bytes:
        if wanted == DATA_VERSION:
            return self.version
        if wanted == _MODIFIED:
            return self.version[-6:]
        if wanted == LOGICAL_LENGTH:
            return len(self.data).to_bytes(8, "big")
        return self.attributes.get(wanted, b"")

    def set(self, values: Iterable[AttributeValue]) -> None:
        for each in values:
            self.attributes.pop(each.id, None)
            if each.value:
                self.attributes[each.id] = bytes(each.value)


def failure(kind: type[pyosd.OSDError]) -> pyosd.OSDError:
    return kind(5, 0, 0, kind.__name__)


class FakeTarget:
    """The commands that upkeep uses."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster, self.stored = cluster, dict[ObjectRef, Stored]()

    def _of(self, obj: ObjectRef) -> Stored:
        self.cluster.step()
        if obj not in self.stored:
            raise failure(NotFound)
        return self.stored[obj]

    def inquiry(self, page: int) -> bytes:
        return b"%d %d" % (page, id(self.stored))

    def list_attributes(
        self, partition_id: int, wanted: Iterable[AttributeId]
    ) -> Iterator[ObjectAttributes]:
        self.cluster.step()
        ids = [*wanted]
        for obj, each in sorted(self.stored.items()):
            values = tuple(AttributeValue(*one, each.get(one)) for one in ids)
            yield ObjectAttributes(ObjectId(obj.object_id), 0x80, values)

    def get_attribute(self, obj: ObjectRef, page: int, number: int) -> bytes:
        return self._of(obj).get(AttributeId(page, number))

    def get_attributes(
        self, obj: ObjectRef, wanted: Iterable[AttributeId]
    ) -> tuple[AttributeValue, ...]:
        stored, found = self._of(obj), []
        for each in wanted:
            if each == (ALL, ALL):
                found += [AttributeValue(*key, value) for key, value in stored.attributes.items()]
            else:
                found.append(AttributeValue(*each, stored.get(each)))
        return tuple(found)

    def set_attributes(
        self,
        obj: ObjectRef,
        values: Iterable[AttributeValue],
        get: Iterable[AttributeId] = (),
        *,
        if_version: bytes | None = None,
    ) -> tuple[AttributeValue, ...]:
        stored, given = self._of(obj), {each.id: each for each in values}
        if if_version not in (None, stored.version):
            raise failure(VersionMismatch)
        if length := given.pop(LOGICAL_LENGTH, None):
            assert len(stored.data) == length.uint  # no more is needed
            stored.changed()
        stored.set(given.values())
        return tuple(AttributeValue(*each, stored.get(each)) for each in get)

    def swap_attribute(
        self,
        obj: ObjectRef,
        attribute: AttributeId,
        compare: bytes,
        swap: bytes,
        others: Iterable[AttributeValue] = (),
    ) -> bytes:
        stored = self._of(obj)
        before = stored.get(attribute)
        if before == compare:
            stored.set([AttributeValue(*attribute, swap), *others])
        return before

    def create(
        self, partition_id: int, object_id: int, attributes: Iterable[AttributeValue] = ()
    ) -> None:
        self.cluster.step()
        obj = pyosd.ref(partition_id, object_id)
        if obj in self.stored:
            raise failure(Exists)
        self.stored[obj] = Stored()
        self.stored[obj].changed()
        self.stored[obj].set(attributes)

    def call(self, request: Any) -> Any:
        """CREATE AND WRITE, the only request that is not made by a method."""
        self.create(request.partition_id, request.object_id, request.attributes.set)
        stored = self.stored[pyosd.ref(request.partition_id, request.object_id)]
        stored.data[:] = request.data

        class Reply:
            def attribute(self, wanted: AttributeId) -> AttributeValue:
                return AttributeValue(*wanted, stored.get(wanted))

        return Reply()

    def read(
        self, obj: ObjectRef, start: int, length: int, *, if_version: bytes | None = None
    ) -> bytes:
        stored = self._of(obj)
        if if_version is not None and stored.version != if_version:
            raise failure(VersionMismatch)
        return bytes(stored.data[start : start + length])

    def write(self, obj: ObjectRef, start: int, data: bytes) -> None:
        stored = self._of(obj)
        stored.data[start : start + len(data)] = data
        stored.changed()

    def remove(self, obj: ObjectRef, *, if_version: bytes | None = None) -> None:
        if if_version not in (None, self._of(obj).version):
            raise failure(VersionMismatch)
        del self.stored[obj]


@dataclass(frozen=True)
class FakeRun:
    """The outcomes of a function that is called here."""

    found: list[pyosd.ObjectOutcome]
    lost: dict[str, str]

    def close(self) -> None:
        """End the run."""

    def __iter__(self) -> Iterator[pyosd.ObjectOutcome]:
        return iter(self.found)


class NearObject:
    """What a function near the data gets."""

    def __init__(self, stored: Stored) -> None:
        self._stored = stored
        self.data = self

    def data_version(self) -> bytes:
        return self._stored.version

    def blocks(self) -> list[bytes]:
        return [bytes(self._stored.data)]


def one_by_one(work: Callable[[str], Any], names: Iterable[str]) -> dict[str, Future[Any]]:
    """In place of at_once(): commands have an order, so that another client's come between two."""
    with ThreadPoolExecutor(1) as pool:
        return {name: pool.submit(work, name) for name in names}


class FakeCluster:
    """Some targets; the client is killed at the command of that number."""

    def __init__(self, targets: dict[str, FakeTarget] | None = None) -> None:
        self.targets = targets or {}
        self.errors: dict[str, str] = {}  # of functions at a target, instead of their values
        self.kill_at = 0
        self.meanwhile_at = 0
        self.meanwhile: Callable[[], object] = lambda: None  # another client, before that command
        self.steps = 0

    def step(self) -> None:
        self.steps += 1
        if self.steps == self.meanwhile_at:
            self.meanwhile()
        if self.steps == self.kill_at:
            raise Killed

    def among(self, names: Iterable[str]) -> FakeCluster:
        """The same targets, seen by a client that knows those of these names."""
        found = FakeCluster()
        for name in names:
            self.targets.setdefault(name, FakeTarget(self))
            found.targets[name] = self.targets[name]
        return found

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.targets)

    def target(self, name: str) -> FakeTarget:
        return self.targets[name]

    def map_objects(self, fn: Any, objects: Iterable[pyosd.Copies], **_: Any) -> FakeRun:
        found = []
        for each in objects:
            (name,) = each.targets
            gone = "" if each.object in self.targets[name].stored else "NotFound: it is removed"
            error = self.errors.get(name, gone)
            value = None if error else fn(NearObject(self.targets[name].stored[each.object]))
            found.append(pyosd.ObjectOutcome(each.object, value, error, name, 1))
        return FakeRun(found, {})

    def as_many(self) -> Many:
        """For a type checker."""
        return cast(Many, self)
