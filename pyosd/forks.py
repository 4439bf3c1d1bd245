# SPDX-License-Identifier: GPL-2.0-or-later
"""Objects that a child of fork() makes usable for itself: threads that held their locks are not in it."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["after_fork"]

T = TypeVar("T")

_here: weakref.WeakKeyDictionary[Any, Callable[[Any], None]] = weakref.WeakKeyDictionary()


def after_fork(thing: T, renew: Callable[[T], None]) -> None:
    """Call renew(thing) in each child of fork(), as long as the thing lives.

    renew() gives it new locks, and leaves to the parent what two processes cannot share.
    """
    _here[thing] = renew


def _renew_all() -> None:
    for thing, renew in _here.items():
        renew(thing)


os.register_at_fork(after_in_child=_renew_all)
