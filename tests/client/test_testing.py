# SPDX-License-Identifier: GPL-2.0-or-later
"""pyosd.testing where its target does not behave; where it does: tests/sandbox/test_two_ends.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pyosd import testing

STUBBORN = (
    "import signal; signal.signal(15, signal.SIG_IGN); print('x', flush=True); signal.pause()"
)
LOG = """\
2026-11-23T01:00:00.000Z iosd-supervisor info: ending iosd-manager
2026-11-23T01:00:00.100Z iosd-supervisor info: ending tgtd
tgtd | 2026-11-23T01:00:01.000Z iosd info: not yet
"""


def test_a_target_that_does_not_end_says_what_it_was_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(testing, "STOP_S", 0.1)
    (tmp_path / "log").write_text(LOG)
    process = subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline()
    with pytest.raises(RuntimeError, match=r"had not ended 0.1 s after SIGTERM: .*: ending tgtd$"):
        testing.stop(process, tmp_path / "log")
    assert process.returncode == -9
