# SPDX-License-Identifier: GPL-2.0-or-later
"""Reports of a script about itself: progress, a result, a line of log.  Calls of functions that are
active in the target, inside the process of the script.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from . import _archive
from ._current import current
from ._errors import Invalid, OSDError
from ._results import encode
from ._transport import CALL_IO_MAX, Call

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from ._transport import Transport

__all__ = ["call", "log", "progress", "result"]

PROGRESS_UNKNOWN = 0xFFFF
PROGRESS_FULL = 1000
MESSAGE_MAX = 256
RESULT_BYTES, RESULT_JSON = 0, 1
SHA256_BYTES = 32
SHOWN = 16  # digits of it in a module's name


def progress(fraction: float | None, message: str = "") -> None:
    """Say how far the job is, for who follows it; shown at most 20 times a second.

    Args: fraction: 0.0 to 1.0, or None for unknown; what is shown does not go back.
        message: up to 256 bytes, the rest is cut.

    >>> for n, each in enumerate(objects := list(p)):
    ...     osd.progress(n / len(objects), f"object {each.object_id:#x}")

    Raises: Invalid: another fraction.
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
    """Leave the job's result, for Job.result() and `osd job result`.  The last one counts.

    Args: value: bytes-like as it is, anything else as JSON; together at most the job's limit, 1 GiB
        unless told otherwise.  More than that ends the job (reason 308).  Numbers and arrays of numpy may
        be in it: Job.result() gives arrays again where numpy is installed, else nested lists.  Dates,
        times, Decimal and UUID become text.

    >>> osd.result({"lines": sum(1 for line in u.data)})

    Raises: TypeError: neither bytes nor JSON.
    """
    if isinstance(value, bytes | bytearray | memoryview):
        encoding, data = RESULT_BYTES, memoryview(value).cast("B")
    else:
        encoding, data = RESULT_JSON, memoryview(encode(value))
    transport = current()
    for at in range(0, max(1, len(data)), CALL_IO_MAX):
        piece: ReadableBuffer = data[at : at + CALL_IO_MAX]
        transport.call(Call.RESULT, 0, 0, at, encoding, piece)


def log(message: object) -> None:
    """Write a line to the job's standard error, of which the first 20 and last 40 KiB are kept.

    >>> osd.log("something worth knowing")
    """
    print(message, file=sys.stderr, flush=True)


def call(name: str | int, args: object = None, *, method: str = "", partition: int = 0) -> Any:
    """Call an active function of the target here, in this sandbox, and return what it returns.

    The function has the zone, the limits and the rights of this job.  Its access class restricts it
    further until it returns.  Its module is loaded once in a job.  Arguments and result are passed
    as they are, without a copy.  osd.args and osd.job are those of the job.  Functions can call each
    other, 16 deep.

    Args: name: its alias, at least 8 digits of its SHA-256, or its object id.
        args: what its entry point is given.  method: the entry point; "": the first of its manifest.
        partition: its partition.  0: that of the function that calls, or else the only one that has
        active functions.

    Raises: NotFound: no active function has this name.  Invalid: it has no such entry point, or it is
        of another engine, or 16 functions wait already; also: whatever the function raises.
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
