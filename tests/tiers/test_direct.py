# SPDX-License-Identifier: GPL-2.0-or-later
"""Direct I/O: the same bytes, past the page cache, and no descriptors for scripts."""

from __future__ import annotations

import contextlib
import os
import random
from pathlib import Path

import pytest

from pyosd import jobs
from pyosd.wire.cdb import Options
from tests.jobs.conftest import DEADLINE_S, Target, skip_without_sandboxes
from tests.soak.faults import interposer
from tests.tiers.two_roots import TwoRoots

HEAD = 3 * 4096 + 100
MOST = 6 * 4096
BOTH = """
import osd
u = osd.userobject({pid}, {oid})
view = u.data.map()
osd.result([type(view).__name__, u.data.read() == bytes(view), len(view)])
"""


def ways(pid: int, root: Path) -> list[bool]:
    """Of the data files of a root that a process has open: past the page cache?"""
    found = []
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # it was closed meanwhile
            if each.readlink().is_relative_to(root / "data") and each.readlink().is_file():
                info = Path(f"/proc/{pid}/fdinfo/{each.name}").read_text().splitlines()
                (flags,) = (line.split()[1] for line in info if line.startswith("flags"))
                found.append(bool(int(flags, 8) & os.O_DIRECT))
    return found


def test_the_same_bytes(tmp_path: Path, seed: int) -> None:
    """At any offset and length, across the border of a head that ends within a block."""
    store, chance = TwoRoots(tmp_path, HEAD), random.Random(seed)
    harness = store.serve(io="direct")
    obj = harness.osd.create(harness.osd.create_partition())
    model = bytearray()
    for _ in range(60):
        at, data = chance.randrange(MOST), chance.randbytes(chance.randrange(1, MOST))
        harness.osd.write(obj, at, data, options=Options(fua=chance.random() < 0.2))
        model.extend(bytes(max(0, at + len(data) - len(model))))
        model[at : at + len(data)] = data
        start = chance.randrange(len(model))
        count = chance.randrange(len(model) - start)
        assert harness.osd.read(obj, start, count) == model[start : start + count]
        if chance.random() < 0.1:
            harness.kill() if chance.random() < 0.5 else harness.finish()
            harness.start()
    assert harness.osd.read(obj, 0, len(model)) == model
    for root in (store.data, store.ssd):
        assert True in ways(harness.pid, root), "files are open past the page cache"
    harness.finish()
    cached = store.serve(io="cached")
    assert cached.osd.read(obj, 0, len(model) + 1) == model
    assert True not in ways(cached.pid, store.data)
    cached.finish()


def test_where_it_is_refused(tmp_path: Path) -> None:
    store = TwoRoots(tmp_path, HEAD, interposer(tmp_path))
    store.variables["IOSD_NO_DIRECT"] = "1"
    harness = store.serve(io="direct")
    for root in (store.data, store.ssd):
        text = f"the file system of '{root}' refuses direct I/O"
        assert text in (tmp_path / "log").read_text()
    obj = harness.osd.create_and_write(harness.osd.create_partition(), bytes(MOST))
    assert harness.osd.read(obj, 0, MOST) == bytes(MOST)
    harness.finish()


@pytest.mark.parametrize(("io", "kind"), [("cached", "LiveMap"), ("direct", "Copy")])
def test_scripts_get_no_descriptors(tmp_path: Path, io: str, kind: str) -> None:
    skip_without_sandboxes()
    (tmp_path / "ssd").mkdir()
    target = Target(tmp_path, options=f";io={io};ssd={tmp_path / 'ssd'}")
    try:
        obj = target.commands.create_and_write(target.partition.partition_id, os.urandom(3 << 20))
        code = BOTH.format(pid=obj.partition_id, oid=obj.object_id)
        job = jobs.submit(target.commands, code, zone=target.partition)
        found = job.result(DEADLINE_S)
        assert isinstance(found, list)
        assert (found[0] == "LiveMap") == (kind == "LiveMap")
        assert found[1:] == [True, 3 << 20]
    finally:
        target.stop()
