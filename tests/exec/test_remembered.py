# SPDX-License-Identifier: GPL-2.0-or-later
"""Submissions that an earlier job answers (docs/howto/replay.md): only if all that it read is as it was,
and never with what the submitter may not read."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import pyosd
from pyosd import requests as rq
from pyosd.functions.stages import FunctionStage, encode
from pyosd.jobs.job import Job
from pyosd.types import ObjectRef, ObjectType, PartitionId, ref
from pyosd.wire.attributes import (
    CURRENT_CACHED_RESULT,
    CURRENT_OBJECT_ID,
    CURRENT_PARTITION_ID,
)
from pyosd.wire.cdb import AttributeLists
from pyosd.wire.exec_params import ArgsEncoding, ExecFlag, ExecParams
from pyosd.wire.job_status import JobState
from tests.exec.conftest import WAIT_S
from tests.exec.test_used import make, script_object
from tests.expect import CDB_FIELD, check
from tests.serving import Serving

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

Submit = Callable[..., Job]
SUM = """
import osd
osd.result([each for each in osd.userobject(*osd.args).data.read()])
"""


@pytest.fixture
def again(submit: Submit) -> Callable[..., Job]:
    """Submit with reuse and wait for the result."""

    def again(script: str, **options: object) -> Job:
        job = submit(script, **{"reuse": True, **options})
        job.result(WAIT_S)
        return job

    return again


def test_the_same_inputs(
    again: Callable[..., Job], submit: Submit, target: pyosd.Target, pid: PartitionId
) -> None:
    obj = make(target, pid, b"\1\2\3")
    ids = [obj.partition_id, obj.object_id]
    first = again(SUM, args=ids)
    assert not first.cached_result
    second = again(SUM, args=ids)
    assert (second.cached_result, second.id) == (True, first.id)
    assert second.result() == [1, 2, 3]
    waited = again(SUM, args=ids, wait=20)
    assert (waited.cached_result, waited.id, waited.result()) == (True, first.id, [1, 2, 3])
    assert not submit(SUM, args=ids).cached_result
    assert again(SUM, args=ids, name="other").id == first.id
    target.write(obj, 0, b"\4")
    third = again(SUM, args=ids)
    assert (third.cached_result, third.result()) == (False, [4, 2, 3])
    assert again(SUM, args=ids).id == third.id


def answer(
    target: pyosd.Target, script: str, ids: list[int], zone: ObjectRef | None = None
) -> tuple[Any, bool]:
    """By a synchronous EXEC without other attributes, which the target answers at once if it can: the
    result, and whether an earlier job gave it."""
    args = json.dumps(ids).encode()
    reply = target.exec_code(
        zone or ref(PartitionId(ids[0])),
        script.encode(),
        ExecParams(args=args, args_encoding=ArgsEncoding.JSON, reuse=3600.0),
        synchronous=True,
        result_allocation_length=4096,
        get=[CURRENT_CACHED_RESULT],
    )
    assert reply.error is None
    (cached,) = reply.attributes
    return json.loads(bytes(reply.result).rstrip(b"\0")), bool(cached.uint)


def test_answers_at_once(target: pyosd.Target, pid: PartitionId) -> None:
    obj = make(target, pid, b"\1\2\3")
    ids = [pid, obj.object_id]
    assert answer(target, SUM, ids) == ([1, 2, 3], False)
    assert [answer(target, SUM, ids) for _ in range(3)] == [([1, 2, 3], True)] * 3
    target.write(obj, 0, b"\4")
    assert [answer(target, SUM, ids) for _ in range(3)] == [
        ([4, 2, 3], cached) for cached in (False, True, True)
    ]
    stage = encode(ObjectType.PARTITION, [FunctionStage(None)])
    target.set_attributes(ref(pid), stage)
    assert answer(target, SUM, ids) == ([4, 2, 3], True)
    target.remove(obj)
    target.create(pid, obj.object_id)
    target.write(obj, 0, b"\4\2\3")
    assert answer(target, SUM, ids) == ([4, 2, 3], False)


def test_answers_at_once_of_a_collection(target: pyosd.Target, pid: PartitionId) -> None:
    """An object that has left the zone is not compared: the script could not read it."""
    collection, obj = target.create_collection(pid), make(target, pid, b"\1")
    target.add_member(collection, obj)
    script = """
import osd
try:
    osd.result(len(osd.userobject(*osd.args).data.read()))
except osd.PermissionDenied:
    osd.result("refused")
"""
    ids = [pid, obj.object_id]
    assert [answer(target, script, ids, collection) for _ in range(3)] == [
        (1, cached) for cached in (False, True, True)
    ]
    target.remove_member(collection, obj)
    assert answer(target, script, ids, collection) == ("refused", False)
    target.remove_collection(collection)
    with pytest.raises(pyosd.NotFound):
        answer(target, script, ids, collection)


def test_stages_that_do_not_concern_the_inputs(
    again: Callable[..., Job], target: pyosd.Target, pid: PartitionId
) -> None:
    """A stage that stands above an object makes the target look for functions; there are none."""
    obj = make(target, pid, b"1")
    target.set_attributes(ref(pid), encode(ObjectType.PARTITION, [FunctionStage(None)]))
    first = again(SUM, args=[pid, obj.object_id])
    assert again(SUM, args=[pid, obj.object_id]).id == first.id


def test_what_makes_a_difference(
    again: Callable[..., Job], target: pyosd.Target, pid: PartitionId
) -> None:
    obj, other = make(target, pid, b"1"), make(target, pid, b"1")
    ids = [pid, obj.object_id]
    again(SUM, args=ids)
    assert not again(SUM + "pass", args=ids).cached_result
    assert not again(SUM, args=[pid, other.object_id]).cached_result
    assert not again(SUM, args=ids, zone=obj).cached_result
    assert again(SUM, args=ids).cached_result


def test_age_and_removal(
    again: Callable[..., Job], submit: Submit, target: pyosd.Target, pid: PartitionId
) -> None:
    obj = make(target, pid, b"1")
    ids = [pid, obj.object_id]
    first = again(SUM, args=ids)
    until = time.monotonic() + 0.05
    while time.monotonic() < until:
        pass
    second = submit(SUM, args=ids, reuse=0.01)
    second.result(WAIT_S)
    assert second.id != first.id
    assert again(SUM, args=ids, reuse=3600).id == second.id
    second.remove()
    assert not again(SUM, args=ids).cached_result


def test_an_object_removed_and_made_again(
    again: Callable[..., Job], target: pyosd.Target, pid: PartitionId
) -> None:
    obj = make(target, pid, b"1")
    again(SUM, args=[pid, obj.object_id])
    target.remove(obj)
    target.create(pid, obj.object_id)
    target.write(obj, 0, b"2")
    assert again(SUM, args=[pid, obj.object_id]).result() == [ord("2")]
    for wait in (None, 20):
        zone = make(target, pid, b"")
        again("1", zone=zone, wait=wait)
        target.remove(zone)
        target.create_collection(pid, zone.object_id)
        assert not again("1", zone=zone, wait=wait).cached_result, "it is a zone of another type"


def test_members_of_a_collection(
    again: Callable[..., Job], target: pyosd.Target, pid: PartitionId
) -> None:
    collection = target.create_collection(pid)
    members = [make(target, pid, b"12") for _ in range(2)]
    target.add_member(collection, members[0])
    script = """
        import osd
        osd.result(sum(each.length() for each in osd.collection(*osd.args)))
        """
    ids = [pid, collection.object_id]
    assert again(script, args=ids).result() == 2
    assert again(script, args=ids).cached_result
    target.add_member(collection, members[1])
    changed = again(script, args=ids)
    assert (changed.cached_result, changed.result()) == (False, 4)
    target.remove_member(collection, members[0])
    assert not again(script, args=ids).cached_result


OF_MEMBERS = """
import osd
pid, oids, *shown = osd.args
osd.result([each for each in osd.userobject(pid, oids[osd.array_index]).data.read()])
print(*shown, end="")
"""


def members(array: Job) -> list[Job]:
    assert isinstance(array, pyosd.JobArray)
    return [*array]


def cached(array: Job) -> list[bool]:
    return [each.cached_result for each in members(array)]


def test_members_of_an_array(
    again: Callable[..., Job], target: pyosd.Target, pid: PartitionId
) -> None:
    """Only members whose inputs have changed run; results and lists of inputs are as if all had run."""
    objects = [make(target, pid, bytes([n])) for n in range(4)]
    how: dict[str, Any] = {"args": [pid, [each.object_id for each in objects]], "array": range(4)}
    first = again(OF_MEMBERS, **how)
    assert (cached(first), first.result()) == ([False] * 4, [[0], [1], [2], [3]])
    second = again(OF_MEMBERS, **how)
    assert second.id != first.id and not second.cached_result
    assert (cached(second), second.result()) == ([True] * 4, [[0], [1], [2], [3]])
    used = [[each.inputs() for each in members(array)] for array in (first, second)]
    assert used[0] == used[1]
    target.write(objects[2], 0, b"\x09")
    third = again(OF_MEMBERS, **how)
    assert (cached(third), third.result()) == ([True, True, False, True], [[0], [1], [9], [3]])
    assert cached(again(OF_MEMBERS, **how)) == [True] * 4
    assert cached(again(OF_MEMBERS, **(how | {"array": range(3)}))) == [False] * 3
    first.remove()
    assert cached(again(OF_MEMBERS, **how)) == [False, False, True, False]
    plain = target.exec(OF_MEMBERS, zone=ref(pid), **how)
    plain.result(WAIT_S)
    assert cached(plain) == [False] * 4


def test_members_that_printed_run_again(
    again: Callable[..., Job], target: pyosd.Target, pid: PartitionId
) -> None:
    """Their output is in their own surrogates."""
    obj = make(target, pid, b"1")
    how: dict[str, Any] = {"args": [pid, [obj.object_id] * 2, "text"], "array": range(2)}
    for _ in range(2):
        assert cached(again(OF_MEMBERS, **how)) == [False] * 2


def test_the_age_of_members(
    again: Callable[..., Job], target: pyosd.Target, pid: PartitionId
) -> None:
    """A copy of a result is no younger than the result."""
    obj = make(target, pid, b"1")
    how: dict[str, Any] = {"args": [pid, [obj.object_id] * 2], "array": range(2)}
    again(OF_MEMBERS, **how)
    end = time.monotonic() + 1.01  # times at the target are whole milliseconds
    assert cached(again(OF_MEMBERS, **how)) == [True] * 2
    while time.monotonic() < end:
        pass
    assert cached(again(OF_MEMBERS, **how, reuse=1.0)) == [False] * 2


@pytest.mark.parametrize(
    "act",
    [
        "obj.data.append(b'1')",
        "obj.setattr([(0x10000, 1, b'x')])",
        "obj.getattr([(0x10000, 1)])",
        "obj.exists()",
        "list(osd.partition(obj.partition_id))",
        "osd.userobject(obj.partition_id).create()",
        "osd.collection(obj.partition_id).create()",
    ],
)
def test_jobs_that_are_not_remembered(
    again: Callable[..., Job], target: pyosd.Target, pid: PartitionId, act: str
) -> None:
    """They have changed something, or read something without a version."""
    obj = make(target, pid, b"1")
    script = f"import osd\nobj = {script_object(obj)}\n{act.replace('data.append', 'data.write')}"
    for _ in range(2):
        assert not again(script).cached_result


def test_a_failed_job_runs_again(submit: Submit) -> None:
    ids = set()
    for _ in range(2):
        job = submit("raise ValueError", reuse=True)
        assert job.wait(WAIT_S).state is JobState.FAILED
        ids.add(job.id)
    assert len(ids) == 2


def test_a_refused_call_is_no_input(
    again: Callable[..., Job], target: pyosd.Target, pid: PartitionId
) -> None:
    """The script catches the refusal: later there is an object."""
    script = """
        import osd
        try:
            osd.result(osd.userobject(*osd.args).length())
        except osd.NotFound:
            osd.result(None)
        """
    assert again(script, args=[pid, 0x765432]).result() is None
    target.create(pid, 0x765432)
    assert again(script, args=[pid, 0x765432]).result() == 0


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "from random import random",
        "import datetime\ndatetime.datetime.now()",
        "import os\nos.urandom(1)",
        "import numpy as np\nnp.random.rand()",
        "__import__('time')",
        b"\x80PK",
    ],
)
def test_clock_and_randomness_are_refused(
    source: str | bytes, target: pyosd.Target, zone: ObjectRef
) -> None:
    with pytest.raises(ValueError, match="reuse"):
        target.exec(source, zone=zone, reuse=True)


def test_arguments_of_a_predecessor_at_once(target: pyosd.Target, zone: ObjectRef) -> None:
    """An earlier job without arguments is no answer for a code that gets those of its predecessor."""
    told = b"import osd\nosd.result(osd.args)"
    old = target.exec("1/0", zone=zone, args=["a"])
    old.wait(WAIT_S)
    none = ExecParams(reuse=3600.0)
    takes = ExecParams(reuse=3600.0, predecessor=old.id, flags=ExecFlag.PREDECESSOR_ARGS)
    found = []
    for params in (none, none, takes, takes):
        reply = target.exec_code(
            zone,
            told,
            params,
            synchronous=True,
            result_allocation_length=64,
            get=[CURRENT_CACHED_RESULT],
        )
        found.append((bytes(reply.result).rstrip(b"\0"), reply.attributes[0].uint))
    assert found == [(b"null", 0), (b"null", 1), (b'["a"]', 0), (b'["a"]', 1)]


def test_what_the_target_refuses(target: pyosd.Target, zone: ObjectRef) -> None:
    lists = AttributeLists((CURRENT_PARTITION_ID, CURRENT_OBJECT_ID))
    for params in (
        ExecParams(reuse=1.0, surrogate=zone),
        ExecParams(reuse=1.0, flags=ExecFlag.HOLD),
    ):
        check(target.reply(rq.execute(zone, b"pass", params, attributes=lists)), CDB_FIELD)


def test_a_restart_forgets(own_serving: Serving) -> None:
    """Other interpreters may serve then."""
    with own_serving.connect() as target:
        pid = target.create_partition()
        obj = make(target, pid, b"1")
        ids = [pid, obj.object_id]
        first = target.exec(SUM, zone=ref(pid), args=ids, reuse=True)
        first.result(WAIT_S)
        own_serving.kill("tgtd")
        own_serving.restarted()
    with own_serving.connect() as target:
        again = target.exec(SUM, zone=ref(pid), args=ids, reuse=True)
        assert again.result(WAIT_S) == [ord("1")]
        assert not again.cached_result


# ---- histories ----


class Writer:
    """Writes ever greater numbers to one object; says which one was acknowledged last, and which one may
    have been written."""

    def __init__(self, serving: Serving, obj: ObjectRef) -> None:
        self.serving, self.obj = serving, obj
        self.acknowledged = self.begun = 0
        self.pause = 0.3  # seconds; they grow, so that a slow machine reuses a result, too
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.write)

    def write(self) -> None:
        while not self.stopping.is_set():
            try:
                with self.serving.connect() as target:
                    while not self.stopping.is_set():
                        self.begun += 1
                        target.write(self.obj, 0, self.begun.to_bytes(8, "big"))
                        self.acknowledged = self.begun
                        if self.begun % 8 == 0:
                            self.pause *= 1.5
                        self.stopping.wait(0.02 if self.begun % 8 else self.pause)
            except pyosd.OSDError:
                continue  # it is being restarted


READ = """
import osd
osd.result(int.from_bytes(osd.userobject(*osd.args).data.read(8), "big"))
"""


@pytest.mark.parametrize("kills", [0, 2])
@pytest.mark.parametrize("array", [None, range(3)])
def test_no_answer_is_stale(
    own_serving: Serving, kills: int, array: range | None, request: pytest.FixtureRequest
) -> None:
    """A writer counts in an object, jobs read it: no result is older than what was acknowledged before the
    submission, nor newer than what had been begun when the result came; also over kills of the target."""
    with own_serving.connect() as target:
        pid = target.create_partition()
        obj = make(target, pid, bytes(8))
    turn_s = request.config.getoption("--history-seconds") / 2
    writer = Writer(own_serving, obj)
    writer.thread.start()
    reused = 0
    try:
        for turn in range(kills + 1):
            with own_serving.connect() as target:
                end = time.monotonic() + turn_s
                last = end + WAIT_S if turn == kills else end
                while time.monotonic() < (end if reused else last):
                    least = writer.acknowledged
                    ids = [pid, obj.object_id]
                    job: Any = target.exec(READ, zone=ref(pid), args=ids, reuse=True, array=array)
                    found = job.result(WAIT_S)
                    jobs = job if array else [job]
                    reused += sum(each.cached_result for each in jobs)
                    results = found if array else [found]
                    if not array:
                        results = [*results, answer(target, READ, ids)[0]]
                    assert least <= min(results) and max(results) <= writer.begun
            if turn < kills:
                own_serving.kill("tgtd")
                own_serving.restarted()
    finally:
        writer.stopping.set()
        writer.thread.join()
    assert reused, "nothing was reused: the test shows nothing"
