# SPDX-License-Identifier: GPL-2.0-or-later
"""The demo's log job near the data against fetch-and-compute over a 1 Gb/s link. Also against the
prediction of the model in section VI.D of the iOSD paper, made from a quarter of the log.

Nothing overlaps here: the log is fetched, then the script is started on it.  So T_fac(x) = T_net(x) +
T_cpu(x), and both ways are lines over x (bench/offload_model.py).

Run as a program (`python -m bench.near_data URL LOG PAIRS FITS`) it is the client inside its namespace.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyosd
from bench.link import CLIENT, POLL_S, RATE, SERVER, inside, link, unavailable
from bench.offload_model import fitted
from bench.plan import Plan
from bench.stats import Row, at_least, at_most, missing, row_of_pairs
from bench.target import bench_target
from examples.demo import generate, ways
from pyosd.types import ObjectRef

AIM, MODEL_AIM = at_least(1.5), at_most(1.2)
ROW_IDS = {"near_data_log": AIM, "near_data_log_model": MODEL_AIM}
PARTS = (
    16,
    4,
)  # of the log, for the model; the jobs of smaller ones end within few polls, each POLL_S long
FITS = 7  # samples of each part
SCRIPT = Path(ways.__file__).with_name("log.py")


def rows(plan: Plan) -> Iterator[Row]:
    """near_data_log: seconds of fetch-and-compute over seconds near the data; near_data_log_model: how
    far the model is off."""
    if why := unavailable():
        yield from (missing(row_id, aim, why) for row_id, aim in ROW_IDS.items())
        return
    yield from _rows(3 if plan.quick else 5, 3 if plan.quick else FITS)


def _rows(pairs: int, fits: int) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="iosd-log-") as name, link() as (server, client):
        log = Path(name) / "log"
        generate.write_log(log)
        arguments = ["--unsafe-portal", "--allow", CLIENT, "--security", "nosec"]
        prefix = inside(server)
        with bench_target(*arguments, portal=f"{SERVER}:0", prefix=prefix) as target:
            command = [*inside(client), sys.executable, "-m", "bench.near_data"]
            done = subprocess.run(
                [*command, target.url, str(log), str(pairs), str(fits)],
                check=True,
                stdout=subprocess.PIPE,
            )
    found = {int(size): both for size, both in json.loads(done.stdout).items()}
    samples = [(near, fetch) for near, fetch in found[max(found)]]
    method = f"{generate.LINES} lines, fetch-and-compute / near the data, veth shaped to {RATE}"
    yield row_of_pairs("near_data_log", samples, AIM, method, speedup=True)
    yield _model_row(found, method)


def _model_row(found: dict[int, list[list[float]]], method: str) -> Row:
    """found: seconds near the data and fetching, of two parts of the log and of all of it, by bytes."""
    *parts, size = sorted(found)
    near, fetch = (fitted({n: [each[way] for each in found[n]] for n in parts}) for way in (0, 1))
    predicted = fetch.at(size) / near.at(size)
    ratios = [by_fetch / by_near for by_near, by_fetch in found[size]]
    pairs = [(max(each, predicted), min(each, predicted)) for each in ratios]
    method += f"; the larger of measured and predicted ({predicted:.2f}) / the smaller"
    return row_of_pairs("near_data_log_model", pairs, MODEL_AIM, method, unit="times")


def client(url: str, log: Path, pairs: int, fits: int) -> None:
    """Measure both ways in turn on parts of the log and on all of it, print the pairs by bytes as JSON."""
    data = log.read_bytes()
    found = {}
    for size, count in (
        (len(data) // PARTS[0], fits),
        (len(data) // PARTS[1], fits),
        (len(data), pairs),
    ):
        with pyosd.connect(url) as target:
            obj = target.create(target.create_partition())
            target.write_from(obj, io.BytesIO(data[:size]))
        found[size] = _pairs(url, obj, count)
    json.dump(found, sys.stdout)


def _pairs(url: str, obj: ObjectRef, count: int) -> list[list[float]]:
    """Seconds near the data and of fetch-and-compute; a first pair warms up."""
    arguments = (hex(obj.partition_id), hex(obj.object_id))
    task = ways.Task("log", SCRIPT, obj, arguments, (obj,))
    samples = []
    for _ in range(count + 1):
        with tempfile.TemporaryDirectory(prefix="iosd-fetch-") as folder:
            near = ways.near_the_data(url, task, _quiet, POLL_S)
            fetch = ways.fetch_and_compute(url, task, Path(folder), _quiet)
        assert near.sha256 == fetch.sha256
        samples.append([near.seconds, fetch.seconds])
    return samples[1:]


def _quiet(share: float, word: str) -> None:
    """Progress nobody watches."""


if __name__ == "__main__":
    client(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
