# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd put` and `osd get`: files and folders into a partition, and back."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path
from typing import cast

import pytest

import pyosd
from pyosd import errors
from pyosd.files import Entry, Moved, entries, place_of, put_many
from pyosd.target import Target
from pyosd.types import AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import Page
from tests import warm
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


def test_files_with_paths_are_apart(osd: Run, pid: str, tmp_path: Path) -> None:
    """put does not replace a file that has a path, and get fetches it by its path."""
    (tmp_path / "a").write_bytes(b"by name")
    osd("mkdir", f"/{pid}/d")
    osd("cp", "-", f"osd:/{pid}/d/a", data=b"by path")
    osd("put", tmp_path / "a", pid)
    osd("put", tmp_path / "a", pid)
    assert len(osd("obj", "ls", pid, "-o", "id").stdout.split()) == 2
    assert osd("cat", f"/{pid}/d/a").stdout == "by path"
    osd("get", pid, tmp_path / "out")
    assert contents(tmp_path / "out") == {"a": b"by name", "d/a": b"by path"}
    assert "is a directory" in osd("get", f"/{pid}/d", tmp_path / "out", code=1).stderr


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
    absent = osd("put", tmp_path / "one", "0x17777", code=66).stderr
    assert "no partition 0x17777: nothing is stored" in absent
    assert "osd part create 0x17777" in absent
    assert "no partition 0x17777" in osd("get", "0x17777", tmp_path / "out", code=66).stderr
    other = osd("part", "create").stdout.strip()
    same = osd("put", tmp_path / "one", other, "--prefix", "some/").stdout.split()[0]
    twice = osd("get", pid, same, made[0], tmp_path / "twice", code=1)
    place = tmp_path / "twice" / "some" / "one"
    assert f"{made[0]} and {same} would both be the file {place}: get them into" in twice.stderr
    assert "2 files" in osd("get", pid, made[0], tmp_path / "twice").stderr


@pytest.mark.parametrize("name", ["/etc/passwd", "../up", "a/../../b", "a\0b", "x" * 300, "//x"])
def test_a_name_that_leads_out(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no file can have the name"):
        place_of(tmp_path, Entry(ref(1 << 16, 1 << 16), name, 0))


def test_a_hostile_name_in_the_store(osd: Run, serving: Serving, pid: str, tmp_path: Path) -> None:
    with serving.connect(local=True) as target:
        evil = AttributeValue(Page.USER_INFORMATION, 9, b"../../evil")
        target.create_and_write(PartitionId(int(pid, 0)), b"data", attributes=[evil])
        good = target.create_and_write(PartitionId(int(pid, 0)), b"good")
    done = osd("get", pid, tmp_path / "a" / "b", code=1)
    assert "read the object by its id" in done.output and "1 of 2 files failed" in done.output
    assert (tmp_path / f"a/b/{good.object_id:#x}").read_bytes() == b"good"
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
    """An object with a name is complete; a repeated `put` replaces nothing that was not
    finished."""
    big = tmp_path / "big"
    with big.open("wb") as file:
        file.truncate(2 << 30)
    command = [sys.executable, "-c", "from pyosd.cli import main; main()", "put", str(big), pid]
    environment = os.environ | {"IOSD_TARGET": serving.url}
    with warm.Python(command, env=environment, stdout=subprocess.DEVNULL) as process:
        until(lambda: process.poll() is not None or osd("obj", "ls", pid, "-o", "id").stdout)
        process.send_signal(signal.SIGKILL)
    with serving.connect(local=True) as target:
        names = [each.name for each in entries(target, PartitionId(int(pid, 0)))]
        assert names in ([""], ["big"])
        if names == ["big"]:
            assert next(entries(target, PartitionId(int(pid, 0)))).length == 2 << 30


KILLED = """
import os, signal
from pyosd import files
from pyosd.cli import main

def killed(move):
    def moving(*args, progress, **options):
        left = 8 << 20
        def counted(count):
            nonlocal left
            left -= count
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return move(*args, progress=counted, **options)
    return moving

files.put_many, files.get_many = killed(files.put_many), killed(files.get_many)
main()
"""
"""`osd` that is killed in the middle of a large file."""


def test_a_killed_transfer_is_continued(
    serving: Serving, osd: Run, pid: str, tmp_path: Path
) -> None:
    big, part = tmp_path / "big", 64 << 20
    with big.open("wb") as file:
        for at in range(0, part, 1 << 20):
            file.write(random.Random(at).randbytes(1 << 20))
    environment = os.environ | {"IOSD_TARGET": serving.url}

    def killed(*words: object) -> None:
        command = [sys.executable, "-c", KILLED, *map(str, words)]
        done = warm.run(command, env=environment, stdout=subprocess.DEVNULL)
        assert done.returncode == -signal.SIGKILL

    with serving.connect(local=True) as target:

        def there() -> int:
            found = list(entries(target, PartitionId(int(pid, 0))))
            return found[0].length if found else 0

        killed("put", "--check", big, pid)
        assert 0 < there() < part
        done = osd("put", "--check", big, pid)
        assert there() == part and "big: continued at" in done.stderr
        killed("get", pid, tmp_path / "back")
        assert "big: continued at" in osd("get", "--check", pid, tmp_path / "back").stderr
        assert (tmp_path / "back/big").read_bytes() == big.read_bytes()
        assert len(osd("obj", "ls", pid, "-o", "id").stdout.split()) == 1
    assert [*(tmp_path / "state/iosd/transfers").iterdir()] == []


def test_names_of_many_objects(serving: Serving, pid: str) -> None:
    """A listing with attributes goes on where an answer was full."""
    with serving.connect(local=True) as target:
        number = int(pid, 0)
        for at in range(6):
            name = AttributeValue(Page.USER_INFORMATION, 9, f"name {at}".encode())
            target.create_many(PartitionId(number), 1000, attributes=[name])
        found = list(entries(target, PartitionId(number)))
        assert [each.obj for each in found] == target.list_objects(PartitionId(number))
        assert [each.name for each in found] == [f"name {at // 1000}" for at in range(6000)]
        with pytest.raises(pyosd.NotFound):
            list(entries(target, PartitionId(0x7777_7777)))


def test_names_that_get_would_refuse_are_not_made(
    osd: Run, pid: str, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ ".." gives the names "." gives; a prefix that leads out is refused before anything is stored."""
    monkeypatch.chdir(tree / "2024")
    osd("put", "..", pid)
    osd("get", pid, tmp_path / "back")
    assert contents(tmp_path / "back") == contents(tree)
    for prefix in ("../", "/", "x" * 256):
        done = osd("put", tree / "a.jpg", pid, "--prefix", prefix, code=2)
        assert "give a --prefix without" in done.output
    assert len(osd("obj", "ls", pid, "-o", "id").stdout.split()) == 5


def test_reasons_are_sentences(osd: Run, pid: str, tree: Path, tmp_path: Path) -> None:
    osd("put", tree / "a.jpg", pid)
    (tmp_path / "out" / "a.jpg").mkdir(parents=True)
    done = osd("get", pid, tmp_path / "out", code=1)
    assert f"osd: {tmp_path}/out/a.jpg: Is a directory\n" in done.stderr
    assert "is a file" in osd("get", pid, tree / "a.jpg", code=2).stderr


class Stand:
    """A target that stores nothing; some objects may not be removed."""

    def __init__(self, kept: tuple[int, ...] = ()) -> None:
        self.kept, self.removed = kept, list[int]()
        self.numbers = itertools.count(100)

    def carry(self, dialogue: Generator[object, object, ObjectRef]) -> ObjectRef:
        dialogue.close()
        return ref(1 << 16, next(self.numbers))

    def remove(self, obj: ObjectRef) -> None:
        if obj.object_id in self.kept:
            raise pyosd.PermissionDenied(5, 0x20, 0x02, "access denied")
        self.removed.append(obj.object_id)


class Deaf(Stand):
    """A target whose answer to the first REMOVE is lost, or says too little."""

    def __init__(self, error: pyosd.OSDError) -> None:
        super().__init__()
        self.error = error

    def remove(self, obj: ObjectRef) -> None:
        super().remove(obj)
        if len(self.removed) == 1:
            raise self.error


def test_an_interrupt_ends_files_that_are_under_way(
    serving: Serving, pid: str, tmp_path: Path
) -> None:
    """One of them never ends by itself; what is there of it is removed."""
    (tmp_path / "small").write_bytes(b"1")
    partition, writing = PartitionId(int(pid, 0)), threading.Event()

    def progress(count: int) -> None:
        if count >= 1 << 20:
            writing.set()

    files = [(tmp_path / "small", "small"), (Path("/dev/zero"), "zero")]
    with serving.connect(local=True) as target:
        moving = put_many(target, partition, files, progress=progress)
        assert next(moving).name == "small"
        assert writing.wait(60)
        cast(Generator[Moved], moving).close()
        assert [each.name for each in entries(target, partition)] == ["small"]


@pytest.mark.parametrize(("kept", "removed"), [((1,), [100]), ((2,), [1])])
def test_what_may_not_be_replaced(
    tmp_path: Path, kept: tuple[int, ...], removed: list[int]
) -> None:
    """The new object goes, unless an old one has gone already."""
    (tmp_path / "small").write_bytes(b"1")
    stand = Stand(kept)
    old = [ref(1 << 16, 1), ref(1 << 16, 2)]
    files = [(tmp_path / "small", "small")]
    (moved,) = put_many(cast(Target, stand), PartitionId(1 << 16), files, replace=lambda _: old)
    assert isinstance(moved.error, pyosd.PermissionDenied) and stand.removed == removed


@pytest.mark.parametrize(
    "error",
    [
        errors.SessionLost("the connection ended"),
        errors.TaskAborted(0xB, 0, 0, "aborted"),
        errors.StorageError(4, 0, 0, "the storage failed"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_what_may_have_been_replaced(tmp_path: Path, error: pyosd.OSDError) -> None:
    """The new object stays: it may be the only one."""
    (tmp_path / "small").write_bytes(b"1")
    stand, old = Deaf(error), [ref(1 << 16, 1)]
    files = [(tmp_path / "small", "small")]
    with suppress(errors.Unreachable):  # ends the stream
        (moved,) = put_many(cast(Target, stand), PartitionId(1 << 16), files, replace=lambda _: old)
        assert moved.error is error
    assert stand.removed == [1]
