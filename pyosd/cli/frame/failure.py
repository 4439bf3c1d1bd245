# SPDX-License-Identifier: GPL-2.0-or-later
"""How an error is printed: as text, or as JSON where the verb's output is JSON.

Both go to stderr, so that stdout has only data.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence

import click

from pyosd.cli.frame.codes import Exit
from pyosd.cli.output.tables import json_line
from pyosd.cli.output.terminal import harmless

__all__ = ["WORDS", "drop_output", "finish_output", "print_error", "print_exception", "wants_json"]

WORDS = "pyosd.cli.words"  # in click's meta: what was typed, for errors before options are read
MACHINE = ("json", "jsonl")


def drop_output() -> None:
    """Write what is left of stdout nowhere, also when Python ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def finish_output() -> None:
    """After an error: write what is left of stdout, or drop it if that cannot be.  One error is enough."""
    try:
        sys.stdout.flush()
    except OSError:
        drop_output()


def asks_for_json(words: Sequence[str], flags: Sequence[str] = ("--json",)) -> bool:
    """Whether these words of a command line have -o json or one of these flags."""
    for number, word in enumerate(words):
        if word == "--":
            return False
        following = words[number + 1] if number + 1 < len(words) else ""
        if word in flags or (word in ("-o", "--output") and following in MACHINE):
            return True
        if word in {f"{flag}{value}" for flag in ("-o", "-o=", "--output=") for value in MACHINE}:
            return True
    return False


def wants_json(ctx: click.Context | None = None) -> bool:
    """Whether a program reads the output of this command.

    ctx: its context, if it is not the current one.
    """
    ctx = ctx or click.get_current_context(silent=True)
    if ctx is None:
        return False
    options = [each for each in ctx.command.params if isinstance(each, click.Option)]
    # that of 'osd fn call' has a value, which is input
    is_input = any("--json" in each.opts and not each.is_flag for each in options)
    return asks_for_json(ctx.meta.get(WORDS, ()), () if is_input else ("--json",))


def name_of(code: int) -> str:
    """The name of an exit code."""
    return Exit(code).name if code in {each.value for each in Exit} else "FAILED"


def print_error(code: int, text: str, hint: str = "", ctx: click.Context | None = None) -> None:
    """Print an error on stderr.

    Args:
        code: with which the command ends.
        text: what is wrong; lines after the first are a hint.
        hint: what to do about it.
        ctx: of the command, if it is not the current one.
    """
    message, _, rest = text.partition("\n")
    hint = "\n".join(filter(None, (rest.strip("\n"), hint)))
    if wants_json(ctx):
        lines = [line.strip() for line in hint.splitlines()]
        error = {"code": int(code), "name": name_of(code), "message": message}
        error |= {"hint": "\n".join(lines)} if lines else {}
        click.echo(json_line({"schema": "iosd.error/1", "error": error}), err=True)
        return
    for line in [f"osd: {message}", *hint.splitlines()]:
        click.echo(harmless(line), err=True)  # a script's words may be among them


def print_exception(error: click.ClickException) -> None:
    """Print what click found wrong with a command line as any other error.

    A noun without its verb gets its help, as click has it.
    """
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    if ctx is not None and type(error).__name__ == "NoArgsIsHelpError":  # click has it since 8.2
        error.show()
        return
    text = re.sub(
        r"is not a valid integer( range)?\.", "is not a whole number.", error.format_message()
    )
    if ctx and text[1:2].islower():  # else it begins with the name of a file
        text = text[:1].lower() + text[1:]
    hints = [*_more(error, ctx), f"  see: {ctx.command_path} --help"] if ctx else []
    print_error(error.exit_code, text, "\n".join(hints), ctx)


def _more(error: click.ClickException, ctx: click.Context) -> Iterator[str]:
    """Remedies for a wrong command line, which click's message leaves out."""
    params = ctx.command.params
    if isinstance(error, click.NoSuchOption):
        known = {name for each in params for name in each.opts}
        for word in ctx.meta.get(WORDS, ()):
            name = "-" + word.partition("=")[0]
            if len(word) > 2 and name in known:  # -name, as find(1) has it
                yield f"  options of several letters begin with two dashes: {name}"
        if any(each.type is click.UNPROCESSED for each in params):
            yield "  words for the code that begin with a dash come after --"
    if isinstance(error, click.MissingParameter):
        places = [each for each in params if isinstance(each, click.Argument)]
        if len(places) > 1 and error.param is places[0] and places[0].nargs == -1:
            # click gives the last place the only word
            yield "  it takes " + " ".join(each.metavar or "" for each in places)
