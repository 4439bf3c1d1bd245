# SPDX-License-Identifier: GPL-2.0-or-later
"""Users with roles in a partition: what they can do, whose jobs they see, what refusals say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result

import pyosd
from pyosd import requests
from pyosd.secmgr.roles import ROLES
from pyosd.types import AttributeValue, ObjectRef, ObjectType, PartitionId, ref
from pyosd.wire.attributes import Page
from pyosd.wire.capability import Permission
from pyosd.wire.cdb import AttributeLists
from tests.secmgr.test_targets import DATA, Place, X, place_with_jobs
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]
PID = "0x10000"
ABSENT = f"{PID}/0x4000000100000fff"
As = Callable[..., Result]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with place_with_jobs(tmp_path_factory.mktemp("roles")) as made:
        yield made


@pytest.fixture(scope="module")
def users(place: Place) -> dict[str, As]:
    """One user for each role, and another one with `run-write`; they have no other rule."""
    found: dict[str, As] = {}
    for name, role in [*((each, each) for each in ROLES), ("other", "run-write")]:
        token = place.folder / f"{name}.token"
        place.osd("acl", "user", "add", name)
        place.osd("acl", "token", "add", name, "--save", token)
        ids = place.osd("acl", "add", name, role, PID).stdout.split()
        assert len(ids) == len(ROLES[role].grants)

        def run(
            *words: object, token: Path = token, code: int = 0, data: bytes | None = None
        ) -> Result:
            return place.osd(*words, code=code, token=token, data=data)

        found[name] = run
    return found


def script(folder: Path, text: str) -> Path:
    path = folder / "script.py"
    path.write_text(text)
    return path


def test_read(users: dict[str, As]) -> None:
    read = users["read"]
    assert X in read("obj", "ls", PID, "-o", "id").stdout
    assert "LENGTH" in read("obj", "ls", PID).stdout
    assert read("obj", "read", X).stdout == DATA.decode()
    refused = read("obj", "write", X, code=77, data=b"no")
    assert "read lacks WRITE on user object 0x10000/0x10000" in refused.output
    assert "lacks CREATE on user object" in read("obj", "create", PID, code=77).output
    assert "lacks READ" not in refused.output


def test_a_rule_from_before_roles(users: dict[str, As], place: Place) -> None:
    """READ of the partition and GET_ATTR of each object: `ls` takes longer, and works."""
    place.osd("acl", "add", "alice", "READ", PID)
    place.osd("acl", "add", "alice", "READ,GET_ATTR", "0x10000/*")
    assert "LENGTH" in place.alice("obj", "ls", PID).stdout


def test_write(users: dict[str, As]) -> None:
    write = users["write"]
    made = write("obj", "write", PID, data=b"mine").stdout.strip()
    write("obj", "attr", "set", made, "0x10000/1", "--int", 3)
    write("obj", "append", made, data=b" too")
    assert write("obj", "read", made).stdout == "mine too"
    write("obj", "rm", made)
    refused = write("exec", "-", "--zone", PID, code=77, data=b"print(1)")
    assert "FUN_EXE on partition 0x10000\n" in refused.output and "--rights" not in refused.output


def test_write_names(users: dict[str, As], tmp_path: Path) -> None:
    """Files and directories by their paths, as a person expects; the partition itself stays."""
    write = users["write"]
    local, top = tmp_path / "file", f"osd:/{PID}"
    local.write_bytes(b"named")
    write("mkdir", f"/{PID}/logs")
    write("cp", local, f"{top}/logs/a")
    write("cp", f"{top}/logs/a", f"{top}/b")
    write("mv", f"/{PID}/b", f"/{PID}/logs/c")
    assert f"/{PID}/logs/a" in users["read"]("find", f"/{PID}/logs").stdout
    assert write("cat", f"/{PID}/logs/c").stdout == "named"
    refused = users["read"]("mkdir", f"/{PID}/more", code=77)
    assert "on partition 0x10000" in refused.output
    assert "lacks REMOVE on partition" in write("part", "rm", PID, "--yes", code=77).output
    write("rm", "-r", f"/{PID}/logs")
    assert "logs" not in users["read"]("find", f"/{PID}").stdout


def test_run(users: dict[str, As], tmp_path: Path) -> None:
    """Scripts that read; one that may change more is refused, and the refusal names no more than that."""
    run = users["run"]
    path = script(tmp_path, "import osd\nprint(osd.userobject(0x10000, 0x10000).data.read())")
    done = run("exec", path, "--zone", PID, "--rights", "read", "--wait")
    assert "quick brown fox" in done.output
    refused = run("exec", path, "--zone", PID, "--wait", code=77)
    assert "lacks WRITE,SET_ATTR".replace(",", ", ") in refused.output
    assert "FUN_EXE" not in refused.output
    assert "--rights read" in refused.output


def test_functions(place: Place, users: dict[str, As], tmp_path: Path) -> None:
    """A user who may only run scripts that read calls functions without a rule about them."""
    path = tmp_path / "size.py"
    path.write_text("import osd\ndef main(args):\n    return len(list(osd.zone.userobjects()))\n")
    place.osd("acl", "add", "root", "owner", "0x1")
    place.osd("acl", "add", "root", "EXEC", "0x1/*")
    place.osd("fn", "put", path, "--access", "read")
    run = users["run"]
    assert "--rights read" in run("fn", "call", "size", "--zone", PID, code=77).output
    assert int(run("fn", "call", "size", "--zone", PID, "--rights", "read").stdout) > 0
    assert "without --zone" in run("fn", "call", "size", code=77).output


def test_run_again(place: Place, users: dict[str, As], tmp_path: Path) -> None:
    """A user who may only run scripts that read runs a job again, which keeps its tags."""
    run = users["run"]
    path = script(tmp_path, "1/0")
    words = ("exec", path, "--zone", PID, "--rights", "read", "--tag", "project=q4", "--no-wait")
    old = run(*words, "--tag", "team=blue").stdout.strip()
    run("job", "wait", old, code=10)
    assert "--rights read" in run("job", "retry", old, code=77).output
    new = run("job", "retry", old, "--rights", "read", "--tag", "team=red").stdout.strip()
    run("job", "wait", new, code=10)
    found = json.loads(run("job", "status", new, "-o", "json").stdout)
    assert (found["predecessor"], found["tags"]) == (old, {"project": "q4", "team": "red"})
    assert run("ps", "--tag", "project=q4", "-o", "id").stdout.split() == [old, new]
    people = json.loads(place.osd("acl", "user", "ls", "-o", "json").stdout)["users"]
    (principal,) = (each["principal"] for each in people if each["name"] == "run")
    assert found["principal"] == principal


def test_own_jobs_alone(users: dict[str, As], tmp_path: Path) -> None:
    """`ps` without a right on the root; each sees what is theirs, ends it, and reads its output."""
    mine, theirs = users["run-write"], users["other"]
    sleeper = script(tmp_path, "import time\nprint('here', flush=True)\ntime.sleep(600)")
    job = mine("exec", sleeper, "--zone", PID, "--no-wait").stdout.strip()
    other = theirs("exec", sleeper, "--zone", PID, "--no-wait").stdout.strip()
    assert mine("ps", "-o", "id").stdout.split() == [job]
    assert theirs("ps", "-o", "id").stdout.split() == [other]
    assert users["run"]("ps", "-o", "id", "--state", "running").stdout == ""
    for verb in ("kill", "status", "result", "wait", "why"):
        for address in (job, ABSENT):  # the same answer: nobody learns of other users' jobs
            refused = theirs("job", verb, address, code=16)
            assert f"{address} is no job of this user, or its record is gone" in refused.output
    until(lambda: "here" in mine("job", "logs", job).output, pause=0.05)
    mine("job", "kill", job)
    assert "here" in mine("job", "logs", "--follow", job).output
    mine("job", "rm", job)
    assert mine("ps", "-o", "id").stdout == ""
    assert theirs("ps", "-o", "id").stdout.split() == [other]
    theirs("job", "kill", other)


def test_run_is_for_scripts_alone(users: dict[str, As]) -> None:
    """Permissions of scripts in their zone do not permit commands on the partition."""
    runner = users["run-write"]
    runner("obj", "ls", PID, code=77)
    runner("part", "rm", PID, "--yes", code=77)
    runner("obj", "write", PID, code=77, data=b"x")


def test_owner(users: dict[str, As], place: Place) -> None:
    place.osd("part", "create", "0x20000")
    place.osd("acl", "add", "owner", "owner", "0x20000")
    owner = users["owner"]
    made = owner("obj", "write", "0x20000", data=b"x").stdout.strip()
    assert (
        owner(
            "exec", "-", "--zone", "0x20000", "--wait", "--quiet", data=b"print(5)"
        ).stdout.strip()
        == "5"
    )
    assert made in owner("obj", "ls", "0x20000").stdout
    owner("ps")
    owner("part", "rm", "0x20000", "--contents", "--yes")


def test_the_owner_decides_what_all_changes_pass(
    users: dict[str, As], place: Place, tmp_path: Path
) -> None:
    """Permissions of scripts neither set nor remove hooks and stages of the partition."""
    pid, view = "0x30000", "0x40000"
    owner, runner = users["owner"], users["run-write"]
    for each in (pid, view):
        place.osd("acl", "add", "owner", "owner", each)
    place.osd("acl", "add", "run-write", "run-write", pid)
    owner("part", "create", pid)
    stored = owner("obj", "write", pid, data=b"kept").stdout.strip()
    path = script(tmp_path, "def main(args):\n    return 'nobody changes this'\n")
    place.osd("fn", "put", path, "--name", "never")
    place.osd("acl", "add", "owner", "read", "0x1")
    assert owner("hook", "add", pid, "never").stdout == "1\n"
    for words in (("hook", "rm", pid, "--all"), ("attach", pid, "--none"), ("detach", pid)):
        assert f"run-write lacks POL_SEC on partition {pid}" in runner(*words, code=77).output
    with_less(place, ref(0x30000), Permission.FUN_EXE | Permission.SET_ATTR | Permission.READ)
    assert "nobody changes this" in owner("obj", "write", stored, data=b"gone", code=1).output
    owner("attach", pid, "--none")
    owner("detach", pid)
    place.osd("acl", "add", "owner", "EXEC", f"{view}/*")  # the objects' sources
    owner("view", "create", view, "--of", pid)
    assert owner("obj", "read", stored.replace(pid, view)).stdout == "kept"
    owner("hook", "rm", pid, "--all")
    owner("obj", "write", stored, data=b"gone")


def with_less(place: Place, partition: ObjectRef, asked: Permission) -> None:
    """What the security manager gives `run-write` for scripts; the target refuses the rest."""
    source = place.source(place.folder / "run-write.token")
    given = source.credential(partition, ObjectType.PARTITION, asked)
    source.close()
    with pyosd.connect(place.serving.url, credentials=given) as target:
        for page in (Page.PARTITION_HOOKS, Page.PARTITION_STACK):
            lists = AttributeLists((), (AttributeValue(page, 1, b""),))
            request = requests.set_attributes(partition, attributes=lists)
            with pytest.raises(pyosd.PermissionDenied):
                target.call(request, credential=given)


def test_a_role_is_of_a_partition(place: Place) -> None:
    assert "a role is for a partition" in place.osd("acl", "add", "alice", "read", X, code=2).output
    assert (
        "a role is for a partition"
        in place.osd("acl", "add", "alice", "read", "root", code=2).output
    )


def test_check_says_why(place: Place) -> None:
    told = place.osd("acl", "check", "READ,WRITE", X, "--user", "read", code=77).output
    assert "not permitted: read lacks WRITE on user object 0x10000/0x10000" in told


def test_no_partition_to_list(place: Place) -> None:
    """Nobody's rules: no jobs, rather than a refusal of the root."""
    assert place.alice("ps", "-o", "id").stdout == ""


def test_python_lists_them_too(users: dict[str, As], place: Place) -> None:
    source = place.source(place.folder / "run.token")
    with pyosd.connect(place.serving.url, credentials=source) as target:
        assert source.partitions() == [0x10000]
        assert target.jobs(PartitionId(0x10000)) == [] or all(
            each.id.partition_id == 0x10000 for each in target.jobs(PartitionId(0x10000))
        )
        with pytest.raises(pyosd.PermissionDenied, match="run lacks READ on partition 0x10000"):
            target.list_objects(ref(0x10000).partition_id)
    source.close()
