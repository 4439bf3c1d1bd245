# SPDX-License-Identifier: GPL-2.0-or-later
"""The session with the target, with patience while the target is away."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TypeVar

from pyosd import errors
from pyosd.aio import AsyncTarget
from pyosd.commands.dialogue import Dialogue

__all__ = ["PatientSession"]

R = TypeVar("R")
_ATTEMPTS = 4
_PROBE_FIRST, _PROBE_MOST = 0.05, 1.0
_log = logging.getLogger("osdfs")


class PatientSession:
    """Carries dialogues.  While the target is away they wait, for `patience` seconds since it was lost.

    The session of the target must not wait itself: its reconnect_timeout is 0.
    """

    def __init__(self, target: AsyncTarget, patience: float) -> None:
        self.target, self._patience = target, patience
        self._up = asyncio.Event()
        self._up.set()
        self._lost_at = 0.0
        self._probe: asyncio.Task[None] | None = None

    async def carry(self, dialogue: Callable[[], Dialogue[R]], *, again: bool = True) -> R:
        """Carry a dialogue of one command.

        Args: again: it may be sent again if it is not known whether the target has carried it out.

        Raises: what the dialogue raises; Unreachable: the target has been away for too long;
            SessionLost: it was lost, and the command is not to be sent again.
        """
        for attempt in range(_ATTEMPTS):
            if not self._up.is_set():
                await self._wait()
            try:
                return await self.target.carry(dialogue())
            except errors.TargetBusy as error:  # nothing was done
                if attempt == _ATTEMPTS - 1:
                    raise
                await asyncio.sleep(error.retry_after)
            except errors.Unreachable as error:
                self._lose(error)
                if isinstance(error, errors.SessionLost) and not again:
                    raise
                if attempt == _ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")

    async def close(self) -> None:
        """End the session."""
        if self._probe:
            self._probe.cancel()
        await self.target.close()

    async def _wait(self) -> None:
        left = self._lost_at + self._patience - time.monotonic()
        up = asyncio.ensure_future(self._up.wait())
        try:
            # Not asyncio.timeout(): an operation begins outside of any task (server.py).
            await asyncio.wait([up], timeout=max(left, 0.0))
            if not up.done():
                raise errors.Unreachable("the target is away")
        finally:
            up.cancel()

    def _lose(self, error: errors.Unreachable) -> None:
        """Begin to ask whether the target is back, unless that is under way."""
        if self._up.is_set():
            _log.warning("the target is away: %s", error)
            self._up.clear()
            self._lost_at = time.monotonic()
            self._probe = asyncio.create_task(self._ask())

    async def _ask(self) -> None:
        delay = _PROBE_FIRST
        while True:
            try:
                await self.target.test_unit_ready()
                break
            except errors.Unreachable:
                pass
            except errors.OSDError:
                break  # an answer, whatever it says
            except Exception as error:  # for lack of memory or threads: nobody else would ask again
                _log.error("cannot ask the target: %s", str(error) or type(error).__name__)
            await asyncio.sleep(delay)
            delay = min(delay * 1.5, _PROBE_MOST)
        _log.warning("the target is back after %.1f s", time.monotonic() - self._lost_at)
        self._up.set()
