# SPDX-License-Identifier: GPL-2.0-or-later
"""`make bench-tiers`: heads on an SSD and the rest on a hard disk, against everything on either, after
figures 3.2 to 3.5 of Runde's thesis; on simulated disks, and on devices that the kernel throttles.

Everything is written to bench/results/tiers.json and into plots.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench import tier_disks
from bench.plan import Plan as BenchPlan
from bench.saved import write_rows
from bench.stats import REPORTED, Aim, Row, at_least, row_of_pairs
from bench.table import format_table
from bench.tier_places import CACHE, HDD, SSD, TIERS, Place, pieces_of, simulated_places
from bench.tier_plots import Found, Samples, draw
from iosd_host.store_tools.head_size import THESIS
from pyosd.wire.cdb import Options

RESULTS = Path(__file__).with_name("results") / "tiers.json"
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
HEAD = 2 * MIB
SIZES = tuple(KIB << step for step in range(21))
DIRECTIONS = ("write", "read")
COMPARED = (SSD, TIERS, HDD)
STEP, STEPPED = 512 * KIB, 4 * MIB


@dataclass(frozen=True)
class Plan:
    """How much is measured.

    rounds: of what takes little; few_rounds: of objects above 2 MiB.  part: an object above it is
        read and written in its first and last bytes, so many in all.
    """

    rounds: int
    few_rounds: int
    sizes: tuple[int, ...]
    part: int
    mixed: int
    steps: int

    def rounds_of(self, size: int) -> int:
        return self.rounds if size <= HEAD else self.few_rounds


FULL = Plan(9, 4, SIZES, 32 * MIB, 200, 9)
QUICK = Plan(3, 2, (KIB, 16 * KIB, 128 * KIB, MIB, HEAD, 16 * MIB, GIB), 16 * MIB, 30, 2)


def label(size: int) -> str:
    """1k, 64k, 2m, 1g."""
    for unit, name in ((GIB, "g"), (MIB, "m")):
        if size >= unit:
            return f"{size // unit}{name}"
    return f"{size // KIB}k"


def count_of(size: int, kind: str = TIERS) -> int:
    """Objects of one sample: few where they are large, or slow."""
    if size <= 64 * KIB:
        return 8 if kind == HDD else 24
    return 4 if size <= HEAD else 1


def by_turns(kinds: Sequence[str], number: int) -> Sequence[str]:
    """In each order as often: who comes first is a little slower."""
    return kinds if number % 2 else kinds[::-1]


def in_turn(
    places: dict[str, Place], kinds: Sequence[str], rounds: int, figure: Callable[[Place], float]
) -> Samples:
    """One figure of each place a round, one place after the other; the first round does not count."""
    found: Samples = {kind: [] for kind in kinds}
    for number in range(rounds + 1):
        for kind in by_turns(kinds, number):
            value = figure(places[kind])
            if number:
                found[kind].append(value)
    return found


def compared(
    row_id: str, found: Samples, baseline: str, aim: Aim, method: str, unit: str = "MB/s"
) -> Row:
    """The two tiers against one of the other places."""
    scale = 1e-6 if unit == "MB/s" else 1.0
    pairs = [(a * scale, b * scale) for a, b in zip(found[TIERS], found[baseline], strict=True)]
    row = row_of_pairs(row_id, pairs, aim, f"{method}; two tiers / {NAMES[baseline]}", unit=unit)
    return replace(row, simulated=True)


NAMES = {
    SSD: "all on the SSD",
    HDD: "all on the hard disk",
    CACHE: "a plain store in the page cache",
}


# ---- whole objects, figures 3.2 to 3.4 -----------------------------------------------------------------


def moved(place: Place, size: int, part: int, count: int) -> tuple[float, float]:
    """Write new objects of one size, then read them.  Returns: bytes a second of each."""
    pieces, made = pieces_of(size, part), place.make(count)
    return place.write(made, pieces), place.read(made, pieces)


def throughput(places: dict[str, Place], plan: Plan, size: int) -> dict[str, Samples]:
    """Bytes a second of whole objects of one size by direction.

    A round's figure is the median of three where that takes little: within the head, of the fast places.
    """
    found: dict[str, Samples] = {each: {} for each in DIRECTIONS}
    order = (SSD, TIERS) * (3 if size <= HEAD else 1) + (HDD, CACHE)
    for number in range(plan.rounds_of(size) + 1):
        figures: dict[str, list[tuple[float, float]]] = {}
        for kind in by_turns(order, number):
            figures.setdefault(kind, []).append(
                moved(places[kind], size, plan.part, count_of(size, kind))
            )
        for kind, pairs in figures.items() if number else ():
            for direction, values in zip(DIRECTIONS, zip(*pairs, strict=True), strict=True):
                found[direction].setdefault(kind, []).append(statistics.median(values))
    return found


def throughput_rows(curves: dict[str, dict[int, Samples]], plan: Plan) -> Iterator[Row]:
    """tier_read_1k ... tier_write_1g, against the SSD as far as heads go and against both beyond."""
    for direction in DIRECTIONS:
        for size, found in curves[direction].items():
            row_id = f"tier_{direction}_{label(size)}"
            method = f"{direction} of {count_of(size)} objects of {size} bytes"
            if size > plan.part:
                method += f", the first and last {plan.part // 2} of them"
            in_head = size <= HEAD
            yield compared(row_id, found, SSD, at_least(0.95) if in_head else REPORTED, method)
            aim = REPORTED if in_head else at_least(0.98)
            yield compared(f"{row_id}_hdd", found, HDD, aim, method)
            yield compared(f"{row_id}_cache", found, CACHE, REPORTED, method)


def small_row(curves: dict[str, dict[int, Samples]]) -> Row:
    """tier_small: the geometric mean over all sizes from 4 KiB to the head size, both directions."""
    chosen = [
        found
        for by_size in curves.values()
        for size, found in by_size.items()
        if 4 * KIB <= size <= HEAD
    ]
    mean: Samples = {
        kind: [
            statistics.geometric_mean(figures)
            for figures in zip(*(found[kind] for found in chosen), strict=True)
        ]
        for kind in (TIERS, SSD)
    }
    method = f"objects of 4 KiB to {label(HEAD)}, written and read, geometric mean of MB/s"
    return compared("tier_small", mean, SSD, at_least(0.95), method)


# ---- the rest --------------------------------------------------------------------------------------------


def first_byte_row(places: dict[str, Place], plan: Plan) -> Row:
    """tier_first_byte: 4 KiB from the begin of large objects."""
    count, size = 4, 8 * MIB
    objects = {}
    for kind in COMPARED:
        objects[id(places[kind])] = made = places[kind].make(count)
        places[kind].write(made, [(0, size)])
    found = in_turn(
        places,
        (SSD, TIERS),
        plan.rounds,
        lambda place: place.read(objects[id(place)] * 8, [(0, 4 * KIB)]) / (4 * KIB),
    )
    method = f"READs a second of the first 4 KiB of objects of {label(size)}"
    return compared("tier_first_byte", found, SSD, at_least(0.95), method, "1/s")


def tail_rows(places: dict[str, Place], plan: Plan) -> Iterator[Row]:
    """tier_tail_read, tier_tail_write: on from the head in 1 MiB, one command after the other."""
    length = plan.part // 2
    pieces = [(at, MIB) for at in range(HEAD, HEAD + length, MIB)]
    objects = {}
    for kind in (TIERS, HDD):
        objects[id(places[kind])] = made = places[kind].make(1)
        places[kind].write(made, pieces_of(HEAD + length, HEAD + length))
    moves: dict[str, Callable[[Place], float]] = {
        "read": lambda place: place.read(objects[id(place)], pieces),
        "write": lambda place: place.write(objects[id(place)], pieces),
    }
    for direction, figure in moves.items():
        found = in_turn(places, (TIERS, HDD), plan.few_rounds, figure)
        method = f"{direction} in turn of {length >> 20} times 1 MiB behind the head"
        yield compared(f"tier_tail_{direction}", found, HDD, at_least(0.98), method)


def create_rows(places: dict[str, Place], plan: Plan) -> Iterator[Row]:
    """tier_create_4k, tier_create_64k: CREATE AND WRITE."""
    for size in (4 * KIB, 64 * KIB):

        def created(place: Place, size: int = size) -> float:
            return place.create(16, size)

        found = in_turn(places, COMPARED, plan.rounds, created)
        method = f"CREATE AND WRITE of {size} bytes, objects a second"
        row_id = f"tier_create_{label(size)}"
        yield compared(row_id, found, SSD, at_least(0.9), method, "1/s")
        yield compared(f"{row_id}_hdd", found, HDD, REPORTED, method, "1/s")


def flush_rows(places: dict[str, Place], plan: Plan) -> Iterator[Row]:
    """tier_fua_4k: WRITEs that are to survive power loss."""
    objects = {}
    for kind in COMPARED:
        objects[id(places[kind])] = made = places[kind].make(1)
        places[kind].write(made, [(0, 4 * KIB)])

    def written(place: Place) -> float:
        data = place.content(0, 4 * KIB)
        start = time.perf_counter()
        for _ in range(16):
            place.osd.write(objects[id(place)][0], 0, data, options=Options(fua=True))
        return 16 / (time.perf_counter() - start)

    found = in_turn(places, COMPARED, plan.rounds, written)
    method = "WRITE of 4 KiB with FUA, commands a second"
    yield compared("tier_fua_4k", found, SSD, at_least(0.95), method, "1/s")
    yield compared("tier_fua_4k_hdd", found, HDD, REPORTED, method, "1/s")


def remove_rows(places: dict[str, Place], plan: Plan) -> Iterator[Row]:
    """tier_remove_4k."""

    def removed(place: Place) -> float:
        made = place.make(16)
        place.write(made, [(0, 4 * KIB)])
        start = time.perf_counter()
        for obj in made:
            place.osd.remove(obj)
        return len(made) / (time.perf_counter() - start)

    found = in_turn(places, COMPARED, plan.rounds, removed)
    method = "REMOVE of 4 KiB, objects a second"
    yield compared("tier_remove_4k", found, SSD, REPORTED, method, "1/s")
    yield compared("tier_remove_4k_hdd", found, HDD, REPORTED, method, "1/s")


def cold_row(places: dict[str, Place], plan: Plan) -> Row:
    """tier_cold_4k: small objects whose files the target has closed since: it keeps 512 open."""
    each, open_files = 32, 512
    count = open_files + each * (plan.rounds + 1)
    objects, starts = {}, {}
    for kind in (SSD, TIERS):
        objects[kind] = places[kind].make(count)
        places[kind].write(objects[kind], [(0, 4 * KIB)])
        starts[id(places[kind])] = iter(range(0, count, each)), objects[kind]

    def read(place: Place) -> float:
        numbers, made = starts[id(place)]
        at = next(numbers)
        return place.read(made[at : at + each], [(0, 4 * KIB)])

    found = in_turn(places, (SSD, TIERS), plan.rounds, read)
    method = "first READ in a while of objects of 4 KiB: their files are opened again"
    return compared("tier_cold_4k", found, SSD, at_least(0.95), method)


def steps(places: dict[str, Place], plan: Plan) -> dict[str, dict[int, Samples]]:
    """Figure 3.5: a 4 MiB object in steps of 512 KiB, each written and then read."""
    found: dict[str, dict[int, Samples]] = {each: {} for each in DIRECTIONS}
    for number in range(plan.steps):
        for kind in by_turns(COMPARED, number):
            place = places[kind]
            made = place.make(1)
            for at in range(0, STEPPED, STEP):
                for direction, move in (("write", place.write), ("read", place.read)):
                    samples = found[direction].setdefault(at, {each: [] for each in COMPARED})
                    samples[kind].append(move(made, [(at, STEP)]))
    return found


def step_rows(found: dict[str, dict[int, Samples]]) -> Iterator[Row]:
    """tier_step_read_0k ...: within the head against the SSD, behind it against the hard disk."""
    for direction, by_offset in found.items():
        for at, samples in by_offset.items():
            baseline, aim = (SSD, at_least(0.95)) if at < HEAD else (HDD, at_least(0.98))
            method = f"{direction} of 512 KiB at {at // KIB} KiB of 4 MiB"
            if at == HEAD and direction == "write":  # a new file for both
                samples = {**samples, HDD: by_offset[0][HDD]}
                method += ", the first on the hard disk, as at 0 there"
            yield compared(f"tier_step_{direction}_{at // KIB}k", samples, baseline, aim, method)


def mixed_rows(places: dict[str, Place], plan: Plan) -> Iterator[Row]:
    """tier_mixed_write, tier_mixed_read: sizes as the thesis has them, in any order."""
    sizes = [min(size, plan.part) for size in THESIS.sample(plan.mixed)]
    random.Random(1).shuffle(sizes)
    kinds = (*COMPARED, CACHE)
    found: dict[str, Samples] = {each: {kind: [] for kind in kinds} for each in DIRECTIONS}
    for _ in range(max(2, plan.few_rounds // 2)):
        for kind in kinds:
            place = places[kind]
            made = list(zip(place.make(len(sizes)), sizes, strict=True))
            for direction, move in (("write", place.write), ("read", place.read)):
                start = time.perf_counter()
                for obj, size in made:
                    move([obj], pieces_of(size, plan.part))
                found[direction][kind].append(len(sizes) / (time.perf_counter() - start))
                random.Random(2).shuffle(made)
    for direction, samples in found.items():
        method = f"{direction} of {len(sizes)} objects, {sum(sizes)} bytes, objects a second"
        for baseline in (SSD, HDD, CACHE):
            suffix = "" if baseline == SSD else f"_{baseline}"
            row_id = f"tier_mixed_{direction}{suffix}"
            yield compared(row_id, samples, baseline, REPORTED, method, "1/s")


def all_rows(plan: Plan, found: Found) -> Iterator[Row]:
    """Every row on simulated disks; found is filled with what plots are made of."""
    with simulated_places() as places:
        for size in plan.sizes:
            for direction, samples in throughput(places, plan, size).items():
                found.curves.setdefault(direction, {})[size] = samples
        yield from throughput_rows(found.curves, plan)
        yield small_row(found.curves)
        yield first_byte_row(places, plan)
        yield from tail_rows(places, plan)
        yield from create_rows(places, plan)
        yield from flush_rows(places, plan)
        yield from remove_rows(places, plan)
        yield cold_row(places, plan)
        found.steps = steps(places, plan)
        yield from step_rows(found.steps)
        yield from mixed_rows(places, plan)
    yield from tier_disks.rows(plan is QUICK)


def rows(usual: BenchPlan) -> Iterator[Row]:
    """tier_small, tier_first_byte, tier_tail_*, tier_create_*: for bench/results/latest.json."""
    plan = (
        QUICK
        if usual.quick
        else replace(FULL, sizes=tuple(n for n in SIZES if 4 * KIB <= n <= HEAD))
    )
    curves: dict[str, dict[int, Samples]] = {}
    with simulated_places() as places:
        for size in plan.sizes:
            if size <= HEAD:
                for direction, samples in throughput(places, plan, size).items():
                    curves.setdefault(direction, {})[size] = samples
        yield small_row(curves)
        yield first_byte_row(places, plan)
        yield from tail_rows(places, plan)
        yield from create_rows(places, plan)


def main() -> None:
    """Measure, print the table, write report and plots."""
    parser = argparse.ArgumentParser(prog="bench.tiers", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer sizes and samples")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    plan = QUICK if options.quick else FULL
    data, measured = Found(), []
    start = time.monotonic()
    for row in all_rows(plan, data):
        measured.append(row)
        print(f"{row.id} measured", file=sys.stderr)
    write_rows(measured, options.output, simulated=True, curves=data.curves, steps=data.steps)
    print(format_table(measured))
    draw(data, options.output.parent)
    print(f"took {time.monotonic() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
