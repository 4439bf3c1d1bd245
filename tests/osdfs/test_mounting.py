# SPDX-License-Identifier: GPL-2.0-or-later
"""How `osd mount` begins and ends."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from pyosd.fronts.osdfs import device
from pyosd.target import Target
from pyosd.types import ObjectRef
from tests import surroundings, warm
from tests.osdfs.conftest import MOUNT, STOP_S, MountedFiles
from tests.serving import Serving
from tests.waiting import until

pytestmark = pytest.mark.tgtd


def test_umount_ends_it(serving: Serving, zone: ObjectRef) -> None:
    files = MountedFiles(serving.url, f"/{zone}")
    subprocess.run(["umount", str(files.place)], check=True)
    assert files.process.wait(STOP_S) == 0
    files.stop(check=False)


def test_what_is_open_is_sent_at_the_end(serving: Serving, zone: ObjectRef, target: Target) -> None:
    files = MountedFiles(serving.url, f"/{zone}")
    with (files.place / "a").open("wb", buffering=0) as file:
        file.write(b"sent")
        files.process.send_signal(signal.SIGTERM)
        until(lambda: "is in use" in files.text())
        assert target.fs.read_bytes(f"/{zone}/a") == b"sent"
        file.write(b" and more")
    assert files.process.wait(STOP_S) == 0
    assert target.fs.read_bytes(f"/{zone}/a") == b"sent and more"
    files.stop(check=False)


def test_what_is_open_is_sent_when_the_terminal_ends(
    serving: Serving, zone: ObjectRef, target: Target
) -> None:
    """The kernel and the shell each report that; before, the file system was left without a process."""
    files = MountedFiles(serving.url, f"/{zone}")
    with (files.place / "a").open("wb", buffering=0) as file:
        file.write(b"sent")
        for _ in range(2):
            files.process.send_signal(signal.SIGHUP)
            until(lambda: "is in use" in files.text())
        file.write(b" and more")
    assert files.process.wait(STOP_S) == 0
    assert target.fs.read_bytes(f"/{zone}/a") == b"sent and more"
    files.stop(check=False)


def test_a_second_signal_ends_it_at_once(serving: Serving, zone: ObjectRef) -> None:
    files = MountedFiles(serving.url, f"/{zone}")
    fd = os.open(files.place / "a", os.O_CREAT | os.O_WRONLY)
    files.process.send_signal(signal.SIGTERM)
    until(lambda: "is in use" in files.text())
    files.process.send_signal(signal.SIGTERM)
    assert files.process.wait(STOP_S) == 0
    with pytest.raises(OSError, match=rf"\[Errno ({errno.ENOTCONN}|{errno.ECONNABORTED})\]"):
        os.write(fd, b"lost")
    with contextlib.suppress(OSError):
        os.close(fd)
    files.stop(check=False)


def test_what_was_closed_outlives_a_killed_mount(
    serving: Serving, zone: ObjectRef, target: Target
) -> None:
    files, large = MountedFiles(serving.url, f"/{zone}"), os.urandom(3 << 20)
    (files.place / "small").write_bytes(b"closed")
    (files.place / "large").write_bytes(large)
    with contextlib.suppress(OSError), (files.place / "open").open("wb", buffering=0) as file:
        file.write(b"lost, or not")
        files.process.kill()
        files.process.wait()
    files.stop(check=False)
    assert target.fs.read_bytes(f"/{zone}/small") == b"closed"
    assert target.fs.read_bytes(f"/{zone}/large") == large
    with MountedFiles(serving.url, f"/{zone}") as top:
        assert {each.name for each in top.iterdir()} - {"open"} == {"small", "large"}


def test_a_copy_of_the_mount_does_not_keep_it(serving: Serving, zone: ObjectRef) -> None:
    """As sandboxes and containers have, in mount namespaces of their own."""
    files = MountedFiles(serving.url, f"/{zone}")
    words = [
        "unshare",
        "--mount",
        "--propagation",
        "private",
        "sh",
        "-c",
        "echo ready; exec sleep 1000",
    ]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        try:
            assert other.stdout.readline() == "ready\n"
            with files:
                pass
        finally:
            other.kill()


def test_the_helper_of_other_users(
    serving: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """fusermount3 mounts for users without the capability; here it is called by root."""
    if not shutil.which("fusermount3"):
        pytest.skip("fusermount3 is missing")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    fd = device.attach(tmp_path, "a,name", others=False)
    try:
        number = device.device_number(tmp_path)
        assert device.is_attached(number)
        assert device.detach(tmp_path, lazy=True)
        assert not device.is_attached(number)
        assert not device.detach(tmp_path)
    finally:
        os.close(fd)


def gone_after_cleanup(place: Path) -> bool:
    surroundings.unmount_dead()
    return f" {place} " not in Path("/proc/self/mountinfo").read_text()


def test_a_place_that_is_taken(serving: Serving, zone: ObjectRef, top: Path) -> None:
    """Also by a mount whose program was killed.  The next run of the tests unmounts such a one."""
    words = ["mount", "--target", serving.url, f"/{zone}", str(top)]
    done = warm.run(
        [sys.executable, "-c", MOUNT, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "umount it first" in done.stderr
    killed = MountedFiles(serving.url, f"/{zone}")
    killed.process.kill()
    killed.process.wait()
    try:
        with pytest.raises(OSError, match="umount it first"):
            device.attach(killed.place, "name", others=False)
        os.utime(killed.log, (0, 0))
        until(partial(gone_after_cleanup, killed.place))
    finally:
        killed.stop(check=False)


@pytest.mark.parametrize(
    ("path", "place", "code", "text"),
    [
        ("/{zone}", "file", 1, "not a directory"),
        ("/{zone}/absent", "folder", 66, "no such file or directory"),
        ("/{zone}/a", "folder", 1, "is not a directory"),
        ("/0x7777777", "folder", 66, "no such file or directory"),
    ],
)
def test_what_cannot_be_mounted(
    serving: Serving,
    target: Target,
    zone: ObjectRef,
    tmp_path: Path,
    path: str,
    place: str,
    code: int,
    text: str,
) -> None:
    target.fs.write_bytes(f"/{zone}/a", b"1")
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    words = ["mount", "--target", serving.url, path.format(zone=zone), str(tmp_path / place)]
    done = warm.run(
        [sys.executable, "-c", MOUNT, *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, text in done.stderr) == (code, True), done.stderr
    assert not os.path.ismount(tmp_path / "folder")
