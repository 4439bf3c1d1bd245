# SPDX-License-Identifier: GPL-2.0-or-later
"""EXEC from the outside: synchronous and not, the token, status page, output, result, control."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from dataclasses import replace

import pytest

import pyosd
from pyosd import requests as rq
from pyosd.errors import Conflict, ScriptError
from pyosd.jobs.job import Job
from pyosd.types import ROOT, AttributeId, AttributeValue, ObjectRef, ObjectType, PartitionId, ref
from pyosd.wire.attributes import CURRENT_OBJECT_ID, CURRENT_PARTITION_ID, CURRENT_TYPE, Page
from pyosd.wire.cdb import AttributeLists, AttributePage, Descriptor, Request
from pyosd.wire.exec_params import ExecParams
from pyosd.wire.job_status import JobFlag, JobState, Number
from tests.exec.conftest import WAIT_S, Run, ended
from tests.expect import (
    CDB_FIELD,
    JOB_IN_WAY,
    KEY_CLASH,
    NO_OBJECT,
    NO_PARTITION,
    OK,
    STILL_RUNNING,
    check,
    mangled,
)

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

HELLO = b"print('hello')\n"
FOREVER = "while True: pass\n"
GREEN = AttributeValue(Page.APPLICATION, 1, b"green")
TOKEN = (CURRENT_PARTITION_ID, CURRENT_OBJECT_ID, CURRENT_TYPE)
JOBS_PARTITION = 0x7FFF_FFFF_0000_0000
JOBS_COLLECTION = 0x1001

Submit = Callable[..., Job]


def control(target: pyosd.Target, job: ObjectRef, action: int) -> None:
    value = AttributeValue(Page.JOB_CONTROL, 1, bytes([action]))
    target.set_attributes(job, [value])


# ---- asynchronous ----


def test_hello(run: Run, target: pyosd.Target) -> None:
    status = ended(run("print('hello')"), JobState.COMPLETED, 0)
    assert target.read_range(status.id) == b"hello\n"
    assert status.exit_code == 0
    assert status.stdout_length == 6
    assert status.run_time > 0


def test_token_in_list_format(target: pyosd.Target, zone: ObjectRef) -> None:
    request = rq.execute(zone, HELLO, attributes=AttributeLists(TOKEN))
    reply = check(target.reply(request), OK)
    job = ref(reply.attribute(CURRENT_PARTITION_ID).uint, reply.attribute(CURRENT_OBJECT_ID).uint)
    assert reply.attribute(CURRENT_TYPE).uint == ObjectType.USER_OBJECT
    assert job.partition_id == zone.partition_id
    assert target.job(job).wait(WAIT_S).state is JobState.COMPLETED


def test_token_in_page_format(target: pyosd.Target, zone: ObjectRef) -> None:
    page = AttributePage(Page.CURRENT_COMMAND, 76)
    form = check(target.reply(rq.execute(zone, HELLO, attributes=page)), OK).page
    assert form is not None
    job = ref(*struct.unpack_from(">QQ", form.body, 36))
    assert target.job(job).wait(WAIT_S).state is JobState.COMPLETED


def test_bare_exec_without_token(target: pyosd.Target, zone: ObjectRef) -> None:
    """No continuation, no attributes: the job runs, and the jobs collection has it."""
    check(target.reply(rq.execute(zone, HELLO)), OK)
    [status] = target.jobs(zone.partition_id)
    assert target.job(status.id).wait(WAIT_S).state is JobState.COMPLETED


def test_jobs_collection(target: pyosd.Target, submit: Submit, pid: int) -> None:
    jobs = [submit("pass") for _ in range(5)]
    members = target.list_members(ref(pid, JOBS_COLLECTION))
    assert members == sorted(job.id for job in jobs)
    kind = target.get_attribute(ref(pid, JOBS_COLLECTION), Page.COLLECTION_INFORMATION, 0xA)
    assert kind == b"\1", "TRACKING"
    for job in jobs:
        job.wait(WAIT_S)
    state = AttributeId(Page.JOB_STATUS, Number.STATE)
    groups = target.get_member_attributes(ref(pid, JOBS_COLLECTION), [state])
    assert [each.attributes[0].uint for each in groups] == [JobState.COMPLETED] * 5


def test_root_zone_uses_the_jobs_partition(target: pyosd.Target, submit: Submit) -> None:
    job = submit("print('root')", zone=ROOT)
    assert job.id.partition_id == JOBS_PARTITION
    assert job.wait(WAIT_S).state is JobState.COMPLETED
    job.remove()
    made = target.create_partition()
    assert made < JOBS_PARTITION, "ignored by the assignment of ids"
    target.remove_partition(made)


def test_surrogate_where_asked_for(target: pyosd.Target, submit: Submit, zone: ObjectRef) -> None:
    elsewhere = target.create_partition()
    job = submit("pass", surrogate=ref(elsewhere, 0x9_0000))
    assert job.id == ref(elsewhere, 0x9_0000)
    job.wait(WAIT_S)
    target.remove_partition(elsewhere, contents=True)


def test_output_while_it_runs(target: pyosd.Target, submit: Submit) -> None:
    job = submit(
        """
        print("early", flush=True)
        while True: pass
        """
    )
    for piece in job.iter_output(follow=True):
        assert piece.startswith(b"early")
        break
    assert job.poll()[0] is JobState.RUNNING
    job.kill()


def test_progress_and_message(submit: Submit) -> None:
    job = submit(
        """
        import osd
        osd.progress(0.25, "a quarter")
        print("said", flush=True)
        while True: pass
        """
    )
    next(job.iter_output(follow=True))
    status = job.status()
    assert status.progress == 0.25
    assert status.message == "a quarter"
    job.kill()


def test_progress_does_not_go_back(submit: Submit) -> None:
    steps = "import osd\nfor part in (0.5, 0.25, 0.75, 0.5): osd.progress(part, str(part))"
    status = submit(steps).wait(WAIT_S)
    assert status.state is JobState.COMPLETED
    assert (status.progress, status.message) == (0.75, "0.5")


def test_result_bytes_and_json(submit: Submit) -> None:
    assert submit("import osd; osd.result(b'raw')").result(WAIT_S) == b"raw"
    job = submit("import osd; osd.result({'a': [1, 2]})")
    assert job.result(WAIT_S) == {"a": [1, 2]}


def test_result_spills_into_a_companion(submit: Submit, target: pyosd.Target) -> None:
    job = submit("import osd; osd.result(b'x' * 200_000)")
    assert job.result(WAIT_S) == b"x" * 200_000
    companion = job.status().result_object
    assert companion is not None
    assert target.length(companion) == 200_000


def test_arguments(submit: Submit) -> None:
    assert submit("import osd; osd.result(osd.args)", args=[1, "two"]).result(WAIT_S) == [1, "two"]
    assert submit("import osd; osd.result(osd.args)", args=b"raw").result(WAIT_S) == b"raw"


def test_stderr_is_kept(submit: Submit) -> None:
    job = submit("import sys; sys.stderr.write('to stderr')")
    assert job.wait(WAIT_S).stderr_length == 9
    assert job.stderr() == b"to stderr"
    assert job.output() == b""


FLOOD = """
import osd, sys
while not osd.userobject(*osd.args).data.read(1): pass
for n in range(20_000):
    sys.stderr.write(f"line {n:6}\\n")
print("flooded", flush=True)
while True: pass
"""


def test_stderr_while_it_runs(target: pyosd.Target, zone: ObjectRef) -> None:
    """Followed, and read in between: what a terminal state brings is there before it."""
    gate = target.create(zone.partition_id)
    place = [gate.partition_id, gate.object_id]
    code = 'import sys; print("early", file=sys.stderr)' + FLOOD
    job = target.exec(code, zone=zone, args=place, grace=5.0)
    pieces = job.iter_stderr(follow=True)
    assert next(pieces) == b"early\n"
    assert job.stderr() == b"early\n"
    status = job.status()
    assert (status.state, status.stderr_length) == (JobState.RUNNING, 6)
    assert not status.flags & JobFlag.STDERR_CUT
    target.write(gate, 0, b"x")
    assert next(job.iter_output(follow=True)) == b"flooded\n"
    everything = b"early\n" + b"".join(b"line %6d\n" % n for n in range(20_000))
    until = time.monotonic() + WAIT_S
    while (status := job.status()).stderr_length < len(everything):
        assert time.monotonic() < until, status  # another pipe than the one of "flooded"
    assert status.state is JobState.RUNNING
    assert status.flags & JobFlag.STDERR_CUT
    kept = everything[: 20 << 10] + everything[-(40 << 10) :]
    assert job.stderr() == kept
    job.kill()
    assert job.stderr().startswith(kept[: 20 << 10]), "and the traceback at its end"
    assert b"Ended: the job was told to end" in job.stderr()[-200:]
    rest = b"".join(pieces)
    assert rest.endswith(job.stderr()[-1000:])
    assert b" bytes were not kept]\n" in rest


def test_status_page_is_read_only(target: pyosd.Target, run: Run) -> None:
    status = run("pass")
    for number in (Number.STATE, Number.REASON, Number.GENERATION):
        wrong = AttributeValue(Page.JOB_STATUS, number, b"\x10")
        reply = target.reply(rq.set_attributes(status.id, attributes=AttributeLists((), (wrong,))))
        assert reply.error is not None
    assert target.job(status.id).status() == status


def test_generation_never_goes_back(submit: Submit) -> None:
    job = submit("print('x')")
    seen = [job.status()]
    while not seen[-1].done:
        seen.append(job.status())
    generations = [each.generation for each in seen]
    assert generations == sorted(generations)
    order = [each.state for each in seen]
    assert order == sorted(order), "no state goes back"


def test_name_tags_limits_are_told(run: Run) -> None:
    limits = pyosd.Limits(wall=20, mem="64MiB", procs=1)
    status = run("pass", name="my job", limits=limits)
    assert status.name == "my job"
    assert status.limits.wall == 20
    assert status.limits.mem == 64 << 20
    assert status.zone is not None


# ---- synchronous ----


def test_synchronous(target: pyosd.Target, zone: ObjectRef) -> None:
    code = b"import osd; osd.result(b'inline'); print('and output')"
    reply = target.exec_code(zone, code, synchronous=True, result_allocation_length=64)
    assert reply.error is None
    assert not reply.still_running
    assert bytes(reply.result[:6]) == b"inline"
    assert reply.job is not None
    assert target.read_range(reply.job) == b"and output\n"
    assert target.job(reply.job).status().state is JobState.COMPLETED


def test_synchronous_failure_names_reason_and_token(target: pyosd.Target, zone: ObjectRef) -> None:
    """CHECK CONDITION, ABORTED COMMAND 80/02, the reason number, the token in Data-In."""
    reply = target.exec_code(zone, b"raise ValueError('no')", synchronous=True)
    assert reply.error is not None
    code = (reply.error.sense_key, reply.error.asc, reply.error.ascq)
    assert code == (0xB, 0x80, 0x02)
    assert reply.error.sense is not None
    assert reply.error.sense.command_information == 201
    assert reply.job is not None
    assert target.job(reply.job).status().reason == 201


def test_synchronous_wait_ends_before_the_job(target: pyosd.Target, zone: ObjectRef) -> None:
    params = ExecParams(wait=0.05)
    request = rq.execute(
        zone, FOREVER.encode(), params, synchronous=True, attributes=AttributeLists(TOKEN)
    )
    reply = check(target.reply(request), STILL_RUNNING)
    job = ref(reply.attribute(CURRENT_PARTITION_ID).uint, reply.attribute(CURRENT_OBJECT_ID).uint)
    assert not target.job(job).status().done
    assert target.job(job).kill(WAIT_S) is JobState.CANCELLED


def test_synchronous_does_not_block_others(target: pyosd.Target, zone: ObjectRef) -> None:
    request = rq.execute(zone, FOREVER.encode(), ExecParams(wait=20.0), synchronous=True)
    pending = target.submit(request)
    while not target.jobs(zone.partition_id):
        target.ping()
    target.create(zone.partition_id)
    [status] = target.jobs(zone.partition_id)
    target.job(status.id).kill(WAIT_S)
    error = pending.reply().error
    assert error is not None
    assert (error.asc, error.ascq) == (0x80, 0x01)


# ---- bad EXECs ----


def test_no_code(target: pyosd.Target, zone: ObjectRef) -> None:
    check(target.reply(rq.execute(zone, b"")), CDB_FIELD.at(32))
    assert target.jobs(zone.partition_id) == []


def test_code_longer_than_allowed(target: pyosd.Target, zone: ObjectRef) -> None:
    check(target.reply(rq.execute(zone, b"#" * ((16 << 20) + 1))), CDB_FIELD.at(32))


def test_code_longer_than_data_out(target: pyosd.Target, zone: ObjectRef) -> None:
    reply = mangled(target, rq.execute(zone, HELLO), {32: (4096).to_bytes(8, "big")})
    check(reply, CDB_FIELD.at(32))
    assert target.jobs(zone.partition_id) == []


def test_absent_zone(target: pyosd.Target, pid: PartitionId) -> None:
    check(target.reply(rq.execute(ref(pid, 0x7_7777), HELLO)), NO_OBJECT)
    check(target.reply(rq.execute(ref(0x7777_0000_0000), HELLO)), NO_PARTITION)
    assert target.jobs(pid) == []


def parameters(*entries: tuple[int, int, bytes], version: int = 1, count: int = -1) -> Descriptor:
    """An EXEC PARAMETERS descriptor of one's own: (tag, flags, value)."""
    content = struct.pack(">HH", version, len(entries) if count < 0 else count)
    for tag, flags, value in entries:
        content += struct.pack(">HHI", tag, flags, len(value)) + value + bytes(-len(value) % 8)
    return Descriptor(0xF081, content)


def with_parameters(zone: ObjectRef, *descriptors: Descriptor) -> Request:
    return replace(rq.execute(zone, HELLO), descriptors=descriptors)


WALL_1S = (3, 1, (1_000_000).to_bytes(8, "big"))


@pytest.mark.parametrize(
    "descriptor",
    [
        parameters((999, 1, b"12345678")),
        parameters(WALL_1S, WALL_1S),
        parameters(WALL_1S, version=2),
        parameters(WALL_1S, count=2),
        parameters((3, 1, b"123")),
        parameters((3, 1, bytes(8))),
        parameters((3, 1, (25 * 3600 * 10**6).to_bytes(8, "big"))),
        parameters((13, 1, b"k" * 65)),
        parameters((11, 1, b"n" * 129)),
        parameters((17, 1, (0x8000_0000).to_bytes(4, "big"))),
    ],
    ids=[
        "unknown critical tag",
        "tag twice",
        "version of the future",
        "fewer than counted",
        "number of 3 bytes",
        "no time at all",
        "more than the hard limit",
        "key too long",
        "name too long",
        "unknown flag",
    ],
)
def test_bad_parameters(target: pyosd.Target, zone: ObjectRef, descriptor: Descriptor) -> None:
    check(target.reply(with_parameters(zone, descriptor)), CDB_FIELD.at(48))
    assert target.jobs(zone.partition_id) == []


def test_an_engine_that_no_pool_has(target: pyosd.Target, zone: ObjectRef) -> None:
    refused = target.reply(with_parameters(zone, parameters((1, 1, b"java")))).sense
    assert refused is not None and (refused.asc, refused.ascq) == (0x80, 0x18)
    assert target.jobs(zone.partition_id) == []


def test_unknown_parameter_that_is_not_critical(target: pyosd.Target, zone: ObjectRef) -> None:
    check(target.reply(with_parameters(zone, parameters((999, 0, b"x")))), OK)


def test_parameters_twice(target: pyosd.Target, zone: ObjectRef) -> None:
    one = parameters(WALL_1S)
    check(target.reply(with_parameters(zone, one, one)), CDB_FIELD.at(48))


# ---- idempotency key ----


def test_same_key_same_content_is_the_same_job(submit: Submit, target: pyosd.Target) -> None:
    first, second = submit("print('once')", key="k1"), submit("print('once')", key="k1")
    assert first.id == second.id
    first.wait(WAIT_S)
    assert submit("print('once')", key="k1").id == first.id, "also when it has ended"
    assert target.read_range(first.id) == b"once\n"


def test_same_key_other_content(submit: Submit, target: pyosd.Target, zone: ObjectRef) -> None:
    submit("print('once')", key="k2")
    request = rq.execute(zone, b"print('other')", ExecParams(key=b"k2"))
    check(target.reply(request), KEY_CLASH)
    with pytest.raises(Conflict):
        submit("print('other')", key="k2")


# ---- control ----


def test_held_until_released(submit: Submit) -> None:
    job = submit("print('ran')", hold=True)
    assert job.poll()[0] is JobState.HELD
    assert job.status().reason == 103
    job.release()
    assert job.wait(WAIT_S).state is JobState.COMPLETED


def test_cancel_before_it_starts(submit: Submit) -> None:
    job = submit("print('never')", hold=True)
    assert job.cancel()
    ended(job.status(), JobState.CANCELLED, 105)
    assert job.output() == b""


def test_cancel_does_not_touch_a_running_job(submit: Submit) -> None:
    job = submit("print('up', flush=True)\nwhile True: pass")
    next(job.iter_output(follow=True))
    assert not job.cancel()
    assert job.poll()[0] is JobState.RUNNING
    job.kill()


def test_kill(submit: Submit) -> None:
    job = submit("print('up', flush=True)\nwhile True: pass")
    next(job.iter_output(follow=True))
    assert job.kill(WAIT_S) is JobState.CANCELLED
    ended(job.status(), JobState.CANCELLED, 107)
    assert job.output() == b"up\n", "what was printed stays"


def test_kill_of_an_ended_job_changes_nothing(target: pyosd.Target, run: Run) -> None:
    status = run("pass")
    control(target, status.id, 2)
    assert target.job(status.id).status() == status


@pytest.mark.parametrize("attempt", range(20))
def test_kill_at_any_time(submit: Submit, attempt: int) -> None:
    """CANCELLED, or the state that had truly won; never anything else."""
    job = submit("print('x' * 1000)")
    for _ in range(attempt % 5):
        job.poll()
    state = job.kill(WAIT_S)
    assert state in (JobState.CANCELLED, JobState.COMPLETED)
    assert job.status().state is state


@pytest.mark.parametrize("value", [b"", b"\0", b"\5", b"\2\2", b"\xff"])
def test_bad_control(target: pyosd.Target, submit: Submit, value: bytes) -> None:
    job = submit("pass", hold=True)
    wrong = AttributeValue(Page.JOB_CONTROL, 1, value)
    reply = target.reply(rq.set_attributes(job.id, attributes=AttributeLists((), (wrong,))))
    assert reply.error is not None
    assert job.poll()[0] is JobState.HELD


# ---- what stands in a job's way, and in whose way it stands ----


def test_unfinished_surrogate_is_protected(target: pyosd.Target, submit: Submit, pid: int) -> None:
    job = submit("pass", hold=True)
    for request in (
        rq.write(job.id, 0, b"x"),
        rq.append(job.id, b"x"),
        rq.clear(job.id, 0, 1),
        rq.punch(job.id, 0, 0),
        rq.remove(job.id),
        rq.set_attributes(job.id, attributes=AttributeLists((), (GREEN,))),
    ):
        check(target.reply(request), JOB_IN_WAY)
    assert target.read_range(job.id) == b""
    reply = check(target.reply(rq.remove_partition(pid, contents=True)), JOB_IN_WAY)
    assert reply.sense is not None
    assert job.poll()[0] is JobState.HELD
    job.cancel()
    target.set_attributes(job.id, [GREEN])
    target.remove(job.id)


def test_removing_a_collection_ends_the_jobs_on_it(target: pyosd.Target, pid: PartitionId) -> None:
    collection = target.create_collection(pid)
    job = target.exec(FOREVER, zone=collection)
    target.remove_collection(collection, with_members=True)
    ended(job.wait(WAIT_S), JobState.FAILED, 605)


def test_script_error_at_the_client(submit: Submit) -> None:
    with pytest.raises(ScriptError) as error:
        submit("def f():\n    raise KeyError('inside')\nf()").result(WAIT_S)
    assert error.value.type_name == "KeyError"
    assert "line 2" in error.value.remote_traceback
    assert error.value.reason == 201


def test_root_page(target: pyosd.Target, serving: object) -> None:
    page = Page.EXEC_ROOT
    assert target.get_attribute(ROOT, page, 1) == (0x8F81).to_bytes(2, "big")
    assert b"python" in target.get_attribute(ROOT, page, 2).lower()
    for number in (3, 4, 5, 6, 7):
        assert target.get_attribute(ROOT, page, number)
