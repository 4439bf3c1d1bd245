# SPDX-License-Identifier: GPL-2.0-or-later
"""Job: a job for threads, which is a concurrent.futures.Future without a thread of its own.

A Job asks the target only when it is asked itself, in the caller's thread.  Callbacks and the
functions of concurrent.futures need a thread that asks.  add_done_callback() and watch() start one
for each target; it ends with the last job watched.
Not here: what most methods do (dialogues/following.py), submitting (submission.py), arrays
(job_array.py), asking for many jobs at once (polling.py).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, TypeVar

from pyosd import errors
from pyosd.commands import Commands
from pyosd.commands.dialogue import Blocking, Dialogue, Stream
from pyosd.forks import after_fork
from pyosd.jobs.dialogues import following
from pyosd.jobs.dialogues.followed import Followed
from pyosd.jobs.dialogues.job_table import JobTable
from pyosd.jobs.polling import watch
from pyosd.types import ObjectRef
from pyosd.wire.job_status import JobState, JobStatus

__all__ = ["Job", "html_table"]

R = TypeVar("R")


class Job(JobTable, Followed, Blocking, Future[Any]):
    """A job on a target: a Future whose done(), running() and cancelled() ask the target.

    result() returns what the script passed to osd.result(): bytes, or the value of its JSON; None: nothing.
    Methods that ask the target raise JobExpired if the record of the job was removed, and what
    pyosd.commands.unit says.
    """

    commands: Commands

    def __init__(self, commands: Commands, job: ObjectRef, name: str = "") -> None:
        Future.__init__(self)
        Followed.__init__(self, commands, job, name)
        self._settle_lock = threading.Lock()
        self._told = False  # the Future has its end, or a thread is about to give it
        after_fork(self, Job._renew)

    def _renew(self) -> None:
        """Have locks that no thread of the parent holds, and wait for none of them (pyosd.forks)."""
        self._settle_lock = threading.Lock()
        self._condition = threading.Condition()
        self._waiters = []
        if not self.settled:  # a thread of the parent may have been about to give the end
            self._final, self._told = None, False

    def carry(self, dialogue: Dialogue[R]) -> R:
        return self.commands.carry(dialogue)

    def carry_stream(self, stream: Stream[R]) -> Iterator[R]:
        return self.commands.carry_stream(stream)

    # ---- as a Future's methods, but they ask the target -----------------------------------------

    def done(self) -> bool:
        """Whether the job has ended (asks the target)."""
        return self.carry(following.done(self))

    def running(self) -> bool:
        """Whether the script runs now (asks the target)."""
        return self.carry(following.running(self))

    def cancelled(self) -> bool:
        """Whether the job ended CANCELLED (asks the target)."""
        return self.carry(following.cancelled(self))

    def cancel(self) -> bool:
        """End the job if it has not started.  Returns: whether it is CANCELLED now."""
        return self.carry(following.cancel(self))

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the end and return the script's result; None: it has none.

        Raises: TimeoutError: the job has not ended; ScriptError, JobCancelled, JobTimeout,
            JobOutOfMemory, LimitExceeded, SandboxLost: how it failed.
        """
        self.wait(timeout)
        return Future.result(self)  # its end is known; another thread may be telling it

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the end and return how the job failed; None: it COMPLETED.

        Raises: TimeoutError: the job has not ended.
        """
        self.wait(timeout)
        return Future.exception(self)

    def wait_for_end(self, timeout: float | None) -> None:
        """Poll until the job has ended: wait() without its answer."""
        self.carry(following.poll_until_ended(self, timeout))

    # ---- its end --------------------------------------------------------------------------------

    def end(self, status: JobStatus, value: Any, error: errors.JobError | None) -> None:
        """Give the Future the end of the job.  Only the first call counts."""
        with self._settle_lock:
            if self._final is not None:
                return
            self._final = status
            first, self._told = not self._told, True
        if not first:
            return
        if error is not None:
            self.set_exception(error)
        else:
            self.set_result(value)

    @property
    def settled(self) -> bool:
        """Whether the end of the job is known here.  Nothing is sent."""
        return Future.done(self)

    def settled_outcome(self) -> tuple[Any, BaseException | None]:
        """The result, and the exception in its place.  Call it only if settled."""
        error = Future.exception(self, 0)
        return None if error else Future.result(self, 0), error

    def lose(self, error: BaseException) -> None:
        """Give the Future an error, because the end of the job cannot be found out."""
        with self._settle_lock:
            first, self._told = not self._told, True
        if first:  # callbacks run without the lock: they may ask for the job
            self.set_exception(error)

    # ---- being a Future -------------------------------------------------------------------------

    def watch(self) -> Job:
        """Let a thread poll this job, so that concurrent.futures.wait() and others see its end."""
        if self._final is None:
            watch(self)
        return self

    def add_done_callback(self, fn: Callable[[Future[Any]], object]) -> None:
        """Call fn(job) when the job has ended, from a thread of pyosd."""
        super().add_done_callback(fn)
        self.watch()

    def set_running_or_notify_cancel(self) -> bool:
        """Not for jobs: the target decides.  Raises: RuntimeError."""
        raise RuntimeError("a job's state is the target's to say")

    def __repr__(self) -> str:
        return self.describe("Job")

    def _repr_html_(self) -> str:
        """One small table; asks the target.  Never raises: a notebook shall show what there is."""
        try:
            return html_table(self.status())
        except (errors.OSDError, errors.JobError) as error:
            return (
                f"<table><tr><th>job</th><td>{self.id}</td></tr>{_row('state', str(error))}</table>"
            )


_COLOURS = {JobState.COMPLETED: "#2a7", JobState.QUEUED: "#a70", JobState.HELD: "#a70"}


def _row(key: str, text: str) -> str:
    import html

    return f"<tr><th>{key}</th><td>{html.escape(text)}</td></tr>"


def html_table(status: JobStatus) -> str:
    """A job for notebooks: state by colour and word, a bar only where the script says how far it is."""
    colour = _COLOURS.get(status.state, "#c33" if status.done else "#27c")
    word = f'<b style="color:{colour}">{status.state.name}</b>'
    rows = _row("job", f"{status.id} {status.name}".rstrip())
    rows += f"<tr><th>state</th><td>{word}</td></tr>"
    if status.progress is not None:
        share = f"{status.progress:.0%}"
        bar = f'<progress value="{status.progress:.3f}" max="1">{share}</progress> {share}'
        rows += f"<tr><th>progress</th><td>{bar}</td></tr>"
    if status.message:
        rows += _row("says", status.message)
    if status.reason_label:
        rows += _row("reason", f"{status.reason} {status.reason_label}")
    return f"<table>{rows}{_row('run', f'{status.run_time:.3f} s')}</table>"
