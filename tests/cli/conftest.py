# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs `osd` in the test's process against a target with the standard security method."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pyosd.cli import main
from pyosd.types import ObjectRef
from tests.machine import unavailable
from tests.serving import Serving, arguments, missing, shared

Run = Callable[..., Result]


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
