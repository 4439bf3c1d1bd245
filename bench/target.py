# SPDX-License-Identifier: GPL-2.0-or-later
"""The target under test: `osd target serve` on a fresh store, and beside the OSD logical unit, in the
same tgtd, a plain file-backed disk as the baseline of READ and WRITE rows.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1]
DISK_LUN = 2
DISK_BYTES = 64 << 20
START_S = 60.0
SERVE = "from iosd_host.cli.serve import serve; serve()"  # of this tree, whatever is installed


@dataclass(frozen=True)
class BenchTarget:
    """URLs of the OSD and of the disk, where the store lies, the supervisor's process and tgtd's (as it
    was started), and the module's control socket."""

    url: str
    disk_url: str
    folder: Path
    pid: int
    tgtd_pid: int
    control: Path


def _add_disk(control: str, image: Path, uid: int, size: int) -> None:
    """Give the running tgtd one more logical unit: a disk (rdwr) over the image."""
    part = os.urandom(1 << 20)
    with image.open("wb") as file:
        for _ in range(size >> 20):
            file.write(part)
    os.chown(image, uid, uid)
    command = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
    command += ["tgtadm", "-C", "1", "--lld", "iscsi", "--op", "new", "--mode", "logicalunit"]
    command += ["--tid", "1", "--lun", str(DISK_LUN), "--bstype", "rdwr", "-b", str(image)]
    subprocess.run(command, check=True, env={**os.environ, "TGT_IPC_SOCKET": control})


@contextlib.contextmanager
def bench_target(
    *arguments: str,
    portal: str = "127.0.0.1:0",
    prefix: Sequence[str] = (),
    manager: bool = False,
    data: Path | None = None,
    disk: bool = True,
    disk_bytes: int = DISK_BYTES,
    image: Path | None = None,
) -> Iterator[BenchTarget]:
    """Serve for the length of the block.

    Args: arguments: more options of `osd target serve`.  prefix: argv put before it, such as
        ip netns exec NAME.  manager: with a resource manager, which changes pools and workers.
        data: folder of the store; None: a fresh one.  disk: with the plain disk beside the OSD.
        disk_bytes: its size, whole MiB.  image: its file; None: one beside a fresh store.
    """
    with tempfile.TemporaryDirectory(prefix="iosd-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        command = [*prefix, sys.executable, "-c", SERVE, "-o", "json"]
        store = data or folder / "store"
        command += ["--data", str(store), "--portal", portal]
        command += ["--log-level", "warning", *arguments]
        command += [] if manager else ["--no-manager"]
        if "--security" not in arguments:
            command += ["--security", "nosec"]  # rows are about the wire unless they say otherwise
        process = subprocess.Popen(command, cwd=SOURCE, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            if not line:
                raise SystemExit(f"bench: the target did not start (exit {process.wait()})")
            ready = json.loads(line)
            if disk:
                _add_disk(
                    ready["control"], image or folder / "disk", store.stat().st_uid, disk_bytes
                )
            disk_url = re.sub(r"/\d+$", f"/{DISK_LUN}", ready["url"])
            yield BenchTarget(
                ready["url"],
                disk_url,
                folder,
                process.pid,
                ready["pids"]["tgtd"],
                Path(ready["control"]).parent.parent / "control" / "socket",
            )
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(START_S)
            process.stdout.close()
