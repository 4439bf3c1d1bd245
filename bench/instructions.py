# SPDX-License-Identifier: GPL-2.0-or-later
"""Instructions of the target for one command: a figure that a busy machine does not change, to see what
a change costs.  Counted by callgrind (Debian: valgrind) over the harness; the references were counted
on Debian 12 with this tree's own flags.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.plan import Plan
from bench.stats import Row, at_most, missing, row_of_pairs
from pyosd import requests
from pyosd.attributes import Page
from pyosd.cdb import AttributePage
from pyosd.commands import Commands
from pyosd.exec_params import ExecFlag, ExecParams
from pyosd.job_status import POLL_ROOM
from pyosd.types import ref
from tests.harness_transport import HarnessTransport

HARNESS = Path(__file__).resolve().parents[1] / "build" / "target" / "osd_harness"
AIM = 1.1
FEW, MANY = 20, 120  # how often the command is sent; the difference counts
READ_BYTES = 4096

Act = Callable[[Commands], Callable[[], object]]


def _read(osd: Commands) -> Callable[[], object]:
    obj = osd.create(osd.create_partition())
    osd.write(obj, 0, b"\xa5" * READ_BYTES)
    request = requests.read(obj, 0, READ_BYTES)
    return lambda: osd.call(request)


def _poll(osd: Commands) -> Callable[[], object]:
    zone = ref(osd.create_partition())
    job = osd.exec_code(zone, b"pass", ExecParams(flags=ExecFlag.HOLD)).job
    assert job is not None
    page = AttributePage(Page.JOB_STATUS, POLL_ROOM)
    request = requests.get_attributes(job, attributes=page)
    return lambda: osd.call(request)


def _accept(osd: Commands) -> Callable[[], object]:
    zone = ref(osd.create_partition())
    return lambda: osd.exec_code(zone, b"pass")


CASES: dict[str, tuple[Act, int]] = {
    "instructions_read_4k": (_read, 4_600),
    "instructions_poll": (_poll, 5_200),
    "instructions_exec_accept": (_accept, 170_000),
}


def _collected(act: Act, count: int) -> int:
    """Instructions from the start of a harness to its end, with so many commands between."""
    with tempfile.TemporaryDirectory(prefix="iosd-bench-") as name, tempfile.TemporaryFile() as log:
        folder = Path(name)
        (folder / "store").mkdir()
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={folder / 'out'}"]
        command += [str(HARNESS), f"dir={folder / 'store'};cache=16MiB;workers=1"]
        transport = HarnessTransport(command, log)
        try:
            once = act(Commands(transport))
            for _ in range(count):
                once()
        finally:
            transport.close()
        log.seek(0)
        found = re.search(rb"Collected : (\d+)", log.read())
        if not found:
            raise RuntimeError("callgrind counted nothing")
        return int(found[1])


def rows(_plan: Plan) -> Iterator[Row]:
    """instructions_read_4k, instructions_poll, instructions_exec_accept."""
    for row_id, (act, reference) in CASES.items():
        if not shutil.which("valgrind"):
            yield missing(row_id, at_most(AIM), "valgrind is not installed")
            continue
        try:
            count = (_collected(act, MANY) - _collected(act, FEW)) / (MANY - FEW)
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            yield missing(row_id, at_most(AIM), str(error))
            continue
        method = f"callgrind over {MANY} commands less {FEW}; baseline: this release's count"
        yield row_of_pairs(row_id, [(count, reference)], at_most(AIM), method, unit="instr")
