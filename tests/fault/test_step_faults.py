# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands that run in steps, when the store fails, or is left, at its n-th call: in a step, between two,
while what a failed one made is undone, while what was answered goes on in the background.

A run of the gate tries a few n, which the seed chooses; --all-faults (make faults) tries many.
"""

from __future__ import annotations

import contextlib
import random
import shutil
from pathlib import Path

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.errors import OSDError, Unreachable
from pyosd.types import ObjectRef, PartitionId, ref
from tests.command.held import RED, STEP, create_tracking, ended
from tests.command.test_collection import membership
from tests.conftest import MakeHarness
from tests.expect import OK, check
from tests.fault.history import SENSE_KEYS
from tests.harness import StartFailed, copy_store
from tests.waiting import until

MANY = STEP + 50
PID = PartitionId(0x5_0000)
SOURCE, MADE, MATCHES = 0x9_0000, 0x2_0000, 0x2_0001
CALLS = 12_000  # of the store in one run; about
SAMPLE, THOROUGH = 3, 250


@pytest.fixture
def template(make_harness: MakeHarness, tmp_path: Path) -> Path:
    """A store with a collection whose commands take two steps."""
    harness = make_harness(dir=tmp_path / "template")
    pid = harness.osd.create_partition(PID)
    source = harness.osd.create_collection(pid, SOURCE)
    harness.osd.create_many(pid, MANY, attributes=[membership(source)])
    harness.osd.create_tracking_collection(pid, MATCHES)
    harness.finish()
    return tmp_path / "template"


def steps(osd: Commands) -> None:
    """Copy a collection; set and query its members in the background."""
    source, matches = ref(PID, SOURCE), ref(PID, MATCHES)
    reply = osd.reply(create_tracking(PID, MADE, SOURCE))
    if reply.error:
        assert ref(PID, MADE) not in osd.list_collections(PID), "a failure leaves nothing"
        raise reply.error
    osd.set_member_attributes(source, [RED], immediate=True)
    ended(osd, source)
    osd.query_into(source, [], matches, immediate=True)
    ended(osd, matches)


def check_all(osd: Commands) -> None:
    """Nothing is in progress for ever, nothing is there by half, and all of it can be done again."""
    source, made, matches = (ref(PID, each) for each in (SOURCE, MADE, MATCHES))
    for _ in range(2):  # one may come into being, as the removal of another
        for each in osd.list_collections(PID):
            with contextlib.suppress(OSDError):
                ended(osd, each)
    until(lambda: not any(osd.tracking(each).active for each in osd.list_collections(PID)))
    if made in osd.list_collections(PID):
        assert osd.tracking(made).ended_well
        assert osd.list_members(made) == osd.list_members(source)
    assert red(osd, source) in (0, STEP, MANY)
    check(osd.reply(rq.object_structure_check(PID)), OK)
    osd.set_member_attributes(source, [RED])
    osd.query_into(source, [], matches)
    assert red(osd, source) == osd.tracking(matches).members == MANY


def red(osd: Commands, source: ObjectRef) -> int:
    found = osd.get_member_attributes(source, [RED.id])
    return sum(each.attributes[0].value == RED.value for each in found)


@pytest.mark.parametrize("killed", [False, True])
def test_nth_call(
    make_harness: MakeHarness,
    template: Path,
    tmp_path: Path,
    seed: int,
    killed: bool,
    request: pytest.FixtureRequest,
) -> None:
    count = THOROUGH if request.config.getoption("--all-faults") else SAMPLE
    fired = 0
    for n in random.Random(seed + killed).sample(range(1, CALLS), count):
        store = tmp_path / f"store{n}"
        copy_store(template, store)
        options: dict[str, object] = {"fault_kill": 1} if killed else {}
        with contextlib.suppress(StartFailed):
            harness = make_harness(dir=store, fault=n, **options)
            try:
                steps(harness.osd)
            except Unreachable:
                assert killed, harness.log.read_text()
                fired += 1
            except OSDError as error:
                assert error.sense_key in SENSE_KEYS, error
                fired += 1
            harness.kill()
        again = make_harness(dir=store)
        check_all(again.osd)
        again.kill()
        shutil.rmtree(store)
    assert fired or count == SAMPLE
