# SPDX-License-Identifier: GPL-2.0-or-later
"""Task management over a stock tgtd: ABORT TASK, ABORT TASK SET, LOGICAL UNIT RESET, sessions that are
reinstated or lost, at each stage of long commands and of EXEC; what tgtd does not support.

A long command waits between its steps as long as a file exists (option hold), so each function meets
it in the middle.  States are asked for until they are there; nothing sleeps.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import pyosd
from pyosd import requests as rq
from pyosd.attributes import Page
from pyosd.cdb import AttributeLists, Request, encode
from pyosd.errors import OSDError, TargetBusy
from pyosd.exec_params import ExecFlag, ExecParams
from pyosd.job_status import JobState
from pyosd.types import ObjectRef, ref
from tests.command.held import MANY, RED, STEP, until
from tests.command.test_collection import membership
from tests.conftest import unavailable
from tests.e2e.raw_iscsi import FINAL, RawSession, reset_on_close
from tests.expect import OK, TASK_ABORTED, check
from tests.serving import Serving, arguments, missing, sandboxes_missing, shared

pytestmark = pytest.mark.tgtd

TASK_MANAGEMENT, RESPONSE, R2T, DATA_IN, ANSWER = 0x42, 0x22, 0x31, 0x25, 0x21
ABORT_TASK, ABORT_TASK_SET, CLEAR_TASK_SET, UNIT_RESET, WARM_RESET, COLD_RESET = 1, 2, 4, 5, 6, 7
DONE, NO_SUCH_TASK, NOT_SUPPORTED = 0, 1, 5
FUNCTIONS = {"task": ABORT_TASK, "set": ABORT_TASK_SET, "reset": UNIT_RESET}
LOSSES = ("close", "reset", "reinstate")
VICTIM, MANAGER = 2, 9  # task tags
WAIT_S = 30.0


class Victim(RawSession):
    """A session whose one command something happens to."""

    def __init__(self, url: str) -> None:
        self.url = url
        super().__init__(url)
        command, _ = encode(rq.get_attributes(ref(0x1_0000)))
        self.socket.sendall(self.command(command.cdb, tag=1))
        self.receive()  # a unit attention: the first command of a session

    def begin(self, request: Request) -> int | None:
        """Send the command alone.  Returns: what an R2T wants to be answered with, if one comes."""
        self.request, _ = encode(request)
        out, room = bytes(self.request.data_out), self.request.data_in_length
        pdu = self.command(self.request.cdb, data_out=len(out), data_in=room, tag=VICTIM, serial=1)
        self.socket.sendall(pdu)
        if not out:
            return None
        header, _ = self.receive()
        assert header[0] & 0x3F == R2T
        return int.from_bytes(header[20:24], "big")

    def start(self, request: Request) -> None:
        """Send it with its data; the answer is not waited for."""
        transfer_tag = self.begin(request)
        if transfer_tag is not None:
            out = bytes(self.request.data_out)
            self.socket.sendall(self.data(VICTIM, transfer_tag, 0, out, True))

    def manage(self, function: int) -> None:
        """Send a task management function about it."""
        lun = struct.pack(">BB6x", 0, self.address.lun)
        flags = FINAL | function
        referenced = VICTIM if function == ABORT_TASK else 0xFFFF_FFFF
        pdu = struct.pack(">BBHI8sIIIII", TASK_MANAGEMENT, flags, 0, 0, lun, MANAGER, referenced,
                          2, 3, 1)  # fmt: skip
        self.socket.sendall(pdu.ljust(48, b"\0"))

    def outcome(self) -> tuple[int | None, int]:
        """SAM status of the command, None: not answered; response to the function."""
        status = None
        while True:
            header, _ = self.receive()
            kind = header[0] & 0x3F
            if kind == RESPONSE:
                assert int.from_bytes(header[16:20], "big") == MANAGER
                return status, header[2]
            assert int.from_bytes(header[16:20], "big") == VICTIM
            if kind == ANSWER or (kind == DATA_IN and header[1] & 1):
                status = header[3]

    def lose(self, how: str) -> None:
        """End the session as its initiator, or its network, would; a session of the same initiator and
        identifier takes its place (the old connection stays open as long as tgtd has the command)."""
        if how == "reinstate":
            Victim(self.url).socket.close()
        elif how == "reset":
            reset_on_close(self.socket)
        self.socket.close()


@dataclass
class Unit:
    """A target whose long commands wait; gate is the file."""

    serving: Serving
    gate: Path
    victims: list[Victim]

    def victim(self) -> Victim:
        self.victims.append(Victim(self.serving.url))
        return self.victims[-1]


@pytest.fixture(scope="module")
def unit() -> Iterator[Unit]:
    why = missing()
    if why:
        unavailable("tgtd", why)
    with tempfile.TemporaryDirectory(prefix="iosd-test-") as folder:
        Path(folder).chmod(0o755)
        gate = Path(folder) / "hold"
        options = ["--module-option", f"hold={gate}", "--workers", "3"]
        if not sandboxes_missing():
            options += ["--slots", "1"]
        with shared(*arguments(options)) as served:
            yield Unit(served, gate, [])


@pytest.fixture(autouse=True)
def no_victims_left(unit: Unit) -> Iterator[None]:
    yield
    while unit.victims:
        unit.victims.pop().socket.close()


@pytest.fixture
def target(unit: Unit) -> Iterator[pyosd.Target]:
    with unit.serving.connect() as session:
        yield session


@pytest.fixture
def pid(target: pyosd.Target) -> Iterator[int]:
    partition_id = target.create_partition()
    yield partition_id
    if partition_id in target.list_partitions():
        target.remove_partition(partition_id, contents=True)


@pytest.fixture
def gate(unit: Unit) -> Iterator[Path]:
    unit.gate.touch()
    yield unit.gate
    unit.gate.unlink(missing_ok=True)


@pytest.fixture
def collection(target: pyosd.Target, pid: int) -> ObjectRef:
    collection = target.create_collection(pid)
    target.create_many(pid, MANY, attributes=[membership(collection)])
    return collection


def is_ready(target: pyosd.Target) -> bool:
    """False: a unit attention, of which each reset leaves one."""
    try:
        target.test_unit_ready()
    except OSDError as error:
        assert error.sense is not None
        assert error.sense.sense_key == 6, error
        return False
    return True


def alive(unit: Unit, target: pyosd.Target) -> None:
    """The same tgtd serves on: this session, and a new one."""
    until(lambda: is_ready(target))
    with unit.serving.connect(reconnect_timeout=0) as session:
        session.list_partitions()
    assert unit.serving.process.poll() is None


# ---- commands in steps ----


@dataclass(frozen=True)
class Steps:
    """A command in steps: how it is asked for, whose page tells of it, what its first step does."""

    request: Callable[[ObjectRef, ObjectRef], Request]
    on_tracker: bool
    first: int
    left: Callable[[pyosd.Target, ObjectRef], int]
    after_first: int


def objects(target: pyosd.Target, collection: ObjectRef) -> int:
    return len(target.list_objects(collection.partition_id))


def joined(target: pyosd.Target, collection: ObjectRef) -> int:
    return target.tracking(collection).members


STEPS = {
    "SET MEMBER ATTRIBUTES": Steps(
        lambda c, _: rq.set_member_attributes(c, attributes=AttributeLists((), (RED,))),
        False, STEP, joined, MANY),
    "REMOVE MEMBER OBJECTS": Steps(
        lambda c, _: rq.remove_member_objects(c), False, STEP, objects, MANY - STEP),
    "REMOVE COLLECTION": Steps(
        lambda c, _: rq.remove_collection(c, with_members=True), False, STEP, joined, MANY - STEP),
    "QUERY": Steps(
        lambda c, t: rq.query_into(c, [], t.object_id), True, 0, joined, 0),
}  # fmt: skip
BY_STEPS = pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS.keys())


def in_the_middle(
    unit: Unit, target: pyosd.Target, steps: Steps, collection: ObjectRef
) -> tuple[Victim, ObjectRef, Request]:
    tracker = collection
    if steps.on_tracker:
        tracker = target.create_tracking_collection(collection.partition_id)
    request = steps.request(collection, tracker)
    victim = unit.victim()
    victim.start(request)
    until(lambda: bool(target.tracking(tracker).active))
    until(lambda: target.tracking(tracker).done == steps.first)
    return victim, tracker, request


@BY_STEPS
@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_abort_in_the_middle(
    unit: Unit,
    target: pyosd.Target,
    collection: ObjectRef,
    gate: Path,
    steps: Steps,
    function: int,
) -> None:
    """It ends with TASK ABORTED; what was committed stays, and it may be repeated."""
    victim, tracker, request = in_the_middle(unit, target, steps, collection)
    victim.manage(function)
    response = NO_SUCH_TASK if function == ABORT_TASK else DONE
    assert victim.outcome() == (TASK_ABORTED, response), "tgtd waits for it to end, then answers"
    page = target.tracking(tracker)
    assert (page.active, page.ended, page.done) == (0, TASK_ABORTED, steps.first)
    assert steps.left(target, tracker) == steps.after_first
    gate.unlink()
    victim.socket.close()
    check(target.reply(request), OK)
    alive(unit, target)


@BY_STEPS
@pytest.mark.parametrize("how", LOSSES)
def test_lost_in_the_middle(
    unit: Unit, target: pyosd.Target, collection: ObjectRef, gate: Path, steps: Steps, how: str
) -> None:
    """tgtd tells nobody: it runs to its end, and the page says how that was."""
    victim, tracker, _ = in_the_middle(unit, target, steps, collection)
    victim.lose(how)
    alive(unit, target)
    assert target.tracking(tracker).active
    gate.unlink()
    if steps is STEPS["REMOVE COLLECTION"]:
        until(lambda: tracker not in target.list_collections(tracker.partition_id))
    else:
        until(lambda: target.tracking(tracker).ended_well)
        assert target.tracking(tracker).done == MANY
    alive(unit, target)


# ---- commands that only read ----


READERS: dict[str, Callable[[ObjectRef], Request]] = {
    "QUERY": lambda c: rq.query(c, [], 1 << 16),
    "GET MEMBER ATTRIBUTES": lambda c: rq.get_member_attributes(
        c, attributes=AttributeLists((RED.id,))
    ),
    "OBJECT STRUCTURE CHECK": lambda c: rq.object_structure_check(c.partition_id),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_abort_reader(
    unit: Unit,
    target: pyosd.Target,
    collection: ObjectRef,
    gate: Path,
    name: str,
    function: int,
) -> None:
    victim = unit.victim()
    victim.start(READERS[name](collection))
    victim.manage(function)
    status, _ = victim.outcome()
    assert status == TASK_ABORTED
    gate.unlink()
    victim.socket.close()
    check(target.reply(READERS[name](collection)), OK)
    alive(unit, target)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_abort_copy(unit: Unit, target: pyosd.Target, pid: int, gate: Path, function: int) -> None:
    """In the middle of the data: no object, no capacity taken, and the source is free."""
    source = target.create_and_write(pid, b"data" * 1000)
    before = target.get_attribute(ref(pid), Page.PARTITION_INFORMATION, 0x81)
    victim = unit.victim()
    victim.start(rq.copy_user_object(source, pid, 0x7_0000))
    until(lambda: target.get_attribute(ref(pid), Page.PARTITION_INFORMATION, 0x81) != before)
    victim.manage(function)
    status, _ = victim.outcome()
    assert status == TASK_ABORTED
    gate.unlink()
    victim.socket.close()
    alive(unit, target)
    assert target.get_attribute(ref(pid), Page.PARTITION_INFORMATION, 0x81) == before
    assert target.list_objects(pid) == [source]
    target.write(source, 0, b"free")
    check(target.reply(rq.copy_user_object(source, pid, 0x7_0000)), OK)


def test_abort_in_the_queue(
    unit: Unit, target: pyosd.Target, collection: ObjectRef, gate: Path
) -> None:
    """Behind commands that keep all workers: it never begins."""
    lists = AttributeLists((RED.id,))
    readers = [target.submit(rq.get_member_attributes(collection, attributes=lists)) for _ in "abc"]
    victim = unit.victim()
    victim.start(rq.remove_member_objects(collection))
    victim.manage(ABORT_TASK)
    gate.unlink()
    status, _ = victim.outcome()
    for each in readers:
        check(each.reply(), OK)
    victim.socket.close()
    if status == TASK_ABORTED:
        assert objects(target, collection) in (MANY, MANY - STEP, MANY - 2 * STEP, MANY - 3 * STEP)
    else:  # it was quicker than the look at it
        assert objects(target, collection) == 0


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_abort_format(
    unit: Unit, target: pyosd.Target, pid: int, gate: Path, function: int
) -> None:
    """While it waits: nothing has happened."""
    victim = unit.victim()
    victim.start(rq.format_osd())
    victim.manage(function)
    status, _ = victim.outcome()
    assert status == TASK_ABORTED
    gate.unlink()
    victim.socket.close()
    assert pid in target.list_partitions()
    alive(unit, target)


def test_abort_format_behind_a_step(
    unit: Unit, target: pyosd.Target, collection: ObjectRef, gate: Path
) -> None:
    """It does not wait for a step of a command that was answered, which goes on afterwards."""
    target.set_member_attributes(collection, [RED], immediate=True)
    victim = unit.victim()
    victim.start(rq.format_osd())
    until(lambda: target.reply(rq.list_objects()).error is not None)
    victim.manage(ABORT_TASK)
    status, _ = victim.outcome()
    assert status == TASK_ABORTED
    assert target.tracking(collection).active
    gate.unlink()
    until(lambda: target.tracking(collection).ended_well)
    assert target.tracking(collection).done == MANY
    victim.socket.close()
    alive(unit, target)


# ---- what a stock tgtd does not do ----


@pytest.mark.parametrize("function", [CLEAR_TASK_SET, WARM_RESET, COLD_RESET])
def test_not_supported(
    unit: Unit, target: pyosd.Target, collection: ObjectRef, gate: Path, function: int
) -> None:
    """The function is refused, and the command goes on."""
    victim, tracker, _ = in_the_middle(unit, target, STEPS["SET MEMBER ATTRIBUTES"], collection)
    victim.manage(function)
    assert victim.outcome() == (None, NOT_SUPPORTED)
    gate.unlink()
    header, _ = victim.receive()
    assert (header[0] & 0x3F, header[3]) == (ANSWER, 0)
    assert target.tracking(tracker).ended_well
    victim.socket.close()
    alive(unit, target)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_nothing_to_abort(unit: Unit, target: pyosd.Target, function: int) -> None:
    victim = unit.victim()
    victim.manage(function)
    status, response = victim.outcome()
    assert status is None
    assert response in (DONE, NO_SUCH_TASK)
    victim.socket.close()
    alive(unit, target)


# ---- EXEC ----


FOREVER = b"while True: pass\n"
QUICK = b"import osd\nosd.result(b'done')\n"


@pytest.fixture
def sandboxes() -> None:
    why = sandboxes_missing()
    if why:
        unavailable("sandbox", why)


@pytest.fixture
def zone(target: pyosd.Target, sandboxes: None) -> Iterator[ObjectRef]:
    zone = ref(target.create_partition())
    yield zone
    for status in target.jobs(zone.partition_id):
        if not status.done:
            target.job(status.id).kill(WAIT_S)
    target.remove_partition(zone.partition_id, contents=True)


def exec_(zone: ObjectRef, code: bytes, *, end: bool = False) -> Request:
    params = ExecParams(flags=ExecFlag.END_ON_ABORT) if end else ExecParams()
    return rq.execute(zone, code, params, synchronous=True, result_allocation_length=64)


def state(target: pyosd.Target, zone: ObjectRef) -> JobState | None:
    """Of the only job of the zone."""
    jobs = target.jobs(zone.partition_id)
    assert len(jobs) <= 1
    return jobs[0].state if jobs else None


def strike(victim: Victim, how: str) -> int | None:
    """The function, or the loss.  Returns: how the command ended, None: nobody is told."""
    if how in LOSSES:
        victim.lose(how)
        return None
    victim.manage(FUNCTIONS[how.removeprefix("unit ")])
    status, _ = victim.outcome()
    victim.socket.close()
    return status


HOW = pytest.mark.parametrize("how", ["task", "set", "unit reset", *LOSSES])


def works(unit: Unit, target: pyosd.Target, zone: ObjectRef) -> None:
    """The next job runs, and the same tgtd serves on."""
    reply = check(target.reply(exec_(zone, QUICK)), OK)
    assert bytes(reply.data)[:4] == b"done"
    alive(unit, target)


@HOW
def test_exec_before_its_data(unit: Unit, target: pyosd.Target, zone: ObjectRef, how: str) -> None:
    """It never came to us: there is no job."""
    victim = unit.victim()
    assert victim.begin(exec_(zone, FOREVER)) is not None
    if how in LOSSES:
        victim.lose(how)
    else:
        victim.manage(FUNCTIONS[how.removeprefix("unit ")])
        victim.socket.close()
    alive(unit, target)
    assert state(target, zone) is None
    works(unit, target, zone)


@HOW
@pytest.mark.parametrize("end", [False, True])
def test_exec_queued(
    unit: Unit, target: pyosd.Target, zone: ObjectRef, pid: int, how: str, end: bool
) -> None:
    """The wait ends and the job stays in the queue; or goes, where it was submitted so."""
    blocker = target.exec(FOREVER, zone=ref(pid))
    until(lambda: blocker.status().state is JobState.RUNNING)
    victim = unit.victim()
    victim.start(exec_(zone, QUICK, end=end))
    until(lambda: state(target, zone) is JobState.QUEUED)
    status = strike(victim, how)
    told = how not in LOSSES
    assert status == (TASK_ABORTED if told else None)
    if told and end:
        until(lambda: state(target, zone) is JobState.CANCELLED)
    else:
        assert state(target, zone) is JobState.QUEUED
    blocker.kill(WAIT_S)
    until(lambda: target.jobs(zone.partition_id)[0].done)
    expected = JobState.CANCELLED if told and end else JobState.COMPLETED
    assert state(target, zone) is expected
    works(unit, target, zone)


@HOW
@pytest.mark.parametrize("end", [False, True])
def test_exec_running(
    unit: Unit, target: pyosd.Target, zone: ObjectRef, how: str, end: bool
) -> None:
    victim = unit.victim()
    victim.start(exec_(zone, FOREVER, end=end))
    until(lambda: state(target, zone) is JobState.RUNNING)
    status = strike(victim, how)
    told = how not in LOSSES
    assert status == (TASK_ABORTED if told else None)
    if told and end:
        until(lambda: state(target, zone) is JobState.CANCELLED)
    else:
        assert state(target, zone) is JobState.RUNNING
        target.job(target.jobs(zone.partition_id)[0].id).kill(WAIT_S)
    works(unit, target, zone)


ROUNDS = 3


@HOW
def test_exec_starting(unit: Unit, target: pyosd.Target, zone: ObjectRef, how: str) -> None:
    """Struck as soon as it is sent: it was quicker, or it was aborted; its job ends well either way."""
    for _ in range(ROUNDS):
        victim = unit.victim()
        victim.start(exec_(zone, QUICK))
        assert strike(victim, how) in (None, 0, TASK_ABORTED)
    alive(unit, target)
    until(lambda: all(each.done for each in target.jobs(zone.partition_id)))
    works(unit, target, zone)
    states = {each.state for each in target.jobs(zone.partition_id)}
    assert states == {JobState.COMPLETED}


LAST_WORDS = (
    b"import osd\nosd.result(b'x' * 50000)\nosd.progress(1.0, 'last words')\nprint('y' * 99999)\n"
)


@HOW
def test_exec_completing(unit: Unit, target: pyosd.Target, zone: ObjectRef, how: str) -> None:
    """Struck between its last words and its end."""
    victim = unit.victim()
    victim.start(exec_(zone, LAST_WORDS))
    until(lambda: any(each.message == "last words" for each in target.jobs(zone.partition_id)))
    assert strike(victim, how) in (None, 0, TASK_ABORTED)
    until(lambda: state(target, zone) is JobState.COMPLETED)
    works(unit, target, zone)


SLEEPER = b"import osd, time\ntime.sleep(0.2)\nosd.result(b'slept')\n"


@pytest.mark.parametrize("how", LOSSES)
def test_exec_is_found_after_its_session(
    unit: Unit, target: pyosd.Target, zone: ObjectRef, how: str
) -> None:
    """Its initiator never heard of it: the job goes on, and its key finds it and its result."""
    params = ExecParams(key=b"the key")
    victim = unit.victim()
    victim.start(rq.execute(zone, SLEEPER, params, synchronous=True, result_allocation_length=64))
    until(lambda: state(target, zone) in (JobState.STARTING, JobState.RUNNING))
    victim.lose(how)
    [status] = target.jobs(zone.partition_id)
    reply = target.exec_code(zone, SLEEPER, params)
    assert reply.job == status.id
    assert target.job(status.id).result(WAIT_S) == b"slept"
    assert len(target.jobs(zone.partition_id)) == 1
    alive(unit, target)


def test_as_many_waits_as_promised(unit: Unit, target: pyosd.Target, zone: ObjectRef) -> None:
    """64 commands wait; the next is BUSY with the depth of the queue and when to come again, and leaves
    no job; one that ends makes room."""
    blocker = target.exec(FOREVER, zone=zone)
    request = rq.execute(zone, QUICK, ExecParams(wait=30), synchronous=True)
    waits = [target.submit(request) for _ in range(64)]
    until(lambda: len(target.jobs(zone.partition_id)) == 65)
    with pytest.raises(TargetBusy) as busy:
        check_raises(target, request)
    assert busy.value.queue_depth == 64
    assert 0 < busy.value.retry_after <= 5
    assert len(target.jobs(zone.partition_id)) == 65
    blocker.kill(WAIT_S)
    for each in waits:
        check(each.reply(WAIT_S), OK)
    works(unit, target, zone)


def check_raises(target: pyosd.Target, request: Request) -> None:
    """Send it, and raise what the client makes of its answer."""
    reply = target.reply(request)
    if reply.error:
        raise reply.error
