# SPDX-License-Identifier: GPL-2.0-or-later
"""Section VI.D of the iOSD paper: is it better to send the computation, or to fetch the data?

Its model, all times in seconds, x in bytes, k those of a block:

    T_net(x) = L + B x                the link
    T_cpu(x) = C0 + C x               the computation, here
    T_off(x) = T0 + alpha C x         the same beside the data; T0: code, start and result
    T_fac(x) = max(T_net(x) + T_cpu(k), T_net(k) + T_cpu(x))

the last for a client that computes on one block while others are on their way, as ours can.  All are
measured on 1/64 and 1/16 of the data; what that predicts for all of it is then compared with both ways
as they are.  Jobs are synchronous, the result comes with the answer.  Five scripts of different weight,
and all of them once more at a target that has other jobs to run: there alpha is large.  Each is also
run by Target.run(where="auto"), which decides by itself (offload_auto.py), also while those other jobs
come and go.

Run as a program (`python -m bench.offload_model URL LOG BYTES REPEATS`) it is the client in its namespace.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyosd
from bench.link import CLIENT, RATE, SERVER, inside, link, unavailable
from bench.offload_auto import auto_rows
from bench.offload_kernels import KERNELS
from bench.plan import Plan
from bench.stats import REPORTED, Curve, Point, Row, at_least, missing, row_of_pairs
from bench.target import bench_target
from examples.demo import generate
from pyosd.offload.home import Outcome
from pyosd.types import ObjectRef

MIB = 1 << 20
BLOCK = MIB
PARTS = (64, 16)  # of the data; what the model is fitted on
HOGS = 2  # jobs that keep the busy target's processor, beside ours
RESULT_BYTES = 65536
CLOSE = 1.1  # ways that differ by less are equally good
MODES = ("idle", "busy")
CHANGING = "changing"
AUTO_LEARNS = 8  # runs near, with the link measured, at the client, and in both with that known
AUTO_WAIT_S = 60
ROW_DECISIONS = "offload_decisions"
HOG = "while True:\n    pass\n"
NEAR = "import osd\nosd.result(compute(osd.zone.data.blocks()))\n"

Kernel = Callable[[Iterable[Any]], Any]


# ---- the model -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Line:
    """Seconds by bytes."""

    start: float
    per_byte: float

    def at(self, size: float) -> float:
        """Seconds of so many bytes."""
        return self.start + self.per_byte * size


def fitted(points: Mapping[int, Sequence[float]]) -> Line:
    """The line through the medians at two sizes; times do not fall with size."""
    (small, first), (large, second) = sorted((n, statistics.median(s)) for n, s in points.items())
    per_byte = max(0.0, (second - first) / (large - small))
    return Line(max(0.0, first - per_byte * small), per_byte)


@dataclass(frozen=True)
class Model:
    """The largest term: T_net, T_cpu, T_off."""

    net: Line
    cpu: Line
    off: Line

    @property
    def alpha(self) -> float:
        """How many times longer a byte takes in the sandbox."""
        return self.off.per_byte / self.cpu.per_byte if self.cpu.per_byte else math.inf

    def near(self, size: int) -> float:
        """T_off."""
        return self.off.at(size)

    def fetch(self, size: int, block: int = BLOCK) -> float:
        """T_fac."""
        block = min(block, size)
        overlapped = self.net.at(size) + self.cpu.at(block), self.net.at(block) + self.cpu.at(size)
        return max(overlapped)


def right(model: Model, size: int, near: float, fetch: float) -> bool:
    """Whether the way that the model prefers was, measured, as good as the other."""
    chosen, other = (near, fetch) if model.near(size) < model.fetch(size) else (fetch, near)
    return chosen <= CLOSE * other


# ---- the client ----------------------------------------------------------------------------------


def _timed(run: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    found = run()
    return time.perf_counter() - start, found


def _compiled(text: str) -> Kernel:
    namespace: dict[str, Kernel] = {}
    exec(text, namespace)  # our own, offload_kernels.py
    return namespace["compute"]


class Client:
    """Measures over one session.  objects: by size, the data's first bytes."""

    def __init__(self, osd: pyosd.Target, data: bytes, repeats: int) -> None:
        self.osd, self.repeats, self.size = osd, repeats, len(data)
        partition_id = osd.create_partition()
        self.pieces: dict[int, tuple[ObjectRef, bytes]] = {}
        for size in (len(data) // PARTS[0], len(data) // PARTS[1], len(data)):
            obj = osd.create(partition_id)
            for at in range(0, size, BLOCK):
                osd.write(obj, at, data[at : min(size, at + BLOCK)])
            self.pieces[size] = obj, data[:size]
        self.fit_sizes = sorted(self.pieces)[:2]

    def near(self, code: str, size: int) -> tuple[float, Any]:
        """Compute beside the data."""
        zone = self.pieces[size][0]
        seconds, reply = _timed(
            lambda: self.osd.exec_code(
                zone, code.encode(), synchronous=True, result_allocation_length=RESULT_BYTES
            )
        )
        assert not reply.error, reply.error
        return seconds, json.loads(bytes(reply.result).rstrip(b"\0"))

    def seconds_near(self, code: str, size: int) -> float:
        """The time of near()."""
        return self.near(code, size)[0]

    def fetch(self, compute: Kernel, size: int) -> tuple[float, Any]:
        """Compute on one block while others come."""
        return _timed(lambda: compute(self.osd.iter_read(self.pieces[size][0], 0, size, BLOCK)))

    def here(self, compute: Kernel, size: int) -> float:
        """Compute on what is in memory."""
        data = memoryview(self.pieces[size][1])
        return _timed(lambda: compute(data[at : at + BLOCK] for at in range(0, size, BLOCK)))[0]

    def fit(self, once: Callable[[int], float]) -> Line:
        """Of what takes `once(size)` seconds; the first warms up."""
        return fitted({n: [once(n) for _ in range(self.repeats + 1)][1:] for n in self.fit_sizes})

    def outcomes(self) -> Iterator[dict[str, Any]]:
        """Of each kernel: the model; seconds near the data, of fetching and of `where="auto"`, in turns."""
        net = self.fit(lambda n: self.fetch(lambda blocks: sum(map(len, blocks)), n)[0])
        for name, text in KERNELS.items():
            compute, code = _compiled(text), text + NEAR
            cpu = self.fit(partial(self.here, compute))
            off = self.fit(partial(self.seconds_near, code))
            for _ in range(AUTO_LEARNS):
                self.auto(code)
            turns = [self.turn(compute, code) for _ in range(self.repeats + 1)][1:]
            yield {
                "name": name,
                "model": [[each.start, each.per_byte] for each in (net, cpu, off)],
                "pairs": [(near, fetch) for near, fetch, _ in turns],
                "auto": [(chosen.seconds, chosen.where) for _, _, chosen in turns],
            }

    def turn(self, compute: Kernel, code: str) -> tuple[float, float, Outcome]:
        """Seconds near the data and of fetching, and the outcome of `where="auto"`, one after the other."""
        near, ours = self.near(code, self.size)
        fetch, theirs = self.fetch(compute, self.size)
        chosen = self.auto(code)
        assert ours == theirs == chosen.result, code
        return near, fetch, chosen

    def changing(self) -> Iterator[dict[str, Any]]:
        """Of each kernel, sums of a turn while the target is idle and one while it is busy.

        Each run of `where="auto"` finds another load than the one before.  The kernels are known.
        """
        for name, text in KERNELS.items():
            compute, code = _compiled(text), text + NEAR
            sums = []
            for _ in range(self.repeats):
                idle = self.turn(compute, code)
                with _busy(self.osd, HOGS):
                    busy = self.turn(compute, code)
                near, fetch = idle[0] + busy[0], idle[1] + busy[1]
                sums.append((near, fetch, idle[2].seconds + busy[2].seconds))
            yield {"name": name, "sums": sums}

    def auto(self, code: str) -> Outcome:
        """Run it where `where="auto"` chooses."""
        zone = self.pieces[self.size][0]
        return self.osd.run(code, zone=zone, where="auto", wait=AUTO_WAIT_S)


@contextlib.contextmanager
def _busy(osd: pyosd.Target, jobs: int) -> Iterator[None]:
    """So many other jobs at work."""
    zone = osd.partition(osd.create_partition())
    limits = pyosd.Limits(wall=600, cpu=600)
    running = [osd.exec(HOG, zone=zone, limits=limits) for _ in range(jobs)]
    try:
        yield
    finally:
        for job in running:
            job.kill()
        for job in running:
            job.wait(AUTO_WAIT_S)


def client(url: str, log: Path, size: int, repeats: int) -> None:
    """Measure with the target idle and busy; print the outcomes as JSON, by mode."""
    with pyosd.connect(url) as osd:
        bench = Client(osd, log.read_bytes()[:size], repeats)
        found = {MODES[0]: list(bench.outcomes())}
        with _busy(osd, HOGS):
            found[MODES[1]] = list(bench.outcomes())
        found[CHANGING] = list(bench.changing())
    json.dump(found, sys.stdout)


# ---- rows ----------------------------------------------------------------------------------------


def _measured(size: int, repeats: int) -> dict[str, list[dict[str, Any]]]:
    with tempfile.TemporaryDirectory(prefix="iosd-log-") as name, link() as (server, client_end):
        log = Path(name) / "log"
        generate.write_log(log, size // 150)  # of lines of 194 bytes on average
        arguments = ["--unsafe-portal", "--allow", CLIENT, "--security", "nosec"]
        arguments += ["--slots", str(HOGS + 1)]
        prefix = (*inside(server), "taskset", "-c", "0")
        with bench_target(*arguments, portal=f"{SERVER}:0", prefix=prefix, disk=False) as target:
            command = [*inside(client_end), "taskset", "-c", "1", sys.executable, "-m", __name__]
            command += [target.url, str(log), str(size), str(repeats)]
            environment = os.environ | {"XDG_CACHE_HOME": name}
            done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    found: dict[str, list[dict[str, Any]]] = json.loads(done.stdout)
    return found


def _verdict(model: Model, size: int, pairs: Sequence[Sequence[float]]) -> tuple[bool, str]:
    near, fetch = (statistics.median(each) for each in zip(*pairs, strict=True))
    fine = right(model, size, near, fetch)
    way = "offload" if model.near(size) < model.fetch(size) else "fetch"
    return fine, (
        f"alpha {model.alpha:.2f}, B {model.net.per_byte * 1e9:.2f} ns, C "
        f"{model.cpu.per_byte * 1e9:.2f} ns; predicted {model.near(size):.3f} s near the data, "
        f"{model.fetch(size):.3f} s fetched: {way}, {'right' if fine else 'wrong'}"
    )


def rows(plan: Plan) -> Iterator[Row | Curve]:
    """offload_SCRIPT_MODE: fetching over offloading; offload_decisions: how many predictions are right."""
    why = unavailable()
    if why or len(os.sched_getaffinity(0)) < 2:
        yield missing(ROW_DECISIONS, at_least(0.9), why or "a processor for each end is needed")
        return
    size, repeats = (8 * MIB, 1) if plan.quick else (64 * MIB, 9)
    yield from rows_of(_measured(size, repeats), size)


def rows_of(found: Mapping[str, list[dict[str, Any]]], size: int) -> Iterator[Row | Curve]:
    """The same of what a client measured, by mode."""
    decisions: list[bool] = []
    ways: dict[str, list[Point]] = {"offload": [], "fetch": []}
    for mode in MODES:
        for each in found[mode]:
            model = Model(*(Line(*part) for part in each["model"]))
            fine, text = _verdict(model, size, each["pairs"])
            decisions.append(fine)
            row_id = f"offload_{each['name']}_{mode}"
            pairs = [(near, fetch) for near, fetch in each["pairs"]]
            yield row_of_pairs(row_id, pairs, REPORTED, f"{text}; link of {RATE}", speedup=True)
            for way, predicted, column in (
                ("offload", model.near(size), 0),
                ("fetch", model.fetch(size), 1),
            ):
                ways[way].append(Point(predicted, statistics.median(p[column] for p in pairs)))
    share = [(float(sum(decisions)), float(len(decisions)))]
    method = f"right predictions of all, {size // MIB} MiB, fitted on 1/{PARTS[1]} of it"
    yield row_of_pairs(ROW_DECISIONS, share, at_least(0.9), method, unit="decisions")
    yield from auto_rows(found, CLOSE)
    yield Curve(
        "iosd_offload",
        "iOSD section VI.D: predicted and measured time of both ways",
        "predicted, s",
        "measured, s",
        {way: sorted(points, key=lambda place: place.x) for way, points in ways.items()},
        log_x=True,
        log_y=True,
    )


if __name__ == "__main__":
    client(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
