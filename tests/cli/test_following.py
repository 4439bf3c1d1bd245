# SPDX-License-Identifier: GPL-2.0-or-later
"""Many jobs looked at together: `osd job watch`, `wait`, `logs`, `ls`, and Ctrl-C in each of them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from click.testing import CliRunner

from pyosd import Target, connect
from pyosd.cli import main
from pyosd.cli.jobs.follow import FollowedJobs, crowd_lines
from pyosd.types import ObjectRef, ref
from pyosd.wire.job_status import JobState, JobStatus
from tests import warm
from tests.cli.conftest import Run
from tests.harness import SOURCE
from tests.serving import Serving

needs_target = [pytest.mark.tgtd, pytest.mark.sandbox]
DEADLINE_S = 60
GATED = """
import osd, sys, time
gate = osd.userobject(*osd.args)
print("first", flush=True)
while not gate.data.read(1):
    time.sleep(0.005)
print("last")
print("to stderr", file=sys.stderr)
"""


@pytest.fixture
def target(serving: Serving) -> Iterator[Target]:
    with connect(serving.url) as session:
        yield session


class Gate:
    """Jobs that have printed their first line, and wait until they are let go."""

    def __init__(self, target: Target, pid: str, count: int, code: str = GATED) -> None:
        self.target, zone = target, ObjectRef.parse(pid)
        self.object = target.create(zone.partition_id)
        place = [self.object.partition_id, self.object.object_id]
        jobs = [target.exec(code, zone=zone, args=place) for _ in range(count)]
        self.ids = [str(job.id) for job in jobs]
        assert next(jobs[0].iter_output(follow=True)) == b"first\n"

    def open(self) -> None:
        self.target.write(self.object, 0, b"x")


def run(target: Target, pid: str, code: str, **how: object) -> str:
    """Submit a script and return its id."""
    return str(target.exec(code, zone=ObjectRef.parse(pid), **how).id)  # type: ignore[arg-type]


def process(serving: Serving, *words: str) -> subprocess.Popen[str]:
    """`osd` as a program of its own that obeys SIGINT, whatever the tests were started with."""
    program = [sys.executable, "-c", "from pyosd.cli import main; main(prog_name='osd')"]
    return warm.Python(
        [*program, *words, "--target", serving.url],
        cwd=SOURCE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


class TestWatch:
    pytestmark = needs_target

    def test_lines_and_code(self, osd: Run, pid: str, target: Target) -> None:
        good, bad = run(target, pid, "pass"), run(target, pid, "1/0")
        done = osd("job", "watch", good, bad, code=10)
        assert done.stdout == ""
        assert f"{good} COMPLETED in" in done.stderr
        assert f"{bad} FAILED (reason 201" in done.stderr
        assert osd("job", "watch", good, bad, "-q", code=10).stderr == ""
        osd("job", "watch", good, good)
        osd("job", "wait", good, bad, code=10)
        osd("job", "wait", bad, good, "--exit-code", "script", code=1)

    def test_conditions(self, osd: Run, pid: str, target: Target) -> None:
        held, bad = run(target, pid, "pass", hold=True), run(target, pid, "1/0")
        both = ("job", "watch", held, bad, "-q")
        osd(*both, "--exit", "any:failed:42", code=42)
        osd(*both, "--exit", "all:ended:3", "--exit", "any:unsuccessful:4", code=4)
        osd(*both, "--exit", "none:started:5", "--exit", "any:held:6", code=6)
        osd(*both, "--exit", "none:running:0", code=0)
        osd(*both, "--exit", "all:ended:3", "--timeout", "50ms", code=124)
        osd("job", "cancel", held)
        osd(*both, "--exit", "all:ended:3", code=3)
        osd(*both, "--exit", "any:queued:3", code=11)

    def test_records(self, osd: Run, pid: str, target: Target) -> None:
        job = run(target, pid, "pass", name="first")
        osd("job", "wait", job)
        (record,) = map(json.loads, osd("job", "watch", job, "-o", "jsonl").stdout.splitlines())
        assert (record["schema"], record["state"], record["name"]) == (
            *("iosd.job/1", "COMPLETED", "first"),
        )

    def test_records_are_whole(self, osd: Run, pid: str, target: Target) -> None:
        """A record says the same wherever it is printed: nothing of it is left out, and shown as 0."""
        job = run(target, pid, "print(1)", tags={"project": "q4"}, key="whole")
        osd("job", "wait", job)
        (record,) = map(json.loads, osd("job", "watch", job, "-o", "jsonl").stdout.splitlines())
        assert record == json.loads(osd("job", "status", job, "-o", "json").stdout)
        assert record["tags"] == {"project": "q4"}

    def test_absent_job(self, osd: Run, pid: str, target: Target) -> None:
        job = run(target, pid, "pass")
        absent = f"{pid}/0x777777"
        assert f"{absent} GONE" in osd("job", "watch", job, absent, code=16).stderr
        osd("job", "wait", absent, job, code=16)
        osd("job", "watch", absent, "-q", "--exit", "all:ended:9", code=9)

    def test_interrupt(self, osd: Run, pid: str, target: Target, serving: Serving) -> None:
        gate = Gate(target, pid, 2)
        for words in (("watch",), ("wait",), ("watch", "-o", "jsonl")):
            watcher = process(serving, "job", *words, *gate.ids)
            stream = watcher.stdout if "-o" in words else watcher.stderr
            assert stream is not None and gate.ids[0] in stream.readline()
            watcher.send_signal(signal.SIGINT)
            _, talk = watcher.communicate(timeout=DEADLINE_S)
            assert watcher.returncode == 130, talk
            assert f"2 of 2 jobs continue: osd job wait {gate.ids[0]} {gate.ids[1]}" in talk
        gate.open()
        osd("job", "wait", *gate.ids)


@pytest.mark.parametrize(
    "text", ["any:failed", "some:failed:1", "any:lost:1", "any:failed:256", ""]
)
def test_no_condition(text: str) -> None:
    words = ["job", "watch", "0x10000/0x10001", "--exit", text]
    assert CliRunner().invoke(main, words).exit_code == 2


def test_second_interrupt_ends_at_once() -> None:
    """Even where the program would not come back by itself."""
    code = (
        "import signal; from pyosd.cli.jobs.follow import interrupted; interrupted('x');"
        "print('ready', flush=True)\nwhile True:\n  try: signal.pause()\n  except BaseException: pass"
    )
    stubborn = subprocess.Popen(
        ["env", "--default-signal=INT", sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
    )
    with stubborn:
        assert stubborn.stdout is not None and stubborn.stdout.readline() == "ready\n"
        stubborn.send_signal(signal.SIGINT)
        assert stubborn.wait(DEADLINE_S) == 130


@pytest.mark.parametrize("width", [80, 40])
@pytest.mark.parametrize("height", [3, 30])
def test_table_fits(width: int, height: int) -> None:
    crowd = FollowedJobs([])
    for number, state in enumerate(JobState):
        job = Target.job(None, ref(0x10000, 0x10000 + number))  # type: ignore[arg-type]
        crowd.jobs.append(job)
        crowd.said[job] = JobStatus(
            job.id, state, name="a long name " * 9, message="\x1b[2J" * 20, progress=0.5
        )
    lines = crowd_lines(crowd, width, height, colour=False)
    assert max(len(line) for line in lines[:-1]) <= width
    assert len(lines) == min(height, len(JobState)) + 2
    assert "\x1b" not in "".join(lines)
    assert lines[1].split()[1] in ("STARTING", "RUNNING", "COMPLETING")
    assert lines[-1].startswith("1 QUEUED, 1 HELD") and ("not shown" in lines[-1]) == (height == 3)


class TestLogs:
    pytestmark = needs_target

    def test_of_several(self, osd: Run, pid: str, target: Target) -> None:
        one = run(target, pid, "for n in range(5): print(n)")
        two = run(target, pid, "import sys; print('no end', end=''); sys.stderr.write('a\\nb\\n')")
        osd("job", "wait", one, two)
        lines = [*(f"{one} | {n}" for n in range(5)), f"{two} | no end"]
        assert osd("job", "logs", one, two).stdout.splitlines() == lines
        assert osd("job", "logs", "-f", one, two).stdout.splitlines() == lines
        assert osd("job", "logs", one, two, "--tail", "1").stdout.splitlines() == lines[4:]
        assert osd("job", "logs", one, two, "--stderr").stdout == f"{two} | a\n{two} | b\n"
        assert osd("job", "logs", two, "--stderr", "--tail", "1").stdout == "b\n"
        assert osd("job", "logs", two).stdout == "no end"
        assert osd("job", "logs", one, "--tail", "2").stdout == "3\n4\n"
        assert osd("job", "logs", one, "--tail", "99").stdout == "0\n1\n2\n3\n4\n"
        osd("job", "logs", one, f"{pid}/0x777777", code=16)

    def test_last_lines_of_much(self, osd: Run, pid: str, target: Target) -> None:
        job = run(target, pid, "for n in range(3): print(n, 'x' * 100_000)\nprint('end')")
        osd("job", "wait", job)
        assert osd("job", "logs", job, "--tail", "2").stdout == f"2 {'x' * 100_000}\nend\n"

    def test_follow_several(self, osd: Run, pid: str, target: Target, serving: Serving) -> None:
        gate = Gate(target, pid, 2)
        follower = process(serving, "job", "logs", "-f", "--tail", "1", *gate.ids)
        assert follower.stdout is not None
        first = [follower.stdout.readline() for _ in gate.ids]
        gate.open()
        rest, _ = follower.communicate(timeout=DEADLINE_S)
        assert follower.returncode == 0
        expected = [f"{job} | {text}" for job in gate.ids for text in ("first", "last")]
        assert sorted("".join([*first, rest]).splitlines()) == sorted(expected)

    def test_follow_stderr(self, pid: str, target: Target, serving: Serving) -> None:
        """Lines of both streams while the script runs, each to where a script here would write it."""
        code = GATED.replace("while not", "print('warned', file=sys.stderr)\nwhile not")
        gate = Gate(target, pid, 2, code)
        errors = process(serving, "job", "logs", "-f", "--stderr", *gate.ids)
        both = process(serving, "job", "logs", "-f", "--stream", "both", gate.ids[0])
        assert errors.stdout and both.stdout and both.stderr
        assert both.stdout.readline() == "first\n"
        assert both.stderr.readline() == "warned\n"
        first = [errors.stdout.readline() for _ in gate.ids]
        gate.open()
        assert both.communicate(timeout=DEADLINE_S) == ("last\n", "to stderr\n")
        rest, _ = errors.communicate(timeout=DEADLINE_S)
        assert sorted(first) == sorted(f"{job} | warned\n" for job in gate.ids)
        assert sorted(rest.splitlines()) == sorted(f"{job} | to stderr" for job in gate.ids)

    def test_interrupt(self, osd: Run, pid: str, target: Target, serving: Serving) -> None:
        gate = Gate(target, pid, 1)
        follower = process(serving, "job", "logs", "-f", *gate.ids)
        assert follower.stdout is not None and follower.stdout.readline() == "first\n"
        follower.send_signal(signal.SIGINT)
        _, talk = follower.communicate(timeout=DEADLINE_S)
        assert follower.returncode == 130, talk
        assert f"job {gate.ids[0]} continues: osd job logs -f {gate.ids[0]}" in talk
        gate.open()
        osd("job", "wait", *gate.ids)


@pytest.mark.tgtd
@pytest.mark.sandbox
def test_list_some(osd: Run, pid: str, target: Target) -> None:
    jobs = [run(target, pid, "pass") for _ in range(3)]

    def listed(*flags: str) -> list[str]:
        found = osd("job", "ls", "-o", "id", *flags).stdout.split()
        return [job for job in found if job in jobs]

    assert listed() == jobs
    assert listed("--tail", "2") == jobs[1:]
    assert listed(*jobs, "--head", "2") == jobs[:2]
    assert listed("--tail", "0") == [] and listed("--head", "0") == []
    assert listed("--since", "1h") == jobs and listed("--until", "1h") == []
    now = time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(time.time() + 60))
    assert listed("--until", now) == jobs and listed("--since", now) == []
    osd("job", "ls", "--head", "1", "--tail", "1", code=2)
    osd("job", "ls", "--since", "yesterday", code=2)
