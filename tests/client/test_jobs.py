# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs as the client sees them, against a real target with sandboxes."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pyosd
from pyosd import (
    AttributeValue,
    Conflict,
    JobCancelled,
    JobError,
    JobExpired,
    JobState,
    JobTimeout,
    Limits,
    ObjectRef,
    ScriptError,
    Target,
    aio,
    requests,
)
from pyosd.jobs.dialogues.followed import FOLLOW_MOST, Backoff
from pyosd.types import ref
from tests.apart import is_there
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

SLEEPS = "import time\nwhile True: time.sleep(0.01)\n"


def test_result_output_and_status(target: Target, zone: ObjectRef) -> None:
    code = "import osd\nprint('hello')\nprint('world')\nosd.result({'args': osd.args})"
    job = target.exec(code, zone=zone, args=[1, "two"], name="first", tags={"team": "blue"})
    assert job.result(timeout=60) == {"args": [1, "two"]}
    assert list(job.logs()) == ["hello", "world"]
    status = job.status()
    assert status.state is JobState.COMPLETED and status.name == "first"
    assert status.zone == zone and status.stdout_length == 12
    assert status.submitted and status.ended and status.submitted <= status.ended
    assert job.done() and not job.running() and not job.cancelled()
    assert job.exception() is None


def test_bytes_and_large_results(target: Target, zone: ObjectRef) -> None:
    small = target.exec("import osd; osd.result(b'\\0\\1')", zone=zone)
    large = target.exec("import osd; osd.result(b'x' * 200_000)", zone=zone)
    none = target.exec("pass", zone=zone)
    assert small.result(timeout=60) == b"\0\1"
    assert large.result(timeout=60) == b"x" * 200_000
    assert none.result(timeout=60) is None
    companion = large.status().result_object
    assert companion is not None
    large.remove()
    assert not is_there(target, companion)


def test_script_that_raises(target: Target, zone: ObjectRef) -> None:
    job = target.exec("def f():\n    return 1 / 0\nf()\n", zone=zone)
    with pytest.raises(ScriptError) as caught:
        job.result(timeout=60)
    assert caught.value.type_name == "ZeroDivisionError"
    assert "return 1 / 0" in job.traceback()
    assert caught.value.job is job and caught.value.reason == 201 and caught.value.hint


def test_script_that_exits(target: Target, zone: ObjectRef) -> None:
    job = target.exec("import sys; sys.exit(7)", zone=zone)
    with pytest.raises(ScriptError) as caught:
        job.result(timeout=60)
    assert caught.value.exit_code == 7 and job.status().exit_code == 7


def test_wall_limit(target: Target, zone: ObjectRef) -> None:
    job = target.exec(SLEEPS, zone=zone, limits=Limits(wall="100ms"))
    with pytest.raises(JobTimeout):
        job.result(timeout=60)
    with pytest.raises(TimeoutError):  # it is one, too
        job.result(timeout=60)


def test_waiting_has_an_end(target: Target, zone: ObjectRef) -> None:
    job = target.exec(SLEEPS, zone=zone)
    with pytest.raises(TimeoutError, match="not ended in time"):
        job.result(timeout=0.05)
    assert job.kill() is JobState.CANCELLED
    assert isinstance(job.exception(), JobCancelled)


def test_output_while_it_runs(target: Target, zone: ObjectRef) -> None:
    gate = target.create(zone.partition_id)
    code = f"""
import osd, time
print("ready")
while not osd.userobject({gate.partition_id}, {gate.object_id}).data.read(1):
    time.sleep(0.005)
print("last")
"""
    job = target.exec(code, zone=zone)
    lines = job.logs(follow=True)
    assert next(lines) == "ready"
    assert not job.done()
    target.write(gate, 0, b"x")
    assert list(lines) == ["last"]
    assert job.status().state is JobState.COMPLETED


def test_followers_see_each_attempt_from_its_start(target: Target, zone: ObjectRef) -> None:
    gate = target.create(zone.partition_id)
    code = f"""
import osd, sys, time
gate = osd.userobject({gate.partition_id}, {gate.object_id}).data
again = gate.read(1)
for stream in (sys.stdout, sys.stderr):
    print(*("1", "2") if again else ("one", "tw"), sep="\\n", end="", file=stream, flush=True)
while not again:
    time.sleep(0.005)
    if gate.read(1):
        raise SystemExit(7)
"""
    job = target.exec(code, zone=zone, retries=1, retry_exit=7)
    lines, errors = job.logs(follow=True), job.logs(follow=True, stream="stderr")
    until(lambda: (job.output(), job.stderr()) == (b"one\ntw", b"one\ntw"))
    assert next(lines) == next(errors) == "one"
    target.write(gate, 0, b"x")
    assert list(lines) == list(errors) == ["tw", "1", "2"]
    assert job.status().attempt == 2


def test_a_follower_asks_often_enough() -> None:
    """A line is shown within 100 ms, also if the target suggests a longer interval."""
    backoff = Backoff(FOLLOW_MOST)
    assert max(backoff.next(1.0) for _ in range(1000)) < 0.095


def test_hold_release_cancel(target: Target, zone: ObjectRef) -> None:
    job = target.exec("pass", zone=zone, hold=True)
    other = target.exec("pass", zone=zone, hold=True)
    assert job.status().state is JobState.HELD
    job.release()
    assert job.result(timeout=60) is None
    assert not job.cancel()
    assert other.cancel() and other.cancelled() and other.done()
    with pytest.raises(concurrent.futures.CancelledError):
        other.result()


def test_after_other_jobs(target: Target, zone: ObjectRef) -> None:
    first = target.exec("pass", zone=zone, hold=True)
    second = target.exec("raise ValueError", zone=zone, after=[first])
    third = target.exec("pass", zone=zone, after=[first.id, pyosd.After(second.id, False)])
    never = target.exec("pass", zone=zone, after=[second])
    status = third.status()
    assert status.after == (pyosd.After(first.id), pyosd.After(second.id, False))
    assert status.awaited == first.id
    first.release()
    third.result(60)
    with pytest.raises(JobError, match=f"{second.id} ended FAILED") as raised:
        never.result(60)
    assert raised.value.reason == 110


def test_unfinished_job_is_in_the_way(target: Target, zone: ObjectRef) -> None:
    job = target.exec(SLEEPS, zone=zone)
    with pytest.raises(Conflict, match="unfinished job"):
        target.remove(job.id)
    with pytest.raises(Conflict):
        target.remove_partition(zone.partition_id, contents=True)
    job.kill()
    job.remove()
    with pytest.raises(JobExpired):
        target.job(job.id).status()


def test_same_key_is_the_same_job(target: Target, zone: ObjectRef) -> None:
    key = os.urandom(8).hex()
    first = target.exec("pass", zone=zone, key=key)
    second = target.exec("pass", zone=zone, key=key)
    assert first.id == second.id
    with pytest.raises(Conflict, match="other content"):
        target.exec("print()", zone=zone, key=key)


def test_submitting_survives_a_lost_session(target: Target, zone: ObjectRef) -> None:
    target.transport.drop()  # type: ignore[attr-defined]
    job = target.exec("import osd; osd.result(1)", zone=zone, key="once")
    target.transport.drop()  # type: ignore[attr-defined]
    assert job.result(timeout=60) == 1


def test_waiting_command(target: Target, zone: ObjectRef) -> None:
    job = target.exec("import osd; osd.result(5)", zone=zone, wait="30s")
    sent = target.bytes_sent
    assert job.poll()[0] is JobState.COMPLETED
    assert job.result() == 5 and job.status().state is JobState.COMPLETED
    assert target.bytes_sent == sent, "the answer of EXEC said it all"
    large = target.exec("import osd; osd.result(b'y' * 50_000)", zone=zone, wait="30s")
    assert large.result() == b"y" * 50_000
    failed = target.exec("1/0", zone=zone, wait="30s")
    assert isinstance(failed.exception(), ScriptError)
    goes_on = target.exec(SLEEPS, zone=zone, wait="50ms")
    assert not goes_on.done()
    goes_on.kill()


def test_many_at_once(target: Target, zone: ObjectRef) -> None:
    code = "import osd; osd.result(osd.args)"
    jobs = [target.exec(code, zone=zone, args=number) for number in range(20)]
    assert sorted(job.result() for job in pyosd.as_completed(jobs, timeout=60)) == list(range(20))
    ended, left = pyosd.wait(jobs, timeout=60)
    assert ended == jobs and not left
    statuses = {each.id: each for each in target.jobs(zone.partition_id)}
    assert all(statuses[job.id].state is JobState.COMPLETED for job in jobs)


def test_more_finished_jobs_than_are_waited_for(target: Target, zone: ObjectRef) -> None:
    """Then they are polled one by one, and a removed one is reported."""
    for _ in range(80):
        target.exec("pass", zone=zone, wait="30s")
    jobs = [target.exec("import time; time.sleep(0.02)", zone=zone) for _ in range(4)]
    jobs[0].kill()
    jobs[0].remove()
    gone = target.job(jobs[0].id)
    ended, left = pyosd.wait([gone, *jobs[1:]], timeout=60)
    assert len(ended) == 4 and not left
    with pytest.raises(JobExpired):
        gone.result()


def test_as_completed_with_results_of_any_length(target: Target, zone: ObjectRef) -> None:
    lengths = [1, 900, 5_000, 20_000, 60_000, 70_000]
    code = "import osd; osd.result('x' * osd.args)"
    jobs = [target.exec(code, zone=zone, args=each) for each in lengths]
    assert sorted(len(job.result()) for job in pyosd.as_completed(jobs, timeout=60)) == lengths


def test_as_completed_gives_up(target: Target, zone: ObjectRef) -> None:
    jobs = [target.exec("pass", zone=zone), target.exec(SLEEPS, zone=zone)]
    with pytest.raises(TimeoutError):
        list(pyosd.as_completed(jobs, timeout=0.3))
    jobs[1].kill()


def hypotenuse(a: float, b: float = 4.0) -> float:
    import math

    return math.hypot(a, b)


def test_function(target: Target, zone: ObjectRef) -> None:
    job = target.exec(hypotenuse, zone=zone, args=[3])
    assert job.result(timeout=60) == 5.0
    assert job.status().name == "hypotenuse"


def test_executor_and_concurrent_futures(target: Target, zone: ObjectRef) -> None:
    with pyosd.Executor(target, zone=zone) as executor:
        assert list(executor.map(hypotenuse, [3, 0], timeout=60)) == [5.0, 4.0]
        many = executor.map(hypotenuse, range(50), [0] * 50, chunksize=8, buffersize=2)
        assert list(many) == [float(number) for number in range(50)]
        assert not list(executor.map(hypotenuse, []))
        future = executor.submit(hypotenuse, 3, b=0)
        ended, _ = concurrent.futures.wait([future], timeout=60)
        assert ended == {future} and future.result() == 3.0
    with pytest.raises(RuntimeError):
        executor.submit(hypotenuse, 1)


def test_callback(target: Target, zone: ObjectRef) -> None:
    called = threading.Event()
    job = target.exec("import time; time.sleep(0.05)", zone=zone)
    job.add_done_callback(lambda _: called.set())
    assert called.wait(30)


def test_script_from_a_path(target: Target, zone: ObjectRef, tmp_path: Path) -> None:
    script = tmp_path / "count.py"
    script.write_text("import osd\nosd.result(__name__)\n")
    job = target.exec(script, zone=zone)
    assert job.result(timeout=60) == "__main__"
    assert job.name == "count.py"


def test_for_notebooks(target: Target, zone: ObjectRef) -> None:
    job = target.exec("pass", zone=zone, name="<b>")
    job.wait(30)
    text = job._repr_html_()
    assert ">COMPLETED<" in text and "&lt;b&gt;" in text and "<progress" not in text
    assert "<script" not in text and "\n" not in repr(job) and repr(job).endswith("COMPLETED>")
    half = target.exec("import osd; osd.progress(0.5, '<i>')\n1/0", zone=zone)
    assert "not asked for yet" in repr(half)
    half.wait(30)
    text = half._repr_html_()
    assert 'value="0.500"' in text and "50%" in text and ">FAILED<" in text and "<i>" not in text
    half.remove()
    assert "its record is gone" in target.job(half.id)._repr_html_()


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"timeout": 3}, r"^exec\(\) got an unexpected keyword argument 'timeout'"),
        ({"zone": "0x10000"}, "zone is an ObjectRef"),
        ({"limits": {"wall": 3}}, "limits are pyosd.Limits"),
    ],
)
def test_what_no_type_checker_saw(
    target: Target, zone: ObjectRef, how: dict[str, Any], said: str
) -> None:
    with pytest.raises(TypeError, match=said):
        target.exec("pass", **{"zone": zone, **how})


def test_the_first_line_names_the_exception(target: Target, zone: ObjectRef) -> None:
    with pytest.raises(ScriptError) as raised:
        target.exec("raise ValueError('not these')", zone=zone).result(30)
    assert "raised an exception: ValueError: not these" in str(raised.value).splitlines()[0]


def test_what_cannot_be_sent(osd_url: str, target: Target, zone: ObjectRef) -> None:
    with pytest.raises(ValueError, match="no code"):
        target.exec("", zone=zone)
    with pytest.raises(TypeError, match=r"ObjectRef\.parse"):
        target.job("0x10000/0x10000")  # type: ignore[arg-type]
    with pytest.raises(
        TypeError, match=r"a number, as 0x10000, not '0x10000': int\('0x10000', 0\)"
    ):
        target.list_objects("0x10000")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^jobs\(\) missing 1 required positional argument"):
        target.jobs()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="id is a number, as 0x10000, not ObjectRef"):
        [*target.jobs(zone)]  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"arguments travel as JSON: .*set"):
        target.exec("pass", zone=zone, args={1, 2})
    with pytest.raises(TypeError, match="where is an ObjectRef, as"):
        target.query(zone.partition_id, None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a condition compares"):
        target.query(zone, "1/9 = x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="value of an attribute is bytes, not 'a'"):
        target.set_attributes(zone, [AttributeValue(0x10000, 1, "a")])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"not '/a/file': .*StaticSource\.read\(\) reads a file"):
        pyosd.connect("iscsi://127.0.0.1/t/1", credentials="/a/file")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"array is a range, .* not 3: range\(3\)"):
        target.exec("pass", zone=zone, array=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a URL is text"):
        pyosd.connect(osd_url.encode())  # type: ignore[arg-type]
    with pytest.raises(pyosd.OSDError, match="there may be 1048576; keep large data in an object"):
        target.exec("pass", zone=zone, args=["x" * 2_000_000])

    async def main() -> None:
        async with aio.connect(osd_url) as asynchronous:
            with pytest.raises(pyosd.OSDError, match="arguments of 2000004 bytes"):
                await asynchronous.exec("pass", zone=zone, args=["x" * 2_000_000])
        with pytest.raises(pyosd.errors.SessionLost, match="the session was closed"):
            await asynchronous.exec("pass", zone=zone)

    asyncio.run(main())


def test_asyncio(osd_url: str, zone: ObjectRef) -> None:
    data = os.urandom((3 << 20) + 5)

    async def main() -> None:
        async with aio.connect(osd_url) as target:
            reply = await target.call(requests.create(zone.partition_id, 0x20000))
            assert not reply.error
            obj = pyosd.ref(zone.partition_id, 0x20000)
            await target.write_range(obj, 0, data)
            assert await target.read_range(obj, 0, len(data) + 9) == data
            echo = "import osd; osd.result(osd.args)"
            jobs = [await target.exec(echo, zone=zone, args=n) for n in range(5)]
            assert await asyncio.gather(*(job.result() for job in jobs)) == list(range(5))
            with pytest.raises(ScriptError, match="ZeroDivisionError"):
                await (await target.exec("1/0", zone=zone))
            endless = await target.exec(SLEEPS, zone=zone)
            assert await endless.kill() is JobState.CANCELLED

    asyncio.run(main())


def test_asyncio_many_by_one_command(osd_url: str, zone: ObjectRef) -> None:
    async def main() -> None:
        async with aio.connect(osd_url) as target:
            held = [await target.exec("print(1)", zone=zone, hold=True) for _ in range(30)]
            waiting = asyncio.gather(*held)
            before = target.bytes_sent
            ended, left = await aio.wait(held, 0.3)
            assert not ended and left == held
            # 48 bytes of header and a CDB of 236 for each command: far from one for each job
            assert target.bytes_sent - before < 30 * 284
            for job in held:
                await job.release()
            found = [job async for job in aio.as_completed(held, 60)]
            assert {job.id for job in found} == {job.id for job in held}
            assert await waiting == [None] * 30
            assert [line async for line in held[0].logs(follow=True)] == ["1"]
            with pytest.raises(JobExpired):
                await target.job(pyosd.ref(zone.partition_id, 0x99999))
            assert not await held[0].cancel() and await held[0].done()
        left_over = [task for task in asyncio.all_tasks() if task.get_name() == "pyosd-jobs"]
        await asyncio.gather(*left_over)

    asyncio.run(main())


def test_array_of_jobs(target: Target, zone: ObjectRef) -> None:
    code = (
        "import osd\nif osd.array_index == 3: raise KeyError('three')\nosd.result(osd.array_index)"
    )
    array = target.exec_array(code, zone=zone, array=range(1, 6), at_once=2)
    assert isinstance(target.exec(code, zone=zone, array=range(1)), pyosd.JobArray)
    results = array.results(60)
    assert [next(results), next(results)] == [1, 2]
    with pytest.raises(ScriptError, match="three"):
        next(results)
    assert {job.settled for job in pyosd.as_completed(array, 60)} == {True}
    with pytest.raises(ScriptError):
        array.result(60)
    assert array.progress() == 1.0 and "1 FAILED" in array._repr_html_()
    assert concurrent.futures.wait(array[:2], 60).not_done == set()
    assert not array.cancel() and array.kill() is JobState.FAILED
    assert target.array(array.id).result is not None
    gaps = target.exec_array(code, zone=zone, array=[9, 5, 4])
    assert (gaps.result(60), list(gaps.indices)) == ([4, 5, 9], [4, 5, 9])
    for wrong in (range(0), range(-1, 3), range(10_001)):
        with pytest.raises(ValueError, match=r"an array has|an index of"):
            target.exec("pass", zone=zone, array=wrong)
    array.remove()
    with pytest.raises(JobExpired):
        target.array(array.id).states()


def test_executor_maps_by_an_array(target: Target, zone: ObjectRef) -> None:
    def double(x: int) -> int:
        if x == 7:
            raise ValueError("seven")
        return 2 * x

    before = len(target.jobs(zone.partition_id))
    with pyosd.Executor(target, zone=zone) as executor:
        assert list(executor.map(double, range(6), chunksize=2, timeout=60)) == [*range(0, 12, 2)]
        assert len(target.jobs(zone.partition_id)) == before + 1, "one array"
        some = executor.map(double, [5, 7, *range(8, 40)])
        assert next(some) == 10
        with pytest.raises(ScriptError, match="seven"):
            next(some)
        assert list(executor.map(double, [3])) == [6]
        large = "x" * 20_000
        assert list(executor.map(lambda_free_length, [large, large])) == [20_000, 20_000]


def lambda_free_length(text: str) -> int:
    return len(text)


def test_asyncio_array(osd_url: str, zone: ObjectRef) -> None:
    code = "import osd\nosd.result(osd.array_index)"

    async def main() -> None:
        async with aio.connect(osd_url) as target:
            array = await target.exec(code, zone=zone, array=range(4, 24), at_once=3)
            assert isinstance(array, aio.AsyncJobArray)
            assert [job async for job in aio.as_completed(array[:5], 60)]
            assert await asyncio.gather(*array) == list(range(4, 24))
            assert await array == list(range(4, 24))
            assert set(await array.states()) == {JobState.COMPLETED}
            assert await array.member(23).result() == 23 and len(array) == 20
            with pytest.raises(IndexError):
                array.member(3)
            held = await target.exec(SLEEPS, zone=zone, array=range(3), hold=True)
            before = target.bytes_sent
            waiting = asyncio.gather(*(job.wait() for job in held))  # type: ignore[attr-defined]
            await asyncio.sleep(0.2)
            assert target.bytes_sent - before < 100 * 284
            await held.kill()
            assert {each.state for each in await waiting} == {JobState.CANCELLED}

    asyncio.run(main())


def test_asyncio_gives_up(osd_url: str, zone: ObjectRef) -> None:
    async def main() -> None:
        async with aio.connect(osd_url) as target:
            job = await target.exec(SLEEPS, zone=zone)
            with pytest.raises(TimeoutError):
                async for _ in aio.as_completed([job], 0.05):
                    raise AssertionError("it goes on")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await job
            code = (
                "import sys\nfor f in sys.stdout, sys.stderr: print(f.name, 'b', sep='\\n', file=f)"
            )
            printer = await target.exec(code, zone=zone)
            assert [line async for line in printer.logs(follow=True)] == ["1", "b"]
            errors = printer.logs(follow=True, stream="stderr")
            assert [line async for line in errors] == ["2", "b"]
            assert await job.kill() is JobState.CANCELLED

    asyncio.run(main())


@pytest.mark.parametrize("action", [lambda job: job.result(60), lambda job: job.kill()])
def test_absent_job(target: Target, zone: ObjectRef, action: Callable[[pyosd.Job], object]) -> None:
    absent = target.job(pyosd.ref(zone.partition_id, 0x99999))
    with pytest.raises(JobExpired):
        action(absent)
    no_job = target.job(target.create(zone.partition_id))
    with pytest.raises((JobExpired, pyosd.OSDError)):
        action(no_job)


@pytest.mark.parametrize(
    "read",
    [
        lambda job: job.output(),
        lambda job: [*job.logs()],
        lambda job: [*job.logs(stream="stderr")],
        lambda job: [*job.iter_output(follow=True)],
    ],
)
def test_output_of_an_absent_job(
    target: Target, zone: ObjectRef, read: Callable[[pyosd.Job], object]
) -> None:
    with pytest.raises(JobExpired):
        read(target.job(pyosd.ref(zone.partition_id, 0x99999)))


def read_length(obj: Any, factor: int = 1) -> list[Any]:
    return [type(obj).__name__, len(obj.data.read()) * factor]


def type_names(things: list[Any]) -> list[str]:
    return [type(each).__name__ for each in things]


def test_functions_are_handed_objects(target: Target, zone: ObjectRef) -> None:
    objects = [target.create_and_write(zone.partition_id, b"x" * n) for n in (3, 5)]
    found = [["userobject", 3], ["userobject", 5]]
    with pyosd.Executor(target, zone=zone) as executor:
        assert list(executor.map(read_length, objects, timeout=60)) == found
        assert list(executor.map(read_length, objects, buffersize=1, timeout=60)) == found
        assert executor.submit(read_length, objects[0], factor=2).result(60) == ["userobject", 6]
        kinds = executor.submit(type_names, [objects[0], zone, ref(0), {"a": 1}])
        assert kinds.result(60) == ["userobject", "partition", "root", "dict"]
        with pytest.raises(ValueError, match="may have the key"):
            executor.submit(type_names, [{"osd.object": 1}])


def test_an_executors_jobs_get_its_options(target: Target, zone: ObjectRef) -> None:
    apart = ref(target.create_partition())
    with pyosd.Executor(
        target,
        zone=zone,
        limits=Limits(wall="20s"),
        partition=apart,
        pool="default",
        priority=7,
        name="mine",
        tags={"team": "blue"},
        retries=0,
    ) as executor:
        jobs = [executor.submit(pow, 2, 3)]
        assert list(executor.map(pow, [2, 3], [2, 2], timeout=60)) == [4, 9]
        assert list(executor.map(pow, [2, 3], [2, 2], buffersize=1, timeout=60)) == [4, 9]
        assert jobs[0].result(60) == 8
    assert not target.jobs(zone.partition_id)
    found = target.jobs(apart.partition_id)
    assert len(found) == 4, "one call, an array, two that are buffered"
    assert {each.name for each in found} == {"mine"}
    assert {each.pool for each in found} == {"default"}


def test_an_executors_options_are_checked_at_once(target: Target, zone: ObjectRef) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'wait'"):
        pyosd.Executor(target, zone=zone, wait=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="partition is an ObjectRef"):
        pyosd.Executor(target, zone=zone, partition=3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="limits are"):
        pyosd.Executor(target, zone=zone, limits=3)  # type: ignore[arg-type]
    nowhere = pyosd.Executor(target, zone=zone, pool="nowhere")
    with pytest.raises(pyosd.OSDError, match="nowhere"):
        nowhere.submit(pow, 2, 3)
