# SPDX-License-Identifier: GPL-2.0-or-later
"""OBJECT STRUCTURE CHECK: nothing wrong is GOOD; damage made in a closed store is found, told of in
Error Recovery and READ MAP, and forgotten once it is gone."""

from __future__ import annotations

import contextlib
import os
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import AttributeId, AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import LOGICAL_LENGTH, Page
from pyosd.wire.cdb import AttributeLists
from tests.command.test_index import declare, wait_until_ready
from tests.conftest import MakeHarness
from tests.expect import CDB_FIELD, NO_PARTITION, OK, Outcome, check
from tests.harness import Harness

DAMAGED = Outcome("the structure check found damage", 4, 0x44, 0x00)
DATA, ATTRIBUTES = 1, 2
HEAD = 2 << 20
COLOUR = AttributeValue(Page.APPLICATION, 1, b"green")
ROOT, PARTITION, COLLECTION, USER = 0x9000_0006, 0x3000_0006, 0x6000_0006, 6
LOGICAL_LENGTH_ID = (LOGICAL_LENGTH.page, LOGICAL_LENGTH.number)

bsddb3 = pytest.importorskip("bsddb3")


def recovery(osd: Commands, obj: ObjectRef, page: int) -> dict[int, int]:
    """Attributes of the Error Recovery page, those that are 0 left out."""
    return {
        number: value
        for number in range(1, 7)
        if (value := int.from_bytes(osd.get_attribute(obj, page, number), "big"))
    }


def damage_found(osd: Commands, pid: int = 0) -> int:
    """Check; how many objects are damaged."""
    reply = check(osd.reply(rq.object_structure_check(pid)), DAMAGED)
    assert reply.sense is not None
    assert reply.sense.command_information is not None
    return reply.sense.command_information


def lost(osd: Commands, obj: ObjectRef) -> list[tuple[int, int]]:
    """Offset and length of the damaged data READ MAP tells of."""
    data = bytes(check(osd.reply(rq.read_map(obj, 0, 4096, 3)), OK).data)
    found = [struct.unpack_from(">2xHIQ", data, at) for at in range(8, len(data), 16)]
    assert all(kind == 3 for kind, _, _ in found)
    return [(offset, length) for _, length, offset in found]


# ---- nothing wrong ----


def test_of_a_partition(osd: Commands, pid: PartitionId, collection: ObjectRef) -> None:
    made = osd.create(pid)
    joined = AttributeValue(4, 1, collection.object_id.to_bytes(8, "big"))
    osd.set_attributes(made, [COLOUR, joined])
    osd.write(made, 3 << 20, b"sparse")
    osd.create_and_write(pid, b"data")
    osd.punch(made, 10, 1 << 20)
    osd.clear(made, 100, 5 << 20)
    osd.set_attributes(osd.create(pid), [AttributeValue(*LOGICAL_LENGTH_ID, bytes(6) + b"\1\0")])
    osd.reply(rq.copy_user_object(made, pid))
    check(osd.reply(rq.object_structure_check(pid)), OK)
    assert recovery(osd, ref(pid), PARTITION) == {}
    assert recovery(osd, made, USER) == {}


def test_of_everything(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, b"data")
    wanted = rq.object_structure_check(0, attributes=AttributeLists((AttributeId(ROOT, 2),)))
    reply = check(osd.reply(wanted), OK)
    assert reply.attribute(AttributeId(ROOT, 2)).uint == 0


def test_absent(osd: Commands, pid: int) -> None:
    check(osd.reply(rq.object_structure_check(0x7777_0000_0000)), NO_PARTITION)
    check(osd.reply(rq.object_structure_check(1)), CDB_FIELD.at(16))


def test_while_others_work(make_harness: MakeHarness, tmp_path: Path) -> None:
    """Objects that are made, written, joined and removed meanwhile are not damaged."""
    harness = make_harness()
    osd = harness.osd
    pid = osd.create_partition()
    collection = osd.create_collection(pid)
    joined = AttributeValue(4, 1, collection.object_id.to_bytes(8, "big"))
    for _ in range(300):
        osd.create(pid)
    stop = threading.Event()
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            while not stop.is_set():
                made = osd.create_and_write(pid, b"x" * (1000 * seed))
                osd.set_attributes(made, [COLOUR, joined])
                osd.append(made, b"y" * 5000)
                osd.punch(made, 10, 3)
                osd.remove(made)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            check(osd.reply(rq.object_structure_check(pid)), OK)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failures
    check(osd.reply(rq.object_structure_check()), OK)


# ---- damage ----


class Store:
    """A harness whose store can be worked on while it is closed."""

    def __init__(self, harness: Harness, folder: Path, heads: Path | None) -> None:
        self.harness, self.folder, self.heads = harness, folder, heads

    @property
    def osd(self) -> Commands:
        return self.harness.osd

    def files(self, obj: ObjectRef, tail: bool = False) -> Path:
        """Its only head or tail file."""
        root = self.heads if self.heads and not tail else self.folder
        pattern = f"data/*/*/{obj.object_id:016x}.*{'t' if tail else 'h'}"
        (found,) = root.glob(pattern)
        return found

    @contextlib.contextmanager
    def closed(self) -> Iterator[None]:
        self.harness.finish()
        yield
        self.harness.start()

    def lose(self, table: str, end: bytes) -> None:
        """Delete the one record of the closed store whose key ends so."""
        db: Any = bsddb3.db
        environment = db.DBEnv()
        flags = db.DB_CREATE | db.DB_INIT_TXN | db.DB_INIT_LOG | db.DB_INIT_LOCK
        flags |= db.DB_INIT_MPOOL | db.DB_PRIVATE | db.DB_RECOVER
        environment.open(str(self.folder / "db"), flags)
        handle = db.DB(environment)
        handle.open(table, flags=db.DB_AUTO_COMMIT)
        keys: list[bytes] = list(handle.keys())
        (key,) = [each for each in keys if each.endswith(end)]
        handle.delete(key)
        handle.close()
        environment.txn_checkpoint(0, 0, db.DB_FORCE)
        environment.close()


@pytest.fixture(params=[False, True], ids=["one root", "two roots"])
def store(request: pytest.FixtureRequest, make_harness: MakeHarness, tmp_path: Path) -> Store:
    heads = tmp_path / "heads" if request.param else None
    if heads:
        heads.mkdir()
    options = {"ssd": heads} if heads else {}
    return Store(make_harness(**options), tmp_path / "store", heads)


def test_lost_end_of_a_file(store: Store) -> None:
    osd = store.osd
    pid = osd.create_partition()
    sound, cut = osd.create_and_write(pid, b"s" * 5000), osd.create_and_write(pid, b"c" * 5000)
    with store.closed():
        os.truncate(store.files(cut), 2000)
    osd = store.osd
    assert damage_found(osd) == 1
    assert recovery(osd, cut, USER).keys() == {1, 3}
    assert recovery(osd, cut, USER)[1] == DATA
    assert recovery(osd, sound, USER) == {}
    assert lost(osd, cut) == [(2000, 3000)]
    assert lost(osd, sound) == []
    partition, root = recovery(osd, ref(pid), PARTITION), recovery(osd, ref(), ROOT)
    assert (partition[2], partition[6]) == (DATA, 1)
    assert (root[2], root[6]) == (DATA, 1)
    assert 1 not in partition
    with store.closed():  # it is remembered
        pass
    osd = store.osd
    assert lost(osd, cut) == [(2000, 3000)]
    osd.write(cut, 2000, b"c" * 3000)
    check(osd.reply(rq.object_structure_check(pid)), OK)
    assert lost(osd, cut) == []
    assert 1 not in recovery(osd, cut, USER)
    assert {2, 6}.isdisjoint(recovery(osd, ref(pid), PARTITION))


def test_lost_file(store: Store) -> None:
    osd = store.osd
    pid = osd.create_partition()
    gone = osd.create_and_write(pid, b"x" * 5000)
    with store.closed():
        store.files(gone).unlink()
    osd = store.osd
    lists = AttributeLists((AttributeId(PARTITION, 2), AttributeId(PARTITION, 6)))
    reply = check(osd.reply(rq.object_structure_check(pid, attributes=lists)), DAMAGED)
    assert reply.attribute(AttributeId(PARTITION, 2)).uint == DATA
    assert reply.attribute(AttributeId(PARTITION, 6)).uint == 1
    assert lost(osd, gone) == [(0, 5000)]
    osd.remove(gone)
    check(osd.reply(rq.object_structure_check()), OK)
    assert {2, 6}.isdisjoint(recovery(osd, ref(), ROOT))


def test_longer_than_it_says(store: Store) -> None:
    """Then the length is in doubt, which is an attribute."""
    osd = store.osd
    long = osd.create_and_write(osd.create_partition(), b"x" * 5000)
    with store.closed():
        os.truncate(store.files(long), 9000)
    assert damage_found(store.osd) == 1
    assert recovery(store.osd, long, USER)[1] == ATTRIBUTES
    reply = check(store.osd.reply(rq.read_map(long, 0, 64)), OK)
    kinds = [struct.unpack_from(">H", reply.data, at + 2)[0] for at in (8, 24)]
    assert kinds == [0x8000, 1]


def test_tail_and_head(make_harness: MakeHarness, tmp_path: Path) -> None:
    (tmp_path / "heads").mkdir()
    store = Store(make_harness(ssd=tmp_path / "heads"), tmp_path / "store", tmp_path / "heads")
    pid = store.osd.create_partition()
    tail, head = (store.osd.create_and_write(pid, b"x" * (HEAD + 9000)) for _ in range(2))
    with store.closed():
        os.truncate(store.files(tail, tail=True), 4000)
        os.truncate(store.files(head), 1000)
    assert damage_found(store.osd) == 2
    assert lost(store.osd, tail) == [(HEAD + 4000, 5000)]
    assert lost(store.osd, head) == [(1000, HEAD - 1000)]


def test_half_a_membership(store: Store) -> None:
    osd = store.osd
    pid = osd.create_partition()
    one, two = osd.create_collection(pid), osd.create_collection(pid)
    a, b = osd.create(pid), osd.create(pid)
    for obj, collection in ((a, one), (b, two)):
        joined = AttributeValue(4, 1, collection.object_id.to_bytes(8, "big"))
        osd.set_attributes(obj, [joined])

    with store.closed():
        store.lose("members.db", struct.pack(">QQ", one.object_id, a.object_id))
        store.lose("memberships.db", struct.pack(">QQ", b.object_id, two.object_id))
    osd = store.osd
    assert damage_found(osd) == 2
    assert recovery(osd, a, USER)[1] == ATTRIBUTES
    assert recovery(osd, two, COLLECTION)[1] == DATA
    assert recovery(osd, b, USER) == recovery(osd, one, COLLECTION) == {}


def test_attributes_of_nobody_and_missing_ones(store: Store) -> None:
    osd = store.osd
    pid = osd.create_partition()
    short, gone = osd.create(pid), osd.create(pid)
    for each in (short, gone):
        osd.set_attributes(each, [COLOUR, AttributeValue(Page.APPLICATION, 2, b"x")])

    with store.closed():
        colour = struct.pack(">QII", short.object_id, COLOUR.page, COLOUR.number)
        store.lose("attributes.db", colour)
        store.lose("objects.db", struct.pack(">Q", gone.object_id))
    osd = store.osd
    assert damage_found(osd, pid) == 2
    assert recovery(osd, short, USER)[1] == ATTRIBUTES
    partition = recovery(osd, ref(pid), PARTITION)
    assert (partition[1], partition[2], partition[6]) == (DATA, ATTRIBUTES, 1)


def test_lost_index_entry(store: Store) -> None:
    osd = store.osd
    pid = osd.create_partition()
    check(declare(osd, pid, COLOUR.page), OK)
    wait_until_ready(osd, pid, COLOUR.page)
    sound, lost_one = osd.create(pid), osd.create(pid)
    for each in (sound, lost_one):
        osd.set_attributes(each, [COLOUR])
    check(osd.reply(rq.object_structure_check(pid)), OK)
    with store.closed():
        store.lose("index.db", lost_one.object_id.to_bytes(8, "big"))
    osd = store.osd
    wait_until_ready(osd, pid, COLOUR.page)
    assert damage_found(osd, pid) == 1
    assert recovery(osd, lost_one, USER)[1] == ATTRIBUTES
    osd.set_attributes(lost_one, [COLOUR])
    check(osd.reply(rq.object_structure_check(pid)), OK)


def test_index_entry_of_nobody(store: Store) -> None:
    """Its attribute is gone: the object counts one too many, the partition's index says too much."""
    osd = store.osd
    pid = osd.create_partition()
    check(declare(osd, pid, COLOUR.page), OK)
    wait_until_ready(osd, pid, COLOUR.page)
    made = osd.create(pid)
    osd.set_attributes(made, [COLOUR])
    with store.closed():
        key = struct.pack(">QII", made.object_id, COLOUR.page, COLOUR.number)
        store.lose("attributes.db", key)
    osd = store.osd
    wait_until_ready(osd, pid, COLOUR.page)
    assert damage_found(osd, pid) == 2
    assert recovery(osd, made, USER)[1] == ATTRIBUTES
    assert recovery(osd, ref(pid), PARTITION)[1] == DATA
