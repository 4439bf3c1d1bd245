# SPDX-License-Identifier: GPL-2.0-or-later
"""What a job may do, one operation after the other, and whether a history of concurrent ones fits.

A *line* is everything that was asked about one submission: the EXECs with one idempotency key (or the
one EXEC without), and every status, control and remove of the jobs they made.  The model of a line is
the state machine of docs/jobs.md with what the target may do by itself between two answers; the search
for an order is tests/linearize.py's.  Pure.

Since a job moves by itself, the model keeps the set of states it may be in.  An answer, which names
state and generation, narrows the set; an operation without an answer widens it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pyosd.job_status import JobState
from tests.linearize import Machine, Operation, final_states

Q, H, S, R, C = (
    JobState.QUEUED,
    JobState.HELD,
    JobState.STARTING,
    JobState.RUNNING,
    JobState.COMPLETING,
)
CANCELLED = JobState.CANCELLED
DOOMED_ENDS = (
    CANCELLED,
    JobState.TIMEOUT,
    JobState.OUT_OF_MEMORY,
    JobState.LIMIT_EXCEEDED,
)
"""Where an effective kill leads; a limit that was reached just before stands."""
ENDS = tuple(state for state in JobState if state.terminal)
GONE = "gone"
"""Answer of anything that is asked about a job that is not there."""
BUSY = "busy"
"""Answer of a command that was refused without effect."""
IN_THE_WAY = "in the way"
"""Answer of a remove while the job is unfinished."""
REMOVED = "removed"
NO_PREDECESSOR = "no predecessor"
"""Answer of an EXEC whose predecessor is not there."""
THERE = "there"
SUBMIT, STATUS, REMOVE, LISTED = "submit", "status", "remove", "listed"
RETRIED = "retried"
"""An EXEC of another line that names the job as its predecessor: THERE or GONE."""
CANCEL, KILL, HOLD, RELEASE = "cancel", "kill", "hold", "release"
CONTROLS = (CANCEL, KILL, HOLD, RELEASE)


class Seen(NamedTuple):
    """What one command said of a job.  reason, attempt: of the record."""

    state: JobState
    generation: int
    reason: int = 0
    attempt: int = 0


@dataclass(frozen=True)
class Script:
    """What a submission may come to by itself.  ends: terminal states with their reasons.  array: it
    makes several jobs (history_arrays.py)."""

    name: str
    ends: frozenset[tuple[JobState, int]]
    array: bool = False


class Where(NamedTuple):
    """A state a job may be in.  doomed: an effective kill was acknowledged, so it is never tried
    again and ends CANCELLED, or by a limit that came first.  ending: CANCEL or KILL, if one of its
    array is on its way to it."""

    state: JobState
    doomed: bool = False
    ending: str = ""


class Line(NamedTuple):
    """State of the model.  job: the one that is there; 0: none; UNNAMED: made by an EXEC that was
    not answered.  may: all states it may be in.  seen: the last answer about it.  past: jobs that
    were removed."""

    job: int = 0
    may: frozenset[Where] = frozenset()
    seen: Seen | None = None
    past: frozenset[int] = frozenset()


UNNAMED = -1
BY_ITSELF = {Q: (S,), S: (R, C, Q), R: (C, Q), C: (Q, *ENDS)}
"""Transitions nobody asks for."""
STARTED = (S, R)
FOUND_AT_RESTART = (JobState.SANDBOX_LOST, CANCELLED)
"""What a crash makes of a job that had started, CANCELLED if a kill had been answered."""


def later(may: Iterable[Where]) -> frozenset[Where]:
    """All states the job may come to by itself."""
    found = set(may)
    todo = list(found)
    while todo:
        at = todo.pop()
        for state in BY_ITSELF.get(at.state, ()):
            if at.doomed and (state is Q or (state.terminal and state not in DOOMED_ENDS)):
                continue
            if state is CANCELLED and not at.doomed:
                continue
            after = at._replace(state=state)
            if after not in found:
                found.add(after)
                todo.append(after)
        if at.ending == KILL and at.state in STARTED and not at.doomed:
            doomed = at._replace(doomed=True)
            found.add(doomed)
            todo.append(doomed)
        if at.ending and at.state in (Q, H):
            found.add(Where(CANCELLED))
        if at.state in STARTED:
            found.add(Where(FOUND_AT_RESTART[at.doomed], at.doomed))
    return frozenset(found)


def controlled(at: Where, control: str) -> Where:
    """The state after a control that takes effect now."""
    if at.state in (Q, H) and control in (CANCEL, KILL):
        return Where(CANCELLED)
    if at.state in (S, R) and control == KILL:
        return at._replace(doomed=True)
    if (at.state, control) == (Q, HOLD):
        return at._replace(state=H)
    if (at.state, control) == (H, RELEASE):
        return at._replace(state=Q)
    return at


def narrow(line: Line, may: frozenset[Where], seen: Seen) -> Line | None:
    """Take an answer in: None: it cannot be."""
    if line.seen is not None:
        if seen.generation < line.seen.generation or seen.attempt < line.seen.attempt:
            return None
        if seen.generation == line.seen.generation and seen.state is not line.seen.state:
            return None
        if line.seen.state.terminal and seen != line.seen:
            return None
    fits = frozenset(at for at in may if at.state is seen.state)
    return line._replace(may=fits, seen=seen) if fits else None


def named(line: Line, job: int) -> Line | None:
    """The line, knowing that the job that is there has this id; None: it has not."""
    if line.job == UNNAMED and job not in line.past:
        return line._replace(job=job)
    return line if line.job == job else None


def submitted(line: Line, operation: Operation) -> Line | None:
    held = operation.argument
    if operation.answer == NO_PREDECESSOR:
        return None if line.job else line
    if not operation.answered:
        return _made(line, UNNAMED, held) if line.job == 0 else line
    if line.job:
        return named(line, operation.answer)
    return None if operation.answer in line.past else _made(line, operation.answer, held)


def _made(line: Line, job: int, held: bool) -> Line:
    return line._replace(job=job, may=frozenset({Where(H if held else Q)}), seen=None)


def removed(line: Line, operation: Operation) -> Line | None:
    found = named(line, operation.argument)
    if operation.answer == GONE or found is None:
        return (
            line if found is None and (operation.answer == GONE or not operation.answered) else None
        )
    over = frozenset(at for at in later(found.may) if at.state.terminal)
    if operation.answer == IN_THE_WAY:
        rest = later(found.may) - over
        return found._replace(may=rest) if rest else None
    if not over:
        return line if not operation.answered else None
    return Line(past=found.past | {operation.argument})


def listed(line: Line, operation: Operation) -> Line | None:
    """A listing when nobody changes anything: the jobs of this line that are there."""
    jobs: tuple[int, ...] = operation.answer
    if not jobs:
        return line if line.job == 0 else None
    return named(line, jobs[0]) if len(jobs) == 1 else None


def retried(line: Line, operation: Operation) -> Line | None:
    found = named(line, operation.argument)
    if operation.answer == GONE:
        return line if found is None else None
    return found


def asked(line: Line, operation: Operation) -> Line | None:
    """Status and controls."""
    found = named(line, operation.argument)
    if operation.answer == GONE or found is None:
        absent = found is None and (operation.answer == GONE or not operation.answered)
        return line if absent else None
    before = later(found.may)
    after = before
    if operation.name in CONTROLS:
        after = frozenset(controlled(at, operation.name) for at in before)
        # An effective kill's answer may be read when it has led somewhere already.
        after |= later(at for at in after if at.doomed)
    if not operation.answered:
        return found._replace(may=before | after)
    return narrow(found, after, operation.answer)


HOW = {SUBMIT: submitted, REMOVE: removed, LISTED: listed, RETRIED: retried}


def step(line: Line, operation: Operation) -> tuple[object, Line]:
    """The answer, if it is one the model gives, and the line after it; None instead of the answer:
    it is none."""
    if operation.answer == BUSY:
        return BUSY, line
    after = HOW.get(operation.name, asked)(line, operation)
    if after is None:
        return None, line
    return operation.answer, after


MACHINE: Machine[Line] = Machine(Line(), step)


# ---- beyond the order ----------------------------------------------------------------------------


def ended_wrong(script: Script, history: Sequence[Operation]) -> list[str]:
    """Ends that this script does not come to; of an array those of its members."""
    found = []
    cancelled = {(CANCELLED, 105), (CANCELLED, 107)}
    for each in history:
        seen = each.answer
        of_array = script.array and isinstance(each.argument, int)
        if not isinstance(seen, Seen) or not seen.state.terminal or of_array:
            continue
        end = (seen.state, seen.reason)
        lost = seen.state is JobState.SANDBOX_LOST
        if end not in script.ends and end not in cancelled and not lost:
            found.append(f"'{script.name}' ended {seen.state.name}, reason {seen.reason}")
    return found


def wrong(
    script: Script, history: Sequence[Operation], machine: Machine[Any] = MACHINE
) -> list[str]:
    """What is wrong with the history of one line; each text names operations."""
    found = ended_wrong(script, history)
    # What only looked, and has no answer, changes and tells nothing.
    history = [each for each in history if each.answered or each.name != STATUS]
    if not final_states(machine, history):
        text = told(shortest(history, machine))
        found.append("no order of these operations is possible:\n" + text)
    return found


def shortest(history: Sequence[Operation], machine: Machine[Any]) -> list[Operation]:
    """The fewest first answers that are wrong already."""
    operations = sorted(history, key=lambda each: each.start)
    ends = sorted(each.end for each in operations if each.answered)
    low, high = 0, len(ends) - 1
    while low < high:
        middle = (low + high) // 2
        if final_states(machine, until(operations, ends[middle])):
            low = middle + 1
        else:
            high = middle
    return until(operations, ends[high])


def until(operations: Iterable[Operation], end: float) -> list[Operation]:
    """What was known at a time: commands under way then have no answer yet."""
    found = []
    for each in operations:
        if each.end <= end or not each.answered:
            found.append(each)
        elif each.start <= end:
            found.append(replace(each, answer=None, answered=False, end=float("inf")))
    return [each for each in found if each.start <= end]


def told(history: Iterable[Operation]) -> str:
    """One line an operation."""
    lines = []
    for each in sorted(history, key=lambda each: each.start):
        argument = format(each.argument, "#x") if each.name != SUBMIT else ""
        answer = each.answer
        if isinstance(answer, Seen):
            answer = (
                f"{answer.state.name} g{answer.generation:x} r{answer.reason} a{answer.attempt}"
            )
        elif isinstance(answer, int):
            answer = f"{answer:#x}"
        lines.append(
            f"  {each.start:.6f}-{each.end:.6f} {each.name} {argument}: "
            f"{answer if each.answered else 'no answer'}"
        )
    return "\n".join(lines)
