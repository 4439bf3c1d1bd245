# SPDX-License-Identifier: GPL-2.0-or-later
"""Certificates of users, of the server and of the authority: how they are made, end and are renewed."""

from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import time
from datetime import timedelta
from pathlib import Path

import pytest

from iosd_secmgr.keys import pki
from iosd_secmgr.records import store
from pyosd import errors
from pyosd.secmgr.certificate_request import new_request
from pyosd.secmgr.client import Client, SecmgrRefused, SecmgrUnreachable
from pyosd.secmgr.errors import SecmgrError
from pyosd.secmgr.files import write_private
from tests.harness import SOURCE
from tests.secmgr.conftest import Served, World
from tests.secmgr.process import PROGRAM, Process

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


def test_the_authoritys_certificate_is_renewed(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With its key and name, so that old and new copies of ca.pem and all certificates fit together."""
    path, key = world.folder / pki.CA, world.folder / pki.CA_KEY
    sealer = world.opened.sealer
    authority = pki.Authority.load(world.folder, sealer)
    assert authority is not None and not authority.renew(world.folder)
    assert authority.former_until is None
    for change in ("ended", "ends soon"):
        key.unlink()
        with monkeypatch.context() as patch:
            patch.setattr(pki, "CA_DAYS", ENDED if change == "ended" else 729)
            authority = pki.Authority.make(world.folder, sealer)
        authority.make_server(world.folder, sealer, ["localhost", "127.0.0.1"])
        (tmp_path / "copy.pem").write_bytes(path.read_bytes())
        request_key, request = new_request("root")
        serial, certificate, until_ms = authority.sign_user("root", request, 1)
        with world.opened.database.transaction() as tx:
            store.add_certificate(tx, serial, "root", until_ms, 0)
        path.chmod(0o640)
        assert authority.renew(world.folder) and not authority.renew(world.folder), change
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        again = pki.Authority.load(world.folder, sealer)
        assert again is not None and again.until == authority.until
        assert again.former_until == authority.former_until != authority.until
        (tmp_path / f"{change}.key").write_bytes(request_key)
        (tmp_path / f"{change}.pem").write_bytes(certificate)
        world.service.authority = again
        served = Served(world)
        try:
            pair = tmp_path / f"{change}.pem", tmp_path / f"{change}.key"
            user = served.client(certificate=pair[0], key=pair[1])
            assert user.call("whoami")["user"] == "root"
            served.ca = tmp_path / "copy.pem"
            if change == "ended":
                with pytest.raises(SecmgrUnreachable, match="certificate has expired") as caught:
                    served.admin.call("whoami")
                assert f"the certificate in {served.ca} has ended" in str(caught.value.hint)
            else:
                assert served.admin.call("whoami")["user"] == "root"
            served.ca = path
            assert served.admin.call("status")["authority"]["former_until_ms"]
        finally:
            served.stop()


def test_a_start_renews_the_authority_and_names_the_former_ones_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    (world.folder / pki.CA_KEY).unlink()
    with monkeypatch.context() as patch:
        patch.setattr(pki, "CA_DAYS", 100)
        authority = pki.Authority.make(world.folder, world.opened.sealer)
    authority.make_server(world.folder, world.opened.sealer, ["localhost", "127.0.0.1"])
    world.opened.database.close()
    process = Process(world.folder)
    admin = Client(process.url, token_file=world.token_file, ca=world.folder / pki.CA)
    try:
        with contextlib.closing(admin) as client:
            ends = client.call("status")["authority"]
        done = subprocess.run(
            [*PROGRAM, "secmgr", "status"],
            env=os.environ | process.login(world.token_file),
            cwd=SOURCE,
            capture_output=True,
            text=True,
            check=True,
        )
    finally:
        log = process.stop()
    assert ends["until_ms"] - ends["former_until_ms"] > (pki.CA_DAYS - 101) * 86_400_000
    day = time.strftime("%Y-%m-%d", time.gmtime(ends["former_until_ms"] / 1000))
    assert f"a copy of the former ca.pem are refused from {day}" in log
    assert "a copy of the former ca.pem are refused from" in done.stderr


def test_an_impostor_is_not_believed(served: Served) -> None:
    with pytest.raises(errors.Unreachable, match="CERTIFICATE_VERIFY_FAILED"):
        Client(served.url, token="iosd-x").call("whoami")
