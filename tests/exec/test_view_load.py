# SPDX-License-Identifier: GPL-2.0-or-later
"""Many readers of views at a time: few slots, functions that break their contract, jobs beside them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import pyosd
from pyosd.errors import OSDError
from pyosd.functions import Contract, Functions, FunctionStage, OutputSize
from pyosd.types import ObjectRef, PartitionId, ref
from pyosd.wire.job_status import JobState
from tests.exec.test_stacks import (
    BLOCKS,
    EXCEPTION,
    ODD,
    RESULT_LIMIT,
    STAGE,
    WALL_LIMIT,
    XOR,
    put,
    read_in_time,
)
from tests.serving import Serving
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

FUNCTIONS = PartitionId(0x16)
READERS, THREADS = 64, 16
NOT_KEPT = Contract(OutputSize.SAME, block=4096, inverse="main")


@pytest.fixture(scope="module")
def one_slot() -> Iterator[Serving]:
    with Serving("--isolation", "best", "--slots", "1") as served:
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


def chain_of_views(target: pyosd.Target, functions: Functions, xor: ObjectRef) -> list[ObjectRef]:
    """An object, and those that show it in a view, in a view of that, and in a view of that."""
    source = target.create(target.create_partition())
    target.write(source, 0, bytes(8192))
    found = [source]
    for key in (1, 2, 4):
        stages = [FunctionStage(xor, parameters=f"key={key}")]
        view = functions.view_create(found[-1].partition_id, stages, writable=True)
        found.append(ref(view.id, source.object_id))
    return found


@pytest.mark.parametrize("contract", [BLOCKS, NOT_KEPT])
def test_views_of_views_and_one_slot(
    target: pyosd.Target, functions: Functions, contract: Contract
) -> None:
    """Readers and writers of each view share one slot, and all of them end."""
    chain = chain_of_views(target, functions, put(functions, XOR, contract, name="xor"))

    def work(at: int) -> bytes:
        if at % 4 == 3:
            target.write(chain[at // 4 % 4], 4096 + at, b"x")
        return bytes(target.read(chain[at % 4], 0, 100))

    with ThreadPoolExecutor(THREADS) as threads:
        seen = list(threads.map(work, range(READERS)))
    assert seen == [bytes((key,)) * 100 for key in (0, 1, 3, 7)] * (READERS // 4)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("raises", EXCEPTION),
        ("short", EXCEPTION),
        ("floods", RESULT_LIMIT),
        ("hangs", WALL_LIMIT),
        ("dies", 0),
    ],
)
def test_a_function_fails_while_many_wait(
    target: pyosd.Target, functions: Functions, how: str, reason: int
) -> None:
    """Each reader gets the failure and no data.  Readers of other objects get theirs."""
    limits = pyosd.Limits(wall=0.3 if how == "hangs" else 30)
    readers = READERS // 2 if how == "hangs" else READERS  # each takes the one slot until its limit
    odd = put(functions, ODD, Contract(OutputSize.SAME), limits=limits)
    xor = put(functions, XOR, BLOCKS, name="xor")
    good = chain_of_views(target, functions, xor)[-1]
    source = target.create(target.create_partition())
    target.write(source, 0, b"abc" * 1000)
    view = functions.view_create(source.partition_id, [FunctionStage(odd, parameters=f"how={how}")])
    bad = ref(view.id, source.object_id)

    def read(at: int) -> tuple[int, int | None] | bytes:
        if at % 4 == 0:
            return bytes(target.read(good, at, 10))
        try:
            return bytes(target.read(bad, at, 10))
        except OSDError as error:
            assert error.sense is not None
            return error.asc << 8 | error.ascq, error.sense.command_information

    with ThreadPoolExecutor(THREADS) as threads:
        seen = list(threads.map(read, range(readers)))
    assert [each for at, each in enumerate(seen) if at % 4 == 0] == [b"\7" * 10] * (readers // 4)
    failures = [each for at, each in enumerate(seen) if at % 4]
    assert all(isinstance(each, tuple) and each[0] == STAGE for each in failures), failures
    assert not reason or all(each[1] == reason for each in failures), failures
    functions.attach(ref(view.id), [FunctionStage(odd, parameters="how=fine")])
    assert read_in_time(target, bad, 6, limited=how == "hangs") == b"abcabc"


def test_a_reader_goes_before_queued_jobs(target: pyosd.Target, functions: Functions) -> None:
    """A READ waits for the job that runs, and not for those of one user that wait."""
    good = chain_of_views(target, functions, put(functions, XOR, NOT_KEPT, name="xor"))[1]
    zone = ref(target.create_partition())

    def goes_before() -> bool:
        jobs = [target.exec("import time; time.sleep(0.3)", zone=zone) for _ in range(20)]
        assert bytes(target.read(good, 0, 3)) == b"\1\1\1"
        ended = [each.status().state for each in jobs].count(JobState.COMPLETED)
        for each in jobs:
            each.kill(60)
        return ended < 10

    # More than once: many jobs may end before a busy machine lets this test send its READ, or look.
    until(goes_before, "the READ has waited for the jobs")
