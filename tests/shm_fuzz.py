# SPDX-License-Identifier: GPL-2.0-or-later
"""Scripts that have taken over their sandbox attack the target's proxy through the memory they share.

    python -m tests.shm_fuzz --seconds 60 [--seed N]     (make shmfuzz)

The target is osd_harness under AddressSanitizer and UndefinedBehaviorSanitizer; the sandboxes are real.
Each hostile script forges access to all memory of its process, finds the shared memory, posts calls with
hostile frames, and overwrites frames, bodies and sync lines while the proxy serves them.  Beside them a
tenant works in a partition of its own, and compares all that it reads.  The target must live, report
nothing, keep the tenant's data, and end each hostile job for a reason that is the script's.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import random
import re
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from pyosd import jobs
from pyosd.commands import Commands
from pyosd.errors import OSDError, TargetBusy
from pyosd.types import AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import Page
from pyosd.wire.exec_params import Limits
from pyosd.wire.job_status import JobState
from tests.command.test_collection import membership
from tests.exec.hostile import SHARED_WITH_THE_PROXY
from tests.jobs.conftest import Target
from tests.sanitize.builds import ADDRESS, made

HOSTILE = 2
SLOTS = HOSTILE + 1
JOB_S = 2.0
DEADLINE_S = 60.0
OBJECTS, BYTES = 8, 40_000
IO_LIMIT = 64 << 20
JOB_EVERY = 5  # rounds of the tenant
COMPLETED = (JobState.COMPLETED, 0)

OWN_FAULT = frozenset(
    {
        COMPLETED,
        *((JobState.FAILED, reason) for reason in (201, 202, 203, 204, 205, 404)),
        (JobState.TIMEOUT, 301),
        (JobState.OUT_OF_MEMORY, 303),
        *((JobState.LIMIT_EXCEEDED, reason) for reason in (302, 304, 305, 306, 307, 308, 309)),
        *((JobState.SANDBOX_LOST, reason) for reason in (401, 402)),
    }
)
"""How a hostile job may end: because of what it did, never because of the store or the service."""

SCRIPT = (
    SHARED_WITH_THE_PROXY
    + """
import _thread, json, osd, random, struct, time
rng = random.Random(osd.args["seed"])
until = time.monotonic() + osd.args["seconds"]
IDS, OTHERS = osd.args["ids"], osd.args["others"]
FRAME, BODY, AHEAD, ROOM = 4096, 8192, 512 << 10, (1 << 20) + (64 << 10)
WILD = rng.choice((0, 0.0002, 0.002, 0.05))  # how often it does what ends it
OPS, FATAL_OPS = [*range(16, 42), 2, 3], [0, 1, 4, 15, 42, 0xffff]
NUMBERS = (0, 1, 2, 3, 8, 63, 64, 65, 255, 4095, 4096, 40_000, 65_535, 65_536, AHEAD - 1, AHEAD, AHEAD + 1,
           1 << 20, ROOM, ROOM + 1, 1 << 31, (1 << 32) - 1, 1 << 32, 1 << 62, (1 << 63) - 1, 1 << 63,
           (1 << 64) - 1, 0x10000 << 32 | 1)
PAGES = (0, 1, 2, 4, 5, 0x10000, 0x30000002, 0x60000004, 0xf0000001, 0xfffffffe, 0xffffffff)
lock = _thread.allocate_lock()

def put(at, data):
    memory[at:at + len(data)] = data

def number():
    return rng.choice(NUMBERS) if rng.random() < 0.8 else rng.getrandbits(64)

def post(line):
    # A semaphore of glibc is laid out as a sync line is, and so a forged lock posts and wakes:
    # value, waiters, 128 for one between processes.
    put(line + 8, (128).to_bytes(4, "little"))
    put(id(lock) + 16, line.to_bytes(8, "little"))
    put(id(lock) + 32, b"\\1")
    lock.release()

def name():
    return struct.pack(">II", rng.choice(PAGES), rng.choice((0, 1, 2, 9, 0x82, 0xffffffff)))

def value():
    data = rng.randbytes(rng.choice((0, 1, 8, 40, 4000)))
    said = len(data) if rng.random() < 0.9 else rng.getrandbits(16)
    return (name() + struct.pack(">6xH", said) + data).ljust((16 + len(data) + 7) // 8 * 8, b"\\0")

def some(make):
    return b"".join(make() for _ in range(rng.choice((1, 1, 3, 64, 65))))

def query_list():
    entry = struct.pack(">2xH", rng.choice((12, 12, 20, rng.getrandbits(16)))) + name() + bytes(4)
    return rng.choice((b"\\1", b"\\0", b"\\2")) + bytes(3) + entry * rng.choice((0, 1, 2, 64, 65))

def noise():
    return rng.randbytes(rng.choice((1, 5, 300, 4096, 70_000, AHEAD)))

BODIES = {2: noise, 3: noise, 26: lambda: some(name), 27: lambda: some(value), 29: query_list,
          30: lambda: rng.randbytes(rng.choice((0, 8, 16))), 33: noise, 34: noise}

def body(op):
    make = BODIES.get(op, bytes) if rng.random() < 0.9 else rng.choice((*BODIES.values(), bytes))
    return make()

def field():
    return rng.choice((0, 0, 1, 1, 2, 3, 8, 40, 4096)) if rng.random() < 0.7 else number()

def frame(op, size):
    pid, oid = rng.choice(OTHERS if rng.random() < 0.05 else IDS)
    if rng.random() < 0.1:
        oid = rng.choice((0, 0x1000, 0x1001, number()))
    said = number() & 0xffffffff if rng.random() < WILD else size
    flags = 1 if rng.random() < WILD else 0
    a = oid if op in (23, 24) else field()
    made = struct.pack(">HHHHIIQQQQ", 1, op, flags, 0, said, 0, pid, oid, a, field())
    return bytearray(made.ljust(64, b"\\0"))

def scribble(area):
    kind = rng.randrange(8)
    if kind < 3:
        at = rng.randrange(128) if rng.random() < WILD else rng.choice((16, 24, 32, 40, 64, 72, 80, 96))
        put(shm + FRAME + 128 * area + at, rng.randbytes(rng.randrange(1, 9)))
    elif kind < 6:
        put(shm + BODY + AHEAD * area + rng.randrange(rng.choice((8, 64, 4096, AHEAD))),
            rng.randbytes(rng.choice((1, 4, 8, 64))))
    elif kind == 6:
        put(shm + rng.randrange(0, 512), rng.randbytes(rng.randrange(1, 9)))
    else:
        put(CONTROL + rng.randrange(192), rng.randbytes(8))

area, codes = 0, [0] * 65_536
while time.monotonic() < until:
    op = rng.choice(FATAL_OPS if rng.random() < WILD else OPS)
    data = body(op)
    head = frame(op, len(data))
    if rng.random() < WILD:
        head[rng.randrange(64)] ^= 1 << rng.randrange(8)
    put(shm + BODY + AHEAD * area, data)
    put(shm + FRAME + 128 * area, head)
    answer = shm + 128 + 128 * area
    before = memory[answer:answer + 4]
    post(shm + 64 + 128 * area)
    if rng.random() < 0.3:
        for _ in range(rng.randrange(60)):
            scribble(area)
    patience = time.monotonic() + 0.02
    while memory[answer:answer + 4] == before and time.monotonic() < patience:
        if rng.random() < 0.01:
            scribble(area)
    if memory[answer:answer + 4] != before:
        at = shm + FRAME + 128 * area + 66
        codes[int.from_bytes(memory[at:at + 2], "big")] += 1
    area = rng.randrange(2) if rng.random() < WILD else 0
print(json.dumps(codes[:9]))
"""
)

DIGESTS = """
import hashlib, osd
for oid in osd.args:
    print(oid, hashlib.sha256(osd.userobject(osd.zone.partition_id, oid).data.read()).hexdigest())
"""


class Worker(threading.Thread):
    """Does one thing again and again until it fails or the campaign is over."""

    def __init__(self, act: Callable[[], None], over: threading.Event) -> None:
        super().__init__()
        self.act, self.over = act, over
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while not self.over.is_set():
                with contextlib.suppress(TargetBusy):
                    self.act()
        except BaseException as error:
            self.failure = error
            self.over.set()


class Tenant:
    """A client that works beside hostile jobs, and compares its objects with what it has written."""

    def __init__(self, osd: Commands, seed: int) -> None:
        self.osd, self.chance = osd, random.Random(seed)
        self.partition = ref(osd.create_partition())
        self.known: dict[ObjectRef, bytearray] = {}
        self.rounds = self.jobs = 0
        self.create()

    def create(self) -> None:
        made = self.osd.create(self.partition.partition_id)
        self.known[made] = bytearray()

    def act(self) -> None:
        """One change, and one comparison."""
        self.rounds += 1
        each = self.chance.choice([*self.known])
        held = self.known[each]
        match self.chance.randrange(6):
            case 0 if len(self.known) < OBJECTS:
                self.create()
            case 1 if len(self.known) > 1:
                self.osd.remove(each)
                del self.known[each]
            case 2:
                mark = AttributeValue(Page.APPLICATION, 1, self.chance.randbytes(64))
                self.osd.set_attributes(each, [mark])
                assert self.osd.get_attribute(each, *mark.id) == mark.value
            case _:
                at, data = self.chance.randrange(BYTES), self.chance.randbytes(4000)
                self.osd.write(each, at, data)
                held.extend(bytes(max(0, at + len(data) - len(held))))
                held[at : at + len(data)] = data
        self.compare()
        if self.rounds % JOB_EVERY == 0:
            self.compare_by_job()

    def compare(self) -> None:
        for each, held in self.known.items():
            assert bytes(self.osd.read(each, 0, len(held))) == held, f"{each} is not as written"
        assert {*self.osd.list_objects(self.partition.partition_id)} >= {*self.known}

    def compare_by_job(self) -> None:
        ids = [each.object_id for each in self.known]
        job = jobs.submit(self.osd, DIGESTS, zone=self.partition, args=ids)
        status = job.wait(DEADLINE_S)
        assert (status.state, status.reason) == COMPLETED, f"the tenant's job: {status}"
        digests = [
            f"{each.object_id} {hashlib.sha256(held).hexdigest()}"
            for each, held in self.known.items()
        ]
        assert job.output().decode().split("\n")[:-1] == digests, "a job found other data"
        self.osd.remove(job.id)
        self.jobs += 1


class Campaign:
    """A sanitized target, hostile jobs, and the tenant beside them."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.seed, self.log = seed, folder / "log"
        with self.log.open("wb") as stderr:
            program = made(ADDRESS).command("osd_harness")
            self.target = Target(folder, f";workers=3;slots={SLOTS}", program, stderr)
        self.osd = self.target.commands
        self.tenant = Tenant(self.osd, seed)
        self.chance = random.Random(seed)
        self.ends: Counter[tuple[JobState, int]] = Counter()
        self.calls = 0
        self.answers: Counter[int] = (
            Counter()
        )  # by code (target/wire/proxy_frame.h), as scripts saw them
        self.lock = threading.Lock()

    def attack(self) -> None:
        """One hostile job in a partition that exists for it alone."""
        pid = self.osd.create_partition()
        collection = self.osd.create_collection(pid)
        own = [self.osd.create(pid, attributes=[membership(collection)]) for _ in range(OBJECTS)]
        for each in own:
            self.osd.write(each, 0, bytes(BYTES))
        with self.lock:
            seed = self.chance.getrandbits(32)
        args = {
            "seed": seed,
            "seconds": JOB_S,
            "ids": [[each.partition_id, each.object_id] for each in (*own, collection)],
            "others": [
                [each.partition_id, each.object_id]
                for each in ([*self.tenant.known] or [self.tenant.partition])
            ],
        }
        limits = Limits(io=IO_LIMIT, wall=4 * JOB_S)
        job = jobs.submit(self.osd, SCRIPT, zone=ref(pid), args=args, limits=limits)
        status = job.wait(DEADLINE_S)
        how = (status.state, status.reason)
        assert how in OWN_FAULT, f"hostile job of seed {seed} ended as {how}: {status}"
        with self.lock:
            self.ends[how] += 1
            self.calls += status.calls
            with contextlib.suppress(ValueError):  # it may have ended itself before it said so
                self.answers.update(dict(enumerate(json.loads(job.output()))))
        self.osd.remove_partition(pid, contents=True)

    def run(self, seconds: float, calls: int = 0) -> None:
        """Args: calls: go on until so many were served and the tenant had a job, for a minute at most.

        Raises: AssertionError: something is wrong with the target, or with what the tenant reads.
        """
        over = threading.Event()
        acts = [self.tenant.act, *[self.attack] * HOSTILE]
        workers = [Worker(act, over) for act in acts]
        for each in workers:
            each.start()
        over.wait(seconds)
        latest = time.monotonic() + 60
        while (self.calls < calls or not self.tenant.jobs) and time.monotonic() < latest:
            if over.wait(0.05):
                break
        over.set()
        for each in workers:
            each.join()
        failures = [each.failure for each in workers if each.failure]
        try:
            if not failures:
                self.tenant.compare()
                assert self.osd.object_structure_check() == 0, "the store is damaged"
        finally:
            self.target.stop()
        text = self.log.read_text(errors="replace")
        reported = re.search(r"^.*(Sanitizer|runtime error)", text, re.MULTILINE)
        assert not reported, text[reported.start() :][:16000]
        if failures:
            raise AssertionError(str(failures[0])) from failures[0]
        assert self.target.transport.process.returncode == 0, text[-4000:]

    def summary(self) -> str:
        ends = ", ".join(
            f"{state.name} {reason}: {n}" for (state, reason), n in self.ends.most_common()
        )
        return (
            f"{self.ends.total()} hostile jobs ({ends}), {self.calls} calls served, answers by code "
            f"{dict(self.answers)}; "
            f"{self.tenant.rounds} rounds and {self.tenant.jobs} jobs of the tenant"
        )


def main() -> int:
    """Exit 1: something was found; the seed repeats it, as far as the timing allows."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    given = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="iosd-test-") as folder:
        Path(folder).chmod(0o755)
        campaign = Campaign(Path(folder), given.seed)
        try:
            campaign.run(given.seconds)
        except (AssertionError, OSDError) as error:
            traceback.print_exc(file=sys.stdout)
            print(f"seed {given.seed}: {error}\n{campaign.summary()}")
            return 1
    print(
        f"seed {given.seed}, {time.monotonic() - began:.0f} s, nothing found: {campaign.summary()}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
