# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd exec``: sends a script to the data."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import click

import pyosd
from pyosd._identity import for_child
from pyosd._indices import indices_in, ranges_of, text_of
from pyosd._source import BYTECODE_SUFFIX, pack
from pyosd.cli.codes import Exit
from pyosd.cli.follow import await_end, id_kept, interrupted, left_by
from pyosd.cli.job_verb import job_of
from pyosd.cli.job_view import exit_code, record_of
from pyosd.cli.logs import print_streams
from pyosd.cli.output import harmless, print_json
from pyosd.cli.params import ADDRESS, AFTER, ARRAY, BEGIN, DURATION, RETRY_ON, SIZE, TAG
from pyosd.cli.script import (
    KEY_OPTION,
    RIGHTS,
    RIGHTS_OPTION,
    advice_on_rights,
    check_script,
    embedded_options,
    late_options,
    modules_option,
    read_script,
    with_modules,
)
from pyosd.cli.terminal import RAW
from pyosd.cli.verb import Settings, Verb
from pyosd.exec_params import After, Limits, parse_duration
from pyosd.job import Job
from pyosd.job_array import JobArray
from pyosd.target import Target
from pyosd.types import ROOT, ObjectRef, ref

__all__ = ["exec_command"]

WAIT = "--wait"
PYOSD_PARENT = str(Path(pyosd.__file__).resolve().parents[1])
LIMITS = ("limit_wall", "limit_cpu", "limit_mem", "limit_procs", "limit_output", "limit_io")
FOR_EVER = "inf"  # seconds; float() reads it


class Exec(Verb):
    """Takes the script's own #OSD options before those of the command line, which win."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse once to find the script, and again with the options it carries."""
        args = [*bare_wait(args)]
        look = click.Context(self, parent=ctx.parent, info_name=ctx.info_name)
        super().parse_args(look, [*args])
        words = []
        for number, each in embedded_options(read_script(ctx, look.params["script"])):
            self.check_line(ctx, number, bare_wait(each))
            words += bare_wait(each)
        return super().parse_args(ctx, [*words, *args])

    def check_line(self, ctx: click.Context, number: int, words: list[str]) -> None:
        """Each line must make sense by itself.  Raises: UsageError: which does not."""
        look = click.Context(self, parent=ctx.parent, info_name=ctx.info_name)
        try:
            super().parse_args(look, [*words, "--", "SCRIPT"])
        except click.UsageError as error:
            raise click.UsageError(
                f"line {number} of the script: {error.format_message()}", ctx
            ) from None
        # The script may be another's: it does not choose files of ours, nor what reaches a terminal.
        for name, flag in (("raw", "--raw"), ("modules", "--with")):
            if look.params[name]:
                raise click.UsageError(
                    f"line {number} of the script: {flag} is for the command line alone", ctx
                )
        if look.params["args"]:
            raise click.UsageError(
                f"line {number} of the script: '{look.params['script']}' is no option", ctx
            )


def bare_wait(args: list[str]) -> list[str]:
    """`--wait` takes the next word only if that is a duration, so that it never takes the script."""
    end = args.index("--") if "--" in args else len(args)
    given: list[str] = []
    words = iter(args[:end])
    for word in words:
        if word != WAIT:
            given.append(word)
            continue
        following = next(words, None)
        if following is not None and is_duration(following):
            given.append(f"{WAIT}={following}")
            continue
        given.append(f"{WAIT}={FOR_EVER}")
        if following is not None:
            given += bare_wait([following, *words])
    return given + args[end:]


def is_duration(word: str) -> bool:
    """Whether parse_duration() reads it."""
    try:
        parse_duration(word)
    except ValueError:
        return False
    return True


@click.command("exec", cls=Exec)
@click.argument("script", type=click.Path(dir_okay=False, allow_dash=True))
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.option("--zone", type=ADDRESS, default=ROOT, help="What the script may touch.  [root]")
@click.option(
    "--partition",
    metavar="PID",
    type=ADDRESS,
    help="Make the job's object an ordinary object of this partition, listed and counted there.",
)
@click.option("--name", metavar="NAME", default="", help="A name for people.  [the script's]")
@click.option("--tag", "tags", type=TAG, multiple=True, help="May be given again.")
@click.option(
    "--priority", type=click.IntRange(-100, 100), metavar="N", help="Higher goes first.  [0]"
)
@click.option("--hold", is_flag=True, help="Do not start before 'osd job release'.")
@click.option(
    "--begin", type=BEGIN, help="Hold it until then: now+2h, 16:30, 2026-11-24T08:00 (local time)."
)
@click.option(
    "--after",
    type=AFTER,
    multiple=True,
    help="Start after another job: ok: if it COMPLETED; failed: if it did not; any.  [ok]",
)
@click.option(
    "--array",
    type=ARRAY,
    help="Run it once for each index, as 0-99, 1,3,10-20:2; at most N at once.",
)
@KEY_OPTION
@click.option(
    "--retries", type=click.IntRange(0, 14), metavar="N", help="After faults of the system.  [2]"
)
@click.option("--retry-on", type=RETRY_ON, help="Also when it ends so.")
@click.option("--idempotent", is_flag=True, help="May run again after a fault though it wrote.")
@click.option(
    "--expire",
    type=DURATION,
    help="How long the record is kept; a job held or waiting for others as long is cancelled.  [7 days]",
)
@click.option("--grace", type=DURATION, help="Time to clean up when it is ended.  [20 ms]")
@click.option("--pool", metavar="NAME", default="", help="Which pool of sandboxes.  [default]")
@RIGHTS_OPTION
@click.option("--limit-wall", type=DURATION, help="Time from start to end.")
@click.option("--limit-cpu", type=DURATION, help="Processor time.")
@click.option("--limit-mem", type=SIZE, help="Memory it may use; a quarter of it for files.")
@click.option(
    "--limit-procs", type=click.IntRange(1), metavar="N", help="Threads, the first included."
)
@click.option("--limit-output", type=SIZE, help="What it may print.")
@click.option(
    "--limit-io", type=SIZE, help="Bytes of objects it may read and write; its maps are copies."
)
@modules_option(
    "Own modules to send along: a .py file, a package, a folder to import from, a .pyz or .zip."
)
@click.option(
    "--check/--no-check", default=True, help="Compile the script here before it is sent.  [yes]"
)
@click.option("--compress/--no-compress", default=None, help="Send it packed.  [where that pays]")
@click.option(
    WAIT, metavar="[DURATION]", type=DURATION, help="Wait for the end, or at most so long."
)
@click.option("--no-wait", is_flag=True, help="Print the id and go.  [unless on a terminal]")
@click.option("-f", "--follow", is_flag=True, help="Print what it prints, as it does.")
@click.option("--local", is_flag=True, help="Run it here instead, over the session; same API.")
@click.option("--dry-run", is_flag=True, help="Say what would be sent, as JSON.")
@click.option(
    "--exit-code",
    "style",
    type=click.Choice(["state", "script", "worst"]),
    default="state",
    help="With --wait: a code for the state, the script's own, or the worst of an array's.  [state]",
)
@RAW
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json", "id"]),
    default="text",
    help="How it is printed.  [text]",
)
@click.pass_context
def exec_command(ctx: click.Context, /, **given: Any) -> None:
    """Run SCRIPT next to the data.

    ARGS after -- reach it as osd.args.  Comments "#OSD --limit-mem 256MiB" above its first
    line of code are options too.
    Waits for the end where stdout is a terminal, or with --wait or --follow; what the script printed
    is then printed here (of an array only with --follow, when a member has ended).  A SCRIPT that
    ends in .pyc is byte-code, if the target allows that; one that ends in .pyz is a zipapp, of which
    __main__.py is run.
    """
    settings: Settings = ctx.obj
    code = read_script(ctx, given["script"])
    for number in late_options(code):
        settings.say(f"line {number} of the script: #OSD counts only above the first line of code")
    if given["begin"] and given["hold"]:
        raise click.UsageError("--begin and --hold exclude each other: a held job has no begin")
    if given["check"]:
        check_script(given["script"], code)
    code = with_modules(given["script"], code, given["modules"])
    request = request_of(given)
    if given["dry_run"]:
        print_json(describe(request, code) | {"modules": [*given["modules"]]})
        return
    if given["local"]:
        sys.exit(run_here(settings, given, code))
    with settings.connect() as target:
        request["after"] = [named_after(settings, target, each) for each in request["after"]]
        try:
            with advice_on_rights(given["rights"]):
                job = target.exec(code, **request)
        except KeyboardInterrupt:
            raise interrupted("a job may have been made all the same: osd ps --tail 1") from None
        with id_kept(job):
            if must_wait(given):
                sys.exit(wait_for(job, settings, given))
            tell_next(settings, job)
            report(settings, job)


def named_after(settings: Settings, target: Target, after: After) -> After:
    """The same condition on the job that was named: ARRAY[INDEX] is a job of its own."""
    return replace(after, job=job_of(settings, target, after.job).id)


def must_wait(given: dict[str, Any]) -> bool:
    """Wait when told to, or when a person looks at stdout and said nothing."""
    if given["no_wait"]:
        return False
    return given["wait"] is not None or given["follow"] or sys.stdout.isatty()


def request_of(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of Target.exec()."""
    script = given["script"]
    partition: ObjectRef | None = given["partition"]
    return {
        "zone": given["zone"],
        "args": list(given["args"]),
        "limits": Limits(
            wall=given["limit_wall"],
            cpu=given["limit_cpu"],
            mem=given["limit_mem"],
            procs=given["limit_procs"],
            output=given["limit_output"],
            io=given["limit_io"],
        ),
        "name": given["name"] or ("stdin" if script == "-" else Path(script).name),
        "tags": dict(given["tags"]),
        "priority": given["priority"],
        "hold": given["hold"],
        "begin": given["begin"] and given["begin"] / 1000,
        "after": given["after"],
        "key": given["key"],
        "idempotent": given["idempotent"],
        "retries": given["retries"],
        **(given["retry_on"] or {}),
        "expire": given["expire"],
        "grace": given["grace"],
        "pool": given["pool"],
        "rights": RIGHTS[given["rights"]],
        "compress": given["compress"],
        "bytecode": script.endswith(BYTECODE_SUFFIX),
        "surrogate": None if partition is None else ref(partition.partition_id),
        "array": given["array"] and indices_in(given["array"][0]),
        "at_once": given["array"][1] if given["array"] else 0,
    }


def describe(request: dict[str, Any], code: bytes) -> dict[str, Any]:
    """What a dry run prints."""
    sent, packing = pack(code, request["compress"])
    limits = {key: value for key, value in vars(request["limits"]).items() if value is not None}
    return {
        "schema": "iosd.request/1",
        "script_bytes": len(code),
        "script_sha256": hashlib.sha256(code).hexdigest(),
        "sent_bytes": len(sent),
        "sent_sha256": hashlib.sha256(sent).hexdigest(),
        **request,
        "compress": "zlib" if packing else None,
        "zone": str(request["zone"]),
        "rights": request["rights"].name or "",
        "surrogate": request["surrogate"] and str(request["surrogate"]),
        "after": [str(each) for each in request["after"]],
        "limits": limits,
        "array": request["array"] and [request["array"][0], request["array"][-1]],
        "indices": request["array"] and text_of(ranges_of(request["array"])),
    }


def run_here(settings: Settings, given: dict[str, Any], code: bytes) -> int:
    """Run the script in an interpreter of its own; the client's package `osd` asks the target."""
    if given["array"]:
        return run_members(settings, given, code)
    return run_one(settings, given, code, None)


def run_members(settings: Settings, given: dict[str, Any], code: bytes) -> int:
    """One after the other.  Returns: the code of the first that failed."""
    indices = indices_in(given["array"][0])
    codes = [run_one(settings, given, code, index) for index in indices]
    return next(filter(None, codes), Exit.OK)


def run_one(settings: Settings, given: dict[str, Any], code: bytes, index: int | None) -> int:
    """The script, or that member of an array."""
    unheeded = [name for name in LIMITS if given[name] is not None]
    if unheeded:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in unheeded)
        settings.say(f"{flags}: limits do not hold with --local")
    paths = [PYOSD_PARENT, *filter(None, [os.environ.get("PYTHONPATH")])]
    environment, descriptors = for_child(settings.identity())
    environment |= {
        "PYTHONPATH": os.pathsep.join(paths),
        "IOSD_TARGET": settings.url(),
        "IOSD_ZONE": str(given["zone"]),
        "IOSD_ARGS": json.dumps(list(given["args"])),
        "IOSD_PROGRESS": "" if settings.quiet else "1",
        "IOSD_ARRAY_INDEX": "" if index is None else str(index),
        "IOSD_SCRIPT_NAME": "stdin" if given["script"] == "-" else Path(given["script"]).name,
    }
    suffix = BYTECODE_SUFFIX if given["script"].endswith(BYTECODE_SUFFIX) else ".py"
    with tempfile.NamedTemporaryFile(suffix=suffix) as script:
        script.write(code)
        script.flush()
        command = [sys.executable, "-P", "-m", "pyosd.osd", script.name, *given["args"]]
        done = subprocess.run(command, env=environment, pass_fds=descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    if given["style"] == "script" or done.returncode == 0:
        return done.returncode if done.returncode >= 0 else 128 - done.returncode
    return Exit.JOB_FAILED


def tell_next(settings: Settings, job: Job) -> None:
    """The commands a person will want next."""
    if sys.stderr.isatty():
        settings.say(
            f"next: osd job status {job.id} | osd job logs -f {job.id} | osd job wait {job.id}"
        )


def print_members(array: JobArray) -> None:
    """What each member printed, when it has ended, with its index before each line."""
    with left_by(lambda: f"array {array.id} goes on: osd job wait {array.id}", [array]):
        for job in array.as_completed():
            for line in job.logs():
                click.echo(f"{job.label} | {harmless(line)}")


def report(settings: Settings, job: Job) -> None:
    """Print the job's id, or its record."""
    if settings.output == "json":
        print_json(record_of(job.status()))
    else:
        click.echo(job.id)


def show_output(job: Job, settings: Settings, *, follow: bool, raw: bool) -> None:
    """Print what it printed; on a terminal what we say comes on a line of its own."""
    if not print_streams(job, follow=follow, raw=raw) and sys.stdout.isatty():
        settings.say("")


def wait_for(job: Job, settings: Settings, given: dict[str, Any]) -> int:
    """Wait, print what the script printed on both streams, and return the exit code."""
    as_text = settings.output == "text"
    if isinstance(job, JobArray) and given["follow"] and as_text:
        print_members(job)

    def print_what_it_printed() -> None:
        if as_text and not given["follow"] and not isinstance(job, JobArray):
            show_output(job, settings, follow=False, raw=given["raw"])

    if given["follow"] and as_text and not isinstance(job, JobArray):
        show_output(job, settings, follow=True, raw=given["raw"])
    patience = None if given["wait"] == inf else given["wait"]
    status = await_end(job, settings, patience, before_last=print_what_it_printed)
    if not as_text:
        report(settings, job)
    return exit_code(status, given["style"])
