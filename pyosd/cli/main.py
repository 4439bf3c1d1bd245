# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of nouns and top-level verbs of ``osd``.

A noun's file is imported when its name is typed, so that ``osd --help`` and completion stay quick.
Verbs that belong to the target's host come from other packages by the entry points "iosd.commands".
"""

from __future__ import annotations

import errno
import os
import sys
from types import MappingProxyType
from typing import Any

import click

from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.failure import WORDS, drop_output, print_error, print_exception
from pyosd.cli.frame.nouns import Nouns
from pyosd.cli.output.terminal import file_error

__all__ = ["main"]

# what people type -> (module, attribute, one line for --help)
COMMANDS = {
    "exec": ("pyosd.cli.jobs.exec", "exec_command", "Run a script next to the data."),
    "run": ("pyosd.cli.jobs.exec", "run", "Run a script next to the data and wait for its end."),
    "submit": ("pyosd.cli.jobs.exec", "submit", "Submit a script and print the job's id."),
    "wait": ("pyosd.cli.jobs.watch", "wait", "Wait for jobs (the same as 'osd job wait')."),
    "logs": ("pyosd.cli.jobs.logs", "logs", "Print a job's output (the same as 'osd job logs')."),
    "result": ("pyosd.cli.jobs.result", "result", "Print a result (the same as 'osd job result')."),
    "kill": ("pyosd.cli.jobs.job", "kill", "Kill jobs (the same as 'osd job kill')."),
    "ps": ("pyosd.cli.jobs.job", "ls", "List jobs (the same as 'osd job ls')."),
    "top": ("pyosd.cli.jobs.top", "top", "Show queue and jobs live."),
    "job": (
        "pyosd.cli.jobs.job",
        "job",
        "Manage jobs: list, watch, wait, logs, result, kill, why, report.",
    ),
    "part": ("pyosd.cli.objects.part", "part", "Manage partitions: create, list, check, remove."),
    "col": (
        "pyosd.cli.objects.col",
        "col",
        "Manage collections: create, fill by a query, list, remove.",
    ),
    "ls": ("pyosd.cli.paths.listing", "ls", "List files and directories."),
    "stat": ("pyosd.cli.paths.listing", "stat", "Show files or directories."),
    "find": ("pyosd.cli.paths.listing", "find", "Find files by name, length or time."),
    "du": ("pyosd.cli.paths.listing", "du", "Sum up the lengths of files below paths."),
    "cat": ("pyosd.cli.paths.copy", "cat", "Print the data of files."),
    "cp": ("pyosd.cli.paths.copy", "cp", "Copy files to the target, from it, or inside it."),
    "mv": ("pyosd.cli.paths.change", "mv", "Move files and directories to other paths."),
    "rm": ("pyosd.cli.paths.change", "rm", "Remove files and directories."),
    "mkdir": ("pyosd.cli.paths.change", "mkdir", "Make directories."),
    "sync": ("pyosd.cli.paths.sync", "sync", "Copy what is new or changed between two folders."),
    "mount": ("pyosd.cli.paths.mount", "mount", "Mount files of the target on a directory."),
    "put": ("pyosd.cli.objects.files", "put", "Store files and folders as objects."),
    "get": ("pyosd.cli.objects.files", "get", "Fetch objects as files."),
    "obj": (
        "pyosd.cli.objects.obj",
        "obj",
        "Manage objects: create, read, write, find, attributes.",
    ),
    "fn": (
        "pyosd.cli.functions.fn",
        "fn",
        "Manage functions: store, call by name, list, replace.",
    ),
    "attach": (
        "pyosd.cli.functions.attach",
        "attach",
        "Let the data of objects pass through functions.",
    ),
    "detach": ("pyosd.cli.functions.attach", "detach", "Remove attached functions."),
    "attached": ("pyosd.cli.functions.attach", "attached", "List attached functions."),
    "hook": (
        "pyosd.cli.functions.hook",
        "hook",
        "Manage functions that check changes of objects, or follow them.",
    ),
    "view": (
        "pyosd.cli.functions.view",
        "view",
        "Manage views: partitions that show others through functions.",
    ),
    "reductionist": (
        "pyosd.cli.functions.reductionist",
        "reductionist",
        "Serve reductions of arrays in objects, by Reductionist's API.",
    ),
    "why": (
        "pyosd.cli.functions.why",
        "why",
        "Explain how the data of an object came about.",
    ),
    "pool": (
        "pyosd.cli.host.pool",
        "pool",
        "Manage pools of sandboxes: list, show, set, drain, usage.",
    ),
    "target": (
        "pyosd.cli.host.target",
        "target",
        "Manage targets: serve, info, check, repair, backup, ping.",
    ),
    "cluster": (
        "pyosd.cli.host.cluster",
        "cluster",
        "Manage copies on several targets: put, check, repair, rebalance.",
    ),
    "secmgr": (
        "pyosd.cli.security.secmgr",
        "secmgr",
        "Run the security manager: init, serve, audit log.",
    ),
    "acl": (
        "pyosd.cli.security.acl",
        "acl",
        "Manage access control: rules, users, groups, tokens.",
    ),
    "key": ("pyosd.cli.security.key", "key", "Manage keys of targets: import, rotate, freeze."),
    "cred": ("pyosd.cli.security.cred", "cred", "Manage credentials: get, show, list."),
    "reasons": ("pyosd.cli.jobs.reasons", "reasons", "Explain the reason numbers of jobs."),
    "config": (
        "pyosd.cli.host.config",
        "config",
        "Manage the configuration of a target: show, check, reload.",
    ),
    "completion": ("pyosd.cli.frame.completion", "completion", "Print shell completion."),
    "version": ("pyosd.cli.frame.version", "version_command", "Print the version of iosd."),
}


# verbs that people type without their noun
ELSEWHERE = MappingProxyType(
    {
        **{
            verb: f"osd job {verb}"
            for verb in ("watch", "cancel", "status", "retry", "report", "hold", "release")
        },
        **dict.fromkeys(("map", "start"), "osd exec"),
        **dict.fromkeys(("upload", "import"), "osd put"),
        **dict.fromkeys(("download", "export"), "osd get"),
        **dict.fromkeys(("list", "dir"), "osd ls"),
        **dict.fromkeys(("delete", "rmdir"), "osd rm"),
        **{verb: f"osd obj {verb}" for verb in ("read", "write")},
        **dict.fromkeys(("move", "rename"), "osd mv"),
        "copy": "osd cp",
        "rsync": "osd sync",
        **dict.fromkeys(("call", "function"), "osd fn call"),
        "jobs": "osd ps",
        "serve": "osd target serve",
        "ping": "osd target ping",
        "df": "osd target df",
    }
)


class Program(Nouns):
    """The program itself: what is the same whatever verb was typed."""

    elsewhere = ELSEWHERE

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run it; an interrupt, and output that cannot be written, end it with a documented code."""
        open_closed()
        if "_OSD_COMPLETE" in os.environ:
            from click.shell_completion import add_completion_class

            from pyosd.cli.frame.completion import BashWords

            add_completion_class(BashWords, "bash")
        try:
            try:
                return super().main(*args, **kwargs)
            finally:
                sys.stdout.flush()
        except OSError as error:
            drop_output()
            if error.errno != errno.EPIPE:
                click.echo(f"osd: {file_error(error)}", err=True)
            sys.exit(Exit.FAILED)

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Read the options before the verb; a wrong one ends the program."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.ClickException as error:
            print_exception(error)
            sys.exit(error.exit_code)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Remember the words, which say how errors are printed."""
        ctx.meta[WORDS] = [*args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Print errors, and end at an interrupt while a verb is imported or reads its options."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(Exit.INTERRUPTED)
        except click.ClickException as error:
            print_exception(error)
            ctx.exit(error.exit_code)
        except click.Abort:
            print_error(Exit.FAILED, "stopped")
            ctx.exit(Exit.FAILED)


def open_closed() -> None:
    """Open /dev/null for a standard stream that is closed, so that later files do not get its
    number.

    Reading stdin fails, for nobody has said that there is nothing.  Writing stdout fails, for nobody can
    read it.  Else the next file or socket would be it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            fd = os.open(os.devnull, os.O_RDONLY if name == "stdout" else os.O_WRONLY)
            if fd != number:
                os.dup2(fd, number)
                os.close(fd)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


@click.group(cls=Program, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="iosd", message="iosd %(version)s")
def main() -> None:
    """Store objects, and run Python scripts next to them, on an iosd target."""
