# SPDX-License-Identifier: GPL-2.0-or-later
"""The functions of a target, for threads and for coroutines: target.functions."""

from __future__ import annotations

from typing import Any, TypeVar

from pyosd.commands.dialogue import Awaiting, Blocking, Dialogue, OwnMethod
from pyosd.functions import attaching, calling, dialogues
from pyosd.functions import hooks as hooking
from pyosd.functions import results as keeping
from pyosd.functions import views as viewing

__all__ = ["AsyncFunctions", "Functions"]

R = TypeVar("R")


class FunctionTable:
    """The methods that Functions and AsyncFunctions share."""

    ls = OwnMethod(dialogues.ls)
    show = OwnMethod(dialogues.show)
    put = OwnMethod(dialogues.put)
    put_stock = OwnMethod(dialogues.put_stock)
    activate = OwnMethod(dialogues.activate)
    deactivate = OwnMethod(dialogues.deactivate)
    remove = OwnMethod(dialogues.remove)
    code = OwnMethod(dialogues.code)
    attach = OwnMethod(attaching.attach)
    detach = OwnMethod(attaching.detach)
    attached = OwnMethod(attaching.attached)
    hook = OwnMethod(hooking.hook)
    hooks = OwnMethod(hooking.hooks)
    unhook = OwnMethod(hooking.unhook)
    follow = OwnMethod(hooking.follow)
    is_current = OwnMethod(hooking.is_current)
    view = OwnMethod(viewing.view)
    views = OwnMethod(viewing.views)
    view_create = OwnMethod(viewing.view_create)
    view_refresh = OwnMethod(viewing.view_refresh)
    view_remove = OwnMethod(viewing.view_remove)
    calls = OwnMethod(dialogues.calls)
    capacity = OwnMethod(dialogues.capacity)
    results = OwnMethod(keeping.results)
    origin = OwnMethod(keeping.origin)
    call = OwnMethod(calling.call)
    submit = OwnMethod(calling.submit)


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
