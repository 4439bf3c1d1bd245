# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs: submit code with EXEC, list those of a partition.

Not here: a job once it is there (job.py), what is sent for a function (_source.py), arrays
(job_array.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TypedDict, Unpack

from pyosd import errors
from pyosd._begin import Begin, parse_begin
from pyosd._indices import Ranges, parse_array, ranges_of
from pyosd._refusal import explain_refusal
from pyosd._source import (
    Code,
    call_arguments,
    code_bytes,
    code_name,
    encode_args,
    is_bytecode,
    pack,
    with_objects,
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
    ArrayPlace,
    JobStatus,
    decode_status,
)
from pyosd.modules import Modules, PathLike, is_zipapp, modules_of, pack_zipapp
from pyosd.reply import ExecReply
from pyosd.types import JOBS_COLLECTION, ObjectAttributes, ObjectRef, PartitionId, ref

_WAIT_MARGIN = 30.0
_INLINE_RESULT = 4096  # room a waiting EXEC makes for the result


class Submission(TypedDict, total=False):
    """What may be said about a job beside its code and zone; nothing of it need be.

    args: for a script: osd.args there, bytes as they are, anything else as JSON; for a function: a
        sequence of its positional arguments.  kwargs: for a function, its keyword arguments.
        An ObjectRef among a function's arguments arrives as an object of the module osd.
    limits: None: the pool's.  name: at most 128 bytes; the file's or function's if not said.
    tags: at most 16.  priority: -100 to 100, higher first.  pool: where it runs.
    key: idempotency key, at most 64 bytes; with it a lost session is no matter: submitting again
        finds the job.
    hold: accept, but do not start before release().  idempotent: may run twice after a fault.
    retries: how often it is run again after faults of the system, 0 to 14 (2 if not said).
        retry_oom: when out of memory, too; retry_exit: when it exits with this code (1-255).  Only
        where the script has written nothing, or is idempotent.
    after: jobs to wait for, at most 64 of the submitter's own; each must end COMPLETED, unless an
        After says otherwise: After(job, failed=True) waits for one that does not.
    expire: how long the record is kept; a job that is held or waits for others is cancelled that
        long after its submission.
    begin: start at this time and not before: a datetime, seconds since 1970, or text as "now+2h", "16:30",
        "2026-11-24T08:00"; the target's clock decides.
    surrogate: partition, and id if wanted, of the job's object, which then is an ordinary object there.
        If not said it is in the zone's partition, apart from the data: no list or count has it.
    grace: how long the script may clean up when it is ended, at most 5 s; 20 ms if not said.
    wait: let the command itself wait for the end, at most so long (the target allows 60 s); saves
        polling for short jobs.
    compress: send the code packed (zlib; the sandbox unpacks it): True, False, None: where it pays.
    predecessor: the job this one is run for again, one of the submitter's own.  With code None its code
        is run, with its arguments unless args are given; see pyosd.retrying.retry().
    rights: what it may do in its zone, where credentials are in use; as much as a script may want, if
        not said.  It acts with no leave but that, and no longer than that lasts.
    array, at_once: the indices of an array of jobs, a range, other ints, or text as "1,3,10-20:2", and
        how many members may run at a time; see pyosd.job_array.submit().
    modules: own modules that travel with the code: paths of modules (.py), packages, folders to import
        from, .pyz and .zip files; or pyosd.Modules(*paths), which several jobs can share.
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
    begin: Begin | None
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
    array: Iterable[int] | str | None
    at_once: int
    modules: Modules | PathLike | Iterable[PathLike] | None


def to_wait_for(what: After | Job | ObjectRef) -> After:
    """A job alone means that it must end COMPLETED."""
    if isinstance(what, After):
        return what
    return After(what.id if isinstance(what, Job) else what)


def _array(indices: Iterable[int] | str | None, at_once: int) -> tuple[Ranges, int]:
    """The ranges of the indices, () where there are none, and how many may run at once."""
    if indices is None:
        return (), 0
    if at_once < 0:
        raise ValueError("at_once must not be negative")
    if not isinstance(indices, str):
        return ranges_of(indices), at_once
    ranges, said = parse_array(indices)
    return ranges, at_once or said


def place_of(array: ObjectRef, params: ExecParams) -> ArrayPlace:
    """The array that was accepted with these parameters."""
    assert params.array is not None
    first, last, at_once = params.array
    ranges = params.array_ranges
    members = sum(map(len, ranges)) if ranges else last - first + 1
    return ArrayPlace(array, first, members, at_once, ranges)


def check_types(zone: ObjectRef, how: Submission) -> None:
    """What type checkers find, for those who use none.  Raises: TypeError."""
    if unknown := sorted(how.keys() - Submission.__annotations__.keys()):
        raise TypeError(f"exec() has no argument '{unknown[0]}'")
    if not isinstance(zone, ObjectRef):
        raise TypeError(f"zone is an ObjectRef, as pyosd.ref(0x10000), not {zone!r}")
    if not isinstance(limits := how.get("limits") or Limits(), Limits):
        raise TypeError(f"limits are pyosd.Limits(...), not {limits!r}")


def source_bytes(
    code: Code, given: Modules | PathLike | Iterable[PathLike] | None, objects: bool
) -> bytes:
    """The code and the modules that travel with it, as one.

    Raises: TypeError, ValueError, OSError; SyntaxError: a module does not compile.
    """
    modules = None if given is None else modules_of(given)
    if isinstance(code, os.PathLike) and is_zipapp(code):
        return pack_zipapp(code, modules)
    if modules is None:
        return code_bytes(code, objects)
    text = code_bytes(code, objects, modules.names)
    return modules.archive(text) if text else b""


def prepare(code: Code | None, zone: ObjectRef, how: Submission) -> tuple[bytes, ExecParams]:
    """The code and the parameters EXEC carries; code None: the predecessor's.

    Raises: TypeError, ValueError, OSError.
    """
    check_types(zone, how)
    if code is None and how.get("predecessor") is None:
        raise ValueError("a job without code of its own needs the predecessor whose code it runs")
    args, objects = how.get("args"), False
    if callable(code):
        positional = list(args) if isinstance(args, Iterable) else []
        (positional, named), objects = with_objects((positional, dict(how.get("kwargs") or {})))
        encoding, arguments = ArgsEncoding.JSON, call_arguments(positional, named)
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
    sent, packing = b"", ExecFlag(0)
    if code is not None:
        if how.get("bytecode") or is_bytecode(code):
            flags |= ExecFlag.CODE_BYTECODE
        if not (text := source_bytes(code, how.get("modules"), objects)):
            raise ValueError("there is no code to run")
        sent, packing = pack(text, how.get("compress"))
    ranges, at_once = _array(how.get("array"), how.get("at_once", 0))
    params = ExecParams(
        args=arguments,
        args_encoding=encoding,
        limits=how.get("limits") or Limits(),
        priority=how.get("priority"),
        name=how.get("name") or ("" if code is None else code_name(code)),
        tags=how.get("tags") or {},
        key=key.encode() if isinstance(key, str) else key,
        surrogate=how.get("surrogate"),
        wait=how.get("wait"),
        flags=flags | packing,
        retry_exit=how.get("retry_exit", 0),
        retries=how.get("retries"),
        array=(ranges[0][0], ranges[-1][-1], at_once) if ranges else None,
        array_ranges=ranges if len(ranges) > 1 or (ranges and ranges[0].step != 1) else (),
        predecessor=how.get("predecessor"),
        rights=how.get("rights", JOB_RIGHTS),
        after=tuple(to_wait_for(each) for each in how.get("after", ())),
        pool=how.get("pool", ""),
        expiry=how.get("expire"),
        begin=0 if (begin := how.get("begin")) is None else parse_begin(begin),
        grace=how.get("grace"),
    )
    return sent, params


def submit(
    commands: Commands, code: Code | None, *, zone: ObjectRef, **how: Unpack[Submission]
) -> Job:
    """Run code near the data (EXEC).

    Args: code: source text (str, bytes), a path (os.PathLike; .pyc: byte-code), or a plain
        function, sent as source.  None: the code of how["predecessor"].
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


def partitions_with_jobs(commands: Commands) -> list[PartitionId]:
    """The partitions whose jobs may be listed: all, or where the root may not be listed those that the
    source of credentials names, which shows the jobs of its user alone.

    Raises: PermissionDenied: neither.
    """
    try:
        return commands.list_partitions()
    except errors.PermissionDenied:
        source = commands.signer.source
        partitions = source.partitions() if source is not None else None
        if partitions is None:
            raise
        return partitions


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
