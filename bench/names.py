# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands on names (docs/names.md), beside the commands that do the same without a name, and in
directories of a thousand to a million names.

The commands are encoded beforehand and their answers are not decoded, so that Python takes no part in
a ratio of the target's work.
"""

from __future__ import annotations

import itertools
import random
import time
from collections import deque
from collections.abc import Callable, Iterator

import pyosd
from bench.plan import Plan
from bench.stats import REPORTED, Curve, Point, Row, at_most, point, row_of_pairs
from bench.target import bench_target
from pyosd import requests
from pyosd.types import AttributeValue, ObjectRef, ref
from pyosd.wire.cdb import AttributeLists, Request, encode
from pyosd.wire.names import NameFlag, NameParams, NameVerb
from pyosd.wire.transport import Pending

LISTED = 1000
LIST_AIM_S = 400e-6
LIST_ROOM = 256 << 10
PAGE = 100  # names of a LIST in a directory of any size
DEPTH = ("one", "two", "three", "four", "file")
OUTSTANDING = 64
DETAILS = NameParams(NameVerb.LIST, b"", flags=NameFlag.ATTRIBUTES)


def run(osd: pyosd.Target, request: Request) -> None:
    """Raises: AssertionError: the command failed."""
    response = osd.transport.submit(encode(request)[0]).result()
    assert response.status == 0, response.sense.hex()


def repeated(osd: pyosd.Target, request: Request) -> Callable[[], None]:
    """The same command each time, encoded once."""
    command = encode(request)[0]

    def once() -> None:
        response = osd.transport.submit(command).result()
        assert response.status == 0, response.sense.hex()

    return once


def pairs_of(
    ours: Callable[[], object], baseline: Callable[[], object], count: int
) -> list[tuple[float, float]]:
    """Seconds of both, in turn; a tenth more is done first and not counted."""
    pairs = []
    for _ in range(count + count // 10):
        begin = time.perf_counter()
        ours()
        middle = time.perf_counter()
        baseline()
        pairs.append((middle - begin, time.perf_counter() - middle))
    return pairs[count // 10 :]


def fill(osd: pyosd.Target, root: ObjectRef, count: int) -> None:
    """So many objects with names in the root directory of a partition, many commands at a time."""
    under_way: deque[Pending] = deque()
    for number in range(count):
        params = NameParams(NameVerb.CREATE, _name(number))
        under_way.append(osd.transport.submit(encode(requests.names(root, params))[0]))
        while len(under_way) >= OUTSTANDING or (under_way and number == count - 1):
            response = under_way.popleft().result()
            assert response.status == 0, response.sense.hex()


def _name(number: int) -> bytes:
    return b"name%08d" % number


# ---- one directory -------------------------------------------------------------------------------


def _lookup(osd: pyosd.Target, plan: Plan) -> Row:
    root = ref(osd.create_partition())
    for depth in range(1, len(DEPTH)):
        osd.make_directory(root, "/".join(DEPTH[:depth]))
    path = "/".join(DEPTH)
    osd.create_name(root, path)
    ours = repeated(osd, requests.names(root, NameParams(NameVerb.LOOKUP, path.encode())))
    samples = pairs_of(ours, osd.test_unit_ready, plan.count)
    method = f"LOOKUP of {len(DEPTH)} names of a path / TUR, {len(samples)} interleaved pairs"
    return row_of_pairs("name_lookup5", samples, at_most(1.3), method)


def _list(osd: pyosd.Target, plan: Plan) -> Iterator[Row]:
    root = ref(osd.create_partition())
    for number in range(LISTED):
        osd.create_name(root, _name(number))
    whole = NameParams(NameVerb.LIST, b"")
    count = plan.count // 4
    for row_id, params, aim in (
        ("name_list_1000", whole, at_most(1)),
        ("name_list_1000_details", DETAILS, REPORTED),
    ):
        ours = repeated(osd, requests.names(root, params, LIST_ROOM))
        times = [each for each, _ in pairs_of(ours, osd.test_unit_ready, count)]
        method = f"LIST of {LISTED} names, {count} times, TUR between; baseline: {LIST_AIM_S:g} s"
        yield row_of_pairs(row_id, [(each, LIST_AIM_S) for each in times], aim, method)


def _changes(osd: pyosd.Target, plan: Plan) -> Iterator[Row]:
    root = ref(osd.create_partition())
    numbers = itertools.count()
    last = [next(numbers)]

    def create() -> None:
        last[0] = next(numbers)
        run(osd, requests.names(root, NameParams(NameVerb.CREATE, _name(last[0]))))

    def rename() -> None:
        old, last[0] = last[0], next(numbers)
        params = NameParams(NameVerb.RENAME, _name(old), _name(last[0]))
        run(osd, requests.names(root, params))

    plain = repeated(osd, requests.create(root.partition_id))
    samples = pairs_of(create, plain, plan.count)
    method = f"CREATE of names / CREATE, {len(samples)} interleaved pairs"
    yield row_of_pairs("name_create", samples, at_most(1.3), method)
    lists = AttributeLists(set=(AttributeValue(0xA, 1, b"x" * 8),))
    obj = osd.lookup(root, _name(last[0])).object
    setting = repeated(osd, requests.set_attributes(obj, attributes=lists))
    samples = pairs_of(rename, setting, plan.count)
    method = f"RENAME / SET ATTRIBUTES of one value of 8 bytes, {len(samples)} interleaved pairs"
    yield row_of_pairs("name_rename", samples, at_most(1.5), method)


# ---- directories of many sizes -------------------------------------------------------------------


class Directory:
    """A root directory with so many names, and each command on any of them."""

    def __init__(self, osd: pyosd.Target, count: int) -> None:
        self.osd, self.count = osd, count
        self.root = ref(osd.create_partition())
        fill(osd, self.root, count)
        self.rng = random.Random(count)
        self.made = itertools.count(count)

    def any(self) -> bytes:
        return _name(self.rng.randrange(self.count))

    def act(self, verb: NameVerb, path: bytes, other: bytes = b"") -> None:
        run(self.osd, requests.names(self.root, NameParams(verb, path, other)))

    def lookup(self) -> None:
        self.act(NameVerb.LOOKUP, self.any())

    def list(self) -> None:
        params = NameParams(NameVerb.LIST, b"", self.any(), most=PAGE)
        run(self.osd, requests.names(self.root, params, LIST_ROOM))

    def create(self) -> None:
        self.act(NameVerb.CREATE, _name(next(self.made)))

    def rename(self) -> None:
        name = self.any()
        self.act(NameVerb.RENAME, name, name + b"x")
        self.act(NameVerb.RENAME, name + b"x", name)

    def all(self) -> None:
        """One of each."""
        for call in (self.lookup, self.list, self.create, self.rename):
            call()


def _seconds(call: Callable[[], None]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def _scale(osd: pyosd.Target, plan: Plan) -> Iterator[Row | Curve]:
    sizes = (1000, 2000) if plan.quick else (1000, 10_000, 100_000, 1_000_000)
    directories = [Directory(osd, size) for size in sizes]
    few, many = directories[0], directories[-1]
    samples = pairs_of(many.all, few.all, plan.count // 5)
    method = (
        f"LOOKUP, LIST of {PAGE}, CREATE and two RENAMEs in a directory of {many.count:,} names"
        f" / of {few.count:,}, {len(samples)} interleaved pairs"
    )
    yield row_of_pairs("name_scale", samples, at_most(1.2), method)
    series: dict[str, list[Point]] = {}
    for name in ("lookup", "list", "create", "rename"):
        found: dict[int, list[float]] = {each.count: [] for each in directories}
        for _ in range(plan.count // 10):
            for each in directories:
                found[each.count].append(_seconds(getattr(each, name)))
        series[name] = [point(size, times) for size, times in found.items()]
    title = "Commands on names by the size of the directory"
    yield Curve("names_by_size", title, "names", "s", series, log_x=True)


def rows(plan: Plan) -> Iterator[Row | Curve]:
    """name_lookup5, name_list_1000, name_create, name_rename, name_scale, and a curve."""
    with bench_target(disk=False) as target, pyosd.connect(target.url) as osd:
        yield _lookup(osd, plan)
        yield from _list(osd, plan)
        yield from _changes(osd, plan)
        yield from _scale(osd, plan)
