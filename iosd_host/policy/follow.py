# SPDX-License-Identifier: GPL-2.0-or-later
"""A size that follows a need without hunting: up at once, down late and in steps.  Pure.

Why a pool cannot oscillate, whatever its load does: growing is never refused, since jobs wait; so it is
shrinking that is rationed.  A decrease after an increase happens only if there are at most TURNS
turns in the WINDOW that ends with it. An increase that can follow it at once is counted too.  In
any window, what
comes after its last such fall is one rise at most: so there are never more.
"""

from __future__ import annotations

import math
from collections import deque

from iosd_host.policy.events import Scale

__all__ = ["TURNS", "WINDOW", "Follower", "Turns"]

WINDOW = 60.0
"""Seconds over which turns are counted."""
TURNS = 6
"""Changes of direction within any WINDOW, at most."""
REGRETS_MOST = 3
FORCED_RESERVE = 2
"""Turns that a decrease for low load leaves to urgent decreases (slow commands, memory)."""


class Turns:
    """When something that moves up and down turned round."""

    def __init__(self) -> None:
        self._times: deque[float] = deque()
        self._direction = 0

    def may_fall(self, now: float, reserve: int = 0) -> bool:
        """Whether a fall now leaves room for the rise after it, and for so many turns more."""
        while self._times and self._times[0] < now - WINDOW:
            self._times.popleft()
        return self._direction <= 0 or len(self._times) + 2 + reserve <= TURNS

    def moved(self, now: float, up: bool) -> None:
        direction = 1 if up else -1
        if self._direction == -direction:
            self._times.append(now)
        self._direction = direction


class Follower:
    """One size: of a pool, of the workers, of a pool's spares.

    A decrease that had to be reversed within a WINDOW was too early. The next one needs twice as
    many readings that agree, doubled at most three times. A WINDOW without an increase resets this.
    """

    def __init__(self) -> None:
        self.turns = Turns()
        self._rose = self._fell = -math.inf
        self._looked = -math.inf
        self._agreed = 0
        self._peak = 0
        self._regrets = 0

    def is_look(self, now: float, scale: Scale) -> bool:
        """Whether the interval is over; readings may come a little early."""
        return now - self._looked >= 0.9 * scale.interval

    def may_be_taken(self, now: float, scale: Scale) -> bool:
        """Whether others may have part of it: not of what was given within the interval."""
        return now - self._rose >= scale.interval and self.turns.may_fall(now)

    def forget(self) -> None:
        """Looks before a gap, or while nothing could follow, agree with nothing."""
        self._agreed = self._peak = 0

    def started(self, now: float) -> None:
        """A policy that has just begun does not know what was: as if it had grown."""
        self._rose = now

    def step(
        self,
        now: float,
        size: int,
        need: int,
        least: int,
        scale: Scale,
        hurry: bool,
        leap: bool = False,
    ) -> int:
        """The size there should be, which is `size` when nothing should change.

        Args:
            need: what the load asks for, within the bounds.
            least: not below this, whatever the need: what is at work.
            hurry: something waits, so growing waits for no look and no cooldown.
            leap: the need was measured and is no guess: it is met in one step.
        """
        look = self.is_look(now, scale)
        if look:
            self._looked = now
        if need > size:
            self.forget()
            if not hurry and (not look or now - self._fell < scale.cooldown):
                return size
            return need if leap else min(need, max(size + 1, math.floor(size * scale.up_factor)))
        self._peak = max(self._peak, need, least)
        if look:
            self._agree(size, need)
        target = max(self._peak, math.ceil(size / max(scale.up_factor, 1.1)))
        if (
            self._agreed < scale.wait_count << self._regrets
            or target >= size
            or now - self._rose < scale.cooldown
            or not self.turns.may_fall(now, FORCED_RESERVE)
        ):
            return size
        return target

    def _agree(self, size: int, need: int) -> None:
        """One more look at which it was too large, by more than chance moves it; else none."""
        if size - need >= max(1, size // 8):
            self._agreed += 1
        else:
            self._agreed = 0
        if self._agreed <= 1:
            self._peak = need

    def moved(self, now: float, before: int, after: int) -> None:
        """It was decided that the size shall be so."""
        if before == after:
            return
        self.turns.moved(now, after > before)
        self.forget()
        if after < before:
            if now - self._rose > WINDOW:
                self._regrets = 0
            self._fell = now
            return
        if now - self._fell < WINDOW and self._rose < self._fell:
            self._regrets = min(REGRETS_MOST, self._regrets + 1)
        self._rose = now
