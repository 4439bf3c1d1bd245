# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands that change the target's keys.

The head of unit.py says what every method raises.
"""

from __future__ import annotations

from pyosd import requests
from pyosd.commands.dialogue import Dialogue, call
from pyosd.errors import ProtocolError
from pyosd.security.credentials import Credential
from pyosd.wire.capability import KeyLevel

_DH_LENGTH = 4


def set_key(
    level: KeyLevel,
    partition_id: int,
    seed: bytes,
    identifier: bytes,
    version: int = 0,
    *,
    credential: Credential | None = None,
) -> Dialogue[None]:
    """Let the target derive a new key from a seed (SET KEY, 8898h); the keys below it become invalid.

    Args:
        partition_id: of the key; 0: the root key, and the keys of partition zero.
        seed: 20 bytes.
        identifier: 7 bytes that name the key on the security pages.
        version: of a working key, 0 to 15.
        credential: signed as docs/security-protocol.md says.
    """
    request = requests.set_key(level, partition_id, version, identifier, seed)
    yield from call(request, credential=credential)


def set_master_key_seed(
    group: int, identifier: bytes, dh: bytes, *, credential: Credential | None = None
) -> Dialogue[bytes]:
    """First half of a new master key (SET MASTER KEY, 8899h): exchange Diffie-Hellman values.

    Args:
        group: number of the group, see root attributes 9000_0005h, #8000_0010h and following.
        dh: g^x mod p, as long as p.

    Returns: the target's g^y mod p.
    """
    request = requests.set_master_key_seed(group, identifier, dh)
    data = bytes((yield from call(request, credential=credential)).data)
    value = data[_DH_LENGTH : _DH_LENGTH + int.from_bytes(data[:_DH_LENGTH], "big")]
    if len(value) != len(dh):
        raise ProtocolError("the target's Diffie-Hellman value is not as long as ours")
    return value


def set_master_key_change(
    group: int,
    identifier: bytes,
    dh: bytes,
    target_dh: bytes,
    *,
    credential: Credential | None = None,
) -> Dialogue[None]:
    """Second half: use the key that both values give.  Same session, within 10 s.

    Args:
        dh, target_dh: the values of the first half.
        credential: signed with the new key.
    """
    request = requests.set_master_key_change(group, identifier, dh, target_dh)
    yield from call(request, credential=credential)
