# SPDX-License-Identifier: GPL-2.0-or-later
"""One way to call methods of both faces of pyosd, for tests that hold for threads and for coroutines."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any

from pyosd import Job, aio


class Face:
    """A target or a job by its methods, whichever face it has: values are awaited, streams become
    lists, and jobs become faces.
    """

    def __init__(self, behind: Any, run: asyncio.Runner) -> None:
        self.behind, self._run = behind, run

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.behind, name)
        return self.method(found) if callable(found) else found

    def method(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Call it, and bring what it gives to one form."""

        def method(*args: Any, **kwargs: Any) -> Any:
            value = function(
                *(each.behind if isinstance(each, Face) else each for each in args), **kwargs
            )
            if isinstance(value, Job | aio.AsyncJob):  # which can be awaited, too
                return self.faced(value)
            if inspect.isawaitable(value):
                value = self._run.run(awaited(value))
            elif isinstance(value, AsyncIterator):
                value = self._run.run(listed(value))
            elif isinstance(value, Iterator):
                value = [*value]
            return self.faced(value)

        return method

    def faced(self, value: Any) -> Any:
        """Jobs as faces."""
        if isinstance(value, Job | aio.AsyncJob):
            return Face(value, self._run)
        return [*map(self.faced, value)] if isinstance(value, list) else value

    def members(self) -> list[Face]:
        """Of an array."""
        assert isinstance(self.behind, Sequence)
        return [Face(each, self._run) for each in self.behind]


async def awaited(value: Awaitable[Any]) -> Any:
    return await value


async def listed(items: AsyncIterator[Any]) -> list[Any]:
    return [each async for each in items]
