# SPDX-License-Identifier: GPL-2.0-or-later
"""Reduce an array that lies in an object.  A target stores this file as a function.

The zone is the object.  The arguments are those of checked.ArrayRequest.  The result is a line of JSON,
{"shape": [...], "count": [...], "byte_order": "little"}, and the bytes of the values; {"error": [...]} if
the object's data are not what the arguments say.  numpy computes if the pool has it.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
import zlib
from array import array
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import Any

numpy: Any
try:
    numpy = import_module("numpy")
except ImportError:
    numpy = None

WRAPPED = 32 + zlib.MAX_WBITS
"""For zlib: data of gzip or zlib, by their first bytes."""

Part = tuple[list[int], list[int], bytes]
"""Lengths of the dimensions, counts, values."""


class UnfitData(Exception):
    """The data are not what the request says."""


def main(args: dict[str, Any]) -> object:
    """The reduction.  Returns: bytes, or the JSON of an error."""
    try:
        data = unfiltered(stored(args), args)
        compute = by_numpy if numpy is not None else by_hand
        shape, counts, values = compute(data, args)
    except UnfitData as error:
        return {"error": error.args}
    head = {"shape": shape, "count": counts, "byte_order": sys.byteorder}
    return json.dumps(head).encode() + b"\n" + values


def stored(args: dict[str, Any]) -> bytes:
    """The bytes of the object that hold the array."""
    zone = import_module("osd").zone
    offset, size = args["offset"], args["size"]
    here = max(0, zone.length() - offset)
    if (size or 1) > here:
        raise UnfitData(
            "error retrieving object from storage",
            f"the object has {here} bytes from offset {offset} on",
        )
    if size is None:  # one byte more than the array has shows that it is not the array
        size = here if args["compressed"] else min(here, args["most"] + 1)
    with zone.data as file:
        file.seek(offset)
        found: bytes = file.read(size)
    return found


def unfiltered(data: bytes, args: dict[str, Any]) -> bytes:
    """Undo compression and filters, and check the length."""
    if args["compressed"]:
        data = inflated(data, args["most"])
    for width in args["shuffled"]:
        data = unshuffled(data, width)
    shape, width = args["shape"], array(args["code"]).itemsize
    wrong = len(data) % width if shape is None else len(data) != math.prod(shape) * width
    if wrong or len(data) > args["most"]:
        raise UnfitData(
            "request data is not valid",
            f"Raw data size ({len(data)}) must be equal to the product of shape and dtype size",
        )
    return data


def inflated(data: bytes, most: int) -> bytes:
    """Data that gzip or zlib compressed, at most one byte more than they may be."""
    machine = zlib.decompressobj(WRAPPED)
    try:
        found = machine.decompress(data, most + 1)
    except zlib.error as error:
        raise UnfitData("failed to decompress data", str(error)) from None
    if len(found) <= most and not machine.eof:
        raise UnfitData("failed to decompress data", "unexpected end of the data")
    return found


def unshuffled(data: bytes, width: int) -> bytes:
    """Bytes in the order that they had before a byte shuffle; a rest shorter than an element stays."""
    count = len(data) // width
    found = bytearray(data)
    for at in range(width):
        found[at : count * width : width] = data[at * count : (at + 1) * count]
    return bytes(found)


def bounds(code: str) -> tuple[Any, Any]:
    """The least and the greatest value of a type: the minimum and maximum of no values, exchanged."""
    if code == "f":
        most = (2 - 2**-23) * 2.0**127
        return -most, most
    if code == "d":
        return -sys.float_info.max, sys.float_info.max
    bits = 8 * array(code).itemsize
    return (0, (1 << bits) - 1) if code in "IQ" else (-1 << bits - 1, (1 << bits - 1) - 1)


def check_selection(lengths: list[int], operation: str) -> None:
    """Nothing has no minimum."""
    if operation in ("min", "max") and 0 in lengths:
        raise UnfitData(f"cannot perform {operation} on empty array or selection")


# ---- with numpy ----------------------------------------------------------------------------------


def by_numpy(data: bytes, args: dict[str, Any]) -> Part:
    """The reduction by numpy."""
    operation, order, axes = args["operation"], args["order"], args["axes"]
    kind = numpy.dtype(args["dtype"])
    foreign = args["byte_order"] not in (None, sys.byteorder)
    every = numpy.frombuffer(data, kind.newbyteorder("S") if foreign else kind)
    shape = args["shape"] or [len(every)]
    ranges = tuple(slice(*each) for each in args["selection"] or [(None, None, 1)] * len(shape))
    part = every.reshape(shape, order=order)[ranges].astype(kind, copy=False)
    check_selection([*part.shape], operation)
    valid = valid_by_numpy(part, args["missing"])
    if operation == "select":
        return (
            [*part.shape],
            [part.size if valid is True else int(valid.sum())],
            part.tobytes(order),
        )
    over = tuple(range(part.ndim)) if axes is None else tuple(axes)
    if valid is True:
        left = [length for at, length in enumerate(part.shape) if at not in over]
        counts = numpy.full(left, math.prod(part.shape[at] for at in over), "i8")
    else:
        counts = valid.sum(axis=over, dtype="i8")
    if operation == "count":
        return [*counts.shape], counts.ravel().tolist(), counts.tobytes()
    if over == ():
        return [*part.shape], counts.ravel(order).tolist(), part.tobytes(order)
    if operation == "sum":
        found = part.sum(axis=over, dtype=kind, where=valid)
    else:
        least, most = bounds(args["code"])
        none = most if operation == "min" else least
        far = none if kind.kind in "iu" else math.copysign(math.inf, none)
        reduce = numpy.min if operation == "min" else numpy.max
        found = reduce(part, axis=over, where=valid, initial=far)
        found = numpy.where(counts == 0, kind.type(none), found)
    return [*counts.shape], counts.ravel().tolist(), found.astype(kind).tobytes()


def valid_by_numpy(part: Any, missing: dict[str, Any] | None) -> Any:
    """The elements that are not missing."""
    if missing is None:
        return True
    if "values" in missing:
        return ~numpy.isin(part, numpy.array(missing["values"], part.dtype))
    least, most = missing["range"]
    valid = numpy.ones(part.shape, "?")
    if least is not None:
        valid &= part >= least
    if most is not None:
        valid &= part <= most
    return valid


# ---- without numpy -------------------------------------------------------------------------------


def by_hand(data: bytes, args: dict[str, Any]) -> Part:
    """The reduction by Python alone, for targets whose pools have no numpy."""
    operation, order, code = args["operation"], args["order"], args["code"]
    values = array(code, data)
    if args["byte_order"] not in (None, sys.byteorder):
        values.byteswap()
    shape = args["shape"] or [len(values)]
    ranges = [range(length) for length in shape]
    if args["selection"]:
        ranges = [
            each[slice(*chosen)] for each, chosen in zip(ranges, args["selection"], strict=True)
        ]
    check_selection([*map(len, ranges)], operation)
    dimensions = offsets(shape, ranges, order)
    axes = range(len(shape)) if args["axes"] is None else args["axes"]
    over = [] if operation == "select" else [*axes]
    kept = [each for at, each in enumerate(dimensions) if at not in over]
    gone = [dimensions[at] for at in over]
    backwards = order == "F" and not over and operation != "count"
    is_valid, counts = validity(args["missing"]), []
    found = array("q" if operation == "count" else code)
    for base in places(kept[::-1] if backwards else kept):
        cell = cell_of(values, base, gone)
        valid = cell if is_valid is None else [*filter(is_valid, cell)]
        counts.append(len(valid))
        found.append(reduced(valid if over or operation == "count" else cell, operation, code))
    lengths = [len(each) for each in kept]
    return lengths, [sum(counts)] if operation == "select" else counts, found.tobytes()


def offsets(shape: list[int], ranges: list[range], order: str) -> list[range]:
    """For each dimension, where its chosen elements are in the data, in elements."""
    found, stride = [], 1
    pairs = [*zip(shape, ranges, strict=True)]
    for length, each in pairs if order == "F" else pairs[::-1]:
        found.append(range(each.start * stride, each.stop * stride, each.step * stride))
        stride *= length
    return found if order == "F" else found[::-1]


def places(dimensions: list[range]) -> Iterator[int]:
    """The places of all elements of a block, the last dimension first."""
    return map(sum, itertools.product(*dimensions))


def cell_of(values: array[Any], base: int, dimensions: list[range]) -> array[Any]:
    """The elements of a block at base, in any order."""
    *outer, inner = dimensions or [range(1)]
    if inner.step < 0:
        inner = inner[::-1]
    found = array(values.typecode)
    for place in places(outer):
        start = base + place
        found += values[start + inner.start : start + inner.stop : inner.step]
    return found


def validity(missing: dict[str, Any] | None) -> Callable[[Any], bool] | None:
    """Whether an element is not missing.  None: all are there."""
    if missing is None:
        return None
    if "values" in missing:
        absent = frozenset(missing["values"])
        return lambda each: each not in absent
    least, most = missing["range"]
    least = -math.inf if least is None else least
    most = math.inf if most is None else most
    return lambda each: least <= each <= most


def reduced(cell: Sequence[Any], operation: str, code: str) -> Any:
    """The value of one element of the result."""
    if operation == "count":
        return len(cell)
    if operation == "select":
        return cell[0]
    if operation == "sum":
        total = sum(cell)
        if code in "fd":
            return total
        least, most = bounds(code)
        return (total - least) % (most - least + 1) + least
    if not cell:
        return bounds(code)[operation == "min"]
    if code in "fd" and any(map(math.isnan, cell)):
        return math.nan
    return min(cell) if operation == "min" else max(cell)
