# SPDX-License-Identifier: GPL-2.0-or-later
"""`python -m tests.soak`: run a soak, say what it shows; exit 0 flat, 1 something grows or went wrong,
3 nothing grows but the run was too short to be sure of all."""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

from tests.serving import Serving, missing, sandboxes_missing
from tests.soak import report
from tests.soak.run import Outcome, Soak

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--hours", type=float, default=2.0, help="how long (default: 2)")
    parser.add_argument("--seed", type=int, help="repeat the choices of a run")
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "soak.json")
    parser.add_argument("--plot", type=Path, default=ROOT / "build" / "soak.png")
    parser.add_argument("--read", type=Path, help="judge the readings of an earlier run instead")
    arguments = parser.parse_args()
    if arguments.read:
        return told(report.read_json(arguments.read), arguments.json, arguments.plot)
    why = missing() or sandboxes_missing()
    if why:
        print(f"no soak here: {why}", file=sys.stderr)
        return 2
    seed = random.SystemRandom().getrandbits(32) if arguments.seed is None else arguments.seed
    print(f"seed {seed} (--seed={seed} repeats its choices)", flush=True)
    # A cache that is full after the warm-up: else it fills all the run long, which looks like a leak.
    cache = ("--module-option", "cache=16MiB")
    with Serving("--isolation", "best", "--slots", "3", *cache) as serving:
        outcome = Soak(
            serving, arguments.hours * 3600, seed, lambda text: print(text, flush=True)
        ).run()
    return told(outcome, arguments.json, arguments.plot)


def told(outcome: Outcome, readings: Path, plot: Path) -> int:
    """Say what a run showed, write readings and plot; returns the exit code."""
    print("\n".join(report.lines(outcome)))
    report.write_json(outcome, readings)
    report.plot(outcome, plot)
    return report.code(outcome)


if __name__ == "__main__":
    sys.exit(main())
