# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests of Reductionist's API (version 2), checked, as arguments of reduce.main().  No I/O."""

from __future__ import annotations

import json
from array import array
from dataclasses import dataclass
from math import isfinite, prod
from typing import Any, NoReturn
from urllib.parse import unquote, urlsplit

__all__ = ["ArrayRefusal", "ArrayRequest", "checked"]

OPERATIONS = ("count", "max", "min", "select", "sum")
TYPES = {"int32": "i", "int64": "q", "uint32": "I", "uint64": "Q", "float32": "f", "float64": "d"}
INTERFACES = ("s3", "http", "https")
COMPRESSIONS = ("gzip", "zlib")
FILTERS = ("shuffle", "shuffle_simd")
OPTIONS = ("option_disable_chunk_cache", "option_shape_as_bytes", "option_count_as_bytes")
FIELDS = {
    *("interface_type", "url", "dtype", "byte_order", "offset", "size", "shape", "axis", "order"),
    *("selection", "compression", "filters", "missing", *OPTIONS),
}
DIMENSIONS_MOST = FILTERS_MOST = 32
VALUES_MOST = 1024
ELEMENT_MOST = 256
BYTES_MOST = 1 << 30
NUMBER_END = 1 << 63
COUNT_DIGITS = 20
"""Room for each count of a result: digits in JSON, and what separates them."""


class ArrayRefusal(Exception):
    """status: of HTTP.  causes: further sentences, the root cause last."""

    def __init__(self, message: str, *causes: str, status: int = 400) -> None:
        super().__init__(message)
        self.causes = causes
        self.status = status


@dataclass(frozen=True)
class ArrayRequest:
    """path: of the object.  args: of reduce.main().  result_most: bytes, None: not known."""

    path: str
    args: dict[str, Any]
    result_most: int | None
    shape_as_bytes: bool
    count_as_bytes: bool


def refuse(why: str) -> NoReturn:
    """Raise what all wrong requests raise."""
    raise ArrayRefusal("request data is not valid", why)


def whole(value: object, name: str, least: int = 0, end: int = NUMBER_END) -> int:
    """A whole number in [least, end)."""
    if type(value) is not int or not least <= value < end:
        refuse(f"{name} must be a whole number from {least} to {end - 1}")
    return value


def some_list(value: object, name: str, most: int, least: int = 0) -> list[Any]:
    """A list of so many items."""
    if not isinstance(value, list) or not least <= len(value) <= most:
        refuse(f"{name} must be a list of {least} to {most} items")
    return value


def one_of(value: object, name: str, words: tuple[str, ...]) -> str:
    """One of these words."""
    if not isinstance(value, str) or value not in words:
        refuse(f"{name} must be one of {', '.join(words)}")
    return value


def fields_of(value: object, name: str, known: set[str]) -> dict[str, Any]:
    """An object of JSON with no other fields."""
    if not isinstance(value, dict):
        refuse(f"{name} must be an object")
    if unknown := sorted(value.keys() - known):
        refuse(f"{name} has the unknown field {unknown[0]!r}")
    return value


def path_of(url: object) -> str:
    """The path of the object.  The address of the host does not matter."""
    try:
        path = unquote(urlsplit(url).path, errors="strict") if isinstance(url, str) else ""
    except ValueError:
        path = ""
    if not path.strip("/") or "\0" in path:
        refuse("url must have a path: /PARTITION/NAME")
    return path


def selection_of(value: object, shape: list[int] | None) -> list[list[int]] | None:
    """[start, end, stride] for each dimension."""
    if value is None:
        return None
    if shape is None:
        refuse("Selection requires shape to be specified")
    if len(some_list(value, "selection", DIMENSIONS_MOST)) != len(shape):
        refuse("Shape and selection must have the same length")
    for each in some_list(value, "selection", DIMENSIONS_MOST):
        for number in some_list(each, "a selection", 3, 3):
            whole(number, "a number of selection", -NUMBER_END)
        if each[2] == 0:
            refuse("Selection stride must not be equal to zero")
    return [*map(list, some_list(value, "selection", DIMENSIONS_MOST))]


def axes_of(value: object, shape: list[int] | None) -> list[int] | None:
    """The axes over which to reduce.  None: all."""
    if value is None:
        return None
    if shape is None:
        refuse("Axis requires shape to be specified")
    axes = [value] if type(value) is int else some_list(value, "axis", len(shape))
    for each in axes:
        whole(each, "axis", 0, len(shape))
    if sorted({*axes}) != axes:
        refuse("Reduction axes must be provided in ascending order, each once")
    return axes


def filters_of(value: object) -> list[int]:
    """Sizes of the elements whose bytes were shuffled, in the order of the list."""
    sizes = []
    for each in some_list([] if value is None else value, "filters", FILTERS_MOST):
        found = fields_of(each, "a filter", {"id", "element_size"})
        one_of(found.get("id"), "id of a filter", FILTERS)
        sizes.append(whole(found.get("element_size"), "element_size", 1, ELEMENT_MOST + 1))
    return sizes


def value_of(value: object, kind: str) -> int | float:
    """A value as an element of the array has it."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            stored = array(TYPES[kind], [value])[0]
            if isfinite(stored):
                return stored
        except (TypeError, OverflowError):
            pass
    refuse(f"Incompatible value {value} for missing")


def missing_of(value: object, kind: str) -> dict[str, Any] | None:
    """{"values": [...]} that are missing, or {"range": [least, most]} of those that are not."""
    if value is None:
        return None
    names = {"missing_value", "missing_values", "valid_min", "valid_max", "valid_range"}
    found = fields_of(value, "missing", names)
    if len(found) != 1:
        refuse("missing must have exactly one field")
    [(name, given)] = found.items()
    if name == "missing_values":
        return {"values": [value_of(each, kind) for each in some_list(given, name, VALUES_MOST)]}
    if name == "missing_value":
        return {"values": [value_of(given, kind)]}
    if name != "valid_range":
        bound = value_of(given, kind)
        return {"range": [bound, None] if name == "valid_min" else [None, bound]}
    least, most = (value_of(each, kind) for each in some_list(given, name, 2, 2))
    if least >= most:
        refuse("Missing data valid range min must be less than max")
    return {"range": [least, most]}


def decoded(body: bytes) -> dict[str, Any]:
    """The JSON of a request."""

    def constant(text: str) -> NoReturn:
        raise ValueError(text)

    try:
        found = json.loads(body, parse_constant=constant)
    except (ValueError, RecursionError):
        refuse("the body is not JSON")
    given = fields_of(found, "the request", FIELDS)
    return {name: value for name, value in given.items() if value is not None}


def sizes_of(
    found: dict[str, Any], shape: list[int] | None, width: int
) -> tuple[int, int | None, int | None]:
    """Offset and length of the stored bytes, and the length of the array; None: not known."""
    offset = whole(found.get("offset", 0), "offset")
    size = found.get("size")
    if size is not None:
        whole(size, "size", 1, NUMBER_END - offset)
    expected = None if shape is None else prod(shape) * width
    largest = max(size or 0, expected or 0)
    if largest > BYTES_MOST:
        raise ArrayRefusal(f"Insufficient memory to process request ({largest} > {BYTES_MOST})")
    if size is not None and found.get("compression") is None:
        if expected is not None and size != expected:
            refuse("Raw data size must be equal to the product of shape indices and dtype size")
        if size % width:
            refuse("Raw data size must be a multiple of dtype size in bytes")
        expected = size
    return offset, size, expected


def result_most(
    operation: str,
    shape: list[int] | None,
    axes: list[int] | None,
    expected: int | None,
    width: int,
) -> int | None:
    """Most bytes that reduce.main() returns; None: not known."""
    if operation == "select":
        return expected
    if shape is None or axes is None:
        return 0
    return prod(n for at, n in enumerate(shape) if at not in axes) * (width + COUNT_DIGITS)


def checked(operation: str, body: bytes) -> ArrayRequest:
    """The request.  Raises: ArrayRefusal."""
    if operation not in OPERATIONS:
        raise ArrayRefusal(f"unsupported operation {operation}", status=404)
    found = decoded(body)
    one_of(found.get("interface_type"), "interface_type", INTERFACES)
    kind = one_of(found.get("dtype"), "dtype", tuple(TYPES))
    width = array(TYPES[kind]).itemsize
    shape = found.get("shape")
    if shape is not None:
        for each in some_list(shape, "shape", DIMENSIONS_MOST, 1):
            whole(each, "a length of shape", 1)
    offset, size, expected = sizes_of(found, shape, width)
    axes = axes_of(found.get("axis"), shape)
    compression = found.get("compression")
    if compression is not None:
        one_of(fields_of(compression, "compression", {"id"}).get("id"), "compression", COMPRESSIONS)
    order = found.get("byte_order")
    if order is not None:
        one_of(order, "byte_order", ("big", "little"))
    for name in OPTIONS:
        if not isinstance(found.get(name), bool | None):
            refuse(f"{name} must be true or false")
    args = {
        "operation": operation,
        "dtype": kind,
        "code": TYPES[kind],
        "byte_order": order,
        "offset": offset,
        "size": size,
        "shape": shape,
        "axes": axes,
        "order": one_of(found.get("order", "C"), "order", ("C", "F")),
        "selection": selection_of(found.get("selection"), shape),
        "compressed": compression is not None,
        "most": BYTES_MOST if expected is None else expected,
        "shuffled": filters_of(found.get("filters")),
        "missing": missing_of(found.get("missing"), kind),
    }
    return ArrayRequest(
        path_of(found.get("url")),
        args,
        result_most(operation, shape, axes, expected, width),
        shape_as_bytes=bool(found.get("option_shape_as_bytes")),
        count_as_bytes=bool(found.get("option_count_as_bytes")),
    )
