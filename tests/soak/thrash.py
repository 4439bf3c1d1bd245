# SPDX-License-Identifier: GPL-2.0-or-later
"""`python -m tests.soak.thrash`: a minute of every fault there is, under clients whose answers are
checked (reliability 65).

Every 0.2 to 5 s, by a Poisson process, one fault.  Clients of jobs keep a history (tests/jobs), clients
of data an oracle (tests/oracle.py).  Afterwards, within 30 s: every job has ended as the model allows,
everything acknowledged is there, nothing is left of what was killed, and the target ends clean.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyosd
from iosd_host.manager.client import ManagerClient, ManagerError
from pyosd.errors import OSDError, TargetBusy, Unreachable
from pyosd.types import ObjectRef, TaskManagement
from pyosd.wire.job_status import JobState
from tests.fault.test_crash_target import cgroups_of
from tests.jobs.history_clients import Client as JobClient
from tests.jobs.history_clients import notebook
from tests.jobs.history_lines import verdict
from tests.oracle import Client as DataClient
from tests.serving import Serving, missing, sandboxes_missing
from tests.soak.faults import BROKEN, Disk, cut_from_sandboxd, kill_sandbox, send_signal
from tests.waiting import until

JOB_CLIENTS, DATA_CLIENTS = 4, 2
SLOTS = 3
MEAN_S, LEAST_S, MOST_S = 1.0, 0.2, 5.0
CLEAN_S = 30.0
BY_THE_DISK = frozenset({(JobState.FAILED, 501), (JobState.FAILED, 502)})
"""How any job may end while the disk is full or broken."""


class DataWorker:
    """A client of the oracle that goes on after each fault, once it has seen that nothing is lost."""

    def __init__(self, client: DataClient, serving: Serving) -> None:
        self.client, self.serving = client, serving
        self.losses: list[str] = []
        self.failure: BaseException | None = None
        self.looks = 0

    def run(self, stop: threading.Event) -> None:
        try:
            while not stop.is_set():
                self.until_a_fault(stop)
                self.look()
        except (OSDError, AssertionError) as error:
            self.failure = error
            stop.set()

    def until_a_fault(self, stop: threading.Event) -> None:
        """Commands until one fails; it may have happened, in part if it is a WRITE."""
        self.client.begin_round()
        try:
            with self.session() as target:
                self.client.run(target, lambda: None, stop)
        except (TargetBusy, Unreachable):
            pass
        except OSDError as error:
            if not of_a_fault(error):
                raise
        finally:
            self.client.end_round()

    def session(self) -> pyosd.Target:
        deadline = time.monotonic() + 60
        while True:
            try:
                return self.serving.connect(reconnect_timeout=0)
            except Unreachable:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def look(self, patience: float = 20.0) -> None:
        """Lost data, checked until no fault interferes."""
        deadline = time.monotonic() + patience
        while True:
            try:
                with self.session() as target:
                    self.losses += self.client.losses(target)
                self.looks += 1
                return
            except OSDError as error:
                fault = isinstance(error, Unreachable | TargetBusy) or of_a_fault(error)
                if not fault or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)


def of_a_fault(error: OSDError) -> bool:
    """Whether a broken or full disk answers so: MEDIUM ERROR, HARDWARE ERROR, DATA PROTECT, or the
    ABORTED COMMAND of a reset."""
    return error.sense_key in (3, 4, 7, 11) or isinstance(error, pyosd.TaskAborted)


class Thrasher:
    """Faults at a target, one at a time."""

    def __init__(self, serving: Serving, disk: Disk, jobs: list[JobClient], seed: int) -> None:
        self.serving, self.disk, self.jobs = serving, disk, jobs
        self.book = jobs[0].book
        self.rng = random.Random(seed)
        self.manager = Administrator(serving)
        self.done: Counter[str] = Counter()
        self.faults: dict[str, Callable[[], None]] = {
            "sandbox killed": lambda: void(kill_sandbox(serving)),
            "sandboxd killed": lambda: self.kill("iosd-sandboxd"),
            "tgtd killed": lambda: self.kill("tgtd"),
            "socket cut": lambda: void(cut_from_sandboxd(serving)),
            "sandboxd stopped": self.stop_sandboxd,
            "disk broken": self.break_disk,
            "disk full": self.fill_disk,
            "manager killed": lambda: self.kill("iosd-manager"),
            "manager stopped": self.stop_manager,
            "bounds changed": self.change_bounds,
            "configuration read again": self.reload,
            "unit reset": self.reset,
            "client killed": self.kill_client,
        }

    def run(self, seconds: float, stop: threading.Event) -> None:
        """One fault after the other.  Raises: what a fault does not survive."""
        end = time.monotonic() + seconds
        # Each kind once, in a random order, before chance alone decides.
        order = self.rng.sample(sorted(self.faults), len(self.faults))
        while time.monotonic() < end:
            wait = min(max(self.rng.expovariate(1 / MEAN_S), LEAST_S), MOST_S)
            if stop.wait(min(wait, max(0.0, end - time.monotonic()))):
                return
            name = order.pop() if order else self.rng.choice(sorted(self.faults))
            self.serving.everything()
            self.faults[name]()
            self.done[name] += 1

    def kill(self, name: str) -> None:
        before = time.monotonic()
        self.serving.kill(name)
        self.serving.restarted()
        if name == "tgtd":
            self.book.restarts.append((before, time.monotonic()))

    def stop_sandboxd(self) -> None:
        send_signal(self.serving, "iosd-sandboxd", signal.SIGSTOP)
        time.sleep(self.rng.uniform(0.1, 1.0))
        send_signal(self.serving, "iosd-sandboxd", signal.SIGCONT)

    def stop_manager(self) -> None:
        """For longer than the target waits for it, perhaps."""
        send_signal(self.serving, "iosd-manager", signal.SIGSTOP)
        time.sleep(self.rng.uniform(0.1, 4.0))
        send_signal(self.serving, "iosd-manager", signal.SIGCONT)

    def change_bounds(self) -> None:
        least = self.rng.randint(0, 3)
        self.manager.change_pool({"min": least, "max": self.rng.randint(max(1, least), SLOTS)})

    def reload(self) -> None:
        self.serving.process.send_signal(signal.SIGHUP)

    def break_disk(self) -> None:
        self.disk.breaks(BROKEN)
        time.sleep(self.rng.uniform(0.05, 0.5))
        self.disk.breaks(0)

    def fill_disk(self) -> None:
        self.disk.fills()
        time.sleep(self.rng.uniform(0.05, 0.5))
        self.disk.empties()

    def reset(self) -> None:
        with self.serving.connect() as target:
            target.perform_task_management(TaskManagement.LOGICAL_UNIT_RESET)

    def kill_client(self) -> None:
        """Its connection goes while a command is under way."""
        self.rng.choice(self.jobs).cut()


class Administrator:
    """Changes the pool, and records acknowledged values."""

    def __init__(self, serving: Serving) -> None:
        self.url: str = serving.event("managed", CLEAN_S)["manager"]["url"]
        self.acknowledged: dict[str, str] = {}
        self.unknown = 0

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Raises: ManagerError."""
        with ManagerClient.find(self.url) as manager:
            return manager.ask(method, **params)

    def change_pool(self, values: dict[str, int]) -> None:
        """It may be refused while the target or the manager is away."""
        try:
            found = self.ask("pool.set", pool="default", values=values, why="thrash")
        except ManagerError as error:
            # Said to be done or not, or to be done and not kept.
            if error.code in ("unknown", "unreachable", "failed"):
                self.acknowledged, self.unknown = {}, self.unknown + 1
        else:
            self.acknowledged = dict(found["is"])

    def wrong(self) -> list[str]:
        """Values that do not hold when everything runs again."""
        deadline = time.monotonic() + CLEAN_S
        while time.monotonic() < deadline:
            with contextlib.suppress(ManagerError, KeyError, IndexError):
                target = self.ask("status")["targets"][0]
                pool = target["pools"][0]
                holds = {key: str(pool[key]) for key in self.acknowledged}
                within = pool["min"] <= pool["active"] <= pool["max"]
                if target["role"] == "manager" and within and holds == self.acknowledged:
                    return []
            time.sleep(0.1)
        return [f"not managed as was acknowledged: {self.acknowledged}: {self.ask('status')}"]


def void(_: object) -> None:
    """A value nobody needs."""


class World:
    """Clients, their threads, and what they found."""

    def __init__(self, serving: Serving, seed: int, folder: Path) -> None:
        rng = random.Random(seed)
        self.serving = serving
        with serving.connect() as target:
            self.book = notebook(target, rng.getrandbits(32))
            shared = target.create(target.create_partition())
            self.data = [
                DataWorker(self.data_client(target, n, shared, folder, rng), serving)
                for n in range(DATA_CLIENTS)
            ]
        self.jobs = [
            JobClient(
                n,
                self.book,
                lambda: serving.connect(reconnect_timeout=0),
                rng.getrandbits(32),
                fault=of_a_fault,
            )
            for n in range(JOB_CLIENTS)
        ]

    @staticmethod
    def data_client(
        target: pyosd.Target, number: int, shared: ObjectRef, folder: Path, rng: random.Random
    ) -> DataClient:
        partition = target.create_partition()
        log = folder / f"client{number}.log"
        client = DataClient(number, partition, shared, log, random.Random(rng.random()))
        client.collection = target.create_collection(partition, 0x8_0000).object_id
        return client

    def work(self, meanwhile: Callable[[threading.Event], None]) -> list[str]:
        """All clients work until meanwhile returns.  Returns: what they died of."""
        stop = threading.Event()
        failures: list[str] = []

        def run(what: Callable[[threading.Event], None]) -> None:
            try:
                what(stop)
            except (OSDError, AssertionError, ValueError, KeyError) as error:
                failures.append(f"{type(error).__name__}: {error}")
                stop.set()

        tasks = [each.run for each in self.jobs] + [each.run for each in self.data]
        threads = [threading.Thread(target=run, args=(each,)) for each in tasks]
        for thread in threads:
            thread.start()
        try:
            meanwhile(stop)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        return failures + [repr(each.failure) for each in self.data if each.failure]

    def clean(self) -> list[str]:
        """Deviations when no fault interferes any more."""
        last = self.jobs[0]
        found = last.settle(CLEAN_S)
        found += last.left()
        last.close()
        for each in self.data:
            each.look()
            found += each.losses
        return found + verdict(self.book, BY_THE_DISK)


def thrash(seconds: float, seed: int) -> tuple[list[str], str]:
    """The whole of it.  Returns: what is wrong, and what was done."""
    with tempfile.TemporaryDirectory(prefix="iosd-thrash-") as folder, Disk() as disk:
        arguments = ("--isolation", "best", "--slots", str(SLOTS))
        environment = disk.environment()
        with Serving(*arguments, data=disk.data, environment=environment, manager=True) as serving:
            world = World(serving, seed, Path(folder))
            thrasher = Thrasher(serving, disk, world.jobs, seed)
            wrong = world.work(lambda stop: thrasher.run(seconds, stop))
            begin = time.monotonic()
            wrong += world.clean() + thrasher.manager.wrong()
            took = time.monotonic() - begin
            if took > CLEAN_S:
                wrong.append(f"clean only after {took:.0f} s")
            serving.everything()
            unlisted = [line for line in serving.text().splitlines() if "is not permitted" in line]
            wrong += unlisted
        with contextlib.suppress(
            AssertionError
        ):  # who removes those of one that was killed, outlives it
            until(lambda: not cgroups_of(serving.seen), seconds=CLEAN_S)
        wrong += [f"left behind: {each}" for each in cgroups_of(serving.seen)]
    answered = sum(each.answered for each in world.jobs)
    answered += sum(each.client.answered for each in world.data)
    faults = ", ".join(f"{name} {count}" for name, count in sorted(thrasher.done.items()))
    return wrong, (
        f"{answered} commands answered, {len(world.book.lines)} submissions, "
        f"{sum(each.looks for each in world.data)} looks for losses; clean after {took:.1f} s; {faults}"
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.thrash", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, help="repeat the choices of a run")
    arguments = parser.parse_args()
    why = missing() or sandboxes_missing()
    if why:
        print(f"nothing to thrash here: {why}", file=sys.stderr)
        return 2
    seed = random.SystemRandom().getrandbits(32) if arguments.seed is None else arguments.seed
    print(f"seed {seed} (--seed={seed} repeats its choices)", flush=True)
    wrong, summary = thrash(arguments.seconds, seed)
    print(summary)
    print("\n".join(f"WRONG {each}" for each in wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
