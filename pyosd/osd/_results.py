# SPDX-License-Identifier: GPL-2.0-or-later
"""Values of osd.result() that JSON does not have, and their form in JSON.

| in the script | in the JSON | what Job.result() gives |
|---|---|---|
| a number of numpy | a number | a number |
| an array of numpy: numbers, booleans | {"osd.ndarray": type, "shape": [...], "data": base64} | an array |
| another array of numpy; an array.array | nested lists | nested lists |
| datetime, date, time | text, ISO 8601 | text |
| NaT and NA of pandas, NaT of numpy | null | None |
| Decimal, UUID | text | text |

Where numpy is not installed, Job.result() gives nested lists for an array.
The type is a byte order, a letter (b boolean, i, u, f, c) and the bytes of an item, as numpy writes
it; the data is in C order.  Nothing here imports numpy in a sandbox: a script that has such a value
has imported it.
"""

from __future__ import annotations

import binascii
import json
import re
import struct
import sys
from datetime import date, time
from math import prod
from typing import Any

__all__ = ["OVER", "decode", "encode"]

OVER = "iosd.over/1"
"""Key of the JSON object around the arguments of an array over objects."""

ARRAY = "osd.ndarray"
KEYS = {ARRAY, "shape", "data"}
MARK = f'"{ARRAY}"'.encode()
TYPE = re.compile(r"([<>|])([biufc])(1|2|4|8|16)")
FORMATS = {  # of struct, by numpy's letter and bytes
    "b1": "?",
    **{f"i{size}": letter for size, letter in ((1, "b"), (2, "h"), (4, "i"), (8, "q"))},
    **{f"u{size}": letter for size, letter in ((1, "B"), (2, "H"), (4, "I"), (8, "Q"))},
    **{f"f{size}": letter for size, letter in ((2, "e"), (4, "f"), (8, "d"))},
    **{f"c{size}": letter for size, letter in ((8, "ff"), (16, "dd"))},
}
DIMENSIONS_MOST = 32
INSTEAD = {  # what the author can write, by the type of a value that has no JSON
    "DataFrame": "give it frame.to_dict('list'), or write the frame to an object",
    "Series": "give it series.to_dict(), or series.to_numpy()",
    "GroupBy": "give it what an aggregation of it returns",
    "Index": "give it index.tolist()",
    "set": "give it sorted(value) or list(value)",
    "frozenset": "give it sorted(value) or list(value)",
    "bytes": "bytes are a result by themselves alone; inside another value give it value.decode()",
    "ExtensionArray": "give it value.tolist()",
    "PurePath": "give it str(value)",
}


def encode(value: object) -> bytes:
    """JSON of a value.  Raises: TypeError: neither JSON nor one of the table above."""
    try:
        return json.dumps(value, default=plain).encode()
    except TypeError as error:
        if not str(error).startswith("keys must be"):
            raise
    return json.dumps(with_plain_keys(value), default=plain).encode()


def plain(value: object) -> object:
    """The form of a value that json.dumps() does not know.  Raises: TypeError."""
    if type(value).__name__ in ("NaTType", "NAType"):  # of pandas: a NaT is a date as well
        return None
    if isinstance(value, date | time):  # a datetime is a date
        return value.isoformat()
    for module, name in (("decimal", "Decimal"), ("uuid", "UUID")):
        if module in sys.modules and isinstance(value, getattr(sys.modules[module], name)):
            return str(value)
    if "array" in sys.modules and isinstance(value, sys.modules["array"].array):
        return value.tolist()
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return array_of_numbers(numpy, value)
    if numpy is not None and isinstance(value, numpy.generic):
        item = value.item()
        if not isinstance(item, numpy.generic):
            return item
        return float(item)  # longer than Python's own
    kinds = (INSTEAD.get(each.__name__) for each in type(value).__mro__)
    instead = next((text for text in kinds if text), "")
    said = f"Object of type {type(value).__name__} is not JSON serializable"
    raise TypeError(f"{said}: {instead}" if instead else said)


def array_of_numbers(numpy: Any, value: Any) -> object:
    """An array as in the table; its elements if they are no numbers."""
    if value.dtype.kind not in "biufc":
        return value.tolist()
    size = value.dtype.itemsize
    if f"{value.dtype.kind}{size}" not in FORMATS:  # longer than Python's own numbers
        value = value.astype(numpy.complex128 if value.dtype.kind == "c" else numpy.float64)
    value = value.astype(value.dtype.newbyteorder("<"), copy=False)
    return {
        ARRAY: value.dtype.str,
        "shape": [*value.shape],
        "data": binascii.b2a_base64(value.tobytes(), newline=False).decode(),
    }


def with_plain_keys(value: object) -> object:
    """The same with keys of dicts that are numbers of numpy, dates and so on as JSON has them."""
    if isinstance(value, dict):
        return {plain_key(key): with_plain_keys(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [with_plain_keys(each) for each in value]
    return value


def plain_key(key: object) -> object:
    """A key for json.dumps().  Raises: TypeError."""
    if key is None or isinstance(key, str | int | float):
        return key
    found = plain(key)
    if isinstance(found, list | dict):
        raise TypeError(f"keys must be text or numbers, not {type(key).__name__}")
    return found


# ---- at home ------------------------------------------------------------------------------------


def decode(data: bytes | bytearray | memoryview) -> Any:
    """The value of a result's JSON.  Raises: ValueError: it is none."""
    raw = bytes(data)
    return json.loads(raw, object_hook=as_array if MARK in raw else None)


def as_array(found: dict[str, Any]) -> Any:
    """The array that a dict of JSON stands for; else the dict."""
    if found.keys() != KEYS:
        return found
    kind = TYPE.fullmatch(found[ARRAY]) if isinstance(found[ARRAY], str) else None
    shape, text = found["shape"], found["data"]
    if not kind or kind[2] + kind[3] not in FORMATS or not is_shape(shape):
        return found
    try:
        data = binascii.a2b_base64(text, strict_mode=True) if text else b""
    except (TypeError, ValueError):
        return found
    if prod(shape) * int(kind[3]) != len(data):
        return found
    try:
        import numpy  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return nested(kind, shape, data)
    return numpy.ndarray(shape, found[ARRAY], bytearray(data))


def is_shape(shape: object) -> bool:
    """Whether these are the lengths of an array's dimensions."""
    return (
        isinstance(shape, list)
        and len(shape) <= DIMENSIONS_MOST
        and all(type(each) is int and 0 <= each < 1 << 32 for each in shape)
    )


def nested(kind: re.Match[str], shape: list[int], data: bytes) -> Any:
    """Lists of Python's numbers; a number where there is no dimension."""
    order = ">" if kind[1] == ">" else "<"
    items: list[Any] = [
        complex(*each) if kind[2] == "c" else each[0]
        for each in struct.iter_unpack(order + FORMATS[kind[2] + kind[3]], data)
    ]
    if not shape:
        return items[0]
    if not items:  # however long the other dimensions are
        return []
    for length in reversed(shape[1:]):
        items = [items[at : at + length] for at in range(0, len(items), length)]
    return items
