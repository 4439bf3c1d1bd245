# SPDX-License-Identifier: GPL-2.0-or-later
"""Stock function `aes-gcm`: objects that are stored encrypted and authenticated, with AES in GCM.

The stored bytes are a nonce of 12 bytes, which each WRITE chooses, the encrypted bytes, and a tag of 16.
Parameters: key=HEX, 16, 24 or 32 bytes.  A READ of bytes that were changed fails.
"""

from __future__ import annotations

import os

import osd
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

NONCE = 12


def cipher(stage: osd.StageInput) -> AESGCM:
    """The cipher with the key.  Raises: ValueError: there is none; the text names no parameter."""
    if stage.options.keys() != {"key"}:
        raise ValueError("the parameter is key=HEX")
    return AESGCM(bytes.fromhex(stage.options["key"]))


def decrypt(args: bytes) -> bytes:
    """Stored bytes to text."""
    stage = osd.stage(args)
    return cipher(stage).decrypt(stage.view[:NONCE], stage.view[NONCE:], None)


def encrypt(args: bytes) -> bytes:
    """Text to stored bytes."""
    stage, nonce = osd.stage(args), os.urandom(NONCE)
    return nonce + cipher(stage).encrypt(nonce, stage.view, None)
