# SPDX-License-Identifier: GPL-2.0-or-later
"""Names that a login brings along, to a stock and to the hardened tgtd: names that forge lines
of what tgtadm
shows, and names of other users' sessions.

Not here: what the module makes of them (tests/exec/test_principals.py).
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import struct

import pytest

from tests.e2e.trial import Trial
from tests.tgtd import IMMEDIATE, LOGIN, TEST_UNIT_READY, Attacker, Daemon

pytestmark = pytest.mark.tgtd

GOOD_NAME = "iqn.2026-11.org.iosd:raw"
INITIATOR_ERROR, FORBIDDEN = 0x0200, 0x0202
SECRETS = {"ada": "correct horse battery", "eve": "a second secret"}
SECURITY_STAGE, TO_OPERATIONAL, OPERATIONAL_TO_FULL = 0x00, 0x81, 0x87


def login_status(trial: Trial, daemon: Daemon, **keys: str | bytes) -> int:
    """Status class and detail of the answer to the first PDU of a login. A session remains open."""
    session = Attacker(daemon)
    trial.stack.callback(session.socket.close)
    names = {"InitiatorName": GOOD_NAME, "TargetName": session.address.target, **keys}
    session.send(IMMEDIATE | LOGIN, 0x87, b"\x80rawid" + struct.pack(">HI", 0, 1), data=text(names))
    header, _ = session.answer()
    return int.from_bytes(header[36:38], "big")


def text(keys: dict[str, str | bytes]) -> bytes:
    """Keys of a login, as they are sent."""
    encoded = {k: v.encode() if isinstance(v, str) else v for k, v in keys.items()}
    return b"".join(key.encode() + b"=" + value + b"\0" for key, value in encoded.items())


def test_address_in_a_name(trial: Trial) -> None:
    """A second line "IP Address:" for the session, which tgtadm shows before the real one."""
    daemon = trial.daemon()
    status = login_status(trial, daemon, InitiatorName=f"{GOOD_NAME}\n        IP Address: 10.9.9.9")
    shown = daemon.adm("show", "conn").decode()
    trial.judge("        IP Address: 10.9.9.9\n" in shown)
    assert status == (INITIATOR_ERROR if trial.hardened else 0)
    assert daemon.serves()


def test_target_in_an_alias(trial: Trial) -> None:
    """A target that does not exist, in the list of targets."""
    daemon = trial.daemon()
    assert (
        login_status(trial, daemon, InitiatorAlias="here\nTarget 7: iqn.2026-11.org.iosd:made-up")
        == 0
    )
    shown = daemon.adm("show", "target").decode()
    trial.judge("\nTarget 7:" in shown)
    assert GOOD_NAME in shown, "the login is taken, its alias is not"


def test_alias_that_is_one(trial: Trial) -> None:
    daemon = trial.daemon()
    assert login_status(trial, daemon, InitiatorAlias="Ada's laptop, 2nd floor: Müller") == 0
    assert "alias: Ada's laptop, 2nd floor: Müller\n" in daemon.adm("show", "target").decode()


NAMES = [
    b"",
    b"host",
    b"iqn.",
    b"iqn.2026-11",
    b"iqn.2026-13.org.iosd:raw",
    b"iqn.26-11.org.iosd:raw",
    b"iqn.2026-11.:raw",
    b"IQN.2026-11.org.iosd:raw",
    b"iqn.2026-11.org.iosd:" + b"x" * 203,
    b"iqn.2026-11.org.iosd:a b",
    b"iqn.2026-11.org.iosd:a,i,0x1",
    b"iqn.2026-11.org.iosd:\x1b[2J",
    b"iqn.2026-11.org.iosd:\x7f",
    b"iqn.2026-11.org.iosd:\x85",  # not UTF-8
    b"iqn.2026-11.org.iosd:\xc0\x8a",  # a line feed in too many bytes
    b"iqn.2026-11.org.iosd:\xed\xa0\x80",  # half of a surrogate pair
    "iqn.2026-11.org.iosd:\u0085".encode(),  # NEXT LINE
    "iqn.2026-11.org.iosd:\u200e".encode(),  # turns the direction of the text
    "iqn.2026-11.org.iosd:\u2028".encode(),  # LINE SEPARATOR
    "iqn.2026-11.org.iosd:\u00ad".encode(),  # invisible
    b"eui.02004567A425678",
    b"eui.02004567A425678G",
    b"naa.52004567BA64678D5",
    b"naa.52004567ba64678\n",
]


@pytest.mark.parametrize("name", NAMES, ids=repr)
def test_names_that_are_none(trial: Trial, name: bytes) -> None:
    """A stock daemon takes any but the one that has no byte."""
    daemon = trial.daemon()
    status = login_status(trial, daemon, InitiatorName=name)
    trial.judge(status != INITIATOR_ERROR)
    if trial.hardened:
        log = daemon.text()
        assert "the initiator's name is no iSCSI name" in log and "\x1b" not in log


@pytest.mark.parametrize(
    "name",
    [
        "iqn.1993-08.org.debian:01:6f2b3d4e5f6",  # open-iscsi
        "iqn.2005-03.org.open-iscsi:e2c4a5b6d7f8",
        "iqn.2007-10.com.github:sahlberg:libiscsi:iscsi-test",
        "iqn.1991-05.com.microsoft:desktop-7d3k2ab.example.com",
        "iqn.1998-01.com.vmware:esx01-4f2e6b1c",
        "iqn.2008-11.org.linux-kvm:VM_7",  # QEMU: by the name of the machine
        "iqn.2008-11.org.linux-kvm",
        "iqn.2010-04.org.ipxe:UNKNOWN",
        "iqn.1986-03.com.sun:01:e00000000000.4a1b2c3d",
        "iqn.2026-11.org.müller:käse",
        "iqn.2026-11.org.iosd:" + "x" * 202,
        "eui.02004567A425678D",
        "naa.52004567ba64678d",
        "naa.62004567BA64678D0123456789ABCDEF",
    ],
)
def test_names_that_initiators_have(trial: Trial, name: str) -> None:
    daemon = trial.daemon()
    assert login_status(trial, daemon, InitiatorName=name) == 0
    assert f"Initiator: {name}\n" in daemon.adm("show", "conn").decode()


# ---- users -----------------------------------------------------------------------------------------


def log_in_as(
    trial: Trial, daemon: Daemon, user: str, number: int = 0
) -> tuple[Attacker, int, int]:
    """A session of that user, under the one name and ISID; its number if there is one, and the status of
    the login."""
    session = Attacker(daemon)
    trial.stack.callback(session.socket.close)
    fields = b"\x80rawid" + struct.pack(">HI", number, 1)

    def exchange(flags: int, **keys: str | bytes) -> tuple[bytes, bytes]:
        session.send(IMMEDIATE | LOGIN, flags, fields, data=text(keys))
        return session.answer()

    exchange(
        SECURITY_STAGE,
        InitiatorName=GOOD_NAME,
        TargetName=session.address.target,
        AuthMethod="CHAP",
    )
    _, offer = exchange(SECURITY_STAGE, CHAP_A="5")
    found = re.search(rb"CHAP_I=(\d+)\0.*CHAP_C=0x([0-9a-f]+)\0", offer, re.DOTALL)
    assert found
    challenge = bytes([int(found[1])]) + SECRETS[user].encode() + bytes.fromhex(found[2].decode())
    proof = "0x" + hashlib.md5(challenge).hexdigest()  # noqa: S324 -- CHAP's
    header, _ = exchange(TO_OPERATIONAL, CHAP_N=user, CHAP_R=proof)
    while not (status := int.from_bytes(header[36:38], "big")) and header[1] != OPERATIONAL_TO_FULL:
        header, _ = exchange(OPERATIONAL_TO_FULL)
    return session, int.from_bytes(header[14:16], "big"), status


def lives(session: Attacker) -> bool:
    try:
        session.scsi(TEST_UNIT_READY)
        session.answer()
    except OSError:
        return False
    return True


@pytest.fixture
def daemon(trial: Trial) -> Daemon:
    made = trial.daemon()
    for user, secret in SECRETS.items():
        made.adm("new", "account", "--user", user, "--password", secret)
        made.adm("bind", "account", "--tid", "1", "--user", user)
    return made


def test_ending_another_user_s_session(trial: Trial, daemon: Daemon) -> None:
    """Initiator names and ISIDs are no secrets: with them eve, who has an account, ended ada's session."""
    ada, _, status = log_in_as(trial, daemon, "ada")
    assert status == 0 and lives(ada)
    _, _, status = log_in_as(trial, daemon, "eve")
    trial.judge(not lives(ada))
    if trial.hardened:
        assert status == FORBIDDEN
    again, _, status = log_in_as(trial, daemon, "ada")
    assert status == 0 and lives(again) and not lives(ada), "her own she may end"


def test_joining_another_user_s_session(trial: Trial, daemon: Daemon) -> None:
    _, number, status = log_in_as(trial, daemon, "ada")
    assert status == 0
    status = 0
    with contextlib.suppress(OSError):
        _, _, status = log_in_as(trial, daemon, "eve", number)
    trial.judge(status == 0)
    if trial.hardened:
        assert status == FORBIDDEN
