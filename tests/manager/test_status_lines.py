# SPDX-License-Identifier: GPL-2.0-or-later
"""The words of a resource manager for an administrator: its process could be somebody else's."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from iosd_host.cli import config
from iosd_host.cli.manager import show_status
from iosd_host.cli.verb import Admin
from iosd_host.common import places

OBEYED = "\x1b]0;title\x07\n\x9b31m"
COUNTS = ("active", "busy", "ready", "queued", "min", "max", "warming", "warm_spare", "oldest")
POOL = {**dict.fromkeys(COUNTS, 0), **dict.fromkeys(("name", "mode", "why", "by"), OBEYED)}


@pytest.mark.parametrize("output", ["table", "json"])
def test_a_terminal_obeys_none(output: str, capsys: pytest.CaptureFixture[str]) -> None:
    admin = Admin(output=output)
    target = {"name": OBEYED, "role": OBEYED, "trouble": OBEYED, "pools": [POOL]}
    me = {"version": OBEYED, "pid": OBEYED, "started": 1, "you": OBEYED, "role": OBEYED}
    if output == "json":
        admin.show_json("iosd.status/1", {"targets": [target], "manager": me})
    else:
        show_status(admin, {"manager": me}, [target], OBEYED)
        admin.show_change(OBEYED, {"was": {"a": 1}, "is": {"a": OBEYED}, "note": OBEYED})
    said = capsys.readouterr().out
    assert "title" in said and not set(said) & set("\x1b\x07\x9b")


def test_a_terminal_obeys_no_supervisor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The manager's user can write a file that names another one."""
    row = {"key": OBEYED, "was": None, "is": OBEYED}
    result = {"added": [OBEYED], "removed": [OBEYED], "changed": [row], "restart": [row]}
    monkeypatch.setattr(config, "served", lambda *_: {"socket": "x", "url": "iscsi://x"})
    monkeypatch.setattr(config, "ask_supervisor", lambda *_, **__: result)
    said = CliRunner().invoke(config.reload, []).output
    assert said.count("title") == 6 and not set(said) & set("\x1b\x07\x9b")


def test_a_file_of_places_that_is_nested_too_deep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IOSD_RUN", str(tmp_path))
    (tmp_path / "manager-1.json").write_text("[" * 100_000 + "\n")
    assert [*places.running(places.MANAGER)] == []
