# SPDX-License-Identifier: GPL-2.0-or-later
"""Processors and memory: the workers and slots that a host can carry, and each pool's share.  Pure."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = [
    "IDLE_SANDBOX",
    "SLOTS_MOST",
    "Claim",
    "default_slots",
    "default_workers",
    "entitlements",
    "room_for_spares",
    "staffing",
]

WORKERS_MOST = SLOTS_MOST = 64
"""The target's own bounds: threads for commands, slots of all pools (target/unit, target/exec)."""
IDLE_SANDBOX = 1 << 20
"""Bytes a warm sandbox costs that has no job (docs/benchmarks.md, sandbox_memory)."""
SPARE_SHARE = 8
"""Spares get at most this part of the memory for jobs, beside it: they have no job."""
JOBS_SHARE = 0.75
"""Of a host's memory that jobs may have where no budget is declared."""


def default_workers(cores: int) -> tuple[int, int]:
    """Least and most threads for commands: four a processor, since they wait for disks.

    The iOSD paper's host had two processors, and at most 8 workers.
    """
    most = min(WORKERS_MOST, max(4, 4 * cores))
    return min(2, most), most


def default_slots(cores: int, memory: int | None, memory_per_slot: int) -> int:
    """Slots of a pool: one a processor, at least two, no more than memory carries.

    The paper had 4 sandboxes on two processors: its jobs waited for disks as well.
    """
    slots = min(SLOTS_MOST, max(2, cores))
    if memory is not None and memory_per_slot > 0:
        slots = min(slots, int(memory * JOBS_SHARE) // memory_per_slot)
    return max(1, slots)


def staffing(offered: float, uneven: float = 1.0) -> int:
    """Servers that a load needs so that few have to wait: itself, and twice its spread.

    Square-root staffing: the number at work at a time of a load of `offered` (arrivals a second x seconds
    each, Little) spreads by its root.

    Args:
        uneven: variance of the arrivals by their mean.
    """
    return math.floor(offered + 2 * math.sqrt(offered * uneven) + 0.5)


@dataclass(frozen=True)
class Claim:
    """A pool's present and required share of the memory for jobs.

    Attributes:
        least: slots it always has.
        want: slots its load asks for.
        each: bytes a slot may use.
    """

    least: int
    want: int
    each: int


def entitlements(claims: Sequence[Claim], memory: int) -> list[int]:
    """Slots each may have where not all can have what they want: who has least memory gets the next.

    Nobody gets more than it wants, or less than `least`.  Claims that fit are granted whole.
    """
    granted = [claim.least for claim in claims]
    left = memory - sum(claim.least * claim.each for claim in claims)
    if sum(max(c.want, c.least) * c.each for c in claims) <= memory:
        return [max(claim.want, claim.least) for claim in claims]
    heap = [(g * c.each, i) for i, (g, c) in enumerate(zip(granted, claims, strict=True))]
    heapq.heapify(heap)
    while heap:
        has, index = heapq.heappop(heap)
        claim = claims[index]
        if granted[index] >= claim.want or claim.each > left:
            continue
        granted[index] += 1
        left -= claim.each
        heapq.heappush(heap, (has + claim.each, index))
    return granted


def room_for_spares(memory: int | None, sandboxes: int, pools: int) -> int:
    """Spares that one of so many pools may have: one each at least.

    Args:
        memory: for all jobs together; None: not declared.
        sandboxes: that there may be beside those that slots can need.
    """
    most = sandboxes if memory is None else min(sandboxes, memory // SPARE_SHARE // IDLE_SANDBOX)
    return max(1, most // max(1, pools))
