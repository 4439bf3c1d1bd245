# SPDX-License-Identifier: GPL-2.0-or-later
"""Pools of a whole target: jobs find their pool's package set, its limits and its queue."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import pyosd
from pyosd import JobState, Limits
from pyosd.cli import main
from pyosd.commands.pool_status import PoolStatus
from pyosd.errors import OSDError
from pyosd.jobs.job import Job
from pyosd.types import ObjectRef
from tests.machine import unavailable
from tests.package_sets import NUMPY, SETS, from_registry
from tests.serving import Serving, sandboxes_missing, shared
from tests.waiting import until

WAIT_S = 60.0
POOLS = (
    *("--pool", "numpy:packages=numpy,max=1,min=1,warm_spare=1"),
    *("--pool", "tight:max=1,queue=2,limits.mem=64MiB,maximum.mem=128MiB,maximum.wall=50s"),
    *("--pool", "threads:max=1,maximum.threads=4"),
    *("--pool", "absent:packages=nothing,max=1"),
)


@pytest.fixture(scope="module")
def serving() -> Iterator[Serving]:
    """A target with a pool that has numpy, one with small limits, one whose set is not there."""
    if why := sandboxes_missing():
        unavailable("sandbox", why)
    from_registry("numpy", NUMPY)
    words = ("--isolation", "best", "--slots", "1", "--package-sets", str(SETS))
    with shared(*words, *POOLS) as served:
        yield served


@pytest.fixture
def osd(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command line; what it prints."""
    monkeypatch.setenv("IOSD_TARGET", serving.url)

    def osd(*words: object, code: int = 0) -> str:
        done = CliRunner().invoke(main, [str(word) for word in words])
        assert done.exit_code == code, done.output
        return done.output

    return osd


Run = Callable[..., str]
Submit = Callable[..., Job]


@pytest.fixture
def submit(target: pyosd.Target, zone: ObjectRef) -> Submit:
    def submit(script: str, pool: str = "", **options: Any) -> Job:
        return target.exec(textwrap.dedent(script), zone=zone, pool=pool, **options)

    return submit


def test_numpy_over_objects(target: pyosd.Target, zone: ObjectRef, submit: Submit) -> None:
    """Arrays in an object's bytes, mapped and read; .npy files read and written in place."""
    data = target.create(zone.partition_id)
    target.write(data, 0, b"".join(n.to_bytes(4, "little") for n in range(40_000)))
    saved = target.create(zone.partition_id)
    job = submit(
        f"""
        import numpy as np
        import osd
        source = osd.userobject({data.partition_id:#x}, {data.object_id:#x})
        with source.data as file:
            assert np.frombuffer(file.read(), "<u4").sum() == 799980000
            mapped = np.frombuffer(file.map(), "<u4")
            assert mapped[39_999] == 39_999 and not mapped.flags.writeable
            total = int(mapped.astype("u8").sum())
        into = np.empty(40_000, "<u4")
        with source.data as file:
            assert file.readinto(into) == into.nbytes
        saved = osd.userobject({saved.partition_id:#x}, {saved.object_id:#x})
        with saved.data as file:
            np.save(file, into.reshape(200, 200))
        with saved.data as file:
            again = np.load(file)
        assert again.shape == (200, 200) and (again.ravel() == into).all()
        osd.result({{"total": total, "trace": int(again.trace())}})
        """,
        "numpy",
    )
    assert job.result(WAIT_S) == {"total": 799980000, "trace": 3999900}
    status = job.status()
    assert (status.pool, status.engine.startswith("python numpy-")) == ("numpy", True)


RESULT = """
import numpy as np
import osd
osd.result({
    "scalars": [np.int64(1), np.float32(1.5), np.bool_(True), np.uint8(255), np.float64(2.5)],
    "keys": {np.int64(3): 4},
    "array": np.arange(6, dtype="<i2").reshape(2, 3),
    "large": np.arange(100_000, dtype=">f8")[::2],
    "booleans": np.array([True, False]),
    "complex": np.array([1 + 2j], dtype="complex64"),
    "empty": np.zeros((0, 2)),
    "one": np.array(7),
    "words": np.array(["a", "bc"]),
    "when": np.datetime64("2026-11-23T12:00:00"),
})
"""
AT_HOME = """
import json, sys
from pathlib import Path
from pyosd.osd._results import decode
found = decode(Path(sys.argv[1]).read_bytes())
large = found["large"]
print(type(found["array"]).__name__, found["array"].dtype, found["array"].tolist(), large.dtype)
print(large.shape, large[-1], large.flags.writeable, found["empty"].shape, found["one"].shape)
"""


def test_numbers_and_arrays_of_numpy_are_a_result(
    submit: Submit, osd: Run, target: pyosd.Target, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without and with numpy."""
    monkeypatch.setitem(sys.modules, "numpy", None)
    job = submit(RESULT, "numpy")
    found = job.result(WAIT_S)
    assert found["scalars"] == [1, 1.5, True, 255, 2.5] and found["scalars"][2] is True
    assert found["keys"] == {"3": 4} and found["array"] == [[0, 1, 2], [3, 4, 5]]
    assert found["large"] == [float(n) for n in range(0, 100_000, 2)]
    assert found["booleans"] == [True, False] and found["complex"] == [1 + 2j]
    assert (found["empty"], found["one"], found["words"]) == ([], 7, ["a", "bc"])
    assert found["when"] == "2026-11-23T12:00:00"
    shown = json.loads(osd("job", "result", job.id))
    assert shown["array"] == [[0, 1, 2], [3, 4, 5]] and shown["complex"] == ["(1+2j)"]
    companion = job.status().result_object
    assert companion is not None, "more than 60 KiB"
    (tmp_path / "result").write_bytes(target.read_range(companion))
    lib = from_registry("numpy", NUMPY).folder / "lib"
    paths = {"PYTHONPATH": f"{lib}:{Path(pyosd.__file__).parents[1]}"}
    printed = subprocess.run(
        [sys.executable, "-c", AT_HOME, tmp_path / "result"],
        env={**os.environ, **paths},
        capture_output=True,
        text=True,
        timeout=WAIT_S,
    )
    assert printed.stdout.splitlines() == [
        "ndarray int16 [[0, 1, 2], [3, 4, 5]] float64",
        "(50000,) 99998.0 True (0, 2) ()",
    ], printed.stderr


def test_a_script_that_does_not_use_numpy_does_not_pay_for_it(submit: Submit) -> None:
    script = "import osd, sys, decimal; osd.result(decimal.Decimal(1)); assert 'numpy' not in sys.modules"
    assert submit(script).result(WAIT_S) == "1"


def test_a_script_names_its_pool(osd: Run, zone: ObjectRef, tmp_path: Path) -> None:
    script = tmp_path / "sum.py"
    script.write_text("#OSD --pool numpy\nimport numpy as np\nprint(np.arange(1 << 10).sum())\n")
    assert "523776" in osd("exec", script, "--zone", zone, "--wait")
    refused = osd("exec", script, "--zone", zone, "--pool", "default", "--wait", code=10)
    assert "No module named 'numpy'" in refused


def test_the_set_is_no_part_of_a_jobs_memory(submit: Submit) -> None:
    """numpy has more data than the limit asked for here; a limit set afterwards counts as one had
    from the start does."""
    script = "import numpy as np; a = np.ones({} << 17); print(int(a.sum()))"
    fits, too_much = (
        submit(script.format(mib), "numpy", limits=Limits(mem="48MiB")).wait(WAIT_S)
        for mib in (24, 56)
    )
    assert fits.state is JobState.COMPLETED, fits.message
    assert too_much.state is JobState.OUT_OF_MEMORY


def test_numbers_of_numpy_differ_from_job_to_job(submit: Submit) -> None:
    script = "import numpy as np, osd; osd.result(np.random.random(4).tolist())"
    found = [tuple(submit(script, "numpy").result(WAIT_S)) for _ in range(3)]
    assert len(set(found)) == 3


def test_threads_of_a_pool(submit: Submit) -> None:
    script = """
        import threading
        seen = []
        threads = [threading.Thread(target=seen.append, args=(n,)) for n in range(3)]
        for each in threads: each.start()
        for each in threads: each.join()
        print(sorted(seen))
        """
    job = submit(script, "threads", limits=Limits(procs=4))
    assert job.wait(WAIT_S).state is JobState.COMPLETED


def test_limits_of_a_pool(submit: Submit) -> None:
    status = submit("pass", "tight").wait(WAIT_S)
    assert (status.limits.mem, status.limits.wall) == (64 << 20, 50.0)
    assert status.limits.cpu == 50.0
    assert submit("x = bytearray(80 << 20)", "tight").wait(WAIT_S).state is JobState.OUT_OF_MEMORY
    wide = submit("x = bytearray(80 << 20)", "tight", limits=Limits(mem="128MiB"))
    assert wide.wait(WAIT_S).state is JobState.COMPLETED
    for limits in (Limits(mem="129MiB"), Limits(wall="51s")):
        with pytest.raises(OSDError, match="CDB byte 48"):
            submit("pass", "tight", limits=limits)
    assert submit("pass", limits=Limits(mem="129MiB")).wait(WAIT_S).state is JobState.COMPLETED


def test_one_pools_queue_is_not_anothers(submit: Submit) -> None:
    """A pool whose only slot is busy and whose queue is full refuses; the others go on."""
    running = submit("import time; time.sleep(600)", "tight")
    deadline = time.monotonic() + WAIT_S
    while running.status().state is not JobState.RUNNING:
        assert time.monotonic() < deadline
    waiting = [submit("pass", "tight") for _ in range(2)]
    with pytest.raises(pyosd.TargetBusy) as refused:
        submit("pass", "tight")
    assert refused.value.queue_depth == 2
    assert waiting[1].status().position == 1
    assert submit("pass").wait(WAIT_S).state is JobState.COMPLETED
    assert submit("pass", "numpy").wait(WAIT_S).state is JobState.COMPLETED
    assert waiting[0].status().state is JobState.QUEUED
    running.kill(WAIT_S)
    assert [job.wait(WAIT_S).state for job in waiting] == [JobState.COMPLETED] * 2


def test_a_remembered_result_is_of_its_pool(submit: Submit) -> None:
    """Another pool has other packages and limits."""

    def again(**options: object) -> bool:
        job = submit("1", reuse=True, **options)
        assert job.wait(WAIT_S).state is JobState.COMPLETED
        return job.cached_result

    assert [again(pool=pool) for pool in ("tight", "threads", "tight")] == [False, False, True]


def test_a_pool_that_does_not_serve_says_why(submit: Submit, osd: Run) -> None:
    job = submit("print(1)", "absent")
    deadline = time.monotonic() + WAIT_S
    while (status := job.status()).reason != 113:
        assert time.monotonic() < deadline, status
    assert status.state is JobState.QUEUED
    assert "pool absent: package set: cannot read" in status.hint
    why = osd("job", "why", job.id)
    assert "It waits for pool 'absent', which does not serve." in why
    assert "absent failed, 1 queued" in osd("top", "--once")
    assert re.search(r"QUEUED +113 .* absent ", osd("ps", "-o", "wide"))
    with pytest.raises(pyosd.TargetBusy):
        submit("print(1)", "absent", wait="1s")
    assert job.kill(WAIT_S) is JobState.CANCELLED


def test_refusals_name_what_there_is(submit: Submit) -> None:
    with pytest.raises(OSDError, match="no pool 'nunpy'; it has: default, numpy, tight, threads"):
        submit("print(1)", "nunpy")
    with pytest.raises(OSDError, match=r"memory 128 MiB at most, not 192 MiB .*CDB byte 48"):
        submit("print(1)", "tight", limits=Limits(mem="192MiB"))
    with pytest.raises(OSDError, match="threads 4 at most, not 5"):
        submit("print(1)", "threads", limits=Limits(procs=5))


def test_pools_are_listed(target: pyosd.Target, osd: Run) -> None:
    def at_rest() -> dict[str, PoolStatus] | None:
        found = {pool.name: pool for pool in target.pools()}
        served = [pool for pool in found.values() if pool.state == "serving" and not pool.busy]
        return found if len(served) == 4 else None

    found = until(at_rest)
    assert list(found) == ["default", "numpy", "tight", "threads", "absent"]
    tight = found["tight"]
    assert (tight.state, tight.max, tight.queue, tight.busy) == ("serving", 1, 2, 0)
    assert tight.limits["memory"] == (64 << 20, 128 << 20)
    assert tight.limits["wall"] == (50.0, 50.0) and tight.limits["cpu"][0] == 0
    standard, most = found["default"].limits["memory"]
    assert standard == 256 << 20 and most is not None, "as much as the host has"
    assert found["numpy"].set.startswith("numpy-")
    assert found["absent"].state == "failed" and "cannot read" in found["absent"].why
    rows = json.loads(osd("pool", "ls", "-o", "json"))["pools"]
    assert [row["id"] for row in rows] == list(found)
    assert re.search(r"tight +serving +0/1 +\d+ +0 ", osd("pool", "ls"))
    assert "memory: 64.0 MiB, at most 128.0 MiB" in osd("pool", "show", "tight")
    shown = json.loads(osd("pool", "show", "absent", "-o", "json"))
    assert (shown["schema"], shown["state"]) == ("iosd.pool/1", "failed")
    assert "no pool 'nix'" in osd("pool", "show", "nix", code=66)
