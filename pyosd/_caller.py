# SPDX-License-Identifier: GPL-2.0-or-later
"""Sends requests over any Transport: what the methods of commands.py stand on."""

from __future__ import annotations

from collections.abc import Iterable

from pyosd.cdb import AttributeLists, Request, encode
from pyosd.reply import PendingReply, Reply, decode_reply
from pyosd.transport import Command, Response, Transport
from pyosd.types import AttributeId, AttributeValue, Buffer

__all__ = ["Caller", "lists_of"]


def lists_of(get: Iterable[AttributeId], set_: Iterable[AttributeValue]) -> AttributeLists:
    """Attributes to get and to set, in list format."""
    return AttributeLists(tuple(get), tuple(set_))


class Caller:
    """Requests to one logical unit."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @property
    def transport(self) -> Transport:
        """What carries the commands."""
        return self._transport

    # ---- the general way in ----------------------------------------------------------------------

    def execute(
        self,
        cdb: bytes,
        data_out: Buffer = b"",
        data_in_length: int = 0,
        timeout: float | None = None,
    ) -> Response:
        """Send a CDB of one's own (1-260 bytes) with raw Data-Out; nothing is interpreted.

        Returns: SAM status, sense and Data-In as they came; CHECK CONDITION does not raise.
        """
        return self._transport.execute(Command(cdb, data_out, data_in_length), timeout)

    def submit(self, request: Request) -> PendingReply:
        """Send a request without waiting; many may be under way, answers come in any order."""
        command, layout = encode(request)
        return PendingReply(request, layout, self._transport.submit(command))

    def call(self, request: Request, timeout: float | None = None) -> Reply:
        """Send a request (requests.py builds them) and wait.

        Returns: everything that came back, retrieved attributes included.
        Raises: as the head of this file says.
        """
        reply = self.reply(request, timeout)
        if reply.error:
            raise reply.error
        return reply

    def reply(self, request: Request, timeout: float | None = None) -> Reply:
        """As call(), but a refusal is returned in Reply.error instead of raised."""
        command, layout = encode(request)
        return decode_reply(request, layout, self._transport.execute(command, timeout))
