# SPDX-License-Identifier: GPL-2.0-or-later
"""The one vendor extension: EXEC, and how an unfinished job's object stands in others' way.

Skipped where the target does not have it.  No script is run: the jobs are accepted held.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager

from tests.conformance.cells import cell, each
from tests.conformance.commands import BY_NAME, Row
from tests.conformance.lu import LogicalUnit
from tests.conformance.sense import INVALID_FIELD_IN_LIST, JOB_IN_WAY
from tests.conformance.suite.instances import MAKE, held_job
from tests.conformance.wire import (
    CURRENT_COMMAND,
    USER_OBJECT,
    Request,
    descriptor,
    object_blocks,
    segment,
)

STATE = (0x2000_0001, 3)
CONTROL = (0x2000_0003, 1)
USED = (0x2000_0007, 1)
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


@cell("EXEC", "own fields", "docs/jobs-internals.md Objects used")
def used_objects_are_read_only(t: LogicalUnit) -> None:
    with unfinished(t) as job:
        t.same(t.get(job, *USED), b"", "list of a job that has not ended")
    t.same(t.get(job, *USED), b"", "list of a job that has not run")
    t.same(t.get(t.object(), *USED), b"", "list of an object that is no job")
    t.refused(Request(0x888F, t.pid, job, sets=((*USED, b"x"),)), INVALID_FIELD_IN_LIST)


@cell("EXEC", "zero length", "docs/wire.md EXEC, length of the code")
def no_code(t: LogicalUnit) -> None:
    t.bad_field(held_job(t).but(length=0, data=b""), 32)


@cell("EXEC", "own fields", "docs/wire.md EXEC PARAMETERS")
def parameters_nobody_knows(t: LogicalUnit) -> None:
    request = held_job(t)
    for at, value in ((48, b"\0\2"), (52, b"\x7f\xff"), (56, b"\0\0\0\5")):
        t.bad_field(request.but(out_patches={at: value}), 48)


def with_cost(t: LogicalUnit, value: bytes) -> Request:
    """A held job with this value of the parameter HOME."""
    parameters = struct.pack(">HH", 1, 2) + struct.pack(">HHII4x", 17, 1, 4, 1)
    parameters += struct.pack(">HHI", 26, 1, len(value)) + value + bytes(-len(value) % 8)
    request = held_job(t)
    return request.but(segment=segment(0x8F81, descriptor(0xF081, parameters)))


@cell("EXEC", "own fields", "docs/where-scripts-run.md, EXEC parameter 26")
def cost_at_the_client(t: LogicalUnit) -> None:
    day = 86400 * 10**6
    for value in (
        *(bytes(15), bytes(17), b""),
        struct.pack(">QQ", day + 1, 0),
        struct.pack(">QQ", 0, 1 << 63),
    ):
        t.bad_field(with_cost(t, value), 48)
    request = with_cost(t, struct.pack(">QQ", day, (1 << 63) - 1))
    answer = t.good(request.but(gets=((CURRENT_COMMAND, 4),)))
    job = int.from_bytes(answer.values[0], "big")
    t.same(t.number(job, *STATE), HELD, "state")
    t.good(Request(0x888F, t.pid, job, sets=((*CONTROL, CANCEL),)))
    t.good(Request(0x888A, t.pid, job))


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
