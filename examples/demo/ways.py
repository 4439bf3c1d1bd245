# SPDX-License-Identifier: GPL-2.0-or-later
"""The two ways a script can meet its data: it travels to them, or they are fetched to it."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyosd
from pyosd.types import ObjectRef

__all__ = ["Outcome", "Progress", "Task", "fetch_and_compute", "near_the_data"]

Progress = Callable[[float, str], None]
"""Told a share between 0 and 1, and a word about it."""

POLL_S = 0.05  # a status is 1.3 KB, and these bytes count
TRAFFIC = "traffic.json"  # what the script's own session moved, for what was not fetched


@dataclass(frozen=True)
class Task:
    """A script, its arguments, the zone it may touch, the objects it reads, and the pool it runs in."""

    name: str
    script: Path
    zone: ObjectRef
    arguments: tuple[str, ...] = ()
    objects: tuple[ObjectRef, ...] = ()
    pool: str = ""


@dataclass(frozen=True)
class Outcome:
    """What one way gave, and what it cost.

    sent_bytes, received_bytes: what this client's sockets carried, iSCSI headers included.
    """

    output: bytes
    seconds: float
    sent_bytes: int
    received_bytes: int

    @property
    def sha256(self) -> str:
        """Digest of the script's output."""
        return hashlib.sha256(self.output).hexdigest()


def near_the_data(url: str, task: Task, progress: Progress, poll_s: float = POLL_S) -> Outcome:
    """Send the script with EXEC, wait for its end, and read its output from its surrogate object.

    Args:
        poll_s: seconds between two polls.  The end is noticed so much later.

    Raises:
        pyosd.JobError: the script did not complete.
    """
    with pyosd.connect(url) as target:
        start = time.perf_counter()
        job = target.exec(
            task.script,
            zone=task.zone,
            args=list(task.arguments),
            name=task.script.name,
            pool=task.pool,
        )
        while not (status := job.status()).done:
            progress(status.progress or 0.0, status.message)
            time.sleep(poll_s)
        job.result()
        output = job.output()
        seconds = time.perf_counter() - start
        return Outcome(output, seconds, target.bytes_sent, target.bytes_received)


def fetch_and_compute(url: str, task: Task, folder: Path, progress: Progress) -> Outcome:
    """READ the objects into files through a session of its own, then run the same script here.

    Raises:
        subprocess.CalledProcessError: the script failed.
    """
    with pyosd.connect(url) as target:
        start = time.perf_counter()
        lengths = {obj: target.length(obj) for obj in task.objects}
        fetched = 0
        for obj in task.objects:
            with (folder / f"{obj.partition_id:x}-{obj.object_id:x}").open("wb") as file:
                for piece in target.iter_read(obj):
                    file.write(piece)
                    fetched += len(piece)
                    progress(fetched / sum(lengths.values()), "fetching")
        progress(1.0, "computing")
        output = run_here(url, task, folder)
        seconds = time.perf_counter() - start
        own = json.loads((folder / TRAFFIC).read_text())
        return Outcome(
            output,
            seconds,
            target.bytes_sent + own["sent_bytes"],
            target.bytes_received + own["received_bytes"],
        )


def run_here(url: str, task: Task, folder: Path) -> bytes:
    """Run the script file as it is, in a plain interpreter with the client's package `osd`."""
    environment = os.environ | {
        "IOSD_TARGET": url,
        "IOSD_ZONE": str(task.zone),
        "IOSD_FETCHED": str(folder),
        "IOSD_TRAFFIC": str(folder / TRAFFIC),
    }
    return subprocess.run(
        [sys.executable, task.script, *task.arguments],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=True,
    ).stdout
