# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a script at the client, in a process of its own, with the package `osd` over a session.

A process can be started ahead: it then has imported what scripts need when its script comes.
Not here: where a script should run (where.py), the process itself (pyosd/osd/__main__.py).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

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

    output, stderr: what it wrote.  result: what it gave to osd.result(), None: nothing.
    exit_code: 0, what it exited with, or 1 where it raised.
    where: "near" the data or "local", at the client.  seconds: from the call to the end.
    predicted: seconds expected there; 0: not known.  why: in words, why it ran there.
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
    """What runs: its text, where it may act, and the arguments as JSON.

    index: osd.array_index; None: it is no member of an array.  pure: it may change no objects.
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
        """For the process that runs it; the folder is for the result."""
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
    """PYTHONPATH by which another Python finds the same pyosd."""
    return os.pathsep.join([PYOSD_PARENT, *filter(None, [os.environ.get("PYTHONPATH")])])


def client_environment() -> dict[str, str]:
    """This process's environment, by which another Python finds the same pyosd."""
    return os.environ | {"PYTHONPATH": python_path()}


def result_in(folder: Path) -> Any:
    """What a script gave to osd.result(); None: nothing."""
    if not (folder / "kind").exists():
        return None
    value = (folder / "result").read_bytes()
    return decode(value) if (folder / "kind").read_text() == "json" else value


def received_in(folder: Path) -> int:
    """Bytes that a script's session received; 0: it had none."""
    file = folder / "traffic"
    return int(json.loads(file.read_text())["received_bytes"]) if file.exists() else 0


class HomeProcess:
    """A process that runs one script.  It is started when this is made; close() ends it unused.

    seconds, received: of its script, how long it took, and the bytes that its session received.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="iosd-home-")
        self.folder = Path(self._folder.name)
        self._files: list[IO[bytes]] = [
            (self.folder / name).open("w+b") for name in ("output", "stderr")
        ]
        environment, descriptors = for_child(from_environment())
        environment["PYTHONPATH"] = python_path()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "pyosd.osd", "--ahead"],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=self._files[0],
            stderr=self._files[1],
            pass_fds=descriptors,
        )
        for descriptor in descriptors:
            os.close(descriptor)
        self.seconds, self.received = 0.0, 0

    def run(self, script: HomeScript, timeout: float | None = None) -> Outcome:
        """Run the script to its end.

        Raises: TimeoutError: it was ended, because it took longer.
        """
        file = self.folder / ("script.pyc" if script.bytecode else "script.py")
        file.write_bytes(script.text)
        order = {"environment": script.environment(self.folder), "script": str(file)}
        start = time.perf_counter()
        try:
            self._process.communicate(json.dumps(order).encode() + b"\n", timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"not ended in time: {script.name or 'the script'}") from None
        finally:
            self._end()
        self.seconds = time.perf_counter() - start
        code = self._process.returncode
        self.received = received_in(self.folder)
        output, stderr = (each.read() for each in self._rewound())
        result = result_in(self.folder) if code == 0 else None
        return Outcome(output, stderr, result, code if code >= 0 else 128 - code, "local")

    def close(self) -> None:
        """End the process, and remove its files."""
        self._end()
        for each in self._files:
            each.close()
        self._folder.cleanup()

    def _rewound(self) -> list[IO[bytes]]:
        for each in self._files:
            each.seek(0)
        return self._files

    def _end(self) -> None:
        if self._process.stdin is not None and self._process.poll() is None:
            self._process.kill()
        self._process.wait(STOP_S)
        if self._process.stdin is not None:
            self._process.stdin.close()
