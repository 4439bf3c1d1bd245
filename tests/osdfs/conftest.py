# SPDX-License-Identifier: GPL-2.0-or-later
"""A target, and its files mounted on a directory by `osd mount`."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pyosd.target import Target
from pyosd.types import ObjectRef, ref
from tests import warm
from tests.machine import unavailable, without_fuse
from tests.serving import Serving, arguments, missing, shared
from tests.surroundings import MOUNT_PREFIX
from tests.waiting import until

MOUNT = "from pyosd.cli import main; main()"
STOP_S = 20.0


class MountedFiles:
    """`osd mount` in the foreground; a context manager that unmounts and checks how it ended."""

    def __init__(self, url: str, path: str, *words: str) -> None:
        self.place = Path(tempfile.mkdtemp(prefix=MOUNT_PREFIX))
        self.log = self.place.with_suffix(".log")
        command = [sys.executable, "-c", MOUNT, "mount", "--target", url, path, str(self.place)]
        with self.log.open("wb") as stderr:
            self.process = warm.Python([*command, *words], stderr=stderr)
        try:
            until(self._mounted, self.text)
        except BaseException:
            self.stop(check=False)
            raise

    def _mounted(self) -> bool:
        assert self.process.poll() is None, self.text()
        return "mounted on" in self.text()

    def text(self) -> str:
        """Its log so far."""
        return self.log.read_text(errors="replace")

    def __enter__(self) -> Path:
        return self.place

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.stop(check=kind is None)

    def stop(self, check: bool = True) -> None:
        """SIGTERM, and another one if a failed test holds a file open; nothing stays mounted."""
        for _ in range(2):
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(STOP_S)
                break
        self.process.kill()
        code = self.process.wait()
        mounts = Path("/proc/self/mounts").read_text()  # ismount() overlooks one without a process
        left = f" {self.place} " in mounts
        if left:
            subprocess.run(["umount", "-l", str(self.place)], check=False)
        text = self.text()
        with contextlib.suppress(OSError):
            self.place.rmdir()
            self.log.unlink()
        if check:
            assert (code, left) == (0, False), text


@pytest.fixture(scope="session")
def serving() -> Iterator[Serving]:
    for layer, why in (("tgtd", missing()), ("fuse", without_fuse())):
        if why:
            unavailable(layer, why)
    with shared(*arguments()) as served:
        yield served


@pytest.fixture
def target(serving: Serving) -> Iterator[Target]:
    with serving.connect() as session:
        yield session


@pytest.fixture
def zone(target: Target) -> ObjectRef:
    """A partition of the test's own."""
    return ref(target.create_partition())


@pytest.fixture
def mounted(serving: Serving, zone: ObjectRef) -> Iterator[Callable[..., Path]]:
    """Mounts the test's partition, or a directory in it; each call another mount."""
    with contextlib.ExitStack() as stack:

        def mount(*words: str, path: str = "") -> Path:
            files = MountedFiles(serving.url, f"/{zone}{path}", *words)
            return stack.enter_context(files)

        yield mount


@pytest.fixture
def top(mounted: Callable[..., Path]) -> Path:
    """The test's partition as a directory."""
    return mounted()
