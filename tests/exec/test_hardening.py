# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs are judged at each call, by what they were submitted with and by the present policy of what they
touch (docs/security.md section 10): partitions that come to demand more, lists of attributes, descriptors
kept after UNSHARE.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

import pyosd
from pyosd.jobs.job import Job
from pyosd.security.credentials import KeySource
from pyosd.types import ROOT, AttributeValue, ref
from pyosd.wire.attributes import Page
from pyosd.wire.capability import Permission, SecurityMethod
from pyosd.wire.job_status import JobState
from tests.exec.conftest import WAIT_S, ended
from tests.exec.test_rights import (
    ALICE,
    BOB,
    COMPUTES,
    METHOD,
    Keyed,
    Tagged,
    Whole,
    follow,
    running,
    submit,
    tries,
)
from tests.serving import arguments, shared
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

NOSEC, CAPKEY, ALLDATA = SecurityMethod.NOSEC, SecurityMethod.CAPKEY, SecurityMethod.ALLDATA
SECRET = b"0123456789abcdef"


def serve() -> Iterator[Keyed]:
    with shared(*arguments(["--slots", "2"])) as served:
        found = Keyed(served)
        yield found
        found.plain.close()


keyed = pytest.fixture(serve, scope="module", name="keyed")
mortal = pytest.fixture(serve, name="mortal")


class Place:
    """A partition with keys that takes NOSEC as long as nobody hardens it, and an object in it."""

    def __init__(self, keyed: Keyed) -> None:
        self.keyed = keyed
        self.pid = keyed.plain.create_partition()
        keyed.keys.add(self.pid)
        self.obj = keyed.plain.create_and_write(self.pid, SECRET)

    def demand(self, method: SecurityMethod) -> None:
        value = AttributeValue(Page.PARTITION_SECURITY, METHOD, bytes((method,)))
        with self.keyed.connect(self.keyed.keys.source(ALLDATA)) as target:
            target.set_attributes(ref(self.pid), [value])

    def submit(self, script: str, **how: Any) -> Job:
        """Without a capability."""
        how.setdefault("zone", ref(self.pid))
        return self.keyed.plain.exec("import osd\n" + textwrap.dedent(script), **how)

    @contextmanager
    def strongest(self) -> Iterator[pyosd.Target]:
        with self.keyed.connect(self.keyed.keys.source(ALLDATA)) as target:
            yield target

    def fails(self, job: Job, reason: int = 601) -> None:
        """Asked with the strongest method: the surrogate may be in a hardened partition."""
        with self.strongest() as target:
            ended(target.job(job.id).wait(WAIT_S), JobState.FAILED, reason)


@pytest.fixture
def place(keyed: Keyed) -> Place:
    return Place(keyed)


# ---- submissions without a capability ------------------------------------------------------------


def test_surrogate_in_a_protected_partition(keyed: Keyed, place: Place) -> None:
    """It makes an object there: that partition is asked."""
    with pytest.raises(pyosd.OSDError) as refused:
        place.submit("pass", surrogate=ref(keyed.pid))
    assert refused.value.field_pointer == 48
    other = Place(keyed)
    job = place.submit("pass", surrogate=ref(other.pid))
    assert job.id.partition_id == other.pid
    ended(job.wait(WAIT_S), JobState.COMPLETED, 0)
    other.demand(CAPKEY)
    with pytest.raises(pyosd.OSDError):
        place.submit("pass", surrogate=ref(other.pid))


def test_job_elsewhere(keyed: Keyed, place: Place) -> None:
    """Nor does a job in a partition that has been hardened tell how it ends."""
    other = Place(keyed)
    before = other.submit("pass")
    ended(before.wait(WAIT_S), JobState.COMPLETED, 0)
    ended(place.submit("pass", after=[before]).wait(WAIT_S), JobState.COMPLETED, 0)
    other.demand(CAPKEY)
    with pytest.raises(pyosd.OSDError) as refused:
        place.submit("pass", after=[before])
    assert refused.value.field_pointer == 48


READS = """
    def tried(pid, oid):
        try: return bytes(osd.userobject(pid, oid).data.read())
        except osd.PermissionDenied: return b"no"
        except osd.NotFound: return b"absent"
    print(*(tried(*each).decode() for each in {}))
"""


def test_zone_of_everything(keyed: Keyed, place: Place) -> None:
    """If the root accepts NOSEC, each partition is checked nevertheless. Their contents remain
    hidden."""
    asked = [(keyed.pid, keyed.obj.object_id), (keyed.pid, 0x7777_7777)]
    asked.append((place.pid, place.obj.object_id))
    job = place.submit(READS.format(asked), zone=ROOT)
    ended(job.wait(WAIT_S), JobState.COMPLETED, 0)
    assert job.output().split() == [b"no", b"no", SECRET]


# ---- partitions that are hardened ----------------------------------------------------------------

CALLS = "osd.log('up')\nwhile True: osd.userobject(osd.zone.partition_id, {}).data.read()"


@pytest.mark.parametrize("script", [COMPUTES, CALLS], ids=["computes", "calls"])
def test_running_job(place: Place, script: str) -> None:
    job = running(place.submit(script.format(place.obj.object_id)))
    place.demand(ALLDATA)
    place.fails(job)


def test_job_with_a_weaker_capability(keyed: Keyed, place: Place) -> None:
    """A capability's method is compared, too."""
    place.demand(CAPKEY)
    with keyed.connect() as target:
        job = running(submit(target, keyed, COMPUTES, zone=ref(place.pid)))
    place.demand(ALLDATA)
    place.fails(job)


def never_starts(place: Place, job: Job) -> None:
    """A job that was held is released, and fails without having run."""
    with place.strongest() as target:
        found = target.job(job.id)
        found.release()
        place.fails(job)
        assert found.output() == b""


def test_job_that_waits(place: Place) -> None:
    """It never starts."""
    job = place.submit("print('ran')", hold=True)
    place.demand(ALLDATA)
    never_starts(place, job)


def test_job_that_waits_over_a_restart(mortal: Keyed) -> None:
    place = Place(mortal)
    job = place.submit("print('ran')", hold=True)
    place.demand(ALLDATA)
    mortal.served.kill("tgtd")
    mortal.served.restarted()
    never_starts(place, job)


def test_array_and_another_attempt(place: Place) -> None:
    array = place.submit("print('ran')", array=range(3), hold=True)
    again = place.submit("raise SystemExit(7)", retries=14, retry_exit=7)
    until(lambda: (now := again.status()).attempt and now.state is JobState.QUEUED)
    place.demand(ALLDATA)
    with place.strongest() as target:
        target.job(array.id).release()
        ended(target.job(array.id).wait(WAIT_S), JobState.FAILED, 111)
    place.fails(again)


MAPS = """
    view = osd.userobject({}, {}).data.map()
    assert bytes(view[1:4]) == b"123"
    osd.log('up')
    while True: len(view)
"""


def test_descriptors_of_a_hardened_partition(place: Place, keyed: Keyed) -> None:
    """A job of the root that has some ends; one that has none is refused."""
    other = Place(keyed)
    maps = running(
        place.submit(MAPS.format(place.obj.partition_id, place.obj.object_id), zone=ROOT)
    )
    calls = f"""
        import time
        o = osd.userobject({place.pid}, {place.obj.object_id})
        osd.log('up')
        try:
            while True: o.data.read()
        except osd.PermissionDenied: pass
        print(osd.userobject({other.pid}, {other.obj.object_id}).data.read().decode())
    """
    asks = running(place.submit(calls, zone=ROOT))
    place.demand(ALLDATA)
    ended(maps.wait(WAIT_S), JobState.FAILED, 601)
    ended(asks.wait(WAIT_S), JobState.COMPLETED, 0)
    assert asks.output() == SECRET + b"\n"


# ---- descriptors that a script keeps -------------------------------------------------------------

KEEPS = """
    import os
    from osd import _sandbox
    from osd._transport import Call
    ids = osd.zone.partition_id, {}
    head_bytes, length, *fds = _sandbox.core.share(*ids)
    kept = [os.dup(fd) for fd in fds if fd >= 0]
    for fd in fds:
        if fd >= 0: os.close(fd)
    _sandbox.core.call(Call.UNSHARE, *ids)
    osd.log('up')
    while True: os.pread(kept[0], 16, 0)
"""


def test_copies_of_descriptors(keyed: Keyed) -> None:
    """A script that says it has closed them may have kept copies: the object still counts."""
    keyed.set_tag(ref(keyed.pid), 7)
    keyed.set_tag(keyed.obj, 7)
    try:
        source = Tagged(keyed.keys.working, keyed.system_id, audit=ALICE, tag=7)
        with keyed.connect(source) as target:
            job = running(submit(target, keyed, KEEPS.format(keyed.obj.object_id)))
            keyed.set_tag(keyed.obj, 9)
            ended(follow(keyed, job), JobState.FAILED, 601)
    finally:
        keyed.set_tag(ref(keyed.pid), 0)
        keyed.set_tag(keyed.obj, 0)


MANY = """
    from osd import _sandbox
    from osd._transport import Call
    part = osd.partition(osd.zone.partition_id)
    objects = part.create_many(4096) + part.create_many(4)
    for o in objects:
        o.data.write(b"x" * 100)
    for o in objects:
        assert bytes(o.data.map()) == b"x" * 100, o
    # Objects that are opened again do not count again.
    for _ in range(2):
        _sandbox.core.share(part.partition_id, objects[5].object_id)
        _sandbox.core.call(Call.UNSHARE, part.partition_id, objects[5].object_id)
    try: _sandbox.core.share(part.partition_id, objects[-1].object_id)
    except osd.OSDError as error: print("no more" if "as many objects as it may" in str(error) else error)
"""


def test_descriptors_of_many_objects(place: Place) -> None:
    """4096 objects' may be passed to one job; then they are read by calls."""
    job = place.submit(MANY)
    status = job.wait(WAIT_S)
    assert status.state is JobState.COMPLETED, job.traceback()
    assert job.output() == b"no more\n"


# ---- attributes ----------------------------------------------------------------------------------


class Listed(KeySource):
    """Capabilities with ALLOWED ATTRIBUTES ACCESS 3."""

    def __init__(self, *words: Any, **how: Any) -> None:
        super().__init__(*words, **how)
        self._pattern = replace(self._pattern, attributes_access=3)


def allow(keyed: Keyed, *pairs: tuple[int, int]) -> None:
    value = b"".join(page.to_bytes(4, "big") + number.to_bytes(4, "big") for page, number in pairs)
    with keyed.connect() as target:
        target.set_attributes(ref(keyed.pid), [AttributeValue(Page.PARTITION_ACCESS, 3, value)])


ATTRIBUTES = [
    "o.getattr([(0x10000, 1)])",
    "o.getattr([(0x10000, 2)])",
    "o.setattr([(0x10000, 1, b'v')])",
    "o.setattr([(0x10000, 2, b'v')])",
    "o.compare_and_swap(0x10000, 2, b'v', b'w')",
    "o.fetch_and_add(0x10000, 2, 1)",
    "[*osd.partition(o.partition_id).query(osd.attr(0x10000, 1) >= b'a')]",
    "[*osd.partition(o.partition_id).query(osd.attr(0x10000, 2) >= b'a')]",
]


def test_lists_of_attributes(keyed: Keyed) -> None:
    """ALLOWED ATTRIBUTES ACCESS binds each call, and counts as it is now; a listing leaves out others."""
    with keyed.connect() as target:
        values = [AttributeValue(0x1_0000, number, b"secret") for number in (1, 2)]
        target.set_attributes(keyed.obj, values)
    allow(keyed, (0x1_0000, 1))
    script = tries(*ATTRIBUTES) + "\nprint(*(tuple(a[:2]) for a in o.attributes()))"
    with keyed.connect(Listed(keyed.keys.working, keyed.system_id)) as listed:
        # It is bound to the list as well when it follows the job: another one does.
        job = listed.exec(
            "import osd\n" + script.format(oid=keyed.obj.object_id), zone=ref(keyed.pid)
        )
        looks = """
            o = osd.userobject(osd.zone.partition_id, {oid})
            while True:
                try: o.getattr([(0x10000, 1)])
                except osd.PermissionDenied: break
                osd.log("up")
            o.getattr([(0x10000, 2)])
        """
        ended(follow(keyed, job), JobState.COMPLETED, 0)
        second = submit(listed, keyed, looks.format(oid=keyed.obj.object_id))
    with keyed.connect() as target:
        *said, last = target.job(job.id).output().decode().split(" ", len(ATTRIBUTES))
        assert said == "yes no yes no no no yes no".split()
        assert last == "(65536, 1)\n"
        running(target.job(second.id))
        allow(keyed, (0x1_0000, 2))
        ended(target.job(second.id).wait(WAIT_S), JobState.COMPLETED, 0)


WIDENS = [
    "p.setattr([(0x30000004, 3, bytes(8))])",
    "p.setattr([(0x30000005, 1, b'\\0')])",
    "o.setattr([(5, 0x40000001, bytes(4))])",
]


@pytest.mark.parametrize("limited", [True, False])
def test_pages_that_no_script_sets(keyed: Keyed, place: Place, limited: bool) -> None:
    """Neither under a capability with every permission, nor without one."""
    obj = keyed.obj if limited else place.obj
    script = tries("pass", *WIDENS).replace(
        "try: pass", "p = osd.partition(osd.zone.partition_id)\ntry: pass", 1
    )
    script = script.format(oid=obj.object_id)
    every = Permission(0xFFFE) & ~Permission.FUN_EXE
    with keyed.connect() as target:
        job = submit(target, keyed, script, rights=every) if limited else place.submit(script)
        ended(job.wait(WAIT_S), JobState.COMPLETED, 0)
        assert job.output().split() == [b"yes", b"no", b"no", b"no"]


SETS = [
    "o.setattr([(1, 0x82, (4).to_bytes(8, 'big'))])",
    "p.setattr([(0x30000002, 0x10001, b'\\xff' * 8)])",
    "o.setattr([(4, 1, c.object_id.to_bytes(8, 'big'))])",
    "c.add(o)",
]
CHANGES = Permission.SET_ATTR | Permission.GET_ATTR | Permission.CREATE
LENT = CHANGES | Permission.READ | Permission.WRITE | Permission.APPEND | Permission.REMOVE


@pytest.mark.parametrize(
    ("rights", "said"),
    [
        (CHANGES, "no no no no"),
        (CHANGES | Permission.WRITE, "yes no no no"),
        (CHANGES | Permission.POL_SEC, "no yes no no"),
        (LENT & ~Permission.REMOVE, "yes no no no"),
        (LENT, "yes no yes yes"),
    ],
)
def test_permissions_of_attributes(keyed: Keyed, rights: Permission, said: str) -> None:
    """SET_ATTR alone neither cuts data, nor lifts quotas, nor lends an object to a collection."""
    with keyed.connect() as target:
        obj = target.create_and_write(keyed.pid, SECRET)
        script = tries(*SETS).replace("PermissionDenied", "OSDError").format(oid=obj.object_id)
        before = (
            "p = osd.partition(osd.zone.partition_id)\nc = osd.collection(p.partition_id).create()"
        )
        job = submit(target, keyed, f"{before}\n{script}", rights=rights)
        ended(job.wait(WAIT_S), JobState.COMPLETED, 0)
        assert job.output().decode().split() == said.split()
        length = 4 if said.startswith("yes") else len(SECRET)
        assert len(bytes(target.read(obj, 0, 100))) == length


def test_query_of_others_jobs(keyed: Keyed) -> None:
    """No criterion tells what another user's job has said, neither by wire nor to a script."""
    with keyed.connect() as alice:
        job = submit(alice, keyed, "print('ran')", name="alices")
        ended(job.wait(WAIT_S), JobState.COMPLETED, 0)
    jobs = ref(keyed.pid, 0x1001)
    state = (int(Page.JOB_STATUS), 3)
    with keyed.connect(Whole(keyed.keys.working, keyed.system_id, audit=BOB)) as bob:
        found = [*bob.query(jobs, [pyosd.Criterion(*state, b"\0", b"\xff")])]
        assert job.id not in found
        condition = f"osd.attr(*{state}) >= b'\\0'"
        script = f"for o in osd.partition({keyed.pid}).query({condition}): print(o.object_id)"
        spy = submit(bob, keyed, script)
        ended(spy.wait(WAIT_S), JobState.COMPLETED, 0)
        assert str(job.id.object_id) not in spy.output().decode()
    with keyed.connect() as alice:
        found = [*alice.query(jobs, [pyosd.Criterion(*state, b"\0", b"\xff")])]
        assert job.id in found
