# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls of functions without a record, beside TEST UNIT READY and a function of Redis (FCALL).

The target is served with --reuse trusted, as calls of one principal are: each sandbox serves many calls.
Redis runs the function in the server's only thread, for one caller at a time.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pyosd
from bench.jobs import OUTSTANDING, REPEATS, paced_pairs
from bench.peer_redis import Redis
from bench.plan import Plan
from bench.servers import Absent, redis
from bench.stats import Row, at_least, at_most, missing, row_of_pairs
from bench.target import bench_target
from pyosd import requests
from pyosd.types import ObjectRef
from pyosd.wire.cdb import Request, encode
from pyosd.wire.exec_params import ArgsEncoding, CallRecord, ExecParams, FunctionCall
from pyosd.wire.transport import Pending

ECHO = b"def main(args):\n    return args\n"
RATE = 5000  # calls a second: the aim
ARGS = b"x" * 35  # as Runde's call of nothing has
ROOM = 96
LUA = b"#!lua name=echo\nredis.register_function('echo', function(keys, args) return args[1] end)"


def _request(zone: ObjectRef) -> Request:
    named = FunctionCall(1, "echo", "", ArgsEncoding.BYTES, CallRecord.NEVER)
    return requests.execute_function(
        zone, ARGS, ExecParams(function=named), result_allocation_length=ROOM
    )


def calls_per_s(osd: pyosd.Target, zone: ObjectRef, seconds: float) -> float:
    """Calls a second, with a constant number outstanding."""
    command = encode(_request(zone))[0]
    under_way: collections.deque[Pending] = collections.deque()
    done, start = 0, time.perf_counter()
    while time.perf_counter() < start + seconds or under_way:
        while time.perf_counter() < start + seconds and len(under_way) < OUTSTANDING:
            under_way.append(osd.transport.submit(command))
        if under_way:
            response = under_way.popleft().result()
            assert response.status == 0, response.sense.hex()
            done += 1
    return done / (time.perf_counter() - start)


def rows(plan: Plan) -> Iterator[Row]:
    """fn_plain_python, fn_plain_python_rate, fn_vs_redis."""
    with ExitStack() as stack:
        target = stack.enter_context(bench_target("--reuse", "trusted", disk=False))
        osd = stack.enter_context(pyosd.connect(target.url))
        osd.functions.put(ECHO, name="echo")
        zone = osd.partition(osd.create_partition())
        command = encode(_request(zone))[0]

        def ours() -> None:
            assert osd.transport.submit(command).result().status == 0

        pairs = paced_pairs(ours, osd.test_unit_ready, plan.count)
        method = f"a call that returns its argument / TUR, {plan.count} pairs at 100/s"
        yield row_of_pairs("fn_plain_python", pairs, at_most(3.5), method)
        calls_per_s(osd, zone, plan.rate_seconds / 4)
        rates = [(calls_per_s(osd, zone, plan.rate_seconds), float(RATE)) for _ in range(REPEATS)]
        method = f"{OUTSTANDING} outstanding for {plan.rate_seconds:g} s; baseline: the aim"
        yield row_of_pairs("fn_plain_python_rate", rates, at_least(1), method, unit="calls/s")
        try:
            theirs = Redis(stack.enter_context(redis()))
        except Absent as error:
            yield missing("fn_vs_redis", at_most(1.5), str(error))
            return
        theirs.call(b"FUNCTION", b"LOAD", LUA)
        pairs = paced_pairs(
            ours, lambda: theirs.call(b"FCALL", b"echo", b"0", ARGS), plan.count // 10
        )
        method = f"the same / FCALL, {plan.count // 10} pairs at 100/s"
        yield row_of_pairs("fn_vs_redis", pairs, at_most(1.5), method)
