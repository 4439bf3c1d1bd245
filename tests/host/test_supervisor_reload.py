# SPDX-License-Identifier: GPL-2.0-or-later
"""The supervisor reads its configuration again: nothing changes if a part of that fails."""

from __future__ import annotations

import asyncio
import errno
from pathlib import Path
from unittest.mock import AsyncMock, Mock

import pytest

from iosd_host.config.files import Config
from iosd_host.config.schema import ConfigError
from iosd_host.config.source import Source
from iosd_host.serve.parts import TargetConfig
from iosd_host.serve.reload import Reloader
from iosd_host.serve.supervise import Supervisor


def test_a_reload_without_room_for_its_files_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asked hears it, and what is said to be served is served."""
    supervisor = object.__new__(Supervisor)
    supervisor.config = TargetConfig(tmp_path, ("127.0.0.1", 0))
    supervisor.pools, supervisor.signers, supervisor.level = (), "policy unsigned\n", "minimal"
    supervisor.services, supervisor.manager = [], None
    empty = tmp_path / "iosd.toml"
    empty.touch()
    before = supervisor.pools, supervisor.config, supervisor.signers
    full = Mock(side_effect=OSError(errno.ENOSPC, "No space left on device"))
    monkeypatch.setattr(supervisor, "write_pools", full)
    config, _ = Source(empty).read()
    with pytest.raises(ConfigError, match="No space left"):
        asyncio.run(supervisor.take(config, "root", ""))
    assert (supervisor.pools, supervisor.config, supervisor.signers) == before


def test_a_reload_is_for_sandboxes_that_start(tmp_path: Path) -> None:
    """iosd-sandboxd may have read the pools of before."""
    supervisor = object.__new__(Supervisor)
    supervisor.config = TargetConfig(tmp_path, ("127.0.0.1", 0))
    supervisor.services = []
    asked: list[list[object]] = []
    sandboxd = Mock(start=AsyncMock(side_effect=lambda: asked.append([*supervisor.services])))
    supervisor.prepare = Mock()  # type: ignore[method-assign]
    supervisor.sandboxd = Mock(return_value=sandboxd)  # type: ignore[method-assign]
    supervisor.tgtd = Mock(side_effect=RuntimeError)  # type: ignore[method-assign]
    with pytest.raises(RuntimeError):
        asyncio.run(supervisor.start())
    assert asked == [[sandboxd]]


def test_a_reload_that_cannot_be_announced_changes_nothing(tmp_path: Path) -> None:
    """/run is full.  The manager would read there what it is to hold."""
    file, applied = tmp_path / "iosd.toml", list[Config]()
    file.touch()

    async def apply(config: Config, by: str, why: str) -> None:
        applied.append(config)

    reloader = Reloader(Source(file), apply)
    before = reloader.config, reloader.settings
    full = OSError(errno.ENOSPC, "No space left on device")
    reloader.place = Mock(write=Mock(side_effect=[full, None]))
    with pytest.raises(ConfigError, match="No space left"):
        asyncio.run(reloader.reload("root", ""))
    assert (reloader.config, reloader.settings) == before and not applied
