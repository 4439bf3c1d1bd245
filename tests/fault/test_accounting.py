# SPDX-License-Identifier: GPL-2.0-or-later
"""Used capacities and counts of partitions and root: right after every command, after kill -9 and
after closing in order (osd2-wire 5.8, 5.9)."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from pyosd import errors, jobs
from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.jobs.job import Job
from pyosd.types import ROOT, AttributeId, AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists, Request
from pyosd.wire.job_status import is_apart
from tests.conftest import MakeHarness
from tests.expect import OK, QUOTA, check
from tests.harness import Harness

STEPS = 250
END_EVERY = 40
"""Commands between two ends of the process, by kill -9 or in order."""
QUOTA_BYTES = 24 << 20
LONGEST = 5 << 20


@dataclass
class Books:
    """The expected figures: objects' lengths and collections by partition."""

    lengths: dict[ObjectRef, int] = field(default_factory=dict)
    attributes: dict[ObjectRef, dict[int, int]] = field(default_factory=dict)
    """Lengths by number, of objects on one page."""
    jobs: dict[ObjectRef, int] = field(default_factory=dict)
    """Bytes of code, which those that were cancelled keep, too."""
    ended: set[ObjectRef] = field(default_factory=set)
    collections: set[ObjectRef] = field(default_factory=set)
    partitions: set[int] = field(default_factory=set)
    had_jobs: set[int] = field(default_factory=set)

    def attribute_bytes(self, pid: int) -> int:
        """Each is its value and 64 bytes, in units of 16."""
        return sum(
            (length + 64 + 15) // 16 * 16
            for obj, found in self.attributes.items()
            if obj.partition_id == pid and obj in self.lengths
            for length in found.values()
            if length
        )

    def job_bytes(self, pid: int, apart: bool) -> int:
        """Each is its code and 1 KiB."""
        return sum(1024 + self.jobs[job] for job in self.jobs_in(pid, apart))

    def jobs_in(self, pid: int, apart: bool) -> list[ObjectRef]:
        """Those that stand apart from the partition's data, or those among it."""
        return [job for job in self.jobs if job.partition_id == pid and is_apart(job) == apart]

    def charged(self, pid: int) -> int:
        return self.used(pid) + self.attribute_bytes(pid) + self.job_bytes(pid, apart=False)

    def used(self, pid: int) -> int:
        return sum(length for obj, length in self.lengths.items() if obj.partition_id == pid)

    def count(self, pid: int) -> int:
        every = [*self.lengths, *self.collections]
        among = len(self.jobs_in(pid, apart=False))
        return sum(each.partition_id == pid for each in every) + among


def figures(osd: Commands, where: ObjectRef, page: int, *numbers: int) -> list[int]:
    found = osd.get_attributes(where, [AttributeId(page, number) for number in numbers])
    return [each.uint for each in found]


def audit(osd: Commands, books: Books, why: str) -> None:
    """Compare every figure there is."""
    total = 0
    for pid in books.partitions:
        used, count = figures(osd, ref(pid), Page.PARTITION_INFORMATION, 0x81, 0xC1)
        assert (used, count) == (books.used(pid), books.count(pid)), f"{pid:#x} after {why}"
        found = figures(osd, ref(pid), Page.CHARGED, 1, 2, 3, 4, 5)
        wanted = [books.charged(pid), books.attribute_bytes(pid), books.job_bytes(pid, apart=False)]
        # The first job makes the collection of jobs.
        apart = len(books.jobs_in(pid, apart=True)) + (pid in books.had_jobs)
        wanted += [books.job_bytes(pid, apart=True), apart]
        assert found == wanted, f"{pid:#x} after {why}"
        total += used
    used, partitions = figures(osd, ROOT, Page.ROOT_INFORMATION, 0x81, 0xC0)
    assert (used, partitions) == (total, len(books.partitions)), f"the root after {why}"
    for obj, length in books.lengths.items():
        used, logical = figures(osd, obj, Page.USER_INFORMATION, 0x81, 0x82)
        assert (used, logical) == (length, length), f"{obj} after {why}"


class Accountant:
    """Sends random commands and keeps the books."""

    def __init__(self, harness: Harness, rng: random.Random) -> None:
        self.harness, self.rng, self.books = harness, rng, Books()
        for _ in range(2):
            self.partition()

    @property
    def osd(self) -> Commands:
        return self.harness.osd

    def partition(self) -> None:
        pid = self.osd.create_partition()
        self.books.partitions.add(pid)
        quota = AttributeValue(Page.PARTITION_QUOTAS, 0x1_0001, QUOTA_BYTES.to_bytes(8, "big"))
        self.osd.set_attributes(ref(pid), [quota])

    def any_partition(self) -> int:
        return self.rng.choice(sorted(self.books.partitions))

    def any_object(self) -> ObjectRef:
        if not self.books.lengths:
            self.create()
        return self.rng.choice(list(self.books.lengths))

    def free_id(self) -> int:
        """Of no object and no collection of any partition."""
        books = self.books
        taken = [
            each.object_id
            for each in (*books.lengths, *books.collections, *books.jobs)
            if not is_apart(each)
        ]
        return max(taken, default=0x10000) + 1_000

    def grow(self, request: Request, pid: int, more: int) -> bool:
        """Send what may pass the quota; whether it went through."""
        fits = self.books.charged(pid) + more <= QUOTA_BYTES
        check(self.osd.reply(request), OK if fits or more <= 0 else QUOTA)
        return fits or more <= 0

    def new_length(self, obj: ObjectRef, request: Request, length: int) -> None:
        if self.grow(request, obj.partition_id, length - self.books.lengths[obj]):
            self.books.lengths[obj] = length

    # ---- commands ----

    def create(self) -> None:
        for each in self.osd.create_many(PartitionId(self.any_partition()), self.rng.randint(1, 4)):
            self.books.lengths[each] = 0

    def create_and_write(self) -> None:
        pid, size = self.any_partition(), self.rng.randrange(1, 100_000)
        free = self.free_id()
        if self.grow(rq.create_and_write(pid, free, 7, b"x" * size), pid, size + 7):
            self.books.lengths[ref(pid, free)] = size + 7
            self.books.attributes.pop(ref(pid, free), None)

    def write(self) -> None:
        obj = self.any_object()
        start, size = self.rng.randrange(LONGEST), self.rng.randrange(1, 70_000)
        length = max(self.books.lengths[obj], start + size)
        self.new_length(obj, rq.write(obj, start, b"x" * size), length)

    def append(self) -> None:
        obj, size = self.any_object(), self.rng.randrange(1, 70_000)
        self.new_length(obj, rq.append(obj, b"x" * size), self.books.lengths[obj] + size)

    def clear(self) -> None:
        obj = self.any_object()
        start, size = self.rng.randrange(LONGEST), self.rng.randrange(1, 1 << 20)
        length = max(self.books.lengths[obj], start + size)
        self.new_length(obj, rq.clear(obj, start, size), length)

    def punch(self) -> None:
        obj = self.any_object()
        length = self.books.lengths[obj]
        start, size = self.rng.randrange(length + 1), self.rng.randrange(1 << 20)
        self.new_length(obj, rq.punch(obj, start, size), length - min(size, length - start))

    def truncate(self) -> None:
        obj, length = self.any_object(), self.rng.randrange(LONGEST)
        value = AttributeValue(Page.USER_INFORMATION, 0x82, length.to_bytes(8, "big"))
        request = rq.set_attributes(obj, attributes=AttributeLists((), (value,)))
        self.new_length(obj, request, length)

    def refused(self) -> None:
        """A cut and a refused attribute in one list: nothing changes."""
        obj = self.any_object()
        values = (
            AttributeValue(Page.USER_INFORMATION, 0x82, bytes(8)),
            AttributeValue(Page.USER_INFORMATION, 0x81, bytes(8)),
        )
        lists = AttributeLists((), values)
        assert self.osd.reply(rq.set_attributes(obj, attributes=lists)).error
        assert self.osd.reply(rq.create(obj.partition_id, 0, 3, attributes=lists)).error

    def copy(self) -> None:
        obj, pid = self.any_object(), self.any_partition()
        length = self.books.lengths[obj]
        free = self.free_id()
        attributes = dict(self.books.attributes.get(obj, {}))
        before = self.books.attribute_bytes(pid)
        self.books.attributes[ref(pid, free)] = attributes
        self.books.lengths[ref(pid, free)] = 0
        more = self.books.attribute_bytes(pid) - before
        del self.books.lengths[ref(pid, free)], self.books.attributes[ref(pid, free)]
        if self.grow(rq.copy_user_object(obj, pid, free), pid, length + more):
            self.books.lengths[ref(pid, free)] = length
            self.books.attributes[ref(pid, free)] = attributes

    def annotate(self) -> None:
        obj, number = self.any_object(), self.rng.randint(1, 9)
        length = self.rng.choice([0, 1, 17, self.rng.randrange(65_535)])
        before = self.books.attribute_bytes(obj.partition_id)
        had = self.books.attributes.setdefault(obj, {}).get(number, 0)
        self.books.attributes[obj][number] = length
        more = self.books.attribute_bytes(obj.partition_id) - before
        value = AttributeValue(Page.APPLICATION, number, b"a" * length)
        request = rq.set_attributes(obj, attributes=AttributeLists((), (value,)))
        self.books.attributes[obj][number] = had
        if self.grow(request, obj.partition_id, more):
            self.books.attributes[obj][number] = length

    def submit(self) -> None:
        """A job that is held: nobody runs it here."""
        pid, size = self.any_partition(), self.rng.randrange(10, 2 << 20)
        where = self.rng.choice([None, ref(pid)])
        fits = where is None or self.books.charged(pid) + 1024 + size <= QUOTA_BYTES
        try:
            code = "#".ljust(size, "x")
            job = jobs.submit(
                *(self.osd, code), zone=ref(pid), hold=True, compress=False, surrogate=where
            )
        except errors.NoSpace:
            assert not fits
            return
        assert fits
        self.books.jobs[job.id] = size
        self.books.had_jobs.add(pid)

    def end_job(self) -> None:
        if self.books.jobs:
            job = self.rng.choice(list(self.books.jobs))
            Job(self.osd, job).cancel()
            self.books.ended.add(job)

    def remove_job(self) -> None:
        if self.books.ended:
            job = self.rng.choice(sorted(self.books.ended))
            Job(self.osd, job).remove()
            self.books.ended.discard(job)
            del self.books.jobs[job]

    def remove(self) -> None:
        obj = self.any_object()
        self.osd.remove(obj)
        del self.books.lengths[obj]

    def collect(self) -> None:
        """A collection comes; with some members it goes again, and they with it or not."""
        pid = self.any_partition()
        cid = self.osd.create_collection(PartitionId(pid))
        self.books.collections.add(cid)
        members = [each for each in self.books.lengths if each.partition_id == pid][:3]
        for each in members:
            join = AttributeValue(4, cid.object_id % 1000 + 1, cid.object_id.to_bytes(8, "big"))
            self.osd.set_attributes(each, [join])
        if self.rng.random() < 0.3:
            check(self.osd.reply(rq.remove_member_objects(cid)), OK)
            for each in members:
                del self.books.lengths[each]
        if self.rng.random() < 0.6:
            self.osd.remove_collection(cid, with_members=True)
            self.books.collections.discard(cid)

    def partition_goes(self) -> None:
        pid = self.any_partition()
        for job in self.books.jobs.keys() - self.books.ended:
            if job.partition_id == pid:
                Job(self.osd, job).cancel()
        self.osd.remove_partition(PartitionId(pid), contents=True)
        self.books.jobs = {
            job: code for job, code in self.books.jobs.items() if job.partition_id != pid
        }
        self.books.ended &= self.books.jobs.keys()
        self.books.partitions.discard(pid)
        self.books.lengths = {
            obj: length for obj, length in self.books.lengths.items() if obj.partition_id != pid
        }
        self.books.collections = {
            each for each in self.books.collections if each.partition_id != pid
        }
        self.partition()

    def step(self) -> str:
        choices: list[tuple[Callable[[], None], int]] = [
            (self.create, 4),
            (self.create_and_write, 4),
            (self.write, 10),
            (self.append, 8),
            (self.clear, 4),
            (self.punch, 6),
            (self.truncate, 8),
            (self.copy, 4),
            (self.annotate, 10),
            (self.submit, 6),
            (self.end_job, 4),
            (self.remove_job, 2),
            (self.refused, 3),
            (self.remove, 3),
            (self.collect, 2),
            (self.partition_goes, 1),
        ]
        [action] = self.rng.choices(
            [each for each, _ in choices], [weight for _, weight in choices]
        )
        action()
        return action.__name__


@pytest.mark.parametrize("durability", ["process", "sync"])
def test_figures_stay_true(make_harness: MakeHarness, seed: int, durability: str) -> None:
    harness = make_harness(durability=durability)
    accountant = Accountant(harness, random.Random(seed))
    steps = STEPS if durability == "process" else STEPS // 5
    for number in range(1, steps + 1):
        why = accountant.step()
        audit(harness.osd, accountant.books, f"{why} (step {number}, seed {seed})")
        if number % END_EVERY:
            continue
        how = accountant.rng.choice(["kill -9", "a restart"])
        if how == "kill -9":
            harness.kill()
            harness.start()
        else:
            harness.restart()
        audit(harness.osd, accountant.books, f"{how} (step {number}, seed {seed})")
