# SPDX-License-Identifier: GPL-2.0-or-later
"""What the documentation tells people to type and to save is typed and saved, on a target of its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import pyosd.testing
from tests.cli.documents import run_page, run_shell
from tests.conftest import unavailable
from tests.processes import children_of_this, long_lived
from tests.serving import missing, sandboxes_missing
from tools.manpages import EXAMPLES

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 120

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]


@pytest.fixture(scope="module")
def target() -> Iterator[pyosd.testing.ServedTarget]:
    why = missing() or sandboxes_missing()
    if why:
        unavailable("tgtd", why)
    before = children_of_this()
    with pyosd.testing.serve() as served:
        started = children_of_this() - before
        long_lived.update(started)
        yield served
    long_lived.difference_update(started)


@pytest.fixture
def environment(target: pyosd.testing.ServedTarget, tmp_path: Path) -> dict[str, str]:
    path = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return pyosd.testing.client_environment() | {
        "IOSD_TARGET": target.url,
        "PATH": path,
        "XDG_CONFIG_HOME": str(tmp_path),
    }


def test_tutorial(environment: dict[str, str], tmp_path: Path) -> None:
    run_page(ROOT / "docs" / "tutorial.md", tmp_path, environment, DEADLINE_S)


def test_examples_of_the_manual_pages(environment: dict[str, str], tmp_path: Path) -> None:
    lines = [line for rows in EXAMPLES.values() for line, _ in rows]
    done = run_shell("\n".join(lines), tmp_path, environment, DEADLINE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("b'hello world\\n'") == 3
