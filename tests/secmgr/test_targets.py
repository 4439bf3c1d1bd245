# SPDX-License-Identifier: GPL-2.0-or-later
"""A target that asks for credentials, a security manager that has its keys, and people who use both."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import pyosd
from iosd_host.common.held_port import HeldPort
from iosd_secmgr import folder as setup
from pyosd.cli import main
from pyosd.cli.frame.codes import Exit
from pyosd.iscsi.session import TargetAddress
from pyosd.secmgr.client import SecurityManagerSource
from pyosd.types import ref
from pyosd.wire.capability import Permission
from tests.machine import unavailable
from tests.processes import long_lived
from tests.secmgr.process import Process
from tests.serving import Serving, missing, sandboxes_missing
from tests.waiting import until

pytestmark = pytest.mark.tgtd

ALL = ",".join(str(each.name) for each in Permission)
X, Y = "0x10000/0x10000", "0x10000/0x10001"
DATA = b"the quick brown fox\n"
LOAD_S = 30.0


class Place:
    """Both of them, and a user alice who may read X."""

    def __init__(self, folder: Path, serving: Serving, method: str) -> None:
        self.folder = folder
        self.serving = serving
        self.target = TargetAddress.parse(serving.url).target
        self.admin_token = setup.make(
            folder / "secmgr", admin="root", names=["localhost", "127.0.0.1"]
        )
        self.method = method
        self.held = HeldPort("127.0.0.1", 0)
        self.start()
        try:
            self.set_up()
        except BaseException:
            self.secmgr.kill()
            raise

    def start(self) -> None:
        self.secmgr = Process(self.folder / "secmgr", listen=f"127.0.0.1:{self.held.port}")
        long_lived.add(self.secmgr.process.pid)

    def stop(self) -> None:
        self.secmgr.stop()
        self.held.close()
        long_lived.discard(self.secmgr.process.pid)

    def import_key(self, code: int = 0) -> Result:
        file = self.serving.master_key
        return self.osd("key", "import", file, "--method", self.method, code=code)

    def set_up(self) -> None:
        self.alice_token = self.folder / "alice.token"
        self.imported = self.import_key().output
        self.osd("acl", "add", "root", ALL, "*")
        self.osd("acl", "user", "add", "alice")
        self.osd("acl", "token", "add", "alice", "--save", self.alice_token)
        self.osd("acl", "add", "alice", "READ,GET_ATTR", X)
        self.osd("part", "create", "0x10000")
        for _ in (X, Y):
            self.osd("obj", "write", "0x10000", data=DATA)

    def osd(
        self, *words: object, code: int = 0, token: Path | None = None, data: bytes | None = None
    ) -> Result:
        """As an administrator, or whoever has the token."""
        login = self.secmgr.login(token or self.admin_token)
        environment = {
            **login,
            "IOSD_TARGET": self.serving.url,
            "XDG_CONFIG_HOME": str(self.folder / "config"),
        }
        result = CliRunner(env=environment).invoke(main, [str(word) for word in words], input=data)
        assert result.exit_code == code, f"{words}: {result.exit_code}\n{result.output}"
        return result

    def alice(self, *words: object, code: int = 0) -> Result:
        return self.osd(*words, code=code, token=self.alice_token)

    def source(self, token: Path | None = None) -> SecurityManagerSource:
        """As alice, or whoever has the token."""
        ca = self.secmgr.folder / "ca.pem"
        token = token or self.alice_token
        return SecurityManagerSource(self.secmgr.url, self.target, token_file=token, ca=ca)

    def restart(self) -> None:
        """kill -9 to the security manager, and another one at its address."""
        self.secmgr.kill()
        self.start()


@contextlib.contextmanager
def place_with_jobs(folder: Path) -> Iterator[Place]:
    """One whose target runs jobs, and demands CAPKEY."""
    why = missing() or sandboxes_missing()
    if why:
        unavailable("sandbox", why)
    with Serving("--security", "capkey") as serving:
        made = Place(folder, serving, "CAPKEY")
        yield made
        made.stop()


@pytest.fixture(scope="module", params=["CAPKEY", "ALLDATA"])
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    why = missing()
    if why:
        unavailable("tgtd", why)
    method = request.param
    with Serving("--no-sandboxes", "--security", method.lower()) as serving:
        made = Place(tmp_path_factory.mktemp(method.lower()), serving, method)
        yield made
        made.stop()


def test_import_says_whether_the_target_obeys_everybody(place: Place, tmp_path: Path) -> None:
    assert "demands" not in place.imported
    with Serving("--no-sandboxes", "--security", "nosec") as serving:
        made = Place(tmp_path, serving, "CAPKEY")
        made.stop()
    assert f"osd: warning: {made.target} demands no capabilities (security method" in made.imported


def test_alice_reads_x_and_nothing_else(place: Place) -> None:
    assert place.alice("obj", "read", X).stdout_bytes == DATA
    place.alice("obj", "read", Y, code=Exit.NOT_PERMITTED)
    place.alice("obj", "rm", X, code=Exit.NOT_PERMITTED)
    place.alice("part", "ls", code=Exit.NOT_PERMITTED)
    assert place.osd("obj", "read", Y).stdout_bytes == DATA


def test_without_a_credential_nobody_reads(place: Place) -> None:
    with (
        pyosd.connect(place.serving.url) as target,
        pytest.raises(pyosd.PermissionDenied),
    ):
        target.read(ref(0x10000, 0x10000), 0, len(DATA))


def test_the_imported_master_key_is_worth_nothing_now(place: Place) -> None:
    assert "has another master key" in place.import_key(code=Exit.WRONG_STATE).output
    place.osd("key", "rotate")  # with what is there: nothing was changed


def test_credentials_in_a_file(place: Place, tmp_path: Path) -> None:
    file = tmp_path / "credentials"
    place.alice("cred", "get", "READ,GET_ATTR", X, "--save", file)
    with pyosd.connect(
        place.serving.url, credentials=pyosd.security.credentials.StaticSource.read(file)
    ) as target:
        assert bytes(target.read(ref(0x10000, 0x10000), 0, len(DATA))) == DATA
        with pytest.raises(pyosd.PermissionDenied):
            target.read(ref(0x10000, 0x10001), 0, 1)


def test_revoked_is_revoked_at_once(place: Place) -> None:
    place.osd("acl", "revoke", X)
    with pyosd.connect(place.serving.url, credentials=place.source()) as target:
        obj = ref(0x10000, 0x10000)
        assert bytes(target.read(obj, 0, len(DATA))) == DATA
        rule = [
            each["id"]
            for each in json.loads(place.osd("acl", "ls", "-o", "json").stdout)["rules"]
            if each["subject"] == "alice"
        ]
        place.osd("acl", "rm", *rule)
        assert bytes(target.read(obj, 0, len(DATA))) == DATA  # until it expires, or:
        place.osd("acl", "revoke", X)
        with pytest.raises(pyosd.PermissionDenied):
            target.read(obj, 0, len(DATA))
    place.osd("acl", "add", "alice", "READ,GET_ATTR", X)
    assert place.alice("obj", "read", X).stdout_bytes == DATA


class Load:
    """Reads of alice's, until it is told to stop; what failed.

    dying: the target dies under it: whether a command then fails is not the matter, but that others
    do not.
    """

    def __init__(self, place: Place, *, dying: bool = False) -> None:
        self._dying = dying
        self.failed: list[str] = []
        self.done = self.lost = 0
        self._stop = threading.Event()
        self._place = place
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        source = self._place.source()
        try:
            with pyosd.connect(self._place.serving.url, credentials=source) as target:
                while not self._stop.is_set():
                    self._read(target)
        except Exception as error:
            self.failed.append(repr(error))
        finally:
            source.close()

    def _read(self, target: pyosd.Target) -> None:
        try:
            assert bytes(target.read(ref(0x10000, 0x10000), 0, len(DATA))) == DATA
            self.done += 1
        except pyosd.OSDError:
            if not self._dying:
                raise
            self.lost += 1

    def goes_on(self) -> None:
        """Some more of them are answered."""
        wanted = self.done + 5
        until(lambda: self.done >= wanted or self.failed, "the load stands still", LOAD_S)
        assert not self.failed

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


def rotations(place: Place) -> list[Callable[[], object]]:
    return [
        lambda: place.osd("key", "rotate"),
        lambda: place.osd("key", "rotate", "--partition", "0x10000"),
        lambda: place.osd("key", "freeze", "0x10000"),
        lambda: place.osd("key", "rotate", "--level", "partition", "--partition", "0x10000"),
        lambda: place.osd("key", "rotate", "--level", "root"),
        lambda: place.osd("key", "set-master"),
        place.restart,
        lambda: place.osd("key", "rotate"),
    ]


def test_no_command_fails_while_keys_change(place: Place) -> None:
    load = Load(place)
    try:
        load.goes_on()
        for change in rotations(place):
            change()
            load.goes_on()
        assert load.lost == 0
    finally:
        load.stop()
    assert place.osd("secmgr", "audit", "verify").stdout


def test_a_target_that_comes_back_has_its_keys(place: Place) -> None:
    before = place.osd("key", "ls", "-o", "id").stdout
    place.serving.kill("tgtd")
    place.serving.restarted()
    assert place.alice("obj", "read", X).stdout_bytes == DATA
    place.osd("key", "rotate")
    assert place.alice("obj", "read", X).stdout_bytes == DATA
    assert set(before.split()) < set(place.osd("key", "ls", "-o", "id").stdout.split())


def test_a_target_that_dies_while_keys_change(place: Place) -> None:
    """The security manager is told of it, or waits for the target; no key is lost, and none of the log."""
    load = Load(place, dying=True)
    try:
        load.goes_on()
        for level, after_s in (("working", 0.01), ("root", 0.02), ("root", 0.05), ("root", 0.1)):
            killer = threading.Timer(after_s, place.serving.kill, ["tgtd"])
            killer.start()
            login = place.secmgr.login(place.admin_token)
            words = ["key", "rotate", "--level", level]
            done = CliRunner(env={**login, "IOSD_TARGET": place.serving.url}).invoke(main, words)
            assert done.exit_code in (0, Exit.UNREACHABLE), done.output
            killer.join()
            place.serving.restarted()
            load.goes_on()
    finally:
        load.stop()
    place.osd("key", "rotate", "--level", "root")
    assert place.alice("obj", "read", X).stdout_bytes == DATA
    place.osd("secmgr", "audit", "verify")


def test_without_the_security_manager(place: Place) -> None:
    """What the user reads names it and its URL; the target is well, and nobody is sent to look at it."""
    address = place.secmgr.address
    place.secmgr.kill()
    try:
        said = place.alice("obj", "read", X, code=Exit.UNREACHABLE).output
    finally:
        place.start()
    assert f"security manager https://{address}" in said and "osd secmgr serve" in said
    assert "osd target serve" not in said
    assert place.alice("obj", "read", X).stdout_bytes == DATA


def test_a_formatted_target_gets_its_keys_again(place: Place) -> None:
    source = place.source(place.admin_token)
    with pyosd.connect(place.serving.url, credentials=source) as target:
        target.format_osd()
    source.close()
    place.osd("part", "create", "0x10000")
    for _ in (X, Y):
        place.osd("obj", "write", "0x10000", data=DATA)
    assert place.osd("obj", "read", X).stdout_bytes == DATA
    assert place.alice("obj", "read", X).stdout_bytes == DATA
    place.alice("obj", "read", Y, code=Exit.NOT_PERMITTED)
