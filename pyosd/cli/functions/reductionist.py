# SPDX-License-Identifier: GPL-2.0-or-later
"""``osd reductionist``: reductions of arrays in objects, by Reductionist's API."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from pathlib import Path

import click

from pyosd.cli.frame.params import pool_option
from pyosd.cli.frame.verb import Settings, Verb
from pyosd.cli.functions.names import check_pool
from pyosd.security.credentials import read_secret

__all__ = ["reductionist"]

FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(cls=Verb)
@click.option(
    "--listen",
    "address",
    default="127.0.0.1:8080",
    metavar="ADDRESS:PORT",
    help="Address to listen at; port 0: the kernel's choice.  [127.0.0.1:8080]",
)
@pool_option("Pool of the reductions.  [default]")
@click.option(
    "--password-file",
    type=FILE,
    metavar="FILE",
    help="File with the line USER:PASSWORD, which clients must send.",
)
@click.option("--certificate", type=FILE, metavar="FILE", help="Certificate for HTTPS, PEM.")
@click.option("--certificate-key", type=FILE, metavar="FILE", help="Its private key, PEM.")
@click.option(
    "--at-once",
    type=click.IntRange(1, 1024),
    default=16,
    metavar="N",
    help="Most reductions at a time.  [16]",
)
@click.pass_obj
def reductionist(
    settings: Settings,
    address: str,
    pool: str,
    password_file: Path | None,
    certificate: Path | None,
    certificate_key: Path | None,
    at_once: int,
) -> None:
    """Serve Reductionist's API: reductions of arrays in objects, computed at the target.

    Clients such as PyActiveStorage send POST /v2/{count,max,min,select,sum}. The server acts with your
    permissions. Elsewhere than on this machine it needs --password-file and --certificate. It runs until
    SIGINT or SIGTERM.
    """
    try:
        from pyosd.fronts.reductionist.server import ServerOptions
    except ImportError as error:
        raise click.ClickException(f"{error.name} is missing: pip install {error.name}") from None
    host, port, here = _place(address)
    user, password = _login(password_file)
    context = _context(certificate, certificate_key)
    if not here and (not password or context is None):
        raise click.UsageError(
            f"to listen at {host}, give --password-file, --certificate and --certificate-key"
        )
    if pool:
        with settings.connect() as target:
            check_pool(target, pool)
    url = settings.url()
    chap, credentials = settings.access(url)
    options = ServerOptions(
        url, host, port, chap, credentials, pool, user, password, context, at_once
    )
    asyncio.run(_until_a_signal(options, settings))


async def _until_a_signal(options: object, settings: Settings) -> None:
    import signal

    from pyosd.cli.output.log_lines import log_to_stderr
    from pyosd.fronts.reductionist.server import ServerOptions, serve

    assert isinstance(options, ServerOptions)
    log_to_stderr()
    stop = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, stop.set)
    await serve(options, lambda url: settings.say(f"serving at {url}"), stop)


def _place(text: str) -> tuple[str, int, bool]:
    """Address, port, and whether only this machine reaches it."""
    host, _, port = text.rpartition(":")
    try:
        found = ipaddress.ip_address(host.strip("[]"))
        number = int(port)
        if not 0 <= number < 1 << 16:
            raise ValueError
    except ValueError:
        raise click.UsageError(f"'{text}' is not ADDRESS:PORT, such as 127.0.0.1:8080") from None
    return str(found), number, found.is_loopback


def _login(file: Path | None) -> tuple[str, str]:
    if file is None:
        return "", ""
    try:
        text = read_secret(file)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    user, colon, password = text.rstrip("\n").partition(":")
    if not (user and colon and password) or "\n" in password:
        raise click.UsageError(f"'{file}' must have one line: USER:PASSWORD")
    return user, password


def _context(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise click.UsageError("--certificate and --certificate-key belong together")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key, password=b"")
    except (OSError, ssl.SSLError) as error:
        raise click.UsageError(f"cannot use '{certificate}' and '{key}': {error}") from None
    return context
