# SPDX-License-Identifier: GPL-2.0-or-later
"""Faults of the host, seen over the wire: a full disk, folders that cannot be used, and PDUs that
a stock tgtd does not survive (then it is started again, and nothing acknowledged is lost)."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import pyosd
from pyosd import requests as rq
from pyosd.types import AttributeValue, ObjectRef
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import encode
from tests.e2e.raw_iscsi import RawSession
from tests.expect import QUOTA, check
from tests.machine import unavailable
from tests.serving import Serving, missing, shared

pytestmark = pytest.mark.tgtd

GREEN = AttributeValue(Page.APPLICATION, 1, b"green")
DISK_MIB = 96
LARGE = 4 << 20


@pytest.fixture(autouse=True)
def tgtd() -> None:
    why = missing()
    if why:
        unavailable("tgtd", why)


@pytest.fixture
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = Path(subprocess.check_output(["mktemp", "-d"], text=True).strip())
    options = f"size={DISK_MIB}m,mode=0777"
    command: list[str | Path] = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        folder.rmdir()
        unavailable("tgtd", "cannot mount a small tmpfs")
    folder.chmod(0o755)
    yield folder
    subprocess.run(["umount", folder], check=True)
    folder.rmdir()


def test_disk_full(small_disk: Path) -> None:
    with (
        Serving("--no-sandboxes", data=small_disk / "store") as serving,
        serving.connect() as target,
    ):
        pid = target.create_partition()
        filled: list[ObjectRef] = []
        while len(filled) < DISK_MIB:
            obj = target.create(pid)
            reply = target.reply(rq.write(obj, 0, b"f" * LARGE))
            if reply.error:
                check(reply, QUOTA)
                assert isinstance(reply.error, pyosd.NoSpace)
                break
            filled.append(obj)
        assert 2 < len(filled) < DISK_MIB
        for each in filled:
            assert target.read(each, 0, LARGE) == b"f" * LARGE
        target.remove(filled.pop())
        assert target.list_objects(pid)[: len(filled)] == filled


@pytest.mark.parametrize("kind", ["a file", "somebody else's", "foreign content"])
def test_folder_that_cannot_be_used(tmp_path: Path, kind: str) -> None:
    """`osd target serve` ends with a message that names the folder and what to do."""
    folder = Path(subprocess.check_output(["mktemp", "-d"], text=True).strip())
    folder.chmod(0o755)
    data = folder / "data"
    if kind == "a file":
        data.write_text("not a folder")
    else:
        data.mkdir(mode=0o700)
        (data / "thesis.tex").write_text("years of work")
    if kind == "foreign content":
        (data / "thesis.tex").chmod(0o644)
        data.chmod(0o777)
    try:
        with pytest.raises(AssertionError) as error:
            Serving("--no-sandboxes", data=data)
        assert str(data) in str(error.value)
        if kind != "a file":
            assert [each.name for each in data.iterdir()] == ["thesis.tex"]
    finally:
        subprocess.run(["rm", "-r", folder], check=True)


# ---- PDUs that stock tgtd 1.0.85 to 1.0.97 mistakes (tgt-notes: its parser trusts the lengths) ----


@pytest.fixture(scope="module")
def fragile() -> Iterator[Serving]:
    why = missing()
    if why:
        unavailable("tgtd", why)
    with shared("--no-sandboxes") as served:
        yield served


def with_ahs(raw: RawSession, ahs: bytes, words: int) -> bytes:
    """A SCSI Command PDU whose additional header segments, and their count, are one's own."""
    command, _ = encode(rq.create_partition())
    pdu = bytearray(raw.command(command.cdb)[:48])
    pdu[4] = words
    return bytes(pdu) + ahs


AHS = {
    "length 0": (struct.pack(">HBB", 0, 1, 0) + bytes(220), 56),
    "length 1": (struct.pack(">HBB", 1, 1, 0) + bytes(220), 56),
    "length 65535": (struct.pack(">HBB", 0xFFFF, 1, 0) + bytes(220), 56),
    "longer than all": (struct.pack(">HBB", 1000, 1, 0) + bytes(220), 56),
    "twice": ((struct.pack(">HBB", 105, 1, 0) + bytes(108)) * 2, 56),
    "unknown type": (struct.pack(">HBB", 221, 9, 0) + bytes(220), 56),
}


@pytest.mark.parametrize("name", AHS)
def test_additional_header_segment(fragile: Serving, name: str) -> None:
    """After every fate of the daemon it serves again, and acknowledged data is there."""
    with fragile.connect() as target:
        obj = target.create_and_write(target.create_partition(), b"kept", attributes=[GREEN])
        ahs, words = AHS[name]
        with RawSession(fragile.url) as raw:
            raw.socket.sendall(with_ahs(raw, ahs, words))
            raw.socket.settimeout(0.3)
            try:
                raw.receive()
            except (TimeoutError, ConnectionError):
                pass
        assert bytes(target.read(obj, 0, 10)) == b"kept"
        assert target.get_attribute(obj, GREEN.page, GREEN.number) == b"green"
