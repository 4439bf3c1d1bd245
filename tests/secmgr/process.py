# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd secmgr serve` as a process of its own, and `osd` as a command line."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests import warm
from tests.harness import SOURCE

PROGRAM = [sys.executable, "-c", "from pyosd.cli import main; main(prog_name='osd')"]
STOP_S = 60.0


class Process:
    """A security manager in a folder that exists."""

    def __init__(
        self, folder: Path, *, passphrase: str | None = None, listen: str = "127.0.0.1:0"
    ) -> None:
        self.folder = folder
        self.process = warm.Python(
            [*PROGRAM, "secmgr", "serve", "--data", folder, "--listen", listen],
            cwd=SOURCE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        if passphrase is not None:
            self.process.stdin.write(passphrase + "\n")
            self.process.stdin.flush()
        self.url = self.process.stdout.readline().strip()

    @property
    def address(self) -> str:
        """Where it listens."""
        return self.url.removeprefix("https://")

    def login(self, token: Path) -> Mapping[str, str]:
        """Environment variables for its clients."""
        return {
            "IOSD_SECMGR": self.url,
            "IOSD_SECMGR_CA": str(self.folder / "ca.pem"),
            "IOSD_SECMGR_TOKEN_FILE": str(token),
        }

    def kill(self) -> None:
        """As a power cut, but for what the kernel has."""
        self.process.kill()
        self.process.communicate(timeout=STOP_S)

    def stop(self) -> str:
        """In order; returns what it logged."""
        self.process.send_signal(signal.SIGTERM)
        _, log = self.process.communicate(timeout=STOP_S)
        assert self.process.returncode == 0, log
        return log
