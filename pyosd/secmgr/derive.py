# SPDX-License-Identifier: GPL-2.0-or-later
"""How keys come from keys: seeds, and the Diffie-Hellman exchange of SET MASTER KEY.

Pure arithmetic of docs/security-protocol.md, section Keys.
"""

from __future__ import annotations

import functools
import secrets
from dataclasses import dataclass, field

from pyosd.credentials import Algorithm, mac

KEY_LENGTH = 32
SEED_LENGTH = 20
IDENTIFIER_LENGTH = 7
GROUPS = {14: (2048, 124476), 15: (3072, 1690314)}
"""Group of RFC 3526 -> bits, and the number added to pi in the formula of its prime."""
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
    """What SET KEY makes of a seed."""
    return KeyPair(
        authentication=mac(parent.generation, flipped(seed), algorithm=algorithm),
        generation=mac(parent.generation, seed, algorithm=algorithm),
    )


def from_secret(old: KeyPair, secret: bytes, system_id: bytes, algorithm: Algorithm) -> KeyPair:
    """What SET MASTER KEY makes of g^xy."""
    return KeyPair(
        authentication=mac(old.generation, flipped(secret), system_id, algorithm=algorithm),
        generation=mac(old.generation, secret, system_id, algorithm=algorithm),
    )


@functools.cache
def prime(group: int) -> int:
    """p = 2^n - 2^(n-64) - 1 + 2^64 ([2^(n-130) pi] + k), RFC 3526."""
    bits, added = GROUPS[group]
    return (1 << bits) - (1 << bits - 64) - 1 + (_pi(bits - 130) + added << 64)


def _pi(bits: int) -> int:
    """Its integer part times 2^bits, by Machin's formula."""
    guard = 64
    one = 1 << bits + guard

    def arctan_inverse(x: int) -> int:
        power = total = one // x
        n, sign = 3, -1
        while power:
            power //= x * x
            total += sign * (power // n)
            n, sign = n + 2, -sign
        return total

    return 4 * (4 * arctan_inverse(5) - arctan_inverse(239)) >> guard


class Exchange:
    """Our half of a Diffie-Hellman exchange."""

    def __init__(self, group: int) -> None:
        self._prime = prime(group)
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
