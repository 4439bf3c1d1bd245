# SPDX-License-Identifier: GPL-2.0-or-later
"""Files below /run/iosd: believed while who wrote them lives, and only if nobody else can have."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scheduler.admin.places import MANAGER, TARGET, Place, running

HOLD = """
import sys
from pathlib import Path
from scheduler.admin.places import Place
place = Place(Path(sys.argv[1]))
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
            Place(path)
        own = Place(run / "manager-b.json")
        assert urls() == ["ipc://a"]  # it has said nothing yet
        own.write({"schema": "iosd.manager/1", "url": "ipc://b" * 100})
        own.write({"schema": "iosd.manager/1", "url": "ipc://b"})
        assert urls() == ["ipc://a", "ipc://b"] and not list(running(TARGET))
        other.kill()
    assert path.exists() and urls() == ["ipc://b"]
    again = Place(path)
    again.write({"schema": "iosd.manager/1", "url": "ipc://c"})
    assert urls() == ["ipc://c", "ipc://b"]
    again.close()
    own.close()
    assert urls() == [] and not list(run.iterdir())


def test_others_files_are_not_believed(run: Path) -> None:
    place = Place(run / "manager-a.json")
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
