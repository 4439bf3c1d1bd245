# SPDX-License-Identifier: GPL-2.0-or-later
"""The workers of a test run (pytest-xdist): in which order they get files.

A worker takes a whole file, so fixtures of a module are made once.  Files with a test marked `slow`
come first: a long file at the end would leave the other workers idle.  No test waits for those of other
workers.

Not here: how many workers there are (`make test WORKERS=`).
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def in_order(items: list[pytest.Item]) -> list[pytest.Item]:
    """The items by file, long files first."""
    long = {item.path for item in items if item.get_closest_marker("slow")}
    files = dict.fromkeys(item.path for item in items)
    rank = {
        path: number for number, path in enumerate(sorted(files, key=lambda path: path not in long))
    }
    return sorted(items, key=lambda item: rank[item.path])


@contextmanager
def locked(path: Path, how: int) -> Iterator[None]:
    """Hold a lock that all workers know.  Args: how: LOCK_SH or LOCK_EX."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)
