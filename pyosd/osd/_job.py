# SPDX-License-Identifier: GPL-2.0-or-later
"""Reports of a script about itself: progress, a result, a line of log."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ._current import current
from ._errors import Invalid
from ._results import encode
from ._transport import CALL_IO_MAX, Call

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["log", "progress", "result"]

PROGRESS_UNKNOWN = 0xFFFF
PROGRESS_FULL = 1000
MESSAGE_MAX = 256
RESULT_BYTES, RESULT_JSON = 0, 1


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
