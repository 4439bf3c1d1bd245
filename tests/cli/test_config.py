# SPDX-License-Identifier: GPL-2.0-or-later
"""The configuration file and what comes before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyosd.cli.config import ConfigError, Profile, config_path, load_profile


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("IOSD_CHAP_SECRET", raising=False)
    path = tmp_path / "iosd" / "config.toml"
    path.parent.mkdir()
    assert config_path() == path
    return path


def test_no_file_is_an_empty_profile(config: Path) -> None:
    assert load_profile(None) == Profile()


def test_default_and_named_profile(config: Path) -> None:
    config.write_text(
        '[profile.default]\ntarget = "iscsi://a/b/1"\npartition = 0x10000\n'
        '[profile.lab]\nchap-user = "me"\n'
    )
    assert load_profile(None) == Profile(target="iscsi://a/b/1", partition=0x10000)
    assert load_profile("lab") == Profile(chap_user="me")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("profile = 1", "not a table"),
        ("x = 1", "no such key: 'x'"),
        ("[profile.default]\ntarge = 'x'", "did you mean 'target'"),
        ("[profile.default]\ntarget = 1", "not of type str"),
        ("[profile.default\n", "config.toml"),
    ],
)
def test_wrong_file(config: Path, text: str, message: str) -> None:
    config.write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_profile(None)


def test_unknown_profile_names_the_nearest(config: Path) -> None:
    config.write_text("[profile.production]\n")
    with pytest.raises(ConfigError, match="did you mean 'production'"):
        load_profile("prodution")


def test_secret(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "secret"
    secret.write_text("twelve letters\n")
    profile = Profile(chap_secret_file=str(secret))
    assert profile.secret() == "twelve letters"
    secret.unlink()
    with pytest.raises(ConfigError, match="secret"):
        profile.secret()
    monkeypatch.setenv("IOSD_CHAP_SECRET", "from the environment")
    assert profile.secret() == "from the environment"
    assert Profile().secret() == "from the environment"
