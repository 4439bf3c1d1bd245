# SPDX-License-Identifier: GPL-2.0-or-later
"""Messages about impossible requests: they name the wrong word and the remedy."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from pyosd.cli.frame.codes import Exit
from pyosd.cli.main import ELSEWHERE, main
from pyosd.jobs import refusal
from pyosd.types import AttributeId, ObjectRef
from pyosd.wire.attributes import Page
from tests import warm
from tests.cli.conftest import Run

LONG = "x" * 200


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--limit-wall", "0"), "a limit of 0 on wall"),
        (("--limit-mem", "64k"), "Python needs 32 MiB"),
        (("--limit-mem", "900TiB"), "may ask for memory "),
        (("--limit-procs", "99"), "may ask for threads 16 at most"),
        (("--name", LONG), "name has 200 bytes, and may have 128"),
        (("--name", "a\x07"), "name has control characters"),
        (("--key", LONG), "key has 200 bytes, and may have 64"),
        (("--tag", f"a={LONG}"), "tag 'a' has 202 bytes"),
        (("--limit-wall", "900d"), "may ask for wall 1d at most, not 900d"),
        (("--limit-wall", "90061.5s"), "not 90061.5s"),
        (("--expire", "400d"), "expire of 400d: it must be above 0, and at most 365d"),
        (("--grace", "9s"), "grace of 9s: it must be above 0, and at most 5s"),
        (("--array", "0-5000"), "5001 members may be more"),
        (("--pool", "nix"), "no pool 'nix'; it has: default"),
    ],
)
def test_a_parameter_that_is_refused(
    osd: Run, pid: str, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    script = tmp_path / "s.py"
    script.write_text("print(1)\n")
    result = osd("exec", script, "--zone", pid, "--no-wait", *words, code=Exit.FAILED)
    assert said in result.stderr


def test_the_numbers_are_those_of_the_target() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/limits.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")] for line in page.splitlines()]
    most = {row[1]: row[4].replace(",", "") for row in rows if len(row) == 6}
    known = {
        "name": f"{refusal.NAME_MOST} bytes",
        "tags": f"{refusal.TAGS_MOST}",
        "tag": f"{refusal.TAG_MOST} bytes",
        "key": f"{refusal.KEY_MOST} bytes",
        "args": f"{refusal.ARGS_MOST >> 20} MiB",
        "dependencies": f"{refusal.AFTER_MOST}",
        "expiry": f"{refusal.TIMES_MOST['expire'] // 86400} d",
        "grace": f"{refusal.TIMES_MOST['grace']} s",
        "sync_wait": f"{refusal.TIMES_MOST['wait']} s",
    }
    assert {key: most[key] for key in known} == known


def test_waiting_for_what_is_no_job(osd: Run, obj: ObjectRef, tmp_path: Path) -> None:
    script = tmp_path / "s.py"
    script.write_text("print(1)\n")
    words = ("exec", script, "--zone", obj, "--no-wait", "--after", obj)
    assert f"{obj}, to be waited for, is no job" in osd(*words, code=Exit.FAILED).stderr


def test_a_jobs_object_is_in_the_partition_of_its_zone(
    osd: Run, obj: ObjectRef, tmp_path: Path
) -> None:
    script = tmp_path / "s.py"
    script.write_text("print(1)\n")
    said = osd("exec", script, "--partition", obj.partition_id, code=Exit.FAILED).stderr
    assert f"the job's object cannot be in partition {obj.partition_id:#x}" in said


def test_a_script_that_runs_here_is_no_job(osd: Run, tmp_path: Path) -> None:
    script = tmp_path / "s.py"
    script.write_text("print(1)\n")
    said = osd("exec", script, "--local", "-o", "json", code=Exit.USAGE).stderr
    assert "-o and --local exclude each other" in said
    assert "--hold: a script starts at once" in osd("exec", script, "--local", "--hold").stderr


def test_a_full_quota_has_a_remedy(osd: Run, tmp_path: Path) -> None:
    pid = osd("part", "create").stdout.strip()
    osd("obj", "attr", "set", pid, "0x30000002/0x10001", "1000", "--int")
    (tmp_path / "large").write_bytes(bytes(5000))
    for words in (("put", tmp_path / "large", pid), ("cp", tmp_path / "large", f"osd:/{pid}/a")):
        assert "osd target df --partitions" in osd(*words, code=Exit.FAILED).stderr
    osd("part", "rm", pid, "--contents", "--yes")


def test_a_verb_for_another_type_of_object(osd: Run, obj: ObjectRef) -> None:
    collection = osd("col", "create", obj.partition_id).stdout.strip()
    for verb, code in (("read", Exit.FAILED), ("stat", Exit.FAILED), ("rm", Exit.NOT_PERMITTED)):
        said = osd("obj", verb, collection, code=code).stderr
        assert "'osd col' for collections" in said and "attributes of your own" not in said, verb
    said = osd("col", "members", obj, code=Exit.NOT_PERMITTED).stderr
    assert "'osd obj' is for user objects" in said
    said = osd("obj", "attr", "set", obj, "0x10000/1", "--hex", "zz", code=Exit.USAGE).stderr
    assert "'zz' is not hexadecimal" in said


def test_an_object_that_is_no_job(osd: Run, obj: ObjectRef) -> None:
    assert f"{obj} is no job" in osd("job", "why", obj, code=Exit.JOB_UNKNOWN).stderr


def test_a_jobs_id_that_is_none(osd: Run) -> None:
    said = osd("job", "why", "foo", code=Exit.JOB_UNKNOWN).stderr
    assert "no job has the name 'foo', and it is no job's id" in said
    said = osd("job", "kill", "12345", code=Exit.USAGE).stderr
    assert "'12345' is not a job's id, PID/OID" in said, "as it was typed"


@pytest.mark.parametrize("lun", [0, 7])
def test_a_unit_that_is_no_osd(osd: Run, lun: int) -> None:
    url = os.environ["IOSD_TARGET"].rpartition("/")[0]
    result = osd("part", "ls", "--target", f"{url}/{lun}", code=Exit.UNREACHABLE)
    assert "the target's URL ends in" in result.stderr


@pytest.mark.parametrize("words", [("exce",), ("job", "reslt"), ("target", "sreve")])
def test_a_verb_mistyped(osd: Run, words: tuple[str, ...]) -> None:
    assert osd(*words, code=Exit.USAGE).stderr.count("Did you mean") == 1


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("watch", "osd job watch"),
        ("start", "osd exec"),
        ("serve", "osd target serve"),
    ],
)
def test_a_verb_without_its_noun(osd: Run, typed: str, meant: str) -> None:
    assert f"Did you mean '{meant}'?" in osd(typed, "x", code=Exit.USAGE).stderr


def test_each_verb_that_is_suggested_exists() -> None:
    for typed, meant in ELSEWHERE.items():
        command: click.Command | None = main
        context = click.Context(main)
        assert typed not in main.list_commands(context)
        for word in meant.split()[1:]:
            assert isinstance(command, click.Group)
            command = command.get_command(context, word)
        assert command is not None, meant


def test_an_option_before_its_verb(osd: Run) -> None:
    result = osd("--target", "x", "ps", code=Exit.USAGE)
    assert "Options come after the verb: osd ps --target" in result.stderr.replace("main", "osd")


FULL_DATABASE = """
import sqlite3
db = sqlite3.connect('x')
db.execute('create table t (a)')
while True:
    db.execute('insert into t values (zeroblob(8000000))')
    db.commit()
"""


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import pandas", "package set of their pool"),
        ("import socket; socket.socket()", "no network"),
        ("import socket; socket.create_connection(('example.org', 80))", "no network"),
        ("import urllib.request as u; u.urlopen('https://example.org')", "no network"),
        ("import ssl", "scripts have no network"),
        ("import subprocess; subprocess.run(['ls'])", "start no processes"),
        ("import multiprocessing; multiprocessing.Pool(2)", "start no processes"),
        ("import os; os.fork()", "start no processes"),
        ("open('data.csv')", "no files but Python's own"),
        ("open('/tmp/data.csv', 'w')", "no files but Python's own"),
        ("import sqlite3; sqlite3.connect('/data/x.db')", "or ':memory:'"),
        ("open('x', 'wb').write(bytes(65 << 20))", "the scratch folder is full"),
        ("open('x', 'wb').truncate(1 << 40)", "the scratch folder is full"),
        (FULL_DATABASE, "the scratch folder is full"),
        ("input()", "they are osd.args"),
        ("import osd; osd.userobject(0x77777, 0x10000).data.read()", "--zone says"),
        ("import osd; osd.result({1})", "what JSON can say"),
        ("import osd; osd.nothing", "list the names of the module osd"),
    ],
)
def test_a_script_that_forgets_where_it_is(
    osd: Run, obj: ObjectRef, tmp_path: Path, source: str, said: str
) -> None:
    script = tmp_path / "s.py"
    script.write_text(source)
    words = ("exec", script, "--zone", obj, "--wait", "-o", "id")
    job = osd(*words, code=Exit.JOB_FAILED).stdout.strip()
    assert said in osd("job", "why", job).stdout
    told = osd("job", "result", job, code=Exit.JOB_FAILED).stderr
    assert told.count(said) == 1


@pytest.mark.sandbox
def test_words_that_a_terminal_would_obey(osd: Run, obj: ObjectRef, tmp_path: Path) -> None:
    """The output of another user's script cannot harm the reader."""
    script = tmp_path / "s.py"
    script.write_text(r"raise ValueError('\x1b]0;title\x07\x1b[31mred')")
    words = ("exec", script, "--zone", obj, "--wait", "-o", "id")
    job = osd(*words, code=Exit.JOB_FAILED).stdout.strip()
    told = osd("job", "why", job, "--color", "always").stdout
    told += osd("job", "result", job, code=Exit.JOB_FAILED).stderr
    assert told.count("title") >= 2
    assert not any(each in told for each in "\x1b\x07")


def test_what_is_not_empty(osd: Run, obj: ObjectRef) -> None:
    pid = obj.partition_id
    words = osd("part", "rm", pid, "--no-input", code=Exit.FAILED).stderr
    assert f"{pid:#x} is not empty; --contents" in words
    collection = osd("col", "create", pid).stdout.strip()
    osd("col", "add", collection, obj)
    words = osd("col", "rm", collection, "--no-input", code=Exit.FAILED).stderr
    assert f"{collection} is not empty; --force" in words


@pytest.mark.parametrize("more", [(), ("--no-input",)])
def test_what_nobody_was_asked_about(osd: Run, obj: ObjectRef, more: tuple[str, ...]) -> None:
    """More than was named is not removed where nobody can confirm it, unless --yes does."""
    pid = obj.partition_id
    collection = osd("col", "create", pid).stdout.strip()
    osd("col", "add", collection, obj)
    words = osd("part", "rm", pid, "--contents", *more, code=Exit.USAGE).stderr
    assert "add --yes" in words
    words = osd("col", "rm", collection, "--objects", *more, code=Exit.USAGE).stderr
    assert "add --yes" in words
    assert str(obj) in osd("obj", "ls", pid).stdout
    osd("col", "rm", collection, "--objects", "--yes", *more)
    assert str(obj) not in osd("obj", "ls", pid).stdout
    osd("part", "rm", pid, "--contents", "--yes", *more)


def test_an_upload_that_fails_leaves_nothing(osd: Run, pid: str, tmp_path: Path) -> None:
    """A new object that could not be filled is removed again, and no id is printed."""
    quota = AttributeId(Page.PARTITION_QUOTAS, 0x1)
    osd("obj", "attr", "set", pid, f"{quota.page:#x}/{quota.number:#x}", 1 << 20, "--int")
    result = osd("obj", "write", pid, code=Exit.FAILED, data=bytes(3 << 20))
    assert "quota" in result.stderr and result.stdout == ""
    assert osd("obj", "ls", pid, "-o", "id").stdout == ""
    (tmp_path / "large").write_bytes(bytes(3 << 20))
    copied = osd("cp", tmp_path / "large", f"osd:/{pid}", code=Exit.FAILED).stderr
    assert copied.endswith(
        "1 of 1 file failed\n  'osd target df --partitions' shows the space and the quotas\n"
    )
    written = osd("obj", "write", pid, data=bytes(1 << 18)).stdout.strip()
    assert osd("obj", "ls", pid, "-o", "id").stdout.strip() == written


@pytest.mark.parametrize("verb", ["kill", "cancel", "hold", "release", "watch", "status"])
def test_what_is_no_job(osd: Run, obj: ObjectRef, verb: str) -> None:
    assert "is no job" in osd("job", verb, obj, code=Exit.JOB_UNKNOWN).stderr


def test_a_configuration_of_another_user(
    osd: Run, obj: ObjectRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    """su and sudo keep HOME: what lies there and cannot be read is not this user's."""
    read = Path.read_text

    def refused(path: Path, *arguments: Any, **options: Any) -> str:
        if path.name == "config.toml":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return read(path, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", refused)
    assert str(obj) in osd("obj", "ls", obj.partition_id).stdout
    words = osd("obj", "ls", obj.partition_id, "--profile", "work", code=Exit.CONFIG).stderr
    assert "not readable by this user" in words
    monkeypatch.delenv("IOSD_TARGET")
    words = osd("obj", "ls", obj.partition_id, code=Exit.CONFIG).stderr
    assert "no target" in words and "config.toml is not readable by this user" in words


def test_ids_and_values_that_cannot_be(osd: Run, obj: ObjectRef) -> None:
    reserved = f"{obj.partition_id}/5"
    assert "below 0x10000 are reserved" in osd("obj", "create", reserved, code=Exit.FAILED).stderr
    assert "id is taken" in osd("part", "create", obj.partition_id, code=Exit.FAILED).stderr
    words = osd("obj", "attr", "set", obj, "1/1", "x", code=Exit.FAILED).stderr
    assert "read only, of another type" in words and "user objects 0x10000/1" in words


LIST = [sys.executable, "-c", "from pyosd.cli import main; main()", "part", "ls"]


def test_nobody_reads_on(obj: ObjectRef, osd: Run) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as pipe:
        done = warm.run(LIST, stdout=pipe, stderr=subprocess.PIPE, timeout=60)
    assert (done.returncode, done.stderr) == (Exit.FAILED, b"")


def test_nowhere_to_write(obj: ObjectRef, osd: Run) -> None:
    with Path("/dev/full").open("w") as full:
        done = warm.run(LIST, stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == Exit.FAILED
    assert done.stderr == b"osd: input or output: No space left on device\n"


def test_the_job_that_is_in_the_way(osd: Run, pid: str, tmp_path: Path) -> None:
    script = tmp_path / "s.py"
    script.write_text("pass")
    job = osd("exec", script, "--zone", pid, "--hold", "--no-wait").stdout.strip()
    words = ("part", "rm", pid, "--contents", "--yes")
    assert f"job {job};" in osd(*words, code=Exit.WRONG_STATE).stderr
    osd("job", "cancel", job)
