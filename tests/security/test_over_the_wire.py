# SPDX-License-Identifier: GPL-2.0-or-later
"""Every kind of request under every method, with a target that wants credentials for all of it; and what
the client does by itself: keys that change, clocks that differ, targets that restart.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import pyosd
from pyosd import AttributeLists, Duplication, aio
from pyosd import requests as rq
from pyosd.commands.provision import Provisioner
from pyosd.errors import IntegrityError, NotFound, OSDError, PermissionDenied
from pyosd.security.credentials import Credential, KeySource, StaticSource
from pyosd.security.master_key import MasterKey
from pyosd.types import ROOT, AttributeId, AttributeValue, ObjectRef, ObjectType, PartitionId, ref
from pyosd.wire.attributes import ALL, CURRENT_OBJECT_ID, Page
from pyosd.wire.capability import (
    JOB_RIGHTS,
    READ_ONLY,
    Algorithm,
    KeyLevel,
    Permission,
    SecurityMethod,
)
from tests import warm
from tests.harness import SOURCE
from tests.serving import Serving, arguments, missing, sandboxes_missing, shared

pytestmark = pytest.mark.tgtd
NOSEC, CAPKEY, CMDRSP, ALLDATA = SecurityMethod
COLOUR = AttributeValue(Page.APPLICATION, 1, b"green")
LARGE = 64 << 10
METHODS = [CAPKEY, CMDRSP, ALLDATA]
by_method = pytest.mark.parametrize("method", METHODS, ids=lambda each: each.name)


@dataclass
class Strict:
    """A target that takes nothing without credentials; pid has keys."""

    served: Serving
    keys: Provisioner
    pid: PartitionId

    def connect(self, method: SecurityMethod, **options: object) -> pyosd.Target:
        source = self.keys.source(method, options.pop("algorithm", None))  # type: ignore[arg-type]
        return self.served.connect(credentials=source, **options)


@pytest.fixture(scope="module")
def strict() -> Iterator[Strict]:
    if why := missing():
        pytest.skip(why)
    with shared("--no-sandboxes", "--security", "capkey") as served, served.connect() as plain:
        keys = Provisioner(plain, MasterKey.read(served.master_key))
        with served.connect(credentials=keys.source()) as target:
            pid = target.create_partition()
        keys.add(pid)
        yield Strict(served, keys, pid)


@by_method
@pytest.mark.parametrize("algorithm", Algorithm)
def test_objects(strict: Strict, method: SecurityMethod, algorithm: Algorithm) -> None:
    pid = strict.pid
    with strict.connect(method, algorithm=algorithm) as target:
        obj = target.create(pid, attributes=[COLOUR])
        target.write(obj, 0, b"0123456789")
        assert target.append(obj, b"abcdef") == 10
        assert bytes(target.read(obj, 2, 100)) == b"23456789abcdef"
        assert bytes(target.read_range(obj)) == b"0123456789abcdef"
        target.write_pieces(obj, [(0, 2), (8, 2)], b"XXYY")
        assert bytes(target.read_pieces(obj, [(0, 2), (8, 2)])) == b"XXYY"
        target.clear(obj, 1, 2)
        target.punch(obj, 0, 4)
        assert target.length(obj) == 12
        target.set_attributes(obj, [AttributeValue(*COLOUR.id, b"red")])
        assert target.get_attribute(obj, *COLOUR.id) == b"red"
        assert target.fetch_and_add(obj, 3) == 0 and target.fetch_and_add(obj, 1) == 3
        assert target.compare_and_swap(obj, 0, 9) == 0
        assert target.swap_attribute(obj, COLOUR.id, b"red", b"blue") == b"red"
        target.set_attributes(obj, [AttributeValue(*COLOUR.id, b"l" * 60_000)])
        assert target.swap_attribute(obj, COLOUR.id, b"red", b"blue") == b"l" * 60_000
        target.flush(obj)
        assert target.read_map(obj)
        copied = target.copy(obj, pid, method=Duplication.DEFAULT)
        assert target.get_attribute(copied, *COLOUR.id) == b"l" * 60_000
        found = target.get_attributes(obj, [AttributeId(ALL, ALL)])
        assert COLOUR.id in [each.id for each in found]
        for each in (obj, copied):
            target.remove(each)
        with pytest.raises(NotFound):
            target.read(obj, 0, 1)


@by_method
def test_reads_of_64_kib(strict: Strict, method: SecurityMethod) -> None:
    """Of as much as is read, and hashed, by the thread that the command came to; also behind the end."""
    data = bytes(range(251)) * 400
    with strict.connect(method) as target:
        obj = target.create_and_write(strict.pid, data)
        buffer = bytearray(LARGE)
        assert target.read(obj, 0, LARGE, into=buffer) == data[:LARGE] == buffer
        assert target.read(obj, LARGE, LARGE) == data[LARGE:]
        assert target.read(obj, len(data) - 5, LARGE) == data[-5:]
        target.remove(obj)


@by_method
def test_many_at_once(strict: Strict, method: SecurityMethod) -> None:
    two = [COLOUR, AttributeValue(Page.APPLICATION, 2, b"two")]
    with strict.connect(method) as target:
        plain = target.create_many(strict.pid, 3)
        made = target.create_many(strict.pid, 3, attributes=two)
        assert len(set(plain + made)) == 6
        assert target.get_attribute(made[2], *two[1].id) == b"two"
        listed = target.list_objects(strict.pid)
        assert set(plain + made) <= set(listed)
        data = bytes(range(256)) * 8192  # two pieces
        target.write_range(made[0], 0, data)
        buffer = bytearray(len(data))
        assert target.read_into(made[0], 0, buffer) == len(data) and bytes(buffer) == data
        for each in plain + made:
            target.remove(each)


@by_method
def test_collections(strict: Strict, method: SecurityMethod) -> None:
    pid = strict.pid
    with strict.connect(method) as target:
        collection = target.create_collection(pid)
        assert target.get_member_attributes(collection, [COLOUR.id]) == ()
        objects = [target.create(pid, attributes=[COLOUR]) for _ in range(3)]
        for each in objects:
            target.add_member(collection, each)
        members = target.get_member_attributes(collection, [COLOUR.id])
        assert [each.attributes for each in members] == [(COLOUR,)] * 3
        assert target.list_members(collection) == objects
        assert collection in target.list_collections(pid)
        target.set_member_attributes(collection, [AttributeValue(*COLOUR.id, b"red")])
        assert target.query(collection, pyosd.attr(*COLOUR.id) == "red") == objects
        matches = target.create_tracking_collection(pid)
        target.query_into(collection, (), matches)
        assert target.list_members(matches) == objects
        again = target.create_tracking_collection(pid, 0, matches.object_id)
        assert target.list_members(again) == objects
        target.remove_member_objects(again)
        assert target.list_members(collection) == []
        for each in (again, matches, collection):
            target.remove_collection(each)


@by_method
def test_partitions_and_root(strict: Strict, method: SecurityMethod) -> None:
    with strict.connect(method) as target:
        pid = target.create_partition()
        assert pid in target.list_partitions()
        assert target.get_attribute(ROOT, Page.ROOT_INFORMATION, 0x100)
        assert target.list_objects(strict.pid) == []
        target.remove_partition(pid)
        assert pid not in target.list_partitions()
        target.flush_partition(strict.pid)


def test_coroutines(strict: Strict) -> None:
    async def main() -> bytes:
        source = strict.keys.source(ALLDATA)
        async with aio.connect(strict.served.url, credentials=source) as target:
            made = await target.call(
                rq.create(
                    strict.pid,
                    attributes=AttributeLists((CURRENT_OBJECT_ID,)),
                )
            )
            obj = ref(strict.pid, made.attributes[0].uint)
            await target.write_range(obj, 0, b"x" * 3_000_000)
            data = await target.read_range(obj, 0, 4_000_000)
            await target.call(rq.remove(obj))
            return bytes(data)

    assert asyncio.run(main()) == b"x" * 3_000_000


def test_nothing_without_credentials(strict: Strict) -> None:
    with strict.served.connect() as target, pytest.raises(PermissionDenied):
        target.list_objects(strict.pid)


def test_leave_ends_where_it_ends(strict: Strict) -> None:
    with strict.connect(CMDRSP) as target:
        mine, other = target.create(strict.pid), target.create(strict.pid)
        source = strict.keys.source(CMDRSP)
        kind = ObjectType.USER_OBJECT
        one = source.credential(mine, kind, Permission.READ)
        with strict.served.connect(credentials=one) as narrow:
            assert bytes(narrow.read(mine, 0, 1)) == b""
            with pytest.raises(PermissionDenied, match="no credential"):
                narrow.read(other, 0, 1)
            for request, field in (
                (rq.read(other, 0, 1), 160),
                (rq.write(mine, 0, b"x"), 129),
                (rq.list_objects(strict.pid), 128),
            ):
                with pytest.raises(PermissionDenied) as caught:
                    narrow.call(request, credential=one)
                assert caught.value.field_pointer == field and caught.value.verified
        target.remove(mine)
        target.remove(other)


@by_method
@pytest.mark.parametrize("ahead_s", [-7200, 7200])
def test_clocks_that_differ(strict: Strict, method: SecurityMethod, ahead_s: int) -> None:
    with strict.connect(method) as target:
        obj = target.create(strict.pid)
        target.signer.set_clock(int((time.time() + ahead_s) * 1000))
        assert target.append(obj, b"abc") == 0
        assert target.append(obj, b"abc") == 3
        target.remove(obj)


@by_method
def test_keys_that_change(strict: Strict, method: SecurityMethod) -> None:
    """A well-behaved client notices nothing."""
    with strict.connect(method) as target:
        obj = target.create(strict.pid)
        target.write(obj, 0, b"abc")
        strict.keys.add(strict.pid)  # its keys of before are no more
        source = target.signer.source
        assert isinstance(source, KeySource)
        source.set_key(strict.pid, strict.keys.working[strict.pid])
        assert target.append(obj, b"def") == 3
        assert bytes(target.read(obj, 0, 100)) == b"abcdef"
        target.remove(obj)


@by_method
def test_who_has_old_keys_only_is_refused(strict: Strict, method: SecurityMethod) -> None:
    with strict.connect(method) as target:
        obj = target.create(strict.pid)
        made = strict.keys.source(method).credential(obj, ObjectType.USER_OBJECT, Permission.WRITE)
        strict.keys.add(strict.pid)
        with strict.served.connect(credentials=StaticSource([made])) as old:
            with pytest.raises(PermissionDenied) as caught:
                old.write(obj, 0, b"abc")
            assert not caught.value.verified and "proof" in str(caught.value)
    with strict.connect(method) as target:
        assert target.length(obj) == 0
        target.remove(obj)


def test_an_expired_credential_is_renewed(strict: Strict) -> None:
    class Short(KeySource):
        """Lies about how long its first credential lasts."""

        made = 0

        def credential(
            self, obj: ObjectRef, kind: ObjectType, permissions: Permission
        ) -> Credential:
            Short.made += 1
            return super().credential(obj, kind, permissions)

    short = Short(strict.keys.working, strict.keys.system_id, method=CMDRSP, lifetime=-1)
    with (
        strict.served.connect(credentials=short) as target,
        pytest.raises(PermissionDenied, match="expired"),
    ):
        target.list_objects(strict.pid)
    assert Short.made >= 2


def test_frozen_keys(strict: Strict) -> None:
    second = strict.keys.set_working(strict.pid, 1)
    source = KeySource({strict.pid: second}, strict.keys.system_id, method=ALLDATA, version=1)
    mask = AttributeId(Page.PARTITION_SECURITY, 5)
    with strict.served.connect(credentials=source) as other, strict.connect(ALLDATA) as target:
        assert other.list_objects(strict.pid) == []
        target.set_attributes(ref(strict.pid), [AttributeValue(*mask, b"\0\2")])
        with pytest.raises(PermissionDenied, match="frozen"):
            other.list_objects(strict.pid)
        target.set_attributes(ref(strict.pid), [AttributeValue(*mask, b"\0\0")])
        assert other.list_objects(strict.pid) == []


def test_a_target_that_restarts(strict: Strict) -> None:
    """Another security token; nonces of before are refused by time, and made anew."""
    with strict.connect(CAPKEY) as one, strict.connect(ALLDATA) as two:
        obj = one.create(strict.pid)
        two.write(obj, 0, b"abc")
        strict.served.kill("tgtd")
        strict.served.restarted()
        assert bytes(one.read(obj, 0, 3)) == b"abc" == bytes(two.read(obj, 0, 3))
        assert two.append(obj, b"def") == 3
        one.remove(obj)


def test_set_key_wants_the_key_above(strict: Strict) -> None:
    by_working = strict.keys.source(CMDRSP).credential(
        ref(strict.pid), ObjectType.PARTITION, Permission.DEV_MGMT | Permission.POL_SEC
    )
    with strict.served.connect() as plain, pytest.raises((PermissionDenied, IntegrityError)):
        plain.set_key(KeyLevel.WORKING, strict.pid, bytes(20), bytes(7), credential=by_working)


def test_policies_need_a_permission_of_their_own(strict: Strict) -> None:
    tag = AttributeValue(Page.USER_SECURITY, 0x4000_0001, b"\0\0\0\5")
    kind, source = ObjectType.USER_OBJECT, strict.keys.source(CMDRSP)
    with strict.connect(CMDRSP) as target:
        obj = target.create(strict.pid)
        request = rq.set_attributes(obj, attributes=AttributeLists((), (tag,)))
        with pytest.raises(OSDError) as caught:
            target.call(request, credential=source.credential(obj, kind, Permission.SET_ATTR))
        assert caught.value.field_pointer == 129
        target.call(request)
        target.remove(obj)


@pytest.fixture(scope="module")
def running() -> Iterator[Strict]:
    """The same with sandboxes."""
    if why := missing() or sandboxes_missing():
        pytest.skip(why)
    with shared(*arguments(("--security", "capkey"))) as served, served.connect() as plain:
        keys = Provisioner(plain, MasterKey.read(served.master_key))
        with served.connect(credentials=keys.source()) as target:
            pid = target.create_partition()
        keys.add(pid)
        yield Strict(served, keys, pid)


@pytest.mark.parametrize("method", [CAPKEY, ALLDATA], ids=lambda each: each.name)
def test_jobs(running: Strict, method: SecurityMethod) -> None:
    with running.connect(method) as target:
        text = target.create_and_write(PartitionId(running.pid), b"hello")
        job = target.exec("import osd; print(1); osd.result(osd.zone.data.read())", zone=text)
        assert job.result(30) == b"hello" and [*job.logs()] == ["1"]
        waited = target.exec("import osd; osd.result([2])", zone=ref(running.pid), wait="10s")
        assert waited.result(30) == [2]
        array = target.exec_array(
            "import osd; osd.result(osd.array_index)", zone=ref(running.pid), array=range(3)
        )
        assert [*array.results(30)] == [0, 1, 2]
        held = target.exec("pass", zone=text, hold=True)
        held.cancel()
        with pytest.raises(pyosd.JobCancelled):
            held.result(30)
    with running.connect(method) as target:
        assert target.job(waited.id).result(30) == [2]
        target.remove(text)

    async def main() -> object:
        source = running.keys.source(method)
        async with aio.connect(running.served.url, credentials=source) as target:
            return await (await target.exec("import osd; osd.result(3)", zone=ref(running.pid)))

    assert asyncio.run(main()) == 3


def test_program_and_script(strict: Strict, tmp_path: Path) -> None:
    """`osd --credentials`, and a script run here, which has names of files only."""
    source = strict.keys.source(CMDRSP)
    pid, kinds = strict.pid, ObjectType
    made = [
        source.credential(ROOT, kinds.ROOT, Permission.READ | Permission.GET_ATTR),
        source.credential(ref(pid), kinds.PARTITION, READ_ONLY),
        source.credential(ref(pid), kinds.USER_OBJECT, JOB_RIGHTS),
    ]
    path = tmp_path / "credentials"
    StaticSource(made).write(path)
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    osd = [sys.executable, "-c", "from pyosd.cli import main; main()"]
    common = ["--target", strict.served.url, "--credentials", str(path)]

    def run(*words: str) -> str:
        done = warm.run(
            [*osd, *words, *common], cwd=SOURCE, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert f"{pid:#x}" in run("part", "ls")
    assert run("exec", "--local", "--zone", hex(pid), str(script)) == "b'abc'\n"


SCRIPT = """\
import os
import osd

made = osd.userobject(osd.zone.partition_id).create()
made.data.write(b"abc")
print(made.data.read())
made.remove()
assert not any("SECRET" in name and not name.endswith("_FILE") for name in os.environ)
"""
