# SPDX-License-Identifier: GPL-2.0-or-later
"""The work of one run over many targets: waiting, under way and done.  It sends nothing.

One thread per target takes slices and says how they end; the caller's thread takes outcomes.  One
lock guards everything; a condition tells of each change.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pyosd.cluster import near
from pyosd.cluster.placement import Copies
from pyosd.types import ObjectRef

_SLOWEST = 20  # one of so many slices may have a second copy


@dataclass(frozen=True)
class ObjectOutcome:
    """The outcome of the work on one object.

    value: what the function returned; None if the results are combined.
    error: what failed; "": nothing.  target: the last one that worked on the object, or tried.
    attempts: how often the function was started for it.
    """

    object: ObjectRef
    value: Any
    error: str
    target: str
    attempts: int

    @property
    def ok(self) -> bool:
        """Whether the function returned."""
        return not self.error


@dataclass
class Item:
    """An object of the run.  failures: number of faults so far.  tried: targets that failed."""

    copies: Copies
    attempts: int = 0
    failures: int = 0
    tried: set[str] = field(default_factory=set)


@dataclass(eq=False)
class Slice:
    """Objects of one partition that one member of an array works on.

    running: targets that work on it now.  second: a second copy was started.
    """

    number: int
    partition: int
    items: list[Item]
    running: set[str] = field(default_factory=set)
    second: bool = False
    done: bool = False


class Board:
    """The state of a run.

    Args: copies: the objects, each once.  targets: names of all targets.  size: most objects of a
        slice.  retries: how often an object is tried again after a fault.  speculate: whether the
        slowest slices get a second copy.
    """

    def __init__(
        self,
        copies: Iterable[Copies],
        targets: Iterable[str],
        size: int,
        retries: int,
        speculate: bool = True,
    ) -> None:
        self.changed = threading.Condition()
        self._size, self._retries, self._speculate = size, retries, speculate
        self._alive = {*targets}
        self._waiting: dict[str, deque[Slice]] = defaultdict(deque)
        self._under_way: set[Slice] = set()
        self._outcomes: deque[ObjectOutcome] = deque()
        self._slices = 0
        self.lost: dict[str, str] = {}
        self.combined: list[Any] = []
        self._stopped = False
        items = [Item(each) for each in copies]
        self._left = len(items)
        self._spread(items, "no target of this handle has it")

    def _spread(self, items: Iterable[Item], why: str) -> None:
        """Give items to targets that can have them; report the others."""
        groups: dict[tuple[str, int], list[Item]] = defaultdict(list)
        for item in items:
            places = [each for each in item.copies.targets if each in self._alive]
            fresh = [each for each in places if each not in item.tried]
            if item.failures > self._retries or not places:
                last = item.copies.targets[0] if item.copies.targets else ""
                self._report(item, None, why, last)
                continue
            groups[(fresh or places)[0], item.copies.object.partition_id].append(item)
        for (target, partition), found in groups.items():
            for at in range(0, len(found), self._size):
                self._slices += 1
                part = found[at : at + self._size]
                self._waiting[target].append(Slice(self._slices, partition, part))

    def _report(self, item: Item, value: Any, error: str, target: str) -> None:
        found = ObjectOutcome(item.copies.object, value, error, target, item.attempts)
        self._outcomes.append(found)
        self._left -= 1

    @property
    def over(self) -> bool:
        """Whether nothing is left to do."""
        return self._stopped or not self._left

    def wait_for_end(self, seconds: float) -> None:
        """Wait so long, or until nothing is left to do."""
        with self.changed:
            self.changed.wait_for(lambda: self.over, seconds)

    def stop(self) -> None:
        """Give out no more slices."""
        with self.changed:
            self._stopped = True
            self.changed.notify_all()

    def take(self, target: str, most: int) -> list[Slice]:
        """Slices of one partition for a target; waits for some.  Returns: [] at the end of the run."""
        with self.changed:
            while not self.over and target in self._alive:
                waiting = self._waiting[target]
                if waiting:
                    partition = waiting[0].partition
                    taken: list[Slice] = []
                    while waiting and waiting[0].partition == partition and len(taken) < most:
                        taken.append(self._begin(waiting.popleft(), target))
                    return taken
                if (slow := self._slow(target)) is not None:
                    slow.second = True
                    return [self._begin(slow, target)]
                self.changed.wait()
            return []

    def _begin(self, piece: Slice, target: str) -> Slice:
        piece.running.add(target)
        self._under_way.add(piece)
        for item in piece.items:
            item.attempts += 1
        return piece

    def _slow(self, target: str) -> Slice | None:
        """One of the slowest slices that this target can work on too."""
        if not self._speculate or any(self._waiting.values()):
            return None
        if len(self._under_way) * _SLOWEST > self._slices + _SLOWEST:
            return None
        for piece in self._under_way:
            if piece.second or target in piece.running:
                continue
            if all(target in item.copies.targets for item in piece.items):
                return piece
        return None

    def ended(self, piece: Slice, target: str, found: Any, combining: bool) -> None:
        """A target has answered for a slice; a second answer for it is dropped."""
        with self.changed:
            if piece.done:
                return
            try:
                failed, answered = near.checked(found, len(piece.items), combining)
            except ValueError as error:
                self.failed([piece], target, str(error), apart=False)
                return
            self._finish(piece)
            values = {} if combining else dict(answered)
            if combining:
                self.combined.extend(answered)
            again = []
            for position, item in enumerate(piece.items):
                if position not in failed:
                    self._report(item, values.get(position), "", target)
                    continue
                kind, text, storage = failed[position]
                item.tried.add(target)
                if storage and {*item.copies.targets} & self._alive - item.tried:
                    item.failures += 1
                    again.append((item, f"{kind}: {text}"))
                else:
                    self._report(item, None, f"{kind}: {text}", target)
            for item, text in again:
                self._spread([item], text)
            self.changed.notify_all()

    def failed(self, pieces: Iterable[Slice], target: str, why: str, *, apart: bool = True) -> None:
        """A target could not work on slices: their objects go to other targets, or are reported.

        apart: each object goes alone, so that one that ends its job takes no others with it.
        """
        with self.changed:
            for piece in pieces:
                piece.running.discard(target)
                if piece.done or piece.running:
                    continue
                self._finish(piece)
                for item in piece.items:
                    item.tried.add(target)
                    item.failures += 1
                for group in [[item] for item in piece.items] if apart else [piece.items]:
                    self._spread(group, why)
            self.changed.notify_all()

    def lose(self, target: str, pieces: Iterable[Slice], why: str) -> None:
        """A target is lost, with what it has begun and what waits for it.  After the end: nothing."""
        with self.changed:
            if self.over:
                return
            self._alive.discard(target)
            self.lost[target] = why
            waiting = self._waiting.pop(target, deque())
            self.failed(pieces, target, why, apart=False)
            for piece in waiting:
                self._spread(piece.items, why)
            self.changed.notify_all()

    def _finish(self, piece: Slice) -> None:
        piece.done = True
        self._under_way.discard(piece)

    def outcomes(self) -> Iterator[ObjectOutcome]:
        """Outcomes as they come, until there are all."""
        while True:
            with self.changed:
                while not self._outcomes:
                    if self.over:
                        return
                    self.changed.wait()
                found = self._outcomes.popleft()
            yield found
