# SPDX-License-Identifier: GPL-2.0-or-later
"""Target, which connect() gives: the OSD commands and jobs, for threads.

Not here: single commands (commands/), sessions and reconnecting (iscsi/session.py), a job's methods
(jobs/job.py).
"""

from __future__ import annotations

from functools import cached_property
from typing import IO, TYPE_CHECKING, Any, Unpack

from pyosd.destination import destination
from pyosd.iscsi.login import Chap
from pyosd.iscsi.session import (
    DEFAULT_TIMEOUT,
    IscsiTransport,
    PendingCommand,
    TaskFunction,
)
from pyosd.jobs import submission
from pyosd.jobs.job import Job
from pyosd.jobs.source import Code
from pyosd.jobs.submission import Kinds, Prepared, Submission, prepare, takes_options
from pyosd.jobs.target_table import TargetTable
from pyosd.offload.places import ScriptPlaces
from pyosd.security.credentials import Credential, CredentialSource
from pyosd.types import ObjectRef, ref
from pyosd.wire.job_status import ArrayPlace
from pyosd.wire.reply import PendingReply

if TYPE_CHECKING:
    from pyosd.fs import FileSystem
    from pyosd.functions import Functions
    from pyosd.jobs.job_array import JobArray

__all__ = ["Target", "connect"]


def _array(commands: Any, job: ObjectRef, name: str, place: ArrayPlace) -> JobArray:
    from pyosd.jobs.job_array import JobArray  # few programs submit arrays

    return JobArray(commands, job, name, place)


KINDS = Kinds(Job, _array)


class Target(TargetTable, ScriptPlaces):
    """A logical unit with the OSD commands and jobs as methods, for threads."""

    def __init__(
        self,
        transport: IscsiTransport,
        url: str = "",
        credentials: CredentialSource | None = None,
        inherited: bool = False,
    ) -> None:
        super().__init__(transport, url, credentials, inherited)
        self._iscsi = transport

    def __enter__(self) -> Target:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __repr__(self) -> str:
        address = self._iscsi.address
        return f"<pyosd.Target {address.host}:{address.port} {address.target} lun {address.lun}>"

    def close(self) -> None:
        """Log out; jobs continue.  Never raises; can be called again."""
        if spare := self.take_spare():
            spare.close()
        if "costs" in vars(self):
            self.costs.save(at_once=True)
        self._iscsi.close()

    @property
    def bytes_sent(self) -> int:
        """Bytes put on the socket(s), iSCSI headers included."""
        return self._iscsi.bytes_sent

    @property
    def bytes_received(self) -> int:
        """Bytes taken from the socket(s), iSCSI headers included."""
        return self._iscsi.bytes_received

    def ping(self) -> float:
        """Send an iSCSI NOP-Out and wait for the answer.  Returns: the seconds that took."""
        return self._iscsi.ping()

    # ---- task management ------------------------------------------------------------------------

    def abort(self, pending: PendingReply, timeout: float = 5.0) -> int:
        """Abort a command under way (ABORT TASK).  Its reply() raises then, or returns an earlier answer.

        Returns: a TaskResponse; 0: aborted, 1: the command has ended already.
        """
        assert isinstance(pending.pending, PendingCommand)
        return pending.pending.abort(timeout)

    def manage_tasks(self, function: TaskFunction) -> int:
        """Send ABORT TASK SET, CLEAR TASK SET or a reset.  Returns: a TaskResponse; 0: done."""
        return self._iscsi.manage_tasks(function)

    def partition(self, partition_id: int) -> ObjectRef:
        """The reference of a partition; nothing is sent."""
        return ref(partition_id)

    # ---- files ----------------------------------------------------------------------------------

    @cached_property
    def fs(self) -> FileSystem:
        """Files by their paths, such as /photos/2024/a.jpg."""
        from pyosd.fs import FileSystem

        return FileSystem(self)

    def open(self, path: str, mode: str = "r", **how: Any) -> IO[Any]:
        """Open a file by its path, like Python's open(); see fs.open()."""
        return self.fs.open(path, mode, **how)

    # ---- functions ------------------------------------------------------------------------------

    @property
    def functions(self) -> Functions:
        """Code that is stored in the target and called by name."""
        from pyosd.functions import Functions

        return Functions(self)

    # ---- jobs -----------------------------------------------------------------------------------

    @takes_options(prepare)
    def exec(self, prepared: Prepared) -> Job:
        """Submit code as a job, which runs near the data.

        Returns: the Job; the target has stored it.  With array the code runs once for each index, and
            the result is a JobArray; exec_array() is the same with that type.
        Raises: TargetBusy: try again later, or compute here.  Conflict: a job with other content has
            the key.  TypeError, ValueError, OSError: the code cannot be sent.  SessionLost: without a
            key it is unknown whether the target accepted the job.
        """
        return self.carry(submission.submit(KINDS, self, prepared))

    @takes_options(prepare)
    def exec_array(self, prepared: Prepared) -> JobArray:
        """Submit code once for each index of an array.  The target accepts all of these jobs or none.

        The options are those of each member.

        Raises: as exec().  ValueError: array is missing, or has no such indices.
        """
        return self.carry(submission.submit_array(KINDS, self, prepared))

    def retry(
        self,
        job: Job,
        *,
        code: Code | None = None,
        failed: bool = False,
        **how: Unpack[Submission],
    ) -> Job:
        """Run a job again that has ended, as a new job.

        Args:
            code: the code to run; None: the code of the old job.  The target keeps code and arguments
                of jobs that did not complete.
            failed: run only the members of an array that did not complete.
            how: options as for exec(); the others are those of the old job.  Its rights are not known.
                args, kwargs or over replace all its arguments and objects.

        Raises: JobExpired; ValueError: the job has not ended, or failed is True and nothing failed,
            or the target does not have the code; as exec().
        """
        from pyosd.jobs.job_array import retry

        return retry(self, job, code=code, failed=failed, **how)

    def job(self, job: ObjectRef) -> Job:
        """The job that has this surrogate; nothing is sent."""
        return Job(self, job)

    def array(self, job: ObjectRef) -> JobArray:
        """The array that has this surrogate; nothing is sent."""
        from pyosd.jobs.job_array import JobArray

        return JobArray(self, job)


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
) -> Target:
    """Log in to a target.  The result is a context manager that logs out.

    Args:
        url: iscsi://[user%secret@]host[:port]/target-name/lun; None: that of IOSD_TARGET or of the
            profile.  Then the environment and the profile also give the defaults of chap and
            credentials, as for the program osd.
        chap: names and secrets in place of the URL's; with a target secret, the target must prove its
            identity, too.
        credentials: a source of credentials, or one credential for all commands; None: the local
            credential of a target that this user serves, or else no credential (NOSEC).
        initiator: iSCSI name of this client; "": IOSD_INITIATOR, or one with the name of this host.
        header_digest: ask for CRC-32C digests of iSCSI headers.
        timeout: seconds that a command can take.
        reconnect_timeout: seconds during which a lost session is opened again.
        local: whether to look for the local credential (pyosd.security.local_credential).

    Raises: ValueError: the URL is wrong or missing; OSError: a file of the profile cannot be read;
        Unreachable; LoginRejected.
    """
    found = destination(url, chap, credentials, local)
    transport = IscsiTransport(
        found.address,
        initiator=initiator,
        header_digest=header_digest,
        timeout=timeout,
        reconnect_timeout=reconnect_timeout,
    )
    return Target(transport, found.url, found.credentials, found.inherited)
