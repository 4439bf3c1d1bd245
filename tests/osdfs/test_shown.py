# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs below .jobs and views below .views, in a mounted partition and in a mounted target."""

from __future__ import annotations

import errno
import gzip
import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pyosd.functions import FunctionStage
from pyosd.target import Target
from pyosd.types import ROOT, ObjectRef, PartitionId, ref
from tests.machine import unavailable
from tests.osdfs.conftest import MountedFiles
from tests.serving import Serving, sandboxes_missing
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]
TEXT = b"alice 1\nbob 2\nalice 3\n"


@pytest.fixture(autouse=True)
def sandboxes() -> None:
    if why := sandboxes_missing():
        unavailable("sandbox", why)


@contextmanager
def fails(number: int) -> Iterator[None]:
    with pytest.raises(OSError, match=rf"\[Errno {number}\]"):
        yield


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def files(folder: Path) -> list[str]:
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*"))


# ---- jobs ----------------------------------------------------------------------------------------


def test_a_job_is_a_directory_of_files(target: Target, zone: ObjectRef, top: Path) -> None:
    job = target.exec("import osd; print('out'); osd.result([1])", zone=zone, name="n")
    job.wait(60)
    there = top / ".jobs" / f"{job.id.object_id:#x}"
    assert files(there) == ["result", "status", "stderr", "stdout"]
    assert (there / "stdout").read_bytes() == b"out\n"
    assert json.loads((there / "result").read_text()) == [1]
    assert json.loads((there / "status").read_text())["name"] == "n"
    assert (there / "stderr").read_bytes() == b""
    assert (there / "status").stat().st_size == len((there / "status").read_bytes())
    assert (there / "status").stat().st_mode & 0o777 == 0o444
    assert [each.name for each in (top / ".jobs").iterdir()] == [f"{job.id.object_id:#x}"]
    assert subprocess.run(["ls", "-lR", there], capture_output=True, check=True).stderr == b""
    job.remove()
    assert list((top / ".jobs").iterdir()) == [] and not there.exists()


def test_output_of_a_running_job(target: Target, zone: ObjectRef, top: Path) -> None:
    code = "import osd, time\nfor n in range(1000): print(n, flush=True); time.sleep(0.05)"
    job = target.exec(code, zone=zone)
    try:
        path = top / ".jobs" / f"{job.id.object_id:#x}" / "stdout"
        with path.open() as file:
            lines = list[str]()

            def more() -> bool:
                lines.extend(file)
                return len(lines) > 5

            until(more)
        assert lines[:6] == [f"{n}\n" for n in range(6)]
    finally:
        job.kill(60)


def test_neither_is_listed(target: Target, zone: ObjectRef, top: Path) -> None:
    (top / "d").mkdir()
    target.functions.view_create(PartitionId(zone.partition_id), [])
    assert names(top) == ["d"] and files(top) == ["d"]
    assert not (top / "d/.jobs").exists() and not (top / "d/.views").exists()
    for name in (".jobs", ".views"):
        assert (top / name).is_dir()
        with fails(errno.EEXIST):
            (top / name).mkdir()
        with fails(errno.ENOENT):
            (top / name).rmdir()
        with fails(errno.ENOENT):
            (top / name).rename(top / "x")
        with fails(errno.EROFS):
            (top / name / "x").mkdir()
        assert not (top / name / "absent").exists()
        assert not (top / name / "0x99999").exists()


def test_data_with_these_names_are_data(target: Target, zone: ObjectRef, top: Path) -> None:
    """Of another client: they are listed, and hide what would be shown."""
    assert (top / ".jobs").is_dir()
    target.fs.write_bytes(f"/{zone}/.jobs", b"data")
    assert (top / ".jobs").read_bytes() == b"data" and names(top) == [".jobs"]
    (top / ".jobs").unlink()
    assert (top / ".jobs").is_dir()


def test_all_partitions(serving: Serving, target: Target, zone: ObjectRef) -> None:
    job = target.exec("print(1)", zone=zone)
    job.wait(60)
    with MountedFiles(serving.url, "/") as top:
        path = f"{zone}/{job.id.object_id:#x}/stdout"
        assert (top / ".jobs" / path).read_bytes() == b"1\n"
        assert (top / str(zone) / ".jobs" / f"{job.id.object_id:#x}/stdout").read_bytes() == b"1\n"
        assert ".jobs" not in names(top) and not (top / ".views").exists()
        target.link(ROOT, ".jobs", zone)
        try:
            assert (top / ".jobs" / path).read_bytes() == b"1\n"
        finally:
            target.unlink(ROOT, ".jobs")
        with fails(errno.EROFS):
            (top / ".jobs" / path).unlink()


def test_jobs_are_read_only(target: Target, zone: ObjectRef, top: Path) -> None:
    job = target.exec("print(1)", zone=zone)
    job.wait(60)
    there = top / ".jobs" / f"{job.id.object_id:#x}"
    (top / "data").write_bytes(b"1")
    for change in (
        lambda: (there / "stdout").write_bytes(b"x"),
        lambda: os.truncate(there / "stdout", 0),
        lambda: (there / "stdout").chmod(0o600),
        lambda: os.utime(there / "stdout"),
        lambda: (there / "new").write_bytes(b"x"),
        (there / "stdout").unlink,
        there.rmdir,
        lambda: (there / "stdout").rename(top / "x"),
        lambda: (top / "data").rename(there / "x"),
        lambda: os.setxattr(there / "stdout", "user.a", b"1"),
        lambda: (there / "link").symlink_to("x"),
    ):
        with fails(errno.EROFS):
            change()
    with fails(errno.EXDEV):
        (top / "x").hardlink_to(there / "stdout")
    assert os.listxattr(there / "stdout") == []
    assert job.output() == b"1\n" and names(top) == ["data"]


# ---- views ---------------------------------------------------------------------------------------


class Views:
    """Makes views of the test's partition, and removes them."""

    def __init__(self, target: Target, zone: ObjectRef) -> None:
        self.target, self.base = target, PartitionId(zone.partition_id)
        self.made = list[PartitionId]()

    def make(self, stock: str, parameters: str = "", *, writable: bool = False) -> str:
        """Returns: its directory."""
        function = self.target.functions.put_stock(stock).id
        stages = [FunctionStage(function, parameters=parameters)]
        view = self.target.functions.view_create(self.base, stages, writable=writable)
        self.made.append(view.id)
        return f"{view.id:#x}"


@pytest.fixture
def views(target: Target, zone: ObjectRef) -> Iterator[Views]:
    made = Views(target, zone)
    yield made
    for each in made.made:
        target.functions.view_remove(each)


def test_a_view_is_a_tree(target: Target, top: Path, views: Views) -> None:
    (top / "2026/deep").mkdir(parents=True)
    (top / "2026/a.txt").write_bytes(TEXT)
    (top / "2026/deep/none.txt").write_bytes(b"nobody\n")
    (top / "2026/link").symlink_to("a.txt")
    (top / "2026/a.txt").chmod(0o640)
    view = views.make("lines", "contains=alice")
    shown = top / ".views" / view
    assert names(top / ".views") == [view]
    assert files(shown) == files(top)
    assert files(top) == ["2026", "2026/a.txt", "2026/deep", "2026/deep/none.txt", "2026/link"]
    assert (shown / "2026/a.txt").read_bytes() == b"alice 1\nalice 3\n"
    assert (shown / "2026/link").readlink() == Path("a.txt")
    assert (shown / "2026/link").read_bytes() == b"alice 1\nalice 3\n"
    facts = (shown / "2026/a.txt").stat()
    assert (facts.st_size, facts.st_mode & 0o777) == (16, 0o440)
    assert (shown / "2026/deep/none.txt").stat().st_size == 0
    copied = shutil.copytree(shown, top.with_suffix(".copy"))
    try:
        assert (copied / "2026/a.txt").read_bytes() == b"alice 1\nalice 3\n"
    finally:
        shutil.rmtree(copied)
    for change in (
        lambda: (shown / "2026/a.txt").write_bytes(b"x"),
        (shown / "2026/a.txt").unlink,
        lambda: (shown / "2026/new").write_bytes(b"x"),
        lambda: (shown / "2026").rename(shown / "2027"),
        lambda: (shown / "2026/a.txt").rename(top / "x"),
    ):
        with fails(errno.EROFS):
            change()


def test_a_view_is_mounted_itself(
    target: Target, zone: ObjectRef, serving: Serving, views: Views
) -> None:
    """Names are those of the base; in a writable view they change there."""
    base = f"/{zone}"
    target.fs.mkdir(f"{base}/2026/deep", parents=True)
    target.fs.write_bytes(f"{base}/2026/a.txt", gzip.compress(TEXT))
    used = views.make("gzip", writable=True)
    views.made.append(target.functions.view_create(views.made[0], []).id)
    with MountedFiles(serving.url, f"/{views.made[1]:#x}") as top:
        assert files(top) == ["2026", "2026/a.txt", "2026/deep"]
        assert (top / "2026/a.txt").read_bytes() == TEXT
        assert (top / "2026/a.txt").stat().st_size == len(TEXT)
        for change in (
            (top / "2026/a.txt").unlink,
            (top / "2026/deep").rmdir,
            (top / "2026/new").mkdir,
            lambda: (top / "2026").rename(top / "2027"),
            lambda: (top / "2026/new").write_bytes(b"x"),
        ):
            with fails(errno.EROFS):
                change()
        with fails(errno.EPERM):
            (top / "2026").chmod(0o700)
        target.fs.rename(f"{base}/2026/a.txt", f"{base}/2026/b.txt")
        assert names(top / "2026") == ["b.txt", "deep"]
        until(lambda: not (top / "2026/a.txt").exists())  # the kernel keeps names for a second
    with MountedFiles(serving.url, f"/{used}") as top:
        (top / "new").mkdir()
        (top / "new/c.txt").write_bytes(b"three\n")
        (top / "2026/b.txt").rename(top / "new/b.txt")
        (top / "2026/deep").rmdir()
        assert (top / "new/b.txt").read_bytes() == TEXT
    assert [each.name for each in target.fs.iterdir(f"{base}/new")] == ["b.txt", "c.txt"]
    assert gzip.decompress(target.fs.read_bytes(f"{base}/new/c.txt")) == b"three\n"
    assert list(target.fs.iterdir(f"{base}/2026")) == []


def test_the_data_follow_the_base(target: Target, zone: ObjectRef, top: Path, views: Views) -> None:
    (top / "a").write_bytes(TEXT)
    shown = top / ".views" / views.make("lines", "contains=bob")
    assert (shown / "a").read_bytes() == b"bob 2\n"
    target.fs.write_bytes(f"/{zone}/b", b"bob 9\n")
    with target.open(f"/{zone}/a", "ab") as file:  # another client
        file.write(b"bob 4\n")
    assert (shown / "a").read_bytes() == b"bob 2\nbob 4\n" and (shown / "a").stat().st_size == 12
    assert names(shown) == ["a", "b"] and (shown / "b").read_bytes() == b"bob 9\n"
    (top / "a").unlink()
    assert not (shown / "a").exists() and names(shown) == ["b"]
    target.functions.view_remove(views.made.pop())
    assert names(top / ".views") == [] and not (shown / "b").exists()


def test_a_large_file_of_a_view(top: Path, views: Views, seed: int) -> None:
    data = random.Random(seed).randbytes(3 << 20) + bytes(9 << 20)
    (top / "a").write_bytes(gzip.compress(data, 1))
    (top / "empty").write_bytes(b"")
    shown = top / ".views" / views.make("gzip")
    assert (shown / "a").stat().st_size == len(data)
    assert (shown / "a").read_bytes() == data
    with (shown / "a").open("rb") as file:
        file.seek(len(data) - 5)
        assert file.read() == data[-5:]
    assert (shown / "empty").read_bytes() == b"" and (shown / "empty").stat().st_size == 0


def test_a_writable_view(
    target: Target, zone: ObjectRef, mounted: Callable[..., Path], views: Views, seed: int
) -> None:
    top, other = mounted(), mounted()
    (top / "a").write_bytes(gzip.compress(TEXT))
    view = views.make("gzip", writable=True)
    shown = top / ".views" / view
    assert (shown / "a").stat().st_mode & 0o200
    new = random.Random(seed).randbytes(5 << 20)
    (shown / "a").write_bytes(new)
    assert (other / ".views" / view / "a").read_bytes() == new
    assert gzip.decompress((other / "a").read_bytes()) == new
    with (shown / "a").open("r+b") as file:
        file.seek(1 << 20)
        file.write(b"in the middle")
        os.fsync(file.fileno())
    new = new[: 1 << 20] + b"in the middle" + new[(1 << 20) + 13 :]
    with (shown / "a").open("ab") as file:
        file.write(b"at the end")
    assert gzip.decompress((top / "a").read_bytes()) == new + b"at the end"
    assert gzip.decompress(target.fs.read_bytes(f"/{zone}/a")) == new + b"at the end"
    with fails(errno.EINVAL):
        os.truncate(shown / "a", 5)
    for change in (
        lambda: (shown / "a").chmod(0o600),
        (shown / "a").unlink,
        lambda: (shown / "new").write_bytes(b"x"),
    ):
        with fails(errno.EROFS):
            change()


def test_a_function_that_fails(top: Path, views: Views) -> None:
    (top / "a").write_bytes(b"this is no gzip")
    (top / "b").write_bytes(gzip.compress(TEXT))
    shown = top / ".views" / views.make("gzip")
    with fails(errno.EIO):
        (shown / "a").read_bytes()
    assert (shown / "b").read_bytes() == TEXT and names(shown) == ["a", "b"]


def test_a_view_of_another_partition(target: Target, zone: ObjectRef, top: Path) -> None:
    other = ref(target.create_partition())
    view = target.functions.view_create(PartitionId(other.partition_id), [])
    try:
        assert names(top / ".views") == []
        for name in (f"{view.id:#x}", str(zone), str(other), "x", "0"):
            assert not (top / ".views" / name).exists()
    finally:
        target.functions.view_remove(view.id)


def test_data_of_more_than_one_read(
    target: Target, zone: ObjectRef, top: Path, tmp_path: Path, seed: int
) -> None:
    """A view without functions: any length, which no attribute has."""
    data = random.Random(seed).randbytes((33 << 20) + 5)
    (top / "a").write_bytes(data)
    view = target.functions.view_create(PartitionId(zone.partition_id), [])
    try:
        obj = ref(view.id, target.fs.resolve(f"/{zone}/a").object_id)
        assert target.read_range(obj) == data and target.read_range(obj, 5) == data[5:]
        shown = top / ".views" / f"{view.id:#x}" / "a"
        assert shown.stat().st_size == len(data)
        shutil.copyfile(shown, tmp_path / "a")
        assert (tmp_path / "a").read_bytes() == data
    finally:
        target.functions.view_remove(view.id)
