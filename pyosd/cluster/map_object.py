# SPDX-License-Identifier: GPL-2.0-or-later
"""The map of a partition: an object at each target whose attribute names the targets.

The map has a version, which grows by one with each change.  It is changed by one command that
compares the value before, so two clients never overwrite each other's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from pyosd.cluster.placement import PAGE, decode_json
from pyosd.errors import Exists, NotFound
from pyosd.target import Target
from pyosd.types import AttributeId, ObjectId, PartitionId, ref

__all__ = ["MAP", "MEMBERS", "ClusterMap", "MapConflict", "read_map", "write_map"]

MAP = ObjectId(0x2000_0000_0000_0001)
"""Object id of the map in its partition; put() never picks it."""
MEMBERS = AttributeId(PAGE, 5)
"""Attribute of that object: JSON, the version and the names of the targets."""
VERSION_MOST = (1 << 53) - 1
"""No count reaches it, and all readers of JSON can read it."""


class MapConflict(Exception):
    """The map of a partition names other targets than expected; the text says which."""


@dataclass(frozen=True)
class ClusterMap:
    """The targets over which the objects of a partition are placed.

    version: at least 1; the map with the highest version counts.  targets: their names, sorted.
    """

    version: int
    targets: tuple[str, ...]

    def encode(self) -> bytes:
        """The value of the attribute."""
        return json.dumps({"version": self.version, "targets": [*self.targets]}).encode()

    @classmethod
    def decode(cls, value: bytes) -> ClusterMap:
        """The map in an attribute.  Raises: ValueError: it is no map."""
        found = decode_json(value)
        version, targets = (
            (found.get("version"), found.get("targets")) if isinstance(found, dict) else (0, ())
        )
        if type(version) is not int or not 1 <= version <= VERSION_MOST:
            raise ValueError("the map of the partition has no version")
        if not isinstance(targets, list) or not all(isinstance(each, str) for each in targets):
            raise ValueError("the map of the partition does not name targets")
        return cls(version, tuple(targets))

    def after(self, names: Iterable[str]) -> ClusterMap:
        """The map that follows this one, with these targets.

        Raises: MapConflict: no version follows, so this one was not made by counting.
        """
        if self.version >= VERSION_MOST:
            raise MapConflict(f"a target has a map of version {self.version}: remove that map")
        return ClusterMap(self.version + 1, tuple(sorted(names)))


def _value(target: Target, partition_id: int) -> bytes:
    try:
        return target.get_attribute(ref(partition_id, MAP), *MEMBERS)
    except NotFound:
        return b""


def read_map(target: Target, partition_id: int) -> ClusterMap | None:
    """The map as this target has it; None: it has none.

    Raises: ValueError: something else is there; OSDError.
    """
    value = _value(target, partition_id)
    return ClusterMap.decode(value) if value else None


def write_map(target: Target, partition_id: int, new: ClusterMap) -> None:
    """Give a target this map, unless it has it.

    Raises: MapConflict: the target has this version with other targets, or a later one; NotFound: it
        has no such partition; OSDError.
    """
    obj = ref(partition_id, MAP)
    while True:
        before = _value(target, partition_id)
        if before == new.encode():
            return
        if before and ClusterMap.decode(before).version >= new.version:
            raise MapConflict(f"another client has changed the map: {before.decode()}")
        if not before:
            try:
                target.create(PartitionId(partition_id), MAP)
            except Exists:
                pass
        if target.swap_attribute(obj, MEMBERS, before, new.encode()) == before:
            return
