# SPDX-License-Identifier: GPL-2.0-or-later
"""Tags and users of jobs are shown, and `osd ps` chooses jobs by what they have; jobs by their names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pyosd import connect
from pyosd.cli.frame.codes import Exit
from pyosd.cli.jobs.job_filter import JobFilter
from pyosd.types import PartitionId
from tests.cli.conftest import Run
from tests.serving import Serving

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]


@pytest.fixture
def submit(osd: Run, pid: str, tmp_path: Path) -> Any:
    """Submit a job that is held; its id."""
    path = tmp_path / "held.py"
    path.write_text("import time\ntime.sleep(60)\n")

    def submit(*flags: str, zone: str = pid) -> str:
        return osd("exec", path, "--zone", zone, "--no-wait", "--hold", *flags).stdout.strip()

    return submit


def found(osd: Run, *words: str) -> list[str]:
    return osd("ps", *words, "-o", "id").stdout.split()


def test_tags_and_user_are_shown(osd: Run, pid: str, submit: Any, serving: Serving) -> None:
    job = submit("--tag", "project=q4", "--tag", "url=a=b,c", "--name", "tagged")
    record = json.loads(osd("job", "status", job, "-o", "json").stdout)
    assert record["tags"] == {"project": "q4", "url": "a=b,c"}
    assert ":" in record["principal"]
    [listed] = json.loads(osd("ps", pid, "-o", "json").stdout)["jobs"]
    assert (listed["tags"], listed["principal"]) == (record["tags"], record["principal"])
    for text in (osd("ps", pid, "-o", "wide").stdout, osd("job", "status", job).stdout):
        assert "project=q4,url=a=b,c" in text and record["principal"] in text
    assert "project" in osd("job", "report", job).stdout
    with connect(serving.url) as target:
        [status] = target.jobs(PartitionId(int(pid, 0)))
        assert status.tags == {"project": "q4", "url": "a=b,c"}
        assert status.principal == record["principal"]


def test_members_have_the_tags_of_their_array(osd: Run, pid: str, submit: Any) -> None:
    submit("--array", "0-2", "--tag", "project=q4")
    listed = json.loads(osd("ps", pid, "--members", "--tag", "project", "-o", "json").stdout)
    assert [each["tags"] for each in listed["jobs"]] == [{"project": "q4"}] * 3


def test_filters(osd: Run, pid: str, submit: Any) -> None:
    """Each option alone, and together; nothing else is listed."""
    other = osd("part", "create").stdout.strip()
    inside = osd("obj", "create", pid).stdout.strip()
    a = submit("--tag", "project=q4", "--tag", "team=x", "--name", "load a")
    b = submit("--tag", "project=q3", "--name", "load b", zone=inside)
    c = submit("--name", "other", zone=other)
    osd("job", "cancel", b)
    assert found(osd, pid) == found(osd, "--partition", pid) == [a, b]
    assert found(osd, pid, other) == [a, b, c]
    assert found(osd, "--zone", pid) == [a, b] and found(osd, "--zone", inside) == [b]
    assert found(osd, "--zone", pid, "--name", "load ?") == [a, b]
    assert found(osd, pid, "--name", "load a") == [a]
    assert found(osd, pid, "--tag", "project") == [a, b]
    assert found(osd, pid, "--tag", "project=q4", "--tag", "team=x") == [a]
    assert found(osd, pid, "--tag", "project=q3", "--tag", "team") == []
    assert found(osd, pid, "--pool", "default") == [a, b] and not found(osd, pid, "--pool", "x")
    assert found(osd, pid, "--state", "unfinished") == [a]
    assert found(osd, pid, "--state", "ended") == found(osd, pid, "--state", "cancelled") == [b]
    me = json.loads(osd("job", "status", a, "-o", "json").stdout)["principal"]
    assert found(osd, pid, "--user", me) == [a, b] == found(osd, pid, "--user", me.split(":")[1])
    assert found(osd, pid, "--user", "nobody") == []


def test_mine_are_those_of_the_user_that_the_target_knows(
    osd: Run, pid: str, submit: Any, serving: Serving
) -> None:
    """An administrator sees all jobs, and may ask for those of one user."""
    mine = submit()
    assert found(osd, pid, "--mine") == [mine]
    assert found(osd, pid, "--mine", "--user", "nobody") == []


def test_mine_where_a_job_of_the_list_has_been_removed(
    pid: str, submit: Any, osd: Run, serving: Serving
) -> None:
    """Between the listing and the question for the user's names."""
    removed, kept = submit(), submit()
    with serving.connect(local=True) as target:
        listed = target.jobs(PartitionId(int(pid, 0)))
        listed.sort(key=lambda each: str(each.id) != removed)
        osd("job", "kill", removed)
        osd("job", "rm", removed)
        assert kept in [str(each.id) for each in JobFilter(mine=True).of(target, listed)]


def test_an_object_is_no_partition(osd: Run, pid: str) -> None:
    said = osd("ps", "--partition", f"{pid}/0x10000", code=Exit.USAGE).stderr
    assert "is an object: give its PID" in said


def test_a_job_is_known_by_its_name(osd: Run, pid: str, submit: Any) -> None:
    name = f"unique {pid}"
    job = submit("--name", name)
    assert json.loads(osd("job", "status", name, "-o", "json").stdout)["id"] == job
    assert found(osd, name) == [job]
    array = submit("--name", f"array-{pid}", "--array", "5-6")
    member = json.loads(osd("job", "status", f"array-{pid}[6]", "-o", "json").stdout)
    assert member["array"] == {"id": array, "index": 6}
    osd("job", "cancel", name)
    again = submit("--name", name)
    said = osd("job", "kill", name, code=Exit.USAGE).stderr
    assert f"2 jobs have the name '{name}'" in said and job in said and again in said
    assert said.index(again) < said.index(job), "the last one first"
    osd("job", "status", "no such name", code=Exit.JOB_UNKNOWN)
