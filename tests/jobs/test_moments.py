# SPDX-License-Identifier: GPL-2.0-or-later
"""Package osd over a real store of two roots: its suite, and what a script reads while others write,
where each read is of one moment, and a map tells that it is not.

The written bytes are all equal at any moment, and span the two roots.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyosd import jobs
from pyosd.types import ROOT, ObjectRef
from pyosd.wire.job_status import JobState
from tests.harness import MARKS
from tests.jobs.conftest import DEADLINE_S, Target, skip_without_sandboxes
from tests.waiting import until

HEAD = 2 << 20  # bytes of an object under the first root, unless told otherwise
SIZE = 3 << 20
PATTERNS = [bytes([each]) * SIZE for each in b"abcdefgh"]

READS = """
import osd
u = osd.userobject({pid}, {oid})
HEAD, SIZE = {head}, {size}
seen, mixed = set(), []

def look(what, block):
    if not len(block):
        return
    first = bytes(block[:1])
    seen.add(first)
    if bytes(block).count(first) != len(block):
        mixed.append(what)

f = u.data
for n in range({rounds}):
    for at in (0, 100_000, HEAD - 700_000, HEAD - 10, HEAD, SIZE - (1 << 20)):
        for length in (1 << 20, 300_000, 64 << 10, 4000):
            f.seek(at)
            look(("read", at, length), f.read(length))
            look(("next", at, length), f.read(length))  # the rest of what was read ahead, or more
    buffer = bytearray(1 << 20)
    f.seek(HEAD - 1000)
    look("readinto", buffer[: f.readinto(buffer)])
    for block in u.data.blocks():
        look("block", block)
osd.result([sorted(each.decode() for each in seen), mixed])
"""

MAPS = """
import osd
u = osd.userobject({pid}, {oid})
stable = changed = 0
mixed = []

def look():
    global stable, changed
    view = u.data.map()
    assert len(view) == {size} and type(view).__name__ == "LiveMap"
    copy = bytes(view)
    if view.changed():
        changed += 1
    else:
        stable += 1
        if copy.count(copy[:1]) != len(copy):
            mixed.append(stable)

while changed < {changes}:
    look()
print("the writer may stop", flush=True)
while stable < {rests}:
    look()
osd.result([stable, changed, mixed])
"""


@pytest.fixture
def tiers(tmp_path: Path) -> Iterator[Target]:
    """A store whose objects have their first 2 MiB elsewhere."""
    skip_without_sandboxes()
    (tmp_path / "ssd").mkdir()
    marks = "".join(f";{name}={value}" for name, value in MARKS.items())
    target = Target(tmp_path, options=f";ssd={tmp_path / 'ssd'}{marks}")
    yield target
    target.stop()


class Writer:
    """Writes the whole object over and over, each time with another letter, until told to stop.

    pause: seconds between two writes, in which a reader may find the object at rest.
    """

    def __init__(self, target: Target, obj: ObjectRef, pause: float) -> None:
        self.target, self.obj, self.pause = target, obj, pause
        self.over = threading.Event()
        self.failure: BaseException | None = None
        self.thread = threading.Thread(target=self.write)

    def write(self) -> None:
        try:
            n = 0
            while not self.over.wait(self.pause):
                n += 1
                self.target.commands.write(self.obj, 0, PATTERNS[n % len(PATTERNS)])
        except BaseException as error:
            self.failure = error

    def __enter__(self) -> Writer:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()
        if self.failure:
            raise self.failure


# A script gets what nobody else wants: of one processor the writer must leave something.
AT_ONCE = 0.0 if len(os.sched_getaffinity(0)) > 1 else 0.01


def spanning(target: Target) -> ObjectRef:
    obj = target.commands.create(target.partition.partition_id)
    target.commands.write(obj, 0, PATTERNS[0])
    return obj


def outcome(target: Target, obj: ObjectRef, code: str, pause: float, **how: int) -> list[object]:
    """The result of a script that runs while the object is written, until it prints something or ends."""
    names = {"pid": obj.partition_id, "oid": obj.object_id, "head": HEAD, "size": SIZE}
    with Writer(target, obj, pause):
        job = jobs.submit(target.commands, code.format(**names, **how), zone=target.partition)
        until(lambda: job.output() or job.done(), "the script sees no writer at work")
    found = job.result(DEADLINE_S)
    assert isinstance(found, list)
    return found


def test_every_read_is_of_one_moment(tiers: Target) -> None:
    obj, patterns = spanning(tiers), set[object]()

    def look() -> bool:
        seen, mixed = outcome(tiers, obj, READS, AT_ONCE, rounds=12)
        assert mixed == [] and isinstance(seen, list)
        patterns.update(seen)
        return len(patterns) > 2

    until(look, "the writer was never seen at work")


def test_a_map_of_head_and_tail_tells_that_it_changed(tiers: Target) -> None:
    obj = spanning(tiers)
    stable, changed, mixed = outcome(tiers, obj, MAPS, 0.01, changes=3, rests=3)
    assert (stable, changed) >= (3, 3) and mixed == []
    heads, tails = (tuple(tiers.folder.glob(f"{name}/**/*")) for name in ("ssd", "data"))
    lengths = [
        sum(each.stat().st_size == n for each in files if each.name != "ballast")
        for files, n in ((heads, HEAD), (tails, SIZE - HEAD))
    ]
    assert lengths == [1, 1], "the object lies in two files of two roots"


def test_a_map_made_while_it_is_written_says_so(tiers: Target) -> None:
    """Also while that one WRITE is still under way."""
    _, changed, mixed = outcome(tiers, spanning(tiers), MAPS, AT_ONCE, changes=200, rests=0)
    assert changed == 200 and mixed == []


SUITE = Path(__file__).parents[1] / "sandbox" / "osd_suite.py"


def test_the_suite_as_a_job(tiers: Target) -> None:
    commands = tiers.commands
    commands.remove_partition(tiers.partition.partition_id)  # the suite makes that one itself
    job = jobs.submit(commands, SUITE, zone=ROOT, args=["one", "two"], name=SUITE.name)
    assert job.wait(DEADLINE_S).state is JobState.COMPLETED, job.stderr().decode()
    assert job.result(0)["checks"] == job.output().decode().count(" ok\n") >= 20
