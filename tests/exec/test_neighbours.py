# SPDX-License-Identifier: GPL-2.0-or-later
"""Two tenants of one target: whatever the first does, the second one's commands and jobs go on.

Histories, not times: what the second asks for is done while the first one's work is unfinished.
"""

from __future__ import annotations

import ctypes
import os
import re
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import pyosd
from pyosd import JobState
from pyosd import requests as rq
from pyosd.functions import Contract, Functions, FunctionStage, OutputSize
from pyosd.jobs.job import Job
from pyosd.requests.copy import copy_user_object
from pyosd.types import AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import Duplication, Request
from pyosd.wire.exec_params import ExecParams
from pyosd.wire.reply import PendingReply, Reply
from tests.command.test_collection import membership
from tests.machine import unavailable
from tests.relay import from_address
from tests.serving import Serving, own_options, sandboxes_missing
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

WAIT_S = 60.0
MIB = 1 << 20
WORKERS, SLOTS, LONG = 3, 3, 10
PLACES = 64
"""Of background commands (target/command/background.h)."""
A, B = "127.0.0.2", "127.0.0.3"
HIGHEST_ID = 2**64 - 2
IO_LIMIT = 307
FUTEX_REQUEUE, SYS_FUTEX = 3, 202
CALL_LINE, ELSEWHERE = 64, 4000
"""Offset of the first call line in the memory shared with a sandbox, and an unused word."""
libc = ctypes.CDLL(None, use_errno=True)


class Sent:
    """A command under way."""

    def __init__(self, session: pyosd.Target, request: Request) -> None:
        self.found: Reply | None = None
        pending = session.submit(request)
        self.thread = threading.Thread(target=self._wait, args=(pending,))
        self.thread.start()

    def _wait(self, pending: PendingReply) -> None:
        self.found = pending.reply(WAIT_S)

    def done(self) -> bool:
        return self.found is not None

    def reply(self) -> Reply:
        self.thread.join()
        assert self.found is not None
        return self.found


class Tenants:
    """The target, the file that holds long commands while it exists, and a session of each tenant."""

    def __init__(self, serving: Serving, gate: Path, a: pyosd.Target, b: pyosd.Target) -> None:
        self.serving, self.gate, self.a, self.b = serving, gate, a, b
        self.zone_a, self.zone_b = ref(a.create_partition()), ref(b.create_partition())
        self.own = b.create(self.zone_b.partition_id)

    def second_works(self) -> None:
        """Small commands, and a job, of the second tenant."""
        self.b.write(self.own, 0, b"mine")
        assert bytes(self.b.read(self.own, 0, 4)) == b"mine"
        made = self.b.create(self.zone_b.partition_id)
        assert made in self.b.list_objects(self.zone_b.partition_id)
        self.b.remove(made)
        job = self.b.exec(
            f"import osd\nosd.userobject({self.own.partition_id}, {self.own.object_id}).data.write(b'job')",
            zone=self.zone_b,
        )
        assert job.wait(WAIT_S).state is JobState.COMPLETED

    def filled(self, mib: int) -> ObjectRef:
        """An object of the first tenant."""
        made = self.a.create(self.zone_a.partition_id)
        for at in range(0, mib * MIB, MIB):
            self.a.write(made, at, b"\x5a" * MIB)
        return made


@pytest.fixture(scope="module")
def tenants() -> Iterator[Tenants]:
    if why := sandboxes_missing():
        unavailable("sandbox", why)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="iosd-test-")))
        folder.chmod(0o755)
        gate = folder / "hold"
        allow = [each for address in ("127.0.0.1", A, B) for each in ("--allow", address)]
        serving = stack.enter_context(
            Serving(
                *("--isolation", "best", "--slots", str(SLOTS), "--workers", str(WORKERS)),
                *(*own_options(f"hold={gate}"), *allow),
            )
        )
        urls = [stack.enter_context(from_address(serving.url, each)) for each in (A, B)]
        sessions = [stack.enter_context(pyosd.connect(each)) for each in urls]
        yield Tenants(serving, gate, *sessions)


# ---- by wire ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["copy", "punch", "punch of one object"])
def test_long_commands(tenants: Tenants, command: str) -> None:
    """More long commands than workers, none of which ends: small ones and jobs of another go on."""
    one = command.endswith("one object")
    objects = [tenants.filled(2)] * LONG if one else [tenants.filled(2) for _ in range(LONG)]
    pid = tenants.zone_a.partition_id
    tenants.gate.touch()
    try:
        if command == "copy":
            way = Duplication.BYTE_BY_BYTE
            requests = [copy_user_object(each, pid, method=way) for each in objects]
        else:
            requests = [rq.punch(each, 1000, 10) for each in objects]
        unfinished = [Sent(tenants.a, each) for each in requests]
        if one:  # they would wait for the object
            unfinished += [Sent(tenants.a, rq.write(objects[0], 0, b"x")) for _ in range(LONG)]
        tenants.second_works()
        assert not any(each.done() for each in unfinished[:LONG])
    finally:
        tenants.gate.unlink()
    for each in unfinished:
        assert not each.reply().error


SUM = "import osd\ndef main(args):\n    return b'%d' % len(osd.stage(args).data)"


@pytest.mark.parametrize("changes", [False, True], ids=["read", "write"])
def test_a_byte_of_an_object_that_a_function_needs_as_a_whole(
    tenants: Tenants, changes: bool
) -> None:
    """To read or write one byte the target loads all of the object: that is a long command, too."""
    partition = tenants.a.create_partition(0x16)
    functions = Functions(tenants.a, partition)
    contract = Contract(OutputSize.UNKNOWN, inverse="main")
    made = functions.put(SUM, name="sum", methods=("main",), contract=contract)
    long, short = tenants.filled(5), tenants.filled(1)
    for each in (long, short):
        functions.attach(each, [FunctionStage(made.id)])
    request = rq.write(long, 0, b"x") if changes else rq.read(long, 0, 1)
    tenants.gate.touch()
    try:
        unfinished = [Sent(tenants.a, request) for _ in range(LONG)]
        tenants.second_works()
        assert bytes(tenants.a.read(short, 0, 7)) == b"1048576"
        assert not any(each.done() for each in unfinished)
    finally:
        tenants.gate.unlink()
    for sent in unfinished:
        assert not sent.reply().error
    tenants.a.remove(long)
    tenants.a.remove(short)
    tenants.a.remove_partition(partition, contents=True)


def test_background_commands(tenants: Tenants) -> None:
    """One tenant sends more background commands than there are places, and none of them ends: another one's
    are accepted, and are carried out."""
    pid, theirs = tenants.zone_a.partition_id, tenants.zone_b.partition_id
    mark = [AttributeValue(Page.APPLICATION, 1, b"red")]
    tenants.gate.touch()
    try:
        accepted: list[ObjectRef] = []
        refused = None
        while refused is None and len(accepted) < PLACES:
            collection = tenants.a.create_collection(pid)
            try:
                tenants.a.set_member_attributes(collection, mark, immediate=True)
                accepted.append(collection)
            except pyosd.TargetBusy as error:
                refused = error
        small = tenants.b.create_collection(theirs)
        member = tenants.b.create(theirs, attributes=[membership(small)])
        tenants.b.set_member_attributes(small, mark, immediate=True)
        tenants.second_works()
        assert refused
        assert all(tenants.a.tracking(each).active for each in accepted)
    finally:
        tenants.gate.unlink()
    until(lambda: not tenants.b.tracking(small).active)
    assert tenants.b.get_attribute(member, *mark[0].id) == b"red"
    until(lambda: not any(tenants.a.tracking(each).active for each in accepted))
    tenants.a.set_member_attributes(collection, mark, immediate=True)


# ---- by scripts ------------------------------------------------------------------------------------


def begun(job: Job) -> None:
    until(lambda: job.status().progress == 1.0)


PUNCHER = """
import osd
each = osd.userobject({pid}, {oid})
osd.progress(1.0)
while True:
    each.punch(1000, 10)
"""


def test_punches_of_scripts(tenants: Tenants) -> None:
    """All slots but one punch for ever: another's job makes its calls; killed, they end with the object
    whole."""
    objects = [tenants.filled(32) for _ in range(SLOTS - 1)]
    jobs = [
        tenants.a.exec(
            PUNCHER.format(pid=each.partition_id, oid=each.object_id), zone=tenants.zone_a
        )
        for each in objects
    ]
    for job in jobs:
        begun(job)
    tenants.second_works()
    assert all(job.status().state is JobState.RUNNING for job in jobs)
    for job in jobs:
        assert job.kill(WAIT_S) is JobState.CANCELLED
    for each in objects:
        assert bytes(tenants.a.read(each, 0, 1000)) == b"\x5a" * 1000


def test_object_that_a_script_punches(tenants: Tenants) -> None:
    """Commands that wait for a script's PUNCH keep no worker: one sent after them is done sooner."""
    large = tenants.filled(96)
    job = tenants.a.exec(
        PUNCHER.format(pid=large.partition_id, oid=large.object_id), zone=tenants.zone_a
    )
    begun(job)

    def overtakes() -> bool:
        stuck = [Sent(tenants.a, rq.write(large, 0, b"a")) for _ in range(4 * WORKERS)]
        tenants.b.write(tenants.own, 0, b"mine")
        before = sum(each.done() for each in stuck)
        assert all(each.reply().error is None for each in stuck)
        return before < WORKERS

    until(overtakes)
    assert job.kill(WAIT_S) is JobState.CANCELLED


def test_punch_counts_as_written(tenants: Tenants) -> None:
    """Bytes that PUNCH moves count against the job's limit. Beyond it the job ends, and the object
    is whole."""
    each = tenants.filled(4)
    script = PUNCHER.format(pid=each.partition_id, oid=each.object_id)
    status = tenants.a.exec(script, zone=tenants.zone_a, limits=pyosd.Limits(io=MIB)).wait(WAIT_S)
    assert status.reason == IO_LIMIT
    assert bytes(tenants.a.read(each, 4 * MIB - 1, 1)) == b"\x5a"


# ---- ids -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["wire", "script", "collection"])
def test_highest_id(tenants: Tenants, by: str) -> None:
    """An object with the highest id of a partition that both use, removed again or not."""
    pid = tenants.a.create_partition()
    if by == "wire":
        tenants.a.create(pid, HIGHEST_ID)
    elif by == "collection":
        tenants.a.create_collection(pid, HIGHEST_ID)
    else:
        script = f"import osd\nosd.userobject({pid}, {HIGHEST_ID}).create()"
        assert tenants.a.exec(script, zone=ref(pid)).wait(WAIT_S).state is JobState.COMPLETED
    for _ in range(2):
        made = tenants.b.create(pid)
        assert made.object_id < 2**62
        assert tenants.b.exec("pass", zone=ref(pid)).wait(WAIT_S).state is JobState.COMPLETED
        if by != "collection" and ref(pid, HIGHEST_ID) in tenants.a.list_objects(pid):
            tenants.a.remove(ref(pid, HIGHEST_ID))


# ---- waiting commands ------------------------------------------------------------------------------


def test_synchronous_waits(tenants: Tenants) -> None:
    """One tenant has the maximum of waiting commands; another's synchronous job still runs."""
    waits: list[Sent] = []
    blockers = [
        tenants.a.exec("import time\ntime.sleep(600)", zone=tenants.zone_a) for _ in range(SLOTS)
    ]
    before = len(tenants.a.jobs(tenants.zone_a.partition_id))
    params = ExecParams(wait=60)
    request = rq.execute(tenants.zone_a, b"pass", params, synchronous=True)
    busy = False
    while not busy and len(waits) < 200:
        waits.append(Sent(tenants.a, request))

        def taken(count: int = before + len(waits)) -> bool:
            return waits[-1].done() or len(tenants.a.jobs(tenants.zone_a.partition_id)) >= count

        until(taken)
        busy = waits[-1].done()
    refused = waits.pop().reply().error
    assert isinstance(refused, pyosd.TargetBusy)
    theirs = Sent(tenants.b, rq.execute(tenants.zone_b, b"pass", params, synchronous=True))
    until(lambda: tenants.b.jobs(tenants.zone_b.partition_id))
    for job in blockers:
        job.kill(WAIT_S)
    assert not theirs.reply().error
    assert not any(each.reply().error for each in waits)


# ---- memory shared with a sandbox ------------------------------------------------------------------


def shared_memory(pid: int) -> list[int]:
    """Addresses here of what a sandbox shares with its proxy: mapped from its own mappings."""
    found = []
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        if not re.search(r"rw-s .*memfd:", line):
            continue
        fd = os.open(f"/proc/{pid}/map_files/{line.split()[0]}", os.O_RDWR)
        size = os.fstat(fd).st_size
        at = libc_mmap(fd, size)
        os.close(fd)
        found.append(at)
    return found


def libc_mmap(fd: int, size: int) -> int:
    libc.mmap.restype = ctypes.c_void_p
    at = libc.mmap(None, ctypes.c_size_t(size), 3, 1, fd, ctypes.c_long(0))
    assert at not in (None, ctypes.c_void_p(-1).value)
    return int(at)


def requeue(at: int) -> int:
    """How many waiters of the call line wait for another word from now on."""
    return int(
        libc.syscall(
            *(SYS_FUTEX, ctypes.c_void_p(at + CALL_LINE), FUTEX_REQUEUE, 0, ctypes.c_void_p(8)),
            *(ctypes.c_void_p(at + ELSEWHERE), 0),
        )
    )


def test_requeued_proxy(tenants: Tenants) -> None:
    """A sandbox that moves its proxy's wait to another word and dies loses neither slot nor end."""
    job = tenants.a.exec("import time\ntime.sleep(600)", zone=tenants.zone_a)
    until(lambda: job.status().state is JobState.RUNNING)
    told = re.compile(rf"job={job.id} .* host pid (\d+)$", re.M)  # others may still have a proxy
    sandbox = int(until(lambda: told.findall(tenants.serving.text()))[-1])
    shared = shared_memory(sandbox)
    until(lambda: sum(requeue(at) for at in shared))
    os.kill(sandbox, signal.SIGKILL)
    until(lambda: job.status().attempt == 2)  # it is known that the first one's sandbox was lost
    assert job.kill(WAIT_S) is JobState.CANCELLED
    tenants.second_works()
