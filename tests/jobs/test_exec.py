# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs end to end over the harness: zones, limits, control, guards, and deaths of either process."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pyosd import errors, jobs
from pyosd.jobs.job import Job
from pyosd.types import ROOT, AttributeValue, ref
from pyosd.wire.attributes import Page
from pyosd.wire.exec_params import ExecParams, Limits
from pyosd.wire.job_status import JobFlag, JobState
from tests.apart import is_there
from tests.processes import descendants, sandboxes_of
from tests.waiting import until

if TYPE_CHECKING:
    from tests.jobs.conftest import Target

DEADLINE_S = 60.0
SLEEP = "import time\ntime.sleep(600)"
WHILE_THERE = """
import osd, time
while osd.userobject({o.partition_id}, {o.object_id}).exists():
    time.sleep(0.005)
"""


def run(target: Target, code: str, **options: object) -> Job:
    options.setdefault("zone", target.partition)
    return jobs.submit(target.commands, code, **options)  # type: ignore[arg-type]


def is_running(job: Job) -> bool:
    return job.status().state == JobState.RUNNING


def ended(job: Job) -> tuple[JobState, int]:
    status = job.wait(DEADLINE_S)
    return status.state, status.reason


# ---- how jobs end


@pytest.mark.shares_target
def test_output_and_result_come_back(target: Target) -> None:
    job = run(target, "import osd\nprint('hello')\nosd.result({'n': 1})", name="greeting")
    assert job.result(DEADLINE_S) == {"n": 1}
    assert job.output() == b"hello\n"
    status = job.status()
    assert status.state == JobState.COMPLETED
    assert (status.name, status.attempt, status.stdout_length) == ("greeting", 1, 6)
    assert status.sha256 and status.submitted and status.started and status.ended


@pytest.mark.shares_target
def test_synchronous_exec_returns_the_result(target: Target) -> None:
    reply = target.commands.exec_code(
        target.partition,
        b"import osd\nosd.result(b'0123456789')",
        synchronous=True,
        result_allocation_length=4,
    )
    assert bytes(reply.result) == b"0123"
    assert reply.job is not None and reply.error is None
    assert Job(target.commands, reply.job).status().state == JobState.COMPLETED


@pytest.mark.shares_target
def test_synchronous_exec_of_a_failing_script(target: Target) -> None:
    reply = target.commands.exec_code(target.partition, b"1 / 0", synchronous=True)
    assert reply.job is not None and reply.error is not None
    assert (reply.error.asc, reply.error.ascq) == (0x80, 0x02)
    assert reply.error.sense is not None
    job = Job(target.commands, reply.job)
    assert ended(job) == (JobState.FAILED, 201)
    assert "ZeroDivisionError" in job.traceback()
    assert "ZeroDivisionError" in job.status().message


@pytest.mark.shares_target
def test_wait_runs_out_and_the_job_goes_on(target: Target) -> None:
    params = ExecParams(wait=0.1)
    going_on = target.commands.create(target.partition.partition_id)
    code = WHILE_THERE.format(o=going_on).encode()
    reply = target.commands.exec_code(target.partition, code, params, synchronous=True)
    assert reply.still_running and reply.job is not None
    target.commands.remove(going_on)
    assert ended(Job(target.commands, reply.job)) == (JobState.COMPLETED, 0)


@pytest.mark.shares_target
def test_long_result_spills_into_an_object(target: Target) -> None:
    job = run(target, "import osd\nosd.result(b'0123456789' * 30000)")
    assert job.result(DEADLINE_S) == b"0123456789" * 30000
    status = job.status()
    assert status.flags & JobFlag.RESULT_SPILLED and status.result_object is not None


@pytest.mark.shares_target
def test_long_stderr_keeps_both_ends(target: Target) -> None:
    job = run(target, "import sys\nfor i in range(20000): print(i, file=sys.stderr)")
    status = job.wait(DEADLINE_S)
    text = job.stderr()
    assert status.flags & JobFlag.STDERR_CUT
    assert len(text) == 60 << 10
    assert text.startswith(b"0\n1\n") and text.endswith(b"19999\n")


@pytest.mark.shares_target
@pytest.mark.parametrize(
    ("code", "limits", "state", "reason"),
    [
        ("while True: pass", Limits(wall=0.2, cpu=50), JobState.TIMEOUT, 301),
        ("while True: pass", Limits(cpu=0.2), JobState.LIMIT_EXCEEDED, 302),
        ("bytearray(300 << 20)", Limits(mem="64MiB"), JobState.OUT_OF_MEMORY, 303),
        ("while True: print('x' * 999)", Limits(output=100_000), JobState.LIMIT_EXCEEDED, 304),
        ("import sys\nsys.exit(7)", None, JobState.FAILED, 202),
        ("import os\nos._exit(0)", None, JobState.FAILED, 204),
    ],
)
def test_ends(
    target: Target, code: str, limits: Limits | None, state: JobState, reason: int
) -> None:
    job = run(target, code, limits=limits)
    assert ended(job) == (state, reason)
    status = job.status()
    assert status.reason_label and status.hint


@pytest.mark.shares_target
@pytest.mark.parametrize(
    ("code", "advice"),
    [
        ("bytearray(300 << 20)", "it asked for much more than it used"),
        ("x = []\nwhile True: x.append(b'x' * (1 << 20))", "try 128 MiB"),
    ],
)
def test_what_to_do_about_memory(target: Target, code: str, advice: str) -> None:
    job = run(target, code, limits=Limits(mem="64MiB"))
    assert ended(job) == (JobState.OUT_OF_MEMORY, 303)
    assert job.status().hint.endswith(f" MiB: {advice}")


@pytest.mark.shares_target
def test_output_is_cut_at_its_limit(target: Target) -> None:
    job = run(target, "while True: print('x' * 99)", limits=Limits(output=5000))
    status = job.wait(DEADLINE_S)
    assert status.flags & JobFlag.STDOUT_CUT
    assert len(job.output()) == status.stdout_length == 5000


@pytest.mark.shares_target
def test_output_grows_while_the_job_runs(target: Target) -> None:
    job = run(target, "print('first', flush=True)\n" + SLEEP)
    until(lambda: job.output() == b"first\n")
    assert is_running(job)
    job.kill(DEADLINE_S)


# ---- zones

TOUCH = """
import osd
try:
    osd.userobject({0}, {1}).data.write(b'x')
    print('written')
except osd.PermissionDenied:
    print('denied')
"""


@pytest.mark.shares_target
def test_zones_hold(target: Target) -> None:
    commands, partition = target.commands, target.partition
    inside = commands.create(partition.partition_id)
    member = commands.create(partition.partition_id)
    collection = commands.create_collection(partition.partition_id)
    page = [AttributeValue(Page.USER_COLLECTIONS, 1, collection.object_id.to_bytes(8, "big"))]
    commands.set_attributes(member, page)
    other = commands.create(commands.create_partition())
    objects = {"inside": inside, "member": member, "other": other}
    expected = {
        ROOT: {"inside", "member", "other"},
        partition: {"inside", "member"},
        collection: {"member"},
        inside: {"inside"},
    }
    for zone, allowed in expected.items():
        for name, obj in objects.items():
            job = run(target, TOUCH.format(obj.partition_id, obj.object_id), zone=zone)
            assert ended(job) == (JobState.COMPLETED, 0)
            assert job.output() == (b"written\n" if name in allowed else b"denied\n"), (zone, name)


@pytest.mark.shares_target
def test_absent_zone_is_refused(target: Target) -> None:
    with pytest.raises(errors.NotFound):
        run(target, "pass", zone=ref(target.partition.partition_id, 0x99999))
    with pytest.raises(errors.NotFound):
        run(target, "pass", zone=ref(0x99999))


# ---- control


@pytest.mark.shares_target
def test_kill_cancel_hold_release(target: Target) -> None:
    held = run(target, "print('ran')", hold=True)
    assert held.status().state == JobState.HELD
    running = run(target, SLEEP)
    until(lambda: is_running(running))
    assert not running.cancel()
    assert running.kill(DEADLINE_S) == JobState.CANCELLED
    assert ended(running) == (JobState.CANCELLED, 107)
    held.release()
    assert ended(held) == (JobState.COMPLETED, 0)
    assert held.output() == b"ran\n"
    held = run(target, "print('never')", hold=True)
    assert held.cancel()
    assert ended(held) == (JobState.CANCELLED, 105)
    assert held.output() == b""
    held.kill()  # GOOD in every state
    assert ended(held) == (JobState.CANCELLED, 105)


def says(job: Job, message: str) -> bool:
    return job.status().message == message


@pytest.mark.shares_target
def test_generation_grows_with_progress(target: Target) -> None:
    steps = [target.commands.create(target.partition.partition_id) for _ in range(4)]
    job = run(
        target,
        "import osd\n"
        + "".join(
            f"osd.progress({i / 4}, 'step {i}')\n" + WHILE_THERE.format(o=step)
            for i, step in enumerate(steps)
        ),
    )
    seen: list[int] = []
    for i, step in enumerate(steps):
        until(partial(says, job, f"step {i}"))
        seen.append(job.status().generation)
        target.commands.remove(step)
    assert ended(job) == (JobState.COMPLETED, 0)
    assert seen == sorted({*seen})
    assert job.status().message == "step 3"


@pytest.mark.shares_target
def test_same_key_is_the_same_job(target: Target) -> None:
    first = run(target, "print('once')", key="k")
    assert run(target, "print('once')", key="k").id == first.id
    with pytest.raises(errors.OSDError) as raised:
        run(target, "print('twice')", key="k")
    assert (raised.value.asc, raised.value.ascq) == (0x80, 0x12)
    first.wait(DEADLINE_S)
    assert run(target, "print('once')", key="k").id == first.id


# ---- what stands in the way


@pytest.mark.shares_target
def test_unfinished_job_guards_its_surrogate_and_partition(target: Target) -> None:
    job = run(target, SLEEP)
    until(lambda: is_running(job))
    for attempt in (
        lambda: target.commands.remove(job.id),
        lambda: target.commands.write(job.id, 0, b"x"),
        lambda: target.commands.set_attributes(job.id, [AttributeValue(0xA, 1, b"x")]),
        lambda: target.commands.remove_partition(target.partition.partition_id, contents=True),
    ):
        with pytest.raises(errors.OSDError) as raised:
            attempt()
        assert (raised.value.asc, raised.value.ascq) == (0x80, 0x11)
    job.kill(DEADLINE_S)
    target.commands.remove(job.id)
    target.commands.remove_partition(target.partition.partition_id, contents=True)


@pytest.mark.shares_target
def test_removing_the_zone_ends_its_jobs(target: Target) -> None:
    collection = target.commands.create_collection(target.partition.partition_id)
    running = run(target, SLEEP, zone=collection)
    until(lambda: is_running(running))
    held = run(target, "pass", zone=collection, hold=True)
    target.commands.remove_collection(collection)
    assert ended(running) == (JobState.FAILED, 605)
    assert ended(held) == (JobState.FAILED, 605)


def test_format_ends_everything(target: Target) -> None:
    job = run(target, SLEEP)
    until(lambda: is_running(job))
    target.commands.format_osd()
    assert target.commands.list_partitions() == []
    target.partition = ref(target.commands.create_partition())
    assert ended(run(target, "pass")) == (JobState.COMPLETED, 0)


def test_format_ends_an_exec_that_waits_for_a_queued_job(target: Target) -> None:
    """FORMAT OSD ends the job itself, and with it the command, which has its attributes to get."""
    sleepers = [run(target, SLEEP) for _ in range(2)]
    until(lambda: all(is_running(job) for job in sleepers))
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(
            target.commands.exec_code, target.partition, b"pass", synchronous=True
        )
        until(lambda: len(jobs.list_jobs(target.commands, target.partition.partition_id)) == 3)
        target.commands.format_osd()
        error = waiting.exception(DEADLINE_S) or waiting.result().error
    assert isinstance(error, errors.OSDError)
    assert (error.asc, error.ascq) == (0x80, 0x01)


def test_jobs_collection_lists_all(target: Target) -> None:
    made = {run(target, "pass").id for _ in range(20)}
    assert {
        status.id for status in jobs.list_jobs(target.commands, target.partition.partition_id)
    } == made


def test_principal_has_a_cap(target: Target) -> None:
    for _ in range(1000):
        run(target, "pass", hold=True)
    with pytest.raises(errors.TargetBusy):
        run(target, "pass", hold=True)


# ---- deaths


def test_jobs_survive_the_target(target: Target) -> None:
    wrote = run(target, TOUCH.format(*job_object(target)) + SLEEP)
    going_on = target.commands.create(target.partition.partition_id)
    read_only = run(target, "print('again', flush=True)\n" + WHILE_THERE.format(o=going_on))
    until(lambda: bool(wrote.output()) and bool(read_only.output()))
    held = run(target, "print('later')", hold=True, key="held")
    queued = [run(target, f"print({i})") for i in range(5)]
    target.kill()
    target.start()
    everything = [wrote, read_only, held, *queued]
    wrote, read_only, held, *queued = [Job(target.commands, job.id) for job in everything]
    assert ended(wrote) == (JobState.SANDBOX_LOST, 402)
    target.commands.remove(going_on)
    assert ended(read_only) == (JobState.COMPLETED, 0)
    assert read_only.output() == b"again\n" and read_only.status().attempt == 2
    assert [job.wait(DEADLINE_S).state for job in queued] == [JobState.COMPLETED] * 5
    assert [job.output() for job in queued] == [b"%d\n" % i for i in range(5)]
    assert held.status().state == JobState.HELD
    assert run(target, "print('later')", hold=True, key="held").id == held.id
    held.release()
    assert ended(held) == (JobState.COMPLETED, 0)


def job_object(target: Target) -> tuple[int, int]:
    obj = target.commands.create(target.partition.partition_id)
    return obj.partition_id, obj.object_id


def test_a_sandbox_that_is_gone_has_used_no_time(target: Target) -> None:
    """The target looks at limits before it hears of the death: SIGCONT ends its epoll_wait early."""
    job = run(target, TOUCH.format(*job_object(target)) + SLEEP)
    until(lambda: bool(job.output()))
    assert target.daemon is not None
    harness = target.transport.process
    harness.send_signal(signal.SIGSTOP)
    zygotes = descendants(target.daemon.pid)
    sandboxes = {pid for zygote in zygotes for pid in descendants(zygote)}
    for pid in sandboxes:
        with contextlib.suppress(ProcessLookupError):  # its parent was among them
            os.kill(pid, signal.SIGKILL)
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in sandboxes))
    harness.send_signal(signal.SIGCONT)
    assert ended(job) == (JobState.SANDBOX_LOST, 402)


def test_jobs_survive_the_daemon(target: Target) -> None:
    wrote = run(target, TOUCH.format(*job_object(target)) + SLEEP)
    going_on = target.commands.create(target.partition.partition_id)
    read_only = run(target, "print('again', flush=True)\n" + WHILE_THERE.format(o=going_on))
    until(lambda: bool(wrote.output()) and bool(read_only.output()))
    target.kill_daemon()
    assert ended(wrote) == (JobState.SANDBOX_LOST, 402)
    with pytest.raises(errors.TargetBusy):
        target.commands.exec_code(target.partition, b"pass", synchronous=True)
    queued = run(target, "pass")
    assert queued.status().reason == 102
    target.start_daemon()
    target.commands.remove(going_on)
    assert ended(read_only) == (JobState.COMPLETED, 0)
    assert read_only.output() == b"again\n" and read_only.status().attempt == 2
    assert ended(queued) == (JobState.COMPLETED, 0)


# ---- sizes


@pytest.mark.shares_target
def test_large_code_and_arguments(target: Target) -> None:
    code = "import osd\nosd.result(len(osd.args))\n" + "# padding\n" * 300_000
    job = run(target, code, args=b"a" * 200_000)
    assert job.result(DEADLINE_S) == 200_000


@pytest.mark.shares_target
def test_usage_is_reported(target: Target) -> None:
    job = run(target, "block = bytearray(40 << 20)\nfor i in range(300_000): pass")
    status = job.wait(DEADLINE_S)
    assert status.peak_memory >= 40 << 20
    assert status.cpu_user + status.cpu_system > 0 and status.run_time > 0


@pytest.mark.shares_target
def test_many_waits_at_once(target: Target) -> None:
    code, params = b"import time\ntime.sleep(0.02)", ExecParams(wait=30)
    with ThreadPoolExecutor(80) as pool:
        replies = [
            pool.submit(target.commands.exec_code, target.partition, code, params, synchronous=True)
            for _ in range(80)
        ]
    failures = [future.exception() for future in replies]
    assert sum(failure is None for failure in failures) >= 64
    assert all(failure is None or isinstance(failure, errors.TargetBusy) for failure in failures)
    until(
        lambda: all(s.done for s in jobs.list_jobs(target.commands, target.partition.partition_id))
    )


def test_killing_a_sandbox_gives_another_attempt(target: Target) -> None:
    """There is only the job's: another one might get the job, and be killed with it."""
    pools = target.folder / "pools"
    pools.write_text("name=default;max=1;min=0;spares=0\n")
    target.options = f";pools={pools}"
    target.kill()
    target.start()
    going_on = target.commands.create(target.partition.partition_id)
    job = run(target, "print('once', flush=True)\n" + WHILE_THERE.format(o=going_on))
    until(lambda: job.output() == b"once\n")
    assert target.daemon is not None
    daemon = target.daemon.pid
    until(lambda: len(sandboxes_of(daemon)) == 1)  # those of the target before may die late
    (sandbox,) = sandboxes_of(daemon)
    os.kill(sandbox, signal.SIGKILL)
    until(lambda: job.status().attempt == 2)
    target.commands.remove(going_on)
    assert ended(job) == (JobState.COMPLETED, 0)
    assert job.status().attempt == 2 and job.output() == b"once\n"


def test_expired_records_are_swept_at_start(target: Target) -> None:
    job = run(target, "print('soon gone')", expire=0.5)
    with contextlib.suppress(errors.JobExpired):  # while we are late ourselves
        job.wait(DEADLINE_S)
    kept = run(target, "print('kept')")
    kept.wait(DEADLINE_S)
    target.kill()
    target.start()
    until(lambda: not is_there(target.commands, job.id))
    assert Job(target.commands, kept.id).output() == b"kept\n"


def test_more_slots_than_the_daemon_keeps(target: Target) -> None:
    target.options = ";slots=16"
    target.kill()
    target.start()
    made = [run(target, "pass") for _ in range(20)]
    assert [ended(job) for job in made] == [(JobState.COMPLETED, 0)] * 20


# ---- data


@pytest.mark.shares_target
def test_scripts_read_and_write_large_objects(target: Target) -> None:
    data = bytes(range(256)) * (20 << 10)  # 5 MiB: beyond the head of a two-tier object
    obj = target.commands.create(target.partition.partition_id)
    copy = target.commands.create(target.partition.partition_id)
    for start in range(0, len(data), 1 << 20):
        target.commands.write(obj, start, data[start : start + (1 << 20)])
    code = f"""
import hashlib, osd
source = osd.userobject({obj.partition_id}, {obj.object_id})
whole = source.data.read()
mapped = source.data.map()
osd.userobject({copy.partition_id}, {copy.object_id}).data.write(whole)
osd.result([hashlib.sha256(whole).hexdigest(), hashlib.sha256(bytes(mapped)).hexdigest()])
"""
    job = run(target, code)
    assert job.result(DEADLINE_S) == [hashlib.sha256(data).hexdigest()] * 2
    for start in range(0, len(data), 1 << 20):
        piece = target.commands.read(copy, start, 1 << 20)
        assert bytes(piece) == data[start : start + (1 << 20)]


@pytest.mark.shares_target
def test_removed_object_is_gone_for_a_running_script(target: Target) -> None:
    obj = target.commands.create(target.partition.partition_id)
    target.commands.write(obj, 0, b"x" * 100_000)
    code = f"""
import osd, time
o = osd.userobject({obj.partition_id}, {obj.object_id})
print(len(o.data.read()), flush=True)
try:
    while True:
        o.data.read()
        time.sleep(0.01)
except osd.NotFound:
    print('gone')
"""
    job = run(target, code)
    until(lambda: job.output() == b"100000\n")
    target.commands.remove(obj)
    assert ended(job) == (JobState.COMPLETED, 0)
    assert job.output() == b"100000\ngone\n"


@pytest.mark.shares_target
def test_scripts_create_write_iterate_and_remove(target: Target) -> None:
    partition = target.partition.partition_id
    code = f"""
import osd
o = osd.userobject({partition}, 0x20000)
o.create()
o.setattr([(0xa, 1, 'text')])
o.data.write('line 1\\nline 2\\n')
print([line for line in o.data], o.getattr([(0xa, 1)])[0][2].text)
o.remove()
print(o.exists())
"""
    job = run(target, code)
    job.wait(DEADLINE_S)
    assert ended(job) == (JobState.COMPLETED, 0), job.traceback()
    assert job.output() == b"[b'line 1\\n', b'line 2\\n'] text\nFalse\n"


@pytest.mark.shares_target
def test_listing_1_of_the_paper(target: Target) -> None:
    top = Path(__file__).parents[2]
    job = run(target, (top / "examples" / "listing1.py").read_text(), zone=ROOT)
    assert ended(job) == (JobState.COMPLETED, 0), job.traceback()
    assert job.output() == (top / "tests" / "sandbox" / "listing1.golden").read_bytes()
