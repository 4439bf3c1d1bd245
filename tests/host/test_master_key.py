# SPDX-License-Identifier: GPL-2.0-or-later
"""The first master key of a store: outside it, where tgtd's user cannot read it."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from iosd_host.serve.master_key import EARLIER_MOST, INSIDE, take_out
from pyosd.security.master_key import MasterKey
from tests.machine import unavailable
from tests.serving import Serving, missing

root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be somebody else")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / INSIDE).write_text("the key\n")
    (tmp_path / "store" / INSIDE).chmod(0o600)
    return tmp_path / "store"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    return tmp_path / "store.master-key"


def test_it_is_moved(data: Path, kept: Path, capfd: pytest.CaptureFixture[str]) -> None:
    take_out(data, kept)
    assert kept.read_text() == "the key\n"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert not (data / INSIDE).exists()
    assert f"first master key is in {kept}" in capfd.readouterr().err
    take_out(data, kept)
    assert capfd.readouterr().err == ""


def test_a_move_that_was_interrupted(data: Path, kept: Path) -> None:
    kept.write_text("the key\n")
    kept.with_name(f"{kept.name}.new").write_text("half of")
    take_out(data, kept)
    assert kept.read_text() == "the key\n" and not (data / INSIDE).exists()
    assert not kept.with_name(f"{kept.name}.old").exists()


def test_earlier_ones_are_kept(data: Path, kept: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """tgtd's user can make any number."""
    for number in range(EARLIER_MOST + 1):
        (data / INSIDE).write_text(f"key {number}\n")
        take_out(data, kept)
        assert kept.read_text() == f"key {number}\n"
    earlier = {each.read_text() for each in kept.parent.glob(f"{kept.name}.old*")}
    assert earlier == {f"key {number}\n" for number in range(EARLIER_MOST)}
    capfd.readouterr()
    (data / INSIDE).write_text("one more\n")
    take_out(data, kept)
    assert (data / INSIDE).read_text() == "one more\n"
    assert kept.read_text() == f"key {EARLIER_MOST}\n"
    assert f"remove {kept}.old" in capfd.readouterr().err


@pytest.mark.parametrize("way", ["link", "second name", "another's", "pipe", "long"])
def test_tgtd_cannot_have_another_file_read(
    data: Path, kept: Path, way: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The store belongs to tgtd's user, and we may be root."""
    secret, inside = data.parent / "secret", data / INSIDE
    secret.write_text("of root's")
    if way == "long":
        inside.write_bytes(b"x" * 5000)
    elif way == "another's":
        if os.geteuid() != 0:
            pytest.skip("needs root to be somebody else")
        os.chown(inside, 12345, 12345)
    else:
        inside.unlink()
        if way == "link":
            inside.symlink_to(secret)
        elif way == "second name":
            inside.hardlink_to(secret)
        else:
            os.mkfifo(inside)
    take_out(data, kept)
    assert not kept.exists()
    assert "warning: the master key stays" in capfd.readouterr().err


@root
def test_where_nothing_can_be_made_beside_the_store(
    kept: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with tempfile.TemporaryDirectory(prefix="iosd-test-", dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        data = Path(name, "store")
        data.mkdir()
        (data / INSIDE).write_text("the key\n")
        for path in (data, data / INSIDE):
            os.chown(path, 65534, 65534)
        pid = os.fork()
        if pid == 0:
            os.setuid(65534)
            take_out(data, data.with_name("store.master-key"))
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert (data / INSIDE).read_text() == "the key\n"
        assert "--master-key" in capfd.readouterr().err


@pytest.fixture
def folder() -> Iterator[Path]:
    if why := missing():
        unavailable("tgtd", why)
    name = tempfile.mkdtemp(prefix="iosd-test-", dir="/var/tmp")
    Path(name).chmod(0o755)
    yield Path(name)
    shutil.rmtree(name)


@pytest.mark.tgtd
@root
def test_a_store_does_not_hold_its_master_key(folder: Path) -> None:
    data, kept = folder / "store", folder / "store.master-key"
    for again in (False, True):
        with Serving("--no-sandboxes", data=data) as served:
            assert served.master_key == kept
            key = MasterKey.read(kept)
            assert (kept.stat().st_uid, stat.S_IMODE(kept.stat().st_mode)) == (0, 0o600)
            assert not (data / INSIDE).exists()
            tgtd = data.stat().st_uid
            words = ["setpriv", f"--reuid={tgtd}", f"--regid={tgtd}", "--clear-groups"]
            assert (
                subprocess.run(
                    [*words, "cat", str(kept)], capture_output=True, check=False
                ).returncode
                != 0
            )
            assert ("first master key is in" in served.text()) != again
            served.kill("tgtd")
            served.restarted()
            assert MasterKey.read(kept) == key


@pytest.mark.tgtd
@root
def test_a_store_of_an_earlier_release(folder: Path) -> None:
    data, elsewhere = folder / "store", folder / "elsewhere"
    with Serving("--no-sandboxes", data=data, environment={}) as served:
        key = MasterKey.read(served.master_key)
    served.master_key.rename(data / INSIDE)
    os.chown(data / INSIDE, data.stat().st_uid, -1)
    with Serving("--no-sandboxes", "--master-key", str(elsewhere), data=data) as served:
        assert served.master_key == elsewhere
        assert MasterKey.read(elsewhere) == key and not (data / INSIDE).exists()
        assert f"first master key is in {elsewhere}" in served.text()
