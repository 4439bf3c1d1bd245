# SPDX-License-Identifier: GPL-2.0-or-later
"""Runde's three programs near the data against the same at a client behind a link of 1 Gb/s: AES of
128 MiB, words counted, lines searched.

The client READs the object ahead of itself into a file and runs the script there on it; what the script
writes goes back over the link.  The cipher near the data is the client's release of `cryptography`, in a
package set.  Run as a program (`python -m bench.runde_link URL PAIRS BYTES`) it is the client on the link.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

import pyosd
from bench.link import CLIENT, POLL_S, RATE, SERVER, inside, link, unavailable
from bench.plan import Plan
from bench.sandboxes import SETS, package_set
from bench.stats import Row, at_least, missing, row_of_pairs
from bench.target import SOURCE, bench_target
from examples.demo.ways import Task, fetch_and_compute, near_the_data
from iosd_host.config.packages import PackagesError
from pyosd.types import ObjectRef

AIM = at_least(1.5)  # as the thesis has it of AES
SCRIPTS = Path(__file__).with_name("runde_tasks")
SET = "aes"
PRELOADED = "cryptography.hazmat.primitives.ciphers"
POOL = ("--package-sets", str(SETS), "--pool", f"{SET}:packages={SET},max=2")
CHUNK = 4 << 20
BYTES, QUICK_BYTES = 128 << 20, 16 << 20
# For each random byte a character: lines of 128 bytes, words of five letters, "the" at one place of 30,000.
TEXT = bytes((*b"\n\n", *b" " * 40, *(97 + at % 26 for at in range(214))))


@dataclass(frozen=True)
class _Way:
    """A row: the script, what it is told beside its objects, and from which to which it works."""

    what: str
    script: str
    words: tuple[str, ...] = ()
    source: str = "text"
    result: str | None = None
    pool: str = ""


WAYS = {
    "runde_aes_encrypt": _Way("AES-256-CBC", "aes", ("encrypt",), "text", "cipher", SET),
    "runde_aes_decrypt": _Way("the same back", "aes", ("decrypt",), "cipher", "plain", SET),
    "runde_words": _Way("spaces counted", "words"),
    "runde_grep": _Way('lines with "the" into an object', "grep", result="lines"),
}


def without_ciphers() -> str | None:
    """Have the package set with ciphers made.  Returns: why it cannot be."""
    try:
        package_set(SET, f"cryptography=={version('cryptography')}", PRELOADED)
    except PackagesError as error:
        return str(error)
    return None


def rows(plan: Plan) -> Iterator[Row]:
    """runde_aes_encrypt, runde_aes_decrypt, runde_words, runde_grep."""
    most, size = (2, QUICK_BYTES) if plan.quick else (5, BYTES)
    pairs = min(most, plan.pairs)
    reason = unavailable() or without_ciphers()
    if reason:
        yield from (missing(row_id, AIM, reason) for row_id in WAYS)
        return
    with link() as (server, client):
        arguments = [*POOL, "--unsafe-portal", "--allow", CLIENT, "--security", "nosec"]
        prefix = inside(server)
        with bench_target(*arguments, portal=f"{SERVER}:0", prefix=prefix, disk=False) as target:
            command = [*inside(client), sys.executable, "-m", "bench.runde_link", target.url]
            done = subprocess.run(
                [*command, str(pairs), str(size)],
                env=os.environ | {"PYTHONPATH": str(SOURCE)},
                check=True,
                stdout=subprocess.PIPE,
            )
    for row_id, samples in json.loads(done.stdout).items():
        method = (
            f"{WAYS[row_id].what}, {size >> 20} MiB: fetched and computed / near the data, {RATE}"
        )
        yield row_of_pairs(row_id, samples, AIM, method, speedup=True)


# ---- at the client -------------------------------------------------------------------------------


def _objects(target: pyosd.Target, size: int) -> dict[str, ObjectRef]:
    """By name; "text" has size random bytes of text, the others none."""
    pid = target.create_partition()
    made = {name: target.create(pid) for name in ("text", "cipher", "plain", "lines")}
    for offset in range(0, size, CHUNK):
        target.write(made["text"], offset, os.urandom(CHUNK).translate(TEXT))
    return made


def _task(way: _Way, objects: dict[str, ObjectRef]) -> Task:
    source = objects[way.source]
    ids = [source.partition_id, source.object_id]
    ids += [objects[way.result].object_id] if way.result else []
    return Task(
        way.script,
        SCRIPTS / f"{way.script}.py",
        ObjectRef(source.partition_id),
        (*map(hex, ids), *way.words),
        (source,),
        way.pool,
    )


def _pair(url: str, task: Task) -> tuple[float, float]:
    """Seconds near the data and at the client, which find the same."""
    with tempfile.TemporaryDirectory(prefix="iosd-fetch-") as folder:
        near = near_the_data(url, task, _quiet, POLL_S)
        fetched = fetch_and_compute(url, task, Path(folder), _quiet)
    assert near.output == fetched.output, (near.output, fetched.output)
    return near.seconds, fetched.seconds


def client(url: str, pairs: int, size: int) -> None:
    """Measure the ways in turn, print the pairs of each as JSON."""
    with pyosd.connect(url) as target:
        objects = _objects(target, size)
        measure = {row_id: partial(_pair, url, _task(way, objects)) for row_id, way in WAYS.items()}
        found = [{row_id: pair() for row_id, pair in measure.items()} for _ in range(pairs + 1)]
        ends = [target.read(objects[name], size - 16, 16) for name in ("text", "plain")]
        assert ends[0] == ends[1]
    json.dump({row_id: [each[row_id] for each in found[1:]] for row_id in WAYS}, sys.stdout)


def _quiet(share: float, word: str) -> None:
    """Progress nobody watches."""


if __name__ == "__main__":
    client(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
