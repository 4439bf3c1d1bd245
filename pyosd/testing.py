# SPDX-License-Identifier: GPL-2.0-or-later
"""Tests of scripts: a target for the time of a test, and a script run in its sandbox or at the
client.

    import pyosd.testing

    with pyosd.testing.serve() as target:
        with target.connect() as session:
            partition = session.create_partition()
            text = session.create_and_write(partition, b"two words")
        outcome = target.run("count.py", zone=text)
        assert outcome.result == {"words": 2}

Nothing here stands in for a target: serve() starts the real one, `osd target serve`, on a store and a
port of its own, in about a second.  If scripts cannot be isolated (no root, no daemon built), run()
runs them over a session, with the rules of a job's zone.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pyosd
from pyosd.offload.home import Outcome, client_environment, result_in
from pyosd.offload.where import near_outcome
from pyosd.types import ROOT, ObjectRef

__all__ = ["Outcome", "ServedTarget", "serve"]

Script: TypeAlias = str | os.PathLike[str]
"""The path of a script; or, a str with a line end in it, its text."""

START_S = STOP_S = 60.0
OSD = "import sys; from pyosd.cli import main; main(prog_name='osd')"


class ServedTarget:
    """A target that serves until its serve() ends.  url: as for pyosd.connect()."""

    def __init__(self, url: str, sandboxes: bool) -> None:
        self.url = url
        self.sandboxes = sandboxes

    def connect(self, **options: Any) -> pyosd.Target:
        """A session of its own, as pyosd.connect() gives; the caller closes it."""
        return pyosd.connect(self.url, **options)

    def run(
        self,
        script: Script,
        *,
        zone: ObjectRef = ROOT,
        args: Any = None,
        timeout: float = 60.0,
    ) -> Outcome:
        """Run a script here, in a process of its own: objects are the target's, nothing is isolated.

        Args: zone: what it may touch.  args: what it finds as osd.args, fit for JSON.
            timeout: seconds.
        Raises: subprocess.TimeoutExpired: it was ended.
        """
        with tempfile.TemporaryDirectory(prefix="iosd-") as folder:
            file, result, kind = (Path(folder, each) for each in ("script.py", "result", "kind"))
            file.write_bytes(text_of(script))
            environment = client_environment() | {
                "IOSD_TARGET": self.url,
                "IOSD_ZONE": str(zone),
                "IOSD_ARGS": json.dumps(args),
                "IOSD_RESULT": str(result),
                "IOSD_RESULT_KIND": str(kind),
                "IOSD_SCRIPT_NAME": name_of(script),
            }
            done = subprocess.run(
                [sys.executable, "-P", "-m", "pyosd.osd", str(file)],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=timeout,
            )
            value = result_in(Path(folder)) if done.returncode == 0 else None
        return Outcome(done.stdout, done.stderr, value, done.returncode, "local")

    def exec(
        self,
        script: Script,
        *,
        zone: ObjectRef = ROOT,
        args: Any = None,
        timeout: float = 60.0,
        **options: Any,
    ) -> Outcome:
        """Run a script as a job, next to the data.

        Args: as run(); options: further ones of Target.exec().
        Raises: TimeoutError: it goes on; JobTimeout, JobOutOfMemory and so on: the job did not end by
            itself; RuntimeError: served without sandboxes.
        """
        if not self.sandboxes:
            raise RuntimeError("the target was served without sandboxes: run() runs scripts here")
        with self.connect() as session:
            name = name_of(script)
            job = session.exec(text_of(script), zone=zone, args=args, name=name, **options)
            return near_outcome(job, timeout)

    def both(self, script: Script, **options: Any) -> Outcome:
        """Run a script here, then as a job, and see that it leaves the same.

        Its changes must not affect its second run.  Standard error is not compared.

        Raises: AssertionError: it does not; else as run() and exec().
        """
        here, there = self.run(script, **options), self.exec(script, **options)
        for what in ("output", "result", "exit_code"):
            one, other = getattr(here, what), getattr(there, what)
            assert one == other, f"{what} is {one!r} here, {other!r} next to the data"
        return there


def text_of(script: Script) -> bytes:
    """The source."""
    if isinstance(script, str) and "\n" in script:
        return script.encode()
    return Path(script).read_bytes()


def name_of(script: Script) -> str:
    """The name of a script in tracebacks."""
    return "" if isinstance(script, str) and "\n" in script else Path(script).name


@contextlib.contextmanager
def serve(
    *arguments: str, sandboxes: bool | None = None, manager: bool = False
) -> Iterator[ServedTarget]:
    """Serve a target with an empty store on the loopback address; then end it and remove the store.

    Args:
        arguments: more arguments of `osd target serve`.
        sandboxes: whether scripts can run near the data; None: if this process belongs to root, which
            their isolation needs.
        manager: whether to start the resource manager, too.

    Raises: RuntimeError: it did not start or end; the text has its output.
    """
    isolated = os.geteuid() == 0 if sandboxes is None else sandboxes
    layers = ["--isolation", "best"] if isolated else ["--no-sandboxes"]
    folder = Path(tempfile.mkdtemp(prefix="iosd-testing-", dir="/var/tmp"))
    folder.chmod(0o711)  # tgtd runs as a user of its own
    try:
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-c", OSD, "target", "serve", "-o", "json"),
                    *("--data", str(folder / "store"), "--portal", "127.0.0.1:0"),
                    *(() if manager else ("--no-manager",)),
                    *(*layers, *arguments),
                ],
                env=client_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        try:
            url = wait_ready(process)
            if url is None:
                raise RuntimeError((folder / "log").read_text(errors="replace"))
            yield ServedTarget(url, isolated)
        finally:
            stop(process, folder / "log")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def wait_ready(process: subprocess.Popen[str]) -> str | None:
    """The URL it serves at; None: it has ended, or was ended for saying nothing."""
    assert process.stdout is not None
    patience = threading.Timer(START_S, process.kill)
    patience.start()
    try:
        for line in process.stdout:
            said = json.loads(line)
            if said.get("event") == "ready":
                return str(said["url"])
        return None
    finally:
        patience.cancel()
        patience.join()


def stop(process: subprocess.Popen[str], log: Path) -> None:
    """End it, with everything it started.  Raises: RuntimeError: it had to be killed, and at which step."""
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        said = last_step(log.read_text(errors="replace"))
        raise RuntimeError(f"the target had not ended {STOP_S:g} s after SIGTERM: {said}") from None
    finally:
        assert process.stdout is not None
        process.stdout.close()


def last_step(log: str) -> str:
    """The last lines of the supervisor of a target that does not end."""
    said = [line for line in log.splitlines() if "iosd-supervisor" in line]
    return said[-1] if said else "it said nothing"
