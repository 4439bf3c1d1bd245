# SPDX-License-Identifier: GPL-2.0-or-later
"""What runs on this host, and where to reach it: a file below /run/iosd each, locked as long as it is true.

    manager-PID.json    "iosd.manager/1", of a resource manager: url, key, key_file, pid, targets
    target-PID.json     "iosd.served/1", of a supervisor: what it serves, and its own socket

Another name than a process id is for who lets files be made for itself in a folder that is not its own.

Who publishes holds the lock until it ends, however it ends: a file that nobody has locked is what a killed
process has left.  Only files are believed that root or we ourselves can have written, or the owner of
/run/iosd.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["MANAGER", "TARGET", "Place", "folder", "own_path", "running"]

MANAGER, TARGET = "manager", "target"
SCHEMAS = {MANAGER: "iosd.manager/1", TARGET: "iosd.served/1"}
SYSTEM = Path("/run/iosd")  # whoever it belongs to: root has made it so
FILE_MOST = 1 << 20
OTHERS_WRITE = 0o022
WRITING_S = 0.5  # that a reader waits for who has locked a file and not yet written it
STEP_S = 0.01


def folder() -> Path:
    """Where the files are: IOSD_RUN, else /run/iosd for root and a folder of their own for others."""
    said = os.environ.get("IOSD_RUN")
    if said:
        return Path(said)
    if os.geteuid() == 0:
        return SYSTEM
    return Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir(), f"iosd-{os.geteuid()}")


def own_path(kind: str) -> Path:
    """Where this process says what runs, and nothing any more of processes that are gone."""
    for path in folder().glob(f"{kind}-*.json"):
        pid = path.stem.rpartition("-")[2]
        if pid.isdigit() and not Path("/proc", pid).exists():
            with contextlib.suppress(OSError):
                path.unlink()
    return folder() / f"{kind}-{os.getpid()}.json"


class Place:
    """A file of ours, true from its first `write` until `close` or the end of this process.

    Args:
        path: made, unless somebody has made it for us in a folder that is theirs.

    Raises:
        OSError: it cannot be made; BlockingIOError: another process holds it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        until = time.monotonic() + WRITING_S  # readers hold it for a moment
        while not _lock(self.descriptor, fcntl.LOCK_EX):
            if time.monotonic() > until:
                os.close(self.descriptor)
                raise BlockingIOError(f"{path}: another process says what runs there")
            time.sleep(STEP_S)

    def write(self, fields: dict[str, Any]) -> None:
        """Say what is true now."""
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, json.dumps(fields).encode() + b"\n", 0)

    def close(self) -> None:
        """Nothing of it is true any more.  The file goes, but from a folder that is not ours."""
        os.ftruncate(self.descriptor, 0)
        with contextlib.suppress(OSError):
            self.path.unlink()
        os.close(self.descriptor)


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def running(kind: str) -> Iterator[dict[str, Any]]:
    """What is true now: the fields of each file of that kind, MANAGER or TARGET, in order of names."""
    for path in sorted(_trusted(folder()).glob(f"{kind}-*.json")):
        found = _read(path)
        if found is not None and found.get("schema") == SCHEMAS[kind]:
            yield found


def _trusted(where: Path) -> Path:
    """The folder, or none where others may have written into it."""
    with contextlib.suppress(OSError):
        found = where.stat()
        known = where == SYSTEM or found.st_uid in (0, os.geteuid())
        if known and not found.st_mode & OTHERS_WRITE:
            return where
    return Path(os.devnull)


def _read(path: Path) -> dict[str, Any] | None:
    """The fields; None: nobody stands by them, or they cannot be read."""
    until = time.monotonic() + WRITING_S
    while True:
        try:
            with path.open("rb") as file:
                if _lock(file.fileno(), fcntl.LOCK_SH):
                    return None
                found = json.loads(file.read(FILE_MOST))
        except OSError:
            return None
        except ValueError:  # it is just being written
            if time.monotonic() > until:
                return None
            time.sleep(STEP_S)
            continue
        return found if isinstance(found, dict) else None
