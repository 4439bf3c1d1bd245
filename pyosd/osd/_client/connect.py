# SPDX-License-Identifier: GPL-2.0-or-later
"""The session of a script that runs at a client, as ``python3 script.py``, from its environment.

IOSD_TARGET: the target's URL.  IOSD_ZONE: what osd.zone is (``root``, PID or PID/OID; default root).
IOSD_ARGS: arguments as JSON (default: the words after the script's name, if any).
IOSD_ARRAY_INDEX: what osd.array_index is.
IOSD_RESULT: a file for the argument of osd.result().  IOSD_RESULT_KIND: a file for "json" or "bytes",
which is not made if there is no result.
IOSD_FETCHED: a folder of objects that were fetched (fetched.py).
IOSD_PURE: if set, the script changes no objects (pure.py).
IOSD_PROGRESS: if set, osd.progress() prints on standard error.
IOSD_TRAFFIC: a file for the number of bytes that the session moved.
IOSD_CHAP_USER and the like: the user's identity (pyosd/identity.py).
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyosd.identity import SECRETS, from_environment
from pyosd.target import connect as connect_target
from pyosd.types import ObjectRef

from .._errors import NotFound
from .._transport import Call, Context, unwrapped
from .fetched import FetchedTransport
from .pure import PureTransport
from .session import SessionTransport

if TYPE_CHECKING:
    from pyosd.commands import Commands
    from pyosd.target import Target

__all__ = ["connect", "over_session"]


def context_of(environment: dict[str, str], words: list[str], commands: Commands) -> Context:
    """Arguments and zone as the environment gives them.  Raises: ValueError, NotFound."""
    text = environment.get("IOSD_ARGS")
    args = json.loads(text) if text else (words or None)
    context = context_in(commands, args, environment.get("IOSD_ZONE", "root"))
    index = environment.get("IOSD_ARRAY_INDEX")
    return unwrapped(replace(context, array_index=int(index)) if index else context)


def context_in(commands: Commands, args: object, zone: str | ObjectRef) -> Context:
    """Arguments and zone, whose type the target knows.  Raises: ValueError, NotFound."""
    where = ObjectRef.parse(zone) if isinstance(zone, str) else zone
    ids = (where.partition_id, where.object_id)
    zone_type = SessionTransport(commands).call(Call.TYPE, *ids)[0]
    if not zone_type:
        raise NotFound(f"the zone {where} does not exist")
    return Context(args, zone_type, ids)


def over_session(
    commands: Commands, args: object = None, zone: str | ObjectRef = "root"
) -> SessionTransport:
    """Carry calls over somebody's session.  Raises: ValueError, NotFound: the zone."""
    return SessionTransport(commands, context_in(commands, args, zone))


def leave_traffic(target: Target, file: Path) -> None:
    """Write down how many bytes the session has sent and received."""
    figures = {"sent_bytes": target.bytes_sent, "received_bytes": target.bytes_received}
    file.write_text(json.dumps(figures))


def leave_result(transport: SessionTransport, file: Path, kind: Path | None) -> None:
    """Write down what the script left as its result."""
    file.write_bytes(transport.result)
    if kind is not None and transport.result_kind:
        kind.write_text(transport.result_kind)


def log_in(url: str) -> Target:
    """Open a session, which is closed when the script ends."""
    identity = from_environment()
    chap, source = identity.chap(), identity.source(url)
    for name in SECRETS:  # not for the script's children
        os.environ.pop(name, None)
    target = connect_target(url, chap=chap, credentials=source)
    atexit.register(target.close)
    return target


logged_in: list[Target] = []
"""A session that was opened before the script was known."""


def log_in_ahead(url: str) -> None:
    """Open the session of a script that is not known yet; connect() reports why that is not possible."""
    with contextlib.suppress(Exception):
        logged_in.append(log_in(url))


def log_out_ahead() -> None:
    """Close that session, if there is one."""
    while logged_in:
        logged_in.pop().close()


def connect() -> SessionTransport:
    """Open a session with the target of the environment; it is closed when the script ends."""
    url = os.environ.get("IOSD_TARGET")
    if not url:
        raise RuntimeError("outside of a sandbox 'osd' needs IOSD_TARGET, the URL of a target")
    target = logged_in.pop() if logged_in and logged_in[0].url == url else log_in(url)
    traffic = os.environ.get("IOSD_TRAFFIC")
    if traffic:
        atexit.register(leave_traffic, target, Path(traffic))
    context = context_of(dict(os.environ), sys.argv[1:], target)
    folder = os.environ.get("IOSD_FETCHED")
    if folder:
        transport: SessionTransport = FetchedTransport(target, context, Path(folder))
    elif os.environ.get("IOSD_PURE"):
        transport = PureTransport(target, context)
    else:
        transport = SessionTransport(target, context)
    file, kind = os.environ.get("IOSD_RESULT"), os.environ.get("IOSD_RESULT_KIND")
    if file:
        atexit.register(leave_result, transport, Path(file), Path(kind) if kind else None)
    return transport
