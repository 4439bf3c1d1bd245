# SPDX-License-Identifier: GPL-2.0-or-later
"""A type checker catches an object's id, or a plain number, in the place of a partition's.

`make lint` checks this file, which nothing runs: mypy fails for an error that no comment allows,
and for a comment that allows no error.
"""

from pyosd import ObjectId, PartitionId, Target, aio, ref


async def mixed(target: Target, other: aio.AsyncTarget, obj_id: ObjectId) -> bytes:
    obj = target.create(PartitionId(0x10000))
    target.list_objects(obj.partition_id)
    target.list_objects(target.create_partition())
    target.list_objects(obj.object_id)  # type: ignore[arg-type]
    target.create(obj_id)  # type: ignore[arg-type]
    await other.create(obj.object_id)  # type: ignore[arg-type]
    target.remove_partition(ref(5).partition_id)
    target.jobs(obj.object_id)  # type: ignore[arg-type]
    data: memoryview = await other.read(obj, 0, 1)
    async for piece in other.iter_read(obj):
        data[:] = piece
    for piece in other.iter_read(obj):  # type: ignore[attr-defined]
        data[:] = piece
    target.read(obj, 0)  # type: ignore[call-arg]
    return target.read(obj, 0, 1)  # type: ignore[return-value]
