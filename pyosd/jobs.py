# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs: submit code with EXEC, follow it, fetch what it left, end it.

Lives here: Job (a concurrent.futures.Future without a thread of its own), waiting for many.
Not here: the status page's layout (job_status.py), what is sent for a function (_source.py).

A Job asks the target only when it is asked itself, in the caller's thread.  Callbacks and the
functions
of concurrent.futures need somebody who asks: add_done_callback() and watch() start one thread per
target for that, which ends with the last job watched.
"""

from __future__ import annotations

import html
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Literal, TypedDict, Unpack

from pyosd import errors
from pyosd._advice import advice
from pyosd._polling import FOLLOW_MOST, JOBS_COLLECTION, Backoff, sleep, watch
from pyosd._refusal import explain_refusal
from pyosd._source import (
    Code,
    call_arguments,
    code_bytes,
    code_name,
    encode_args,
    is_bytecode,
    pack,
)
from pyosd._stderr import STDERR_AT, unseen
from pyosd.attributes import Page
from pyosd.commands import Commands
from pyosd.credentials import JOB_RIGHTS, Permission
from pyosd.exec_params import (
    After,
    ArgsEncoding,
    Duration,
    ExecFlag,
    ExecParams,
    Limits,
    parse_duration,
)
from pyosd.job_status import (
    POLL_IDS,
    STATUS_IDS,
    JobFlag,
    JobState,
    JobStatus,
    Number,
    decode_state,
    decode_status,
)
from pyosd.reply import ExecReply
from pyosd.types import AttributeId, AttributeValue, ObjectAttributes, ObjectRef, ref

CANCEL, KILL, HOLD, RELEASE = 1, 2, 3, 4
CONTROL = AttributeId(Page.JOB_CONTROL, 1)
RESULT, STDERR, TRACEBACK = 1, 2, 3
_WAIT_MARGIN = 30.0
_READ_CHUNK = 1 << 20
_INLINE_RESULT = 4096  # room a waiting EXEC makes for the result

Stream = Literal["stdout", "stderr"]


class Job(Future[Any]):
    """A job on a target: a Future, and more.

    result() is what the script gave to osd.result() (bytes, or the value its JSON stands for), or
    None.
    Methods that ask the target raise JobExpired when its record is gone, and what commands.py says.
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

    def _expired(self) -> errors.JobExpired:
        return expired(self.id, self)

    @contextmanager
    def _recorded(self) -> Iterator[None]:
        """What is asked for inside goes with the job's record: since it was seen last, maybe."""
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
        """What poll() makes of attributes that another command brought."""
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

    # ---- how it ended
    # ------------------------------------------------------------------------------

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
        """What it used up to now: seconds and bytes by name."""
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

    # ---- output
    # ------------------------------------------------------------------------------------

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

    # ---- control
    # -----------------------------------------------------------------------------------

    def _control(self, action: int) -> JobState:
        """Set the control attribute and read, in the same command, the state that won."""
        values = [AttributeValue(CONTROL.page, CONTROL.number, bytes([action]))]
        with self._recorded():
            state = decode_state(self.commands.set_attributes(self.id, values, POLL_IDS))
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

    # ---- being a Future
    # ------------------------------------------------------------------------------

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
    """What the script gave to osd.result(): bytes, the value of its JSON, None when nothing."""
    if not status.result_length:
        return None
    return json.loads(data) if status.flags & JobFlag.RESULT_JSON else data


def expired(job: ObjectRef, followed: Job | None = None) -> errors.JobExpired:
    """There is no job of that id."""
    hint = "osd ps lists the jobs there are; a record that was removed or expired is gone for good"
    return errors.JobExpired(followed, 0, hint, f"{job} is no job, or its record is gone")


def job_error(job: Job | None, status: JobStatus, traceback: str) -> errors.JobError:
    """The exception for a job that did not end COMPLETED."""
    label = status.reason_label or f"reason {status.reason}"
    text = f"job {status.id} ended {status.state.name}: {label}"
    if status.message and status.started is None:  # the target's words, not the script's
        text += f": {status.message}"
    hint = advice(status.message) or status.hint
    if hint:
        text += f" ({hint})"
    if status.state is JobState.FAILED and status.reason // 100 == 2:
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
    """What is in an object from a place on, in pieces."""
    while True:
        piece = bytes(commands.read(obj, at, _READ_CHUNK))
        if piece:
            yield piece
        if len(piece) < _READ_CHUNK:
            return
        at += len(piece)


# ---- submitting ---------------------------------------------------------------------------------


class Submission(TypedDict, total=False):
    """What may be said about a job beside its code and zone; nothing of it need be.

    args: for a script: osd.args there, bytes as they are, anything else as JSON; for a function: a
        sequence of its positional arguments.  kwargs: for a function, its keyword arguments.
    limits: None: the pool's.  name: at most 128 bytes; the file's or function's if not said.
    tags: at most 16.  priority: -100 to 100, higher first.  pool: where it runs.
    key: idempotency key, at most 64 bytes; with it a lost session is no matter: submitting again
        finds the job.
    hold: accept, but do not start before release().  idempotent: may run twice after a fault.
    retries: how often it is run again after faults of the system, 0 to 14 (2 if not said).
        retry_oom: when out of memory, too; retry_exit: when it exits with this code (1-255).  Only
        where the script has written nothing, or is idempotent.
    after: jobs to wait for, at most 64 of the submitter's own; each must end COMPLETED, unless an
        After says otherwise.  expire: how long the record is kept.
    surrogate: partition, and id if wanted, of the job's object.
    grace: how long the script may clean up when it is ended, at most 5 s; 20 ms if not said.
    wait: let the command itself wait for the end, at most so long (the target allows 60 s); saves
        polling for short jobs.
    compress: send the code packed (zlib; the sandbox unpacks it): True, False, None: where it pays.
    predecessor: the job this one is run for again, one of the submitter's own.
    rights: what it may do in its zone, where credentials are in use; as much as a script may want, if
        not said.  It acts with no leave but that, and no longer than that lasts.
    array, at_once: for pyosd.job_array.submit().
    bytecode: the code is a .pyc file's content (a path that ends in .pyc says so by itself); the
        target must allow it, and be of the same release of Python.
    """

    args: object
    kwargs: Mapping[str, object] | None
    limits: Limits | None
    name: str
    tags: Mapping[str, str] | None
    priority: int | None
    key: str | bytes | None
    hold: bool
    idempotent: bool
    after: Iterable[After | Job | ObjectRef]
    expire: Duration | None
    grace: Duration | None
    pool: str
    surrogate: ObjectRef | None
    wait: Duration | None
    compress: bool | None
    bytecode: bool
    predecessor: ObjectRef | None
    rights: Permission
    retries: int | None
    retry_oom: bool
    retry_exit: int
    array: range | None
    at_once: int


def to_wait_for(what: After | Job | ObjectRef) -> After:
    """A job alone means that it must end COMPLETED."""
    if isinstance(what, After):
        return what
    return After(what.id if isinstance(what, Job) else what)


def _array(indices: range | None, at_once: int) -> tuple[int, int, int] | None:
    if indices is None:
        return None
    if indices.step != 1 or not indices or indices[0] < 0 or at_once < 0:
        raise ValueError("array must be a range of consecutive indices, at_once not negative")
    return indices[0], indices[-1], at_once


def _check(zone: ObjectRef, how: Submission) -> None:
    """What type checkers find, for those who use none.  Raises: TypeError."""
    if unknown := sorted(how.keys() - Submission.__annotations__.keys()):
        raise TypeError(f"exec() has no argument '{unknown[0]}'")
    if not isinstance(zone, ObjectRef):
        raise TypeError(f"zone is an ObjectRef, as pyosd.ref(0x10000), not {zone!r}")
    if not isinstance(limits := how.get("limits") or Limits(), Limits):
        raise TypeError(f"limits are pyosd.Limits(...), not {limits!r}")


def prepare(code: Code, zone: ObjectRef, how: Submission) -> tuple[bytes, ExecParams]:
    """The code and the parameters EXEC carries.  Raises: TypeError, ValueError, OSError."""
    _check(zone, how)
    args = how.get("args")
    if callable(code):
        positional = list(args) if isinstance(args, Iterable) else []
        encoding, arguments = ArgsEncoding.JSON, call_arguments(positional, how.get("kwargs") or {})
    else:
        encoding, arguments = encode_args(args)
    key = how.get("key") or b""
    flags = ExecFlag.HOLD if how.get("hold") else ExecFlag(0)
    if how.get("idempotent"):
        flags |= ExecFlag.IDEMPOTENT
    if how.get("retry_oom"):
        flags |= ExecFlag.RETRY_OOM
    if not 0 <= how.get("retry_exit", 0) <= 255:
        raise ValueError("retry_exit is an exit code of 1 to 255, 0: none")
    if how.get("bytecode") or is_bytecode(code):
        flags |= ExecFlag.CODE_BYTECODE
    if not (text := code_bytes(code)):
        raise ValueError("there is no code to run")
    sent, packing = pack(text, how.get("compress"))
    params = ExecParams(
        args=arguments,
        args_encoding=encoding,
        limits=how.get("limits") or Limits(),
        priority=how.get("priority"),
        name=how.get("name") or code_name(code),
        tags=how.get("tags") or {},
        key=key.encode() if isinstance(key, str) else key,
        surrogate=how.get("surrogate"),
        wait=how.get("wait"),
        flags=flags | packing,
        retry_exit=how.get("retry_exit", 0),
        retries=how.get("retries"),
        array=_array(how.get("array"), how.get("at_once", 0)),
        predecessor=how.get("predecessor"),
        rights=how.get("rights", JOB_RIGHTS),
        after=tuple(to_wait_for(each) for each in how.get("after", ())),
        pool=how.get("pool", ""),
        expiry=how.get("expire"),
        grace=how.get("grace"),
    )
    return sent, params


def submit(commands: Commands, code: Code, *, zone: ObjectRef, **how: Unpack[Submission]) -> Job:
    """Run code near the data (EXEC).

    Args: code: source text (str, bytes), a path (os.PathLike; .pyc: byte-code), or a plain
        function, sent as source.
        zone: where it may act: root, partition, collection or user object.  how: see Submission.
    Returns: the Job, accepted for good; a job that failed says so in its result().
    Raises: TargetBusy: try again later, or compute here; Conflict: the key belongs to other content;
        TypeError, ValueError: the code cannot be sent; SessionLost: without a key, not known whether.
    """
    source, params = prepare(code, zone, how)
    reply = send(commands, zone, source, params)
    if reply.job is None:
        raise errors.ProtocolError("the target accepted a job without naming it")
    return Job(commands, reply.job, params.name).take_reply(reply)


def exec_timeout(params: ExecParams) -> float | None:
    """Seconds to wait for EXEC's answer; None: as for any command."""
    return None if params.wait is None else parse_duration(params.wait) + _WAIT_MARGIN


def send(commands: Commands, zone: ObjectRef, code: bytes, params: ExecParams) -> ExecReply:
    """EXEC, sent a second time after a lost session where a key makes that safe."""

    def once() -> ExecReply:
        if params.wait is None:
            return commands.exec_code(zone, code, params)
        return commands.exec_code(
            zone,
            code,
            params,
            synchronous=True,
            result_allocation_length=_INLINE_RESULT,
            get=STATUS_IDS,
            timeout=exec_timeout(params),
        )

    def explained() -> ExecReply:
        try:
            return once()
        except errors.OSDError as error:
            if why := explain_refusal(commands, params, error):
                error.text = f"{why} ({error.text})"
            raise

    try:
        return explained()
    except errors.SessionLost:
        if not params.key:
            raise
    return explained()


# ---- many jobs
# --------------------------------------------------------------------------------------


def list_jobs(commands: Commands, partition_id: int) -> list[JobStatus]:
    """Every job whose surrogate is in a partition, by id, in one command."""
    collection = ref(partition_id, JOBS_COLLECTION)
    try:
        members = commands.get_member_attributes(collection, STATUS_IDS)
    except errors.NotFound:
        return []  # the collection is made with the first job
    return list(filter(None, (_member_status(partition_id, each) for each in members)))


def _member_status(partition_id: int, member: ObjectAttributes) -> JobStatus | None:
    return decode_status(ref(partition_id, member.object_id), member.attributes)
