# SPDX-License-Identifier: GPL-2.0-or-later
"""The answer of one command about a running job is of one moment."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from pyosd import errors, jobs
from pyosd.types import AttributeId, AttributeValue
from pyosd.wire.attributes import Page
from pyosd.wire.job_status import JobState, Number

if TYPE_CHECKING:
    from tests.jobs.conftest import Target

JOBS = 40
BETWEEN = 400
"""Attributes between the first and the last: time enough for a job to go on."""
FIRST = [Number.STATE, Number.GENERATION]
ASKED = [*FIRST, *[Number.HINT] * BETWEEN, *FIRST]


def test_one_command_sees_one_moment(target: Target) -> None:
    ids = [AttributeId(Page.JOB_STATUS, number) for number in ASKED]
    for _ in range(JOBS):
        job = jobs.submit(target.commands, "pass", zone=target.partition)
        over = False
        while not over:
            values = [each.uint for each in target.commands.get_attributes(job.id, ids)]
            assert values[:2] == values[-2:]
            over = JobState(values[0]).terminal


POLLED = (
    *(Number.VERSION, Number.STATE, Number.SIGNAL, Number.EXIT_CODE, Number.GENERATION),
    *(Number.REASON, Number.ATTEMPT, Number.PROGRESS, Number.POLL_INTERVAL, Number.POSITION),
    *(Number.STDOUT_LENGTH, Number.RESULT_LENGTH),
)


def test_the_fixed_form_is_the_attributes(target: Target) -> None:
    code = "import osd, sys\nprint('four')\nosd.progress(0.25)\nosd.result(b'result')\nsys.exit(3)"
    job = jobs.submit(target.commands, code, zone=target.partition)
    job.wait(30)
    ids = [AttributeId(Page.JOB_STATUS, number) for number in POLLED]
    values = [each.uint for each in target.commands.get_attributes(job.id, ids)]
    assert target.commands.poll_job(job.id) == tuple(values)
    assert values[POLLED.index(Number.EXIT_CODE)] == 3
    assert values[POLLED.index(Number.STDOUT_LENGTH)] == 5


def test_only_a_job_has_the_fixed_form(target: Target) -> None:
    plain = target.commands.create(target.partition.partition_id)
    assert target.commands.poll_job(plain) is None
    assert target.commands.get_page(plain, Page.JOB_STATUS).length == 0


def test_a_poll_sees_what_came_of_its_object(target: Target) -> None:
    job = jobs.submit(target.commands, "pass", zone=target.partition)
    job.wait(30)
    assert target.commands.poll_job(job.id) is not None
    target.commands.remove(job.id)
    with pytest.raises(errors.NotFound):
        target.commands.poll_job(job.id)
    target.commands.create(job.id.partition_id, job.id.object_id)
    assert target.commands.poll_job(job.id) is None


def test_a_poll_sees_what_was_changed_afterwards(target: Target) -> None:
    job = jobs.submit(target.commands, "pass", zone=target.partition)
    job.wait(30)
    before = target.commands.poll_job(job.id)
    later = int((time.time() + 3600) * 1000).to_bytes(6, "big")
    target.commands.set_attributes(job.id, [AttributeValue(Page.JOB_CONTROL, 2, later)])
    after = target.commands.poll_job(job.id)
    expiry = AttributeId(Page.JOB_STATUS, Number.EXPIRY)
    assert before and after and after.generation > before.generation
    assert target.commands.get_attributes(job.id, [expiry])[0].value == later
