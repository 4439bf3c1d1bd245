# SPDX-License-Identifier: GPL-2.0-or-later
"""Run: one function over objects of several targets, with a thread for each target.

Not here: who gets what when (board.py), the targets themselves (many.py).
"""

from __future__ import annotations

import asyncio
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, Protocol

from pyosd.cluster import near
from pyosd.cluster.board import Board, ObjectOutcome, Slice
from pyosd.errors import CommandTimeout, JobError, OSDError, TargetBusy, Unreachable
from pyosd.jobs.dialogues.arrays import outcome
from pyosd.jobs.job_array import JobArray
from pyosd.target import Target
from pyosd.types import ObjectRef, ref

__all__ = ["IncompleteError", "Run", "TargetSet"]

_ARRAY_OBJECTS = 1024  # of one array: each member is handed the numbers of all
_LOOK = 1.0  # seconds between two checks whether others have ended the run
_PATIENCE = 3  # faults in a row, without a result between, that a target may have
_NO_SANDBOXES = 102  # the reason of a job that waits for the target's sandbox service


class TargetSet(Protocol):
    """The part of Many that a run needs."""

    @property
    def names(self) -> tuple[str, ...]:
        """The targets' names."""

    def target(self, name: str) -> Target:
        """The target of that name, logged in."""

    @property
    def patience(self) -> float:
        """Seconds after which a target that does nothing counts as lost."""

    def gone(self, name: str) -> str:
        """Why the target cannot be used; "" if it answers on a session of its own."""


class IncompleteError(Exception):
    """Some objects of a run have no value.

    failed: their outcomes.  lost: names of lost targets, and why each counts as lost.
    """

    def __init__(self, failed: list[ObjectOutcome], lost: Mapping[str, str]) -> None:
        first = failed[0]
        super().__init__(
            f"{len(failed)} objects have no value; the first is {first.object} at "
            f"{first.target or 'no target'}: {first.error}"
        )
        self.failed, self.lost = failed, dict(lost)

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.failed, self.lost))


class Run:
    """One function over many objects.  Iterate over it to get the ObjectOutcome of each as it ends.

    A Run can be iterated once, by `for` or by `async for`.  result() waits for the rest.
    """

    def __init__(
        self,
        handle: TargetSet,
        board: Board,
        order: list[ObjectRef],
        combine: tuple[Callable[..., Any], bool] | None,
        options: dict[str, Any],
    ) -> None:
        self._board, self._order, self._combine = board, order, combine
        self._options = options
        self._id = secrets.token_hex(8)
        self._by_object: dict[ObjectRef, ObjectOutcome] = {}
        self._outcomes = self._collect()
        for name in handle.names:
            work = (handle, name)
            threading.Thread(
                target=self._work, args=work, name=f"pyosd-{name}", daemon=True
            ).start()

    # ---- for the caller's thread ----------------------------------------------------------------

    @property
    def lost(self) -> dict[str, str]:
        """Names of the targets lost so far, and why each counts as lost."""
        return dict(self._board.lost)

    def __iter__(self) -> Iterator[ObjectOutcome]:
        return self._outcomes

    async def __aiter__(self) -> AsyncIterator[ObjectOutcome]:
        while (found := await asyncio.to_thread(next, self._outcomes, None)) is not None:
            yield found

    def _collect(self) -> Iterator[ObjectOutcome]:
        try:
            for found in self._board.outcomes():
                self._by_object[found.object] = found
                yield found
        finally:
            self._board.stop()

    def close(self) -> None:
        """End the run, and kill its jobs.  Can be called again."""
        self._board.stop()

    def outcomes(self) -> list[ObjectOutcome]:
        """Wait for all objects and return their outcomes, in the order of the objects."""
        for _ in self._outcomes:
            pass
        return [self._by_object[each] for each in self._order if each in self._by_object]

    def result(self) -> Any:
        """Wait for all objects.

        Returns: the combined value; None if there are no objects.  Without combine: the values, in the
            order of the objects.
        Raises: IncompleteError: an object has no value; RuntimeError: the run was closed.
        """
        found = self.outcomes()
        if len(found) != len(self._order):
            raise RuntimeError("the run was closed before its end")
        if failed := [each for each in found if not each.ok]:
            raise IncompleteError(failed, self.lost)
        return self.partial() if self._combine else [each.value for each in found]

    def partial(self) -> Any:
        """The combined value of the objects that have one so far; None: no object has one.

        Raises: ValueError: nothing is combined in this run.
        """
        if self._combine is None:
            raise ValueError("this run combines nothing: give map_objects() combine")
        with self._board.changed:
            pairs = [*self._board.combined]
        whole = near.merged(pairs, *self._combine)
        return whole[0][0] if whole else None

    # ---- one thread for each target -------------------------------------------------------------

    def _work(self, handle: TargetSet, name: str) -> None:
        most = max(1, _ARRAY_OBJECTS // self._options["size"])
        batch = 0
        while pieces := self._board.take(name, most):
            batch += 1
            left = dict(enumerate(pieces))
            if why := self._batch(handle, name, pieces, left, f"{self._id}.{batch}"):
                self._board.lose(name, [*left.values()], why)
                return

    def _batch(
        self, handle: TargetSet, name: str, pieces: list[Slice], left: dict[int, Slice], key: str
    ) -> str:
        """One array for these slices; what ends goes out of left.

        The same array is submitted or followed again after a fault, as long as the target answers
        on a session of its own and at most _PATIENCE times without a result between.

        Returns: why the target is lost, "" if it is not.
        """
        faults, before = 0, len(left)
        while True:
            try:
                array = self._submit(handle.target(name), pieces, key)
                if array is not None and (why := self._follow(array, handle, name, left)):
                    return why
            except (Unreachable, JobError) as error:
                why = str(error)
            except OSDError as error:
                self._board.failed(left.values(), name, str(error), apart=False)
                return ""
            except Exception as error:  # the run must end, whatever went wrong here
                why = f"{type(error).__name__}: {error}"
            else:
                return ""
            if self._board.over:
                return ""
            faults = 1 if len(left) < before else faults + 1
            before = len(left)
            if faults > _PATIENCE:
                return why
            if gone := handle.gone(name):
                return gone

    def _submit(self, target: Target, pieces: list[Slice], key: str) -> JobArray | None:
        """Submit when the target has room; None: the run has ended meanwhile."""
        partition = pieces[0].partition
        numbers = [[item.copies.object.object_id for item in each.items] for each in pieces]
        weighted = bool(self._combine and self._combine[1])
        while not self._board.over:
            try:
                return target.exec_array(
                    near.run_slice,
                    zone=ref(partition),
                    args=[self._options["sources"], weighted, partition, numbers],
                    array=range(len(pieces)),
                    key=key,
                    idempotent=True,
                    **self._options["job"],
                )
            except TargetBusy as busy:
                self._board.wait_for_end(min(busy.retry_after, _LOOK))
        return None

    def _follow(self, array: JobArray, handle: TargetSet, name: str, left: dict[int, Slice]) -> str:
        """Hand on what the members say.

        Returns: why the target is lost: it runs no jobs; "" if it is not.
        Raises: OSDError, JobError: the array cannot be followed.
        """
        members = {array.member(index).id: index for index in left}
        ran = time.monotonic()
        while left:
            try:
                for job in array.as_completed(_LOOK):
                    index = members.get(job.id, -1)
                    if index in left:
                        self._take(left[index], name, outcome(job, True))
                        del left[index]
                return ""
            except CommandTimeout:
                raise
            except TimeoutError:
                if self._board.over:
                    array.kill()
                    return ""
                if array.status().reason != _NO_SANDBOXES:
                    ran = time.monotonic()
                elif time.monotonic() - ran >= handle.patience:
                    array.kill()
                    return "it runs no jobs: its sandbox service is not connected"
        return ""

    def _take(self, piece: Slice, name: str, found: Any) -> None:
        if isinstance(found, BaseException):
            self._board.failed([piece], name, f"{type(found).__name__}: {found}")
        else:
            self._board.ended(piece, name, found, self._combine is not None)
