# SPDX-License-Identifier: GPL-2.0-or-later
"""kill -9 of tgtd, of iosd-sandboxd, of a busy sandbox, of two at once: under four initiators that
read and write and two that submit jobs, at instants from the printed seed.

Afterwards every acknowledged write, attribute and job is there, every job comes to exactly one
terminal state, and once the target has been told to end no process and no cgroup is left.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import pyosd
from pyosd.errors import OSDError, TargetBusy, Unreachable
from pyosd.types import ObjectRef, ref
from pyosd.wire.exec_params import ExecParams
from pyosd.wire.job_status import JobState, JobStatus
from tests.machine import unavailable
from tests.oracle import Clients
from tests.processes import name_of, sandboxes_of, zygote_of
from tests.serving import Serving, missing, own_options, sandboxes_missing
from tests.waiting import until

CLIENTS, SUBMITTERS = 4, 2
ANSWERS = 200
"""Commands a round sees answered, at least; those of jobs not counted."""
PACE_S = 0.02
"""Most time between two jobs of one initiator; half of it on average."""
END_S = 30.0

ROUNDS_TO_FAIL = 10

VICTIMS = {
    "tgtd": ("tgtd",),
    "sandboxd": ("iosd-sandboxd",),
    "sandbox": ("sandbox",),
    "tgtd and sandboxd": ("tgtd", "iosd-sandboxd"),
    "tgtd and sandbox": ("tgtd", "sandbox"),
    "sandboxd and sandbox": ("iosd-sandboxd", "sandbox"),
}
LOST = {401, 402, 403, 405, 406}
"""Reasons of jobs that a kill took along; all else must have COMPLETED."""

pytestmark = [pytest.mark.crash, pytest.mark.tgtd, pytest.mark.sandbox]


def cgroups() -> set[Path]:
    """Folders that any iosd-sandboxd made, in any hierarchy."""
    folders = (Path(folder) for folder, _, _ in os.walk("/sys/fs/cgroup"))
    return {folder for folder in folders if folder.name.startswith("iosd-sandboxd-")}


def cgroups_of(pids: set[int]) -> set[Path]:
    """Those of an iosd-sandboxd of these pids."""
    names = {f"iosd-sandboxd-{pid}" for pid in pids}
    return {folder for folder in cgroups() if folder.name in names}


@dataclass
class Submitter:
    """One initiator that submits jobs: the key is noted before, the token after."""

    number: int
    zone: ObjectRef
    rng: random.Random
    keys: list[tuple[bytes, bytes]] = field(default_factory=list)
    accepted: dict[bytes, ObjectRef] = field(default_factory=dict)

    def run(self, target: pyosd.Target, stop: threading.Event) -> None:
        while not stop.is_set():
            name = f"s{self.number}-{len(self.keys)}"
            code = b"import osd\n" + self.rng.choice(
                (
                    b"print('%s')" % name.encode(),
                    b"for n in range(100_000): pass\nprint('%s')" % name.encode(),
                    b"import time; time.sleep(0.03); print('%s')" % name.encode(),
                )
            )
            self.keys.append((name.encode(), code))
            try:
                reply = target.exec_code(self.zone, code, ExecParams(key=name.encode()))
            except TargetBusy:
                self.keys.pop()
                stop.wait(0.01)
                continue
            except Unreachable:
                return
            assert reply.job is not None
            self.accepted[name.encode()] = reply.job
            stop.wait(self.rng.random() * PACE_S)

    def settle(self, target: pyosd.Target) -> list[str]:
        """Every key leads to one job, which ends; every accepted one under its token."""
        found = []
        for key, code in self.keys:
            reply = target.exec_code(self.zone, code, ExecParams(key=key))
            token = self.accepted.setdefault(key, reply.job or ref())
            if reply.job != token:
                found.append(f"{key!r}: job {token} was acknowledged, now it is {reply.job}")
        for key, token in self.accepted.items():
            try:
                status = target.job(token).wait(END_S)
            except (OSDError, pyosd.JobError, TimeoutError) as error:
                found.append(f"{key!r}: job {token}: {error}")
                continue
            found += wrong_end(target, key, status)
        return found


def wrong_end(target: pyosd.Target, key: bytes, status: JobStatus) -> list[str]:
    """A terminal state that stays, with all that belongs to it."""
    found = []
    if status.state is JobState.COMPLETED:
        if target.read_range(status.id) != key + b"\n":
            found.append(f"{key!r}: COMPLETED without its output")
    elif status.state is not JobState.SANDBOX_LOST or status.reason not in LOST:
        found.append(f"{key!r}: ended {status.state.name}, reason {status.reason}")
    if target.job(status.id).status() != status:
        found.append(f"{key!r}: changed after its end")
    return found


class World:
    """State across rounds: the store, the clients with their oracle, the seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.folder = Path(tempfile.mkdtemp(prefix="iosd-crash-"))
        self.folder.chmod(0o755)
        self.data = self.folder / "store"
        self.clients: Clients | None = None

    def serve(self) -> Serving:
        return Serving("--isolation", "best", "--slots", "2", data=self.data)


@pytest.fixture(scope="module")
def world(seed: int) -> Iterator[World]:
    why = missing() or sandboxes_missing()
    if why:
        unavailable("sandbox", why)
    made = World(seed)
    yield made
    shutil.rmtree(made.folder)


def busy_sandbox(serving: Serving) -> int | None:
    """The sandbox that has computed longest: a spare has only come up."""
    return max(sandboxes_of(serving.pids["iosd-sandboxd"]), key=computed_ns, default=None)


def computed_ns(pid: int) -> int:
    """Processor time of the main thread, which is the one that runs the script; 0: it is gone."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
    except OSError:
        return 0


def strike(serving: Serving, victims: tuple[str, ...]) -> None:
    """SIGKILL to all of them, one right after the other."""
    pids = []
    for name in victims:
        pid = serving.pids.get(name)
        if name == "sandbox":
            pid = busy_sandbox(serving)
        elif name == "zygote":
            pid = zygote_of(serving.pids["iosd-sandboxd"])
        if pid is not None:
            pids.append(pid)
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def one_round(world: World, serving: Serving, victims: tuple[str, ...]) -> tuple[int, int]:
    """Work, kill, look.  Returns: commands answered, jobs accepted."""
    control = serving.connect()
    if world.clients is None:
        world.clients = Clients(control, CLIENTS, world.rng.getrandbits(32), world.folder)
    clients = world.clients
    zone = ref(control.create_partition())
    submitters = [Submitter(n, zone, random.Random(world.rng.random())) for n in range(SUBMITTERS)]
    sessions = [serving.connect(reconnect_timeout=0) for _ in range(CLIENTS + SUBMITTERS)]
    stop = threading.Event()
    threads = [
        threading.Thread(target=each.run, args=(sessions[CLIENTS + n], stop))
        for n, each in enumerate(submitters)
    ]
    for thread in threads:
        thread.start()
    daemons = [name for name in victims if name != "sandbox"]

    def kill() -> None:
        serving.everything()
        strike(serving, victims)
        if "tgtd" not in victims:  # nothing tells the clients: they may stop now
            clients.stop.set()
        stop.set()

    answers, spin = ANSWERS + world.rng.randrange(150), world.rng.random() * 0.02
    try:
        answered = clients.work(lambda n: sessions[n], kill, answers, spin)
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    for session in sessions:
        session.transport.drop()  # type: ignore[attr-defined]
        session.close()
    control.close()
    serving.restarted(len(daemons))
    with serving.connect() as target:
        assert clients.losses(target) == []
        wrong = [text for each in submitters for text in each.settle(target)]
        assert wrong == []
        target.remove_partition(zone.partition_id, contents=True)
    return answered, sum(len(each.accepted) for each in submitters)


def test_the_oracle_can_fail(seed: int) -> None:
    """The same clients through tgtd on a store that acknowledges too early: a loss is seen."""
    why = missing()
    if why:
        unavailable("tgtd", why)
    for attempt in range(ROUNDS_TO_FAIL):
        folder = Path(tempfile.mkdtemp(prefix="iosd-crash-"))
        try:
            with Serving("--no-sandboxes", *own_options("unsafe_nosync=1")) as serving:
                if loses(serving, seed + attempt, folder):
                    return
        finally:
            shutil.rmtree(folder)
    pytest.fail(f"no loss seen in {ROUNDS_TO_FAIL} rounds without safe commits")


def loses(serving: Serving, seed: int, folder: Path) -> bool:
    with serving.connect() as control:
        clients = Clients(control, CLIENTS, seed, folder)
    sessions = [serving.connect(reconnect_timeout=0) for _ in range(CLIENTS)]
    clients.work(lambda n: sessions[n], lambda: serving.kill("tgtd"), ANSWERS, 0)
    for session in sessions:
        session.close()
    serving.restarted()
    with serving.connect() as target:
        try:
            return clients.losses(target) != []
        except OSDError as error:
            print(f"lost so much that looking fails: {error}")
            return True


def is_stopped(pid: int) -> bool:
    """Whether a signal has stopped it.  It may have been in the middle of a fork, which comes first."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def killed_all(sandboxd: int) -> bool:
    """Whether there are no sandboxes; those that there are get a SIGKILL."""
    found = sandboxes_of(sandboxd)
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return not found


def test_only_a_sandbox_is_taken_for_one() -> None:
    """Without one, the janitor of iosd-sandboxd is not killed, because control groups would
    remain."""
    why = missing() or sandboxes_missing()
    if why:
        unavailable("sandbox", why)
    with Serving("--isolation", "best", "--slots", "2") as serving:
        sandboxd = serving.pids["iosd-sandboxd"]
        busy = until(lambda: busy_sandbox(serving), "no sandbox")
        zygote = zygote_of(sandboxd)
        assert zygote is not None and name_of(zygote) == "iosd-zygote" and busy != zygote
        os.kill(zygote, signal.SIGSTOP)  # it makes no other
        try:
            until(lambda: is_stopped(zygote), "the zygote goes on")
            until(lambda: killed_all(sandboxd), "sandboxes are left")
            assert busy_sandbox(serving) is None
            assert zygote_of(sandboxd) == zygote
        finally:
            os.kill(zygote, signal.SIGCONT)


def test_kill_9(world: World, seed: int, crash_round: int) -> None:
    victims = world.rng.choice(sorted(VICTIMS))
    start, before = time.monotonic(), cgroups()
    with world.serve() as serving:
        answered, jobs = one_round(world, serving, VICTIMS[victims])
    took = time.monotonic() - start
    print(
        f"seed {seed}, round {crash_round}: {victims} killed after {answered} answers, "
        f"{jobs} jobs; {took:.1f} s"
    )
    assert answered >= ANSWERS
    # A run that was killed may have left some, of pids that are ours now.
    until(lambda: cgroups_of(serving.seen) <= before, "control groups are left")
