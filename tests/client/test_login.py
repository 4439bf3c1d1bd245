# SPDX-License-Identifier: GPL-2.0-or-later
"""CHAP as the login dialogue has it, against targets that cheat: no socket, the answers are made here."""

from __future__ import annotations

import struct
from collections.abc import Generator

import pytest

from pyosd.errors import LoginRejected, ProtocolError
from pyosd.iscsi.login import (
    Chap,
    ChapAnswer,
    LoginParameters,
    Negotiated,
    PduRequest,
    chap_response,
    decode_text,
    encode_text,
    login,
)
from pyosd.iscsi.session import TargetAddress

MUTUAL = Chap("ada", "correct horse battery", "disk", "the other secret")
Dialogue = Generator[PduRequest, ChapAnswer, Negotiated]
SECURITY, TO_OPERATIONAL = 0x00, 0x81


def answer(keys: dict[str, str], flags: int = SECURITY) -> ChapAnswer:
    header = bytearray(48)
    header[0], header[1] = 0x23, flags
    header[14:16] = struct.pack(">H", 1)
    return bytes(header), encode_text(keys)


def said(request: PduRequest) -> dict[str, str]:
    return dict(decode_text(request.data))


class Target:
    """The other end of one login, up to where it has to prove itself."""

    def __init__(self, identifier: int, challenge: bytes) -> None:
        self.dialogue: Dialogue = login(LoginParameters("iqn.me", "iqn.you", MUTUAL))
        assert said(next(self.dialogue))["AuthMethod"] == "CHAP"
        assert said(self.dialogue.send(answer({"AuthMethod": "CHAP"}))) == {"CHAP_A": "5"}
        offer = {"CHAP_A": "5", "CHAP_I": str(identifier), "CHAP_C": "0x" + challenge.hex()}
        self.said = said(self.dialogue.send(answer(offer)))

    @property
    def challenged(self) -> tuple[int, bytes]:
        """The initiator's challenge."""
        return int(self.said["CHAP_I"]), bytes.fromhex(self.said["CHAP_C"][2:])

    def prove(self, response: str, name: str = "disk") -> PduRequest:
        keys = {"CHAP_N": name, "CHAP_R": response}
        return self.dialogue.send(answer(keys, TO_OPERATIONAL))


def proof(identifier: int, secret: str, challenge: bytes) -> str:
    return "0x" + chap_response(identifier, secret, challenge).hex()


def test_both_prove_themselves() -> None:
    target = Target(7, b"c" * 16)
    assert target.said["CHAP_N"] == "ada"
    assert target.said["CHAP_R"] == proof(7, MUTUAL.secret, b"c" * 16)
    identifier, challenge = target.challenged
    assert len(challenge) >= 16
    request = target.prove(proof(identifier, MUTUAL.target_secret, challenge))
    assert "MaxBurstLength" in said(request)


def test_a_reflected_challenge_proves_nothing() -> None:
    """An attacker without the secret lets the initiator answer its own challenge in another
    login."""
    target = Target(7, b"c" * 16)
    other = Target(*target.challenged)
    with pytest.raises(LoginRejected, match="could not prove"):
        target.prove(other.said["CHAP_R"])


def test_our_own_answer_proves_nothing() -> None:
    target = Target(7, b"c" * 16)
    with pytest.raises(LoginRejected, match="could not prove"):
        target.prove(target.said["CHAP_R"])


def test_another_name_proves_nothing() -> None:
    target = Target(7, b"c" * 16)
    identifier, challenge = target.challenged
    with pytest.raises(LoginRejected, match="could not prove"):
        target.prove(proof(identifier, MUTUAL.target_secret, challenge), "ada")


@pytest.mark.parametrize("response", ["", "0x", "0x" + "00" * 15, "0x" + "00" * 17, "0xzz"])
def test_no_proof_at_all(response: str) -> None:
    target = Target(7, b"c" * 16)
    with pytest.raises((LoginRejected, ProtocolError)):
        target.prove(response)


def test_a_target_without_chap_is_refused() -> None:
    dialogue = login(LoginParameters("iqn.me", "iqn.you", MUTUAL))
    next(dialogue)
    with pytest.raises(LoginRejected, match="does not offer CHAP"):
        dialogue.send(answer({"AuthMethod": "None"}))


def test_challenges_are_never_the_same() -> None:
    assert len({Target(7, b"c" * 16).challenged[1] for _ in range(32)}) == 32


def test_nothing_secret_shows() -> None:
    shown = repr(MUTUAL) + repr(LoginParameters("iqn.me", "iqn.you", MUTUAL))
    assert MUTUAL.secret not in shown and MUTUAL.target_secret not in shown


@pytest.mark.parametrize(
    "url", ["iscsi://me%hidden@host", "iscsi://me%hid/den@host", "iscsi://a@hidden@b"]
)
def test_nothing_secret_in_what_is_said_of_a_wrong_url(url: str) -> None:
    with pytest.raises(ValueError) as caught:
        TargetAddress.parse(url)
    assert "hid" not in str(caught.value)
