# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs a script near the data or at the client, whichever is expected to end sooner, and waits for it.

The client says what the script would cost here (costs.py).  The target compares, and refuses the job, or
ends it before it starts, if it expects to take longer (target/exec/advice/advice.h).
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Literal

from pyosd.commands import Commands
from pyosd.errors import JobCancelled, OSDError, PushedBack, ScriptError, TooLate
from pyosd.jobs.job import Job
from pyosd.jobs.job_array import submit_array, submit_prepared
from pyosd.jobs.submission import Prepared
from pyosd.offload.costs import FIRST, Costs
from pyosd.offload.home import HomeProcess, HomeScript, Outcome
from pyosd.offload.session import ScriptSession
from pyosd.types import ObjectRef, ref
from pyosd.wire.attributes import LOGICAL_LENGTH, Information, Page
from pyosd.wire.exec_params import ArgsEncoding, ExecFlag, HomeCost
from pyosd.wire.indices import ranges_of
from pyosd.wire.job_status import JobStatus

__all__ = [
    "TRIED_HERE",
    "Placement",
    "Where",
    "compared",
    "near_outcome",
    "returned",
]

Where = Literal["auto", "near", "local"]
TRIED_HERE = "it has not run here for long"
FIRST_HERE = "it has not run here before, and may take as long"
PUSHED_BACK, DEADLINE = 119, 120  # reasons of jobs that the target gives back
PROBE_LEAST, PROBE_MOST = 256 << 10, 4 << 20  # bytes that measure a link


def near_outcome(job: Job, timeout: float | None = None) -> Outcome:
    """Wait for a job, and read what it left.  Raises: as Job.result(), but for ScriptError."""
    try:
        result, code = job.result(timeout), 0
    except ScriptError as error:
        result, code = None, error.exit_code
    status = job.status()  # which is known: an empty output needs no command
    output = job.output() if status.stdout_length else b""
    return Outcome(output, job.stderr() if status.stderr_length else b"", result, code)


def compared(near: float, wait: float, home: float) -> str:
    """The numbers of a decision in words."""
    return f"expected {near:.3g} s near the data after a wait of {wait:.3g} s, {home:.3g} s here"


def refusal_words(refused: PushedBack) -> str:
    """Why a job was given back when it was submitted."""
    if isinstance(refused, TooLate):
        return f"its pool has a deadline of {refused.deadline:.3g} s: it waits {refused.wait:.3g} s first"
    return compared(refused.near, refused.wait, refused.home)


def size_of(target: Commands, zone: ObjectRef) -> int:
    """Bytes of data in a zone; 0: not known."""
    with suppress(OSDError):
        if zone.object_id:
            return target.get_attributes(zone, [LOGICAL_LENGTH])[0].uint
        if zone.partition_id:
            page = Page.PARTITION_INFORMATION
            value = target.get_attribute(zone, page, Information.USED_CAPACITY)
            return int.from_bytes(value, "big")
    return 0


def link_points(target: Commands, zone: ObjectRef) -> dict[int, float]:
    """Read the start of an object of the zone in two lengths, each twice.

    Returns: seconds by bytes, of the faster read: the slower one says what else ran.  Empty: no object
        is large enough.
    """
    with suppress(OSDError):
        if zone.object_id == 0:
            zone = ref(zone.partition_id, next(iter(target.list_page(zone).ids), 0))
        most = min(size_of(target, zone), PROBE_MOST) if zone.object_id else 0
        points: dict[int, float] = {}
        for part in (most // 4, most) * 2 if most >= PROBE_LEAST else ():
            start = time.perf_counter()
            received = sum(map(len, target.iter_read(zone, 0, part)))
            seconds = time.perf_counter() - start
            points[received] = min(seconds, points.get(received, seconds))
        return points
    return {}


class Placement:
    """A prepared script, and where it runs.

    pure: it changes no objects.  spare: a process started ahead for it; taken, or None.
    """

    def __init__(self, target: ScriptSession, costs: Costs, prepared: Prepared, pure: bool) -> None:
        self.target, self.costs, self.prepared, self.pure = target, costs, prepared, pure
        self.sha256 = Costs.name(prepared.code)
        zone = prepared.zone
        self.size = costs.recent_size(str(zone), lambda: size_of(target, zone)) if pure else 0
        params = prepared.params
        if params.array is not None:
            first, last, _ = params.array
            self.size //= sum(map(len, params.array_ranges)) or last - first + 1
        self.cost = HomeCost()
        self.lead = 0.0  # seconds by which a run here is expected to be sooner; 0: not known
        self.to_try = costs.to_try(self.sha256) if self.may_return and params.array is None else ""

    @property
    def may_return(self) -> bool:
        """Whether the script could run at this client."""
        is_bytes = self.prepared.params.args_encoding is ArgsEncoding.BYTES
        return self.target.inherited and not is_bytes

    def learn_link(self) -> None:
        """Measure the link if that is due, and its speed is wanted: the script has run before."""
        if not self.costs.needs_link(self.target.url, self.sha256):
            return
        if points := link_points(self.target, self.prepared.zone):
            self.costs.measured(self.target.url, self.sha256, points)

    def offered(self) -> Prepared:
        """The job with what it would cost here."""
        if self.may_return and self.to_try != "near":
            self.learn_link()
            self.cost = self.costs.cost(self.target.url, self.sha256, self.size)
        return self.prepared._replace(params=replace(self.prepared.params, home=self.cost))

    def script(self, index: int | None = None) -> HomeScript:
        """The script as it runs here.  Raises: ValueError: its arguments are bytes."""
        params, code = self.prepared.params, self.prepared.code
        if params.args_encoding is ArgsEncoding.BYTES:
            raise ValueError("a script whose arguments are bytes runs near the data alone")
        return HomeScript(
            zlib.decompress(code) if ExecFlag.CODE_ZLIB in params.flags else code,
            self.target.url,
            self.prepared.zone,
            params.args,
            params.name,
            index,
            self.pure,
            ExecFlag.CODE_BYTECODE in params.flags,
        )

    def learn_near(self, status: JobStatus) -> None:
        """Learn from a run near the data."""
        cpu, expected = status.cpu_user + status.cpu_system, status.offload
        self.costs.ran_near(self.sha256, self.size, status.bytes_read, cpu)
        known = expected is not None and expected.near and expected.home
        lead = expected.home - expected.near - expected.wait if expected and known else 0.0
        self.costs.stayed(self.sha256, "near", status.run_time, lead)

    def learn_home(self, received: int, seconds: float) -> None:
        """Learn from a run here."""
        self.costs.ran_home(self.sha256, self.size, received, seconds)
        self.costs.stayed(self.sha256, "local", seconds, self.lead)
        self.costs.save()

    def refused(self, refused: PushedBack) -> str:
        """Note by how much a run here is expected to be sooner.  Returns: why it runs here."""
        if refused.home:
            self.lead = refused.near + refused.wait - refused.home
        return refusal_words(refused)

    # ---- for Target.run() -----------------------------------------------------------------------

    def at_home(self, index: int | None, timeout: float | None, why: str) -> Outcome:
        """Run it here.  Raises: ValueError: nothing here can log in as the session's user."""
        if not self.target.inherited:
            raise ValueError("a session with chap or credentials of its own runs no scripts here")
        script = self.script(index)
        process = self.target.take_spare() or HomeProcess()
        try:
            found = process.run(script, timeout)
        except BaseException:
            process.close()
            raise
        self.target.keep_spare(process)
        if found.exit_code == 0 and self.pure:
            self.learn_home(process.received, process.seconds)
        seconds = process.seconds
        return replace(found, seconds=seconds, predicted=self.cost.seconds, why=why)

    def near(self, timeout: float | None) -> Outcome:
        """Run it near the data, whatever that takes."""
        start = time.perf_counter()
        home = HomeCost() if self.pure else None
        params = replace(self.prepared.params, home=home)
        job = submit_prepared(self.target, self.prepared._replace(params=params))
        found = near_outcome(job, timeout)
        if self.pure:
            self.learn_near(job.status())
            self.costs.save()
        return replace(found, seconds=time.perf_counter() - start)

    def auto(self, timeout: float | None) -> Outcome:
        """Run it where the target expects it to end sooner."""
        start = time.perf_counter()
        if self.to_try in ("local", FIRST):
            found = self.ended_here(timeout, TRIED_HERE if self.to_try == "local" else FIRST_HERE)
        else:
            found = self.where_sooner(timeout)
        if found is None:
            found = self.near(timeout)
            if found.exit_code:  # as it failed here, so the place is not the reason
                self.costs.tried_here(self.sha256, fails=False)
        return replace(found, seconds=time.perf_counter() - start)

    def ended_here(
        self, timeout: float | None, why: str, index: int | None = None
    ) -> Outcome | None:
        """The outcome of a run here.  None: it failed, and has never ended well here."""
        found = self.at_home(index, timeout, why)
        if found.exit_code and not self.costs.has_run_here(self.sha256):
            self.costs.tried_here(self.sha256, fails=True)
            return None
        return found

    def where_sooner(self, timeout: float | None) -> Outcome | None:
        """Submit it, and run it here if the target gives it back.  None: as ended_here()."""
        offered = self.offered()
        try:
            job = submit_prepared(self.target, offered)
            found = self.ended_near(job, timeout)
            self.costs.save()
            return found
        except PushedBack as refused:
            return self.ended_here(timeout, self.refused(refused))
        except JobCancelled:
            given_back = returned(job.status())
            if given_back is None:
                raise
            return self.ended_here(timeout, given_back)

    def ended_near(self, job: Job, timeout: float | None) -> Outcome:
        """The outcome of a job that was accepted.  Raises: JobCancelled: also if it was returned."""
        found = near_outcome(job, timeout)
        status = job.status()
        self.learn_near(status)
        if status.offload is None:
            return found
        expected = status.offload
        why = (
            compared(expected.near, expected.wait, expected.home)
            if expected.near
            else "it has not run near the data before"
        )
        return replace(found, predicted=expected.near, why=why)

    def members(self, timeout: float | None) -> Iterator[tuple[int, Outcome]]:
        """Run an array: members near the data, and here those that the target returns, as they end."""
        array = submit_array(self.target, self.offered())
        indices = {job.id: index for index, job in zip(array.indices, array, strict=True)}
        again: list[int] = []  # members that fail here
        with stopped_unless_whole(array):
            for job in array.as_completed(timeout):
                index, why = indices[job.id], returned(job.status())
                if why is None:
                    yield index, self.ended_near(job, timeout)
                elif again or (found := self.ended_here(timeout, why, index)) is None:
                    again.append(index)
                else:
                    yield index, found
        if again:
            yield from self.members_near(again, timeout)
        self.costs.save()

    def members_near(
        self, indices: list[int], timeout: float | None
    ) -> Iterator[tuple[int, Outcome]]:
        """Run members near the data, whatever that takes."""
        params, ranges = self.prepared.params, ranges_of(indices)
        assert params.array is not None
        place = (ranges[0][0], ranges[-1][-1], params.array[2])
        said = ranges if len(ranges) > 1 or ranges[0].step != 1 else ()
        params = replace(params, home=HomeCost(), key=b"", array=place, array_ranges=said)
        array = submit_array(self.target, self.prepared._replace(params=params))
        with stopped_unless_whole(array):
            for index, job in zip(array.indices, array, strict=True):
                found = self.ended_near(job, timeout)
                if found.exit_code:  # as it failed here, so the place is not the reason
                    self.costs.tried_here(self.sha256, fails=False)
                yield index, found


@contextmanager
def stopped_unless_whole(array: Job) -> Iterator[None]:
    """Stop an array whose ends are not wanted any more."""
    try:
        yield
    except BaseException:
        array.kill()
        raise


def returned(status: JobStatus) -> str | None:
    """Why a job that has ended was returned to the client; None: it was not."""
    if status.reason == DEADLINE:
        return "its pool's deadline came first"
    if status.reason != PUSHED_BACK:
        return None
    expected = status.offload
    return compared(expected.near, expected.wait, expected.home) if expected else ""
