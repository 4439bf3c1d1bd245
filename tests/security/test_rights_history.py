# SPDX-License-Identifier: GPL-2.0-or-later
"""Two tenants while an administrator revokes at random moments: a job whose rights have gone sees nothing
that is written later, and the job of the other tenant goes on.

Each datum carries the epoch it was written in.  A job reads it as fast as it can and prints each epoch
it has not seen before.  The administrator writes some epochs, revokes, and writes the next one once the
revocation has been answered: that one no job of the first tenant may print.
"""

from __future__ import annotations

import random
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from tests.conformance import wire as w
from tests.security import rights_model as m
from tests.security.rights_estate import TAG, Estate
from tests.security.test_rights_scripts import (
    CONTROL,
    FAILED,
    FINAL,
    REVOKED,
    STATUS,
    estate,
)
from tests.waiting import until

__all__ = ["estate"]

KILL = b"\2"
WALL = struct.pack(">HHIQ", 3, 1, 8, 600_000_000)
"""Parameter of EXEC, in microseconds: the job of the other tenant goes on for as long as the test, which
may take more than the usual minute."""

BY_CALLS = """
def look():
    return _osdcore.call(32, *OBJECT, 0, 8)[2]
"""
BY_ATTRIBUTE = """
def look():
    return _osdcore.call(26, *OBJECT, 0, 0, struct.pack(">II", 0x10000, 1))[2][16:24]
"""
SCRIPT = """
import os, struct, _osdcore, osd
{look}
seen = b""
while True:
    try:
        found = look()
    except osd.PermissionDenied:
        found = b"refused!"
    if found != seen:
        seen = found
        os.write(1, found)
"""
"""Prints eight bytes for each change that it sees."""
REFUSED = int.from_bytes(b"refused!", "big")


def harden(t: Estate, thing: m.Thing) -> None:
    t.demand(thing.pid, m.ALLDATA)


def change_key(t: Estate, thing: m.Thing) -> None:
    t.change_key(thing.pid, 0, former=True)


def freeze(t: Estate, thing: m.Thing) -> None:
    t.set(0, 0x3000_0005, 5, b"\0\1", thing.pid)


def change_tag(t: Estate, thing: m.Thing) -> None:
    t.set(0, 0x3000_0005, 0x4000_0001, struct.pack(">I", TAG + 1), thing.pid)


def change_tag_of_object(t: Estate, thing: m.Thing) -> None:
    t.set(thing.oid, 0x5, 0x4000_0001, struct.pack(">I", TAG + 1), thing.pid)


@dataclass(frozen=True)
class Tenancy:
    """How a job of the first tenant has its rights, and how it loses them.  goes_on: its calls are
    refused, but it is not ended."""

    zone: str
    method: int
    tag: int
    revoke: Callable[[Estate, m.Thing], None]
    goes_on: bool = False


TENANCIES = [
    Tenancy("partition", m.NOSEC, 0, harden),
    Tenancy("root", m.NOSEC, 0, harden, goes_on=True),
    Tenancy("partition", m.CAPKEY, 0, harden),
    Tenancy("object", m.CAPKEY, 0, harden),
    Tenancy("partition", m.CAPKEY, 0, change_key),
    Tenancy("object", m.ALLDATA, 0, change_key),
    Tenancy("partition", m.CMDRSP, 0, freeze),
    Tenancy("partition", m.CAPKEY, TAG, change_tag),
    Tenancy("partition", m.CAPKEY, TAG, change_tag_of_object, goes_on=True),
]


class Lane:
    """An object that is written epoch after epoch, and a job that watches it."""

    def __init__(self, t: Estate, tenancy: Tenancy, look: str) -> None:
        self.t, self.tenancy = t, tenancy
        self.pid = t.add_partition(m.NOSEC)
        self.epoch = 0
        if tenancy.tag:
            t.set(0, 0x3000_0005, 0x4000_0001, struct.pack(">I", tenancy.tag), self.pid)
        self.thing = t.thing(self.pid, t.new_object(self.pid, tenancy.tag))
        self.write()
        self.job = self._submit(look)
        self.printed: list[int] = []

    def _submit(self, look: str) -> tuple[int, int]:
        t = self.t
        zones = {
            "root": m.Thing(m.ROOT, 0),
            "partition": m.Thing(m.PARTITION, self.pid),
            "object": self.thing,
        }
        zone = zones[self.tenancy.zone]
        code = f"OBJECT = {self.pid}, {self.thing.oid}\n" + SCRIPT.format(look=look)
        part = w.segment(0x8F81, w.descriptor(0xF081, struct.pack(">HH", 1, 1) + WALL))
        request = w.Request(
            *(0x8F81, zone.pid, zone.oid, len(code)),
            byte11=0x80,
            segment=part,
            data=code.encode(),
            gets=((m.CURRENT_COMMAND, 3), (m.CURRENT_COMMAND, 4)),
        )
        c = None
        if self.tenancy.method:
            key = f"working {zone.pid:x} 0"
            c = m.Capability(
                self.tenancy.method, key, zone.kind, zone.pid, zone.oid, tag=self.tenancy.tag
            )
        values = t.is_good(t.try_it(request, c)).values
        pid, oid = (int.from_bytes(value, "big") for value in values)
        if pid not in t.pairs:
            t.give_keys(pid)
        return pid, oid

    def write(self) -> None:
        """The next epoch, as data and as an attribute, in one command."""
        self.epoch += 1
        value = struct.pack(">Q", self.epoch)
        sets = ((0x1_0000, 1, value),)
        self.t.good(w.Request(0x8886, self.pid, self.thing.oid, 8, 0, data=value, sets=sets))

    def state(self) -> tuple[int, int]:
        gets = ((STATUS, 3), (STATUS, 4))
        pid, oid = self.job
        values = self.t.good(w.Request(0x888E, pid, oid, gets=gets)).values
        return int.from_bytes(values[0], "big"), int.from_bytes(values[1], "big")

    def output(self) -> list[int]:
        """Epochs that the job has printed by now."""
        pid, oid = self.job
        data = self.t.read(oid, 0, 4096, pid)
        self.printed = [
            number for (number,) in struct.iter_unpack(">Q", data[: len(data) // 8 * 8])
        ]
        return self.printed

    def sees(self, epoch: int) -> None:
        until(lambda: epoch in self.output(), f"the job sees epoch {epoch}: {self.tenancy}")

    def end(self) -> None:
        pid, oid = self.job
        self.t.good(w.Request(0x888F, pid, oid, sets=((CONTROL, 1, KILL),)))
        until(lambda: self.state()[0] & FINAL, "the job ends")


def revoke_and_check(lane: Lane, choose: random.Random) -> None:
    """Some epochs, the revocation, one epoch more."""
    lane.sees(1)
    for _ in range(choose.randrange(4)):
        lane.write()
    last = lane.epoch
    lane.tenancy.revoke(lane.t, lane.thing)
    lane.write()
    if lane.tenancy.goes_on:
        lane.sees(REFUSED)
        lane.end()
    else:
        until(lambda: lane.state()[0] & FINAL, f"the job ends: {lane.tenancy}")
        assert lane.state() == (FAILED, REVOKED), (lane.tenancy, lane.state())
    late = [each for each in lane.output() if last < each != REFUSED]
    assert not late, f"{lane.tenancy}: sees epochs {late}, revoked after {last}: {lane.printed}"


@pytest.mark.timeout(120)
def test_nothing_later_is_seen(
    estate: Estate,  # noqa: F811 -- the fixture
    seed: int,
    request: pytest.FixtureRequest,
) -> None:
    choose = random.Random(seed)
    estate.demand(0, m.NOSEC)
    other = Lane(estate, Tenancy("partition", m.CAPKEY, 0, harden), BY_CALLS)
    other.sees(1)
    deadline, rounds = time.monotonic() + request.config.getoption("--history-seconds"), 0
    while rounds < len(TENANCIES) or time.monotonic() < deadline:
        tenancy = TENANCIES[rounds % len(TENANCIES)]
        look = choose.choice((BY_CALLS, BY_ATTRIBUTE))
        revoke_and_check(Lane(estate, tenancy, look), choose)
        other.write()
        other.sees(other.epoch)
        rounds += 1
    assert not other.state()[0] & FINAL, "the other tenant's job goes on"
    other.end()
