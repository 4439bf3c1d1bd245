# SPDX-License-Identifier: GPL-2.0-or-later
"""The same at several targets at the same time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import TypeVar

__all__ = ["at_once"]

R = TypeVar("R")


def at_once(work: Callable[[str], R], names: Iterable[str]) -> dict[str, Future[R]]:
    """Call work(name) for each name in a thread of its own, and wait for all.

    Ctrl-C ends the wait at once: a target that does not answer would keep its thread for long.  The
    threads end with the program.
    """
    ends = {name: Future[R]() for name in names}

    def call(name: str) -> None:
        try:
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
