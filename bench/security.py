# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of capabilities and check values: the latency of a command under CAPKEY, CMDRSP and ALLDATA.

It is a ratio to the same command under NOSEC, on one target, in one run: the rows of table 3 in the UMN
paper, and 64 KiB.  They are measured over loopback, and over a link of 1 Gb/s like the paper's.

Run as a program (`python -m bench.security URL MASTER-KEY PAIRS COUNT`) it is the client on the link.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

import pyosd
from bench.link import CLIENT, RATE, SERVER, inside, link, unavailable
from bench.plan import Plan
from bench.stats import REPORTED, Aim, Row, at_most, missing, row_of_pairs
from bench.target import BenchTarget, bench_target
from pyosd.commands.provision import Provisioner
from pyosd.security.master_key import MasterKey
from pyosd.target import Target
from pyosd.types import AttributeId, AttributeValue, ObjectRef, PartitionId
from pyosd.wire.capability import SecurityMethod

METHODS = (SecurityMethod.CAPKEY, SecurityMethod.CMDRSP, SecurityMethod.ALLDATA)
AIMS = {
    SecurityMethod.CAPKEY: at_most(1.05),
    SecurityMethod.CMDRSP: at_most(1.15),
    SecurityMethod.ALLDATA: at_most(1.3),
}
LARGE = 64 << 10
SMALL = 64  # bytes that the paper reads and writes
OBJECTS_LISTED = 24
AIMED = ("read_64k", "write_64k")
Timed = dict[str, float]


def median_of(calls: list[Callable[[], object]]) -> float:
    """Seconds that the call in the middle takes."""
    times = []
    for call in calls:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def once(target: Target, obj: ObjectRef, count: int) -> Timed:
    """Seconds a command takes, each kind sent count times, one at a time."""
    pid = obj.partition_id
    large, small = bytes(LARGE), bytes(SMALL)
    buffer = bytearray(LARGE)
    value = AttributeValue(0x10000, 1, b"value")
    wanted = [AttributeId(0x10000, 1)]
    found: Timed = {}
    made: list[ObjectRef] = []
    partitions = [PartitionId(pid + 1 + at) for at in range(max(1, count // 8))]
    found["create"] = median_of([lambda: made.append(target.create(pid))] * count)
    found["remove"] = median_of([lambda: target.remove(made.pop())] * count)
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
        found[name] = median_of([call] * count)
    found["create_partition"] = median_of([partial(target.create_partition, p) for p in partitions])
    found["remove_partition"] = median_of([partial(target.remove_partition, p) for p in partitions])
    return found


def _aim(name: str, method: SecurityMethod) -> Aim:
    return AIMS[method] if name in AIMED else REPORTED


@contextmanager
def sessions(url: str, master: Path) -> Iterator[tuple[ObjectRef, dict[SecurityMethod, Target]]]:
    """An object of LARGE bytes among others, and a session under each method.

    The target's keys are set anew.
    """
    with ExitStack() as kept:
        plain = kept.enter_context(pyosd.connect(url))
        pid = plain.create_partition()
        obj = plain.create_and_write(pid, bytes(LARGE))
        for _ in range(OBJECTS_LISTED):
            plain.create(pid)
        keys = Provisioner(plain, MasterKey.read(master))
        keys.add(pid)
        everyone = {SecurityMethod.NOSEC: plain}
        for method in METHODS:
            session = pyosd.connect(url, credentials=keys.source(method))
            everyone[method] = kept.enter_context(session)
        yield obj, everyone


def samples(url: str, master: Path, pairs: int, count: int) -> list[dict[SecurityMethod, Timed]]:
    """Each command's time under each method, so often in turn."""
    with sessions(url, master) as (obj, everyone):
        for target in everyone.values():
            once(target, obj, max(1, count // 8))
        return [
            {method: once(target, obj, count) for method, target in everyone.items()}
            for _ in range(pairs)
        ]


def _over_link(pairs: int, count: int) -> list[dict[SecurityMethod, Timed]]:
    with link() as (server, client):
        arguments = ["--no-sandboxes", "--unsafe-portal", "--allow", CLIENT, "--security", "nosec"]
        portal, prefix = f"{SERVER}:0", inside(server)
        with bench_target(*arguments, disk=False, portal=portal, prefix=prefix) as served:
            command = [*inside(client), sys.executable, "-m", "bench.security", served.url]
            command += [str(master_of(served)), str(pairs), str(count)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
    found = json.loads(done.stdout)
    return [{SecurityMethod[name]: timed for name, timed in each.items()} for each in found]


def master_of(served: BenchTarget) -> Path:
    """The file of the target's master key."""
    return served.folder / "store.master-key"


def _rows_of(
    found: list[dict[SecurityMethod, Timed]], names: Iterable[str], place: str, method_of: str
) -> Iterator[Row]:
    for name in names:
        for method in METHODS:
            yield row_of_pairs(
                f"security_{name}_{method.name.lower()}{place}",
                [(each[method][name], each[SecurityMethod.NOSEC][name]) for each in found],
                _aim(name, method),
                method_of,
            )


def rows(plan: Plan) -> Iterator[Row]:
    """The rows security_COMMAND_METHOD, and ..._1gbit."""
    pairs, count = plan.many_pairs, 10 if plan.quick else 100  # commands of one sample
    how = f"median of {count} commands one at a time, a session each, in turn with NOSEC"
    with bench_target("--no-sandboxes", disk=False) as served:
        found = samples(served.url, master_of(served), pairs, count)
    yield from _rows_of(found, found[0][SecurityMethod.NOSEC], "", how)
    if why := unavailable():
        for name in AIMED:
            for method in METHODS:
                row_id = f"security_{name}_{method.name.lower()}_1gbit"
                yield missing(row_id, _aim(name, method), why)
        return
    found = _over_link(pairs, count)
    yield from _rows_of(found, AIMED, "_1gbit", f"{how}; veth shaped to {RATE}")


def client(url: str, master: str, pairs: str, count: str) -> None:
    """Measure, and print the samples as JSON."""
    found = samples(url, Path(master), int(pairs), int(count))
    named = [{method.name: timed for method, timed in each.items()} for each in found]
    json.dump(named, sys.stdout)


if __name__ == "__main__":
    client(*sys.argv[1:])
