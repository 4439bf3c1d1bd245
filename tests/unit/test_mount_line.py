# SPDX-License-Identifier: GPL-2.0-or-later
"""The patience of a mount.  An object of the test stands for the session."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from pyosd import errors
from pyosd.fronts.osdfs.line import PatientSession

DEADLINE_S = 60.0


class Session:
    """Its first command loses it; the questions that follow fail one after the other, and the last not."""

    def __init__(self, *failures: Exception) -> None:
        self._failures = list(failures)
        self._lost = False

    async def carry(self, dialogue: object) -> str:
        if not self._lost:
            self._lost = True
            raise errors.Unreachable("gone")
        assert not self._failures
        return "carried"

    async def test_unit_ready(self) -> None:
        if self._failures:
            raise self._failures.pop(0)


@pytest.mark.parametrize(
    "failures",
    [
        (errors.Unreachable("refused"),),
        (RuntimeError("can't start new thread"), MemoryError()),
        (errors.Unreachable("refused"), MemoryError(), errors.Unreachable("refused")),
    ],
    ids=["away", "starved", "both"],
)
def test_it_asks_until_there_is_an_answer(failures: tuple[Exception, ...]) -> None:
    async def body() -> None:
        line = PatientSession(cast(Any, Session(*failures)), DEADLINE_S / 2)
        async with asyncio.timeout(DEADLINE_S):
            assert await line.carry(lambda: cast(Any, None)) == "carried"

    asyncio.run(body())
