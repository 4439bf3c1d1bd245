# SPDX-License-Identifier: GPL-2.0-or-later
"""System calls as another user, from a thread of their own."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import struct
from functools import partial
from pathlib import Path

import pytest

from iosd_host.common.acting import call_as, call_as_root
from iosd_host.common.paths import CRC32C, find_component
from iosd_host.store_tools.format import sums
from iosd_host.store_tools.opening.folders import as_owner

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")

USER = (12345, 23456)


def ids() -> tuple[int, int, int, list[int]]:
    return os.geteuid(), os.getegid(), os.getuid(), os.getgroups()


def test_only_the_call_is_anothers() -> None:
    before = ids()
    assert call_as(USER, ids) == (*USER, 0, [])
    assert call_as(None, ids) == before
    assert ids() == before


def test_files_and_connections(tmp_path: Path) -> None:
    private = tmp_path / "private"
    private.mkdir(mode=0o700)
    writable = partial(os.access, private, os.W_OK, effective_ids=True)
    assert writable() and not call_as(USER, writable)
    with pytest.raises(PermissionError):
        call_as(USER, private.rmdir)
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        listener.bind("")  # the kernel gives it an abstract name
        listener.listen()
        call_as(USER, partial(client.connect, listener.getsockname()))
        with listener.accept()[0] as accepted:
            peer = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    assert struct.unpack("3i", peer) == (os.getpid(), *USER)


def test_root_again_in_a_process_that_acts_as_another_user(tmp_path: Path) -> None:
    tmp_path.chmod(0o711)
    folder = tmp_path / "theirs"
    folder.mkdir()
    os.chown(folder, *USER)
    before = ids()
    with as_owner(folder):
        assert call_as_root(ids)[:3] == (0, USER[1], 0)
        assert ids() == (*USER, 0, [])
    assert call_as_root(ids) == ids() == before


def test_a_library_that_the_owner_of_a_store_cannot_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The source tree of root is below /root."""
    hidden, folder = tmp_path / "hidden", tmp_path / "theirs"
    for each in (hidden, folder):
        each.mkdir(mode=0o700)
    os.chown(folder, *USER)
    library = shutil.copy(find_component(CRC32C), hidden)
    monkeypatch.setattr(sums, "find_component", lambda _: library)
    sums._library.cache_clear()
    try:
        with as_owner(folder):
            assert sums.crc32c(b"123456789") == 0xE3069283
    finally:
        sums._library.cache_clear()


def test_an_unknown_machine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A number of another machine would be another system call."""
    monkeypatch.setattr(platform, "machine", lambda: "vax")
    with pytest.raises(NotImplementedError, match="vax"):
        call_as(USER, ids)
    assert call_as(None, ids) == ids()
