# SPDX-License-Identifier: GPL-2.0-or-later
"""The start of iosd-sandboxd in a scope of systemd; `make vm-test` uses a systemd under cgroup
v2."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from iosd_host.serve import scope

WORKS = """#!/bin/sh
while [ "$1" != -- ]; do shift; done
shift
exec env IN_SCOPE=yes "$@"
"""
REFUSES = "#!/bin/sh\necho 'Failed to start transient scope unit: Access denied' >&2\nexit 1\n"
SAY = ("sh", "-c", "echo ${IN_SCOPE-no}")


@pytest.fixture
def systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """A host of root's with cgroup v2 and systemd, whose systemd-run is the one given."""
    monkeypatch.setattr(scope, "UNIFIED", tmp_path)
    monkeypatch.setattr(scope, "SYSTEMD", tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)

    def install(text: str) -> None:
        program = tmp_path / "systemd-run"
        program.write_text(text)
        program.chmod(0o755)

    scope.available.cache_clear()
    yield install
    scope.available.cache_clear()


def said() -> str:
    return subprocess.run(scope.in_scope(SAY), capture_output=True, text=True, check=True).stdout


def test_in_a_scope(systemd: Callable[[str], None]) -> None:
    systemd(WORKS)
    assert said() == "yes\n"


def test_as_it_is_where_systemd_refuses(systemd: Callable[[str], None]) -> None:
    systemd(REFUSES)
    assert said() == "no\n"


@pytest.mark.parametrize("lacking", ["UNIFIED", "SYSTEMD"])
def test_as_it_is_without(
    systemd: Callable[[str], None], lacking: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    systemd(WORKS)
    monkeypatch.setattr(scope, lacking, tmp_path / "absent")
    assert said() == "no\n"
