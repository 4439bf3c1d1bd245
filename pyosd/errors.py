# SPDX-License-Identifier: GPL-2.0-or-later
"""Exceptions of the client.

An answer of the target raises OSDError.  A wrong argument raises ValueError or TypeError, and nothing is
sent.  A failed connection raises Unreachable or SessionLost.  JobError and its children say how a job
ended.  An exception of the package osd, which scripts import, has the same name if it has the same meaning
(osd/_errors.py).
Not here: which sense data becomes which exception (wire/sense.py).
"""

from __future__ import annotations

from concurrent.futures import BrokenExecutor, CancelledError
from errno import EEXIST, EISDIR, ENOENT, ENOTDIR
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyosd.types import AttributeId, ObjectRef, Sense


class OSDError(Exception):
    """The target refused or failed a command.

    sense_key, asc, ascq: the sense code; all 0: there is only a SAM status.
    text: the error in words.  sense: the decoded sense data with every descriptor, or None.
    sam_status: the SAM status byte (02h CHECK CONDITION, 08h BUSY, ...).
    """

    def __init__(
        self,
        sense_key: int,
        asc: int,
        ascq: int,
        text: str,
        *,
        sense: Sense | None = None,
        sam_status: int = 0x02,
    ) -> None:
        super().__init__(text)
        self.sense_key = sense_key
        self.asc = asc
        self.ascq = ascq
        self.text = text
        self.sense = sense
        self.sam_status = sam_status

    @property
    def field_pointer(self) -> int | None:
        """Number of the offending byte of the CDB (or Data-Out, see sense.field_in_data_out)."""
        return self.sense.field_pointer if self.sense else None

    @property
    def named_object(self) -> ObjectRef | None:
        """The object the target named in its sense data."""
        return self.sense.named_object if self.sense else None

    @property
    def attributes(self) -> tuple[AttributeId, ...]:
        """The attributes the target named in its sense data."""
        return self.sense.attributes if self.sense else ()

    def __str__(self) -> str:
        return self.text

    def __reduce__(self) -> tuple[object, ...]:
        arguments = (self.sense_key, self.asc, self.ascq, self.text)
        return (type(self), arguments, self.__dict__)


class NotFound(OSDError, KeyError):
    """The partition, collection or user object does not exist."""


class PermissionDenied(OSDError, PermissionError):
    """The capability does not permit the command, or is not valid.

    verified: False: the refusal lacks the proof that the target has sent it.
    """

    verified = True


class IntegrityError(OSDError):
    """The target's checksum of data differs, or an answer is not proved: they were changed on the
    network, or another device sent them.
    """


class UnprovenAnswer(IntegrityError):
    """The integrity check value of an answer is wrong or missing, or the target has seen the command
    before.  Nothing of the answer was used; whether the command acted is unknown.
    """


class NoSpace(OSDError):
    """A quota or the space of the target is used up; nothing was written."""


class Conflict(OSDError):
    """The present state does not permit the command, for example because a job has not ended."""


class Exists(Conflict):
    """The requested id is taken, or reserved."""


class NotEmpty(Conflict):
    """The partition still has objects, or the collection members."""


class Invalid(OSDError):
    """The target refused an argument: a field of the command, or a value of an attribute."""


class ChangeRefused(OSDError):
    """A function that checks changes of the object refuses this one.

    The text begins with that of the function.  Nothing was changed.
    """


class StorageError(OSDError):
    """The storage of the target failed; the target's log has the details."""


class VersionMismatch(Conflict):
    """The data of the object have another version than the required one; nothing was read or changed."""


class FunctionInUse(Conflict):
    """Calls of the active function are under way; nothing was removed."""

    def used_by(self, users: Iterable[str]) -> FunctionInUse:
        """The same error with the users in its text."""
        named = "; ".join(users)
        text = f"{self.text}: {named}" if named else self.text
        return FunctionInUse(
            *(self.sense_key, self.asc, self.ascq, text),
            sense=self.sense,
            sam_status=self.sam_status,
        )


class NoSuchName(NotFound, FileNotFoundError):
    """The directory has no such name (docs/names.md)."""

    errno = ENOENT


class NameExists(Exists, FileExistsError):
    """The directory already has this name."""

    errno = EEXIST


class NotADirectory(Invalid, NotADirectoryError):
    """A name of the path is no directory."""

    errno = ENOTDIR


class IsADirectory(Invalid, IsADirectoryError):
    """The name is that of a directory, but the command needs a user object."""

    errno = EISDIR


class NameChanged(Conflict):
    """The name belongs to another object than expected."""


class TaskAborted(OSDError):
    """A task management function ended the command; whether it acted is unknown."""


class TargetBusy(OSDError):
    """The queue is full, or the user's share of it is used up; nothing was done.

    retry_after: seconds to wait before another attempt.  queue_depth: queued jobs; None: not known.
    hint_run_locally: True: to fetch the data and compute here may take less time.
    """

    @property
    def retry_after(self) -> float:
        """Seconds to wait before trying again; 0.1 when the target does not say."""
        information = self.sense.command_information if self.sense else None
        return 0.1 if information is None else information / 1000

    @property
    def queue_depth(self) -> int | None:
        """Jobs the target has queued, None when it does not say."""
        return self.sense.information if self.sense else None

    @property
    def hint_run_locally(self) -> bool:
        """Whether fetching the data and computing here may be quicker than waiting."""
        return True


class PushedBack(OSDError):
    """The target expects the job to end sooner at the client, and has not accepted it.

    near, wait, home: the times that it compared, in seconds: of the work near the data, of the wait
    before it, and of the work at the client beside the other work of clients.
    """

    @property
    def near(self) -> float:
        """Seconds near the data."""
        return (self.sense.information or 0) / 1e6 if self.sense else 0.0

    @property
    def wait(self) -> float:
        """Seconds of the wait."""
        return (self._packed >> 32) / 1e6

    @property
    def home(self) -> float:
        """Seconds at the client."""
        return (self._packed & 0xFFFF_FFFF) / 1e6

    @property
    def _packed(self) -> int:
        return (self.sense.command_information or 0) if self.sense else 0


class TooLate(PushedBack):
    """The target expects the job to end after the deadline of the pool, and has not accepted it.

    near, wait, deadline: in seconds; near is 0 if it is not known.  home is not known, and 0.
    """

    @property
    def home(self) -> float:
        """Not known."""
        return 0.0

    @property
    def deadline(self) -> float:
        """Seconds from the submission of a job to its end, at most."""
        return (self._packed & 0xFFFF_FFFF) / 1e3


class Unreachable(OSDError, ConnectionError):
    """There is no session with the target: it refused, timed out, or violated the protocol."""

    def __init__(self, text: str) -> None:
        super().__init__(0, 0, 0, text, sam_status=0)

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.text,), self.__dict__)


class SessionLost(Unreachable):
    """The connection ended before the answer came.  Whether the command acted is unknown."""


class CommandTimeout(SessionLost, TimeoutError):
    """There was no answer in time.  The session was closed; whether the command acted is unknown."""


class ProtocolError(Unreachable):
    """The target violated iSCSI or OSD-2; the session was closed."""


class LoginRejected(Unreachable):
    """The target refused the login: wrong name or secret, unknown target, no access.

    status: class and detail that the target sent; 0: this client refused.
    """

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


MAY_HAVE_ACTED = (Unreachable, TaskAborted, UnprovenAnswer)
"""After these a command may have acted, so what it was to name or to replace must not be removed."""


class EndedJob(Protocol):
    """The job of a JobError: a Job or an AsyncJob."""

    id: ObjectRef
    name: str


class NamedJob(NamedTuple):
    """The job of a JobError that came from another process: there are no commands for it here."""

    id: ObjectRef
    name: str


class JobError(Exception):
    """A job did not end COMPLETED, or its end cannot be found out.

    job: the job; after pickling, which leaves the session behind, its id and name.
    reason: its reason number (see iosd-reasons(7)).  hint: a remedy.
    """

    def __init__(self, job: EndedJob | None, reason: int, hint: str, text: str = "") -> None:
        super().__init__(text or f"job ended with reason {reason}")
        self.job = job
        self.reason = reason
        self.hint = hint
        self.text = text

    def __reduce__(self) -> tuple[object, ...]:
        job = self.job and NamedJob(self.job.id, self.job.name)
        state = self.__dict__ | {"job": job}
        return (type(self), (job, self.reason, self.hint, self.text), state)

    def __str__(self) -> str:
        return self.text or f"job ended with reason {self.reason}"


class ScriptError(JobError):
    """The script raised an exception, or ended with an exit code other than 0.

    remote_traceback: the traceback in the sandbox, as text.
    type_name: name of the exception's class.  exit_code: of the script.
    """

    def __init__(
        self,
        job: EndedJob | None,
        reason: int,
        hint: str,
        text: str = "",
        *,
        remote_traceback: str = "",
        exit_code: int = 1,
    ) -> None:
        super().__init__(job, reason, hint, text)
        self.remote_traceback = remote_traceback
        self.exit_code = exit_code

    @property
    def type_name(self) -> str:
        """Class name of the script's exception, or "" when it only left with a code."""
        last = self.remote_traceback.rstrip().rpartition("\n")[2]
        name = last.partition(":")[0].strip()
        return name if name.replace(".", "").isidentifier() else ""

    def __str__(self) -> str:
        if not self.remote_traceback:
            return super().__str__()
        return f"{super().__str__()}\n\nTraceback in the sandbox:\n{self.remote_traceback}"


class JobCancelled(JobError, CancelledError):
    """The job was cancelled before it started, or killed."""


class JobTimeout(JobError, TimeoutError):
    """The job reached its limit of wall-clock time."""


class JobOutOfMemory(JobError, MemoryError):
    """The job reached its limit of memory."""


class LimitExceeded(JobError):
    """The job reached another limit: processor time, processes, output, files or I/O."""


class SandboxLost(JobError, BrokenExecutor):
    """The sandbox or the host failed while the job ran."""


class JobExpired(JobError):
    """The record of the job has expired, or was removed."""
