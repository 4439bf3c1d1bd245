# SPDX-License-Identifier: GPL-2.0-or-later
"""A control group of its own for iosd-sandboxd, where `osd target serve` runs in a shell under systemd.

Under cgroup v2 a group that has processes cannot have groups with controllers below it (cgroups(7), "no
internal processes"), and a shell's has.  systemd creates a delegated group without processes.
"""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

UNIFIED = Path("/sys/fs/cgroup/cgroup.controllers")  # there under cgroup v2
SYSTEMD = Path("/run/systemd/system")  # there while it runs (sd_booted(3))
RUN = (
    *(
        "systemd-run",
        "--scope",
        "--quiet",
        "--collect",
        "--description=iosd's sandboxes for scripts",
    ),
    *("--property=Delegate=yes", "--property=CPUWeight=10", "--property=IOWeight=10", "--"),
)
DEADLINE_S = 30


@functools.cache
def available() -> bool:
    """Whether systemd can give us a scope, and cgroup v2 makes us need one."""
    if os.geteuid() != 0 or not UNIFIED.exists() or not SYSTEMD.exists():
        return False
    try:
        done = subprocess.run(
            [*RUN, "true"], stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE_S
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def in_scope(command: Sequence[str]) -> list[str]:
    """The command line that has a command run in a scope, as the same process, or as it is without."""
    return [*RUN, *command] if available() else [*command]
