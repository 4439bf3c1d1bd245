# SPDX-License-Identifier: GPL-2.0-or-later
"""One soak: load, kills, samples, and what they show.

tgtd is killed in the warm-up only, so that one life of it is long; iosd-sandboxd, zygotes, sandboxes
and connections go on being killed.  Twice, after the warm-up and at the end, everything rests: what is
open then must be as much as the first time.
"""

from __future__ import annotations

import contextlib
import os
import queue
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.fault.test_crash_target import busy_sandbox
from tests.processes import zygote_of
from tests.serving import Serving
from tests.soak.judge import Slope, judge
from tests.soak.load import Crew
from tests.soak.samples import Sample, Sampler

WORKERS = 4
WARM_UP_SHARE, WARM_UP_LEAST_S, WARM_UP_MOST_S = 0.25, 30.0, 900.0
INTERVAL_S = 5.0
REST_S = 90.0
SETTLED_S = 3.0
"""At rest spare sandboxes are made and records expire; then it is measured."""
MEAN_S = {"sandbox": 3.0, "zygote": 90.0, "iosd-sandboxd": 600.0}
"""Mean seconds between two kills of each in a long run."""
SHORT_S = 1800.0
"""Growth in a shorter run can be a warm-up."""
AT_REST = ("descriptors", "threads", "cgroups", "locks", "locked", "transactions")
"""Not lockers, of which Berkeley DB keeps as many as were in use at once (report.lockers_are_bounded)."""
REST_SLACK = 8


@dataclass
class Outcome:
    """Results of a soak. rest: figures at rest after the warm-up and at the end."""

    seed: int
    seconds: float
    warm_up: float
    samples: list[Sample] = field(default_factory=list)
    slopes: list[Slope] = field(default_factory=list)
    rest: list[dict[str, float]] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    kills: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def more_at_rest(self) -> list[str]:
        """Resources open at the end and not at the beginning."""
        if len(self.rest) < 2:
            return []
        first, last = self.rest[0], self.rest[-1]
        found = []
        for name in sorted(first.keys() & last.keys()):
            if name.rpartition(".")[2] in AT_REST and last[name] > first[name] + REST_SLACK:
                found.append(f"{name}: {first[name]:.0f} at rest at first, {last[name]:.0f} then")
        return found


def warm_up_of(seconds: float) -> float:
    """Seconds of a run that do not count: caches fill, and tgtd is killed twice in the first half."""
    warm_up = min(max(seconds * WARM_UP_SHARE, WARM_UP_LEAST_S), WARM_UP_MOST_S)
    return min(warm_up, seconds / 2)


class Soak:
    """A run under way."""

    def __init__(self, serving: Serving, seconds: float, seed: int, say: Callable[[str], None]):
        self.serving, self.seconds, self.say = serving, seconds, say
        self.rng = random.Random(seed)
        self.outcome = Outcome(seed, seconds, warm_up_of(seconds))
        self.sampler = Sampler(serving)
        self.due = {name: self.rng.expovariate(1 / self.mean(name)) for name in MEAN_S}
        self.tgtd_due = [self.outcome.warm_up * share for share in (0.2, 0.5)]
        self.expected = 0

    def mean(self, name: str) -> float:
        return min(MEAN_S[name], self.seconds / 6)

    @property
    def now(self) -> float:
        return time.monotonic() - self.sampler.begin

    # ---- kills ----

    def kill_what_is_due(self) -> None:
        for name, at in self.due.items():
            if self.now >= at:
                self.due[name] = self.now + self.rng.expovariate(1 / self.mean(name))
                self.kill(name)
        if self.tgtd_due and self.now >= self.tgtd_due[0]:
            self.tgtd_due.pop(0)
            self.kill("tgtd")

    def kill(self, name: str) -> None:
        pid: int | None = self.serving.pids.get(name)
        sandboxd = self.serving.pids.get("iosd-sandboxd")
        if name == "sandbox":
            pid = busy_sandbox(self.serving)
        elif name == "zygote":
            pid = zygote_of(sandboxd) if sandboxd else None
        if pid is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        self.outcome.kills[name] += 1
        if name in ("tgtd", "iosd-sandboxd"):
            self.serving.restarted()

    def look_for_crashes(self) -> None:
        """A part that was started again though nobody here killed it."""
        with contextlib.suppress(queue.Empty):
            while (event := self.serving.events.get_nowait()) is not None:
                self.serving.pids = {k: v for k, v in event["pids"].items() if v}
                self.outcome.failures.append(f"a part went down by itself: {event}")

    # ---- the run ----

    def run(self) -> Outcome:
        """Everything, to the end."""
        crew = Crew(self.serving, WORKERS, self.rng)
        try:
            self.watch(self.outcome.warm_up, crew)
            self.measure_at_rest(crew)
            self.watch(self.seconds, crew)
            self.measure_at_rest(crew)
        finally:
            crew.end()
            self.sampler.close()
        self.outcome.done = crew.done()
        self.outcome.failures += crew.failures()
        self.outcome.slopes = judge(self.outcome.samples, self.outcome.warm_up)
        return self.outcome

    def watch(self, until: float, crew: Crew) -> None:
        """Kill and sample until a time of the run."""
        crew.go_on()
        interval = min(INTERVAL_S, self.seconds / 60)
        sample_at = said_at = self.now
        while self.now < until:
            time.sleep(0.05)
            self.kill_what_is_due()
            self.look_for_crashes()
            if self.now >= sample_at:
                sample_at += interval
                self.outcome.samples.append(self.sampler.read())
            if self.now >= said_at:
                said_at += 60
                self.say(
                    f"{self.now:7.0f} s: {crew.done().total()} steps, "
                    f"{self.outcome.kills.total()} kills, {len(crew.failures())} failures"
                )

    def measure_at_rest(self, crew: Crew) -> None:
        if not crew.resting(REST_S):
            self.outcome.failures.append(f"the load does not come to rest in {REST_S:.0f} s")
            return
        time.sleep(SETTLED_S)
        self.outcome.rest.append(self.sampler.read().figures)
