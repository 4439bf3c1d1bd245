# SPDX-License-Identifier: GPL-2.0-or-later
"""Help texts: each makes sense alone, none is cut, and the examples are ones that can be typed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from iosd_host.cli.iosd_manager import main as manager
from pyosd.cli import main
from pyosd.cli.frame.examples import EXAMPLES
from tools.clidoc import leaves

TERSE = re.compile(
    r"^(of|how|why|no longer|which|who|whose|when|also|only|the least)\b[^,]{0,25}\.", re.I
)


def options() -> Iterator[tuple[str, click.Option]]:
    root = click.Context(main, info_name="osd")
    commands = [(each.command_path, each.command) for each in leaves(main, root)]
    for path, command in [*commands, ("iosd-manager", manager)]:
        for each in command.params:
            if isinstance(each, click.Option) and not each.hidden:
                yield path, each


def test_help_makes_sense_alone() -> None:
    bad = []
    for path, option in options():
        text = option.help or ""
        if len(text.split()) < 3 or not text[0].isalnum() or TERSE.match(text):
            bad.append(f"{path} {option.opts[-1]}: {text}")
    assert not bad, "\n".join(sorted({*bad}))


def groups() -> Iterator[list[str]]:
    def below(group: click.Group, context: click.Context, words: list[str]) -> Iterator[list[str]]:
        yield words
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if isinstance(command, click.Group):
                # click's own cuts sentences, on a terminal of 80 columns
                assert type(command).format_commands is not click.Group.format_commands, name
                yield from below(command, click.Context(command), [*words, name])

    return below(main, click.Context(main), [])


def test_no_short_help_is_cut() -> None:
    for words in groups():
        shown = CliRunner().invoke(main, [*words, "--help"], prog_name="osd").output
        assert "..." not in shown.replace("[ARGS]...", "").partition("Commands:")[2], words


def test_every_verb_has_an_example() -> None:
    paths = {each.command_path for each in leaves(main, click.Context(main, info_name="osd"))}
    assert paths == {*EXAMPLES}


@pytest.mark.parametrize("path", list(EXAMPLES))
def test_examples_are_words_of_their_verb(path: str) -> None:
    """Each parses: the options exist and there are enough arguments."""
    shown = CliRunner().invoke(main, [*path.split()[1:], "--help"], prog_name="osd").output
    for line in EXAMPLES[path]:
        assert line in shown
        words = shlex.split(line.rpartition("|")[2].partition(" > ")[0].strip())
        context, command = click.Context(main, info_name="osd"), main
        rest = words[1:]
        while isinstance(command, click.Group):
            found = command.get_command(context, rest[0])
            assert found is not None, line
            command = found  # type: ignore[assignment]
            context = click.Context(command, parent=context, info_name=rest.pop(0))
        assert context.command_path == path
        if command.name not in ("exec", "run", "submit", "put", "check"):  # these read files
            try:
                command.parse_args(context, rest)
            except click.ClickException as error:
                assert re.search("does not exist|No such file", error.message), line
