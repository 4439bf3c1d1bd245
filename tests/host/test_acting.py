# SPDX-License-Identifier: GPL-2.0-or-later
"""System calls as another user, from a thread of their own."""

from __future__ import annotations

import os
import platform
import socket
import struct
from functools import partial
from pathlib import Path

import pytest

from iosd_host.common.acting import call_as

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
        listener.bind(b"\0iosd-test-acting")
        listener.listen()
        call_as(USER, partial(client.connect, listener.getsockname()))
        with listener.accept()[0] as accepted:
            peer = accepted.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    assert struct.unpack("3i", peer) == (os.getpid(), *USER)


def test_an_unknown_machine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A number of another machine would be another system call."""
    monkeypatch.setattr(platform, "machine", lambda: "vax")
    with pytest.raises(NotImplementedError, match="vax"):
        call_as(USER, ids)
    assert call_as(None, ids) == ids()
