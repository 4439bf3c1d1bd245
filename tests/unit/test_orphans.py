# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs of a test run end with it, also if it is killed."""

from __future__ import annotations

import signal
import subprocess
import sys

from tests.processes import ROOT, Watch

RUN = """
import sys, time
from tests import warm
program = warm.Python(["python", "-c", "import time; time.sleep(1000)"])
ended = warm.Python(["python", "-c", ""])
ended.wait()
print(program.pid, flush=True)
time.sleep(1000)
"""


def test_the_programs_of_a_killed_run_end() -> None:
    watch = Watch()
    with subprocess.Popen(
        [sys.executable, "-c", RUN], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None
        watch.add({int(run.stdout.readline())})
        run.send_signal(signal.SIGKILL)
    left = watch.wait_gone()
    watch.kill()
    assert not left
