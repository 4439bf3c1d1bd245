# SPDX-License-Identifier: GPL-2.0-or-later
"""The body of a request, and options of the server that reads it."""

from __future__ import annotations

import logging
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

__all__ = ["OF_STRANGERS", "body_of"]


class OwnFaults(logging.Filter):
    """Not the faults of a peer, who could fill the disk with them."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is logged."""
        return not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))


LOG = logging.getLogger("iosd.http")
LOG.addFilter(OwnFaults())
OF_STRANGERS: dict[str, Any] = {"auto_decompress": False, "logger": LOG}
"""Options of aiohttp's runner: few bytes of a peer do not become many in memory, or in the log."""


async def body_of(request: web.Request) -> bytes:
    """The body; its headers choose no decoder of text or of parts of a form.

    Raises: web.HTTPException: it is too long, compressed, or not as its headers say.
    """
    if request.headers.get("Content-Encoding", "identity") != "identity":
        raise web.HTTPBadRequest(reason="the body must not be compressed")
    try:
        return await request.read()
    except (web.HTTPException, ConnectionError):
        raise
    except Exception:  # aiohttp has an exception of its own for each fault of pieces
        raise web.HTTPBadRequest(reason="the body is not what its headers say") from None
