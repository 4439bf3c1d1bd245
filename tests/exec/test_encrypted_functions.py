# SPDX-License-Identifier: GPL-2.0-or-later
"""Code of functions that only the target can read (docs/functions.md, "Encrypted code")."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import pyosd
import pyosd.functions
from pyosd.errors import OSDError
from pyosd.security.code_box import INFO, MAGIC, encrypt
from pyosd.security.function_signature import SIGNATURE, sign, statement
from pyosd.types import AttributeValue, ObjectRef, ref
from pyosd.wire.exec_params import ArgsEncoding, CallRecord, ExecParams, FunctionCall
from pyosd.wire.job_status import JobState
from tests import warm
from tests.exec.conftest import WAIT_S
from tests.exec.signing import FINGERPRINT, MakeKey, Serve
from tests.exec.test_functions import FUNCTIONS, PAGE, attribute, call, result
from tests.serving import Serving, arguments

x25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.x25519")
pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

BOX_KEY, BAD_BOX = 0x13, 0x8023
SECRET = "the recipe of " + "soup" * 5
CODE = f"RECIPE = {SECRET!r}\ndef main(args):\n    return len(RECIPE) + args\n".encode()
THIEF = """
import _osdcore as c, os
c.call(1, 0, 0, 0, 0, bytes(4))  # the end of this script, so the target keeps the sandbox
c.call(4, 0, 0)  # and is asked for the next job
stolen = os.read(4, 1 << 20)
c.call(1, 1, len(stolen), 0, 0, bytes(4) + stolen)  # the result of the call
os._exit(0)
"""


def put(target: pyosd.Target, make: Callable[[bytes], bytes]) -> ObjectRef:
    """A function object with what is made for the target's key."""
    obj = target.create(FUNCTIONS)
    target.write(obj, 0, make(attribute(target, obj, BOX_KEY)))
    return obj


def given(data: bytes, _: bytes) -> bytes:
    return data


def refuse(target: pyosd.Target, obj: ObjectRef) -> None:
    with pytest.raises(OSDError) as caught:
        target.activate_function(obj)
    assert (caught.value.asc << 8 | caught.value.ascq) == BAD_BOX


def recorded(target: pyosd.Target, zone: ObjectRef, function: int) -> object:
    """The result of a call with a record, whose code is stored until its end."""
    named = FunctionCall(FUNCTIONS, function, "", ArgsEncoding.JSON)
    reply = target.call_function(zone, b"1", ExecParams(function=named), synchronous=False)
    assert reply.job is not None
    job = target.job(reply.job)
    job.wait(WAIT_S)
    return job.result()


def test_encrypted_code_runs_and_is_nowhere_in_the_store(folder: Path) -> None:
    store = folder / "store"
    large = CODE + b"# " + secrets.token_hex(200_000).encode() + b"\n"
    with Serving(*arguments(), data=store) as serving:
        with serving.connect() as target:
            target.create_partition(FUNCTIONS)
            zone = ref(target.create_partition())
            functions = [put(target, partial(encrypt, code)) for code in (CODE, large)]
            for obj in functions:
                target.activate_function(obj)
                assert result(target, call(target, zone, obj.object_id, 1)) == len(SECRET) + 1
                assert recorded(target, zone, obj.object_id) == len(SECRET) + 1
                data = bytes(target.read(obj, 0, 100))
                assert data.startswith(MAGIC) and b"RECIPE" not in data
            serving.kill("tgtd")
            serving.restarted()
        with serving.connect() as target:
            target.exec("pass", zone=zone).wait(WAIT_S)  # there are sandboxes again
            for obj in functions:
                assert result(target, call(target, zone, obj.object_id, 1)) == len(SECRET) + 1
        assert SECRET not in serving.text()
    for path in store.rglob("*"):
        if path.is_file():
            assert b"RECIPE" not in path.read_bytes(), path


def test_what_does_not_open_is_refused(target: pyosd.Target) -> None:
    target.create_partition(FUNCTIONS)
    try:
        good = encrypt(CODE, attribute(target, target.create(FUNCTIONS), BOX_KEY))
        wrong = [
            encrypt(CODE, bytes(31) + b"\x09"),
            encrypt(b"", attribute(target, target.create(FUNCTIONS), BOX_KEY)),
            good[:-1],
            good[: len(MAGIC) + 32 + 16],
            good[: len(MAGIC)],
            good + b"\0",
            MAGIC + bytes(len(good) - len(MAGIC)),
        ]
        for at in (len(MAGIC), len(MAGIC) + 31, len(MAGIC) + 32, len(good) - 1):
            wrong.append(good[:at] + bytes((good[at] ^ 1,)) + good[at + 1 :])
        for data in wrong:
            refuse(target, put(target, partial(given, data)))
        target.activate_function(put(target, partial(given, good)))
    finally:
        target.remove_partition(FUNCTIONS, contents=True)


def test_a_script_of_exec_cannot_use_a_function_s_code(
    target: pyosd.Target, zone: ObjectRef
) -> None:
    target.create_partition(FUNCTIONS)
    try:
        obj = put(target, lambda key: encrypt(CODE, key))
        reply = target.exec_code(zone, bytes(target.read(obj, 0, 4096)), ExecParams())
        assert reply.job is not None
        status = target.job(reply.job).wait(WAIT_S)
        assert status.state is JobState.FAILED
        assert "RECIPE" not in target.job(reply.job).traceback()
    finally:
        target.remove_partition(FUNCTIONS, contents=True)


@pytest.mark.parametrize("record", [CallRecord.ALWAYS, CallRecord.NEVER])
def test_a_caller_s_script_does_not_get_the_code_by_reuse(record: CallRecord) -> None:
    """It waits in its sandbox, which is kept for its principal, for the call of the function."""
    words = arguments(("--slots", "2", "--reuse", "trusted"))
    with Serving(*words) as serving, serving.connect() as target:
        target.create_partition(FUNCTIONS)
        zone = ref(target.create_partition())
        obj = put(target, partial(encrypt, CODE))
        target.activate_function(obj)
        target.exec(THIEF, zone=zone).wait(WAIT_S)
        reply = call(target, zone, obj.object_id, 1, record=record)
        assert SECRET.encode() not in reply.result
        assert result(target, reply) == len(SECRET) + 1


def test_any_implementation_of_hpke_will_do(target: pyosd.Target, zone: ObjectRef) -> None:
    hpke = pytest.importorskip("cryptography.hazmat.primitives.hpke")
    suite = hpke.Suite(hpke.KEM.X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_256_GCM)

    def make(public: bytes) -> bytes:
        point = x25519.X25519PublicKey.from_public_bytes(public)
        return MAGIC + bytes(suite.encrypt(CODE, point, info=INFO))

    target.create_partition(FUNCTIONS)
    try:
        obj = put(target, make)
        target.activate_function(obj)
        assert result(target, call(target, zone, obj.object_id, 1)) == len(SECRET) + 1
    finally:
        target.remove_partition(FUNCTIONS, contents=True)
    own = x25519.X25519PrivateKey.generate()
    box = encrypt(CODE, own.public_key().public_bytes_raw())
    assert bytes(suite.decrypt(box[len(MAGIC) :], own, info=INFO)) == CODE


def test_put_signs_and_encrypts(signing: Serve, key: MakeKey, tmp_path: Path) -> None:
    ed = key("ed25519")
    s = signing("signed", f"ann {ed.public}")
    functions = pyosd.functions.Functions(s.target, FUNCTIONS)
    with pytest.raises(OSDError):
        functions.put(CODE, name="soup")
    made = functions.put(CODE, name="soup", sign_with=ed.path, encrypted=True)
    assert (made.signer, made.fingerprint) == ("ann", ed.fingerprint)
    assert functions.code("soup").startswith(MAGIC)
    assert functions.call("soup", 2, zone=s.zone) == len(SECRET) + 2

    file = tmp_path / "stew.py"
    file.write_bytes(CODE)
    fn = ["osd", "fn"]
    environment = {**os.environ, "IOSD_TARGET": s.serving.url}
    warm.run(
        [*fn, "put", str(file), "--sign", str(ed.path), "--encrypt"], check=True, env=environment
    )
    shown = warm.run(
        [*fn, "show", "stew", "-o", "json"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    ).stdout
    [row] = json.loads(shown)["functions"] if "functions" in shown else [json.loads(shown)]
    assert (row["state"], row["signer"], row["key"]) == ("active", "ann", ed.fingerprint)
    assert functions.call("stew", 3, zone=s.zone) == len(SECRET) + 3
    wrong = tmp_path / "wrong"
    wrong.write_text("no key\n")
    before = len(functions.ls())
    with pytest.raises(ValueError, match="ssh-keygen does not sign"):
        functions.put(CODE, name="other", sign_with=wrong)
    assert len(functions.ls()) == before


def test_signed_and_encrypted(signing: Serve, key: MakeKey) -> None:
    ed = key("ed25519")
    s = signing("signed", f"ann {ed.public}")
    obj = put(s.target, lambda box_key: encrypt(CODE, box_key))
    data = bytes(s.target.read(obj, 0, 4096))
    value = sign(statement(data, {}), ed.path)
    s.target.set_attributes(obj, [AttributeValue(PAGE, SIGNATURE, value)])
    s.target.activate_function(obj)
    assert attribute(s.target, obj, FINGERPRINT).decode() == ed.fingerprint
    assert result(s.target, call(s.target, s.zone, obj.object_id, 1)) == len(SECRET) + 1
