# SPDX-License-Identifier: GPL-2.0-or-later
"""What an initiator may do to the hardened tgtd, at random: PDUs right and wrong, in and out of order,
before, in and after the login, read or not, cut off anywhere.

    python -m tests.wire_fuzz --seconds 60 [--seed N]     (make wirefuzz)

The daemon is one of `make tgtd-asan`: it must live, report nothing, serve others, and have no session
left at the end.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyosd
from iosd_host.serve.tgtd import find_tgtd
from pyosd import requests as rq
from pyosd.wire.cdb import encode
from tests.e2e.raw_iscsi import FINAL, READ, WRITE, reset_on_close
from tests.tgtd import NO_TAG, R2T, REJECT, TEST_UNIT_READY, Attacker, Daemon, ahs_cdb, ahs_length
from tests.waiting import until

SANITIZED = Path(__file__).resolve().parents[1] / "build" / "tgtd-asan" / "tgtd"
SESSIONS = 4
LOOK_EVERY = 100  # steps
SHORT_S = 0.02
PARAMETERS = {
    "MaxRecvDataSegmentLength": "65536",
    "FirstBurstLength": "65536",
    "InitialR2T": "No",
    "MaxQueueCmd": "16",
}
USUAL = (0, 1, 3, 4, 8, 511, 512, 4096, 8191, 65536)
LENGTHS = (*USUAL, 1 << 20, 1 << 28, (1 << 31) - 1, 1 << 31, (1 << 32) - 1)
OPCODES = (0x00, 0x12, 0x1A, 0x5A, 0xA0, 0xA3, 0x03, 0x28, 0x2F, 0x5E, 0x5F, 0x8F, 0xAF, 0x4C, 0xFF)
SEGMENTS = ("512", "513", "1023", "8190", "65536", "16777215", "0", "-1", "x")

KEYS = (
    "InitiatorName", "TargetName", "SessionType", "AuthMethod", "CHAP_A", "CHAP_N", "CHAP_R", "CHAP_I",
    "CHAP_C", "MaxRecvDataSegmentLength", "FirstBurstLength", "MaxConnections", "HeaderDigest", "OFMarkInt",
    "InitialR2T", "DataPDUInOrder", "SendTargets", "X-other", "",
)  # fmt: skip
VALUES = (*SEGMENTS, "CHAP", "None", "Yes", "CRC32C,x", "0b" + "A" * 24, "z" * 3000)


def sound(daemon: Daemon) -> None:
    """Raises: AssertionError: it is dead, has reported something, or does not answer a new session."""
    assert daemon.process.poll() is None, f"it ended\n{daemon.text()}"
    try:
        with Attacker(daemon) as session:
            session.ping(9)  # no command: those wait for ORDERED ones before them
            session.answer()
    except OSError as error:
        raise AssertionError(f"it does not serve: {error}") from None
    assert "AddressSanitizer" not in daemon.text()


class Fuzzer:
    """Some sessions, and what happens to them."""

    def __init__(self, daemon: Daemon, seed: int) -> None:
        self.daemon, self.rng = daemon, random.Random(seed)
        self.steps = 0
        self.offsets: dict[int, int] = {}  # of what R2Ts ask for, by command
        self.sessions: list[Attacker] = []
        self.tags: dict[Attacker, list[tuple[int, int, int]]] = {}  # transfer tag, length, command
        with pyosd.connect(daemon.url) as target:
            obj = target.create_and_write(target.create_partition(), bytes(50_000))
        self.cdbs = [
            bytes(encode(request)[0].cdb)
            for request in (
                rq.list_objects(0, 4096),
                rq.read(obj, 0, 65536),
                rq.write(obj, 0, bytes(65536)),
                rq.write(obj, 4096, bytes(512)),
                rq.get_attributes(obj),
                rq.create(obj.partition_id),
                rq.format_osd(),
            )
        ]
        self.acts: list[tuple[int, Callable[[Attacker], None]]] = [
            (30, self.osd),
            (15, self.scsi),
            (15, self.answer_r2t),
            (5, self.data_out),
            (5, self.manage),
            (6, self.ping),
            (20, self.read),
            (3, self.anything),
            (3, self.mutated),
            (3, self.cut),
            (2, self.logout),
            (2, self.gate),
        ]

    def run(self, seconds: float) -> None:
        """Raises: AssertionError: the daemon is not sound."""
        deadline = time.monotonic() + seconds
        weights = [weight for weight, _ in self.acts]
        while time.monotonic() < deadline:
            if self.steps % LOOK_EVERY == 0:
                sound(self.daemon)
            self.steps += 1
            if len(self.sessions) < SESSIONS:
                self.connect()
                continue
            session = self.rng.choice(self.sessions)
            act = self.rng.choices(self.acts, weights)[0][1]
            try:
                act(session)
            except OSError:
                self.drop(session)
        self.finish()

    def finish(self) -> None:
        for session in [*self.sessions]:
            self.drop(session)
        self.daemon.gate.unlink(missing_ok=True)
        assert self.daemon.serves(), "it does not serve"
        until(lambda: not self.daemon.connected(), "sessions are left", pause=0.05)

    def connect(self) -> None:
        """Mostly a login that works; else anything before it."""
        keys = {
            "InitialR2T": self.rng.choice(("Yes", "No")),
            "ImmediateData": self.rng.choice(("Yes", "No")),
            "MaxRecvDataSegmentLength": self.rng.choice(SEGMENTS),
            "FirstBurstLength": self.rng.choice(SEGMENTS),
            self.rng.choice(("SessionType", "X")): self.rng.choice(("Normal", "Discovery")),
        }
        session = Attacker(self.daemon, 5.0, **keys)
        try:
            if self.rng.random() < 0.1:
                header = bytearray(session.login_header(0))
                header[1] = self.rng.randrange(256)
                session.socket.sendall(bytes(header))
                self.anything(session)
            if self.rng.random() < 0.1:
                self.garbled_login(session)
            if self.rng.random() < 0.05:
                raise ConnectionError
            session.login()
            session.socket.settimeout(SHORT_S)
        except (OSError, AssertionError):
            session.socket.close()
            return
        self.sessions.append(session)
        self.tags[session] = []

    def garbled_login(self, session: Attacker) -> None:
        """Some requests of a login, of any stage, with keys that are known and values that are not."""
        rng = self.rng
        for _ in range(rng.randrange(1, 4)):
            pairs = [
                "".join((rng.choice(KEYS), rng.choice(("=", "", "\0")), rng.choice(VALUES)))
                for _ in range(rng.randrange(1, 8))
            ]
            text = "\0".join(pairs).encode()[: rng.choice((100, 8192))]
            header = bytearray(session.login_header(len(text)))
            header[1] = rng.choice((0x87, 0x81, 0x83, 0x00, 0x04, 0x01, 0xFF))
            header[15] = rng.choice((0, 0, 1))  # the session to join
            session.socket.sendall(session.pdu(bytes(header), text))
            session.answer()

    def drop(self, session: Attacker) -> None:
        if self.rng.random() < 0.5:
            with contextlib.suppress(OSError):
                reset_on_close(session.socket)
        session.socket.close()
        self.sessions.remove(session)
        del self.tags[session]

    # ---- what a session may do ----

    def flags(self) -> int:
        return (FINAL * (self.rng.random() < 0.8)) | self.rng.choice((0, READ, WRITE, READ | WRITE))

    def length(self) -> int:
        return self.rng.choice(USUAL if self.rng.random() < 0.9 else LENGTHS)

    def more(self, session: Attacker) -> dict[str, Any]:
        """Its destination, and its number: mostly the next."""
        found: dict[str, Any] = {"tag": self.rng.randrange(8), "attribute": self.rng.randrange(5)}
        if self.rng.random() < 0.05:
            found["serial"] = max(0, session.serial + self.rng.randrange(-3, 40))
        if self.rng.random() < 0.05:
            found["opcode"] = 0x41
        return found

    def osd(self, session: Attacker) -> None:
        cdb, data = self.rng.choice(self.cdbs), b""
        ahs = ahs_cdb(len(cdb) - 15, cdb[16:])
        flags = self.flags()
        if flags & READ and flags & WRITE:
            ahs += ahs_length(self.length())
        if self.rng.random() < 0.05:
            ahs = self.segments(cdb)
        if flags & WRITE and self.rng.random() < 0.5:
            data = bytes(self.rng.choice((4, 512, 4096)))
        session.scsi(cdb, flags, length=self.length(), ahs=ahs, data=data, **self.more(session))

    def segments(self, cdb: bytes) -> bytes:
        """Additional header segments of any kind."""
        parts = [
            ahs_cdb(len(cdb) - 15, cdb[16:]),
            ahs_length(self.length()),
            struct.pack(">HBB", self.rng.randrange(1 << 16), self.rng.randrange(4), 0),
            ahs_cdb(self.rng.choice((0, 1, 2, 244, 245, 246, 0xFFFF)), self.rng.randbytes(8)),
            self.rng.randbytes(4 * self.rng.randrange(1, 20)),
        ]
        return b"".join(self.rng.sample(parts, self.rng.randrange(1, 4)))[:1020]

    def scsi(self, session: Attacker) -> None:
        cdb = bytes([self.rng.choice(OPCODES)]) + self.rng.choice(
            (bytes(15), self.rng.randbytes(15), bytes(5) + b"\0\0\x10\0" + bytes(6))
        )
        if self.rng.random() < 0.3:
            cdb = TEST_UNIT_READY
        lun = self.rng.choice((0, 1, 1, 5, 0x40))
        session.scsi(cdb, self.flags(), length=self.length(), lun=lun, **self.more(session))

    def answer_r2t(self, session: Attacker) -> None:
        if not self.tags[session]:
            self.read(session)
            return
        ttt, length, tag = self.tags[session].pop()
        at = self.offsets.get(tag, 0)
        session.data_out(ttt, at, bytes(min(length, 65536)), final=length <= 65536, tag=tag)

    def data_out(self, session: Attacker) -> None:
        offset = self.rng.choice((0, 512, 4096, 0xF000_0000))
        ttt = self.rng.choice((NO_TAG, 1, 2, 3, 4))
        data = bytes(self.rng.choice((0, 512, 4096)))
        final = self.rng.random() < 0.5
        session.data_out(ttt, offset, data, final=final, tag=self.rng.randrange(8))

    def manage(self, session: Attacker) -> None:
        data = self.rng.choice((b"", b"", b"", bytes(64)))
        session.manage(
            self.rng.randrange(10), self.rng.randrange(8), self.rng.randrange(8), data=data
        )

    def ping(self, session: Attacker) -> None:
        for _ in range(self.rng.choice((1, 1, 1, 200))):
            tag = self.rng.choice((9, 9, NO_TAG))
            session.ping(tag, data=bytes(self.rng.choice((0, 0, 3, 8191))))

    def read(self, session: Attacker) -> None:
        """Some answers; what R2Ts ask for is remembered."""
        for _ in range(self.rng.randrange(20)):
            try:
                header, _ = session.answer()
            except TimeoutError:
                return
            if header[0] == R2T:
                tag, ttt = struct.unpack(">II", header[16:24])
                at, length = struct.unpack(">II", header[40:48])
                self.offsets[tag] = at
                self.tags[session].append((ttt, length, tag))
            if header[0] == REJECT:
                raise ConnectionError

    def anything(self, session: Attacker) -> None:
        length = self.rng.choice((0, 0, 16, 512))
        ahs = bytes(4 * self.rng.choice((0, 0, 1, 255)))
        fields = self.rng.randbytes(40)
        session.send(
            self.rng.randrange(256), self.rng.randrange(256), fields, ahs=ahs, data=bytes(length)
        )

    def mutated(self, session: Attacker) -> None:
        """A right command, some bits of its header wrong; lengths too, so that the end is soon."""
        cdb = self.rng.choice(self.cdbs)
        sent = bytearray(session.command(cdb, data_in=4096, tag=3, serial=session.serial))
        for _ in range(self.rng.randrange(1, 4)):
            sent[self.rng.randrange(48)] ^= 1 << self.rng.randrange(8)
        session.socket.sendall(bytes(sent))

    def cut(self, session: Attacker) -> None:
        cdb = self.rng.choice(self.cdbs)
        sent = session.command(cdb, data_out=4096, tag=3, serial=session.serial)
        sent += session.data(3, self.rng.choice((NO_TAG, 1, 2, 3)), 0, bytes(512), True)
        session.socket.sendall(sent[: self.rng.randrange(len(sent))])
        raise ConnectionError

    def logout(self, session: Attacker) -> None:
        session.send(0x46, FINAL, struct.pack(">8xIIII", 7, 0, session.serial, 1))
        if self.rng.random() < 0.5:
            self.scsi(session)

    def gate(self, _: Attacker) -> None:
        """FORMAT OSD waits, or goes on."""
        if self.daemon.gate.exists():
            self.daemon.gate.unlink()
        else:
            self.daemon.gate.touch()


def main() -> int:
    """Exit 1: something was found; the seed repeats it, as far as the timing allows."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(32))
    given = parser.parse_args()
    subprocess.run([SANITIZED.parents[2] / "tools" / "build-tgtd.sh", "asan"], check=True)
    with Daemon(find_tgtd(str(SANITIZED)), **PARAMETERS) as daemon:
        fuzzer = Fuzzer(daemon, given.seed)
        try:
            fuzzer.run(given.seconds)
        except (AssertionError, OSError) as error:
            print(f"seed {given.seed}, step {fuzzer.steps}: {error}\n{daemon.text()}")
            return 1
    print(f"seed {given.seed}: {fuzzer.steps} steps, nothing found")
    return 0


if __name__ == "__main__":
    sys.exit(main())
