# SPDX-License-Identifier: GPL-2.0-or-later
"""A store behind osd_harness and an iosd-sandboxd beside it: EXEC end to end, without iSCSI."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pyosd.commands import Commands
from pyosd.types import ROOT, ref
from pyosd.wire.attributes import Page
from tests.harness_transport import HarnessTransport
from tests.machine import SHARE_OF_TESTS, unavailable
from tests.processes import long_lived
from tests.serving import sandboxes_missing
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import IO

ROOT_DIRECTORY = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("OSD_BUILD_DIR", ROOT_DIRECTORY / "build"))
HARNESS = BUILD / "target" / "osd_harness"
SANDBOXD = BUILD / "sandbox" / "iosd-sandboxd"
DEADLINE_S = 60.0
ISOLATION = 7  # attribute of page B000_0001h: the level reached, once the daemon is connected


class Target:
    """The harness over one data directory, and the daemon; either may be killed and started again.

    level: the daemon's isolation.  program: the harness, with what must stand before it on the
    command line.  stderr: its messages.
    """

    level = "best"
    daemon_options: tuple[str, ...] = ()

    def __init__(
        self,
        folder: Path,
        options: str = "",
        program: Sequence[str] = (str(HARNESS),),
        stderr: IO[bytes] | None = None,
    ) -> None:
        self.folder, self.options, self.program, self.stderr = folder, options, program, stderr
        self.socket = folder / "sandboxd.socket"
        self.data = folder / "data"
        self.data.mkdir()
        self.daemon: subprocess.Popen[str] | None = None
        self.start_daemon()
        self.start()
        self.partition = ref(self.commands.create_partition())

    def start_daemon(self) -> None:
        self.daemon = subprocess.Popen(
            [
                str(SANDBOXD),
                "--socket",
                str(self.socket),
                "--python-dir",
                str(ROOT_DIRECTORY / "pyosd"),
                "--isolation",
                self.level,
                "--cpu-share",
                str(SHARE_OF_TESTS),
                *self.daemon_options,
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.daemon.stdout is not None
        assert self.daemon.stdout.readline().startswith("ready")

    def start(self) -> None:
        options = f"dir={self.data};sandboxd={self.socket};slots=2;isolation=best" + self.options
        self.transport = HarnessTransport([*self.program, options], self.stderr)
        self.commands = Commands(self.transport)
        until(
            lambda: self.commands.get_attribute(ROOT, Page.EXEC_ROOT, ISOLATION),
            "iosd-sandboxd is not connected",
        )

    def kill(self) -> None:
        self.transport.process.send_signal(signal.SIGKILL)
        self.transport.close()

    def kill_daemon(self) -> None:
        assert self.daemon is not None
        assert self.daemon.stdout is not None
        self.daemon.kill()
        self.daemon.wait()
        self.daemon.stdout.close()

    def stop(self) -> None:
        self.transport.close()
        assert self.daemon is not None
        self.daemon.terminate()
        self.daemon.wait(DEADLINE_S)
        assert self.daemon.stdout is not None
        self.daemon.stdout.close()


def skip_without_sandboxes() -> None:
    if why := sandboxes_missing():
        unavailable("sandbox", why)
    if os.geteuid() != 0 or not HARNESS.exists():
        pytest.skip("needs root and a finished build")


@pytest.fixture(scope="session")
def shared_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """One target for many tests: those marked `shares_target`."""
    skip_without_sandboxes()
    running = Target(tmp_path_factory.mktemp("jobs"))
    assert running.daemon is not None
    processes = {running.daemon.pid, running.transport.process.pid}
    long_lived.update(processes)
    yield running
    running.stop()
    long_lived.difference_update(processes)


@pytest.fixture
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Target]:
    """A target of the test's own, or the shared one with a partition of the test's own."""
    skip_without_sandboxes()
    if request.node.get_closest_marker("shares_target") is None:
        running = Target(tmp_path)
        yield running
        running.stop()
        return
    shared: Target = request.getfixturevalue("shared_target")
    shared.partition = ref(shared.commands.create_partition())
    yield shared
    partition_id = shared.partition.partition_id
    if partition_id in shared.commands.list_partitions():  # a test may remove it
        shared.commands.remove_partition(partition_id, contents=True)
