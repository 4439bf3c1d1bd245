# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds memberships that collection and member do not tell alike."""

from __future__ import annotations

from collections.abc import Iterator

from iosd_host.store_tools.check.problems import Problem, ProblemKind
from iosd_host.store_tools.format.records import FormatError, MemberKey, Place, RecordType
from iosd_host.store_tools.opening.bdb import Table
from iosd_host.store_tools.opening.store import Life, Store, StoreProgress

__all__ = ["check_members", "check_memberships"]

TELL_EVERY = 1024


class Kept:
    """Whether the object asked for last is there and of a type: neighbours ask for the same."""

    def __init__(self, store: Store, kind: RecordType) -> None:
        self._store, self._kind = store, kind
        self._place: Place | None = None
        self._there = False

    def has(self, place: Place) -> bool:
        """Whether there is such an object."""
        if place != self._place:
            self._place = place
            self._there = self._store.intact(place, self._kind) is not None
        return self._there

    def assume(self, place: Place) -> None:
        """It will be there."""
        self._place, self._there = place, True


def collection_to_be(store: Store, place: Place) -> bool:
    """A collection that is there, or whose mark will bring it back."""
    if store.intact(place, RecordType.COLLECTION) is not None:
        return True
    marked = store.db.get(Table.MEMBERS, MemberKey(place, 0).encode()) is not None
    return marked and store.intact(place, RecordType.USER_OBJECT) is None


def parsed(
    store: Store, table: Table, section: str, progress: StoreProgress
) -> Iterator[tuple[MemberKey, bytes] | Problem]:
    """Keys and values of partitions in use; a key that is none as the problem it is."""
    total = store.db.count(table)
    for number, (key, value) in enumerate(store.db.walk(table)):
        if number % TELL_EVERY == 0:
            progress(section, number, total)
        try:
            membership = MemberKey.decode(key)
        except FormatError as error:
            where = f"{table.value} {key.hex()}"
            yield Problem(ProblemKind.KEY_DAMAGED, where, str(error), table, key, value)
            continue
        if store.life(membership.place) is not Life.DEAD:
            yield membership, value


def check_members(store: Store, progress: StoreProgress) -> Iterator[Problem]:
    """members.db: from each collection to its members."""
    collections = Kept(store, RecordType.COLLECTION)
    for found in parsed(store, Table.MEMBERS, "members", progress):
        if isinstance(found, Problem):
            yield found
            continue
        key, _ = found
        where = f"{key.place} member {key.other_id:#x}"

        def problem(
            kind: ProblemKind, detail: str = "", key: MemberKey = key, at: str = where
        ) -> Problem:
            return Problem(kind, at, detail, Table.MEMBERS, key.encode(), key)

        if not collections.has(key.place):
            if key.other_id == 0 and store.life(key.place) is Life.LIVE:
                yield problem(ProblemKind.MARK_STALE)
                if store.intact(key.place, RecordType.USER_OBJECT) is None:
                    collections.assume(key.place)
            else:
                yield problem(ProblemKind.MEMBER_STALE, "no such collection")
        elif key.other_id == 0:
            continue
        elif store.intact(key.turned().place, RecordType.USER_OBJECT) is None:
            yield problem(ProblemKind.MEMBER_STALE, "no such member")
        elif store.db.get(Table.MEMBERSHIPS, key.turned().encode()) is None:
            yield problem(ProblemKind.MEMBER_ONE_WAY)


def check_memberships(store: Store, progress: StoreProgress) -> Iterator[Problem]:
    """memberships.db: from each user object to its collections."""
    members = Kept(store, RecordType.USER_OBJECT)
    last: Place | None = None
    numbers: set[int] = set()
    for found in parsed(store, Table.MEMBERSHIPS, "memberships", progress):
        if isinstance(found, Problem):
            yield found
            continue
        key, value = found
        where = f"{key.place} in {key.other_id:#x}"

        def problem(
            kind: ProblemKind, detail: str = "", key: MemberKey = key, at: str = where
        ) -> Problem:
            return Problem(kind, at, detail, Table.MEMBERSHIPS, key.encode(), key)

        if key.place != last:
            last, numbers = key.place, set()
        if not members.has(key.place):
            yield problem(ProblemKind.MEMBER_STALE, "no such object")
        elif not collection_to_be(store, key.turned().place):
            yield problem(ProblemKind.MEMBER_STALE, "no such collection")
        elif store.db.get(Table.MEMBERS, key.turned().encode()) is None:
            yield problem(ProblemKind.MEMBERSHIP_ONE_WAY)
        number = int.from_bytes(value, "big")
        if len(value) != 4 or number in numbers:
            detail = f"{number:#x} of {len(value)} bytes"
            yield problem(ProblemKind.MEMBERSHIP_NUMBER, detail)
        elif number:
            numbers.add(number)
