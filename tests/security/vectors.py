# SPDX-License-Identifier: GPL-2.0-or-later
"""Golden vectors of docs/security-protocol.md, computed from its sentences by hmac and hashlib alone.

``python -m tests.security.vectors`` writes vectors.json and, for the target's tests, vectors.txt (name and
hexadecimal value a line) beside this file.  Nothing here comes from pyosd or the target, so that neither
checks itself.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from pathlib import Path

FOLDER = Path(__file__).parent
HASHES = {"sha256": hashlib.sha256, "sha1": hashlib.sha1}


def pattern(seed: int, length: int) -> bytes:
    """Bytes that do not repeat for long."""
    return bytes((seed * 31 + 7 * each + each * each // 3) & 0xFF for each in range(length))


def arctan(inverse: int, unity: int) -> int:
    """unity * arctan(1 / inverse)."""
    total = term = unity // inverse
    divisor, sign = 3, -1
    while term:
        term //= inverse * inverse
        total += sign * (term // divisor)
        divisor, sign = divisor + 2, -sign
    return total


def prime(bits: int, pi_bits: int, addend: int) -> int:
    """RFC 3526: 2^bits - 2^(bits - 64) - 1 + 2^64 * ([2^pi_bits pi] + addend)."""
    unity = 1 << (pi_bits + 64)
    pi = 4 * (4 * arctan(5, unity) - arctan(239, unity)) >> 64
    return (1 << bits) - (1 << bits - 64) - 1 + (pi + addend << 64)


def mac(name: str, key: bytes, *parts: bytes) -> bytes:
    """A check value: 32 bytes, the end zero where the hash is shorter."""
    return hmac.new(key, b"".join(parts), HASHES[name]).digest().ljust(32, b"\0")


def be(value: int, width: int) -> bytes:
    """Big-endian."""
    return value.to_bytes(width, "big")


def derived(name: str, parent: bytes, seed: bytes, suffix: bytes = b"") -> dict[str, bytes]:
    """The two parts of a key."""
    inverted = seed[:-1] + bytes([seed[-1] ^ 1])
    return {
        "generation": mac(name, parent, seed, suffix),
        "authentication": mac(name, parent, inverted, suffix),
    }


SECRET = pattern(1, 32)
SYSTEM_ID = pattern(2, 20)
TOKEN = pattern(3, 16)
NONCE = be(1_780_000_000_123, 6) + pattern(4, 6)
DATA, SETS, GETS, RETRIEVED = pattern(5, 1000), pattern(6, 48), pattern(7, 24), pattern(8, 130)
SENSE = b"\x72\x05\x24\x00\0\0\0\x36" + b"\x07\x1e" + bytes(30) + pattern(9, 22)
PAGE = b"\xff\xff\xff\xfe\0\0\0\x44" + bytes(32) + pattern(10, 36)
CONTINUATION = b"\x02\0\x88\x06\0\0\0\0" + bytes(32) + pattern(11, 40)
GENERATION, SEED = pattern(12, 32), pattern(13, 20)
DH_X, DH_Y = pattern(14, 64), pattern(15, 64)
INPUTS = {
    "secret": SECRET,
    "system_id": SYSTEM_ID,
    "token": TOKEN,
    "nonce": NONCE,
    "data": DATA,
    "set_list": SETS,
    "get_list": GETS,
    "retrieved": RETRIEVED,
    "sense": SENSE,
    "page": PAGE,
    "continuation": CONTINUATION,
    "parent_generation": GENERATION,
    "seed": SEED,
    "dh_x": DH_X,
    "dh_y": DH_Y,
}


def capability(algorithm: int, method: int) -> bytes:
    """104 bytes, and what is where."""
    return (
        bytes((0x02, 5 << 4 | algorithm, method, 0))
        + be(1_790_000_000_000, 6)
        + pattern(20, 20)  # audit
        + pattern(21, 12)  # discriminator
        + be(0, 6)  # created
        + b"\x80"  # user object
        + b"\xc0\0\0\0\0"  # READ, WRITE
        + b"\0\x10"  # object descriptor type
        + be(0, 4)  # attributes access
        + be(77, 4)  # policy access tag
        + be(3, 2)  # boot epoch
        + bytes(6)
        + be(0x10000, 8)
        + be(0x10001, 8)
        + be(4096, 8)
        + be(512, 8)
    )


def cdb(granted: bytes) -> bytes:
    """A WRITE, its check value still zero."""
    head = b"\x7f" + bytes(6) + b"\xe4\x88\x06\x00\x30" + bytes(4)
    body = (
        be(0x10000, 8) + be(0x10001, 8) + be(len(DATA), 8) + be(512, 8) + be(len(CONTINUATION), 4)
    )
    start = (head + body).ljust(80, b"\0") + granted
    return start + bytes(32) + NONCE + be(64, 4) + be(4096 >> 8, 4)


def of_algorithm(index: int, name: str) -> dict[str, bytes]:
    """Everything that a hash function makes."""
    found: dict[str, bytes] = {}
    granted = capability(index, 1)
    key = mac(name, SECRET, granted, SYSTEM_ID)
    found |= {"capkey.capability": granted, "capkey.capability_key": key}
    found["capkey.request"] = mac(name, key, TOKEN)
    granted = capability(index, 3)
    key = mac(name, SECRET, granted, SYSTEM_ID)
    request = cdb(granted)
    found |= {"capability": granted, "capability_key": key, "cdb": request}
    found["request"] = mac(name, key, request)
    found["continuation"] = mac(name, key, NONCE, CONTINUATION)
    lengths = be(len(DATA), 8) + be(len(SETS), 8) + be(len(GETS), 8)
    found["data_out"] = lengths + mac(name, key, NONCE, DATA, SETS, GETS, lengths)
    lengths = be(len(DATA), 8) + be(len(RETRIEVED), 8)
    found["data_in"] = lengths + mac(name, key, NONCE, DATA, RETRIEVED, lengths)
    found["response_good"] = mac(name, key, NONCE, b"\x00", PAGE)
    found["response_sense"] = mac(name, key, NONCE, b"\x02", SENSE)
    found |= {f"key.{part}": value for part, value in derived(name, GENERATION, SEED).items()}
    for group, modulus in GROUPS.items():
        shared = be(pow(2, integer(DH_X) * integer(DH_Y), modulus), modulus.bit_length() // 8)
        parts = derived(name, GENERATION, shared, SYSTEM_ID)
        found |= {f"master_{group}.{part}": value for part, value in parts.items()}
    return {f"{name}.{each}": value for each, value in found.items()}


def integer(value: bytes) -> int:
    """Big-endian."""
    return int.from_bytes(value, "big")


GROUPS = {14: prime(2048, 1918, 124476), 15: prime(3072, 2942, 1690314)}


def vectors() -> dict[str, bytes]:
    """All of them by name."""
    found = dict(INPUTS)
    for group, modulus in GROUPS.items():
        length = modulus.bit_length() // 8
        found[f"dh_{group}.prime"] = be(modulus, length)
        found[f"dh_{group}.theirs"] = be(pow(2, integer(DH_X), modulus), length)
        found[f"dh_{group}.ours"] = be(pow(2, integer(DH_Y), modulus), length)
        found[f"dh_{group}.shared"] = be(pow(2, integer(DH_X) * integer(DH_Y), modulus), length)
    for index, name in enumerate(HASHES):
        found |= of_algorithm(index, name)
    return found


def as_json() -> str:
    """vectors.json."""
    return json.dumps({name: value.hex() for name, value in vectors().items()}, indent=1) + "\n"


def as_text() -> str:
    """vectors.txt."""
    return "".join(f"{name} {value.hex()}\n" for name, value in vectors().items())


if __name__ == "__main__":
    (FOLDER / "vectors.json").write_text(as_json())
    (FOLDER / "vectors.txt").write_text(as_text())
