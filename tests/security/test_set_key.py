# SPDX-License-Identifier: GPL-2.0-or-later
"""SET KEY and SET MASTER KEY over requests that tests sign themselves; nonces over kill -9; where keys are
not to be found.
"""

from __future__ import annotations

import re
import secrets
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from iosd_host.cli import store as commands
from pyosd import requests as rq
from pyosd.types import ObjectType, ref
from pyosd.wire.capability import SecurityMethod
from pyosd.wire.cdb import Request
from pyosd.wire.sense import decode
from pyosd.wire.transport import Command
from tests.conftest import MakeHarness
from tests.harness import StartFailed
from tests.security import vectors
from tests.security.keyed import (
    PARTITION_KEY,
    ROOT_KEY,
    WORKING_KEY,
    Key,
    Keyed,
    code,
    good,
)

UNPROVEN = (0x24, 0x00, 80)
REPEATED, OUT_OF_TIME = (0x24, 0x06), (0x24, 0x07)
OUT_OF_SEQUENCE = (0x2C, 0x00)


@pytest.fixture
def keyed(tmp_path: Path, make_harness: MakeHarness) -> Keyed:
    file = tmp_path / "master.key"
    return Keyed(make_harness(**{"master-key": file}), file)


def of_partition(keyed: Keyed, pid: int, key: Key, version: int = 0, nonce: bytes = b"") -> Command:
    """A command of a partition, signed."""
    request = rq.flush_partition(pid)
    return keyed.signed(request, key, ref(pid), ObjectType.PARTITION, nonce, version=version)


def test_keys_of_every_level(keyed: Keyed) -> None:
    pid = keyed.harness.osd.create_partition()
    assert keyed.identifier(0, 0x7FFD) == b"initial"
    working = keyed.provide(pid)
    good(keyed.send(of_partition(keyed, pid, working)))
    assert keyed.identifier(pid, 0x8000) == keyed.identifier(0, 0x8000) == b"3-00000"
    assert keyed.identifier(pid, 0x7FFF) == b"2-00000"
    assert code(keyed.send(of_partition(keyed, pid, working, version=1))) == UNPROVEN
    good(keyed.set_key(WORKING_KEY, pid, 15))
    good(keyed.send(of_partition(keyed, pid, keyed.keys[f"working {pid} 15"], version=15)))
    before = keyed.keys["partition 0"]
    assert code(keyed.set_key(WORKING_KEY, pid, by=before)) == UNPROVEN  # another partition's
    assert code(keyed.set_key(PARTITION_KEY, pid, by=working)) == UNPROVEN

    good(keyed.set_key(PARTITION_KEY, pid))  # those below are no more, those beside are
    assert code(keyed.send(of_partition(keyed, pid, working))) == UNPROVEN
    assert keyed.identifier(pid, 0x8000) == keyed.identifier(pid, 0x800F) == b""
    assert keyed.identifier(0, 0x8000) == b"3-00000"
    good(keyed.set_key(ROOT_KEY))
    assert keyed.identifier(0, 0x8000) == keyed.identifier(pid, 0x7FFF) == b""


def test_keys_outlive_restarts_but_not_their_partition(keyed: Keyed, tmp_path: Path) -> None:
    osd = keyed.harness.osd
    pid = osd.create_partition()
    working = keyed.provide(pid)
    keyed.harness.kill()
    keyed.harness.start()
    osd = keyed.harness.osd
    assert keyed.identifier(pid, 0x8000) == b"3-00000"
    late = keyed.nonce(int(time.time() * 1000) + 3000)
    good(keyed.send(of_partition(keyed, pid, working, nonce=late)))
    osd.remove_partition(pid)
    assert osd.create_partition(pid) == pid
    assert keyed.identifier(pid, 0x8000) == b""
    late = keyed.nonce(int(time.time() * 1000) + 3000)
    assert code(keyed.send(of_partition(keyed, pid, working, nonce=late))) == UNPROVEN
    keyed.harness.finish()
    argv = ["--json", "--data", str(tmp_path / "store")]
    assert CliRunner().invoke(commands.check, argv, catch_exceptions=False).exit_code == 0


@pytest.mark.parametrize(
    ("level", "pid", "version", "field"),
    [(0, 0, 0, 80), (1, 1, 0, 16), (2, 0, 1, 24), (3, 0, 16, 24)],
    ids=["no level", "root key of a partition", "version of a partition key", "version 16"],
)
def test_set_key_fields(keyed: Keyed, level: int, pid: int, version: int, field: int) -> None:
    where = keyed.harness.osd.create_partition() if pid else 0
    keyed.provide(keyed.harness.osd.create_partition())
    request = rq.set_key(level, where, version, b"1234567", bytes(20))
    parent = keyed.keys[{2: "root", 3: "partition 0"}.get(level, "master")]
    kind = ObjectType.PARTITION if pid else ObjectType.ROOT
    assert code(keyed.send(keyed.signed(request, parent, ref(where), kind)))[2] == field


def test_keys_are_not_set_without_one(keyed: Keyed) -> None:
    for request in (
        rq.set_key(ROOT_KEY, 0, 0, b"1234567", bytes(20)),
        rq.set_master_key_seed(14, b"1234567", bytes(256)),
    ):
        reply = keyed.harness.osd.reply(request)
        assert reply.error and (reply.error.asc, reply.error.ascq) == (0x24, 0x00)
    assert keyed.identifier(0, 0x7FFE) == b""


# ---- SET MASTER KEY -----------------------------------------------------------------------------


def test_new_master_key(keyed: Keyed) -> None:
    keyed.provide(keyed.harness.osd.create_partition())
    for group in (14, 15):
        prime = vectors.GROUPS[group]
        length = prime.bit_length() // 8
        secret = secrets.randbits(512)
        ours = pow(2, secret, prime).to_bytes(length, "big")
        master = keyed.keys["master"]
        seed = rq.set_master_key_seed(group, b"ignored", ours)
        answer = keyed.send(keyed.signed(seed, master))
        good(answer)
        data = bytes(answer.data_in)
        theirs = data[4 : 4 + int.from_bytes(data[:4], "big")]
        shared = pow(int.from_bytes(theirs, "big"), secret, prime).to_bytes(length, "big")
        new = master.derive(shared, keyed.system_id)
        change = rq.set_master_key_change(group, b"group%02d" % group, ours, theirs)
        assert code(keyed.send(keyed.signed(change, master))) == UNPROVEN  # the new one signs
        good(keyed.send(keyed.signed(change, new)))
        assert code(keyed.send(keyed.signed(change, new)))[:2] == OUT_OF_SEQUENCE
        assert keyed.identifier(0, 0x7FFD) == b"group%02d" % group
        assert keyed.identifier(0, 0x7FFE) == keyed.identifier(0, 0x8000) == b""
        assert code(keyed.set_key(ROOT_KEY)) == UNPROVEN
        keyed.keys["master"] = new
        good(keyed.set_key(ROOT_KEY))


def master_key_faults() -> dict[str, tuple[Request, tuple[int, int, int | None]]]:
    prime = vectors.GROUPS[14]
    values = {
        name: value.to_bytes(256, "big")
        for name, value in {
            "0": 0,
            "1": 1,
            "p - 1": prime - 1,
            "p": prime,
            "more": (1 << 2048) - 1,
        }.items()
    }
    faults: dict[str, tuple[Request, tuple[int, int, int | None]]] = {
        name: (rq.set_master_key_seed(14, bytes(7), value), (0x26, 0x00, None))
        for name, value in values.items()
    }
    faults["group"] = rq.set_master_key_seed(2, bytes(7), bytes(128)), (0x24, 0x00, 24)
    faults["too short"] = rq.set_master_key_seed(14, bytes(7), b"\x55" * 255), (0x24, 0x00, 32)
    return faults


@pytest.mark.parametrize("name", master_key_faults())
def test_master_key_refused(keyed: Keyed, name: str) -> None:
    request, expected = master_key_faults()[name]
    assert code(keyed.send(keyed.signed(request, keyed.keys["master"]))) == expected
    change = rq.set_master_key_change(14, bytes(7), b"\x55" * 256, b"\x66" * 256)
    assert code(keyed.send(keyed.signed(change, keyed.keys["master"])))[:2] == OUT_OF_SEQUENCE
    assert keyed.identifier(0, 0x7FFD) == b"initial"


# ---- nonces -------------------------------------------------------------------------------------


def test_no_nonce_is_taken_twice_over_kills(keyed: Keyed) -> None:
    """An accepted nonce is refused after each kill -9; a nonce by the time of the refusal is
    accepted."""
    pid = keyed.harness.osd.create_partition()
    working = keyed.provide(pid)
    taken: list[bytes] = []
    for kills in range(4):
        ahead = 0
        for _ in range(20):
            nonce = keyed.nonce(int(time.time() * 1000) + ahead)
            response = keyed.send(of_partition(keyed, pid, working, nonce=nonce))
            if response.status:
                assert code(response)[:2] == OUT_OF_TIME
                sense = decode(response.sense)
                assert sense is not None and sense.information is not None
                assert sense.information > int.from_bytes(nonce[:6], "big"), "not refused again"
                # The clock may have come to that time meanwhile.
                ahead = max(0, sense.information - int(time.time() * 1000))
                assert ahead < 1500 * kills, "a second ahead of what was used"
                continue
            taken.append(nonce)
            again = keyed.send(of_partition(keyed, pid, working, nonce=nonce))
            assert code(again)[:2] == REPEATED
        keyed.harness.kill()
        keyed.harness.start()
        for nonce in taken:
            assert (
                code(keyed.send(of_partition(keyed, pid, working, nonce=nonce)))[:2] == OUT_OF_TIME
            )
    assert len(taken) > 60


def test_an_orderly_restart_keeps_nobody_waiting(keyed: Keyed) -> None:
    pid = keyed.harness.osd.create_partition()
    working = keyed.provide(pid)
    old = of_partition(keyed, pid, working)
    good(keyed.send(old))
    keyed.harness.restart()
    assert code(keyed.send(old))[:2] == OUT_OF_TIME
    good(keyed.send(of_partition(keyed, pid, working)))


@pytest.mark.parametrize("off_ms", [-61_000, 61_000, -366 * 86_400_000, 366 * 86_400_000])
def test_nonces_of_another_time(keyed: Keyed, off_ms: int) -> None:
    good(keyed.set_key(ROOT_KEY))
    nonce = keyed.nonce(int(time.time() * 1000) + off_ms)
    request = rq.set_key(ROOT_KEY, 0, 0, b"1234567", bytes(20))
    response = keyed.send(keyed.signed(request, keyed.keys["master"], nonce=nonce))
    assert code(response)[:2] == OUT_OF_TIME


# ---- where keys are not -------------------------------------------------------------------------


def not_in_cores(pid: int) -> tuple[bytes, int]:
    """What a core file of the process would have of its memory, and how many parts it leaves out."""
    kept, left_out = bytearray(), 0
    smaps = Path(f"/proc/{pid}/smaps").read_text()
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        pattern = r"^([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ (\d+)(?:.|\n)*?^VmFlags: (.*)$"
        for start, end, rights, inode, flags in re.findall(pattern, smaps, re.MULTILINE):
            if " dd" in f" {flags}":
                left_out += 1
            elif rights.startswith("rw") and inode == "0":
                memory.seek(int(start, 16))
                kept += memory.read(int(end, 16) - int(start, 16))
    return bytes(kept), left_out


def test_keys_are_in_no_core_file_log_dump_or_database(keyed: Keyed, tmp_path: Path) -> None:
    osd = keyed.harness.osd
    pid = osd.create_partition()
    keyed.provide(pid)
    values = [each for key in keyed.keys.values() for each in (key.authentication, key.generation)]
    core, left_out = not_in_cores(keyed.harness.pid)
    assert left_out and keyed.system_id in core, "what is no secret is found there"
    for key in values:
        assert key not in core
    environment = Path(f"/proc/{keyed.harness.pid}/environ").read_bytes()
    command_line = Path(f"/proc/{keyed.harness.pid}/cmdline").read_bytes()
    keyed.harness.finish()
    argv = ["--json", "--data", str(tmp_path / "store")]
    dump = CliRunner().invoke(commands.dump, argv, catch_exceptions=False).stdout.encode()
    assert b"sealed, not shown" in dump and b"1-00000".hex().encode() in dump
    places = [dump, environment, command_line, keyed.harness.log.read_bytes()]
    files = [each.read_bytes() for each in (tmp_path / "store").rglob("*") if each.is_file()]
    places += [each.rstrip(b"\0") for each in files]  # logs are prepared with megabytes of zeros
    for place in places:
        text = place.lower()
        for key in values:
            assert key not in place and key.hex().encode() not in text


def test_master_key_file_others_may_read_is_refused(
    tmp_path: Path, make_harness: MakeHarness
) -> None:
    file = tmp_path / "master.key"
    file.write_text("iosd master key 1\n")
    file.chmod(0o644)
    with pytest.raises(StartFailed, match="mode 0600"):
        make_harness(**{"master-key": file})


def test_capkey_needs_no_nonce(keyed: Keyed) -> None:
    request = rq.set_key(ROOT_KEY, 0, 0, b"1234567", bytes(20))
    wrong_token = keyed.signed(request, keyed.keys["master"], method=SecurityMethod.CAPKEY)
    assert code(keyed.send(wrong_token)) == UNPROVEN
