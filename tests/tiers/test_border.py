# SPDX-License-Identifier: GPL-2.0-or-later
"""The border of head and tail is seen by nobody: the models of the whole command set at odd head sizes,
lengths around it, and crashes of a write across it.

That a READ across it never sees half of a WRITE is tests/property/test_histories.py's.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from iosd_host.cli import store as tools
from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.errors import Unreachable
from pyosd.types import AttributeValue, ObjectRef
from pyosd.wire.attributes import LOGICAL_LENGTH
from pyosd.wire.cdb import Request
from tests.harness import Harness
from tests.property.run_machine import run_machine
from tests.soak.faults import interposer
from tests.tiers.two_roots import TwoRoots

SIZES = [0, 1, 4095, 4096, 2 << 20]
OLD, NEW = b"o", b"n"
HEAD = 4096
EXAMPLES = 12


@pytest.mark.parametrize("io", ["cached", "direct"])
@pytest.mark.parametrize("head", SIZES)
def test_model(tmp_path: Path, seed: int, head: int, io: str) -> None:
    harness = TwoRoots(tmp_path, head, io=io).serve()
    run_machine(harness, seed, EXAMPLES if io == "cached" else 3, restarts=True)


def cut(osd: Commands, obj: ObjectRef, length: int) -> None:
    osd.set_attributes(obj, [AttributeValue(*LOGICAL_LENGTH, length.to_bytes(8, "big"))])


@pytest.mark.parametrize("head", SIZES)
def test_lengths_around_it(tmp_path: Path, head: int) -> None:
    """Written up to, sparse behind, cut to and grown to one byte before the border, it, one behind."""
    store = TwoRoots(tmp_path, head)
    harness = store.serve()
    partition = harness.osd.create_partition()
    objects: dict[ObjectRef, bytes] = {}
    for around in (-1, 0, 1):
        length = max(0, head + around)
        written = harness.osd.create_and_write(partition, NEW * length)
        sparse = harness.osd.create(partition)
        harness.osd.write(sparse, length, NEW * 3)
        shorter, longer = (
            harness.osd.create_and_write(partition, OLD * size)
            for size in (head + 9, max(0, head - 9))
        )
        cut(harness.osd, shorter, length)
        cut(harness.osd, longer, head + 2)
        cut(harness.osd, longer, length)
        short = max(0, head - 9)
        objects |= {
            written: NEW * length,
            sparse: bytes(length) + NEW * 3,
            shorter: OLD * length,
            longer: (OLD * short + bytes(length))[:length] if short < length else OLD * length,
        }
    for restart in (harness.finish, harness.kill):
        for obj, data in objects.items():
            assert harness.osd.read(obj, 0, len(data) + 10) == data
            at = max(0, head - 1)
            assert harness.osd.read(obj, at, 2) == data[at : at + 2]
        restart()
        harness.start()
    harness.finish()
    result = CliRunner().invoke(tools.check, ["--data", str(store.data), "--ssd", str(store.ssd)])
    assert result.exit_code == 0, result.output


# ---- crashes


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return interposer(tmp_path_factory.mktemp("interpose"))


@pytest.mark.parametrize("old", [100, HEAD, 3 * HEAD], ids=["first tail", "full head", "tail"])
@pytest.mark.parametrize("action", ["kill", "late"])
def test_crash_between_the_halves(tmp_path: Path, library: Path, old: int, action: str) -> None:
    """Killed at each change of a file in turn: a mixture in the range of the write, nothing else."""
    start, end = 50, 2 * HEAD + 50
    store = TwoRoots(tmp_path, HEAD)
    harness = store.serve()
    partition = harness.osd.create_partition()
    for at in range(1, 100):
        obj = harness.osd.create_and_write(partition, OLD * old)
        harness.finish()
        store.variables = {"LD_PRELOAD": str(library), "IOSD_FAULT": f"disk:serve:{at}:{action}"}
        died = killed_in(store, rq.write(obj, start, NEW * (end - start)))
        store.variables = {}
        harness = store.serve()
        data = bytes(harness.osd.read(obj, 0, 4 * HEAD))
        assert old <= len(data) <= max(old, end)
        assert data[:start] == OLD * start
        assert set(data[start:old]) <= {OLD[0], NEW[0]}
        assert set(data[old:end]) <= {NEW[0], 0}
        assert data[end:] == OLD * (old - end)
        if not died:
            assert data[start:end] == NEW * (end - start)
            break
    else:
        pytest.fail("a write takes fewer changes than that")
    assert at > 2, "it was killed at least between the halves"
    harness.finish()


def killed_in(store: TwoRoots, request: Request) -> bool:
    """Whether the target, doing that, dies."""
    target: Harness | None = None
    try:
        target = store.serve()
        target.osd.reply(request)
        target.kill()
        return False
    except Unreachable:
        assert target is not None
        target.kill()
        return True
