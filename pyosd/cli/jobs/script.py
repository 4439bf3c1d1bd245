# SPDX-License-Identifier: GPL-2.0-or-later
"""Common parts of `osd exec` and `osd job retry`: reading a script with its #OSD lines, and
--rights."""

from __future__ import annotations

import codecs
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.params import Unreadable
from pyosd.cli.frame.verb import Failure
from pyosd.cli.output.terminal import file_error
from pyosd.errors import PermissionDenied
from pyosd.jobs.modules import ARCHIVES, Modules, check_syntax, is_zipapp, pack_zipapp
from pyosd.jobs.source import BYTECODE_SUFFIX, is_binary
from pyosd.wire.capability import JOB_RIGHTS, READ_ONLY, Permission

__all__ = [
    "KEY_OPTION",
    "RIGHTS",
    "RIGHTS_OPTION",
    "advice_on_rights",
    "check_script",
    "embedded_options",
    "late_options",
    "modules_option",
    "read_script",
    "script_option",
    "with_modules",
]

MARK = "#OSD"
LARGEST = 16 << 20  # bytes of code an EXEC carries
META = "pyosd.cli.jobs.script"
RIGHTS = {"all": JOB_RIGHTS, "read": READ_ONLY, "none": Permission(0)}
RIGHTS_OPTION = click.option(
    "--rights",
    type=click.Choice([*RIGHTS]),
    default="all",
    help="Permissions of the script in its zone, if the target checks credentials.  [all]",
)

KEY_OPTION = click.option(
    "--key",
    metavar="KEY",
    help="Key of this submission: submitting the same job with the same key returns the first one.",
)


def modules_option(help_: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """--with."""
    return click.option(
        "--with", "modules", multiple=True, metavar="PATH", type=click.Path(), help=help_
    )


def script_option(help_: str) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """--script, of a verb about a job that has ended."""
    return click.option("--script", type=click.Path(dir_okay=False, allow_dash=True), help=help_)


class UnfitScript(click.ClickException):
    """The script, or a module that travels with it, cannot be sent."""

    exit_code = Exit.FAILED


@contextmanager
def advice_on_rights(rights: str) -> Iterator[None]:
    """Name --rights if a script was to have more permissions than its user has.

    Raises: Failure: the refusal, with that advice.
    """
    try:
        yield
    except PermissionDenied as error:
        text = str(error)
        hint = ""
        if text.endswith(" on root"):
            hint = (
                "without --zone the code asks for the whole target: name a partition or a directory"
            )
        elif rights == "all" and " lacks " in text and Permission.FUN_EXE.name not in text:
            hint = "for code that only reads: --rights read"
        if hint:
            raise Failure(Exit.NOT_PERMITTED, f"{text}\n  {hint}") from error
        raise


def read_script(ctx: click.Context, file: str) -> bytes:
    """Read the script; stdin, which can be read only once, is kept in the context."""
    if META not in ctx.meta:
        try:
            with click.open_file(file, "rb") as source:
                code = source.read(LARGEST + 1)
        except OSError as error:
            raise Unreadable(file_error(error, file)) from None
        if not code:
            name = "standard input" if file == "-" else f"'{file}'"
            raise click.UsageError(f"{name} is empty")
        if len(code) > LARGEST:
            raise click.UsageError(f"'{file}' is longer than {LARGEST >> 20} MiB")
        ctx.meta[META] = code
    kept = ctx.meta[META]
    assert isinstance(kept, bytes)
    return kept


def with_modules(file: str, code: bytes, paths: Sequence[str]) -> bytes:
    """The script and the modules that travel with it, as one; a zipapp is always such.

    Raises: UnfitScript: they cannot travel; Unreadable.
    """
    try:
        modules = Modules(*paths) if paths else None
        if is_zipapp(file):
            return pack_zipapp(file, modules)
        return modules.archive(code) if modules else code
    except SyntaxError as error:
        raise UnfitScript(does_not_compile(error)) from None
    except ValueError as error:
        raise UnfitScript(str(error)) from None
    except OSError as error:
        raise Unreadable(file_error(error)) from None


def check_script(file: str, code: bytes) -> None:
    """Compile a script, so that a mistyped one makes no job.  Raises: UnfitScript."""
    if file.endswith((BYTECODE_SUFFIX, *ARCHIVES)) or is_binary(code):
        return
    try:
        check_syntax(code, "stdin" if file == "-" else Path(file).name)
    except SyntaxError as error:
        raise UnfitScript(does_not_compile(error)) from None


def check_function(file: str, code: bytes, methods: Sequence[str]) -> None:
    """Compile a function, and find its entry points among the names of the file.  Raises: UnfitScript."""
    check_script(file, code)
    if is_binary(code):
        return
    module = compile(code, Path(file).name, "exec", dont_inherit=True)
    if any("*" in names for names in module.co_consts if isinstance(names, tuple)):
        return  # `from other import *`: the names are known there only
    for name in methods:
        if name not in module.co_names:
            raise UnfitScript(
                f"{file} has no function '{name}', the entry point; --method names another one, "
                "--no-check stores the file as it is"
            )


def does_not_compile(error: SyntaxError) -> str:
    """The interpreter's own words, and what to do."""
    import traceback

    words = "".join(traceback.format_exception_only(error)).rstrip()
    return f"this does not compile, so nothing was sent (--no-check sends it):\n{words}"


def embedded_options(code: bytes) -> list[tuple[int, list[str]]]:
    """Return the words of the #OSD lines among the comments that open a script, by line number."""
    found: list[tuple[int, list[str]]] = []
    for number, line in enumerate(_lines(code), 1):
        if line and not line.startswith(b"#"):
            break
        if _marked(line):
            import shlex

            text = line[len(MARK) :].decode(errors="replace")
            try:
                found.append((number, shlex.split(text, comments=True)))
            except ValueError as error:
                raise click.UsageError(f"line {number} of the script: {error}") from None
    return found


def late_options(code: bytes) -> list[int]:
    """The numbers of the #OSD lines that come too late to be options."""
    marked = [number for number, line in enumerate(_lines(code), 1) if _marked(line)]
    read = {number for number, _ in embedded_options(code)}
    return [number for number in marked if number not in read]


def _lines(code: bytes) -> list[bytes]:
    return [line.strip() for line in code.removeprefix(codecs.BOM_UTF8).split(b"\n")]


def _marked(line: bytes) -> bool:
    return line.startswith(MARK.encode()) and line[len(MARK) :][:1].isspace()
