# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd job report`` and ``osd job retry``: what there is to tell of a job, and the same once more."""

from __future__ import annotations

import hashlib
import platform
from collections import deque
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import click

from pyosd.cli.codes import Exit
from pyosd.cli.job_verb import JobVerb, job_of, one_job
from pyosd.cli.job_view import explanation, record_of, stated
from pyosd.cli.output import (
    Record,
    format_bytes,
    format_seconds,
    format_time,
    harmless,
    print_json,
    print_lines,
)
from pyosd.cli.params import TAG
from pyosd.cli.script import read_script
from pyosd.cli.target import describe
from pyosd.cli.verb import Failure, Settings
from pyosd.job import Job
from pyosd.job_status import JobFlag, JobStatus
from pyosd.types import ObjectRef, ref

__all__ = ["report", "retry"]

LOG_LINES = 40
# Of the target: what says which program with which abilities; not where it is, nor who logs in.
TARGET_KEYS = ("vendor", "product", "revision", "isolation", "engines", "queue_depth")


def client_version() -> str:
    """Of this package, "" where it is not installed."""
    try:
        return version("iosd")
    except PackageNotFoundError:
        return ""


def report_of(job: Job, status: JobStatus, target: Record, log: bool) -> Record:
    """The fields of "iosd.report/1"."""
    own = {
        "version": client_version(),
        "python": platform.python_version(),
        "system": platform.platform(),
    }
    texts: Record = {}
    if log:
        texts["traceback"] = job.traceback() if status.done else ""
        lines = job.logs(stream="stderr") if status.done else iter(())
        texts["stderr"] = [*deque(lines, LOG_LINES)]
    return {
        "schema": "iosd.report/1",
        "job": record_of(status),
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
        "pool",
        "engine",
        "sandbox",
        "key",
        "generation",
        "predecessor",
    ),
}


def page(found: Record, status: JobStatus) -> list[str]:
    """The report for people."""
    record: dict[str, Any] = found["job"]
    lines = explanation(status, [])

    def section(title: str, fields: dict[str, Any]) -> None:
        lines.extend(["", title])
        for key, value in fields.items():
            text = amount(key, value) if isinstance(value, int | float) else str(value or "-")
            name = key.removesuffix("_bytes").removesuffix("_ms").removesuffix("_s")
            lines.append(f"  {name.replace('_', ' '):<16}{text}")

    for title, keys in SECTIONS.items():
        section(title, {key: record[key] for key in keys})
    lines.append(f"  {'flags':<16}{', '.join(record['flags']) or '-'}")
    limits = record["limits"]
    section("Limits in force", {k: "none" if v is None else v for k, v in limits.items()})
    section("Target", found["target"])
    section("Client", found["client"])
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
    "--no-log", "log", flag_value=False, default=True, type=bool, help="No script's words."
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    help="How it is printed.  [text]",
)
@click.pass_obj
def report(settings: Settings, address: ObjectRef, log: bool) -> None:
    """Tell all about a job on one page, to attach to a bug report.

    State, timing, usage, limits in force, hashes, versions, traceback and the last lines of standard
    error.  No address of the target, no login.
    """
    with settings.connect() as target:
        job = job_of(settings, target, address)
        status = job.status()
        found = report_of(job, status, describe(target), log)
    if settings.output == "json":
        print_json(found)
        return
    print_lines(page(found, status))


def indices_of(status: JobStatus) -> range | None:
    """Of an array, or the one of a member; None: the job is neither."""
    if status.array is None:
        return None
    return status.array.indices or range(status.array.index, status.array.index + 1)


@click.command(cls=JobVerb)
@one_job
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.option("--script", type=click.Path(dir_okay=False, allow_dash=True), help="Its code.")
@click.option("--tag", "tags", type=TAG, multiple=True, help="May be given again.")
@click.option(
    "--key", metavar="KEY", help="Submitting the same with the same key again finds the first job."
)
@click.pass_context
def retry(
    ctx: click.Context,
    address: ObjectRef,
    args: tuple[str, ...],
    script: str | None,
    tags: tuple[tuple[str, str], ...],
    key: str | None,
) -> None:
    """Run a job that has ended once more, as a new job, and print its id.

    Zone, name, pool, limits and idempotence are the old job's.  Code and arguments the target keeps
    only until a job ends: say --script FILE, and ARGS after --, again.  The new job names the old one
    as its predecessor.  An array is run again whole, a member ARRAY[INDEX] as an array of that index.
    """
    settings: Settings = ctx.obj
    if script is None:
        raise click.UsageError(
            "the target no longer has the code of a job that has ended: say --script FILE"
        )
    code = read_script(ctx, script)
    with settings.connect() as target:
        old = job_of(settings, target, address)
        status = old.status()
        if not status.done:
            raise Failure(
                Exit.WRONG_STATE, f"{old.id} is {status.state.name}: osd job wait {old.id}"
            )
        if status.zone is None:
            raise Failure(Exit.FAILED, f"{old.id} does not say what its zone was")
        if hashlib.sha256(code).hexdigest() != status.sha256:
            settings.say(f"{script} is not the script that {old.id} ran; it is run all the same")
        new = target.exec(
            code,
            zone=status.zone,
            args=list(args),
            name=status.name,
            pool=status.pool,
            limits=stated(status.limits),
            idempotent=bool(status.flags & JobFlag.IDEMPOTENT),
            tags=dict(tags),
            predecessor=old.id,
            key=key or "",
            surrogate=ref(old.id.partition_id),
            array=indices_of(status),
            at_once=status.array.at_once if status.array else 0,
        )
    click.echo(new.id)
