# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of a script's calls: the round trip to the proxy (bench/hop.c), and the paper's
operations from a script against the same calls of the object layer (operations.py).
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyosd
from bench.operations import TABLE_I, Bench
from bench.plan import Plan
from bench.stats import Row, at_most, missing, row_of_pairs
from bench.target import BenchTarget, bench_target

BUILD = Path(__file__).resolve().parents[1] / "build"
ROUNDS = 2000  # calls in one sample
FUTEX_AIM, SPIN_S = 1.25, 1e-6
DISTANCE_S = 12e-6  # what a script's call may take more than the object layer's

# ---- the bare way ------------------------------------------------------------------------------


def _hops(row_id: str, cpus: tuple[int, int], samples: int) -> list[tuple[float, float]]:
    program = BUILD / "sandbox" / "bench_hop"
    command = [str(program), *map(str, cpus), str(ROUNDS), str(samples)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [(ours * 1e-9, bare * 1e-9) for ours, bare in map(json.loads, lines)]


def hop_rows(samples: int) -> Iterator[Row]:
    """rpc_hop_same_core, rpc_hop_two_cores, rpc_hop_spinning."""
    what = f"call and answer, {ROUNDS} in a row, {samples} samples"
    cpus = sorted(os.sched_getaffinity(0))
    pairs = _hops("rpc_hop_same_core", (cpus[0], cpus[0]), samples)
    method = f"{what}; baseline: a bare pair of futexes, both pinned to one processor"
    yield row_of_pairs("rpc_hop_same_core", pairs, at_most(FUTEX_AIM), method)
    if len(cpus) < 2:
        for row_id in ("rpc_hop_two_cores", "rpc_hop_spinning"):
            yield missing(row_id, at_most(1), "this machine has one processor")
        return
    pairs = _hops("rpc_hop_two_cores", (cpus[0], cpus[1]), samples)
    method = f"{what}; baseline: a bare pair of futexes, pinned to two processors"
    yield row_of_pairs("rpc_hop_two_cores", pairs, at_most(FUTEX_AIM), method)
    spinning = [(ours, SPIN_S) for ours, _ in pairs]
    yield row_of_pairs("rpc_hop_spinning", spinning, at_most(1), f"{what}; baseline: the aim, 1 us")


# ---- operations --------------------------------------------------------------------------------


def rows(plan: Plan) -> Iterator[Row]:
    """rpc_hop_*; script_create, script_remove, script_set6, script_get6, and each against iOSD."""
    yield from hop_rows(plan.many_pairs)
    with bench_target() as target:
        yield from _call_rows(target, plan.many_pairs, 50 if plan.quick else 500)


def _call_rows(target: BenchTarget, samples: int, count: int) -> Iterator[Row]:
    with pyosd.connect(target.url) as osd:
        bench = Bench(target, osd, count)
        bench.sample()
        found = [bench.sample() for _ in range(samples)]
    for name, published in TABLE_I.items():
        each = [sample[name] for sample in found]
        method = f"median of {count} calls by a script, {samples} samples; baseline: "
        pairs = [(sample.method, sample.osd + DISTANCE_S) for sample in each]
        bare = "the same calls of the object layer, and 12 us"
        yield row_of_pairs(f"script_{name}", pairs, at_most(1), method + bare)
        pairs = [(sample.method, published.seconds / 2) for sample in each]
        paper = f"half of what the iOSD paper reports, {published.seconds * 1e6:.0f} us"
        yield row_of_pairs(
            f"script_{name}_iosd", pairs, at_most(1), method + paper, paper=published.seconds
        )
