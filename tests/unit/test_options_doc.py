# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/serving.md has a row for each option in target/unit/config.c, with its default and its words."""

from __future__ import annotations

import re
from pathlib import Path

from iosd_host.cli.serve import serve

ROOT = Path(__file__).resolve().parents[2]
OPTION = re.compile(r'\{"([\w-]+)", OPTION_\w+, AT\([^)]*\), [^"]+?, (NULL|"[^"]*"),\s+"')
CHOICE = re.compile(r'\{"(\w+)", \{([^}]+)\}\}')


def _between(start: str, end: str) -> str:
    source = (ROOT / "target" / "unit" / "config.c").read_text(encoding="utf-8")
    return source.split(start, 1)[1].split(end, 1)[0]


def _defaults() -> list[tuple[str, str]]:
    table = _between("options[] = {", "\n};")
    found = OPTION.findall(table)
    assert len(found) == table.count("OPTION_"), "this test cannot read a row of config.c"
    return [(name, "none" if word == "NULL" else f"`{word[1:-1]}`") for name, word in found]


def _rows() -> list[list[str]]:
    page = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    table = page.split("## Options of the module", 1)[1]
    rows = re.findall(r"^\| (`[\w-]+` \|.*)\|$", table, re.MULTILINE)
    return [[cell.strip() for cell in row.split("|")] for row in rows]


def test_names_and_defaults() -> None:
    rows = [(name.strip("`"), default) for name, _, default, *_ in _rows()]
    assert rows == _defaults()


def test_words_of_choices() -> None:
    values = {name.strip("`"): re.findall(r"`([^`]+)`", cell) for name, cell, *_ in _rows()}
    choices = CHOICE.findall(_between("choices[] = {", "\n};"))
    assert choices
    for name, words in choices:
        assert values[name] == re.findall(r'"([^"]+)"', words), name


def test_flags_exist_and_every_row_has_a_reason() -> None:
    flags = {flag for option in serve.params for flag in option.opts}
    for name, _, _, flag, reason in _rows():
        assert reason, name
        assert flag in ("", "set by serve") or flag.strip("`") in flags, name
