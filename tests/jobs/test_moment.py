# SPDX-License-Identifier: GPL-2.0-or-later
"""What one command says of a job is of one moment, while the job goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyosd import jobs
from pyosd.attributes import Page
from pyosd.job_status import JobState, Number
from pyosd.types import AttributeId

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
