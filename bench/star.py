# SPDX-License-Identifier: GPL-2.0-or-later
"""Several hosts of targets around one client: a network namespace for each, joined to the client's by
a link of its own that is shaped to 1 Gb/s, and for a time a share of one processor for each.

The share is enforced by the CPU controller of cgroup v1.  Needs root and iproute2.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.link import RATE, delete, inside, remove_left_over
from bench.link import unavailable as no_link

CPU = Path("/sys/fs/cgroup/cpu")
PERIOD_US = 10_000
GONE_S = 10.0


@dataclass(frozen=True)
class Host:
    """One host.  prefix: argv put before a command that runs there.  group: of its processes.
    address: its own.  client: the client's on the link to it.
    """

    prefix: tuple[str, ...]
    group: Path
    address: str
    client: str


def unavailable() -> str:
    """Why there can be none here; "": there can."""
    if why := no_link():
        return why
    if not (CPU / "cpu.cfs_quota_us").exists():
        return "shares of a processor need the CPU controller of cgroup v1"
    return ""


def _run(*words: str) -> None:
    subprocess.run(words, check=True)


def _join(client: str, host: str, number: int) -> tuple[str, str]:
    """A shaped link between two namespaces.  Returns: the host's address and the client's."""
    device = f"eth{number}"
    _run(*("ip", "link", "add", device, "netns", host, "type", "veth"),
         *("peer", "name", device, "netns", client))  # fmt: skip
    ends = {host: f"10.78.{number}.1", client: f"10.78.{number}.2"}
    for name, address in ends.items():
        _run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", device)
        _run("ip", "-n", name, "link", "set", device, "up")
        _run(*("tc", "-n", name, "qdisc", "add", "dev", device, "root"),
             *("tbf", "rate", RATE, "burst", "256kb", "latency", "50ms"))  # fmt: skip
    return ends[host], ends[client]


def _remove(group: Path) -> None:
    """Remove a control group and those below it, when their processes have gone."""
    end = time.monotonic() + GONE_S
    while group.exists():
        for each in sorted(group.rglob("*"), reverse=True):
            if each.is_dir():
                with contextlib.suppress(OSError):
                    each.rmdir()
        with contextlib.suppress(OSError):
            group.rmdir()
        if time.monotonic() > end:
            return
        time.sleep(0.05)


@contextlib.contextmanager
def limited(hosts: list[Host], share: float) -> Iterator[None]:
    """Give each host that share of one processor for the length of the block.

    Before and after it their targets start and end at full speed.
    """
    quotas = [host.group / "cpu.cfs_quota_us" for host in hosts]
    for quota in quotas:
        quota.write_text(str(round(share * PERIOD_US)))
    try:
        yield
    finally:
        for quota in quotas:
            quota.write_text("-1")


@contextlib.contextmanager
def star(count: int) -> Iterator[tuple[str, list[Host]]]:
    """So many hosts.

    Yields: the name of the client's namespace, and the hosts; all is gone at the end of the block.
    """
    remove_left_over()
    client = f"iosd-c{os.getpid()}"
    names = [f"iosd-s{os.getpid()}-{number}" for number in range(count)]
    groups = [CPU / name for name in names]
    try:
        for name in (client, *names):
            _run("ip", "netns", "add", name)
            _run("ip", "-n", name, "link", "set", "lo", "up")
        hosts = []
        for number, (name, group) in enumerate(zip(names, groups, strict=True)):
            group.mkdir()
            (group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            enter = f'echo $$ >{group}/cgroup.procs; exec "$@"'
            prefix = (*inside(name), "sh", "-c", enter, "sh")
            hosts.append(Host(prefix, group, *_join(client, name, number)))
        yield client, hosts
    finally:
        for name in (client, *names):
            delete(name)
        for group in groups:
            _remove(group)
