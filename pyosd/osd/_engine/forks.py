# SPDX-License-Identifier: GPL-2.0-or-later
"""Work in a sandbox after its fork (sandbox/python/python_engine.c).

A zygote forks between two requests, with one thread: no lock is held and no other thread is lost.
Most handlers that Python code registers for a fork would change nothing here, but would write to
hundreds of pages. Each sandbox would then need copies of these pages.  So the standard library's is
left out, but for random numbers; where anybody else wants to be called, the interpreter does all it
usually does.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Hook = Callable[[], object]

__all__ = ["forked", "in_child", "unwatch", "wants_all", "watch"]

# Their locks are free and their threads none; random's generator is in in_child.
NEEDLESS = frozenset({"concurrent.futures.thread", "logging", "random", "threading"})

in_child: list[Hook] = []
register_at_fork = os.register_at_fork
others = False


def _register(**hooks: Hook) -> None:
    """os.register_at_fork() while modules are imported ahead of need."""
    global others  # noqa: PLW0603 -- one process, one interpreter
    if sys._getframe(1).f_globals.get("__name__") not in NEEDLESS:
        others = True
        register_at_fork(**hooks)


def watch() -> None:
    """From now on note who wants to be called; before anything that might is imported."""
    os.register_at_fork = _register  # type: ignore[assignment]


def unwatch() -> None:
    """For scripts everything is as usual."""
    os.register_at_fork = register_at_fork


def wants_all() -> bool:
    """Whether anybody but the standard library wants to be called at a fork."""
    return others


def forked() -> None:
    """In the child."""
    for hook in in_child:
        hook()
