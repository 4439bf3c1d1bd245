# SPDX-License-Identifier: GPL-2.0-or-later
"""A row of the table of methods: the function that runs, and who may call it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from iosd_secmgr.methods.params import Params
from iosd_secmgr.records import store

__all__ = ["Json", "MethodRow", "Requester"]

Json = dict[str, Any]


@dataclass(frozen=True)
class Requester:
    """The user who sends a request."""

    user: str
    groups: frozenset[str]

    @property
    def admin(self) -> bool:
        """Whether they may change rules and keys."""
        return store.ADMIN in self.groups


@dataclass(frozen=True)
class MethodRow:
    """A row of the table."""

    run: Callable[[Requester, Params], Json]
    admin: bool = True
