# SPDX-License-Identifier: GPL-2.0-or-later
"""Kills and limits: how a script may clean up, what ends it when it does not, how soon, and that nothing
of it is left.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable

import pytest

import pyosd
from pyosd.jobs.dialogues.following import KILL
from pyosd.jobs.job import Job
from pyosd.types import ObjectRef
from pyosd.wire.job_status import JobState
from tests.exec.conftest import WAIT_S, Run, ended
from tests.exec.test_hostile import Host
from tests.serving import Serving

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

CANCELLED, TIMEOUT = JobState.CANCELLED, JobState.TIMEOUT
CLEANS_UP = """
import osd, time
try:
    print("up")  # CPython 3.11 would take a while that came first as outside of the try
    while True: pass
finally:
    time.sleep(0.2)
    osd.zone.create_many(1)[0].data.write(b"cleaned up")
    print("cleaned up")
"""
NEVER_DONE = """
try:
    print("up")
    while True: pass
finally:
    print("at it")
    while True: pass
"""

Submit = Callable[..., Job]


def started(job: Job) -> Job:
    """Once it has printed its first line."""
    assert next(job.iter_output(follow=True)) == b"up\n"
    return job


def test_cleans_up_in_the_grace_it_asked_for(submit: Submit, target: pyosd.Target) -> None:
    """The most there is; what it writes stays, and it counts as killed."""
    for _ in range(2):
        job = started(submit(CLEANS_UP, grace=5.0))
        assert job.kill(WAIT_S) is CANCELLED
        status = ended(job.status(), CANCELLED, 107)
        if job.output() != b"up\n":  # a busy machine may not let it come to its words
            break
    assert job.output() == b"up\ncleaned up\n"
    assert "Ended" in job.traceback()
    assert status.run_time >= 0.2


def test_cleans_up_after_a_limit(run: Run, target: pyosd.Target) -> None:
    for wall in (1.0, 10.0):
        status = ended(run(CLEANS_UP, grace=5.0, limits=pyosd.Limits(wall=wall)), TIMEOUT, 301)
        output = bytes(target.read_range(status.id))
        if output not in (b"", b"up\n"):  # a busy machine may start it, or let it end, no sooner
            break
    assert output == b"up\ncleaned up\n"


def test_a_grace_that_is_too_short(submit: Submit, target: pyosd.Target) -> None:
    """Output before its end is kept."""
    job = started(submit(CLEANS_UP.replace("0.2", "600")))
    assert job.kill(WAIT_S) is CANCELLED
    assert job.output() == b"up\n"
    assert job.traceback() == ""


def test_a_clean_up_that_never_ends(submit: Submit) -> None:
    """Ended again when its grace is over, for good."""
    for grace in (0.3, 5.0):
        job = started(submit(NEVER_DONE, grace=grace))
        start = time.monotonic()
        assert job.kill(WAIT_S) is CANCELLED
        assert time.monotonic() - start >= grace
        ended(job.status(), CANCELLED, 107)
        if (output := job.output()) != b"up\n":  # a busy machine may not let it come to its words
            break
    assert output == b"up\nat it\n"


def test_who_takes_its_end_and_goes_on(submit: Submit) -> None:
    """A script that completes after the request to end counts as killed."""
    job = started(
        submit(
            "print('up')\ntry:\n    n = 0\n    while n < 1 << 60: n += 1\nexcept BaseException: pass",
            grace=5.0,
        )
    )
    assert job.kill(WAIT_S) is CANCELLED
    ended(job.status(), CANCELLED, 107)


def test_a_grace_beyond_its_maximum(submit: Submit) -> None:
    with pytest.raises(pyosd.OSDError, match="24/00; CDB byte 48"):
        submit("pass", grace=5.001)


# ---- kills at any time (18) ---------------------------------------------------------------------

BATCH, BATCHES, SPREAD_S = 4, 25, 0.030
LIVES = {
    "loops": "while True: pass",
    "is brief": "import time\ntime.sleep(0.008)\nprint('done')",
    "minds nothing": "while True:\n    try:\n        n = 0\n        while True: n += 1\n    except: pass",
    "prints": "while True: print('x' * 1000)",
    "sleeps": "import time\ntime.sleep(1000)",
    "calls": "import osd\nwhile True: osd.zone.exists()",
}
# Kills may come late on a busy machine: after the script's end, or the end of its room for output.
WON = {"is brief": JobState.COMPLETED, "prints": JobState.LIMIT_EXCEEDED}


def kill_some(
    target: pyosd.Target, zone: ObjectRef, chance: random.Random
) -> list[tuple[float, JobState]]:
    """A batch, each killed at a time of its own.  Returns: seconds to its end, and which."""
    names = [chance.choice([*LIVES]) for _ in range(BATCH)]
    limits = pyosd.Limits(output="1GiB")
    jobs = [target.exec(LIVES[name], zone=zone, name=name, limits=limits) for name in names]
    begin = time.perf_counter()
    asked: dict[Job, float] = {}
    for at, job in sorted(
        ((chance.uniform(0, SPREAD_S), job) for job in jobs), key=lambda pair: pair[0]
    ):
        time.sleep(max(0.0, begin + at - time.perf_counter()))
        asked[job] = time.perf_counter()
        job._control(KILL)
    took = []
    while asked:
        for job in [job for job in asked if job.poll()[0].terminal]:
            status = job.status()
            took.append((time.perf_counter() - asked.pop(job), status.state))
            killed = (status.state, status.reason) == (CANCELLED, 107)
            assert killed or WON.get(job.name) is status.state, status
        assert time.perf_counter() - begin < WAIT_S
    return took


def histogram(seconds: list[float]) -> str:
    """One line for each power of two of milliseconds."""
    counts = Counter(max(0, int(each * 1000)).bit_length() for each in seconds)
    return "\n".join(
        f"  < {1 << bits:5} ms {counts[bits]:4} {'#' * counts[bits]}"
        for bits in range(max(counts) + 1)
    )


def test_a_hundred_kills(
    serving: Serving, target: pyosd.Target, zone: ObjectRef, seed: int
) -> None:
    """At random times of lives of all kinds: CANCELLED, or what had truly won; nothing is left."""
    target.exec("pass", zone=zone).wait(WAIT_S)
    host = Host(serving)
    chance = random.Random(seed)
    took = [each for _ in range(BATCHES) for each in kill_some(target, zone, chance)]
    states = Counter(state.name for _, state in took)
    print(f"kill to end, {len(took)} jobs, {dict(states)}:")
    print(histogram([seconds for seconds, _ in took]))
    assert states["CANCELLED"] >= 50
    host.is_as_before()
    host.groups_are_as_before()
    ended(target.exec("pass", zone=zone).wait(WAIT_S), JobState.COMPLETED, 0)
