# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/cli.md and the manual pages agree with --help, and the pages are good roff."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from iosd_host.cli.iosd_manager import main as manager
from iosd_host.common.paths import SANDBOXD, find_component
from pyosd.cli import main
from pyosd.cli.frame.codes import MEANING
from pyosd.cli.frame.verb import common_options
from pyosd.jobs.reasons import REASONS
from tools.configdoc import ROWS
from tools.manpage import entry, manual_page, plain, prose
from tools.manpages import EXAMPLES, pages, verbs

ROOT = Path(__file__).resolve().parents[2]


def test_manual_is_up_to_date() -> None:
    made = subprocess.run(
        [sys.executable, "-m", "tools.clidoc"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    manual = ROOT / "docs" / "cli.md"
    assert manual.read_text() == made, "run: .venv/bin/python -m tools.clidoc >docs/cli.md"


@pytest.fixture(scope="module")
def shown() -> dict[str, str]:
    """Each page as people see it, in lines without end; a warning of groff is a failure."""
    return {name: seen(content, name) for name, content in pages().items()}


def seen(page: str, name: str = "") -> str:
    command = ["groff", "-man", "-Tutf8", "-ww", "-P-cbou", "-rLL=1000n"]
    done = subprocess.run(command, input=page.encode(), capture_output=True)
    assert not done.stderr, f"{name}: {done.stderr.decode()}"
    return done.stdout.decode()


def test_text_comes_out_as_it_went_in() -> None:
    """What is markup to Markdown or a request to roff, and tables, which a terminal has no room for."""
    words = (
        ".PP 'so \\fB *all* _of_ it_ <b> [a](b) 1. # x - | ~/a^b `c` -- ... &amp; --no-such-flag"
    )
    rows = (
        "| Key | Value | Default |\n|---|---|---|\n| `a-b` | one **two** | |\n| c | d \\| e | f |"
    )
    parts = ["## NAME", plain(words), entry(words, plain(words)), "## `osd x` more", rows]
    lines = [" ".join(line.split()) for line in seen(manual_page("X", 1, parts)).splitlines()]
    assert lines.count(words) == 3
    assert "osd x MORE" in lines
    assert "a-b value: one two" in lines and "c value: d | e; default: f" in lines
    assert seen(manual_page("X", 1, ["## NAME", prose("One\n    `a*` *b\n\n    Two.")])).split()[3:8] == [
        "NAME", "One", "a*", "*b", "Two.",
    ]  # fmt: skip


def nouns() -> list[tuple[str, click.Command, click.Context]]:
    root = click.Context(main, info_name="osd")
    found = [(name, main.get_command(root, name), root) for name in main.list_commands(root)]
    return [(name, command, root) for name, command, root in found if command is not None]


def flags(words: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", words))


def test_pages_have_what_help_has(shown: dict[str, str]) -> None:
    common = {
        flag for option in common_options() for flag in (*option.opts, *option.secondary_opts)
    }
    for name, command, root in nouns():
        page = shown[f"man1/osd-{name}.1"]
        wanted: set[str] = set()
        for context in verbs(command, click.Context(command, parent=root, info_name=name)):
            usage = " ".join(context.command.collect_usage_pieces(context))
            assert f"{context.command_path} {usage}" in page
            for parameter in context.command.get_params(context):
                record = parameter.get_help_record(context)
                if (
                    record is None
                    or not record[0].startswith("-")
                    or parameter.name in {option.name for option in common_options()}
                ):
                    continue
                if "--help" not in record[0]:
                    wanted |= flags(record[0])
                    assert re.search(rf"^ +{re.escape(record[0])}( |$)", page, re.M), record[0]
                    assert " ".join(record[1].split()) in " ".join(page.split()), record[0]
        listed = {
            flag
            for line in page.splitlines()
            if re.match(r" {7}-", line)
            for flag in flags(re.split(r" {2,}|[A-Z\[]", line.strip())[0])
        }
        assert listed - wanted <= common, f"{name}: {listed - wanted - common}"
    for flag in common:
        assert flag in shown["man1/osd.1"]


def test_every_page_says_how_it_ends(shown: dict[str, str]) -> None:
    for name, text in shown.items():
        if name.startswith("man1/"):
            for code, meaning in MEANING.items():
                assert re.search(rf"^ +{code.value} +{re.escape(meaning)}$", text, re.M), name


def test_reasons_are_all_there(shown: dict[str, str]) -> None:
    page = " ".join(shown["man7/iosd-reasons.7"].split())
    for reason in REASONS.values():
        for line in reason.paragraph():
            assert " ".join(line.split()) in page


def test_every_noun_has_examples() -> None:
    for name, _, _ in nouns():
        assert EXAMPLES.get(name) or name == "top", name


def test_pages_of_the_host(shown: dict[str, str]) -> None:
    """The programs' own texts about options, the schema's about keys, and no more."""
    usage = subprocess.run(
        [find_component(SANDBOXD), "--no-such-option"], capture_output=True, text=True
    ).stderr
    wanted = set(re.findall(r"^ +(--[a-z-]+)", usage, re.MULTILINE)) - {"--print-level"}
    listed = re.findall(r"^ {7}(--[a-z-]+)", shown["man8/iosd-sandbox.8"], re.MULTILINE)
    assert wanted and set(listed) - {"--print-level"} == wanted
    page = shown["man8/iosd-manager.8"]
    mine = {
        flag
        for option in manager.params
        if not getattr(option, "hidden", False)
        for flag in option.opts
    }
    assert set(re.findall(r"^ {7}(--[a-z-]+)", page, re.MULTILINE)) == mine
    for row in ROWS:
        assert re.search(rf"^ +{row.name}( |$)", shown["man5/iosd.toml.5"], re.MULTILINE), row.name
        assert " ".join(row.value.split()) in " ".join(shown["man5/iosd.toml.5"].split()), row.name
