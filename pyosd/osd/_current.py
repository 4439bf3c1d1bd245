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
    """Send all calls of this package over a session of the caller from now on.

    This is for notebooks, tests and other programs at a client.  Without it the first call connects to
    the target that IOSD_TARGET names.  Sandboxes do not need it.

    Args: transport: the result of pyosd.connect(), which the caller closes; or an object with the
        methods of Transport.
        args: the value of osd.args.  zone: the value of osd.zone, which limits the rights: "root", PID
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
