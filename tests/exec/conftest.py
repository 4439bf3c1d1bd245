# SPDX-License-Identifier: GPL-2.0-or-later
"""Common parts of tests of jobs: a target with sandboxes, a partition as zone, a way to run a
script."""

from __future__ import annotations

import functools
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pyosd
from pyosd.errors import FunctionInUse
from pyosd.functions import Functions
from pyosd.jobs.job import Job
from pyosd.types import ROOT, ObjectRef, PartitionId, ref
from pyosd.wire.job_status import JobState, JobStatus
from tests.exec.signing import MakeKey, Serve, Signing, make_key
from tests.machine import unavailable
from tests.serving import Serving, sandboxes_missing
from tests.waiting import until

WAIT_S = 60.0
FUNCTIONS = PartitionId(0x15)

Run = Callable[..., JobStatus]


@pytest.fixture(autouse=True)
def sandboxes() -> None:
    why = sandboxes_missing()
    if why:
        unavailable("sandbox", why)


@pytest.fixture
def pid(target: pyosd.Target) -> Iterator[int]:
    """A partition of the test's own; its jobs are over, or killed, when the test is."""
    partition_id = target.create_partition()
    yield partition_id
    end_jobs(target, partition_id)
    target.remove_partition(partition_id, contents=True)


def end_jobs(target: pyosd.Target, partition_id: PartitionId) -> None:
    for status in target.jobs(partition_id):
        if not status.done:
            target.job(status.id).kill(WAIT_S)


def await_sandboxes(target: pyosd.Target) -> None:
    """Until there are sandboxes again after the target's restart: iosd-sandboxd first ends those there
    were, which can take longer than a READ or a synchronous call waits.
    """
    target.exec("pass", zone=ROOT).wait(WAIT_S)


@pytest.fixture
def functions(target: pyosd.Target) -> Iterator[Functions]:
    """A function partition of the test's own.  At its end there are no new views, and the root has no
    stages and hooks.
    """
    target.create_partition(FUNCTIONS)
    table = Functions(target, FUNCTIONS)
    known = {each.id for each in table.views()}
    yield table
    for each in table.views():
        if each.id not in known:
            table.view_remove(each.id)
    table.detach(ROOT)
    table.unhook(ROOT)
    remove_functions(target, FUNCTIONS)


def remove_functions(target: pyosd.Target, partition_id: PartitionId) -> None:
    """Remove a function partition once no call is under way any more: one that was aborted has not
    ended yet, and one that follows a change may run again.
    """

    def removed() -> bool:
        try:
            target.remove_partition(partition_id, contents=True)
        except FunctionInUse:
            return False
        return True

    until(removed)


@pytest.fixture
def zone(pid: int) -> ObjectRef:
    return ref(pid)


@pytest.fixture
def submit(target: pyosd.Target, zone: ObjectRef) -> Callable[..., Job]:
    """Submit a script, indented as it stands in the test, in the test's zone unless told."""

    def submit(script: str, **options: Any) -> Job:
        options.setdefault("zone", zone)
        return target.exec(textwrap.dedent(script), **options)

    return submit


@pytest.fixture
def run(submit: Callable[..., Job]) -> Run:
    """Submit a script and wait for its end."""

    def run(script: str, **options: Any) -> JobStatus:
        job = submit(script, **options)
        status = job.wait(WAIT_S)
        assert status.state is JobState(status.state) and status.done
        return status

    return run


def ended(status: JobStatus, state: JobState, reason: int) -> JobStatus:
    """Assert how a job ended; a failure shows all its surrogate says."""
    assert (status.state, status.reason) == (state, reason), status
    if reason:
        assert status.reason_label, "a reason has words"
        assert status.hint, "and says what to do"
    assert status.ended is not None
    assert status.submitted is not None
    return status


@pytest.fixture
def own_serving(request: pytest.FixtureRequest) -> Iterator[Serving]:
    """A target of the test's own, to be killed."""
    why = sandboxes_missing()
    if why:
        unavailable("sandbox", why)
    with Serving("--isolation", "best", "--slots", "2") as served:
        yield served


@pytest.fixture
def partition(target: pyosd.Target) -> Iterator[PartitionId]:
    """A partition of the test's own, in which it starts no job that it does not wait for."""
    found = target.create_partition()
    yield found
    target.remove_partition(found, contents=True)


@pytest.fixture(scope="module")
def kit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for what is compiled from the kit of an engine."""
    return tmp_path_factory.mktemp("kit")


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> MakeKey:
    """A key of a type; the same at each call."""
    return functools.partial(make_key, tmp_path_factory.mktemp("keys"))


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that tgtd's own user may pass through; pytest's are closed to it."""
    with tempfile.TemporaryDirectory(prefix="iosd-test-", dir="/var/tmp") as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.fixture(scope="module")
def signing_targets() -> Iterator[dict[str, Signing]]:
    """Targets of a module, by their policy: a reload does not loosen it."""
    made: dict[str, Signing] = {}
    yield made
    for each in made.values():
        each.stop()


@pytest.fixture
def signing(
    signing_targets: dict[str, Signing], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Serve]:
    """Serve with a policy and a list of signers: a target without functions that other tests use too."""

    def serve(policy: str, *lines: str) -> Signing:
        if policy in signing_targets:
            signing_targets[policy].empty()
            signing_targets[policy].reload(policy, [*lines])
        else:
            folder = tmp_path_factory.mktemp("signing")
            signing_targets[policy] = Signing(folder, policy, [*lines])
        return signing_targets[policy]

    yield serve
    for policy, each in [*signing_targets.items()]:
        if each.policy != policy:
            signing_targets.pop(policy).stop()
