# SPDX-License-Identifier: GPL-2.0-or-later
"""The hardened tgtd under AddressSanitizer (`make tgtd-asan`): additional header segments of every length,
a few seconds of tests/wire_fuzz.py, and what stock tgtd does to its memory in CHAP, which only a
sanitizer sees.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator

import pytest

from iosd_host.serve.tgtd import Tgtd, find_tgtd
from pyosd import requests as rq
from pyosd.wire.cdb import encode
from tests.e2e.raw_iscsi import FINAL, LOGIN, READ, WRITE
from tests.serving import missing
from tests.tgtd import ANSWER_S, RESPONSE, Attacker, Daemon, ahs_cdb, ahs_length
from tests.wire_fuzz import PARAMETERS, SANITIZED, Fuzzer, sound

pytestmark = pytest.mark.tgtd

FUZZ_S = 2.0
CDB = bytes(encode(rq.list_objects(0, 4096))[0].cdb)
USER, SECRET = "alice", "a secret of some length"


@pytest.fixture(scope="module")
def tgtd() -> Tgtd:
    why = missing() or (None if SANITIZED.exists() else "no sanitized tgtd: run 'make tgtd-asan'")
    if why:
        pytest.skip(why)
    return find_tgtd(str(SANITIZED))


LENGTHS = (*range(9), 219, 220, 221, 222, 223, 244, 245, 246, 247, 260, 261, 1016, 1017, 1018, 0x7FFF,
           0x8000, 0xFFFC, 0xFFFD, 0xFFFE, 0xFFFF)  # fmt: skip


def seeds() -> Iterator[tuple[bytes, int]]:
    """Segments, and how many words of them the header announces."""
    whole = ahs_cdb(len(CDB) - 15, CDB[16:])
    for length in LENGTHS:
        for room in (0, 4, 220, 1016):
            segment = struct.pack(">HBB", length, 1, 0) + bytes(room)
            yield segment, len(segment) // 4
        segment = struct.pack(">HBB", length, 2, 0) + bytes(8)
        yield segment, 3
        yield whole + segment, len(whole + segment) // 4
    orders = [whole, ahs_length(64)], [ahs_length(64), whole], [whole, whole], [ahs_length(64)] * 2
    for parts in orders:
        joined = b"".join(parts)
        yield joined, len(joined) // 4
        yield joined + bytes(8), len(joined) // 4 + 2
        for words in (1, 2, 3, len(joined) // 4 - 1):
            yield joined[: 4 * words], words
    yield ahs_length(64), 2


def test_additional_header_segments(tgtd: Tgtd) -> None:
    """Each is answered, by status or Reject, and the daemon is well."""
    with Daemon(tgtd, **PARAMETERS) as daemon, contextlib.ExitStack() as stack:
        session: Attacker | None = None
        for number, (ahs, words) in enumerate(seeds()):
            assert len(ahs) == words * 4
            if session is None:
                session = stack.enter_context(Attacker(daemon)).ready()
            flags = FINAL | (READ, WRITE, READ | WRITE)[number % 3]
            session.scsi(CDB, flags, length=0 if flags & WRITE else 4096, ahs=ahs)
            outcome = session.outcome()
            assert outcome in (9, f"{RESPONSE:#x}", "0x25"), (ahs[:16], outcome)
            if outcome == 9:
                session.socket.close()
                session = None
            elif outcome == "0x25" and flags & WRITE:
                session.answer()
        sound(daemon)


def test_fuzz(tgtd: Tgtd, seed: int) -> None:
    with Daemon(tgtd, **PARAMETERS) as daemon:
        fuzzer = Fuzzer(daemon, seed)
        try:
            fuzzer.run(FUZZ_S)
        except (AssertionError, OSError) as error:
            raise AssertionError(f"step {fuzzer.steps}: {error}\n{daemon.text()}") from error


class Doubter(Attacker):
    """Stays in the security stage of the login."""

    def ask(self, keys: dict[str, str]) -> bytes:
        """Returns: the answer, status and data."""
        text = b"".join(f"{key}={value}\0".encode() for key, value in keys.items())
        header = struct.pack(">BBBBI6sHI", LOGIN, 0, 0, 0, len(text), b"\x80rawid", 0, 1)
        self.socket.sendall(self.pdu(header.ljust(48, b"\0"), text))
        header, data = self.answer()
        return header[36:38] + data

    def challenged(self) -> Doubter:
        own = {"InitiatorName": "iqn.2026-11.org.iosd:raw", "SessionType": "Normal"}
        told = self.ask({**own, "TargetName": self.address.target, "AuthMethod": "CHAP"})
        assert b"AuthMethod=CHAP" in told
        assert b"CHAP_C=0x" in self.ask({"CHAP_A": "5"})
        return self


def with_account(daemon: Daemon) -> None:
    daemon.adm("new", "account", "--user", USER, "--password", SECRET)
    daemon.adm("bind", "account", "--tid", "1", "--user", USER)


def test_chap_response(tgtd: Tgtd) -> None:
    """18 bytes were written where there are 16; less left the rest as it was."""
    with Daemon(tgtd) as daemon:
        with_account(daemon)
        for digits in ("A" * 24, "A" * 20 + "====", "A" * 23 + "=", "AAAA", "A", "", "A" * 400):
            doubter = Doubter(daemon).challenged()
            answer = doubter.ask({"CHAP_N": USER, "CHAP_R": f"0b{digits}"})
            assert answer[0] == 2, "an error of the initiator"
            doubter.socket.close()
        assert daemon.process.poll() is None, daemon.text()


def test_chap_challenge(tgtd: Tgtd) -> None:
    """It is freed with its connection: LeakSanitizer looks when the daemon ends."""
    daemon = Daemon(tgtd)
    daemon.environment["ASAN_OPTIONS"] = "detect_leaks=1:verify_asan_link_order=0"
    with daemon:
        with_account(daemon)
        for _ in range(3):
            Doubter(daemon).challenged().socket.close()
        last = Doubter(daemon).challenged()  # answered after those were seen to leave
        daemon.adm("delete", "target", "--force")
        daemon.adm("delete", "system")
        daemon.process.wait(ANSWER_S)
        last.socket.close()
        text = daemon.log.read_text(errors="replace")
    if "LeakSanitizer" not in text:
        pytest.skip("LeakSanitizer cannot look here")
    assert "chap_initiator_auth" not in text
