# SPDX-License-Identifier: GPL-2.0-or-later
"""A target's core whose keys a test has, and commands signed by a few lines of the test's own."""

from __future__ import annotations

import hmac
import secrets
import time
from dataclasses import dataclass, field
from pathlib import Path

from pyosd import requests as rq
from pyosd.types import ROOT, ObjectRef, ObjectType, ref
from pyosd.wire.capability import Capability, Permission, SecurityMethod
from pyosd.wire.cdb import Request, encode
from pyosd.wire.sense import decode
from pyosd.wire.transport import Command, Response
from tests.harness import Harness

ROOT_KEY, PARTITION_KEY, WORKING_KEY = 1, 2, 3
EVERYTHING = Permission(0xFFFE)
CMDRSP = SecurityMethod.CMDRSP


def mac(key: bytes, *parts: bytes) -> bytes:
    return hmac.digest(key, b"".join(parts), "sha256")


@dataclass(frozen=True)
class Key:
    """Both parts; a working key's second is not used."""

    authentication: bytes
    generation: bytes = b""

    def derive(self, seed: bytes, suffix: bytes = b"") -> Key:
        inverted = seed[:-1] + bytes([seed[-1] ^ 1])
        return Key(mac(self.generation, inverted, suffix), mac(self.generation, seed, suffix))


@dataclass
class Keyed:
    """A harness with a master key, and the keys that were set since."""

    harness: Harness
    file: Path
    keys: dict[str, Key] = field(default_factory=dict)
    system_id: bytes = b""

    def __post_init__(self) -> None:
        _, *lines = self.file.read_text().splitlines()
        said = {name: bytes.fromhex(value) for name, value in (each.split() for each in lines)}
        self.keys["master"] = Key(said["authentication"], said["generation"])
        self.system_id = said["system-id"]

    # ---- commands -----------------------------------------------------------------------------

    def signed(
        self,
        request: Request,
        key: Key,
        obj: ObjectRef = ROOT,
        kind: ObjectType = ObjectType.ROOT,
        nonce: bytes = b"",
        method: SecurityMethod = CMDRSP,
        version: int = 0,
    ) -> Command:
        """The request under a capability for everything."""
        command, _ = encode(request)
        capability = Capability(obj, kind, EVERYTHING, method, key_version=version).encode()
        proof = mac(key.authentication, capability, self.system_id)
        cdb = bytearray(command.cdb)
        cdb[80:184] = capability
        cdb[184:216] = bytes(32)
        cdb[216:228] = nonce or self.nonce()
        cdb[184:216] = mac(proof, bytes(cdb))
        return Command(bytes(cdb), command.data_out, command.data_in_length)

    @staticmethod
    def nonce(time_ms: int = 0) -> bytes:
        return (time_ms or int(time.time() * 1000)).to_bytes(6, "big") + secrets.token_bytes(6)

    def send(self, command: Command) -> Response:
        return self.harness.transport.submit(command).result()

    # ---- keys ---------------------------------------------------------------------------------

    def set_key(
        self, level: int, pid: int = 0, version: int = 0, seed: bytes = b"", by: Key | None = None
    ) -> Response:
        """SET KEY, signed as it should be or by another key; remembers the new one if it is taken."""
        parent = {ROOT_KEY: "master", PARTITION_KEY: "root", WORKING_KEY: f"partition {pid}"}[level]
        seed = seed or secrets.token_bytes(20)
        request = rq.set_key(level, pid, version, f"{level}-{version:05}".encode(), seed)
        kind = ObjectType.PARTITION if pid else ObjectType.ROOT
        command = self.signed(request, by or self.keys[parent], ref(pid), kind)
        response = self.send(command)
        if not response.status:
            name = {ROOT_KEY: "root", PARTITION_KEY: f"partition {pid}"}.get(level)
            self.keys[name or f"working {pid} {version}"] = self.keys[parent].derive(seed)
        return response

    def provide(self, pid: int) -> Key:
        """Every level down to the partition's working key 0."""
        good(self.set_key(ROOT_KEY))
        good(self.set_key(PARTITION_KEY))
        good(self.set_key(WORKING_KEY))
        good(self.set_key(PARTITION_KEY, pid))
        good(self.set_key(WORKING_KEY, pid))
        return self.keys[f"working {pid} 0"]

    def identifier(self, pid: int, number: int) -> bytes:
        page = 0x3000_0005 if pid else 0x9000_0005
        return self.harness.osd.get_attribute(ref(pid), page, number)


def good(response: Response) -> None:
    assert response.status == 0, code(response)


def code(response: Response) -> tuple[int, int, int | None]:
    """ASC, ASCQ, field pointer."""
    assert response.status == 2, response
    sense = decode(response.sense)
    assert sense is not None
    return sense.asc, sense.ascq, sense.field_pointer
