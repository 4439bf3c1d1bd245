# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds what is wrong with the records of secret keys, without opening any."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from iosd_host.store_tools.check.problems import Problem, ProblemKind
from iosd_host.store_tools.format.keys import (
    SEAL_BYTES,
    KeyKind,
    KeyName,
    decode_identifier,
    decode_spans,
)
from iosd_host.store_tools.format.records import FormatError
from iosd_host.store_tools.opening.bdb import Table
from iosd_host.store_tools.opening.store import Life, Store

__all__ = ["check_keys", "has_seal"]


def check_keys(store: Store) -> Iterator[Problem]:
    """keys.db, and the file without which its keys are nothing."""
    sealed = has_seal(store)
    for key, value in store.db.walk(Table.KEYS):
        try:
            name = KeyName.decode(key)
            where, detail = str(name), record_damage(store, name, value)
        except FormatError as error:
            where, detail = f"keys.db {key.hex()}", str(error)
        else:
            if not detail and not sealed and name.kind is not KeyKind.NONCES:
                text = f"{name.kind.name.lower()} key"
                yield Problem(ProblemKind.KEY_WITHOUT_SEAL, where, text, Table.KEYS, key, value)
        if detail:
            yield Problem(ProblemKind.KEY_RECORD_DAMAGED, where, detail, Table.KEYS, key, value)


def has_seal(store: Store) -> bool:
    """Whether the file is there, as long as it must be."""
    path = store.roots.main.path / "seal"
    return path.is_file() and path.stat().st_size == SEAL_BYTES


def record_damage(store: Store, name: KeyName, value: bytes) -> str:
    """The fault; empty: none.  Raises: FormatError."""
    if name.kind is KeyKind.NONCES:
        spans = decode_spans(value)
        ordered = all(first <= last < 1 << 49 for first, last in spans)
        apart = all(a[1] < b[0] for a, b in itertools.pairwise(spans))
        if not ordered or not apart:
            return "times out of order"
    else:
        decode_identifier(value)
    if name.place.partition_id and store.life(name.place) is Life.UNKNOWN:
        return "no such partition"
    return ""
