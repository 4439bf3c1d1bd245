# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions: ACTIVATE FUNCTION and EXECUTE FUNCTION (docs/functions.md).

The head of unit.py says what every method raises.
"""

from __future__ import annotations

from pyosd import requests
from pyosd.commands.dialogue import Dialogue, answer, call
from pyosd.types import Buffer, ObjectRef
from pyosd.wire.attributes import CURRENT_OBJECT_ID, CURRENT_PARTITION_ID, allocation_for
from pyosd.wire.cdb import AttributeLists
from pyosd.wire.exec_params import ExecParams
from pyosd.wire.reply import ExecReply, decode_exec


def activate_function(function: ObjectRef, *, deactivate: bool = False) -> Dialogue[None]:
    """Allow calls of a function object (ACTIVATE FUNCTION, 8F83h).

    Args:
        deactivate: end this instead. Calls under way continue.

    Raises: NotFound: no such object in a function partition.  Conflict: another active function has
        the alias.  OSDError: no code, or an engine that the target does not have (80/18).
    """
    yield from call(requests.activate_function(function, deactivate=deactivate))


def call_function(
    zone: ObjectRef,
    args: Buffer,
    params: ExecParams,
    *,
    synchronous: bool = True,
    result_allocation_length: int = 0,
    timeout: float | None = None,
) -> Dialogue[ExecReply]:
    """Call a function in a zone (EXECUTE FUNCTION, 8F82h).

    Args:
        args: the arguments, at most 1 MiB, in the encoding of params.function.
        params: params.function names the function. The other parameters are those of a job.
        synchronous: wait for the end of the call.
        result_allocation_length: the most bytes of the result to return with the answer.

    Returns: ExecReply; a call that failed is in ExecReply.error.
    Raises: NotFound: no active function has this name.  OSDError: it is not active (80/17).
        TargetBusy; SessionLost.
    """
    wanted = (CURRENT_PARTITION_ID, CURRENT_OBJECT_ID)
    lists = AttributeLists(wanted, (), allocation_for(wanted, longest=True))
    request = requests.execute_function(
        zone,
        args,
        params,
        synchronous=synchronous,
        result_allocation_length=result_allocation_length,
        attributes=lists,
    )
    return decode_exec((yield from answer(request, timeout)))
