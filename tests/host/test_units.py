# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd target manager`, which systemd runs: whether it is wanted, and what the manager is started with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from iosd_host.cli import iosd_manager
from iosd_host.cli import units as unit_commands

Run = Callable[..., Result]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The words of each manager that was started."""
    found: list[list[str]] = []

    def main(words: list[str], prog_name: str) -> None:
        assert prog_name == "iosd-manager"
        found.append(words)

    monkeypatch.setattr(iosd_manager.main, "main", main)
    return found


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """The command, with a configuration of `[manager] enabled` and a folder of the sandboxes' group."""

    def run(enabled: str, *words: str) -> Result:
        config = tmp_path / "iosd.toml"
        config.write_text(f"[manager]\nenabled = {enabled}\n")
        known = ["--config", str(config), "--cgroup", str(tmp_path / "group")]
        return CliRunner().invoke(unit_commands.manager, [*known, *words])

    return run


@pytest.mark.parametrize(("enabled", "code"), [("true", 0), ("false", 1)])
def test_wanted(run: Run, started: list[list[str]], enabled: str, code: int) -> None:
    """systemd's ExecCondition= takes 1 to 254 for: leave the unit, it has not failed."""
    assert run(enabled, "--wanted").exit_code == code
    assert not started


def test_not_wanted_is_said(run: Run, started: list[list[str]]) -> None:
    found = run("false")
    assert found.exit_code == 78 and "[manager] enabled = false" in found.output
    assert not started


def test_pressure_of_the_sandboxes(run: Run, started: list[list[str]], tmp_path: Path) -> None:
    """Only where the group tells it."""
    assert run("true").exit_code == 0
    (tmp_path / "group").mkdir()
    (tmp_path / "group" / "cpu.pressure").touch()
    assert run("true").exit_code == 0
    without, with_it = started
    assert "--cgroup" not in without
    at = with_it.index("--cgroup")
    assert with_it[at + 1] == str(tmp_path / "group")
    assert with_it[:at] + with_it[at + 2 :] == without


@pytest.mark.parametrize(
    "keys", ["chap_file = '{}'", "chap_user = 'ada'\nchap_secret_file = '{}'"], ids=["file", "user"]
)
@pytest.mark.parametrize("seen", [True, False])
def test_the_manager_needs_no_secret_of_tgtds(
    started: list[list[str]], tmp_path: Path, keys: str, seen: bool
) -> None:
    """Only root reads the secrets of CHAP. The manager is another user, who may not even see the file."""
    secrets = tmp_path / "secrets"
    if seen:
        secrets.write_text("no accounts at all")
    config = tmp_path / "other.toml"
    config.write_text("[target]\n" + keys.format(secrets))
    for words in (["--wanted"], []):
        found = CliRunner().invoke(unit_commands.manager, ["--config", str(config), *words])
        assert found.exit_code == 0, found.output
    assert len(started) == 1
