# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd run`, `osd submit` and the verbs of jobs without their noun; and errors as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pyosd.cli.frame.codes import Exit
from tests.cli.conftest import Run


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "script.py"
    file.write_text("import osd\nprint('said')\nosd.result(7)\n")
    return file


def test_run_waits_and_prints(osd: Run, script: Path) -> None:
    assert osd("run", script).stdout == "said\n"


def test_run_wins_over_the_script(osd: Run, script: Path) -> None:
    script.write_text("#OSD --no-wait\n" + script.read_text())
    assert osd("run", script).stdout == "said\n"


def test_submit_and_the_verbs_of_jobs(osd: Run, script: Path) -> None:
    job = osd("submit", script).stdout.strip()
    osd("wait", job)
    assert osd("logs", job).stdout == "said\n"
    assert osd("result", job).stdout == "7\n"
    osd("kill", job)


@pytest.mark.parametrize("words", [("run", "--no-wait"), ("submit", "--wait"), ("submit", "-f")])
def test_a_contradiction_is_refused(osd: Run, script: Path, words: tuple[str, ...]) -> None:
    assert "use 'osd" in osd(*words, script, code=Exit.USAGE).stderr


def test_a_word_that_is_no_duration_is_not_taken_for_an_argument(osd: Run, script: Path) -> None:
    shown = osd("exec", script, "--wait", "10x", code=Exit.USAGE).stderr
    assert "--wait 10x: not a duration" in shown
    for option, number in (("--wait", "1"), ("--reuse-result", "2.5")):
        shown = osd("exec", script, option, number, "3", code=Exit.USAGE).stderr
        assert f"write {option}={number} for seconds, or {option} -- {number} if" in shown


def test_a_missing_script_is_an_error_like_others(osd: Run) -> None:
    shown = osd("exec", "nowhere.py", code=Exit.NO_INPUT).stderr
    assert shown == "osd: nowhere.py: No such file or directory\n"


def test_a_lone_number_is_quoted_as_typed(osd: Run) -> None:
    assert "'12345'" in osd("job", "kill", "12345", code=Exit.USAGE).stderr


@pytest.mark.parametrize(
    ("words", "code", "name"),
    [
        (("ps", "-o", "json", "--foo"), Exit.USAGE, "USAGE"),
        (("ps", "-ojson", "--target", "iscsi://127.0.0.1:9/x/1"), Exit.UNREACHABLE, "UNREACHABLE"),
        (("exec", "nowhere.py", "--output=json"), Exit.NO_INPUT, "NO_INPUT"),
        (("job", "status", "0x7777/0x1", "-o", "jsonl"), Exit.JOB_UNKNOWN, "JOB_UNKNOWN"),
        (("target", "check", "--data", "/nowhere", "--json"), Exit.NO_INPUT, "NO_INPUT"),
        (("manager", "status", "-o", "json", "--profile", "none"), Exit.CONFIG, "CONFIG"),
    ],
)
def test_errors_are_json_for_programs(
    osd: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: Exit, name: str
) -> None:
    monkeypatch.delenv("IOSD_TARGET") if "manager" in words else None
    done = osd(*words, code=code)
    assert not done.stdout
    found = json.loads(done.stderr)
    assert found["schema"] == "iosd.error/1"
    assert found["error"]["code"] == code
    assert found["error"]["name"] == name
    assert found["error"]["message"]
