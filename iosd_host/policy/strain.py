# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether ordinary commands suffer, and how far jobs give way to them.  Pure.

Computing jobs keep every processor busy, which is no strain: their control group has little weight
beside the target's.  So a processor's or a disk's pressure counts only while commands wait;
memory's counts by itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum

from iosd_host.common.words import waiting
from iosd_host.policy.events import Bounds, Load, Scale
from iosd_host.policy.follow import Turns

__all__ = ["Judgement", "Strain", "StrainState", "judge"]

AT_ONCE = 5.0
"""Times the patience: waiting so long is believed at the first look."""
EARLY = 0.1
"""Times the patience: so long commands must wait for a processor's or a disk's pressure to count."""
SHARE, SHARE_MEMORY = 0.6, 0.1
"""Pressure-stall shares above which commands, or everything, suffer."""
SENSOR = 5.0
"""Seconds between steps down that pressure-stall shares ask for, since they tell of the last ten."""
CALM = 20.0
"""Seconds without before jobs get anything back; doubled each time it comes back, up to CALM_MOST."""
CALM_MOST = 120.0
FORGIVEN = 300.0


class StrainState(Enum):
    """Conclusion from one reading."""

    CALM = "calm"
    BETWEEN = "between"
    STRAINED = "strained"


@dataclass(frozen=True)
class Judgement:
    """Conclusion from a reading, its reason, and whether it describes now or the last ten
    seconds."""

    state: StrainState
    why: str = ""
    at_once: bool = False
    slow: bool = False


def _signs(load: Load, bounds: Bounds, factor: float) -> Judgement | None:
    """Whether it is strained, by limits that are times `factor`."""
    workers, pressure = load.workers, load.pressure
    # If no worker can be added, only fewer jobs can help.
    full = workers.count >= max(bounds.workers) or not bounds.workers_scale.auto
    patience = bounds.patience * factor * (0.5 if full else 1.0)
    if workers.queued > 0 and workers.oldest >= patience:
        why = f"{waiting(workers.queued, 'command')}, the first for {workers.oldest * 1000:.0f} ms"
        return Judgement(
            StrainState.STRAINED, why, at_once=workers.oldest >= AT_ONCE * bounds.patience
        )
    if (pressure.memory or 0.0) >= SHARE_MEMORY * factor:
        why = f"memory was short in {pressure.memory:.0%} of the last 10 s"
        return Judgement(StrainState.STRAINED, why, slow=True)
    late = workers.queued > 0 and workers.oldest >= EARLY * factor * bounds.patience
    for what, share in (("a processor", pressure.cpu), ("a disk", pressure.io)):
        if late and (share or 0.0) >= SHARE * factor:
            why = f"{what} was short in {share:.0%} of the last 10 s, and commands wait, the first for "
            return Judgement(
                StrainState.STRAINED, f"{why}{workers.oldest * 1000:.0f} ms", slow=True
            )
    return None


def judge(load: Load, bounds: Bounds) -> Judgement:
    """Strained above the limits, calm below half of them."""
    found = _signs(load, bounds, 1.0)
    if found is not None:
        return found
    return Judgement(StrainState.BETWEEN if _signs(load, bounds, 0.5) else StrainState.CALM)


@dataclass
class Strain:
    """How far jobs give way: a ceiling for each pool that follows its load, then new jobs are refused.

    Attributes:
        ceilings: slots a pool may have at most for now; a pool that is not here: its bounds.
        why: the last reason to give way; "" when nothing gives way.
    """

    ceilings: dict[str, int] = field(default_factory=dict)
    why: str = ""
    _looked: float = -math.inf
    _strained: int = 0
    _at_floor: int = 0
    _acted: float = -math.inf
    _calm_since: float | None = None
    _calm: float = CALM
    _lowered: float = -math.inf
    _raised: float = -math.inf
    _shed_turns: Turns = field(default_factory=Turns)

    def forget(self) -> None:
        """Readings before a gap say nothing of now."""
        self._strained = self._at_floor = 0
        self._calm_since = None

    def look(self, now: float, scale: Scale, judgement: Judgement) -> None:
        """Counts looks that agree."""
        if now - self._looked < 0.9 * scale.interval and not judgement.at_once:
            return
        self._looked = now
        if judgement.state is StrainState.STRAINED:
            self._strained += 1
            self._calm_since = None
            if judgement.at_once:
                self._strained = max(2, self._strained)
        else:
            self._strained = self._at_floor = 0
            if judgement.state is StrainState.BETWEEN:
                self._calm_since = None
            elif self._calm_since is None:
                self._calm_since = now

    def give_way(
        self, now: float, judgement: Judgement, floors: dict[str, int], sizes: dict[str, int]
    ) -> None:
        """Halves what pools may have, towards their floors, if commands suffer and it is time.

        Args:
            floors: of the pools that follow their load.
            sizes: what they have now.
        """
        wait = SENSOR if judgement.slow else 1.0
        if judgement.state is not StrainState.STRAINED or self._strained < 2:
            return
        if now - self._acted < 0.9 * wait:
            return
        if now - self._raised < FORGIVEN:  # what was given back was too much
            self._calm = min(CALM_MOST, 2 * self._calm)
        elif now - self._lowered >= FORGIVEN:
            self._calm = CALM
        self._acted = self._lowered = now
        self._raised = -math.inf
        self.why = judgement.why
        lower = {
            name: max(floor, math.ceil(min(sizes[name], self.ceilings.get(name, sizes[name])) / 2))
            for name, floor in floors.items()
        }
        self._at_floor = self._at_floor + 1 if lower == self.ceilings else 0
        self.ceilings = lower

    def recover(self, now: float, highs: dict[str, int], factor: float) -> None:
        """Gives back by steps what was taken, once it has been calm for long enough."""
        if self._calm_since is None or now - self._calm_since < self._calm or not self.why:
            return
        if now - self._acted < SENSOR:
            return
        self._acted = self._raised = now
        self.ceilings = {
            name: grown
            for name, ceiling in self.ceilings.items()
            if (grown := max(ceiling + 1, math.floor(ceiling * factor))) < highs.get(name, 0)
        }
        if not self.ceilings:
            self.why = ""

    def shed(self, now: float, load: Load, scale: Scale) -> tuple[bool, str] | None:
        """Whether new jobs are to be refused, or not any more, and why; None: as it is."""
        if load.shedding:
            calm = None if self._calm_since is None else now - self._calm_since
            if calm is None or calm < self._calm:
                return None
            self._shed_turns.moved(now, up=True)
            return False, f"no command had to wait for {calm:.0f} s"
        jobs = any(pool.busy or pool.queued for pool in load.pools)
        if self._at_floor < scale.wait_count or not jobs or not self._shed_turns.may_fall(now):
            return None
        self._shed_turns.moved(now, up=False)
        return True, f"{self.why}, and pools are as small as they may be"
