# SPDX-License-Identifier: GPL-2.0-or-later
"""Fixtures of the tests of commands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pyosd.types import ObjectRef, ref
from tests.command.held import Held
from tests.conftest import MakeHarness


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Commands that are held run on Berkeley DB, and in memory where `--units` names it."""
    if "held" in metafunc.fixturenames:
        named = metafunc.config.getoption("--units")
        stores = ["bdb", "memory"] if "memory" in named else ["bdb"]
        metafunc.parametrize("held", stores, indirect=True)


@pytest.fixture
def held(
    request: pytest.FixtureRequest, tmp_path: Path, make_harness: MakeHarness
) -> Iterator[Held]:
    gate = tmp_path / "hold"
    gate.touch()
    options: dict[str, object] = {"hold": gate}
    if request.param == "memory":
        options["memory"] = 1
    yield Held(make_harness(**options), gate)
    gate.unlink(missing_ok=True)


@pytest.fixture
def kept(tmp_path: Path, make_harness: MakeHarness) -> Iterator[Held]:
    """The same on disk only, to be killed."""
    gate = tmp_path / "hold"
    gate.touch()
    yield Held(make_harness(hold=gate), gate)
    gate.unlink(missing_ok=True)


@pytest.fixture
def root(pid: int) -> ObjectRef:
    return ref(pid)
