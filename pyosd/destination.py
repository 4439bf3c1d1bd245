# SPDX-License-Identifier: GPL-2.0-or-later
"""The target, CHAP and credentials that connect() uses, for threads and for coroutines."""

from __future__ import annotations

from typing import NamedTuple

from pyosd.iscsi.login import Chap
from pyosd.iscsi.session import TargetAddress
from pyosd.profiles import access, target_url
from pyosd.security import local_credential
from pyosd.security.credentials import Credential, CredentialSource, source_of

__all__ = ["Destination", "destination"]


class Destination(NamedTuple):
    """A target, and how to log in to it.

    inherited: neither CHAP nor credentials were given, so a child process finds the same ones.
    """

    url: str
    address: TargetAddress
    credentials: CredentialSource | None
    inherited: bool


def destination(
    url: str | None,
    chap: Chap | None,
    credentials: CredentialSource | Credential | None,
    local: bool,
) -> Destination:
    """Complete the arguments of connect() from the environment and the profile.

    Raises: ValueError: the URL is wrong or missing; OSError: a file of the profile cannot be read.
    """
    if url is None:
        url = target_url()
        own_chap, own_credentials = access(url)
        chap, credentials = chap or own_chap, credentials or own_credentials
    address = TargetAddress.parse(url)
    if chap:
        address = address._replace(chap=chap)
    source = source_of(credentials)
    if source is None and local:
        source = local_credential.find(url)
    return Destination(url, address, source, inherited=chap is None and credentials is None)
