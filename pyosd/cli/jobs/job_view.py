# SPDX-License-Identifier: GPL-2.0-or-later
"""A job's status as people see it: columns, last lines, exit codes.  Pure."""

from __future__ import annotations

from pyosd.cli.frame.codes import Exit
from pyosd.cli.output.tables import Column, JsonRow, format_bytes, format_seconds, format_time
from pyosd.jobs.advice import advice
from pyosd.jobs.dialogues.record import counted, milliseconds
from pyosd.types import ObjectRef
from pyosd.wire.job_status import JobFlag, JobState, JobStatus, Offload

__all__ = [
    "COLUMNS",
    "WATCH_COLUMNS",
    "by_interest",
    "exit_code",
    "explanation",
    "last_line",
    "tags_of",
]

WAITS_FOR_SERVICE, WAITS_FOR_JOB, WAITS_FOR_POOL, WAITS_FOR_SANDBOX = 102, 109, 113, 114  # reasons
WAITS_FOR_RESUME, WAITS_FOR_TIME = 115, 118
CODES = {
    JobState.COMPLETED: Exit.OK,
    JobState.FAILED: Exit.JOB_FAILED,
    JobState.CANCELLED: Exit.JOB_CANCELLED,
    JobState.TIMEOUT: Exit.JOB_TIMEOUT,
    JobState.OUT_OF_MEMORY: Exit.JOB_OUT_OF_MEMORY,
    JobState.LIMIT_EXCEEDED: Exit.JOB_LIMIT,
    JobState.SANDBOX_LOST: Exit.SANDBOX_LOST,
}
COLOURS = {
    JobState.COMPLETED: "green",
    JobState.RUNNING: "cyan",
    JobState.STARTING: "cyan",
    JobState.COMPLETING: "cyan",
    JobState.QUEUED: "yellow",
    JobState.HELD: "yellow",
}
STARVED_SHOWN_S = 0.1  # less is nobody's concern


def standing(status: JobStatus) -> str:
    """The state; of an array those of its members, too."""
    return f"{status.state.name} ({counted(status.counts)})" if status.counts else status.state.name


def shown_id(status: JobStatus) -> str:
    """How a job is named to people: a member of an array as ARRAY[INDEX]."""
    place = status.array
    if place is None or place.members:
        return str(status.id)
    return f"{place.array}[{place.index}]"


def colour_of(row: JsonRow) -> str | None:
    """The colour of a state; one that is not listed is bad news."""
    return COLOURS.get(JobState[row["state"]], "red")


def progress_of(row: JsonRow) -> str:
    """The progress as text, if the script reports it."""
    return "-" if row["progress"] is None else f"{row['progress']:.0%}"


def name_of(row: JsonRow) -> str:
    """The job's id, of a member of an array ARRAY[INDEX]."""
    array = row["array"]
    return f"{array['id']}[{array['index']}]" if array and "index" in array else row["id"]


def tags_of(row: JsonRow) -> str:
    """KEY=VALUE, with commas between."""
    return ",".join(f"{key}={value}" for key, value in row["tags"].items()) or "-"


COLUMNS = (
    Column("JOB", name_of),
    Column("STATE", lambda row: row["state"], colour=colour_of),
    Column("REASON", lambda row: str(row["reason"]["number"] or "-"), right=True, drop=2),
    Column("DONE", progress_of, right=True, drop=3),
    Column("RUN", lambda row: format_seconds(row["run_s"]), right=True, drop=1),
    Column("QUEUED", lambda row: format_seconds(row["queue_s"]), right=True, wide=True),
    Column(
        "CPU",
        lambda row: format_seconds(row["cpu_user_s"] + row["cpu_system_s"]),
        right=True,
        wide=True,
    ),
    Column("PEAK", lambda row: format_bytes(row["peak_memory_bytes"]), right=True, wide=True),
    Column("POOL", lambda row: row["pool"] or "-", wide=True),
    Column("ZONE", lambda row: row["zone"] or "-", wide=True),
    Column("USER", lambda row: row["principal"] or "-", wide=True),
    Column("SIGNER", lambda row: row["signer"] or "-", wide=True, shrink=True),
    Column("TAGS", tags_of, wide=True),
    Column("SUBMITTED", lambda row: format_time(row["submitted_ms"]), drop=4),
    Column("NAME", lambda row: row["name"] or "-", shrink=True),
)

WATCH_COLUMNS = (
    Column("JOB", name_of),
    Column("STATE", lambda row: row["state"], colour=colour_of),
    Column("DONE", progress_of, right=True, drop=2),
    Column("RUN", lambda row: format_seconds(row["run_s"]), right=True, drop=1),
    Column("NAME", lambda row: row["name"] or "-", shrink=True, drop=3),
    Column("SAYS", lambda row: row["message"] or row["reason"]["label"], shrink=True, drop=4),
)
# The order of states: running, failed, waiting, completed.
INTEREST = {
    JobState.RUNNING: 0,
    JobState.COMPLETING: 0,
    JobState.STARTING: 0,
    JobState.QUEUED: 2,
    JobState.HELD: 3,
    JobState.COMPLETED: 4,
}


def by_interest(status: JobStatus) -> tuple[int, ObjectRef]:
    """Rank of a job in a list that may be too long for the screen."""
    return INTEREST.get(status.state, 1), status.id


def exit_code(status: JobStatus, style: str = "state") -> int:
    """The code that an ended job gives ``osd``.

    Args:
        status: of a job that has ended.
        style: "state": the exit code of the job's state; "script": the script's own, 128 + n for
            signal n; "worst": of an array the greatest of its members' codes, else as "state".
    """
    if style == "worst" and status.counts:
        return max(CODES[state] for state in status.counts)
    if style == "script" and status.signal:
        return 128 + status.signal
    if style == "script" and (status.exit_code or status.state is JobState.COMPLETED):
        return status.exit_code
    return CODES[status.state]


def why_ended(status: JobStatus) -> str:
    """Number and label of the reason, exit code and signal, where there are any."""
    parts = []
    if status.reason:
        parts.append(f"reason {status.reason}: {status.reason_label}")
    if status.exit_code:
        parts.append(f"exit code {status.exit_code}")
    if status.signal:
        parts.append(f"signal {status.signal}")
    return f" ({'; '.join(parts)})" if parts else ""


def last_line(status: JobStatus) -> str:
    """The line at the end of a job: state, duration, and commands for more."""
    text = (
        f"{shown_id(status)} {status.state.name}{why_ended(status)} in "
        f"{format_seconds(status.run_time)}"
    )
    if status.counts and status.state is not JobState.COMPLETED:
        return f"{text}: {counted(status.counts)}; see: osd job why {status.id}"
    if status.result_length:
        text += f"; result of {format_bytes(status.result_length)}: osd job result {status.id}"
    elif status.state is not JobState.COMPLETED:
        text += f"; see: osd job why {status.id}"
    return text


def waiting_for(status: JobStatus) -> str:
    """The reason why a job has not started."""
    if status.state is JobState.HELD and status.begin is not None:
        return (
            f"It begins at {format_time(milliseconds(status.begin))}; release it to start it now."
        )
    if status.state is JobState.HELD and status.reason == WAITS_FOR_TIME:
        return "It begins with its array; release it to start it now."
    if status.state is JobState.HELD:
        return "It is held; release it to let it run."
    if status.reason == WAITS_FOR_JOB and status.awaited is not None:
        others = len(status.after) - 1
        more = f" (it was submitted after that and {others} more)" if others else ""
        wanted = next((each for each in status.after if each.job == status.awaited), None)
        end = "fail" if wanted is not None and wanted.failed else "end"
        return f"It waits for {status.awaited} to {end}{more}."
    if status.reason == WAITS_FOR_POOL:
        return f"It waits for pool '{status.pool}', which does not serve."
    if status.reason == WAITS_FOR_RESUME:
        return f"It waits for pool '{status.pool}', which is paused."
    if status.reason == WAITS_FOR_SERVICE:
        return "It waits for iosd-sandboxd, which is not connected."
    if status.reason == WAITS_FOR_SANDBOX:
        return "It waits for a sandbox, and none can be made now."
    ahead = f"{status.position} ahead of it" if status.position else "next in its turn"
    return f"It waits for a sandbox of pool '{status.pool or 'default'}', {ahead}."


def expectation(offload: Offload, status: JobStatus) -> str:
    """The expected times of a pure job in both places, and the actual time."""
    if not offload.near:
        return "It may change no objects; its code had not run near the data before."
    took = f"; it took {format_seconds(status.run_time)}" if status.run_time else ""
    here = f", {format_seconds(offload.home)} at its client" if offload.home else ""
    return (
        f"Expected: {format_seconds(offload.near)} near the data after a wait of "
        f"{format_seconds(offload.wait)}{here}{took}."
    )


def explanation(status: JobStatus, log: list[str]) -> list[str]:
    """One screen about a job: state, what it waits for or how it ended, its last lines, a hint."""
    lines = [f"{status.id}{f' ({status.name})' if status.name else ''}: {status.state.name}"]
    if status.state in (JobState.QUEUED, JobState.HELD):
        lines.append(waiting_for(status))
    elif not status.done:
        share = "" if status.progress is None else f", {status.progress:.0%} done"
        lines.append(f"It has been running for {format_seconds(status.run_time)}{share}.")
    else:
        lines.append(f"It ended after {format_seconds(status.run_time)}{why_ended(status)}.")
    if status.message:
        lines.append(f"{'It says: ' if status.started else ''}{status.message}")
    lines.append(
        f"attempt {status.attempt}, cpu {format_seconds(status.cpu_user + status.cpu_system)}, "
        f"peak {format_bytes(status.peak_memory)}, read {format_bytes(status.bytes_read)}, "
        f"written {format_bytes(status.bytes_written)}, "
        f"{status.calls} call{'' if status.calls == 1 else 's'}"
    )
    if status.offload is not None:
        lines.append(expectation(status.offload, status))
    if status.starved_time >= STARVED_SHOWN_S:
        lines.append(f"starved: waited {format_seconds(status.starved_time)} for a processor")
    if hint := advice(status.message) or status.hint:
        lines.append(f"Hint: {hint}")
    if JobFlag.CODE_KEPT in status.flags:
        failed = " --failed" if status.counts else ""
        lines.append(f"The target keeps its code and arguments: osd job retry {status.id}{failed}")
    from pyosd.jobs.reasons import REASONS

    known = REASONS.get(status.reason)
    if known is not None:
        lines += [known.cause, f"Again: {known.again}"]
    return [*lines, *last_lines(log)]


def last_lines(log: list[str]) -> list[str]:
    """The end of a job's standard error, as the script has written it."""
    return ["Last lines of its standard error:", *(f"  {line}" for line in log)] if log else []
