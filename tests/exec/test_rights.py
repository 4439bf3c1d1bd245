# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs under capabilities: what a script may do with less than everything, who may follow a job, and how it
ends when its capability is revoked, over the wire.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import pyosd
from pyosd.commands.provision import Provisioner
from pyosd.errors import OSDError, PermissionDenied
from pyosd.jobs.job import Job
from pyosd.security.credentials import Credential, KeySource
from pyosd.security.master_key import MasterKey
from pyosd.types import AttributeId, AttributeValue, ObjectRef, ObjectType, ref
from pyosd.wire.attributes import Page
from pyosd.wire.capability import READ_ONLY, Permission, SecurityMethod
from pyosd.wire.exec_params import (
    ExecFlag,
    ExecParams,
)
from pyosd.wire.job_status import JobState
from tests.exec.conftest import WAIT_S, ended
from tests.serving import Serving, arguments, shared

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

ALICE, BOB = b"alice".ljust(20, b"\0"), b"bob".ljust(20, b"\0")
METHOD = 1
BUSY = 8  # SAM-5
EXCEPTION = 201
TAG = 0x4000_0001
FOLLOWED = AttributeId(Page.JOB_STATUS, 3)
COMPUTES = "osd.log('up')\nimport time\nwhile True: time.sleep(0.001)"
"""It makes no call that could find out, and leaves the processor to other tests."""
SLEEPS = "import time\nosd.log('up')\ntime.sleep(600)"


class Keyed:
    """A target, keys, and a partition where nothing goes without a capability."""

    def __init__(self, served: Serving) -> None:
        self.served = served
        self.plain = served.connect()
        master = MasterKey.read(served.master_key)
        self.keys, self.system_id = Provisioner(self.plain, master), master.system_id
        self.pid = self.plain.create_partition()
        self.functions = self.plain.create_partition(0x17)
        for each in (self.pid, self.functions):
            self.keys.add(each)
        self.obj = self.plain.create_and_write(self.pid, b"0123456789abcdef")
        method = AttributeValue(Page.PARTITION_SECURITY, METHOD, bytes((SecurityMethod.CAPKEY,)))
        self.plain.set_attributes(ref(self.pid), [method])

    def source(self, audit: bytes = ALICE, lifetime: float = 3600.0) -> KeySource:
        return KeySource(self.keys.working, self.system_id, audit=audit, lifetime=lifetime)

    def connect(self, source: Any = None, **how: Any) -> pyosd.Target:
        return self.served.connect(credentials=source or self.source(**how))

    def set_tag(self, obj: ObjectRef, tag: int) -> None:
        page = Page.PARTITION_SECURITY if obj.object_id == 0 else Page.USER_SECURITY
        with self.connect() as target:
            target.set_attributes(obj, [AttributeValue(page, TAG, tag.to_bytes(4, "big"))])


class Whole(KeySource):
    """The source returns credentials for all user objects of the partition instead of one."""

    def credential(
        self, obj: ObjectRef, object_type: ObjectType, permissions: Permission
    ) -> Credential:
        if object_type is ObjectType.USER_OBJECT:
            obj = ref(obj.partition_id)
        return super().credential(obj, object_type, permissions)


class Tagged(KeySource):
    """With a policy access tag."""

    def __init__(self, *words: Any, tag: int, **how: Any) -> None:
        super().__init__(*words, **how)
        self._pattern = replace(self._pattern, policy_access_tag=tag)


@pytest.fixture(scope="module")
def keyed() -> Iterator[Keyed]:
    with shared(*arguments(["--slots", "2"])) as served:
        found = Keyed(served)
        yield found
        found.plain.close()


def submit(target: pyosd.Target, keyed: Keyed, script: str, **how: Any) -> Job:
    how.setdefault("zone", ref(keyed.pid))
    return target.exec("import osd\n" + textwrap.dedent(script), **how)


def running(job: Job) -> Job:
    """Once it has said something."""
    while not (status := job.status()).stderr_length:
        assert not status.done, status
    return job


def tries(*calls: str) -> str:
    """Says of each call whether it is permitted."""
    lines = [
        "o = osd.userobject(osd.zone.partition_id, {oid:#x})",
        *(
            f"try: {call}\nexcept osd.PermissionDenied: print('no', end=' ')\nelse: print('yes', end=' ')"
            for call in calls
        ),
    ]
    return "\n".join(lines)


CALLS = tries(
    "o.data.read()",
    "o.data.map()",
    "o.data.write(b'x')",
    "o.getattr([(1, 0x82)])",
    "o.setattr([(0x10000, 1, b'v')])",
    "osd.zone.create_many(1)",
    "list(osd.zone)",
)


@pytest.mark.parametrize(
    ("rights", "said"),
    [
        (Permission.READ, "yes yes no no no no yes"),
        (READ_ONLY, "yes yes no yes no no yes"),
        (Permission.WRITE, "no no yes no no no no"),
        (Permission.GET_ATTR | Permission.SET_ATTR, "no no no yes yes no no"),
        (Permission.CREATE, "no no no no no yes no"),
        (Permission(0), "no no no no no no no"),
    ],
)
def test_rights(keyed: Keyed, rights: Permission, said: str) -> None:
    with keyed.connect() as target:
        script = CALLS.format(oid=keyed.obj.object_id)
        job = submit(target, keyed, script, rights=rights)
        ended(job.wait(WAIT_S), JobState.COMPLETED, 0)
        assert job.output().decode().split() == said.split()


def test_no_leave_to_run(keyed: Keyed) -> None:
    """FUN_EXE is a bit of its own: everything else is not enough."""
    source = keyed.source()

    class Without(KeySource):
        def credential(self, *need: Any) -> Credential:
            found = source.credential(*need).capability
            kept = (found.permissions | Permission.READ) & ~Permission.FUN_EXE
            key = keyed.keys.working[keyed.pid]
            return Credential.sign(replace(found, permissions=kept), key, keyed.system_id)

    with (
        keyed.connect(Without({}, keyed.system_id)) as target,
        pytest.raises(PermissionDenied),
    ):
        submit(target, keyed, "pass")


def test_who_follows(keyed: Keyed) -> None:
    """The owner follows with permission for the zone. Another user with permission for all objects
    of the partition sees nothing.
    """
    with keyed.connect() as alice:
        job = submit(alice, keyed, "print('secret')")
        ended(job.wait(WAIT_S), JobState.COMPLETED, 0)
        assert job.output() == b"secret\n"
        with keyed.connect(Whole(keyed.keys.working, keyed.system_id, audit=BOB)) as bob:
            assert bytes(bob.read(keyed.obj, 1, 3)) == b"123"
            for attempt in (
                lambda: bob.read(job.id, 0, 100),
                lambda: bob.get_attributes(job.id, [FOLLOWED]),
                lambda: bob.remove(job.id),
                lambda: bob.set_attributes(job.id, [AttributeValue(Page.JOB_CONTROL, 1, b"\2")]),
            ):
                with pytest.raises(PermissionDenied):
                    attempt()
            # A script of his does not, either.
            spy = submit(bob, keyed, tries("o.data.read()").format(oid=job.id.object_id))
            ended(spy.wait(WAIT_S), JobState.COMPLETED, 0)
            assert spy.output().split() == [b"no"]
        with keyed.connect(Whole(keyed.keys.working, keyed.system_id, audit=ALICE)) as later:
            assert bytes(later.read(job.id, 0, 100)) == b"secret\n"
        job.remove()


def test_a_long_result_is_private(keyed: Keyed) -> None:
    """As a short one is: the object that holds it is read by those who may read the surrogate."""
    with keyed.connect() as alice:
        job = submit(alice, keyed, "osd.result(b'r' * 100_000)")
        ended(job.wait(WAIT_S), JobState.COMPLETED, 0)
        assert job.result() == b"r" * 100_000
        result = job.status().result_object
        assert result is not None
        with keyed.connect(Whole(keyed.keys.working, keyed.system_id, audit=BOB)) as bob:
            for attempt in (
                lambda: bob.read(result, 0, 100),
                lambda: bob.get_attributes(result, [AttributeId(1, 0x82)]),
                lambda: bob.remove(result),
                lambda: bob.write(result, 0, b"x"),
            ):
                with pytest.raises(PermissionDenied):
                    attempt()
            spy = submit(bob, keyed, tries("o.data.read()").format(oid=result.object_id))
            ended(spy.wait(WAIT_S), JobState.COMPLETED, 0)
            assert spy.output().split() == [b"no"]
        with keyed.connect(Whole(keyed.keys.working, keyed.system_id, audit=ALICE)) as later:
            assert bytes(later.read(result, 0, 100)) == b"r" * 100
        job.remove()


def test_list_of_jobs(keyed: Keyed) -> None:
    """The collection of jobs shows each user the user's own."""
    with keyed.connect() as alice, keyed.connect(audit=BOB) as bob:
        mine = submit(alice, keyed, "pass")
        his = submit(bob, keyed, "pass")
        for job in (mine, his):
            ended(job.wait(WAIT_S), JobState.COMPLETED, 0)
        assert mine.id in {each.id for each in alice.jobs(keyed.pid)}
        assert his.id not in {each.id for each in alice.jobs(keyed.pid)}
        assert his.id in {each.id for each in bob.jobs(keyed.pid)}


def test_expiry(keyed: Keyed) -> None:
    """A job that computes and calls nothing ends with its capability."""
    with keyed.connect() as other:
        stays = running(submit(other, keyed, SLEEPS))
        # On a busy machine the first may be over before the job begins.
        for lifetime in (3.5, 30.0):
            with keyed.connect(lifetime=lifetime) as target:
                status = submit(target, keyed, COMPUTES).wait(WAIT_S)
            ended(status, JobState.FAILED, 601)
            if status.stderr_length:
                break
        assert status.stderr_length, "it did not begin"
        assert stays.status().state is JobState.RUNNING
        stays.kill(WAIT_S)


def test_tag_of_the_zone(keyed: Keyed) -> None:
    """The usual way to revoke: another policy access tag."""
    source = Tagged(keyed.keys.working, keyed.system_id, audit=ALICE, tag=7)
    keyed.set_tag(ref(keyed.pid), 7)
    try:
        with keyed.connect(source) as target:
            job = running(submit(target, keyed, COMPUTES))
            keyed.set_tag(ref(keyed.pid), 8)
            ended(follow(keyed, job), JobState.FAILED, 601)
    finally:
        keyed.set_tag(ref(keyed.pid), 0)


def follow(keyed: Keyed, job: Job) -> Any:
    """How it ended, asked with leave of one's own for the surrogate: that of the zone is gone."""
    with keyed.connect() as target:
        return target.job(job.id).wait(WAIT_S)


def test_tag_of_a_mapped_object(keyed: Keyed) -> None:
    """Of an object that the job holds a descriptor of."""
    keyed.set_tag(ref(keyed.pid), 7)
    keyed.set_tag(keyed.obj, 7)
    script = f"""
        view = osd.userobject(osd.zone.partition_id, {keyed.obj.object_id}).data.map()
        assert bytes(view[1:4]) == b"123"
        {COMPUTES.splitlines()[0]}
        while True: len(view)
    """
    try:
        source = Tagged(keyed.keys.working, keyed.system_id, audit=ALICE, tag=7)
        with keyed.connect(source) as target:
            job = running(submit(target, keyed, script))
            keyed.set_tag(keyed.obj, 9)
            ended(follow(keyed, job), JobState.FAILED, 601)
    finally:
        keyed.set_tag(ref(keyed.pid), 0)
        keyed.set_tag(keyed.obj, 0)


ASKS = """
from osd._paths.names import LIST, LOOKUP, ask, parsed
def tries(path, verb):
    try: ask(parsed(path), verb)
    except osd.PermissionDenied: print('no', end=' ')
    else: print('yes', end=' ')
tries('hidden', LOOKUP)
tries('hidden', LIST)
tries('hidden/a', LOOKUP)
tries('hidden/b', LOOKUP)
tries('open/a', LOOKUP)
tries('open', LIST)
"""


def test_names_in_a_directory_of_another_tag(keyed: Keyed) -> None:
    """A script neither lists them nor learns whether there is such a name."""
    with keyed.connect() as target:
        for name, tag in (("hidden", 9), ("open", 7)):
            made = target.make_directory(ref(keyed.pid), name).object
            keyed.set_tag(target.put_name(made, "a", b"").object, 7)
            value = AttributeValue(Page.COLLECTION_SECURITY, TAG, tag.to_bytes(4))
            target.set_attributes(made, [value])
    keyed.set_tag(ref(keyed.pid), 7)
    try:
        source = Tagged(keyed.keys.working, keyed.system_id, audit=ALICE, tag=7)
        with keyed.connect(source) as target:
            job = submit(target, keyed, ASKS)
            ended(job.wait(WAIT_S), JobState.COMPLETED, 0)
            assert job.output().decode().split() == ["no"] * 4 + ["yes"] * 2
    finally:
        keyed.set_tag(ref(keyed.pid), 0)


def test_keys(keyed: Keyed) -> None:
    """A job goes on when an unrelated key is changed, and ends with its own."""
    other = keyed.plain.create_partition()
    with keyed.connect() as target:
        job = running(submit(target, keyed, COMPUTES))
        keyed.keys.add(other)
        keyed.keys.add(other)
        with pytest.raises(TimeoutError):
            job.wait(0.3)
        keyed.keys.add(keyed.pid)
    ended(follow(keyed, job), JobState.FAILED, 601)


def test_after_a_crash(keyed: Keyed) -> None:
    """Waiting jobs keep their rights across a kill of the target."""
    with keyed.connect() as target:
        script = CALLS.format(oid=keyed.obj.object_id)
        job = submit(target, keyed, script, rights=Permission.READ, hold=True)
    keyed.served.kill("tgtd")
    keyed.served.restarted()
    with keyed.connect() as target:
        job = target.job(job.id)
        job.release()
        ended(job.wait(WAIT_S), JobState.COMPLETED, 0)
        assert job.output().decode().split() == "yes yes no no no no yes".split()


def test_surrogate_elsewhere(keyed: Keyed) -> None:
    """A capability for the zone permits nothing in another partition."""
    with keyed.served.connect() as plain:
        elsewhere = plain.create_partition()
    with keyed.connect() as target, pytest.raises(pyosd.OSDError) as refused:
        submit(target, keyed, "pass", surrogate=ref(elsewhere))
    assert refused.value.field_pointer == 48


class NoCreate(KeySource):
    """The source leaves CREATE out, as the rules of a user do who may only run scripts."""

    def credential(
        self, obj: ObjectRef, object_type: ObjectType, permissions: Permission
    ) -> Credential:
        return super().credential(obj, object_type, permissions & ~Permission.CREATE)


@pytest.mark.parametrize("oid", [0, 0x9_0000])
def test_a_surrogate_among_the_data_needs_create(keyed: Keyed, oid: int) -> None:
    """It is an ordinary object, which counts against the quota of its partition."""
    place = ref(keyed.pid, oid)
    limited = NoCreate(keyed.keys.working, keyed.system_id, audit=ALICE)
    with keyed.connect(limited) as target:
        before = list(target.list_objects(keyed.pid))
        with pytest.raises(OSDError) as refused:
            submit(target, keyed, "pass", rights=Permission.READ, surrogate=place)
        assert refused.value.field_pointer == 48
        assert list(target.list_objects(keyed.pid)) == before
        job = submit(target, keyed, "pass", rights=Permission.READ)
        job.wait(WAIT_S)
    with keyed.connect() as target:
        job = submit(target, keyed, "pass", rights=Permission.READ, surrogate=place)
        job.wait(WAIT_S)
        assert job.id in target.list_objects(keyed.pid)
        assert job.id == place or not oid
        job.remove()


def test_a_session_learns_its_principal(keyed: Keyed) -> None:
    """That of its capability, which is its jobs'; it is told with the attributes of any object."""
    with keyed.connect() as alice, keyed.connect(audit=BOB) as bob:
        mine, his = submit(alice, keyed, "pass"), submit(bob, keyed, "pass")
        assert alice.principals(mine.id) == {mine.status().principal}
        assert bob.principals(his.id) == {his.status().principal}
        assert mine.status().principal != his.status().principal


def test_the_arguments_of_a_job_are_its_submitters(keyed: Keyed) -> None:
    """Nobody else gets them for code of their own."""
    with keyed.connect() as alice, keyed.connect(audit=BOB) as bob:
        job = submit(alice, keyed, "1/0", args=["secret"])
        ended(job.wait(WAIT_S), JobState.FAILED, EXCEPTION)
        told = b"import osd; osd.result(osd.args)"
        params = ExecParams(predecessor=job.id, flags=ExecFlag.PREDECESSOR_ARGS)
        with pytest.raises(OSDError) as refused:
            bob.exec_code(ref(keyed.pid), told, params)
        assert refused.value.field_pointer == 48
        assert alice.retry(job, code=told).result(WAIT_S) == ["secret"]


def test_a_remembered_result_needs_the_rights_now(keyed: Keyed) -> None:
    """Nobody else gets it, nor the same principal without the right to read."""
    with keyed.connect() as alice, keyed.connect(audit=BOB) as bob:
        obj = alice.create_and_write(keyed.pid, b"secret")
        script = f"osd.result(osd.userobject({obj.partition_id}, {obj.object_id}).data.read())"

        def reuse(target: pyosd.Target, **how: Any) -> Job:
            job = submit(target, keyed, script, reuse=True, **how)
            job.wait(WAIT_S)
            return job

        first = reuse(alice)
        assert first.result() == b"secret"
        assert reuse(alice).id == first.id
        assert not reuse(bob).cached_result
        blind = reuse(alice, rights=Permission(0))
        assert not blind.cached_result
        ended(blind.status(), JobState.FAILED, 201)
        assert reuse(alice).id == first.id
