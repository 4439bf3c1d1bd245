# SPDX-License-Identifier: GPL-2.0-or-later
"""Tasks done ahead: each once, whoever comes first, and a failure is told to whom it belongs."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from tests import ahead
from tests.ahead import Task

beside = pytest.mark.skipif(
    len(os.sched_getaffinity(0)) < 2, reason="of one processor none is left for it"
)
SAY = "import sys; open(sys.argv[1], 'a').write(sys.argv[2] + '\\n'); sys.exit(int(sys.argv[2]))"


@pytest.fixture(autouse=True)
def without_those_of_this_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "_queue", None)
    monkeypatch.setattr(ahead, "_worker", None)


def test_each_runs_once(tmp_path: Path) -> None:
    said = tmp_path / "said"
    tasks = [Task((sys.executable, "-c", SAY, str(said), str(n))) for n in range(12)]
    with ahead.running([*tasks, *tasks]):
        for _ in range(2):
            assert [ahead.run(task).returncode for task in reversed(tasks)] == [*range(11, -1, -1)]
    assert sorted(map(int, said.read_text().split())) == [*range(12)]
    assert ahead.run(tasks[3]).returncode == 3, "without a worker"


@beside
def test_one_that_needs_another_begins_after_it(tmp_path: Path) -> None:
    said = str(tmp_path / "said")
    slow = Task((sys.executable, "-c", "import time; time.sleep(0.3);" + SAY, said, "1"))
    needs = Task((sys.executable, "-c", SAY, said, "2"), needs=slow)
    with ahead.running([needs, slow]):
        while not Path(said).exists() or len(Path(said).read_text()) < 4:
            time.sleep(0.01)
        assert Path(said).read_text() == "1\n2\n"
        assert [ahead.run(task).returncode for task in (slow, needs)] == [1, 2]


@beside
def test_what_computes_stands_back() -> None:
    """But not what has deadlines, nor what somebody runs who would wait for it."""
    command = (sys.executable, "-c", "import os; print(os.sched_getscheduler(0))")
    computes, waits = Task(command), Task(command, computes=False)
    with ahead.running([computes, waits]):
        assert ahead._queue is not None
        while not all(ahead._queue.result(task) for task in (computes, waits)):
            time.sleep(0.01)
        assert ahead.run(computes).output == f"{os.SCHED_IDLE}\n"
        assert ahead.run(waits).output == f"{os.SCHED_OTHER}\n"
    assert ahead.run(computes).output == f"{os.SCHED_OTHER}\n"


def test_what_cannot_run_has_failed() -> None:
    slow = Task((sys.executable, "-c", "import time; print(1, flush=True); time.sleep(60)"), 0.5)
    with ahead.running([Task(("/nowhere",)), slow]):
        assert "No such file" in ahead.run(Task(("/nowhere",))).output
        assert "timed out" in ahead.run(slow).output
