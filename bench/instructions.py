# SPDX-License-Identifier: GPL-2.0-or-later
"""Instructions of the target for one command of each hot path, against those of this release: a figure
that a busy machine does not change.

`python -m bench.instructions` prints them; with --renew they become the references, which
bench/instructions.json holds and tests/bench/test_instructions.py guards.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
import os
import platform
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from bench import callgrind
from bench.callgrind import Case, Profile
from bench.plan import Plan
from bench.stats import Row, at_most, missing, row_of_pairs
from pyosd import requests
from pyosd.commands import Commands
from pyosd.errors import TargetBusy
from pyosd.types import AttributeId, AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists, AttributePage, Request
from pyosd.wire.exec_params import ExecFlag, ExecParams
from pyosd.wire.job_status import POLL_ROOM
from pyosd.wire.names import NameParams, NameVerb
from tests.harness_transport import HarnessTransport
from tests.jobs.conftest import Target

TREE = Path(__file__).resolve().parents[1] / "build" / "target"
HARNESS = TREE / "osd_harness"
REFERENCES = Path(__file__).with_name("instructions.json")
BYTES = b"\xa5" * 4096
VALUE = AttributeValue(0xA, 1, b"\xa5" * 8)
LEAST = 5  # instructions of a function that the references name


def _object(osd: Commands) -> ObjectRef:
    obj = osd.create(osd.create_partition())
    osd.write(obj, 0, BYTES)
    osd.set_attributes(obj, [VALUE])
    return obj


def _read(osd: Commands) -> Callable[[], object]:
    return partial(osd.call, requests.read(_object(osd), 0, len(BYTES)))


def _write(osd: Commands) -> Callable[[], object]:
    return partial(osd.call, requests.write(_object(osd), 0, BYTES))


def _get(osd: Commands) -> Callable[[], object]:
    lists = AttributeLists(get=(AttributeId(VALUE.page, VALUE.number),))
    return partial(osd.call, requests.get_attributes(_object(osd), attributes=lists))


def _set(osd: Commands) -> Callable[[], object]:
    lists = AttributeLists(set=(VALUE,))
    return partial(osd.call, requests.set_attributes(_object(osd), attributes=lists))


def _create(osd: Commands) -> Callable[[], object]:
    return partial(osd.create, osd.create_partition())


def _name_create(osd: Commands) -> Callable[[], object]:
    root, numbers = ref(osd.create_partition()), itertools.count()
    return lambda: osd.call(_naming(root, NameVerb.CREATE, next(numbers)))


def _name_rename(osd: Commands) -> Callable[[], object]:
    root, numbers = ref(osd.create_partition()), itertools.count(1)
    osd.call(_naming(root, NameVerb.CREATE, 0))

    def once() -> None:
        number = next(numbers)
        osd.call(_naming(root, NameVerb.RENAME, number - 1, number))

    return once


def _name_lookup(osd: Commands) -> Callable[[], object]:
    root = ref(osd.create_partition())
    for depth in range(1, 5):
        osd.make_directory(root, "/".join(["directory"] * depth))
    path = "/".join(["directory"] * 4 + ["file"])
    osd.create_name(root, path)
    return partial(osd.call, requests.names(root, NameParams(NameVerb.LOOKUP, path.encode())))


def _naming(root: ObjectRef, verb: NameVerb, number: int, other: int | None = None) -> Request:
    second = b"" if other is None else b"name%08d" % other
    return requests.names(root, NameParams(verb, b"name%08d" % number, second))


def _poll(osd: Commands) -> Callable[[], object]:
    zone = ref(osd.create_partition())
    job = osd.exec_code(zone, b"pass", ExecParams(flags=ExecFlag.HOLD)).job
    assert job is not None
    page = AttributePage(Page.JOB_STATUS, POLL_ROOM)
    return partial(osd.call, requests.get_attributes(job, attributes=page))


def _accept(osd: Commands) -> Callable[[], object]:
    return partial(osd.exec_code, ref(osd.create_partition()), b"pass")


def _noop(osd: Commands) -> Callable[[], object]:
    zone = ref(osd.create_partition())

    def once() -> None:
        while True:  # under callgrind sandboxes may take their time
            try:
                osd.exec_code(zone, b"pass", synchronous=True)
                return
            except TargetBusy:
                time.sleep(0.01)

    return once


COMMANDS: Mapping[str, Case] = {
    "instructions_read_4k": _read,
    "instructions_write_4k": _write,
    "instructions_get_attribute": _get,
    "instructions_set_attribute": _set,
    "instructions_create": _create,
    "instructions_name_create": _name_create,
    "instructions_name_rename": _name_rename,
    "instructions_name_lookup": _name_lookup,
    "instructions_poll": _poll,
    "instructions_exec_accept": _accept,
}
JOBS: Mapping[str, Case] = {"instructions_exec_noop": _noop}
TOLERANCES = dict.fromkeys(COMMANDS, 0.03) | dict.fromkeys(JOBS, 0.08)
"""How far a count may lie above its reference: three times what runs differ by, and more."""


# ---- counting ------------------------------------------------------------------------------------


def count_commands() -> dict[str, Profile]:
    """Of COMMANDS."""
    return count_cases(COMMANDS)


def count_cases(cases: Mapping[str, Case]) -> dict[str, Profile]:
    """Count commands over the harness alone, with a new store."""
    with tempfile.TemporaryDirectory(prefix="iosd-bench-") as name:
        folder = Path(name)
        (folder / "store").mkdir()
        argv = [*callgrind.argv(folder / "out"), str(HARNESS)]
        options = f"dir={folder / 'store'};cache=16MiB;workers=1"
        with HarnessTransport([*argv, options], subprocess.DEVNULL) as transport:
            return callgrind.count(Commands(transport), cases, folder / "out")


def count_jobs() -> dict[str, Profile]:
    """Of JOBS, with an iosd-sandboxd beside the harness; needs root."""
    with (
        tempfile.TemporaryDirectory(prefix="iosd-bench-") as name,
        Path(os.devnull).open("wb") as log,
    ):
        folder = Path(name)
        program = [*callgrind.argv(folder / "out"), str(HARNESS)]
        target = Target(folder, ";workers=1", program=program, stderr=log)
        try:
            return callgrind.count(target.commands, JOBS, folder / "out")
        finally:
            target.stop()


# ---- references ----------------------------------------------------------------------------------


def _build() -> str:
    """Compiler and settings of the harness."""
    found = re.findall(rb"(?:GCC: |clang version )[^\0]*", HARNESS.read_bytes())
    cache = dict(
        line.split("=", 1)
        for line in (TREE / "CMakeCache.txt").read_text().splitlines()
        if "=" in line
    )
    settings = ("CMAKE_BUILD_TYPE:STRING", "CMAKE_C_FLAGS:STRING", "IOSD_SANITIZE:STRING")
    names = sorted({re.sub(r"[^\d]* \(.*?\)|-.*", "", text.decode()) for text in found})
    return " ".join([*names, *(cache.get(setting, "") for setting in settings)]).strip()


def made_of() -> dict[str, str]:
    """Conditions other than the source on which counts depend.  Patches of a distribution do not
    tell."""
    database = ctypes.CDLL("libdb-5.3.so")
    database.db_version.restype = ctypes.c_char_p
    version = database.db_version(None, None, None).decode()
    return {
        "machine": platform.machine(),
        "build": _build(),
        "libc": os.confstr("CS_GNU_LIBC_VERSION") or "",
        "database": version.partition(":")[0],
    }


def references() -> dict[str, Any]:
    """The file: "made_of", and "cases" with "instructions" and "functions" of each."""
    found: dict[str, Any] = json.loads(REFERENCES.read_text())
    return found


def unavailable() -> str:
    """Why nothing can be compared here; "": it can."""
    if why := callgrind.unavailable():
        return why
    theirs, ours = references()["made_of"], made_of()
    differ = [
        f"{name}: {ours[name]}, not {theirs[name]}" for name in ours if ours[name] != theirs[name]
    ]
    return "the references were counted with another " + "; ".join(differ) if differ else ""


def grown(profile: Profile, reference: Mapping[str, Any], most: int = 5) -> list[str]:
    """The functions that take the most instructions more than in the reference."""
    before: Mapping[str, float] = reference["functions"]
    more = {name: cost - before.get(name, 0) for name, cost in profile.functions.items()}
    first = sorted(more, key=lambda name: -more[name])[:most]
    return [f"{name} {before.get(name, 0):,.0f} + {more[name]:,.0f}" for name in first]


# ---- words ---------------------------------------------------------------------------------------


def rows(_plan: Plan) -> Iterator[Row]:
    """A row for each of COMMANDS and JOBS."""
    why = unavailable()
    known = {} if why else references()["cases"]
    for cases, counted in ((COMMANDS, count_commands), (JOBS, count_jobs)):
        if not why and cases is JOBS and os.geteuid() != 0:
            why = "sandboxes need root"
        found = {} if why else counted()
        for name in cases:
            aim = at_most(1 + TOLERANCES[name])
            if why:
                yield missing(name, aim, why)
                continue
            pair = (found[name].instructions, known[name]["instructions"])
            method = (
                f"callgrind, mean of {callgrind.TIMES} commands; baseline: this release's count"
            )
            yield row_of_pairs(name, [pair], aim, method, unit="instr")


def main() -> None:
    """Count, print, and with --renew write the references."""
    parser = argparse.ArgumentParser(prog="bench.instructions", description=__doc__)
    parser.add_argument("--renew", action="store_true", help=f"write {REFERENCES.name}")
    options = parser.parse_args()
    found = count_commands() | count_jobs()
    for name, profile in found.items():
        print(f"{name:<30}{profile.instructions:>10,.0f}")
    if options.renew:
        cases = {
            name: {
                "instructions": round(profile.instructions),
                "functions": {n: round(c) for n, c in profile.functions.items() if c >= LEAST},
            }
            for name, profile in found.items()
        }
        text = json.dumps({"made_of": made_of(), "cases": cases}, indent=1)
        REFERENCES.write_text(text + "\n")


if __name__ == "__main__":
    main()
