# SPDX-License-Identifier: GPL-2.0-or-later
"""Table I and figures 3 and 4 of the iOSD paper: what the paper's four operations take from a script, and
in which layer.

Three times for each, of the same operation on objects of the same kind, one after the other:

- the object layer alone, called from C without a process between (bench/calls.c): the paper's OSD layer;
- a call through the proxy, its arguments made beforehand (`_osdcore.call`): that, and the sandbox layer;
- the method of the package osd, as people write it: that, and the Python layer.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyosd
from bench.plan import Plan
from bench.stats import REPORTED, Curve, Point, Row, point, row_of_pairs
from bench.target import SOURCE, BenchTarget, bench_target

BENCH_CALLS = SOURCE / "build" / "target" / "bench_calls"
ITERATIONS = 1000  # as there
ATTRIBUTES, BYTES = 6, 8
NUMBERS = (1, 2, 4, 6, 8, 16, 32, 64)  # of attributes in one call, for figure 4
QUICK_NUMBERS = (1, 6, 64)
VALUE_BYTES = 26  # as there
GET = "get6"
LAYERS = ("osd", "sandbox", "python")


@dataclass(frozen=True)
class Published:
    """A line of table I: seconds, and the share of each layer."""

    seconds: float
    shares: dict[str, float]

    def of(self, layer: str) -> float:
        """Seconds in a layer."""
        return self.seconds * self.shares[layer]


TABLE_I = {
    "create": Published(142.26e-6, {"osd": 0.9126, "sandbox": 0.0816, "python": 0.0058}),
    "remove": Published(204.98e-6, {"osd": 0.9239, "sandbox": 0.0558, "python": 0.0202}),
    "set6": Published(261.69e-6, {"osd": 0.9301, "sandbox": 0.0512, "python": 0.0187}),
    "get6": Published(98.41e-6, {"osd": 0.7896, "sandbox": 0.1133, "python": 0.0970}),
}

# Two objects in turn: on one the four operations by methods, on the other by calls.
SCRIPT = """
import _osdcore, osd, statistics, time
from osd._transport import Call
from osd._values import encode_entries, encode_names

clock, call = time.perf_counter_ns, _osdcore.call
partition_id = osd.zone.partition_id
values = [(0x10000, number, bytes(range(value_bytes))) for number in range(1, attributes + 1)]
names = [(page, number) for page, number, _ in values]
set_body, get_body = b"".join(encode_entries(values)), b"".join(encode_names(names))
CREATE, SET, GET, REMOVE = map(int, (Call.CREATE, Call.SETATTR, Call.GETATTR, Call.REMOVE))
times = {name: ([], []) for name in ("create", "set6", "get6", "remove")}

def by_methods():
    user = osd.userobject(partition_id)
    a = clock()
    user.create()
    b = clock()
    user.setattr(values)
    c = clock()
    user.getattr(names)
    d = clock()
    user.remove()
    return a, b, c, d, clock()

def by_calls():
    a = clock()
    object_id = call(CREATE, partition_id, 0, 1)[0]
    b = clock()
    call(SET, partition_id, object_id, 0, 0, set_body)
    c = clock()
    call(GET, partition_id, object_id, 0, 0, get_body)
    d = clock()
    call(REMOVE, partition_id, object_id)
    return a, b, c, d, clock()

for _ in range(count):
    for which, stamps in enumerate((by_calls(), by_methods())):
        for each, start, end in zip(times.values(), stamps, stamps[1:]):
            each[which].append(end - start)
osd.result({name: [statistics.median(each) for each in both] for name, both in times.items()})
"""


@dataclass(frozen=True)
class Sample:
    """Median seconds of an operation: of the object layer, through the proxy, of the method."""

    osd: float
    call: float
    method: float

    def of(self, layer: str) -> float:
        """Seconds in a layer."""
        found = {
            "osd": self.osd,
            "sandbox": self.call - self.osd,
            "python": self.method - self.call,
        }
        return found[layer]


class Bench:
    """Samples of one target, which is up for all of them."""

    def __init__(self, target: BenchTarget, osd: pyosd.Target, count: int) -> None:
        self.folder, self.osd, self.count = target.folder, osd, count
        self.zone = osd.partition(osd.create_partition())

    def sample(self, attributes: int, value_bytes: int) -> dict[str, Sample]:
        """Both ways once, by operation."""
        head = f"count, attributes, value_bytes = {self.count}, {attributes}, {value_bytes}\n"
        job = self.osd.exec(head + SCRIPT, zone=self.zone)
        both = job.result(timeout=120)
        job.remove()
        bare = self._object_layer(attributes, value_bytes)
        return {
            name: Sample(bare[name] * 1e-9, call * 1e-9, method * 1e-9)
            for name, (call, method) in both.items()
        }

    def _object_layer(self, attributes: int, value_bytes: int) -> dict[str, float]:
        with tempfile.TemporaryDirectory(dir=self.folder) as store:
            arguments = (self.count, attributes, value_bytes)
            command = [str(BENCH_CALLS), store, *map(str, arguments)]
            output = subprocess.run(command, check=True, capture_output=True).stdout
        return {name: float(ns) for name, ns in json.loads(output).items()}


# ---- Table I, figure 3 ---------------------------------------------------------------------------


def _table_one(bench: Bench, samples: int) -> Iterator[Row | Curve]:
    bench.sample(ATTRIBUTES, BYTES)
    found = [bench.sample(ATTRIBUTES, BYTES) for _ in range(samples)]
    method = f"medians of {bench.count} iterations, {samples} samples"
    for name, published in TABLE_I.items():
        each = [sample[name] for sample in found]
        yield row_of_pairs(
            f"iosd_{name}",
            [(sample.method, sample.osd) for sample in each],
            REPORTED,
            f"a method of the package osd / the object layer alone, {method}",
            paper=published.seconds,
        )
        for layer in LAYERS:
            yield row_of_pairs(
                f"iosd_{name}_{layer}",
                [(sample.of(layer), sample.method) for sample in each],
                REPORTED,
                f"time in the layer / in all three, {method}",
                paper=published.of(layer),
            )
    yield _figure_three(found)


def _figure_three(found: list[dict[str, Sample]]) -> Curve:
    """Where each layer ends, from the bottom; the paper's are the dashes."""
    series: dict[str, list[Point]] = {}
    paper: dict[str, list[Point]] = {}
    for until, layer in enumerate(LAYERS, 1):
        series[layer] = [
            point(at, [sum(sample[name].of(each) for each in LAYERS[:until]) for sample in found])
            for at, name in enumerate(TABLE_I, 1)
        ]
        paper[layer] = [
            Point(at, sum(published.of(each) for each in LAYERS[:until]))
            for at, published in enumerate(TABLE_I.values(), 1)
        ]
    names = ", ".join(f"{at} {name}" for at, name in enumerate(TABLE_I, 1))
    return Curve(
        "iosd_fig3",
        "iOSD figure 3: time of an operation, by layer",
        names,
        "time, s",
        series,
        log_y=True,
        paper=paper,
    )


# ---- figure 4 ------------------------------------------------------------------------------------


def _figure_four(bench: Bench, numbers: Sequence[int], samples: int) -> Iterator[Curve]:
    found: dict[int, list[Sample]] = {number: [] for number in numbers}
    for _ in range(samples):
        for number in numbers:
            found[number].append(bench.sample(number, VALUE_BYTES)[GET])
    reach = {"osd": "osd", "osd and sandbox": "call", "osd, sandbox and python": "method"}
    yield Curve(
        "iosd_fig4",
        f"iOSD figure 4: getattr of values of {VALUE_BYTES} bytes, at each layer",
        "attributes",
        "time, s",
        {
            name: [point(n, [getattr(s, field) for s in each]) for n, each in found.items()]
            for name, field in reach.items()
        },
        log_x=True,
        log_y=True,
        paper={"paper, 6 attributes, all layers": [Point(ATTRIBUTES, TABLE_I[GET].seconds)]},
    )
    yield Curve(
        "iosd_fig4_overhead",
        "iOSD figure 4: the Python layer's part of getattr",
        "attributes",
        "time, s",
        {"python": [point(n, [s.of("python") for s in each]) for n, each in found.items()]},
        log_x=True,
        paper={"paper, 6 attributes": [Point(ATTRIBUTES, TABLE_I[GET].of("python"))]},
    )


def rows(plan: Plan) -> Iterator[Row | Curve]:
    """iosd_create, iosd_remove, iosd_set6, iosd_get6 and the same by layer; figures 3 and 4."""
    count = 50 if plan.quick else ITERATIONS
    numbers, samples = (QUICK_NUMBERS, 2) if plan.quick else (NUMBERS, 5)
    with bench_target(disk=False) as target, pyosd.connect(target.url) as osd:
        bench = Bench(target, osd, count)
        yield from _table_one(bench, plan.pairs)
        yield from _figure_four(bench, numbers, samples)
