# SPDX-License-Identifier: GPL-2.0-or-later
"""`make pandas`: scripts with pandas over objects, in a pool whose package set is made for it.

Not in the gate: the set is 160 MB, which pip fetches and compiles once into build/packages.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator

import pytest

import pyosd
from pyosd import JobState, Limits
from pyosd.jobs.job import Job
from pyosd.types import ObjectRef
from tests.package_sets import PANDAS, SETS, from_registry
from tests.serving import Serving, shared

WAIT_S = 60.0
ROWS = 20_000


@pytest.fixture(scope="module")
def serving() -> Iterator[Serving]:
    """A target whose pool has pandas, for jobs of one principal that may share a sandbox."""
    from_registry("pandas", PANDAS)
    words = ("--isolation", "best", "--slots", "1", "--package-sets", str(SETS))
    pools = (
        "--pool",
        "pandas:packages=pandas,max=1",
        "--pool",
        "again:packages=pandas,max=1,reuse=trusted",
    )
    with shared(*words, *pools) as served:
        yield served


@pytest.fixture
def table(target: pyosd.Target, zone: ObjectRef) -> ObjectRef:
    """An object of comma-separated values."""
    found = target.create(zone.partition_id)
    rows = (f"2026-{1 + n % 12:02}-01,{'abc'[n % 3]},{n},{n / 4}\n" for n in range(ROWS))
    target.write(found, 0, ("when,kind,count,weight\n" + "".join(rows)).encode())
    return found


Submit = Callable[..., Job]


@pytest.fixture
def submit(target: pyosd.Target, zone: ObjectRef) -> Submit:
    def submit(script: str, pool: str = "pandas", **how: object) -> Job:
        code = "import osd\nimport pandas as pd\n" + textwrap.dedent(script)
        return target.exec(code, zone=zone, pool=pool, limits=Limits(mem="256MiB"), **how)  # type: ignore[arg-type]

    return submit


def test_read_csv(submit: Submit, table: ObjectRef) -> None:
    job = submit(
        """
        source = osd.userobject(*osd.args)
        frame = pd.read_csv(source.data, parse_dates=["when"])
        assert frame.dtypes["when"].kind == "M" and len(frame) == 20_000
        sums = frame.groupby("kind")["count"].sum()
        monthly = frame.set_index("when").resample("MS")["weight"].mean()
        pieces = sum(len(each) for each in pd.read_csv(source.data, chunksize=3000))
        osd.result({"sums": sums.to_dict(), "months": len(monthly), "pieces": pieces})
        """,
        args=[table.partition_id, table.object_id],
    )
    total = ROWS * (ROWS - 1) // 2
    found = job.result(WAIT_S)
    assert isinstance(found, dict)
    assert sum(found["sums"].values()) == total
    assert (found["months"], found["pieces"]) == (12, ROWS)


def test_write_and_read_back(target: pyosd.Target, submit: Submit, zone: ObjectRef) -> None:
    made = [target.create(zone.partition_id).object_id for _ in range(2)]
    job = submit(
        """
        import io
        frame = pd.DataFrame({"n": range(1000), "square": [n * n for n in range(1000)]})
        first, second = (osd.userobject(osd.zone.partition_id, oid) for oid in osd.args)
        with first.data as file:
            file.write(frame.to_csv(index=False))
        pd.testing.assert_frame_equal(frame, pd.read_csv(first.data))
        with second.data as file:
            file.write(frame.to_json(orient="records", lines=True))
        assert len(pd.read_json(second.data, lines=True)) == 1000
        pickled = io.BytesIO()
        frame.to_pickle(pickled)
        pickled.seek(0)
        assert pd.read_pickle(pickled).equals(frame)
        """,
        args=made,
    )
    assert job.wait(WAIT_S).state is JobState.COMPLETED, job.traceback()


def test_what_is_not_in_the_set_says_so(submit: Submit) -> None:
    job = submit("pd.read_parquet('x')")
    status = job.wait(WAIT_S)
    assert status.state is JobState.FAILED
    assert "ImportError" in status.message and "pyarrow" in status.message


def test_numbers_are_a_jobs_own(submit: Submit) -> None:
    """In a pristine sandbox everything is; in a used one the next job cannot know them either."""
    script = """
        import numpy as np
        before = pd.get_option("display.max_rows")
        pd.set_option("display.max_rows", 7)
        pd.left_here = hasattr(pd, "left_here")
        found = np.random.random()
        np.random.seed(0)
        osd.result([before, pd.left_here, found])
        """
    found = [submit(script).result(WAIT_S) for _ in range(3)]
    assert {tuple(each[:2]) for each in found} == {(60, False)}
    again = [submit(script, "again") for _ in range(4)]
    results = [job.result(WAIT_S) for job in again]
    assert {each[1] for each in results} == {False}
    assert len({each[2] for each in found + results}) == 7
    assert len({job.status().sandbox for job in again}) < 4, "some sandbox was used again"
