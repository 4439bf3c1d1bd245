# SPDX-License-Identifier: GPL-2.0-or-later
"""The four operations of the iOSD paper's table I: what each takes from a script, and in which layer.

Three times for each, of the same operation on objects of the same kind, one after the other:

- the object layer alone, called from C without a process between (bench/calls.c): the paper's OSD layer;
- a call through the proxy, its arguments made beforehand (`_osdcore.call`): that, and the sandbox layer;
- the method of the package osd, as people write it: that, and the Python layer.

Not here: what is made of the samples (calls.py, iosd_calls.py).
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass

import pyosd
from bench.target import SOURCE, BenchTarget

PROGRAM = SOURCE / "build" / "target" / "bench_calls"
ATTRIBUTES, BYTES = 6, 8  # in one call, and of each value, as there
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

    def sample(self, attributes: int = ATTRIBUTES, value_bytes: int = BYTES) -> dict[str, Sample]:
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
            command = [str(PROGRAM), store, *map(str, arguments)]
            output = subprocess.run(command, check=True, capture_output=True).stdout
        return {name: float(ns) for name, ns in json.loads(output).items()}
