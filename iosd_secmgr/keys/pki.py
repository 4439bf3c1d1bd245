# SPDX-License-Identifier: GPL-2.0-or-later
"""Certificates: our own authority, the server's certificate, and those of users.

The authority's key and the server's are encrypted with a password derived from the sealing key.
"""

from __future__ import annotations

import ipaddress
import socket
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from iosd_secmgr.access.refusal import Refusal
from iosd_secmgr.records.sealing import Sealer
from pyosd.secmgr.certificate_request import private_pem
from pyosd.secmgr.errors import SecmgrError
from pyosd.secmgr.files import write_private

CA, CA_KEY = "ca.pem", "ca.key"
SERVER, SERVER_KEY = "server.pem", "server.key"
CA_DAYS, SERVER_DAYS, USER_DAYS = 3650, 825, 90
RENEW, CA_RENEW = timedelta(days=90), timedelta(days=730)
"""The server's certificate, and the authority's, are renewed when they are valid for less than this."""
END = b"-----END CERTIFICATE-----"
SKEW = timedelta(minutes=5)

PrivateKey = ec.EllipticCurvePrivateKey


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _builder(
    subject: str, days: float, public: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )


def _usage(*, sign: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not sign,
        key_cert_sign=sign,
        crl_sign=sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def pem(certificate: x509.Certificate) -> bytes:
    """As files have it."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def _in_file(path: Path) -> list[x509.Certificate]:
    """Certificates of a file in their order.  Raises: OSError; ValueError."""
    # Not load_pem_x509_certificates: Debian 12 has cryptography 38.
    *found, _ = path.read_bytes().split(END)
    if not found:
        raise ValueError(f"{path} holds no certificate")
    return [x509.load_pem_x509_certificate(each + END) for each in found]


class Authority:
    """Signs certificates of servers and users.

    former: the certificate that it had before its renewal; None: it has not been renewed.
    """

    def __init__(
        self, certificate: x509.Certificate, key: PrivateKey, former: x509.Certificate | None = None
    ) -> None:
        self._certificate = certificate
        self._key = key
        self._former = former

    @classmethod
    def make(cls, folder: Path, sealer: Sealer) -> Authority:
        """A new one, in files.  Raises: SecmgrError: there is one already."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _of_authority(key)
        write_private(folder / CA_KEY, private_pem(key, sealer.password(CA_KEY)))
        (folder / CA).write_bytes(pem(certificate))
        return cls(certificate, key)

    @classmethod
    def load(cls, folder: Path, sealer: Sealer) -> Authority | None:
        """That of a folder; None: certificates come from elsewhere."""
        if not (folder / CA_KEY).exists():
            return None
        try:
            key = serialization.load_pem_private_key(
                (folder / CA_KEY).read_bytes(), sealer.password(CA_KEY)
            )
            certificate, *before = _in_file(folder / CA)
        except (OSError, ValueError, TypeError) as error:
            raise SecmgrError(f"cannot read the authority in {folder}: {error}") from None
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise SecmgrError(f"{folder / CA_KEY} is no elliptic-curve key")
        return cls(certificate, key, before[0] if before else None)

    @property
    def until(self) -> datetime:
        """The end of its certificate."""
        return validity(self._certificate)[1]

    @property
    def former_until(self) -> datetime | None:
        """The end of the certificate that it had before its renewal: of copies of the old file."""
        return None if self._former is None else validity(self._former)[1]

    def renew(self, folder: Path) -> bool:
        """Replace its own certificate near its end, or if it is not valid yet; key and name stay.

        So everything that it has signed stays valid.  The file keeps the former certificate, too.
        Returns: whether it was replaced.  Raises: SecmgrError: it cannot be replaced.
        """
        if not _is_due(self._certificate, CA_RENEW):
            return False
        certificate, path = _of_authority(self._key), folder / CA
        try:
            mode = path.stat().st_mode & 0o777  # users of this host may read it
        except OSError as error:
            raise SecmgrError(f"cannot read {path}: {error.strerror}") from None
        _replace(path, pem(certificate) + pem(self._certificate), mode)
        self._certificate, self._former = certificate, self._certificate
        return True

    def _sign(
        self, builder: x509.CertificateBuilder, usage: x509.ObjectIdentifier
    ) -> x509.Certificate:
        identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            builder.issuer_name(self._certificate.subject)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(sign=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(identifier, critical=False)
            .sign(self._key, hashes.SHA256())
        )

    def make_server(self, folder: Path, sealer: Sealer, names: Sequence[str]) -> None:
        """A certificate for the server by these names and addresses, in files; over an old one."""
        key = ec.generate_private_key(ec.SECP256R1())
        alternatives = x509.SubjectAlternativeName([_general(name) for name in names])
        builder = _builder(names[0][:64], SERVER_DAYS, key.public_key())
        certificate = self._sign(
            builder.add_extension(alternatives, critical=False), ExtendedKeyUsageOID.SERVER_AUTH
        )
        (folder / SERVER_KEY).unlink(missing_ok=True)
        write_private(folder / SERVER_KEY, private_pem(key, sealer.password(SERVER_KEY)))
        (folder / SERVER).write_bytes(pem(certificate))

    def renew_server(self, folder: Path) -> bool:
        """Replace the server's certificate near its end, or if it is not valid yet; key and names stay.

        One that another authority has signed is left as it is.  Returns: whether it was replaced.
        Raises: SecmgrError: it cannot be read or replaced.
        """
        path = folder / SERVER
        try:
            old = x509.load_pem_x509_certificate(path.read_bytes())
            names = old.extensions.get_extension_for_class(x509.SubjectAlternativeName)
            public = old.public_key()
        except (OSError, ValueError, x509.ExtensionNotFound) as error:
            raise SecmgrError(f"cannot read {path}: {error}") from None
        ours = old.issuer == self._certificate.subject
        if not ours or not _is_due(old, RENEW):
            return False
        assert isinstance(public, ec.EllipticCurvePublicKey)
        common = old.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
        builder = _builder(str(common), SERVER_DAYS, public)
        certificate = self._sign(
            builder.add_extension(names.value, critical=False), ExtendedKeyUsageOID.SERVER_AUTH
        )
        _replace(path, pem(certificate))
        return True

    def sign_user(self, user: str, request_pem: bytes, days: float) -> tuple[str, bytes, int]:
        """A certificate for a user's own key.

        Returns: its serial number in hexadecimal, PEM, and until when it is good in ms.
        Raises: Refusal: the request is none.
        """
        try:
            request = x509.load_pem_x509_csr(request_pem)
            public = request.public_key()
            if not request.is_signature_valid:
                raise InvalidSignature
        except (ValueError, InvalidSignature):
            raise Refusal("bad-request", "this is no certificate request in PEM") from None
        if not isinstance(public, ec.EllipticCurvePublicKey):
            raise Refusal("bad-request", "the key must be one on an elliptic curve")
        builder = _builder(user, days, public)
        made = self._sign(builder, ExtendedKeyUsageOID.CLIENT_AUTH)
        until_ms = int((time.time() + days * 86400) * 1000)
        return f"{made.serial_number:x}", pem(made), until_ms


def _of_authority(key: PrivateKey) -> x509.Certificate:
    """A certificate of an authority, signed by itself."""
    return (
        _builder("iosd security manager", CA_DAYS, key.public_key())
        .issuer_name(_name("iosd security manager"))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(sign=True), critical=True)
        .sign(key, hashes.SHA256())
    )


def _is_due(certificate: x509.Certificate, before: timedelta) -> bool:
    """Whether a certificate ends within that time, has ended, or is not valid yet."""
    valid_from, valid_until = validity(certificate)
    return not valid_from <= datetime.now(UTC) < valid_until - before


def _replace(path: Path, text: bytes, mode: int = 0o600) -> None:
    """Put a file in place of one that is there.  Raises: SecmgrError: the old one is still there."""
    new = path.with_name(f"{path.name}.new")
    try:
        new.unlink(missing_ok=True)
        write_private(new, text)
        new.chmod(mode)
        new.replace(path)
    except OSError as error:
        raise SecmgrError(f"cannot replace {path}: {error.strerror}") from None


def validity(certificate: x509.Certificate) -> tuple[datetime, datetime]:
    """Beginning and end of the time in which a certificate is valid."""
    if hasattr(certificate, "not_valid_after_utc"):  # since cryptography 42; Debian 12 has 38
        return certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return (
        certificate.not_valid_before.replace(tzinfo=UTC),
        certificate.not_valid_after.replace(tzinfo=UTC),
    )


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def default_names() -> list[str]:
    """How this host is called by those on it."""
    return list(dict.fromkeys([socket.getfqdn(), "localhost", "127.0.0.1", "::1"]))
