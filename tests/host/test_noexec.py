# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd target serve` where /run is mounted with noexec, as Debian's is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from iosd_host.common import paths
from tests.serving import SERVE

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = ("--portal", "127.0.0.1:0", "--no-sandboxes", "--no-manager", "-o", "json")


def programs_of(ready: str) -> Path:
    """The folder that a target has made for its programs; other tests' targets make others there."""
    maps = Path(f"/proc/{json.loads(ready)['pids']['tgtd']}/maps").read_text().splitlines()
    (module,) = {line.split()[-1] for line in maps if line.endswith(f"/{paths.MODULE.name}")}
    return Path(module).parent


@pytest.mark.tgtd
@pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")
@pytest.mark.parametrize("folders", [("/run",), ("/run", "/tmp", "/var/tmp")])
def test_a_target_without_programs_in_run(tmp_path: Path, folders: tuple[str, ...]) -> None:
    mounts = " && ".join(f"mount -t tmpfs -o noexec,mode=1777 tmpfs {each}" for each in folders)
    command = [sys.executable, "-c", SERVE, "--data", "/run/store", *OPTIONS]
    with subprocess.Popen(
        ["unshare", "-m", "sh", "-ec", f'{mounts}\nexec "$@"', "sh", *command],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "IOSD_RUN"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        if len(folders) > 1:
            assert process.wait(60) == 78
            assert "are mounted with noexec" in process.stderr.read()
            return
        line = process.stdout.readline()
        made = programs_of(line) if '"event": "ready"' in line else None
        process.terminate()
        errors = process.stderr.read()
        assert made is not None, errors
        assert process.wait(60) == 0
    assert made.parent in (Path("/tmp"), Path("/var/tmp")), made
    assert not made.exists(), "the copies of the programs are left"
