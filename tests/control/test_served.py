# SPDX-License-Identifier: GPL-2.0-or-later
"""The control socket of the module in tgtd, as `osd target serve` opens it (its manager: tests/manager)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import pyosd
from iosd_host.common import places
from iosd_host.control.messages import Type
from pyosd.errors import OSDError
from pyosd.types import ref
from tests.control.conftest import HELD_S
from tests.control.peer import Peer
from tests.control.test_figures import commands, total
from tests.e2e.raw_iscsi import RawSession
from tests.machine import unavailable
from tests.serving import Serving, missing, own_options

SCSI_RESPONSE = 0x21

pytestmark = pytest.mark.tgtd


def control_of(serving: Serving) -> Path:
    served = {place["pid"]: place for place in places.running(places.TARGET)}
    return Path(served[serving.process.pid]["control"])


@pytest.fixture
def control(serving: Serving) -> Path:
    return control_of(serving)


@pytest.fixture
def leased() -> Iterator[Serving]:
    """A target whose manager does not lose its lease because the test is not run for a while."""
    if why := missing():
        unavailable("tgtd", why)
    with Serving("--no-sandboxes", *own_options(f"lease={HELD_S}")) as serving:
        yield serving


def test_commands(target: pyosd.Target, control: Path) -> None:
    """Also of those that tgtd's own thread finishes at once."""
    with Peer(control) as peer:
        partition = target.create_partition()
        obj = target.create(partition)
        before = peer.snapshot()
        for index in range(5):
            target.write(obj, index * 100, b"x" * 100)
        for _ in range(20):
            assert len(target.read(obj, 0, 500)) == 500
        for _ in range(2):
            with pytest.raises(OSDError):
                target.read(ref(partition, obj.object_id + 7), 0, 1)
        after = peer.snapshot()
        target.remove_partition(partition, contents=True)
    old, new = commands(before), commands(after)
    for key, count in ((("WRITE", "ok"), 5), (("READ", "ok"), 20), (("READ", "no_object"), 2)):
        assert new[key] - old.get(key, 0) == count
    for name, count in (("write", 5), ("read", 22)):
        now, was = after["command_seconds"][name], before["command_seconds"][name]
        assert total(now) - total(was) == count


def test_what_is_no_command(serving: Serving, control: Path) -> None:
    """A CDB that says it is longer than it is."""
    with Peer(control) as peer, RawSession(serving.url) as raw:
        before = peer.snapshot()["rejected"]
        for serial in range(2):  # tgtd answers the first itself: there is a new session
            raw.socket.sendall(
                raw.command(bytes([0x7F, *bytes(6), 0xFF, *bytes(40)]), serial=serial)
            )
            assert raw.receive()[0][0] & 0x3F == SCSI_RESPONSE
        after = peer.snapshot()["rejected"]
    assert after == {**before, "command": before["command"] + 1}


def test_workers_change_under_load(leased: Serving) -> None:
    control = control_of(leased)
    with (
        leased.connect() as target,
        Peer(control, "manager") as manager,
        Peer(control) as tool,
    ):
        obj = target.create(target.create_partition())
        for count in (1, 8, 3):
            answer = manager.ask(Type.WORKERS, count=count, why="a test")
            assert answer["is"] == {"count": str(count)}
            assert tool.code(Type.WORKERS, count=4) == "managed"
            target.write(obj, 0, b"x" * 4096)
            assert tool.snapshot()["workers"]["count"] == count
        manager.ask(Type.WORKERS, count=4)
        target.remove_partition(obj.partition_id, contents=True)


def test_target_goes_on_beside_one_that_does_not_read(target: pyosd.Target, control: Path) -> None:
    with Peer(control) as deaf, Peer(control) as peer:
        deaf.ask(Type.WATCH, interval_ms=20)
        start = peer.snapshot()["target"]["monotonic"]
        done = 0
        while peer.snapshot()["target"]["monotonic"] < start + 0.3 or done <= 10:
            assert target.list_partitions() is not None
            done += 1
