# SPDX-License-Identifier: GPL-2.0-or-later
"""EXEC, the commands of functions, and the cheapest command that asks how a job goes.

The head of unit.py says what every method raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from pyosd import errors, requests
from pyosd.commands.attributes import get_attributes
from pyosd.commands.caller import Signing
from pyosd.commands.dialogue import Dialogue, answer, call, execute
from pyosd.types import AttributeId, Buffer, ObjectRef
from pyosd.wire.attributes import (
    CURRENT_OBJECT_ID,
    CURRENT_PARTITION_ID,
    CURRENT_RESULT_FORM,
    CURRENT_RESULT_LENGTH,
    Page,
    allocation_for,
)
from pyosd.wire.cdb import AttributeLists, AttributePage, Encoded
from pyosd.wire.exec_params import ExecParams
from pyosd.wire.job_status import JOB_POLL_IDS, POLL_ROOM, JobPoll, decode_poll, poll_of
from pyosd.wire.reply import CallReply, ExecReply, decode_call, decode_exec, decode_reply

_ABOUT_CALL = (
    *(CURRENT_PARTITION_ID, CURRENT_OBJECT_ID),
    *(CURRENT_RESULT_LENGTH, CURRENT_RESULT_FORM),
)
_NO_FUNCTION = (0x80, 0x19)
_ABOUT_JOB = (CURRENT_PARTITION_ID, CURRENT_OBJECT_ID)
JOB_ATTRIBUTES = AttributeLists(_ABOUT_JOB, (), allocation_for(_ABOUT_JOB, longest=True))
"""The attributes that decode_exec() takes."""
CALL_ATTRIBUTES = AttributeLists(_ABOUT_CALL, (), allocation_for(_ABOUT_CALL, longest=True))
"""The attributes that decode_call() takes."""


def poll_job(caller: Signing, job: ObjectRef) -> Dialogue[JobPoll | None]:
    """The state of a job, by the cheapest command; None: the object is no surrogate of a job."""
    if caller.signs:
        return poll_of((yield from get_attributes(job, JOB_POLL_IDS)))
    request, command, layout = _poll_command(job)
    response = yield from execute(command)
    if response.status or response.sense:
        error = decode_reply(request, layout, response).error
        if error:
            raise error
    return decode_poll(response.data_in)


def exec_code(
    zone: ObjectRef,
    code: Buffer,
    params: ExecParams | None = None,
    *,
    synchronous: bool = False,
    result_allocation_length: int = 0,
    get: Sequence[AttributeId] = (),
    timeout: float | None = None,
) -> Dialogue[ExecReply]:
    """Run code in a zone (EXEC, 8F81h).  Target.exec() does this and returns a Job.

    Args:
        code: 1 byte to 16 MiB of source.
        synchronous: wait for the job's end.
        get: attributes of the surrogate to read, too.

    Returns: ExecReply; a job that failed is in ExecReply.error.
    Raises: TargetBusy and other OSDErrors when no job was made; SessionLost.
    """
    lists = JOB_ATTRIBUTES
    if get:
        wanted = (*_ABOUT_JOB, *get)
        lists = AttributeLists(wanted, (), allocation_for(wanted, longest=True))
    request = requests.execute(
        zone,
        code,
        params,
        synchronous=synchronous,
        result_allocation_length=result_allocation_length,
        attributes=lists,
    )
    return decode_exec((yield from answer(request, timeout)))


def activate_function(
    function: ObjectRef, *, deactivate: bool = False, replace: bool = False
) -> Dialogue[None]:
    """Allow calls of a function object (ACTIVATE FUNCTION, 8F83h).

    Args:
        deactivate: refuse calls instead; calls under way continue.
        replace: deactivate another function with the same alias in the same step.

    Raises: NotFound: no such object in a function partition.  Conflict: another active function has
        the alias.  OSDError: no code, or an engine that the target does not have (80/18).
    """
    yield from call(requests.activate_function(function, deactivate=deactivate, replace=replace))


def call_function(
    zone: ObjectRef,
    args: Buffer,
    params: ExecParams,
    *,
    synchronous: bool = True,
    result_allocation_length: int = 0,
    timeout: float | None = None,
) -> Dialogue[CallReply]:
    """Call a function in a zone (EXECUTE FUNCTION, 8F82h).

    Args:
        args: the arguments, at most 1 MiB, in the encoding of params.function.
        params: params.function names the function. The other parameters are those of a job.
        synchronous: wait for the end of the call.
        result_allocation_length: the most bytes of the result to return with the answer.

    Returns: CallReply; a call that failed is in CallReply.error.
    Raises: NotFound: no active function has this name.  OSDError: it is not active (80/17).
        TargetBusy; SessionLost.
    """
    request = requests.execute_function(
        zone,
        args,
        params,
        synchronous=synchronous,
        result_allocation_length=result_allocation_length,
        attributes=CALL_ATTRIBUTES,
    )
    try:
        return decode_call((yield from answer(request, timeout)))
    except errors.NotFound as error:
        if (error.asc, error.ascq) != _NO_FUNCTION or params.function is None:
            raise
        asked = params.function.function
        text = f"name '{asked}'" if isinstance(asked, str) else f"id {asked:#x}"
        code = (error.sense_key, error.asc, error.ascq)
        raise errors.NotFound(
            *code, f"no active function has the {text}", sense=error.sense
        ) from None


@lru_cache(maxsize=1024)  # a job is asked for again and again
def _poll_command(job: ObjectRef) -> Encoded:
    page = AttributePage(Page.JOB_STATUS, POLL_ROOM)
    return Encoded.of(requests.get_attributes(job, attributes=page))
