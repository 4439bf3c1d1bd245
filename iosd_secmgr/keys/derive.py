# SPDX-License-Identifier: GPL-2.0-or-later
"""How keys come from keys: seeds, and the Diffie-Hellman exchange of SET MASTER KEY.

Pure arithmetic of docs/security-protocol.md, section Keys.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from iosd_secmgr.keys.dh_groups import PRIMES
from pyosd.wire.capability import Algorithm, mac

KEY_LENGTH = 32
SEED_LENGTH = 20
IDENTIFIER_LENGTH = 7
GENERATOR = 2
EXPONENT_BITS = 256


@dataclass(frozen=True)
class KeyPair:
    """The two parts of a key; of a working key, only the first is there."""

    authentication: bytes = field(repr=False)
    generation: bytes = field(repr=False, default=b"")


def flipped(seed: bytes) -> bytes:
    """The seed with the lowest bit of its last byte inverted."""
    return seed[:-1] + bytes((seed[-1] ^ 1,))


def from_seed(parent: KeyPair, seed: bytes, algorithm: Algorithm) -> KeyPair:
    """Keys that SET KEY derives from a seed."""
    return KeyPair(
        authentication=mac(parent.generation, flipped(seed), algorithm=algorithm),
        generation=mac(parent.generation, seed, algorithm=algorithm),
    )


def from_secret(old: KeyPair, secret: bytes, system_id: bytes, algorithm: Algorithm) -> KeyPair:
    """Keys that SET MASTER KEY derives from g^xy."""
    return KeyPair(
        authentication=mac(old.generation, flipped(secret), system_id, algorithm=algorithm),
        generation=mac(old.generation, secret, system_id, algorithm=algorithm),
    )


class Exchange:
    """Our half of a Diffie-Hellman exchange."""

    def __init__(self, group: int) -> None:
        self._prime = PRIMES[group]
        self._exponent = secrets.randbits(EXPONENT_BITS) | 1 << EXPONENT_BITS - 1
        self.length = self._prime.bit_length() // 8
        public = pow(GENERATOR, self._exponent, self._prime)
        self.public = public.to_bytes(self.length, "big")

    def secret(self, theirs: bytes) -> bytes:
        """g^xy, as long as the prime.  Raises: ValueError: what they sent is no good."""
        value = int.from_bytes(theirs, "big")
        if len(theirs) > self.length or not 1 < value < self._prime - 1:
            raise ValueError("the target's Diffie-Hellman value is out of range")
        return pow(value, self._exponent, self._prime).to_bytes(self.length, "big")
