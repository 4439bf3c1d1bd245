# SPDX-License-Identifier: GPL-2.0-or-later
"""Stores of one root and of two, built once and copied for each test."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.offline.stores import Snapshot, Store, build, look

Template = tuple[Store, Snapshot]


@pytest.fixture(scope="session")
def templates(tmp_path_factory: pytest.TempPathFactory) -> dict[bool, Template]:
    made = {}
    for two_roots in (False, True):
        store = build(tmp_path_factory.mktemp("offline"), two_roots)
        with store.serve() as osd:
            made[two_roots] = store, look(osd)
    return made


@pytest.fixture(params=[False, True], ids=["one root", "two roots"])
def template(request: pytest.FixtureRequest, templates: dict[bool, Template]) -> Template:
    return templates[request.param]


@pytest.fixture
def store(template: Template, tmp_path: Path) -> Store:
    """A store to damage."""
    return template[0].copy(tmp_path / "copy")


@pytest.fixture
def before(template: Template) -> Snapshot:
    """What clients see of it, undamaged."""
    return dict(template[1])


@pytest.fixture
def pristine(store: Store) -> Store:
    """A store that a test leaves as it is."""
    return store
