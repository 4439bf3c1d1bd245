# SPDX-License-Identifier: GPL-2.0-or-later
"""Reports of a script about itself: progress, a result, a line of log.  Calls of functions that are
active in the target, inside the process of the script.
"""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any

from . import _archive
from ._current import current
from ._errors import Invalid, OSDError
from ._results import encode
from ._transport import Call
from ._values import encode_entries

if TYPE_CHECKING:
    from ._transport import Transport
    from ._values import Settable

__all__ = ["ObjectChange", "StageInput", "call", "change", "log", "progress", "result", "stage"]

PROGRESS_UNKNOWN = 0xFFFF
PROGRESS_FULL = 1000
MESSAGE_MAX = 256
RESULT_BYTES, RESULT_JSON = 0, 1
SHA256_BYTES = 32
SHOWN = 16  # digits of it in a module's name
CHANGE = struct.Struct(">HBBHHQQQQQQQIII4x")  # docs/hooks.md
CHANGE_BYTES = CHANGE.size
EVENTS = ("create", "write", "remove", "set", "after")
ACTIONS = {
    0x8882: "CREATE",
    0x8884: "PUNCH",
    0x8886: "WRITE",
    0x8887: "APPEND",
    0x8889: "CLEAR",
    0x888A: "REMOVE",
    0x888F: "SET ATTRIBUTES",
    0x8892: "CREATE AND WRITE",
}
ENTRY = struct.Struct(">II6xH")  # of a list of attributes, before the value
STAGE_BYTES = 24  # of the frame in front of the data (docs/views.md)


@dataclass(frozen=True)
class StageInput:
    """Data that pass through this function.

    view: the bytes, in place; valid until the function returns.
    offset: of the first byte, in the object or in the output of the previous function.
    whole: the length of the complete input, of which the function may get a part; 0: not known yet.
    parameters: text of the user who attached the function.
    header: the first line of the input, if a function for tables gets a later part; else empty.
    """

    view: memoryview
    offset: int
    whole: int
    parameters: str
    header: bytes = b""

    @cached_property
    def data(self) -> bytes:
        """The bytes, copied.

        >>> osd.stage(bytes((0, 1)) + bytes(22) + b"hello").data
        b'hello'
        """
        return bytes(self.view)

    @property
    def options(self) -> dict[str, str]:
        """The parameters as names and values, of a text like "column=2&header=1"."""
        return options_of(self.parameters)


def options_of(parameters: str) -> dict[str, str]:
    """Names and values of a text like "column=2&header=1"."""
    pairs = (each.partition("=") for each in parameters.split("&") if each)
    return {name: value for name, _, value in pairs}


def stage(args: bytes | memoryview) -> StageInput:
    """The data and the parameters in the arguments of a function that data pass through.

    >>> frame = bytes((0, 1, 0, 3)) + bytes(19) + bytes((5,)) + b"k=v" + b"hello"
    >>> osd.stage(frame).data, osd.stage(frame).options
    (b'hello', {'k': 'v'})

    Raises: Invalid: the arguments have another form.
    """
    view = memoryview(args if isinstance(args, bytes | memoryview) else b"")
    good = bytes(view[0:2]) == b"\0\1" and len(view) >= STAGE_BYTES
    header = STAGE_BYTES + int.from_bytes(view[2:4]) if good else 0
    data = header + int.from_bytes(view[4:8]) if good else 0
    if not good or len(view) < data:
        raise Invalid("the function was called otherwise than with the data of an object")
    return StageInput(
        view[data:],
        int.from_bytes(view[8:16]),
        int.from_bytes(view[16:24]),
        str(view[STAGE_BYTES:header], "utf-8"),
        bytes(view[header:data]),
    )


@dataclass(frozen=True)
class ObjectChange:
    """A change of a user object that a function checks or follows.

    events: of "create", "write", "remove", "set"; for a function that follows changes: "after".
    command: "WRITE", "APPEND" and so on; "": none.
    partition_id, object_id: of the object; object_id 0: the target chooses it.
    offset, length: of the bytes that change, from the first to the last.
    old_length: bytes of the object before the change; for a function that follows, after it.
    created, now: times in seconds since 1970; created is 0 if the change creates the object.
    attributes: those that the command sets: page, number, value; an empty value makes it undefined.
    data: the new bytes; None: there are none, or more than 64 KiB, or several pieces.
    page: of the attributes that a follower derives; 0: the function checks changes.
    parameters: text of the user who has attached the function.
    """

    events: frozenset[str]
    command: str
    partition_id: int
    object_id: int
    offset: int
    length: int
    old_length: int
    created: float
    now: float
    attributes: tuple[tuple[int, int, bytes], ...]
    data: bytes | None
    page: int
    parameters: str

    @property
    def options(self) -> dict[str, str]:
        """The parameters as names and values, of a text like "days=30&column=5"."""
        return options_of(self.parameters)

    def derive(self, values: dict[int, Settable | None]) -> bytes:
        """Make the result of a function that follows changes: attributes of its page, by number from 2 on.

        A value is text, a number or bytes, as setattr() takes it; None makes the attribute undefined.

        >>> frame = bytes((0, 1, 16)) + bytes(69) + bytes((0, 1, 0, 0)) + bytes(4)
        >>> osd.change(frame).derive({2: "x"})[:8].hex()
        '0001000000000002'
        """
        entries = (
            (self.page, number, b"" if value is None else value) for number, value in values.items()
        )
        return b"".join(encode_entries(entries))


def change(args: bytes | memoryview) -> ObjectChange:
    """The change in the arguments of a function that checks changes, or follows them.

    >>> frame = bytes((0, 1, 2, 1, 0x88, 0x86)) + bytes(65) + bytes((2,)) + bytes(8) + b"hi"
    >>> osd.change(frame).command, osd.change(frame).data
    ('WRITE', b'hi')

    Raises: Invalid: the arguments are not a change.
    """
    args = bytes(args) if isinstance(args, memoryview) else args
    if not isinstance(args, bytes) or len(args) < CHANGE_BYTES or args[0:2] != b"\0\1":
        raise Invalid("the function was called otherwise than with a change")
    _, events, has_data, action, parameters, *numbers, attributes, data, page = CHANGE.unpack_from(
        args
    )
    rest = args[CHANGE_BYTES:]
    if len(rest) != parameters + attributes + data:
        raise Invalid("the change has another length than it says")
    partition, obj, offset, length, old_length, created, now = numbers
    return ObjectChange(
        frozenset(name for bit, name in enumerate(EVENTS) if events >> bit & 1),
        ACTIONS.get(action, ""),
        *(partition, obj, offset, length, old_length, created / 1000, now / 1000),
        entries_of(rest[parameters : parameters + attributes]),
        rest[parameters + attributes :] if has_data else None,
        page,
        rest[:parameters].decode(),
    )


def entries_of(data: bytes) -> tuple[tuple[int, int, bytes], ...]:
    """Attributes of a list without a header: each has 16 bytes and its value, filled up to 8."""
    found, at = [], 0
    while at + ENTRY.size <= len(data):
        page, number, length = ENTRY.unpack_from(data, at)
        found.append((page, number, data[at + ENTRY.size : at + ENTRY.size + length]))
        at += -(-(ENTRY.size + length) // 8) * 8
    return tuple(found)


def progress(fraction: float | None, message: str = "") -> None:
    """Report the progress of the job.  It is shown at most 20 times a second.

    Args: fraction: 0.0 to 1.0; None: unknown.  The shown progress does not decrease.
        message: at most 256 bytes; the rest is cut.

    >>> for n, each in enumerate(objects := list(p)):
    ...     osd.progress(n / len(objects), f"object {each.object_id:#x}")

    Raises: Invalid: the fraction is not 0.0 to 1.0.
    """
    if fraction is None:
        value = PROGRESS_UNKNOWN
    elif 0 <= fraction <= 1:
        value = round(fraction * PROGRESS_FULL)
    else:
        raise Invalid(f"progress is 0 to 1, not {fraction}")
    text = message.encode()[:MESSAGE_MAX].decode(errors="ignore").encode()
    current().call(Call.PROGRESS, 0, 0, value, 0, text)


def result(value: object) -> None:
    """Set the result of the job, for Job.result() and `osd job result`.  The last one counts.  If it
    cannot be stored in full, the job has none: it fails (reason 501 or 502), also if the script
    catches the exception, unless it sets another one.

    Args: value: bytes-like objects are sent unchanged, anything else as JSON.  All results together
        have at most the job's limit, 1 GiB by default; more ends the job (reason 308).  Numbers and
        arrays of numpy are permitted: Job.result() returns arrays if numpy is installed there, else
        nested lists.  Dates, times, Decimal and UUID become text.

    >>> osd.result({"lines": sum(1 for line in u.data)})

    Raises: TypeError: the value is neither bytes nor JSON.  NoSpace: there is no room for it.
    """
    send_result(*encode_result(value))


def encode_result(value: object) -> tuple[int, memoryview]:
    """The encoding of a result, and its bytes.  Raises: as result()."""
    if isinstance(value, bytes | bytearray | memoryview):
        return RESULT_BYTES, memoryview(value).cast("B")
    return RESULT_JSON, memoryview(encode(value))


def send_result(encoding: int, data: memoryview) -> None:
    """Leave an encoded result."""
    transport, at = current(), 0
    if not data:
        transport.call(Call.RESULT, 0, 0, 0, encoding)
    while at < len(data):
        at += transport.write_long(Call.RESULT, 0, 0, at, data[at:], encoding)[1]


def log(message: object) -> None:
    """Write a line to the job's standard error, of which the first 20 and last 40 KiB are kept.

    >>> osd.log("something worth knowing")
    """
    print(message, file=sys.stderr, flush=True)


def call(name: str | int, args: object = None, *, method: str = "", partition: int = 0) -> Any:
    """Call an active function of the target in this sandbox, and return its result.

    The function has the zone, the limits and the rights of this job.  Its access class restricts it
    further until it returns.  Its module is loaded once in a job.  Arguments and result are passed
    unchanged, without a copy.  osd.args and osd.job are those of the job.  Functions can call each
    other, 16 deep.

    Args:
        name: its alias, at least 8 digits of its SHA-256, or its object id.
        args: the arguments of its entry point.
        method: the entry point.  "": the first of its manifest.
        partition: its partition.  0: that of the function that calls, or else the only one that has
            active functions.

    Raises: NotFound: no active function has this name.  Invalid: it has no such entry point, or it is
        of another engine, or the calls would be more than 16 deep; any exception of the function.
    """
    transport = current()
    by_id = isinstance(name, int)
    entry, words = method.encode(), b"" if isinstance(name, int) else name.encode()
    object_id = name if isinstance(name, int) else 0
    try:
        length, _, found = transport.call(
            Call.ENTER, partition, object_id, len(entry), 0, entry + words
        )
    except OSDError as error:
        why = str(error).partition(": ")[2] or str(error)
        shown = f"{name:#x}" if by_id else str(name)
        raise type(error)(f"function {shown}: {why}") from None
    try:
        module = load(transport, str(name), found[:SHA256_BYTES], length)
        entry_point = vars(module).get(found[SHA256_BYTES:].decode())
        if not callable(entry_point):
            raise TypeError(f"function {name} has no entry point {found[SHA256_BYTES:].decode()!r}")
        return entry_point(args)
    finally:
        transport.call(Call.LEAVE, 0, 0)


def load(transport: Transport, name: str, digest: bytes, length: int) -> ModuleType:
    """The module of the function that was entered, made at the first call of this job."""
    known: dict[bytes, ModuleType] = vars(transport).setdefault("functions", {})
    if digest in known:
        return known[digest]
    code = b""
    while len(code) < length:
        piece = transport.call(Call.CODE, 0, 0, len(code))[2]
        if not piece:
            raise OSDError(f"the code of function {name} ends early")
        code += piece
    if code.startswith(_archive.MAGIC):
        code, name = _archive.enter(code, name)
    module = ModuleType(f"function_{digest.hex()[:SHOWN]}")
    module.__file__ = name
    known[digest] = sys.modules[module.__name__] = module
    try:
        exec(_archive.compile_code(code, name), vars(module))
    except BaseException:
        del known[digest], sys.modules[module.__name__]
        raise
    return module
