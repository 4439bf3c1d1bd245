# SPDX-License-Identifier: GPL-2.0-or-later
"""The permitted behaviour of an array of jobs, one operation after the other. Each member is a line
of history.py, and the array follows from its members.  Pure.

A cancel or kill of the array is acknowledged before it has reached its members: until then each may end
by it at any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from pyosd.wire.job_status import JobState
from tests.jobs import history
from tests.jobs.history import (
    BUSY,
    CANCELLED,
    GONE,
    IN_THE_WAY,
    MISSED,
    Line,
    Script,
    Where,
    later,
)
from tests.linearize import Machine, Operation


class Member(NamedTuple):
    """Subject of an operation, if not the array itself. array: its id. at: from 0 on."""

    array: int
    at: int

    @property
    def job(self) -> int:
        return self.array + 1 + self.at

    def __format__(self, how: str) -> str:
        return f"{self.array:{how}}[{self.at}]"


class Array(NamedTuple):
    """State of the model.  head: the array; its `may` is not used.  members: `size`, while the array
    is there; their ids count from 1, whatever the array's is.  ending: it was cancelled or killed, and
    is not held or released from then on.  held: it may have been HELD when a member waited last."""

    size: int
    head: Line = Line()
    members: tuple[Line, ...] = ()
    ending: bool = False
    held: bool = False


def terminal(may: Iterable[Where]) -> frozenset[Where]:
    return frozenset(at for at in may if at.state.terminal)


def unreachable(may: Iterable[Where]) -> bool:
    """May a job that the array is to run after have ended otherwise?  Its members then end one by one,
    whatever is asked of the array."""
    return any(MISSED in at.after for at in may)


def wheres(states: Iterable[JobState], members: Sequence[Line]) -> frozenset[Where]:
    """The array's own, in one of the states, with such members."""
    found = set(map(Where, states))
    missed = any(unreachable(later(each.may)) for each in members)
    if missed and Where(JobState.FAILED) in found:
        found.add(Where(JobState.FAILED, after=(MISSED,)))
    return frozenset(found)


def states_of(members: Iterable[frozenset[Where]]) -> set[JobState]:
    """Those an array of such members may be in."""
    each = [{at.state for at in may} for may in members]
    found = {history.Q, history.R, history.C}
    if any(history.H in states for states in each):
        found.add(history.H)
    if all(JobState.COMPLETED in states for states in each):
        found.add(JobState.COMPLETED)
    cancelled = any(CANCELLED in states for states in each)
    if cancelled and all(states & {JobState.COMPLETED, CANCELLED} for states in each):
        found.add(CANCELLED)
    if all(any(state.terminal for state in states) for states in each):
        found.add(JobState.FAILED)
    return found


def ending(may: Iterable[Where], how: str) -> frozenset[Where]:
    """A cancel or kill of the array has not reached the member yet."""
    return frozenset(
        at if at.state.terminal or at.ending == history.KILL else at._replace(ending=how)
        for at in may
    )


def controlled(may: frozenset[Where], control: str) -> frozenset[Where]:
    if control in (history.CANCEL, history.KILL):
        return ending(may, control)
    return history.moved(may, control)


def submitted(array: Array, operation: Operation) -> Array | None:
    head = history.submitted(array.head, operation)
    if head is None or array.head.job or not head.job:
        return None if head is None else array._replace(head=head)
    members = (Line(1 + at, head.may, member=True, after=head.after) for at in range(array.size))
    return Array(array.size, head, tuple(members))


def with_states(array: Array, states: Iterable[frozenset[Where]]) -> Array:
    members = zip(array.members, states, strict=True)
    return array._replace(members=tuple(each._replace(may=may) for each, may in members))


def asked(array: Array, operation: Operation) -> Array | None:
    """Status and controls of the array."""
    after = [later(each.may) for each in array.members]
    ends = operation.name in (history.CANCEL, history.KILL)
    if ends or (operation.name in history.CONTROLS and not array.ending):
        after = [controlled(may, operation.name) for may in after]
    over = all(terminal(may) for may in after)
    holds = operation.name == history.HOLD and not array.ending and over  # itself, no member
    array = array._replace(ending=array.ending or ends, held=array.held or holds)
    if not operation.answered:
        return with_states(array, after)
    after = [later(may) for may in after]
    seen = array.head.seen
    known_end = seen is not None and seen.state.terminal
    states = {seen.state} if seen and known_end else states_of(after)
    if array.held and not known_end and all(terminal(may) for may in after):
        states.add(history.H)  # its end comes a moment after the last member's
    head = history.narrow(array.head, wheres(states, array.members), operation.answer)
    if head is None:
        return None
    for at, state in enumerate(operation.answer.states):
        after[at] = frozenset(each for each in after[at] if each.state is state)
        if not after[at]:
            return None
    if operation.answer.state.terminal:
        after = [terminal(may) for may in after]
    if operation.answer.state is history.H:
        after = [frozenset(at for at in may if at.state is not history.Q) for may in after]
    return with_states(array._replace(head=head), after)


def ended(array: Array) -> list[frozenset[Where]] | None:
    """The members' ends, if the array can have ended."""
    ends = [terminal(later(each.may)) for each in array.members]
    return ends if all(ends) else None


def removed(array: Array, operation: Operation) -> Array | None:
    """Of the array, and all its members with it."""
    if operation.answer == IN_THE_WAY:
        known = array.head.seen is not None and array.head.seen.state.terminal
        return None if known else array
    if ended(array) is None:
        return array if not operation.answered else None
    past = array.head.past | {operation.argument}
    return Array(array.size, Line(past=past, after=array.head.after))


def member_asked(array: Array, operation: Operation) -> Array | None:
    at = operation.argument.at
    about = replace(operation, argument=1 + at)
    ends = ended(array)
    if operation.name == history.REMOVE:
        if operation.answer == IN_THE_WAY:
            return removed(array, operation)
        if ends is None and operation.answer != GONE:
            return array if not operation.answered else None
        if ends is not None and operation.answer != GONE:
            array = with_states(array, ends)
        after = history.removed(array.members[at], about)
    else:
        after = history.asked(array.members[at], about)
        ending = array.ending or unreachable(later(array.members[at].may))
        if after is None and ending:
            after = history.asked(array.members[at], replace(about, name=history.STATUS))
    if after is None:
        return None
    return array._replace(members=(*array.members[:at], after, *array.members[at + 1 :]))


def named_by(array: Array, operation: Operation) -> Array | None:
    about = operation.argument
    if not isinstance(about, Member):
        head = history.named_by(array.head, operation)
        return head and array._replace(head=head)
    head = history.named(array.head, about.array)
    if head is None or not array.members[about.at].job:
        return array if operation.answer == GONE else None
    return array._replace(head=head) if operation.answer != GONE else None


def after_seen(array: Array, operation: Operation) -> Array | None:
    known = history.after_seen(array.head._replace(job=0), operation)
    members = [history.after_seen(each, operation) for each in array.members]
    if known is None or None in members:
        return None
    head = array.head._replace(after=known.after)
    return array._replace(head=head, members=tuple(each for each in members if each))


def held(array: Array) -> bool:
    """Whether it may be HELD, or have been when a member waited last."""
    states = {at.state for each in array.members for at in each.may}
    if states.isdisjoint((history.Q, history.H)):
        return array.held
    return history.H in states


def step(array: Array, operation: Operation) -> tuple[object, Array]:
    """As history.step."""
    if operation.answer == BUSY:
        return BUSY, array
    after = _after(array, operation)
    if after is None:
        return None, array
    return operation.answer, after._replace(held=held(after))


def _after(array: Array, operation: Operation) -> Array | None:
    if operation.name == history.SUBMIT:
        return submitted(array, operation)
    if operation.name == history.LISTED:
        head = history.listed(array.head, operation)
        return head and array._replace(head=head)
    if operation.name == history.NAMED:
        return named_by(array, operation)
    if operation.name == history.AFTER:
        return after_seen(array, operation)
    about = operation.argument
    alone = isinstance(about, Member)
    head_is = history.named(array.head, about.array if alone else about)
    if head_is is None:
        absent = operation.answer == GONE or not operation.answered
        return array if absent else None
    array = array._replace(head=head_is)
    if alone:
        return member_asked(array, operation)
    if operation.answer == GONE:
        return None
    return (removed if operation.name == history.REMOVE else asked)(array, operation)


def machine(script: Script) -> Machine[Array]:
    return Machine(Array(script.members, Line(after=script.after)), step)
