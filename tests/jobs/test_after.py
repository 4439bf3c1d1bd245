# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs that wait for other jobs.  Most tests have no sandbox: there a job ends by being cancelled."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from pyosd import errors, jobs
from pyosd.cli.jobs.job_view import explanation
from pyosd.jobs import job_array
from pyosd.jobs.job import Job
from pyosd.types import ROOT, ref
from pyosd.wire.attributes import Page
from pyosd.wire.exec_params import After, ExecParams
from pyosd.wire.job_status import JobFlag, JobState
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyosd.commands import Commands
    from pyosd.types import ObjectRef
    from pyosd.wire.job_status import JobStatus
    from tests.conftest import MakeHarness
    from tests.harness import Harness
    from tests.jobs.conftest import Target

DEADLINE_S = 60.0
NO_SERVICE, HELD, CANCELLED, KILLED, WAITS, UNREACHABLE = 102, 103, 105, 107, 109, 110
NOT_NEEDED = 117
QUEUE_DEPTH = 5
MANY = 700
CRASHES = 12


@pytest.fixture(params=["dir", "memory"])
def osd(request: pytest.FixtureRequest, make_harness: MakeHarness) -> Commands:
    return make_harness(memory=1).osd if request.param == "memory" else make_harness().osd


@pytest.fixture
def zone(osd: Commands) -> ObjectRef:
    return ref(osd.create_partition())


def submit(osd: Commands, zone: ObjectRef, *after: After | Job, **how: object) -> Job:
    return jobs.submit(osd, "pass", zone=zone, after=after, **how)  # type: ignore[arg-type]


def whatever(job: Job) -> After:
    return After(job.id, completed=False)


def failed(job: Job) -> After:
    return After(job.id, failed=True)


def not_needed(job: Job, because: Job) -> None:
    status = job.wait(DEADLINE_S)
    assert (status.state, status.reason) == (JobState.CANCELLED, NOT_NEEDED)
    assert status.message == f"{because.id} ended COMPLETED"
    assert status.started is None


def waits(job: Job) -> JobStatus:
    status = job.status()
    assert (status.state, status.reason) == (JobState.QUEUED, WAITS)
    return status


def released(job: Job) -> None:
    """It waits for a sandbox now, and for no job."""
    until(lambda: job.status().reason != WAITS)
    status = job.status()
    assert (status.state, status.reason, status.awaited) == (JobState.QUEUED, NO_SERVICE, None)


def told(job: Job) -> None:
    until(lambda: job.status().awaited is None)


def unreachable(job: Job, *because: Job) -> None:
    status = job.wait(DEADLINE_S)
    assert (status.state, status.reason) == (JobState.FAILED, UNREACHABLE)
    assert status.message.split(" ended ")[0] in {str(each.id) for each in because}
    assert status.started is None
    assert status.hint


def depth(osd: Commands) -> int:
    return int.from_bytes(osd.get_attribute(ROOT, Page.EXEC_ROOT, QUEUE_DEPTH), "big")


# ---- what a client sees ----


def test_waits_and_says_for_what(osd: Commands, zone: ObjectRef) -> None:
    first, second = submit(osd, zone), submit(osd, zone)
    job = submit(osd, zone, whatever(first), whatever(second))
    status = waits(job)
    assert status.awaited == first.id
    assert status.after == (whatever(first), whatever(second))
    assert JobFlag.AFTER in status.flags
    assert f"it waits for 2, the first is {first.id}" in status.hint
    assert f"It waits for {first.id} to end (it was" in explanation(status, [])[1]
    assert depth(osd) == 3
    first.cancel()
    until(lambda: job.status().awaited == second.id)
    waits(job)
    second.cancel()
    released(job)
    assert job.status().after == (whatever(first), whatever(second)), "for those who ask later"


def test_fails_at_once_with_all_behind_it(osd: Commands, zone: ObjectRef) -> None:
    chain = [submit(osd, zone)]
    for _ in range(5):
        chain.append(submit(osd, zone, chain[-1]))
    tail = submit(osd, zone, whatever(chain[-1]))
    chain[0].cancel()
    for before, job in pairwise(chain):
        unreachable(job, before)
    released(tail)
    assert chain[1].status().message == f"{chain[0].id} ended CANCELLED"
    assert f"{chain[0].id} ended CANCELLED" in explanation(chain[1].status(), [])


def test_ended_before_the_submission(osd: Commands, zone: ObjectRef) -> None:
    ended = submit(osd, zone)
    ended.cancel()
    unreachable(submit(osd, zone, ended), ended)
    released(submit(osd, zone, whatever(ended)))


def test_after_a_failure(osd: Commands, zone: ObjectRef) -> None:
    first = submit(osd, zone)
    job, earlier = submit(osd, zone, failed(first)), submit(osd, zone, whatever(first))
    array = job_array.submit(osd, "pass", zone=zone, array=range(3), after=[failed(first)])
    assert waits(job).after == (failed(first),)
    first.cancel()
    for each in (job, earlier, array[0]):
        released(each)
    released(submit(osd, zone, failed(first)))
    members = job_array.submit(osd, "pass", zone=zone, array=range(3))
    of_one, of_all = submit(osd, zone, failed(members[1])), submit(osd, zone, failed(members))
    members[1].cancel()
    released(of_one)
    waits(of_all)
    members.cancel()
    released(of_all)


@pytest.mark.parametrize("completed", [True, False])
def test_unknown_jobs_are_refused(osd: Commands, zone: ObjectRef, completed: bool) -> None:
    gone = submit(osd, zone)
    gone.cancel()
    gone.remove()
    own = ref(zone.partition_id, 0x9_0000)
    unknown = [gone.id, osd.create(zone.partition_id), own, ref(1 << 40, 1 << 40), zone, ROOT]
    known = submit(osd, zone)
    before = depth(osd)
    for each in unknown:
        named = [After(known.id, completed), After(each, completed)]
        with pytest.raises(errors.OSDError) as raised:
            jobs.submit(osd, "pass", zone=zone, after=named, surrogate=own)
        error = raised.value
        assert (error.sense_key, error.asc, error.ascq) == (5, 0x24, 0)
    assert depth(osd) == before
    known.cancel()
    known.remove()


def test_sixty_four_and_no_more(osd: Commands, zone: ObjectRef) -> None:
    named = [submit(osd, zone) for _ in range(64)]
    job = submit(osd, zone, *map(whatever, named))
    twice = submit(osd, zone, *[whatever(named[0])] * 64)
    with pytest.raises(errors.OSDError):
        submit(osd, zone, *map(whatever, [*named, named[0]]))
    for each in named[1:]:
        each.cancel()
    until(lambda: f"waits for 1, the first is {named[0].id}" in job.status().hint)
    waits(twice)
    named[0].cancel()
    released(job)
    released(twice)


def test_hold_and_release(osd: Commands, zone: ObjectRef) -> None:
    first = submit(osd, zone)
    held = submit(osd, zone, whatever(first), hold=True)
    moved = submit(osd, zone, whatever(first))
    doomed = submit(osd, zone, first, hold=True)
    moved.hold()
    assert moved.status().reason == HELD
    moved.release()
    waits(moved)
    moved.hold()
    first.cancel()
    unreachable(doomed, first)
    for job in (held, moved):
        told(job)
        assert job.status().state is JobState.HELD
        job.release()
        released(job)


def test_cancel_and_kill(osd: Commands, zone: ObjectRef) -> None:
    first = submit(osd, zone)
    cancelled, killed = submit(osd, zone, first), submit(osd, zone, first)
    behind = submit(osd, zone, cancelled)
    assert cancelled.cancel()
    assert cancelled.status().reason == CANCELLED
    assert killed.kill() is JobState.CANCELLED
    assert killed.status().reason == KILLED
    unreachable(behind, cancelled)
    for job in (cancelled, killed, behind):
        job.remove()
    first.cancel()
    first.remove()
    assert depth(osd) == 0


def test_key_covers_the_list(osd: Commands, zone: ObjectRef) -> None:
    first, other = submit(osd, zone), submit(osd, zone)
    job = submit(osd, zone, first, key="k")
    assert submit(osd, zone, first, key="k").id == job.id
    for different in ([], [other], [whatever(first)], [first, other]):
        with pytest.raises(errors.Conflict):
            submit(osd, zone, *different, key="k")
    job.cancel()
    first.cancel()
    first.remove()
    assert submit(osd, zone, first, key="k").id == job.id, "whatever has become of the others"


def test_an_id_given_again_is_another_job(make_harness: MakeHarness) -> None:
    harness = make_harness()
    zone = ref(harness.osd.create_partition())
    place = ref(zone.partition_id, 0x9_0000)
    first = submit(harness.osd, zone, surrogate=place)
    job = submit(harness.osd, zone, whatever(first))
    first.cancel()
    released(job)
    first.remove()
    submit(harness.osd, zone, surrogate=place)
    harness.kill()
    harness.restart()
    released(Job(harness.osd, job.id))


def test_format_ends_those_that_wait(osd: Commands, zone: ObjectRef) -> None:
    first = submit(osd, zone)
    for _ in range(20):
        submit(osd, zone, first)
    osd.format_osd()
    assert depth(osd) == 0


# ---- many ----


def test_many_wait_for_one(osd: Commands, zone: ObjectRef) -> None:
    first = submit(osd, zone)
    failing = [submit(osd, zone, first) for _ in range(MANY // 2)]
    going_on = [submit(osd, zone, whatever(first)) for _ in range(MANY // 2)]
    first.cancel()
    until(lambda: depth(osd) == len(going_on))
    for job in random.sample(failing, 20):
        unreachable(job, first)
    for job in random.sample(going_on, 20):
        released(job)


def test_an_end_races_with_submissions(osd: Commands, zone: ObjectRef) -> None:
    """Each submission sees its predecessor before or after its end, and none is forgotten."""

    def submit_one(first: Job) -> Job | None:
        with suppress(errors.TargetBusy):
            return submit(osd, zone, first)
        return None

    with ThreadPoolExecutor(5) as clients:
        for _ in range(20):
            first = submit(osd, zone)
            found = [clients.submit(submit_one, first) for _ in range(4)]
            clients.submit(first.cancel)
            for each in found:
                job = each.result()
                if job is not None:
                    unreachable(job, first)
    assert depth(osd) == 0


def test_controls_race_with_an_end(osd: Commands, zone: ObjectRef) -> None:
    def play(job: Job) -> None:
        for _ in range(10):
            with suppress(errors.OSDError):
                job.hold()
                job.release()

    with ThreadPoolExecutor(5) as clients:
        for _ in range(10):
            first = submit(osd, zone)
            doomed, going_on = submit(osd, zone, first), submit(osd, zone, whatever(first))
            under_way = [clients.submit(play, job) for job in (doomed, going_on)]
            first.cancel()
            for each in under_way:
                each.result()
            unreachable(doomed, first)
            with suppress(errors.Conflict):
                going_on.release()
            released(going_on)
            going_on.cancel()
    assert depth(osd) == 0


# ---- a target that dies ----


def again(harness: Harness, waiting: Sequence[Job]) -> list[Job]:
    """The same jobs after a crash."""
    harness.kill()
    harness.restart()
    return [Job(harness.osd, job.id) for job in waiting]


def test_waits_on_after_a_restart(make_harness: MakeHarness) -> None:
    harness = make_harness()
    zone = ref(harness.osd.create_partition())
    first, second = submit(harness.osd, zone), submit(harness.osd, zone)
    both = submit(harness.osd, zone, whatever(first), whatever(second))
    doomed = submit(harness.osd, zone, second)
    held = submit(harness.osd, zone, whatever(second), hold=True)
    cleaning = submit(harness.osd, zone, failed(first), hold=True)
    later = submit(harness.osd, zone, failed(second))
    first.cancel()
    until(lambda: both.status().awaited == second.id)
    told(cleaning)
    first.remove()
    second, both, doomed, held = again(harness, [second, both, doomed, held])
    cleaning, later = Job(harness.osd, cleaning.id), Job(harness.osd, later.id)
    cleaning.release()
    released(cleaning)  # the job it waited for is gone, and had failed
    waits(later)
    assert waits(both).awaited == second.id
    assert waits(doomed).awaited == second.id
    assert held.status().state is JobState.HELD
    second.cancel()
    unreachable(doomed, second)
    released(both)
    released(later)
    second.remove()
    both, doomed, held = again(harness, [both, doomed, held])
    released(both)
    assert doomed.status().reason == UNREACHABLE
    held.release()
    released(held)


def test_killed_at_any_point_of_an_end(make_harness: MakeHarness) -> None:
    """A job that requires the completion of another does not run after its failure."""
    harness = make_harness()
    zone = ref(harness.osd.create_partition())
    rng = random.Random(4)
    for _ in range(CRASHES):
        first = submit(harness.osd, zone)
        failing = [submit(harness.osd, zone, first) for _ in range(30)]
        behind = [submit(harness.osd, zone, whatever(failing[n])) for n in (0, 15, 29)]
        killer = threading.Timer(rng.uniform(0, 0.02), harness.transport.process.kill)
        killer.start()
        ended = removed = False
        with suppress(errors.Unreachable):
            ended = first.cancel()
            while not removed:
                with suppress(errors.TargetBusy):
                    first.remove()
                    removed = True
        killer.join()
        everything = again(harness, [first, *failing, *behind])
        first, failing, behind = everything[0], everything[1:31], everything[31:]
        if not ended and not removed:
            with suppress(errors.JobExpired):  # the removal had no answer
                first.cancel()
        for job in failing:
            unreachable(job, first)
        for job in behind:
            released(job)
            job.cancel()
    assert depth(harness.osd) == 0


# ---- with sandboxes ----


def run(target: Target, code: str, *after: After | Job, **how: object) -> Job:
    zone = target.partition
    return jobs.submit(target.commands, code, zone=zone, after=after, **how)  # type: ignore[arg-type]


def test_runs_in_the_order_asked_for(target: Target) -> None:
    gate = run(target, "pass", hold=True)
    good = run(target, "import osd; osd.result(1)", gate)
    bad = run(target, "raise ValueError", whatever(gate))
    both = run(target, "pass", good, whatever(bad))
    never = run(target, "pass", good, bad)
    other = run(target, "print('an ordinary job')")
    assert other.wait(DEADLINE_S).state is JobState.COMPLETED
    for job in (good, bad, both, never):
        waits(job)
    gate.release()
    ends = [job.wait(DEADLINE_S) for job in (gate, good, bad, both)]
    assert [each.state.name for each in ends] == ["COMPLETED", "COMPLETED", "FAILED", "COMPLETED"]
    unreachable(never, bad)
    started = [each.started for each in ends]
    assert started[3] >= max(each.ended for each in ends[1:3])  # type: ignore[operator, type-var]
    assert good.result() == 1


def test_after_no_failure(target: Target) -> None:
    """A job that repairs a failure is not needed without one, and later jobs are not blocked."""
    good = run(target, "pass", hold=True)
    bad = run(target, "raise SystemExit(3)", hold=True)
    repair, at_once = run(target, "pass", failed(good)), run(target, "pass", failed(bad))
    held = run(target, "pass", failed(good), hold=True)
    behind, fallback = run(target, "pass", repair), run(target, "pass", failed(repair))
    code, zone = "import osd; osd.result(osd.array_index)", target.partition
    array = job_array.submit(target.commands, code, zone=zone, array=range(3), after=[failed(good)])
    good.release()
    bad.release()
    for job in (repair, held, array, *array):
        not_needed(job, good)
    unreachable(behind, repair)
    assert fallback.wait(DEADLINE_S).state is JobState.COMPLETED
    assert at_once.wait(DEADLINE_S).state is JobState.COMPLETED
    not_needed(run(target, "pass", failed(good)), good)
    with pytest.raises(errors.JobCancelled, match="did not fail"):
        repair.result(DEADLINE_S)


def test_synchronous_and_unreachable(target: Target) -> None:
    bad = run(target, "raise ValueError")
    job = run(target, "pass", bad, wait=20)
    unreachable(job, bad)
    assert run(target, "pass", whatever(bad), wait=20).wait().state is JobState.COMPLETED


def test_another_attempt_forgets_nothing(target: Target) -> None:
    first = run(target, "pass")
    params = ExecParams(retry_exit=3, after=(After(first.id),))
    reply = target.commands.exec_code(target.partition, b"raise SystemExit(3)", params)
    assert reply.job is not None
    status = Job(target.commands, reply.job).wait(DEADLINE_S)
    assert status.attempt > 1
    assert JobFlag.AFTER in status.flags
    assert status.after == (After(first.id),)


def test_a_restart_between_two_runs(target: Target) -> None:
    first = run(target, "pass")
    middle = run(target, "pass", first, hold=True)
    last = run(target, "print('ran')", first, middle)
    first.wait(DEADLINE_S)
    until(lambda: last.status().awaited == middle.id)
    first.remove()
    target.kill()
    target.start()
    middle, last = (Job(target.commands, job.id) for job in (middle, last))
    waits(last)
    middle.release()
    assert last.wait(DEADLINE_S).state is JobState.COMPLETED
    assert last.output() == b"ran\n"
