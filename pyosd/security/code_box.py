# SPDX-License-Identifier: GPL-2.0-or-later
"""Encrypts the code of a function to the key of a target (docs/functions.md, "Encrypted code").

HPKE (RFC 9180) in base mode: DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-256-GCM.  It needs the
package `cryptography`, which pyosd's extra `certificates` installs.
"""

from __future__ import annotations

import hashlib
import hmac

__all__ = ["INFO", "MAGIC", "encrypt"]

MAGIC = b"\x89iosdbox\x01"
INFO = b"iosd function"
_KEM = b"KEM\0\x20"
_HPKE = b"HPKE\0\x20\0\1\0\2"


def _extract(suite: bytes, salt: bytes, label: bytes, ikm: bytes) -> bytes:
    return hmac.digest(salt or bytes(32), b"HPKE-v1" + suite + label + ikm, hashlib.sha256)


def _expand(suite: bytes, prk: bytes, label: bytes, info: bytes, length: int) -> bytes:
    labeled = length.to_bytes(2) + b"HPKE-v1" + suite + label + info + b"\1"
    return hmac.digest(prk, labeled, hashlib.sha256)[:length]


def encrypt(code: bytes, key: bytes) -> bytes:
    """The data of a function object that only the target with this key can run.

    Args: key: the target's public key, attribute 13h of page 2000_0006h of any function object.

    Raises: ImportError: the package `cryptography` is missing.  ValueError: the key is none.
    """
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    own = X25519PrivateKey.generate()
    enc = own.public_key().public_bytes_raw()
    shared = own.exchange(X25519PublicKey.from_public_bytes(key))
    prk = _extract(_KEM, b"", b"eae_prk", shared)
    secret = _expand(_KEM, prk, b"shared_secret", enc + key, 32)
    context = b"\0" + _extract(_HPKE, b"", b"psk_id_hash", b"")
    context += _extract(_HPKE, b"", b"info_hash", INFO)
    prk = _extract(_HPKE, secret, b"secret", b"")
    nonce = _expand(_HPKE, prk, b"base_nonce", context, 12)
    sealer = AESGCM(_expand(_HPKE, prk, b"key", context, 32))
    return MAGIC + enc + sealer.encrypt(nonce, code, None)
