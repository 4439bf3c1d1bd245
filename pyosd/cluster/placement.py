# SPDX-License-Identifier: GPL-2.0-or-later
"""The targets that hold an object, by rendezvous hashing, and the attributes of copies."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyosd.types import AttributeId, AttributeValue, Buffer, ObjectRef

PAGE = 0x0001_0001
"""The page of the attributes below."""
COPIES = AttributeId(PAGE, 1)
"""Attribute of each copy: JSON, the names of the targets that have one."""
SEAL = AttributeId(PAGE, 2)
"""Attribute of each copy: the bytes of its Seal."""
SEEN = AttributeId(PAGE, 3)
"""Attribute of a copy: the version of its data at which they were found to fit the seal."""
UNFINISHED = AttributeId(PAGE, 4)
"""Attribute of a copy that is being written by several commands."""
_SEAL = struct.Struct(">32sQ")


class Seal(NamedTuple):
    """The digest (SHA-256, 32 bytes) and the length of the data of a copy."""

    digest: bytes
    length: int

    @classmethod
    def of(cls, data: Buffer) -> Seal:
        """The seal of these data."""
        view = memoryview(data).cast("B")
        return cls(hashlib.sha256(view).digest(), len(view))

    def encode(self) -> AttributeValue:
        """The attribute: the digest, then the length, big-endian, 8 bytes."""
        return AttributeValue(*SEAL, _SEAL.pack(*self))

    @classmethod
    def decode(cls, value: bytes) -> Seal | None:
        """The seal in an attribute; None where it is undefined.  Raises: ValueError."""
        if not value:
            return None
        if len(value) != _SEAL.size:
            raise ValueError(f"the seal of a copy has {_SEAL.size} bytes, not {len(value)}")
        return cls(*_SEAL.unpack(value))


@dataclass(frozen=True)
class Copies:
    """An object, with the names of the targets that have copies of it; the preferred target is first."""

    object: ObjectRef
    targets: tuple[str, ...]


def place(obj: ObjectRef, targets: Iterable[str], copies: int) -> tuple[str, ...]:
    """The targets for the copies of an object: those with the highest hash of name and object.

    A target that comes or goes moves only the copies that it gets or had.

    Raises: ValueError: copies is below 1, or there are fewer targets; a name occurs twice.
    """
    names = list(targets)
    if len({*names}) != len(names):
        raise ValueError("each target needs a name of its own")
    check_copies(copies, len(names))
    ids = b"%016x%016x" % (obj.partition_id, obj.object_id)
    ranked = sorted(names, key=lambda name: hashlib.sha256(ids + name.encode()).digest())
    return tuple(reversed(ranked[-copies:]))


def check_copies(copies: int, targets: int) -> None:
    """Raises: ValueError: so many targets cannot have so many copies of an object."""
    if not 1 <= copies <= targets:
        raise ValueError(
            f"{copies} copies: with {targets} targets there are 1 to {targets}, each at another one"
        )


def encode_copies(targets: Iterable[str]) -> AttributeValue:
    """The attribute that names the copies."""
    return AttributeValue(*COPIES, json.dumps([*targets]).encode())


@contextmanager
def said_of(what: str) -> Iterator[None]:
    """Name the target and the object in an error about an attribute.  Raises: ValueError."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None


def decode_json(value: bytes) -> Any:
    """The JSON in an attribute.  Raises: ValueError: it is none, or is nested too deep."""
    try:
        return json.loads(value)
    except RecursionError:
        raise ValueError("the JSON in an attribute is nested too deep") from None
    except ValueError as error:
        raise ValueError(f"an attribute of page {PAGE:#x} is no JSON: {error}") from None


def decode_copies(value: bytes) -> tuple[str, ...]:
    """The names in that attribute; () where it is undefined.

    Raises: ValueError: somebody wrote something else there.
    """
    if not value:
        return ()
    names = decode_json(value)
    if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
        raise ValueError("the attribute that names copies is no list of names")
    return tuple(names)
