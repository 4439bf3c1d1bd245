# SPDX-License-Identifier: GPL-2.0-or-later
"""Says in words which EXEC parameter a target has refused: sense data only points at all of them."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator

from pyosd import errors
from pyosd.commands.attributes import get_attribute
from pyosd.commands.dialogue import Dialogue
from pyosd.commands.pool_status import DEFAULT_POOL, GONE, MIB, TIMES, PoolStatus, pools
from pyosd.wire.attributes import Page
from pyosd.wire.exec_params import ExecParams, Tag, parse_duration, parse_size, show_duration
from pyosd.wire.job_status import Number

__all__ = ["EXEC_PARAMETERS", "explain_absent", "explain_at_once", "explain_refusal"]

CLOSED_S = (
    10  # what a pool that is paused or draining says after which to try again; a full one says less
)
EXEC_PARAMETERS = 48  # byte of the CDB that a refusal of parameters points at
# docs/limits.md
NAME_MOST, TAGS_MOST, TAG_MOST, KEY_MOST = 128, 16, 128, 64  # bytes, but the tags
ARGS_MOST, AFTER_MOST = MIB, 64
LEAST_MEMORY = 32 * MIB  # below this the interpreter does not come up
DAY_S = 86400
TIMES_MOST = {"expire": 365 * DAY_S, "grace": 5, "wait": 60}


def explain_refusal(params: ExecParams, error: errors.OSDError) -> Dialogue[str]:
    """Say which parameter the target has refused and why, or why a pool is BUSY.  Asks the target.

    Returns: the reason in words; "": none was found.
    """
    busy = isinstance(error, errors.TargetBusy) and error.retry_after >= CLOSED_S
    if not busy and error.field_pointer != EXEC_PARAMETERS:
        return ""
    if wrong := explain_at_once(params, error):
        return wrong
    known = {pool.name: pool for pool in (yield from pools()) if pool.state not in GONE}
    name = params.pool or DEFAULT_POOL
    if busy:
        return explain_mode(known[name]) if name in known else ""
    if absent := explain_absent(name, known):
        return absent
    above = explain_limits(known[name], params) if known else ""
    return above or (yield from explain_jobs(params)) or explain_partition(params, error)


def explain_absent(pool: str, known: Collection[str]) -> str:
    """Say that the target has no pool of this name.

    known: the pools that the target has; none: they are not known.
    Returns: the reason in words; "": there is such a pool, or it is not known.
    """
    if not known or pool in known:
        return ""
    return f"the target has no pool '{pool}'; it has: {', '.join(known)}"


def explain_at_once(params: ExecParams, error: errors.OSDError) -> str:
    """Do the part of explain_refusal() that needs no command."""
    return next(explain_values(params), "") if error.field_pointer == EXEC_PARAMETERS else ""


def explain_values(params: ExecParams) -> Iterator[str]:
    """Parameters beyond the limits of every target (docs/limits.md)."""
    texts = [("name", params.name, NAME_MOST)]
    texts += [(f"tag '{key}'", f"{key}={value}", TAG_MOST) for key, value in params.tags.items()]
    for what, text, most in texts:
        if len(text.encode()) > most:
            yield f"{what} has {len(text.encode())} bytes, and may have {most}"
        if any(unicodedata.category(each) == "Cc" for each in text):
            yield f"{what} has control characters"
    if len(params.args) > ARGS_MOST:
        yield (
            f"arguments of {len(params.args)} bytes, and there may be {ARGS_MOST}; keep large data in an "
            "object, and let the script read it there"
        )
    if len(params.key) > KEY_MOST:
        yield f"key has {len(params.key)} bytes, and may have {KEY_MOST}"
    if len(params.tags) > TAGS_MOST:
        yield f"{len(params.tags)} tags, and a job may have {TAGS_MOST}"
    if len(params.after) > AFTER_MOST:
        yield f"{len(params.after)} jobs to wait for, and there may be {AFTER_MOST}"
    for tag, number in params.limit_numbers():
        if number == 0:
            yield f"a limit of 0 on {tag.name.lower()}: leave it out to have the default"
        elif tag is Tag.MEMORY and number is not None and number < LEAST_MEMORY:
            yield f"{number} B of memory: Python needs {LEAST_MEMORY // MIB} MiB to start"
    times = {"expire": params.expiry, "grace": params.grace, "wait": params.wait}
    for what, given in times.items():
        seconds, most_s = None if given is None else parse_duration(given), TIMES_MOST[what]
        if seconds is not None and not 0 < seconds <= most_s:
            shown, most_shown = show_duration(seconds), show_duration(most_s)
            yield f"{what} of {shown}: it must be above 0, and at most {most_shown}"


def explain_jobs(params: ExecParams) -> Dialogue[str]:
    """Say which job of `after` is absent, or that an array may have too many members; "": neither."""
    for each in params.after:
        try:
            state = yield from get_attribute(each.job, Page.JOB_STATUS, Number.STATE)
        except errors.OSDError:  # no object, or one that has no such page
            state = b""
        if not state:
            return f"{each.job}, to be waited for, is no job, or its record is gone"
    if params.array:
        first, last, _ = params.array
        members = sum(map(len, params.array_ranges)) or last - first + 1
        return (
            f"{members} members may be more than the target queues of one client "
            "(1,000, unless served with --queue-per-principal)"
        )
    return ""


def explain_partition(params: ExecParams, error: errors.OSDError) -> str:
    """Say that the job's object cannot be outside the partition of its zone; "": it was not to be."""
    if params.surrogate is None or error.named_object is None:
        return ""
    zone = error.named_object.partition_id
    if params.surrogate.partition_id == zone:
        return ""
    named = f"the zone is in partition {zone:#x}" if zone else "the zone is the root"
    return (
        f"{named}, and the job's object cannot be in partition {params.surrogate.partition_id:#x}: "
        "choose a zone in that partition"
    )


def explain_mode(pool: PoolStatus) -> str:
    """Why a pool takes no jobs, if that is an administrator's wish."""
    if pool.mode == "draining":
        return f"pool '{pool.name}' is draining: it takes no more jobs until it is resumed"
    if pool.mode == "paused":
        return f"pool '{pool.name}' is paused: it starts no jobs until it is resumed"
    return ""


def explain_limits(pool: PoolStatus, params: ExecParams) -> str:
    """The first limit that is above the pool's bound."""
    limits = params.limits
    asked: dict[str, float] = {}
    if limits.wall is not None:
        asked["wall"] = parse_duration(limits.wall)
    if limits.cpu is not None:
        asked["cpu"] = parse_duration(limits.cpu)
    if limits.mem is not None:
        asked["memory"] = parse_size(limits.mem)
    if limits.procs is not None:
        asked["threads"] = limits.procs
    if limits.output is not None:
        asked["output"] = parse_size(limits.output)
    for key, value in asked.items():
        most = pool.limits.get(key, (0, None))[1]
        if most is not None and value > most:
            words = f"{key} {_in_words(key, most)} at most, not {_in_words(key, value)}"
            return f"a job of pool '{pool.name}' may ask for {words}"
    return ""


def _in_words(key: str, value: float) -> str:
    if key in TIMES:
        return show_duration(value)
    if key not in ("memory", "output"):
        return f"{value:g}"
    return f"{value / 1024 / MIB:.1f} GiB" if value >= 10 * 1024 * MIB else f"{value / MIB:g} MiB"
