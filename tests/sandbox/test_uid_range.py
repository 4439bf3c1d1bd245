# SPDX-License-Identifier: GPL-2.0-or-later
"""User ids of sandboxes: nobody else's, and checked before the daemon uses them."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from proxy import ROOT, SANDBOXD

PATIENCE_S = 60.0
UID_BASE = 2130706432  # uid_range.h
WITH_FILE = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'


def start_with(tmp_path: Path, file: str, text: str, *options: str) -> subprocess.CompletedProcess:
    """Run the daemon where this file of the host has another text."""
    (tmp_path / "file").write_text(text)
    command = [SANDBOXD, "--socket", tmp_path / "s", "--python-dir", ROOT / "pyosd", *options]
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", WITH_FILE, "sh", tmp_path / "file", file, *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("/etc/subuid", f"# x\nalice:100000:65536\nbob:{UID_BASE - 65536}:65537\n"),
        ("/etc/subgid", f"bob:{UID_BASE + 320}:1"),
        ("/etc/passwd", f"root:x:0:0::/:/bin/sh\nbob:x:{UID_BASE + 7}:0::/:/bin/sh\n"),
        ("/etc/group", f"bob:x:{UID_BASE + 8}:\n"),
    ],
)
def test_ids_that_somebody_has_are_not_used(tmp_path: Path, file: str, text: str) -> None:
    if not Path(file).exists():
        pytest.skip(f"no {file} to replace")
    done = start_with(tmp_path, file, text)
    assert done.returncode == 1
    assert f"{UID_BASE} to {UID_BASE + 320}, are not free: {file} gives" in done.stderr
    assert "'bob'; choose others with --uid-base" in done.stderr
    printed = json.loads(start_with(tmp_path, file, text, "--print-level").stdout)
    assert "'bob'" in printed["uids"]["taken"]
    elsewhere = start_with(tmp_path, file, text, "--print-level", "--uid-base", "2000000000")
    assert json.loads(elsewhere.stdout)["uids"] == {
        "first": 2000000000,
        "last": 2000000320,
        "taken": "",
    }


def test_ids_beside_those_of_others_and_lines_that_are_none(tmp_path: Path) -> None:
    text = (
        f"a:{UID_BASE - 9}:9\nb:{UID_BASE + 321}:65536\nc:{UID_BASE}\n{UID_BASE}:x:9\nd:-1:9\n\n:"
    )
    printed = json.loads(start_with(tmp_path, "/etc/passwd", text, "--print-level").stdout)
    assert printed["uids"]["taken"] == ""


def test_ids_are_none_that_debian_or_systemd_hand_out() -> None:
    source = (ROOT / "sandbox" / "uid_range.h").read_text()
    base = int(re.search(r"OSD_UID_BASE (\d+)u", source)[1])
    assert base == UID_BASE
    for first, last in (  # login.defs; systemd's UIDS-GIDS.md; the ids that sssd computes
        (0, 600100000),
        (524288, 1879048191),
        (200000, 2000200000),
        (2147352576, 4294967295),
    ):
        assert not first <= base <= last
        assert not first <= base + 1024 <= last
