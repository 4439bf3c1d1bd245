# SPDX-License-Identifier: GPL-2.0-or-later
"""What verbs share that ask the security manager: its flags, the connection, how refusals end."""

from __future__ import annotations

from typing import Any

import click

from pyosd._identity import Identity
from pyosd.cli.codes import Exit
from pyosd.cli.config import ConfigError
from pyosd.cli.output import Column
from pyosd.cli.verb import Failure, Listing, Settings, Verb
from pyosd.session import TargetAddress

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

META = "iosd.secmgr"
OPTIONS = (
    ("secmgr", "URL", "Security manager: https://HOST[:PORT].  [IOSD_SECMGR, profile]"),
    ("secmgr_token_file", "FILE", "Who you are to it.  [IOSD_SECMGR_TOKEN_FILE, profile]"),
    ("secmgr_ca", "FILE", "Who signed its certificate.  [IOSD_SECMGR_CA, profile]"),
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


def keep_said(ctx: click.Context) -> None:
    """Take the flags out of what the verb's function gets."""
    said = {name: ctx.params.pop(name) for name, *_ in OPTIONS}
    ctx.meta[META] = Identity(**said)


class Asking(Verb):
    """A verb that asks the security manager."""

    def own_options(self) -> list[click.Parameter]:
        """Where it is, and who asks."""
        return [*super().own_options(), *options()]

    def invoke(self, ctx: click.Context) -> Any:
        """Remember the flags for ask()."""
        keep_said(ctx)
        return super().invoke(ctx)


class AskingListing(Listing):
    """The same, for one that prints records."""

    def own_options(self) -> list[click.Parameter]:
        """Also -o and --no-header."""
        return [*super().own_options(), *options()]

    def invoke(self, ctx: click.Context) -> Any:
        """Remember the flags for ask()."""
        keep_said(ctx)
        return super().invoke(ctx)


def ask(settings: Settings, method: str, /, **params: Any) -> dict[str, Any]:
    """One request to the security manager.

    Raises: ConfigError: nobody said where it is; Failure, pyosd.errors.OSDError: it refused.
    """
    from pyosd.secmgr.client import Client, SecmgrRefused

    said = click.get_current_context().meta.get(META, Identity())
    identity = said.over(settings.identity())
    if not identity.secmgr:
        raise ConfigError(
            "no security manager: say --secmgr URL, or set IOSD_SECMGR, or a profile's 'secmgr'; "
            "'osd secmgr serve' prints the URL of one"
        )
    try:
        client = Client(identity.secmgr, **identity.secmgr_login())
    except ValueError as error:
        raise ConfigError(str(error)) from None
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
