# SPDX-License-Identifier: GPL-2.0-or-later
"""The code that is sent to the targets: a member of an array, and the combination of results.

Each function is sent as source, so it uses nothing of this module.  Only checked() runs here: it checks
the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def mean(a: float, weight_a: float, b: float, weight_b: float) -> float:
    """Two means as one."""
    whole = weight_a + weight_b
    return (a * weight_a + b * weight_b) / whole if whole else a


def merged(pairs: list[Any], combine: Callable[..., Any], weighted: bool) -> list[Any]:
    """Pairs of value and weight as one pair, neighbours first: [] of none, else a list of one."""
    while len(pairs) > 1:
        level = []
        for at in range(0, len(pairs) - 1, 2):
            (a, weight_a), (b, weight_b) = pairs[at], pairs[at + 1]
            value = combine(a, weight_a, b, weight_b) if weighted else combine(a, b)
            level.append([value, weight_a + weight_b])
        pairs = level + (pairs[-1:] if len(pairs) % 2 else [])
    return pairs


def run_slice(
    sources: dict[str, str], weighted: bool, partition: int, slices: list[list[int]]
) -> dict[str, Any]:
    """Call the function for each object of the slice that this member of the array has, or this job.

    Returns: failed: [position, class, text, whether storage failed] of each object without a value;
        values: [position, value] of the others; with combine: [value, weight] of all, or nothing.
    """
    import json
    from importlib import import_module

    osd: Any = import_module("osd")  # the one of the sandbox

    def load(text: str) -> Any:
        space: dict[str, Any] = {"__name__": "travelled"}
        exec(compile(text, "<travelled>", "exec"), space)
        return space["main"]

    code = {name: load(text) for name, text in sources.items()}
    combining, weigh = code.get("combine"), code.get("weights")
    failed, values, pairs = [], [], []
    for position, number in enumerate(slices[osd.array_index or 0]):
        obj = osd.userobject(partition, number)
        try:
            value = code["fn"](obj)
            if combining is None:
                json.dumps(value)
                values.append([position, value])
            else:
                pairs.append([value, weigh(obj) if weigh else 1])
        except Exception as error:
            again = isinstance(error, osd.NotFound | osd.StorageError)
            failed.append([position, type(error).__name__, str(error), again])
    if combining is not None:
        values = code["merged"](pairs, combining, weighted)
    return {"failed": failed, "values": values}


def checked(found: Any, count: int, combining: bool) -> tuple[dict[int, list[Any]], list[Any]]:
    """The answer of run_slice() for a slice of so many objects; a target may have answered anything.

    Returns: class, text and whether storage failed, by position; and the values.
    Raises: ValueError: run_slice() returns no such thing.
    """
    try:
        failed = {position: rest for position, *rest in found["failed"]}
        values = [[first, second] for first, second in found["values"]]
        left = {*range(count)} - {*failed}
        good = {*failed} <= {*range(count)} and all(
            [*map(type, each)] == [int, str, str, bool] for each in found["failed"]
        )
        if combining:
            good &= len(values) == bool(left)
            good &= all(type(weight) in (int, float) for _, weight in values)
        else:
            good &= sorted(position for position, _ in values) == sorted(left)
            good &= all(type(position) is int for position, _ in values)
    except (TypeError, KeyError, ValueError):
        good = False
    if not good:
        raise ValueError("the answer is not that of the code that was sent")
    return failed, values


def digest_of(obj: Any) -> list[Any]:
    """SHA-256 of an object's data in hexadecimal digits, and their version before and after."""
    import hashlib

    before, digest = obj.data_version(), hashlib.sha256()
    for block in obj.data.blocks():
        digest.update(block)
    return [digest.hexdigest(), before.hex(), obj.data_version().hex()]
