# SPDX-License-Identifier: GPL-2.0-or-later
"""Somebody between initiator and target: a relay that takes the streams apart into PDUs and does with
each what a test says.
"""

from __future__ import annotations

import contextlib
import re
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.relay import shut

BHS = 48
COMMAND, DATA_OUT = 0x01, 0x05
RESPONSE, DATA_IN, R2T = 0x21, 0x25, 0x31


@dataclass
class Pdu:
    """One PDU: header, additional headers, data without pad."""

    header: bytearray
    additional: bytearray
    data: bytearray

    @property
    def opcode(self) -> int:
        """Without the immediate bit."""
        return self.header[0] & 0x3F

    @property
    def tag(self) -> int:
        """INITIATOR TASK TAG."""
        return int.from_bytes(self.header[16:20], "big")

    @property
    def cdb(self) -> bytes:
        """Of a command: what stands in the header, and in the first additional header."""
        length = int.from_bytes(self.additional[:2], "big") if self.additional else 1
        return bytes(self.header[32:48] + self.additional[4 : 3 + length])

    def flip(self, at: int, bit: int = 1) -> None:
        """Change a bit of the CDB."""
        if at < 16:
            self.header[32 + at] ^= bit
        else:
            self.additional[4 + at - 16] ^= bit

    def encode(self) -> bytes:
        """Its bytes; the length of data is what it has now."""
        self.header[4] = len(self.additional) // 4
        self.header[5:8] = len(self.data).to_bytes(3, "big")
        pad = bytes(-len(self.data) % 4)
        return bytes(self.header + self.additional + self.data + pad)


Meddle = Callable[[Pdu], list[Pdu]]
"""Bytes forwarded instead of a PDU."""


def honest(pdu: Pdu) -> list[Pdu]:
    """It goes on as it came."""
    return [pdu]


@dataclass
class Mitm:
    """The relay.  to_target, to_initiator: what is done with PDUs; may be changed at any time.

    cut(): the connection ends, for who waits for what will not come.
    """

    place: tuple[str, int]
    to_target: Meddle = honest
    to_initiator: Meddle = honest
    threads: list[threading.Thread] = field(default_factory=list)
    sockets: list[socket.socket] = field(default_factory=list)

    def accept(self, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                near = server.accept()[0]
                far = socket.create_connection(self.place)
                for each in (near, far):
                    each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.sockets += [near, far]
                for pair, name in (((near, far), "to_target"), ((far, near), "to_initiator")):
                    thread = threading.Thread(target=self.pump, args=(pair, name))
                    self.threads.append(thread)
                    thread.start()

    def pump(self, pair: tuple[socket.socket, socket.socket], name: str) -> None:
        source, sink = pair
        with contextlib.suppress(OSError, EOFError), source.makefile("rb") as stream:
            while pdu := read_pdu(stream):
                meddle: Meddle = getattr(self, name)
                for each in meddle(pdu):
                    sink.sendall(each.encode())
        shut(pair)

    def cut(self) -> None:
        """End all connections."""
        shut_all(self.sockets)

    def close(self) -> None:
        self.cut()
        for thread in self.threads:
            thread.join()
        for each in self.sockets:
            each.close()


def shut_all(sockets: list[socket.socket]) -> None:
    for each in sockets:
        shut((each, each))


def read_pdu(stream: object) -> Pdu | None:
    """The next PDU of a stream; None at its end."""
    read = stream.read  # type: ignore[attr-defined]
    header = bytearray(read(BHS))
    if len(header) < BHS:
        return None
    additional = bytearray(read(4 * header[4]))
    length = int.from_bytes(header[5:8], "big")
    data = bytearray(read(length + -length % 4))[:length]
    return Pdu(header, additional, data)


@contextlib.contextmanager
def between(url: str) -> Iterator[tuple[str, Mitm]]:
    """A URL by which the target of this one is reached through a relay."""
    found = re.search(r"//([^/]+):(\d+)/", url)
    assert found
    mitm = Mitm((found[1], int(found[2])))
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=mitm.accept, args=(server,))
        thread.start()
        try:
            port = server.getsockname()[1]
            yield url.replace(f":{found[2]}/", f":{port}/", 1), mitm
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()
            mitm.close()
