# SPDX-License-Identifier: GPL-2.0-or-later
"""Small objects never wait for the hard disk, whatever is done with them: here it takes so long that who
asks it is found out.  It may be asked behind their backs, for objects that are removed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pyosd.commands import Commands
from pyosd.types import AttributeId, ObjectRef
from pyosd.wire.attributes import ALL, Page
from pyosd.wire.cdb import Options
from tests.harness import Harness, program

HEAD = 2 << 20
ACCESS_S = 2.0
TRIES = 5
MODEL = "hdd:2s:1GB/s+ssd:0us:1GB/s"
FUA = Options(fua=True)

Act = Callable[[Commands, ObjectRef], object]
ACTS: dict[str, Act] = {
    "read": lambda osd, obj: osd.read(obj, 0, 8192),
    "read_beyond": lambda osd, obj: osd.read(obj, 4096, HEAD),
    "write": lambda osd, obj: osd.write(obj, 10, b"x" * 100),
    "write_fua": lambda osd, obj: osd.write(obj, 10, b"x" * 100, options=FUA),
    "write_to_border": lambda osd, obj: osd.write(obj, HEAD - 5, b"x" * 5),
    "append": lambda osd, obj: osd.append(obj, b"more"),
    "clear": lambda osd, obj: osd.clear(obj, 0, 4096),
    "punch": lambda osd, obj: osd.punch(obj, 0, 4096),
    "shorten": lambda osd, obj: osd.punch(obj, 100, 1 << 40),
    "flush": lambda osd, obj: osd.flush(obj),
    "map": lambda osd, obj: list(osd.iter_map(obj)),
    "attributes": lambda osd, obj: osd.get_attributes(
        obj, [AttributeId(Page.USER_INFORMATION, ALL)]
    ),
    "create": lambda osd, obj: osd.create(obj.partition_id),
    "create_and_write": lambda osd, obj: osd.create_and_write(obj.partition_id, b"x" * 4096),
    "copy": lambda osd, obj: osd.copy(obj, obj.partition_id),
    "remove": lambda osd, obj: osd.remove(obj),
    "list": lambda osd, obj: osd.list_objects(obj.partition_id),
    "read_pieces": lambda osd, obj: osd.read_pieces(obj, [(0, 10), (100, 10)]),
    "fetch_and_add": lambda osd, obj: osd.fetch_and_add(obj, 1),
}


def serve(folder: Path) -> Harness:
    (folder / "ssd").mkdir(exist_ok=True)
    options = {"dir": folder / "data", "ssd": folder / "ssd", "model": MODEL}
    return Harness(program(), options, folder / "log")


def is_slow(target: Harness, act: Act, objects: list[ObjectRef]) -> bool:
    """Whether it takes as long each time: once may be the doing of a busy machine."""

    def took(obj: ObjectRef) -> float:
        start = time.monotonic()
        act(target.osd, obj)
        return time.monotonic() - start

    return all(took(each) >= ACCESS_S for each in objects)


@pytest.mark.parametrize("known", [True, False], ids=["open files", "after a start"])
def test_small_objects_do_not_wait_for_the_hard_disk(tmp_path: Path, known: bool) -> None:
    target = serve(tmp_path)
    partition = target.osd.create_partition()
    objects = {
        name: [target.osd.create_and_write(partition, b"a" * 8192) for _ in range(TRIES)]
        for name in ACTS
    }
    if not known:
        target.restart()
    assert [name for name, act in ACTS.items() if is_slow(target, act, objects[name])] == []
    target.kill()
