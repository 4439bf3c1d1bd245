# SPDX-License-Identifier: GPL-2.0-or-later
"""The golden vectors are what vectors.py computes, and what the client computes; the target's test is
target/security/test_vectors.c.
"""

from __future__ import annotations

import json

import pytest

from pyosd.security.credentials import Credential
from pyosd.wire.capability import Algorithm, Capability, SecurityMethod, mac
from pyosd.wire.cdb import decode_offset
from tests.security import vectors

GOLDEN = {
    name: bytes.fromhex(value)
    for name, value in json.loads((vectors.FOLDER / "vectors.json").read_text()).items()
}
ALGORITHMS = {"sha256": Algorithm.HMAC_SHA256, "sha1": Algorithm.HMAC_SHA1}
by_algorithm = pytest.mark.parametrize("name", ALGORITHMS)


def test_files_are_up_to_date() -> None:
    hint = "run: .venv/bin/python -m tests.security.vectors"
    assert (vectors.FOLDER / "vectors.json").read_text() == vectors.as_json(), hint
    assert (vectors.FOLDER / "vectors.txt").read_text() == vectors.as_text(), hint


@by_algorithm
def test_client_makes_the_same_capability_keys(name: str) -> None:
    for prefix, method in (("capkey.", SecurityMethod.CAPKEY), ("", SecurityMethod.ALLDATA)):
        bytes_of_it = GOLDEN[f"{name}.{prefix}capability"]
        capability = Capability.decode(bytes_of_it)
        assert capability.encode() == bytes_of_it
        assert (capability.method, capability.algorithm) == (method, ALGORITHMS[name])
        credential = Credential.sign(capability, GOLDEN["secret"], GOLDEN["system_id"])
        assert credential.key == GOLDEN[f"{name}.{prefix}capability_key"]


@by_algorithm
def test_client_makes_the_same_check_values(name: str) -> None:
    algorithm = ALGORITHMS[name]
    key, cdb = GOLDEN[f"{name}.capability_key"], GOLDEN[f"{name}.cdb"]
    assert cdb[216:228] == GOLDEN["nonce"] and cdb[80:184] == GOLDEN[f"{name}.capability"]
    assert decode_offset(int.from_bytes(cdb[232:236], "big")) == 4096
    parts = {
        "request": [cdb],
        "continuation": [GOLDEN["nonce"], GOLDEN["continuation"]],
        "response_good": [GOLDEN["nonce"], b"\0", GOLDEN["page"]],
        "response_sense": [GOLDEN["nonce"], b"\2", GOLDEN["sense"]],
    }
    for each, values in parts.items():
        assert mac(key, *values, algorithm=algorithm) == GOLDEN[f"{name}.{each}"], each
