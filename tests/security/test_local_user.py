# SPDX-License-Identifier: GPL-2.0-or-later
"""The users of a target's own host: the one who serves it is its administrator without a flag, others are
nobody unless they are given a credential.  Each by the program `osd`, as its own uid.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import pyosd
from iosd_host.common.held_port import HeldPort
from iosd_host.serve import local_credential as publishing
from pyosd.cli.frame.codes import Exit
from pyosd.commands.provision import Provisioner
from pyosd.iscsi.session import TargetAddress
from pyosd.security import local_credential
from pyosd.security.local_credential import LocalSource
from pyosd.security.master_key import MasterKey
from pyosd.types import ROOT, ObjectType, PartitionId, ref
from pyosd.wire.capability import Permission, SecurityMethod
from tests import warm
from tests.harness import SOURCE
from tests.processes import long_lived
from tests.serving import Serving, arguments, missing, shared
from tests.surroundings import FOLDERS
from tests.waiting import until

STRANGER, OTHER = 65534, 65533
COMMAND_S = 60
OSD = "from pyosd.cli import main; main(prog_name='osd')"
PLAIN = ("--no-sandboxes",)
FORMAT = """
import sys, pyosd
with pyosd.connect(sys.argv[1]) as target:
    target.format_osd()
"""

pytestmark = [
    pytest.mark.tgtd,
    pytest.mark.skipif(missing() is not None, reason="no target can be served here"),
    pytest.mark.skipif(os.geteuid() != 0, reason="takes the part of several users"),
]


def run(
    url: str, uid: int, *words: object, text: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """`osd` as some user of this host who has set nothing but the target's URL."""
    kept = {name: os.environ[name] for name in ("PATH", "IOSD_RUN", *FOLDERS)}
    environment = kept | {"IOSD_TARGET": url, "HOME": "/nonexistent"} | variables
    return warm.osd(*words, environment=environment, text=text, uid=uid)


def works(url: str, *words: object, uid: int = 0, **more: str) -> str:
    """Its output for a user with permission."""
    done = run(url, uid, *words, **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(url: str, *words: object, uid: int = STRANGER, **more: str) -> None:
    """It ends with 77 and says what to do."""
    done = run(url, uid, *words, **more)
    assert done.returncode == Exit.NOT_PERMITTED, (words, done.returncode, done.stderr)
    assert "--credentials" in done.stderr and "the user who serves" in done.stderr


def credentials_folder() -> Path:
    return Path(os.environ["IOSD_RUN"], "credentials")


def files() -> list[Path]:
    return sorted(credentials_folder().glob("*.json"))


def file_of(url: str) -> Path:
    """The credential of a target."""
    address = TargetAddress.parse(url)
    return credentials_folder() / publishing.file_name((address.host, address.port), address.target)


@pytest.fixture(scope="module")
def served() -> Iterator[Serving]:
    with shared(*arguments(), standard=True) as found:
        yield found


@pytest.fixture
def script() -> Iterator[str]:
    """The file of a script that makes a partition, which needs all of the root's rights."""
    folder = Path(tempfile.mkdtemp(prefix="iosd-test-"))
    folder.chmod(0o755)
    path = folder / "make.py"
    path.write_text("import osd\nprint(hex(osd.partition().create().partition_id))\n")
    path.chmod(0o644)
    yield str(path)
    shutil.rmtree(folder)


# ---- who may do what ------------------------------------------------------------------------------


def everything(pid: str) -> list[tuple[str, ...]]:
    """Actions of the administrator of a store."""
    return [
        ("part", "ls"),
        ("part", "create"),
        ("obj", "write", pid),
        ("obj", "read", f"{pid}/0x10000"),
        ("obj", "attr", "set", "root", "0x90000001/9", "a name"),
        ("target", "info"),
        ("part", "check", "root"),
    ]


def test_a_stranger_is_nobody_and_the_owner_everything(served: Serving) -> None:
    url = served.url
    pid = works(url, "part", "create").strip()
    works(url, "obj", "write", pid, text="a secret")
    for words in everything(pid):
        refused(url, *words)
    before = works(url, "part", "ls", "-o", "json")
    done = warm.run(
        [sys.executable, "-P", "-c", FORMAT, url],
        env={"PYTHONPATH": str(SOURCE), "IOSD_RUN": os.environ["IOSD_RUN"]},
        capture_output=True,
        text=True,
        timeout=COMMAND_S,
        user=STRANGER,
        group=STRANGER,
        extra_groups=[],
        check=False,
    )
    assert "PermissionDenied" in done.stderr
    assert works(url, "part", "ls", "-o", "json") == before
    for words in everything(pid):
        works(url, *words)


@pytest.mark.sandbox
@pytest.mark.sandbox
def test_scripts(served: Serving, script: str) -> None:
    """A job acts with the rights of the user who submitted it; a partition that it makes has keys."""
    words = ("exec", script, "--zone", "root", "--wait")
    refused(served.url, *words)
    made = works(served.url, *words).strip()
    works(served.url, "obj", "write", made, text="hello")
    refused(served.url, "obj", "ls", made)
    assert made in works(served.url, "obj", "ls", made)
    jobs = works(served.url, "ps", "-o", "json")
    assert "COMPLETED" in jobs
    refused(served.url, "ps")


def test_nosec_by_name_is_as_it_was() -> None:
    """Without keys, without a credential, and any local user is an administrator."""
    with Serving(*PLAIN, "--security", "nosec") as served:
        assert not file_of(served.url).exists()
        pid = works(served.url, "part", "create", uid=STRANGER).strip()
        for words in everything(pid):
            if words[:2] != ("obj", "read"):
                works(served.url, *words, uid=STRANGER)
        assert "any local user" not in served.text()


def test_a_copy_of_the_credential_makes_an_administrator(served: Serving, script: str) -> None:
    copy = Path(script).with_name("credential")
    shutil.copy(file_of(served.url), copy)
    copy.chmod(0o600)
    os.chown(copy, STRANGER, STRANGER)
    works(served.url, "part", "ls", "--credentials", copy, uid=STRANGER)
    works(served.url, "part", "ls", uid=STRANGER, IOSD_CREDENTIALS=str(copy))
    refused(served.url, "part", "ls", uid=OTHER)
    copy.chmod(0o644)
    done = run(served.url, STRANGER, "part", "ls", "--credentials", copy)
    assert done.returncode == Exit.CONFIG and "chmod 600" in done.stderr


def test_what_does_not_exist_is_named_to_the_administrator(served: Serving) -> None:
    """Its keys do not exist either, and a refusal for an unknown key would say the wrong thing."""
    with served.connect() as target:
        with pytest.raises(pyosd.NotFound, match="0x7777777 does not exist"):
            target.list_objects(PartitionId(0x7777777))
        with pytest.raises(pyosd.NotFound):
            target.read(ref(0x7777777, 0x10000), 0, 1)
    refused(served.url, "obj", "ls", "0x7777777")


def test_credentials_do_not_expire_and_name_the_object(served: Serving) -> None:
    """A job lives as long as its capability; one for all objects would not permit jobs of others."""
    source = local_credential.find(served.url)
    assert source is not None
    first, second = (
        source.credential(ref(0x10000, each), ObjectType.USER_OBJECT, Permission.READ)
        for each in (0x10000, 0x10001)
    )
    assert [each.capability.obj.object_id for each in (first, second)] == [0x10000, 0x10001]
    assert first.capability.permissions & Permission.WRITE
    assert first.capability.expires_ms == 0
    assert not first.capability.permissions & Permission.FUN_EXE
    run_it = source.credential(ref(0x10000, 0x10000), ObjectType.USER_OBJECT, Permission.FUN_EXE)
    assert run_it.capability.permissions == Permission.FUN_EXE
    assert run_it.capability.obj.object_id == 0x10000
    assert source.credential(ROOT, ObjectType.ROOT, Permission.READ).lasts(1e9)


# ---- the file -------------------------------------------------------------------------------------


def test_only_the_owner_can_read_it(served: Serving) -> None:
    file = file_of(served.url)
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.stat().st_uid == os.geteuid()
    told = json.loads(file.read_text())
    secret = told["generation"]
    assert told["method"] == "capkey"
    source = local_credential.find(served.url)
    assert secret not in repr(source) and secret not in served.text()
    # The module's own copy, which only told the supervisor, is gone.
    assert not list(Path(served.description["control"]).parent.glob("local-key*"))


@pytest.fixture
def port() -> Iterator[int]:
    """That of several targets, one after the other."""
    with contextlib.closing(HeldPort("127.0.0.1", 0)) as held:
        yield held.port


def test_it_goes_with_the_target_and_comes_back_the_same(port: int) -> None:
    data = Path(tempfile.mkdtemp(prefix="iosd-test-"))
    try:
        data.chmod(0o711)
        words = (*PLAIN, "--portal", f"127.0.0.1:{port}")
        with Serving(*words, data=data / "store", standard=True) as served:
            file = file_of(served.url)
            before = json.loads(file.read_text())
            pid = works(served.url, "part", "create").strip()
            served.kill("tgtd")
            served.restarted()
            works(served.url, "part", "stat", pid)  # and after a part of it was started again
        assert not file.exists()
        with Serving(*words, data=data / "store", standard=True) as served:
            assert json.loads(file.read_text()) == before
            works(served.url, "part", "stat", pid)
    finally:
        shutil.rmtree(data)


def test_one_that_a_killed_target_has_left_counts_for_nothing(port: int) -> None:
    words = (*PLAIN, "--portal", f"127.0.0.1:{port}")
    served = Serving(*words, standard=True)
    url, file = served.url, file_of(served.url)
    served.everything()
    os.kill(served.process.pid, signal.SIGKILL)
    served.stop(check=False)
    assert file.exists()
    assert local_credential.find(url) is None
    # Another store at the same place: without a credential, then with one of its own.
    with Serving(*words, "--security", "nosec") as served:
        works(url, "part", "create")
        assert not file.exists()
    with Serving(*words, standard=True):
        works(url, "part", "create")
        refused(url, "part", "ls")


def test_a_session_that_outlives_the_store_takes_the_new_credential(port: int) -> None:
    words = (*PLAIN, "--portal", f"127.0.0.1:{port}")
    with contextlib.ExitStack() as stack:
        with Serving(*words, standard=True) as served:
            target = stack.enter_context(served.connect())
            target.create_partition()
        with Serving(*words, standard=True):
            assert target.list_partitions() == []


def test_two_targets_at_once(served: Serving) -> None:
    with Serving(*PLAIN, standard=True) as second:
        assert {file_of(served.url), file_of(second.url)} <= set(files())
        one, other = local_credential.find(served.url), local_credential.find(second.url)
        assert one is not None and other is not None
        assert one.working_key(0) != other.working_key(0)
        for url in (served.url, second.url):
            works(url, "part", "create")
        done = run(second.url, 0, "part", "ls", "--credentials", file_of(served.url))
        assert done.returncode == Exit.NOT_PERMITTED
    works(served.url, "part", "ls")


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_other_names_of_the_same_portal(served: Serving, host: str) -> None:
    assert local_credential.find(served.url.replace("127.0.0.1", host)) is not None
    assert local_credential.find(served.url.replace("127.0.0.1", "10.9.8.7")) is None
    assert local_credential.find(served.url.replace(":target/", ":other/")) is None


# ---- places that a stranger has prepared ----------------------------------------------------------

PUBLISH = """
import os, sys
from iosd_host.serve.local_credential import CredentialError, publish
try:
    publish(sys.argv[1], ("127.0.0.1", 3260), "iqn.x:y", held=False)
except CredentialError as error:
    print(error)
"""
KEY = f"iosd local key 1\ngeneration {'ab' * 32}\nsystem-id {'cd' * 20}\nmethod 1\n"
FIND = """
from pyosd.security.local_credential import find
print(find("iscsi://127.0.0.1/iqn.x:y/1"))
"""


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder like /tmp."""
    folder = Path(tempfile.mkdtemp(prefix="iosd-test-"))
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


def as_user(uid: int, public: Path, code: str, *words: str) -> str:
    """What a program prints, for which `public` is the folder of temporary files."""
    done = warm.run(
        [sys.executable, "-P", "-c", code, *words],
        env={"PYTHONPATH": str(SOURCE), "TMPDIR": str(public)},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=COMMAND_S,
        user=uid,
        group=uid,
        extra_groups=[],
        check=True,
    )
    return done.stdout


def test_without_a_runtime_folder(public: Path) -> None:
    assert as_user(STRANGER, public, PUBLISH, KEY) == ""
    folder = public / f"iosd-{STRANGER}" / "credentials"
    (file,) = folder.iterdir()
    assert (folder.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)
    assert "LocalSource" in as_user(STRANGER, public, FIND)
    assert as_user(OTHER, public, FIND) == "None\n"
    assert "LocalSource" in as_user(0, public, FIND)  # root is every user's administrator


def test_a_planted_link(public: Path) -> None:
    victim = public / "victim"
    victim.mkdir()
    os.chown(victim, STRANGER, STRANGER)
    link = public / f"iosd-{STRANGER}"
    link.symlink_to(victim)
    assert "symbolic link" in as_user(STRANGER, public, PUBLISH, KEY)
    assert list(victim.iterdir()) == []
    link.unlink()
    link.mkdir()
    os.chown(link, STRANGER, STRANGER)
    (link / "credentials").symlink_to(victim)
    assert "symbolic link" in as_user(STRANGER, public, PUBLISH, KEY)
    assert list(victim.iterdir()) == []


def test_a_planted_folder(public: Path) -> None:
    """Neither written to by the one whose name it bears, nor believed."""
    folder = public / f"iosd-{STRANGER}" / "credentials"
    folder.mkdir(parents=True)
    for each in (folder, folder.parent):
        os.chown(each, OTHER, OTHER)
        each.chmod(0o777)
    assert f"belongs to uid {OTHER}" in as_user(STRANGER, public, PUBLISH, KEY)
    assert list(folder.iterdir()) == []
    folder.chmod(0o700)
    planted = json.dumps(
        {
            "schema": "iosd.local-credential/1",
            "target": "iqn.x:y",
            "portal": "127.0.0.1:3260",
            "held": False,
            "generation": "ab" * 32,
            "system_id": "cd" * 20,
            "method": "capkey",
        }
    )
    file = folder / publishing.file_name(("127.0.0.1", 3260), "iqn.x:y")
    file.write_text(planted)
    file.chmod(0o600)
    os.chown(file, OTHER, OTHER)
    assert as_user(STRANGER, public, FIND) == "None\n"
    assert as_user(0, public, FIND) == "None\n"


def test_a_link_in_place_of_the_file(public: Path) -> None:
    """It is replaced, and what it points to stays as it is; one that is found is not followed."""
    assert as_user(STRANGER, public, PUBLISH, KEY) == ""
    (file,) = (public / f"iosd-{STRANGER}" / "credentials").iterdir()
    kept = file.with_name("kept")
    file.rename(kept)
    file.symlink_to(kept)
    assert as_user(STRANGER, public, FIND) == "None\n"
    other = public / "other"
    other.write_text("mine")
    file.unlink()
    file.symlink_to(other)
    assert as_user(STRANGER, public, PUBLISH, KEY) == ""
    assert other.read_text() == "mine"
    assert not file.is_symlink() and "LocalSource" in as_user(STRANGER, public, FIND)


def test_a_target_whose_credential_has_no_place_is_not_served(
    public: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IOSD_RUN", str(public))
    (public / "credentials").mkdir()
    os.chown(public / "credentials", STRANGER, STRANGER)
    with pytest.raises(AssertionError, match=f"belongs to uid {STRANGER}"):
        Serving(*PLAIN, standard=True)


def test_an_ordinary_user_serves(public: Path) -> None:
    """And is the only one who may use the target, but for root."""
    command = [sys.executable, "-P", "-c", OSD, "target", "serve", "--no-sandboxes", "--no-manager"]
    command += ["--portal", "127.0.0.1:0", "--data", str(public / "store"), "-o", "json"]
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(SOURCE),
        "TMPDIR": str(public),
        "HOME": "/nonexistent",
    }
    process = subprocess.Popen(
        command,
        env=environment,
        cwd="/",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        user=STRANGER,
        group=STRANGER,
        extra_groups=[],
    )
    long_lived.add(process.pid)
    try:
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        assert line, process.stderr.read()
        url = json.loads(line)["url"]
        here = {"TMPDIR": str(public), "IOSD_RUN": ""}
        works(url, "part", "create", uid=STRANGER, **here)
        refused(url, "part", "ls", uid=OTHER, **here)
        works(url, "part", "ls", uid=0, **here)
    finally:
        process.terminate()
        process.communicate(timeout=COMMAND_S)
        long_lived.discard(process.pid)
    assert process.returncode == 0


# ---- stores of other kinds ------------------------------------------------------------------------


def test_a_store_that_was_made_without_security() -> None:
    """It is served as before, with a warning, until its owner raises the methods."""
    data = Path(tempfile.mkdtemp(prefix="iosd-test-"))
    data.chmod(0o711)
    try:
        with Serving(*PLAIN, "--security", "nosec", data=data / "store") as served:
            pid = works(served.url, "part", "create", uid=STRANGER).strip()
            submit = ("exec", "-", "--zone", pid, "--hold", "--no-wait")
            job = works(served.url, *submit, text="pass").strip()
        with Serving(*PLAIN, data=data / "store", standard=True) as served:
            assert local_credential.find(served.url) is None
            assert job in works(served.url, "ps")
            warning = "any local user is an administrator of this store"
            until(lambda: warning in served.text(), warning)  # by way of the supervisor
            assert served.text().count(warning) == 1
            works(served.url, "part", "ls", uid=STRANGER)
            assert "nosec" in works(served.url, "target", "info")
            for obj, attribute in (
                (pid, "0x30000005/1"),
                ("root", "0x90000005/6"),
                ("root", "0x90000005/1"),
            ):
                works(served.url, "obj", "attr", "set", obj, attribute, "01", "--hex")
            refused(served.url, "part", "ls")
            refused(served.url, "obj", "ls", pid)
        with Serving(*PLAIN, data=data / "store", standard=True) as served:
            refused(served.url, "part", "ls")
            new = works(served.url, "part", "create").strip()
            works(served.url, "obj", "write", new)
            refused(served.url, "obj", "ls", new)
        with Serving(*PLAIN, data=data / "store", standard=True) as served:
            assert "any local user" not in served.text()
            works(served.url, "obj", "ls", pid)
            assert "HELD" in works(served.url, "job", "status", job)
    finally:
        shutil.rmtree(data)


@pytest.mark.parametrize("method", ["cmdrsp", "alldata"])
def test_stronger_methods(method: str) -> None:
    with Serving(*PLAIN, "--security", method) as served:
        source = local_credential.find(served.url)
        assert source is not None
        granted = source.credential(ROOT, ObjectType.ROOT, Permission.READ)
        assert granted.capability.method is SecurityMethod[method.upper()]
        pid = works(served.url, "part", "create").strip()
        works(served.url, "obj", "write", pid, text="hello")
        refused(served.url, "obj", "ls", pid)


def test_a_security_manager_that_takes_over_ends_it() -> None:
    data = Path(tempfile.mkdtemp(prefix="iosd-test-"))
    data.chmod(0o711)
    try:
        with Serving(*PLAIN, data=data / "store", standard=True) as served:
            pid = int(works(served.url, "part", "create").strip(), 0)
            with served.connect(local=False) as plain:
                keys = Provisioner(plain, MasterKey.read(served.master_key))
                keys.add(pid)
            refused(served.url, "obj", "ls", hex(pid), uid=0)
            with served.connect(credentials=keys.source()) as target:
                assert target.list_objects(PartitionId(pid)) == []
                new = target.create_partition()
                with pytest.raises(pyosd.PermissionDenied):
                    target.list_objects(new)  # its keys are the security manager's to set
        with Serving(*PLAIN, data=data / "store", standard=True) as served:
            assert not file_of(served.url).exists()
            until(lambda: "a security manager has the keys" in served.text())
            refused(served.url, "part", "ls", uid=0)
    finally:
        shutil.rmtree(data)


def test_sources_of_files(served: Serving, tmp_path: Path) -> None:
    source = local_credential.read_source(file_of(served.url))
    assert isinstance(source, LocalSource)
    bad = tmp_path / "bad"
    bad.write_text('{"schema": "iosd.local-credential/1", "generation": "5ec2e7"}')
    bad.chmod(0o600)
    with pytest.raises(ValueError, match="is no file of") as caught:
        local_credential.read_source(bad)
    assert "5ec2e7" not in str(caught.value)
