# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls of functions: the methods call() and submit() of Functions and AsyncFunctions, as dialogues.

Not here: the life of functions, and where they are (dialogues.py).
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from pyosd import errors
from pyosd.commands.dialogue import Dialogue
from pyosd.commands.execute import call_function
from pyosd.functions.dialogues import Named, find_partition, show
from pyosd.functions.manifest import Function
from pyosd.functions.stages import stage_args
from pyosd.jobs.advice import advice
from pyosd.jobs.dialogues.followed import error_kind
from pyosd.jobs.dialogues.following import wait
from pyosd.jobs.reasons import REASONS
from pyosd.jobs.refusal import EXEC_PARAMETERS, explain_refusal
from pyosd.jobs.source import encode_args
from pyosd.osd._results import decode as decode_json
from pyosd.types import ROOT, ObjectRef, check_ref, ref
from pyosd.wire.capability import JOB_RIGHTS, Permission
from pyosd.wire.exec_params import (
    CallRecord,
    Duration,
    ExecParams,
    FunctionCall,
    Limits,
    ResultForm,
)
from pyosd.wire.job_status import JobState
from pyosd.wire.reply import CallReply

ROOM = 64 << 10  # for a result in the answer, at first
TIME_OVER = 301  # reason: a call without a record ran longer than it may or its client waits
MORE_TIME = "give the call more time (60 s at most), or keep a record of it"


def call(
    table: Any,
    name: Named,
    args: object = None,
    *,
    zone: ObjectRef = ROOT,
    method: str = "",
    record: bool | None = None,
    limits: Limits | None = None,
    pool: str = "",
    timeout: Duration | None = None,
    parameters: str | None = None,
    rights: Permission = JOB_RIGHTS,
) -> Dialogue[Any]:
    """Call a function and return its result: bytes, the value of its JSON, or None.

    Args:
        args: bytes are sent unchanged, anything else as JSON.  None: no arguments.
        zone: where the function can act, as far as its access class permits.
        method: entry point.  "": the first of the manifest.
        record: True: the call is a job with a surrogate.  False: the call leaves no record.  None: it
            has a record if the function can write.
        limits: at most those of the manifest.
        pool: "": the pool of the manifest.
        timeout: how long the target waits for the end, at most 60 s; None: 20 s.  A call without a
            record is ended then; for one with a record the client waits on.
        parameters: pass args, which must be bytes, as a READ passes the data of an object to a function
            that is attached with these parameters.
        rights: permissions in the zone, if the target requires credentials.

    Raises: NotFound: no active function has this name.  OSDError: it is not active, or the command was
        refused.  ScriptError, JobTimeout, JobOutOfMemory, LimitExceeded, SandboxLost, JobError: the
        call failed.
    """
    if parameters is not None:
        if not isinstance(args, bytes | bytearray | memoryview):
            raise TypeError("a call with parameters passes bytes")
        args = stage_args(args, parameters)
    encoding, data = encode_args(args)
    named = (yield from named_call(table, name))._replace(
        method=method,
        args_encoding=encoding,
        record=CallRecord.IF_NEEDED if record is None else CallRecord(2 if record else 1),
    )
    params = ExecParams(
        function=named, limits=limits or Limits(), pool=pool, wait=timeout, rights=rights
    )
    room = ROOM
    while True:
        reply = yield from sent(table, zone, data, params, result_allocation_length=room)
        if reply.job is not None:
            return (yield from recorded_result(table, reply))
        if reply.length <= room or reply.form is ResultForm.REPORT:
            return plain_result(str(name.id if isinstance(name, Function) else name), reply)
        room = reply.length  # it has changed nothing, so it is simply called again


def named_call(table: Any, name: Named) -> Dialogue[FunctionCall]:
    """The function as the command names it."""
    if isinstance(name, Function):
        name = name.id
    if isinstance(name, ObjectRef):
        return FunctionCall(name.partition_id, name.object_id)
    return FunctionCall((yield from find_partition(table)), name)


def sent(
    table: Any, zone: ObjectRef, data: bytes, params: ExecParams, **options: Any
) -> Dialogue[CallReply]:
    """Call a function; the error of a refusal names its cause."""
    check_ref("zone", zone)
    try:
        return (yield from call_function(zone, data, params, **options))
    except errors.OSDError as error:
        yield from explain_call(table, params, error)
        raise


def explain_call(table: Any, params: ExecParams, error: errors.OSDError) -> Dialogue[None]:
    """Say in the error which parameter the target has refused: sense data point at all of them."""
    called = params.function
    if error.field_pointer != EXEC_PARAMETERS or called is None:
        return
    name = called.function
    with suppress(errors.OSDError, ValueError):
        wanted = name if isinstance(name, str) else ref(called.partition_id, name)
        manifest = (yield from show(table, wanted)).manifest
        if called.method and called.method not in manifest.methods:
            known = ", ".join(manifest.methods)
            why = (
                f"function '{manifest.name}' has no entry point '{called.method}'; it has: {known}"
            )
        else:
            why = yield from explain_refusal(
                replace(params, pool=params.pool or manifest.pool), error
            )
        if why:
            error.text = f"{why} ({error.text})"


def recorded_result(table: Any, reply: CallReply) -> Dialogue[Any]:
    """The result of the job that the call has become."""
    job = table.target.job(reply.job)
    if not reply.still_running and reply.error is None and reply.length <= len(reply.result):
        return value_of(reply)
    yield from wait(job)
    value, error = job.settled_outcome()
    if error is not None:
        raise error
    return value


def plain_result(name: str, reply: CallReply) -> Any:
    """The result of a call without a record.  Raises: JobError."""
    if reply.error is None:
        return value_of(reply)
    sense = reply.error.sense
    number = (sense.command_information or 0) if sense else 0
    reason = REASONS.get(number)
    if reason is None:
        raise reply.error
    report = reply.result.decode(errors="replace")
    text = f"function {name}: {reason.label}"
    if number // 100 == 2:
        last = report.rstrip().rpartition("\n")[2]
        raise errors.ScriptError(
            None, number, advice(last) or reason.hint, f"{text}: {last}", remote_traceback=report
        )
    kind = error_kind(JobState[reason.state]) if reason.state else errors.JobError
    hint = MORE_TIME if number == TIME_OVER else reason.hint
    raise kind(None, number, hint, f"{text} ({hint})")


def value_of(reply: CallReply) -> Any:
    """The result as Python has it."""
    if reply.form is ResultForm.NONE:
        return None
    if reply.form is ResultForm.BYTES:
        return reply.result
    try:
        return decode_json(reply.result)
    except (ValueError, RecursionError):
        return reply.result


def submit(
    table: Any,
    name: Named,
    args: object = None,
    *,
    zone: ObjectRef = ROOT,
    method: str = "",
    limits: Limits | None = None,
    pool: str = "",
    job_name: str = "",
    rights: Permission = JOB_RIGHTS,
) -> Dialogue[Any]:
    """Call a function as a job, and do not wait.  Returns: the Job; the target has stored it.

    Args: as for call().  job_name: "": the name of the function.

    Raises: as call() if the target refuses the call; the Job has the errors of the call itself.
    """
    encoding, data = encode_args(args)
    named = yield from named_call(table, name)
    named = named._replace(method=method, args_encoding=encoding)
    params = ExecParams(
        function=named, limits=limits or Limits(), pool=pool, name=job_name, rights=rights
    )
    reply = yield from sent(table, zone, data, params, synchronous=False)
    if reply.error is not None or reply.job is None:
        raise reply.error or errors.ProtocolError("a call with a record has no job")
    return table.target.job(reply.job)
