# SPDX-License-Identifier: GPL-2.0-or-later
"""What a test run takes from whoever starts it, and what not: a target they use, their login, their
configuration, how they like their terminal.
"""

from __future__ import annotations

import compileall
import contextlib
import errno
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

OF_THE_RUN = {"IOSD_TGTD", "IOSD_TGT_SOURCE", "IOSD_SEED", "IOSD_LONG", "IOSD_STEPS", "IOSD_FUZZ_SECONDS",
              "IOSD_EVERY_CALL", "IOSD_CORE_SANITIZED"}  # fmt: skip
"""Variables by which people tell tests what to do."""
OF_A_TERMINAL = {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE"}
OF_PYTHON = {"PYTHONUNBUFFERED"}
"""Programs of the product buffer their output, as for people."""
OF_A_GIT_HOOK = {"GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_PREFIX"}
PRODUCT = ("pyosd", "iosd_host", "iosd_secmgr")
FOLDERS = ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
UMASK = 0o022
SOURCE = Path(__file__).resolve().parents[1]
MOUNT_PREFIX, YOUNG_S = "iosd-mount-", 60.0
MEMORY = Path("/dev/shm")
ROOM = 8 << 30
"""Bytes.  A whole run leaves 2 GB of temporary files at its end."""


def settle() -> Callable[[], None]:
    """Make surroundings that are the same everywhere, for this process and those it starts.

    Returns: what removes the folders that were made for it.
    """
    strange = OF_A_TERMINAL | OF_PYTHON | OF_A_GIT_HOOK | {"TGT_IPC_SOCKET"}
    strange |= {name for name in os.environ if name.startswith("IOSD_")} - OF_THE_RUN
    for name in strange & os.environ.keys():
        del os.environ[name]
    os.umask(UMASK)
    # pytest rewrites the assertions of all test modules, 10 s of work for each worker: kept for later runs.
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    folder = Path(tempfile.mkdtemp(prefix="iosd-run-"))
    folder.chmod(0o755)
    for name in FOLDERS:
        os.environ[name] = str(folder / name)
    # Processes of tests must not announce themselves in /run/iosd, nor use announcements there.
    os.environ["IOSD_RUN"] = str(folder / "run")
    (folder / "run").mkdir()
    return lambda: shutil.rmtree(folder, ignore_errors=True)


def in_memory() -> Path | None:
    """Make a folder in memory for the temporary files of a run, stores among them.

    Tests kill processes, and no machine: they see no difference between a disk and memory.  An fsync
    takes milliseconds on many disks, and a run has tens of thousands.

    Returns: the folder, which the caller removes; None: TMPDIR says where temporary files go, or this
        host's memory cannot take them.
    """
    if "TMPDIR" in os.environ or not fits():
        return None
    folder = Path(tempfile.mkdtemp(prefix="iosd", dir=MEMORY))
    folder.chmod(0o1777)  # as /tmp
    return folder


def fits() -> bool:
    """Whether there is room, and programs and direct I/O work there (the latter from Linux 6.6 on)."""
    if not MEMORY.is_mount() or os.statvfs(MEMORY).f_flag & os.ST_NOEXEC:
        return False
    lines = Path("/proc/meminfo").read_text().splitlines()
    available = next(
        int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable")
    )
    if min(available, shutil.disk_usage(MEMORY).free) < ROOM:
        return False
    try:
        with tempfile.NamedTemporaryFile(dir=MEMORY) as file:
            os.close(os.open(file.name, os.O_RDWR | os.O_DIRECT))
    except OSError:
        return False
    return True


def unmount_dead() -> None:
    """Unmount what a killed run has left of `osd mount`: a mount whose program has died.

    Young ones may be those of another run, which kills its mounts to see what they leave.
    """
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        place = Path(line.split()[4])
        if " fuse.osdfs " not in line or not place.name.startswith(MOUNT_PREFIX):
            continue
        with contextlib.suppress(FileNotFoundError):
            if time.time() - place.with_suffix(".log").stat().st_mtime < YOUNG_S:
                continue
        command = ["timeout", "1", "stat", str(place)]  # one that lives may wait for its target
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if os.strerror(errno.ENOTCONN) in done.stderr:
            subprocess.run(["umount", "-l", str(place)], capture_output=True, check=False)


def compile_product() -> None:
    """Keep the product's byte-code beside its source, as an installation has it: tests start hundreds of
    its programs, each of which would compile it, and zygotes keep nothing.
    """
    for each in PRODUCT:
        compileall.compile_dir(SOURCE / each, quiet=1)
