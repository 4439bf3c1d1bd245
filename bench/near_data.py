# SPDX-License-Identifier: GPL-2.0-or-later
"""The demo's log job near the data against fetch-and-compute over a 1 Gb/s link.

Run as a program (`python -m bench.near_data URL LOG PAIRS`) it is the client inside its namespace.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyosd
from bench.link import CLIENT, RATE, SERVER, inside, link, unavailable
from bench.plan import Plan
from bench.stats import Row, at_least, missing, row_of_pairs
from bench.target import bench_target
from examples.demo import generate, ways

AIM = at_least(1.5)
SCRIPT = Path(ways.__file__).with_name("log.py")


def rows(plan: Plan) -> Iterator[Row]:
    """near_data_log: seconds of fetch-and-compute over seconds near the data."""
    yield _row(3 if plan.quick else 5)


def _row(pairs: int) -> Row:
    if why := unavailable():
        return missing("near_data_log", AIM, why)
    with tempfile.TemporaryDirectory(prefix="iosd-log-") as name, link() as (server, client):
        log = Path(name) / "log"
        generate.write_log(log)
        arguments = ["--unsafe-portal", "--allow", CLIENT, "--security", "nosec"]
        prefix = inside(server)
        with bench_target(*arguments, portal=f"{SERVER}:0", prefix=prefix) as target:
            command = [*inside(client), sys.executable, "-m", "bench.near_data"]
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
