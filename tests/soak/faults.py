# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults for a serving target: kill its parts, stop them, cut what connects them, fill or break its
disk, reset its logical unit.

Broken writes come from tests/fault/interpose.c, preloaded into tgtd by a script of that name that
stands first on PATH; a full disk is a small tmpfs with a file that takes the rest of it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
import signal
import socket
import stat
import struct
import subprocess
import tempfile
from pathlib import Path

from iosd_host.serve.tgtd import find_tgtd
from tests.fault.test_crash_target import busy_sandbox
from tests.harness import SOURCE
from tests.serving import Serving

DISK_MIB = 512
SYS_PIDFD_GETFD = 438


def interposer(folder: Path) -> Path:
    """Build the library whose switch makes writes fail."""
    made = folder / "interpose.so"
    flags = "-std=gnu17 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -fPIC -shared".split()
    source = SOURCE / "tests" / "fault" / "interpose.c"
    subprocess.run(["cc", *flags, "-o", made, source], check=True)
    return made


class Disk:
    """A small disk that can be full or broken, and a tgtd that sees it break.

    A context manager.  Raises: PermissionError: no tmpfs may be mounted here.
    """

    def __init__(self) -> None:
        # Not below pytest's folders: tgtd's user cannot look into those.
        self.folder = Path(tempfile.mkdtemp(prefix="iosd-disk-"))
        self.folder.chmod(0o755)
        self.mount = self.folder / "disk"
        self.mount.mkdir()
        options = f"size={DISK_MIB}m,mode=0777"
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.mount)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            shutil.rmtree(self.folder)
            raise PermissionError("cannot mount a small tmpfs")
        self.switch = self.folder / "switch"
        self.switch.write_bytes(bytes(8))
        self.switch.chmod(0o666)
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        library, tgtd = interposer(self.folder), find_tgtd(os.environ.get("IOSD_TGTD")).path
        program = shutil.copy(tgtd, self.bin / "program")  # where tgtd's user can look
        self.script = self.bin / "tgtd"
        self.script.write_text(
            f'#!/bin/sh\nLD_PRELOAD="{library} $LD_PRELOAD" IOSD_FAULT_SWITCH={self.switch} '
            f'exec {program} "$@"\n'
        )
        self.script.chmod(0o755)

    def __enter__(self) -> Disk:
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["umount", self.mount], check=True)
        shutil.rmtree(self.folder)

    def environment(self) -> dict[str, str]:
        """For the target's supervisor."""
        return {"IOSD_TGTD": str(self.script)}

    @property
    def data(self) -> Path:
        return self.mount / "store"

    def breaks(self, error: int) -> None:
        """Writes of data fail with this errno from now on; 0: they do not."""
        with self.switch.open("r+b") as file:
            file.write(struct.pack("@Q", error))

    def fills(self) -> None:
        """No block is left; `empties` gives them back."""
        block = bytes(1 << 20)
        with (self.mount / "filler").open("ab", buffering=0) as file, contextlib.suppress(OSError):
            while file.write(block):
                pass

    def empties(self) -> None:
        (self.mount / "filler").unlink(missing_ok=True)


def duplicate(pid: int, descriptor: int) -> int:
    """A descriptor of another process.  Raises: OSError."""
    pidfd = os.pidfd_open(pid)
    try:
        syscall = ctypes.CDLL(None, use_errno=True).syscall
        made = int(syscall(SYS_PIDFD_GETFD, pidfd, descriptor, 0))
        if made < 0:
            raise OSError(ctypes.get_errno(), "pidfd_getfd")
        return made
    finally:
        os.close(pidfd)


def cut_from_sandboxd(serving: Serving) -> bool:
    """Shut the connection between tgtd and iosd-sandboxd under both of them."""
    tgtd = serving.pids["tgtd"]
    try:
        descriptors = [int(each.name) for each in Path(f"/proc/{tgtd}/fd").iterdir()]
    except OSError:
        return False
    for descriptor in descriptors:
        try:
            made = duplicate(tgtd, descriptor)
        except OSError:
            continue
        if not stat.S_ISSOCK(os.fstat(made).st_mode):
            os.close(made)
            continue
        with socket.socket(fileno=made) as ours, contextlib.suppress(OSError):
            if ours.family == socket.AF_UNIX and "sandboxd" in str(ours.getpeername()):
                ours.shutdown(socket.SHUT_RDWR)
                return True
    return False


def kill_sandbox(serving: Serving) -> bool:
    """SIGKILL to the sandbox that has computed longest."""
    pid = busy_sandbox(serving)
    if pid is None:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return True


def send_signal(serving: Serving, name: str, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(serving.pids[name], number)


BROKEN = errno.EIO
