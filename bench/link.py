# SPDX-License-Identifier: GPL-2.0-or-later
"""A link of 1 Gb/s: two network namespaces joined by a veth pair, each end shaped by tc tbf.

Needs root and iproute2.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

RATE = "1gbit"
SERVER, CLIENT = "10.77.0.1", "10.77.0.2"
NAMESPACES = Path("/run/netns")
POLL_S = 0.005  # of jobs whose time is measured; the demo polls less often, since it counts bytes


def unavailable() -> str:
    """Why there can be none here; "": there can."""
    if os.geteuid() != 0 or shutil.which("tc") is None:
        return "network namespaces need root and iproute2"
    return ""


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def remove_left_over() -> None:
    """Remove the namespaces of processes that were killed, by the process ids in their names."""
    for path in NAMESPACES.glob("iosd-[sc]*"):
        found = re.fullmatch(r"iosd-[sc](\d+)(-\d+)?", path.name)
        if found and not Path("/proc", found[1]).exists():
            delete(path.name)


def delete(name: str) -> None:
    """Remove a namespace, if it is there."""
    subprocess.run(["ip", "netns", "del", name], check=False, stderr=subprocess.DEVNULL)


@contextlib.contextmanager
def link() -> Iterator[tuple[str, str]]:
    """Names of two namespaces, joined and shaped, gone at the end of the block."""
    remove_left_over()
    names = (f"iosd-s{os.getpid()}", f"iosd-c{os.getpid()}")
    try:
        for name in names:
            _ip("netns", "add", name)
            _ip("-n", name, "link", "set", "lo", "up")
        _ip(
            "link",
            "add",
            "eth0",
            "netns",
            names[0],
            "type",
            "veth",
            "peer",
            "name",
            "eth0",
            "netns",
            names[1],
        )
        for name, address in zip(names, (SERVER, CLIENT), strict=True):
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")
            subprocess.run(
                [
                    "tc",
                    "-n",
                    name,
                    "qdisc",
                    "add",
                    "dev",
                    "eth0",
                    "root",
                    "tbf",
                    "rate",
                    RATE,
                    "burst",
                    "256kb",
                    "latency",
                    "50ms",
                ],
                check=True,
            )
        yield names
    finally:
        for name in names:
            delete(name)


def inside(name: str) -> list[str]:
    """Argv that runs a command in the namespace; `ip netns exec` would hide the host's cgroups."""
    return ["nsenter", f"--net={NAMESPACES / name}"]
