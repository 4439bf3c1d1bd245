# SPDX-License-Identifier: GPL-2.0-or-later
"""Threads that make and remove things, and threads that send commands about them meanwhile."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

from pyosd import errors
from pyosd.types import ObjectRef
from tests.waiting import DEADLINE_S

if TYPE_CHECKING:
    from tests.jobs.conftest import Target

READERS = 6
Questions = dict[str, Callable[[], object]]


class Shelf:
    """What was made last, of each kind; some of it is removed by now."""

    def __init__(self) -> None:
        self.made: dict[str, deque[ObjectRef]] = {}

    def put(self, kind: str, made: ObjectRef) -> None:
        self.made.setdefault(kind, deque(maxlen=3)).append(made)

    def pick(self, rng: random.Random, kind: str) -> ObjectRef:
        return rng.choice(list(self.made[kind]))


Maker = Callable[["Target", Shelf, int], None]


class Meeting:
    """Threads that make and remove, and threads that ask meanwhile.

    makers: each makes something, and removes it.  questions: commands about what is on the shelf.
    documented: sense codes of refusals that a removal explains.
    """

    def __init__(
        self,
        target: Target,
        makers: Sequence[Maker],
        questions: Callable[[Target, Shelf, random.Random], Questions],
        documented: Collection[tuple[int, int]],
    ) -> None:
        self.target, self.shelf = target, Shelf()
        self.makers, self.questions, self.documented = makers, questions, documented
        self.over = threading.Event()
        self.answered: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    def come_and_go(self, maker: Maker) -> None:
        number = 0
        while not self.over.is_set():
            number += 1
            try:
                maker(self.target, self.shelf, number)
            except (errors.JobError, errors.TargetBusy):
                continue
            except errors.OSDError as error:  # a reader was there first
                assert (error.asc, error.ascq) in self.documented, f"{maker.__name__}: {error}"

    def ask(self, seed: int, commands: int, is_over: Callable[[], bool]) -> None:
        rng, deadline, asked = random.Random(seed), time.monotonic() + DEADLINE_S, 0
        while asked < commands or not (is_over() or time.monotonic() > deadline):
            asked += 1
            name, question = rng.choice([*self.questions(self.target, self.shelf, rng).items()])
            try:
                question()
                self.answered[name] += 1
            except (errors.JobExpired, errors.TargetBusy):
                self.refused[name] += 1
            except errors.OSDError as error:
                assert (error.asc, error.ascq) in self.documented, f"{name}: {error}"
                self.refused[name] += 1

    def take_place(self, seed: int, commands: int, refused: Collection[str] | None = None) -> None:
        """Args: commands: of each reader, at least.  refused: if given, the readers go on until these
        were refused and each was answered, since the makers may be slow.
        """
        for maker in self.makers:
            maker(self.target, self.shelf, 0)
        names = list(self.questions(self.target, self.shelf, random.Random(seed)))

        def is_over() -> bool:
            return refused is None or (
                all(name in self.answered for name in names)
                and all(name in self.refused for name in refused)
            )

        with ThreadPoolExecutor(len(self.makers) + READERS) as threads:
            makers = [threads.submit(self.come_and_go, maker) for maker in self.makers]
            readers = [
                threads.submit(self.ask, seed + n, commands, is_over) for n in range(READERS)
            ]
            wait(readers)
            self.over.set()
        for each in (*readers, *makers):
            each.result()
