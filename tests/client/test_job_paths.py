# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs by their paths, /.jobs/PARTITION/JOB/..., by both faces and by fsspec."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from pyosd import errors
from pyosd.fs.transfer import FileMoved, Incoming, differs, get_files
from pyosd.target import Target
from pyosd.types import ROOT, ObjectRef
from tests.client.faces import Face

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

LONG = 100_000
TELLS = """
import osd, sys
print("one")
print("beside", file=sys.stderr)
osd.result({"args": osd.args})
"""
CHANGES: list[tuple[str, tuple[Any, ...]]] = [
    ("mkdir", ("{}/d",)),
    ("rmdir", ("{}",)),
    ("unlink", ("{}/status",)),
    ("rmtree", ("{}",)),
    ("rename", ("{}/status", "{}/x")),
    ("rename", ("{}/status", "/{zone}/x")),
    ("link", ("{}/stdout", "/{zone}/x")),
    ("copy", ("/{zone}/data", "{}/x")),
    ("write_bytes", ("{}/stdout", b"x")),
    ("write_bytes", ("/.jobs", b"x")),
    ("open", ("{}/stdout", "r+b")),
    ("open", ("{}/stdout", "ab")),
    ("open", ("{}/x", "xb")),
]


@pytest.fixture
def fs(face: Face) -> Face:
    return Face(face.behind.fs, face._run)


def names(found: list[Any]) -> list[str]:
    return [each.path.rpartition("/")[2] for each in found]


def test_files_of_a_job(fs: Face, target: Target, zone: ObjectRef) -> None:
    job = target.exec(TELLS, zone=zone, args=[7], name="tells")
    job.wait(60)
    top = f"/.jobs/{zone}/{job.id.object_id:#x}"
    assert names(fs.ls(top)) == ["result", "status", "stderr", "stdout"]
    status = json.loads(fs.read_bytes(f"{top}/status"))
    assert (status["id"], status["name"], status["state"]) == (str(job.id), "tells", "COMPLETED")
    assert json.loads(fs.read_bytes(f"{top}/result")) == {"args": [7]}
    assert fs.read_bytes(f"{top}/stdout") == b"one\n"
    assert fs.read_bytes(f"{top}/stderr", 2, 4) == b"side"
    for each in fs.ls(top):
        assert fs.info(each.path) == each
        whole = b"".join(map(bytes, fs.iter_data(each)))
        assert whole == bytes(fs.read_bytes(each.path)) and len(whole) == each.length
        assert b"".join(map(bytes, fs.iter_data(each, 1, 2))) == whole[1:3]
    assert fs.resolve(top) == job.id
    assert names(fs.glob(f"/.jobs/{zone}/*/st*")) == ["status", "stderr", "stdout"]
    assert fs.du(top)[0] == 4
    ended = job.status().ended
    assert ended is not None and fs.info(top).modified_ms == round(ended.timestamp() * 1000)
    job.remove()
    assert not fs.exists(top) and fs.ls(f"/.jobs/{zone}") == []


def test_a_job_that_goes_on(fs: Face, target: Target, zone: ObjectRef) -> None:
    job = target.exec("print('here', flush=True)\nwhile True: pass", zone=zone)
    try:
        assert next(job.logs(follow=True)) == "here"
        top = f"/.jobs/{zone}/{job.id.object_id:#x}"
        assert names(fs.ls(top)) == ["status", "stderr", "stdout"]
        assert fs.read_bytes(f"{top}/stdout") == b"here\n"
        assert json.loads(fs.read_bytes(f"{top}/status"))["state"] == "RUNNING"
    finally:
        job.kill()


def test_members_of_an_array(fs: Face, target: Target, zone: ObjectRef) -> None:
    array = target.exec_array("import osd; print(osd.array_index)", zone=zone, array="3,5-6")
    array.wait(60)
    top = f"/.jobs/{zone}/{array.id.object_id:#x}"
    assert names(fs.ls(f"/.jobs/{zone}")) == [f"{array.id.object_id:#x}"]
    assert names(fs.ls(top)) == ["status", "3", "5", "6"]
    assert [bytes(fs.read_bytes(each.path)) for each in fs.glob(f"{top}/*/stdout")] == [
        b"3\n",
        b"5\n",
        b"6\n",
    ]
    assert fs.resolve(f"{top}/5") == array.member(5).id
    for absent in ("4", "7", "x", "5/no", "5/stdout/x", "-1"):
        assert not fs.exists(f"{top}/{absent}")


def test_a_long_result_and_local_copies(
    fs: Face, target: Target, zone: ObjectRef, tmp_path: Path
) -> None:
    job = target.exec(f"import osd; osd.result(b'r' * {LONG})", zone=zone)
    job.wait(60)
    top = f"/.jobs/{zone}/{job.id.object_id:#x}"
    assert fs.info(f"{top}/result").length == LONG
    assert fs.read_bytes(f"{top}/result") == b"r" * LONG
    wanted = [Incoming(each, tmp_path / each.name) for each in target.fs.ls(top)]
    for moved in target.carry_stream(get_files(wanted)):
        assert isinstance(moved, FileMoved) and moved.error is None
        assert not target.carry(differs(moved))
    assert (tmp_path / "result").read_bytes() == b"r" * LONG
    assert json.loads((tmp_path / "status").read_bytes())["id"] == str(job.id)
    assert fs.copy(f"{top}/result", f"/{zone}/kept")
    assert fs.read_bytes(f"/{zone}/kept") == b"r" * LONG


def test_jobs_are_not_among_data(fs: Face, target: Target, zone: ObjectRef) -> None:
    target.exec("pass", zone=zone).wait(60)
    target.fs.write_bytes(f"/{zone}/a", b"1")
    assert names(fs.walk(f"/{zone}")) == ["a"]
    assert "/.jobs" not in [each.path for each in fs.ls("/")]
    for pattern in (f"/{zone}/**", "/.j*", "/*jobs", "/**/status"):
        assert not [each for each in fs.glob(pattern) if ".jobs" in each.path]
    assert fs.ls(f"/{zone}/../.jobs/{zone}")  # the text is resolved first
    with pytest.raises(errors.NoSuchName):
        fs.ls(f"/{zone}/.jobs")
    below = target.fs.below(zone)
    below.mkdir(".jobs")
    below.write_bytes(".jobs/data", b"2")
    assert names([*below.walk()]) == [".jobs", "data", "a"]
    assert fs.read_bytes(f"/{zone}/.jobs/data") == b"2"


def test_a_partition_with_the_name(fs: Face, target: Target, zone: ObjectRef) -> None:
    target.link(ROOT, ".jobs", zone)
    try:
        target.fs.write_bytes(f"/{zone}/a", b"1")
        listed = {each.path: each.object for each in fs.ls("/")}
        assert listed[f"/{zone}"] == zone and "/.jobs" not in listed
        assert fs.read_bytes(f"/{zone}/a") == b"1"
        assert f"/.jobs/{zone}" in [each.path for each in fs.ls("/.jobs")]
    finally:
        target.unlink(ROOT, ".jobs")


@pytest.mark.parametrize(("method", "arguments"), CHANGES)
def test_jobs_are_read_only(
    fs: Face, target: Target, zone: ObjectRef, method: str, arguments: tuple[Any, ...]
) -> None:
    target.fs.write_bytes(f"/{zone}/data", b"1")
    job = target.exec("print(1)", zone=zone)
    job.wait(60)
    top = f"/.jobs/{zone}/{job.id.object_id:#x}"
    given = [each.format(top, zone=zone) if isinstance(each, str) else each for each in arguments]
    with pytest.raises(OSError, match="can only be read") as caught:
        getattr(fs, method)(*given)
    assert caught.value.errno == errno.EROFS
    assert job.output() == b"1\n" and names(fs.ls(f"/{zone}")) == ["data"]


@pytest.mark.parametrize(
    "path", ["0x4000000000009999", "no", "0", "-1", "99999999999999999999999", "0x10000"]
)
def test_absent_jobs(fs: Face, target: Target, zone: ObjectRef, path: str) -> None:
    data = target.create_and_write(zone.partition_id, b"data")
    assert data.object_id == 0x10000  # is no job
    for each in (path, f"{path}/status", f"{path}/0/status"):
        with pytest.raises(errors.NoSuchName):
            fs.info(f"/.jobs/{zone}/{each}")
        with pytest.raises(errors.NoSuchName):
            fs.ls(f"/.jobs/{zone}/{each}")
    for each in ("0x99990000", "no"):
        with pytest.raises(errors.NoSuchName):
            fs.ls(f"/.jobs/{each}")


def test_files_are_no_directories_and_no_objects(fs: Face, target: Target, zone: ObjectRef) -> None:
    job = target.exec("pass", zone=zone)
    job.wait(60)
    top = f"/.jobs/{zone}/{job.id.object_id:#x}"
    assert fs.ls(f"{top}/status")[0].path == f"{top}/status"
    assert not fs.exists(f"{top}/status/x") and not fs.exists(f"{top}/result")
    with pytest.raises(IsADirectoryError):
        fs.read_bytes(top)
    for path in ("/.jobs", f"/.jobs/{zone}", f"{top}/stdout", f"{top}/status"):
        with pytest.raises(OSError, match="can only be read"):
            fs.resolve(path)


def test_open(target: Target, zone: ObjectRef) -> None:
    job = target.exec(TELLS, zone=zone, args=[])
    job.wait(60)
    top = f"/.jobs/{zone}/{job.id.object_id:#x}"
    with target.open(f"{top}/status") as file:
        assert json.load(file)["state"] == "COMPLETED"
    with target.open(f"{top}/stdout") as file:
        assert file.read() == "one\n"
    with target.open(f"{top}/stderr", "rb") as file:
        assert file.seek(3) == 3 and file.read() == b"ide\n"


def test_fsspec(osd_url: str, target: Target, zone: ObjectRef, tmp_path: Path) -> None:
    pytest.importorskip("fsspec")
    from pyosd.fronts.fsspec import IosdFileSystem

    fs = IosdFileSystem(osd_url)
    job = target.exec(TELLS, zone=zone, args=[])
    job.wait(60)
    top = f".jobs/{zone}/{job.id.object_id:#x}"
    found = fs.find(top)
    assert [each.rpartition("/")[2] for each in found] == ["result", "status", "stderr", "stdout"]
    assert (
        fs.cat_file(f"{top}/stdout") == b"one\n" and fs.cat_file(f"{top}/stderr", -5) == b"side\n"
    )
    assert fs.cat_ranges([f"{top}/stdout", f"{top}/stderr"], 0, 2) == [b"on", b"be"]
    with fs.open(f"{top}/status") as file:
        assert json.load(file)["id"] == str(job.id)
    fs.get(f"{top}/stderr", str(tmp_path / "got"))
    assert (tmp_path / "got").read_bytes() == b"beside\n"
    assert not [each for each in fs.find("") if each.startswith(".jobs")]
    assert not [each for each in fs.ls("", detail=False) if each.startswith(".jobs")]
    for change in (
        lambda: fs.pipe_file(f"{top}/x", b"1"),
        lambda: fs.rm(top, recursive=True),
        lambda: fs.mv(f"{top}/stdout", f"{zone}/x"),
        lambda: fs.put_file(str(tmp_path / "got"), f"{top}/x"),
        lambda: fs.makedirs(f"{top}/d"),
    ):
        with pytest.raises(OSError, match="can only be read"):
            change()
    assert fs.ls(str(zone)) == []
