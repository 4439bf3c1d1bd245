# SPDX-License-Identifier: GPL-2.0-or-later
"""The methods of AsyncTarget over the wire: each does what the same method of Target does."""

from __future__ import annotations

import asyncio
import io

import pytest

from pyosd import AttributeId, AttributeValue, Page, aio, attr, errors, ref
from pyosd.iscsi.session import TaskFunction
from pyosd.types import ObjectRef
from tests.client.faces import Face

pytestmark = pytest.mark.tgtd

WORD = AttributeId(Page.APPLICATION, 1)
ROUTE = "a route from object to object, told by methods of the same name"


def test_objects_and_data(face: Face, zone: ObjectRef) -> None:
    obj = face.create_and_write(zone.partition_id, ROUTE.encode())
    assert bytes(face.read(obj, 2, 5)) == b"route" and face.length(obj) == len(ROUTE)
    face.write(obj, 2, b"ROUTE")
    assert face.append(obj, b"!") == len(ROUTE)
    assert bytes(face.read_pieces(obj, [(0, 2), (len(ROUTE), 1)])) == b"a !"
    face.clear(obj, 0, 1)
    face.punch(obj, 0, 1)
    assert bytes(face.read(obj, 0, 6)) == b" ROUTE"
    face.flush(obj)
    assert [each.length for each in face.read_map(obj)] == [
        each.length for each in face.iter_map(obj)
    ]
    copied = face.copy(obj, zone.partition_id)
    assert face.list_objects(zone.partition_id) == sorted([obj, copied])
    face.remove(copied)
    with pytest.raises(errors.NotFound):
        face.read(copied, 0, 1)


def test_any_length(face: Face, zone: ObjectRef) -> None:
    data = bytes(range(256)) * (11 << 12)  # 11 MiB: more pieces than are under way together
    obj = face.create(zone.partition_id)
    assert face.write_range(obj, 3, data) == len(data)
    assert face.read_range(obj, 3) == data
    assert face.read_range(obj, 3, len(data) + 99) == data
    assert b"".join(face.iter_read(obj, 3)) == data
    buffer = bytearray(1000)
    assert face.read_into(obj, len(data) - 497, buffer) == 500 and buffer[:500] == data[-500:]
    assert face.write_from(obj, io.BytesIO(data[: 3 << 20]), 7) == 3 << 20
    assert face.read_range(obj, 7, 3 << 20) == data[: 3 << 20]
    gone = ref(zone.partition_id, 0x7FFF_0000)
    for refused in (face.read_range, face.iter_read):
        with pytest.raises(errors.NotFound):
            refused(gone, 0, 9 << 20)
    with pytest.raises(errors.NotFound):
        face.write_range(gone, 0, data)


def test_attributes(face: Face, zone: ObjectRef) -> None:
    obj = face.create(zone.partition_id, attributes=[AttributeValue(*WORD, b"one")])
    assert face.get_attribute(obj, *WORD) == b"one"
    face.set_attributes(obj, [AttributeValue(*WORD, b"two")])
    assert face.swap_attribute(obj, WORD, b"one", b"three") == b"two"
    assert face.swap_attribute(obj, WORD, b"two", b"three") == b"two"
    assert [each.value for each in face.get_attributes(obj, [WORD])] == [b"three"]
    assert face.fetch_and_add(obj, 5) == 0 and face.fetch_and_add(obj, 1) == 5
    assert face.compare_and_swap(obj, 0, 9) == 0 and face.compare_and_swap(obj, 0, 8) == 9


def test_collections_and_queries(face: Face, zone: ObjectRef) -> None:
    pid = zone.partition_id
    made = face.create_many(pid, 9, attributes=[AttributeValue(*WORD, b"herd")])
    some = face.create_collection(pid)
    for each in made[:4]:
        face.add_member(some, each)
    face.add_member(some, made[0])
    assert face.remove_member(some, made[3]) and not face.remove_member(some, made[3])
    assert face.list_members(some) == made[:3] and some in face.list_collections(pid)
    assert list(face.memberships(made[0]).values()) == [some.object_id]
    face.set_member_attributes(some, [AttributeValue(*WORD, b"few")])
    assert {each.attributes[0].value for each in face.get_member_attributes(some, [WORD])} == {
        b"few"
    }
    assert face.query(zone, attr(*WORD) == "few") == made[:3]
    assert len(face.list_attributes(pid, [WORD])) == 9
    assert pid in face.list_partitions()
    face.remove_collection(some, True)


def test_the_session(face: Face, zone: ObjectRef) -> None:
    face.test_unit_ready()
    assert face.inquiry()[0] & 0x1F == 0x11 and face.ping() < 30
    assert face.execute(bytes(6)).status == 0
    assert face.manage_tasks(TaskFunction.LOGICAL_UNIT_RESET) == 0
    assert face.list_objects(zone.partition_id) == []
    with pytest.raises(ValueError, match="ABORT TASK"):
        face.manage_tasks(TaskFunction.ABORT_TASK)


ATTEMPTS = 50
LONG = bytes(4 << 20)


def test_a_lost_session_of_coroutines(osd_url: str, zone: ObjectRef) -> None:
    """The next command connects again; one under way is repeated only if it only reads."""

    async def main() -> None:
        async with aio.connect(osd_url) as target:
            obj = await target.create(zone.partition_id)
            target.transport.drop()  # type: ignore[attr-defined]
            assert await target.length(obj) == 0
            for _ in range(ATTEMPTS):
                reading = asyncio.create_task(target.length(obj))
                writing = asyncio.create_task(target.write(obj, 0, LONG))
                await asyncio.sleep(0)  # both are sent, the data in part: the rest waits for R2Ts
                target.transport.drop()  # type: ignore[attr-defined]
                assert await reading in (0, len(LONG))
                (lost,) = await asyncio.gather(writing, return_exceptions=True)
                if lost is not None:  # else it was sent over the new session
                    break
            assert isinstance(lost, errors.SessionLost)
            before = target.bytes_sent
            await target.write(obj, 0, b"x")
            assert target.bytes_sent > before
        with pytest.raises(errors.SessionLost):
            await target.length(obj)

    asyncio.run(main())


def test_a_coroutine_that_is_cancelled(osd_url: str, zone: ObjectRef) -> None:
    """It ends at once with what it has under way, and the session goes on."""

    async def main() -> None:
        async with aio.connect(osd_url) as target:
            obj = await target.create_and_write(zone.partition_id, bytes(9 << 20))
            reading = asyncio.create_task(target.read_range(obj))
            await asyncio.sleep(0)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            assert len(asyncio.all_tasks()) == 1
            async for piece in target.iter_read(obj):
                assert not any(piece)
                break
            assert await target.length(obj) == 9 << 20

    asyncio.run(main())
