# SPDX-License-Identifier: GPL-2.0-or-later
"""The faces for threads and for coroutines have the same methods.

Every public name of one is a name of the other, with the same parameters; what threads get as a value,
coroutines await.  Deliberate exceptions stand here, each with its reason.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

import pyosd
from pyosd import aio, target
from pyosd.commands import Commands
from pyosd.commands.async_unit import AsyncCommands
from pyosd.fs import AsyncFileSystem, FileSystem
from pyosd.functions import AsyncFunctions, Functions

FACES = {
    "commands": (Commands, AsyncCommands),
    "target": (pyosd.Target, aio.AsyncTarget),
    "files": (FileSystem, AsyncFileSystem),
    "functions": (Functions, AsyncFunctions),
    "job": (pyosd.Job, aio.AsyncJob),
    "array": (pyosd.JobArray, aio.AsyncJobArray),
}

CREATE_TASK = "a coroutine under way is an asyncio task: asyncio.create_task(target.call(request))"
FUTURE = "belongs to concurrent.futures.Future, whose part asyncio tasks have"
ONLY_THREADS = {
    "submit": CREATE_TASK,
    "abort": CREATE_TASK,
    "watch": "starts a thread; coroutines that wait for jobs are served by one task without being asked",
    **dict.fromkeys(
        ("run", "run_array", "costs", "take_spare", "keep_spare"),
        "waits for a process of its own: a coroutine gives Target.run() a thread",
    ),
    **{name: FUTURE for name in vars(Future) if not name.startswith("_")},
}
OTHER_KINDS = {
    "array": "a property cannot be awaited, so AsyncTarget.array() asks for the array's indices first",
}

BINARY = "files of coroutines are binary and unbuffered: there is nothing to say about text"
OTHER_PARAMETERS = {("files", "open"): BINARY, ("target", "open"): BINARY}


def public(cls: type) -> dict[str, Any]:
    """Names of a class and its bases, without those of object and Sequence."""
    names = {name for name in dir(cls) if not name.startswith("_")}
    for name in names:
        getattr(cls, name)  # makes a method that is made when it is first used
    return {name: inspect.getattr_static(cls, name) for name in names}


def parameters(function: Callable[..., Any]) -> list[tuple[Any, ...]]:
    found = inspect.signature(function).parameters.values()
    return [(each.name, each.kind, each.default) for each in found]


@pytest.mark.parametrize("face", FACES)
def test_the_same_names(face: str) -> None:
    threads, coroutines = (public(each).keys() for each in FACES[face])
    assert threads - coroutines <= ONLY_THREADS.keys()
    assert coroutines <= threads


@pytest.mark.parametrize("face", FACES)
def test_the_same_parameters(face: str) -> None:
    threads, coroutines = map(public, FACES[face])
    names = threads.keys() & coroutines.keys()
    for name in sorted(name for name in names if (face, name) not in OTHER_PARAMETERS):
        one, other = threads[name], coroutines[name]
        if inspect.isfunction(one) and inspect.isfunction(other):
            assert parameters(one) == parameters(other), name
        else:
            assert type(one) is type(other), name


@pytest.mark.parametrize("face", FACES)
def test_what_sends_is_a_coroutine(face: str) -> None:
    """A method whose name both have is awaited, or gives an asynchronous iterator, if it sends."""
    threads, coroutines = map(public, FACES[face])
    written = [name for name, each in threads.items() if hasattr(each, "__wrapped__")]
    assert len(written) > 5
    for name in written:
        other = coroutines[name]
        returned = str(inspect.signature(other).return_annotation)
        assert not returned.startswith(("Dialogue[", "Stream[")), name  # as help() shows it
        streams = returned.startswith("AsyncIterator[")
        spelled = inspect.iscoroutinefunction(other.__wrapped__)  # exec() by takes_options()
        assert inspect.iscoroutinefunction(other) or spelled or streams, name


def test_the_exceptions_are_exceptions() -> None:
    """A reason that no longer has its exception is removed from this file."""
    found: set[str] = set()
    for threads, coroutines in FACES.values():
        found |= public(threads).keys() - public(coroutines).keys()
    assert ONLY_THREADS.keys() - vars(Future).keys() <= found
    for face, name in OTHER_PARAMETERS:
        one, other = (getattr(each, name) for each in FACES[face])
        assert parameters(one) != parameters(other)
    for name in OTHER_KINDS:
        assert inspect.iscoroutinefunction(getattr(aio.AsyncTarget, name))
        assert not inspect.iscoroutinefunction(getattr(pyosd.Target, name))


def test_connect() -> None:
    assert parameters(target.connect) == parameters(aio.connect)
    assert parameters(pyosd.wait) == parameters(aio.wait)
    assert parameters(pyosd.as_completed) == parameters(aio.as_completed)
