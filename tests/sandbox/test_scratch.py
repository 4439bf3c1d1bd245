# SPDX-License-Identifier: GPL-2.0-or-later
"""The scratch folder of a job: what works in it, where it is full, and that nothing of it stays."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from proxy import (
    FINISH_EXCEPTION,
    FINISH_OK,
    LIMITS,
    LIMITS_SET,
    Daemon,
    Limits,
    Sandbox,
    control_groups,
)

if TYPE_CHECKING:
    from proxy import Outcome

MIB = 1 << 20
SMALL = Limits(memory_bytes=64 * MIB)  # 16 MiB of scratch folder

FILL = """
import errno, os
def fill():
    written = 0
    try:
        with open('full', 'wb', buffering=0) as file:
            while True:
                written += file.write(bytes(1 << 20))
    except OSError as error:
        assert error.errno == errno.ENOSPC, error
        return written >> 20
"""

WORKS = {
    "a file": """
open('x', 'w').write('hello')
print(open('x').read())""",
    "a file by its full name": """
path = os.path.join(os.getcwd(), 'x')
open(path, 'w').write('hello')
print(open(path).read())""",
    "a temporary file": """
import tempfile
with tempfile.TemporaryFile('w+') as f:
    f.write('hello')
    f.seek(0)
    print(f.read())""",
    "a named temporary file": """
import tempfile
with tempfile.NamedTemporaryFile('w+') as f:
    f.write('hello')
    f.flush()
    print(open(f.name).read())""",
    "a temporary folder": """
import tempfile
with tempfile.TemporaryDirectory() as d:
    os.makedirs(d + '/a/b')
    open(d + '/a/b/c', 'w').write('hello')
    print(open(d + '/a/b/c').read())
assert os.listdir() == []""",
    "moved and removed": """
os.mkdir('a')
os.mkdir('b')
open('a/x', 'w').write('hello')
os.replace('a/x', 'b/y')
print(open('b/y').read())
os.remove('b/y')
os.rmdir('a')
os.rmdir('b')""",
    "cut": """
f = open('x', 'w+')
f.write('hello world')
f.truncate(5)
f.seek(0)
print(f.read())""",
    "copied": """
import shutil
open('x', 'w').write('hello')
shutil.copyfile('x', 'y')
print(open('y').read())""",
    "a map": """
import mmap
f = open('x', 'w+b')
f.truncate(4096)
m = mmap.mmap(f.fileno(), 4096)
m[:5] = b'hello'
print(open('x', 'rb').read(5).decode())""",
    "a ZIP file": """
import zipfile
with zipfile.ZipFile('x.zip', 'w') as z:
    z.writestr('a/b', 'hello')
with zipfile.ZipFile('x.zip') as z:
    z.extractall('out')
print(open('out/a/b').read())""",
    "a database": """
import sqlite3
db = sqlite3.connect('x.db')
db.execute('create table t (a)')
db.execute('insert into t values (?)', ['hello'])
db.commit()
db.close()
print(sqlite3.connect('x.db').execute('select a from t').fetchone()[0])""",
    "a database with a log": """
import sqlite3
db = sqlite3.connect('x.db')
assert db.execute('pragma journal_mode=wal').fetchone() == ('wal',)
db.execute('create table t (a)')
db.execute('insert into t values (?)', ['hello'])
db.commit()
print(sqlite3.connect('x.db').execute('select a from t').fetchone()[0])""",
    "a database that goes back": """
import sqlite3
db = sqlite3.connect('x.db')
db.execute('create table t (a)')
db.commit()
db.execute('insert into t values (1)')
db.rollback()
assert not db.execute('select * from t').fetchall()
print('hello')""",
    "a module": """
import sys
open('words.py', 'w').write('word = "hello"')
sys.path.insert(0, os.getcwd())
import words
print(words.word)""",
}


@pytest.mark.parametrize("what", WORKS)
def test_works(daemon: Daemon, what: str) -> None:
    out = daemon.run("import os\n" + WORKS[what])
    assert out.kind == FINISH_OK, out.traceback
    assert out.stdout == b"hello\n"


def test_two_connections_keep_each_other_out(daemon: Daemon) -> None:
    """Locks between processes are not needed; those between connections are SQLite's own."""
    out = daemon.run(
        "import sqlite3\n"
        "a, b = (sqlite3.connect('x.db', timeout=0, isolation_level=None) for _ in range(2))\n"
        "a.execute('create table t (a)'); a.execute('begin immediate')\n"
        "try: b.execute('begin immediate')\n"
        "except sqlite3.OperationalError as error: print(error)\n"
        "a.execute('insert into t values (1)'); a.execute('commit')\n"
        "print(b.execute('select * from t').fetchall())"
    )
    assert out.stdout == b"database is locked\n[(1,)]\n", out.traceback


# ---- full ---------------------------------------------------------------------------------------


def test_full_at_a_quarter_of_the_memory(daemon: Daemon) -> None:
    out = daemon.run(FILL + "print(fill())\nos.remove('full'); print(fill())", SMALL)
    assert out.kind == FINISH_OK, out.traceback
    assert out.stdout == b"16\n16\n"


def test_the_limit_of_the_job_replaces_that_of_the_spare(daemon: Daemon) -> None:
    for before, after in ((64, 128), (128, 64)):
        sandbox = daemon.spawn(Limits(memory_bytes=before * MIB))
        sandbox.wait_ready()
        daemon.send(LIMITS, sandbox.id, Limits(memory_bytes=after * MIB).encode())
        daemon.wait_for(LIMITS_SET, sandbox.id)
        outcome = sandbox.run_another(FILL + "print(fill())")
        assert outcome.stdout == b"%d\n" % (after // 4), outcome.traceback
        sandbox.wait_exit()
        sandbox.close()


def charged(daemon: Daemon) -> int:
    """Bytes of all sandboxes and zygotes, in either version of control groups."""
    return sum(
        int(file.read_text())
        for group in control_groups(daemon.process.pid)
        for name in ("memory.usage_in_bytes", "memory.current")
        for file in Path(group).rglob(name)
    )


def test_it_counts_as_the_job_s_memory(daemon: Daemon) -> None:
    """The control group of the sandbox holds the pages, and gives them back when it ends."""
    sandbox = daemon.spawn(Limits(memory_bytes=256 * MIB))
    sandbox.wait_ready()
    before = charged(daemon)
    sandbox.start(FILL + "print(fill(), flush=True)\nwhile True: pass")
    sandbox.read_until(b"64\n")
    assert charged(daemon) - before >= 64 * MIB
    sandbox.kill()
    sandbox.wait_exit()
    sandbox.close()
    assert charged(daemon) - before < 32 * MIB


def test_a_file_longer_than_the_folder(daemon: Daemon) -> None:
    """It is refused at once where it would be sparse: a map of it would end the script later."""
    out = daemon.run(
        "import os\nfd = os.open('x', os.O_RDWR | os.O_CREAT)\n"
        "os.ftruncate(fd, 16 << 20)\n"
        "try: os.ftruncate(fd, 1 << 30)\n"
        "except OSError as error: print(error.errno)",
        SMALL,
    )
    assert out.stdout == b"27\n", out.traceback


MANY = """
import os
made = 0
try:
    while True:
        {make}
        made += 1
except OSError as error:
    print(error.errno, made)
"""


@pytest.mark.parametrize(
    "make", ["open(f'{made}', 'w').close()", "os.mkdir(f'{made}')", "os.mkdir('x/' * made + 'x')"]
)
def test_files_and_folders_are_counted(daemon: Daemon, make: str) -> None:
    out = daemon.run(MANY.format(make=make))
    assert out.kind == FINISH_OK, out.traceback
    error, made = map(int, out.stdout.split())
    assert error in (28, 36)  # no space; of the deep ones the name is too long first
    assert 500 < made < 8192


DEEP = """
import os
fd = os.open('.', os.O_RDONLY)
for _ in range(1000):
    os.mkdir('d', dir_fd=fd)
    fd, last = os.open('d', os.O_RDONLY, dir_fd=fd), fd
    os.close(last)
"""


def test_what_a_hostile_job_leaves_is_gone(daemon: Daemon) -> None:
    """Deep folders; as many files as can be, with holes; all the space.  The next job finds no trace."""
    for left in (DEEP, MANY.format(make="open(f'{made}', 'w').truncate(1 << 20)"), FILL + "fill()"):
        first = daemon.spawn(SMALL)
        first.wait_ready()
        assert first.run_another(left).kind == FINISH_OK
        first.wait_exit()
        first.close()
        out = daemon.run(
            FILL + "print(os.getcwd(), os.listdir()); print(fill())\n"
            "os.remove('full')\n" + MANY.format(make="open(f'{made}', 'w').close()"),
            SMALL,
        )
        assert out.kind == FINISH_OK, out.traceback
        assert out.stdout.decode().split()[1:] == ["[]", "16", "28", "8191"]


# ---- the next job -------------------------------------------------------------------------------


def run(sandbox: Sandbox, code: str) -> Outcome:
    outcome = sandbox.run_another(code)
    assert outcome.kind == FINISH_OK, outcome.traceback
    return outcome


LEAVES = {
    "a file": "open('x', 'w').write('of the first')",
    "an empty file": "open('x', 'w').close()",
    "a folder": "import os; os.mkdir('x')",
    "a map of a removed file": "import mmap, os, sys\n"
    "f = open('x', 'w+b'); f.truncate(4096); m = mmap.mmap(f.fileno(), 4096); m[:5] = b'first'\n"
    "os.remove('x'); sys.kept = m",
}


@pytest.mark.parametrize("what", LEAVES)
def test_a_sandbox_whose_folder_is_not_empty_has_no_other_job(daemon: Daemon, what: str) -> None:
    sandbox = daemon.spawn()
    sandbox.wait_ready()
    run(sandbox, LEAVES[what])
    sandbox.wait_exit()
    sandbox.close()
    assert daemon.run("import os; print(os.listdir())").stdout == b"[]\n"


def test_a_job_that_cleans_up_leaves_the_sandbox_fit(sandbox: Sandbox) -> None:
    run(
        sandbox,
        "import os\nos.mkdir('d')\nopen('d/x', 'w').write('x' * 9999)\nos.remove('d/x')\nos.rmdir('d')",
    )
    sandbox.wait_ready()
    sandbox.drain()
    assert b"[]\n" in run(sandbox, "import os; print(os.listdir())").stdout
    sandbox.wait_ready()


def test_a_killed_one_leaves_nothing(daemon: Daemon) -> None:
    for _ in range(3):
        sandbox = daemon.spawn(SMALL)
        sandbox.wait_ready()
        sandbox.start(FILL + "print('full', fill(), flush=True)\nwhile True: pass")
        sandbox.read_until(b"full 16\n")
        sandbox.kill()
        sandbox.wait_exit()
        sandbox.close()
    assert daemon.run("import os; print(os.listdir())", SMALL).stdout == b"[]\n"


def test_two_at_once_have_their_own(daemon: Daemon) -> None:
    first, second = daemon.spawn(), daemon.spawn()
    for sandbox in (first, second):
        sandbox.wait_ready()
        sandbox.start(
            "import os\nopen('mine', 'w').write(os.getcwd())\n"
            "print(os.getcwd(), 'on', flush=True)\nwhile True: pass"
        )
        sandbox.read_until(b"on\n")
    assert first.outcome.stdout != second.outcome.stdout
    for sandbox, other in ((first, second), (second, first)):
        place = other.outcome.stdout.split()[0].decode()
        root = Path(f"/proc/{sandbox.pid}/root{place}")
        assert [path.name for path in root.iterdir()] == ["mine"]  # as root of the host
        assert root.stat().st_mode & 0o777 == 0o700
    for sandbox in (first, second):
        sandbox.kill()
        sandbox.wait_exit()
        sandbox.close()


# ---- where there is none ------------------------------------------------------------------------


def test_minimal_has_none(tmp_path: Path) -> None:
    running = Daemon(tmp_path, "--isolation", "minimal")
    outside = f"/tmp/iosd-{uuid.uuid4()}"  # nobody else has made it
    try:
        for tried in ("open('x', 'w')", "import os; os.mkdir('x')", f"open('{outside}', 'w')"):
            out = running.run(tried)
            assert out.kind == FINISH_EXCEPTION, tried
            assert "OSError" in out.traceback or "PermissionError" in out.traceback
    finally:
        running.stop()


@pytest.mark.parametrize("level", ["no-cgroup", "no-userns"])
def test_levels_with_their_own_mounts_have_one(tmp_path: Path, level: str) -> None:
    running = Daemon(tmp_path, "--isolation", level)
    try:
        for _ in range(2):
            out = running.run(FILL + "print(os.listdir(), fill())", SMALL)
            assert out.stdout == b"[] 16\n", out.traceback
    finally:
        running.stop()
