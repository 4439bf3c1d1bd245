# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd exec``: sends a script to the data.  Not here: how its options are read (exec_options.py)."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeGuard

import click

from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.params import (
    ADDRESS,
    AFTER,
    ARRAY,
    BEGIN,
    DURATION,
    PATH,
    RETRY_ON,
    TAG,
    pool_option,
)
from pyosd.cli.frame.verb import Failure, Settings, common_options
from pyosd.cli.host.everywhere import targets_option
from pyosd.cli.jobs.exec_options import (
    LIMITS,
    REUSE,
    WAIT,
    Exec,
    ExecOptions,
    describe,
    limit_options,
)
from pyosd.cli.jobs.follow import await_end, id_kept, interrupted, left_by
from pyosd.cli.jobs.job_verb import job_of
from pyosd.cli.jobs.job_view import exit_code
from pyosd.cli.jobs.logs import print_streams
from pyosd.cli.jobs.script import (
    KEY_OPTION,
    RIGHTS_OPTION,
    advice_on_rights,
    check_script,
    late_options,
    modules_option,
    read_script,
    with_modules,
)
from pyosd.cli.output.tables import print_json
from pyosd.cli.output.terminal import RAW, harmless, output_option
from pyosd.jobs.dialogues.followed import FollowedArray
from pyosd.jobs.dialogues.record import record_of
from pyosd.jobs.job import Job
from pyosd.target import Target
from pyosd.types import ROOT, ObjectRef
from pyosd.wire.exec_params import After

if TYPE_CHECKING:
    from pyosd.jobs.job_array import JobArray

__all__ = ["exec_command", "run", "submit"]


@click.command("exec", cls=Exec)
@click.argument("script", type=click.Path(dir_okay=False, allow_dash=True))
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--zone",
    type=ADDRESS,
    default=ROOT,
    help="Object, directory, partition or root that the script may access: an id or a path.  [root]",
)
@click.option(
    "--partition",
    metavar="PID",
    type=ADDRESS,
    help="Make the job's object an ordinary object of this partition, listed and counted there.  "
    "This requires the permission CREATE.",
)
@click.option("--name", metavar="NAME", default="", help="Name of the job.  [the script's]")
@click.option(
    "--tag",
    "tags",
    type=TAG,
    multiple=True,
    help="Attach a tag to the job.  May be given more than once.",
)
@click.option(
    "--priority",
    type=click.IntRange(-100, 100),
    metavar="N",
    help="Priority in the queue; a job with a higher number starts first.  [0]",
)
@click.option("--hold", is_flag=True, help="Hold the job until 'osd job release'.")
@click.option(
    "--begin",
    type=BEGIN,
    help="Hold the job until this time: now+2h, 16:30, 2026-11-24T08:00 (local time).",
)
@click.option(
    REUSE,
    metavar="[AGE]",
    type=DURATION,
    help="Return an earlier job of the same script, arguments and zone if no object that it read "
    "has changed, and it ended at most AGE ago.  The result must depend on nothing else.",
)
@click.option(
    "--after",
    type=AFTER,
    multiple=True,
    help="Start after another job has ended: ok, only if it COMPLETED; failed, only if"
    " it did not; any.  May be given more than once.  [ok]",
)
@click.option(
    "--array",
    type=ARRAY,
    help="Run the script once for each index: 0-99, 1,3,10-20:2.  %N: at most N at once.",
)
@click.option(
    "--over",
    type=PATH,
    multiple=True,
    help="Run the script once for each file that matches PATH, such as '/logs/*.gz'; it finds the "
    "object in osd.over.  May be given more than once.",
)
@click.option(
    "--batch",
    type=click.IntRange(1),
    metavar="N",
    default=1,
    help="With --over, run the script once for N files.  [1]",
)
@KEY_OPTION
@click.option(
    "--retries",
    type=click.IntRange(0, 14),
    metavar="N",
    help="Run the job again up to N times after a fault of the system.  [2]",
)
@click.option(
    "--retry-on",
    type=RETRY_ON,
    help="Retry also after these ends: exit=CODE, oom, or both with a comma.",
)
@click.option("--idempotent", is_flag=True, help="Allow a retry after the job has written data.")
@click.option(
    "--expire",
    type=DURATION,
    help="Keep the job's record for this time after its end.  A job that is held or "
    "waits for others as long is cancelled.  [7 days]",
)
@click.option(
    "--grace",
    type=DURATION,
    help="Time to clean up between the request to end and the kill.  [20 ms]",
)
@pool_option("Pool of sandboxes to run in.  [default]")
@RIGHTS_OPTION
@limit_options(*LIMITS)
@modules_option(
    "Send modules with the script: a .py file, a package, a folder to import from, a .pyz or .zip.  "
    "May be given more than once."
)
@click.option(
    "--check/--no-check", default=True, help="Compile the script here before it is sent.  [yes]"
)
@click.option(
    "--compress/--no-compress",
    default=None,
    help="Compress the script before it is sent.  [if that makes it smaller]",
)
@click.option(
    WAIT,
    metavar="[DURATION]",
    type=DURATION,
    help="Wait for the end, at most DURATION (exit code 124).  [wait on a terminal]",
)
@click.option(
    "--no-wait", is_flag=True, help="Print the job's id and return at once.  [unless on a terminal]"
)
@click.option("-f", "--follow", is_flag=True, help="Print the script's output while it runs.")
@click.option(
    "--pure",
    is_flag=True,
    help="The script reads its zone and returns a result. It may change no objects, so that it can run "
    "in either place.",
)
@click.option(
    "--where",
    type=click.Choice(["auto", "near", "local"]),
    help="Place where the script runs: near the data; local, on this machine; auto, the place where "
    "it is expected to end sooner, as --pure.  [near; auto if --pure is given here and the command waits]",
)
@click.option(
    "--local",
    is_flag=True,
    help="Run the script on this machine, as --where local; it accesses the target over the session.",
)
@targets_option("Run the script at each target of this file.")
@click.option("--dry-run", is_flag=True, help="Print the request as JSON instead of sending it.")
@click.option(
    "--exit-code",
    "style",
    type=click.Choice(["state", "script", "worst"]),
    default="state",
    help="With --wait, exit with a code for the state, the script's own, or the worst "
    "of an array's members.  [state]",
)
@RAW
@output_option("text", "json", "id")
@click.pass_context
def exec_command(ctx: click.Context, /, **given: Any) -> None:
    """Run SCRIPT next to the data.

    The script finds the ARGS after -- in osd.args.  It may contain options in comments above its first
    line of code: "#OSD --limit-mem 256MiB".

    On a terminal, or with --wait or --follow, the command waits for the end and prints the script's
    output.  The output of an array is printed only with --follow, member by member when each has
    ended. Otherwise the command prints the job's id.  'osd run' always waits, 'osd submit' never
    does.

    SCRIPT may be a .py file, a .pyz zipapp, or a .pyc file if the target accepts byte-code; -: stdin.
    In a pool of another engine it is code for that engine, such as a .wasm module.
    """
    settings: Settings = ctx.obj
    options = ExecOptions(**given)
    code = read_script(ctx, options.script)
    for number in late_options(code):
        settings.say(f"line {number} of the script: #OSD counts only above the first line of code")
    check_options(settings, options)
    if options.check:
        check_script(options.script, code)
    code = with_modules(options.script, code, options.modules)
    request = options.request()
    if options.dry_run:
        print_json(
            describe(request, code) | {"modules": [*options.modules], "over": [*options.over]}
        )
        return
    if options.targets_file is not None:
        from pyosd.cli.jobs.exec_places import run_everywhere

        sys.exit(run_everywhere(settings, options, code, options.waits))
    if options.place == "local":
        from pyosd.cli.jobs.exec_places import run_here

        sys.exit(run_here(settings, options, code))
    with settings.connect() as target:
        request["after"] = [named_after(settings, target, each) for each in request["after"]]
        if options.over:
            request["over"] = files_over(settings, target, options.over)
            request["batch"] = options.batch
        if options.place == "auto":
            from pyosd.cli.jobs.exec_places import run_where_sooner

            sys.exit(run_where_sooner(settings, options, code, target, request))
        try:
            with advice_on_rights(options.rights):
                job = target.exec(code, **request)
        except KeyboardInterrupt:
            raise interrupted("a job may nevertheless exist: osd ps --tail 1") from None
        if job.cached_result:
            settings.say(f"cached result: {job.id} has the same code and inputs")
        with id_kept(job):
            if options.waits:
                sys.exit(wait_for(job, settings, options))
            tell_next(settings, job)
            report(settings, job)


def derived(name: str, waits: bool, text: str) -> Exec:
    """The same verb by another name, which decides whether to wait."""
    shared = {each.name for each in common_options()}
    params = [each for each in exec_command.params if each.name not in shared]
    command = Exec(name, params=params, callback=exec_command.callback, help=text)
    command.waits = waits
    return command


run = derived(
    "run",
    True,
    """Run SCRIPT next to the data, wait for its end and print its output.

    The same as 'osd exec --wait', see there.  The exit code is that of the job.""",
)
submit = derived(
    "submit",
    False,
    """Submit SCRIPT as a job and print the job's id.

    The same as 'osd exec --no-wait', see there.  'osd wait', 'osd logs' and 'osd result' take the id.""",
)


def named_after(settings: Settings, target: Target, after: After) -> After:
    """The same condition on the job that was named: ARRAY[INDEX] is a job of its own."""
    return replace(after, job=job_of(settings, target, after.job).id)


def files_over(settings: Settings, target: Target, patterns: tuple[str, ...]) -> list[ObjectRef]:
    """The objects of files that match patterns, each once.  Raises: Failure: there are none."""
    from pyosd.cli.paths.listing import matches

    files = [each for each in matches(settings, target.fs, patterns) if not each.is_directory]
    if part := next((each.path for each in files if each.content is not None), None):
        raise Failure(
            Exit.FAILED, f"'{part}' is part of a job, and no object that scripts can read"
        )
    found = {each.object: None for each in files}
    if not found:
        raise Failure(Exit.NO_INPUT, f"no file matches {', '.join(patterns)}")
    return [*found]


def check_options(settings: Settings, options: ExecOptions) -> None:
    """Refuse options that exclude each other.  Raises: UsageError."""
    if options.begin and options.hold:
        raise click.UsageError("--begin and --hold exclude each other: a held job has no begin")
    if options.over and options.array:
        raise click.UsageError("--over and --array exclude each other: --over makes an array")
    if options.batch != 1 and not options.over:
        raise click.UsageError("--batch goes with --over")
    if options.over and (options.place == "local" or options.targets_file is not None):
        raise click.UsageError("--over makes jobs of one target: it excludes --local and --targets")
    if options.local and options.where not in (None, "local"):
        raise click.UsageError(f"--local and --where {options.where} exclude each other")
    if options.place == "auto":
        check_auto(settings, options)
    if options.place == "local" and settings.output != "text" and not options.dry_run:
        raise click.UsageError(
            "a script that runs here is no job: -o and --local exclude each other"
        )


def check_auto(settings: Settings, options: ExecOptions) -> None:
    """Refuse options that need a job: --where auto may make none.  Raises: UsageError."""
    if options.no_wait:
        raise click.UsageError("--where auto waits for the end: it excludes --no-wait")
    if options.targets_file is not None or settings.output != "text":
        raise click.UsageError("--where auto excludes --targets and -o: say --where near")


def tell_next(settings: Settings, job: Job) -> None:
    """The commands a person will want next."""
    if sys.stderr.isatty():
        settings.say(
            f"next: osd job status {job.id} | osd job logs -f {job.id} | osd job wait {job.id}"
        )


def is_array(job: Job) -> TypeGuard[JobArray]:
    """Whether it is an array, whose class is imported only if there is one."""
    return isinstance(job, FollowedArray)


def print_members(array: JobArray) -> None:
    """Print the output of each member when it has ended, with its index before each line."""
    with left_by(lambda: f"array {array.id} continues: osd job wait {array.id}", [array]):
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


def wait_for(job: Job, settings: Settings, options: ExecOptions) -> int:
    """Wait, print what the script printed on both streams, and return the exit code."""
    as_text = settings.output == "text"
    if is_array(job) and options.follow and as_text:
        print_members(job)

    def print_what_it_printed() -> None:
        if as_text and not options.follow and not is_array(job):
            show_output(job, settings, follow=False, raw=options.raw)

    if options.follow and as_text and not is_array(job):
        show_output(job, settings, follow=True, raw=options.raw)
    status = await_end(job, settings, options.patience, before_last=print_what_it_printed)
    if not as_text:
        report(settings, job)
    return exit_code(status, options.style)
