# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands that want a version, at the same time as changes (docs/wire.md, "Precondition")."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import pyosd
from pyosd.errors import NotFound, TargetBusy, VersionMismatch
from pyosd.types import AttributeValue, ObjectRef
from pyosd.wire.attributes import LOGICAL_LENGTH, Page
from tests.serving import Serving

pytestmark = pytest.mark.tgtd

ROUNDS = 150
COLOUR = AttributeValue(Page.APPLICATION, 1, b"green")

Change = Callable[[pyosd.Target, ObjectRef], object]
CHANGES: dict[str, Change] = {
    "write": lambda target, obj: target.write(obj, 10, b"other"),
    "append": lambda target, obj: target.append(obj, b"other"),
    "punch": lambda target, obj: target.punch(obj, 0, 4),
    "cut": lambda target, obj: set_length(target, obj, 3),
    "extend": lambda target, obj: set_length(target, obj, 100_000),
}


def set_length(target: pyosd.Target, obj: ObjectRef, length: int) -> None:
    target.set_attributes(obj, [AttributeValue(*LOGICAL_LENGTH, length.to_bytes(8, "big"))])


def attempt(work: Callable[[], object]) -> str:
    try:
        work()
    except NotFound:
        return "gone"
    except VersionMismatch:
        return "other"
    except TargetBusy:
        return "busy"
    return "done"


@pytest.mark.parametrize("kind", CHANGES)
def test_a_removal_and_a_change(serving: Serving, kind: str) -> None:
    """One comes first, and the other one sees it: never do both succeed."""
    change = CHANGES[kind]
    seen = set[tuple[str, str]]()
    with serving.connect() as one, serving.connect() as two, ThreadPoolExecutor(2) as threads:
        pid = one.create_partition()
        for _ in range(ROUNDS):
            obj = one.create_and_write(pid, b"some content")
            version = one.data_version(obj)
            both = threading.Barrier(2)

            def removes(obj: ObjectRef = obj, version: bytes = version) -> None:
                both.wait()  # noqa: B023 -- it ends in this round
                one.remove(obj, if_version=version)

            def changes(obj: ObjectRef = obj) -> None:
                both.wait()  # noqa: B023
                change(two, obj)

            outcomes = [threads.submit(attempt, each) for each in (removes, changes)]
            removal, changed = (each.result(60) for each in outcomes)
            seen.add((removal, changed))
            assert (removal, changed) in {("done", "gone"), ("other", "done"), ("busy", "done")}
            if removal != "done":
                assert one.data_version(obj) != version
                one.remove(obj)
        one.remove_partition(pid)
    assert seen, "no round"


def test_attributes_and_writes(serving: Serving) -> None:
    """An attribute that was set with a version describes the data of that version."""
    with serving.connect() as one, serving.connect() as two, ThreadPoolExecutor(2) as threads:
        pid = one.create_partition()
        obj = one.create_and_write(pid, b"0" * 8)
        stop = threading.Event()

        def writes() -> int:
            number = 0
            while not (number and stop.is_set()):  # once at least, also if it begins late
                number += 1
                two.write(obj, 0, b"%08d" % number)
            return number

        writer = threads.submit(writes)
        done = 0
        while done < 20 and not writer.done():
            data, version = one.read_with_version(obj, 0, 8)
            described = AttributeValue(COLOUR.page, COLOUR.number, bytes(data))
            outcome = attempt(
                lambda value=described, version=version: one.set_attributes(  # type: ignore[misc]
                    obj, [value], if_version=version
                )
            )
            assert outcome in ("done", "other")
            # If nothing has been written since, the attribute is that of the data.
            if outcome == "done" and one.data_version(obj) == version:
                assert one.get_attribute(obj, COLOUR.page, COLOUR.number) == bytes(data)
            done += 1
        stop.set()
        assert writer.result(60) > 0
        one.remove_partition(pid, contents=True)


def test_many_joins_and_a_removal(serving: Serving) -> None:
    """A collection that was removed with a version had no other members than that version says."""
    with serving.connect() as one, serving.connect() as two, ThreadPoolExecutor(2) as threads:
        pid = one.create_partition()
        for _ in range(ROUNDS // 3):
            collection, obj = one.create_collection(pid), one.create(pid)
            version = one.members_version(collection)
            both = threading.Barrier(2)
            value = AttributeValue(
                Page.USER_COLLECTIONS, 1, int(collection.object_id).to_bytes(8, "big")
            )

            def removes(collection: ObjectRef = collection, version: bytes = version) -> None:
                both.wait()  # noqa: B023
                one.remove_collection(collection, with_members=True, if_members=version)

            def joins(obj: ObjectRef = obj, value: AttributeValue = value) -> None:
                both.wait()  # noqa: B023
                two.set_attributes(obj, [value])

            removal = threads.submit(attempt, removes)
            joined = threads.submit(joins)
            joined.exception(60)
            ok = joined.exception() is None
            assert (removal.result(60), ok) in {("done", False), ("other", True)}
        one.remove_partition(pid, contents=True)
