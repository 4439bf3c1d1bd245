# SPDX-License-Identifier: GPL-2.0-or-later
"""Many commands of all kinds at once to a harness built with sanitizers, with jobs coming and going
and the device formatted in between: whatever is touched by two threads without a lock, or after its
end, is reported by the harness and fails the test."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from threading import Event

import pytest

from iosd_host.control.messages import ErrorCode, TargetError, Type
from pyosd import jobs
from pyosd.commands import Commands
from pyosd.errors import OSDError
from pyosd.functions import Contract, Functions, FunctionStage, OutputSize
from pyosd.types import AttributeValue, ObjectRef, PartitionId, ref
from tests.control.peer import Peer
from tests.harness_transport import HarnessTransport
from tests.jobs.conftest import Target, skip_without_sandboxes
from tests.sanitize.builds import ADDRESS, THREAD, Build, made

CLIENTS = 4
ROUNDS = 150
JOB_ROUNDS = 25
READ_ROUNDS = 10
HARDWARE_ERROR = 4
One = Callable[[Commands, PartitionId, ObjectRef, random.Random], None]
"""One of many things to do, in a partition, with an object that all clients use."""
DEADLINE_S = 60.0
BUILDS = pytest.mark.parametrize(
    "build", [pytest.param(build, id=build.folder) for build in (ADDRESS, THREAD)]
)


def check_log(log: Path, returncode: int | None) -> None:
    text = log.read_text(errors="replace")
    assert "Sanitizer" not in text, text[-16000:]
    assert returncode == 0, text[-4000:]


def is_the_targets_fault(error: OSDError) -> bool:
    return error.sense_key == HARDWARE_ERROR


@pytest.fixture(params=["dir", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "memory":
        return "memory=1"
    (tmp_path / "store").mkdir()
    return f"dir={tmp_path / 'store'};cache=16MiB"


def one_of_all(
    osd: Commands, partition: PartitionId, shared: ObjectRef, chance: random.Random
) -> None:
    """One command on an object that all clients use, or the life of an object of its own."""
    data = chance.randbytes(chance.choice([0, 1, 512, 4096, 70_000]))
    at = chance.choice([0, 1, 4095, 1 << 20])
    match chance.randrange(9):
        case 0:
            osd.write(shared, at, data)
        case 1:
            osd.append(shared, data)
        case 2:
            osd.set_attributes(shared, [AttributeValue(0xA, chance.randrange(1, 9), data[:512])])
        case 3:
            osd.get_page(shared, 1)
        case 4:
            osd.punch(shared, 0, 4096)
        case 5:
            osd.list_objects(partition)
        case 6:
            osd.flush(shared)
        case 7:
            collection = osd.create_collection(partition)
            member = osd.create(partition)
            join = AttributeValue(4, 1, collection.object_id.to_bytes(8, "big"))
            osd.set_attributes(member, [join])
            osd.remove_collection(collection, with_members=True)
            osd.remove(member)
        case _:
            osd.read(shared, 0, 8192)


def repeat(one: Callable[[random.Random], None], rounds: int, seed: int) -> None:
    """One client; what others did meanwhile may make its commands fail."""
    chance = random.Random(seed)
    for _ in range(rounds):
        try:
            one(chance)
        except OSDError as error:
            assert not is_the_targets_fault(error), error


def clients_at_once(command: list[str], log: Path, one: One, rounds: int) -> int:
    """Clients on a harness with a partition and an object for all.  Returns how many are damaged."""
    with log.open("wb") as stderr:
        transport = HarnessTransport(command, stderr)
    osd = Commands(transport)
    partition = osd.create_partition()
    work = partial(one, osd, partition, osd.create(partition))
    with ThreadPoolExecutor(CLIENTS) as clients:
        running = [clients.submit(repeat, work, rounds, seed) for seed in range(CLIENTS)]
    damaged = osd.object_structure_check()
    transport.close()
    check_log(log, transport.process.returncode)
    for each in running:
        each.result()
    return damaged


@BUILDS
def test_commands_at_once(build: Build, store: str, tmp_path: Path) -> None:
    command = made(build).command("osd_harness", store)
    assert clients_at_once(command, tmp_path / "log", one_of_all, ROUNDS) == 0


SCRIPT = b"""
import osd
made = osd.zone.create_many(2)[0]
made.data.write(b"x" * 100000)
made.setattr([(10, 1, "blue")])
print(sum(len(line) for line in made.data))
made.remove()
"""
SLEEP = "import time\ntime.sleep(600)"
LAST = "print('last words')"


def one_job(target: Target, chance: random.Random) -> None:
    """The life of one job, or a look at all."""
    osd, zone = target.commands, target.partition
    match chance.randrange(5):
        case 0:
            reply = osd.exec_code(zone, SCRIPT, synchronous=True)
            assert reply.error is None, reply.error
        case 1:
            job = jobs.submit(osd, SLEEP, zone=zone)
            job.kill(DEADLINE_S)
            osd.remove(job.id)
        case 2:
            job = jobs.submit(osd, LAST, zone=zone, hold=True)
            job.release()
            job.cancel()
        case 3:
            jobs.submit(osd, LAST, zone=zone).wait(DEADLINE_S)
        case _:
            jobs.list_jobs(osd, zone.partition_id)


def watch(control: Path, over: Event) -> None:
    """A manager that never lets go: readings every 20 ms, ten at least, and sizes that change."""
    with Peer(control, "manager") as peer:
        peer.ask(Type.WATCH, interval_ms=20)
        for count in itertools.count(1):
            peer.push()
            try:
                peer.ask(Type.POOL, name="default", active=1 + count % 2, spares=count % 3)
                peer.ask(Type.WORKERS, count=1 + count % 5)
            except TargetError as error:  # beside load it can be silent for longer than its lease
                assert error.code is ErrorCode.NOT_MANAGER, error
                peer.hello("manager")
            if count > 10 and over.is_set():
                return


INVERT = """
import osd, time

def main(args):
    view, end = osd.stage(args).view, time.process_time() + 0.002
    while time.process_time() < end:
        pass
    return bytes(view).translate(bytes(255 - each for each in range(256)))
"""
LONG = 512 << 10  # it is computed in two halves


def one_read(target: Target, obj: ObjectRef, kept: ObjectRef, chance: random.Random) -> None:
    """A READ or WRITE of data that pass through functions, whose results are kept or not."""
    osd, some = target.commands, chance.choice([obj, kept])
    at = chance.choice([0, 1, 4096, LONG // 2])
    if chance.randrange(4):
        read = bytes(osd.read(some, at, chance.choice([1, LONG - at])))
        assert len(set(read)) == 1, "bytes of two WRITEs"
    else:
        osd.write(some, 0, bytes([chance.randrange(256)]) * LONG)


@pytest.mark.sandbox
@BUILDS
def test_views_at_once(build: Build, tmp_path: Path) -> None:
    """READs in halves, and WRITEs through the same functions.  A READ finds data of one WRITE alone."""
    skip_without_sandboxes()
    log = tmp_path / "log"
    with log.open("wb") as stderr:
        target = Target(tmp_path, "", made(build).command("osd_harness"), stderr)
    osd = target.commands
    osd.create_partition(PartitionId(1))
    functions, objects = Functions(osd, 1), []
    for deterministic in (False, True):
        obj = osd.create(target.partition.partition_id)
        osd.write(obj, 0, bytes(LONG))
        contract = Contract(
            OutputSize.SAME, block=4096, inverse="main", deterministic=deterministic
        )
        made_function = functions.put(INVERT, name=f"f{deterministic:d}", contract=contract)
        functions.attach(obj, [FunctionStage(made_function.id)])
        objects.append(obj)
    with ThreadPoolExecutor(CLIENTS) as clients:
        work = partial(one_read, target, objects[0], objects[1])
        running = [clients.submit(repeat, work, READ_ROUNDS, seed) for seed in range(CLIENTS)]
    target.stop()
    check_log(log, target.transport.process.returncode)
    for each in running:
        each.result()


def waits_to_the_end(target: Target) -> None:
    """EXEC that waits for a job which somebody else ends."""
    try:
        target.commands.exec_code(target.partition, SLEEP.encode(), synchronous=True)
    except OSDError as error:
        assert not is_the_targets_fault(error), error


@pytest.mark.sandbox
@BUILDS
def test_jobs_at_once(build: Build, tmp_path: Path) -> None:
    """Jobs of all fates, then FORMAT OSD while one waits for its EXEC, then the end of the target while
    another does."""
    skip_without_sandboxes()
    log, control, over = tmp_path / "log", tmp_path / "control", Event()
    with log.open("wb") as stderr:
        program = made(build).command("osd_harness")
        target = Target(tmp_path, f";control={control}", program, stderr)
    with ThreadPoolExecutor(CLIENTS + 1) as clients:
        watching = clients.submit(watch, control, over)
        work = partial(one_job, target)
        running = [clients.submit(repeat, work, JOB_ROUNDS, seed) for seed in range(CLIENTS)]
        wait(running)
        over.set()
        watching.result()
    with ThreadPoolExecutor(1) as clients:
        running.append(clients.submit(waits_to_the_end, target))
        target.commands.format_osd()
    target.partition = ref(target.commands.create_partition())
    with ThreadPoolExecutor(1) as clients:
        running.append(clients.submit(waits_to_the_end, target))
        jobs.submit(target.commands, SLEEP, zone=target.partition)
        target.stop()
    check_log(log, target.transport.process.returncode)
    for each in running:
        each.result()
