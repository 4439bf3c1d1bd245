# SPDX-License-Identifier: GPL-2.0-or-later
"""A job with leave from the security manager: other keys are none of its business, its own access is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import pyosd
from pyosd.types import ref
from tests.secmgr.test_targets import ALL, Place, X, place_with_jobs
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]
SCRIPT = """
import osd, time
file = osd.zone.data
n = 0
while True:
    file.seek(0)
    file.read(4)
    n = min(n + 1, 1000)
    osd.progress(n / 1000)
    time.sleep(0.01)
"""
WAIT_S = 60.0


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with place_with_jobs(tmp_path_factory.mktemp("jobs")) as made:
        yield made


def test_a_job_ends_with_its_own_access_alone(place: Place) -> None:
    place.osd("acl", "add", "alice", ALL, "0x10000/*")
    place.osd("acl", "add", "alice", ALL, "0x10000")
    place.osd("part", "create", "0x10001")
    place.osd("acl", "revoke", X)  # it has a tag from now on
    source = place.source()
    with pyosd.connect(place.serving.url, credentials=source) as target:
        job = target.exec(SCRIPT, zone=ref(0x10000, 0x10000))
        until(job.progress, lambda: str(job.status()))
        place.osd("key", "rotate")
        place.osd("key", "rotate", "--level", "partition", "--partition", "0x10001")
        place.osd("acl", "revoke", "0x10000/0x10001")
        with pytest.raises(TimeoutError):
            job.result(timeout=0.3)
        assert job.running()
        place.osd("acl", "revoke", X)
        with pytest.raises(pyosd.JobError):
            job.result(timeout=WAIT_S)
        assert job.status().reason == 601  # revoked while it ran
    source.close()
