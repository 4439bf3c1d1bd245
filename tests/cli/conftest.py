# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs `osd` in the test's process against a target with the standard security method."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pyosd.cli import main
from pyosd.types import ObjectRef
from tests.machine import unavailable
from tests.serving import Serving, arguments, missing, shared

Run = Callable[..., Result]
LARGE = (3 << 20) + 5


@pytest.fixture(scope="session")
def serving() -> Iterator[Serving]:
    """A target as people get it: its user has a local credential, which `osd` finds."""
    why = missing()
    if why:
        unavailable("tgtd", why)
    with shared(*arguments(), standard=True) as served:
        yield served


@pytest.fixture
def osd(serving: Serving, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command line; the exit code is checked, 0 unless `code` says another."""
    monkeypatch.setenv("IOSD_TARGET", serving.url)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))

    def run(*words: object, code: int = 0, data: bytes | None = None) -> Result:
        result = CliRunner().invoke(main, [str(word) for word in words], input=data)
        assert result.exit_code == code, f"{words}: {result.exit_code}\n{result.output}"
        return result

    return run


@pytest.fixture
def pid(osd: Run) -> str:
    """A partition of the test's own; the target goes with the run."""
    return osd("part", "create").stdout.strip()


@pytest.fixture
def obj(osd: Run, pid: str) -> ObjectRef:
    """An object that holds twenty bytes."""
    return ObjectRef.parse(osd("obj", "write", pid, data=b"the quick brown fox\n").stdout.strip())


@pytest.fixture
def top(pid: str) -> str:
    """The path of the test's partition."""
    return f"/{pid}"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with some of everything."""
    folder, made = tmp_path / "photos", random.Random(5)
    for name, length in {
        "a.jpg": 10,
        "empty": 0,
        "2024/b c.jpg": 70_000,
        "2024/deep/ünder/large.bin": LARGE,
        "2025/exact": 1 << 20,
    }.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(made.randbytes(length))
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def lines(osd: Run, *words: object) -> list[str]:
    return osd(*words).stdout.splitlines()
