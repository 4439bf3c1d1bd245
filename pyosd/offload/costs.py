# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of scripts at this client, and the speed of its links, learned from its own runs.

The user's file $XDG_CACHE_HOME/iosd/costs.json, of limited size, has the costs.  A file that cannot be read
is ignored.  If it cannot be written, the costs last as long as the process.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pyosd.user_folder import user_folder
from pyosd.wire.exec_params import HomeCost

__all__ = ["FIRST", "CostLine", "Costs"]

SCHEMA = "iosd.costs/1"
SCRIPTS_MOST, LINKS_MOST = 256, 64
KEPT = 0.8  # of the weight of earlier points, with each new one
APART = 0.05  # points whose variance is below this part of the square have no slope
FASTER = 0.8  # of the expected time: earlier runs at the client have then shared it with other work
TRIED = 40.0  # seconds of runs in one place for each second that a try of the other may cost
LEAD_LEAST = 0.1  # of the time of a run: places that differ by less are tried as if by this
FIRST = "first"  # a try at the client, where the script has never run
START = 0.05  # seconds a process takes that was started ahead, before there is a measure
LINK_AGE = 3600.0  # seconds after which a link is measured again
SAVE_AGE = 1.0  # seconds after which the file is written again
SIZE_AGE = 1.0  # seconds after which the size of a zone is asked for again


@dataclass
class CostLine:
    """A line through points, which rises and begins at 0 or above.  Later points count more.

    If all points have about the same x, the line goes through the origin.
    """

    count: float = 0.0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0

    def add(self, x: float, y: float) -> None:
        """Add a point."""
        new = {"count": 1.0, "x": x, "y": y, "xx": x * x, "xy": x * y}
        for name, value in new.items():
            setattr(self, name, KEPT * getattr(self, name) + value)

    def at(self, x: float) -> float:
        """The line at x; 0.0: no point is known.  x of 0 or less: the line at the mean."""
        if not self.count:
            return 0.0
        mean_x, mean_y = self.x / self.count, self.y / self.count
        if x <= 0 or mean_x <= 0:
            return mean_y
        slope, start = mean_y / mean_x, 0.0
        variance = self.xx / self.count - mean_x * mean_x
        if variance > APART * mean_x * mean_x:
            slope = min(max((self.xy / self.count - mean_x * mean_y) / variance, 0.0), slope)
            start = mean_y - slope * mean_x
        return start + slope * x


@dataclass
class ScriptCost:
    """The costs of one script.

    reads: bytes that it reads, by bytes of its zone.  near, home: seconds, by bytes that it reads.
    place: of the latest runs.  spent: seconds that they took since one was elsewhere.  lead: seconds by
    which the latest was expected to be sooner than elsewhere; 0.0: not known.
    first: "due": it may take as long at the client, where it has never run; "done": that was tried;
    "fails": it fails there, and ends well near the data.
    """

    used: float = 0.0
    reads: CostLine = field(default_factory=CostLine)
    near: CostLine = field(default_factory=CostLine)  # processor seconds
    home: CostLine = field(default_factory=CostLine)
    place: str = ""
    spent: float = 0.0
    lead: float = 0.0
    first: str = ""


@dataclass
class LinkCost:
    """Seconds by bytes received, when they were measured, and how long that took."""

    used: float = 0.0
    line: CostLine = field(default_factory=CostLine)
    took: float = 0.0


def costs_file() -> Path:
    """The file of the costs."""
    return user_folder("XDG_CACHE_HOME", ".cache") / "iosd/costs.json"


class Costs:
    """The learned costs.  clock: seconds since 1970."""

    def __init__(self, file: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        self.file, self.clock = file or costs_file(), clock
        self.scripts: dict[str, ScriptCost] = {}
        self.links: dict[str, LinkCost] = {}
        self.saved = 0.0
        self.sized = ("", 0, 0.0)  # a zone, its size, and when that was asked for
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
            self._read(json.loads(self.file.read_text()))

    def _read(self, kept: dict[str, Any]) -> None:
        if kept["schema"] != SCHEMA:
            return
        for sha256, found in kept["scripts"].items():
            lines = [CostLine(**found[name]) for name in ("reads", "near", "home")]
            self.scripts[sha256] = script = ScriptCost(float(found["used"]))
            script.reads, script.near, script.home = lines
            script.place, script.lead = found.get("place", ""), found.get("lead", 0.0)
            script.spent, script.first = found.get("spent", 0.0), found.get("first", "")
        for url, found in kept["links"].items():
            line = CostLine(**found["line"])
            self.links[url] = LinkCost(float(found["used"]), line, found.get("took", 0.0))

    def save(self, at_once: bool = False) -> None:
        """Write the file, whole or not at all.  Unless at_once, it is written once a second at most."""
        if not at_once and self.saved <= self.clock() < self.saved + SAVE_AGE:
            return
        self.saved = self.clock()
        for known, most in ((self.scripts, SCRIPTS_MOST), (self.links, LINKS_MOST)):
            for name in sorted(known, key=lambda each: known[each].used)[: len(known) - most]:
                del known[name]
        text = json.dumps(
            {
                "schema": SCHEMA,
                "scripts": {name: asdict(each) for name, each in self.scripts.items()},
                "links": {name: asdict(each) for name, each in self.links.items()},
            }
        )
        with contextlib.suppress(OSError):
            self.file.parent.mkdir(parents=True, exist_ok=True)
            new = self.file.with_name(f"{self.file.name}.{os.getpid()}")
            new.write_text(text)
            new.replace(self.file)

    @staticmethod
    def name(code: bytes) -> str:
        """The key of a script, by its code as it is sent."""
        return hashlib.sha256(code).hexdigest()

    def _script(self, sha256: str) -> ScriptCost:
        script = self.scripts.setdefault(sha256, ScriptCost())
        script.used = self.clock()
        return script

    # ---- what a script will cost ----------------------------------------------------------------

    def cost(self, url: str, sha256: str, size: int) -> HomeCost:
        """Of a script over a zone of so many bytes; seconds 0.0: it is not known, or the script fails."""
        script, link = self.scripts.get(sha256), self.links.get(url)
        if script is None or not script.reads.count:
            return HomeCost()
        reads = script.reads.at(size)
        if script.first == "fails":
            return HomeCost(0.0, round(reads))
        if script.home.count:
            return HomeCost(script.home.at(reads), round(reads))
        if link is None or not link.line.count:
            return HomeCost(0.0, round(reads))
        busiest = max(link.line.at(reads), script.near.at(reads))
        return HomeCost(START + busiest, round(reads))

    def recent_size(self, zone: str, ask: Callable[[], int]) -> int:
        """Bytes of data in a zone, as they were a second ago at most."""
        known, size, at = self.sized
        if zone != known or not at <= self.clock() < at + SIZE_AGE:
            size = ask()
            self.sized = zone, size, self.clock()
        return size

    def needs_link(self, url: str, sha256: str) -> bool:
        """Whether a script that has run near the data alone needs the link measured.

        An hour later it is measured again; sooner, if its runs have taken much longer than that will.
        """
        script, link = self.scripts.get(sha256), self.links.get(url)
        if script is None or script.home.count:
            return False
        if link is None or link.used < self.clock() - LINK_AGE:
            return True
        return script.spent >= TRIED * link.took

    # ---- what runs have cost --------------------------------------------------------------------

    def ran_near(self, sha256: str, size: int, read: int, cpu: float) -> None:
        """A run near the data; cpu: seconds of processor time."""
        script = self._script(sha256)
        script.reads.add(size, read)
        script.near.add(read, cpu)

    def ran_home(self, sha256: str, size: int, received: int, seconds: float) -> None:
        """A run at the client."""
        script = self._script(sha256)
        script.reads.add(size, received)
        first = script.home.count == 1.0  # which also touched new memory
        if seconds < (1.0 if first else FASTER) * script.home.at(received):
            script.home = CostLine()
        script.home.add(received, seconds)

    def stayed(self, sha256: str, place: str, seconds: float, lead: float) -> None:
        """A run took so long in a place, expected to be sooner than elsewhere by lead; 0.0: not known."""
        script = self._script(sha256)
        if place != script.place:
            script.place, script.spent = place, 0.0
        script.spent += seconds
        least = LEAD_LEAST * seconds
        script.lead = max(lead, least) if lead > 0 else script.lead
        if 0 < lead < least and not script.home.count:
            script.first = script.first or "due"

    def to_try(self, sha256: str) -> str:
        """The place of the next run, if the one where it is not expected to be sooner is to be tried.

        Knowledge about a place becomes old without runs there.  A script that has never run at the client
        may lack modules there.  So it is tried there once, if that is expected to cost little: FIRST.
        "": none is to be tried.
        """
        script = self.scripts.get(sha256)
        if script is None or not script.lead:
            return ""
        if not script.home.count:
            return FIRST if script.first == "due" else ""
        if script.spent < TRIED * script.lead:
            return ""
        return "local" if script.place == "near" else "near"

    def has_run_here(self, sha256: str) -> bool:
        """Whether a script has ended well at the client."""
        script = self.scripts.get(sha256)
        return script is not None and script.home.count > 0

    def tried_here(self, sha256: str, *, fails: bool) -> None:
        """A run at the client, where the script has never ended well, is over."""
        self._script(sha256).first = "fails" if fails else "done"

    def measured(self, url: str, sha256: str, points: dict[int, float]) -> None:
        """A link carried so many bytes in so many seconds, each twice, for the sake of a script."""
        link = self.links[url] = LinkCost(self.clock(), took=2 * sum(points.values()))
        self._script(sha256).spent = 0.0
        for size, seconds in points.items():
            link.line.add(size, seconds)
