# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a history of concurrent operations could have happened one after the other.

Wing and Gong's search with Lowe's memory of what was tried: take any operation that began before all
the others left had ended, if its answer is what the state gives, and go on; a state reached with the
same operations done is looked at once.  An operation without an answer (its target was killed) may
have happened at any time between its beginning and its end (the target's), or never.

It is written here because the model of the store is in Python: the checkers that exist (Knossos in
Clojure, Porcupine in Go) would need it a second time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

State = TypeVar("State", bound=Hashable)


@dataclass(frozen=True)
class Operation:
    """One operation of a history, by a clock that all share.

    answered: answer counts; else it may never have happened.
    """

    name: str
    argument: Any
    answer: Any
    start: float
    end: float = math.inf
    answered: bool = True


@dataclass(frozen=True)
class Machine(Generic[State]):
    """initial: the state before.  step: the answer an operation gets in a state, and the state it
    leaves."""

    initial: State
    step: Callable[[State, Operation], tuple[Any, State]]


def at_once(clients: Sequence[Callable[[], None]]) -> None:
    """Run each in a thread of its own, until all are through.  Raises: what the first of them raised."""
    with ThreadPoolExecutor(len(clients)) as threads:
        running = [threads.submit(each) for each in clients]
    for each in running:
        each.result()


def cut_short(operations: Sequence[Operation], now: float) -> list[Operation]:
    """They, once the target is gone: what has no answer by now happened before, or never will."""
    return [
        each if each.answered or each.end < now else replace(each, end=now) for each in operations
    ]


def told(operations: Sequence[Operation]) -> str:
    """A line for each, in the order of their beginnings."""
    return "\n".join(
        f"{each.start:.6f}-{each.end:.6f} {each.name} {each.argument} {each.answer}"
        for each in sorted(operations, key=lambda each: each.start)
    )


def final_states(machine: Machine[State], history: Sequence[Operation]) -> set[State]:
    """The states some order of the history ends in; none: it is not linearizable."""
    operations = sorted(history, key=lambda each: each.start)
    answered = sum(1 << n for n, each in enumerate(operations) if each.answered)
    unanswered = [(each, 1 << n) for n, each in enumerate(operations) if not each.answered]
    ends: set[State] = set()
    tried: set[tuple[int, State]] = set()
    stack = [(0, machine.initial)]
    while stack:
        done, state = stack.pop()
        if (done, state) in tried:
            continue
        tried.add((done, state))
        if done & answered == answered:
            ends.add(state)
        for n in candidates(operations, done):
            answer, after = machine.step(state, operations[n])
            if not operations[n].answered or answer == operations[n].answer:
                stack.append((over(unanswered, done | 1 << n, operations[n].start), after))
    return ends


def candidates(operations: Sequence[Operation], done: int) -> list[int]:
    """Operations that can be next: no remaining answered one ended before they began."""
    found = []
    soonest = math.inf
    first = (~done & (done + 1)).bit_length() - 1  # the lowest bit that is not set
    for n in range(first, len(operations)):
        if done >> n & 1:
            continue
        each = operations[n]
        if each.start > soonest:
            break
        found.append(n)
        if each.answered:
            soonest = min(soonest, each.end)
    return found


def over(unanswered: Sequence[tuple[Operation, int]], done: int, now: float) -> int:
    """Those done, and those that can no longer happen because something began after their end.

    Args: unanswered: those without an answer, by their beginnings, each with its bit in `done`.
    """
    for each, bit in unanswered:
        if each.start > now:
            break
        if each.end < now:
            done |= bit
    return done
