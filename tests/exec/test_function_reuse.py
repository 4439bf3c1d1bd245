# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls of functions in sandboxes that serve many: what waits in the queue goes to used sandboxes,
which keep the code.  What one function leaves behind is never seen by other code (docs/security.md,
section 5)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator

import pytest

import pyosd
from pyosd import requests
from pyosd.functions import Access
from pyosd.types import ObjectRef
from pyosd.wire.cdb import Request
from pyosd.wire.exec_params import ArgsEncoding, CallRecord, ExecParams, FunctionCall
from tests.exec.conftest import WAIT_S
from tests.serving import Serving

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

CALLS, OUTSTANDING = 300, 30
ROOM = 1 << 12

MARKS = """
import json, sys
count = 0
def main(args):
    global count
    count += 1
    seen = [name for name in sys.path if name.startswith("mark ")]
    seen += [name for name in vars(json) if name.startswith("mark ")]
    sys.path.append("mark NAME")
    vars(json)["mark NAME in json"] = 1
    return [args, count, seen]
"""
STAYS = """
import _osdcore as c, osd
def main(args):
    c.call(1, 0, 0, 0, 0, bytes(4))  # an end with no result, so the target keeps the sandbox
    c.call(4, 0, 0)  # and is asked for the next job
    osd.result("not yours")
"""
DIES = "import os\ndef main(args):\n    if args % 7 == 3:\n        os._exit(1)\n    return args\n"


def called(zone: ObjectRef, name: str, args: object) -> Request:
    named = FunctionCall(1, name, "", ArgsEncoding.JSON, CallRecord.NEVER)
    return requests.execute_function(
        zone, json.dumps(args).encode(), ExecParams(function=named), result_allocation_length=ROOM
    )


@pytest.fixture(scope="module")
def target() -> Iterator[pyosd.Target]:
    words = ("--isolation", "best", "--slots", "2", "--reuse", "trusted")
    with Serving(*words) as served, served.connect() as connected:
        yield connected


def test_marks_of_one_function_stay_with_it(target: pyosd.Target) -> None:
    """A call finds globals and modules as new.  At most it finds a list as its own function left it."""
    zone = ref_of(target)
    for name in ("one", "two"):
        target.functions.put(MARKS.replace("NAME", name).encode(), name=name, access=Access.NONE)
    for start in range(0, CALLS, OUTSTANDING):  # in runs of one function, as a queue has them
        numbers = range(start, start + OUTSTANDING)
        names = ["one" if number // 10 % 2 else "two" for number in numbers]
        waiting = [
            target.submit(called(zone, name, number))
            for name, number in zip(names, numbers, strict=True)
        ]
        for name, number, pending in zip(names, numbers, waiting, strict=True):
            reply = pending.reply(WAIT_S)
            assert reply.error is None, reply.error
            args, count, seen = json.loads(bytes(reply.data))
            assert (args, count) == (number, 1)
            assert set(seen) <= {f"mark {name}"}
    marks = "import json, sys, osd\nosd.result([n for n in sys.path + list(vars(json)) if 'mark ' in n])"
    for _ in range(4):
        assert target.exec(marks, zone=zone).result(WAIT_S) == []


def test_a_function_called_again_and_again_leaves_no_mark_for_others(target: pyosd.Target) -> None:
    """The sandbox expects another call of it, and is cleaned wholly when other code comes."""
    zone = ref_of(target)
    for name in ("three", "four"):
        target.functions.put(MARKS.replace("NAME", name).encode(), name=name, access=Access.NONE)
    for name in ("three", "four", "three"):
        for number in range(5):
            args, count, seen = target.functions.call(name, number, zone=zone)
            assert (args, count) == (number, 1)
            assert set(seen) <= {f"mark {name}"}
    marks = "import json, sys, osd\nosd.result([n for n in sys.path + list(vars(json)) if 'mark ' in n])"
    assert target.exec(marks, zone=zone).result(WAIT_S) == []


def test_a_function_that_stays_in_its_sandbox_gets_no_other_job(target: pyosd.Target) -> None:
    """It has the rights of its own calls alone, and those of its caller's scripts in no case."""
    zone = ref_of(target)
    target.functions.put(STAYS.encode(), name="stays", access=Access.NONE)
    target.functions.put(b"def main(args):\n    return args\n", name="mine", access=Access.NONE)
    for record in (CallRecord.ALWAYS, CallRecord.NEVER):
        named = FunctionCall(1, "stays", "", ArgsEncoding.JSON, record)
        reply = target.call_function(zone, b"1", ExecParams(function=named))
        assert reply.error is None, reply.error
        job = target.exec("import osd\nosd.result('mine')", zone=zone)
        status = job.wait(WAIT_S)
        assert job.result() == "mine"
        if reply.job is not None:
            assert status.sandbox != target.job(reply.job).status().sandbox
        assert target.functions.call("mine", "also", zone=zone) == "also"


def test_calls_after_a_sandbox_that_died_are_served(target: pyosd.Target) -> None:
    zone = ref_of(target)
    target.functions.put(DIES.encode(), name="dies", access=Access.NONE)
    waiting = [(number, target.submit(called(zone, "dies", number))) for number in range(60)]
    ends: Counter[bool] = Counter()
    for number, pending in waiting:
        reply = pending.reply(WAIT_S)
        assert (reply.error is not None) == (number % 7 == 3)
        if reply.error is None:
            assert json.loads(bytes(reply.data)) == number
        ends[reply.error is None] += 1
    assert ends[False] == 9


def test_other_arguments_and_long_results_follow_each_other(target: pyosd.Target) -> None:
    """Results with FINISH and before it, arguments in the shared memory and in a file."""
    zone = ref_of(target)
    target.functions.put(
        b"def main(args):\n    return args * 2\n", name="twice", access=Access.NONE
    )
    for length in (0, 1, 30, 20_000, 40_000, 100_000, 5, 400_000, 7):
        assert target.functions.call("twice", "x" * length, zone=zone) == "x" * 2 * length


def ref_of(target: pyosd.Target) -> ObjectRef:
    return target.partition(target.create_partition())
