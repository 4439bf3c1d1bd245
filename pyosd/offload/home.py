# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a script at the client, in a process of its own, with the package `osd` over a session.

A process runs one script after the other.  It can be started ahead: it then has imported what scripts
need when the first one comes.
Not here: where a script should run (where.py), the process itself (pyosd/osd/__main__.py).
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyosd.identity import for_child, from_environment
from pyosd.osd._results import decode
from pyosd.types import ObjectRef

__all__ = [
    "HomeProcess",
    "HomeScript",
    "Outcome",
    "client_environment",
    "python_path",
    "received_in",
    "result_in",
]

PYOSD_PARENT = str(Path(__file__).resolve().parents[2])
STOP_S = 5.0


@dataclass(frozen=True)
class Outcome:
    """The outcome of a script, the same from a sandbox and from a client.

    output, stderr: what it wrote.  result: what it passed to osd.result(); None: nothing.
    exit_code: of the script; 1 if it raised an exception.
    where: "near" the data, or "local", at the client.  seconds: from the call to the end.
    predicted: expected seconds; 0: not known.  why: the reason for the place, in words.
    """

    output: bytes
    stderr: bytes
    result: Any
    exit_code: int
    where: str = "near"
    seconds: float = 0.0
    predicted: float = 0.0
    why: str = ""


@dataclass(frozen=True)
class HomeScript:
    """A script to run here.

    text: its source.  zone: where it can act.  args: as JSON.
    index: osd.array_index; None: it is no member of an array.  pure: it can change no objects.
    """

    text: bytes
    url: str
    zone: ObjectRef
    args: bytes = b""
    name: str = ""
    index: int | None = None
    pure: bool = False
    bytecode: bool = False

    def environment(self, folder: Path) -> dict[str, str]:
        """The environment of the process that runs it.  folder: for the result."""
        return {
            "IOSD_TARGET": self.url,
            "IOSD_ZONE": str(self.zone),
            "IOSD_ARGS": self.args.decode(),
            "IOSD_ARRAY_INDEX": "" if self.index is None else str(self.index),
            "IOSD_PURE": "1" if self.pure else "",
            "IOSD_SCRIPT_NAME": self.name,
            "IOSD_RESULT": str(folder / "result"),
            "IOSD_RESULT_KIND": str(folder / "kind"),
            "IOSD_TRAFFIC": str(folder / "traffic"),
        }


def python_path() -> str:
    """The PYTHONPATH with which another Python finds the same pyosd."""
    return os.pathsep.join([PYOSD_PARENT, *filter(None, [os.environ.get("PYTHONPATH")])])


def client_environment() -> dict[str, str]:
    """The environment of this process, with a PYTHONPATH for the same pyosd."""
    return os.environ | {"PYTHONPATH": python_path()}


def result_in(folder: Path) -> Any:
    """The value that a script passed to osd.result(); None: nothing."""
    if not (folder / "kind").exists():
        return None
    value = (folder / "result").read_bytes()
    return decode(value) if (folder / "kind").read_text() == "json" else value


def received_in(folder: Path) -> int:
    """Bytes that a script's session received; 0: it had none."""
    file = folder / "traffic"
    return int(json.loads(file.read_text())["received_bytes"]) if file.exists() else 0


def surroundings() -> tuple[dict[str, str], str]:
    """Environment and folder of this process, which its children get."""
    with contextlib.suppress(FileNotFoundError):
        return dict(os.environ), str(Path.cwd())
    return dict(os.environ), ""


class HomeProcess:
    """A process that runs scripts, one at a time, each in a child (pyosd/osd/_client/ahead.py).

    It is started when this is made; close() ends it.
    seconds, received: of the last script, how long it took, and the bytes that its session received.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="iosd-home-")
        self._made_in = surroundings()
        self._errors = Path(self._folder.name) / "errors"
        environment, descriptors = for_child(from_environment())
        environment["PYTHONPATH"] = python_path()
        with self._errors.open("wb") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "pyosd.osd", "--ahead"],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                pass_fds=descriptors,
            )
        for descriptor in descriptors:
            os.close(descriptor)
        assert self._process.stdout is not None
        self._process.stdout.readline()  # it is ready, or has ended
        self.seconds, self.received = 0.0, 0

    @property
    def fits(self) -> bool:
        """Whether a process that is started now would have the same environment and folder."""
        return self._made_in == surroundings()

    def run(self, script: HomeScript, timeout: float | None = None) -> Outcome:
        """Run the script to its end.  Close the process if this raises.

        Raises: TimeoutError: it was ended, because it took longer.
        """
        with tempfile.TemporaryDirectory(dir=self._folder.name) as name:
            folder = Path(name)
            file = folder / ("script.pyc" if script.bytecode else "script.py")
            file.write_bytes(script.text)
            files = {each: folder / each for each in ("output", "stderr")}
            order = {"environment": script.environment(folder), "script": str(file)}
            order |= {each: str(path) for each, path in files.items()}
            start = time.perf_counter()
            code = self._code_of(json.dumps(order).encode() + b"\n", timeout)
            self.seconds = time.perf_counter() - start
            self.received = received_in(folder)
            result = result_in(folder) if code == 0 else None
            output, stderr = (
                path.read_bytes() if path.exists() else b"" for path in files.values()
            )
        if self._process.poll() is not None:
            stderr += self._errors.read_bytes()
        return Outcome(output, stderr, result, code if code >= 0 else 128 - code, "local")

    def _code_of(self, order: bytes, timeout: float | None) -> int:
        """Exit code of an order's script, or of the process if it has ended.  Raises: TimeoutError."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(order)
            self._process.stdin.flush()
        answers = select.poll()  # select() takes no descriptor above 1023
        answers.register(self._process.stdout, select.POLLIN)
        if not answers.poll(None if timeout is None else timeout * 1000):
            raise TimeoutError("the script has not ended in time")
        answer = self._process.stdout.readline()
        return int(answer) if answer else self._process.wait(STOP_S)

    def close(self) -> None:
        """End the process and its script, and remove its files."""
        for each in (self._process.stdin, self._process.stdout):
            assert each is not None
            with contextlib.suppress(BrokenPipeError):
                each.close()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()
