# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd target calibrate`: on this machine's disk, with the sizes of real and of made-up stores."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from iosd_host.cli.calibrate import calibrate, held, sizes_of
from iosd_host.store_tools.format.file_names import FileName
from iosd_host.store_tools.format.records import Place
from iosd_host.store_tools.format.superblock import RootRole
from iosd_host.store_tools.measure import BLOCKS, IN_MEMORY, file_system_of
from iosd_host.store_tools.opening.folders import Refused, lock
from tests.harness import SOURCE
from tests.offline.stores import Snapshot, Store

HEAD = 2 << 20


@pytest.fixture
def on_disk() -> Iterator[Path]:
    """The build folder, which is not in memory."""
    with tempfile.TemporaryDirectory(dir=SOURCE / "build") as folder:
        yield Path(folder)


def run(*arguments: str | Path) -> dict[str, Any]:
    short = ["--seconds", "0.5", "--space", "16MiB", "-o", "json"]
    done = CliRunner().invoke(calibrate, [*map(str, arguments), *short], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    report = json.loads(done.output)
    assert isinstance(report, dict)
    return report


def put(
    root: Path, object_id: int, length: int, *, tail: bool = False, generation: int = 1
) -> None:
    """A data file, without blocks."""
    path = root / "data" / FileName(Place(0x10000, 1, object_id), generation, tail).path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    os.truncate(path, length)


def test_empty_folders_on_this_disk(on_disk: Path) -> None:
    data, ssd = on_disk / "data", on_disk / "ssd"
    data.mkdir()
    ssd.mkdir()
    report = run("--data", data, "--ssd", ssd)
    assert list(data.iterdir()) == list(ssd.iterdir()) == []
    for device in report["devices"].values():
        assert device["file_system"] == file_system_of(data) not in IN_MEMORY
        assert device["file_bytes"] == 16 << 20
        assert 0 < device["access_s"] < 10
        assert device["accesses"] >= 1
        assert [rate["block_bytes"] for rate in device["rates"]] == list(BLOCKS)
        assert all(r["read_bytes_s"] > 0 and r["write_bytes_s"] > 0 for r in device["rates"])
    proposal = report["proposal"]
    best = max(rate["write_bytes_s"] for rate in report["devices"]["ssd"]["rates"])
    assert proposal["access_s"] == report["devices"]["data"]["access_s"]
    assert proposal["exact_bytes"] == proposal["access_s"] * best
    assert proposal["head_bytes"] in [need["head_bytes"] for need in report["needs"]]
    assert report["sizes"] == {"from": "thesis", "objects": 0, "stored_bytes": 1 << 40}
    assert any("one file system" in note for note in report["notes"])
    arguments = ["--data", str(data), "--ssd", str(ssd), "--seconds", "0.5", "--space", "16MiB"]
    text = CliRunner().invoke(calibrate, arguments, catch_exceptions=False).output
    assert "head size = access time of --data x rate of writes to --ssd\n" in text
    assert re.search(r"= [0-9.e-]+ ms x [0-9.]+ MB/s \(blocks of \w+\) = [0-9.e-]+ MB\n", text)
    assert re.search(r"served with --head-size (64|128|256|512)KiB|--head-size \d+MiB", text)
    assert text.count("<- proposed") == 1


def test_sizes_of_a_store_that_is_served(on_disk: Path) -> None:
    """Two objects of 100 bytes and of the head and 5; the target's lock stays the target's."""
    data, ssd = on_disk / "data", on_disk / "ssd"
    put(ssd, 0x10000, 100)
    put(ssd, 0x10001, HEAD)
    put(data, 0x10001, 5, tail=True)
    for root in (data, ssd):
        (root / "superblock").touch()
        root.joinpath("data", "stray").mkdir(parents=True)
    theirs = lock(data)
    try:
        report = run("--data", data, "--ssd", ssd)
        with pytest.raises(Refused):
            lock(data)
    finally:
        os.close(theirs)
    assert report["sizes"] == {"from": "store", "objects": 2, "stored_bytes": HEAD + 105}
    need = next(each for each in report["needs"] if each["head_bytes"] == HEAD)
    assert need["ssd_bytes"] == HEAD + 100
    assert need["whole"] == 0.5
    assert need["share_of_bytes"] == (HEAD + 100) / (HEAD + 105)
    assert any("a target serves this store" in note for note in report["notes"])


def test_text(on_disk: Path) -> None:
    """One device: figures and table, and that nothing can be proposed."""
    put(on_disk, 0x10000, 65 << 10)
    arguments = ["--data", str(on_disk), "--seconds", "0.5", "--space", "16MiB"]
    text = CliRunner().invoke(calibrate, arguments, catch_exceptions=False).output
    assert "to read 4 KiB anywhere in 16MiB (median of " in text
    assert "For the objects of this store that have data (1, 65 KiB):" in text
    assert "64KiB             64 KiB         98.5%                    0.0%" in text
    assert "128KiB            65 KiB        100.0%                  100.0%" in text
    assert "note: no --ssd: nothing to propose" in text
    assert "<- proposed" not in text


def test_sizes_by_generation_and_place(tmp_path: Path) -> None:
    """Heads on either root; generations of one object count apart; what is no data file does not."""
    put(tmp_path / "ssd", 0x10000, HEAD)
    put(tmp_path / "main", 0x10000, 7, tail=True)
    put(tmp_path / "main", 0x10000, 3, generation=2)
    put(tmp_path / "main", 0x10001, HEAD)  # its head went to the hard disk
    put(tmp_path / "main", 0x10001, 9, tail=True)
    (tmp_path / "main" / "data" / f"{0x10000:016x}.{1:08x}" / "00" / "odd").parent.mkdir(
        exist_ok=True
    )
    (tmp_path / "main" / "data" / f"{0x10000:016x}.{1:08x}" / "00" / "odd").write_text("?")
    found = sorted(sizes_of([tmp_path / "main", tmp_path / "ssd"]))
    assert found == [3, HEAD + 7, HEAD + 9]
    assert list(sizes_of([tmp_path / "nothing"])) == []


@pytest.mark.parametrize("template", [False, True], indirect=True)
def test_sizes_of_a_real_store(store: Store, template: tuple[Store, Snapshot]) -> None:
    roots = [store.data] + ([store.ssd] if store.ssd else [])
    found = list(sizes_of(roots))
    for seen in template[1].values():
        if seen.data:
            found.remove(len(seen.data))


def test_store_is_held_meanwhile(store: Store) -> None:
    """No target opens it in the middle."""
    assert store.ssd is not None
    roles = [(store.data, RootRole.MAIN), (store.ssd, RootRole.HEADS)]
    with held(roles) as served:
        assert not served
        for path, _ in roles:
            with pytest.raises(Refused, match="in use"):
                lock(path)
    os.close(lock(store.data))


@pytest.mark.parametrize(
    ("folder", "code", "words"),
    [("/dev/shm", 1, "no direct I/O there"), ("/nowhere", 66, "is no folder")],
)
def test_refused(folder: str, code: int, words: str) -> None:
    if folder == "/dev/shm" and file_system_of(Path(folder)) not in IN_MEMORY:
        pytest.skip("/dev/shm is no memory here")
    done = CliRunner().invoke(calibrate, ["--data", folder])
    assert done.exit_code == code
    assert words in done.output


def test_bounds() -> None:
    for wrong in (["--space", "1MiB"], ["--space", "much"], ["--seconds", "0"]):
        assert CliRunner().invoke(calibrate, wrong).exit_code == 2
