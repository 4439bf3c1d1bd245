# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd put` and `osd get`: files and folders into a partition, and back."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import pyosd
from pyosd.attributes import Page
from pyosd.files import Entry, entries, place_of
from pyosd.types import AttributeValue, ref
from tests.cli.conftest import Run
from tests.serving import Serving
from tests.waiting import until

pytestmark = pytest.mark.tgtd
LARGE = 5 << 20  # several commands


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with some of everything."""
    top = tmp_path / "photos"
    made = random.Random(7)
    for name, length in {
        "a.jpg": 10,
        "empty": 0,
        "2024/b c.jpg": 70_000,
        "2024/deep/ünder/large.bin": LARGE + 3,
        "2025/exact": 1 << 20,
    }.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(made.randbytes(length))
    return top


def contents(folder: Path) -> dict[str, bytes]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def test_a_folder_there_and_back(osd: Run, pid: str, tree: Path, tmp_path: Path) -> None:
    lines = osd("put", tree, pid).stdout.splitlines()
    assert {line.split(" ", 1)[1] for line in lines} == {
        f"photos/{name}" for name in contents(tree)
    }
    ids = [line.split()[0] for line in lines]
    assert sorted(ids) == sorted(osd("obj", "ls", pid, "-o", "id").stdout.split())
    paths = osd("get", pid, tmp_path / "back").stdout.splitlines()
    assert contents(tmp_path / "back" / "photos") == contents(tree)
    assert sorted(paths) == sorted(
        str(each) for each in (tmp_path / "back").rglob("*") if each.is_file()
    )
    mode = (tmp_path / "back/photos/a.jpg").stat().st_mode
    assert mode & 0o777 == 0o666 & ~current_umask()


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_again_replaces(osd: Run, pid: str, tree: Path, tmp_path: Path) -> None:
    osd("put", tree, pid)
    (tree / "a.jpg").write_bytes(b"another")
    osd("put", tree, pid)
    assert len(osd("obj", "ls", pid, "-o", "id").stdout.split()) == 5
    (tree / "a.jpg").write_bytes(b"a third")
    assert osd("put", tree, pid, "--if-exists", "skip").stdout == ""
    done = osd("put", tree, pid, "--if-exists", "fail", code=1)
    assert "has an object named 'photos/a.jpg' already" in done.output
    osd("get", pid, tmp_path, "--name", "photos/a*", "--if-exists", "skip")
    osd("get", pid, tmp_path / "new", "--name", "photos/a*")
    assert contents(tmp_path / "new") == {"photos/a.jpg": b"another"}
    assert (
        "exists already" in osd("get", pid, tmp_path / "new", "--if-exists", "fail", code=1).output
    )


def test_single_files_and_objects(osd: Run, pid: str, tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"1")
    made = osd("put", tmp_path / "one", pid, "--prefix", "some/").stdout.split()
    assert made[1] == "some/one"
    unnamed = osd("obj", "write", pid, data=b"no name").stdout.strip()
    osd("get", unnamed, made[0], tmp_path / "out")
    number = unnamed.split("/")[1]
    assert contents(tmp_path / "out") == {"some/one": b"1", number: b"no name"}
    assert "1 file, 1 B" in osd("get", made[0], tmp_path / "again").stderr
    nothing = osd("get", pid, tmp_path / "out", "--name", "*.csv")
    assert "no object has a name that matches '*.csv'" in nothing.stderr
    twice = osd("put", tmp_path / "one", tmp_path / "one", pid, code=2)
    assert "two files would have the name 'one'" in twice.output
    osd("put", tmp_path / "one", "0x10000/0x10000", code=2)
    osd("put", tmp_path / "one", "0x7777", code=66)


@pytest.mark.parametrize("name", ["/etc/passwd", "../up", "a/../../b", "a\0b", "x" * 300, "//x"])
def test_a_name_that_leads_out(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no file can have the name"):
        place_of(tmp_path, Entry(ref(1 << 16, 1 << 16), name, 0))


def test_a_hostile_name_in_the_store(osd: Run, serving: Serving, pid: str, tmp_path: Path) -> None:
    with serving.connect(local=True) as target:
        evil = AttributeValue(Page.USER_INFORMATION, 9, b"../../evil")
        target.create_and_write(int(pid, 0), b"data", attributes=[evil])
    done = osd("get", pid, tmp_path / "a" / "b", code=1)
    assert "read the object by its id" in done.output
    assert not (tmp_path / "evil").exists()


def test_one_that_fails_does_not_stop_the_others(osd: Run, pid: str, tree: Path) -> None:
    if os.geteuid() == 0:
        (tree / "a.jpg").unlink()
        (tree / "a.jpg").symlink_to("/proc/self/mem")  # a regular file whose reading fails
    else:
        (tree / "a.jpg").chmod(0)
    done = osd("put", tree, pid, code=1)
    assert "1 of 5 files failed" in done.output and "a.jpg" in done.output
    assert len(osd("obj", "ls", pid, "-o", "id").stdout.split()) == 4


def test_killed_in_the_middle_leaves_no_torso_with_a_name(
    serving: Serving, osd: Run, pid: str, tmp_path: Path
) -> None:
    """What has a name is whole; `put` again replaces nothing that was not finished."""
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(2 << 30)
    command = [sys.executable, "-c", "from pyosd.cli import main; main()", "put", str(big), pid]
    environment = os.environ | {"IOSD_TARGET": serving.url}
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        until(lambda: process.poll() is not None or osd("obj", "ls", pid, "-o", "id").stdout)
        process.send_signal(signal.SIGKILL)
    with serving.connect(local=True) as target:
        names = [each.name for each in entries(target, int(pid, 0))]
        assert names in ([""], ["big"])
        if names == ["big"]:
            assert next(entries(target, int(pid, 0))).length == 2 << 30


def test_names_of_many_objects(serving: Serving, pid: str) -> None:
    """A listing with attributes goes on where an answer was full."""
    with serving.connect(local=True) as target:
        number = int(pid, 0)
        for at in range(6):
            name = AttributeValue(Page.USER_INFORMATION, 9, f"name {at}".encode())
            target.create_many(number, 1000, attributes=[name])
        found = list(entries(target, number))
        assert [each.obj for each in found] == target.list_objects(number)
        assert [each.name for each in found] == [f"name {at // 1000}" for at in range(6000)]
        with pytest.raises(pyosd.NotFound):
            list(entries(target, 0x7777_7777))
