# SPDX-License-Identifier: GPL-2.0-or-later
"""One job: follow it, fetch what it left, end it.

Lives here: Job (a concurrent.futures.Future without a thread of its own), and the exception that a
job's end stands for.
Not here: submitting (submission.py), the layout of the status page (wire/job_status.py), arrays
(job_array.py), asking for many jobs at once (polling.py).

A Job asks the target only when it is asked itself, in the caller's thread.  Callbacks and the
functions of concurrent.futures need a thread that asks.  add_done_callback() and watch() start one
for each target; it ends with the last job watched.
"""

from __future__ import annotations

import html
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Literal

from pyosd import errors
from pyosd.commands import Commands
from pyosd.jobs.advice import advice
from pyosd.jobs.polling import FOLLOW_MOST, Backoff, sleep, watch
from pyosd.jobs.stderr import STDERR_AT, unseen
from pyosd.osd._results import decode
from pyosd.types import AttributeId, AttributeValue, ObjectRef
from pyosd.wire.attributes import Page
from pyosd.wire.job_status import (
    POLL_IDS,
    STATUS_IDS,
    JobFlag,
    JobState,
    JobStatus,
    Number,
    decode_state,
    decode_status,
)
from pyosd.wire.reply import ExecReply

CANCEL, KILL, HOLD, RELEASE = 1, 2, 3, 4
CONTROL = AttributeId(Page.JOB_CONTROL, 1)
RESULT, STDERR, TRACEBACK = 1, 2, 3
_READ_CHUNK = 1 << 20
_FIRST_READ = 16 << 10

Stream = Literal["stdout", "stderr"]


class Job(Future[Any]):
    """A job on a target: a Future, and more.

    result() is what the script gave to osd.result() (bytes, or the value its JSON stands for), or
    None.
    Methods that ask the target raise JobExpired when its record is gone, and what pyosd.commands.unit says.
    """

    def __init__(self, commands: Commands, job: ObjectRef, name: str = "") -> None:
        super().__init__()
        if not isinstance(job, ObjectRef):
            raise TypeError(f"a job's id is an ObjectRef, as ObjectRef.parse makes, not {job!r}")
        self.commands = commands
        self._settle_lock = threading.Lock()
        self._final: JobStatus | None = None
        self._seen: JobState | None = None
        self.member_of: ObjectRef | None = None  # the array, where that is known
        self.label = str(job)  # for people; of a member of an array ARRAY[INDEX]
        self.id = job
        self.name = name

    # ---- how it goes ----------------------------------------------------------------------------

    def status(self) -> JobStatus:
        """Everything the surrogate says, in one round trip (none once the job has ended)."""
        if self._final is not None:
            return self._final
        with self._recorded():
            found = self.commands.get_attributes(self.id, STATUS_IDS)
        status = decode_status(self.id, found)
        if status is None:
            raise self._expired()
        self._seen = status.state
        if status.done:
            self._settle(status)
        return status

    def _require_job(self, refusal: errors.OSDError) -> None:
        """Tell why a control was refused.  Raises: JobExpired: the object is no job's surrogate."""
        if (
            refusal.attributes
            and decode_state(self.commands.get_attributes(self.id, POLL_IDS)) is None
        ):
            raise self._expired() from None

    def _expired(self) -> errors.JobExpired:
        return expired(self.id, self)

    @contextmanager
    def _recorded(self) -> Iterator[None]:
        """A NotFound inside means that the job's record was removed, perhaps since the last
        poll."""
        try:
            yield
        except errors.NotFound:
            raise self._expired() from None

    def poll(self) -> tuple[JobState, float]:
        """State and suggested seconds to the next poll, by the cheapest command there is."""
        if self._final is not None:
            return self._final.state, 0.0
        with self._recorded():
            found = self.commands.poll_job(self.id)
        if found is None:
            raise self._expired()
        return self._take_state(JobState(found.state), found.poll_msec)

    def take_poll(self, found: Iterable[AttributeValue]) -> tuple[JobState, float]:
        """The result of poll(), made from attributes that another command retrieved."""
        found = tuple(found)
        state = decode_state(found)
        if state is None:
            raise self._expired()
        suggested = next((each.uint for each in found if each.number == Number.POLL_INTERVAL), 0)
        return self._take_state(state, suggested)

    def _take_state(self, state: JobState, suggested_msec: int) -> tuple[JobState, float]:
        self._seen = state
        if state.terminal:
            return self.status().state, 0.0
        return state, suggested_msec / 1000

    def progress(self) -> float | None:
        """0.0-1.0 as the script says, None when it does not."""
        return self.status().progress

    def done(self) -> bool:
        """Whether the job has ended (asks the target)."""
        return self.poll()[0].terminal

    def running(self) -> bool:
        """Whether the script runs now (asks the target)."""
        return self.poll()[0] in (JobState.STARTING, JobState.RUNNING, JobState.COMPLETING)

    def cancelled(self) -> bool:
        """Whether the job ended CANCELLED (asks the target)."""
        return self.poll()[0] is JobState.CANCELLED

    # ---- how it ended ----------------------------------------------------------------------------

    def wait(self, timeout: float | None = None) -> JobStatus:
        """Poll until the job has ended.

        Args: timeout: seconds, None: for ever.
        Raises: TimeoutError: it goes on.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        backoff = Backoff()
        while True:
            state, suggested = self.poll()
            if state.terminal:
                return self.status()
            sleep(backoff.next(suggested), deadline, self)

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the end and return the script's result, None when it left none.

        Raises: TimeoutError: it goes on; ScriptError, JobCancelled, JobTimeout, JobOutOfMemory,
            LimitExceeded, SandboxLost: how else it ended.
        """
        self.wait(timeout)
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the end and return how it failed, None when it COMPLETED.

        Raises: TimeoutError: it goes on.
        """
        self.wait(timeout)
        return super().exception(0)

    def traceback(self) -> str:
        """Traceback of the exception that ended the script, "" when there was none."""
        return self._payload(TRACEBACK).decode("utf-8", "replace")

    def usage(self) -> dict[str, float]:
        """The resources that it has used: seconds and bytes by name."""
        status = self.status()
        return {
            "queue_seconds": status.queue_time,
            "run_seconds": status.run_time,
            "cpu_user_seconds": status.cpu_user,
            "cpu_system_seconds": status.cpu_system,
            "peak_memory_bytes": status.peak_memory,
            "read_bytes": status.bytes_read,
            "written_bytes": status.bytes_written,
            "calls": status.calls,
        }

    def _payload(self, number: int) -> bytes:
        with self._recorded():
            return self.commands.get_attribute(self.id, Page.JOB_PAYLOAD, number)

    def take_reply(self, reply: ExecReply) -> Job:
        """Learn what a waiting EXEC's answer says of the end: then nothing more need be asked."""
        status = decode_status(self.id, reply.attributes)
        if status is not None and status.done:
            whole = not status.result_object and status.result_length <= len(reply.result)
            self._settle(status, bytes(reply.result[: status.result_length]) if whole else None)
        return self

    def take_end(self, found: Iterable[AttributeValue]) -> Job:
        """Learn the end from attributes that another command brought, result included; without any
        the record is gone.
        """
        found = tuple(found)
        status = decode_status(self.id, found)
        if status is None:
            self.lose(self._expired())
        elif status.done:
            results = (each.value for each in found if each.page == Page.JOB_PAYLOAD)
            data = next(results, b"")
            whole = not status.result_object and len(data) == status.result_length
            self._settle(status, data if whole else None)
        return self

    def _fetch_result(self, status: JobStatus) -> bytes:
        if status.result_object:
            with self._recorded():
                return b"".join(_read_from(self.commands, status.result_object, 0))
        return self._payload(RESULT) if status.result_length else b""

    def _settle(self, status: JobStatus, result: bytes | None = None) -> None:
        """The job has ended: make the Future say so, once.  result: None: still to be fetched."""
        with self._settle_lock:
            if self._final is not None:
                return
            error = None if status.state is JobState.COMPLETED else self._error(status)
            value = None
            if error is None:
                data = self._fetch_result(status) if result is None else result
                value = decode_result(status, data)
            self._final = status
            lost = self.settled
        if lost:
            return
        if error is not None:
            self.set_exception(error)
        else:
            self.set_result(value)

    @property
    def settled(self) -> bool:
        """Whether the Future has its end, without asking the target."""
        return super().done()

    def lose(self, error: BaseException) -> None:
        """Nobody can say how the job ends: let the Future say that."""
        with self._settle_lock:
            if not self.settled:
                self.set_exception(error)

    def _error(self, status: JobStatus) -> errors.JobError:
        raised = status.state is JobState.FAILED and status.reason // 100 == 2
        return job_error(self, status, self.traceback() if raised else "")

    # ---- output ----------------------------------------------------------------------------------

    def iter_output(self, *, follow: bool = False, start: int = 0) -> Iterator[bytes]:
        """Standard output, as it is stored, from a byte on.

        Args: follow: go on until the job has ended; else stop at what is there now.
        Yields: 1 byte to 1 MiB at a time.
        """
        at, backoff = start, Backoff(FOLLOW_MOST)
        while True:
            state, suggested = self.poll() if follow else (JobState.COMPLETED, 0.0)
            for piece in _read_from(self.commands, self.id, at):
                at += len(piece)
                backoff = Backoff(FOLLOW_MOST)
                yield piece
            if state.terminal:
                return
            time.sleep(backoff.next(suggested))

    def output(self) -> bytes:
        """All of standard output up to now."""
        return b"".join(self.iter_output())

    def stderr(self) -> bytes:
        """Standard error up to now; of more than 60 KiB the first 20 and the last 40."""
        return self._payload(STDERR)

    def iter_stderr(self, *, follow: bool = False, start: int = 0) -> Iterator[bytes]:
        """Standard error as far as it is kept, from a byte on.

        Args: follow: go on until the job has ended; else stop at what is there now.
        Yields: 1 byte to 60 KiB at a time; a line tells of bytes that were not kept.
        """
        at, backoff = start, Backoff(FOLLOW_MOST)
        while True:
            state, suggested = self.poll() if follow else (JobState.COMPLETED, 0.0)
            now, piece = unseen(self._payload(STDERR_AT), at)
            if now > at:
                at, backoff = now, Backoff(FOLLOW_MOST)
                yield piece
            if state.terminal:
                return
            time.sleep(backoff.next(suggested))

    def logs(self, *, follow: bool = False, stream: Stream = "stdout") -> Iterator[str]:
        """Lines of output without their ends, undecodable bytes replaced.

        Args: follow: go on until the job has ended.
        """
        pieces = (self.iter_output if stream == "stdout" else self.iter_stderr)(follow=follow)
        rest = b""
        for piece in pieces:
            *lines, rest = (rest + piece).split(b"\n")
            yield from (line.decode("utf-8", "replace") for line in lines)
        if rest:
            yield rest.decode("utf-8", "replace")

    # ---- control ---------------------------------------------------------------------------------

    def _control(self, action: int) -> JobState:
        """Set the control attribute and read, in the same command, the state that won."""
        values = [AttributeValue(CONTROL.page, CONTROL.number, bytes([action]))]
        try:
            with self._recorded():
                state = decode_state(self.commands.set_attributes(self.id, values, POLL_IDS))
        except errors.OSDError as error:
            self._require_job(error)
            raise
        if state is None:
            raise self._expired()
        return self.status().state if state.terminal else state

    def cancel(self) -> bool:
        """End the job if it has not started.  Returns: whether it is CANCELLED now."""
        return self._final is None and self._control(CANCEL) is JobState.CANCELLED

    def kill(self, timeout: float = 10.0) -> JobState:
        """End the job for sure.

        Returns: the state that won: CANCELLED, or what it had come to before.
        Raises: TimeoutError: the target did not end it in time.
        """
        if self._final is None and not self._control(KILL).terminal:
            self.wait(timeout)
        return self.status().state

    def hold(self) -> JobState:
        """Keep a queued job from starting.  Raises: Conflict: it has started."""
        return self._control(HOLD)

    def release(self) -> JobState:
        """Let a held job start.  Raises: Conflict: it is not held."""
        return self._control(RELEASE)

    def remove(self) -> None:
        """Remove the surrogate: record, output, result.  Raises: Conflict: the job goes on."""
        status = self.status()
        if status.result_object:
            self.commands.remove(status.result_object)
        self.commands.remove(self.id)

    # ---- being a Future --------------------------------------------------------------------------

    def watch(self) -> Job:
        """Have a thread ask for this job, so that functions of concurrent.futures see it end."""
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
        seen = self._final.state if self._final else self._seen
        state = "not asked for yet" if seen is None else seen.name
        name = f" {self.name!r}" if self.name else ""
        return f"<Job {self.id}{name} {state}>"

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


_ERRORS: Mapping[JobState, type[errors.JobError]] = {
    JobState.CANCELLED: errors.JobCancelled,
    JobState.TIMEOUT: errors.JobTimeout,
    JobState.OUT_OF_MEMORY: errors.JobOutOfMemory,
    JobState.LIMIT_EXCEEDED: errors.LimitExceeded,
    JobState.SANDBOX_LOST: errors.SandboxLost,
}


def decode_result(status: JobStatus, data: bytes) -> Any:
    """The argument of osd.result(): bytes, the value of its JSON, or None without a result.

    A script may mark anything as JSON.  A result that is none, or is nested too deep, is returned as bytes.
    """
    if not status.result_length:
        return None
    if not status.flags & JobFlag.RESULT_JSON:
        return data
    try:
        return decode(data)
    except (ValueError, RecursionError):
        return data


def expired(job: ObjectRef, followed: Job | None = None) -> errors.JobExpired:
    """There is no job of that id."""
    hint = "osd ps lists the jobs there are; a record that was removed or expired is gone for good"
    return errors.JobExpired(followed, 0, hint, f"{job} is no job, or its record is gone")


def job_error(job: Job | None, status: JobStatus, traceback: str) -> errors.JobError:
    """The exception for a job that did not end COMPLETED."""
    label = status.reason_label or f"reason {status.reason}"
    text = f"job {status.id} ended {status.state.name}: {label}"
    by_itself = status.state is JobState.FAILED and status.reason // 100 == 2
    if status.message and (by_itself or status.started is None):
        text += f": {status.message}"  # the exception, or the target's words
    hint = advice(status.message) or status.hint
    if hint:
        text += f" ({hint})"
    if by_itself:
        return errors.ScriptError(
            job,
            status.reason,
            hint,
            text,
            remote_traceback=traceback,
            exit_code=status.exit_code,
        )
    kind = _ERRORS.get(status.state, errors.JobError)
    return kind(job, status.reason, hint, text)


def _read_from(commands: Commands, obj: ObjectRef, at: int) -> Iterator[bytes]:
    """The bytes of an object from an offset to its end, in pieces that begin short.

    A target sends zeros for what it is asked beyond the end, so a poll of new output asks for little.
    """
    want = _FIRST_READ
    while True:
        piece = bytes(commands.read(obj, at, want))
        if piece:
            yield piece
        if len(piece) < want:
            return
        at += want
        want = min(2 * want, _READ_CHUNK)
