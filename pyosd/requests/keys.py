# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests that change the target's keys: SET KEY, SET MASTER KEY."""

from __future__ import annotations

import struct
from typing import Unpack

from pyosd.requests.base import Extra
from pyosd.wire.cdb import Request, ServiceAction

_DH_SEED, _DH_CHANGE = 0, 1
_DH_LENGTH = 4


def set_key(
    key_to_set: int,
    partition_id: int,
    key_version: int,
    key_identifier: bytes,
    seed: bytes,
    **extra: Unpack[Extra],
) -> Request:
    """SET KEY (8898h): identifier 7 bytes, seed 20 bytes."""
    if len(key_identifier) != 7 or len(seed) != 20:
        raise ValueError("SET KEY takes a 7-byte key identifier and a 20-byte seed")
    length, address, tail = struct.unpack(">QQI", seed)
    return Request(
        ServiceAction.SET_KEY,
        partition_id,
        int.from_bytes(bytes([key_version]) + key_identifier, "big"),
        length,
        address,
        word48=tail,
        bits11=key_to_set,
        **extra,
    )


def set_master_key_seed(
    group: int, key_identifier: bytes, dh_data: bytes, **extra: Unpack[Extra]
) -> Request:
    """SET MASTER KEY (8899h), seed exchange: g^x mod p out, g^y mod p in, each as long as p."""
    room = _DH_LENGTH + len(dh_data)
    return _set_master_key(_DH_SEED, group, key_identifier, dh_data, room, **extra)


def set_master_key_change(
    group: int, key_identifier: bytes, dh_data: bytes, target_dh_data: bytes, **extra: Unpack[Extra]
) -> Request:
    """SET MASTER KEY (8899h), change master key: both values of the exchange once more."""
    values = (dh_data, target_dh_data)
    data = b"".join(len(each).to_bytes(_DH_LENGTH, "big") + each for each in values)
    return _set_master_key(_DH_CHANGE, group, key_identifier, data, 0, **extra)


def _set_master_key(
    step: int, group: int, key_identifier: bytes, data: bytes, room: int, **extra: Unpack[Extra]
) -> Request:
    if len(key_identifier) != 7 or not 0 <= group <= 0xFF:
        raise ValueError("SET MASTER KEY takes a group of one byte and a 7-byte key identifier")
    return Request(
        ServiceAction.SET_MASTER_KEY,
        object_id=int.from_bytes(bytes([group]) + key_identifier, "big"),
        length=len(data) << 32 | room,  # 32 PARAMETER LIST LENGTH, 36 ALLOCATION LENGTH
        bits11=step,
        data=data,
        data_in_length=room,
        **extra,
    )
