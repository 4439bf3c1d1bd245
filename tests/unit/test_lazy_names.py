# SPDX-License-Identifier: GPL-2.0-or-later
"""The names of pyosd that are imported on first use, and what a short command does not import."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import pyosd

SLOW = ("rich", "aiohttp", "zmq", "cryptography", "asyncio", "iosd_host", "iosd_secmgr")


def test_names_agree_with_the_imports_for_checkers() -> None:
    tree = ast.parse(Path(pyosd.__file__).read_text())
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    imported = {
        alias.name: node.module
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == pyosd.MODULES
    assert sorted(imported) == sorted(pyosd.__all__)


def test_every_name_is_there() -> None:
    for name in pyosd.__all__:
        assert getattr(pyosd, name) is not None
        assert name in dir(pyosd)
    assert pyosd.errors.NotFound is pyosd.NotFound


def test_other_names_are_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pyosd.nothing
    with pytest.raises(ImportError, match="nothing"):
        exec("from pyosd import nothing")


@pytest.mark.parametrize("words", [["--version"], ["exec", "--help"], ["ps", "--help"]])
def test_a_short_command_imports_little(words: list[str]) -> None:
    program = (
        "import sys; from osd_program import main\n"
        "try: main()\n"
        "except SystemExit: print(' '.join({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=True
    )
    found = set(done.stdout.splitlines()[-1].split())
    assert not found & set(SLOW)
    if words == ["--version"]:
        assert "osd_program" in found and "hashlib" not in found
