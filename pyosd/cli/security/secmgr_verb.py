# SPDX-License-Identifier: GPL-2.0-or-later
"""Common parts of verbs of the security manager: flags, the connection, and ends of refusals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.verb import Failure, Listing, Settings, Verb
from pyosd.cli.output.tables import Column
from pyosd.identity import Identity
from pyosd.iscsi.session import TargetAddress
from pyosd.profiles import ProfileError

__all__ = [
    "METHOD",
    "TYPE",
    "Asking",
    "AskingListing",
    "ask",
    "number",
    "target_of",
    "text",
]

OPTIONS = (
    (
        "secmgr",
        "URL",
        "Address of the security manager: https://HOST[:PORT].  [IOSD_SECMGR, profile]",
    ),
    (
        "secmgr_token_file",
        "FILE",
        "File with the token to log in with.  [IOSD_SECMGR_TOKEN_FILE, profile]",
    ),
    (
        "secmgr_ca",
        "FILE",
        "File with the authority of its certificate.  [IOSD_SECMGR_CA, profile]",
    ),
)
CODES = {
    "bad-request": Exit.USAGE,
    "conflict": Exit.WRONG_STATE,
    "too-soon": Exit.WRONG_STATE,
    "too-many": Exit.BUSY,
}
METHOD = click.Choice(["CAPKEY", "CMDRSP", "ALLDATA"], case_sensitive=False)
TYPE = click.Choice(["user", "collection", "partition", "root"])


def options() -> list[click.Parameter]:
    """Fresh copies of the flags."""
    return [
        click.Option([f"--{name.replace('_', '-')}", name], metavar=metavar, help=text)
        for name, metavar, text in OPTIONS
    ]


@dataclass
class SecmgrSettings(Settings):
    """The common options, and those about the security manager."""

    secmgr: str | None = None
    secmgr_token_file: str | None = None
    secmgr_ca: str | None = None

    def identity(self) -> Identity:
        """The client's identity at the target and at the security manager: option, environment,
        profile."""
        said = Identity(
            secmgr=self.secmgr,
            secmgr_token_file=self.secmgr_token_file,
            secmgr_ca=self.secmgr_ca,
        )
        return said.over(super().identity())


class Asking(Verb):
    """A verb that asks the security manager."""

    settings_class = SecmgrSettings

    def shared_options(self) -> list[click.Parameter]:
        """Its address, and the identity of the client."""
        return [*options(), *super().shared_options()]


class AskingListing(Asking, Listing):
    """The same, for one that prints records."""


def ask(settings: Settings, method: str, /, **params: Any) -> dict[str, Any]:
    """One request to the security manager.

    Raises: ProfileError: nobody said where it is; Failure, pyosd.errors.OSDError: it refused.
    """
    from pyosd.secmgr.client import Client, SecmgrRefused

    identity = settings.identity()
    if not identity.secmgr:
        raise ProfileError(
            "no security manager: say --secmgr URL, or set IOSD_SECMGR, or a profile's 'secmgr'; "
            "'osd secmgr serve' prints the URL of one"
        )
    try:
        client = Client(identity.secmgr, **identity.secmgr_login())
    except ValueError as error:
        raise ProfileError(str(error)) from None
    try:
        return client.call(method, **params)
    except SecmgrRefused as error:
        raise Failure(CODES.get(error.code, Exit.FAILED), str(error)) from None
    finally:
        client.close()


def target_of(settings: Settings, said: str | None) -> str:
    """The iSCSI name of the target that is meant: said, or that of the settings."""
    if said is not None:
        return said
    url = settings.url()
    try:
        return TargetAddress.parse(url).target
    except ValueError:
        return url


def text(title: str, key: str, **more: Any) -> Column:
    """A column of texts."""
    return Column(title, lambda row: str(row.get(key) or "-"), **more)


def number(title: str, key: str, **more: Any) -> Column:
    """A column of numbers."""
    return Column(title, lambda row: str(row.get(key, "-")), right=True, **more)
