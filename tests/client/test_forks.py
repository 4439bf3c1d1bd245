# SPDX-License-Identifier: GPL-2.0-or-later
"""A child of fork() while threads of its parent hold the locks of objects that it uses."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.waiting import DEADLINE_S

BEFORE = """
import os, signal
import pyosd
from pyosd.cluster.throttle import Throttle
from pyosd.commands import Commands
from pyosd.jobs.executor import Executor
from pyosd.jobs.job import Job
from pyosd.security.credentials import CachingSource, KeySource, StaticSource
from pyosd.security.signing import Signer
from pyosd.types import ObjectType, ref
from pyosd.wire.capability import Permission
from pyosd.wire.job_status import JobState, JobStatus

source = KeySource({0x10000: bytes(32)}, b"system")
wanted = ref(0x10000, 1), ObjectType.USER_OBJECT, Permission.READ
job = Job(None, ref(0x10000, 1))
ended = JobStatus(job.id, JobState.COMPLETED)
"""
FORK = f"""
child = os.fork()
if child:
    os._exit(os.waitpid(child, 0)[1] != 0)
signal.alarm({DEADLINE_S:.0f})
"""
USES = {
    "signer": (
        "signer = Signer(source); signer._lock.acquire()",
        "signer.drop(source.credential(*wanted))",
    ),
    "static source": (
        "found = source.credential(*wanted); static = StaticSource([found]); static._lock.acquire()",
        "assert static.credential(*wanted) is found",
    ),
    "caching source": (
        "caching = CachingSource(source); caching._lock.acquire()",
        "caching.credential(*wanted)",
    ),
    "executor": (
        "executor = Executor(Commands(None), ref(0x10000)); executor._lock.acquire()",
        "executor.shutdown()",
    ),
    "throttle": ("throttle = Throttle(1e9); throttle._lock.acquire()", "throttle.take(1)"),
    "many": (
        "many = pyosd.many(['iscsi://host/a/1'], login=str); name, = many.names\n"
        "many._locks[name].acquire()",
        "many.target(name)",
    ),
    "job": (
        "job._settle_lock.acquire(); job._condition.acquire()",
        "job.end(ended, 5, None); assert job.settled_outcome() == (5, None)",
    ),
    "job whose end was being told": (
        "job._final, job._told = ended, True",
        "job.end(ended, 5, None); assert job.settled_outcome() == (5, None)",
    ),
}


@pytest.mark.parametrize("held, used", USES.values(), ids=USES)
def test_a_child_waits_for_no_thread_of_its_parent(held: str, used: str) -> None:
    code = f"{BEFORE}{held}\n{FORK}{used}\nos._exit(0)\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
