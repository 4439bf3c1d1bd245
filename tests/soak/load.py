# SPDX-License-Identifier: GPL-2.0-or-later
"""Mixed load that leaves nothing behind: jobs of every ending, data, attributes, queries, connections.

Each worker has a partition and a session of its own; now and then it removes the partition with all
that kills have left there, and begins another.  Answers that are possible during kills are
distinguished from those that never are: these fail the run.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pyosd
from pyosd.errors import CommandTimeout, Conflict, NotFound, OSDError, TargetBusy, Unreachable
from pyosd.types import AttributeId, AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import Page
from pyosd.wire.exec_params import Limits
from pyosd.wire.job_status import JobState
from tests.serving import Serving

PACE_S = 0.15
"""Mean time from one step's begin to the next one's: about half of what two processors can do, so that
what is open at a time is a matter of the load and not of how busy the machine is otherwise."""
LATE_S = 5.0
"""A worker that is late by less catches up."""
RENEW_S = 45.0
"""Mean life of a worker's partition."""
JOB_S = 60.0
"""Longest wait for a job. After a kill of everything, the target is back sooner."""
OBJECTS = 20
UNREACHABLE = 110
AT_WORK = (JobState.STARTING, JobState.RUNNING, JobState.COMPLETING)
COLOUR = AttributeValue(Page.APPLICATION, 1, b"red")
SMALL = Limits(mem="64MiB")

ENDINGS: dict[str, tuple[str, dict[str, object]]] = {
    "prints": ("print('x' * 2000)", {}),
    "result": ("osd.result({'n': list(range(100))})", {}),
    "long result": ("osd.result(b'r' * 200_000)", {}),
    "raises": ("1 / 0", {}),
    "exits": ("raise SystemExit(3)", {}),
    "dies": ("import os; os._exit(7)", {}),
    "sleeps": ("import time; time.sleep(0.2)", {}),
    "wall": ("while True: pass", {"limits": Limits(wall=0.05, cpu=9)}),
    "cpu": ("while True: pass", {"limits": Limits(cpu=0.05)}),
    "memory": ("x = bytearray(200 << 20)", {"limits": SMALL}),
    "output": ("while True: print('y' * 1000)", {"limits": Limits(output=50_000)}),
    "files": (
        "for o in osd.zone: o.data.read(10)\nosd.zone.create_many(2)\n"
        "with open('/tmp/left', 'wb') as f: f.write(b'z' * 100_000)",
        {},
    ),
    "reads": ("print(sum(len(o.data.read()) for o in osd.zone if o.exists()))", {}),
    "maps": (
        "for o in osd.zone:\n  try: len(o.data.map())\n  except (osd.NotFound, ValueError): pass",
        {},
    ),
    "stderr": ("import sys; sys.stderr.write('e' * 200_000)", {}),
    "imports": ("import json, csv, re, zlib, hashlib; print(hashlib.sha256(b'').hexdigest())", {}),
    "packed": ("print('p')\n" + "# padding of a comment, which packs well\n" * 200, {}),
}
FOREVER = "import time\nwhile True: time.sleep(1)"


class Worker:
    """One client."""

    def __init__(self, number: int, serving: Serving, seed: int) -> None:
        self.number, self.serving, self.rng = number, serving, random.Random(seed)
        self.done: Counter[str] = Counter()
        self.failures: list[str] = []
        self.session: pyosd.Target | None = None
        self.partition = 0
        self.objects: list[ObjectRef] = []
        self.collection: ObjectRef | None = None
        self.renew_at = 0.0
        self.steps: list[tuple[Callable[[pyosd.Target], None], int]] = [
            (self.job, 30),
            (self.killed_job, 4),
            (self.held_job, 3),
            (self.waited_job, 6),
            (self.key, 3),
            (self.array, 3),
            (self.chain, 2),
            (self.again, 3),
            (self.abandoned_job, 5),
            (self.write, 20),
            (self.read, 20),
            (self.punch, 3),
            (self.attributes, 10),
            (self.query, 4),
            (self.members, 3),
            (self.listings, 3),
            (self.cut, 1),
        ]

    # ---- the loop ----

    def run(self, stop: threading.Event, rest: threading.Event) -> None:
        """Step by step until told to stop; between two steps it rests as long as it is told to."""
        weights = [weight for _, weight in self.steps]
        due = time.monotonic()
        while not stop.is_set():
            if rest.is_set():
                self.leave()
                stop.wait(0.05)
                continue
            step = self.rng.choices(self.steps, weights)[0][0]
            self.guarded(step.__name__, step)
            due = max(due + self.rng.expovariate(1 / PACE_S), time.monotonic() - LATE_S)
            stop.wait(max(0.0, due - time.monotonic()))
        self.leave()

    def guarded(self, name: str, step: Callable[[pyosd.Target], None]) -> None:
        """One step; what kills may answer is counted, what they may not is kept."""
        try:
            step(self.ready())
            self.done[name] += 1
        except CommandTimeout as error:
            self.failures.append(f"{name}: {error}")
            self.drop()
        except Unreachable:
            self.done["no answer"] += 1
            self.drop()
        except TargetBusy as busy:
            self.done["busy"] += 1
            time.sleep(min(busy.retry_after, 0.5))
        except (NotFound, Conflict, pyosd.JobExpired):
            # The answer to what was made, or removed, was lost with a session.
            self.done["gone or in the way"] += 1
        except (OSDError, pyosd.JobError, AssertionError, TimeoutError) as error:
            self.failures.append(f"{name}: {type(error).__name__}: {error}")

    def ready(self) -> pyosd.Target:
        """A session, and a partition to work in."""
        if self.session is None:
            self.session = self.serving.connect(reconnect_timeout=30.0)
        if time.monotonic() > self.renew_at:
            self.renew(self.session)
        return self.session

    def renew(self, target: pyosd.Target) -> None:
        if self.partition:
            self.clear(target)
        self.partition = target.create_partition()
        index = AttributeValue(Page.INDEX, COLOUR.page, b"\1")
        target.set_attributes(ref(self.partition), [index])
        self.objects, self.collection = [], target.create_collection(self.partition)
        self.renew_at = time.monotonic() + self.rng.expovariate(1 / RENEW_S)

    def clear(self, target: pyosd.Target) -> None:
        """Remove the partition; its jobs are ended first."""
        for status in target.jobs(PartitionId(self.partition)):
            if not status.done:
                target.job(status.id).kill(JOB_S)
        try:
            target.remove_partition(PartitionId(self.partition), contents=True)
        except NotFound:
            pass  # the answer to an earlier try was lost
        self.partition = 0

    def leave(self) -> None:
        """Nothing of it is left in the target."""
        while self.partition:
            self.guarded("leave", lambda target: self.clear(target) if self.partition else None)
            self.renew_at = time.monotonic() + 3600
        self.renew_at = 0.0
        self.drop()

    def drop(self) -> None:
        if self.session is not None:
            self.session.close()
            self.session = None

    # ---- jobs ----

    def submit(self, target: pyosd.Target, code: str, **how: object) -> pyosd.Job:
        zone = ref(self.partition)
        return target.exec("import osd\n" + code, zone=zone, **how)  # type: ignore[arg-type]

    def submit_array(
        self, target: pyosd.Target, code: str, array: range, **how: object
    ) -> pyosd.JobArray:
        made = self.submit(target, code, array=array, **how)
        assert isinstance(made, pyosd.JobArray)
        return made

    def job(self, target: pyosd.Target) -> None:
        code, how = ENDINGS[self.rng.choice(sorted(ENDINGS))]
        job = self.submit(target, code, **how)
        status = job.wait(JOB_S)
        assert status.state is not JobState.CANCELLED, status
        job.output()
        job.remove()

    def waited_job(self, target: pyosd.Target) -> None:
        """The command waits for the end."""
        code, how = ENDINGS[self.rng.choice(("prints", "result", "raises", "long result"))]
        job = self.submit(target, code, wait=20.0, **how)
        job.wait(JOB_S)
        job.remove()

    def killed_job(self, target: pyosd.Target) -> None:
        job = self.submit(target, FOREVER)
        if self.rng.random() < 0.5:
            time.sleep(self.rng.random() * 0.1)
        state = job.kill(JOB_S)
        assert state in (JobState.CANCELLED, JobState.SANDBOX_LOST), state
        job.remove()

    def held_job(self, target: pyosd.Target) -> None:
        job = self.submit(target, "pass", hold=True, priority=self.rng.randint(-9, 9))
        after = self.submit(target, "pass", after=[job])
        if self.rng.random() < 0.5:
            job.cancel()
        else:
            job.release()
        for each in (job, after):
            each.wait(JOB_S)
            each.remove()

    def key(self, target: pyosd.Target) -> None:
        key = f"{self.number}-{self.rng.getrandbits(40)}"
        first = self.submit(target, "pass", key=key)
        again = self.submit(target, "pass", key=key)
        assert first.id == again.id, "two jobs for one key"
        first.wait(JOB_S)
        first.remove()

    def array(self, target: pyosd.Target) -> None:
        """Members that end in two ways, at most two of them at once; sometimes all are killed, or held
        and let go, and one is cancelled."""
        code = "if osd.array_index % 3 == 0: 1 / 0"
        array = self.submit_array(target, code, range(self.rng.randint(2, 9)), at_once=2)
        chance = self.rng.random()
        if chance < 0.2:
            array.kill(JOB_S)
        elif chance < 0.5:
            array.hold()
            self.rng.choice(list(array)).cancel()
            array.release()
        at_work = sum(state in AT_WORK for state in array.states())
        assert at_work <= 2, f"{at_work} members run at once"
        array.wait(JOB_S)
        array.remove()

    def chain(self, target: pyosd.Target) -> None:
        """Jobs and an array one after the other, until one fails: none behind that one runs."""
        codes = self.rng.choices(("pass", "pass", "pass", "1 / 0"), k=self.rng.randint(2, 5))
        chain: list[pyosd.Job] = [self.submit(target, codes[0], hold=True)]
        for code in codes[1:]:
            chain.append(self.submit(target, code, after=[chain[-1]]))
        chain.append(self.submit_array(target, "pass", range(3), after=[chain[-1]]))
        chain[0].release()
        ends = [each.wait(JOB_S) for each in chain]
        for before, status in pairwise(ends):
            unreachable = status.reason == UNREACHABLE
            assert unreachable == (before.state is not JobState.COMPLETED), (before, status)
        for each in chain:
            each.remove()

    def again(self, target: pyosd.Target) -> None:
        """A job, and a member of an array, run once more; then what they were run again for goes."""
        job = self.submit(target, "1 / 0")
        array = self.submit_array(target, "1 / 0", range(3))
        job.wait(JOB_S)
        array.wait(JOB_S)
        jobs = [
            self.submit(target, "pass", predecessor=job.id),
            self.submit_array(target, "pass", range(1, 2), predecessor=array[1].id),
        ]
        for old, new in ((job, jobs[0]), (array[1], jobs[1])):
            assert new.status().predecessor == old.id, "another predecessor"
        job.remove()
        array.remove()
        for new in jobs:
            assert new.wait(JOB_S).state is not JobState.CANCELLED
            new.remove()

    def abandoned_job(self, target: pyosd.Target) -> None:
        """Nobody asks for it again: its record expires."""
        self.submit(target, "print('nobody reads this')", expire=0.5)

    # ---- data ----

    def some(self, target: pyosd.Target) -> ObjectRef:
        if len(self.objects) < OBJECTS:
            self.objects.append(target.create(PartitionId(self.partition), attributes=[COLOUR]))
        elif self.rng.random() < 0.2:
            target.remove(self.objects.pop(self.rng.randrange(OBJECTS)))
        return self.rng.choice(self.objects)

    def write(self, target: pyosd.Target) -> None:
        obj = self.some(target)
        data = bytes(self.rng.choice((100, 4096, 65536, 300_000)))
        if self.rng.random() < 0.2:
            target.append(obj, data[:4096])
        else:
            target.write(obj, self.rng.randrange(1 << 20), data)

    def read(self, target: pyosd.Target) -> None:
        target.read(self.some(target), 0, self.rng.choice((100, 4096, 1 << 20)))

    def punch(self, target: pyosd.Target) -> None:
        obj = self.some(target)
        target.write(obj, 0, bytes(10_000))
        self.rng.choice((target.punch, target.clear))(obj, 100, 5000)

    def attributes(self, target: pyosd.Target) -> None:
        obj = self.some(target)
        colour = self.rng.choice((b"red", b"green", b"blue"))
        values = [AttributeValue(COLOUR.page, COLOUR.number, colour)]
        values.append(AttributeValue(0x1_0005, 9, bytes(self.rng.choice((0, 8, 3000)))))
        if self.collection and self.rng.random() < 0.3:
            cid = self.collection.object_id.to_bytes(8, "big")
            values.append(AttributeValue(Page.USER_COLLECTIONS, 1, cid))
        target.set_attributes(obj, values)
        target.get_attributes(obj, [AttributeId(Page.USER_INFORMATION, 0x82)])

    def query(self, target: pyosd.Target) -> None:
        target.query(ref(self.partition), pyosd.attr(COLOUR.page, COLOUR.number) == b"red")

    def members(self, target: pyosd.Target) -> None:
        if self.collection:
            target.list_members(self.collection)
            target.get_member_attributes(
                self.collection, [AttributeId(Page.USER_INFORMATION, 0x82)]
            )

    def listings(self, target: pyosd.Target) -> None:
        target.list_objects(PartitionId(self.partition))
        target.list_partitions()
        target.jobs(PartitionId(self.partition))
        target.flush_partition(PartitionId(self.partition))

    def cut(self, target: pyosd.Target) -> None:
        """The connection goes with a command under way, or quietly."""
        if self.rng.random() < 0.5:
            target.submit(pyosd.requests.read(self.some(target), 0, 1 << 20))
            target.transport.drop()  # type: ignore[attr-defined]
        self.drop()


class Crew:
    """All workers and their threads."""

    def __init__(self, serving: Serving, count: int, rng: random.Random) -> None:
        self.workers = [Worker(n, serving, rng.getrandbits(32)) for n in range(count)]
        self.stop, self.rest = threading.Event(), threading.Event()
        self.threads = [
            threading.Thread(target=each.run, args=(self.stop, self.rest)) for each in self.workers
        ]
        for thread in self.threads:
            thread.start()

    def resting(self, within: float) -> bool:
        """Have them all rest; returns whether they do so in time."""
        self.rest.set()
        deadline = time.monotonic() + within
        while any(each.partition or each.session for each in self.workers):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def go_on(self) -> None:
        self.rest.clear()

    def end(self) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def done(self) -> Counter[str]:
        return sum((each.done for each in self.workers), Counter())

    def failures(self) -> list[str]:
        return [text for each in self.workers for text in each.failures]
