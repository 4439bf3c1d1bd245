# SPDX-License-Identifier: GPL-2.0-or-later
"""The client's identity at a target: CHAP names and secrets, credentials, from files and the
environment.

Secrets come from files of their owner's alone, or from IOSD_CHAP_SECRET and IOSD_CHAP_TARGET_SECRET; never
from a command line.  A child process receives names of files: for_child().
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pyosd.iscsi.login import Chap
from pyosd.security.credentials import CredentialSource, read_secret

SECRETS = ("IOSD_CHAP_SECRET", "IOSD_CHAP_TARGET_SECRET")


class Identity(NamedTuple):
    """The identity of a user; each part can be absent.

    chap_target_user, chap_target_secret_file: what the target shall prove itself with.
    credentials: a file as StaticSource.write() makes it, or a local credential.
    secmgr: URL of a security manager that hands out credentials, https://HOST[:PORT].
    secmgr_token_file, or secmgr_certificate and secmgr_key: who we are to it.
    secmgr_ca: file of who signed its certificate, where the system does not trust them.
    """

    chap_user: str | None = None
    chap_secret_file: str | None = None
    chap_target_user: str | None = None
    chap_target_secret_file: str | None = None
    credentials: str | None = None
    secmgr: str | None = None
    secmgr_token_file: str | None = None
    secmgr_ca: str | None = None
    secmgr_certificate: str | None = None
    secmgr_key: str | None = None

    def over(self, other: Identity) -> Identity:
        """This, and the other where this says nothing."""
        return Identity(*(mine or its for mine, its in zip(self, other, strict=True)))

    def secret(self) -> str:
        """Of the CHAP user: IOSD_CHAP_SECRET, else the file's.  Raises: OSError, ValueError."""
        return _secret(SECRETS[0], self.chap_secret_file)

    def chap(self) -> Chap | None:
        """For connect().  Raises: OSError; ValueError: a file is not its owner's alone."""
        if not self.chap_user:
            return None
        target_secret = _secret(SECRETS[1], self.chap_target_secret_file)
        return Chap(self.chap_user, self.secret(), self.chap_target_user or "", target_secret)

    def source(self, url: str) -> CredentialSource | None:
        """For connect() to that target: a file of credentials, else the security manager.

        Raises: OSError; ValueError: it is no file of credentials; SecmgrError.
        """
        if self.credentials:
            from pyosd.security.local_credential import read_source

            return read_source(Path(self.credentials).expanduser())
        if not self.secmgr:
            return None
        from pyosd.iscsi.session import TargetAddress
        from pyosd.secmgr.client import SecurityManagerSource

        target = TargetAddress.parse(url).target
        return SecurityManagerSource(self.secmgr, target, **self.secmgr_login())

    def secmgr_login(self) -> dict[str, Any]:
        """Arguments of pyosd.secmgr.client.Client."""
        said = {
            "token_file": self.secmgr_token_file,
            "ca": self.secmgr_ca,
            "certificate": self.secmgr_certificate,
            "key": self.secmgr_key,
        }
        return {name: Path(path).expanduser() for name, path in said.items() if path}


def _secret(variable: str, path: str | None) -> str:
    if variable in os.environ:
        return os.environ[variable]
    return read_secret(Path(path).expanduser()).strip() if path else ""


def from_environment() -> Identity:
    """IOSD_CHAP_USER, IOSD_CHAP_SECRET_FILE, ..., IOSD_CREDENTIALS."""
    return Identity(*(os.environ.get(_variable(each)) for each in Identity._fields))


def for_child(identity: Identity) -> tuple[dict[str, str], tuple[int, ...]]:
    """An environment by which a child is the same to the target, without a secret in it.

    Returns: also descriptors to pass on, and to close then: of files that nobody else has.
    """
    environment = {name: text for name, text in os.environ.items() if name not in SECRETS}
    environment |= _variables(identity)
    descriptors = []
    for variable in SECRETS:
        if variable in os.environ:
            descriptor = os.memfd_create("iosd", os.MFD_CLOEXEC)
            os.fchmod(descriptor, 0o600)
            os.pwrite(descriptor, os.environ[variable].encode(), 0)
            environment[f"{variable}_FILE"] = f"/proc/self/fd/{descriptor}"
            descriptors.append(descriptor)
    return environment, tuple(descriptors)


def _variables(identity: Identity) -> Mapping[str, str]:
    return {_variable(name): text for name, text in identity._asdict().items() if text}


def _variable(field: str) -> str:
    return f"IOSD_{field.upper()}"
