# SPDX-License-Identifier: GPL-2.0-or-later
"""A job leaves nothing among the data it works on: what iteration, lists, counts and quotas of a
partition show before and after jobs is the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

AGGREGATE = """
import csv
import osd

totals = {}
for obj in osd.zone.userobjects():
    for row in csv.DictReader(line.decode() for line in obj.data):
        totals[row["region"]] = totals.get(row["region"], 0) + int(row["amount"])
print(sorted(totals.items()))
osd.result(totals)
"""
TOTALS = "[('east', 6), ('west', 60)]\n"
LONG_RESULT = "import osd\nosd.result('x' * 100_000)\n"


@pytest.fixture
def tables(osd: Run, pid: str) -> list[str]:
    """The ids of three objects with a table each."""
    texts = [f"region,amount\neast,{each}\nwest,{each}0\n".encode() for each in (1, 2, 3)]
    return [osd("obj", "write", pid, data=each).stdout.strip() for each in texts]


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "agg.py"
    path.write_text(AGGREGATE)
    return path


def test_a_script_over_all_objects_gives_the_same_answer_twice(
    osd: Run, pid: str, tables: list[str], script: Path
) -> None:
    before = osd("obj", "ls", pid).stdout, osd("part", "ls").stdout
    for _ in range(2):
        assert osd("exec", script, "--zone", pid, "--wait").stdout == TOTALS
    osd("exec", script, "--zone", pid, "--array", "0-3", "--wait")
    assert (osd("obj", "ls", pid).stdout, osd("part", "ls").stdout) == before
    assert osd("obj", "ls", pid, "-o", "id").stdout.split() == tables
    jobs = json.loads(osd("ps", "-o", "json").stdout)["jobs"]
    mine = [each for each in jobs if each["zone"] == pid]
    assert len(mine) == 3
    assert osd("job", "logs", mine[0]["id"]).stdout == TOTALS


def test_a_long_result_is_no_object_of_the_partition(
    osd: Run, pid: str, tables: list[str], script: Path
) -> None:
    script.write_text(LONG_RESULT)
    job = osd("exec", script, "--zone", pid, "--no-wait").stdout.strip()
    osd("job", "wait", job)
    assert len(osd("job", "result", job).stdout) > 100_000
    assert osd("obj", "ls", pid, "-o", "id").stdout.split() == tables


def test_a_query_finds_no_job(osd: Run, pid: str, tables: list[str], script: Path) -> None:
    """Neither with an index of values, which jobs' objects are in, nor without."""
    script.write_text("print('region')\n")
    job = osd("exec", script, "--zone", pid, "--no-wait").stdout.strip()
    osd("job", "wait", job)
    for address in (*tables, job):
        osd("obj", "attr", "set", address, "0x10000/1", "seen")
    for _ in range(2):
        assert osd("obj", "find", pid, "0x10000/1 = seen", "-o", "id").stdout.split() == tables
        osd("obj", "index", pid, "--add", "0x10000")


def test_quotas_of_the_data_do_not_count_jobs(
    osd: Run, pid: str, tables: list[str], script: Path
) -> None:
    """A partition that is full takes jobs; jobs do not make it full."""
    for number, most in (("0x10001", 1024), ("0x10002", 4)):
        osd("obj", "attr", "set", pid, f"0x30000002/{number}", str(most), "--int")
    for _ in range(3):
        assert osd("exec", script, "--zone", pid, "--wait").stdout == TOTALS
    osd("obj", "write", pid, data=b"x" * 512)


def test_where_it_is_asked_for_a_job_is_among_the_data(
    osd: Run, pid: str, tables: list[str], script: Path
) -> None:
    job = osd("exec", script, "--zone", pid, "--partition", pid, "--no-wait").stdout.strip()
    osd("job", "wait", job)
    assert osd("obj", "ls", pid, "-o", "id").stdout.split() == [*tables, job]


def test_a_partition_with_nothing_but_jobs_is_empty(osd: Run, pid: str, script: Path) -> None:
    """It can be removed as an empty one, and its jobs go with it; not while one has not ended."""
    job = osd("exec", script, "--zone", pid, "--no-wait", "--hold").stdout.strip()
    refusal = osd("part", "rm", pid, "--yes", code=18).output
    assert job.split("/")[1] in refusal
    osd("job", "cancel", job)
    osd("part", "rm", pid, "--yes")
    osd("job", "status", job, code=16)


def test_a_list_of_all_data_has_no_partition_of_jobs(osd: Run, tmp_path: Path) -> None:
    script = tmp_path / "s\udcff.py"  # the name of a job is UTF-8, that of a file need not be
    script.write_text("print(1)\n")
    job = osd("exec", script, "--no-wait").stdout.strip()
    assert json.loads(osd("ps", job, "-o", "json").stdout)["jobs"][0]["name"] == "s?.py"
    partition = job.split("/")[0]
    assert f"/{partition}" not in osd("ls", "/", "-o", "id").stdout.split()
    assert f"/.jobs/{partition}" in osd("ls", "/.jobs", "-o", "id").stdout.split()
    osd("wait", job)


def test_retry_leaves_the_new_job_where_the_old_one_was(
    osd: Run, pid: str, tables: list[str], script: Path
) -> None:
    first = osd("exec", script, "--zone", pid, "--no-wait").stdout.strip()
    osd("job", "wait", first)
    again = osd("job", "retry", first, "--script", script).stdout.split()[-1]
    osd("job", "wait", again)
    assert osd("job", "logs", again).stdout == TOTALS
    assert osd("obj", "ls", pid, "-o", "id").stdout.split() == tables


def test_a_job_has_paths(osd: Run, pid: str, tables: list[str], script: Path) -> None:
    osd("exec", script, "--zone", pid, "--name", "sums", "--wait")
    jobs = json.loads(osd("ps", "-o", "json").stdout)["jobs"]
    (job,) = [each["id"] for each in jobs if each["zone"] == pid]
    top = f"/.jobs/{job}"
    listed = osd("ls", f"/.jobs/{pid}", "-o", "id").stdout.split()
    assert listed == [top]
    assert osd("cat", f"{top}/stdout").stdout == TOTALS
    assert osd("cat", f"{top}/stdout", "--offset", 1, "--length", 3).stdout == TOTALS[1:4]
    assert json.loads(osd("cat", f"{top}/status").stdout)["name"] == "sums"
    assert json.loads(osd("stat", f"{top}/result", "-o", "json").stdout)["length_bytes"] > 0
    assert osd("job", "logs", top).stdout == TOTALS
    assert osd("find", "/", "--name", ".jobs").stdout == ""
    osd("cp", "-r", "--verify", f"osd:{top}", script.parent / "job")
    assert (script.parent / "job/stdout").read_text() == TOTALS
    osd("cp", f"osd:{top}/result", f"osd:/{pid}/sums.json")
    assert json.loads(osd("cat", f"/{pid}/sums.json").stdout) == {"east": 6, "west": 60}
    for words in (
        ("rm", f"{top}/stdout"),
        ("rm", "-r", "-f", top),
        ("mkdir", f"{top}/d"),
        ("mv", f"{top}/stdout", f"/{pid}/x"),
        ("cp", script, f"osd:{top}/x"),
        ("sync", script.parent, f"osd:{top}"),
        ("obj", "rm", f"{top}/stdout"),
        ("part", "rm", f"/.jobs/{pid}", "--yes", "--contents"),
    ):
        assert "can only be read" in osd(*words, code=1).stderr
    assert "part of a job" in osd("exec", script, "--over", f"{top}/status", code=1).stderr
    osd("cat", f"{top}/none", code=66)
    osd("job", "rm", top)
    osd("ls", top, code=66)
