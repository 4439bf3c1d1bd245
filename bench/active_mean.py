# SPDX-License-Identifier: GPL-2.0-or-later
"""The mean of a variable that lies in an object, beside the data and at the client that fetches it.

Run as a program (`python -m bench.active_mean URL PAIRS`) it is the client inside its namespace.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator

import numpy as np

import pyosd
from bench.link import CLIENT, RATE, SERVER, inside, link, unavailable
from bench.plan import Plan
from bench.sandboxes import NUMPY_POOL, package_set
from bench.stats import Row, at_least, missing, row_of_pairs
from bench.target import bench_target
from iosd_host.config import packages
from pyosd.offload.where import Where
from pyosd.types import ObjectRef

AIM = at_least(5)
VALUES = 16 << 20  # float32: 64 MiB
CHUNK = 4 << 20
MEAN = f"""
import numpy
import osd

total, count = 0.0, 0
for block in osd.zone.data.blocks({CHUNK}):
    values = numpy.frombuffer(block, "<f4")
    total += float(values.sum(dtype="f8"))
    count += values.size
osd.result(total / count)
"""


def rows(plan: Plan) -> Iterator[Row]:
    """active_mean: fetch and compute / near the data."""
    reason = unavailable()
    try:
        package_set("numpy", "numpy")
    except packages.PackagesError as error:
        reason = reason or str(error)
    if reason:
        yield missing("active_mean", AIM, reason)
        return
    with link() as (server, client):
        words = (*NUMPY_POOL, "--unsafe-portal", "--allow", CLIENT, "--security", "nosec")
        with bench_target(
            *words, portal=f"{SERVER}:0", prefix=inside(server), disk=False
        ) as target:
            command = [*inside(client), sys.executable, "-m", "bench.active_mean", target.url]
            pairs = str(5 if plan.quick else 15)
            done = subprocess.run([*command, pairs], check=True, stdout=subprocess.PIPE)
    method = f"mean of {VALUES * 4 >> 20} MiB of float32 by numpy: fetch and compute / EXEC; link of {RATE}"
    yield row_of_pairs("active_mean", json.loads(done.stdout), AIM, method, speedup=True)


def _mean(target: pyosd.Target, zone: ObjectRef, where: Where) -> tuple[float, float]:
    """Seconds, and the mean."""
    begin = time.perf_counter()
    outcome = target.run(MEAN, zone=zone, where=where, pool="numpy")
    return time.perf_counter() - begin, outcome.result


def client(url: str, pairs: int) -> None:
    """Measure both ways in turn, and print the pairs as JSON."""
    values = np.frombuffer(os.urandom(VALUES), "u1").astype("<f4")  # their sum is exact
    with pyosd.connect(url) as target:
        zone = target.create(target.create_partition())
        target.write_from(zone, io.BytesIO(values.tobytes()))
        found = []
        for number in range(pairs + 1):  # the first warms both up
            (near, here), (far, there) = (_mean(target, zone, each) for each in ("near", "local"))
            assert here == there, (here, there)
            found += [(near, far)] if number else []
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    client(sys.argv[1], int(sys.argv[2]))
