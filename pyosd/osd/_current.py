# SPDX-License-Identifier: GPL-2.0-or-later
"""The transport in use: the sandbox's proxy, a session from the environment, or the one given to use()."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from pyosd.commands import Commands
    from pyosd.types import ObjectRef

    from ._transport import Transport

__all__ = ["current", "use"]

_transport: Transport | None = None


def use(
    transport: Transport | Commands, args: object = None, zone: str | ObjectRef = "root"
) -> None:
    """Carry all calls of this package over a session of the caller's from now on.

    For notebooks, tests and other programs at a client that are no scripts; without it the first use
    connects to the target that IOSD_TARGET names.  In a sandbox there is no reason to.

    Args: transport: what pyosd.connect() gave, which stays the caller's to close; or what has the
        methods of Transport.
        args: what osd.args is to be.  zone: what osd.zone is to be, and rights to end at: "root", PID
        or PID/OID.  Both only with a session.

    >>> import pyosd
    >>> with pyosd.connect(url) as session:
    ...     osd.use(session, zone="root")
    ...     p in list(osd.zone)
    True

    Raises: NotFound: there is no such zone.
    """
    global _transport  # noqa: PLW0603 -- one process, one job, one way out
    if not hasattr(transport, "readinto"):
        from ._client.connect import over_session

        transport = over_session(transport, args, zone)
    _transport = cast("Transport", transport)


def current() -> Transport:
    """Return the transport in use; the first use decides by where we are.

    In a sandbox: its proxy.  Elsewhere: a session with the target that IOSD_TARGET names.
    """
    if _transport is None:
        if importlib.util.find_spec("_osdcore") is not None:
            from ._sandbox import SandboxTransport

            use(SandboxTransport())
        else:
            from ._client.connect import connect

            use(connect())
    assert _transport is not None
    return _transport
