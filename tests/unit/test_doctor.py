# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd doctor` shows every layer of the sandboxes, and what to do about one that is missing."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from iosd_host.common import paths
from iosd_host.serve.doctor import REMEDIES, examine, layer_findings
from tests.machine import unavailable
from tests.serving import sandboxes_missing

TOP = Path(__file__).parents[2]
NAMES = re.findall(r'X\(\w+,\s+"(\w+)"', (TOP / "sandbox" / "layers.h").read_text())


@pytest.fixture(autouse=True)
def sandboxes() -> None:
    why = sandboxes_missing()
    if why:
        unavailable("sandbox", why)


def test_every_layer() -> None:
    shown = {each.layer: each for each in examine() if each.layer.startswith("isolation ")}
    assert [*shown] == [f"isolation {name}" for name in NAMES]
    for each in shown.values():
        assert each.detail
        assert bool(each.hint) == (each.state != "ok"), each


def test_every_layer_can_be_mended() -> None:
    assert [*REMEDIES] == NAMES


def test_what_an_ordinary_user_lacks(tmp_path: Path) -> None:
    """The daemon's own answer, asked for without rights."""
    program = tmp_path / "iosd-sandboxd"  # where others may look
    program.write_bytes(paths.find_component(paths.SANDBOXD).read_bytes())
    program.chmod(0o755)
    for folder in (tmp_path, *tmp_path.parents[:3]):
        if folder != Path("/tmp"):
            folder.chmod(0o755)
    command = ["setpriv", "--reuid", "65534", "--clear-groups", str(program), "--print-level"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = {each.layer: each for each in layer_findings(json.loads(done.stdout))}
    for name in ("uid", "cgroup_memory", "cgroup_pids"):
        finding = found[f"isolation {name}"]
        assert finding.state == "warn"
        assert re.match(r"[A-Z][a-z ]+; missing: ", finding.detail), finding
        assert "run as root" in finding.hint
    assert found["isolation seccomp"].state == "ok"
