# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd doctor` names the security method with which a store that is made now would begin."""

from __future__ import annotations

from pathlib import Path

import pytest

from iosd_host.config import files
from iosd_host.serve.doctor import security


@pytest.mark.parametrize(
    ("portal", "method"),
    [
        ("127.0.0.1:3261", "capkey"),
        ("127.0.0.1", "capkey"),
        ("::1", "capkey"),
        ("192.0.2.10:3260", "cmdrsp"),
        ("192.0.2.10", "cmdrsp"),
        ("[2001:db8::1]:3260", "cmdrsp"),
    ],
)
def test_by_the_portal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, portal: str, method: str
) -> None:
    file = tmp_path / "iosd.toml"
    file.write_text(f'[target]\nportal = "{portal}"\n')
    monkeypatch.setattr(files, "DEFAULT_FILE", file)
    assert security().detail == f"a store made now begins with {method}"


def test_without_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "DEFAULT_FILE", tmp_path / "iosd.toml")
    assert security().detail == "a store made now begins with capkey"
