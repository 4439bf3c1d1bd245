# SPDX-License-Identifier: GPL-2.0-or-later
"""The verb sync."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pyosd.cli.paths.sync import LocalEntry
from pyosd.commands.dialogue import Dialogue
from pyosd.fs import lookup
from pyosd.fs.local import local_file
from pyosd.fs.paths import PathInfo
from tests.cli.conftest import Run, contents, lines
from tests.serving import Serving
from tests.waiting import until

pytestmark = pytest.mark.tgtd


@pytest.fixture
def one_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The target's clock is ours.  sync asks how far it is ahead, and who is stopped while asking copies
    again what is older than that by less."""
    monkeypatch.setattr("pyosd.cli.paths.sync.clock_ahead", lambda _: 0)


@pytest.mark.usefixtures("one_clock")
def test_sync(osd: Run, top: str, tree: Path, tmp_path: Path) -> None:
    there = f"osd:{top}/copy"
    assert "5 files" in osd("sync", tree, there).stderr
    until(lambda: "0 files" in osd("sync", tree, there).stderr)
    (tree / "a.jpg").write_bytes(b"longer than it was")
    (tree / "new").mkdir()
    (tree / "new" / "file").write_bytes(b"x")
    (tree / "empty").unlink()
    assert lines(osd, "sync", "-n", "--delete", tree, there) == [
        "copy new",
        "copy a.jpg",
        "copy new/file",
        "remove empty",
    ]
    assert "2 files" in osd("sync", tree, there).stderr
    assert "removed 1" in osd("sync", "--delete", tree, there).stderr
    back = tmp_path / "back"
    assert "6 files" not in osd("sync", there, back).stderr
    assert contents(back) == contents(tree)
    assert "0 files" in osd("sync", there, back).stderr
    (back / "a.jpg").write_bytes(b"longer than it Was")
    os.utime(back / "a.jpg", ns=(0, 0))
    assert "0 files" in osd("sync", "--size-only", there, back).stderr
    assert "1 file," in osd("sync", there, back).stderr
    (back / "extra" / "x").mkdir(parents=True)
    (back / "extra" / "x" / "f").write_bytes(b"")
    osd("sync", "--delete", there, back)
    assert contents(back) == contents(tree)
    assert not (back / "extra").exists()
    osd("sync", "--exclude", "*.jpg", "--exclude", "2025", tree, f"osd:{top}/some")
    found = lines(osd, "find", f"{top}/some", "--type", "f", "-o", "id")
    assert [each.rpartition("/")[2] for each in found] == ["large.bin", "file"]


@pytest.mark.parametrize("late_ms", [0, 900, 3_600_000, -900, -3_600_000])
def test_sync_with_a_clock_that_differs(
    osd: Run, top: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late_ms: int
) -> None:
    """A change is found in any case; what has not changed is not copied for ever."""
    (folder := tmp_path / "folder").mkdir()
    (folder / "a").write_bytes(b"a")
    there, of = f"osd:{top}/copy", LocalEntry.of

    def late(path: Path, is_directory: bool) -> LocalEntry:
        found = of(path, is_directory)
        times = found.modified_ms - late_ms, found.changed_ms - late_ms
        return LocalEntry(is_directory, found.length, *times)

    def copied(*more: str) -> list[str]:
        return lines(osd, "sync", "--names", *more, folder, there)

    clock = SimpleNamespace(time=lambda: time.time() - late_ms / 1000)
    until(lambda: not copied())
    with monkeypatch.context() as patch:
        patch.setattr("pyosd.cli.paths.sync.time", clock)
        patch.setattr(LocalEntry, "of", late)
        until(lambda: not copied())
    (folder / "a").write_bytes(b"b")
    until(lambda: copied("-n"))
    monkeypatch.setattr("pyosd.cli.paths.sync.time", clock)
    monkeypatch.setattr(LocalEntry, "of", late)
    assert copied("-n") == ["copy a"]


def test_sync_finds_an_older_file_in_the_place_of_another(
    osd: Run, top: str, tmp_path: Path
) -> None:
    folder, there = tmp_path / "folder", f"osd:{top}/copy"
    folder.mkdir()
    (folder / "a").write_bytes(b"new")
    osd("sync", folder, there)
    copied_ms: int = json.loads(osd("stat", "-o", "json", f"{top}/copy/a").stdout)["modified_ms"]
    (folder / "old").write_bytes(b"old")

    def touched_later() -> bool:
        os.utime(folder / "old", ns=(0, 0))
        return (folder / "old").stat().st_ctime_ns // 1_000_000 > copied_ms

    until(touched_later)
    (folder / "old").rename(folder / "a")
    assert "1 file," in osd("sync", folder, there).stderr
    until(lambda: "0 files" in osd("sync", folder, there).stderr)
    back = tmp_path / "back"
    osd("sync", there, back)
    assert "0 files" in osd("sync", back, there).stderr, "what was copied from there is not new"
    assert (back / "a").read_bytes() == b"old"
    for name in ("b", "c"):
        osd("cp", "-", f"{there}/{name}", data=name.encode())
    osd("sync", there, back)
    osd("mv", f"{top}/copy/b", f"{top}/copy/c")
    assert "1 file," in osd("sync", there, back).stderr
    assert (back / "c").read_bytes() == b"b"


@pytest.mark.usefixtures("one_clock")
def test_sync_removes_nothing_that_was_left_out(
    osd: Run, top: str, tree: Path, tmp_path: Path
) -> None:
    there = f"osd:{top}/copy"
    until(lambda: "0 files" in osd("sync", tree, there).stderr)
    (tree / "2025").rename(tmp_path / "2025")
    (tree / "2025").symlink_to(tmp_path / "2025")
    (tree / "a.jpg").unlink()
    (tree / "a.jpg").symlink_to(tmp_path / "not mounted")
    (tree / "2024" / "deep" / "ünder" / "large.bin").unlink()
    for excluded in ("2024", "2024/deep", "*/deep", "2024/deep/ün*"):
        assert osd("sync", "-n", "--delete", "--exclude", excluded, tree, there).stdout == ""
    done = osd("sync", "--delete", tree, there)
    assert "left out" in done.stderr and "removed 1" in done.stderr
    assert lines(osd, "find", f"{top}/copy/2025", "--type", "f")
    (tree / "2025").unlink()
    assert "removed 2" in osd("sync", "--delete", tree, there).stderr


@pytest.mark.parametrize("to_target", [True, False])
def test_sync_keeps_directories_with_what_was_left_out(
    osd: Run, top: str, tmp_path: Path, to_target: bool
) -> None:
    source, copy = tmp_path / "source", tmp_path / "copy"
    source.mkdir()
    for name in ("old/deep/x.tmp", "old/deep/y", "older/z"):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes(b"")
    osd("cp", "-r", copy if to_target else source, f"osd:{top}/there")
    if not to_target:
        (copy / "linked").mkdir()
        (copy / "linked" / "away").symlink_to("/")
    sides = (source, f"osd:{top}/there") if to_target else (f"osd:{top}/there", copy)
    words = ("sync", "--delete", "--exclude", "*.tmp", *sides)
    planned = ["remove older/z", "remove older", "remove old/deep/y"]
    assert lines(osd, *words[:1], "-n", *words[1:]) == planned
    assert "removed 3" in osd(*words).stderr
    assert lines(osd, *words[:1], "-n", *words[1:]) == []


def test_sync_with_delete_continues_a_copy(
    osd: Run, top: str, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The part that an interrupted copy has left has become the file when it would be removed."""
    osd("cp", "-r", tree / "2024", f"osd:{top}")
    back, checked = tmp_path / "back", local_file.LocalFile.write

    def interrupted(self: local_file.LocalFile, data: memoryview, checksum: int = 0) -> None:
        checked(self, data, checksum)
        if checksum:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(local_file.LocalFile, "write", interrupted)
        osd("sync", "--delete", f"osd:{top}/2024", back, code=130)
    assert len([*back.rglob(".osd-*")]) == 1
    done = osd("sync", "--delete", f"osd:{top}/2024", back)
    assert "continued at 1.0 MiB" in done.stderr
    assert contents(back) == contents(tree / "2024")


def test_sync_from_a_file_removes_nothing(osd: Run, top: str, tree: Path) -> None:
    osd("cp", tree / "a.jpg", f"osd:{top}")
    before = contents(tree)
    done = osd("sync", "--delete", "--yes", f"osd:{top}/a.jpg", tree, code=66)
    assert done.stderr == f"osd: '{top}/a.jpg' is no directory\n"
    assert contents(tree) == before
    osd("sync", "--delete", "--yes", f"osd:{top}/none", tree, code=66)
    assert contents(tree) == before


@pytest.mark.parametrize("level", [0, 1, 2])
def test_sync_removes_no_copies_of_what_vanishes_while_it_is_listed(
    osd: Run, serving: Serving, top: str, tree: Path, monkeypatch: pytest.MonkeyPatch, level: int
) -> None:
    """A directory is removed after its name was read, and before its own names are."""
    osd("sync", tree, f"osd:{top}/copy")
    before, ls = contents(tree), lookup.ls
    parts = ("copy", "2024", "deep")

    def late(fs: Any, path: str = "/") -> Dialogue[list[PathInfo]]:
        if path.endswith("/" + "/".join(parts[: level + 1])):
            monkeypatch.setattr(lookup, "ls", ls)
            with serving.connect(local=True) as other:
                other.fs.rmtree(path)
        return (yield from ls(fs, path))

    (tree / "extra").write_bytes(b"")
    monkeypatch.setattr(lookup, "ls", late)
    sync = ("sync", "--delete", "--yes", f"osd:{top}/copy", tree)
    if not level:
        assert "no such file or directory" in osd(*sync, code=66).stderr
        assert contents(tree) == before | {"extra": b""}
        return
    gone = f"{top}/{'/'.join(parts[: level + 1])}"
    done = osd(*sync)
    assert f"osd: {gone}: left out: it was removed meanwhile\n" in done.stderr
    assert "removed 1" in done.stderr and contents(tree) == before
