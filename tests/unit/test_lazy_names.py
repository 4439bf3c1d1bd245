# SPDX-License-Identifier: GPL-2.0-or-later
"""The names of pyosd that are imported on first use, and what a short command does not import."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pyosd
from pyosd import requests
from pyosd.cli.frame.codes import Exit

SLOW = ("rich", "aiohttp", "zmq", "cryptography", "asyncio", "iosd_host", "iosd_secmgr")
UNUSED_BY_EXEC = """
    asyncio difflib email encodings.idna hashlib hmac html secrets shlex shutil ssl subprocess tempfile
    unicodedata click.shell_completion pyosd.osd pyosd.cluster pyosd.cli.frame.examples
    pyosd.cli.jobs.job_filter pyosd.commands.collections pyosd.commands.names pyosd.commands.pool_status
    pyosd.jobs.begin pyosd.jobs.job_array pyosd.jobs.reasons pyosd.jobs.retrying pyosd.offload.costs
    pyosd.offload.home pyosd.offload.where pyosd.security.signing pyosd.wire.list_data pyosd.wire.names
    pyosd.wire.tracking pyosd.wire.used
"""
PROGRAM = (
    "import sys; from osd_program import main\n"
    "try: main()\n"
    "except SystemExit as end: print(*sys.modules); sys.exit(end.code)"
)


@pytest.mark.parametrize("package", [pyosd, requests])
def test_names_agree_with_the_imports_for_checkers(package: Any) -> None:
    tree = ast.parse(Path(package.__file__).read_text())
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    imported = {
        alias.name: node.module
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == package.MODULES
    assert sorted(imported) == sorted(package.__all__)


@pytest.mark.parametrize("package", [pyosd, requests])
def test_no_name_is_that_of_a_module(package: Any) -> None:
    """The import of the module would take its place."""
    files = {each.stem for each in Path(package.__file__).parent.iterdir()}
    assert not [name for name, module in package.MODULES.items() if name in files]


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
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=True
    )
    found = {name.partition(".")[0] for name in done.stdout.splitlines()[-1].split()}
    assert not found & set(SLOW)
    if words == ["--version"]:
        assert "osd_program" in found and "hashlib" not in found


def test_a_plain_exec_imports_what_it_runs(tmp_path: Path) -> None:
    """Up to the log-in, without credentials."""
    script = tmp_path / "script.py"
    script.write_text("pass\n")
    words = ["exec", "--wait", "--target", "iscsi://127.0.0.1:1/iqn.x/1", str(script)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words],
        capture_output=True,
        text=True,
        env=os.environ | {"XDG_CONFIG_HOME": str(tmp_path), "IOSD_RUN": str(tmp_path)},
    )
    assert done.returncode == Exit.UNREACHABLE, done.stderr
    found = set(done.stdout.split())
    assert "pyosd.iscsi.connection" in found
    assert sorted(found.intersection(UNUSED_BY_EXEC.split())) == []
