# SPDX-License-Identifier: GPL-2.0-or-later
"""Many: one handle over several targets, and Run: one function over objects of all of them.

Not here: who gets what when (board.py), where copies belong (placement.py).
"""

from __future__ import annotations

import asyncio
import operator
import secrets
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from pyosd.cluster import near
from pyosd.cluster.board import Board, ObjectOutcome, Slice
from pyosd.cluster.placement import COPIES, Copies, decode_copies, encode_copies, place
from pyosd.errors import JobError, NotFound, OSDError, SessionLost, TargetBusy, Unreachable
from pyosd.jobs.dialogues.arrays import outcome
from pyosd.jobs.job_array import JobArray
from pyosd.jobs.source import module_source
from pyosd.target import Target, connect
from pyosd.types import ObjectRef, PartitionId, ref
from pyosd.wire.exec_params import Limits

__all__ = ["IncompleteError", "Many", "Run", "many"]

Combine = str | Callable[..., Any]
Weights = Callable[[Any], float]

_SLICES = 16  # of a target, at least, so that what one loses is little
_SLICE_MOST = 256  # objects
_ARRAY_OBJECTS = 1024  # of one array: each member is handed the numbers of all
_LOOK = 1.0  # seconds between two looks whether others have ended the run
_PATIENCE = 3  # sessions lost in a row, without a result between, before a target counts as lost
_ID_BITS = 62
_NAMED: dict[str, tuple[Callable[..., Any], bool]] = {
    "sum": (operator.add, False),
    "min": (min, False),
    "max": (max, False),
    "mean": (near.mean, True),
}


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


class Run:
    """One function over many objects.  Iterate to get an ObjectOutcome for each object as they end.

    A Run is iterated once, by `for` or by `async for`.  result() goes through what is left.
    """

    def __init__(
        self,
        handle: Many,
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
        """End the run; jobs that go on are killed.  May be repeated."""
        self._board.stop()

    def outcomes(self) -> list[ObjectOutcome]:
        """Wait for all; the outcomes in the order of the objects."""
        for _ in self._outcomes:
            pass
        return [self._by_object[each] for each in self._order if each in self._by_object]

    def result(self) -> Any:
        """Wait for all.

        Returns: the combined value, None of no objects; without combine the values in the order of
            the objects.
        Raises: IncompleteError: an object has no value; RuntimeError: the run was closed.
        """
        found = self.outcomes()
        if len(found) != len(self._order):
            raise RuntimeError("the run was closed before its end")
        if failed := [each for each in found if not each.ok]:
            raise IncompleteError(failed, self.lost)
        return self.partial() if self._combine else [each.value for each in found]

    def partial(self) -> Any:
        """The combined value of the objects that have one so far; None: of none.

        Raises: ValueError: nothing is combined in this run.
        """
        if self._combine is None:
            raise ValueError("this run combines nothing: give map_objects() combine")
        with self._board.changed:
            pairs = [*self._board.combined]
        whole = near.merged(pairs, *self._combine)
        return whole[0][0] if whole else None

    # ---- one thread for each target -------------------------------------------------------------

    def _work(self, handle: Many, name: str) -> None:
        pieces: list[Slice] = []
        try:
            target = handle.target(name)
            most = max(1, _ARRAY_OBJECTS // self._options["size"])
            batch = 0
            while pieces := self._board.take(name, most):
                batch += 1
                self._batch(target, name, pieces, f"{self._id}.{batch}")
        except (Unreachable, JobError) as error:
            self._board.lose(name, pieces, str(error))
        except Exception as error:  # the run must end, whatever went wrong here
            self._board.lose(name, pieces, f"{type(error).__name__}: {error}")

    def _batch(self, target: Target, name: str, pieces: list[Slice], key: str) -> None:
        """One array for these slices.  Raises: Unreachable: the target is lost."""
        try:
            array = self._submit(target, pieces, key)
        except Unreachable:
            raise
        except OSDError as error:
            self._board.failed(pieces, name, str(error), apart=False)
            return
        if array is not None:
            self._follow(array, name, dict(enumerate(pieces)))

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
                time.sleep(min(busy.retry_after, _LOOK))
        return None

    def _follow(self, array: JobArray, name: str, left: dict[int, Slice]) -> None:
        """Hand on what the members say.  Raises: Unreachable."""
        members = {array.member(index).id: index for index in left}
        lost = 0
        while left:
            try:
                for job in array.as_completed(_LOOK):
                    piece = left.pop(members[job.id], None)
                    if piece is not None:
                        self._take(piece, name, outcome(job, True))
                        lost = 0
                return
            except SessionLost:
                lost += 1
                if lost >= _PATIENCE:
                    raise
            except TimeoutError:
                if self._board.over:
                    array.kill()
                    return
            except (OSDError, JobError) as error:
                if isinstance(error, Unreachable):
                    raise
                self._board.failed(left.values(), name, str(error), apart=False)
                return

    def _take(self, piece: Slice, name: str, found: Any) -> None:
        if isinstance(found, BaseException):
            self._board.failed([piece], name, f"{type(found).__name__}: {found}")
        else:
            self._board.ended(piece, name, found, self._combine is not None)


class Many:
    """Several targets as one.  A context manager that logs out of all.

    Args: targets: URLs, or a name for each URL.  Copies are placed and found by these names.  The
        name of a URL alone is the URL without user, secret and query.
        options: of connect(), for each target.
    """

    def __init__(self, targets: Iterable[str] | Mapping[str, str], **options: Any) -> None:
        if isinstance(targets, str):
            raise TypeError("targets is a list of URLs, not one URL")
        if not isinstance(targets, Mapping):
            urls = list(targets)
            targets = {_name_of(url): url for url in urls}
            if len(targets) != len(urls):
                raise ValueError("a target is named twice")
        if not targets:
            raise ValueError("there are no targets: give at least one URL")
        self._urls, self._options = dict(targets), options
        self._locks = {name: threading.Lock() for name in self._urls}
        self._targets: dict[str, Target] = {}

    def __enter__(self) -> Many:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Log out of all targets; jobs go on.  May be repeated."""
        for target in self._targets.values():
            target.close()

    @property
    def names(self) -> tuple[str, ...]:
        """The targets' names."""
        return tuple(self._urls)

    def target(self, name: str) -> Target:
        """The target of that name, logged in at the first use.

        Raises: KeyError: no such name; as connect().
        """
        with self._locks[name]:
            if name not in self._targets:
                self._targets[name] = connect(self._urls[name], **self._options)
            return self._targets[name]

    def put(self, partition_id: int, data: bytes, *, copies: int = 2) -> Copies:
        """Write an object to several targets, to all or the call fails.

        Each target must have the partition. The object has the same ids everywhere. One command
        writes a copy, so data has at most 64 MiB.

        Raises: OSDError: a target refused or is not reachable; copies made before were removed
            where their targets answered.  ValueError: as place().
        """
        obj = ref(partition_id, (1 << _ID_BITS) | secrets.randbits(_ID_BITS))
        chosen = place(obj, self.names, copies)
        named = encode_copies(chosen)
        tried: list[str] = []
        try:
            for name in chosen:
                target = self.target(name)
                tried.append(name)
                target.create_and_write(
                    PartitionId(partition_id), data, 0, obj.object_id, attributes=[named]
                )
        except OSDError as error:
            for name in tried:
                try:
                    self.target(name).remove(obj)
                except NotFound:
                    pass
                except OSDError as stays:
                    error.add_note(f"a copy may be left at {name}: {stays}")
            raise
        return Copies(obj, chosen)

    def objects(self, partition_id: int, *, without: Iterable[str] = ()) -> list[Copies]:
        """The objects of a partition at all targets, each once, with the targets that have copies.

        Args: without: names of targets that are known to be lost. What has no copy elsewhere is
            then missing.
        Raises: Unreachable, NotFound: a target does not answer, or has no such partition.
        """
        found: dict[ObjectRef, Copies] = {}
        lost = {*without}
        for name in self.names:
            if name in lost:
                continue
            for each in self.target(name).list_attributes(PartitionId(partition_id), [COPIES]):
                obj = ref(partition_id, each.object_id)
                value = bytes(each.attributes[0].value) if each.attributes else b""
                known = found[obj].targets if obj in found else ()
                says = decode_copies(value) or (name,)
                found[obj] = Copies(obj, tuple(dict.fromkeys((*known, *says))))
        return list(found.values())

    def map_objects(
        self,
        fn: Callable[..., Any],
        objects: Iterable[Copies],
        combine: Combine | None = None,
        *,
        weights: Weights | None = None,
        at_once: int = 0,
        retries: int = 2,
        speculate: bool = True,
        limits: Limits | None = None,
        pool: str = "",
    ) -> Run:
        """Call fn(object) beside the data for each object, in few arrays of jobs for each target.

        The functions travel as source, as for Target.exec(). They can run more than once for an
        object, at the same or another target: what they write must not depend on that.

        Args:
            fn: gets an object of the module osd; its value travels as JSON.
            objects: as objects() and put() give them.
            combine: "sum", "min", "max" or "mean", or a function combine(a, b), associative and
                commutative. Values are combined at each target first, then here.
            weights: weight of an object, for "mean" (1 without), or for a function, which then is
                combine(a, weight_a, b, weight_b).
            at_once: most jobs that run at a time at one target; 0: no such limit.
            retries: how often an object is tried again after a fault of a target or a job.
            speculate: give the slowest slices a second copy at another target that has the objects.
            limits, pool: of each job, as for Target.exec().

        Raises: ValueError, TypeError: a function cannot travel; an object is named twice.
        """
        copies = list(objects)
        order = [each.object for each in copies]
        if len({*order}) != len(order):
            raise ValueError("an object is named twice")
        if retries < 0:
            raise ValueError("retries must not be negative")
        if weights and (combine is None or combine in ("sum", "min", "max")):
            raise ValueError('weights need combine="mean" or a function of two values and weights')
        combining = _combining(combine, weights is not None)
        sources = {"fn": module_source(fn)}
        if combining:
            sources |= {
                "combine": module_source(combining[0]),
                "merged": module_source(near.merged),
            }
        if weights:
            sources["weights"] = module_source(weights)
        size = -(-len(copies) // (len(self._urls) * _SLICES))
        size = min(max(size, 1), _SLICE_MOST)
        name = getattr(fn, "__name__", "")
        job = {"at_once": at_once, "limits": limits, "pool": pool, "name": name}
        board = Board(copies, self.names, size, retries, speculate)
        return Run(self, board, order, combining, {"sources": sources, "size": size, "job": job})


def _combining(combine: Combine | None, weighted: bool) -> tuple[Callable[..., Any], bool] | None:
    """The function that combines, and whether it takes weights."""
    if combine is None:
        return None
    if not isinstance(combine, str):
        return combine, weighted
    if combine not in _NAMED:
        raise ValueError(f"combine is a function or one of {', '.join(_NAMED)}, not {combine!r}")
    return _NAMED[combine]


def _name_of(url: str) -> str:
    """A URL without what is secret or says how to connect."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def many(targets: Iterable[str] | Mapping[str, str], **options: Any) -> Many:
    """One handle over several targets; each is logged in when it is first used.

    Args:
        targets: URLs, or a mapping of names to URLs.
        options: of connect(), for each target.

    Raises: ValueError: there are no targets, or one is named twice.
    """
    return Many(targets, **options)
