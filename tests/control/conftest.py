# SPDX-License-Identifier: GPL-2.0-or-later
"""A target with a control socket: osd_harness, which has the unit of the module in tgtd."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import MakeHarness
from tests.harness import Harness
from tests.jobs.conftest import Target, skip_without_sandboxes
from tests.processes import long_lived

HELD_S = 600


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Path of the control socket."""
    return tmp_path / "control"


@pytest.fixture
def harness(make_harness: MakeHarness, path: Path) -> Harness:
    """No manager loses its lease because the test is not run for a while."""
    return make_harness(memory=1, control=path, lease=HELD_S)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """One target that runs jobs for all tests of a module."""
    skip_without_sandboxes()
    folder = tmp_path_factory.mktemp("jobs")
    running = Target(folder, f";control={folder / 'control'};checksums=on")
    assert running.daemon is not None
    pids = {running.daemon.pid, running.transport.process.pid}
    long_lived.update(pids)
    yield running
    running.stop()
    long_lived.difference_update(pids)


@pytest.fixture(scope="module")
def sanitized(
    sanitized_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Harness, Path]]:
    """One built with sanitizers, for many tests; and its socket."""
    folder = tmp_path_factory.mktemp("control")
    path = folder / "control"
    harness = Harness(sanitized_program, {"memory": 1, "control": path}, folder / "log")
    long_lived.add(harness.pid)
    yield harness, path
    harness.finish()
    long_lived.discard(harness.pid)
