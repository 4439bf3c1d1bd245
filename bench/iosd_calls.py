# SPDX-License-Identifier: GPL-2.0-or-later
"""Table I and figures 3 and 4 of the iOSD paper: what the paper's four operations take from a script, and
in which layer (operations.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyosd
from bench.operations import ATTRIBUTES, LAYERS, TABLE_I, Bench, Sample
from bench.plan import Plan
from bench.stats import REPORTED, Curve, Point, Row, point, row_of_pairs
from bench.target import bench_target

ITERATIONS = 1000  # as there
NUMBERS = (1, 2, 4, 6, 8, 16, 32, 64)  # of attributes in one call, for figure 4
QUICK_NUMBERS = (1, 6, 64)
VALUE_BYTES = 26  # as there
GET = "get6"


# ---- Table I, figure 3 ---------------------------------------------------------------------------


def _table_one(bench: Bench, samples: int) -> Iterator[Row | Curve]:
    bench.sample()
    found = [bench.sample() for _ in range(samples)]
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
    """Sums of the layers from the bottom. The dashes are the paper's."""
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
