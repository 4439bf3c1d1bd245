# SPDX-License-Identifier: GPL-2.0-or-later
"""The one vendor extension: EXEC, and how an unfinished job's object stands in others' way.

Skipped where the target does not have it.  No script is run: the jobs are accepted held.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.conformance.cells import cell, each
from tests.conformance.commands import BY_NAME, Row
from tests.conformance.lu import LogicalUnit
from tests.conformance.sense import JOB_IN_WAY
from tests.conformance.suite.instances import MAKE, held_job
from tests.conformance.wire import CURRENT_COMMAND, USER_OBJECT, Request, object_blocks

STATE = (0x2000_0001, 3)
CONTROL = (0x2000_0003, 1)
JOBS = 0x1001
CANCEL = b"\x01"
HELD, CANCELLED = 0x02, 0x12
CHANGES = ("PUNCH", "WRITE", "APPEND", "CLEAR", "REMOVE", "SET ATTRIBUTES")


@contextmanager
def unfinished(t: LogicalUnit, pid: int = 0) -> Iterator[int]:
    """A job that is held; cancelled at the end.  Yields: its object."""
    t.need("EXEC")
    place = pid or t.pid
    request = held_job(t).but(pid=place, gets=((CURRENT_COMMAND, 2), (CURRENT_COMMAND, 4)))
    kind, oid = t.good(request).values
    t.same(kind, bytes([USER_OBJECT]), "object type in the Current Command page")
    job = int.from_bytes(oid, "big")
    try:
        yield job
    finally:
        t.good(Request(0x888F, place, job, sets=((*CONTROL, CANCEL),)))


@cell("EXEC", "ok", "docs/wire.md EXEC, an object for the job")
def job_is_accepted_and_held(t: LogicalUnit) -> None:
    with unfinished(t) as job:
        t.same(t.number(job, *STATE), HELD, "state")
        t.check(job in t.members(JOBS), None, "the job's object in the collection of jobs")
        t.check(job not in t.user_objects(), None, "not in LIST: it stands apart from the data")
    t.same(t.number(job, *STATE), CANCELLED, "state after cancel")
    t.good(Request(0x888A, t.pid, job))


@cell("EXEC", "zero length", "docs/wire.md EXEC, length of the code")
def no_code(t: LogicalUnit) -> None:
    t.bad_field(held_job(t).but(length=0, data=b""), 32)


@cell("EXEC", "own fields", "docs/wire.md EXEC PARAMETERS")
def parameters_nobody_knows(t: LogicalUnit) -> None:
    request = held_job(t)
    for at, value in ((48, b"\0\2"), (52, b"\x7f\xff"), (56, b"\0\0\0\5")):
        t.bad_field(request.but(out_patches={at: value}), 48)


@each([BY_NAME[name] for name in CHANGES], "unfinished job", "docs/commands.md 80/11")
def changes_are_refused(t: LogicalUnit, row: Row) -> None:
    with unfinished(t) as job:
        request = MAKE[row.name](t).but(oid=job)
        if row.name == "SET ATTRIBUTES":
            request = request.but(sets=((0x1_0000, 1, b"x"),))
        if row.name in ("PUNCH", "CLEAR"):
            request = request.but(length=0, address=0)
        t.refused(request, JOB_IN_WAY)
        t.check(t.exists(job), None, "the job's object still there")


@each([BY_NAME["READ"], BY_NAME["GET ATTRIBUTES"]], "unfinished job", "docs/jobs.md reading")
def reading_is_allowed(t: LogicalUnit, row: Row) -> None:
    with unfinished(t) as job:
        t.same(t.read(job), b"", "output so far")
        t.same(t.number(job, *STATE), HELD, "state")


@each(
    [BY_NAME["SET MEMBER ATTRIBUTES"], BY_NAME["REMOVE MEMBER OBJECTS"]],
    "unfinished job",
    "docs/commands.md unfinished surrogates are skipped",
)
def members_that_are_unfinished_jobs_are_skipped(t: LogicalUnit, row: Row) -> None:
    with unfinished(t) as job:
        sets = ((0x1_0000, 1, b"x"),) if row.name == "SET MEMBER ATTRIBUTES" else ()
        t.good(Request(row.code, t.pid, JOBS, sets=sets))
        t.same((t.exists(job), t.get(job, 0x1_0000, 1)), (True, b""), "the job, its attribute")


@each(
    [BY_NAME["GET MEMBER ATTRIBUTES"], BY_NAME["LIST COLLECTION"]],
    "unfinished job",
    "docs/jobs.md the partition's jobs collection",
)
def jobs_are_found_in_their_collection(t: LogicalUnit, row: Row) -> None:
    with unfinished(t) as job:
        if row.name == "LIST COLLECTION":
            t.check(job in t.members(JOBS), None, "the job among the members of 1001h")
        else:
            answer = t.good(Request(row.code, t.pid, JOBS, gets=(STATE,), allocation=65536))
            found = {each.oid: each.attributes for each in object_blocks(answer.retrieved[8:])}
            t.same(found.get(job), [(*STATE, bytes([HELD]))], "state of the job", answer)


@cell("REMOVE PARTITION", "unfinished job", "docs/commands.md 80/11")
def partition_of_an_unfinished_job(t: LogicalUnit) -> None:
    pid = t.partition()
    with unfinished(t, pid):
        t.refused(Request(0x888C, pid, byte11=1), JOB_IN_WAY)
    t.good(Request(0x888C, pid, byte11=1))
