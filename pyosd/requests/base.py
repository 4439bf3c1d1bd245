# SPDX-License-Identifier: GPL-2.0-or-later
"""Common parts of the builders of requests."""

from __future__ import annotations

import struct
from typing import TypedDict, Unpack

from pyosd.types import Buffer, ObjectRef
from pyosd.wire.attributes import DATA_VERSION, MEMBERS_VERSION
from pyosd.wire.cdb import CAPABILITY_LENGTH, Attributes, Descriptor, Options, Request

IMMED_TR = 0x80
_EXTENSION_CAPABILITIES = 0xFFEE
_PRECONDITION = 0xF082
_VERSION_BYTES = 12
_ENTRY = struct.Struct(">II6xH12s4x")


class Extra(TypedDict, total=False):
    """Common arguments of all commands."""

    attributes: Attributes
    options: Options


def nbytes(data: Buffer) -> int:
    """Bytes in a buffer of any item size."""
    return memoryview(data).nbytes


def on(
    action: int,
    obj: ObjectRef,
    length: int = 0,
    address: int = 0,
    descriptors: tuple[Descriptor, ...] = (),
    **extra: Unpack[Extra],
) -> Request:
    """The commonest shape: an object, perhaps a length and an address, no data of its own."""
    return Request(
        action, obj.partition_id, obj.object_id, length, address, descriptors=descriptors, **extra
    )


def precondition(
    if_version: bytes | None = None, if_members: bytes | None = None
) -> tuple[Descriptor, ...]:
    """That the object has this version, as an attribute has shown it; None: any.

    Args: if_version: of a user object's data.  if_members: of a collection's members.
    Raises: ValueError: it is no version, or there are two.
    """
    if if_version is not None and if_members is not None:
        raise ValueError("if_version is for user objects, if_members for collections")
    wanted = if_members if if_version is None else if_version
    if wanted is None:
        return ()
    if len(wanted) != _VERSION_BYTES:
        raise ValueError(f"a version has {_VERSION_BYTES} bytes, not {len(wanted)}")
    attribute = MEMBERS_VERSION if if_version is None else DATA_VERSION
    entry = _ENTRY.pack(*attribute, _VERSION_BYTES, wanted)
    return (Descriptor(_PRECONDITION, entry),)


def extension_capabilities(
    capabilities: bytes = bytes(CAPABILITY_LENGTH),
) -> Descriptor:
    """Capabilities for objects other than the CDB's; all zero where security is off."""
    return Descriptor(_EXTENSION_CAPABILITIES, capabilities)
