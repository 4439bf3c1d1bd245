# SPDX-License-Identifier: GPL-2.0-or-later
"""The engines of a target, and the room that it has for functions: page B000_0005h of the root.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pyosd import errors
from pyosd.commands.pool_status import limits_in
from pyosd.types import AttributeValue
from pyosd.wire.attributes import Page

__all__ = ["Engine", "FunctionCapacity", "decode_capacity"]

MOST_ACTIVE, ACTIVE, RESERVED, RESERVED_MAX, KEPT, KEPT_MAX, CODE_MAX, ENGINES = range(1, 9)


@dataclass(frozen=True)
class Engine:
    """An engine of the target.

    abi: the first and the last version of its interface that a manifest can name.
    active: number of active functions.  reserved: bytes of memory that they reserve.
    pool: the pool of calls that name none.
    limits: default and maximum of that pool for one call (None: no bound), as in PoolStatus.
    """

    name: str
    abi: tuple[int, int]
    active: int
    reserved: int
    pool: str
    limits: Mapping[str, tuple[float, float | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class FunctionCapacity:
    """The present use and the bounds of a target's functions.

    active, most_active: number of active functions.
    reserved, most_reserved: bytes of memory that they reserve (None: no bound).
    kept, most_kept: bytes of code in memory.  most_code: bytes of one function's code.
    """

    active: int
    most_active: int
    reserved: int
    most_reserved: int | None
    kept: int
    most_kept: int
    most_code: int
    engines: tuple[Engine, ...]


def decode_engine(line: str) -> Engine:
    """One line; keys that we do not know are a newer target's.  Raises: ValueError."""
    name, *words = line.split(" ")
    given = dict(word.split("=", 1) for word in words)
    first, last = given["abi"].split("-")
    return Engine(
        name,
        (int(first), int(last)),
        active=int(given["active"]),
        reserved=int(given["reserved"]),
        pool=given["pool"],
        limits=limits_in(given),
    )


def decode_capacity(values: Iterable[AttributeValue]) -> FunctionCapacity:
    """The whole page.  Raises: ProtocolError: it cannot be read; OSDError: there is none."""
    found = {each.number: each for each in values if each.page == Page.FUNCTIONS_ROOT}
    if ACTIVE not in found:
        raise errors.OSDError(0, 0, 0, "this target runs no functions")
    most_reserved = found.get(RESERVED_MAX)
    engines = found[ENGINES].value.decode(errors="replace") if ENGINES in found else ""
    try:
        return FunctionCapacity(
            active=found[ACTIVE].uint,
            most_active=found[MOST_ACTIVE].uint,
            reserved=found[RESERVED].uint,
            most_reserved=most_reserved.uint if most_reserved else None,
            kept=found[KEPT].uint,
            most_kept=found[KEPT_MAX].uint,
            most_code=found[CODE_MAX].uint,
            engines=tuple(decode_engine(line) for line in engines.splitlines()),
        )
    except (KeyError, ValueError) as error:
        raise errors.ProtocolError(f"the target's engines cannot be read: {error}") from None
