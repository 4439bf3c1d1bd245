# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd target repair` that is killed at its n-th step: a transaction's end, a rename, an fsync.

Arguments: n, then repair's own.  Not a test: test_repair.py runs it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from iosd_host.cli import store as commands
from iosd_host.store_tools.opening import bdb


class Countdown:
    """Ends the process when it has been called so often."""

    def __init__(self, left: int) -> None:
        self.left = left

    def step(self) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def before_and_after(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def stepped(*args: Any, **options: Any) -> Any:
            self.step()
            result = call(*args, **options)
            self.step()
            return result

        return stepped


def main() -> None:
    countdown = Countdown(int(sys.argv[1]))
    transaction = bdb.StoreDatabase.transaction

    @contextlib.contextmanager
    def counted(database: bdb.StoreDatabase) -> Iterator[bdb.StoreTransaction]:
        with transaction(database) as opened:
            yield opened
            countdown.step()
        countdown.step()

    bdb.StoreDatabase.transaction = counted  # type: ignore[method-assign, assignment]
    Path.rename = countdown.before_and_after(Path.rename)  # type: ignore[method-assign]
    os.fsync = countdown.before_and_after(os.fsync)
    commands.repair(sys.argv[2:])


if __name__ == "__main__":
    main()
