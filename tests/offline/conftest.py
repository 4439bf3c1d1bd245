# SPDX-License-Identifier: GPL-2.0-or-later
"""Stores of one root and of two, built once and copied for each test."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.offline.stores import Snapshot, Store, build, look

Template = tuple[Store, Snapshot]
MEMORY = Path("/dev/shm")
"""A folder in memory, where nothing waits for a disk: these tests check repairs and not power
loss."""


@pytest.fixture(scope="session")
def quick() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def templates(quick: Path) -> dict[bool, Template]:
    made = {}
    for two_roots in (False, True):
        folder = quick / f"template {two_roots}"
        folder.mkdir()
        store = build(folder, two_roots)
        with store.serve() as osd:
            made[two_roots] = store, look(osd)
    return made


@pytest.fixture
def template(request: pytest.FixtureRequest, templates: dict[bool, Template]) -> Template:
    """Of two roots, unless a test asks for one."""
    return templates[getattr(request, "param", True)]


@pytest.fixture
def folder(quick: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=quick) as made:
        yield Path(made)


@pytest.fixture
def store(template: Template, folder: Path) -> Store:
    """A store to damage."""
    return template[0].copy(folder)


@pytest.fixture
def before(template: Template) -> Snapshot:
    """The clients' view of it, undamaged."""
    return dict(template[1])
