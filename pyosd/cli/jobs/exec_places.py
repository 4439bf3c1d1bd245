# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd exec --local`: the script in an interpreter of its own here, which asks the target.
`osd exec --where auto`: the script as a job, or here if the target expects that to end sooner.
`osd exec --targets`: the script as a job at each of several targets.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

import click

from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.verb import Failure, Settings
from pyosd.cli.host.everywhere import at_each, handle_of, report_errors
from pyosd.cli.jobs.exec_options import ExecOptions
from pyosd.cli.jobs.follow import await_end, id_kept, interrupted, left_by
from pyosd.cli.jobs.job_view import exit_code, last_line
from pyosd.cli.jobs.logs import print_streams
from pyosd.cli.jobs.result import print_result
from pyosd.cli.jobs.script import advice_on_rights
from pyosd.cli.output.tables import print_json
from pyosd.cli.output.terminal import harmless
from pyosd.errors import JobError, OSDError, PushedBack
from pyosd.identity import for_child
from pyosd.jobs.dialogues.followed import Backoff
from pyosd.jobs.dialogues.record import record_of
from pyosd.jobs.job import Job
from pyosd.jobs.job_array import JobArray, submit_prepared
from pyosd.jobs.submission import prepare
from pyosd.offload.home import python_path, received_in, result_in
from pyosd.offload.where import TRIED_HERE, Placement, returned
from pyosd.target import Target
from pyosd.types import ObjectRef
from pyosd.wire.indices import indices_in
from pyosd.wire.job_status import JobStatus

__all__ = ["run_child", "run_everywhere", "run_here", "run_where_sooner"]

Environment: TypeAlias = Mapping[str, str]
NONE: Environment = MappingProxyType({})


def run_here(settings: Settings, options: ExecOptions, code: bytes) -> int:
    """Run the script in an interpreter of its own; the client's package `osd` asks the target."""
    if options.array:
        return run_members(settings, options, code)
    return run_one(settings, options, code, None)[0]


def run_members(settings: Settings, options: ExecOptions, code: bytes) -> int:
    """One after the other.  Returns: the code of the first that failed."""
    assert options.array is not None
    indices = indices_in(options.array[0])
    codes = [run_one(settings, options, code, index)[0] for index in indices]
    return next(filter(None, codes), Exit.OK)


def run_one(
    settings: Settings,
    options: ExecOptions,
    code: bytes,
    index: int | None,
    more: Environment = NONE,
) -> tuple[int, int]:
    """The script, or that member of an array.

    more: of the environment of its interpreter.
    Returns: the exit code of the command, and that of the script.
    """
    if options.limits_given:
        settings.say(f"{', '.join(options.limits_given)}: limits do not hold with --local")
    if waits_for := options.start_given:
        settings.say(f"{', '.join(waits_for)}: a script starts at once with --local")
    own = run_child(
        settings,
        code,
        options.script_name,
        options.zone,
        options.args,
        index,
        suffix=options.suffix,
        more={"IOSD_PURE": "1" if options.pure else "", **more},
    )
    return own if options.style == "script" or own == 0 else Exit.JOB_FAILED, own


def run_child(
    settings: Settings,
    code: bytes,
    name: str,
    zone: ObjectRef,
    args: Sequence[str],
    index: int | None,
    *,
    suffix: str = ".py",
    more: Environment = NONE,
) -> int:
    """Run a script in an interpreter of its own.

    suffix: ".pyc": the code is byte-code.  more: of the environment.

    Returns: its exit code; 128 and more: the signal that ended it.
    """
    environment, descriptors = for_child(settings.identity())
    environment |= {
        "PYTHONPATH": python_path(),
        "IOSD_TARGET": settings.url(),
        "IOSD_ZONE": str(zone),
        "IOSD_ARGS": json.dumps(list(args)),
        "IOSD_PROGRESS": "" if settings.quiet else "1",
        "IOSD_ARRAY_INDEX": "" if index is None else str(index),
        "IOSD_SCRIPT_NAME": name,
        **more,
    }
    with tempfile.NamedTemporaryFile(suffix=suffix) as script:
        script.write(code)
        script.flush()
        command = [sys.executable, "-P", "-m", "pyosd.osd", script.name, *args]
        done = subprocess.run(command, env=environment, pass_fds=descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    return done.returncode if done.returncode >= 0 else 128 - done.returncode


def run_everywhere(settings: Settings, options: ExecOptions, code: bytes, waits: bool) -> int:
    """Submit the script to each target of a file.

    waits: wait for the ends, and print what the scripts printed, each line with its target's name.

    Returns: the greatest exit code of the jobs, or of the errors of targets.
    """
    for flag, given in (
        ("--target", settings.target),
        ("--local", options.place == "local"),
        ("--follow", options.follow),
        ("--after", options.after),
    ):
        if given:
            raise click.UsageError(f"{flag} and --targets exclude each other")
    request = options.request()
    with handle_of(settings, options.targets_file) as handle:
        jobs, errors = at_each(handle, lambda name, target: target.exec(code, **request))
        worst = int(report_errors(errors))
        shown = " ".join(f"{name} {job.id}" for name, job in jobs.items())
        if not waits:
            for name, job in jobs.items():
                if settings.output == "json":
                    print_json(record_of(job.status()) | {"target": name})
                else:
                    click.echo(f"{name} {job.id}")
            return worst
        settings.say(f"submitted: {shown or 'nothing'}")
        try:
            return max(worst, _await_all(settings, options, jobs))
        except KeyboardInterrupt:
            raise interrupted(f"the jobs continue: {shown}") from None


def _await_all(settings: Settings, options: ExecOptions, jobs: Mapping[str, Job]) -> int:
    """Wait for the end of all; print each as it ends.  Returns: the greatest exit code.

    Raises: Failure: the time is over.
    """
    end = None if options.patience is None else time.monotonic() + options.patience
    pending, worst, backoff = dict(jobs), 0, Backoff()
    while pending:
        for name, job in [*pending.items()]:
            try:
                status = job.status()
                if not status.done:
                    continue
                _print_end(settings, name, job, status)
                worst = max(worst, exit_code(status, options.style))
            except (OSDError, JobError) as error:
                worst = max(worst, int(report_errors({name: error})))
            del pending[name]
        if pending and end is not None and time.monotonic() >= end:
            left = " ".join(f"{name} {job.id}" for name, job in pending.items())
            raise Failure(Exit.WAIT_OVER, f"the jobs continue: {left}")
        if pending:
            time.sleep(backoff.next())
    return worst


def _print_end(settings: Settings, name: str, job: Job, status: JobStatus) -> None:
    if settings.output == "json":
        print_json(record_of(status) | {"target": name})
        return
    if settings.output == "text" and not isinstance(job, JobArray):
        for line in job.logs():
            click.echo(f"{name} | {harmless(line)}")
    if settings.output == "id":
        click.echo(f"{name} {job.id}")
    settings.say(f"{name}: {last_line(status)}")


class Auto:
    """One such command.  place: the script, and what is known of it."""

    def __init__(
        self, settings: Settings, options: ExecOptions, code: bytes, place: Placement
    ) -> None:
        self.settings, self.options, self.code, self.place = settings, options, code, place

    def here(self, why: str, index: int | None = None) -> int:
        """Run the script here, and print its result.  Returns: the exit code."""
        self.settings.say(f"runs here: {why}")
        with tempfile.TemporaryDirectory(prefix="iosd-home-") as name:
            folder = Path(name)
            start = time.perf_counter()
            code, own = run_one(
                self.settings,
                self.options,
                self.code,
                index,
                self.place.script(index).environment(folder) | {"IOSD_PURE": "1"},
            )
            seconds = time.perf_counter() - start
            if own == 0:
                self.place.learn_home(received_in(folder), seconds)
                self.print_result(result_in(folder))
        return code

    def ended(self, job: Job) -> int:
        """Print what a job near the data left, and learn from it.  Returns: the exit code."""
        status = job.status()
        self.place.learn_near(status)
        code = exit_code(status, self.options.style)
        if code == 0 and status.result_length:
            self.print_result(job.result())
        return code

    def print_result(self, value: Any) -> None:
        """Print what the script gave to osd.result(), if it gave something."""
        if value is not None:
            print_result(value, self.options.raw)

    def one(self, job: Job) -> int:
        """Wait for a job.  Returns: the exit code."""

        def print_output() -> None:
            print_streams(job, follow=False, raw=self.options.raw)

        if self.options.follow:
            print_streams(job, follow=True, raw=self.options.raw)
        before = print_output if not self.options.follow else lambda: None
        status = await_end(job, self.settings, self.options.patience, before_last=before)
        why = returned(status)
        return self.ended(job) if why is None else self.here(why)

    def members(self, array: JobArray) -> int:
        """Wait for an array; run here what is returned.  Returns: the code of the first that failed."""
        codes = {}
        with left_by(lambda: f"array {array.id} continues: osd job wait {array.id}", [array]):
            for job in array.as_completed(self.options.patience):
                index = array.indices[job.id.object_id - array.id.object_id - 1]
                if (why := returned(job.status())) is not None:
                    codes[index] = self.here(why, index)
                    continue
                for line in job.logs():
                    click.echo(f"{job.label} | {harmless(line)}")
                codes[index] = self.ended(job)
        return next(filter(None, (codes[index] for index in sorted(codes))), 0)


def run_where_sooner(
    settings: Settings, options: ExecOptions, code: bytes, target: Target, request: dict[str, Any]
) -> int:
    """Submit the script with what it would cost here; run it here if it comes back.

    Returns: the exit code.
    """
    target.inherited = True  # run_one() hands the identity on
    place = Placement(target, target.costs, prepare(code, **request), True)
    auto = Auto(settings, options, code, place)
    if place.to_try == "local":
        return auto.here(TRIED_HERE)
    try:
        with advice_on_rights(options.rights):
            job = submit_prepared(target, place.offered())
    except PushedBack as refused:
        return auto.here(place.refused(refused))
    with id_kept(job):
        found = auto.members(job) if isinstance(job, JobArray) else auto.one(job)
    target.costs.save()
    return found
