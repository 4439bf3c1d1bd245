# SPDX-License-Identifier: GPL-2.0-or-later
"""Secrets at rest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from iosd_secmgr.records import sealing
from iosd_secmgr.records.sealing import Sealer, SealError
from pyosd.secmgr.errors import SecmgrError
from pyosd.secmgr.files import write_private
from tests.harness import SOURCE


def test_what_is_sealed_opens_in_its_place_alone() -> None:
    sealer = Sealer(bytes(32))
    sealed = sealer.seal(b"secret", "here")
    assert sealer.open(sealed, "here") == b"secret"
    assert b"secret" not in sealed
    with pytest.raises(SealError):
        sealer.open(sealed, "there")
    with pytest.raises(SealError):
        Sealer(b"\1" * 32).open(sealed, "here")


def test_every_flipped_byte_is_noticed() -> None:
    sealer = Sealer(bytes(32))
    sealed = sealer.seal(b"secret", "here")
    for at in range(len(sealed)):
        flipped = bytearray(sealed)
        flipped[at] ^= 1
        with pytest.raises(SealError):
            sealer.open(bytes(flipped), "here")


def test_what_is_too_short_does_not_open() -> None:
    sealer = Sealer(bytes(32))
    sealed = sealer.seal(b"", "here")
    for length in range(len(sealed)):
        with pytest.raises(SealError):
            sealer.open(sealed[:length], "here")


def test_the_key_file_is_its_owners_alone(tmp_path: Path) -> None:
    sealer = sealing.make_key_file(tmp_path)
    file = tmp_path / sealing.KEY_FILE
    assert file.stat().st_mode & 0o777 == 0o600
    sealed = sealer.seal(b"x", "here")
    assert sealing.load(tmp_path).open(sealed, "here") == b"x"
    with pytest.raises(SecmgrError, match="cannot make"):
        sealing.make_key_file(tmp_path)
    file.chmod(0o640)
    with pytest.raises(SecmgrError, match="600"):
        sealing.load(tmp_path)


def test_a_damaged_key_file(tmp_path: Path) -> None:
    for text in ("", "iosd sealing key 1\n", "iosd sealing key 1\nkey 12\n", "key " + "0" * 64):
        (tmp_path / sealing.KEY_FILE).unlink(missing_ok=True)
        write_private(tmp_path / sealing.KEY_FILE, text.encode())
        with pytest.raises(SecmgrError):
            sealing.load(tmp_path)


def test_a_passphrase(tmp_path: Path) -> None:
    with pytest.raises(SecmgrError, match="12 characters"):
        sealing.make_passphrase(tmp_path, "short")
    sealed = sealing.make_passphrase(tmp_path, "correct horse battery").seal(b"x", "here")
    assert sealing.load(tmp_path, lambda: "correct horse battery").open(sealed, "here") == b"x"
    with pytest.raises(SecmgrError, match="not the passphrase"):
        sealing.load(tmp_path, lambda: "incorrect horse battery")
    with pytest.raises(SecmgrError, match="there is no terminal"):
        sealing.load(tmp_path)


def test_a_credential_of_systemd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / sealing.CREDENTIAL
    place.write_text(f"{sealing.FIRST_LINE}\nkey {'07' * 32}\n")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    (tmp_path / "empty").mkdir()
    sealed = Sealer(b"\7" * 32).seal(b"x", "here")
    assert sealing.load(tmp_path / "empty").open(sealed, "here") == b"x"


def test_no_key_at_all(tmp_path: Path) -> None:
    with pytest.raises(SecmgrError, match=r"no security manager in .* 'osd secmgr init' makes one"):
        sealing.load(tmp_path)
    (tmp_path / "secmgr.db").touch()  # to make another would lose the keys of all targets
    with pytest.raises(SecmgrError, match=r"no sealing key in .* restore it from its backup"):
        sealing.load(tmp_path)


def test_the_process_leaves_nothing_to_look_into() -> None:
    """As `osd secmgr serve` begins: asked of the kernel by a process of its own."""
    script = (
        "import ctypes, resource; from iosd_secmgr.hardening import harden; harden();"
        "print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0), resource.getrlimit(resource.RLIMIT_CORE))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=SOURCE, capture_output=True, text=True
    )
    assert done.stdout == "0 (0, 0)\n", done.stderr
