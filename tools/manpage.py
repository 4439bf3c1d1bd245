# SPDX-License-Identifier: GPL-2.0-or-later
"""A manual page from Markdown, by pandoc.

pandoc reads the Markdown of docs/ as it is, and escapes what roff would take for a request.  The other
tools of Debian 12 do less.  rst2man reads another markup.  click-man and argparse-manpage know options
but no prose.  lowdown prints the numbers of lists on lines of their own.
"""

from __future__ import annotations

import inspect
import re
import subprocess
from collections.abc import Collection, Iterator
from pathlib import Path

import click

__all__ = ["entry", "manual_page", "option_rows", "plain", "prose", "usage"]

HERE = Path(__file__).resolve().parent
VERSION = (HERE.parent / "VERSION").read_text().strip()
MARKDOWN = "commonmark+pipe_tables+definition_lists"
PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")


def plain(text: str) -> str:
    """Text on one line, none of which is markup."""
    return PUNCTUATION.sub(r"\\\1", re.sub(r"[ \n]+", " ", text.strip()))


def prose(text: str) -> str:
    """The paragraphs of a help text, whose only markup is `code`."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(text))
    return "\n\n".join(
        "".join(
            piece if piece.startswith("`") else PUNCTUATION.sub(r"\\\1", piece)
            for piece in re.split(r"(`[^`]+`)", " ".join(each.split()))
        )
        for each in paragraphs
    )


def entry(term: str, text: str) -> str:
    """A term and what it means."""
    return f"**{plain(term)}**\n\n:   {text}\n"


def usage(command: str, arguments: str) -> str:
    """A line of SYNOPSIS."""
    # Dots end no sentence here: pandoc would begin a line after them.
    unbroken = re.sub(r"(\.\.\.\S*) ", "\\1\N{NO-BREAK SPACE}", arguments)
    return f"**{plain(command)}** {plain(unbroken)}"


def manual_page(name: str, number: int, parts: Collection[str]) -> str:
    """The page in roff; parts: blocks of Markdown, "## " before the name of a section.

    Raises: SystemExit: pandoc is not installed.
    """
    metadata = {"title": name, "section": number, "footer": f"iosd {VERSION}", "header": "iosd"}
    command = ["pandoc", "--standalone", f"--from={MARKDOWN}", "--to=man"]
    command += [f"--lua-filter={HERE / 'manpage.lua'}", "--metadata=hyphenate:false"]
    command += [f"--metadata={key}:{value}" for key, value in metadata.items()]
    try:
        done = subprocess.run(
            command, input="\n\n".join(parts), stdout=subprocess.PIPE, text=True, check=True
        )
    except FileNotFoundError:
        raise SystemExit("pandoc is not installed: tools/install-packages.sh install") from None
    return done.stdout


def option_rows(
    command: click.Command, context: click.Context, left_out: Collection[str | None] = ()
) -> Iterator[str]:
    """The options of a command with their words, but --help and those of the names left out."""
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is None or parameter.name in left_out or not record[0].startswith("-"):
            continue
        if "--help" not in record[0]:
            yield entry(record[0], plain(record[1]))
