# SPDX-License-Identifier: GPL-2.0-or-later
"""READs that pass their functions in two halves, while others change the object (docs/views.md)."""

from __future__ import annotations

import os
import threading
import time

import pytest

import pyosd
from pyosd.functions import Contract, Functions, FunctionStage, OutputSize
from pyosd.types import ObjectRef, ref
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

SIZE = 1 << 20
INVERT = """
import osd

TABLE = bytes(255 - each for each in range(256))

def main(args):
    data = osd.stage(args).data
    for _ in range(4):  # long enough for two halves
        data = data.translate(TABLE)
    return data.translate(TABLE)
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor")
def test_both_halves_are_of_one_moment(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    """The second half is read from the store when the first one runs already."""
    obj = target.create_and_write(zone.partition_id, bytes(SIZE))
    blocks = Contract(OutputSize.SAME, block=4096)
    stages = [FunctionStage(functions.put(INVERT, name="invert", contract=blocks).id)]
    shown = ref(functions.view_create(zone.partition_id, stages).id, obj.object_id)
    over = threading.Event()
    written = 0

    def change() -> None:
        nonlocal written
        with pyosd.connect(target.url) as other:
            while not over.is_set():
                written = (written + 1) % 256
                other.write(obj, 0, bytes([written]) * SIZE)
                time.sleep(0.004)  # the load: a WRITE in most READs, and READs between them

    writer = threading.Thread(target=change)
    writer.start()
    seen = list[set[int]]()

    def both() -> bool:
        """Whether READs saw changes, and one was in two halves."""
        seen.extend(set(target.read(shown, 0, SIZE)) for _ in range(60))
        changed = len(set.union(*seen)) > 1
        return changed and functions.calls("invert").plain > len(seen)

    try:
        until(both, "no READ was in two halves, or nothing changed")
    finally:
        over.set()
        writer.join()
    assert all(len(each) == 1 for each in seen)
