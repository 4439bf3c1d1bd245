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
from tests.security.test_rights_matrix import LONGEST_S, METHODS, Tally
from tests.waiting import until

pytestmark = pytest.mark.timeout(LONGEST_S)
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
    for made in job.calls:
        tally.controls.setdefault(made.call.name, False)
    if why or state != COMPLETED:
        tally.tried += 1
        if not (why and (state, reason) == (FAILED, REVOKED)):
            should = f"ended as {why}" if why else "goes on"
            text = f"{job.where}, the job: model says {should}, target state {state:02X}h, reason {reason}"
            tally.mismatches.append(text)
        return
    for made, outcome in zip(job.calls, said(t, job), strict=True):
        expected = jobs.judge_call(t.model, job.job, made.call)
        thing = made.call.thing
        case = f"{job.where}, {made.call.name} {made.what} of {thing.pid:x}/{thing.oid:x}"
        tally.note(case, expected, verdict_of(t, job, made, outcome))
        if outcome in ("no", "ok") or isinstance(outcome, list):
            tally.controls[made.call.name] |= outcome != "no"


def verdict_of(t: Estate, job: Submitted, made: Made, outcome: object) -> m.Verdict:
    """Outcome of a call.  Of attributes listed only those that should not have been are told."""
    if isinstance(outcome, list) and made.call.name == "listattr":
        page = made.a
        hidden = {n for n in outcome if not jobs.may_see(t.model, job.job, (page, n))}
        return m.Verdict(True, "", seen=frozenset(hidden))
    if isinstance(outcome, list):
        inside = {each.oid for each in made.call.inside}
        return m.Verdict(True, "", seen=frozenset(outcome) & inside)
    if outcome == "ok":
        return m.PERMITTED
    return m.refused("") if outcome == "no" else m.refused(str(outcome), code=0)


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
    if zone != "root":
        tally.controls.clear()  # smaller zones do not have all calls
    tally.check()


# ---- revocation --------------------------------------------------------------------------------


def harden(t: Estate, g: Ground) -> None:
    t.demand(g.pid, m.ALLDATA)


def harden_away(t: Estate, g: Ground) -> None:
    """Another partition, in which a job with zone root has objects, too."""
    t.demand(g.away[0].pid, m.ALLDATA)


def change_key(t: Estate, g: Ground) -> None:
    t.change_key(g.pid, 0, former=True)
    t.model.policies[g.pid].changed = frozenset((0,))


def freeze_key(t: Estate, g: Ground) -> None:
    t.set(0, 0x3000_0005, 5, b"\0\1", g.pid)
    t.model.policies[g.pid].frozen = frozenset((0,))


def change_tag(t: Estate, g: Ground) -> None:
    """Of the partition, and of an object in it."""
    for thing in (g.partition, g.user, g.collection):
        page = {m.PARTITION: 0x3000_0005, m.USER: 0x5, m.COLLECTION: 0x6000_0005}[thing.kind]
        t.set(thing.oid, page, 0x4000_0001, struct.pack(">I", TAG + 1), g.pid)
        t.things[thing.pid, thing.oid] = t.thing(thing.pid, thing.oid).but(tag=TAG + 1)


def narrow_list(t: Estate, g: Ground) -> None:
    """The list of attributes that the capability refers to."""
    t.set(0, m.ACCESS_PAGE, LET_IN, struct.pack(">II", 0x2_0000, 7), g.pid)
    t.model.policies[g.pid].lists[LET_IN] = ((0x2_0000, 7),)


def nothing(t: Estate, g: Ground) -> None:
    """The job goes on: without this refusals would prove nothing."""


Revoke = Callable[[Estate, Ground], None]
REVOKED_BY: dict[str, tuple[Revoke, Change, bool]] = {
    "nothing": (nothing, _but(), False),
    "a hardened partition": (harden, _but(), False),
    "another partition, hardened": (harden_away, _but(), False),
    "another key": (change_key, _but(), False),
    "a frozen key": (freeze_key, _but(), False),
    "another tag": (change_tag, _but(tag=TAG), True),
    "another tag, capability without one": (change_tag, _but(), True),
    "a list of attributes": (narrow_list, _but(attributes=LET_IN), False),
}
"""The event, the capability, and whether the zone has a tag."""


@pytest.mark.parametrize("zone", ZONES)
def test_calls_after_revocation(estate: Estate, zone: str) -> None:
    """Held, revoked, released: the job is judged by what is so when it runs."""
    tally = Tally()
    estate.demand(0, m.NOSEC)
    submitted = []
    for what, (revoke, change, tagged) in REVOKED_BY.items():
        for method in (m.NOSEC, m.CAPKEY, m.ALLDATA):
            if zone == "root" and tagged:
                continue
            seconds = [estate.add_partition(m.NOSEC)]
            g = make_ground(estate, m.NOSEC, tagged, seconds, zone == "root")
            how = f"{m.METHODS[method]} capability" if method else "no capability"
            where = f"zone {zone}, partition of NOSEC, {how} revoked by {what}"
            job = submit(estate, zone, g, change, method, where, held=True)
            revoke(estate, g)
            submitted.append(job)
    release(estate, submitted)
    for job in submitted:
        judge(estate, tally, as_now(estate, job))
    tally.controls.clear()
    tally.check()


def test_calls_after_the_root_was_hardened(estate: Estate) -> None:
    """A job for the root is judged by the root's method."""
    tally = Tally()
    estate.demand(0, m.NOSEC)
    submitted = []
    for method in METHODS:
        g = make_ground(estate, m.NOSEC, False, [], True)
        where = f"zone root, partition of NOSEC, {m.METHODS[method]} revoked by the root's method"
        submitted.append(submit(estate, "root", g, _but(), method, where, held=True))
    estate.demand(0, m.CMDRSP)
    release(estate, submitted)
    for job in submitted:
        judge(estate, tally, job)
    tally.controls.clear()
    tally.check()


def release(t: Estate, submitted: list[Submitted]) -> None:
    for job in submitted:
        pid, oid = job.surrogate
        t.good(w.Request(0x888F, pid, oid, sets=((CONTROL, 1, RELEASE),)))


def as_now(t: Estate, job: Submitted) -> Submitted:
    """The job and its calls with objects as they are now."""

    def now(thing: m.Thing) -> m.Thing:
        return t.things.get((thing.pid, thing.oid), thing)

    def made_now(made: Made) -> Made:
        call = made.call
        call = replace(
            call,
            thing=now(call.thing),
            member=now(call.member) if call.member else None,
            joins=now(call.joins) if call.joins else None,
            inside=tuple(now(each) for each in call.inside),
        )
        return replace(made, call=call)

    moved = replace(job.job, zone=now(job.job.zone))
    return replace(job, job=moved, calls=[made_now(each) for each in job.calls])
