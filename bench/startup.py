# SPDX-License-Identifier: GPL-2.0-or-later
"""The start-up time of a command of `osd`.

Python keeps compiled modules, as it does for everybody who has installed the program: the warm-up of each
row writes them. A variable of the environment that forbids this does not reach the processes measured.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyosd
from bench.plan import Plan
from bench.required import REQUIRED
from bench.stats import REPORTED, Row, compare
from bench.target import SOURCE, BenchTarget, bench_target

PROGRAM = "from osd_program import main; main()"
NOTHING = [sys.executable, "-c", "pass"]
VERSION_S, EXEC_S = 0.1, 0.15  # the aims


def timed(command: list[str], environment: dict[str, str]) -> float:
    """Seconds that a command takes."""
    start = time.perf_counter()
    with subprocess.Popen(
        command, cwd=SOURCE, env=environment, stdout=subprocess.DEVNULL
    ) as process:
        # wait(timeout) would ask in steps of up to 50 ms
        hung = threading.Timer(60, process.kill)
        hung.start()
        code = process.wait()
        seconds = time.perf_counter() - start
        hung.cancel()
    if code:
        raise subprocess.CalledProcessError(code, command)
    return seconds


def osd(*words: str) -> list[str]:
    """A command of `osd`."""
    return [sys.executable, "-c", PROGRAM, *words]


def keeping_bytecode() -> dict[str, str]:
    """The environment of the processes that are measured."""
    left_out = {"PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"}
    return {name: value for name, value in os.environ.items() if name not in left_out}


def rows(plan: Plan) -> Iterator[Row]:
    """cli_version, cli_help, cli_exec_noop."""
    here = keeping_bytecode()

    def side(command: list[str]) -> Callable[[], float]:
        return lambda: timed(command, here)

    yield compare(
        "cli_version",
        side(osd("--version")),
        lambda: VERSION_S,
        REQUIRED["cli"]["cli_version"],
        f"osd --version against {VERSION_S * 1000:.0f} ms",
        pairs=plan.many_pairs,
    )
    yield compare(
        "cli_help",
        side(osd("exec", "--help")),
        side(NOTHING),
        REPORTED,
        "osd exec --help against python3 -c pass",
        pairs=plan.many_pairs,
    )
    with bench_target() as target, pyosd.connect(target.url) as session:
        yield exec_row(target, session, here, plan.many_pairs)


def exec_row(target: BenchTarget, session: pyosd.Target, here: dict[str, str], pairs: int) -> Row:
    """cli_exec_noop: the same job from a connected process is taken off, its round trips and its run."""
    script = Path(target.folder) / "noop.py"
    script.write_text("pass\n")
    command, there = osd("exec", "--wait", str(script)), here | {"IOSD_TARGET": target.url}

    def beyond_round_trips() -> float:
        start = time.perf_counter()
        session.exec(b"pass\n", zone=pyosd.ROOT).wait(60)
        round_trips = time.perf_counter() - start
        return timed(command, there) - round_trips

    return compare(
        "cli_exec_noop",
        beyond_round_trips,
        lambda: EXEC_S,
        REQUIRED["cli"]["cli_exec_noop"],
        "osd exec --wait of an empty script, less the same from a connected process, "
        f"against {EXEC_S * 1000:.0f} ms",
        pairs=pairs,
    )
