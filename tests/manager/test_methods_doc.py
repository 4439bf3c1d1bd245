# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/control.md has every method, with its parameters, and no other."""

from __future__ import annotations

import re
from pathlib import Path

from iosd_host.manager.key_methods import key_methods
from iosd_host.manager.keys import ClientKeys
from iosd_host.manager.manager import Manager
from iosd_host.manager.methods import methods
from iosd_host.manager.server import make_pair
from iosd_host.manager.state_store import StateStore
from tests.harness import SOURCE


def documented() -> dict[str, str]:
    """Methods, and the words about their parameters."""
    page = (SOURCE / "docs" / "control.md").read_text().split("| Method | Params | Result |")[1]
    found = {}
    for line in page.splitlines():
        names, params = (cell.strip() for cell in (line + "|||").split("|")[1:3])
        if not re.fullmatch(r"[a-z]+(\.[a-z]+)?(, \.[a-z]+)*", names):
            continue
        first, *others = names.split(", ")
        noun = first.split(".")[0]
        for name in (first, *(f"{noun}{other}" for other in others)):
            found[name] = params
    return found


def test_methods_are_documented(tmp_path: Path) -> None:
    manager = Manager(StateStore(tmp_path), lambda name: {})
    keys = ClientKeys(tmp_path / "keys", make_pair)
    rows = {row.name: row for row in [*methods(manager), *key_methods(keys, manager.logged)]}
    manager.close()
    page = documented()
    assert set(page) == set(rows)
    known = {key.name for row in rows.values() for key in row.params}
    for name, row in rows.items():
        words = set(re.findall(r"[a-z_]+", re.sub(r"\(.*?\)", "", page[name])))
        assert words & known == {key.name for key in row.params}, name
