# SPDX-License-Identifier: GPL-2.0-or-later
"""Files below /run/iosd: believed while who wrote them lives, and only if nobody else can have."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from iosd_host.common.places import MANAGER, TARGET, PlaceFile, folder, own_path, running
from iosd_host.manager.client import _beside

HOLD = """
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from iosd_host.common.places import PlaceFile
place = PlaceFile(Path(sys.argv[1]))
place.write({"schema": "iosd.manager/1", "url": sys.argv[2]})
print("there", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IOSD_RUN", str(tmp_path / "run"))
    return tmp_path / "run"


def urls() -> list[str]:
    return [each["url"] for each in running(MANAGER)]


def test_one_that_is_killed_is_not_found(run: Path) -> None:
    assert urls() == []
    path = run / "manager-a.json"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, path, "ipc://a"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == b"there\n"
        assert urls() == ["ipc://a"]
        with pytest.raises(BlockingIOError):
            PlaceFile(path)
        own = PlaceFile(run / "manager-b.json")
        assert urls() == ["ipc://a"]  # it has said nothing yet
        own.write({"schema": "iosd.manager/1", "url": "ipc://b" * 100})
        own.write({"schema": "iosd.manager/1", "url": "ipc://b"})
        assert urls() == ["ipc://a", "ipc://b"] and not list(running(TARGET))
        other.kill()
    assert path.exists() and urls() == ["ipc://b"]
    again = PlaceFile(path)
    again.write({"schema": "iosd.manager/1", "url": "ipc://c"})
    assert urls() == ["ipc://c", "ipc://b"]
    again.close()
    own.close()
    assert urls() == [] and not list(run.iterdir())


def test_a_manager_is_found_by_its_target_in_each_spelling(run: Path) -> None:
    held = []
    for number in (1, 2):
        name, url = f"iqn.2026-11.example:{number}", f"ipc://{number}"
        target = f"iscsi://127.0.0.1:{3260 + number}/{name}/1"
        held += [
            PlaceFile(run / f"manager-{number}.json"),
            PlaceFile(run / f"target-{number}.json"),
        ]
        held[-2].write({"schema": "iosd.manager/1", "url": url})
        held[-1].write({"schema": "iosd.served/1", "url": target, "name": name, "manager": url})
    for spelling in (target, target.removesuffix("/1"), name):
        found = _beside(spelling, None, 0)
        assert found is not None and found["url"] == "ipc://2", spelling
    assert _beside(None, None, 0) is None
    for each in held:
        each.close()


def test_a_file_that_finds_no_room_is_as_it_was(run: Path) -> None:
    """/run is full: the target is still found, by what was said of it before."""
    place = PlaceFile(run / "manager-a.json")
    place.write({"schema": "iosd.manager/1", "url": "ipc://a"})
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            place.write({"schema": "iosd.manager/1", "url": "ipc://b" * 1000})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert urls() == ["ipc://a"]
    place.close()


def test_others_files_are_not_believed(run: Path) -> None:
    place = PlaceFile(run / "manager-a.json")
    place.write({"schema": "iosd.manager/1", "url": "ipc://a"})
    assert urls() == ["ipc://a"]
    run.chmod(0o777)
    assert urls() == []
    run.chmod(0o755)
    place.write({"schema": "iosd.manager/2", "url": "ipc://a"})
    assert urls() == []
    place.close()
    if os.geteuid() == 0:
        os.chown(run, 12345, 12345)
        assert urls() == []


NOBODY = 65534
root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be somebody else")


def as_nobody(work: Callable[[], None]) -> None:
    """Run in a process of an ordinary user."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            work()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


@root
@pytest.mark.parametrize("way", ["folder", "link to a folder", "link to a file", "open folder"])
def test_what_a_stranger_has_put_below_tmp_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """An ordinary user without XDG_RUNTIME_DIR has a folder below /tmp, where anybody can make it first."""
    with tempfile.TemporaryDirectory(prefix="iosd-test-", dir="/var/tmp") as shared:
        Path(shared).chmod(0o1777)
        monkeypatch.delenv("IOSD_RUN", raising=False)
        monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
        monkeypatch.setattr(tempfile, "tempdir", shared)
        victim = Path(shared, "victim")
        victim.write_text("precious")
        os.chown(victim, NOBODY, NOBODY)
        mine, name = Path(shared, f"iosd-{NOBODY}"), "target-1.json"
        elsewhere = Path(shared, "elsewhere")
        elsewhere.mkdir()
        if way == "link to a folder":
            os.chown(elsewhere, NOBODY, NOBODY)
            mine.symlink_to(elsewhere)
        else:
            mine.mkdir()
            owner = 12345 if way == "folder" else NOBODY
            os.chown(mine, owner, owner)
            mine.chmod(0o777 if way in ("folder", "open folder") else 0o755)
            if way == "link to a file":
                mine.joinpath(name).symlink_to(victim)

        def work() -> None:
            with pytest.raises(OSError, match=f"iosd-{NOBODY}"):
                PlaceFile(folder() / name)

        as_nobody(work)
        assert victim.read_text() == "precious"
        assert not list(elsewhere.iterdir())


@root
def test_an_ordinary_users_folder_below_tmp_is_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    with tempfile.TemporaryDirectory(prefix="iosd-test-", dir="/var/tmp") as shared:
        Path(shared).chmod(0o1777)
        monkeypatch.delenv("IOSD_RUN", raising=False)
        monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
        monkeypatch.setattr(tempfile, "tempdir", shared)

        def work() -> None:
            place = PlaceFile(own_path(MANAGER))
            place.write({"schema": "iosd.manager/1", "url": "ipc://a"})
            assert urls() == ["ipc://a"]
            assert folder().stat().st_mode & 0o777 == 0o755
            place.close()
            assert urls() == []

        as_nobody(work)


def test_whoever_locks_a_file_hides_nobody(run: Path) -> None:
    """A stranger can open what all can read, and lock it, also while a manager starts again."""
    path = run / "manager-a.json"
    for _ in range(2):
        place = PlaceFile(path)
        place.write({"schema": "iosd.manager/1", "url": "ipc://a"})
        with path.open("rb") as stranger:
            fcntl.flock(stranger, fcntl.LOCK_EX)
            assert urls() == ["ipc://a"]
            again = path.read_bytes()
            place.close()
            path.write_bytes(again)  # as a manager leaves it that is killed
            path.write_bytes(json.dumps({**json.loads(again), "start_ticks": 1}).encode() + b"\n")
            assert urls() == []
            with path.open("rb") as other:
                fcntl.flock(other, fcntl.LOCK_EX)
                PlaceFile(path).close()


def test_a_file_of_a_process_that_had_the_same_number(run: Path) -> None:
    run.mkdir()
    fields = {"schema": "iosd.manager/1", "url": "ipc://a", "pid": os.getpid(), "start_ticks": 1}
    (run / "manager-a.json").write_text(json.dumps(fields) + "\n")
    assert urls() == []
    PlaceFile(run / "manager-a.json").close()


def test_links_in_the_folder_are_not_read(run: Path, tmp_path: Path) -> None:
    place = PlaceFile(run / "manager-a.json")
    place.write({"schema": "iosd.manager/1", "url": "ipc://a"})
    (run / "manager-a.json").rename(tmp_path / "elsewhere")
    (run / "manager-a.json").symlink_to(tmp_path / "elsewhere")
    assert urls() == []
    with pytest.raises(OSError, match="symbolic link"):
        PlaceFile(run / "manager-a.json")
    place.close()
