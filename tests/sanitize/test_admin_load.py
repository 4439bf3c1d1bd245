# SPDX-License-Identifier: GPL-2.0-or-later
"""Whatever an administrator may change of a target that works, changed again and again beside commands
and jobs of every kind, under ThreadSanitizer: pools by request and by file, shares, workers, keys."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from threading import Event

import pytest

from iosd_host.control.messages import TargetError, Type
from pyosd import jobs
from pyosd.commands import Commands
from pyosd.commands.provision import Provisioner
from pyosd.errors import OSDError
from pyosd.jobs import job_array
from pyosd.security.master_key import MasterKey
from pyosd.types import AttributeValue, ObjectRef
from pyosd.wire.attributes import Page
from pyosd.wire.capability import SecurityMethod
from tests.control.peer import Peer
from tests.jobs.conftest import skip_without_sandboxes
from tests.jobs.test_live_pools import Live
from tests.sanitize.builds import THREAD, made
from tests.sanitize.test_load import SCRIPT, SLEEP, check_log, one_of_all, repeat

CMDRSP = SecurityMethod.CMDRSP
CLIENTS = 3
ROUNDS = 20
LEAST = 10  # so often it must have succeeded
DEADLINE_S = 60.0
FILES = (
    "name=default;max=2\nname=other;max=1\n",
    "name=default;max=3;spares=0;memory=200000000\nname=comes;max=1\nname=other;max=2\n",
    "budget=99000000000\nname=default;max=2;users=nobody\nname=comes;max=2;reuse=trusted\n",
)
NAMES = ("", "", "other", "comes")
ACCESS_TAG = Page.PARTITION_SECURITY, 0x4000_0001
Act = Callable[[random.Random], object]


def administer(live: Live, peer: Peer, chance: random.Random) -> None:
    """One change."""
    name = chance.choice(("default", "default", "other", "comes"))
    match chance.randrange(9):
        case 0:
            most = chance.randrange(1, 5)
            peer.ask(Type.POOL, name=name, max=most, min=0, active=chance.randrange(1, most + 1))
        case 1:
            mode = chance.choice(("running", "running", "paused", "draining"))
            peer.ask(Type.POOL, name=name, mode=mode)
            peer.ask(Type.POOL, name=name, mode="running")
        case 2:
            limits = {"wall": 9_000_000, "memory": chance.randrange(1, 9) << 26, "queue": 50}
            peer.ask(Type.POOL, name=name, **limits)
        case 3:
            users, reuse = chance.choice(("", "", "nobody")), chance.choice(("never", "trusted"))
            peer.ask(Type.POOL, name=name, users=users, reuse=reuse, idle_timeout=1000)
            peer.ask(Type.POOL, name=name, users="", idle_timeout=300_000_000)
        case 4 | 5:
            live.pools.write_text(chance.choice(FILES))
            live.hup()
            peer.ask(Type.RELOAD)
        case 6:
            peer.ask(Type.RECYCLE, name=name)
        case 7:
            peer.ask(Type.PRINCIPAL, name="harness", weight=chance.randrange(1, 9), at_once=0)
            peer.ask(Type.WORKERS, count=chance.randrange(1, 6))
        case _:
            peer.ask(Type.SHED, on=True)
            peer.ask(Type.SHED, on=False)


def look(peer: Peer, osd: Commands, _: random.Random) -> None:
    """The view of other clients meanwhile."""
    peer.snapshot()
    peer.ask(Type.USAGE)
    assert osd.pools()


def change_keys(
    keys: Provisioner, osd: Commands, partition: ObjectRef, chance: random.Random
) -> None:
    """New keys of the partition, or leave given for it until now is void."""
    match chance.randrange(3):
        case 0:
            keys.add(partition.partition_id)
        case 1:
            keys.set_working(partition.partition_id, chance.randrange(16))
        case _:
            osd.set_attributes(partition, [AttributeValue(*ACCESS_TAG, chance.randbytes(4))])


def one_job(osd: Commands, zone: ObjectRef, chance: random.Random) -> None:
    """The life of one job in one of the pools, some of which are not there at times."""
    pool = chance.choice(NAMES)
    match chance.randrange(5):
        case 0:
            osd.exec_code(zone, SCRIPT)
        case 1:
            jobs.submit(osd, SLEEP, zone=zone, pool=pool).kill(DEADLINE_S)
        case 2:
            array = job_array.submit(osd, "pass", zone=zone, array=range(4), pool=pool)
            first = jobs.submit(osd, "pass", zone=zone, pool=pool, after=[array.id])
            array.kill(DEADLINE_S)
            first.kill(DEADLINE_S)
            osd.remove(first.id)
        case 3:
            job = jobs.submit(osd, SLEEP, zone=zone, pool=pool, hold=True, name="held")
            job.release()
            job.status()
            job.cancel()
            job.kill(DEADLINE_S)
        case _:
            jobs.list_jobs(osd, zone.partition_id)


def until_over(act: Act, over: Event, seed: int) -> None:
    """Acts that may be refused, but not all."""
    chance = random.Random(seed)
    done = 0
    while done < LEAST or not over.is_set():
        with contextlib.suppress(OSDError, TargetError):
            act(chance)
            done += 1


@pytest.mark.sandbox
def test_changes_beside_jobs(tmp_path: Path) -> None:
    skip_without_sandboxes()
    log, over = tmp_path / "log", Event()
    with log.open("wb") as stderr:
        program = made(THREAD).command("osd_harness")
        options = f";master-key={tmp_path / 'key'}"
        live = Live(tmp_path, FILES[0], options, program=program, stderr=stderr)
    plain, zone = live.commands, live.partition
    keys = Provisioner(plain, MasterKey.read(tmp_path / "key"), method=CMDRSP)
    keys.add(zone.partition_id)
    signed = Commands(live.transport, keys.source())
    shared = plain.create(zone.partition_id)
    with Peer(live.folder / "control") as other, ThreadPoolExecutor(2 * CLIENTS + 4) as clients:
        beside = [
            clients.submit(until_over, act, over, seed)
            for seed, act in enumerate(
                (
                    partial(administer, live, live.peer),
                    partial(look, other, plain),
                    partial(change_keys, keys, plain, zone),
                    partial(one_of_all, plain, zone.partition_id, shared),
                )
            )
        ]
        work = [
            clients.submit(repeat, partial(one_job, osd, zone), ROUNDS, seed)
            for seed in range(CLIENTS)
            for osd in (plain, signed)
        ]
        wait(work)
        over.set()
    live.peer.close()
    live.stop()
    check_log(log, live.transport.process.returncode)
    for each in (*beside, *work):
        each.result()
