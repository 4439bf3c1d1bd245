# SPDX-License-Identifier: GPL-2.0-or-later
"""Stages of collections and directories, and which level counts (docs/views.md, "Stages")."""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor

import pytest

import pyosd
from iosd_host.common import places
from iosd_host.control.messages import Type
from pyosd.errors import Invalid, OSDError
from pyosd.functions import Contract, Functions, FunctionStage, OutputSize
from pyosd.types import JOBS_COLLECTION, ROOT, AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import LOGICAL_LENGTH, Page
from tests.control.peer import Peer
from tests.exec.conftest import await_sandboxes
from tests.exec.test_stacks import BLOCKS, GZIP, SELECT, UNKNOWN, XOR, put, whole
from tests.serving import Serving

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

COLLECTIONS = 18  # number of the partition's page: the target's own count


@pytest.fixture
def xor(functions: Functions) -> ObjectRef:
    return put(functions, XOR, BLOCKS, name="xor")


@pytest.fixture
def obj(target: pyosd.Target, zone: ObjectRef) -> ObjectRef:
    made = target.create(zone.partition_id)
    target.write(made, 0, b"\0")
    return made


def byte(target: pyosd.Target, obj: ObjectRef) -> bytes:
    """The first one."""
    return bytes(target.read(obj, 0, 1))


def keyed(xor: ObjectRef, key: int, inherited: bool = True) -> list[FunctionStage]:
    return [FunctionStage(xor, parameters=f"key={key}", inherited=inherited)]


def test_members_of_a_collection(
    target: pyosd.Target, functions: Functions, xor: ObjectRef, obj: ObjectRef
) -> None:
    other = target.create(obj.partition_id)
    target.write(other, 0, b"\0")
    collection = target.create_collection(obj.partition_id)
    functions.attach(collection, keyed(xor, 1))
    assert functions.attached(collection) == keyed(xor, 1)
    assert byte(target, obj) == b"\0", "it has not joined yet"
    target.add_member(collection, obj)
    assert byte(target, obj) == b"\1" and byte(target, other) == b"\0"
    target.write(obj, 1, b"a")
    assert whole(target, obj) == b"\1a"
    assert bytes(target.get_attribute(obj, *LOGICAL_LENGTH)) == (2).to_bytes(8)
    target.remove_member(collection, obj)
    assert whole(target, obj) == b"\0" + bytes((ord("a") ^ 1,))
    target.add_member(collection, obj)
    functions.detach(collection)
    assert functions.attached(collection) == []
    assert byte(target, obj) == b"\0"


def test_the_nearest_level_counts(
    target: pyosd.Target, functions: Functions, xor: ObjectRef, obj: ObjectRef
) -> None:
    partition = ref(obj.partition_id)
    collection = target.create_collection(obj.partition_id)
    target.add_member(collection, obj)
    levels = (ROOT, partition, collection, obj)
    for key, level in enumerate(levels, 1):
        functions.attach(level, keyed(xor, key))
        assert byte(target, obj) == bytes((key,))
    functions.attach(collection, [FunctionStage(None)])
    functions.detach(obj)
    assert byte(target, obj) == b"\0", "none cuts off the partition and the root"
    functions.attach(collection, keyed(xor, 9, inherited=False))
    assert byte(target, obj) == b"\2", "what is not inherited does not count"
    functions.detach(partition)
    assert byte(target, obj) == b"\1"


def test_the_collection_with_the_least_id(
    target: pyosd.Target, functions: Functions, xor: ObjectRef, obj: ObjectRef
) -> None:
    """The order in which stages are set, or objects join, makes no difference."""
    many = [target.create_collection(obj.partition_id) for _ in range(70)]
    for each in reversed(many):
        target.add_member(each, obj)
    for key, at in ((1, 68), (2, 30), (3, 69), (4, 3), (5, 50)):
        functions.attach(many[at], keyed(xor, key))
    for at, key in ((3, 4), (30, 2), (50, 5), (68, 1), (69, 3)):
        assert byte(target, obj) == bytes((key,))
        functions.detach(many[at])
    assert byte(target, obj) == b"\0"


def test_a_collection_that_is_removed(
    target: pyosd.Target, functions: Functions, xor: ObjectRef, obj: ObjectRef
) -> None:
    for _ in range(2):
        collection = target.create_collection(obj.partition_id, 0x77777)
        functions.attach(collection, keyed(xor, 1))
        target.add_member(collection, obj)
        assert byte(target, obj) == b"\1"
        target.remove_collection(collection, with_members=True)
        assert byte(target, obj) == b"\0"
    target.create_collection(obj.partition_id, 0x77777)
    assert functions.attached(ref(obj.partition_id, 0x77777)) == []


def test_an_object_is_made_in_a_collection(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    """CREATE AND WRITE passes the stages of the collections that its attributes name."""
    both = put(functions, GZIP, Contract(inverse="compress"), methods=("decompress", "compress"))
    select = put(functions, SELECT, UNKNOWN, name="select")
    plain, zipped, later = (target.create_collection(zone.partition_id) for _ in range(3))
    functions.attach(zone, [FunctionStage(select, parameters="user=x")])
    functions.attach(zipped, [FunctionStage(both)])
    functions.attach(later, [FunctionStage(select, parameters="user=y")])
    joins = [
        AttributeValue(Page.USER_COLLECTIONS, number, each.object_id.to_bytes(8))
        for number, each in enumerate((later, plain, zipped), 1)
    ]
    made = target.create_and_write(zone.partition_id, b"text " * 1000, attributes=joins)
    assert whole(target, made) == b"text " * 1000
    stored = target.create_and_write(zone.partition_id, b"", attributes=joins[2:])
    target.write(stored, 0, b"two")
    assert whole(target, stored) == b"two"
    one = AttributeValue(Page.USER_COLLECTIONS, 1, plain.object_id.to_bytes(8))
    with pytest.raises(pyosd.OSDError, match=r"inverse|contract|function"):
        target.create_and_write(zone.partition_id, b"text", attributes=[one])


def test_entries_of_a_directory(
    target: pyosd.Target, functions: Functions, xor: ObjectRef, zone: ObjectRef
) -> None:
    """A directory is a collection of the objects that have a name in it: of these alone."""
    year = target.make_directory(zone, "2024").object
    functions.attach(year, keyed(xor, 1))
    target.make_directory(zone, "2024/raw")
    near = target.create_name(zone, "2024/a").object
    deep = target.create_name(zone, "2024/raw/b").object
    for each in (near, deep):
        target.write(each, 0, b"\0")
    functions.detach(year)
    assert byte(target, near) == b"\1" and byte(target, deep) == b"\0"
    functions.attach(year, keyed(xor, 1))
    target.link(zone, "2024/c", deep)
    assert byte(target, deep) == b"\1", "it has a name there now"
    target.unlink(zone, "2024/c")
    assert byte(target, deep) == b"\0"
    target.rename(zone, "2024/a", "a")
    assert byte(target, near) == b"\1", "as it is stored"


def test_collections_that_cannot_have_stages(
    target: pyosd.Target, functions: Functions, xor: ObjectRef, zone: ObjectRef
) -> None:
    with pytest.raises(pyosd.OSDError):
        functions.attach(ref(zone.partition_id, JOBS_COLLECTION), keyed(xor, 1))
    collection = target.create_collection(zone.partition_id)
    source = zone.partition_id.to_bytes(8) + (0x10000).to_bytes(8)
    for number in (17, COLLECTIONS):
        with pytest.raises(Invalid):
            value = AttributeValue(Page.COLLECTION_STACK, number, source)
            target.set_attributes(collection, [value])
    with pytest.raises(Invalid):
        count = AttributeValue(Page.PARTITION_STACK, COLLECTIONS, bytes(8))
        target.set_attributes(zone, [count])


def test_collections_keep_their_stages(own_serving: Serving) -> None:
    """After a kill the partition still knows that one of its collections has some."""
    with own_serving.connect() as target:
        functions = Functions(target)
        xor = put(functions, XOR, BLOCKS, name="xor")
        zone = ref(target.create_partition())
        collection = target.create_collection(zone.partition_id)
        obj = target.create(zone.partition_id)
        target.write(obj, 0, b"\0")
        target.add_member(collection, obj)
        functions.attach(collection, keyed(xor, 1))
        own_serving.kill("tgtd")
        own_serving.restarted()
    with own_serving.connect() as target:
        await_sandboxes(target)
        assert byte(target, obj) == b"\1"
        target.remove_collection(collection, with_members=True)
        assert byte(target, obj) == b"\0"


def test_contracts_of_a_collection(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    """A function without a contract is refused, as elsewhere."""
    call = functions.put("def main(args):\n    return b''\n", name="call").id
    collection = target.create_collection(zone.partition_id)
    with pytest.raises(Invalid):
        functions.attach(collection, [FunctionStage(call)])
    fixed = put(functions, XOR, Contract(OutputSize.SAME), name="fixed")
    functions.attach(collection, [FunctionStage(fixed)] * 16)
    assert len(functions.attached(collection)) == 16


def transactions(serving: Serving) -> int:
    """How many the target's database has had."""
    found = {place["pid"]: place for place in places.running(places.TARGET)}
    with Peer(found[serving.process.pid]["control"]) as peer:
        seconds = peer.ask(Type.SNAPSHOT)["transactions"]["seconds"]
        return sum(seconds["counts"])


@pytest.mark.parametrize("where", ["partition", "root"])
def test_reads_cost_nothing_after_the_stages_are_detached(
    target: pyosd.Target,
    functions: Functions,
    xor: ObjectRef,
    obj: ObjectRef,
    serving: Serving,
    where: str,
) -> None:
    """They look nothing up in the database any more, without a restart."""
    level = ref(obj.partition_id) if where == "partition" else ROOT

    def cost() -> int:
        """Of 40 READs; upkeep of the target may have transactions beside some of them."""
        found = []
        for _ in range(3):
            before = transactions(serving)
            for _ in range(40):
                target.read(obj, 0, 1)
            found.append(transactions(serving) - before)
        return min(found)

    assert cost() < 20
    functions.attach(level, keyed(xor, 1))
    assert byte(target, obj) == b"\1"
    functions.detach(level)
    assert cost() < 20
    functions.attach(level, keyed(xor, 3))
    with ThreadPoolExecutor(2) as threads:  # one of the two ends last, and it counts
        for _ in range(10):
            both = [
                threads.submit(functions.detach, level),
                threads.submit(functions.attach, level, keyed(xor, 3)),
            ]
            for each in both:
                with contextlib.suppress(OSDError):
                    each.result()
            attached = bool(functions.attached(level))
            assert (byte(target, obj) == b"\3") == attached
    functions.detach(level)
    assert cost() < 20
