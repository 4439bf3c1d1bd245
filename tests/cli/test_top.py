# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd top`, `osd job report` and `osd job retry`."""

from __future__ import annotations

import json
import os
import pty
import signal
import struct
import sys
import termios
from collections.abc import Iterator
from fcntl import ioctl
from pathlib import Path

import pytest

from pyosd import Target, connect
from pyosd.cli.jobs import top
from pyosd.types import ObjectRef, ref
from pyosd.wire.job_status import JobState, JobStatus
from tests import warm
from tests.cli.conftest import Run
from tests.harness import SOURCE
from tests.serving import Serving

needs_target = [pytest.mark.tgtd, pytest.mark.sandbox]
DEADLINE_S = 60


@pytest.fixture
def target(serving: Serving) -> Iterator[Target]:
    with connect(serving.url) as session:
        yield session


def sample(when: float, *states: JobState, first: int = 0) -> top.TargetSample:
    jobs = {
        ref(0x10000, 0x10000 + n): JobStatus(ref(0x10000, 0x10000 + n), state, name="name " * 20)
        for n, state in enumerate(states, first)
    }
    return top.TargetSample(when, 0.01, 3, 20, "full", jobs)


def test_rates_are_differences() -> None:
    before = sample(10.0, JobState.RUNNING, JobState.QUEUED, JobState.COMPLETED)
    now = sample(12.0, *[JobState.COMPLETED] * 3, JobState.FAILED, JobState.QUEUED)
    assert now.rates(before) == {"submitted_per_s": 1.0, "ended_per_s": 1.5}
    assert set(now.rates(None).values()) == {None}
    assert now.rates(now.__class__(**{**vars(now), "when": 9.0})) == {
        "submitted_per_s": 0.0,
        "ended_per_s": 0.0,
    }


@pytest.mark.parametrize("width", [80, 40])
def test_screen_fits(width: int) -> None:
    found = top.record(sample(1.0, *[JobState.RUNNING] * 50, JobState.COMPLETED))
    lines = top.screen_lines(found, width, 20, colour=False)
    assert max(len(line) for line in lines) <= width and len(lines) <= 20
    assert lines[-1].endswith("more") and "50 RUNNING  1 COMPLETED" in lines
    assert len(top.screen_lines(found, None, None, colour=False)) > 50


class TestTop:
    pytestmark = needs_target

    def test_once(self, osd: Run, pid: str, target: Target, serving: Serving) -> None:
        zone = ObjectRef.parse(pid)
        held, done = target.exec("pass", zone=zone, hold=True), target.exec("pass", zone=zone)
        done.wait(DEADLINE_S)
        found = json.loads(osd("top", "--once", "-o", "json").stdout)
        assert found["schema"] == "iosd.top/1" and found["isolation"] == serving.isolation
        assert found["states"]["HELD"] >= 1 and found["states"]["COMPLETED"] >= 1
        assert found["queue_depth"] >= 1 and found["ended_per_s"] is None
        ids = [each["id"] for each in found["jobs"]]
        assert str(held.id) in ids and str(done.id) not in ids
        text = osd("top").stdout
        assert str(held.id) in text and "submitted -" in text
        held.cancel()

    @pytest.mark.parametrize("how", ["q", "interrupt", "terminate"])
    def test_live(self, serving: Serving, how: str) -> None:
        """On a terminal: the other screen, and back from it whatever ends it."""
        leader, follower = pty.openpty()
        ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        before = termios.tcgetattr(follower)
        code = "from pyosd.cli import main; main(prog_name='osd')"
        process = warm.Python(
            [
                *(sys.executable, "-c", code),
                *("top", "--interval", "100ms", "--target", serving.url),
            ],
            stdin=follower,
            stdout=follower,
            stderr=follower,
            cwd=SOURCE,
        )
        seen = b""
        while b"q: quit" not in seen:
            seen += os.read(leader, 65536)
        if how == "q":
            os.write(leader, b"q")
        else:
            process.send_signal(signal.SIGINT if how == "interrupt" else signal.SIGTERM)
        while b"\x1b[?1049l" not in seen:
            seen += os.read(leader, 65536)
        assert process.wait(DEADLINE_S) == (143 if how == "terminate" else 0)
        assert b"\x1b[?1049h" in seen and b"isolation" in seen
        assert termios.tcgetattr(follower) == before
        os.close(follower)
        os.close(leader)


class TestReport:
    pytestmark = needs_target

    def test_report(self, osd: Run, pid: str, target: Target, serving: Serving) -> None:
        code = "import sys; sys.stderr.write('secret \\x1b[2J\\n'); 1/0"
        job = str(target.exec(code, zone=ObjectRef.parse(pid), name="first").id)
        osd("job", "wait", job, code=10)
        text = osd("job", "report", job).stdout
        for words in ("reason 201", "ZeroDivisionError", "script sha256", "Limits in force"):
            assert words in text
        assert "  io              none" in text and "\x1b" not in text
        assert serving.url not in text and "127.0.0.1" not in text
        found = json.loads(osd("job", "report", job, "-o", "json").stdout)
        assert found["schema"] == "iosd.report/1" and found["job"]["name"] == "first"
        assert (
            found["job"]["limits"]["processes"] == 1 and found["job"]["limits"]["io_bytes"] is None
        )
        assert "ZeroDivisionError" in found["traceback"] and found["target"]["vendor"]
        assert "secret" not in osd("job", "report", job, "--no-log").stdout
        osd("job", "report", f"{pid}/0x777777", code=16)

    def test_by_what_is_kept(self, osd: Run, pid: str, tmp_path: Path) -> None:
        script = tmp_path / "again.py"
        script.write_text("import osd, sys; print(osd.args); sys.exit(len(osd.args))")
        old = osd("exec", script, "--zone", pid, "--no-wait", "--", "a", "b").stdout.strip()
        osd("job", "wait", old, code=10)
        script.unlink()
        again = osd("job", "retry", old).stdout.strip()
        osd("job", "wait", again, "--exit-code=script", code=2)
        assert osd("job", "logs", again).stdout == "['a', 'b']\n"
        again = osd("job", "retry", again, "--failed", "--", "c").stdout.strip()
        osd("job", "wait", again, "--exit-code=script", code=1)
        assert "osd job retry" in osd("job", "why", again).stdout

    def test_tags(self, osd: Run, pid: str, tmp_path: Path) -> None:
        script = tmp_path / "again.py"
        script.write_text("raise SystemExit(1)")
        tags = ("--tag", "project=q4", "--tag", "stage=1")
        old = osd("exec", script, "--zone", pid, "--no-wait", *tags).stdout.strip()
        osd("job", "wait", old, code=10)
        again = osd("job", "retry", old, "--tag", "stage=2", "--tag", "why=late").stdout.strip()
        osd("job", "wait", again, code=10)
        record = json.loads(osd("job", "status", again, "-o", "json").stdout)
        assert record["tags"] == {"project": "q4", "stage": "2", "why": "late"}

    def test_members_that_failed(self, osd: Run, pid: str, tmp_path: Path) -> None:
        script = tmp_path / "again.py"
        script.write_text("import osd, sys; sys.exit(osd.array_index in (2, 7))")
        submit = ("exec", script, "--zone", pid, "--no-wait", "--array", "0-9:1%4")
        old = osd(*submit).stdout.strip()
        osd("job", "wait", old, code=10)
        new = osd("job", "retry", old, "--failed").stdout.strip()
        osd("job", "wait", new, code=10)
        record = json.loads(osd("job", "status", new, "-o", "json").stdout)
        assert (record["array"]["indices"], record["predecessor"]) == ("2-7:5", old)
        assert "code_kept" in record["flags"]

    def test_of_an_unfinished_job(self, osd: Run, pid: str, target: Target) -> None:
        job = target.exec("pass", zone=ObjectRef.parse(pid), hold=True)
        assert "held" in osd("job", "report", job.id).stdout
        job.cancel()


class TestRetry:
    pytestmark = needs_target

    def test_retry(self, osd: Run, obj: ObjectRef, pid: str, tmp_path: Path) -> None:
        script = tmp_path / "again.py"
        script.write_text("import osd; osd.result([osd.args, str(osd.zone)])")
        submit = ("exec", script, "--zone", obj, "--partition", pid, "--no-wait")
        old = osd(*submit, "--limit-mem", "64MiB", "--", "a").stdout.strip()
        osd("job", "wait", old)
        assert "--script" in osd("job", "retry", old, code=18).stderr
        assert "nothing of it failed" in osd("job", "retry", old, "--failed", code=18).stderr
        again = osd("job", "retry", old, "--script", script, "--", "a")
        assert again.stderr == ""
        new = again.stdout.strip()
        osd("job", "wait", new)
        assert new != old and osd("job", "result", new).stdout == osd("job", "result", old).stdout
        records = [json.loads(osd("job", "status", job, "-o", "json").stdout) for job in (old, new)]
        for key in ("name", "zone", "pool", "limits", "script_sha256", "flags"):
            assert records[0][key] == records[1][key]
        script.write_text("pass")
        assert "is not the script" in osd("job", "retry", old, "--script", script).stderr

    def test_of_an_unfinished_job(self, osd: Run, pid: str, target: Target, tmp_path: Path) -> None:
        script = tmp_path / "again.py"
        script.write_text("pass")
        job = target.exec("pass", zone=ObjectRef.parse(pid), hold=True)
        osd("job", "retry", job.id, "--script", script, code=18)
        job.cancel()
        osd("job", "retry", f"{pid}/0x777777", "--script", script, code=16)
