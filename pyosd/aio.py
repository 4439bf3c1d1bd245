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
from dataclasses import replace
from types import TracebackType
from typing import Any

from pyosd import requests
from pyosd.commands import AsyncCommands
from pyosd.errors import OSDError, ProtocolError
from pyosd.iscsi.async_session import AsyncIscsiTransport
from pyosd.iscsi.login import Chap
from pyosd.iscsi.session import DEFAULT_TIMEOUT, TargetAddress, TaskFunction
from pyosd.jobs import submission
from pyosd.jobs.aio_jobs import AsyncJob, AsyncJobArray, Poller, as_completed, wait
from pyosd.jobs.refusal import explain_at_once
from pyosd.jobs.submission import Prepared, prepare, takes_options
from pyosd.security import local_credential
from pyosd.security.credentials import Credential, CredentialSource, source_of
from pyosd.types import ObjectRef, ref
from pyosd.wire.attributes import CURRENT_OBJECT_ID, CURRENT_PARTITION_ID
from pyosd.wire.cdb import AttributeLists
from pyosd.wire.reply import decode_exec

__all__ = [
    "AsyncJob",
    "AsyncJobArray",
    "AsyncTarget",
    "as_completed",
    "connect",
    "wait",
]


class AsyncTarget(AsyncCommands):
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

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        address = self._iscsi.address
        place = f"{address.host}:{address.port} {address.target} lun {address.lun}"
        return f"<pyosd.AsyncTarget {place}>"

    async def close(self) -> None:
        """Log out; jobs go on.  Never raises; may be repeated."""
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
        """iSCSI NOP-Out and back.  Returns: seconds it took."""
        return await self._iscsi.ping()

    async def manage_tasks(self, function: TaskFunction) -> int:
        """ABORT TASK SET, CLEAR TASK SET or a reset.  Returns: TaskResponse, 0: done."""
        return await self._iscsi.manage_tasks(function)

    def partition(self, partition_id: int) -> ObjectRef:
        """Name a partition; nothing is sent."""
        return ref(partition_id)

    @takes_options(prepare)
    async def exec(self, prepared: Prepared) -> AsyncJob:
        """Run code near the data.

        Returns: the AsyncJob, accepted for good.  With array the code runs once for each index,
            and the result is an AsyncJobArray.
        Raises: as pyosd.Target.exec(), but a lost session is always SessionLost.
        """
        params = prepared.params
        request = requests.execute(
            prepared.zone,
            prepared.code,
            params,
            synchronous=params.wait is not None,
            attributes=AttributeLists((CURRENT_PARTITION_ID, CURRENT_OBJECT_ID)),
        )
        try:
            reply = decode_exec(await self.reply(request, submission.exec_timeout(params)))
        except OSDError as error:
            if why := explain_at_once(params, error):
                error.text = f"{why} ({error.text})"
            raise
        if reply.job is None:
            raise ProtocolError("the target accepted a job without naming it")
        if params.array is None:
            return AsyncJob(self, reply.job)
        return AsyncJobArray(self, submission.place_of(reply.job, params))

    def job(self, job: ObjectRef) -> AsyncJob:
        """A job known by its surrogate; nothing is sent."""
        return AsyncJob(self, job)


class Connecting:
    """What connect() gives: await it, or use it in `async with`, which logs out at the end."""

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

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._target
        await self._target.close()


def connect(
    url: str,
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

    Arguments as pyosd.connect().  The target belongs to the running event loop.

    Raises: ValueError: not such a URL; when awaited: Unreachable; LoginRejected.
    """
    address = TargetAddress.parse(url)
    if chap:
        address = replace(address, chap=chap)
    transport = AsyncIscsiTransport(
        address,
        initiator=initiator,
        header_digest=header_digest,
        timeout=timeout,
        reconnect_timeout=reconnect_timeout,
    )
    source = source_of(credentials)
    if source is None and local:
        source = local_credential.find(url)
    return Connecting(transport, url, source)
