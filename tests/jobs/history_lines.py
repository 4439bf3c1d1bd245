# SPDX-License-Identifier: GPL-2.0-or-later
"""Submissions of clients in a run, their shared notes, and faults of these.

Not here: how commands are sent (history_clients.py), what one line's notes must fit (history.py).
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from pyosd.types import ObjectRef, ref
from pyosd.wire.exec_params import After, ExecFlag, Limits
from pyosd.wire.job_status import JobState
from tests.jobs import history, history_arrays
from tests.jobs.history import BUSY, GONE, REMOVED, Script, Seen
from tests.jobs.history_arrays import Member
from tests.linearize import Operation

About: TypeAlias = int | Member
"""A job's object id, or an array's, or which of its members."""
LOG = 0xF_0000
"""The user object that scripts tell of themselves in."""
OPEN_LINES = 6
"""Lines that clients work on at a time: few, so that they meet."""
LONGEST_LINE = 40
"""Operations after which a line is left alone, but for its end."""
RETRIES, AFTERS, ARRAYS, LONG_ARRAYS = 0.25, 0.3, 0.25, 0.15
"""Shares: of lines that are another one's job run again, that wait for others' jobs, that are arrays;
of arrays that are long."""
SHORT, LONG = 3, 10
"""Members."""
NO_LIMITS, NO_FLAGS = Limits(), ExecFlag(0)


def ends(*pairs: tuple[JobState, int]) -> frozenset[tuple[JobState, int]]:
    return frozenset(pairs)


ONCE, OFTEN = b"once", b"often"
WRITES = b"""
import time
try:
    log = osd.userobject(osd.zone.partition_id, %d)
    log.data.append(f"<{osd.job.object_id:x} %s>")
except Exception:
    pass  # a full or broken disk
time.sleep(0.05)
print(osd.args.decode())
"""
TELLS = b"""
import sys, time
for _ in range(30):
    print(".", file=sys.stderr, flush=True)
    time.sleep(0.005)
print(osd.args.decode())
"""
"""Each word is a new generation."""
DONE = (JobState.COMPLETED, 0)


@dataclass(frozen=True)
class Kind:
    """A script, how it is submitted, how it ends by itself."""

    code: bytes
    ends: frozenset[tuple[JobState, int]]
    limits: Limits = NO_LIMITS
    flags: ExecFlag = NO_FLAGS


KINDS = {
    "quick": Kind(b"print(osd.args.decode())", ends(DONE)),
    "slow": Kind(b"import time; time.sleep(0.05); print(osd.args.decode())", ends(DONE)),
    "long": Kind(b"import time; time.sleep(0.5); print(osd.args.decode())", ends(DONE)),
    "tells": Kind(TELLS, ends(DONE)),
    "raises": Kind(b"1 / 0", ends((JobState.FAILED, 201))),
    "exits": Kind(b"raise SystemExit(3)", ends((JobState.FAILED, 202))),
    "over time": Kind(
        b"while True: pass", ends((JobState.TIMEOUT, 301)), Limits(wall=0.1, cpu=60.0)
    ),
    "writes": Kind(WRITES % (LOG, ONCE), ends(DONE)),
    "may write twice": Kind(WRITES % (LOG, OFTEN), ends(DONE), flags=ExecFlag.IDEMPOTENT),
}


@dataclass
class Line:
    """One submission and all that was asked about it.

    again: the line and the job of it that this one runs again.  after: those it is to run after, and
    whether any end of theirs will do.  members: of an array, from index `first` on; 0: it is none.
    at_once: of them.  jobs: ids it was answered with.
    """

    name: str
    kind: str
    key: bytes
    held: bool
    priority: int
    again: tuple[Line, About] | None = None
    after: tuple[tuple[Line, About, bool], ...] = ()
    members: int = 0
    first: int = 0
    at_once: int = 0
    jobs: list[int] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)

    @property
    def script(self) -> Script:
        waits = (history.WAITS, history.WAITS_ANY)
        return Script(
            f"{self.kind} ({self.name})",
            KINDS[self.kind].ends,
            members=self.members,
            at_once=self.at_once,
            after=tuple(waits[any_end] for _, _, any_end in self.after),
        )

    @property
    def named(self) -> list[tuple[Line, About]]:
        """Jobs that must be there when it is submitted."""
        return [*([self.again] if self.again else []), *((each[0], each[1]) for each in self.after)]

    def after_in(self, partition: int) -> tuple[After, ...]:
        """For EXEC's parameter."""
        return tuple(
            After(ref(partition, id_of(about)), not any_end) for _, about, any_end in self.after
        )


def id_of(about: About) -> int:
    return about.job if isinstance(about, Member) else about


class Notebook:
    """All lines of a run.  Thread-safe.  restarts: for each kill of tgtd, a moment before it, and one
    when it was there again."""

    def __init__(self, zone: ObjectRef, seed: int) -> None:
        self.zone, self.rng = zone, random.Random(seed)
        self.lock = threading.Lock()
        self.lines: dict[str, Line] = {}
        self.open: list[Line] = []
        self.busy = 0
        self.restarts: list[tuple[float, float]] = []

    def new_line(self) -> Line:
        with self.lock:
            chance = self.rng.random
            name = f"line-{len(self.lines)}"
            line = Line(
                name,
                self.rng.choice(sorted(KINDS)),
                name.encode() if chance() < 0.6 else b"",
                chance() < 0.25,
                self.rng.choice((-9, 0, 9)),
            )
            if chance() < ARRAYS:
                line.members, line.at_once = SHORT, self.rng.choice([0, 1, 2])
                if chance() < LONG_ARRAYS:
                    line.members, line.at_once = LONG, 3
            with_jobs = [each for each in self.open if each.jobs]
            if with_jobs and chance() < RETRIES:
                self.run_again(line, self.rng.choice(with_jobs))
            if with_jobs and chance() < AFTERS:
                first = self.rng.sample(with_jobs, min(len(with_jobs), self.rng.choice((1, 1, 2))))
                line.after = tuple((each, self.one_of(each), chance() < 0.3) for each in first)
            self.lines[name] = line
            return line

    def one_of(self, line: Line) -> About:
        """Its newest job; of an array sometimes a member."""
        job = line.jobs[-1]
        if line.members and self.rng.random() < 0.5:
            return Member(job, self.rng.randrange(line.members))
        return job

    def run_again(self, line: Line, other: Line) -> None:
        """As `osd job retry`: a member as an array of its index."""
        about = self.one_of(other)
        line.kind, line.again = other.kind, (other, about)
        line.members, line.first, line.at_once = other.members, other.first, other.at_once
        if isinstance(about, Member):
            line.members, line.first = 1, other.first + about.at

    def opened(self, line: Line) -> None:
        """Others may work on it from now on."""
        with self.lock:
            self.open.append(line)

    def pick(self, rng: random.Random) -> Line | None:
        """A line to work on; None: begin another."""
        with self.lock:
            self.open = [each for each in self.open if len(each.operations) < LONGEST_LINE]
            return rng.choice(self.open) if len(self.open) >= OPEN_LINES else None

    def note(self, line: Line, operation: Operation) -> None:
        with self.lock:
            line.operations.append(operation)
            answer = operation.answer
            self.busy += answer == BUSY
            made = operation.name == history.SUBMIT and isinstance(answer, int)
            if made and answer not in line.jobs:
                line.jobs.append(answer)


# ---- the verdict ---------------------------------------------------------------------------------


def seen_of_others(line: Line) -> Iterator[Operation]:
    """The strongest observations of the jobs that this line depends on: the latest in which one had
    not ended, and the earliest in which it had."""
    for n, (other, about, any_end) in enumerate(line.after):
        seen = [each for each in other.operations if each.answered and each.argument == about]
        statuses = [each for each in seen if isinstance(each.answer, Seen)]
        waits = [each for each in statuses if not each.answer.state.terminal]
        ended = [each for each in statuses if each.answer.state.terminal]
        if waits:
            last = max(waits, key=lambda each: each.start)
            yield Operation(history.AFTER, n, history.WAITS, last.start, last.end)
        if ended:
            first = min(ended, key=lambda each: each.end)
            met = any_end or first.answer.state is JobState.COMPLETED
            end = history.MET if met else history.MISSED
            yield Operation(history.AFTER, n, end, first.start, first.end)
        over = [each for each in seen if each.answer in (REMOVED, GONE)]
        if over:
            first = min(over, key=lambda each: each.end)
            yield Operation(history.AFTER, n, history.OVER, first.start, first.end)


def bounded(book: Notebook, operation: Operation) -> Operation:
    """An unanswered command happened before the next kill of tgtd, if at all.  One that began between the
    two moments may have gone to the new tgtd, which may still do it."""
    if operation.answered:
        return operation
    ends = (again for before, again in book.restarts if before > operation.start)
    until = min(ends, default=operation.end)
    return replace(operation, end=min(operation.end, until))


def verdict(book: Notebook, also: frozenset[tuple[JobState, int]] = frozenset()) -> list[str]:
    """Faults of the whole run, line by line. also: ends that are possible for any script."""
    found = []
    for line in book.lines.values():
        script = replace(line.script, ends=line.script.ends | also)
        machine = (history_arrays if script.members else history).machine(script)
        operations = [*(bounded(book, each) for each in line.operations), *seen_of_others(line)]
        texts = history.wrong(script, operations, machine)
        found += [f"{script.name}: {text}" for text in texts]
    return found
