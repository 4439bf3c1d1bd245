# SPDX-License-Identifier: GPL-2.0-or-later
"""Instructions of the target for one command, by function: osd_harness under callgrind (Debian: valgrind).

Only what serves commands counts: callgrind collects between entering and leaving the functions of
COUNTED, whichever thread calls them.  So neither the pipes of the harness nor checkpoints of the database
are in it, and a run that shares its processor counts the same.  FLUSH OSD ends one count and begins the
next, so that one start of the harness serves all.
"""

from __future__ import annotations

import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyosd import requests
from pyosd.commands import Commands

COUNTED = (
    "osd_unit_try",
    "osd_unit_submit",
    "osd_dispatch",
    "osd_dispatch_resumed",
    "osd_proxy_work",
)
MARK = "osd_cmd_flush_osd"
WARM, TIMES = 20, 100
PAUSE_S = 0.0002  # a command that follows the last one at once may have to go to a worker
ENVIRONMENT = (
    # libc selects its copy of memcpy and similar functions by the processor. Here it is always the
    # oldest.
    "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX2,-AVX_Fast_Unaligned_Load,-ERMS,-FSRM,"
    "-SSSE3,-SSE4_1,-SSE4_2",
    "IOSD_LOG_LEVEL=error",
)
# A name, or an object, comes with the first use of its number.
NAMED = re.compile(r"(c?)(fn|ob)=\((\d+)\)(?: (.*))?")

Case = Callable[[Commands], Callable[[], object]]
"""Prepares a command and returns what sends it once."""


@dataclass(frozen=True)
class Profile:
    """Instructions of one command: all of them, and those of each function's own code."""

    instructions: float
    functions: Mapping[str, float]


def unavailable() -> str:
    """Why nothing can be counted here; "": it can."""
    return "" if shutil.which("valgrind") else "valgrind is not installed: apt-get install valgrind"


def argv(out: Path) -> list[str]:
    """The command line before the harness. out: folder of profiles."""
    return [
        *("env", *ENVIRONMENT, "valgrind", "--tool=callgrind"),
        *(f"--callgrind-out-file={out}", f"--dump-before={MARK}"),
        *(f"--toggle-collect={function}" for function in COUNTED),
    ]


def count(osd: Commands, cases: Mapping[str, Case], out: Path) -> dict[str, Profile]:
    """Send each command WARM and then TIMES times to a harness that was started with argv(out)."""
    for case in cases.values():
        once = case(osd)
        for times in (WARM, TIMES):
            for _ in range(times):
                time.sleep(PAUSE_S)
                once()
            osd.call(requests.flush_osd())
    # Profile 2 n + 1 is of what warmed the n-th case up, 2 n + 2 of what counts.
    return {name: _read(out.with_name(f"{out.name}.{2 * n + 2}")) for n, name in enumerate(cases)}


def _place(function: str, library: str) -> str:
    """One name of a function for all machines. Functions of the C library have names only with its
    symbols."""
    if function.startswith("0x") or library.startswith(("libc.", "ld-linux")):
        return library
    return function.partition("'")[0]


def _costs(path: Path) -> Iterator[tuple[str, int]]:
    names: dict[tuple[str, str], str] = {}
    here = {"fn": "", "ob": ""}
    called = False
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            if found := NAMED.match(line):
                called_there, kind, number, name = found.groups()
                name = names.setdefault((kind, number), name)
                if not called_there:
                    here[kind] = name
            elif line.startswith("calls="):
                called = True  # the next line is what was spent there, not here
            elif here["fn"] and line[:1] in "0123456789+-*":
                if not called:
                    yield _place(here["fn"], Path(here["ob"]).name), int(line.split()[1])
                called = False


def _read(path: Path) -> Profile:
    totals: Counter[str] = Counter()
    for function, cost in _costs(path):
        totals[function] += cost
    functions = {name: cost / TIMES for name, cost in totals.most_common()}
    return Profile(sum(totals.values()) / TIMES, functions)
