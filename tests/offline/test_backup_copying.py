# SPDX-License-Identifier: GPL-2.0-or-later
"""A backup leaves out what can be made again, in a whole pass and in one over files that have changed."""

from __future__ import annotations

import os
from pathlib import Path

from iosd_host.store_tools.backup.copying import MAIN, Copier


def test_machine_code_is_left_out(tmp_path: Path) -> None:
    store = tmp_path / "store"
    for name in ("data/1/file", "machine/function", "db/log", "seal"):
        path = store / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    copier = Copier({MAIN: store}, tmp_path / "copy", None, os.getuid())
    assert set(copier.everything()) == {f"{MAIN}/data/1/file", f"{MAIN}/seal"}
    changed = [f"{MAIN}/data/1/file", f"{MAIN}/machine/function"]
    assert set(copier.some(changed)) == {f"{MAIN}/data/1/file"}
