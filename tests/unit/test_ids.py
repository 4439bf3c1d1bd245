# SPDX-License-Identifier: GPL-2.0-or-later
"""A type checker catches an object's id, or a plain number, in the place of a partition's."""

from __future__ import annotations

import pytest

mypy = pytest.importorskip("mypy.api")

PROGRAM = """
from pyosd import ObjectId, PartitionId, Target, aio, ref

async def mixed(target: Target, other: aio.AsyncTarget, obj_id: ObjectId) -> None:
    obj = target.create(PartitionId(0x10000))
    target.list_objects(obj.partition_id)
    target.list_objects(target.create_partition())
    target.list_objects(obj.object_id)  # wrong
    target.create(obj_id)  # wrong
    await other.create(obj.object_id)  # wrong
    target.remove_partition(ref(5).partition_id)
    target.jobs(obj.object_id)  # wrong
    found: bytes = target.read(obj, 0, 1)  # wrong
    data: memoryview = await other.read(obj, 0, 1)
    async for piece in other.iter_read(obj):
        data = piece
    for each in other.iter_read(obj):  # wrong
        data = each
    target.read(obj, 0)  # wrong
"""


def test_mixed_up_ids() -> None:
    out, err, _ = mypy.run(["--config-file=", "--strict", "-c", PROGRAM])
    assert not err
    wrong = {n for n, line in enumerate(PROGRAM.splitlines(), 1) if "# wrong" in line}
    assert {int(line.split(":")[1]) for line in out.splitlines() if ": error:" in line} == wrong, (
        out
    )
