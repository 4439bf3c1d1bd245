# SPDX-License-Identifier: GPL-2.0-or-later
"""AsyncTarget, which connect() gives: the OSD commands and jobs, for coroutines.

    async with aio.connect("iscsi://host/iqn.../1") as target:
        data = await target.read_range(obj)
        job = await target.exec("import osd; osd.result(1)", zone=zone)
        value = await job

Its methods are those of pyosd.Target: same names, parameters and meanings.
Not here: single commands (commands/), sessions and reconnecting (iscsi/async_session.py), a job's
methods (jobs/aio_jobs.py).
"""

from __future__ import annotations

from collections.abc import Generator
from functools import cached_property
from typing import Any, Unpack

from pyosd.destination import destination
from pyosd.fs import AsyncFileSystem
from pyosd.fs.aio_files import AsyncFile
from pyosd.functions import AsyncFunctions
from pyosd.iscsi.async_session import AsyncIscsiTransport
from pyosd.iscsi.login import Chap
from pyosd.iscsi.session import DEFAULT_TIMEOUT, TaskFunction
from pyosd.jobs import retrying, submission
from pyosd.jobs.aio_jobs import (
    KINDS,
    AsyncJob,
    AsyncJobArray,
    Poller,
    PollingCommands,
    as_completed,
    wait,
)
from pyosd.jobs.source import Code
from pyosd.jobs.submission import Prepared, prepare, takes_options
from pyosd.jobs.target_table import TargetTable
from pyosd.security.credentials import Credential, CredentialSource
from pyosd.types import ObjectRef, ref

__all__ = [
    "AsyncJob",
    "AsyncJobArray",
    "AsyncTarget",
    "as_completed",
    "connect",
    "wait",
]


class AsyncTarget(TargetTable, PollingCommands):
    """A logical unit with the OSD commands and jobs as methods, for coroutines."""

    def __init__(
        self,
        transport: AsyncIscsiTransport,
        url: str = "",
        credentials: CredentialSource | None = None,
    ) -> None:
        super().__init__(transport, credentials)
        self._iscsi = transport
        self.url = url
        self.poller = Poller(self)

    async def __aenter__(self) -> AsyncTarget:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        address = self._iscsi.address
        place = f"{address.host}:{address.port} {address.target} lun {address.lun}"
        return f"<pyosd.AsyncTarget {place}>"

    async def close(self) -> None:
        """Log out; jobs continue.  Never raises; can be called again."""
        await self._iscsi.close()

    @property
    def bytes_sent(self) -> int:
        """Bytes put on the socket(s), iSCSI headers included."""
        return self._iscsi.bytes_sent

    @property
    def bytes_received(self) -> int:
        """Bytes taken from the socket(s), iSCSI headers included."""
        return self._iscsi.bytes_received

    async def ping(self) -> float:
        """Send an iSCSI NOP-Out and wait for the answer.  Returns: the seconds that took."""
        return await self._iscsi.ping()

    async def manage_tasks(self, function: TaskFunction) -> int:
        """Send ABORT TASK SET, CLEAR TASK SET or a reset.  Returns: a TaskResponse; 0: done."""
        return await self._iscsi.manage_tasks(function)

    def partition(self, partition_id: int) -> ObjectRef:
        """The reference of a partition; nothing is sent."""
        return ref(partition_id)

    # ---- files ----------------------------------------------------------------------------------

    @cached_property
    def fs(self) -> AsyncFileSystem:
        """Files by their paths, such as /photos/2024/a.jpg."""
        return AsyncFileSystem(self)

    async def open(self, path: str, mode: str = "rb") -> AsyncFile:
        """Open a file by its path; see fs.open()."""
        return await self.fs.open(path, mode)

    # ---- functions ------------------------------------------------------------------------------

    @property
    def functions(self) -> AsyncFunctions:
        """Code that is stored in the target and called by name."""
        return AsyncFunctions(self)

    # ---- jobs -----------------------------------------------------------------------------------

    @takes_options(prepare)
    async def exec(self, prepared: Prepared) -> AsyncJob:
        """Submit code as a job, which runs near the data.

        Returns: the AsyncJob; the target has stored it.  With array the code runs once for each index, and
            the result is an AsyncJobArray; exec_array() is the same with that type.
        Raises: as pyosd.Target.exec().
        """
        return await self.carry(submission.submit(KINDS, self, prepared))

    @takes_options(prepare)
    async def exec_array(self, prepared: Prepared) -> AsyncJobArray:
        """Submit code once for each index of an array.  The target accepts all of these jobs or none.

        The options are those of each member.

        Raises: as exec().  ValueError: array is missing, or has no such indices.
        """
        return await self.carry(submission.submit_array(KINDS, self, prepared))

    async def retry(
        self,
        job: AsyncJob,
        *,
        code: Code | None = None,
        failed: bool = False,
        **how: Unpack[submission.Submission],
    ) -> AsyncJob:
        """Run a job again that has ended, as a new job.  For the arguments see pyosd.Target.retry()."""
        return await self.carry(retrying.retry(KINDS, self, job, code=code, failed=failed, **how))

    def job(self, job: ObjectRef) -> AsyncJob:
        """The job that has this surrogate; nothing is sent."""
        return AsyncJob(self, job)

    async def array(self, job: ObjectRef) -> AsyncJobArray:
        """The array that has this surrogate; one command reads its indices.

        Raises: JobExpired; ValueError: it is no array.
        """
        status = await AsyncJob(self, job).status()
        if status.array is None or not status.array.members:
            raise ValueError(f"job {job} is not an array")
        return AsyncJobArray(self, job, status.name, status.array)


class Connecting:
    """The result of connect(): await it, or use it in `async with`, which logs out at the end."""

    def __init__(
        self, transport: AsyncIscsiTransport, url: str, source: CredentialSource | None
    ) -> None:
        self._transport = transport
        self._url = url
        self._source = source
        self._target: AsyncTarget | None = None

    async def _connect(self) -> AsyncTarget:
        await self._transport.connect()
        return AsyncTarget(self._transport, self._url, self._source)

    def __await__(self) -> Generator[Any, None, AsyncTarget]:
        return self._connect().__await__()

    async def __aenter__(self) -> AsyncTarget:
        self._target = await self._connect()
        return self._target

    async def __aexit__(self, *exc_info: object) -> None:
        assert self._target
        await self._target.close()


def connect(
    url: str | None = None,
    *,
    chap: Chap | None = None,
    credentials: CredentialSource | Credential | None = None,
    initiator: str = "",
    header_digest: bool = False,
    timeout: float = DEFAULT_TIMEOUT,
    reconnect_timeout: float = 10.0,
    local: bool = True,
) -> Connecting:
    """Log in to a target: `async with connect(url) as target`, or `target = await connect(url)`.

    Arguments: see pyosd.connect().  The target belongs to the running event loop.

    Raises: ValueError: the URL is wrong or missing; OSError: a file of the profile cannot be read; when
        awaited: Unreachable; LoginRejected.
    """
    found = destination(url, chap, credentials, local)
    transport = AsyncIscsiTransport(
        found.address,
        initiator=initiator,
        header_digest=header_digest,
        timeout=timeout,
        reconnect_timeout=reconnect_timeout,
    )
    return Connecting(transport, found.url, found.credentials)
