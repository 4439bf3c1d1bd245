# SPDX-License-Identifier: GPL-2.0-or-later
"""Damages to files of a store: superblocks, those of the database, data files."""

from __future__ import annotations

import os
from dataclasses import replace

from iosd_host.store_tools.format.file_names import FileName
from iosd_host.store_tools.format.records import ALL, Place
from iosd_host.store_tools.opening.bdb import Table
from tests.offline.damage import (
    change,
    damage,
    head_file,
)
from tests.offline.stores import FIRST, HEAD, Store


@damage("superblock-damaged")
def a_byte_of_the_superblock(store: Store) -> None:
    path = store.data / "superblock"
    data = bytearray(path.read_bytes())
    data[70] ^= 0xFF
    path.write_bytes(data)


@damage("superblock-damaged")
def superblock_zeroed(store: Store) -> None:
    (store.data / "superblock").write_bytes(bytes(512))


@damage("superblock-damaged")
def superblock_removed(store: Store) -> None:
    (store.data / "superblock").unlink()


@damage("superblock-damaged", two_roots=True)
def superblock_of_the_ssd_cut(store: Store) -> None:
    assert store.ssd is not None
    os.truncate(store.ssd / "superblock", 100)


@damage("superblock-damaged", two_roots=True)
def both_superblocks_gone(store: Store) -> None:
    for root in store.roots:
        (root / "superblock").unlink()


@damage("store-ids-differ", two_roots=True)
def another_store_id_on_the_ssd(store: Store) -> None:
    from iosd_host.store_tools.format.superblock import Superblock

    assert store.ssd is not None
    path = store.ssd / "superblock"
    block = Superblock.decode(path.read_bytes())
    path.write_bytes(replace(block, store_id=b"x" * 16).encode())


@damage("log-damaged")
def log_of_zeros(store: Store) -> None:
    for path in (store.data / "db").glob("log.*"):
        path.write_bytes(bytes(path.stat().st_size))


@damage("table-missing", changed=lambda names: [names.member, names.other, names.collection])
def table_removed(store: Store) -> None:
    (store.data / "db" / "memberships.db").unlink()


@damage("table-damaged", changed=lambda names: [names.member, names.other])
def page_of_a_table_spoiled(store: Store) -> None:
    path = store.data / "db" / "memberships.db"
    data = bytearray(path.read_bytes())
    data[8192 + 20 : 8192 + 26] = b"\xff" * 6
    path.write_bytes(data)


# ---- data files


@damage("files-missing", changed=lambda names: [names.plain], lossy=True)
def file_removed(store: Store) -> None:
    head_file(store, store.names.plain).unlink()


@damage("file-short", changed=lambda names: [names.plain], lossy=True)
def file_cut(store: Store) -> None:
    os.truncate(head_file(store, store.names.plain), 77)


@damage("file-long", changed=lambda names: [names.plain])
def file_grown(store: Store) -> None:
    with head_file(store, store.names.plain).open("ab") as file:
        file.write(b"more of it")


@damage("orphan-file")
def file_of_nobody(store: Store) -> None:
    name = FileName(Place(FIRST, 1, 0x77777), 0x1_0000_0042, False)
    path = store.data / "data" / name.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"whose is it")


@damage("orphan-file")
def files_of_a_partition_that_never_was(store: Store) -> None:
    for generation in (1, 2):
        name = FileName(Place(0x5_0000, 9, 0x10000), generation, False)
        path = store.data / "data" / name.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"generation %d" % generation)


@damage("stray-file")
def files_that_are_none(store: Store) -> None:
    (store.data / "data" / "core").write_bytes(b"dumped")
    (store.data / "data" / "a" / "b").mkdir(parents=True)
    (store.data / "data" / "a" / "b" / "c d").write_bytes(b"deep")


@damage("orphan-file")
def a_tail_of_an_object_without(store: Store) -> None:
    name = FileName(store.place(store.names.plain), 0x1_0000_0099, True)
    path = store.data / "data" / name.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"only a tail")


@damage("head-lost", changed=lambda names: [names.long], lossy=True, two_roots=True)
def head_removed(store: Store) -> None:
    head_file(store, store.names.long).unlink()


@damage("head-lost", changed=lambda names: [names.long], lossy=True, two_roots=True)
def head_cut(store: Store) -> None:
    os.truncate(head_file(store, store.names.long), 4096)


@damage("head-lost", two_roots=True)
def head_size_too_high(store: Store) -> None:
    change(store, store.names.long, head_bytes=HEAD * 4)


@damage("head-long", two_roots=True)
def head_size_too_low(store: Store) -> None:
    change(store, store.names.long, head_bytes=HEAD // 2)


@damage("head-lost", two_roots=True)
def head_size_all(store: Store) -> None:
    change(store, store.names.long, head_bytes=ALL)


@damage("head-elsewhere", two_roots=True)
def head_in_the_other_root(store: Store) -> None:
    change(store, store.names.plain, head_on=1)


@damage("file-short", changed=lambda names: [names.long], lossy=True, two_roots=True)
def tail_removed(store: Store) -> None:
    head_file(store, store.names.long, True).unlink()


@damage("orphan-file", changed=lambda names: [names.long], two_roots=True)
def record_of_head_and_tail_removed(store: Store) -> None:
    store.remove(Table.OBJECTS, store.place(store.names.long).encode())
