# SPDX-License-Identifier: GPL-2.0-or-later
"""The permitted behaviour of a job, one operation after the other, and the check of a history of
concurrent ones.

A *line* is everything that was asked about one submission: the EXECs with one idempotency key (or the
one EXEC without), and every status, control and remove of the jobs they made.  The model of a line is
the state machine of docs/jobs.md with what the target may do by itself between two answers; the search
for an order is tests/linearize.py's.  Pure.

Since a job moves by itself, the model keeps the set of states it may be in.  An answer, which names
state and generation, narrows the set; an operation without an answer widens it.  Observations of a
job that this one depends on narrow it as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from pyosd.wire.job_status import JobState
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
"""The end after an effective kill. A limit that was reached just before it remains."""
ENDS = tuple(state for state in JobState if state.terminal)
GONE = "gone"
"""Answer of anything that is asked about a job that is not there."""
BUSY = "busy"
"""Answer of a command that was refused without effect."""
IN_THE_WAY = "in the way"
"""Answer of a remove while the job is unfinished."""
REMOVED = "removed"
NO_PREDECESSOR = "no predecessor"
"""Answer of an EXEC that names a job that is not there."""
CLASHES = "clashes"
"""Answer of an EXEC whose key is that of a job with other content."""
THERE = "there"
SUBMIT, STATUS, REMOVE, LISTED = "submit", "status", "remove", "listed"
NAMED = "named"
"""An EXEC of another line that names the job, to run it again or to run after it: THERE or GONE."""
AFTER = "after"
"""Observations of the n-th job (argument: n) that this line's jobs depend on: one of these."""
WAITS, WAITS_ANY, MET, MISSED, OVER = "waits", "waits for any end", "met", "missed", "over"
"""It has not ended, and shall COMPLETE; it shall end in any way; it has ended as asked; it has ended
otherwise; it has ended, and is gone."""
SEEN_AS = {WAITS: (WAITS, WAITS_ANY), MET: (MET,), MISSED: (MISSED,), OVER: (MET, MISSED)}
CANCEL, KILL, HOLD, RELEASE = "cancel", "kill", "hold", "release"
CONTROLS = (CANCEL, KILL, HOLD, RELEASE)


WAITS_FOR_JOB, UNREACHABLE = 109, 110
"""Reasons of a job that waits for another, or never can run after it."""


class Seen(NamedTuple):
    """Answer of one command about a job. reason, attempt: of the record. states: of an array's
    members."""

    state: JobState
    generation: int
    reason: int = 0
    attempt: int = 0
    states: tuple[JobState, ...] = ()


class Asked(NamedTuple):
    """The relevant part of an EXEC. content: with one key, it must be the same."""

    held: bool = False
    content: int = 0


@dataclass(frozen=True)
class Script:
    """What a submission may come to by itself.  ends: terminal states with their reasons.  members:
    of an array (history_arrays.py); 0: it is none.  at_once: of them; 0: all.  attempts: at most.
    after: for each job it is to run after WAITS or WAITS_ANY."""

    name: str
    ends: frozenset[tuple[JobState, int]]
    members: int = 0
    at_once: int = 0
    attempts: int = 3
    after: tuple[str, ...] = ()


class Where(NamedTuple):
    """A state a job may be in.  doomed: an effective kill was acknowledged, so it is never tried
    again and ends CANCELLED, or by a limit that came first.  ending: CANCEL or KILL, if one of its
    array is on its way to it.  after: what the jobs it is to run after have come to."""

    state: JobState
    doomed: bool = False
    ending: str = ""
    after: tuple[str, ...] = ()


class Line(NamedTuple):
    """State of the model.  job: the one that is there; 0: none; UNNAMED: made by an EXEC that was
    not answered.  may: all states it may be in.  seen: the last answer about it.  past: jobs that
    were removed.  content: the job's.  after: what is known of the jobs it is to run after, before
    it is there.  member: it is one of an array's; its end counts for the array when it was removed."""

    job: int = 0
    may: frozenset[Where] = frozenset()
    seen: Seen | None = None
    past: frozenset[int] = frozenset()
    content: int = 0
    after: tuple[str, ...] = ()
    member: bool = False


UNNAMED = -1
ENDS_OF = {WAITS: (MET, MISSED), WAITS_ANY: (MET,)}
BY_ITSELF = {Q: (S,), S: (R, C, Q), R: (C, Q), C: (Q, *ENDS)}
"""Transitions nobody asks for."""
STARTED = (S, R)
FOUND_AT_RESTART = (JobState.SANDBOX_LOST, CANCELLED)
"""The state after a crash of a job that had started: CANCELLED if a kill had been answered."""


def by_itself(at: Where) -> Iterator[Where]:
    """Possible next states of the job without a request."""
    for state in BY_ITSELF.get(at.state, ()):
        if at.doomed and (state is Q or (state.terminal and state not in DOOMED_ENDS)):
            continue
        if state is CANCELLED and not at.doomed:
            continue
        if at.state is Q and any(each != MET for each in at.after):
            continue
        yield at._replace(state=state)
    if at.ending == KILL and at.state in STARTED and not at.doomed:
        yield at._replace(doomed=True)
    if at.ending and at.state in (Q, H):
        yield cancelled(at)
    if at.state in (Q, H) and MISSED in at.after:
        yield at._replace(state=JobState.FAILED, ending="")
    if at.state in STARTED:
        yield at._replace(state=FOUND_AT_RESTART[at.doomed], ending="")
    for n, each in enumerate(at.after):
        for end in ENDS_OF.get(each, ()):
            yield at._replace(after=(*at.after[:n], end, *at.after[n + 1 :]))


@cache
def later(may: frozenset[Where]) -> frozenset[Where]:
    """All states the job may come to by itself."""
    found = set(may)
    todo = list(found)
    while todo:
        for after in by_itself(todo.pop()):
            if after not in found:
                found.add(after)
                todo.append(after)
    return frozenset(found)


def cancelled(at: Where) -> Where:
    return Where(CANCELLED, after=at.after)


def controlled(at: Where, control: str) -> Where:
    """The state after a control that takes effect now."""
    if at.state in (Q, H) and control in (CANCEL, KILL):
        return cancelled(at)
    if at.state in (S, R) and control == KILL:
        return at._replace(doomed=True)
    if (at.state, control) == (Q, HOLD):
        return at._replace(state=H)
    if (at.state, control) == (H, RELEASE):
        return at._replace(state=Q)
    return at


def moved(may: frozenset[Where], control: str) -> frozenset[Where]:
    """Nothing moves a job any more that is about to end for one that it was to run after."""
    missed = frozenset(at for at in may if MISSED in at.after)
    return missed | frozenset(controlled(at, control) for at in may)


def suits(at: Where, seen: Seen, member: bool) -> bool:
    """Whether the state is the one that was seen, for the reason that was."""
    if at.state is not seen.state:
        return False
    if at.state is JobState.FAILED:
        return (seen.reason == UNREACHABLE) == (MISSED in at.after)
    waits = at.state is not Q or seen.reason == WAITS_FOR_JOB or member
    return waits or all(each == MET for each in at.after)


def narrow(line: Line, may: frozenset[Where], seen: Seen) -> Line | None:
    """Take an answer in: None: it cannot be."""
    if line.seen is not None:
        if seen.generation < line.seen.generation or seen.attempt < line.seen.attempt:
            return None
        if seen.generation == line.seen.generation and seen.state is not line.seen.state:
            return None
        if line.seen.state.terminal and seen[:4] != line.seen[:4]:  # polls do not show members
            return None
    fits = frozenset(at for at in may if suits(at, seen, line.member))
    return line._replace(may=fits, seen=seen) if fits else None


def named(line: Line, job: int) -> Line | None:
    """The line, knowing that the job that is there has this id; None: it has not."""
    if line.job == UNNAMED and job not in line.past:
        return line._replace(job=job)
    return line if line.job == job else None


def submitted(line: Line, operation: Operation) -> Line | None:
    asked: Asked = operation.argument
    if operation.answer == NO_PREDECESSOR:
        return None if line.job else line
    if operation.answer == CLASHES:
        return line if line.job and line.content != asked.content else None
    if not operation.answered:
        return _made(line, UNNAMED, asked) if line.job == 0 else line
    if line.job:
        return named(line, operation.answer) if line.content == asked.content else None
    return None if operation.answer in line.past else _made(line, operation.answer, asked)


def _made(line: Line, job: int, asked: Asked) -> Line:
    may = frozenset({Where(H if asked.held else Q, after=line.after)})
    return line._replace(job=job, may=may, seen=None, content=asked.content)


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
    may = over if found.member else frozenset()
    return found._replace(job=0, may=may, seen=None, past=found.past | {operation.argument})


def listed(line: Line, operation: Operation) -> Line | None:
    """A listing when nobody changes anything: the jobs of this line that are there."""
    jobs: tuple[int, ...] = operation.answer
    if not jobs:
        return line if line.job == 0 else None
    return named(line, jobs[0]) if len(jobs) == 1 else None


def after_seen(line: Line, operation: Operation) -> Line | None:
    n, fits = operation.argument, SEEN_AS[operation.answer]
    if line.job:
        may = frozenset(at for at in later(line.may) if at.after[n] in fits)
        line = line._replace(may=may)
        if not may:
            return None
    known = line.after[n]
    if known in ENDS_OF and len(fits) == 1:
        line = line._replace(after=(*line.after[:n], *fits, *line.after[n + 1 :]))
    return line if known in ENDS_OF or known in fits else None


def named_by(line: Line, operation: Operation) -> Line | None:
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
        after = moved(before, operation.name)
        # An effective kill's answer may be read when it has led somewhere already.
        after |= later(frozenset(at for at in after if at.doomed))
    if not operation.answered:
        return found._replace(may=before | after)
    return narrow(found, after, operation.answer)


HOW = {
    SUBMIT: submitted,
    REMOVE: removed,
    LISTED: listed,
    NAMED: named_by,
    AFTER: after_seen,
}


def step(line: Line, operation: Operation) -> tuple[object, Line]:
    """The answer, if it is one the model gives, and the line after it; None instead of the answer:
    it is none."""
    if operation.answer == BUSY:
        return BUSY, line
    after = HOW.get(operation.name, asked)(line, operation)
    if after is None:
        return None, line
    return operation.answer, after


def machine(script: Script) -> Machine[Line]:
    return Machine(Line(after=script.after), step)


# ---- beyond the order ----------------------------------------------------------------------------


def ended_wrong(script: Script, history: Sequence[Operation]) -> list[str]:
    """Ends that this script does not come to, of an array those of its members; more of these at
    once, or more attempts, than there may be."""
    found = []
    cancelled = {(CANCELLED, 105), (CANCELLED, 107)}
    for each in history:
        seen = each.answer
        of_array = script.members and isinstance(each.argument, int)
        if not isinstance(seen, Seen):
            continue
        at_work = sum(state in (S, R, C) for state in seen.states)
        if script.at_once and at_work > script.at_once:
            found.append(f"'{script.name}' ran {at_work} at once, not {script.at_once}")
        if seen.attempt > script.attempts:
            found.append(f"'{script.name}' ran {seen.attempt} times, not {script.attempts}")
        if not seen.state.terminal or of_array:
            continue
        end = (seen.state, seen.reason)
        lost = seen.state is JobState.SANDBOX_LOST
        unreachable = bool(script.after) and end == (JobState.FAILED, UNREACHABLE)
        if end not in script.ends and end not in cancelled and not lost and not unreachable:
            found.append(f"'{script.name}' ended {seen.state.name}, reason {seen.reason}")
    return found


def wrong(script: Script, history: Sequence[Operation], machine: Machine[Any]) -> list[str]:
    """Faults of the history of one line; each text names operations."""
    found = ended_wrong(script, history)
    # An unanswered command that only reads changes nothing and proves nothing.
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
    """Knowledge at a time: commands under way then have no answer yet."""
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
        plain = each.name in (SUBMIT, AFTER)
        argument = str(each.argument) if plain else format(each.argument, "#x")
        answer = each.answer
        if isinstance(answer, Seen):
            members = "".join(f" {state.name}" for state in answer.states)
            answer = (
                f"{answer.state.name} g{answer.generation:x} r{answer.reason} a{answer.attempt}"
                + members
            )
        elif isinstance(answer, int):
            answer = f"{answer:#x}"
        lines.append(
            f"  {each.start:.6f}-{each.end:.6f} {each.name} {argument}: "
            f"{answer if each.answered else 'no answer'}"
        )
    return "\n".join(lines)
