# SPDX-License-Identifier: GPL-2.0-or-later
"""The start-up time of a command of `osd`, against an interpreter that does nothing.

The baseline of cli_exec_noop submits the same script and waits for it in a process that is connected
already, so that the difference is what the program itself takes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyosd
from bench.plan import Plan
from bench.stats import REPORTED, Row, compare
from bench.target import SOURCE, bench_target

PROGRAM = "from osd_program import main; main()"
NOTHING = [sys.executable, "-c", "pass"]


def timed(command: list[str], environment: dict[str, str]) -> float:
    """Seconds that a command takes."""
    start = time.perf_counter()
    subprocess.run(
        command, cwd=SOURCE, env=environment, check=True, stdout=subprocess.DEVNULL, timeout=60
    )
    return time.perf_counter() - start


def osd(*words: str) -> list[str]:
    """A command of `osd`."""
    return [sys.executable, "-c", PROGRAM, *words]


def rows(plan: Plan) -> Iterator[Row]:
    """cli_version, cli_help, cli_exec_noop."""
    here = dict(os.environ)

    def side(command: list[str], environment: dict[str, str]) -> Callable[[], float]:
        return lambda: timed(command, environment)

    for name, words in (("cli_version", ["--version"]), ("cli_help", ["exec", "--help"])):
        yield compare(
            name,
            side(osd(*words), here),
            side(NOTHING, here),
            REPORTED,
            f"osd {' '.join(words)} against python3 -c pass",
            pairs=plan.many_pairs,
        )
    with bench_target() as target, pyosd.connect(target.url) as session:
        script = Path(target.folder) / "noop.py"
        script.write_text("pass\n")

        def round_trips() -> float:
            start = time.perf_counter()
            session.exec(b"pass\n", zone=pyosd.ROOT).wait(60)
            return time.perf_counter() - start

        yield compare(
            "cli_exec_noop",
            side(osd("exec", "--wait", str(script)), here | {"IOSD_TARGET": target.url}),
            round_trips,
            REPORTED,
            "osd exec --wait of an empty script against the same from a connected process",
            pairs=plan.many_pairs,
        )
