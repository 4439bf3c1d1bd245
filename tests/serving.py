# SPDX-License-Identifier: GPL-2.0-or-later
"""A whole target in the foreground of the tests: `osd target serve`, what it says, how it ends.

Stock tgtd with our module, and iosd-sandboxd where it is built; tgtd runs unprivileged, as it does
for people, on a port of the kernel's choice.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyosd
from iosd_host.common import paths
from pyosd.testing import last_step
from tests import warm
from tests.harness import SOURCE
from tests.machine import SHARE_OF_TESTS, unavailable, without_sandboxes
from tests.processes import Watch, descendants, long_lived
from tests.tgtd import MODULE

START_S = 120.0
STOP_S = 60.0
SERVE = "from iosd_host.cli.serve import serve; serve()"


def missing() -> str | None:
    """Why no target can be served here; None: it can."""
    try:
        paths.find_program("tgtd", "tgt")
        paths.find_component(paths.MODULE)
    except paths.MissingComponent as error:
        return str(error)
    return None


def sandboxes_missing() -> str | None:
    """Why no script can run here; None: it can."""
    try:
        paths.find_component(paths.SANDBOXD)
        paths.python_dir()
    except paths.MissingComponent as error:
        return str(error)
    return without_sandboxes()


class Serving:
    """A target that serves; a context manager that ends it and sees that nothing is left.

    Args: arguments: further arguments of `osd target serve`.  data: the store, kept; None: one of
    its own, removed at the end.  manager: with a resource manager, so that sizes follow the load.
    environment: variables, beside ours; None: not set.
    standard: with the security method that people get; else NOSEC, unless the arguments name one, and
    sessions that are given no credentials have none.
    share: least share of the processors for scripts, per cent; None: the default.
    """

    def __init__(
        self,
        *arguments: str,
        data: Path | None = None,
        environment: Mapping[str, str | None] | None = None,
        manager: bool = False,
        standard: bool = False,
        share: int | None = SHARE_OF_TESTS,
    ) -> None:
        if "--no-sandboxes" not in arguments and (why := sandboxes_missing()):
            unavailable("sandbox", why)
        self.standard = standard
        given = {**os.environ, **(environment or {})}
        # Not below pytest's folders: tgtd's user cannot look into those.  A sandbox pays for the pages
        # of files in memory that it maps, and its control group goes on to pay for the next one.
        top = None if "--no-sandboxes" in arguments else os.environ.get("TMPDIR", "/tmp")
        self.folder = Path(tempfile.mkdtemp(prefix="iosd-test-", dir=top))
        self.folder.chmod(0o755)
        self.data = data or self.folder / "store"
        self.log = self.folder / "log"
        command = ["--data", str(self.data), "-o", "json"]
        command += ["--portal", "127.0.0.1:0", *arguments]
        command += [] if manager else ["--no-manager"]
        if share is not None and not {"--no-sandboxes", "--cpu-share"}.intersection(arguments):
            command += ["--cpu-share", str(share)]
        command += [] if standard or "--security" in arguments else ["--security", "nosec"]
        with self.log.open("wb") as stderr:
            self.process = warm.Python(
                [sys.executable, "-c", SERVE, *command],
                cwd=SOURCE,
                env={name: value for name, value in given.items() if value is not None},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            )
        self.events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self.seen: set[int] = set()
        self.watch = Watch()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        try:
            ready = self.event("ready", START_S)
        except AssertionError:
            self.stop(check=False)
            raise
        self.url: str = ready["url"]
        self.description: dict[str, Any] = ready

    def __enter__(self) -> Serving:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.stop(check=kind is None)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with contextlib.suppress(ValueError):
                self.events.put(json.loads(line))
        self.events.put(None)

    def event(self, name: str, timeout: float) -> dict[str, Any]:
        """Wait for an event; the pids it names are remembered."""
        while True:
            try:
                found = self.events.get(timeout=timeout)
            except queue.Empty:
                found = None
            if found is None:
                raise AssertionError(f"no '{name}' from the target:\n{self.text()[-4000:]}")
            self.pids: dict[str, int] = {k: v for k, v in found["pids"].items() if v}
            self.isolation: str | None = found["isolation"]
            if found["event"] == name:
                return found

    @property
    def master_key(self) -> Path:
        """The file of the store's first master key."""
        return Path(self.description["master_key"])

    def text(self) -> str:
        """Its log so far."""
        return self.log.read_text(errors="replace")

    def connect(self, **options: Any) -> pyosd.Target:
        """A session of its own."""
        return pyosd.connect(self.url, **{"local": self.standard, **options})

    def everything(self) -> set[int]:
        """All processes of the target: daemons, zygote, sandboxes."""
        now = descendants(self.process.pid)
        self.seen |= now
        self.watch.add(now)
        return now

    def kill(self, *names: str) -> None:
        """SIGKILL to parts, all before any of them can tell; `restarted` waits for them."""
        for name in names:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pids[name], signal.SIGKILL)

    def kill_all(self) -> None:
        """SIGKILL to the supervisor first, so that nothing starts the target again, then to the rest."""
        self.everything()
        self.process.kill()
        self.process.wait()
        self.watch.kill()

    def restarted(self, times: int = 1) -> None:
        """Wait until so many parts have been started again."""
        for _ in range(times):
            self.event("restarted", START_S)

    def stop(self, check: bool = True) -> None:
        """SIGTERM; exit 0 and no process left.  May be repeated."""
        if self.process.poll() is None:
            self.everything()
            self.process.terminate()
        try:
            code = self.process.wait(STOP_S)
            late = ""
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
            late = f", killed {STOP_S:g} s after SIGTERM: {last_step(self.text())}"
        self.reader.join(10)
        assert self.process.stdout is not None
        self.process.stdout.close()
        left = self.watch.wait_gone()
        self.watch.kill()
        text = self.text()
        shutil.rmtree(self.folder, ignore_errors=True)
        if check:
            assert not left, f"left running: {left}"
            assert code == 0, f"osd target serve ended with {code}{late}:\n{text[-4000:]}"


@contextlib.contextmanager
def shared(
    *words: str,
    environment: dict[str, str] | None = None,
    manager: bool = False,
    standard: bool = False,
) -> Iterator[Serving]:
    """A Serving for many tests, none of which takes it for a process left behind."""
    with Serving(*words, environment=environment, manager=manager, standard=standard) as served:
        long_lived.add(served.process.pid)
        yield served
    long_lived.discard(served.process.pid)


def own_options(*options: str) -> list[str]:
    """Arguments to serve with options that only the module for tests knows (tests/README.md)."""
    words = ["--module", str(paths.find_component(MODULE))]
    for each in options:
        words += ["--module-option", each]
    return words


def arguments(extra: Sequence[str] = ()) -> list[str]:
    """Options for this host: sandboxes if they are built, at the level that the host supports."""
    if sandboxes_missing():
        return ["--no-sandboxes", *extra]
    return ["--isolation", "best", *extra]
