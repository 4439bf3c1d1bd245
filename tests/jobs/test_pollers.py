# SPDX-License-Identifier: GPL-2.0-or-later
"""Many who ask about jobs at once: everyone gets an answer of their own, and nobody's flood keeps another
from theirs (reliability 16).  Answers are counted, not timed.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Iterator

import pytest

import pyosd
from pyosd import aio
from pyosd import requests as rq
from pyosd.types import AttributeId, ObjectRef, ref
from pyosd.wire.cdb import AttributeLists
from pyosd.wire.job_status import POLL_IDS, JobState, Number, decode_state
from tests.machine import unavailable
from tests.serving import Serving, sandboxes_missing
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

POLLERS, SESSIONS, JOBS = 1000, 8, 10
OUTSTANDING = 16
"""Polls that each session of a flood has under way."""
ANSWERS = 150
SHARE = 20
"""How many answers one place of the flood may get for one of the other's."""
NAME = AttributeId(POLL_IDS[0].page, Number.NAME)


@pytest.fixture
def jobs(serving: Serving) -> Iterator[list[ObjectRef]]:
    """Held jobs, each named by its place in the list."""
    if sandboxes_missing():
        unavailable("sandbox", "no sandboxes here")
    with serving.connect() as target:
        zone = ref(target.create_partition())
        made = [target.exec("pass", zone=zone, hold=True, name=str(n)) for n in range(JOBS)]
        yield [each.id for each in made]
        for each in made:
            each.cancel()
        target.remove_partition(zone.partition_id, contents=True)


def test_a_thousand_pollers(serving: Serving, jobs: list[ObjectRef]) -> None:
    """A thousand polls under way at once, over eight sessions: each is answered, about its job."""

    async def ask(target: aio.AsyncTarget, number: int) -> tuple[int, JobState | None]:
        wanted = AttributeLists((*POLL_IDS, NAME), ())
        reply = await target.call(rq.get_attributes(jobs[number % JOBS], attributes=wanted))
        found = reply.attributes
        name = next(each.text for each in found if each.number == NAME.number)
        return int(name), decode_state(found)

    async def main() -> list[tuple[int, JobState | None]]:
        async with contextlib.AsyncExitStack() as stack:
            connecting = [aio.connect(serving.url) for _ in range(SESSIONS)]
            targets = [await stack.enter_async_context(each) for each in connecting]
            return await asyncio.gather(
                *(ask(targets[number % SESSIONS], number) for number in range(POLLERS))
            )

    answers = asyncio.run(main())
    assert answers == [(number % JOBS, JobState.HELD) for number in range(POLLERS)]


def flood(session: pyosd.Target, job: ObjectRef, stop: threading.Event, done: Counter[str]) -> None:
    """Poll with many commands under way until told to stop."""
    request = rq.get_attributes(job, attributes=AttributeLists(POLL_IDS, ()))
    pending = [session.submit(request) for _ in range(OUTSTANDING)]
    while not stop.is_set():
        assert not pending.pop(0).reply(30).error
        done["flood"] += 1
        pending.append(session.submit(request))
    for each in pending:
        each.reply(30)


def test_a_flood_of_polls_leaves_others_theirs(serving: Serving, jobs: list[ObjectRef]) -> None:
    done: Counter[str] = Counter()
    stop = threading.Event()
    sessions = [serving.connect(initiator="iqn.2026-11.org.iosd:flood") for _ in range(SESSIONS)]
    threads = [
        threading.Thread(target=flood, args=(session, jobs[0], stop, done)) for session in sessions
    ]
    for thread in threads:
        thread.start()
    try:
        until(lambda: done["flood"] > ANSWERS, "no flood", pause=0)
        before = done["flood"]
        with serving.connect(initiator="iqn.2026-11.org.iosd:quiet") as quiet:
            job = quiet.job(jobs[1])
            for _ in range(ANSWERS):
                assert job.poll()[0] is JobState.HELD
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        for session in sessions:
            session.close()
    places = SESSIONS * OUTSTANDING
    meanwhile = done["flood"] - before
    print(f"{meanwhile} answers for {places} places, {ANSWERS} for one")
    assert meanwhile / places <= SHARE * ANSWERS
