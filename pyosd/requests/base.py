# SPDX-License-Identifier: GPL-2.0-or-later
"""Common parts of the builders of requests."""

from __future__ import annotations

import struct
from typing import TypedDict, Unpack

from pyosd.types import Buffer, ObjectRef
from pyosd.wire.attributes import DATA_VERSION
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
    action: int, obj: ObjectRef, length: int = 0, address: int = 0, **extra: Unpack[Extra]
) -> Request:
    """The commonest shape: an object, perhaps a length and an address, no data of its own."""
    return Request(action, obj.partition_id, obj.object_id, length, address, **extra)


def precondition(if_version: bytes | None) -> tuple[Descriptor, ...]:
    """That the data have this version, as an attribute of the object has shown it; None: any.

    Raises: ValueError: it is no version.
    """
    if if_version is None:
        return ()
    if len(if_version) != _VERSION_BYTES:
        raise ValueError(f"a data version has {_VERSION_BYTES} bytes, not {len(if_version)}")
    entry = _ENTRY.pack(*DATA_VERSION, _VERSION_BYTES, if_version)
    return (Descriptor(_PRECONDITION, entry),)


def extension_capabilities(
    capabilities: bytes = bytes(CAPABILITY_LENGTH),
) -> Descriptor:
    """Capabilities for objects other than the CDB's; all zero where security is off."""
    return Descriptor(_EXTENSION_CAPABILITIES, capabilities)
