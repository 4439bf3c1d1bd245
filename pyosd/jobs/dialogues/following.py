# SPDX-License-Identifier: GPL-2.0-or-later
"""Dialogues of one job: how it goes, how it ended, its output, and its control.

The text of each is that of the method of Job and AsyncJob.  Methods raise JobExpired when the job's
record is gone, and what pyosd.commands.unit says.
Not here: asking for many jobs at once (rounds.py), arrays (arrays.py), the objects that a job has used
(origins.py).
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import partial
from typing import Literal, TypeVar, get_args

from pyosd import errors
from pyosd.commands.attributes import get_attribute, get_attributes, set_attributes
from pyosd.commands.data import read, read_range
from pyosd.commands.dialogue import (
    Dialogue,
    Stream,
    StreamItem,
    collected,
    own_way,
    sleep,
    transformed,
)
from pyosd.commands.execute import poll_job
from pyosd.commands.objects import remove as remove_object
from pyosd.jobs.dialogues.followed import (
    FOLLOW_MOST,
    Backoff,
    Followed,
    decode_result,
    expired,
    job_error,
)
from pyosd.jobs.dialogues.stderr import STDERR_AT, unseen
from pyosd.types import AttributeId, AttributeValue
from pyosd.wire.attributes import Page
from pyosd.wire.job_status import (
    POLL_IDS,
    STATUS_IDS,
    JobFlag,
    JobState,
    JobStatus,
    decode_state,
    decode_status,
)
from pyosd.wire.reply import ExecReply

CANCEL, KILL, HOLD, RELEASE = 1, 2, 3, 4
CONTROL = AttributeId(Page.JOB_CONTROL, 1)
RESULT, STDERR, TRACEBACK = 1, 2, 3
_READ_CHUNK = 1 << 20
_FIRST_READ = 16 << 10
_RESULT_MOST = 1 << 30  # docs/limits.md
_AT_ONCE = JobState.COMPLETED, 0.0  # instead of a poll

R = TypeVar("R")
OutputStream = Literal["stdout", "stderr"]


# ---- how it goes ---------------------------------------------------------------------------------


def status(job: Followed) -> Dialogue[JobStatus]:
    """The status of the job, by one command; after its end by none."""
    if job.final is not None:
        return job.final
    found = yield from recorded(job, get_attributes(job.id, STATUS_IDS))
    now = decode_status(job.id, found)
    if now is None:
        raise expired(job.id, job)
    job.see(now.state)
    if now.done:
        yield from settle(job, now)
    return now


def recorded(job: Followed, dialogue: Dialogue[R]) -> Dialogue[R]:
    """A NotFound inside means that the job's record was removed, perhaps since the last poll."""
    try:
        return (yield from dialogue)
    except errors.NotFound:
        raise expired(job.id, job) from None


def poll(job: Followed) -> Dialogue[tuple[JobState, float]]:
    """The state, and the suggested seconds to the next poll, by the cheapest command."""
    state, suggested, _ = yield from _poll_attempt(job)
    return state, suggested


def _poll_attempt(job: Followed) -> Dialogue[tuple[JobState, float, int]]:
    """As poll(), and the number of the attempt."""
    if job.final is not None:
        return job.final.state, 0.0, job.final.attempt
    found = yield from recorded(job, poll_job(job.commands, job.id))
    if found is None:
        raise expired(job.id, job)
    state = JobState(found.state)
    job.see(state)
    if state.terminal:
        now = yield from status(job)
        return now.state, 0.0, now.attempt
    return state, found.poll_msec / 1000, found.attempt


def progress(job: Followed) -> Dialogue[float | None]:
    """The progress that the script reports, 0.0 to 1.0; None: it reports none."""
    return (yield from status(job)).progress


def done(job: Followed) -> Dialogue[bool]:
    """Whether the job has ended (asks the target)."""
    return (yield from poll(job))[0].terminal


def running(job: Followed) -> Dialogue[bool]:
    """Whether the script runs now (asks the target)."""
    state = (yield from poll(job))[0]
    return state in (JobState.STARTING, JobState.RUNNING, JobState.COMPLETING)


def cancelled(job: Followed) -> Dialogue[bool]:
    """Whether the job ended CANCELLED (asks the target)."""
    return (yield from poll(job))[0] is JobState.CANCELLED


# ---- how it ended --------------------------------------------------------------------------------


def wait(job: Followed, timeout: float | None = None) -> Dialogue[JobStatus]:
    """Wait until the job has ended.

    Args:
        timeout: seconds; None: no limit. A command under way is not cut short: while a lost session is
            opened again, a Job can wait reconnect_timeout longer (connect()).

    Raises: TimeoutError: it has not ended.
    """
    if job.final is None:
        yield from own_way(partial(job.wait_for_end, timeout))
    return (yield from status(job))


def poll_until_ended(job: Followed, timeout: float | None) -> Dialogue[None]:
    """Poll one job until it has ended.  Raises: TimeoutError."""
    deadline = None if timeout is None else time.monotonic() + timeout
    backoff = Backoff()
    while True:
        state, suggested = yield from poll(job)
        if state.terminal:
            return
        yield from sleep(backoff.next(suggested), deadline, job)


def traceback(job: Followed) -> Dialogue[str]:
    """The traceback of the exception that ended the script; "": there was none."""
    return (yield from payload(job, TRACEBACK)).decode("utf-8", "replace")


def usage(job: Followed) -> Dialogue[dict[str, float]]:
    """The resources that it has used: seconds and bytes by name."""
    now = yield from status(job)
    return {
        "queue_seconds": now.queue_time,
        "run_seconds": now.run_time,
        "cpu_user_seconds": now.cpu_user,
        "cpu_system_seconds": now.cpu_system,
        "peak_memory_bytes": now.peak_memory,
        "read_bytes": now.bytes_read,
        "written_bytes": now.bytes_written,
        "calls": now.calls,
    }


def payload(job: Followed, number: int) -> Dialogue[bytes]:
    """An attribute of the job's payload page."""
    return (yield from recorded(job, get_attribute(job.id, Page.JOB_PAYLOAD, number)))


def take_reply(job: Followed, reply: ExecReply) -> Dialogue[None]:
    """Learn the end from the answer of a waiting EXEC: then nothing more need be asked."""
    now = decode_status(job.id, reply.attributes)
    if now is not None and now.done:
        whole = not now.result_object and now.result_length <= len(reply.result)
        yield from settle(job, now, bytes(reply.result[: now.result_length]) if whole else None)


def take_end(job: Followed, found: Iterable[AttributeValue]) -> Dialogue[None]:
    """Learn the end from attributes that another command brought, result included; without any
    the record is gone.
    """
    found = tuple(found)
    now = decode_status(job.id, found)
    if now is None:
        job.lose(expired(job.id, job))
    elif now.done:
        results = (each.value for each in found if each.page == Page.JOB_PAYLOAD)
        data = next(results, b"")
        whole = not now.result_object and len(data) == now.result_length
        yield from settle(job, now, data if whole else None)


def settle(job: Followed, now: JobStatus, result: bytes | None = None) -> Dialogue[None]:
    """The job has ended: fetch what is to be known of that.  result: None: still to be fetched."""
    if job.final is not None:
        return
    if now.state is JobState.COMPLETED:
        job.cached_result |= JobFlag.ANSWERED in now.flags
        data = (yield from _fetch_result(job, now)) if result is None else result
        job.end(now, decode_result(now, data), None)
        return
    raised = now.state is JobState.FAILED and now.reason // 100 == 2
    job.end(now, None, job_error(job, now, (yield from traceback(job)) if raised else ""))


def _fetch_result(job: Followed, now: JobStatus) -> Dialogue[bytes]:
    if now.result_length > _RESULT_MOST:
        raise errors.ProtocolError(f"job {job.id}: a result of {now.result_length} bytes")
    if now.result_object:
        whole = read_range(now.result_object, 0, now.result_length)
        return bytes((yield from recorded(job, whole)))
    return (yield from payload(job, RESULT)) if now.result_length else b""


# ---- output --------------------------------------------------------------------------------------


class _AttemptWatch:
    """Polls, and notices that the target runs a job again.  It has discarded the output up to then.

    new: the last poll has seen a later attempt than the one before.
    """

    def __init__(self) -> None:
        self.last, self.new = 0, False

    def poll(self, job: Followed) -> Dialogue[tuple[JobState, float]]:
        state, suggested, attempt = yield from _poll_attempt(job)
        self.last, self.new = attempt, self.last not in (0, attempt)
        return state, suggested


def iter_output(job: Followed, *, follow: bool = False, start: int = 0) -> Stream[bytes]:
    """Standard output as it is stored, from byte start on.

    Args:
        follow: wait for more until the job has ended; if False, stop at the present end.  If the target
            runs the job again, the output of the new attempt follows, from byte start on.

    Yields: 1 byte to 1 MiB at a time.
    """
    yield from _iter_output(job, follow, start, _AttemptWatch())


def _iter_output(job: Followed, follow: bool, start: int, attempts: _AttemptWatch) -> Stream[bytes]:
    at, backoff = start, Backoff(FOLLOW_MOST)
    while True:
        state, suggested = (yield from attempts.poll(job)) if follow else _AT_ONCE
        if attempts.new:
            at = start
        want = (
            _FIRST_READ  # a target sends zeros beyond the end: a poll of new output asks for little
        )
        while True:
            piece = bytes((yield from recorded(job, read(job.id, at, want))))
            if piece:
                at, backoff = at + len(piece), Backoff(FOLLOW_MOST)
                yield StreamItem(piece)
            if len(piece) < want:
                break
            want = min(2 * want, _READ_CHUNK)
        if state.terminal:
            return
        yield from sleep(backoff.next(suggested), None, job)


def output(job: Followed) -> Dialogue[bytes]:
    """All of standard output up to now."""
    return b"".join((yield from collected(iter_output(job))))


def stderr(job: Followed) -> Dialogue[bytes]:
    """Standard error up to now; if it has more than 60 KiB, the first 20 and the last 40."""
    return (yield from payload(job, STDERR))


def iter_stderr(job: Followed, *, follow: bool = False, start: int = 0) -> Stream[bytes]:
    """Standard error as far as it is kept, from byte start on.

    Args:
        follow: as of iter_output().

    Yields: 1 byte to 60 KiB at a time; a line says how many bytes were not kept.
    """
    yield from _iter_stderr(job, follow, start, _AttemptWatch())


def _iter_stderr(job: Followed, follow: bool, start: int, attempts: _AttemptWatch) -> Stream[bytes]:
    at, backoff = start, Backoff(FOLLOW_MOST)
    while True:
        state, suggested = (yield from attempts.poll(job)) if follow else _AT_ONCE
        if attempts.new:
            at = start
        now, piece = unseen((yield from payload(job, STDERR_AT)), at)
        if now > at:
            at, backoff = now, Backoff(FOLLOW_MOST)
            yield StreamItem(piece)
        if state.terminal:
            return
        yield from sleep(backoff.next(suggested), None, job)


class _Lines:
    """Cuts pieces of text into lines.  A new attempt begins a line."""

    def __init__(self, attempts: _AttemptWatch) -> None:
        self.rest, self.attempts, self.attempt = b"", attempts, 0

    def feed(self, piece: bytes) -> list[str]:
        if self.rest and self.attempt != self.attempts.last:
            self.rest += b"\n"
        self.attempt = self.attempts.last
        *lines, self.rest = (self.rest + piece).split(b"\n")
        return [line.decode("utf-8", "replace") for line in lines]


def logs(job: Followed, *, follow: bool = False, stream: OutputStream = "stdout") -> Stream[str]:
    """Lines of output, without their ends; bytes that are not UTF-8 are replaced.

    Args:
        follow: as of iter_output().

    Raises: ValueError: there is no such stream.
    """
    if stream not in get_args(OutputStream):
        raise ValueError(f"stream is {' or '.join(get_args(OutputStream))}, not {stream!r}")
    attempts = _AttemptWatch()
    lines = _Lines(attempts)
    pieces = (_iter_output if stream == "stdout" else _iter_stderr)(job, follow, 0, attempts)
    yield from transformed(pieces, lines.feed)
    if lines.rest:
        yield StreamItem(lines.rest.decode("utf-8", "replace"))


# ---- control -------------------------------------------------------------------------------------


def control(job: Followed, action: int) -> Dialogue[JobState]:
    """Set the control attribute and read, in the same command, the state that won."""
    values = [AttributeValue(CONTROL.page, CONTROL.number, bytes([action]))]
    try:
        found = yield from recorded(job, set_attributes(job.id, values, POLL_IDS))
    except errors.OSDError as error:  # an object that is no surrogate refuses the attribute, too
        if error.attributes and decode_state((yield from get_attributes(job.id, POLL_IDS))) is None:
            raise expired(job.id, job) from None
        raise
    state = decode_state(found)
    if state is None:
        raise expired(job.id, job)
    return (yield from status(job)).state if state.terminal else state


def cancel(job: Followed) -> Dialogue[bool]:
    """End the job if it has not started.  Returns: whether it is CANCELLED now."""
    if job.final is not None:
        return job.final.state is JobState.CANCELLED
    return (yield from control(job, CANCEL)) is JobState.CANCELLED


def kill(job: Followed, timeout: float = 10.0) -> Dialogue[JobState]:
    """End the job, and wait until it has ended.

    Returns: its state: CANCELLED, or that in which it had ended before.
    Raises: TimeoutError: the target did not end it in time.
    """
    if job.final is None and not (yield from control(job, KILL)).terminal:
        yield from wait(job, timeout)
    return (yield from status(job)).state


def hold(job: Followed) -> Dialogue[JobState]:
    """Keep a queued job from starting.  Raises: Conflict: it has started."""
    return (yield from control(job, HOLD))


def release(job: Followed) -> Dialogue[JobState]:
    """Let a held job start.  Raises: Conflict: it is not held."""
    return (yield from control(job, RELEASE))


def remove(job: Followed) -> Dialogue[None]:
    """Remove the surrogate: record, output, result.  Raises: Conflict: the job has not ended."""
    now = yield from status(job)
    if now.result_object:
        yield from remove_object(now.result_object)
    yield from remove_object(job.id)
