# SPDX-License-Identifier: GPL-2.0-or-later
"""Copies of dataclasses with other fields, for tests that make hundreds of thousands of them."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


def replace(found: T, **changes: Any) -> T:
    """As dataclasses.replace, which sets each field by a call: five times as fast.  The class has no slots
    and no __post_init__."""
    made = object.__new__(type(found))
    assert changes.keys() <= found.__dict__.keys(), f"{type(found)} has not all of {[*changes]}"
    made.__dict__.update(found.__dict__, **changes)
    return made
