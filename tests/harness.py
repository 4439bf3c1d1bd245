# SPDX-License-Identifier: GPL-2.0-or-later
"""An osd_harness process on a store: start, kill, start again, end with everything checked."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from pyosd import requests
from pyosd.commands import Commands
from pyosd.errors import Unreachable
from tests.harness_transport import HarnessTransport
from tests.sanitize.builds import ADDRESS, made

SOURCE = Path(__file__).resolve().parents[1]
SMALL_CACHE = "16MiB"
MARKS = {"head_high": 99, "head_low": 98}
"""Of an SSD: the disk that the tests run on may be fuller than a new head likes."""


def program() -> Path:
    """The harness as `make build` made it."""
    path = SOURCE / "build" / "target" / "osd_harness"
    assert path.exists(), f"{path} is not built: run 'make build'"
    return path


def build_sanitized() -> Path:
    """Build the harness with sanitizers, where that has not happened yet."""
    return made(ADDRESS).program("osd_harness")


def copy_store(store: Path, copy: Path) -> None:
    """Copy the folder of a store that nobody serves.  Both share the ballast: 64 MiB that nobody reads."""

    def copied(source: str, target: str) -> None:
        (os.link if source.endswith("/ballast") else shutil.copy2)(source, target)

    shutil.copytree(store, copy, copy_function=copied)


class StartFailed(Exception):
    """The harness would not open its store; the text is what it told a person."""


class Harness:
    """A harness that serves; `finish` checks how it ended.

    Args:
        build: the program.  options: of the option string.  log: where its messages go.
        variables: added to its environment.
    """

    def __init__(
        self,
        build: Path,
        options: Mapping[str, object],
        log: Path,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        settings = {"cache": SMALL_CACHE} | (MARKS if "ssd" in options else {}) | dict(options)
        folder = settings.get("dir")
        if isinstance(folder, Path) and folder.parent.exists() and not folder.exists():
            folder.mkdir()
        self.options = ";".join(f"{name}={value}" for name, value in settings.items())
        self.build = build
        self.log = log
        self.environment = os.environ | dict(variables or {})
        self.killed = False
        self.start()

    def start(self) -> None:
        """Open the store.

        Raises: StartFailed: it said no.
        """
        before = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as stderr:
            argv = [str(self.build), self.options]
            self.transport = HarnessTransport(argv, stderr, self.environment)
        self.pid = self.transport.process.pid
        self.osd = Commands(self.transport)
        self.killed = False
        try:
            self.osd.reply(requests.list_objects())
        except Unreachable:
            self.transport.close()
            self.killed = True
            raise StartFailed(self.log.read_text(errors="replace")[before:].strip()) from None

    def spawn(self) -> subprocess.Popen[bytes]:
        """The bare process on the same store, for tests of its start."""
        with self.log.open("ab") as stderr:
            pipe = subprocess.PIPE
            argv: list[str | Path] = [self.build, self.options]
            return subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=stderr)

    def kill(self) -> None:
        """SIGKILL, now; commands under way get no answer."""
        self.killed = True
        self.transport.process.kill()
        self.transport.close()

    def ended(self) -> bool:
        """Whether the process is gone, for whatever reason."""
        return self.transport.process.poll() is not None

    def restart(self) -> None:
        """End in good order, or not at all if it was killed, and open the store again."""
        self.finish()
        self.start()

    def finish(self) -> None:
        """End in good order: exit 0 and nothing to report; may be repeated."""
        self.transport.close()
        if self.killed:
            return
        code = self.transport.process.returncode
        text = self.log.read_text(errors="replace")
        assert code == 0, f"osd_harness ended with {code}:\n{text[-4000:]}"
        assert "Sanitizer" not in text, text[-8000:]
