# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of sandboxes for others: memory of an idle one, time from kill to terminal state, and
READs of other clients during hostile scripts.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pyosd
from bench.apart import apart
from bench.plan import Plan
from bench.stats import REPORTED, Aim, Row, at_most, missing, percentile, row_of_pairs, row_of_tail
from bench.target import SOURCE, BenchTarget, bench_target
from iosd_host.config import packages
from pyosd.jobs.job import Job
from pyosd.types import ObjectRef
from pyosd.wire.job_status import JobState

MIB = 1 << 20
IDLE_BYTES = MIB
IDLE_NUMPY_BYTES = MIB * 8 // 5
SETS = SOURCE / "build" / "packages"
NUMPY_POOL = (
    *("--package-sets", str(SETS), "--pool", "numpy:packages=numpy,max=5"),
    *("--pool", "default:min=0,warm_spare=0"),  # so that all that are there are numpy's
)
SETTLE_S = 30.0
KILLS = (("kill_p99", 64, 0.010), ("kill_p99_large", 512, 0.050))  # MiB dirty, aim in seconds
DIRTY = "import osd\nkept = b'\\1' * ({mib} << 20)\nosd.progress(1.0)\nwhile True:\n    pass\n"

HOT_OBJECTS, READ_BYTES, READS_PER_S = 64, 4096, 1000
SCANNED_MIB = 256
HOSTILE = {
    "cpu loop": "while True:\n    pass\n",
    "allocator": """
kept = b"\\1" * (180 << 20)
while True:
    more = b"\\1" * (40 << 20)
    del more
""",
    "output flood": "line = 'x' * 200\nwhile True:\n    print(line)\n",
    "call flood": "import osd\nwhile True:\n    osd.zone.exists()\n",
    "cache scan": """
import osd
while True:
    data = osd.userobject(osd.zone.partition_id, {scanned}).data
    while data.read(1 << 20):
        pass
""",
}


# ---- memory ------------------------------------------------------------------------------------


def _idle_sandboxes(root: int) -> list[int]:
    """Processes below root that a zygote, itself of that name, has forked."""
    parents, names = {}, {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            name, _, after = (entry / "stat").read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        parents[int(entry.name)] = int(after.split()[1])
        names[int(entry.name)] = name

    def below(pid: int) -> bool:
        while pid > 1 and pid != root:
            pid = parents.get(pid, 0)
        return pid == root

    return [
        pid
        for pid, parent in parents.items()
        if names[pid] == names.get(parent) == "iosd-zygote" and below(pid)
    ]


def _charged(pid: int) -> int | None:
    """Bytes charged to the memory group of a process; None: it has none of its own."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        for file in (
            Path(f"/sys/fs/cgroup/memory{path}/memory.usage_in_bytes"),
            Path(f"/sys/fs/cgroup{path}/memory.current"),
        ):
            if (controllers in ("", "memory")) and "iosd" in path and file.exists():
                return int(file.read_text())
    return None


def _memory_row(target: BenchTarget, row_id: str, bound: int) -> Row:
    aim = at_most(1)
    deadline = time.monotonic() + SETTLE_S
    before: list[int | None] = []
    while True:  # the last of them may still be warming up
        time.sleep(0.5)
        found = [_charged(pid) for pid in _idle_sandboxes(target.pid)]
        if found and found == before:
            break
        if time.monotonic() > deadline:
            return missing(row_id, aim, "no idle sandboxes were found")
        before = found
    charged = [each for each in found if each is not None]
    if not charged:
        return missing(row_id, aim, "sandboxes have no memory control group here")
    method = f"charged to the control groups of {len(charged)} idle, ready sandboxes; baseline: aim"
    pairs = [(each / 1024, bound / 1024) for each in charged]
    return row_of_pairs(row_id, pairs, aim, method, unit="KiB")


def package_set(name: str, requirement: str, *preload: str) -> None:
    """Have the set below SETS, made by pip when there is none.  Raises: PackagesError."""
    try:
        packages.find(name, SETS)
    except packages.PackagesError:
        packages.build(name, [requirement], sets=SETS, preload=preload)


def numpy_row() -> Row:
    """sandbox_memory_numpy, with a target of its own, whose only idle sandboxes have numpy."""
    try:
        package_set("numpy", "numpy")
    except packages.PackagesError as error:
        return missing("sandbox_memory_numpy", at_most(1), str(error))
    with bench_target(*NUMPY_POOL) as target:
        with pyosd.connect(target.url) as osd:
            deadline = time.monotonic() + SETTLE_S
            while {pool.name: pool.ready for pool in osd.pools()}["numpy"] < 1:
                if time.monotonic() > deadline:
                    return missing("sandbox_memory_numpy", at_most(1), "the pool does not serve")
                time.sleep(0.1)
        return _memory_row(target, "sandbox_memory_numpy", IDLE_NUMPY_BYTES)


# ---- kill --------------------------------------------------------------------------------------


def _running(osd: pyosd.Target, zone: ObjectRef, code: str, limits: pyosd.Limits) -> Job:
    """A job whose script has said that it is where it wants to be."""
    job = osd.exec(code, zone=zone, limits=limits)
    while (status := job.status()).progress != 1.0:
        if status.done:
            raise RuntimeError(f"the job ended: {status.reason_label}")
        time.sleep(0.005)
    return job


def _kill_time(osd: pyosd.Target, zone: ObjectRef, mib: int) -> float:
    limits = pyosd.Limits(mem=(mib + 192) * MIB)
    job = _running(osd, zone, DIRTY.format(mib=mib), limits)
    start = time.perf_counter()
    state = job._control(2)  # kill(), without its pauses between polls
    while not state.terminal:
        state = job.poll()[0]
    took = time.perf_counter() - start
    assert state is JobState.CANCELLED, state
    job.remove()
    return took


def _kill_rows(osd: pyosd.Target, zone: ObjectRef, count: int) -> Iterator[Row]:
    for (row_id, mib, bound), n in zip(KILLS, (count, max(3, count // 5)), strict=True):
        try:
            times = [_kill_time(osd, zone, mib) for _ in range(n)]
        except (pyosd.OSDError, RuntimeError) as error:
            yield missing(row_id, at_most(1), str(error))
            continue
        method = f"99th percentile of {n} kills, {mib} MiB dirty, as a polling client sees them"
        yield row_of_tail(row_id, times, bound, method + "; baseline: the aim")


# ---- READs beside hostile scripts --------------------------------------------------------------


def _read_p99(osd: pyosd.Target, hot: list[ObjectRef], seconds: float) -> float:
    """At a fixed pace; a READ that is late because the one before it took long counts from its tick."""
    times = []
    start = time.perf_counter()
    for index in range(int(seconds * READS_PER_S)):
        tick = start + index / READS_PER_S
        while (now := time.perf_counter()) < tick:
            time.sleep(max(0.0, tick - now - 5e-5))
        osd.read(hot[index * 7 % HOT_OBJECTS], 0, READ_BYTES)
        times.append(time.perf_counter() - tick)
    return percentile(times, 0.99)


def _start_hostile(osd: pyosd.Target, zone: ObjectRef, scanned: ObjectRef) -> list[Job]:
    limits = pyosd.Limits(output=1 << 30)
    jobs = [
        osd.exec(code.replace("{scanned}", str(scanned.object_id)), zone=zone, limits=limits)
        for code in HOSTILE.values()
    ]
    for job in jobs:
        while job.status().state is not JobState.RUNNING:
            time.sleep(0.01)
    return jobs


def _settle(osd: pyosd.Target) -> None:
    """Wait until no sandbox is being made or unmade."""
    deadline = time.monotonic() + SETTLE_S
    while any(each.busy or each.ready < each.active for each in osd.pools()):
        if time.monotonic() > deadline:
            raise TimeoutError("the pool never settled")
        time.sleep(0.02)


def _hostile_row(row_id: str, aim: Aim, seconds: float, pairs: int, others: str) -> Row:
    with bench_target("--slots", str(len(HOSTILE))) as target, pyosd.connect(target.url) as osd:
        zone = osd.partition(osd.create_partition())
        hot = []
        for _ in range(HOT_OBJECTS):
            hot.append(osd.create(zone.partition_id))
            osd.write(hot[-1], 0, b"\xa5" * READ_BYTES)
        scanned = osd.create(zone.partition_id)
        for at in range(0, SCANNED_MIB * MIB, MIB):
            osd.write(scanned, at, b"\x5a" * MIB)
        _read_p99(osd, hot, seconds)

        def pair() -> tuple[float, float]:
            _settle(osd)
            quiet = _read_p99(osd, hot, seconds)
            jobs = _start_hostile(osd, zone, scanned)
            loaded = _read_p99(osd, hot, seconds)
            for job in jobs:
                job.kill()
                job.remove()
            return loaded, quiet

        samples = [pair() for _ in range(pairs)]
    method = (
        f"99th percentile of 4 KiB READs at {READS_PER_S}/s over {HOT_OBJECTS} objects, windows of "
        f"{seconds:g} s with {', '.join(HOSTILE)} at once / with none; the client an ordinary process "
        f"beside them; {others}"
    )
    return row_of_pairs(row_id, samples, aim, method)


def _hostile_rows(seconds: float, pairs: int) -> Iterator[Row]:
    yield _hostile_row(
        *("read_p99_hostile_among", REPORTED, seconds, pairs),
        "the machine's other programs as ever",
    )
    with apart() as alone:
        others = f"the machine's other programs {'wait for all of these' if alone else 'as ever'}"
        yield _hostile_row("read_p99_hostile", at_most(1.5), seconds, pairs, others)


def rows(plan: Plan) -> Iterator[Row]:
    """sandbox_memory, kill_p99, kill_p99_large, read_p99_hostile (and _among), sandbox_memory_numpy."""
    kills, seconds, pairs = (10, 0.5, 2) if plan.quick else (100, 3.0, 7)
    with bench_target("--slots", str(len(HOSTILE))) as target:
        yield _memory_row(target, "sandbox_memory", IDLE_BYTES)
        with pyosd.connect(target.url) as osd:
            yield from _kill_rows(osd, osd.partition(osd.create_partition()), kills)
    yield from _hostile_rows(seconds, pairs)
    yield numpy_row()
