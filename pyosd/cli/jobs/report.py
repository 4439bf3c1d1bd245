# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd job report`` and ``osd job retry``: what there is to tell of a job, and the same once more."""

from __future__ import annotations

import hashlib
import platform
from collections import deque
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click

from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.params import TAG
from pyosd.cli.frame.verb import Failure, Settings
from pyosd.cli.host.target import describe
from pyosd.cli.jobs.follow import id_kept
from pyosd.cli.jobs.job_verb import JobVerb, ended_job, job_of, one_job
from pyosd.cli.jobs.job_view import explanation, tags_of
from pyosd.cli.jobs.script import (
    KEY_OPTION,
    RIGHTS,
    RIGHTS_OPTION,
    advice_on_rights,
    modules_option,
    read_script,
    script_option,
    with_modules,
)
from pyosd.cli.output.tables import (
    JsonRow,
    folded,
    format_bytes,
    format_seconds,
    format_time,
    print_json,
    print_lines,
    width_of_stdout,
)
from pyosd.cli.output.terminal import harmless, output_option
from pyosd.jobs.dialogues.record import record_of
from pyosd.jobs.job import Job
from pyosd.jobs.retrying import keeps_code
from pyosd.jobs.source import pack
from pyosd.jobs.submission import Submission
from pyosd.target import Target
from pyosd.types import ObjectRef
from pyosd.wire.job_status import JobState, JobStatus

__all__ = ["report", "retry"]

LOG_LINES = 40
JOB_PRIVATE = ("principal",)  # who submitted it
# Of the target: what says which program with which abilities; not where it is, nor who logs in.
TARGET_KEYS = ("vendor", "product", "revision", "isolation", "engines", "queue_depth")


def client_version() -> str:
    """Of this package, "" where it is not installed."""
    try:
        return version("iosd")
    except PackageNotFoundError:
        return ""


def report_of(job: Job, status: JobStatus, target: JsonRow, log: bool) -> JsonRow:
    """The fields of "iosd.report/1"."""
    own = {
        "version": client_version(),
        "python": platform.python_version(),
        "system": platform.platform(),
    }
    texts: JsonRow = {}
    if log:
        texts["traceback"] = job.traceback() if status.done else ""
        lines = job.logs(stream="stderr") if status.done else iter(())
        texts["stderr"] = [*deque(lines, LOG_LINES)]
    of_job = {key: value for key, value in record_of(status).items() if key not in JOB_PRIVATE}
    return {
        "schema": "iosd.report/1",
        "job": of_job,
        **texts,
        "target": {key: target[key] for key in TARGET_KEYS if key in target},
        "client": own,
    }


def amount(key: str, value: float | None) -> str:
    """A figure of the record with the unit that its key names."""
    if value is None:
        return "none"
    if key.endswith("_bytes"):
        return f"{format_bytes(int(value))} ({int(value)})" if value >= 1024 else f"{int(value)} B"
    if key.endswith("_s"):
        return format_seconds(value)
    return format_time(int(value)) if key.endswith("_ms") else str(value)


SECTIONS = {
    "Timing": (
        "submitted_ms",
        "started_ms",
        "ended_ms",
        "expiry_ms",
        "queue_s",
        "run_s",
        "starved_s",
    ),
    "Usage": (
        *("cpu_user_s", "cpu_system_s", "peak_memory_bytes", "read_bytes", "written_bytes"),
        *("calls", "stdout_bytes", "stderr_bytes", "result_bytes", "attempt"),
    ),
    "Where and what": (
        "script_sha256",
        "zone",
        "tags",
        "pool",
        "engine",
        "sandbox",
        "key",
        "generation",
        "predecessor",
    ),
}


VALUES = 16  # columns of a name before its value


def shown(key: str, record: JsonRow) -> Any:
    """A value of the record; tags in one line, as `osd ps` shows them."""
    return tags_of(record) if key == "tags" else record[key]


def page(found: JsonRow, status: JobStatus) -> list[str]:
    """The report for people, but for what the script has written (words_of)."""
    record: dict[str, Any] = found["job"]
    lines = explanation(status, [])

    def section(title: str, fields: dict[str, Any]) -> None:
        lines.extend(["", title])
        for key, value in fields.items():
            text = amount(key, value) if isinstance(value, int | float) else str(value or "-")
            name = key.removesuffix("_bytes").removesuffix("_ms").removesuffix("_s")
            lines.append(f"  {name.replace('_', ' '):<16}{text}")

    for title, keys in SECTIONS.items():
        section(title, {key: shown(key, record) for key in keys})
    lines.append(f"  {'flags':<16}{', '.join(record['flags']) or '-'}")
    limits = record["limits"]
    section("Limits in force", {k: "none" if v is None else v for k, v in limits.items()})
    section("Target", found["target"])
    section("Client", found["client"])
    return [harmless(line) for line in lines]


def words_of(found: JsonRow) -> list[str]:
    """The script's traceback and last lines of standard error, as they are."""
    lines: list[str] = []
    for title in ("traceback", "stderr"):
        text = found.get(title)
        if text:
            rows = text.splitlines() if isinstance(text, str) else text
            head = title.capitalize() if title == "traceback" else f"Last lines of {title}"
            lines += ["", head, *(f"  {row}" for row in rows)]
    return [harmless(line) for line in lines]


@click.command(cls=JobVerb)
@one_job
@click.option(
    "--no-log",
    "log",
    flag_value=False,
    default=True,
    type=bool,
    help="Omit the script's own output.",
)
@output_option("text", "json")
@click.pass_obj
def report(settings: Settings, address: ObjectRef, log: bool) -> None:
    """Print all facts about a job on one page, for a bug report.

    The page has state, times, usage, limits, hashes, versions, traceback and the last lines of
    standard error. It does not contain the address of the target or a login.
    """
    with settings.connect() as target:
        job = job_of(settings, target, address)
        status = job.status()
        found = report_of(job, status, describe(target), log)
    if settings.output == "json":
        print_json(found)
        return
    width = width_of_stdout()
    print_lines(
        part
        for line in page(found, status)
        for part in folded(line, width, VALUES if line.startswith("  ") else 2)
    )
    print_lines(words_of(found))


def lost_arguments(args: tuple[str, ...], *, is_array: bool) -> str:
    """Warnings about the data of the old job that a new one with these arguments lacks."""
    lost = [] if args else ["the new job has no arguments: give them after --"]
    if is_array:
        lost.append("the new job has no objects of --over: use 'osd exec --over' for these")
    return "; ".join(lost)


def was_sent(code: bytes, status: JobStatus) -> bool:
    """Whether the job ran this code, sent packed or, by an older client or --no-compress, as it is."""
    return status.sha256 in (hashlib.sha256(each).hexdigest() for each in (code, pack(code)[0]))


def submit_again(
    target: Target,
    old: Job,
    code: bytes | None,
    rights: str,
    how: Submission,
    *,
    failed: bool = False,
) -> None:
    """Submit an ended job as a new one, and print its id.  code: None: that which the target keeps."""
    try:
        with advice_on_rights(rights):
            new = target.retry(old, code=code, failed=failed, **how)
    except ValueError as error:
        if code is not None:
            raise
        raise Failure(Exit.WRONG_STATE, f"{error}: say --script FILE") from None
    with id_kept(new):
        click.echo(new.id)


@click.command(cls=JobVerb)
@one_job
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--failed", is_flag=True, help="Run only the members of the array that did not complete."
)
@script_option(
    "Run the script in FILE.  [the old job's, which the target keeps if that did not complete]"
)
@modules_option("Send modules with --script, as 'osd exec' does.")
@click.option(
    "--tag",
    "tags",
    type=TAG,
    multiple=True,
    help="Add a tag to those of the old job, or replace its value.  May be given more than once.",
)
@RIGHTS_OPTION
@KEY_OPTION
@click.pass_context
def retry(
    ctx: click.Context,
    address: ObjectRef,
    args: tuple[str, ...],
    failed: bool,
    script: str | None,
    modules: tuple[str, ...],
    tags: tuple[tuple[str, str], ...],
    rights: str,
    key: str | None,
) -> None:
    """Run an ended job again as a new job and print its id.

    The new job has the zone, name, tags, pool, limits and idempotence of the old one. It also has
    its code, unless you give --script FILE, and its arguments, unless you give ARGS after --. The
    target keeps both for jobs that did not complete. For a job that COMPLETED, give --script and
    ARGS. The status of the new job names the old one as its predecessor.

    All members of an array are run again, with --failed only those that did not end COMPLETED. A
    member ARRAY[INDEX] becomes an array with that index. The objects of 'osd exec --over' belong to
    the arguments: with ARGS, the list osd.over is empty.
    """
    settings: Settings = ctx.obj
    if modules and script is None:
        raise click.UsageError("--with goes with --script: modules travel with the code")
    code = None if script is None else with_modules(script, read_script(ctx, script), modules)
    with settings.connect() as target:
        old, status = ended_job(settings, target, address)
        if failed and status.state is JobState.COMPLETED:
            raise Failure(Exit.WRONG_STATE, f"{old.label} COMPLETED: nothing of it failed")
        if code is not None and not was_sent(code, status):
            settings.say(f"{script} is not the script that {old.id} ran; it runs nevertheless")
        how = Submission(tags={**status.tags, **dict(tags)}, rights=RIGHTS[rights], key=key or "")
        if args or (code is not None and not target.carry(keeps_code(old, status))):
            how["args"] = list(args)
            if text := lost_arguments(args, is_array=status.array is not None):
                settings.say(text)
        submit_again(target, old, code, rights, how, failed=failed)
