# SPDX-License-Identifier: GPL-2.0-or-later
"""Executor: functions run as jobs beside the data, behind the interface of concurrent.futures."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor as FuturesExecutor
from itertools import islice
from typing import Any, Unpack

from pyosd import jobs
from pyosd._polling import wait as wait_for
from pyosd._source import Code, map_source
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

    # The base class types the result by the function's, which a result by JSON cannot keep.
    def submit(self, fn: Callable[..., object], /, *args: object, **kwargs: object) -> jobs.Job:
        """Submit fn(*args, **kwargs) as a job.

        Raises: RuntimeError: shut down; TypeError, ValueError: the call cannot be sent.
        """
        return self._submit(fn, args=args, kwargs=kwargs)

    def map(
        self,
        fn: Callable[..., Any],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
    ) -> Iterator[Any]:
        """Call fn with items of the iterables, in jobs, and yield the results in order.

        Args: timeout: seconds from now for all of them.  chunksize: calls in one job; take many
            where a call takes less than some 10 ms.  buffersize: jobs under way beyond the one
            waited for; None: all are submitted at once.
        Raises: as Job.result(); TimeoutError; ValueError: chunksize or buffersize below 1.
        """
        if chunksize < 1 or (buffersize is not None and buffersize < 1):
            raise ValueError("chunksize and buffersize must be at least 1")
        deadline = None if timeout is None else time.monotonic() + timeout
        name = getattr(fn, "__name__", "")
        chunks = _chunks(zip(*iterables, strict=False), chunksize)
        source = map_source(fn)
        under_way = deque(
            self._submit(source, args=chunk, name=name) for chunk in islice(chunks, buffersize)
        )

        def results() -> Iterator[Any]:
            try:
                while under_way:
                    job = under_way.popleft()
                    left = None if deadline is None else max(0.0, deadline - time.monotonic())
                    found = job.result(left)
                    under_way.extend(
                        self._submit(source, args=chunk, name=name) for chunk in islice(chunks, 1)
                    )
                    yield from found
            finally:
                for job in under_way:
                    job.cancel()

        return results()

    def _submit(self, code: Code, **how: Unpack[jobs.Submission]) -> jobs.Job:
        if self._closed:
            raise RuntimeError("cannot submit after shutdown")
        how["limits"] = self._limits
        while True:
            try:
                job = jobs.submit(self._commands, code, zone=self._zone, **how)
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


def _chunks(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Lists of size items; the last may be shorter."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk
