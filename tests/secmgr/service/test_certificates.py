# SPDX-License-Identifier: GPL-2.0-or-later
"""Certificates of users, of the server and of the authority: how they are made, end and are renewed."""

from __future__ import annotations

import contextlib
import stat
from datetime import timedelta
from pathlib import Path

import pytest

from iosd_secmgr.keys import pki
from pyosd import errors
from pyosd.secmgr.certificate_request import new_request
from pyosd.secmgr.client import Client, SecmgrRefused
from pyosd.secmgr.errors import SecmgrError
from pyosd.secmgr.files import write_private
from tests.secmgr.conftest import Served, World
from tests.secmgr.process import Process

ENDED = -1 / 1440  # days from now; certificates begin some minutes before


def test_certificates(served: Served, tmp_path: Path) -> None:
    world, admin = served.world, served.admin
    world.add_user("bob")
    key, request = new_request("mallory")  # the name in the request is nobody's concern
    made = admin.call("certificate.sign", user="bob", request=request.decode())
    write_private(tmp_path / "key", key)
    (tmp_path / "pem").write_text(made["certificate"])

    def bob() -> Client:
        return served.client(certificate=tmp_path / "pem", key=tmp_path / "key")

    assert bob().call("whoami")["user"] == "bob"
    assert [each["user"] for each in admin.call("certificate.ls")["certificates"]] == ["bob"]
    admin.call("user.disable", name="bob")
    with pytest.raises(errors.PermissionDenied, match="user 'bob' is disabled"):
        bob().call("whoami")
    admin.call("user.disable", name="bob", enable=True)
    world.clock.ahead = (pki.USER_DAYS + 1) * 86400  # a connection outlasts its handshake
    with pytest.raises(errors.PermissionDenied):
        bob().call("whoami")
    world.clock.ahead = 0
    admin.call("certificate.rm", id=made["id"])
    with pytest.raises(errors.PermissionDenied):
        bob().call("whoami")
    with pytest.raises(SecmgrRefused, match="no certificate request"):
        admin.call("certificate.sign", user="bob", request="-----BEGIN")


def test_a_stranger_authority(served: Served, tmp_path: Path) -> None:
    """A certificate of somebody else's, by the name of an administrator."""
    (tmp_path / "other").mkdir()
    other = pki.Authority.make(tmp_path / "other", served.world.opened.sealer)
    key, request = new_request("root")
    _, certificate, _ = other.sign_user("root", request, 1)
    write_private(tmp_path / "key", key)
    (tmp_path / "pem").write_bytes(certificate)
    client = served.client(certificate=tmp_path / "pem", key=tmp_path / "key")
    with pytest.raises(errors.Unreachable):
        client.call("whoami")


def test_the_servers_certificate_is_renewed(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Clients keep their ca.pem.  No command of the administrator could make another one."""
    authority = pki.Authority.load(world.folder, world.opened.sealer)
    assert authority is not None and not authority.renew_server(world.folder)
    path = world.folder / pki.SERVER
    for change in ("ended", "ends soon", "made while the clock was ahead"):
        with monkeypatch.context() as patch:
            days = {"ended": ENDED, "ends soon": 89}.get(change, pki.SERVER_DAYS)
            patch.setattr(pki, "SERVER_DAYS", days)
            if change == "made while the clock was ahead":
                patch.setattr(pki, "SKEW", -timedelta(days=1))
            authority.make_server(world.folder, world.opened.sealer, ["localhost", "127.0.0.1"])
        before = path.read_bytes()
        assert authority.renew_server(world.folder) and path.read_bytes() != before, change
        assert not authority.renew_server(world.folder)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    served = Served(world)
    try:
        assert served.admin.call("whoami")["user"] == "root"
    finally:
        served.stop()
    (tmp_path / "other").mkdir()
    other = pki.Authority.make(tmp_path / "other", world.opened.sealer)
    with monkeypatch.context() as patch:
        patch.setattr(pki, "SERVER_DAYS", 1)
        other.make_server(tmp_path / "other", world.opened.sealer, ["localhost"])
    (tmp_path / "other" / pki.SERVER).rename(path)
    assert authority.renew_server(world.folder)
    path.unlink()
    with pytest.raises(SecmgrError, match=f"cannot read {path}"):
        authority.renew_server(world.folder)


def test_a_start_renews_the_servers_certificate(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = pki.Authority.load(world.folder, world.opened.sealer)
    assert authority is not None
    with monkeypatch.context() as patch:
        patch.setattr(pki, "SERVER_DAYS", ENDED)
        authority.make_server(world.folder, world.opened.sealer, ["localhost", "127.0.0.1"])
    served = Served(world)
    try:
        with pytest.raises(errors.Unreachable, match="certificate has expired"):
            served.admin.call("whoami")
    finally:
        served.stop()
    world.opened.database.close()
    process = Process(world.folder)
    try:
        client = Client(process.url, token_file=world.token_file, ca=world.folder / pki.CA)
        with contextlib.closing(client):
            assert client.call("whoami")["user"] == "root"
    finally:
        assert "the server's certificate is renewed for 825 days" in process.stop()


def test_an_impostor_is_not_believed(served: Served) -> None:
    with pytest.raises(errors.Unreachable, match="CERTIFICATE_VERIFY_FAILED"):
        Client(served.url, token="iosd-x").call("whoami")
