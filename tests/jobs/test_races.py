# SPDX-License-Identifier: GPL-2.0-or-later
"""Submissions that race with each other and with FORMAT OSD; no sandbox runs, so that jobs wait."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from pyosd import errors, jobs
from pyosd.types import ROOT, ref
from pyosd.wire.attributes import Page
from pyosd.wire.job_status import JobState

if TYPE_CHECKING:
    from pyosd.commands import Commands
    from pyosd.types import ObjectRef
    from tests.conftest import MakeHarness

CLIENTS = 8
ROUNDS = 60
QUEUE_DEPTH = 5


@pytest.fixture(params=["dir", "memory"])
def osd(request: pytest.FixtureRequest, make_harness: MakeHarness) -> Commands:
    return make_harness(memory=1).osd if request.param == "memory" else make_harness().osd


def depth(osd: Commands) -> int:
    return int.from_bytes(osd.get_attribute(ROOT, Page.EXEC_ROOT, QUEUE_DEPTH), "big")


def test_one_key_is_one_job_however_many_ask(osd: Commands) -> None:
    zone = ref(osd.create_partition())

    def submit(key: str) -> ObjectRef | None:
        try:
            return jobs.submit(osd, "pass", zone=zone, key=key).id
        except errors.TargetBusy:
            return None  # lost every try against the others, and said so

    with ThreadPoolExecutor(CLIENTS) as clients:
        for number in range(ROUNDS):
            found = set(clients.map(submit, [f"key {number}"] * CLIENTS)) - {None}
            assert found == {submit(f"key {number}")}
    assert len(jobs.list_jobs(osd, zone.partition_id)) == ROUNDS


def test_format_leaves_no_job_accepted_meanwhile(osd: Commands) -> None:
    """Every job in the queue afterwards is one whose surrogate is there."""

    def submit(_: int) -> None:
        try:
            jobs.submit(osd, "pass", zone=ROOT)
        except errors.OSDError as error:
            assert error.sense_key in (0, 2, 5), error  # busy, formatting, formatted

    for _ in range(5):
        with ThreadPoolExecutor(CLIENTS) as clients:
            under_way = clients.map(submit, range(CLIENTS * 20))
            osd.format_osd()
            list(under_way)
        listed = sum(len(jobs.list_jobs(osd, each)) for each in osd.list_partitions())
        assert depth(osd) == listed


def test_refused_format_leaves_jobs_alone(osd: Commands) -> None:
    zone = ref(osd.create_partition())
    job = jobs.submit(osd, "pass", zone=zone)
    with pytest.raises(errors.OSDError) as raised:
        osd.format_osd(1 << 62)
    assert (raised.value.asc, raised.value.ascq) == (0x24, 0)
    assert job.status().state == JobState.QUEUED


def test_removed_partition_takes_no_job_with_it(osd: Commands) -> None:
    """REMOVE PARTITION is refused or leaves no job, also of an EXEC that is just being accepted."""

    def submit(zone: ObjectRef) -> None:
        with suppress(errors.OSDError):
            jobs.submit(osd, "pass", zone=zone)

    def remove(zone: ObjectRef) -> None:
        with suppress(errors.OSDError):
            osd.remove_partition(zone.partition_id, contents=True)

    for number in range(5 * ROUNDS):
        zone = ref(osd.create_partition())
        before = depth(osd)
        racing = [submit, submit, submit]
        racing.insert(number % 3, remove)
        with ThreadPoolExecutor(4) as clients:
            list(clients.map(lambda each, zone=zone: each(zone), racing))
        there = zone.partition_id in osd.list_partitions()
        listed = len(jobs.list_jobs(osd, zone.partition_id)) if there else 0
        assert depth(osd) - before == listed
