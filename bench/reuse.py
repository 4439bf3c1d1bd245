# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of noting the inputs of jobs, and of a result that is already there."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyosd
from bench.jobs import paced_pairs
from bench.plan import Plan
from bench.stats import Row, at_most, row_of_pairs
from bench.target import bench_target
from pyosd import requests
from pyosd.commands.execute import JOB_ATTRIBUTES
from pyosd.functions.manifest import Access
from pyosd.types import ObjectRef
from pyosd.wire.cdb import Encoded
from pyosd.wire.exec_params import ArgsEncoding, ExecParams
from pyosd.wire.reply import decode_exec

SCRIPT = b"import osd\nosd.result(len(osd.userobject(*osd.args).data.read()))\n"
ROOM = 64  # bytes for the result


INPUTS = 1_000  # of a call; chance decides where its threads run, so it takes many short calls
CALLS = 30  # for each pair of other rows
READER = """
import osd

def main(args):
    partition, first, end = args
    return sum(len(osd.userobject(partition, each).data.read()) for each in range(first, end))
"""


def provenance_row(osd: pyosd.Target, count: int) -> Row:
    """A call with a record notes what it reads, one without does not.  Calls that read nothing show the
    cost of the record itself, which is subtracted.  The one that goes first changes from pair to pair.
    """
    zone = osd.partition(osd.create_partition())
    objects = [osd.create_and_write(zone.partition_id, bytes(4096)) for _ in range(INPUTS)]
    first = objects[0].object_id
    assert [each.object_id for each in objects] == [*range(first, first + INPUTS)]
    osd.functions.put(READER, name="reader", access=Access.READ)

    def seconds(record: bool, inputs: int) -> float:
        args = [zone.partition_id, first, first + inputs]
        start = time.perf_counter()
        found = osd.functions.call("reader", args, zone=zone, record=record)
        taken = time.perf_counter() - start
        assert found == 4096 * inputs
        return taken

    def of_reading(record: bool) -> float:
        return seconds(record, INPUTS) - seconds(record, 0)

    of_reading(True), of_reading(False)  # warm-up
    pairs = []
    for number in range(count):
        first_way = bool(number % 2)
        found = {way: of_reading(way) for way in (first_way, not first_way)}
        pairs.append((found[True], found[False]))
    assert noted(osd, zone) == INPUTS
    method = f"call that reads {INPUTS:,} objects of 4 KiB, with a record and its list of inputs"
    return row_of_pairs(
        "provenance_cost",
        pairs,
        at_most(1.02),
        f"{method} / without, each less the same call that reads nothing; {count} pairs, in turn",
    )


def noted(osd: pyosd.Target, zone: ObjectRef) -> int:
    """The inputs in the longest list of the last jobs."""
    jobs = [osd.job(each.id) for each in osd.jobs(zone.partition_id)[-4:]]
    return max(
        sum(part.object != zone for part in job.inputs().objects if part.version) for job in jobs
    )


def rows(plan: Plan) -> Iterator[Row]:
    """provenance_cost, reuse_result."""
    with bench_target() as target, pyosd.connect(target.url) as osd:
        yield provenance_row(osd, plan.pairs if plan.quick else CALLS * plan.pairs)
    with bench_target() as target, pyosd.connect(target.url) as osd:
        zone = osd.partition(osd.create_partition())
        obj = osd.create_and_write(zone.partition_id, bytes(4096))
        args = f"[{obj.partition_id}, {obj.object_id}]".encode()
        params = ExecParams(args=args, args_encoding=ArgsEncoding.JSON, reuse=3600.0)
        # TEST UNIT READY has nothing to encode: this command is encoded once, as one that is sent often.
        command = Encoded.of(
            requests.execute(
                zone,
                SCRIPT,
                params,
                synchronous=True,
                result_allocation_length=ROOM,
                attributes=JOB_ATTRIBUTES,
            )
        )
        jobs = set()

        def reused() -> None:
            reply = decode_exec(osd.call_again(command))
            assert bytes(reply.result[:4]) == b"4096"
            jobs.add(reply.job)

        pairs = paced_pairs(reused, osd.test_unit_ready, plan.count)
        assert len(jobs) == 1, "the result was computed again"
        method = "synchronous EXEC with REUSE, encoded once, one input of 4 KiB"
        method += f" / TUR, {plan.count} pairs"
        yield row_of_pairs("reuse_result", pairs, at_most(2), method)
