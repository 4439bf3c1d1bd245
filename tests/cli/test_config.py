# SPDX-License-Identifier: GPL-2.0-or-later
"""The configuration file and what comes before it."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest
from click.testing import CliRunner

import pyosd
from pyosd import Chap
from pyosd.cli import main
from pyosd.cli.frame.codes import Exit
from pyosd.identity import SECRETS, Identity, for_child, from_environment
from pyosd.offload.costs import costs_file
from pyosd.profiles import Profile, ProfileError, config_path, load_profile


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


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container whose user is a number."""

    def unknown(_: int) -> None:
        raise KeyError

    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert config_path() == Path("/.config/iosd/config.toml")
    assert costs_file() == Path("/.cache/iosd/costs.json")
    assert load_profile(None) == Profile()
    monkeypatch.setenv("HOME", "/dev/null")
    assert load_profile(None) == Profile()


def test_default_and_named_profile(config: Path) -> None:
    config.write_text(
        '[profile.default]\ntarget = "iscsi://a/b/1"\npartition = 0x10000\n'
        '[profile.lab]\nchap-user = "me"\n'
    )
    assert load_profile(None) == Profile(target="iscsi://a/b/1", partition=0x10000)
    assert load_profile("lab") == Profile(identity=Identity(chap_user="me"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("profile = 1", "not a table"),
        ("x = 1", "no such key: 'x'"),
        ("[profile.default]\ntarge = 'x'", "did you mean 'target'"),
        ("[default]\ntarget = 'x'", r"a profile is a table \[profile\.default\]"),
        ("[profile.default]\npartition = 'web'", "is not a number, such as 0x10000"),
        ("[profile.default]\ntarget = 1", "'target' is not a text in quotation marks"),
        ("[profile.default\n", "config.toml"),
    ],
)
def test_wrong_file(config: Path, text: str, message: str) -> None:
    config.write_text(text)
    with pytest.raises(ProfileError, match=message):
        load_profile(None)


def test_unknown_profile_names_the_nearest(config: Path) -> None:
    config.write_text("[profile.production]\n")
    with pytest.raises(ProfileError, match="did you mean 'production'"):
        load_profile("prodution")


def test_secret(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "secret"
    secret.write_text("twelve letters\n")
    me = Identity(chap_user="me", chap_secret_file=str(secret))
    secret.chmod(0o644)
    with pytest.raises(ValueError, match="chmod 600"):
        me.secret()
    secret.chmod(0o600)
    assert me.chap() == Chap("me", "twelve letters")
    secret.unlink()
    with pytest.raises(FileNotFoundError, match="secret"):
        me.secret()
    monkeypatch.setenv("IOSD_CHAP_SECRET", "from the environment")
    assert me.secret() == Identity().secret() == "from the environment"
    assert Identity().chap() is None


def test_who_we_are_to_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of files, and no secret."""
    monkeypatch.setenv(SECRETS[0], "twelve letters")
    me = Identity(chap_user="me", credentials="/some/file")
    environment, descriptors = for_child(me)
    assert "twelve letters" not in environment.values() and len(descriptors) == 1
    monkeypatch.delenv(SECRETS[0])
    for name, text in environment.items():
        monkeypatch.setenv(name, text)
    child = from_environment()
    assert child.chap() == Chap("me", "twelve letters") and child.credentials == "/some/file"
    os.close(descriptors[0])


def test_python_without_a_url_uses_the_profile(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("IOSD_TARGET", raising=False)
    monkeypatch.delenv("IOSD_PROFILE", raising=False)
    with pytest.raises(ValueError, match="no target: give its URL, set IOSD_TARGET, or write"):
        pyosd.connect()
    config.write_text(
        '[profile.default]\ntarget = "iscsi://127.0.0.1:1/a/1"\nchap-user = "me"\n'
        'chap-secret-file = "absent"\n'
    )
    with pytest.raises(FileNotFoundError, match="absent"):
        pyosd.connect()
    config.write_text('[profile.default]\ntarget = "iscsi://127.0.0.1:1/a/1"\n')
    with pytest.raises(pyosd.Unreachable, match=r"127\.0\.0\.1:1"):
        pyosd.connect()
    monkeypatch.setenv("IOSD_TARGET", "iscsi://127.0.0.1:2/a/1")
    with pytest.raises(pyosd.Unreachable, match=r"127\.0\.0\.1:2"):
        pyosd.connect()


def test_no_secret_on_the_command_line() -> None:
    done = CliRunner().invoke(main, ["part", "ls", "--target", "iscsi://me%secret@127.0.0.1/x/1"])
    assert done.exit_code == Exit.CONFIG and "IOSD_CHAP_SECRET" in done.stderr


def test_one_secret_for_both_directions_is_refused() -> None:
    with pytest.raises(ValueError, match="different secrets"):
        Chap("me", "twelve letters", "disk", "twelve letters")
