# SPDX-License-Identifier: GPL-2.0-or-later
"""A daemon for the whole module, and the check that it leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from proxy import Daemon, Sandbox, control_groups

from tests.machine import unavailable
from tests.processes import long_lived
from tests.serving import sandboxes_missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = f"{Path(__file__).parent}/"
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.sandbox)


@pytest.fixture(scope="session", autouse=True)
def able() -> None:
    """Skip where the host cannot: no root, or nothing built (a failure where it must run)."""
    if why := sandboxes_missing():
        unavailable("sandbox", why)
    if os.geteuid() != 0:
        unavailable("sandbox", "needs root")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    running = Daemon(tmp_path_factory.mktemp("sandboxd"))
    assert running.level == "full"
    assert control_groups(running.process.pid)
    long_lived.add(running.process.pid)
    yield running
    assert running.stop() == 0
    long_lived.discard(running.process.pid)
    assert not control_groups(running.process.pid)


@pytest.fixture
def sandbox(daemon: Daemon) -> Iterator[Sandbox]:
    """A sandbox that is ready, ended afterwards."""
    running = daemon.spawn()
    running.wait_ready()
    yield running
    if not running.dead():
        running.kill()
    running.wait_exit()
    running.close()


@pytest.fixture
def own() -> Iterator[Callable[..., Daemon]]:
    """A daemon of this test's own, in a folder that every user can search; cleaned up whatever happens."""
    folder = Path(tempfile.mkdtemp(prefix="iosd-test-"))
    folder.chmod(0o755)
    made: list[Daemon] = []

    def start(*options: str, **how: object) -> Daemon:
        made.append(Daemon(folder, *options, **how))  # type: ignore[arg-type]
        return made[-1]

    yield start
    for daemon in made:
        if daemon.socket:
            daemon.socket.close()
        if daemon.process.poll() is None:
            daemon.process.terminate()
        daemon.wait()
    shutil.rmtree(folder)
