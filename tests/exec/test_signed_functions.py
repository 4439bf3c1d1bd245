# SPDX-License-Identifier: GPL-2.0-or-later
"""Signatures of functions, made by ssh-keygen, checked by a target (docs/functions.md, "Signatures")."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from pyosd.errors import OSDError
from pyosd.security.function_signature import NAMESPACE, SIGNATURE, sign, statement
from pyosd.types import AttributeValue
from tests.exec.signing import (
    BAD_SIGNATURE,
    BAD_SIGNER,
    CODE,
    FINGERPRINT,
    SIGNER,
    UNSIGNED,
    MakeKey,
    Serve,
)
from tests.exec.test_functions import (
    ACCESS,
    ALIAS,
    DESCRIPTION,
    ENGINE,
    FUNCTIONS,
    INACTIVE,
    MEMORY,
    PAGE,
    POOL,
    READ,
    STATE,
    WALL,
    WRITE,
    attribute,
    call,
    refused,
    result,
)
from tests.serving import Serving, arguments

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

# ---- good and bad signatures ----


def test_signed_functions_run_and_name_their_signer(signing: Serve, key: MakeKey) -> None:
    kinds = ("ed25519", "p256", "p384", "rsa")
    lines = [f"{kind}@example.org {key(kind).public}" for kind in kinds]
    s = signing("signed", "# our signers", "", *lines)
    for kind in kinds:
        obj = s.put_signed(key(kind), access=READ, alias=kind.encode())
        s.target.activate_function(obj)
        assert result(s.target, call(s.target, s.zone, kind)) == "signed"
        assert attribute(s.target, obj, SIGNER).decode() == f"{kind}@example.org"
        assert attribute(s.target, obj, FINGERPRINT).decode() == key(kind).fingerprint
        s.logged(f"signed by {kind}@example.org ({key(kind).fingerprint})")
        s.target.activate_function(obj, deactivate=True)
        assert attribute(s.target, obj, SIGNER) == attribute(s.target, obj, FINGERPRINT) == b""
    # In its binary form, as a program may make it.
    armoured = sign(statement(CODE, {}), key("rsa").path)
    binary = subprocess.run(
        ["base64", "-d"],
        input=b"".join(armoured.splitlines()[1:-1]),
        capture_output=True,
        check=True,
    ).stdout
    s.target.activate_function(s.put({SIGNATURE: binary}))


def test_what_a_signature_does_not_cover_is_refused(signing: Serve, key: MakeKey) -> None:
    ed = key("ed25519")
    s = signing("signed", f"ann {ed.public}", f"bob {key('p256').public}")
    good = sign(statement(CODE, {ACCESS: READ}), ed.path)
    s.refuse(s.put({ACCESS: READ}), UNSIGNED, "it has no signature")
    s.refuse(s.put({ACCESS: READ, SIGNATURE: good}, CODE + b"#"), BAD_SIGNATURE, "of other code")
    changed: list[dict[int, bytes]] = [
        {ACCESS: WRITE},
        {},
        {ALIAS: b"thumbnail"},
        {ENGINE: b"python"},
        {POOL: b"default"},
        {DESCRIPTION: b"harmless"},
        {WALL: (10**9).to_bytes(8, "big")},
        {MEMORY: (2**40).to_bytes(8, "big")},
    ]
    for manifest in changed:
        values = ({} if manifest == {} else {ACCESS: READ}) | manifest
        s.refuse(s.put(values | {SIGNATURE: good}), BAD_SIGNATURE, "another manifest")
    for wrong in (good[:-40], b"x", b"SSHSIG", good[:100] + b"A" + good[101:], bytes(4096)):
        s.refuse(s.put({ACCESS: READ, SIGNATURE: wrong}), BAD_SIGNATURE, "damaged")
    flipped = bytearray(good)
    flipped[-60] = ord("B") if flipped[-60] != ord("B") else ord("C")
    s.refuse(s.put({ACCESS: READ, SIGNATURE: bytes(flipped)}), BAD_SIGNATURE, "")
    with pytest.raises(OSDError):
        s.put({SIGNATURE: bytes(4097)})
    obj = s.put({ACCESS: READ, SIGNATURE: good})
    s.target.activate_function(obj)
    with pytest.raises(OSDError):
        s.target.set_attributes(obj, [AttributeValue(PAGE, SIGNATURE, b"")])
    with pytest.raises(OSDError):
        s.target.set_attributes(obj, [AttributeValue(PAGE, SIGNER, b"ann")])


def test_other_namespaces_and_keys_are_refused(signing: Serve, key: MakeKey) -> None:
    ed = key("ed25519")
    s = signing("signed", f"ann {ed.public}", f'git namespaces="git" {key("p384").public}')
    text = statement(CODE, {})
    other = subprocess.run(
        ["ssh-keygen", "-q", "-Y", "sign", "-n", "file", "-f", str(ed.path)],
        input=text,
        capture_output=True,
        check=True,
    ).stdout
    s.refuse(s.put({SIGNATURE: other}), BAD_SIGNATURE, f"sign with -n {NAMESPACE}")
    s.refuse(s.put_signed(key("ed25519", "other")), BAD_SIGNER, "no line of the list")
    s.refuse(s.put_signed(key("p384")), BAD_SIGNER, "do not include iosd-function")
    for kind in ("p521", "small"):
        s.refuse(s.put_signed(key(kind)), BAD_SIGNATURE, "not of an Ed25519")


def test_times_of_a_line(signing: Serve, key: MakeKey) -> None:
    ed, p256, rsa = key("ed25519"), key("p256"), key("rsa")
    s = signing(
        "signed",
        f'old valid-before="20200101Z" {ed.public}',
        f'soon valid-after="20990101Z" {p256.public}',
        f'now valid-after="20200101Z",valid-before="20990101Z" {rsa.public}',
    )
    s.refuse(s.put_signed(ed), BAD_SIGNER, "valid-before")
    s.refuse(s.put_signed(p256), BAD_SIGNER, "valid-after")
    s.target.activate_function(s.put_signed(rsa))


# ---- the policy ----


def test_named_signers_are_for_their_engine(signing: Serve, key: MakeKey) -> None:
    ed, p256, rsa = key("ed25519"), key("p256"), key("rsa")
    s = signing(
        "unsigned python:named",
        f"ann {ed.public}",
        f'wild namespaces="iosd-*" {rsa.public}',
        f'bob namespaces="iosd-function,iosd-function-python" {p256.public}',
    )
    s.refuse(s.put({}), UNSIGNED, "it has no signature")
    s.refuse(s.put_signed(ed), BAD_SIGNER, "not listed for the engine")
    s.refuse(s.put_signed(rsa), BAD_SIGNER, "not listed for the engine")
    s.target.activate_function(s.put_signed(p256))


def test_where_no_signature_is_needed_a_bad_one_is_refused(signing: Serve, key: MakeKey) -> None:
    s = signing("unsigned", f"ann {key('ed25519').public}")
    s.target.activate_function(s.put({}))
    s.target.activate_function(s.put_signed(key("ed25519")))
    s.refuse(s.put_signed(key("p256")), BAD_SIGNER, "no line of the list")


def test_a_reload_revokes_and_tightens_but_does_not_loosen(signing: Serve, key: MakeKey) -> None:
    ann, bob = f"ann {key('ed25519').public}", f"bob {key('p256').public}"
    s = signing("unsigned", ann, bob)
    unsigned, of_ann, of_bob = s.put({}), s.put_signed(key("ed25519")), s.put_signed(key("p256"))
    for obj in (unsigned, of_ann, of_bob):
        s.target.activate_function(obj)

    s.reload("unsigned", [ann])
    assert (s.active(unsigned), s.active(of_ann), s.active(of_bob)) == (True, True, False)
    refused(s.target, s.zone, of_bob.object_id, INACTIVE)
    s.refuse(of_bob, BAD_SIGNER, "no line of the list")

    s.reload("signed", [ann, bob])
    assert (s.active(unsigned), s.active(of_ann)) == (False, True)
    s.target.activate_function(of_bob)

    told = s.reload("unsigned", [ann], code=78)
    assert "looser for python" in told and "restart the target" in told
    assert s.active(of_bob) and not s.active(unsigned)
    told = s.reload("signed", [ann, "bob cert-authority ssh-ed25519 AAAA"], code=78)
    assert "line 2 of the list of signers: cert-authority is not supported" in told
    told = s.reload("sined", [ann], code=78)
    assert "function_policy must be words" in told
    assert s.active(of_ann) and s.active(of_bob)
    s.refuse(unsigned, UNSIGNED, "it has no signature")

    s.restart_tgtd()
    assert s.active(of_ann) and s.active(of_bob)
    s.refuse(unsigned, UNSIGNED, "it has no signature")


def test_what_was_revoked_while_the_target_was_down_does_not_come_back(
    folder: Path, key: MakeKey
) -> None:
    store, signers = folder / "store", folder / "signers"
    words = [*arguments(), "--function-signers", str(signers), "--function-policy"]
    signers.write_text(f"ann {key('ed25519').public}\nbob {key('p256').public}\n")
    with Serving(*words, "signed", data=store) as serving, serving.connect() as target:
        target.create_partition(FUNCTIONS)
        objects = []
        for each in (key("ed25519"), key("p256")):
            obj = target.create_and_write(FUNCTIONS, CODE)
            value = sign(statement(CODE, {}), each.path)
            target.set_attributes(obj, [AttributeValue(PAGE, SIGNATURE, value)])
            target.activate_function(obj)
            objects.append(obj)
    signers.write_text(f"bob {key('p256').public}\n")
    with Serving(*words, "unsigned", data=store) as serving, serving.connect() as target:
        assert [attribute(target, obj, STATE) for obj in objects] == [b"\0", b"\1"]
        assert [attribute(target, obj, SIGNER) for obj in objects] == [b"", b"bob"]


@pytest.mark.parametrize("pause_s", [0.0, 0.02, 0.05, 0.1, 0.2])
def test_a_kill_during_a_reload_leaves_nothing_that_was_revoked(
    signing: Serve, key: MakeKey, pause_s: float
) -> None:
    ann, bob = f"ann {key('ed25519').public}", f"bob {key('p256').public}"
    s = signing("signed", ann, bob)
    of_ann, of_bob = s.put_signed(key("ed25519")), s.put_signed(key("p256"))
    value = sign(statement(CODE, {}), key("p256").path)
    revoked = [s.put({SIGNATURE: value}) for _ in range(40)]
    for obj in (of_ann, of_bob, *revoked):
        s.target.activate_function(obj)
    s.configure("signed", [ann])
    os.kill(s.serving.process.pid, signal.SIGHUP)
    time.sleep(pause_s)  # the kill comes at another step of the reload each time
    s.restart_tgtd()
    # The kill may have come before the supervisor read the list.
    s.reload("signed", [ann])
    assert s.active(of_ann)
    for obj in (of_bob, *revoked):
        assert not s.active(obj) and attribute(s.target, obj, SIGNER) == b""
        refused(s.target, s.zone, obj.object_id, INACTIVE)


def test_a_wrong_list_does_not_start(tmp_path: Path) -> None:
    signers = tmp_path / "signers"
    signers.write_text("# one\n* ssh-ed25519 AAAA\n")
    with pytest.raises(AssertionError) as caught:
        Serving(*arguments(), "--function-signers", str(signers))
    assert "line 2 of the list of signers: a principal must be a name" in str(caught.value)
    signers.write_bytes(b"\xff\xfe")
    with pytest.raises(AssertionError) as caught:
        Serving(*arguments(), "--function-signers", str(signers))
    assert "function_signers: cannot read" in str(caught.value)
