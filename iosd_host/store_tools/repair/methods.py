# SPDX-License-Identifier: GPL-2.0-or-later
"""Security methods: a partition that repair makes, or whose attributes are lost, opens to nobody.

A root or partition without a method is served without capabilities (docs/security.md, section 10).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from iosd_host.store_tools.check.keys import has_seal
from iosd_host.store_tools.format.keys import KeyKind, KeyName
from iosd_host.store_tools.format.records import AttributeKey, FormatError, PartitionRecord, Place
from iosd_host.store_tools.opening.bdb import StoreTransaction, Table
from iosd_host.store_tools.opening.store import Store

__all__ = ["close", "set_lost_methods"]

ROOT_PAGE, PARTITION_PAGE = 0x9000_0005, 0x3000_0005
METHOD, INSIDE_METHOD = 1, 6  # INSIDE_METHOD: of new partitions
CAPKEY, ALLDATA = 1, 3


def strictest(store: Store) -> int:
    """Of the root, of new partitions and of all partitions; 0: all of them are NOSEC."""
    return max(_method(store, each) for each in _keys(store))


def close(store: Store, transaction: StoreTransaction, place: Place) -> None:
    """Give a partition that has no method the strictest of the store: its objects may be of any other."""
    key = AttributeKey(place, PARTITION_PAGE, METHOD)
    if (method := strictest(store)) and not _method(store, key):
        transaction.put(Table.ATTRIBUTES, key.encode(), bytes([method]))


def set_lost_methods(store: Store) -> int:
    """After a loss of attributes: give the root and each partition without a method the strictest that
    is left, at least CAPKEY unless the store was served as NOSEC.  Returns: how many."""
    method = max(strictest(store), CAPKEY if has_credentials(store) else 0)
    open_ones = [each for each in _keys(store) if method and not _method(store, each)]
    with store.db.transaction() as transaction:
        for key in open_ones:
            transaction.put(Table.ATTRIBUTES, key.encode(), bytes([method]))
    return len({each.place for each in open_ones})


def has_credentials(store: Store) -> bool:
    """Whether somebody has made credentials: there is a root key, or all keys are lost, too.  A store that
    is served as NOSEC has a master key alone."""
    kinds = set()
    for key, _ in store.db.walk(Table.KEYS):
        with contextlib.suppress(FormatError):
            kinds.add(KeyName.decode(key).kind)
    return KeyKind.ROOT in kinds or (not kinds and has_seal(store))


def _keys(store: Store) -> Iterator[AttributeKey]:
    """Of the methods of the root and of the partitions in use."""
    for number in (METHOD, INSIDE_METHOD):
        yield AttributeKey(Place(0, store.epoch), ROOT_PAGE, number)
    for epoch, partition_id, value in store.partition_keys():
        try:
            record = PartitionRecord.decode(value)
        except FormatError:
            continue
        if epoch == store.epoch:
            yield AttributeKey(Place(partition_id, record.incarnation), PARTITION_PAGE, METHOD)


def _method(store: Store, key: AttributeKey) -> int:
    value = int.from_bytes(store.db.get(Table.ATTRIBUTES, key.encode()) or b"", "big")
    return min(value, ALLDATA)
