# SPDX-License-Identifier: GPL-2.0-or-later
"""What the target remembers of the calls of a function (docs/functions.md, "Log of calls")."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

import pyosd
from pyosd.errors import FunctionInUse, NotFound, OSDError, ScriptError
from pyosd.functions import Access, FunctionCalls, Functions, FunctionUser, Manifest
from pyosd.jobs.job import Job
from pyosd.types import AttributeValue, ObjectRef
from pyosd.wire.attributes import Page
from pyosd.wire.exec_params import ExecFlag, ExecParams, FunctionCall, Limits
from pyosd.wire.job_status import JobState
from tests.exec.conftest import WAIT_S
from tests.exec.test_functions import FUNCTIONS, WALL_LIMIT, attribute
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

CALLS = 0x20
REPORT_MAX = 4096
EXCEPTION = 201
CODE = """
def main(args):
    return args

def fails(args):
    raise ValueError(args)

def spins(args):
    while True:
        pass
"""
METHODS = ("main", "fails", "spins")


@pytest.fixture
def functions(target: pyosd.Target) -> Iterator[Functions]:
    target.create_partition(FUNCTIONS)
    yield Functions(target, FUNCTIONS)
    target.remove_partition(FUNCTIONS, contents=True)


def fails(functions: Functions, name: str, text: str) -> None:
    with pytest.raises(ScriptError):
        functions.call(name, text, method="fails")


def test_calls_are_counted_and_the_last_failure_is_kept(
    target: pyosd.Target, zone: ObjectRef, functions: Functions
) -> None:
    made = functions.put(CODE, name="f", methods=METHODS)
    assert functions.calls("f") == FunctionCalls()
    before = datetime.fromtimestamp(int(time.time() - 1), UTC)
    for number in range(3):
        functions.call("f", number)
    fails(functions, "f", "first")
    fails(functions, "f", "second")
    functions.call("f", 1, zone=zone, record=True)
    job = functions.submit("f", "third", zone=zone, method="fails")
    job.wait(WAIT_S)
    found = functions.calls(made)
    assert (found.plain, found.recorded, found.failed) == (5, 2, 3)
    assert found.failure is not None and found.last is not None
    assert before <= found.failure.when <= found.last
    # The record of the last one has its traceback.
    assert (found.failure.reason, found.failure.method) == (EXCEPTION, "fails")
    assert found.failure.report == "" and "third" in job.traceback()
    fails(functions, "f", "fourth")
    found = functions.calls("f")
    assert found.failure is not None
    assert found.failure.report.rstrip().endswith("ValueError: fourth")
    assert job.status().function == made.id
    assert target.exec("pass", zone=zone).wait(WAIT_S).function is None


def test_the_end_of_a_long_report_is_kept(functions: Functions) -> None:
    functions.put(CODE, name="f", methods=METHODS)
    fails(functions, "f", "x" * 10_000 + "end")
    found = functions.calls("f").failure
    assert found is not None
    assert len(found.report) == REPORT_MAX and found.report.rstrip().endswith("xxend")


def test_a_limit_is_a_failure(functions: Functions) -> None:
    functions.put(CODE, name="f", methods=METHODS)
    with pytest.raises(pyosd.JobTimeout):
        functions.call("f", method="spins", limits=Limits(wall=0.2, cpu=50))
    found = functions.calls("f").failure
    assert found is not None and (found.reason, found.method) == (WALL_LIMIT, "spins")


def test_each_version_has_its_own_counts(target: pyosd.Target, functions: Functions) -> None:
    """So has each activation; a function that is not active has none."""
    made = functions.put(CODE, name="f", methods=METHODS)
    fails(functions, "f", "once")
    functions.deactivate(made)
    assert functions.calls(made) == FunctionCalls()
    assert attribute(target, made.id, CALLS) == b""
    functions.activate(made)
    assert functions.calls(made) == FunctionCalls()
    functions.call("f")
    functions.put(CODE + "\n# second", name="f", methods=METHODS)
    assert functions.calls("f") == FunctionCalls()


def test_clients_cannot_set_them(target: pyosd.Target, functions: Functions) -> None:
    made = functions.put(CODE, name="f", activate=False)
    for number in (0x14, 0x1F, CALLS, 0x21):
        with pytest.raises(OSDError):
            target.set_attributes(made.id, [AttributeValue(Page.FUNCTION, number, b"plain=1\n")])
    assert made.manifest == Manifest("f")


def test_many_calls_at_a_time(functions: Functions) -> None:
    """While others read the counts."""
    functions.put(CODE, name="f", methods=METHODS)

    def work(number: int) -> None:
        if number % 4 == 0:
            fails(functions, "f", str(number))
        else:
            functions.call("f", number)
        assert functions.calls("f").plain > 0

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(40)))
    found = functions.calls("f")
    assert (found.plain, found.failed) == (40, 10)


# ---- removal of a function that is in use ----


HANGS = """
import osd, time

def main(args):
    for _ in range(600):
        time.sleep(0.1)
"""
WAITS = """
import osd, time

def main(args):
    while not osd.zone.data.read(1):
        time.sleep(0.01)
    return {}
"""


def spinning(functions: Functions, zone: ObjectRef) -> Job:
    """A call with a record that is under way."""
    job: Job = functions.submit("f", zone=zone)
    until(lambda: job.status().state is JobState.RUNNING, "the call does not start")
    return job


def sense_of(caught: pytest.ExceptionInfo[OSDError]) -> tuple[int | None, int | None]:
    assert caught.value.sense is not None
    return caught.value.sense.command_information, caught.value.sense.information


def test_remove_of_a_function_in_use_is_refused(
    target: pyosd.Target, zone: ObjectRef, functions: Functions
) -> None:
    made = functions.put(HANGS, name="f")
    job = spinning(functions, zone)
    principal = job.status().principal
    with pytest.raises(FunctionInUse) as caught:
        target.remove(made.id)
    assert sense_of(caught) == (job.id.partition_id, job.id.object_id)
    with pytest.raises(FunctionInUse, match=f"job {job.id} of {principal}"):
        functions.remove("f")
    with pytest.raises(FunctionInUse) as caught:
        target.remove_partition(FUNCTIONS, contents=True)
    assert sense_of(caught) == (job.id.partition_id, job.id.object_id)
    assert functions.calls("f").under_way == (FunctionUser(job.id, principal),)
    assert functions.show("f").active, "nothing has changed"
    other = functions.put(CODE, name="g", methods=METHODS)
    functions.remove(other)
    job.kill(WAIT_S)
    functions.remove("f")
    with pytest.raises(NotFound):
        functions.show(made.id)


def test_a_call_without_a_record_is_a_user_too(
    target: pyosd.Target, zone: ObjectRef, functions: Functions
) -> None:
    made = functions.put(HANGS, name="f")
    with ThreadPoolExecutor(1) as threads, pyosd.connect(target.url) as caller:
        remote = Functions(caller, FUNCTIONS)
        answer = threads.submit(remote.call, "f", zone=zone, timeout=20)
        until(lambda: bool(functions.calls(made).under_way), "the call does not begin")
        with pytest.raises(FunctionInUse, match="a call without a record of ") as caught:
            functions.remove("f")
        assert sense_of(caught) == (None, None)
        functions.remove("f", force=True)
        assert not answer.done(), "the call continues"
        target.remove_partition(zone.partition_id, contents=True)
        with pytest.raises(pyosd.JobError):
            answer.result(WAIT_S)
        target.create_partition(zone.partition_id)  # the fixture's to remove


def test_a_held_call_is_a_user(zone: ObjectRef, target: pyosd.Target, functions: Functions) -> None:
    made = functions.put(CODE, name="f", methods=METHODS)
    named = FunctionCall(FUNCTIONS, made.id.object_id)
    params = ExecParams(function=named, flags=ExecFlag.HOLD)
    reply = target.call_function(zone, b"", params, synchronous=False)
    assert reply.job is not None
    with pytest.raises(FunctionInUse, match=str(reply.job)):
        functions.remove("f")
    target.job(reply.job).cancel()
    functions.remove("f")


def test_replacing_and_deactivating_go_on_under_calls(
    target: pyosd.Target, zone: ObjectRef, functions: Functions
) -> None:
    """Calls under way end with the code that they have begun with."""
    gate = target.create(zone.partition_id)
    before = functions.put(WAITS.format(1), name="f", access=Access.READ)
    first = spinning(functions, gate)
    functions.put(WAITS.format(2), name="f", access=Access.READ)
    with pytest.raises(NotFound):
        functions.show(before.id)  # it was not active any more, so that it could be removed
    second = spinning(functions, gate)
    functions.deactivate("f")
    target.write(gate, 0, b"x")
    assert (first.result(), second.result()) == (1, 2)
    functions.remove("f")


def test_a_script_cannot_remove_one_either(
    target: pyosd.Target, zone: ObjectRef, functions: Functions
) -> None:
    made = functions.put(HANGS, name="f")
    job = spinning(functions, zone)
    script = f"import osd\nosd.userobject({made.id.partition_id}, {made.id.object_id}).remove()\n"
    status = target.exec(script, zone=pyosd.ROOT).wait(WAIT_S)
    assert status.state is JobState.FAILED and "Conflict" in status.message, status.message
    job.kill(WAIT_S)
