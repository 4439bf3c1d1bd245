# SPDX-License-Identifier: GPL-2.0-or-later
"""Signing, typed from docs/security-protocol.md: keys of a target, capabilities, check values; and a
logical unit to which everything is sent signed.

Lives here: no code of the project's client or target, like the rest of this suite.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import struct
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyosd.wire.transport import Command
from tests.conformance import wire as w
from tests.conformance.lu import GOOD, Answer, LogicalUnit
from tests.fields import replace

NOSEC, CAPKEY, CMDRSP, ALLDATA = range(4)
SHA256, SHA1 = 0, 1
EVERYTHING = 0xFFFE
"""All permission bits there are."""
NEW_PARTITION, SET_KEY, SET_MASTER_KEY = 0x888B, 0x8898, 0x8899
OF_ROOT = (0x8881, 0x889C, 0x8F7C, 0x8F7D)
OF_PARTITION_ZERO = (0x8881, 0x889C, NEW_PARTITION, 0x888C)
OF_PARTITIONS = (0x8880, 0x8883, NEW_PARTITION, 0x888C, 0x889B)
OF_COLLECTIONS = (0x8894, 0x8895, 0x8896, 0x8897, 0x889A, 0x88A0, 0x88A1, 0x88A2, 0x88A3)
SEED = bytes(range(20))
_DIGESTS = (hashlib.sha256, hashlib.sha1)


def mac(algorithm: int, key: bytes, *parts: bytes) -> bytes:
    """A check value."""
    return hmac.digest(key, b"".join(parts), _DIGESTS[algorithm]).ljust(32, b"\0")


@dataclass(frozen=True)
class Pair:
    """A key with its two parts."""

    authentication: bytes
    generation: bytes

    def below(self, seed: bytes = SEED) -> Pair:
        """The key that SET KEY makes from it."""
        other = seed[:-1] + bytes((seed[-1] ^ 1,))
        return Pair(mac(SHA256, self.generation, other), mac(SHA256, self.generation, seed))


def read_master(path: Path) -> tuple[Pair, bytes]:
    """The initial master key and the system id, from the file the target made."""
    head, *lines = path.read_text().split("\n")
    assert head == "iosd master key 1"
    found = {name: bytes.fromhex(value) for name, value in (x.split() for x in lines if x)}
    return Pair(found["authentication"], found["generation"]), found["system-id"]


@dataclass(frozen=True)
class Proof:
    """What goes with a request: fields of its capability, the key that signs it, and how it is signed.

    fields: overwritten bytes of the capability, by CDB offset.  nonce: None: a fresh one.
    offsets: of integrity information in Data-In and Data-Out; None: as they should be.
    tampered: flips one bit after signing: "request", "continuation", "data-out", or a CDB byte.
    """

    secret: bytes
    method: int
    kind: int
    pid: int
    oid: int
    permissions: int = EVERYTHING
    algorithm: int = SHA256
    version: int = 0
    tag: int = 0
    fields: Mapping[int, bytes] = field(default_factory=dict)
    nonce: bytes | None = None
    tampered: str | int | None = None
    extensions: tuple[Proof, ...] = ()
    offsets: tuple[int, int] | None = None

    def but(self, **changes: Any) -> Proof:
        return replace(self, **changes)

    def capability(self) -> bytes:
        """The 104 bytes."""
        found = bytearray(104)
        found[0], found[1], found[2] = 2, self.version << 4 | self.algorithm, self.method
        found[48] = self.kind
        found[49:51] = self.permissions.to_bytes(2, "big")
        found[55] = {w.ROOT: 2, w.PARTITION: 2, w.COLLECTION: 3, w.USER_OBJECT: 1}[self.kind] << 4
        found[60:64] = self.tag.to_bytes(4, "big")
        found[72:88] = struct.pack(">QQ", self.pid, self.oid)
        for at, value in self.fields.items():
            found[at - 80 : at - 80 + len(value)] = value
        return bytes(found)


def fresh_nonce() -> bytes:
    return int(time.time() * 1000).to_bytes(6, "big") + os.urandom(6)


class Guarded(LogicalUnit):
    """A logical unit whose partitions have a security method; what is sent is signed by it.

    Args: master: the initial master key file.  token: VPD page B1h's.  method: of all that is signed.
    """

    def __init__(
        self, transport: Any, master: Path, token: bytes, method: int, **options: Any
    ) -> None:
        super().__init__(transport, **options)
        self.master, self.system_id = read_master(master)
        self.token = token
        self.security_method = method
        self.algorithm = SHA256
        root = self.master.below()
        zero = root.below()
        self.root, self.zero = root, zero
        self.collections: set[int] = set()  # ids under which they were made

    def take_over(self) -> None:
        """Set the keys of root and partition zero."""
        self._set_key(0, 1, self.master.authentication)
        self._set_key(0, 2, self.root.authentication)
        self._set_key(0, 3, self.zero.authentication)

    def give_keys(self, pid: int) -> None:
        """Partition key and working key 0."""
        self._set_key(pid, 2, self.root.authentication)
        self._set_key(pid, 3, self.zero.authentication)  # the same seed: the same key

    def working(self) -> bytes:
        """The authentication key of working keys: of every partition the same, made with one seed."""
        return self.zero.below().authentication

    def _set_key(self, pid: int, which: int, secret: bytes) -> None:
        request = w.Request(SET_KEY, pid, byte11=which)
        request = request.patched(32, SEED).patched(25, b"keyname")
        kind = w.PARTITION if pid else w.ROOT
        self.is_good(
            self.send_proved(
                request, Proof(secret, max(CMDRSP, self.security_method), kind, pid, 0)
            )
        )

    # ---- who signs what ----

    def proof(self, request: w.Request) -> Proof:
        """A capability for the request, and for no other object."""
        pid, oid = request.pid, request.oid
        if request.action in OF_PARTITIONS or (oid == 0 and request.action not in _MADE):
            kind, oid = (w.PARTITION, 0) if pid else (w.ROOT, 0)
        elif request.action in OF_COLLECTIONS or 0x1000 <= oid < w.FIRST_ID:
            kind = w.COLLECTION
        else:
            kind = self._kind(request)
        if request.action in OF_ROOT:
            kind, pid, oid = w.ROOT, 0, 0
        if request.action == NEW_PARTITION:
            kind = w.PARTITION
        return Proof(self.working(), self.security_method, kind, pid, oid, algorithm=self.algorithm)

    def _kind(self, request: w.Request) -> int:
        if request.action in (0x888E, 0x888F, 0x8F81, 0x8F82) and request.oid in self.collections:
            return w.COLLECTION
        return w.USER_OBJECT

    def free_oid(self) -> int:
        oid = super().free_oid()
        self.collections.discard(oid)
        return oid

    # ---- sending ----

    def submit(self, request: w.Request) -> Callable[[], Answer]:
        wait = self._submit_proved(request, self.proof(request))
        if request.action not in (NEW_PARTITION, 0x8894, 0x8895):
            return wait

        def then() -> Answer:
            answer = wait()
            if answer.status == GOOD and request.action == NEW_PARTITION:
                self.give_keys(request.pid)
            elif answer.status == GOOD:
                self.collections.add(request.oid)
            return answer

        return then

    def send_proved(self, request: w.Request, proof: Proof) -> Answer:
        """Send with that proof and no other."""
        return self._submit_proved(request, proof)()

    def _submit_proved(self, request: w.Request, proof: Proof) -> Callable[[], Answer]:
        built, signing = self.sign(request, proof)
        pending = self.transport.submit(Command(built.cdb, built.data_out, built.data_in_length))

        def wait() -> Answer:
            response = pending.result()
            data = bytes(response.data_in)
            answer = Answer(
                built, response.status, bytes(response.sense), data, response.residual_in
            )
            self.last.append(answer)
            signing.verify(self, answer)
            return answer if proof.method < ALLDATA else replace(answer, data=signing.plain(data))

        return wait

    def sign(self, request: w.Request, proof: Proof) -> tuple[w.Built, Signing]:
        """The request with its capability and check values."""
        built = request.build()
        cdb, out = bytearray(built.cdb), bytearray(built.data_out)
        cdb[80:184] = proof.capability()
        key = mac(proof.algorithm, proof.secret, bytes(cdb[80:184]), self.system_id)
        signing = Signing(proof, key, built, b"", -1)
        if proof.method == CAPKEY:
            cdb[184:216] = mac(proof.algorithm, key, self.token)
        elif proof.method >= CMDRSP:
            signing = self._sign_all(request, proof, signing, cdb, out)
        self._sign_segment(request, proof, signing, cdb, out)
        for at, value in request.patches.items():
            if at >= 184:
                cdb[at : at + len(value)] = value
        if proof.tampered == "request":
            cdb[190] ^= 4
        elif proof.tampered == "continuation":
            out[20] ^= 4
        elif proof.tampered == "data-out":
            out[-1] ^= 4
        elif isinstance(proof.tampered, int):
            cdb[proof.tampered] ^= 1
        room = built.data_in_length if signing.at < 0 else signing.at + 48
        return replace(built, cdb=bytes(cdb), data_out=bytes(out), data_in_length=room), signing

    def _sign_all(
        self,
        request: w.Request,
        proof: Proof,
        signing: Signing,
        cdb: bytearray,
        out: bytearray,
    ) -> Signing:
        nonce = proof.nonce or fresh_nonce()
        cdb[216:228] = nonce
        cdb[228:236] = b"\xff" * 8
        at = -1
        if proof.method == ALLDATA:
            if signing.built.data_in_length:
                code, at = w.offset(signing.built.data_in_length)
                cdb[228:232] = code.to_bytes(4, "big")
            if out:
                cdb[232:236] = self._append_integrity(proof, signing.key, nonce, cdb, out)
        if proof.offsets:
            cdb[228:236] = struct.pack(">II", *proof.offsets)
        plain = bytes(cdb[:184]) + bytes(32) + bytes(cdb[216:])
        cdb[184:216] = mac(proof.algorithm, signing.key, plain)
        return replace(signing, nonce=nonce, at=at)

    def _append_integrity(
        self, proof: Proof, key: bytes, nonce: bytes, cdb: bytearray, out: bytearray
    ) -> bytes:
        parts, counts = [], []
        for start, length in _segments(cdb):
            parts.append(bytes(out[start : start + length]))
            counts.append(length)
        code, at = w.offset(len(out))
        head = struct.pack(">QQQ", *counts)
        out.extend(bytes(at - len(out)) + head + mac(proof.algorithm, key, nonce, *parts, head))
        return code.to_bytes(4, "big")

    def _sign_segment(
        self,
        request: w.Request,
        proof: Proof,
        signing: Signing,
        cdb: bytearray,
        out: bytearray,
    ) -> None:
        """Check values in a continuation segment, which begins Data-Out."""
        length = len(request.segment)
        bound = bytes(cdb[184:216]) if proof.method >= CMDRSP else self.token
        at = length - 136 * len(proof.extensions)
        for each in proof.extensions:
            capability = each.capability()
            key = mac(each.algorithm, each.secret, capability, self.system_id)
            value = mac(each.algorithm, key, bound)
            if each.tampered:
                value = bytes((value[0] ^ 1,)) + value[1:]
            out[at : at + 136] = capability + value
            at += 136
        if length and proof.method >= CMDRSP:
            out[8:40] = bytes(32)
            value = mac(proof.algorithm, signing.key, signing.nonce, bytes(out[:length]))
            out[8:40] = value


_MADE = (0x8882, 0x8892, 0x8893, 0x8894, 0x8895)
_COUNTERS = {0x8F84: 16, 0x8F85: 8}
_SENDS = (0x8886, 0x8887, 0x8892, 0x8F81, 0x8F82)


def _segments(cdb: bytes | bytearray) -> list[tuple[int, int]]:
    """Offsets of command data, set list and get list in Data-Out, from the CDB."""

    def number(at: int, length: int = 4) -> int:
        return int.from_bytes(cdb[at : at + length], "big")

    def place(at: int) -> int:
        code = number(at)
        exponent = (code >> 28) - 16 if code >> 31 else code >> 28
        return int((code & 0x0FFF_FFFF) * 2.0 ** (exponent + 8))

    action, form = number(8, 2), cdb[11] >> 4 & 3
    behind = (
        number(48)
        if action in (0x8885, 0x8886, 0x8892, 0x8893, 0x8894, 0x88A0, 0x8F81, 0x8F82)
        else 0
    )
    data = _COUNTERS.get(action, number(32, 8) if action in _SENDS else 0)
    if action == SET_MASTER_KEY:
        data = number(32)
    parts = [(behind, data)]
    if form == w.LIST:
        return [*parts, (place(72), number(68)), (place(56), number(52))]
    if form == w.PAGE:
        return [*parts, (place(76), number(72) if number(64) else 0), (0, 0)]
    return [*parts, (0, 0), (0, 0)]


@dataclass(frozen=True)
class Signing:
    """The expected proof of an answer. at: offset of Data-In's integrity information; -1:
    nowhere."""

    proof: Proof
    key: bytes
    built: w.Built
    nonce: bytes
    at: int

    def _mac(self, *parts: bytes) -> bytes:
        return mac(self.proof.algorithm, self.key, self.nonce, *parts)

    def plain(self, data: bytes) -> bytes:
        """Data-In as it would be without integrity information."""
        if self.at < 0 or len(data) <= self.at:
            return data
        counts = struct.unpack_from(">QQ", data, self.at)
        return data[: self.built.retrieved_at + counts[1] if counts[1] else counts[0]]

    def verify(self, unit: LogicalUnit, answer: Answer) -> None:
        """Check values of sense data and of Data-In.  Raises: Failed."""
        if self.proof.method < CMDRSP:
            return
        sense = answer.sense_data
        unproved = sense[2:4] == b"\x24\x00" and sense[8:10] != b"\x07\x20"
        if answer.status != GOOD and not unproved:
            unit.check(sense[8:10] == b"\x07\x20", answer, "descriptor 07h first")
            zero = sense[:10] + bytes(32) + sense[42:]
            expected = self._mac(bytes((answer.status,)), zero)
            unit.same(sense[10:42], expected, "response check value", answer)
        if answer.data and self.proof.method == ALLDATA:
            self._verify_data(unit, answer)

    def _verify_data(self, unit: LogicalUnit, answer: Answer) -> None:
        data = answer.data
        unit.check(len(data) >= self.at + 48, answer, "integrity information with Data-In")
        first, second = struct.unpack_from(">QQ", data, self.at)
        start = self.built.retrieved_at
        expected = self._mac(
            data[:first], data[start : start + second], data[self.at : self.at + 16]
        )
        unit.same(data[self.at + 16 : self.at + 48], expected, "check value of Data-In", answer)
