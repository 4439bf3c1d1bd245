# SPDX-License-Identifier: GPL-2.0-or-later
"""Executor: functions run as jobs beside the data, behind the interface of concurrent.futures."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor as FuturesExecutor
from itertools import islice
from typing import Any

from pyosd.commands import Commands
from pyosd.commands.dialogue import Awaiting
from pyosd.errors import OSDError, TargetBusy
from pyosd.forks import after_fork
from pyosd.jobs import submission
from pyosd.jobs.job import Job
from pyosd.jobs.job_array import JobArray, submit_prepared
from pyosd.jobs.modules import Modules, PathLike, modules_of
from pyosd.jobs.polling import wait as wait_for
from pyosd.jobs.source import Code, array_map_source, map_source, with_objects
from pyosd.types import ObjectRef, check_ref, no_target, ref
from pyosd.wire.capability import JOB_RIGHTS, Permission
from pyosd.wire.exec_params import After, Duration, Limits

__all__ = ["Executor"]

_ARRAY_MOST = 1000  # members: what a principal may queue, if the target says nothing else
_ARRAY_ARGS = 32 << 10  # bytes of JSON
_KEPT_LEAST = 64
_INVALID_FIELD = (0x24, 0x00)


class Executor(FuturesExecutor):
    """Sends each call as a job.  Functions are sent as source, arguments and results as JSON.

    An ObjectRef among the arguments arrives as an object of the module osd: a user object, a
    partition or the root.  An object of the package osd arrives as the same kind of object.  A full
    queue at the target makes submit() wait, so map() over many items does not overrun it.

    Args:
        commands: the Target.
        zone: where the functions may act: root, partition, collection or user object.
        limits: limits of each job; wall is its timeout.  None: the pool's.
        partition: partition of the jobs' own objects.  None: the zone's.
        pool: pool that runs the jobs.  "": the pool `default`.
        priority: -100 to 100; the higher one starts first.
        name: name of each job.  "": the function's.
        tags: tags of each job, at most 16.
        retries: repetitions after faults of the system, 0 to 14.  None: 2.
        rights, idempotent, retry_oom, retry_exit, after, expire, grace, compress, modules: of each
            job, as for Target.exec().
    Raises: TypeError: a value has the wrong type; as Modules().
    """

    def __init__(
        self,
        commands: Commands,
        zone: ObjectRef,
        *,
        limits: Limits | None = None,
        partition: ObjectRef | None = None,
        pool: str = "",
        priority: int | None = None,
        name: str = "",
        tags: Mapping[str, str] | None = None,
        retries: int | None = None,
        rights: Permission = JOB_RIGHTS,
        idempotent: bool = False,
        retry_oom: bool = False,
        retry_exit: int = 0,
        after: Iterable[After | Job | ObjectRef] = (),
        expire: Duration | None = None,
        grace: Duration | None = None,
        compress: bool | None = None,
        modules: Modules | PathLike | Iterable[PathLike] | None = None,
    ) -> None:
        if isinstance(commands, Awaiting) or not hasattr(commands, "carry"):
            raise no_target(commands)
        submission.check_types(zone, limits)
        if partition is not None:
            check_ref("partition", partition)
        self._commands = commands
        self._zone = zone
        self._name = name
        self._options: submission.Submission = {
            "limits": limits,
            "surrogate": partition and ref(partition.partition_id),
            "pool": pool,
            "priority": priority,
            "tags": tags,
            "retries": retries,
            "rights": rights,
            "idempotent": idempotent,
            "retry_oom": retry_oom,
            "retry_exit": retry_exit,
            "after": tuple(after),
            "expire": expire,
            "grace": grace,
            "compress": compress,
        }
        self._modules: list[str] = []
        if modules:
            travelling = modules_of(modules)  # read once, for all jobs
            self._options["modules"] = travelling
            self._modules = travelling.names
        self._lock = threading.Lock()
        self._jobs: list[Job] = []
        self._most_kept = _KEPT_LEAST  # jobs, before those that have ended are forgotten
        self._closed = False
        after_fork(self, Executor._renew)

    def _renew(self) -> None:
        """Have a lock that no thread of the parent holds (pyosd.forks)."""
        self._lock = threading.Lock()

    # The base class types the result by the function's, which a result by JSON cannot keep.
    def submit(self, fn: Callable[..., object], /, *args: object, **kwargs: object) -> Job:
        """Submit fn(*args, **kwargs) as a job.

        Raises: RuntimeError: the executor was shut down; TypeError, ValueError: the call cannot be sent.
        """
        return self._submit(fn, args, kwargs)

    def map(
        self,
        fn: Callable[..., Any],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
        buffersize: int | None = None,
    ) -> Iterator[Any]:
        """Call fn with items of the iterables, in jobs, and yield the results in order.

        Args:
            timeout: seconds from now for all of them.
            chunksize: calls in one job; use more if a call takes less than some 10 ms.
            buffersize: jobs under way beyond the one waited for; None: all are submitted at once.  If
                their arguments have at most 32 KiB, one command submits them as an array of jobs.

        Raises: as Job.result(); TimeoutError; ValueError: chunksize or buffersize below 1.
        """
        if chunksize < 1 or (buffersize is not None and buffersize < 1):
            raise ValueError("chunksize and buffersize must be at least 1")
        deadline = None if timeout is None else time.monotonic() + timeout
        name = getattr(fn, "__name__", "")
        chunks: Iterator[tuple[list[Any], bool]] = (
            with_objects(chunk) for chunk in _chunks(zip(*iterables, strict=False), chunksize)
        )
        if buffersize is None:
            every = list(chunks)
            if _fits_array(every):
                array = self._submit_array(fn, every, name)
                if array is not None:
                    return _array_results(array, timeout)
            chunks = iter(every)
        jobs = self._jobs_of(fn, chunks, name)
        return _results(deque(islice(jobs, buffersize)), jobs, deadline)

    def _jobs_of(
        self, fn: Callable[..., Any], chunks: Iterable[tuple[list[Any], bool]], name: str
    ) -> Iterator[Job]:
        """Submit a job for each chunk, when the next one is asked for."""
        sources = {objects: map_source(fn, objects, self._modules) for objects in (False, True)}
        for chunk, objects in chunks:
            yield self._submit(sources[objects], chunk, name=name)

    def _submit_array(
        self, fn: Callable[..., Any], chunks: list[tuple[list[Any], bool]], name: str
    ) -> JobArray | None:
        """Submit all chunks as one array.  None: the target does not take an array of this length."""
        source = array_map_source(fn, any(objects for _, objects in chunks), self._modules)
        try:
            array = self._submit(
                source, [chunk for chunk, _ in chunks], name=name, array=range(len(chunks))
            )
        except OSDError as error:
            if (error.asc, error.ascq) == _INVALID_FIELD:
                return None
            raise
        assert isinstance(array, JobArray)
        return array

    def _submit(
        self,
        code: Code,
        args: object,
        kwargs: Mapping[str, object] | None = None,
        *,
        name: str = "",
        array: range | None = None,
    ) -> Job:
        options: submission.Submission = {
            **self._options,
            "args": args,
            "kwargs": kwargs,
            "name": self._name or name,
            "array": array,
        }
        prepared = submission.prepare(code, zone=self._zone, **options)
        while not self._closed:
            try:
                job = submit_prepared(self._commands, prepared)
                break
            except TargetBusy as busy:
                time.sleep(busy.retry_after)
        else:
            raise RuntimeError("cannot submit after shutdown")
        with self._lock:
            if len(self._jobs) >= self._most_kept:
                self._jobs = [each for each in self._jobs if not each.settled]
                self._most_kept = 2 * len(self._jobs) + _KEPT_LEAST
            self._jobs.append(job)
        return job if array else job.watch()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more calls; wait for those under way.

        Args:
            wait: whether to wait.
            cancel_futures: cancel the jobs that have not started.
        """
        self._closed = True
        with self._lock:
            left: list[Any] = [job for job in self._jobs if not job.settled]
            self._jobs = [] if wait else left  # another shutdown may wait
        if cancel_futures:
            for job in left:
                job.cancel()
        if wait:
            wait_for(left)


def _fits_array(chunks: list[tuple[list[Any], bool]]) -> bool:
    """Whether the arguments are few enough: each member of an array gets those of all."""
    if not 2 <= len(chunks) <= _ARRAY_MOST:
        return False
    try:
        return len(json.dumps([chunk for chunk, _ in chunks])) <= _ARRAY_ARGS
    except (TypeError, ValueError):
        return False  # submit() reports what is wrong


def _results(under_way: deque[Job], others: Iterator[Job], deadline: float | None) -> Iterator[Any]:
    """Results in order.  One of the other jobs is submitted when one under way has ended."""
    try:
        while under_way:
            job = under_way.popleft()
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            found = job.result(left)
            under_way.extend(islice(others, 1))
            yield from found
    finally:
        for job in under_way:
            job.cancel()


def _array_results(array: JobArray, timeout: float | None) -> Iterator[Any]:
    def results() -> Iterator[Any]:
        whole = False
        try:
            for found in array.results(timeout):
                yield from found
            whole = True
        finally:
            if not whole:
                array.stop()

    return results()


def _chunks(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Lists of size items; the last may be shorter."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk
