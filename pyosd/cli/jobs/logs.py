# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd job logs``: what scripts printed, of one job as it is, of several line by line with the job's id.

Not here: how a job is asked for its output (job.py), what is said while one waits (follow.py).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import click

from pyosd.cli.frame.verb import Settings
from pyosd.cli.jobs.follow import left_by, named
from pyosd.cli.jobs.job_verb import JobVerb, some_jobs, wholes_of
from pyosd.cli.output.terminal import RAW, Sink, output_to
from pyosd.jobs.dialogues.followed import FOLLOW_MOST, Backoff
from pyosd.jobs.dialogues.stderr import STDERR_AT, unseen
from pyosd.jobs.job import Job
from pyosd.jobs.polling import job_statuses
from pyosd.types import AttributeId, ObjectRef
from pyosd.wire.attributes import Page
from pyosd.wire.job_status import JobStatus, Number

__all__ = ["logs"]

STREAMS = {"stdout": ("stdout",), "stderr": ("stderr",), "both": ("stdout", "stderr")}
LOOK_BACK = 64 << 10  # bytes read at a time to find the last lines
LOG_IDS = tuple(
    AttributeId(Page.JOB_STATUS, number)
    for number in (
        *(Number.STATE, Number.POLL_INTERVAL, Number.STDOUT_LENGTH, Number.STDERR_LENGTH),
        Number.ATTEMPT,
    )
)


class Output:
    """One stream of one job: where we are in it, where it is copied to, how its lines are marked."""

    def __init__(self, job: Job, *, stderr: bool, to: Sink, tail: int | None, prefix: str) -> None:
        self.job = job
        self.stderr = stderr
        self.to = to
        self.tail = tail
        self.prefix = prefix.encode()
        self.attempt = 0
        self.at = 0
        self.rest = b""
        self.last = b"\n"

    def begin(self, status: JobStatus) -> None:
        """Go to where the last lines begin, if only those are wanted."""
        if self.tail is not None and not self.stderr:
            self.at = last_lines_of(self.job, status.stdout_length, self.tail)

    def begin_attempt(self, attempt: int) -> None:
        """If this is another attempt, begin again: the target has discarded the output of the last one."""
        if self.at and self.attempt not in (0, attempt):
            if self.rest:
                self._put(b"\n")
            stream = "standard error" if self.stderr else "standard output"
            text = f"osd: {self.job.label}: attempt {attempt} begins; its {stream} replaces the one above"
            click.echo(text if self.last == b"\n" else f"\n{text}", err=True)
            self.at, self.tail = 0, None
        self.attempt = attempt

    def copy(self, status: JobStatus, last: bool) -> bool:
        """Print what is new; lines that are marked only when they are whole, or nothing will follow.

        Returns: whether there was anything.
        """
        self.begin_attempt(status.attempt)
        pieces = [*self._pieces(status)]
        for piece in pieces:
            self._put(piece)
        if last and self.rest:
            self._put(b"\n")
        return bool(pieces)

    def _pieces(self, status: JobStatus) -> Iterator[bytes]:
        if self.stderr:
            if status.done or status.stderr_length > self.at:
                yield from self._errors()
        elif status.done or status.stdout_length > self.at:
            for piece in self.job.iter_output(start=self.at):
                self.at += len(piece)
                yield piece

    def _errors(self) -> Iterator[bytes]:
        value = self.job.commands.get_attribute(self.job.id, Page.JOB_PAYLOAD, STDERR_AT)
        self.at, text = unseen(value, self.at)
        if self.tail is not None:
            text, self.tail = last_lines(text, self.tail), None
        if text:
            yield text

    def _put(self, piece: bytes) -> None:
        self.last = piece[-1:]
        if self.prefix:
            *lines, self.rest = (self.rest + piece).split(b"\n")
            self.to.writelines(self.prefix + line + b"\n" for line in lines)
        else:
            self.to.write(piece)
        self.to.flush()


def last_lines(text: bytes, count: int) -> bytes:
    """The last so many lines of a text; an unfinished one counts."""
    lines = text.splitlines(keepends=True)
    return b"".join(lines[max(0, len(lines) - count) :])


def last_lines_of(job: Job, end: int, count: int) -> int:
    """Offset of the last lines of a job's output, given their number and the present length."""
    at, text = end, b""
    while at and text.count(b"\n") <= count:
        start = max(0, at - LOOK_BACK)
        text = bytes(job.commands.read(job.id, start, at - start)) + text
        at = start
    return at + len(text) - len(last_lines(text, count))


def copy_all(outputs: list[Output], *, follow: bool) -> None:
    """Print what there is, and go on until all jobs have ended if told to.

    Raises: JobExpired: one has no record (any more).
    """
    left, backoff, began = outputs, Backoff(FOLLOW_MOST), False
    while left:
        said = job_statuses(dict.fromkeys(each.job for each in left), LOG_IDS)
        going, moved, suggested = [], False, []
        for each in left:
            status = said[each.job] or each.job.status()  # raises where there is none
            if not began:
                each.begin(status)
            moved = each.copy(status, status.done or not follow) or moved
            if follow and not status.done:
                going.append(each)
                suggested.append(status.poll_interval)
        left, began = going, True
        if left:
            backoff = Backoff(FOLLOW_MOST) if moved else backoff
            time.sleep(backoff.next(min(suggested)))


def print_streams(job: Job, *, follow: bool, raw: bool = False) -> bool:
    """Copy the job's standard output and standard error to ours.

    Args: follow: go on until it has ended.  raw: also control characters, to a terminal.

    Returns: whether the last line is whole.

    Raises:
        Failure: the person interrupted; the job goes on.
    """
    streams = ((False, output_to(sys.stdout, raw)), (True, output_to(sys.stderr, raw)))
    outputs = [Output(job, stderr=which, to=to, tail=None, prefix="") for which, to in streams]
    with left_by(lambda: f"job {job.id} continues: osd job logs -f {job.id}", [job]):
        copy_all(outputs, follow=follow)
    return all(each.last == b"\n" for each in outputs)


@click.command(cls=JobVerb)
@some_jobs
@click.option("-f", "--follow", is_flag=True, help="Continue until the jobs have ended.")
@click.option(
    "--stream",
    type=click.Choice([*STREAMS]),
    default="stdout",
    help="Output stream to print.  both: standard error goes to standard error here.",
)
@click.option(
    "--stderr",
    "stream",
    flag_value="stderr",
    help="Print standard error; the same as --stream stderr.",
)
@click.option("--tail", type=click.IntRange(0), metavar="N", help="Begin with the last N lines.")
@RAW
@click.pass_obj
def logs(
    settings: Settings,
    addresses: tuple[ObjectRef, ...],
    follow: bool,
    stream: str,
    tail: int | None,
    raw: bool,
) -> None:
    """Print what scripts have printed so far.

    For one job the bytes are printed unchanged; on a terminal control characters are escaped. For
    several jobs, or the members of an array, whole lines are printed, each after its job's id. The
    target keeps the first 20 and the last 40 KiB of standard error. A line gives the number of
    missing bytes. If the target runs a job again, -f prints the output of the new attempt after a
    line on standard error.
    """
    from pyosd.jobs.job_array import JobArray

    with settings.connect() as target:
        wholes = wholes_of(settings, target, addresses)
        found = (each for job in wholes for each in (job if isinstance(job, JobArray) else [job]))
        jobs = list({job.id: job for job in found}.values())
        own, errors = output_to(sys.stdout, raw), output_to(sys.stderr, raw)
        outputs = [
            Output(
                job,
                stderr=each == "stderr",
                to=errors if each != STREAMS[stream][0] else own,
                tail=tail,
                prefix=f"{job.label} | " if len(jobs) > 1 else "",
            )
            for job in jobs
            for each in STREAMS[stream]
        ]
        continued = f"job {jobs[0].id} continues" if len(jobs) == 1 else "the jobs continue"
        with left_by(lambda: f"{continued}: osd job logs -f {named(jobs)}", jobs):
            copy_all(outputs, follow=follow)
