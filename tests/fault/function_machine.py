# SPDX-License-Identifier: GPL-2.0-or-later
"""What clients see of functions that share an alias, one command after the other: the model that a
history of them must fit.

The code of an object is always the same, and returns its index.  Not here: who sends the commands, and
who kills the target (test_function_history.py).
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from tests.linearize import Machine, Operation

ABSENT, TAKEN, UNKNOWN = "absent", "taken", "unknown"
COUNT = 3


class Life(Enum):
    """Of a function object."""

    GONE, STORED, ACTIVE = range(3)


Functions = tuple[Life, ...]


def changed(state: Functions, index: int, to: Life) -> Functions:
    return tuple(to if n == index else each for n, each in enumerate(state))


def without_owner(state: Functions) -> Functions:
    """No function has the alias any more."""
    return tuple(Life.STORED if each is Life.ACTIVE else each for each in state)


def step(state: Functions, operation: Operation) -> tuple[Any, Functions]:
    """The answer to a command, and what it leaves."""
    name, index = operation.name, operation.argument
    if name == "call":  # by the alias
        return (state.index(Life.ACTIVE) if Life.ACTIVE in state else UNKNOWN), state
    life = state[index]
    if name == "put":
        return ("", changed(state, index, Life.STORED)) if life is Life.GONE else (TAKEN, state)
    if life is Life.GONE:
        return ABSENT, state
    match name:
        case "remove":
            return "", changed(state, index, Life.GONE)
        case "refused removal":  # only a function that is active can be in use
            return ("" if life is Life.ACTIVE else TAKEN), state
        case "deactivate":
            return "", changed(state, index, Life.STORED)
        case "replace":
            return "", changed(without_owner(state), index, Life.ACTIVE)
        case "activate":
            if Life.ACTIVE in changed(state, index, Life.STORED):
                return TAKEN, state
            return "", changed(state, index, Life.ACTIVE)
    raise AssertionError(operation)


MACHINE: Machine[Functions] = Machine((Life.GONE,) * COUNT, step)
