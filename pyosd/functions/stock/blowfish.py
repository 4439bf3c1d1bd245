# SPDX-License-Identifier: GPL-2.0-or-later
"""Stock function `blowfish`: objects that other programs have encrypted with Blowfish, in CBC.

The stored bytes are an initialisation vector of 8 bytes, which each WRITE chooses, and the encrypted
bytes, filled up as PKCS#7 says.  Parameters: key=HEX, 4 to 56 bytes.  Nothing shows that stored bytes were
changed, and blocks of 64 bits repeat in long data: use `aes-gcm` for new objects.
"""

from __future__ import annotations

import os

import osd
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from cryptography.hazmat.primitives.padding import PKCS7

try:
    from cryptography.hazmat.decrepit.ciphers.algorithms import Blowfish
except ImportError:  # before release 43
    from cryptography.hazmat.primitives.ciphers.algorithms import Blowfish

BLOCK = 8


def cipher(stage: osd.StageInput, vector: bytes) -> Cipher[modes.CBC]:
    """The cipher with the key.  Raises: ValueError: there is none; the text names no parameter."""
    if stage.options.keys() != {"key"}:
        raise ValueError("the parameter is key=HEX")
    return Cipher(Blowfish(bytes.fromhex(stage.options["key"])), modes.CBC(vector))


def decrypt(args: bytes) -> memoryview:
    """Stored bytes to text."""
    stage = osd.stage(args)
    context = cipher(stage, bytes(stage.view[:BLOCK])).decryptor()
    text = context.update(stage.view[BLOCK:]) + context.finalize()
    filler = PKCS7(8 * BLOCK).unpadder()
    last = filler.update(text[-BLOCK:]) + filler.finalize()
    return memoryview(text)[: len(text) - BLOCK + len(last)]


def encrypt(args: bytes) -> bytes:
    """Text to stored bytes."""
    stage, vector = osd.stage(args), os.urandom(BLOCK)
    filler = PKCS7(8 * BLOCK).padder()
    text = filler.update(stage.data) + filler.finalize()
    context = cipher(stage, vector).encryptor()
    return vector + context.update(text) + context.finalize()
