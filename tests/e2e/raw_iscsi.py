# SPDX-License-Identifier: GPL-2.0-or-later
"""An initiator of a few lines that stops wherever a test wants it to.

It knows just enough of RFC 7143 to log in and send one command in pieces; the real initiator is
pyosd's, which never leaves a PDU half sent.
"""

from __future__ import annotations

import socket
import struct
import sys
from typing import Self

from pyosd.iscsi.session import TargetAddress

LOGIN, COMMAND, DATA_OUT = 0x43, 0x01, 0x05
READ, WRITE = 0x40, 0x20
FINAL = 0x80
TIMEOUT = 20.0


def reset_on_close(sock: socket.socket) -> None:
    """Closing sends RST, as a crashed host's network would."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class RawSession:
    """A connection in full feature phase, unless `login` is put off.  Args: keys: of the login, beside
    or instead of ours."""

    def __init__(self, url: str, *, login: bool = True, **keys: str) -> None:
        self.address = TargetAddress.parse(url)
        self.keys = keys
        self.number = 0  # of the session: TSIH, which tgtd does not turn into big-endian
        place = (self.address.host, self.address.port)
        self.socket = socket.create_connection(place, TIMEOUT)
        if login:
            self.login()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def login(self) -> None:
        """Say what we want, then nothing more, until the target agrees to go on."""
        pdu = self.login_pdu()
        for _ in range(5):
            self.socket.sendall(pdu)
            header, _ = self.receive()
            assert header[0] & 0x3F == 0x23
            assert header[36] == 0, f"login refused: {header[36]:#x}{header[37]:02x}"
            if header[1] & FINAL:
                self.number = int.from_bytes(header[14:16], sys.byteorder)
                return
            pdu = self.login_header(0)
        raise AssertionError("the login does not end")

    @staticmethod
    def login_header(length: int) -> bytes:
        """From operational negotiation straight to full feature phase."""
        header = struct.pack(">BBBBI6sHI", LOGIN, 0x87, 0, 0, length, b"\x80rawid", 0, 1)
        return header.ljust(48, b"\0")

    def login_pdu(self) -> bytes:
        """The first of the login."""
        keys = {
            "InitiatorName": "iqn.2026-11.org.iosd:raw",
            "TargetName": self.address.target,
            "SessionType": "Normal",
            "HeaderDigest": "None",
            "DataDigest": "None",
            "InitialR2T": "Yes",
            "ImmediateData": "No",
            "MaxRecvDataSegmentLength": "65536",
            **self.keys,
        }
        text = b"".join(f"{key}={value}\0".encode() for key, value in keys.items())
        return self.pdu(self.login_header(len(text)), text)

    @staticmethod
    def pdu(header: bytes, data: bytes = b"") -> bytes:
        return header + data + bytes(-len(data) % 4)

    def command(
        self, cdb: bytes, *, data_out: int = 0, data_in: int = 0, tag: int = 2, serial: int = 0
    ) -> bytes:
        """A SCSI Command PDU with a 236-byte CDB; no immediate data."""
        flags = FINAL | (READ if data_in else 0) | (WRITE if data_out else 0)
        ahs = struct.pack(">HBB", len(cdb) - 15, 1, 0) + cdb[16:]
        if data_in and data_out:
            ahs += struct.pack(">HBBI", 5, 2, 0, data_in)
        expected = data_out or data_in
        lun = struct.pack(">BB6x", 0, self.address.lun)
        header = struct.pack(
            ">BBHB3s8sIIII16s",
            COMMAND, flags, 0, len(ahs) // 4, b"\0\0\0", lun, tag, expected, serial, 1, cdb[:16],
        )  # fmt: skip
        return header + ahs

    def data(self, tag: int, transfer_tag: int, offset: int, data: bytes, final: bool) -> bytes:
        """A Data-Out PDU in answer to an R2T."""
        lun = struct.pack(">BB6x", 0, self.address.lun)
        length = len(data).to_bytes(3, "big")
        header = struct.pack(">BB2xB3s8sII", DATA_OUT, FINAL * final, 0, length, lun, tag,
                             transfer_tag)  # fmt: skip
        header += struct.pack(">IIIII", 0, 1, 0, 0, offset)
        return self.pdu(header.ljust(48, b"\0"), data)

    def exactly(self, length: int) -> bytes:
        data = b""
        while len(data) < length:
            piece = self.socket.recv(length - len(data))
            if not piece:
                raise ConnectionError("the target closed the connection")
            data += piece
        return data

    def receive(self) -> tuple[bytes, bytes]:
        """One PDU: header and data."""
        header = self.exactly(48)
        ahs, length = header[4] * 4, int.from_bytes(header[5:8], "big")
        self.exactly(ahs)
        return header, self.exactly(length + -length % 4)[:length]
