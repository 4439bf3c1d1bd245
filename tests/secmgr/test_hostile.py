# SPDX-License-Identifier: GPL-2.0-or-later
"""A client of a security manager that is none, or that is hostile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from pyosd import errors
from pyosd.cli import main
from pyosd.secmgr.client import Client, SecmgrUnreachable, SecurityManagerSource
from pyosd.secmgr.files import write_private
from pyosd.types import ObjectType, ref
from pyosd.wire.capability import Permission

URL = "https://127.0.0.1:1"
NONE = [
    (200, b"[" * 100_000),
    (200, b'{"error":' + b"[" * 100_000),
    (200, b"\xff"),
    (200, b"[]"),
    (400, b"null"),
    (400, b'{"error": "x"}'),
    (403, b'{"error": [1]}'),
]
UNFIT = [{}, {"capability": 5, "key": "00", "partitions": 5}, {"partitions": [None]}]
UNFIT += [{"capability": "02" + "ff" * 103, "key": "00" * 32, "partitions": ["x"]}]
OBEYED = "\x1b]0;title\x07\n\x9b31m\u202e"


@pytest.fixture
def source() -> SecurityManagerSource:
    return SecurityManagerSource(URL, "iqn.x", token="t")


@pytest.mark.parametrize(("status", "body"), NONE)
def test_an_answer_of_something_else(
    source: SecurityManagerSource, monkeypatch: pytest.MonkeyPatch, status: int, body: bytes
) -> None:
    monkeypatch.setattr(Client, "_exchange", lambda *_: (status, body))
    with pytest.raises(SecmgrUnreachable, match="does not answer as a security manager"):
        source.client.call("whoami")


@pytest.mark.parametrize("fields", UNFIT)
def test_an_answer_without_its_fields(
    source: SecurityManagerSource, monkeypatch: pytest.MonkeyPatch, fields: dict[str, object]
) -> None:
    monkeypatch.setattr(Client, "_exchange", lambda *_: (200, json.dumps(fields).encode()))
    with pytest.raises(errors.Unreachable):
        source.credential(ref(0x10000, 0x10000), ObjectType.USER_OBJECT, Permission.READ)
    with pytest.raises(errors.Unreachable):
        source.partitions()


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        ("acl check READ 0x10000", {"permitted": False, "why": OBEYED}),
        ("acl check READ 0x10000", {"permitted": True, "rules": [OBEYED], "method": OBEYED}),
        ("acl add ann READ 0x10000", {"rules": [{"id": OBEYED}]}),
        ("acl revoke 0x10000/0x10000", {"tag": OBEYED}),
        ("acl token add ann --save FILE", {"id": OBEYED, "token": "t"}),
        ("secmgr audit verify", {"problems": [OBEYED], "head": ""}),
        ("secmgr audit verify", {"problems": [], "head": OBEYED}),
    ],
)
def test_a_terminal_obeys_no_word_of_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: str, fields: dict[str, object]
) -> None:
    write_private(tmp_path / "token", b"t\n")
    said = {"expires_ms": 0, **fields}
    monkeypatch.setattr(Client, "_exchange", lambda *_: (200, json.dumps(said).encode()))
    environment = {
        "XDG_CONFIG_HOME": str(tmp_path),
        "IOSD_TARGET": "iscsi://127.0.0.1:1/iqn.x/1",
        "IOSD_SECMGR": URL,
        "IOSD_SECMGR_TOKEN_FILE": str(tmp_path / "token"),
    }
    line = [word.replace("FILE", str(tmp_path / "made")) for word in words.split()]
    result = CliRunner(env=environment).invoke(main, line)
    assert "title^G^J" in result.output, result.output
    assert not set(OBEYED) & set("\x1b\x07\x9b\u202e") & set(result.output)
