# SPDX-License-Identifier: GPL-2.0-or-later
"""Arrays of jobs on the command line: one command for all of them, ARRAY[INDEX] for each."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest

from pyosd.types import ObjectRef
from pyosd.wire.job_status import JobState

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Run
    from tests.serving import Serving

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

DEADLINE_S = 60
FAILING = """\
import osd, sys
print('this is', osd.array_index)
if osd.array_index == 5: sys.exit(3)
osd.result(osd.array_index * 10)
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "script.py"


def submit(osd: Run, pid: str, script: Path, text: str, *flags: str) -> str:
    script.write_text(text)
    return osd("exec", script, "--zone", pid, "--no-wait", *flags).stdout.strip()


OF_THE_COMMAND_LINE = (
    "--local",
    "--where auto",
    "--target iscsi://192.0.2.1/iqn.x/1",
    "--credentials x",
    "--profile other",
)


def test_one_line_and_its_members(osd: Run, pid: str, script: Path) -> None:
    array = submit(osd, pid, script, FAILING, "--array", "3-6%2", "--name", "four")
    assert osd("job", "wait", array, code=10).stderr.count(", 1 FAILED") == 1
    record = json.loads(osd("job", "status", array, "-o", "json").stdout)
    assert record["array"] == {
        "first": 3,
        "last": 6,
        "indices": "3-6",
        "at_once": 2,
        "members": {"COMPLETED": 3, "FAILED": 1},
    }
    assert (record["progress"], record["reason"]["number"]) == (1.0, 111)
    lines = [line for line in osd("ps").stdout.splitlines() if "four" in line]
    assert len(lines) == 1 and lines[0].startswith(f"{array} ")
    shown = osd("ps", "--members", array).stdout.splitlines()[1:]
    assert [line.split()[:2] for line in shown] == [
        [f"{array}[{n}]", "FAILED" if n == 5 else "COMPLETED"] for n in range(3, 7)
    ]
    ids = osd("ps", "--members", array, "-o", "id").stdout.split()
    assert (
        osd("job", "status", ids[0], "-o", "json").stdout
        == osd(*("job", "status", f"{array}[3]", "-o", "json")).stdout
    )
    assert json.loads(osd("job", "status", ids[0], "-o", "json").stdout)["array"] == {
        "id": array,
        "index": 3,
    }


def test_every_verb_takes_array_and_member(osd: Run, pid: str, script: Path) -> None:
    array = submit(osd, pid, script, FAILING, "--array", "3-6")
    osd("job", "wait", array, "--exit-code=worst", code=10)
    osd("job", "wait", f"{array}[5]", code=10)
    osd("job", "wait", f"{array}[5]", "--exit-code=script", code=3)
    osd("job", "wait", f"{array}[4]")
    osd("job", "watch", array, f"{array}[3]", code=10)
    assert osd("job", "logs", f"{array}[4]").stdout == "this is 4\n"
    assert sorted(osd("job", "logs", array).stdout.splitlines()) == [
        f"{array}[{n}] | this is {n}" for n in range(3, 7)
    ]
    assert osd("job", "result", f"{array}[6]").stdout == "60\n"
    why = osd("job", "why", array).stdout
    assert "Members 3-6: 3 COMPLETED, 1 FAILED." in why
    assert f"osd job why '{array}[5]'" in why
    assert "exit code 3" in osd("job", "why", f"{array}[5]").stdout
    assert "1 FAILED of 4" in osd("job", "report", array).stdout
    assert "exit code 3" in osd("job", "report", f"{array}[5]").stdout
    for wrong in (f"{array}[7]", f"{array}[2]"):
        for verb in ("status", "wait", "logs", "result", "cancel", "kill", "why", "report"):
            osd("job", verb, wrong, code=16)
    osd("job", "status", f"{array}[x]", code=2)
    assert "no objects of --over" in osd("job", "retry", f"{array}[5]", "--", "a").stderr
    retried = osd("job", "retry", f"{array}[5]", "--script", script)
    assert retried.stderr == ""
    again = retried.stdout.strip()
    osd("job", "wait", again, code=10)
    found = json.loads(osd("job", "status", again, "-o", "json").stdout)
    member = json.loads(osd("job", "status", f"{array}[5]", "-o", "json").stdout)["id"]
    assert (found["predecessor"], found["array"]["first"]) == (member, 5)
    osd("job", "rm", array)
    for gone in (array, f"{array}[3]", member):
        osd("job", "status", gone, code=16)


def test_a_corrected_script_for_the_members_that_failed(osd: Run, pid: str, script: Path) -> None:
    for name, data in (("a", b"1"), ("b", b"x2"), ("c", b"3")):
        osd("cp", "-", f"osd:/{pid}/{name}", data=data)
    shown = "import osd\nosd.result([{}(osd.over[0].data.read().decode()), *osd.args])"
    array = submit(osd, pid, script, shown.format("int"), "--over", f"/{pid}/*", "--", "w")
    osd("job", "wait", array, code=10)
    script.write_text(shown.format("len"))
    retried = osd("job", "retry", array, "--failed", "--script", script)
    assert "no arguments" not in retried.stderr and "--over" not in retried.stderr
    again = retried.stdout.strip()
    osd("job", "wait", again)
    assert json.loads(osd("job", "result", again).stdout) == [[2, "w"]]
    told = osd("job", "retry", again, "--script", script).stderr
    assert "no arguments: give them after --" in told and "no objects of --over" in told


def test_results_of_the_members_that_completed(osd: Run, pid: str, script: Path) -> None:
    array = submit(osd, pid, script, FAILING, "--array", "3-6")
    osd("job", "wait", array, code=10)
    done = osd("job", "result", array, code=10)
    assert json.loads(done.stdout) == [30, 40, None, 60]
    assert "1 of 4 members did not complete: [5] FAILED" in done.stderr
    assert f"osd job retry {array} --failed" in done.stderr
    found = json.loads(osd("job", "result", array, "-o", "json", code=10).stdout)
    assert (found["schema"], found["id"]) == ("iosd.results/1", array)
    assert [each["index"] for each in found["members"]] == [3, 4, 5, 6]
    assert [each.get("result") for each in found["members"]] == [30, 40, None, 60]
    assert "exit" in found["members"][2]["error"]
    one = json.loads(osd("job", "result", f"{array}[4]", "-o", "json").stdout)
    assert (one["schema"], one["state"], one["result"]) == ("iosd.result/1", "COMPLETED", 40)
    one = json.loads(osd("job", "result", f"{array}[5]", "-o", "json", code=10).stdout)
    assert (one["state"], "result" in one) == ("FAILED", False)
    osd("job", "result", f"{array}[5]", code=10)


def test_no_member_completed(osd: Run, pid: str, script: Path) -> None:
    array = submit(osd, pid, script, "raise SystemExit(2)", "--array", "0-1")
    osd("job", "wait", array, code=10)
    done = osd("job", "result", array, code=10)
    assert (done.stdout, "2 of 2 members" in done.stderr) == ("", True)


def test_members_that_left_bytes(osd: Run, pid: str, script: Path) -> None:
    array = submit(osd, pid, script, "import osd; osd.result(b'a\\xff')", "--array", "0-1")
    osd("job", "wait", array)
    osd("job", "result", array, code=1)
    found = json.loads(osd("job", "result", array, "-o", "json").stdout)
    assert {each["result_base64"] for each in found["members"]} == {"Yf8="}


def test_indices_with_gaps(osd: Run, pid: str, script: Path) -> None:
    array = submit(osd, pid, script, FAILING, "--array", "1,5,10-14:2%2")
    osd("job", "wait", array, code=10)
    assert json.loads(osd("job", "result", array, code=10).stdout) == [10, None, 100, 120, 140]
    record = json.loads(osd("job", "status", array, "-o", "json").stdout)["array"]
    assert (record["indices"], record["first"], record["last"]) == ("1-5:4,10-14:2", 1, 14)
    assert "Members 1-5:4,10-14:2, at most 2 at once" in osd("job", "why", array).stdout
    shown = osd("ps", "--members", array).stdout.splitlines()[1:]
    assert [line.split()[0] for line in shown] == [f"{array}[{n}]" for n in (1, 5, 10, 12, 14)]
    assert osd("job", "logs", f"{array}[12]").stdout == "this is 12\n"
    osd("job", "status", f"{array}[2]", code=16)
    local = osd("exec", script, "--zone", pid, "--local", "--array", "5,1", code=10)
    assert local.exit_code == 10


def test_after_one_member(osd: Run, pid: str, script: Path) -> None:
    array = submit(osd, pid, script, "pass", "--array", "3-6", "--hold")
    member = json.loads(osd("job", "status", f"{array}[5]", "-o", "json").stdout)["id"]
    for condition, shown in (("", "ok"), (":ok", "ok"), (":failed", "failed"), (":any", "any")):
        job = submit(osd, pid, script, "pass", "--after", f"{array}[5]{condition}")
        record = json.loads(osd("job", "status", job, "-o", "json").stdout)
        assert (record["after"], record["awaited"]) == ([f"{member}:{shown}"], member)
    cleaning = submit(osd, pid, script, "pass", "--after", f"{array}:failed")
    assert f"It waits for {array} to fail" in osd("job", "why", cleaning).stdout
    osd("job", "kill", array)
    osd("job", "wait", cleaning)
    osd("exec", script, "--zone", pid, "--after", f"{array}[9]", code=16)
    osd("exec", script, "--zone", pid, "--after", f"{array}:perhaps", code=2)


def test_controls(osd: Run, pid: str, script: Path, serving: Serving) -> None:
    array = submit(
        osd, pid, script, "import osd; osd.result(osd.array_index)", "--array=0-9", "--hold"
    )
    assert "10 HELD" in osd("job", "hold", array).stderr
    assert "It is held" in osd("job", "why", array).stdout
    osd("job", "release", f"{array}[7]")
    osd("job", "wait", f"{array}[7]")
    assert osd("job", "result", f"{array}[7]").stdout == "7\n"
    assert "CANCELLED" in osd("job", "cancel", f"{array}[2]").stderr
    osd("job", "rm", array, code=18)
    osd("job", "rm", f"{array}[2]", code=18)
    osd("job", "result", array, code=18)
    assert "9 CANCELLED" in osd("job", "kill", array).stderr
    osd("job", "wait", array, code=11)
    with serving.connect() as target:
        assert target.array(ObjectRef.parse(array)).states()[7] is JobState.COMPLETED


def test_exec_waits_and_follows(osd: Run, pid: str, script: Path) -> None:
    script.write_text("#OSD --array 1-3%2\n" + FAILING)
    done = osd("exec", script, "--zone", pid, "--follow")
    lines = sorted(line.split("[")[1] for line in done.stdout.splitlines())
    assert lines == [f"{n}] | this is {n}" for n in (1, 2, 3)]
    assert "COMPLETED" in done.stderr
    assert osd("exec", script, "--zone", pid, "--wait").stdout == ""
    told = json.loads(osd("exec", script, "--dry-run").stdout)
    assert (told["array"], told["at_once"]) == ([1, 3], 2)
    local = osd("exec", script, "--zone", pid, "--local", "--array", "5", code=10)
    assert local.exit_code == 10
    told = json.loads(osd("exec", script, "--dry-run", "--array", "1,3,10-20:2%4").stdout)
    assert (told["indices"], told["array"], told["at_once"]) == ("1-3:2,10-20:2", [1, 20], 4)
    for wrong in ("4-2", "a-b", "0-10000", "1,", "1-5:0", "1-2%0", "1-2%", "-1"):
        osd("exec", script, f"--array={wrong}", code=2)


def test_lines_of_the_script_are_told(osd: Run, script: Path) -> None:
    for text, words in (
        ("# a comment\n#OSD --array 3-1\n", "line 2 of the script"),
        ("#!/usr/bin/python3\n\n#OSD --limit-mem 10parsecs\n", "line 3 of the script"),
        ("#OSD --no-such\n", "line 1 of the script"),
        ("#OSD --name 'x\n", "line 1 of the script"),
        ("#OSD word\n", "line 1 of the script: 'word' is no option"),
        *(
            (f"#OSD {each}\n", f"line 1 of the script: {each.split()[0]} is for the command line")
            for each in OF_THE_COMMAND_LINE
        ),
    ):
        script.write_text(text + "pass\n")
        assert words in osd("exec", script, "--dry-run", code=2).stderr
    script.write_text(
        "#OSD --retries 0 --retry-on exit=75,oom\n#OSD --priority 3 --tag a=b --wait\n#OSD\npass\n"
    )
    told = json.loads(osd("exec", script, "--dry-run", "--priority", "4").stdout)
    assert (told["priority"], told["tags"]) == (4, {"a": "b"})
    assert (told["retries"], told["retry_oom"], told["retry_exit"]) == (0, True, 75)
    osd("exec", script, "--retry-on", "exit=0", "--dry-run", code=2)


def test_run_again_for_an_exit_code(osd: Run, pid: str, script: Path) -> None:
    script.write_text("import sys\nprint('again')\nsys.exit(75)\n")
    begin = time.monotonic()
    osd("exec", script, "--zone", pid, "--wait", "--retries=1", "--retry-on=exit=75", code=10)
    assert time.monotonic() - begin < DEADLINE_S
    last = json.loads(osd("ps", "--tail", "1", "-o", "jsonl").stdout)
    assert (last["attempt"], last["exit_code"], last["stdout_bytes"]) == (2, 75, 6)
