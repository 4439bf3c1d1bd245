# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd secmgr`, `acl`, `key` and `cred` as people type them; the process that has the keys."""

from __future__ import annotations

import errno
import json
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from iosd_secmgr import folder as folders
from iosd_secmgr.folder import ADMIN_TOKEN
from iosd_secmgr.http.web import cannot_listen
from iosd_secmgr.records.audit import HEAD_FILE
from pyosd.cli import main
from pyosd.cli.frame.codes import Exit
from pyosd.secmgr.client import SecmgrUnreachable
from pyosd.secmgr.errors import SecmgrError
from pyosd.secmgr.files import write_private
from pyosd.security.credentials import StaticSource
from pyosd.wire.capability import SecurityMethod
from tests.harness import SOURCE
from tests.secmgr.conftest import PARTITION, TARGET, Served
from tests.secmgr.process import PROGRAM, STOP_S, Process
from tools.manpages import EXAMPLES

NOBODY = 65534
Run = Callable[..., Result]
URL = f"iscsi://127.0.0.1:1/{TARGET}/1"


@pytest.fixture
def osd(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command line; the exit code is checked, 0 unless `code` says another."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("IOSD_TARGET", URL)

    def run(*words: object, code: int = 0, **environment: object) -> Result:
        said = {name: str(value) for name, value in environment.items()}
        result = CliRunner(env=said).invoke(main, [str(word) for word in words])
        assert result.exit_code == code, f"{words}: {result.exit_code}\n{result.output}"
        return result

    return run


@pytest.fixture
def admin(osd: Run, served: Served, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The same, as an administrator."""
    monkeypatch.setenv("IOSD_SECMGR", served.url)
    monkeypatch.setenv("IOSD_SECMGR_CA", str(served.ca))
    monkeypatch.setenv("IOSD_SECMGR_TOKEN_FILE", str(served.world.token_file))
    return osd


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ((), None),
        ((0, 0x10000), "demands no capabilities (security method NOSEC): it obeys everybody there"),
        ((0x10000, 0x10001), "demands no capabilities for 0x10000, 0x10001 (security"),
    ],
)
def test_import_warns_of_a_target_that_obeys_everybody(
    admin: Run, served: Served, tmp_path: Path, where: tuple[int, ...], said: str | None
) -> None:
    served.world.model.methods = dict.fromkeys(where, SecurityMethod.NOSEC)
    master = tmp_path / "master.key"
    write_private(master, served.world.model.master_file().encode())
    text = admin("key", "import", master, "-q").stderr
    assert text == "" if said is None else f"osd: warning: {TARGET} {said}" in text


def test_from_the_first_target_to_a_credential(admin: Run, served: Served, tmp_path: Path) -> None:
    master = tmp_path / "master.key"
    write_private(master, served.world.model.master_file().encode())
    refused = admin("key", "import", master, code=2, IOSD_CHAP_USER="key%manager")
    assert "no CHAP name with '%'" in refused.stderr
    admin("key", "import", master)
    rows = json.loads(admin("key", "ls", "-o", "json").stdout)["keys"]
    assert [row["id"] for row in rows][:2] == ["master/0x0/0", "root/0x0/0"]
    token = tmp_path / "alice.token"
    admin("acl", "user", "add", "alice")
    admin("acl", "token", "add", "alice", "--save", token)
    assert token.stat().st_mode & 0o777 == 0o600
    rule = admin("acl", "add", "alice", "READ,GET_ATTR", "0x10000/0x10000").stdout.strip()
    [found] = json.loads(admin("acl", "ls", "--who", "alice", "-o", "json").stdout)["rules"]
    assert (found["id"], found["permissions"]) == (int(rule), ["READ", "GET_ATTR"])
    assert admin("acl", "ls", "-o", "id").stdout.strip() == rule

    def alice(*words: object, code: int = 0) -> Result:
        return admin(*words, code=code, IOSD_SECMGR_TOKEN_FILE=token)

    assert "rule " + rule in alice("acl", "check", "READ", "0x10000/0x10000").stdout
    alice("acl", "check", "WRITE", "0x10000/0x10000", code=Exit.NOT_PERMITTED)
    alice("acl", "ls", code=Exit.NOT_PERMITTED)
    one = alice("acl", "check", "READ", "0x10000/*", code=Exit.NOT_PERMITTED)
    assert "READ" in one.stdout  # the rule is for one object
    whole = admin("acl", "add", "alice", "READ", "0x10000/*").stdout.strip()
    assert f"rule {whole}" in alice("acl", "check", "READ", "0x10000/*").stdout
    collections = ("READ", "0x10000/*", "--type", "collection")
    alice("acl", "check", *collections, code=Exit.NOT_PERMITTED)
    for wrong in ("0x10000/1/*", "0/*", "*/*"):
        alice("acl", "check", "READ", wrong, code=Exit.USAGE)
    admin("acl", "rm", whole)
    file = tmp_path / "credentials"
    ids = alice("cred", "get", "READ", "0x10000/0x10000", "--save", file).stdout.split()
    refused = alice(
        *("cred", "get", "WRITE", "0x10000/0x10000", "--save", tmp_path / "no"),
        code=Exit.NOT_PERMITTED,
    )
    assert "'osd acl add'" in refused.output
    assert len(StaticSource.read(file)._credentials) == 1
    [shown] = json.loads(admin("cred", "show", file, "-o", "json").stdout)["capabilities"]
    assert (shown["id"], shown["permissions"]) == (ids[0], ["READ"])
    [listed] = json.loads(alice("cred", "ls", "-o", "json").stdout)["credentials"]
    assert (listed["id"], listed["user"]) == (ids[0], "alice")
    [traced] = json.loads(admin("cred", "ls", "--id", ids[0], "-o", "json").stdout)["credentials"]
    assert traced["user"] == "alice"
    text = file.read_text()
    assert json.loads(text)["credentials"][0]["key"] not in admin("cred", "show", file).output
    admin("acl", "rm", rule)
    alice("acl", "check", "READ", "0x10000/0x10000", code=Exit.NOT_PERMITTED)


def test_keys_by_hand(admin: Run, served: Served) -> None:
    world = served.world
    world.add_target()
    admin("key", "set-master")
    admin("key", "rotate", "--partition", hex(PARTITION))
    admin("key", "rotate", "--level", "root")
    admin("key", "freeze", hex(PARTITION))
    assert admin("acl", "revoke", "0x10000/0x10000").stdout.strip() == "1"
    assert "master" in admin("key", "ls").stdout
    assert TARGET in admin("secmgr", "status").stdout
    world.model.unreachable = True
    admin("key", "rotate", code=Exit.UNREACHABLE)
    world.model.unreachable = False
    admin("key", "forget", "--yes")
    admin("key", "ls", code=Exit.NO_INPUT)


def test_no_security_manager(osd: Run, served: Served, tmp_path: Path) -> None:
    """The message names it, and does not send anybody to look at the target."""
    url = "https://127.0.0.1:1"
    login = {"IOSD_SECMGR": url, "IOSD_SECMGR_CA": served.ca}
    login["IOSD_SECMGR_TOKEN_FILE"] = served.world.token_file
    said = osd("acl", "ls", code=Exit.UNREACHABLE, **login).output
    assert f"security manager {url}" in said and "osd secmgr serve" in said
    assert "--target" not in said and "osd target serve" not in said


def test_a_refused_token_or_certificate_leaves_no_file(admin: Run, tmp_path: Path) -> None:
    """The second try has the name that the first one had."""
    token, pair = tmp_path / "carol.token", tmp_path / "carol"
    for _ in range(2):
        admin("acl", "token", "add", "carol", "--save", token, code=Exit.NO_INPUT)
        admin("acl", "certificate", "add", "carol", "--save", pair, code=Exit.NO_INPUT)
        assert not [*tmp_path.glob("carol*")]
    admin("acl", "user", "add", "carol")
    admin("acl", "token", "add", "carol", "--save", token)
    admin("acl", "certificate", "add", "carol", "--save", pair)
    token.write_text("")
    said = admin("acl", "ls", code=Exit.CONFIG, IOSD_SECMGR_TOKEN_FILE=token).stderr
    assert f"{token} is empty: a token belongs there" in said


def test_people(admin: Run, tmp_path: Path) -> None:
    admin("acl", "user", "add", "bob")
    admin("acl", "user", "add", "bob", code=Exit.WRONG_STATE)
    admin("acl", "group", "add", "staff")
    admin("acl", "group", "join", "staff", "bob")
    admin("acl", "group", "join", "staff", "nobody", code=Exit.NO_INPUT)
    rule = admin("acl", "add", "@staff", "READ,EXEC", "0x10000/*", "--target-name", "*").stdout
    assert "@staff" in admin("acl", "ls").stdout and rule
    tagged = ("READ", "0x10000/*", "--policy-tag", "7", "--method", "alldata", "--note", "for Ann")
    admin("acl", "add", "@staff", *tagged, "--target-name", "*")
    head, *rows = admin("acl", "ls").stdout.splitlines()
    assert {"TAG", "METHOD", "NOTE"} <= set(head.split())
    assert any(" 7 " in row and "ALLDATA" in row and "for Ann" in row for row in rows)
    assert json.loads(admin("acl", "user", "ls", "-o", "json").stdout)["users"][0] == {
        "schema": "iosd.secmgr-user/1",
        "id": "bob",
        "name": "bob",
        "disabled": False,
        "groups": ["staff"],
        "principal": "audit:81b637d8fcd2c6da6359e6963113a1170de795e4",
    }
    admin("acl", "user", "disable", "bob")
    assert "disabled" in admin("acl", "user", "ls").stdout
    admin("acl", "user", "enable", "bob")
    serial = admin("acl", "certificate", "add", "bob", "--save", tmp_path / "bob").stdout.strip()
    assert (tmp_path / "bob.key").stat().st_mode & 0o777 == 0o600
    assert serial in admin("acl", "certificate", "ls", "-o", "id").stdout
    admin("acl", "certificate", "rm", serial)
    id_ = admin(
        "acl", "token", "add", "bob", "--save", tmp_path / "t", "--for", "1h"
    ).stdout.strip()
    assert id_ in admin("acl", "token", "ls", "-o", "id").stdout
    admin("acl", "token", "rm", id_)
    admin("acl", "group", "leave", "staff", "bob")
    admin("acl", "group", "rm", "staff")
    admin("acl", "user", "rm", "bob")
    assert admin("acl", "group", "ls", "-o", "id").stdout.split() == ["admin"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("acl", "add", "root", "REED", "*", "--target-name", "*"), Exit.USAGE),
        (("acl", "add", "root", "READ", "0x10000/", "--target-name", "*"), Exit.USAGE),
        (("acl", "add", "eve", "READ", "*", "--target-name", "*"), Exit.NO_INPUT),
        (("acl", "add", "root", "READ", "*"), Exit.NO_INPUT),
        (("acl", "rm", "7"), Exit.NO_INPUT),
        (("acl", "user", "add", "a b"), Exit.USAGE),
        (("key", "ls"), Exit.NO_INPUT),
        (("cred", "ls", "--id", "zz"), Exit.USAGE),
    ],
)
def test_what_goes_wrong_has_a_code(admin: Run, words: tuple[str, ...], code: int) -> None:
    admin(*words, code=code)


def test_a_role_mistyped(admin: Run) -> None:
    told = admin("acl", "add", "root", "raed", "0x10000", code=Exit.USAGE).stderr
    assert "and the roles read, write, run, run-write, owner" in told


def test_examples_of_the_manual_pages(
    admin: Run, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_private(tmp_path / "master.key", served.world.model.master_file().encode())
    lines = [line for noun in ("key", "acl", "secmgr", "cred") for line, _ in EXAMPLES[noun]]
    admin("acl", "add", "root", "READ", "*", "--target-name", "*")
    ran = 0
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "osd"
        if words[:2] not in (["secmgr", "init"], ["secmgr", "serve"]):
            admin(*words)
            ran += 1
    assert ran == len(lines) - 2


def test_nobody_there(osd: Run, served: Served, tmp_path: Path) -> None:
    osd("acl", "ls", code=Exit.CONFIG)
    token = served.world.token_file
    there = {"IOSD_SECMGR_TOKEN_FILE": token, "IOSD_SECMGR_CA": served.ca}
    osd("acl", "ls", "--secmgr", "https://127.0.0.1:1", code=Exit.UNREACHABLE, **there)
    osd("acl", "ls", "--secmgr", "http://127.0.0.1:1", code=Exit.CONFIG, **there)
    another = tmp_path / "another.token"
    another.write_text("0" * 64)
    another.chmod(0o600)
    unknown = {**there, "IOSD_SECMGR_TOKEN_FILE": another}
    refused = osd("acl", "ls", "--secmgr", served.url, code=Exit.NOT_PERMITTED, **unknown)
    assert "osd acl token add" in refused.output
    token.chmod(0o644)
    osd("acl", "ls", "--secmgr", served.url, code=Exit.CONFIG, **there)


def test_a_clock_that_differs_is_named() -> None:
    """Also an address where the security manager cannot listen."""
    behind = "certificate verify failed: certificate is not yet valid"
    assert "clocks" in SecmgrUnreachable(behind, untrusted=True).hint
    assert "ca.pem" in SecmgrUnreachable("unable to get local issuer", untrusted=True).hint
    assert "--listen" in cannot_listen(OSError(errno.EADDRINUSE, "in use"))
    assert "'ip address'" in cannot_listen(OSError(errno.EADDRNOTAVAIL, "no such"))


def test_a_profile_says_it(osd: Run, served: Served, tmp_path: Path) -> None:
    folder = tmp_path / "config" / "iosd"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(
        f'[profile.default]\nsecmgr = "{served.url}"\nsecmgr-ca = "{served.ca}"\n'
        f'secmgr-token-file = "{served.world.token_file}"\n'
    )
    assert "root" in osd("acl", "user", "ls").stdout


# ---- the process ----


def test_init_and_serve(osd: Run, tmp_path: Path) -> None:
    folder = tmp_path / "made"

    def init(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [*PROGRAM, "secmgr", "init", "--data", folder, *words],
            cwd=SOURCE,
            input="a very long passphrase\n",
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, done.stderr
        return done

    made = init("--passphrase", "--name", "keys.example")
    assert made.stdout.strip() == str(folder / ADMIN_TOKEN)
    assert "IOSD_SECMGR=https://keys.example:8471 " in made.stderr
    assert "--listen ADDRESS:8471    # an address of keys.example\n" in made.stderr
    assert "not empty" in init(code=Exit.CONFIG).stderr
    assert folder.stat().st_mode & 0o777 == 0o700
    for file in folder.iterdir():
        assert file.stat().st_mode & 0o077 == 0, file
    served = Process(folder, passphrase="a very long passphrase")
    login = served.login(folder / ADMIN_TOKEN)
    proc = Path("/proc") / str(served.process.pid)
    try:
        osd("acl", "user", "add", "alice", **login)
        osd("secmgr", "audit", "show", **login)
        head = osd("secmgr", "audit", "verify", **login).stdout.strip()
        limits = (proc / "limits").read_text()
        assert "Max core file size        0                    0" in limits
        assert b"passphrase" not in (proc / "cmdline").read_bytes()
        other = subprocess.run(
            [*PROGRAM, "secmgr", "serve", "--data", folder],
            cwd=SOURCE,
            input="a very long passphrase\n",
            capture_output=True,
            text=True,
        )
        assert other.returncode == Exit.CONFIG and "another security manager" in other.stderr
    finally:
        log = served.stop()
    token = (folder / ADMIN_TOKEN).read_text().strip()
    assert token not in log and "a very long passphrase" not in log
    assert head.split(":")[0] in (folder / "audit.head").read_text()


def test_a_lost_database_is_not_replaced_by_an_empty_one(tmp_path: Path) -> None:
    """Nobody could log in, and the head of the lost log would be overwritten."""
    folder = tmp_path / "secmgr"
    folders.make(folder, admin="root", names=["localhost"])
    opened = folders.open_folder(folder)
    opened.audit.keep_head()
    opened.database.close()
    head = (folder / HEAD_FILE).read_bytes()
    for database in folder.glob("secmgr.db*"):
        database.rename(tmp_path / database.name)
    for _ in range(2):
        with pytest.raises(SecmgrError, match=r"is empty, .*: restore it from its backup"):
            folders.open_folder(folder)
    assert (folder / HEAD_FILE).read_bytes() == head
    for lost in tmp_path.glob("secmgr.db*"):
        lost.rename(folder / lost.name)
    opened = folders.open_folder(folder)
    assert not [*opened.audit.verify(None)]
    opened.database.close()


def test_an_init_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with a wrong URL of PostgreSQL: the next try said that the folder is not empty."""
    folder = tmp_path / "secmgr"
    words: dict[str, Any] = {"admin": "root", "names": ["localhost"]}
    with pytest.raises(SecmgrError, match="PostgreSQL"):
        folders.make(folder, **words, database="postgresql://127.0.0.1:1/none")
    with monkeypatch.context() as patch:
        patch.setattr(folders, "ADMIN_TOKEN", "absent/token")
        with pytest.raises(SecmgrError, match="cannot make"):
            folders.make(folder, **words)
    assert not [*folder.iterdir()]
    assert folders.make(folder, **words).read_text().startswith("iosd-")


def test_a_database_that_cannot_be_used_now_is_tried_again(tmp_path: Path) -> None:
    """As PostgreSQL that starts later than we do.  systemd starts nothing again that ended with 78."""
    folder = tmp_path / "secmgr"
    folders.make(folder, admin="root", names=["localhost"])
    (folder / "secmgr.db-wal").mkdir()  # SQLite cannot open its own file
    served = Process(folder)
    _, log = served.process.communicate(timeout=STOP_S)
    assert served.process.returncode == Exit.UNREACHABLE, log
    assert f"cannot open {folder / 'secmgr.db'}: unable to open database file" in log
    unit = (SOURCE / "packaging" / "systemd" / "iosd-secmgr.service").read_text()
    assert "Restart=always" in unit and "RestartPreventExitStatus=78\n" in unit


def test_it_ends_in_order_with_its_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "secmgr"
    folders.make(folder, admin="root", names=["localhost"])
    served = Process(folder)
    served.process.send_signal(signal.SIGHUP)
    _, log = served.process.communicate(timeout=STOP_S)
    assert served.process.returncode == 0, log


def test_the_log_is_checked_without_a_server(tmp_path: Path) -> None:
    from iosd_secmgr import folder as setup

    folder = tmp_path / "made"
    setup.make(folder, admin="root", names=["localhost"])

    def verify(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*PROGRAM, "secmgr", "audit", "verify", *words, "--data", folder],
            cwd=SOURCE,
            capture_output=True,
            text=True,
        )

    whole = verify()
    assert whole.returncode == 0 and whole.stdout.startswith("1:")
    assert verify("--head", whole.stdout.strip()).returncode == 0
    opened = setup.open_folder(folder)
    with opened.database.transaction() as tx:
        tx.run("DELETE FROM audit")
    opened.database.close()
    cut = verify()
    assert cut.returncode == Exit.STORE_DAMAGED
    assert "the log was cut: it ends at 0, and its head says 1" in cut.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be somebody else")
def test_root_checks_a_log_as_its_owner() -> None:
    """The owner could have put a link in place of the database."""
    with tempfile.TemporaryDirectory(prefix="iosd-test-") as name:  # pytest's are closed to others
        above = Path(name)
        above.chmod(0o755)
        folder = above / "secmgr"
        folders.make(folder, admin="root", names=["localhost"])
        for path in (folder, *folder.iterdir()):
            os.chown(path, NOBODY, NOBODY)
        verify = [*PROGRAM, "secmgr", "audit", "verify", "--data", str(folder)]
        done = subprocess.run(verify, capture_output=True, text=True, cwd=SOURCE)
        assert done.returncode == 0 and done.stdout.startswith("1:"), done.stderr
        for path in folder.glob("secmgr.db*"):
            path.unlink()
        (folder / "secmgr.db").symlink_to(above / "new")
        done = subprocess.run(verify, capture_output=True, text=True, cwd=SOURCE)
        assert done.returncode != 0 and not (above / "new").exists()


def test_no_file_without_a_token(admin: Run, tmp_path: Path) -> None:
    """A refused `token add` or `certificate add` leaves nothing, so it can be tried again."""
    for noun in ("token", "certificate"):
        file = tmp_path / noun
        admin("acl", noun, "add", "tina", "--save", file, code=66)
        assert [*tmp_path.glob(f"{noun}*")] == []
    admin("acl", "user", "add", "tina")
    for noun in ("token", "certificate"):
        admin("acl", noun, "add", "tina", "--save", tmp_path / noun)


def test_unusable_files_are_named(admin: Run, tmp_path: Path) -> None:
    empty, absent = tmp_path / "empty.token", tmp_path / "absent.pem"
    write_private(empty, b"")
    refused = admin("obj", "ls", "0x10000", code=78, IOSD_SECMGR_TOKEN_FILE=empty)
    assert f"{empty} is empty: a token belongs there" in refused.output
    for file in (absent, empty):
        refused = admin("obj", "ls", "0x10000", code=78, IOSD_SECMGR_CA=file)
        assert f"cannot use {file} as an authority's certificate: " in refused.output
