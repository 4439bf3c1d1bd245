# SPDX-License-Identifier: GPL-2.0-or-later
"""The same at several targets at the same time, with errors that name the target."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import TypeVar

from pyosd.errors import OSDError

__all__ = ["NAMED", "at_once", "naming"]

R = TypeVar("R")
NAMED = "the target is "
"""Begin of the note with the target's name."""


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Note the target's name in its refusals: their text comes from the target, which has no names."""
    try:
        yield
    except OSDError as error:
        error.add_note(NAMED + name)
        raise


def at_once(work: Callable[[str], R], names: Iterable[str]) -> dict[str, Future[R]]:
    """Call work(name) for each name in a thread of its own, and wait for all.

    Ctrl-C ends the wait at once: a target that does not answer would keep its thread for long.  The
    threads end with the program.
    """
    ends = {name: Future[R]() for name in names}

    def call(name: str) -> None:
        try:
            with naming(name):
                ends[name].set_result(work(name))
        except BaseException as error:
            ends[name].set_exception(error)

    threads = [
        threading.Thread(target=call, args=(name,), name=f"pyosd-{name}", daemon=True)
        for name in ends
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return ends
