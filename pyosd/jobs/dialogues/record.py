# SPDX-License-Identifier: GPL-2.0-or-later
"""A job's status as JSON: the record "iosd.job/1".  Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pyosd.wire.job_status import JobFlag, JobState, JobStatus, Offload

__all__ = ["SCHEMA", "counted", "milliseconds", "progress_in", "record_of"]

JobJson = dict[str, Any]

SCHEMA = "iosd.job/1"


def milliseconds(when: datetime | None) -> int | None:
    """Milliseconds since 1970; None stays None."""
    return None if when is None else round(when.timestamp() * 1000)


def limits_of(status: JobStatus) -> dict[str, float | int | None]:
    """The limits in force, units in the names; None: not limited."""
    values: dict[str, Any] = vars(status.limits.stated())
    return {
        "wall_s": values["wall"],
        "cpu_s": values["cpu"],
        "memory_bytes": values["mem"],
        "processes": values["procs"],
        "output_bytes": values["output"],
        "open_files": values["open_files"],
        "io_bytes": values["io"],
    }


def counted(counts: Mapping[JobState, int]) -> str:
    """How many are in which state."""
    return ", ".join(f"{count} {state.name}" for state, count in counts.items())


def progress_in(status: JobStatus) -> float | None:
    """As the script says; of an array the share of its members that have ended."""
    if not status.counts:
        return status.progress
    ended = sum(count for state, count in status.counts.items() if state.terminal)
    return ended / sum(status.counts.values())


def message_of(status: JobStatus) -> str:
    """The job's message; of an array that goes on, what its members do."""
    return counted(status.counts) if status.counts and not status.done else status.message


def array_of(status: JobStatus) -> JobJson | None:
    """Of an array, or of one of its members; None: it is neither."""
    place = status.array
    if place is None:
        return None
    if not place.members:
        return {"id": str(place.array), "index": place.index}
    counts = {state.name: count for state, count in status.counts.items()}
    return {
        "first": place.index,
        "last": place.indices[-1],
        "indices": place.text,
        "at_once": place.at_once,
        "members": counts,
    }


def offload_of(offload: Offload) -> JobJson:
    """The expected cost of a pure job, near the data and at its client."""
    return {
        "client_s": offload.cost.seconds,
        "client_bytes": offload.cost.size,
        "near_s": offload.near,
        "wait_s": offload.wait,
        "client_weighed_s": offload.home,
    }


def record_of(status: JobStatus) -> JobJson:
    """The fields of "iosd.job/1"."""
    return {
        "schema": SCHEMA,
        "id": str(status.id),
        "name": status.name,
        "state": status.state.name,
        "tags": dict(status.tags),
        "principal": status.principal,
        "reason": {
            "number": status.reason,
            "label": status.reason_label,
            "hint": status.hint,
        },
        "exit_code": status.exit_code,
        "signal": status.signal,
        "attempt": status.attempt,
        "progress": progress_in(status),
        "message": message_of(status),
        "submitted_ms": milliseconds(status.submitted),
        "started_ms": milliseconds(status.started),
        "ended_ms": milliseconds(status.ended),
        "expiry_ms": milliseconds(status.expiry),
        "begin_ms": milliseconds(status.begin),
        "queue_s": status.queue_time,
        "run_s": status.run_time,
        "starved_s": status.starved_time,
        "position": status.position,
        "cpu_user_s": status.cpu_user,
        "cpu_system_s": status.cpu_system,
        "peak_memory_bytes": status.peak_memory,
        "read_bytes": status.bytes_read,
        "written_bytes": status.bytes_written,
        "calls": status.calls,
        "result_bytes": status.result_length,
        "stdout_bytes": status.stdout_length,
        "stderr_bytes": status.stderr_length,
        "flags": [flag.name.lower() for flag in JobFlag if flag in status.flags and flag.name],
        "script_sha256": status.sha256,
        "limits": limits_of(status),
        "zone": str(status.zone) if status.zone is not None else None,
        "pool": status.pool,
        "sandbox": status.sandbox,
        "engine": status.engine,
        "function": status.function and str(status.function),
        "signer": status.signer,
        "after": [str(each) for each in status.after],
        "offload": status.offload and offload_of(status.offload),
        "awaited": status.awaited and str(status.awaited),
        "predecessor": status.predecessor and str(status.predecessor),
        "array": array_of(status),
        "key": status.key.decode(errors="backslashreplace"),
        "generation": status.generation,
    }
