# SPDX-License-Identifier: GPL-2.0-or-later
"""Every command of the README's tour is run, in one shell, in the order of the text."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from pathlib import Path

import pytest

from iosd_host.common.held_port import HeldPort

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 120
PORT = "3261"  # as the README has it


def tour() -> str:
    """The blocks marked as the tour."""
    blocks = re.findall(r"^```sh tour\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    assert len(blocks) > 3
    return "\n".join(blocks)


@pytest.mark.tgtd
@pytest.mark.sandbox
def test_tour(tmp_path: Path) -> None:
    environment = os.environ | {"XDG_CONFIG_HOME": str(tmp_path)}
    environment.pop("IOSD_TARGET", None)
    with contextlib.closing(HeldPort("127.0.0.1", 0)) as held:
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", tour().replace(PORT, str(held.port))],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    for words in (
        "ok    module",
        " monday.txt\n",
        "GET /b 404\n",
        "PUT /c 500\n",
        "errors): COMPLETED",
        "/data: clean\n",
    ):
        assert words in done.stdout, f"{words!r} is missing in:\n{done.stdout}{done.stderr}"
