# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures of tests of task management: a target whose long commands wait, and what is in it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import pyosd
from pyosd.types import ObjectRef, PartitionId, ref
from tests.command.held import MANY
from tests.command.test_collection import membership
from tests.e2e.tasks.victims import WAIT_S, Unit
from tests.machine import unavailable
from tests.serving import arguments, missing, own_options, sandboxes_missing, shared


@pytest.fixture(scope="module")
def held_unit() -> Iterator[Unit]:
    why = missing()
    if why:
        unavailable("tgtd", why)
    with tempfile.TemporaryDirectory(prefix="iosd-test-") as folder:
        Path(folder).chmod(0o755)
        gate = Path(folder) / "hold"
        options = [*own_options(f"hold={gate}"), "--workers", "3"]
        if not sandboxes_missing():
            options += ["--slots", "1"]
        with shared(*arguments(options)) as served:
            yield Unit(served, gate, [])


@pytest.fixture
def unit(held_unit: Unit) -> Iterator[Unit]:
    yield held_unit
    while held_unit.victims:
        held_unit.victims.pop().socket.close()


@pytest.fixture
def target(unit: Unit) -> Iterator[pyosd.Target]:
    with unit.serving.connect() as session:
        yield session


@pytest.fixture
def pid(target: pyosd.Target) -> Iterator[int]:
    partition_id = target.create_partition()
    yield partition_id
    if partition_id in target.list_partitions():
        target.remove_partition(partition_id, contents=True)


@pytest.fixture
def gate(unit: Unit) -> Iterator[Path]:
    unit.gate.touch()
    yield unit.gate
    unit.gate.unlink(missing_ok=True)


@pytest.fixture
def collection(target: pyosd.Target, pid: PartitionId) -> ObjectRef:
    collection = target.create_collection(pid)
    target.create_many(pid, MANY, attributes=[membership(collection)])
    return collection


@pytest.fixture
def sandboxes() -> None:
    why = sandboxes_missing()
    if why:
        unavailable("sandbox", why)


@pytest.fixture
def zone(target: pyosd.Target, sandboxes: None) -> Iterator[ObjectRef]:
    zone = ref(target.create_partition())
    yield zone
    for status in target.jobs(zone.partition_id):
        if not status.done:
            target.job(status.id).kill(WAIT_S)
    target.remove_partition(zone.partition_id, contents=True)
