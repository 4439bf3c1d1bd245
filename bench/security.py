# SPDX-License-Identifier: GPL-2.0-or-later
"""What leave and proofs cost: the latency of a command under CAPKEY, CMDRSP and ALLDATA, as a ratio to the
same command under NOSEC, on one target, in one run (the rows of table 3 in the UMN paper, and 64 KiB).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial

import pyosd
from bench.stats import REPORTED, Aim, Row, at_most, row_of_pairs
from bench.target import bench_target
from pyosd.credentials import SecurityMethod
from pyosd.provision import MasterKey, Provisioner
from pyosd.target import Target
from pyosd.types import AttributeId, AttributeValue, ObjectRef

METHODS = (SecurityMethod.CAPKEY, SecurityMethod.CMDRSP, SecurityMethod.ALLDATA)
AIMS = {
    SecurityMethod.CAPKEY: at_most(1.05),
    SecurityMethod.CMDRSP: at_most(1.15),
    SecurityMethod.ALLDATA: at_most(1.3),
}
LARGE = 64 << 10
SMALL = 64  # bytes that the paper reads and writes
OBJECTS_LISTED = 24
AIMED = {"read_64k", "write_64k"}
Timed = dict[str, float]


def _median(calls: list[Callable[[], object]]) -> float:
    """Seconds of the one in the middle."""
    times = []
    for call in calls:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def _once(target: Target, obj: ObjectRef, count: int) -> Timed:
    """Seconds a command takes, each kind sent count times, one at a time."""
    pid = obj.partition_id
    large, small = bytes(LARGE), bytes(SMALL)
    buffer = bytearray(LARGE)
    value = AttributeValue(0x10000, 1, b"value")
    wanted = [AttributeId(0x10000, 1)]
    found: Timed = {}
    made: list[ObjectRef] = []
    partitions = [pid + 1 + at for at in range(max(1, count // 8))]
    found["create"] = _median([lambda: made.append(target.create(pid))] * count)
    found["remove"] = _median([lambda: target.remove(made.pop())] * count)
    for name, call in {
        "list": lambda: target.list_objects(pid),
        "list_root": target.list_partitions,
        "set_attribute": lambda: target.set_attributes(obj, [value]),
        "get_attribute": lambda: target.get_attributes(obj, wanted),
        "write_64b": lambda: target.write(obj, 0, small),
        "append_64b": lambda: target.append(obj, small),
        "read_64b": lambda: target.read(obj, 0, SMALL),
        "write_64k": lambda: target.write(obj, 0, large),
        "read_64k": lambda: target.read(obj, 0, LARGE, into=buffer),
    }.items():
        found[name] = _median([call] * count)
    found["create_partition"] = _median([partial(target.create_partition, p) for p in partitions])
    found["remove_partition"] = _median([partial(target.remove_partition, p) for p in partitions])
    return found


def _aim(name: str, method: SecurityMethod) -> Aim:
    return AIMS[method] if name in AIMED else REPORTED


def rows(pairs: int, count: int) -> Iterator[Row]:
    """The rows security_COMMAND_METHOD.  count: commands of one sample."""
    with bench_target("--no-sandboxes", disk=False) as served, pyosd.connect(served.url) as plain:
        pid = plain.create_partition()
        obj = plain.create_and_write(pid, bytes(LARGE))
        for _ in range(OBJECTS_LISTED):
            plain.create(pid)
        keys = Provisioner(plain, MasterKey.read(served.folder / "store" / "master.key"))
        keys.add(pid)
        targets = {
            each: pyosd.connect(served.url, credentials=keys.source(each)) for each in METHODS
        }
        everyone = {SecurityMethod.NOSEC: plain, **targets}
        for target in everyone.values():
            _once(target, obj, max(1, count // 8))
        samples = [
            {method: _once(target, obj, count) for method, target in everyone.items()}
            for _ in range(pairs)
        ]
        for target in targets.values():
            target.close()
    for name in samples[0][SecurityMethod.NOSEC]:
        for method in METHODS:
            yield row_of_pairs(
                f"security_{name}_{method.name.lower()}",
                [(each[method][name], each[SecurityMethod.NOSEC][name]) for each in samples],
                _aim(name, method),
                f"median of {count} commands one at a time, a session each, in turn with NOSEC",
            )
