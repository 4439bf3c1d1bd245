# SPDX-License-Identifier: GPL-2.0-or-later
"""The body of a request."""

from __future__ import annotations

from aiohttp import web

__all__ = ["body_of"]


async def body_of(request: web.Request) -> bytes:
    """The body; its headers choose no decoder of text or of parts of a form.

    Raises: web.HTTPException: it is too long, or not compressed as its headers say.
    """
    try:
        return await request.read()
    except (web.HTTPException, ConnectionError):
        raise
    except Exception:  # each way of compression has errors of its own
        raise web.HTTPBadRequest(reason="the body is not what its headers say") from None
