# SPDX-License-Identifier: GPL-2.0-or-later
"""Figure 6 of the iOSD paper: the log job by number of lines, in Python and in C.

Python is the demo's job (examples/demo/log.py) as it is.  C is bench/log_count.c, with PCRE2, interpreted
as the paper's PCRE was and compiled to machine code.  The paper started a C program by exec from its
sandbox; ours lets nothing be started, so the C is a module that the pool's package set brings, and runs
in a job of its own: the same sandbox in every respect.  Both read their object through `osd`, 256 KiB at
a time, and print the same, which is checked.  The time is the target's: from the job's start to its end.
"""

from __future__ import annotations

import io
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import pyosd
from bench.compile import CannotCompile, compiled, libraries
from bench.plan import Plan
from bench.stats import REPORTED, Curve, Row, missing, point, row_of_pairs
from bench.target import SOURCE, bench_target
from examples.demo import generate
from iosd_host.config import packages
from pyosd.types import ObjectRef

ROW_IDS = ("iosd_log_c", "iosd_log_c_jit")
MODULE, SET = "iosd_log_count", "iosd-log"
SETS = SOURCE / "build" / "packages"
POOL = (
    *("--package-sets", str(SETS), "--pool", f"log:packages={SET},max=2,warm_spare=2"),
    *("--pool", "default:min=0,warm_spare=0"),
)
READY_S = 30.0
LINES = (*(1 << power for power in range(10, 19)), generate.LINES)
QUICK_LINES = (1 << 10, 1 << 13)
PYTHON, C, C_JIT = "Python, re", "C, PCRE2", "C, PCRE2 compiled"

IN_C = """
import osd, iosd_log_count

log = osd.userobject(*(int(argument, 0) for argument in osd.args))
iosd_log_count.start(jit)
buffer, data = bytearray(256 << 10), log.data
view = memoryview(buffer)
while count := data.readinto(buffer):
    iosd_log_count.feed(view[:count])
for what, counts in zip(("user", "operation"), iosd_log_count.finish()):
    for key, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        print(what, key.decode(), count)
"""


def _scripts() -> dict[str, str]:
    python = Path(generate.__file__).with_name("log.py").read_text()
    return {PYTHON: python, C: f"jit = False\n{IN_C}", C_JIT: f"jit = True\n{IN_C}"}


def _package_set() -> None:
    """Raises: CannotCompile: libpcre2-dev is missing, say; PackagesError."""
    flags = [f"-I{sysconfig.get_path('include')}", "-fPIC", "-shared"]
    flags += libraries("libpcre2-8", "libpcre2-dev")
    name = f"{MODULE}.abi3.so"
    built = compiled("log_count.c", name, flags)
    home = SETS / SET
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home) as folder:
        work = Path(folder) / "set"  # which seal() moves away
        (work / "lib").mkdir(parents=True)
        (work / "lib" / name).write_bytes(built.read_bytes())
        packages.seal(SET, work, home, set(), [MODULE])


def _wait_until_ready(osd: pyosd.Target) -> None:
    deadline = time.monotonic() + READY_S
    while {pool.name: pool.ready for pool in osd.pools()}["log"] < 1:
        if time.monotonic() > deadline:
            raise RuntimeError("the pool with the C module does not serve")
        time.sleep(0.05)


def _objects(osd: pyosd.Target, log: Path, lines: Sequence[int]) -> dict[int, ObjectRef]:
    """An object with so many of the log's first lines, for each number."""
    partition_id = osd.create_partition()
    found = {}
    for count in lines:
        with log.open("rb") as file:
            found[count] = osd.create(partition_id)
            osd.write_from(found[count], io.BytesIO(b"".join(islice(file, count))))
    return found


def _run(osd: pyosd.Target, obj: ObjectRef, code: str) -> tuple[float, bytes]:
    """Seconds the job ran, and what it printed."""
    words = [hex(obj.partition_id), hex(obj.object_id)]
    job = osd.exec(code, zone=obj, args=words, pool="log")
    job.result(timeout=120)
    found = job.status().run_time, job.output()
    job.remove()
    return found


def _measure(osd: pyosd.Target, lines: Sequence[int], samples: int) -> Iterator[Row | Curve]:
    scripts = _scripts()
    times: dict[str, dict[int, list[float]]] = {
        name: {count: [] for count in lines} for name in scripts
    }
    with tempfile.TemporaryDirectory(prefix="iosd-log-") as folder:
        log = Path(folder) / "log"
        generate.write_log(log, max(lines))
        objects = _objects(osd, log, lines)
    for sample in range(samples + 1):  # the first warms up
        for count, obj in objects.items():
            outputs = set()
            for name, code in scripts.items():
                took, output = _run(osd, obj, code)
                outputs.add(output)
                times[name][count] += [took] if sample else []
            assert len(outputs) == 1, "Python and C count differently"
    most = max(lines)
    for row_id, name in zip(ROW_IDS, (C, C_JIT), strict=True):
        pairs = zip(times[PYTHON][most], times[name][most], strict=True)
        method = f"{most} lines, the demo's job in Python / {name}, both as jobs of one pool"
        yield row_of_pairs(row_id, list(pairs), REPORTED, method)
    yield Curve(
        "iosd_fig6",
        "iOSD figure 6: the log job by number of lines",
        "lines",
        "time, s",
        {
            name: [point(count, each) for count, each in found.items()]
            for name, found in times.items()
        },
        log_x=True,
        log_y=True,
    )


def rows(plan: Plan) -> Iterator[Row | Curve]:
    """iosd_log_c, iosd_log_c_jit: Python's time over C's; figure 6."""
    try:
        _package_set()
    except (CannotCompile, packages.PackagesError) as error:
        for row_id in ROW_IDS:
            yield missing(row_id, REPORTED, str(error))
        return
    lines, samples = (QUICK_LINES, 2) if plan.quick else (LINES, 5)
    with bench_target(*POOL, disk=False) as target, pyosd.connect(target.url) as osd:
        _wait_until_ready(osd)
        yield from _measure(osd, lines, samples)
