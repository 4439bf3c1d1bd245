# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs administrators' verbs in the test's process, with a folder of its own in place of /run/iosd."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from iosd_host.manager.client import ManagerClient
from pyosd.cli import main
from tests import warm
from tests.harness import SOURCE

DEADLINE_S = 60.0
Run = Callable[..., Result]


@pytest.fixture
def run_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where what runs says so."""
    monkeypatch.setenv("IOSD_RUN", str(tmp_path / "run"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("IOSD_MANAGER", "IOSD_MANAGER_KEY", "IOSD_TARGET"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "run"


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A manager gets a minute for an answer.  People wait 5 s, for which a busy host may stop it."""
    monkeypatch.setattr(ManagerClient, "find", partial(ManagerClient.find, timeout_s=DEADLINE_S))


@pytest.fixture
def osd(run_folder: Path, patience: None) -> Run:
    """Run a command line; the exit code is checked, 0 unless `code` says another."""

    def run(*words: object, code: int = 0) -> Result:
        result = CliRunner().invoke(main, [str(word) for word in words])
        assert result.exit_code == code, f"{words}: {result.exit_code}\n{result.output}"
        return result

    return run


class Alone:
    """A resource manager without a target.

    Args: folder: of its state and socket, in which its log lies too.  run: where it says that it runs.
    """

    def __init__(self, folder: Path, run: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.run = run
        self.state = folder / "state"
        self.url = f"ipc://{folder}/socket"
        words = [
            "--state",
            str(self.state),
            "--listen",
            self.url,
            "--target",
            "lab=/nowhere/socket",
        ]
        with (folder / "log").open("ab") as log:
            self.process = warm.Python(
                [sys.executable, "-m", "iosd_host", *words],
                cwd=SOURCE,
                env=os.environ | {"IOSD_RUN": str(run)},
                stderr=log,
            )
        until = time.monotonic() + DEADLINE_S
        place = run / f"manager-{self.process.pid}.json"
        while not place.exists() or not place.stat().st_size:  # it is written after it is made
            text = (folder / "log").read_text()
            assert time.monotonic() < until and self.process.poll() is None, text
            time.sleep(0.02)

    def stop(self) -> None:
        self.process.terminate()
        assert self.process.wait(DEADLINE_S) == 0
