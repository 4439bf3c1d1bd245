# SPDX-License-Identifier: GPL-2.0-or-later
"""Every call of a script, for every kind of zone, under every narrow capability and none, and after every
kind of revocation: the outcome is what rights_model_jobs.py says.

One job with one script tries all calls of a capability, in a real sandbox.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.conformance import wire as w
from tests.jobs.conftest import Target, skip_without_sandboxes
from tests.security import rights_model as m
from tests.security import rights_model_jobs as jobs
from tests.security.rights_calls import Ground, Made, all_calls, make_ground, script_of
from tests.security.rights_defects import good
from tests.security.rights_estate import (
    ALL_IN,
    LEFT_OUT,
    LET_IN,
    TAG,
    TOKEN,
    Estate,
    open_estate,
)
from tests.security.rights_model import P
from tests.security.test_rights_matrix import METHODS, Tally
from tests.waiting import until

COMPLETED, FAILED, FINAL = 0x10, 0x11, 0x10
REVOKED = 601
STATUS, CONTROL = 0x2000_0001, 0x2000_0003
RELEASE = b"\4"
HELD = 1
SOON_MS = 1500
ZONES = ("root", "partition", "collection", "object")


class Keyed(Target):
    """A harness with keys, and sandboxes."""

    def start(self) -> None:
        self.master = self.folder / "master.key"
        self.options = f";token={TOKEN.hex()};master-key={self.master}"
        super().start()


@pytest.fixture
def estate(tmp_path: Path) -> Iterator[Estate]:
    skip_without_sandboxes()
    running = Keyed(tmp_path)
    try:
        yield open_estate(running.transport, running.master)
    finally:
        running.stop()


# ---- jobs --------------------------------------------------------------------------------------


@dataclass
class Submitted:
    """A job, what the model knows of it, and what it was to try."""

    where: str
    surrogate: tuple[int, int]
    job: jobs.Job
    calls: list[Made]


def zone_of(t: Estate, kind: str, g: Ground) -> m.Thing:
    return {
        "root": t.thing(0),
        "partition": g.partition,
        "collection": g.collection,
        "object": g.user,
    }[kind]


def submit(
    t: Estate, kind: str, g: Ground, change: Change, method: int, where: str, held: bool = False
) -> Submitted:
    """A job with the zone's good capability, changed."""
    zone = zone_of(t, kind, g)
    ask = m.Ask("EXEC", zone)
    c = change(t, ask, good(ask, method)) if method else None
    calls = all_calls(t, g)
    code = script_of(calls)
    flags = struct.pack(">HHIIxxxx", 17, 1, 4, HELD if held else 0)
    part = w.segment(0x8F81, w.descriptor(0xF081, struct.pack(">HH", 1, 1) + flags))
    gets = ((m.CURRENT_COMMAND, 3), (m.CURRENT_COMMAND, 4))
    request = w.Request(
        *(0x8F81, zone.pid, zone.oid, len(code)), byte11=0x80, segment=part, data=code, gets=gets
    )
    expected = m.judge(t.model, ask, c)
    assert expected.permitted, f"{where}: the capability does not permit EXEC: {expected}"
    values = t.is_good(t.try_it(request, c)).values
    pid, oid = (int.from_bytes(value, "big") for value in values)
    if pid not in t.pairs:
        t.give_keys(pid)
    members = frozenset(each.oid for each in g.members)
    return Submitted(where, (pid, oid), jobs.Job(zone, c, members), calls)


def end_of(t: Estate, job: Submitted) -> tuple[int, int]:
    """State and reason of a job, once it has ended."""
    pid, oid = job.surrogate
    found: list[int] = []

    def is_over() -> bool:
        gets = ((STATUS, 3), (STATUS, 4))
        values = t.good(w.Request(0x888E, pid, oid, gets=gets)).values
        found[:] = [int.from_bytes(each, "big") for each in values]
        return bool(found[0] & FINAL)

    until(is_over, f"{job.where}: the job ends")
    return found[0], found[1]


def judge(t: Estate, tally: Tally, job: Submitted) -> None:
    """Compare how a job went with what the model says of the world as it is now."""
    state, reason = end_of(t, job)
    why = jobs.ended(t.model, job.job)
    tally.controls.setdefault(job.where, True)
    if why or state != COMPLETED:
        expected = m.refused(why) if why else m.PERMITTED
        ended = m.refused(f"state {state:02X}h, reason {reason}")
        right = bool(why) and (state, reason) == (FAILED, REVOKED)
        tally.note(f"{job.where}, the job", expected, expected if right else ended)
        if not right and state == COMPLETED:
            tally.mismatches[-1] += f"; it read {said(t, job)[:5]} ..."
        return
    for made, outcome in zip(job.calls, said(t, job), strict=True):
        expected = jobs.judge_call(t.model, job.job, made.call)
        thing = made.call.thing
        case = f"{job.where}, {made.call.name} {made.what} of {thing.pid:x}/{thing.oid:x}"
        if isinstance(outcome, list):
            inside = {each.oid for each in made.call.inside}
            got = m.Verdict(True, "", seen=frozenset(outcome) & inside)
        else:
            got = m.PERMITTED if outcome == "ok" else m.refused(outcome)
        odd = not got.permitted and outcome != "no"
        tally.note(case, expected, replace(got, code=0) if odd else got)
        tally.worked.add((made.call.name, made.what)) if got.permitted else None


def said(t: Estate, job: Submitted) -> list[object]:
    pid, oid = job.surrogate
    found = json.loads(t.read(oid, 0, 60000, pid))
    assert isinstance(found, list)
    return found


# ---- narrow capabilities -----------------------------------------------------------------------

Change = Callable[[Estate, m.Ask, m.Capability], m.Capability]


def _but(**changes: object) -> Change:
    return lambda t, ask, c: c.but(**changes)


BITS = [bit for bit in P if bit != P.FUN_EXE]
NARROW: dict[str, Change] = {
    "good": _but(),
    "of nothing but EXEC": _but(permissions=P.FUN_EXE),
    "attributes left out": _but(attributes=LEFT_OUT),
    "attributes let in": _but(attributes=LET_IN),
    "attributes all let in": _but(attributes=ALL_IN),
    "attributes of no list": _but(attributes=99),
    "range too short": _but(length=1),
    "range behind": _but(start=1 << 40),
    "range that lets in": _but(length=64),
    "expires later": lambda t, ask, c: c.but(expires=t.model.now + 3600_000),
    "created then": lambda t, ask, c: c.but(created=ask.target.created),
    "this boot epoch": lambda t, ask, c: c.but(epoch=t.model.epoch),
    **{f"without {bit.name}": _but(permissions=m.EVERYTHING & ~bit) for bit in BITS},
    **{f"of {bit.name} only": _but(permissions=P.FUN_EXE | bit) for bit in BITS},
}
SAMPLE = ("good", "attributes left out", "without READ", "without WRITE", "range too short")
TAGGED = "tag of the zone"


def narrow(zone: str, full: bool) -> Iterator[tuple[int, int, str]]:
    """Least method of the partition, method of the capability, what is narrow about it."""
    yield 0, 0, "good"
    for least in METHODS:
        for method in METHODS[max(least, 1) :]:
            everything = full or (least, method) == (1, 1)
            for name in NARROW if everything else SAMPLE[: 1 + (least + method) % 2]:
                yield least, method, name
    yield 1, 1, TAGGED


def change_of(name: str) -> Change:
    return _but(tag=TAG) if name == TAGGED else NARROW[name]


@pytest.mark.parametrize("zone", ZONES)
def test_calls(estate: Estate, zone: str, request: pytest.FixtureRequest) -> None:
    full = request.config.getoption("--rights-matrix") == "full"
    tally = Tally()
    seconds = [estate.add_partition(method) for method in METHODS]
    estate.demand(0, m.NOSEC)
    submitted = []
    for least, method, name in narrow(zone, full):
        if zone == "root" and least:
            continue
        g = make_ground(estate, least, name == TAGGED and zone != "root", seconds, zone == "root")
        how = f"{m.METHODS[method]} capability {name}" if method else "no capability"
        where = f"zone {zone}, partition of {m.METHODS[least]}, {how}"
        change = _but() if name == TAGGED and zone == "root" else change_of(name)
        submitted.append(submit(estate, zone, g, change, method, where))
    for job in submitted:
        judge(estate, tally, job)
    tally.check()
