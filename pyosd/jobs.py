# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs: submit code with EXEC, list those of a partition.

Not here: a job once it is there (job.py), what is sent for a function (_source.py), arrays
(job_array.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypedDict, Unpack

from pyosd import errors
from pyosd._polling import JOBS_COLLECTION
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
from pyosd.job import Job
from pyosd.job_status import (
    STATUS_IDS,
    JobStatus,
    decode_status,
)
from pyosd.reply import ExecReply
from pyosd.types import ObjectAttributes, ObjectRef, ref

_WAIT_MARGIN = 30.0
_INLINE_RESULT = 4096  # room a waiting EXEC makes for the result


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
        After says otherwise.
    expire: how long the record is kept; a job that is held or waits for others is cancelled that
        long after its submission.
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


# ---- many jobs -----------------------------------------------------------------------------------


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
