# SPDX-License-Identifier: GPL-2.0-or-later
"""One function over the same objects at 1, 2, 4 and 8 targets: spaces counted, lines searched, AES.

Each target has a link of 1 Gb/s and 0.15 of a processor, so that eight of them and the client fit on two
processors, and are not limited by one another.  The objects are spread evenly.
Run as a program (`python -m bench.scaleout ...`) it is the client.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pyosd
from bench.link import RATE, inside
from bench.plan import Plan
from bench.runde_link import POOL, SET, TEXT, without_ciphers
from bench.star import limited, star, unavailable
from bench.stats import Curve, Row, at_least, missing, point, row_of_pairs
from bench.target import SOURCE, bench_target
from pyosd.types import PartitionId

AIM = at_least(0.95)
COUNTS = (1, 2, 4, 8)
SHARE = 0.15  # of a processor, for each target
PARTITION = PartitionId(0x10000)


def count(obj: Any) -> int:
    """Spaces of an object."""
    return sum(bytes(block).count(b" ") for block in obj.data.blocks())


def grep(obj: Any) -> int:
    """Lines of an object with "the" in them."""
    return sum(1 for _ in obj.grep("the", literal=True))


def aes(obj: Any) -> int:
    """AES-256-CBC of an object; nothing is kept but the last byte."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    step = Cipher(algorithms.AES(bytes(range(32))), modes.CBC(bytes(16))).encryptor()
    last = 0
    for block in obj.data.blocks():
        last = step.update(bytes(block))[-1]
    return last


KERNELS = {
    "scaleout_count": (count, "", "spaces counted"),
    "scaleout_grep": (grep, "", 'lines with "the" counted'),
    "scaleout_aes": (aes, SET, "AES-256-CBC, nothing written"),
}


def rows(plan: Plan) -> Iterator[Row | Curve]:
    """scaleout_count, scaleout_grep, scaleout_aes, and the curve of all three."""
    reason = unavailable() or without_ciphers()
    if reason:
        yield from (missing(row_id, AIM, reason) for row_id in KERNELS)
        return
    objects, size, rounds = (32, 1 << 20, 2) if plan.quick else (256, 1 << 20, 2)
    found = _measure(objects, size, rounds)
    total = f"{objects} objects of {size >> 20} MiB"
    most = str(COUNTS[-1])
    for row_id, (_, _, what) in KERNELS.items():
        pairs = [
            (seconds[most], seconds["1"] / COUNTS[-1]) for seconds in (r[row_id] for r in found)
        ]
        method = (
            f"{what}, {total}: {most} targets / an eighth of the time of one; {SHARE:g} CPU, {RATE}"
        )
        yield row_of_pairs(row_id, pairs, AIM, method, speedup=True)
    series = {
        row_id.removeprefix("scaleout_"): [
            point(number, [r[row_id]["1"] / r[row_id][str(number)] for r in found])
            for number in COUNTS
        ]
        for row_id in KERNELS
    }
    yield Curve(
        "scaleout",
        "Speed-up by number of targets",
        "targets",
        "times as fast as one",
        series,
        log_x=True,
        log_y=True,
    )


def _measure(objects: int, size: int, rounds: int) -> list[dict[str, dict[str, float]]]:
    """Seconds by row and number of targets, for each round."""
    with ExitStack() as stack:
        client, hosts = stack.enter_context(star(COUNTS[-1]))
        urls = []
        for host in hosts:
            words = (*POOL, "--unsafe-portal", "--allow", host.client, "--security", "nosec")
            served = bench_target(
                *words, portal=f"{host.address}:0", prefix=host.prefix, disk=False
            )
            urls.append(stack.enter_context(served).url)
        stack.enter_context(limited(hosts, SHARE))
        command = [*inside(client), sys.executable, "-m", "bench.scaleout"]
        done = subprocess.run(
            [*command, str(objects), str(size), str(rounds), *urls],
            env=os.environ | {"PYTHONPATH": str(SOURCE)},
            check=True,
            stdout=subprocess.PIPE,
        )
    found: list[dict[str, dict[str, float]]] = json.loads(done.stdout)
    return found


# ---- at the client -------------------------------------------------------------------------------


def _spread(cluster: pyosd.Many, objects: int, data: bytes) -> None:
    """Object n at target n modulo their number, and each also at the first 1, 2 and 4."""
    for name in cluster.names:
        cluster.target(name).create_partition(PARTITION)
    for number in range(objects):
        for name in {_place(number, among) for among in COUNTS}:
            cluster.target(name).create_and_write(PARTITION, data, 0, _id(number))


def _id(number: int) -> int:
    return 0x10000 + number


def _place(number: int, among: int) -> str:
    return str(number % among)


def _seconds(cluster: pyosd.Many, objects: int, row_id: str, among: int) -> tuple[float, int]:
    """Of a kernel over all objects at so many targets, and its result."""
    kernel, pool, _ = KERNELS[row_id]
    copies = [
        pyosd.Copies(pyosd.ref(PARTITION, _id(number)), (_place(number, among),))
        for number in range(objects)
    ]
    begin = time.perf_counter()
    run = cluster.map_objects(kernel, copies, "sum", pool=pool, speculate=False)
    value = run.result()
    return time.perf_counter() - begin, value


def client(objects: int, size: int, rounds: int, urls: list[str]) -> None:
    """Measure the numbers of targets in turn; print seconds by row and number, as JSON."""
    data = os.urandom(size).translate(TEXT)
    found: list[dict[str, dict[str, float]]] = []
    with pyosd.many({str(number): url for number, url in enumerate(urls)}) as cluster:
        _spread(cluster, objects, data)
        values = {each: _seconds(cluster, objects, each, COUNTS[-1])[1] for each in KERNELS}
        for _ in range(rounds):  # the line above has warmed all targets up
            seconds: dict[str, dict[str, float]] = {each: {} for each in KERNELS}
            for row_id in KERNELS:
                for among in COUNTS:
                    taken, value = _seconds(cluster, objects, row_id, among)
                    assert value == values[row_id], row_id
                    seconds[row_id][str(among)] = taken
            found.append(seconds)
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    objects, size, rounds, *urls = sys.argv[1:]
    client(int(objects), int(size), int(rounds), urls)
