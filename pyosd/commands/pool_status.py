# SPDX-License-Identifier: GPL-2.0-or-later
"""Pools as the target tells them: attribute 8 of root page B000_0001h (docs/pools.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from pyosd import errors
from pyosd.commands.attributes import get_attribute
from pyosd.commands.dialogue import Dialogue
from pyosd.types import ROOT, U64_MAX
from pyosd.wire.attributes import Page

__all__ = ["DEFAULT_POOL", "GONE", "PoolStatus", "pools"]

DEFAULT_POOL = "default"
GONE = ("gone", "leaving")  # not configured
POOLS = 8  # attribute of the page


@dataclass(frozen=True)
class PoolStatus:
    """A pool at one moment.

    Attributes:
        state: serving, starting, failed (see why); leaving: not configured any more, its jobs run to
            the end; gone: not configured, jobs still name it.
        mode: running; paused: it starts no jobs; draining: it takes none either.
        idle_timeout: seconds without a job after which it ends its prestarted sandboxes beyond min.
        max, min, active: slots: at most; with a prestarted sandbox even when idle; that may run jobs
            now.
        warm_spare: prestarted sandboxes beyond those.  busy, ready: sandboxes at work, and waiting.
        queued: jobs that have a place.  queue: how many may have one.
        set: id of its package set, "" without.
        limits: name -> what a job gets, and the most it may ask for; None: no bound.  wall and cpu in
            seconds (cpu 0: as wall), memory and output in bytes.
        cpu_share: percent of the processors that all jobs may use together.  bandwidth: bytes a second
            that scripts may read and write, 0: no bound.  deadline: seconds from the submission of a job
            to its end, 0: none.
        pushed, late: jobs that were given back since the target started: their client was expected to be
            sooner; the deadline would have passed.  held: seconds that calls waited for the bandwidth.
    """

    name: str
    state: str = ""
    mode: str = "running"
    idle_timeout: float = 0.0
    min: int = 0
    max: int = 0
    active: int = 0
    warm_spare: int = 0
    busy: int = 0
    ready: int = 0
    queued: int = 0
    queue: int = 0
    reuse: str = ""
    engine: str = ""
    set: str = ""
    cpu_share: int = 100
    bandwidth: int = 0
    deadline: float = 0.0
    pushed: int = 0
    late: int = 0
    held: float = 0.0
    why: str = ""
    limits: dict[str, tuple[float, float | None]] = field(default_factory=dict)


NUMBERS = tuple(each.name for each in fields(PoolStatus) if each.type == "int")
WORDS = {"warm_spare": "spare"}  # what a target calls it
TIMES = ("wall", "cpu")
MIB = 1 << 20


def decode_pool(line: str) -> PoolStatus:
    """One line; keys that we do not know are a newer target's.  Raises: ValueError."""
    line, _, why = line.partition(" why=")
    name, *words = line.split(" ")
    given = dict(word.split("=", 1) for word in words)
    return PoolStatus(
        name,
        state=given.get("state", ""),
        mode=given.get("mode", "running"),
        idle_timeout=int(given.get("idle_timeout", "0")) / 1e6,
        deadline=int(given.get("deadline", "0")) / 1e6,
        held=int(given.get("held", "0")) / 1e6,
        reuse=given.get("reuse", ""),
        engine=given.get("engine", ""),
        set="" if given.get("set") in (None, "-") else given["set"],
        why=why,
        limits=limits_in(given),
        **{key: int(given[word]) for key in NUMBERS if (word := WORDS.get(key, key)) in given},
    )


def limits_in(given: Mapping[str, str]) -> dict[str, tuple[float, float | None]]:
    """Those of the keys that are limits: default and maximum, None for no bound.  Raises: ValueError."""
    return {
        key: (_limit(key, standard), None if int(most) == U64_MAX else _limit(key, most))
        for key, value in given.items()
        if "/" in value
        for standard, most in [value.split("/")]
    }


def _limit(key: str, text: str) -> float:
    return int(text) / 1e6 if key in TIMES else int(text)


def pools() -> Dialogue[list[PoolStatus]]:
    """The pools of sandboxes, and how busy each is; `default` is the first.

    Returns: an empty list if the target runs no scripts, or is of an older release.
    """
    value = yield from get_attribute(ROOT, Page.EXEC_ROOT, POOLS)
    text = value.decode(errors="replace")
    try:
        return [decode_pool(line) for line in text.splitlines()]
    except ValueError as error:
        raise errors.ProtocolError(f"the target's list of pools cannot be read: {error}") from None
