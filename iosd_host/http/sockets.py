# SPDX-License-Identifier: GPL-2.0-or-later
"""The owner of a TCP socket of this host: its user, and its process if visible.

A stranger chooses how long /proc/net/tcp is, so the kernel is asked about the one connection that matters
(sock_diag(7)); that file is for kernels that do not answer.
"""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["listener", "peer_uid", "process_of"]

LISTEN, ESTABLISHED = 0x0A, 0x01
SOCK_DIAG, BY_FAMILY = 4, 20  # the netlink protocol, and the type of its messages
REQUEST, ERROR = 1, 2  # of netlink(7): a flag, and the type of a refusal
ANY = 0xFFFFFFFF  # of states, and of the halves of a cookie
_HEAD = struct.Struct("=IHHII")  # length, type, flags, serial, port
_ASKED = struct.Struct("=BBBBI")  # family, protocol, more, unused, states
_SOCKET = struct.Struct(
    "=HH16s16sIII"
)  # ports and addresses, the socket's own first; device; cookie
_FOUND = struct.Struct(f"=BBBB{_SOCKET.size}sIIII")  # state second; user last
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


def _ask(near: Endpoint, far: Endpoint) -> int | None:
    """The user of one end of a connection; None: it is no more.

    Raises: OSError: the kernel knows none, or does not answer such requests.
    """
    family = socket.AF_INET6 if ":" in near[0] else socket.AF_INET
    addresses = (socket.inet_pton(family, each[0]).ljust(16, b"\0") for each in (near, far))
    ports = (socket.htons(each[1]) for each in (near, far))
    asked = _ASKED.pack(family, socket.IPPROTO_TCP, 0, 0, ANY)
    asked += _SOCKET.pack(*ports, *addresses, 0, ANY, ANY)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, SOCK_DIAG) as link:
        link.setblocking(False)  # the kernel answers at once
        link.send(_HEAD.pack(_HEAD.size + len(asked), BY_FAMILY, REQUEST, 1, 0) + asked)
        answer = link.recv(4096)
    kind = _HEAD.unpack_from(answer)[1]
    if kind == ERROR:
        number = -struct.unpack_from("=i", answer, _HEAD.size)[0]
        raise OSError(number, os.strerror(number))
    if kind != BY_FAMILY or len(answer) < _HEAD.size + _FOUND.size:
        raise OSError(errno.EPROTO, "not an answer of sock_diag")
    found = _FOUND.unpack_from(answer, _HEAD.size)
    return int(found[-1]) if found[1] == ESTABLISHED else None


class Kernel:
    """Whether the kernel has named a user so far: then one that it does not find is not there."""

    answers = False


def peer_uid(ours: Endpoint, theirs: Endpoint) -> int | None:
    """The user at the other end of a connection within this host; None: it is not known."""
    wanted = (_plain(theirs[0]), theirs[1]), (_plain(ours[0]), ours[1])
    try:
        found = _ask(*wanted)
        Kernel.answers = True
        return found
    except OSError as error:
        if Kernel.answers and error.errno == errno.ENOENT:
            return None
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
