# SPDX-License-Identifier: GPL-2.0-or-later
"""New readings for all open consoles: polled once and encoded once for all of them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections import deque
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from iosd_host.http.console.state import serial_of, state_of
from iosd_host.manager.state_store import PEOPLE, POLICY

if TYPE_CHECKING:
    from iosd_host.manager.manager import Manager
    from iosd_host.manager.target import ManagedTarget

__all__ = ["Live"]

LOG = logging.getLogger("iosd.console")

LOOK_S = 0.5  # a page is drawn at most twice a second, however fast readings come
AGAIN_S = 5.0  # without any, it is told that there are none
CHANGES_SHOWN = 30  # by people, and as many by the policy


class One:
    """State of one target.

    Attributes:
        number: of the state, 1 and up; text: its JSON.
        key: what it was made of.
    """

    def __init__(self) -> None:
        self.number = 0
        self.text = b""
        self.key: tuple[object, ...] = ()
        self.made = 0.0
        self.last_change = dict.fromkeys((PEOPLE, POLICY), 0)
        self.changes: dict[str, deque[dict[str, Any]]] = {
            who: deque(maxlen=CHANGES_SHOWN) for who in (PEOPLE, POLICY)
        }
        self.lock = asyncio.Lock()


def newest_first(changes: Mapping[str, Iterable[dict[str, Any]]]) -> list[dict[str, Any]]:
    """All of them; each says whether the policy made it."""
    rows = [{**row, "policy": who == POLICY} for who, found in changes.items() for row in found]
    return sorted(rows, key=lambda row: -int(row["id"]))


class Live:
    """States of all targets.  One event loop; while nobody waits, nothing is done."""

    def __init__(self, manager: Manager) -> None:
        self.manager = manager
        self.known: dict[str, One] = {}
        self.news = asyncio.Condition()
        self.wanted = 0
        self.ended = False
        self.task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look."""
        self.task = asyncio.create_task(self._look())

    async def stop(self) -> None:
        """Those who wait are let go."""
        self.ended = True
        if self.task is not None:
            self.task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self.task
        async with self.news:
            self.news.notify_all()

    async def after(self, name: str, number: int) -> tuple[int, bytes]:
        """Wait for a state of this target newer than `number`; number 0: for any."""
        one = self.known.setdefault(name, One())
        if number == 0:
            await self._renew(self.manager.targets[name], one)
        async with self.news:
            self.wanted += 1
            try:
                await self.news.wait_for(lambda: self.ended or one.number > number)
            finally:
                self.wanted -= 1
        return one.number, one.text

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            if not self.wanted:
                continue
            for name, one in list(self.known.items()):  # others come while we wait
                try:
                    await self._renew(self.manager.targets[name], one)
                except Exception:
                    LOG.exception("our fault: the console's state of %s", name)

    async def _renew(self, target: ManagedTarget, one: One) -> None:
        """Make the state anew where it is another one."""
        async with one.lock:
            made = await self._make(target, one)
        if made:
            async with self.news:
                self.news.notify_all()

    async def _make(self, target: ManagedTarget, one: One) -> bool:
        found = {
            who: await self.manager.changes(target.name, one.last_change[who], CHANGES_SHOWN, who)
            for who in one.changes
        }
        now = asyncio.get_running_loop().time()
        said = target.status()
        key = (serial_of(target), said["role"], said["trouble"])
        if not any(found.values()) and key == one.key and now - one.made < AGAIN_S:
            return False
        for who, rows in found.items():
            one.changes[who].extend(rows)
            one.last_change[who] = max([one.last_change[who], *(row["id"] for row in rows)])
        one.key, one.made = key, now
        state = state_of(self.manager, target, newest_first(one.changes))
        one.text = json.dumps(state).encode()
        one.number += 1
        return True
