# SPDX-License-Identifier: GPL-2.0-or-later
"""Exit codes of ``osd``: documented, stable, and produced nowhere but through these names."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["MEANING", "Exit"]


class Exit(IntEnum):
    """How ``osd`` ends."""

    OK = 0
    FAILED = 1
    USAGE = 2
    JOB_FAILED = 10
    JOB_CANCELLED = 11
    JOB_TIMEOUT = 12
    JOB_OUT_OF_MEMORY = 13
    JOB_LIMIT = 14
    SANDBOX_LOST = 15
    JOB_UNKNOWN = 16
    BUSY = 17
    WRONG_STATE = 18
    STORE_DAMAGED = 65
    NO_INPUT = 66
    UNREACHABLE = 69
    INTERNAL = 70
    NOT_PERMITTED = 77
    CONFIG = 78
    WAIT_OVER = 124
    INTERRUPTED = 130


MEANING = {
    Exit.OK: "done; with --wait: the job is COMPLETED",
    Exit.FAILED: "an error that has no code of its own",
    Exit.USAGE: "wrong usage",
    Exit.JOB_FAILED: "job FAILED: the script raised, or left with a code other than 0",
    Exit.JOB_CANCELLED: "job CANCELLED",
    Exit.JOB_TIMEOUT: "job TIMEOUT",
    Exit.JOB_OUT_OF_MEMORY: "job OUT_OF_MEMORY",
    Exit.JOB_LIMIT: "job LIMIT_EXCEEDED, another limit",
    Exit.SANDBOX_LOST: "job SANDBOX_LOST, retries included",
    Exit.JOB_UNKNOWN: "job unknown, or its record expired",
    Exit.BUSY: "the target is busy and declined; nothing was queued",
    Exit.WRONG_STATE: "refused in this state, such as rm of an unfinished job",
    Exit.STORE_DAMAGED: "the store is damaged (osd target check, repair)",
    Exit.NO_INPUT: "object, partition or input absent",
    Exit.UNREACHABLE: "target unreachable",
    Exit.INTERNAL: "internal error of the client; a report was written",
    Exit.NOT_PERMITTED: "not permitted",
    Exit.CONFIG: "configuration invalid",
    Exit.WAIT_OVER: "the time of --wait is over; the job continues",
    Exit.INTERRUPTED: "interrupted; a job continues, its id was printed",
}
