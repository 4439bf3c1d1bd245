# SPDX-License-Identifier: GPL-2.0-or-later
"""An iSCSI target of a few lines that can be told to misbehave.

It logs any initiator in honestly (unless told otherwise) and hands each further PDU to a script.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

NO_TAG = 0xFFFF_FFFF


@dataclass(frozen=True)
class Pdu:
    """A PDU as it came: basic header, additional headers, data without pad."""

    bhs: bytes
    ahs: bytes
    data: bytes

    @property
    def opcode(self) -> int:
        return self.bhs[0] & 0x3F

    @property
    def tag(self) -> int:
        return self.word(16)

    def word(self, at: int) -> int:
        return int.from_bytes(self.bhs[at : at + 4], "big")


class Peer:
    """The target's end of one connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.stat_sn = 1
        self.window = 32
        self.expected = 1

    def receive(self) -> Pdu:
        bhs = self._exactly(48)
        ahs = self._exactly(bhs[4] * 4)
        length = int.from_bytes(bhs[5:8], "big")
        data = self._exactly(length + -length % 4)[:length]
        if not bhs[0] & 0x40 and bhs[0] & 0x3F != 0x05:
            self.expected = int.from_bytes(bhs[24:28], "big") + 1
        return Pdu(bhs, ahs, data)

    def _exactly(self, length: int) -> bytes:
        got = b""
        while len(got) < length:
            piece = self.sock.recv(length - len(got))
            if not piece:
                raise ConnectionError("the initiator is gone")
            got += piece
        return got

    def header(self, opcode: int, flags: int, tag: int, **words: int) -> bytearray:
        """A BHS; words: w20=..., w40=... set 32-bit fields, b2=... bytes."""
        bhs = bytearray(48)
        bhs[0], bhs[1] = opcode, flags
        struct.pack_into(">I", bhs, 16, tag)
        struct.pack_into(">III", bhs, 24, self.stat_sn, self.expected, self.expected + self.window)
        for name, value in words.items():
            width, at = (4, int(name[1:])) if name[0] == "w" else (1, int(name[1:]))
            bhs[at : at + width] = value.to_bytes(width, "big")
        return bhs

    def send(self, bhs: bytearray, data: bytes = b"", claim: int | None = None) -> None:
        """Send; claim: data segment length to claim instead of the true one."""
        bhs[5:8] = (len(data) if claim is None else claim).to_bytes(3, "big")
        self.sock.sendall(bytes(bhs) + data + bytes(-len(data) % 4))

    def status(self, tag: int, status: int = 0, sense: bytes = b"", **words: int) -> None:
        """A SCSI Response."""
        data = len(sense).to_bytes(2, "big") + sense if sense else b""
        self.send(self.header(0x21, words.pop("b1", 0x80), tag, b3=status, **words), data)
        self.stat_sn += 1

    def data_in(
        self, tag: int, data: bytes, sn: int = 0, offset: int = 0, flags: int = 0x81
    ) -> None:
        """A Data-In, by default the last one with status GOOD."""
        self.send(self.header(0x25, flags, tag, w20=NO_TAG, w36=sn, w40=offset), data)
        if flags & 1:
            self.stat_sn += 1

    def login(self, extra: dict[str, str] | None = None) -> None:
        """Say yes to everything, with small segments unless extra says otherwise."""
        keys = {
            "MaxRecvDataSegmentLength": "8192",
            "MaxBurstLength": "16384",
            "FirstBurstLength": "8192",
            "InitialR2T": "Yes",
            "ImmediateData": "Yes",
        } | (extra or {})
        while True:
            pdu = self.receive()
            assert pdu.opcode == 0x03
            stage, following = pdu.bhs[1] >> 2 & 3, pdu.bhs[1] & 3
            answer = {"AuthMethod": "None"} if stage == 0 else keys
            text = b"".join(f"{key}={value}".encode() + b"\0" for key, value in answer.items())
            header = self.header(0x23, 0x80 | stage << 2 | following, pdu.tag)
            header[8:16] = pdu.bhs[8:14] + b"\0\1"
            self.send(header, text)
            self.stat_sn += 1
            if following == 3:
                return


Script = Callable[[Peer], None]


@contextlib.contextmanager
def held_port() -> Iterator[int]:
    """A port where a FakeTarget can listen, and which the kernel gives to nobody else meanwhile."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield int(held.getsockname()[1])


class FakeTarget:
    """Listens on loopback; runs the script once per connection, then closes it."""

    def __init__(self, script: Script, *, honest_login: bool = True, port: int = 0) -> None:
        self._script = script
        self._honest = honest_login
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"iscsi://127.0.0.1:{self.port}/iqn.2026-11.org.iosd:fake/1"

    def _serve(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            with sock:
                self._open = [sock]
                try:
                    peer = Peer(sock)
                    if self._honest:
                        peer.login()
                    self._script(peer)
                except OSError:
                    pass
                except AssertionError as error:
                    self.failure = error

    def cut(self) -> None:
        """Drop the connection that is open."""
        for sock in self._open:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(10)
        if self.failure:
            raise self.failure

    def __enter__(self) -> FakeTarget:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()
