# SPDX-License-Identifier: GPL-2.0-or-later
"""The demo's log job near the data against fetch-and-compute over a 1 Gb/s link: two network namespaces
joined by a veth pair, each end shaped by tc tbf.  Needs root and iproute2.

Run as a program (`python -m bench.near_data URL LOG PAIRS`) it is the client inside its namespace.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyosd
from bench.stats import Row, at_least, missing, row_of_pairs
from bench.target import bench_target
from examples.demo import generate, ways

RATE = "1gbit"
AIM = at_least(1.5)
SERVER, CLIENT = "10.77.0.1", "10.77.0.2"
SCRIPT = Path(ways.__file__).with_name("log.py")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


@contextlib.contextmanager
def _link() -> Iterator[tuple[str, str]]:
    """Names of two namespaces, joined and shaped, gone at the end of the block."""
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
            subprocess.run(["ip", "netns", "del", name], check=False, stderr=subprocess.DEVNULL)


def _inside(name: str) -> list[str]:
    """Argv that runs a command in the namespace; `ip netns exec` would hide the host's cgroups."""
    return ["nsenter", f"--net=/run/netns/{name}"]


def row(pairs: int) -> Row:
    """near_data_log: seconds of fetch-and-compute over seconds near the data."""
    if os.geteuid() != 0 or shutil.which("tc") is None:
        return missing("near_data_log", AIM, "network namespaces need root and iproute2")
    with tempfile.TemporaryDirectory(prefix="iosd-log-") as name, _link() as (server, client):
        log = Path(name) / "log"
        generate.write_log(log)
        arguments = ["--unsafe-portal", "--allow", CLIENT]
        prefix = _inside(server)
        with bench_target(*arguments, portal=f"{SERVER}:0", prefix=prefix) as target:
            command = [*_inside(client), sys.executable, "-m", "bench.near_data"]
            done = subprocess.run(
                [*command, target.url, str(log), str(pairs)], check=True, stdout=subprocess.PIPE
            )
    samples = [(near, fetch) for near, fetch in json.loads(done.stdout)]
    method = f"{generate.LINES} lines, fetch-and-compute / near the data, veth shaped to {RATE}"
    return row_of_pairs("near_data_log", samples, AIM, method, speedup=True)


def client(url: str, log: Path, pairs: int) -> None:
    """Store the log, measure both ways in turn, print the pairs as JSON."""
    with pyosd.connect(url) as target:
        obj = target.create(target.create_partition())
        with log.open("rb") as file:
            target.write_from(obj, file)
    arguments = (hex(obj.partition_id), hex(obj.object_id))
    task = ways.Task("log", SCRIPT, obj, arguments, (obj,))
    samples = []
    for _ in range(pairs + 1):  # the first pair warms up
        with tempfile.TemporaryDirectory(prefix="iosd-fetch-") as folder:
            near = ways.near_the_data(url, task, _quiet)
            fetch = ways.fetch_and_compute(url, task, Path(folder), _quiet)
        assert near.sha256 == fetch.sha256
        samples.append([near.seconds, fetch.seconds])
    json.dump(samples[1:], sys.stdout)


def _quiet(share: float, word: str) -> None:
    """Progress nobody watches."""


if __name__ == "__main__":
    client(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
