# SPDX-License-Identifier: GPL-2.0-or-later
"""The functions of a target, for threads and for coroutines: target.functions."""

from __future__ import annotations

from typing import Any, TypeVar

from pyosd.commands.dialogue import Awaiting, Blocking, Dialogue
from pyosd.functions.dialogues import FunctionTable

__all__ = ["AsyncFunctions", "Functions"]

R = TypeVar("R")


class Functions(FunctionTable, Blocking):
    """The functions of one partition of a target."""

    def __init__(self, target: Any, partition: int | None = None) -> None:
        """Args: target: a Target.  partition: their partition, 1h to FFFFh; None: the only one there is."""
        self.target = target
        self.partition = partition

    def carry(self, dialogue: Dialogue[R]) -> R:
        """Carry a dialogue to its end.  Returns: its value."""
        value: R = self.target.carry(dialogue)
        return value


class AsyncFunctions(FunctionTable, Awaiting):
    """The functions of one partition of a target, for coroutines."""

    def __init__(self, target: Any, partition: int | None = None) -> None:
        """Args: target: an AsyncTarget.  partition: as of Functions."""
        self.target = target
        self.partition = partition

    async def carry(self, dialogue: Dialogue[R]) -> R:
        """Carry a dialogue to its end.  Returns: its value."""
        value: R = await self.target.carry(dialogue)
        return value
