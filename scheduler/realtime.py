# SPDX-License-Identifier: GPL-2.0-or-later
"""tgtd's own thread before every ordinary one of the host, by sched(7)'s real-time class.

That thread answers what is small and in memory and hands the rest on; a script that is computing must not
keep it waiting until the kernel's next tick.  What it starts is ordinary again: workers, and whoever serves
calls of scripts.
"""

from __future__ import annotations

import os

__all__ = ["put_first", "why_not"]

POLICY = os.SCHED_RR | os.SCHED_RESET_ON_FORK
PROCESSORS = 2  # with one, all others would wait for a tgtd that is busy


def put_first(pid: int) -> str | None:
    """Have a process's first thread, and none that it starts from then on, run before ordinary ones.

    Returns: why that cannot be, and nothing has changed; None: it is so.
    """
    try:
        if len(os.sched_getaffinity(pid)) < PROCESSORS:
            return "one processor"
        os.sched_setscheduler(pid, POLICY, os.sched_param(1))
    except OSError as error:
        return os.strerror(error.errno or 0).lower()
    return None


def why_not() -> str | None:
    """Whether put_first would do it for a process that we start: tried on the calling thread."""
    policy, param = os.sched_getscheduler(0), os.sched_getparam(0)
    refusal = put_first(0)
    if refusal is None:
        os.sched_setscheduler(0, policy, param)
    return refusal
