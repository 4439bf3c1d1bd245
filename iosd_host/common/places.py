# SPDX-License-Identifier: GPL-2.0-or-later
"""The processes that run on this host, and their addresses: a file below /run/iosd for each.

    manager-PID.json    "iosd.manager/1", of a resource manager: url, key, key_file, pid, targets
    target-PID.json     "iosd.served/1", of a supervisor: the target it serves, and its own socket

A file whose name is not a process id belongs to a manager that cannot create files in this folder:
somebody else creates it.

A file is valid while the process that wrote it lives: it holds that process's id and start time.
It is not locked: anybody who can read a file can lock it.  A folder below /tmp may belong to
another user.  So files are written and trusted only in folders that root or this user owns, and no
link is followed.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = [
    "CONTROL_SOCKET",
    "MANAGER",
    "TARGET",
    "PlaceFile",
    "folder",
    "make_for",
    "own_path",
    "running",
]

CONTROL_SOCKET = Path("/run/iosd-target/control")  # of the module in tgt.service's tgtd
MANAGER, TARGET = "manager", "target"
SCHEMAS = {MANAGER: "iosd.manager/1", TARGET: "iosd.served/1"}
SYSTEM = Path("/run/iosd")  # trusted whatever its owner: only root can change that
FILE_MOST = 1 << 20
OTHERS_WRITE = 0o022
WRITING_S = 0.5  # a reader waits so long for a file that is just being written
STEP_S = 0.01
START_FIELD = 19  # of /proc/PID/stat, behind the name: the start time in ticks since boot


def folder() -> Path:
    """Folder of the files: IOSD_RUN, else /run/iosd for root, else a folder of the user."""
    said = os.environ.get("IOSD_RUN")
    if said:
        return Path(said)
    if os.geteuid() == 0:
        return SYSTEM
    return Path(os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir(), f"iosd-{os.geteuid()}")


def own_path(kind: str) -> Path:
    """The file of this process.  Files of processes that are gone are removed."""
    where = _trusted(folder())
    if where is not None:
        for path in where.glob(f"{kind}-*.json"):
            pid = path.stem.rpartition("-")[2]
            if pid.isdigit() and not Path("/proc", pid).exists():
                with contextlib.suppress(OSError):
                    path.unlink()
    return folder() / f"{kind}-{os.getpid()}.json"


class PlaceFile:
    """A file of this process, valid from its first `write` until `close` or the end of the process.

    Args:
        path: made, unless somebody has made it for us (make_for).

    Raises:
        OSError: it cannot be made, or its folder is another user's; BlockingIOError: another process
            that lives has written it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.descriptor = _open(path)
        holder = _parse(os.pread(self.descriptor, FILE_MOST, 0))
        if holder is not None and _lives(holder):
            os.close(self.descriptor)
            raise BlockingIOError(f"{path}: process {holder.get('pid')} says what runs there")

    def write(self, fields: dict[str, Any]) -> None:
        """Replace the fields of the file.  Raises: OSError: as there is no room; it is as it was."""
        pid = os.getpid()
        text = json.dumps({**fields, "pid": pid, "start_ticks": _start_ticks(pid)}).encode() + b"\n"
        os.posix_fallocate(self.descriptor, 0, len(text))
        # In this order it is never empty: to readers an empty file is not valid.
        os.pwrite(self.descriptor, text, 0)
        os.ftruncate(self.descriptor, len(text))

    def close(self) -> None:
        """Empty the file, and remove it if its folder is ours."""
        os.ftruncate(self.descriptor, 0)
        with contextlib.suppress(OSError):
            self.path.unlink()
        os.close(self.descriptor)


def make_for(path: Path, uid: int, gid: int) -> None:
    """Make the file of another user's process, who may not make it in this folder.  Raises: OSError."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    descriptor = _open(path)
    try:
        os.fchown(descriptor, uid, gid)
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    """The file, made if absent, in a folder that no stranger can change.  Raises: OSError."""
    where = path.parent
    where.mkdir(mode=0o755, parents=True, exist_ok=True)
    inside = os.open(where, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        why = _distrust(where, os.fstat(inside))
        if why:
            raise PermissionError(f"{why}: remove it, or name another folder with IOSD_RUN")
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path.name, flags, 0o644, dir_fd=inside)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise PermissionError(f"{path} is a symbolic link: remove it") from None
        raise
    finally:
        os.close(inside)
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid() and found.st_nlink == 1:
        return descriptor
    os.close(descriptor)
    raise PermissionError(f"{path} is not a file of uid {os.geteuid()} alone: remove it")


def _distrust(where: Path, found: os.stat_result) -> str:
    """Why what lies in the folder may be a stranger's; "": it is not."""
    if where != SYSTEM and found.st_uid not in (0, os.geteuid()):
        return f"{where} belongs to uid {found.st_uid}"
    if found.st_mode & OTHERS_WRITE:
        return f"{where} can be written by others"
    return ""


def running(kind: str) -> Iterator[dict[str, Any]]:
    """The fields of each valid file of that kind, MANAGER or TARGET, in order of names."""
    where = _trusted(folder())
    for path in sorted(where.glob(f"{kind}-*.json")) if where is not None else ():
        found = _read(path)
        if found is not None and found.get("schema") == SCHEMAS[kind] and _lives(found):
            yield found


def _trusted(where: Path) -> Path | None:
    """The folder; None: there is none, or others may have written into it."""
    with contextlib.suppress(OSError):
        found = where.lstat()
        if stat.S_ISDIR(found.st_mode) and not _distrust(where, found):
            return where
    return None


def _read(path: Path) -> dict[str, Any] | None:
    """The fields; None: there are none, or they cannot be read."""
    until = time.monotonic() + WRITING_S
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    while True:
        try:
            with os.fdopen(os.open(path, flags), "rb") as file:
                text = file.read(FILE_MOST)
        except OSError:
            return None
        found = _parse(text)
        # An incomplete file is just being written.
        if found is not None or not text or time.monotonic() > until:
            return found
        time.sleep(STEP_S)


def _parse(text: bytes) -> dict[str, Any] | None:
    """The fields in the first line; None: it is not whole."""
    try:
        found = json.loads(text.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _start_ticks(pid: int) -> int | None:
    """When a process started; None: there is none, or it has ended and waits for its parent."""
    try:
        words = (
            Path("/proc", str(pid), "stat").read_text(errors="replace").rpartition(")")[2].split()
        )
    except OSError:
        return None
    return None if words[0] in "ZX" else int(words[START_FIELD])


def _lives(fields: dict[str, Any]) -> bool:
    """Whether the process that wrote the fields is there, and no later one of its number."""
    pid, started = fields.get("pid"), fields.get("start_ticks")
    if not isinstance(pid, int) or not isinstance(started, int) or pid <= 0:
        return False
    if Path("/proc", str(pid)).exists():
        return _start_ticks(pid) == started
    try:  # /proc may hide the processes of others (hidepid=)
        os.close(os.pidfd_open(pid))
    except (OSError, OverflowError):
        return False
    return True
