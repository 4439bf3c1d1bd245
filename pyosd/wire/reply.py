# SPDX-License-Identifier: GPL-2.0-or-later
"""Answers: the status, data and attributes that came back for a Request, decoded.  Pure.

Not here: formats of the parts (cdb.py, attributes.py, sense.py), sending (commands/).
"""

from __future__ import annotations

from dataclasses import dataclass

from pyosd.errors import OSDError, ProtocolError
from pyosd.types import AttributeId, AttributeValue, ObjectRef, Sense, ref
from pyosd.wire.attributes import (
    CURRENT_OBJECT_ID,
    CURRENT_PARTITION_ID,
    CURRENT_RESULT_FORM,
    CURRENT_RESULT_LENGTH,
    PageForm,
    Retrieved,
)
from pyosd.wire.cdb import Layout, Request, decode_data_in
from pyosd.wire.exec_params import ResultForm
from pyosd.wire.sense import READ_PAST_END, STILL_RUNNING, decode, error_for
from pyosd.wire.transport import Pending, Response

TRANSFER_MAX = 64 << 20  # of our target, in one command


@dataclass(slots=True)
class Reply:
    """The answer to a Request, decoded.

    data: of the command; of a READ past the end only the bytes of the object, without the zeros that
        follow them on the wire.
    retrieved, page: attributes, in the requested format.  sense: of a recovered error, or None.
    error: the exception for a refusal, or None; call() raises it, submit().reply() does not.
    """

    request: Request
    response: Response
    data: memoryview
    retrieved: Retrieved
    page: PageForm | None
    sense: Sense | None
    error: OSDError | None

    @property
    def padded(self) -> bool:
        """Whether zeros may follow the command data, because attributes stand behind their room.

        A credential of the method CMDRSP adds attributes to every command.
        """
        return len(self.response.data_in) > len(self.data)

    @property
    def attributes(self) -> tuple[AttributeValue, ...]:
        """The retrieved attributes in the order asked for.

        Raises: ProtocolError: the list did not fit its allocation length, so some are missing.
        """
        if not self.retrieved.complete:
            raise ProtocolError(
                f"the retrieved attributes take {self.retrieved.needed} bytes and were cut: "
                "request fewer attributes, or a larger allocation length"
            )
        return self.retrieved.attributes

    def attribute(self, wanted: AttributeId) -> AttributeValue:
        """One retrieved attribute.  Raises: ProtocolError: it was asked for but did not come."""
        found = self.retrieved.find(wanted)
        if found is None:
            raise ProtocolError(f"the target did not return attribute {wanted}")
        return found


@dataclass
class PendingReply:
    """A request under way.  pending: of its command, of the last if it was sent again."""

    request: Request
    layout: Layout
    pending: Pending

    def reply(self, timeout: float | None = None) -> Reply:
        """Wait for the answer and decode it; a refusal is in Reply.error.

        Raises: SessionLost, Unreachable: no answer will come; nothing else.
        """
        return decode_reply(self.request, self.layout, self.pending.result(timeout))


def _hint(request: Request) -> str:
    """Possible faults of a refused request that its sense data do not name."""
    length = max(memoryview(request.data).nbytes, request.data_in_length)
    if length <= TRANSFER_MAX:
        return ""
    return (
        f"; one command moves at most {TRANSFER_MAX >> 20} MiB: read_range(), read_into() and "
        "write_range() split what is longer"
    )


def decode_reply(request: Request, layout: Layout, response: Response) -> Reply:
    """Take a response apart; a refusal is in Reply.error.  Never raises."""
    sense = error = None
    if response.status or response.sense:
        sense = decode(response.sense)
        error = error_for(response.status, sense, request.service_action, _hint(request))
    parts = decode_data_in(request, layout, response.data_in)
    data = parts.data
    if sense and (sense.asc, sense.ascq) == READ_PAST_END and sense.command_information is not None:
        data = data[: sense.command_information]
    return Reply(request, response, data, parts.retrieved, parts.page, sense, error)


@dataclass(slots=True)
class ExecReply:
    """The answer of EXEC.

    job: the surrogate, None when the command was refused before there was one.
    result: bytes of the inline result area (synchronous only; as long as the allocation, zero
    padded).
    still_running: a synchronous wait ended before the job.  error: how the job or the command
    failed.
    attributes: further retrieved attributes of the surrogate.
    """

    job: ObjectRef | None
    result: memoryview
    still_running: bool
    error: OSDError | None
    attributes: tuple[AttributeValue, ...] = ()


def decode_exec(reply: Reply) -> ExecReply:
    """The answer to an EXEC whose get list began with the ids of the Current Command page.

    Raises: OSDError: there is no job.
    """
    partition = reply.retrieved.find(CURRENT_PARTITION_ID)
    inside = reply.retrieved.find(CURRENT_OBJECT_ID)
    job = ref(partition.uint, inside.uint) if partition and inside and inside.uint else None
    if reply.error and job is None:
        raise reply.error
    sense = reply.sense
    running = sense is not None and (sense.asc, sense.ascq) == STILL_RUNNING
    return ExecReply(job, reply.data, running, reply.error, reply.attributes[2:])


@dataclass(slots=True)
class CallReply:
    """The answer of EXECUTE FUNCTION.

    job: the surrogate of a call with a record, else None.
    result: as much of the result as the allocation length permitted; length: of all of it.
    form: what the result is.  still_running: a synchronous wait ended before the job.
    error: how the call or the command failed.
    """

    job: ObjectRef | None
    result: bytes
    length: int
    form: ResultForm
    still_running: bool
    error: OSDError | None


def decode_call(reply: Reply) -> CallReply:
    """The answer to a call whose get list had the ids and the result of the Current Command page.

    Raises: OSDError: the function was not called.
    """

    def number(wanted: AttributeId) -> int:
        found = reply.retrieved.find(wanted)
        return found.uint if found and found.value else 0

    inside = number(CURRENT_OBJECT_ID)
    job = ref(number(CURRENT_PARTITION_ID), inside) if inside else None
    form, length = ResultForm(number(CURRENT_RESULT_FORM)), number(CURRENT_RESULT_LENGTH)
    if reply.error and job is None and form is not ResultForm.REPORT:
        raise reply.error
    sense = reply.sense
    running = sense is not None and (sense.asc, sense.ascq) == STILL_RUNNING
    return CallReply(job, bytes(reply.data[:length]), length, form, running, reply.error)
