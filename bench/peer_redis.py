# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls beside the smallest data: Redis, one connection over TCP on loopback as ours is.

EVAL runs Lua in the server's only thread, for everybody's turn: no interpreter of its own, no limits, no
record, no principal, and nothing else is served meanwhile.  So there is no aim: the rows say what those
cost.  GET and SET of a value keep the promise ours keep of a commit.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial

import pyosd
from bench.jobs import OUTSTANDING, jobs_per_s, paced_pairs
from bench.peers import RATE_PAIRS
from bench.plan import Plan
from bench.servers import Absent, redis
from bench.stats import REPORTED, Row, missing, row_of_pairs
from bench.target import bench_target
from pyosd.types import AttributeId, AttributeValue, ObjectRef

DATA_BYTES = 1 << 20
RESULT_BYTES = 64
VALUE = AttributeValue(0xA, 1, b"\x5a" * 8)
NOTHING, LUA_NOTHING = b"pass", b"return 1"
DIGEST = b"import hashlib, osd\nosd.result(hashlib.sha1(osd.zone.data.read(1 << 20)).hexdigest())\n"
LUA_DIGEST = b"return redis.sha1hex(redis.call('GET', KEYS[1]))"


class Redis:
    """As much of a client as is needed: requests go out when called, answers are read in turn."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._answers = connection.makefile("rb")

    def send(self, *words: bytes) -> None:
        parts = [b"*%d\r\n" % len(words)]
        parts += [b"$%d\r\n%b\r\n" % (len(word), word) for word in words]
        self._connection.sendall(b"".join(parts))

    def answer(self) -> bytes:
        """Raises: RuntimeError: the server says it is an error."""
        line = self._answers.readline()
        if line[:1] == b"$":
            return self._answers.read(int(line[1:]) + 2)[:-2]
        if line[:1] not in b"+:":
            raise RuntimeError(line.decode(errors="replace"))
        return line[1:-2]

    def call(self, *words: bytes) -> bytes:
        self.send(*words)
        return self.answer()

    def per_second(self, seconds: float, *words: bytes) -> float:
        """Answers per second with OUTSTANDING requests at a time."""
        under_way = done = 0
        start = time.perf_counter()
        end = start + seconds
        while time.perf_counter() < end or under_way:
            while time.perf_counter() < end and under_way < OUTSTANDING:
                self.send(*words)
                under_way += 1
            if under_way:
                self.answer()
                under_way -= 1
                done += 1
        return done / (time.perf_counter() - start)


def _jobs(kind: str, plan: Plan, osd: pyosd.Target, obj: ObjectRef, theirs: Redis) -> Iterator[Row]:
    zone, count, seconds = osd.partition(obj.partition_id), plan.count // 10, 2.5 * plan.seconds
    cases = (
        ("noop", zone, NOTHING, (b"EVAL", LUA_NOTHING, b"0")),
        ("sha1", obj, DIGEST, (b"EVAL", LUA_DIGEST, b"1", b"data")),
    )
    for name, where, code, words in cases:
        ours = partial(
            osd.exec_code, where, code, synchronous=True, result_allocation_length=RESULT_BYTES
        )
        pairs = paced_pairs(ours, partial(theirs.call, *words), count)
        method = f"synchronous EXEC / EVAL, {count} pairs at 100/s; no aim"
        yield row_of_pairs(f"{kind}_vs_redis_{name}", pairs, REPORTED, method)
    rates = [
        (
            jobs_per_s(osd, zone, seconds, NOTHING, RESULT_BYTES),
            theirs.per_second(seconds, *cases[0][3]),
        )
        for _ in range(RATE_PAIRS)
    ]
    method = f"{OUTSTANDING} under way for {seconds:g} s; no aim"
    yield row_of_pairs(f"{kind}_vs_redis_noop_rate", rates, REPORTED, method, unit="/s")


def _values(plan: Plan, osd: pyosd.Target, obj: ObjectRef, theirs: Redis) -> Iterator[Row]:
    wanted, count = [AttributeId(VALUE.page, VALUE.number)], plan.count // 10
    cases: tuple[tuple[str, Callable[[], object], Callable[[], object]], ...] = (
        (
            "set",
            partial(osd.set_attributes, obj, [VALUE]),
            partial(theirs.call, b"SET", b"value", VALUE.value),
        ),
        ("get", partial(osd.get_attributes, obj, wanted), partial(theirs.call, b"GET", b"value")),
    )
    for name, ours, other in cases:
        pairs = paced_pairs(ours, other, count)
        method = f"{name.upper()} ATTRIBUTES / {name.upper()}, {count} pairs at 100/s; no aim"
        yield row_of_pairs(f"{name}_vs_redis", pairs, REPORTED, method)


def rows(plan: Plan) -> Iterator[Row]:
    """exec_vs_redis_*, reuse_vs_redis_*, set_vs_redis, get_vs_redis."""
    with ExitStack() as stack:
        try:
            theirs = Redis(stack.enter_context(redis()))
        except Absent as error:
            for name in ("exec_vs_redis", "reuse_vs_redis", "set_vs_redis", "get_vs_redis"):
                yield missing(name, REPORTED, str(error))
            return
        data = b"\x5a" * DATA_BYTES
        theirs.call(b"SET", b"data", data)
        for kind, options in (("exec", ()), ("reuse", ("--reuse", "trusted"))):
            with bench_target(*options, disk=False) as target, pyosd.connect(target.url) as osd:
                obj = osd.create(osd.create_partition())
                osd.write(obj, 0, data)
                yield from _jobs(kind, plan, osd, obj, theirs)
                if kind == "exec":
                    yield from _values(plan, osd, obj, theirs)
