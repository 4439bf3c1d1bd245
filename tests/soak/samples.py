# SPDX-License-Identifier: GPL-2.0-or-later
"""Present use of a serving target: memory, descriptors and threads of its processes, cgroups, locks
of its database, files of its store.

A reading is a flat mapping from the name of a figure to its value, with the life of the process it is
of: a figure starts anew with each life.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import pyosd
from pyosd.types import ROOT, AttributeId
from pyosd.wire.attributes import Page
from tests.processes import zygote_of
from tests.serving import Serving

STORE_FIGURES = {
    5: "database.lockers",
    6: "database.locks",
    7: "database.locked",
    8: "database.transactions",
    9: "tgtd.heap",
}
"""Numbers of root page B000_0002h."""
PROCESSES = ("tgtd", "sandboxd", "zygote")
PER_PROCESS = ("rss", "pss", "descriptors", "threads")


@dataclass
class Sample:
    """One reading.  at: seconds since the run began.  lives: which process a figure is of."""

    at: float
    figures: dict[str, float] = field(default_factory=dict)
    lives: dict[str, int] = field(default_factory=dict)


def memory(pid: int) -> dict[str, float]:
    """Bytes resident, and its share of what it shares.  Raises: OSError: it is gone."""
    found = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        key, _, value = line.partition(":")
        if key in ("Rss", "Pss"):
            found[key.lower()] = float(value.split()[0]) * 1024
    if not found:
        raise ProcessLookupError(pid)
    return found


def process_figures(name: str, pid: int) -> dict[str, float]:
    """The figures of one process.  Raises: OSError: it is gone."""
    found = {f"{name}.{key}": value for key, value in memory(pid).items()}
    for figure, folder in (("descriptors", "fd"), ("threads", "task")):
        found[f"{name}.{figure}"] = float(sum(1 for _ in Path(f"/proc/{pid}/{folder}").iterdir()))
    return found


def cgroups_of(sandboxd: int) -> int:
    """Folders of this iosd-sandboxd, in all hierarchies."""
    name = f"iosd-sandboxd-{sandboxd}"
    return sum(f"/{name}" in folder for folder, _, _ in os.walk("/sys/fs/cgroup"))


def files_below(folder: Path) -> tuple[int, int, int]:
    """Files, log files of the database, and the bytes of all on disk."""
    files = logs = space = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                info = os.lstat(os.path.join(where, name))  # noqa: PTH118 -- a file may go meanwhile
            except FileNotFoundError:
                continue
            files += 1
            logs += name.startswith("log.")
            space += info.st_blocks * 512
    return files, logs, space


class Sampler:
    """Reads one target.  session: kept open; made anew when it was lost."""

    def __init__(self, serving: Serving) -> None:
        self.serving, self.begin = serving, time.monotonic()
        self.session: pyosd.Target | None = None

    def close(self) -> None:
        if self.session is not None:
            self.session.close()

    def read(self) -> Sample:
        """The existing parts; a part that is being restarted is left out."""
        sample = Sample(time.monotonic() - self.begin)
        pids: dict[str, int | None] = {
            "tgtd": self.serving.pids.get("tgtd"),
            "sandboxd": self.serving.pids.get("iosd-sandboxd"),
        }
        sandboxd = pids["sandboxd"]
        pids["zygote"] = zygote_of(sandboxd) if sandboxd else None
        for name, pid in pids.items():
            if pid is None:
                continue
            try:
                found = process_figures(name, pid)
            except OSError:
                continue
            sample.figures |= found
            sample.lives |= dict.fromkeys(found, pid)
        if sandboxd:
            self.add(sample, "sandboxd.cgroups", cgroups_of(sandboxd), sandboxd)
        files, logs, space = files_below(self.serving.data)
        self.add(sample, "store.files", files)
        self.add(sample, "store.logs", logs)
        self.add(sample, "store.bytes", space)
        for name, value in self.told().items():
            self.add(sample, name, value, pids["tgtd"] or 0)
        return sample

    @staticmethod
    def add(sample: Sample, name: str, value: float, life: int = 0) -> None:
        sample.figures[name] = float(value)
        sample.lives[name] = life

    def told(self) -> dict[str, float]:
        """Locks, heap and the like as the target tells; nothing while it is being restarted."""
        wanted = [AttributeId(Page.STORE_ROOT, number) for number in STORE_FIGURES]
        try:
            if self.session is None:
                self.session = self.serving.connect(reconnect_timeout=5.0)
            values = self.session.get_attributes(ROOT, wanted)
        except pyosd.Unreachable:
            return {}
        return {STORE_FIGURES[each.number]: each.uint for each in values}
