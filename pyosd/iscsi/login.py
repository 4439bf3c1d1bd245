# SPDX-License-Identifier: GPL-2.0-or-later
"""iSCSI login and discovery as text: the next request, the meaning of each answer.  No I/O.

Lives here: security negotiation with CHAP (one way and mutual), operational negotiation, SendTargets.
The dialogues are generators: they yield a request and are sent the answer.  A driver carries both:
connection.py for threads, async_connection.py for asyncio.  Everything the target says is checked.
Source: RFC 7143 sections 6, 12, 13; CHAP: RFC 1994.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pyosd.errors import LoginRejected, ProtocolError

__all__ = [
    "Chap",
    "ChapAnswer",
    "LoginParameters",
    "Negotiated",
    "PduRequest",
    "chap_response",
    "decode_text",
    "encode_text",
    "login",
    "logout_request",
    "ping_request",
    "send_targets",
    "task_management_request",
]

LOGIN, TEXT, LOGOUT, NOP_OUT, TASK_MANAGEMENT = 0x03, 0x04, 0x06, 0x00, 0x02
NO_TAG = 0xFFFF_FFFF

_TRANSIT, _CONTINUE = 0x80, 0x40
_SECURITY, _OPERATIONAL, _FULL_FEATURE = 0, 1, 3
_ROUNDS_MAX = 32
_TEXT_MAX = 256 << 10
_CHAP_MD5 = 5
_CHALLENGE_MAX = 1024

MAX_RECV_SEGMENT = 16_776_192
"""Largest segments and bursts asked for; a multiple of 4, stock tgtd corrupts others."""


@dataclass(frozen=True)
class Chap:
    """CHAP names and secrets.  With target_user and target_secret, the target must prove its identity, too.

    Raises: ValueError: both secrets are the same, so that each side could reflect the other's proof
        (RFC 7143, 9.2.1).
    """

    user: str
    secret: str = field(repr=False)
    target_user: str = ""
    target_secret: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if self.target_secret and self.target_secret == self.secret:
            raise ValueError("CHAP requires different secrets for the target and for this side")


@dataclass(frozen=True)
class LoginParameters:
    """The parameters of a session.  target: iSCSI name, "" for discovery."""

    initiator: str
    target: str
    chap: Chap | None = None
    header_digest: bool = False
    max_segment: int = MAX_RECV_SEGMENT
    isid: bytes = field(default_factory=lambda: b"\x80" + os.urandom(3) + b"\0\0")


class Negotiated(NamedTuple):
    """The negotiated values, which are arguments of _core.Session.start()."""

    max_send_segment: int = 8192
    max_burst: int = 262_144
    first_burst: int = 65_536
    immediate_data: bool = True
    initial_r2t: bool = True
    header_digest: bool = False


class PduRequest(NamedTuple):
    """A request to send: opcode, 48-byte header (the core completes it), text, immediate bit."""

    opcode: int
    header: bytes
    data: bytes = b""
    immediate: bool = True


ChapAnswer = tuple[bytes, bytes]
"""Header (48 bytes) and data of an answer."""
Keys = Mapping[str, str]

_NOT_AUTHENTICATED = 0x0201
_NO_CHAP = (
    "the target asks for a name and a secret (CHAP): set IOSD_CHAP_USER and IOSD_CHAP_SECRET_FILE, or "
    "chap-user and chap-secret-file of the profile"
)
_REJECTIONS = {
    0x0101: "the target has moved for now",
    0x0102: "the target has moved for good",
    0x0200: "the target found an error in the login",
    _NOT_AUTHENTICATED: "authentication failed: check the CHAP name and its secret",
    0x0202: "not allowed to log in to this target",
    0x0203: "no such target, or no access from this address: compare the name in the URL with the one "
    "that 'osd target serve' prints; its --allow names the addresses; or it is still starting ('osd "
    "target ping --wait 30s' waits)",
    0x0204: "the target has been removed",
    0x0205: "iSCSI version not supported",
    0x0206: "too many connections",
    0x0207: "the target misses a parameter",
    0x0208: "cannot include the connection in the session",
    0x0209: "session type not supported",
    0x020A: "the session does not exist",
    0x020B: "invalid during login",
    0x0300: "the target has an internal error",
    0x0301: "the target's service is unavailable",
    0x0302: "the target is out of resources",
}


def encode_text(keys: Keys) -> bytes:
    """Key=value pairs, each closed by NUL."""
    return b"".join(f"{key}={value}".encode() + b"\0" for key, value in keys.items())


def decode_text(data: bytes) -> list[tuple[str, str]]:
    """Key=value pairs in order.  Raises: ProtocolError: not UTF-8, or a part without "="."""
    pairs = []
    try:
        for part in filter(None, data.decode().split("\0")):
            key, equals, value = part.partition("=")
            if not equals or not key or len(key) > 63:
                raise ProtocolError("the target sent text that is not key=value")
            pairs.append((key, value))
    except UnicodeDecodeError:
        raise ProtocolError("the target sent text that is not UTF-8") from None
    return pairs


def _number(keys: Keys, key: str, default: int, low: int, high: int) -> int:
    text = keys.get(key)
    if text is None:
        return default
    try:
        value = int(text, 0)
    except ValueError:
        value = -1
    if not low <= value <= high:
        raise ProtocolError(f"the target answered {key}={text[:40]!r}, not in {low}-{high}")
    return value


def _binary(keys: Keys, key: str, longest: int) -> bytes:
    """A binary value, 0x hexadecimal or 0b base 64, of 1 to longest bytes."""
    text = keys.get(key, "")
    try:
        if text[:2] in ("0x", "0X"):
            digits = text[2:]
            value = bytes.fromhex("0" * (len(digits) % 2) + digits)
        elif text[:2] in ("0b", "0B"):
            from base64 import b64decode

            value = b64decode(text[2:], validate=True)
        else:
            value = b""
    except ValueError:
        value = b""
    if not 0 < len(value) <= longest:
        raise ProtocolError(f"the target sent no usable {key}")
    return value


def chap_response(identifier: int, secret: str, challenge: bytes) -> bytes:
    """CHAP with MD5 (RFC 1994): 16 bytes."""
    message = bytes([identifier]) + secret.encode() + challenge
    import hashlib

    return hashlib.md5(message, usedforsecurity=False).digest()


class _Login:
    """State of one login: header fields, stage, and the text under way."""

    def __init__(self, parameters: LoginParameters) -> None:
        self.parameters = parameters
        self.tsih = 0

    def _request(self, stage: int, following: int, transit: bool, text: bytes) -> PduRequest:
        flags = stage << 2 | (_TRANSIT | following if transit else 0)
        header = struct.pack(
            ">xBBBxxxx6sH4xH26x",
            flags,  # 1
            0,  # 2 VERSION MAX
            0,  # 3 VERSION MIN
            self.parameters.isid,  # 8
            self.tsih,  # 14
            1,  # 20 CID
        )
        return PduRequest(LOGIN, header, text)

    def exchange(
        self, stage: int, following: int, transit: bool, keys: Keys
    ) -> Generator[PduRequest, ChapAnswer, tuple[bool, dict[str, str]]]:
        """One request and its whole answer.  Returns: whether the stage is over, and the keys said.

        Raises: LoginRejected, ProtocolError.
        """
        header, data = yield self._request(stage, following, transit, encode_text(keys))
        _check_status(header, self.parameters.chap)
        text = data
        while header[1] & _CONTINUE:
            if len(text) > _TEXT_MAX or not data:
                raise ProtocolError("the target's login text does not end")
            header, data = yield self._request(stage, following, False, b"")
            _check_status(header, self.parameters.chap)
            text += data
        if (header[1] >> 2) & 3 != stage:
            raise ProtocolError("the target is in another login stage")
        over = bool(header[1] & _TRANSIT)
        if over and (not transit or header[1] & 3 != following):
            raise ProtocolError("the target left the login stage unasked")
        self.tsih = struct.unpack_from(">H", header, 14)[0]
        return over, dict(decode_text(text))


def _check_status(header: bytes, chap: Chap | None) -> None:
    status = int.from_bytes(header[36:38], "big")
    if status:
        text = _REJECTIONS.get(status, "no reason known")
        if status == _NOT_AUTHENTICATED and chap is None:
            text = _NO_CHAP
        raise LoginRejected(f"login refused: {text} (status {status:04x}h)", status)


def login(parameters: LoginParameters) -> Generator[PduRequest, ChapAnswer, Negotiated]:
    """The login dialogue.

    Returns: what was agreed.  Raises: LoginRejected; ProtocolError; nothing else.
    """
    state = _Login(parameters)
    yield from _security_stage(state)
    return (yield from _operational_stage(state))


def _security_stage(state: _Login) -> Generator[PduRequest, ChapAnswer, None]:
    parameters, chap = state.parameters, state.parameters.chap
    keys = {"InitiatorName": parameters.initiator}
    keys["SessionType"] = "Normal" if parameters.target else "Discovery"
    if parameters.target:
        keys["TargetName"] = parameters.target
    keys["AuthMethod"] = "CHAP" if chap else "None"
    over, answer = yield from state.exchange(_SECURITY, _OPERATIONAL, not chap, keys)
    method = answer.get("AuthMethod", "None" if over else "")
    if chap and method == "CHAP":
        over = yield from _chap(state, chap)
    elif method != "None":
        raise LoginRejected("login refused: the target requires CHAP, and no secret was given")
    elif chap:
        raise LoginRejected("login refused: the target does not offer CHAP, and it was asked for")
    rounds = 0
    while not over:
        rounds += 1
        if rounds > _ROUNDS_MAX:
            raise ProtocolError("the security negotiation does not end")
        over, _ = yield from state.exchange(_SECURITY, _OPERATIONAL, True, {})


def _chap(state: _Login, chap: Chap) -> Generator[PduRequest, ChapAnswer, bool]:
    """Prove who we are; where a target secret is given, have the target prove itself."""
    _, offer = yield from state.exchange(_SECURITY, _OPERATIONAL, False, {"CHAP_A": str(_CHAP_MD5)})
    if offer.get("CHAP_A") != str(_CHAP_MD5):
        raise LoginRejected("login refused: the target does not offer CHAP with MD5")
    identifier = _number(offer, "CHAP_I", -1, 0, 255)
    challenge = _binary(offer, "CHAP_C", _CHALLENGE_MAX)
    keys = {
        "CHAP_N": chap.user,
        "CHAP_R": "0x" + chap_response(identifier, chap.secret, challenge).hex(),
    }
    own_identifier, own_challenge = os.urandom(1)[0], os.urandom(16)
    if chap.target_secret:
        keys["CHAP_I"] = str(own_identifier)
        keys["CHAP_C"] = "0x" + own_challenge.hex()
    over, answer = yield from state.exchange(_SECURITY, _OPERATIONAL, True, keys)
    if chap.target_secret:
        import hmac

        expected = chap_response(own_identifier, chap.target_secret, own_challenge)
        proof = _binary(answer, "CHAP_R", 16)
        same_name = answer.get("CHAP_N") == chap.target_user or not chap.target_user
        # A reflected challenge would let the target answer with our own response.
        if challenge == own_challenge or not same_name or not hmac.compare_digest(proof, expected):
            raise LoginRejected("login refused by us: the target could not prove its identity")
    return over


def _operational_stage(state: _Login) -> Generator[PduRequest, ChapAnswer, Negotiated]:
    segment = state.parameters.max_segment
    keys = {
        "HeaderDigest": "CRC32C" if state.parameters.header_digest else "None",
        "DataDigest": "None",
        "MaxRecvDataSegmentLength": str(segment),
        "DefaultTime2Wait": "0",
        "DefaultTime2Retain": "0",
        "ErrorRecoveryLevel": "0",
    }
    if state.parameters.target:
        keys |= {
            "InitialR2T": "No",
            "ImmediateData": "Yes",
            "MaxBurstLength": str(segment),
            "FirstBurstLength": str(segment),
            "MaxConnections": "1",
            "MaxOutstandingR2T": "1",
            "DataPDUInOrder": "Yes",
            "DataSequenceInOrder": "Yes",
        }
    said: dict[str, str] = {}
    over, rounds = False, 0
    while not over:
        over, answer = yield from state.exchange(_OPERATIONAL, _FULL_FEATURE, True, keys)
        said |= answer
        keys = {}
        rounds += 1
        if rounds > _ROUNDS_MAX or len(said) > 256:
            raise ProtocolError("the operational negotiation does not end")
    agreed = _agreed(said, segment)
    if state.parameters.header_digest and not agreed.header_digest:
        raise LoginRejected("login refused by us: the target does not do header digests (CRC32C)")
    return agreed


def _agreed(said: Keys, segment: int) -> Negotiated:
    """The outcome (RFC 7143 section 13): minimum of lengths, AND of ImmediateData, OR of
    InitialR2T.
    """
    if said.get("DataDigest", "None") != "None":
        raise ProtocolError("the target insists on data digests")
    largest = 0xFF_FFFF
    max_burst = min(segment, _number(said, "MaxBurstLength", 262_144, 512, largest))
    first_burst = min(segment, _number(said, "FirstBurstLength", 65_536, 512, largest))
    return Negotiated(
        max_send_segment=_number(said, "MaxRecvDataSegmentLength", 8192, 512, largest),
        max_burst=max_burst,
        first_burst=min(first_burst, max_burst),
        immediate_data=said.get("ImmediateData", "Yes") == "Yes",
        initial_r2t=said.get("InitialR2T", "Yes") != "No",
        header_digest=said.get("HeaderDigest", "None") == "CRC32C",
    )


def send_targets() -> Generator[PduRequest, ChapAnswer, list[tuple[str, list[str]]]]:
    """The discovery dialogue.

    Returns: (target name, its addresses "host:port,group") in the order sent.
    Raises: ProtocolError.
    """
    text = b""
    tag, request = NO_TAG, encode_text({"SendTargets": "All"})
    while True:
        # 1 F, 20-23 target transfer tag
        header, data = yield PduRequest(TEXT, struct.pack(">xB18xI24x", 0x80, tag), request, False)
        text += data
        tag, request = int.from_bytes(header[20:24], "big"), b""
        if header[1] & 0x80 and tag == NO_TAG:
            break
        if len(text) > _TEXT_MAX or not data:
            raise ProtocolError("the target's list of targets does not end")
    found: list[tuple[str, list[str]]] = []
    for key, value in decode_text(text):
        if key == "TargetName":
            found.append((value, []))
        elif key == "TargetAddress" and found:
            found[-1][1].append(value)
    return found


def logout_request() -> PduRequest:
    """Close the session."""
    return PduRequest(LOGOUT, struct.pack(">xB46x", 0x80))


def ping_request() -> PduRequest:
    """NOP-Out that wants an answer."""
    return PduRequest(NOP_OUT, struct.pack(">xB18xI24x", 0x80, NO_TAG))


def task_management_request(
    function: int, lun: int, task_tag: int = NO_TAG, command_number: int = 0
) -> PduRequest:
    """Task management function (session.TaskFunction); task_tag: of ABORT TASK."""
    first = 0 if lun < 256 else 0x40 | lun >> 8
    header = struct.pack(
        ">xB6xBB6x4xI8xI12x", 0x80 | function, first, lun & 0xFF, task_tag, command_number
    )
    return PduRequest(TASK_MANAGEMENT, header)
