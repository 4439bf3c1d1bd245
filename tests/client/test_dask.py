# SPDX-License-Identifier: GPL-2.0-or-later
"""Collections of Dask over four real targets: by threads, and by a LocalCluster of `distributed` of which
a worker is killed, and a target."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import pyosd
from pyosd.cluster.leaf import NearError
from pyosd.types import PartitionId
from tests.cli.documents import matches, python_steps
from tests.client.conftest import FOUR
from tests.processes import long_lived
from tests.serving import Serving

if TYPE_CHECKING:  # imported where they are used: each worker collects this file, and one runs it
    from distributed import Client

    from pyosd.dask import Near

PARTITION = PartitionId(0x10000)
COUNT = 240
OPTIONS: dict[str, Any] = {"local": False, "reconnect_timeout": 1.0, "timeout": 20.0}

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox, pytest.mark.slow]


def number_in(obj: Any) -> int:
    import json
    import time

    time.sleep(0.01)
    return int(json.loads(obj.data.read())["number"])


def size_of(obj: Any) -> Any:
    return obj.length()


def odd_ones_fail(obj: Any) -> int:
    import json

    number = int(json.loads(obj.data.read())["number"])
    if number % 2:
        raise ValueError(f"{number} is odd")
    return number


def record_of(obj: Any) -> list[dict[str, Any]]:
    import json

    found = json.loads(obj.data.read())
    return [found] if found["number"] % 3 else []


@pytest.fixture
def filled(four: dict[str, Serving]) -> tuple[Near, list[pyosd.Copies]]:
    """Objects with two copies each; object n is a record of the number n."""
    from pyosd.dask import Near

    urls = {name: served.url for name, served in four.items()}
    with pyosd.many(urls, **OPTIONS) as cluster:
        for name in FOUR:
            cluster.target(name).create_partition(PARTITION)
        for number in range(COUNT):
            record = {"number": number, "kind": "even" if number % 2 == 0 else "odd"}
            cluster.put(PARTITION, json.dumps(record).encode())
    near = Near(urls, **OPTIONS)
    return near, near.copies(PARTITION)


def test_examples_of_many_targets(four: dict[str, Serving], tmp_path: Path) -> None:
    """In a process of its own: Dask keeps its threads."""
    page = (Path(__file__).resolve().parents[2] / "docs/many-targets.md").read_text()
    for name in FOUR[:3]:
        address = f"iscsi://{name}.example/iqn.2026-01.org.example:{name}/1"
        assert address in page
        page = page.replace(address, four[name].url)
    steps = [*python_steps(page)]
    program = tmp_path / "program.py"  # a file: functions travel as source
    program.write_text("\n".join([*(each.commands for each in steps), "cluster.close()"]))
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    assert matches("".join(each.expected or "" for each in steps), done.stdout), done.stdout


@pytest.fixture
def workers() -> Iterator[Client]:
    """Two processes with 16 places for tasks each: coroutines take a place, and no thread."""
    import dask
    from distributed import Client, LocalCluster

    resource_tracker.ensure_running()  # of multiprocessing; it ends with this process
    long_lived.add(resource_tracker._resource_tracker._pid)  # type: ignore[attr-defined]
    # A worker that has not started again after that, 15 s by default, is given up.
    patient = dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"})
    with (
        patient,
        LocalCluster(n_workers=2, threads_per_worker=16, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


def by_kind(frame: Any) -> dict[str, int]:
    return {str(kind): int(total) for kind, total in frame.groupby("kind").number.sum().items()}


EXPECTED_KINDS = {
    "even": sum(n for n in range(0, COUNT, 2) if n % 3),
    "odd": sum(n for n in range(1, COUNT, 2) if n % 3),
}


def meta() -> Any:
    """The columns of a frame of records."""
    import pandas as pd

    return pd.DataFrame({"number": pd.Series(dtype="int64"), "kind": pd.Series(dtype="object")})


@pytest.fixture
def by_threads() -> Iterator[None]:
    """Dask runs what it computes by threads that end with the test."""
    import dask

    with ThreadPoolExecutor(4) as pool, dask.config.set(scheduler="threads", pool=pool):
        yield


@pytest.mark.usefixtures("by_threads")
def test_threads_of_this_process(filled: tuple[Near, list[pyosd.Copies]]) -> None:
    near, copies = filled
    assert sorted(near.bag(number_in, copies).compute()) == [*range(COUNT)]
    squares = near.bag(number_in, copies, leaf=7).map(lambda n: n * n).sum()
    assert squares.compute() == sum(n * n for n in range(COUNT))
    total = near.reduce(number_in, copies, "sum", leaf=10, split_every=3)
    assert total.compute() == sum(range(COUNT))
    assert near.bag(number_in, []).compute() == []
    assert near.reduce(number_in, [], "max").compute() is None
    frame = near.dataframe(record_of, copies, meta(), leaf=20)
    assert by_kind(frame.compute()) == EXPECTED_KINDS
    with pytest.raises(NearError, match="is odd") as caught:
        near.reduce(odd_ones_fail, copies, "sum").compute()
    assert pickle.loads(pickle.dumps(caught.value)).failed == caught.value.failed


def test_workers_of_which_one_is_killed_and_a_target_too(
    filled: tuple[Near, list[pyosd.Copies]], four: dict[str, Serving], workers: Client
) -> None:
    near, copies = filled
    mean = near.reduce(number_in, copies, "mean", weights=size_of, leaf=10).compute()
    sizes = [
        len(json.dumps({"number": n, "kind": "odd" if n % 2 else "even"})) for n in range(COUNT)
    ]
    expected = sum(n * size for n, size in enumerate(sizes)) / sum(sizes)
    assert mean == pytest.approx(expected)
    assert by_kind(near.dataframe(record_of, copies, meta(), leaf=20).compute()) == EXPECTED_KINDS

    # A copy that is missing: the other target has the object, and is not killed below.
    one = next(each for each in near.copies(PARTITION) if "c" not in each.targets)
    with pyosd.many({name: served.url for name, served in four.items()}, **OPTIONS) as cluster:
        cluster.target(one.targets[0]).remove(one.object)
    bag = near.bag(number_in, copies, leaf=4)
    assert sorted(bag.compute()) == [*range(COUNT)]

    pids = workers.run(os.getpid)
    future = workers.compute(bag.map(lambda n: n + 1))
    os.kill(next(iter(pids.values())), signal.SIGKILL)
    four["c"].kill_all()
    assert sorted(future.result()) == [*range(1, COUNT + 1)]

    alone = [pyosd.Copies(each.object, ("c",)) for each in copies if "c" in each.targets]
    with pytest.raises(NearError) as caught:
        near.bag(number_in, alone).compute()
    assert {*caught.value.failed} <= {each.object for each in alone}


@pytest.mark.usefixtures("by_threads")
def test_the_example_over_files(
    four: dict[str, Serving], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from examples import weather

    for station in range(5):
        lines = [f"{month},{month + station / 10}" for month in (1, 2, 3)]
        (tmp_path / f"{station}.csv").write_text("\n".join(["month,degrees", *lines, ""]))
    urls = {name: served.url for name, served in four.items()}
    weather.main(urls, tmp_path)
    assert capsys.readouterr().out.splitlines() == [
        "warmest: 3.4",
        " 1: 1.20",
        " 2: 2.20",
        " 3: 3.20",
    ]


@pytest.mark.usefixtures("by_threads")
def test_monthly_means_in_three_places(
    four: dict[str, Serving], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The example over a grid: it compares the results itself."""
    from examples import monthly_mean

    urls = {name: served.url for name, served in four.items()}
    monthly_mean.main(urls, 4, 6, file=str(tmp_path / "plot.png"), runs=1)
    lines = capsys.readouterr().out.splitlines()
    assert [each.split(":")[0] for each in lines] == ["near", "home", "auto"]
    assert len({each.split("mean of July")[1] for each in lines}) == 1
    assert (tmp_path / "plot.png").stat().st_size > 10_000


def test_the_scheduler_restarts_all_workers(
    filled: tuple[Near, list[pyosd.Copies]], workers: Client
) -> None:
    near, copies = filled
    workers.compute(near.bag(number_in, copies, leaf=2))
    workers.restart()
    assert sorted(near.bag(number_in, copies).compute()) == [*range(COUNT)]


def test_leaves_stay_coroutines_of_their_own() -> None:
    """Workers await them, so no step after a leaf may be fused with it."""
    from dask.bag.core import optimize

    from pyosd.dask import Near

    near = Near({"a": "iscsi://h/t/1"})
    objects = [pyosd.Copies(pyosd.ref(PARTITION, number), ("a",)) for number in range(1, 9)]
    bag = near.bag(size_of, objects, leaf=2).map(str).filter(None)
    tasks = optimize(bag.__dask_graph__(), bag.__dask_keys__())
    leaves = [task for key, task in tasks.items() if str(key).startswith("('near-size_of-")]
    assert len(leaves) == 4 and all(task.is_coro for task in leaves)


def test_wrong_calls_are_refused() -> None:
    from pyosd.dask import Near

    with pytest.raises(ValueError, match="no targets"):
        Near({})
    near = Near({"a": "iscsi://h/t/1"})
    one = [pyosd.Copies(pyosd.ref(PARTITION, 1), ("a",))]
    for options, why in (
        ({"combine": "median"}, "one of sum"),
        ({"combine": "sum", "weights": size_of}, "weights need"),
        ({"combine": "sum", "leaf": 0}, "at least one"),
        ({"combine": "sum", "split_every": 1}, "at least 2"),
    ):
        with pytest.raises(ValueError, match=why):
            near.reduce(size_of, one, **options)
    with pytest.raises(ValueError, match="at least one object"):
        near.dataframe(record_of, [], meta())
