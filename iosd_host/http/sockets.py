# SPDX-License-Identifier: GPL-2.0-or-later
"""The owner of a TCP socket of this host: its user, from /proc/net/tcp, and its process if visible."""

from __future__ import annotations

import contextlib
import ipaddress
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["listener", "peer_uid", "process_of"]

LISTEN, ESTABLISHED = 0x0A, 0x01
Endpoint = tuple[str, int]


class SocketRow(NamedTuple):
    """A line of /proc/net/tcp."""

    local: Endpoint
    remote: Endpoint
    state: int
    uid: int
    inode: int


def _address(text: str) -> Endpoint:
    """Of "0100007F:1F90": words of four bytes in the host's order, and the port."""
    digits, _, port = text.partition(":")
    raw = bytes.fromhex(digits)
    if sys.byteorder == "little":
        raw = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    host = ipaddress.ip_address(raw)
    mapped = getattr(host, "ipv4_mapped", None)
    return str(mapped or host), int(port, 16)


def _rows() -> Iterator[SocketRow]:
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError), Path("/proc/net", name).open(encoding="ascii") as file:
            next(file, None)
            for line in file:
                words = line.split()
                state, uid, inode = int(words[3], 16), int(words[7]), int(words[9])
                yield SocketRow(_address(words[1]), _address(words[2]), state, uid, inode)


def _plain(host: str) -> str:
    address = ipaddress.ip_address(host.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def peer_uid(ours: Endpoint, theirs: Endpoint) -> int | None:
    """The user at the other end of a connection within this host; None: it is not known."""
    wanted = (_plain(theirs[0]), theirs[1]), (_plain(ours[0]), ours[1])
    for row in _rows():
        if (row.local, row.remote) == wanted and row.state == ESTABLISHED:
            return row.uid
    return None


def listener(address: Endpoint) -> tuple[int, int] | None:
    """User and inode of the socket that listens at an address, or at all addresses with its port."""
    host, port = _plain(address[0]), address[1]
    for row in _rows():
        everywhere = ipaddress.ip_address(row.local[0]).is_unspecified
        if row.state == LISTEN and row.local[1] == port and (everywhere or row.local[0] == host):
            return row.uid, row.inode
    return None


def process_of(inode: int) -> str:
    """ "NAME (process PID)" of a socket; "": none that we may see."""
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if str(link.readlink()) == f"socket:[{inode}]":
                process = link.parent.parent
                name = process.joinpath("comm").read_text(errors="backslashreplace").strip()
                return f"{name} (process {process.name})"
    return ""
