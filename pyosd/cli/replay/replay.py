# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd job replay`` and ``diff``: an ended job once more on the same inputs, and how two jobs differ."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import click

from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.params import JOB
from pyosd.cli.frame.verb import Failure, Settings
from pyosd.cli.jobs.exec_places import run_child
from pyosd.cli.jobs.job_verb import JobListing, JobVerb, ended_job, job_of, one_job
from pyosd.cli.jobs.report import submit_again, was_sent
from pyosd.cli.jobs.script import (
    RIGHTS,
    RIGHTS_OPTION,
    modules_option,
    read_script,
    script_option,
    with_modules,
)
from pyosd.cli.output.tables import Column, JsonRow, counted
from pyosd.errors import Conflict
from pyosd.jobs.job import Job
from pyosd.jobs.source import BYTECODE_SUFFIX
from pyosd.jobs.submission import Submission
from pyosd.types import ObjectRef
from pyosd.wire.job_status import JobStatus

__all__ = ["diff", "replay"]


@click.command(cls=JobVerb)
@one_job
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@script_option(
    "The script that the job ran; its hash is checked.  [the code that the target keeps of "
    "jobs that did not complete]"
)
@modules_option("The modules that travelled with the script, as for 'osd exec'.")
@click.option(
    "--local",
    is_flag=True,
    help="Run the script on this machine, as 'osd exec --local' does.  Needs --script.",
)
@click.option(
    "--pdb", is_flag=True, help="With --local, start the debugger where the script raises."
)
@RIGHTS_OPTION
@click.pass_context
def replay(
    ctx: click.Context,
    /,
    address: ObjectRef,
    args: tuple[str, ...],
    script: str | None,
    modules: tuple[str, ...],
    local: bool,
    pdb: bool,
    rights: str,
) -> None:
    """Run an ended job again with the same code and limits, and say which inputs have changed.

    With --script, give the arguments of the script after --. The target keeps the arguments together
    with the code, as 'osd job retry' says. Prints the id of the new job.
    """
    settings: Settings = ctx.obj
    if pdb and not local:
        raise click.UsageError("--pdb goes with --local: a debugger runs on this machine")
    if script is None and (local or modules):
        raise click.UsageError("--local and --with go with --script FILE")
    code = None if script is None else with_modules(script, read_script(ctx, script), modules)
    with settings.connect() as target:
        old, status = ended_job(settings, target, address)
        if code is not None and not was_sent(code, status):
            raise Failure(Exit.WRONG_STATE, f"{script} is not the script that {old.id} ran")
        for line in changes(old):
            settings.say(line)
        if not local:
            how = Submission(rights=RIGHTS[rights])
            if code is not None:
                how["args"] = list(args)
            submit_again(target, old, code, rights, how)
            return
    assert code is not None
    assert status.zone is not None
    index = status.array.index if status.array and not status.array.members else None
    more = {"IOSD_DEBUGGER": "1" if pdb else ""}
    suffix = BYTECODE_SUFFIX if str(script).endswith(BYTECODE_SUFFIX) else ".py"
    code_of_child = run_child(
        settings, code, status.name, status.zone, args, index, suffix=suffix, more=more
    )
    sys.exit(Exit.JOB_FAILED if code_of_child else Exit.OK)


def changes(job: Job) -> Iterator[str]:
    """Facts to know before an ended job runs again."""
    try:
        read = job.inputs()
        changed = [each for each in job.changed_inputs() if not each.by_itself]
    except Conflict as error:
        yield f"the inputs are not known: {error}"
        return
    for each in changed:
        now = each.now.hex() or "gone"
        yield f"input {each.object} has changed: version {each.then.hex()}, now {now}"
    unknown = sum(not each.version for each in read.objects)
    if unknown or not read.complete:
        without = counted(unknown + read.left_out, "input")
        yield f"no version of {without} is known, so it is not known what has changed"
    elif not changed:
        yield "no input has changed"


@click.command(cls=JobListing)
@click.argument("first", metavar="JOB", type=JOB)
@click.argument("second", metavar="JOB", type=JOB)
@click.pass_obj
def diff(settings: Settings, first: ObjectRef, second: ObjectRef) -> None:
    """List how two ended jobs differ: code, limits, state, and the versions of their inputs."""
    with settings.connect() as target:
        jobs = [job_of(settings, target, each) for each in (first, second)]
        a, b = (facts_of(each) for each in jobs)
    records = [
        {"schema": "iosd.job-difference/1", "id": key, "first": a.get(key), "second": b.get(key)}
        for key in dict.fromkeys([*a, *b])
        if a.get(key) != b.get(key)
    ]
    columns = (
        Column("WHAT", lambda row: row["id"]),
        Column("FIRST", lambda row: row["first"] or "-", shrink=True),
        Column("SECOND", lambda row: row["second"] or "-", shrink=True),
    )
    settings.show(records, columns, "iosd.job-diff/1", "differences")
    if not records:
        settings.say("the jobs do not differ in these facts: " + ", ".join(a))


def facts_of(job: Job) -> JsonRow:
    """The facts about a job that may explain another result."""
    status: JobStatus = job.status()
    facts: JsonRow = {
        "code": status.sha256,
        "zone": str(status.zone),
        "state": status.state.name,
        "reason": str(status.reason),
        "pool": status.pool,
        "engine": status.engine,
        "result length": str(status.result_length),
    }
    facts |= {f"limit {key}": str(value) for key, value in vars(status.limits).items()}
    try:
        used = job.used()
    except Conflict:
        return facts | {"inputs": "not known"}
    for each in used.objects:
        if each.version:
            facts[f"input {each.object}"] = each.version.hex()
    return facts
