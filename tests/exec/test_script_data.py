# SPDX-License-Identifier: GPL-2.0-or-later
"""Scripts that use objects whose data pass through functions (docs/views.md, "Scripts").

The pool of the target has one slot: a script that waits for a function lends it.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import pyosd
from pyosd.errors import OSDError
from pyosd.functions import Access, Contract, Functions, FunctionStage, OutputSize
from pyosd.jobs.job import Job
from pyosd.types import ObjectRef, PartitionId, ref
from pyosd.wire.job_status import JobState, JobStatus
from tests.exec.conftest import WAIT_S, Run
from tests.exec.test_stacks import BLOCKS, GZIP, ODD, SAME, UNKNOWN, XOR, put, whole
from tests.exec.test_used import MARK, WAITS
from tests.exec.test_view_load import chain_of_views
from tests.exec.test_views import shows
from tests.serving import Serving
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

FUNCTIONS = PartitionId(0x17)
SLOW = """
import time, osd

def main(args):
    time.sleep(2)
    return osd.stage(args).data
"""
NOT_KEPT = Contract(OutputSize.SAME, block=4096, inverse="main")
PACKED = Contract(OutputSize.UNKNOWN, inverse="compress", deterministic=True)
READ = "import osd; osd.result(osd.zone.data.read())"
TEXT = b"".join(b"%d: a line that repeats\n" % each for each in range(60_000))


@pytest.fixture(scope="module")
def one_slot() -> Iterator[Serving]:
    words = ("--isolation", "best", "--slots", "1", "--pool", "other:max=1,queue=1")
    with Serving(*words) as served:
        yield served


@pytest.fixture
def target(one_slot: Serving) -> Iterator[pyosd.Target]:
    """A target whose pool has one slot."""
    with one_slot.connect() as target:
        yield target


@pytest.fixture
def functions(target: pyosd.Target) -> Iterator[Functions]:
    target.create_partition(FUNCTIONS)
    yield Functions(target, FUNCTIONS)
    target.remove_partition(FUNCTIONS, contents=True)


@pytest.fixture
def obj(target: pyosd.Target, zone: ObjectRef) -> ObjectRef:
    made = target.create(zone.partition_id)
    target.write(made, 0, b"abc" * 5000)
    return made


Submit = Callable[..., Job]


def result(target: pyosd.Target, run: Run, script: str, zone: ObjectRef) -> object:
    status = run(script, zone=zone)
    assert status.state is JobState.COMPLETED, status.message
    return target.job(status.id).result()


def failure(run: Run, script: str, zone: ObjectRef) -> str:
    """The last line of the traceback of a script that fails."""
    status = run(script, zone=zone)
    assert status.state is JobState.FAILED, status
    return status.message


def packed(functions: Functions) -> ObjectRef:
    return put(functions, GZIP, PACKED, methods=("decompress", "compress"))


# ---- reads ----


@pytest.mark.parametrize("contract", [SAME, BLOCKS, NOT_KEPT])
def test_a_script_reads_what_a_client_reads(
    target: pyosd.Target, functions: Functions, obj: ObjectRef, run: Run, contract: Contract
) -> None:
    functions.attach(obj, [FunctionStage(put(functions, XOR, contract), parameters="key=1")])
    assert result(target, run, READ, obj) == b"`cb" * 5000 == whole(target, obj)
    ranges = """
        import osd
        data = osd.zone.data
        data.seek(14998)
        end = [data.read(100), data.read(1)]
        data.seek(20000)
        end.append(data.read(1))
        data.seek(4095)
        osd.result([osd.zone.length(), data.read(3).decode(), [each.decode() for each in end]])
    """
    assert result(target, run, ranges, obj) == [15000, "`cb", ["cb", "", ""]]


def test_data_of_unknown_length(
    target: pyosd.Target, functions: Functions, obj: ObjectRef, run: Run
) -> None:
    """Long reads need no descriptors: these would have the stored bytes."""
    target.write(obj, 0, gzip.compress(TEXT, mtime=0).ljust(15000, b"\0"))
    functions.attach(obj, [FunctionStage(packed(functions))])
    script = """
        import hashlib, osd
        data = osd.zone.data
        lines = sum(1 for line in data)
        data.seek(0)
        osd.result([osd.zone.length(), lines, hashlib.sha256(bytes(data.map())).hexdigest()])
    """
    wanted = [len(TEXT), 60_000, hashlib.sha256(TEXT).hexdigest()]
    assert result(target, run, script, obj) == wanted


def test_an_object_that_is_empty(
    target: pyosd.Target, functions: Functions, zone: ObjectRef, run: Run
) -> None:
    functions.attach(zone, [FunctionStage(put(functions, XOR, SAME))])
    made = target.create(zone.partition_id)
    assert not result(target, run, READ, made)
    assert result(target, run, "import osd; osd.result(osd.zone.length())", made) == 0


def test_a_view_as_zone(
    target: pyosd.Target, functions: Functions, zone: ObjectRef, run: Run
) -> None:
    """The script gets the data of the view, and nothing of the base."""
    base = target.create(zone.partition_id)
    target.write(base, 0, b"name,pay\nalice,7\nbob,8\n")
    names = functions.put_stock("csv").id
    stages = [FunctionStage(names, parameters="columns=name")]
    view = functions.view_create(zone.partition_id, stages)
    script = "import osd; osd.result({str(u): u.data.read().decode() for u in osd.zone})"
    seen = result(target, run, script, ref(view.id))
    assert isinstance(seen, dict) and [*seen.values()] == ["name\nalice\nbob\n"]
    peeks = f"import osd; osd.userobject({base.partition_id}, {base.object_id}).data.read()"
    assert "PermissionDenied" in failure(run, peeks, ref(view.id))
    functions.view_remove(view.id)


@pytest.mark.parametrize("contract", [BLOCKS, NOT_KEPT])
def test_views_of_views(
    target: pyosd.Target, functions: Functions, run: Run, contract: Contract
) -> None:
    chain = chain_of_views(target, functions, put(functions, XOR, contract, name="xor"))
    for each, byte in zip(chain, (0, 1, 3, 7), strict=True):
        assert result(target, run, READ, each) == bytes((byte,)) * 8192
    for each in reversed(chain[1:]):
        functions.view_remove(each.partition_id)


def test_a_function_with_access_reads_a_view(
    target: pyosd.Target, functions: Functions, obj: ObjectRef
) -> None:
    """Also one that is called without a record."""
    functions.attach(obj, [FunctionStage(put(functions, XOR, NOT_KEPT), parameters="key=1")])
    code = "import osd\ndef main(args): return osd.zone.data.read(6)"
    reads = functions.put(code, access=Access.READ, name="reads")
    assert functions.call(reads.id, zone=obj) == b"`cb`cb"


# ---- many at a time ----


def test_more_scripts_than_slots_and_clients_beside_them(
    target: pyosd.Target, functions: Functions, obj: ObjectRef, submit: Submit
) -> None:
    """Scripts and clients compute the same, wait for each other's results, and all of them end."""
    xor = put(functions, XOR, BLOCKS)
    stages = [FunctionStage(xor, parameters=f"key={key}") for key in (1, 2)]
    functions.attach(obj, stages)
    script = """
        import osd
        for _ in range(3):
            assert osd.zone.data.read() == bytes(each ^ 3 for each in b"abc" * 5000)
    """

    def work(at: int) -> bool:
        if at % 2:
            return whole(target, obj) == b"ba`" * 5000
        return submit(script, zone=obj).wait(WAIT_S).state is JobState.COMPLETED

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(work, range(16)))


def test_two_pools_of_one_slot_wait_for_each_other(
    target: pyosd.Target, functions: Functions, zone: ObjectRef, submit: Submit
) -> None:
    """The script of each pool reads through a function of the other one."""
    made = {}  # in this order: later a call of the first script may fill the queue of "other"
    for pool, other in (("other", "default"), ("default", "other")):
        made[pool] = target.create(zone.partition_id)
        target.write(made[pool], 0, b"abc")
        xor = functions.put(XOR, name=f"in-{other}", contract=NOT_KEPT, pool=other)
        functions.attach(made[pool], [FunctionStage(xor.id, parameters="key=1")])
    script = "import osd\nfor _ in range(5): assert osd.zone.data.read() == b'`cb'"
    jobs = [submit(script, zone=obj, pool=pool) for pool, obj in made.items()]
    assert [job.wait(WAIT_S).state for job in jobs] == [JobState.COMPLETED] * 2


def test_jobs_that_wait_keep_no_script_from_its_functions(
    target: pyosd.Target, functions: Functions, obj: ObjectRef, submit: Submit
) -> None:
    """The queue is full of a job that waits for the slot of the script."""
    xor = functions.put(XOR, name="there", contract=NOT_KEPT, pool="other")
    functions.attach(obj, [FunctionStage(xor.id, parameters="key=1")])
    script = f"""{WAITS}
import osd
wait_for_mark(osd.zone)
assert osd.zone.data.read() == b"`cb" * 5000
"""
    first = submit(script, zone=obj, pool="other")
    next(first.iter_output(follow=True))
    second = submit(READ, zone=obj, pool="other")
    target.set_attributes(obj, [MARK])
    assert first.wait(WAIT_S).state is JobState.COMPLETED
    assert second.wait(WAIT_S).state is JobState.COMPLETED


def test_a_result_of_a_script_serves_clients(
    target: pyosd.Target, functions: Functions, obj: ObjectRef, run: Run
) -> None:
    functions.attach(obj, [FunctionStage(put(functions, XOR, BLOCKS), parameters="key=1")])
    before = functions.results()
    assert result(target, run, READ, obj) == whole(target, obj)
    after = functions.results()
    assert after.computed > before.computed and after.hits > before.hits


def test_no_later_job_is_answered_with_what_functions_made(
    target: pyosd.Target, functions: Functions, obj: ObjectRef, submit: Submit
) -> None:
    """The version of the object says nothing of its functions, which have gone."""
    functions.attach(obj, [FunctionStage(put(functions, XOR, BLOCKS), parameters="key=1")])
    assert submit(READ, zone=obj, reuse=True).result(WAIT_S) == b"`cb" * 5000
    functions.detach(obj)
    assert submit(READ, zone=obj, reuse=True).result(WAIT_S) == b"abc" * 5000


# ---- failures ----


@pytest.mark.parametrize("how", ["raises", "short", "json", "floods", "dies"])
def test_a_function_that_fails(
    target: pyosd.Target, functions: Functions, obj: ObjectRef, run: Run, how: str
) -> None:
    odd = put(functions, ODD, SAME)
    functions.attach(obj, [FunctionStage(odd, parameters=f"how={how}")])
    message = failure(run, READ, obj)
    assert "OSDError" in message and "failed: reason" in message and "token" in message
    catches = "import osd\ntry: osd.zone.data.read()\nexcept osd.OSDError: osd.result('caught')"
    assert result(target, run, catches, obj) == "caught"


def test_a_function_that_hangs_ends_at_its_limit(
    target: pyosd.Target, functions: Functions, obj: ObjectRef, run: Run
) -> None:
    odd = put(functions, ODD, SAME, limits=pyosd.Limits(wall=1.0))
    functions.attach(obj, [FunctionStage(odd, parameters="how=hangs")])
    assert "failed: reason 301" in failure(run, READ, obj)


def test_killing_a_script_ends_its_functions(
    target: pyosd.Target, functions: Functions, obj: ObjectRef, submit: Submit, run: Run
) -> None:
    odd = put(functions, ODD, SAME, limits=pyosd.Limits(wall=600))  # longer than anybody waits here
    functions.attach(obj, [FunctionStage(odd, parameters="how=hangs")])
    job = submit(READ, zone=obj, limits=pyosd.Limits(wall=600))
    until(lambda: functions.calls(odd).under_way, "the function never ran")
    assert job.kill(WAIT_S) is JobState.CANCELLED
    until(lambda: not functions.calls(odd).under_way, "the function still runs")
    functions.detach(obj)
    assert result(target, run, READ, obj) == b"abc" * 5000, "the slot is free again"


def test_a_script_at_its_limit_ends_its_functions(
    target: pyosd.Target, functions: Functions, obj: ObjectRef, run: Run
) -> None:
    """It does not wait for them: at the end of its grace time it would be killed."""
    odd = put(functions, ODD, SAME)
    functions.attach(obj, [FunctionStage(odd, parameters="how=hangs")])

    def ends_by_itself() -> bool:
        status = run(READ, zone=obj, limits=pyosd.Limits(wall=1.0), grace=5.0)
        assert status.state is JobState.TIMEOUT
        return not status.signal

    until(ends_by_itself, "it is killed")
    until(lambda: not functions.calls(odd).under_way, "the function still runs")


def test_refusals(
    target: pyosd.Target, functions: Functions, zone: ObjectRef, obj: ObjectRef, run: Run
) -> None:
    xor = put(functions, XOR, SAME)
    functions.attach(obj, [FunctionStage(xor)])
    functions.deactivate(xor)
    assert "not active" in failure(run, READ, obj)
    functions.activate(xor)
    shown = target.create(zone.partition_id)
    shows(target, shown, obj)
    assert result(target, run, READ, shown) == whole(target, obj)
    target.remove(obj)
    message = failure(run, READ, shown)
    assert "Invalid" in message and "was removed" in message


def test_an_object_that_is_removed_meanwhile(
    target: pyosd.Target, functions: Functions, obj: ObjectRef, submit: Submit
) -> None:
    """Another object with its id is not the one that the script has opened."""
    slow = put(functions, SLOW, SAME)

    def removed_in_time() -> JobStatus | None:
        functions.attach(obj, [FunctionStage(slow)])
        job = submit(READ, zone=obj)
        until(lambda: functions.calls(slow).under_way or job.status().done, "it never ran")
        target.remove(obj)
        target.write(target.create(obj.partition_id, obj.object_id), 0, b"of another")
        in_time = functions.calls(slow).under_way
        status: JobStatus = job.wait(WAIT_S)
        return status if in_time else None

    status = until(removed_in_time, "the function ends before the object is removed")
    assert status.state is JobState.FAILED and "NotFound" in status.message, status


def test_an_object_that_leaves_the_zone_meanwhile(
    target: pyosd.Target, functions: Functions, obj: ObjectRef, submit: Submit
) -> None:
    """The inverse function runs to its end, and its result is not stored."""
    slow = put(functions, SLOW, NOT_KEPT)
    part = target.create_collection(obj.partition_id)
    write = f"osd.userobject({obj.partition_id}, {obj.object_id}).data.write(b'x' * 4096)"

    def left_in_time() -> JobStatus | None:
        functions.detach(obj)
        target.write(obj, 0, b"abc" * 5000)
        functions.attach(obj, [FunctionStage(slow)])
        target.add_member(part, obj)
        job = submit(f"import osd; {write}", zone=part)
        until(lambda: functions.calls(slow).under_way or job.status().done, "it never ran")
        target.remove_member(part, obj)
        in_time = functions.calls(slow).under_way
        status: JobStatus = job.wait(WAIT_S)
        return status if in_time else None

    status = until(left_in_time, "the function ends before the object leaves")
    assert status.state is JobState.FAILED and "PermissionDenied" in status.message, status
    functions.detach(obj)
    assert whole(target, obj) == b"abc" * 5000


def test_the_target_closes_while_a_script_waits() -> None:
    with Serving("--isolation", "best", "--slots", "1") as served, served.connect() as target:
        functions = Functions(target, target.create_partition(FUNCTIONS))
        obj = target.create(target.create_partition())
        target.write(obj, 0, b"abc")
        odd = put(functions, ODD, SAME)
        functions.attach(obj, [FunctionStage(odd, parameters="how=hangs")])
        target.exec(READ, zone=obj)
        until(lambda: functions.calls(odd).under_way, "the function never ran")


# ---- changes ----


def test_a_script_writes_through_blocks(
    target: pyosd.Target, functions: Functions, obj: ObjectRef, run: Run
) -> None:
    functions.attach(obj, [FunctionStage(put(functions, XOR, BLOCKS), parameters="key=1")])
    run("import osd; osd.zone.data.write(b'hello')", zone=obj)
    assert whole(target, obj) == b"hello" + (b"`cb" * 5000)[5:]
    functions.detach(obj)
    assert bytes(target.read(obj, 0, 5)) == bytes(each ^ 1 for each in b"hello")


def test_a_script_writes_a_whole_object(
    target: pyosd.Target, functions: Functions, obj: ObjectRef, run: Run
) -> None:
    functions.attach(obj, [FunctionStage(packed(functions))])
    script = """
        import osd
        data = osd.zone.data
        data.truncate(0)
        data.write(b"some text")
        data.seek(5)
        data.write(b"thing")
        data.seek(0)
        osd.result(data.read())
    """
    assert result(target, run, script, obj) == b"some thing" == whole(target, obj)
    functions.detach(obj)
    assert gzip.decompress(whole(target, obj)) == b"some thing"


@pytest.mark.parametrize("writable", [False, True])
def test_a_script_writes_through_a_view(
    target: pyosd.Target, functions: Functions, obj: ObjectRef, run: Run, writable: bool
) -> None:
    xor = put(functions, XOR, NOT_KEPT)
    stages = [FunctionStage(xor, parameters="key=1")]
    view = functions.view_create(obj.partition_id, stages, writable=writable)
    script = "import osd; osd.zone.data.write(b'hello')"
    shown = ref(view.id, obj.object_id)
    if writable:
        assert run(script, zone=shown).state is JobState.COMPLETED
        assert bytes(target.read(obj, 0, 5)) == bytes(each ^ 1 for each in b"hello")
    else:
        assert "read-only" in failure(run, script, shown)
        assert bytes(target.read(obj, 0, 5)) == b"abcab"
    functions.view_remove(view.id)


@pytest.mark.parametrize(
    "change", ["data.append(b'x')", "data.truncate(3)", "clear(0, 1)", "punch(0, 1)"]
)
def test_changes_that_do_not_pass_through_functions(
    target: pyosd.Target, functions: Functions, obj: ObjectRef, run: Run, change: str
) -> None:
    functions.attach(obj, [FunctionStage(put(functions, XOR, BLOCKS), parameters="key=1")])
    message = failure(run, f"import osd; osd.zone.{change}", obj)
    assert "Invalid" in message and "pass through functions" in message
    assert whole(target, obj) == b"`cb" * 5000


def test_a_function_without_inverse(
    target: pyosd.Target, functions: Functions, obj: ObjectRef, run: Run
) -> None:
    functions.attach(obj, [FunctionStage(put(functions, XOR, UNKNOWN))])
    assert "no inverse" in failure(run, "import osd; osd.zone.data.write(b'x')", obj)
    with pytest.raises(OSDError):
        target.write(obj, 0, b"x")
