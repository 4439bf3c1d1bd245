# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that the run needs as they are: builds with sanitizers, C unit tests, fuzzing.

Most tests wait for a target half of their time.  Meanwhile a process of lower priority goes through
the tasks of all tests selected, in their order, on all processors but one: sandboxes get what nobody
else wants, and those of the other tests would starve without it.  For the same reason tasks that
compute, builds on several processors among them, have no more of a claim than sandboxes.  A test
whose task it has not begun runs that itself, one whose task it has begun waits, so each runs once.  A
failure is told by the test it belongs to.

Lives here: tasks, who runs them, the process (``python -m tests.ahead FOLDER``).
Not here: which test needs what: markers `is_task` and `after_task` say it (tests/README.md).
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.processes import long_lived

ROOT = Path(__file__).resolve().parents[1]
NICE = 10
POLL_S = 0.005


@dataclass(frozen=True)
class Task:
    """A program that takes nothing from standard input.

    limit_s: what it may take; then it is killed, and has failed.  Whatever wants the processor goes
        before it: only what hangs comes to that.
    folder: where it runs; None: in an empty one.
    needs: what has ended before it begins; None: nothing.
    computes: has no deadlines within, and so may wait for whatever else wants the processor.
    """

    command: tuple[str, ...]
    limit_s: float = 900.0
    folder: Path | None = None
    needs: Task | None = None
    computes: bool = True

    def run(self, empty: Path, *, aside: bool = False) -> Done:
        """Run it, here and now; aside: other tests run meanwhile."""
        empty.mkdir(exist_ok=True)
        last = ("chrt", "--idle", "0") if aside and self.computes else ()
        try:
            done = subprocess.run(
                (*last, *self.command),
                cwd=self.folder or empty,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=self.limit_s,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return Done(-1, f"{self.command}: {error}")
        return Done(done.returncode, done.stdout)


@dataclass(frozen=True)
class Done:
    """What a task came to: as a program ends, and all it printed."""

    returncode: int
    output: str


class Queue:
    """Tasks with a folder in which whoever runs one says so first, and then what it came to."""

    def __init__(self, folder: Path, tasks: tuple[Task, ...]) -> None:
        self.folder = folder
        self.tasks = tasks

    def claim(self, task: Task) -> bool:
        """Whether it is ours to run."""
        try:
            self.path(task, "claimed").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def run(self, task: Task, *, aside: bool = False) -> Done:
        """Run what was claimed."""
        done = task.run(self.path(task, "folder"), aside=aside)
        new = self.path(task, "new")
        new.write_bytes(pickle.dumps(done))
        new.rename(self.path(task, "done"))
        return done

    def result(self, task: Task) -> Done | None:
        """What it came to; None: it has not ended."""
        try:
            done: Done = pickle.loads(self.path(task, "done").read_bytes())
        except FileNotFoundError:
            return None
        return done

    def path(self, task: Task, kind: str) -> Path:
        return self.folder / f"{self.tasks.index(task)}.{kind}"


_queue: Queue | None = None
_worker: subprocess.Popen[bytes] | None = None


def run(task: Task) -> Done:
    """What a task came to; it is run now unless it was before, or somebody is about it."""
    if _queue is None or task not in _queue.tasks:
        with tempfile.TemporaryDirectory() as folder:
            return task.run(Path(folder))
    if _queue.claim(task):
        return _queue.run(task)
    while (done := _queue.result(task)) is None:
        assert _worker is not None and _worker.poll() is None, "who ran the task has died"
        time.sleep(POLL_S)
    return done


@contextmanager
def running(tasks: Iterable[Task]) -> Iterator[None]:
    """Have tasks run in the background, where there is a processor for it."""
    global _queue, _worker  # noqa: PLW0603 -- one test run, one worker
    wanted = tuple(dict.fromkeys(tasks))
    with tempfile.TemporaryDirectory(prefix="iosd-ahead.") as folder:
        _queue = Queue(Path(folder), wanted)
        (Path(folder) / "tasks").write_bytes(pickle.dumps(wanted))
        if len(wanted) > 1 and len(os.sched_getaffinity(0)) > 1:
            _worker = subprocess.Popen(
                [sys.executable, "-m", "tests.ahead", folder],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
            long_lived.add(_worker.pid)
        try:
            yield
        finally:
            _queue = None
            if _worker is not None:
                if _worker.poll() is None:
                    os.killpg(_worker.pid, signal.SIGKILL)
                _worker.wait()
                long_lived.discard(_worker.pid)
                _worker = None


def in_order(tasks: Iterable[Task]) -> list[Task]:
    """Each after what it needs, so that one worker is enough."""
    found: dict[Task, None] = {}
    for task in tasks:
        chain = [task]
        while (needed := chain[-1].needs) is not None:
            chain.append(needed)
        found |= dict.fromkeys(reversed(chain))
    return list(found)


def main(folder: Path) -> None:
    """Go through the tasks, until the test run is gone."""
    parent = os.getppid()
    os.nice(NICE)
    queue = Queue(folder, pickle.loads((folder / "tasks").read_bytes()))

    def do(task: Task) -> None:
        while task.needs in queue.tasks and queue.result(task.needs) is None:
            time.sleep(POLL_S)
        if os.getppid() == parent and queue.claim(task):
            queue.run(task, aside=True)

    with ThreadPoolExecutor(max(1, len(os.sched_getaffinity(0)) - 1)) as workers:
        list(workers.map(do, (each for each in in_order(queue.tasks) if each in queue.tasks)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
