# SPDX-License-Identifier: GPL-2.0-or-later
"""No room for what a script prints: the disk is full, or its partition's quota is used up.  The job ends at
once and says so, with all that was stored before; others go on; all is well when there is room again.
The same for what a follower derives.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import pyosd
from pyosd.functions import Access, Functions, Hook, HookEvent
from pyosd.types import AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import Page
from pyosd.wire.job_status import JobState
from tests.exec.conftest import WAIT_S, Run, ended
from tests.machine import unavailable
from tests.serving import Serving
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

DISK_MIB = 64
FLOOD = "import os\nwhile True: os.write(1, bytes(1 << 20))"
ENDLESS = pyosd.Limits(output="1GiB", wall=60)
FAILED, NO_SPACE = JobState.FAILED, 501
CAPACITY_QUOTA = 0x10001
PAGE = 0x10000


@pytest.fixture
def small() -> Iterator[Serving]:
    """A target whose store has a small disk of its own."""
    with tempfile.TemporaryDirectory(prefix="iosd-test-") as folder:
        Path(folder).chmod(0o755)
        mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", folder]
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
        if done.returncode:
            unavailable("sandbox", f"no small disk: {done.stderr}")
        try:
            data = Path(folder) / "store"
            with Serving("--isolation", "best", "--slots", "2", data=data) as served:
                yield served
        finally:
            subprocess.run(["umount", "-l", folder], check=True)


def test_the_disk_is_full(small: Serving) -> None:
    with small.connect() as target:
        zone = ref(target.create_partition())
        kept = target.create(zone.partition_id)
        target.write(kept, 0, b"kept")
        waits = target.exec("print('went on')", zone=zone, hold=True)
        flood = target.exec(FLOOD, zone=zone, limits=ENDLESS)
        status = ended(flood.wait(WAIT_S), FAILED, NO_SPACE)
        assert 10 << 20 < status.stdout_length <= DISK_MIB << 20
        assert target.length(status.id) == status.stdout_length, "what was stored is there"
        assert bytes(target.read(kept, 0, 4)) == b"kept"
        waits.release()
        assert waits.wait(WAIT_S).done, "whatever its output: how it ended is written"
        with pytest.raises(pyosd.OSDError, match="no space left"):
            fill_up(target, zone)
        flood.remove()
        until_accepted(target, zone)
        assert bytes(target.read(kept, 0, 4)) == b"kept"
        end = target.exec("print('room again')", zone=zone)
        ended(end.wait(WAIT_S), JobState.COMPLETED, 0)
        assert end.output() == b"room again\n"


DERIVE = """
import osd

def main(args):
    return osd.change(args).derive({2: bytes(osd.zone.data.read())})
"""


def test_a_follower_runs_again_when_there_is_room(small: Serving) -> None:
    with small.connect() as target:
        functions = Functions(target)
        zone, other = ref(target.create_partition()), target.create(target.create_partition())
        derive = functions.put(DERIVE, name="derive", access=Access.READ).id
        functions.hook(zone, Hook(derive, HookEvent.AFTER, page=PAGE))
        obj = target.create_and_write(zone.partition_id, b"old")
        until(lambda: functions.is_current(obj), "nothing has followed the change")
        stuffing = small.data.parent / "stuffing"
        with stuffing.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(4096))
        with pytest.raises(pyosd.NoSpace):
            for number in range(1, 10_000):
                target.set_attributes(other, [AttributeValue(PAGE, number, bytes(8000))])
        before = functions.calls(derive).plain
        target.write(obj, 0, b"new")
        until(lambda: functions.calls(derive).plain >= before + 2, "it does not run again")
        assert not functions.is_current(obj)
        stuffing.unlink()
        until(lambda: functions.is_current(obj), "there is room, but nothing is derived")
        assert target.get_attribute(obj, PAGE, 2) == b"new"


def fill_up(target: pyosd.Target, zone: ObjectRef) -> None:
    """Submit jobs until none is accepted; all that are end."""
    for _ in range(1000):
        assert target.exec("print('x' * 1000)", zone=zone).wait(WAIT_S).done


def until_accepted(target: pyosd.Target, zone: ObjectRef) -> None:
    def is_accepted() -> bool:
        with suppress(pyosd.NoSpace):
            return target.exec("pass", zone=zone).wait(WAIT_S).done
        return False

    until(is_accepted, "there is room, but nothing is accepted")


def test_the_quota_is_used_up(run: Run, target: pyosd.Target, pid: int) -> None:
    quota = (4 << 20).to_bytes(8, "big")
    target.set_attributes(ref(pid), [AttributeValue(Page.PARTITION_QUOTAS, CAPACITY_QUOTA, quota)])
    among_data = {"surrogate": ref(pid)}
    status = ended(run(FLOOD, limits=ENDLESS, **among_data), FAILED, NO_SPACE)
    assert 1 << 20 <= status.stdout_length <= 4 << 20
    assert target.length(status.id) == status.stdout_length


def test_the_space_of_jobs_is_used_up(run: Run, target: pyosd.Target, pid: PartitionId) -> None:
    """Beside a partition's quota: as much again, but at least 256 MiB."""
    quota = (4 << 20).to_bytes(8, "big")
    target.set_attributes(ref(pid), [AttributeValue(Page.PARTITION_QUOTAS, CAPACITY_QUOTA, quota)])
    status = ended(run(FLOOD, limits=ENDLESS), FAILED, NO_SPACE)
    assert 255 << 20 <= status.stdout_length <= 256 << 20
    target.create_and_write(pid, bytes(3 << 20))
