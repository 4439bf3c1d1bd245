# SPDX-License-Identifier: GPL-2.0-or-later
"""A user's new private key, and the request for its certificate."""

from __future__ import annotations

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

__all__ = ["new_request", "private_pem"]


def private_pem(key: ec.EllipticCurvePrivateKey, password: bytes | None) -> bytes:
    """A private key as files have it."""
    encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if password is not None:
        encryption = serialization.BestAvailableEncryption(password)
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, encryption)


def new_request(user: str) -> tuple[bytes, bytes]:
    """A new key of a user's, and the request for its certificate, both PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, user)])
    builder = x509.CertificateSigningRequestBuilder().subject_name(name)
    request = builder.sign(key, hashes.SHA256())
    return private_pem(key, None), request.public_bytes(serialization.Encoding.PEM)
