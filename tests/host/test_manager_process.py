# SPDX-License-Identifier: GPL-2.0-or-later
"""What root does for the resource manager's process, in a folder that belongs to the manager's user."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from iosd_host.common.acting import call_as
from iosd_host.config.schema import Setting
from iosd_host.serve.manager_process import ManagerService, ManagerTarget

UID = 0x7A0FFFFF
SETTINGS = {
    "state": Setting(None, "default"),
    "keys": Setting(None, "default"),
    "http": Setting("none", "default"),
    "http_names": Setting((), "default"),
    "listen": Setting((), "default"),
}


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ManagerService:
    for each in (tmp_path, *tmp_path.parents[:2]):
        each.chmod(0o755)
    monkeypatch.setenv("IOSD_RUN", str(tmp_path / "run"))
    target = ManagerTarget("t", tmp_path / "control", tmp_path / "state", UID, target_uid=UID - 1)
    return ManagerService(target, tmp_path / "manager", SETTINGS, lambda again: None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has users to give away")
def test_a_link_of_the_managers_is_not_followed(
    service: ManagerService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the steps of a restart a process of its user swaps every name in its folder for a link."""
    victim = tmp_path / "victim"
    victim.touch(0o600)
    service._prepare()
    assert service.folder.stat().st_uid == UID

    def swap() -> None:
        for path in (*service.folder.iterdir(), service.notify):
            with contextlib.suppress(PermissionError):
                path.unlink()
                path.symlink_to(victim)

    listen: Callable[[], None] = service._listen

    def raced() -> None:
        listen()
        call_as((UID, UID), swap)

    monkeypatch.setattr(service, "_listen", raced)
    service._prepare()
    assert victim.stat().st_uid == 0
    assert service.notify.is_socket() and service.notify.stat().st_uid == UID
    service._close()
