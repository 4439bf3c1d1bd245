# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs that did not complete are run again from what the target has kept of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from iosd_host.store_tools.check.jobs import check_jobs
from iosd_host.store_tools.session import looking
from pyosd import errors, jobs
from pyosd.jobs import job_array
from pyosd.jobs.job import Job
from pyosd.jobs.job_array import JobArray
from pyosd.types import AttributeId, AttributeValue, ref
from pyosd.wire.attributes import Page
from pyosd.wire.exec_params import After, ArgsEncoding, ExecFlag, ExecParams, Limits
from pyosd.wire.job_status import JobFlag, JobState
from tests.jobs.conftest import Target, skip_without_sandboxes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyosd.types import ObjectRef
    from tests.conftest import MakeHarness

DEADLINE_S = 60.0
KEPT_MOST = 2 << 20  # of code and arguments
CAPACITY = 0x1_0001
LIMITS = Limits(wall=7.0, mem=64 << 20)
# Fails for the indices in the object, which can be changed.
FAILING = """\
import osd
bad = osd.userobject(*osd.args).data.read()
if osd.array_index is None or osd.array_index in bad: raise ValueError('bad')
osd.result(osd.array_index * 10)
"""


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """For tests that kill nothing."""
    skip_without_sandboxes()
    running = Target(tmp_path_factory.mktemp("retry"))
    yield running
    running.stop()


def single(target: Target, code: str, **how: object) -> Job:
    return jobs.submit(target.commands, code, zone=target.partition, **how)  # type: ignore[arg-type]


def bad_indices(target: Target, *indices: int) -> ObjectRef:
    made = target.commands.create(target.partition.partition_id)
    target.commands.write(made, 0, bytes(indices))
    return made


def charged(target: Target) -> int:
    """Bytes of jobs that stand apart."""
    return target.commands.get_attributes(target.partition, [AttributeId(Page.CHARGED, 4)])[0].uint


def kept(job: Job) -> bool:
    return bool(job.status().flags & JobFlag.CODE_KEPT)


def test_code_and_arguments_are_kept_of_what_failed(serving: Target) -> None:
    code = "import osd\nosd.result(osd.args)\nraise SystemExit(osd.args['code'])"
    old = single(serving, code, args={"code": 3, "n": 7}, name="one", limits=LIMITS)
    assert old.wait(DEADLINE_S).exit_code == 3
    assert kept(old)
    new = job_array.retry(serving.commands, old)
    status = new.wait(DEADLINE_S)
    assert (status.exit_code, status.name, status.predecessor) == (3, "one", old.id)
    assert (status.sha256, status.limits) == (old.status().sha256, old.status().limits)
    other = job_array.retry(serving.commands, new, args={"code": 0})
    assert other.result(DEADLINE_S) == {"code": 0}
    assert not kept(other)
    with pytest.raises(ValueError, match="no longer has the code"):
        job_array.retry(serving.commands, other)
    with pytest.raises(ValueError, match="nothing of it failed"):
        job_array.retry(serving.commands, other, failed=True)
    again = job_array.retry(serving.commands, other, code=code, args={"code": 4})
    assert again.wait(DEADLINE_S).exit_code == 4


def test_packed_code_and_functions(serving: Target) -> None:
    def half(x: int) -> float:
        assert x != 3, "a reason to fail"
        return x / 2

    text = "import osd\n" + "#\n" * 5000 + "raise KeyError('k')"
    for old in (
        single(serving, text, compress=True),
        jobs.submit(serving.commands, half, zone=serving.partition, args=[3]),
    ):
        with pytest.raises(errors.ScriptError) as first:
            old.result(DEADLINE_S)
        with pytest.raises(errors.ScriptError) as second:
            job_array.retry(serving.commands, old).result(DEADLINE_S)
        assert str(first.value).split("ended")[1] == str(second.value).split("ended")[1]


def test_a_corrected_script_for_the_failed_members(serving: Target) -> None:
    """Arguments and objects are those of the old job, by the index of the member."""
    objects = [
        serving.commands.create_and_write(serving.partition.partition_id, bytes([n]))
        for n in range(5)
    ]
    code = "import osd\nn = osd.over[0].data.read()[0]\nassert n < {}\n"
    code += "osd.result([n, len(osd.over), osd.args])"
    right, wrong = code.format(9), code.format(2)
    old = job_array.submit(
        serving.commands, wrong, zone=serving.partition, over=objects, batch=2, args=["a"]
    )
    assert old.wait(DEADLINE_S).state is JobState.FAILED
    one = job_array.retry(serving.commands, old[2], code=right)
    assert one.result(DEADLINE_S) == [[4, 1, ["a"]]]
    new = job_array.retry(serving.commands, old, code=right, failed=True, hold=True)
    assert isinstance(new, JobArray) and list(new.indices) == [1, 2]
    old.remove()  # the new job has what it needs
    new.release()
    assert new.result(DEADLINE_S) == [[2, 2, ["a"]], [4, 1, ["a"]]]


def test_a_corrected_script_and_its_arguments(serving: Target) -> None:
    def half(x: float, y: int = 2) -> float:
        return x / y

    def fails(x: float, y: int = 2) -> float:
        raise ValueError("not yet")

    old = jobs.submit(serving.commands, fails, zone=serving.partition, args=[3], kwargs={"y": 6})
    old.wait(DEADLINE_S)
    again = job_array.retry(serving.commands, old, code=half)
    assert again.result(DEADLINE_S) == 0.5
    again = job_array.retry(serving.commands, old, code=half, kwargs={"x": 3})
    assert again.result(DEADLINE_S) == 1.5
    told = "import osd; osd.result(osd.args)"
    for args in (b"\0bytes", {"n": 1}, None):
        old = single(serving, "1/0", args=args, key=f"of {args!r}")
        old.wait(DEADLINE_S)
        new = job_array.retry(serving.commands, old, code=told, key=f"again {args!r}")
        assert new.result(DEADLINE_S) == args
        same = job_array.retry(serving.commands, old, code=told, key=f"again {args!r}")
        assert same.id == new.id
        with pytest.raises(errors.Conflict):
            job_array.retry(serving.commands, old, code=told, args=[1], key=f"again {args!r}")
    done = job_array.retry(
        serving.commands, new, code=told
    )  # the target keeps none of its arguments
    assert done.result(DEADLINE_S) is None
    other = job_array.retry(serving.commands, old, code=told, args=[1])
    assert other.result(DEADLINE_S) == [1]


def test_long_arguments_go_with_long_code(serving: Target) -> None:
    """Each has its own limit; together they are charged, and not kept beyond the bound."""
    args = b"a" * ((1 << 20) - 4096)
    old = single(serving, "1/0", args=args)
    old.wait(DEADLINE_S)
    assert kept(old)
    before = charged(serving)
    code = "import osd; osd.result(len(osd.args)); raise SystemExit(1) #".ljust(KEPT_MOST, "x")
    new = job_array.retry(serving.commands, old, code=code, compress=False, hold=True)
    assert charged(serving) - before > len(args) + len(code)
    new.release()
    assert new.wait(DEADLINE_S).exit_code == 1
    assert not kept(new)
    with pytest.raises(errors.OSDError) as raised:
        job_array.retry(serving.commands, old, code="#" * ((16 << 20) + 1), compress=False)
    assert raised.value.field_pointer == 32
    old.remove()


def test_failed_members_alone(serving: Target) -> None:
    bad = bad_indices(serving, 5, 12)
    ids = [bad.partition_id, bad.object_id]
    array = job_array.submit(
        serving.commands, FAILING, zone=serving.partition, array="1,5,10-14:2%2", args=ids
    )
    array.wait(DEADLINE_S)
    assert kept(array) and not kept(array.member(5))
    member = job_array.retry(serving.commands, array.member(5))
    assert isinstance(member, JobArray) and list(member.indices) == [5]
    assert member.wait(DEADLINE_S).state is JobState.FAILED
    serving.commands.write(bad, 0, bytes([12, 12]))
    second = job_array.retry(serving.commands, array, failed=True)
    assert isinstance(second, JobArray)
    assert (list(second.indices), second.place.at_once) == ([5, 12], 2)
    assert second.status().predecessor == array.id
    found = list(second.results(DEADLINE_S, return_exceptions=True))
    assert found[0] == 50 and isinstance(found[1], errors.ScriptError)
    second.wait(DEADLINE_S)  # it ends a moment after its last member
    serving.commands.write(bad, 0, bytes([0, 0]))
    third = job_array.retry(serving.commands, second, failed=True)
    assert third.result(DEADLINE_S) == [120]
    with pytest.raises(ValueError, match="nothing of it failed"):
        job_array.retry(serving.commands, third, failed=True)
    whole = job_array.retry(serving.commands, array)
    assert whole.result(DEADLINE_S) == [10, 50, 100, 120, 140]


def test_a_member_while_its_array_goes_on(serving: Target) -> None:
    array = job_array.submit(
        serving.commands, "raise SystemExit(2)", zone=serving.partition, array=range(3), hold=True
    )
    array[1].release()
    array[1].wait(DEADLINE_S)
    again = job_array.retry(serving.commands, array[1])
    assert again.wait(DEADLINE_S).state is JobState.FAILED
    with pytest.raises(ValueError, match=r"HELD|RUNNING"):
        job_array.retry(serving.commands, array, failed=True)
    array.kill(DEADLINE_S)


def test_charged_until_the_record_goes(serving: Target) -> None:
    before = charged(serving)
    big = single(serving, "raise SystemExit(1) #".ljust(100_000, "x"), compress=False)
    big.wait(DEADLINE_S)
    assert charged(serving) - before > 100_000
    big.remove()
    assert charged(serving) == before
    huge = single(serving, "raise SystemExit(1) #".ljust(KEPT_MOST + 1, "x"), compress=False)
    huge.wait(DEADLINE_S)
    assert not kept(huge)
    assert charged(serving) - before < 10_000
    huge.remove()


def test_without_room_the_code_goes(serving: Target) -> None:
    """Why it failed is worth more than its code."""
    code = "import sys; sys.stderr.write('y' * 50_000); raise SystemExit(1) #".ljust(80_000, "x")

    def quota(value: int) -> None:
        given = AttributeValue(Page.PARTITION_QUOTAS, CAPACITY, value.to_bytes(8, "big"))
        serving.commands.set_attributes(serving.partition, [given])

    job = single(serving, code, compress=False, hold=True, surrogate=serving.partition)
    all_charged = AttributeId(Page.CHARGED, 1)
    total = serving.commands.get_attributes(serving.partition, [all_charged])[0].uint
    quota(total + 20_000)
    job.release()
    status = job.wait(DEADLINE_S)
    quota((1 << 64) - 1)
    assert (status.exit_code, kept(job), len(job.stderr())) == (1, False, 50_000)


def test_after_a_restart(target: Target) -> None:
    bad = bad_indices(target, 1)
    ids = [bad.partition_id, bad.object_id]
    array = job_array.submit(
        target.commands, FAILING, zone=target.partition, array="0-4:2,1", args=ids
    )
    array.wait(DEADLINE_S)
    job = single(target, FAILING, args=ids)
    job.wait(DEADLINE_S)
    cancelled = single(target, "pass", hold=True)
    cancelled.cancel()
    before = charged(target)
    target.kill()
    target.start()
    assert charged(target) == before
    array, job = JobArray(target.commands, array.id), Job(target.commands, job.id)
    target.commands.write(bad, 0, b"\xff")
    assert job_array.retry(target.commands, array, failed=True).result(DEADLINE_S) == [10]
    assert job_array.retry(target.commands, job).wait(DEADLINE_S).state is JobState.FAILED
    again = job_array.retry(target.commands, Job(target.commands, cancelled.id))
    assert again.wait(DEADLINE_S).state is JobState.COMPLETED


def test_the_store_is_sound(target: Target) -> None:
    """The offline check knows kept code and lists of indices, and what both are charged."""
    for code in ("raise SystemExit(1)", "pass"):
        array = job_array.submit(target.commands, code, zone=target.partition, array="1,3,10")
        array.wait(DEADLINE_S)
        single(target, code, after=[After(array.id, failed=True)]).wait(DEADLINE_S)
    target.stop()
    with looking(target.data, None, None) as store:
        assert [*check_jobs(store, lambda *_: None)] == []


def test_what_has_no_code_is_refused(make_harness: MakeHarness) -> None:
    osd = make_harness(memory=1).osd
    zone = ref(osd.create_partition())
    other = ref(osd.create_partition())
    made = osd.create(zone.partition_id)
    unknown = ref(zone.partition_id, 0x777_7777)
    for predecessor in (None, unknown, made):
        params = ExecParams(name="x", predecessor=predecessor)
        with pytest.raises(errors.OSDError) as raised:
            osd.exec_code(zone, b"", params)
        assert (raised.value.sense_key, raised.value.asc, raised.value.ascq) == (5, 0x24, 0)
    flags = ExecFlag.PREDECESSOR_ARGS
    has_own = ExecParams(flags=flags, args=b"[]", args_encoding=ArgsEncoding.JSON)
    for code, params in (
        (b"", ExecParams(flags=flags)),
        (b"", ExecParams(flags=flags, predecessor=made)),
        (b"pass", ExecParams(flags=flags)),
        (b"pass", has_own),
        (b"pass", ExecParams(flags=flags, predecessor=unknown)),
        (b"pass", ExecParams(flags=flags, predecessor=made)),
        (b"pass", ExecParams(flags=flags, predecessor=zone)),
    ):
        with pytest.raises(errors.OSDError) as raised:
            osd.exec_code(zone, code, params)
        assert raised.value.field_pointer == 48
    held = jobs.submit(osd, "pass", zone=other, hold=True, expire="1h")
    reply = osd.exec_code(zone, b"", ExecParams(predecessor=held.id))
    assert reply.job is not None
    assert Job(osd, reply.job).status().sha256 == held.status().sha256
    params = ExecParams(predecessor=held.id, flags=flags | ExecFlag.HOLD, grace=1.0)
    with pytest.raises(errors.OSDError) as raised:
        osd.exec_code(zone, b"", params)
    assert raised.value.field_pointer == 48
    assert osd.exec_code(zone, b"1", params).job is not None
    with pytest.raises(ValueError, match="predecessor"):
        jobs.submit(osd, None, zone=zone)
