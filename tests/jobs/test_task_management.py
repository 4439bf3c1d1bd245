# SPDX-License-Identifier: GPL-2.0-or-later
"""PERFORM TASK MANAGEMENT FUNCTION by the tag of a command that waits, below the transport."""

from __future__ import annotations

from pyosd import requests as rq
from pyosd.types import TaskManagement
from pyosd.wire.cdb import encode
from tests.command.test_perform import COMPLETE, SUCCEEDED, manage
from tests.expect import TASK_ABORTED
from tests.jobs.conftest import DEADLINE_S, Target

FOREVER = b"import time\nwhile True: time.sleep(60)\n"


def test_abort_one_of_two(target: Target) -> None:
    """The one named ends, with what it has begun; the other goes on until its turn comes."""
    command, _ = encode(rq.execute(target.partition, FOREVER, synchronous=True))
    first, second = (target.transport.submit(command) for _ in range(2))
    for pending in (first, second):
        assert manage(target.commands, TaskManagement.QUERY_TASK, pending.tag) == SUCCEEDED
    assert manage(target.commands, TaskManagement.ABORT_TASK, first.tag) == COMPLETE
    assert first.result(DEADLINE_S).status == TASK_ABORTED
    assert manage(target.commands, TaskManagement.QUERY_TASK, first.tag) == COMPLETE
    assert manage(target.commands, TaskManagement.QUERY_TASK, second.tag) == SUCCEEDED
    assert not second.future.done()
    assert manage(target.commands, TaskManagement.ABORT_TASK_SET) == COMPLETE
    assert second.result(DEADLINE_S).status == TASK_ABORTED
