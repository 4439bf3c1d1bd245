# SPDX-License-Identifier: GPL-2.0-or-later
"""CHAP accounts of `osd target serve`: the file, tgtd, both directions, and that no secret shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import pyosd
from iosd_host.serve.chap import Accounts, ChapAccount, SecretError, read_accounts
from pyosd import Chap, LoginRejected
from tests.serving import Serving, missing

ONE = '[[incoming]]\nuser = "ada"\nsecret = "correct horse battery"\n'
TWO = '[[incoming]]\nuser = "bob"\nsecret = "a second secret"\n'
OWN = '[outgoing]\nuser = "disk"\nsecret = "the other secret"\n'


def written(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "chap"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_file_of_accounts(tmp_path: Path) -> None:
    ada, disk = ChapAccount("ada", "correct horse battery"), ChapAccount("disk", "the other secret")
    bob = ChapAccount("bob", "a second secret")
    assert read_accounts(written(tmp_path, ONE)) == Accounts((ada,))
    assert read_accounts(written(tmp_path, ONE + TWO + OWN)) == Accounts((ada, bob), disk)
    assert "secret" not in repr(ada).replace("secret=", "")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (OWN, "incoming"),
        ("[[incoming]]\n", "'user' and 'secret'"),
        (ONE + "[more]\n", "incoming"),
        (ONE + ONE, "twice"),
        (ONE.replace("correct horse battery", "short"), "12 to 256"),
        (ONE.replace("ada", "a,b"), "comma"),
        (ONE.replace("horse", "horse,"), "no comma"),
        (ONE + OWN.replace("the other secret", "correct horse battery"), "no one else's"),
        ("[[incoming", "TOML"),
        (ONE.replace('"ada"', "1"), "are text"),
    ],
)
def test_wrong_files(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(SecretError, match=why) as caught:
        read_accounts(written(tmp_path, text))
    assert "battery" not in str(caught.value)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_file_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(SecretError, match="chmod 600"):
        read_accounts(written(tmp_path, ONE, mode))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    if why := missing():
        pytest.skip(why)
    path = written(tmp_path_factory.mktemp("chap"), ONE + TWO + OWN)
    with Serving("--no-sandboxes", "--chap-file", str(path)) as target:
        yield target


@pytest.mark.tgtd
def test_both_directions(served: Serving) -> None:
    for user, secret in (("ada", "correct horse battery"), ("bob", "a second secret")):
        for chap in (Chap(user, secret), Chap(user, secret, "disk", "the other secret")):
            with served.connect(chap=chap) as target:
                target.test_unit_ready()


@pytest.mark.tgtd
@pytest.mark.parametrize(
    ("chap", "why"),
    [
        (None, "asks for a name and a secret"),
        (Chap("ada", "a second secret"), "authentication"),
        (Chap("eve", "correct horse battery"), "authentication"),
        (Chap("ada", "correct horse battery", "disk", "not its secret"), "could not prove"),
        (Chap("ada", "correct horse battery", "disc", "the other secret"), "could not prove"),
    ],
)
def test_wrong_secrets(served: Serving, chap: Chap | None, why: str) -> None:
    with pytest.raises(LoginRejected, match=why):
        pyosd.connect(served.url, chap=chap)


@pytest.mark.tgtd
def test_secrets_are_in_no_log_and_no_command_line(served: Serving) -> None:
    shown = [served.text()]
    for pid in served.everything():
        shown += [Path(f"/proc/{pid}/{each}").read_text() for each in ("cmdline", "environ")]
    for secret in ("correct horse", "a second secret", "the other secret"):
        assert not any(secret in text for text in shown)
