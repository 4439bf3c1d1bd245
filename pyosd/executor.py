# SPDX-License-Identifier: GPL-2.0-or-later
"""Executor: functions run as jobs beside the data, behind the interface of concurrent.futures."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor as FuturesExecutor
from typing import Any

from pyosd import jobs
from pyosd._polling import wait as wait_for
from pyosd.commands import Commands
from pyosd.errors import TargetBusy
from pyosd.exec_params import Limits
from pyosd.types import ObjectRef


class Executor(FuturesExecutor):
    """Sends each call as a job.  Functions travel as source, arguments and results as JSON.

    A full queue at the target makes submit() wait, so map() over many items does not overrun it.
    """

    def __init__(
        self, commands: Commands, *, zone: ObjectRef, limits: Limits | None = None
    ) -> None:
        self._commands = commands
        self._zone = zone
        self._limits = limits
        self._lock = threading.Lock()
        self._jobs: list[jobs.Job] = []
        self._closed = False

    # The base class gives the return type a parameter of its own, which a result by JSON cannot
    # keep.
    def submit(self, fn: Callable[..., object], /, *args: object, **kwargs: object) -> jobs.Job:
        """Submit fn(*args, **kwargs) as a job.

        Raises: RuntimeError: shut down; TypeError, ValueError: the call cannot be sent.
        """
        if self._closed:
            raise RuntimeError("cannot submit after shutdown")
        while True:
            try:
                job = jobs.submit(
                    self._commands,
                    fn,
                    zone=self._zone,
                    args=args,
                    kwargs=kwargs,
                    limits=self._limits,
                    name=getattr(fn, "__name__", ""),
                )
                break
            except TargetBusy as busy:
                time.sleep(busy.retry_after)
        with self._lock:
            self._jobs.append(job)
        return job.watch()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls; wait for those under way, or cancel what has not started."""
        self._closed = True
        with self._lock:
            left: list[Any] = [job for job in self._jobs if not job.settled]
            self._jobs = []
        if cancel_futures:
            for job in left:
                job.cancel()
        if wait:
            wait_for(left)
