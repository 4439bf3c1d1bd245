# SPDX-License-Identifier: GPL-2.0-or-later
"""Pools in iosd-sandboxd: a zygote each, with its package set, which is what was built or nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from proxy import FAILING, HELLO, SERVING, STARTING, Daemon, alive

from iosd_host.config.packages import PackageSet, id_of, seal
from tests.package_sets import make
from tests.processes import long_lived

GREETING = {"greeting.py": "def greet():\n    return 'hello from the set'\n"}
LARGE = (
    "FLOATS = [float(i) for i in range(2_400_000)]\n"  # more than the zygote reserves addresses for
)
FORKS = """
import os
WORD = 'bye'
forked = []
os.register_at_fork(before=lambda: forked.append('before'), after_in_child=lambda: forked.append('after'))
"""


@pytest.fixture(scope="module")
def sets() -> Iterator[Path]:
    """A folder of sets that the zygote's user can pass through."""
    folder = Path("/var/tmp") / f"iosd-sets-{os.getpid()}"
    folder.mkdir(mode=0o755)
    yield folder
    shutil.rmtree(folder)


def options(**pools: PackageSet) -> Iterator[str]:
    """Pools of a daemon: name -> its set."""
    for name, found in pools.items():
        yield from ("--pool", name, "--packages", str(found.folder), "--package-set", found.id)


@pytest.fixture(scope="module")
def daemon(sets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One whose pools serve."""
    pools = {
        "one": make("one", sets, GREETING, "greeting"),
        "two": make("two", sets, {"farewell/__init__.py": FORKS}, "farewell"),
        "large": make("large", sets, {"large.py": LARGE}, "large"),
        "late": with_late_extension(sets),
    }
    running = Daemon(tmp_path_factory.mktemp("pools"), *options(**pools))
    long_lived.add(running.process.pid)
    for name, found in pools.items():
        news = running.wait_for_pool(
            name, STARTING, SERVING
        )  # it may serve before we are connected
        assert news.set == found.id
        if news.state == STARTING:
            news = running.wait_for_pool(name, SERVING)
        assert news.why == ""
    yield running
    assert running.stop() == 0
    long_lived.discard(running.process.pid)


def with_late_extension(sets: Path) -> PackageSet:
    """A set with a compiled module that nothing preloads."""
    import _ctypes_test

    work = sets / "work"
    (work / "lib" / "late").mkdir(parents=True)
    (work / "lib" / "greeting.py").write_text(GREETING["greeting.py"])
    shutil.copy(_ctypes_test.__file__, work / "lib" / "late" / "machine.abi3.so")
    return seal("late", work, sets, set(), ["greeting"])


def line(daemon: Daemon, code: str, pool: str = "") -> str:
    """What a script prints, or the one line that says how it failed."""
    outcome = daemon.run(code, pool=pool)
    return outcome.stdout.decode().strip() or outcome.line


def test_each_pool_has_its_own_set(daemon: Daemon) -> None:
    greet = "import greeting; print(greeting.greet(), greeting.__file__)"
    assert line(daemon, greet, "one") == "hello from the set /iosd/packages/lib/greeting.py"
    assert line(daemon, "import sys; print('greeting' in sys.modules)", "one") == "True"
    assert "No module named 'greeting'" in line(daemon, greet, "two")
    assert line(daemon, "import farewell; print(farewell.WORD)", "two") == "bye"
    look = "import os; print(os.listdir('/iosd/packages/lib'))"
    assert "greeting" not in line(daemon, look, "two")
    assert "FileNotFoundError" in line(daemon, look), "the default pool has no set"
    assert "No module named 'greeting'" in line(daemon, greet)
    with pytest.raises(PermissionError, match="no such pool"):
        daemon.spawn(pool="three")


def test_a_set_may_be_large(daemon: Daemon) -> None:
    assert line(daemon, "import large; print(large.FLOATS[-1])", "large") == "2399999.0"


def test_a_module_is_told_of_the_fork(daemon: Daemon) -> None:
    assert (
        line(daemon, "import farewell; print(farewell.forked[-2:])", "two") == "['before', 'after']"
    )
    numbers = "import random; print(random.random())"
    assert len({line(daemon, numbers, pool) for pool in ("one", "two") for _ in range(3)}) == 6
    in_script = "import os; print(os.register_at_fork(before=print))"  # a sandbox forks no more
    assert {line(daemon, in_script, pool) for pool in ("one", "two")} == {"None"}


ATTEMPTS = """
import os
lib = "/iosd/packages/lib"
for attempt in (
    lambda: open(lib + "/greeting.py", "w"),
    lambda: open(lib + "/new.py", "w"),
    lambda: os.remove(lib + "/greeting.py"),
    lambda: os.rename(lib, "/iosd/packages/other"),
    lambda: os.chmod(lib + "/greeting.py", 0o666),
    lambda: os.utime(lib),
    lambda: os.truncate(lib + "/greeting.py", 0),
    lambda: os.link(lib + "/greeting.py", lib + "/link"),
    lambda: os.symlink("/", lib + "/link"),
):
    try:
        attempt()
    except PermissionError:
        print("refused")
    except OSError as error:
        print("refused" if error.errno == 30 else error)  # EROFS
    else:
        print("done")
"""


def test_a_job_cannot_change_its_set(daemon: Daemon) -> None:
    assert line(daemon, ATTEMPTS, "one").split("\n") == ["refused"] * 9


def add(found: PackageSet) -> None:
    (found.folder / "lib" / "more.py").write_text("")


def change(found: PackageSet) -> None:
    (found.folder / "lib" / "greeting.py").write_text("def greet():\n    return 'evil'\n")


def change_compiled(found: PackageSet) -> None:
    (compiled,) = found.folder.glob("lib/__pycache__/greeting*.pyc")
    compiled.write_bytes(compiled.read_bytes()[:-1] + b"!")


def take_away(found: PackageSet) -> None:
    (found.folder / "lib" / "greeting.py").unlink()


def change_all(found: PackageSet) -> None:
    """The manifest is made to fit: its id does not any more."""
    change(found)
    manifest = json.loads((found.folder / "manifest.json").read_bytes())
    manifest["files"] = {}
    (found.folder / "manifest.json").write_text(json.dumps(manifest))


def another_python(found: PackageSet) -> PackageSet:
    """As if it had been built for that one, with an id that fits."""
    manifest = found.folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace("cpython-3", "cpython-2"))
    known = id_of("old", manifest.read_bytes())
    return PackageSet(known, found.folder.rename(found.folder.parent / known))


WRONG = {
    "changed": (change, "lib/greeting.py was changed since it was built"),
    "compiled": (change_compiled, ".pyc was changed since it was built"),
    "added": (add, "lib/more.py was added since it was built"),
    "missing": (take_away, "lib/greeting.py is missing"),
    "manifest": (change_all, "manifest.json was changed, it is now that of one-"),
    "unnamed": (lambda s: (s.folder / "manifest.json").unlink(), "manifest.json cannot be"),
    "damaged": (lambda s: (s.folder / "manifest.json").write_text("{"), "manifest.json is damaged"),
    "open": (lambda s: (s.folder / "lib").chmod(0o775), "can be written by others"),
    "owner": (lambda s: os.chown(s.folder / "lib", 4711, 0), "belongs to an ordinary user"),
    "link": (lambda s: (s.folder / "lib/x").symlink_to("/etc"), "neither a file nor a folder"),
    "gone": (lambda s: shutil.rmtree(s.folder), "No such file or directory"),
}


def test_only_what_was_built_is_served(sets: Path, tmp_path: Path) -> None:
    """A pool for each kind of wrong; the others serve beside them, and it, too, once it is mended."""
    pools = {}
    for pool, (spoil, _) in WRONG.items():
        pools[pool] = make("one", sets, GREETING | {f"{pool}_.py": ""}, "greeting")
        spoil(pools[pool])
    pools["old"] = another_python(make("old", sets, GREETING))
    pools["broken"] = make("broken", sets, {"bad.py": "1 / 0\n"}, "bad")
    pools["busy"] = make("busy", sets, {"busy.py": THREAD}, "busy")
    daemon = Daemon(tmp_path, *options(**pools, fine=make("fine", sets, GREETING, "greeting")))
    try:
        for pool, words in REASONS.items():
            assert words in daemon.wait_for_pool(pool, FAILING).why
        for _ in range(20):  # while they are tried again, too
            daemon.send(HELLO, 0, struct.pack(">I", 4))
            assert all(daemon.wait_for_pool(pool, FAILING).why for pool in REASONS)
        daemon.wait_for_pool("fine", SERVING)
        assert line(daemon, "import greeting; print(1)", "fine") == "1"
        assert line(daemon, "print(2)") == "2"
        with pytest.raises(PermissionError, match="zygote"):
            daemon.spawn(pool="changed")
        (pools["added"].folder / "lib" / "more.py").unlink()
        assert daemon.wait_for_pool("added", SERVING).why == ""
        assert line(daemon, "import greeting; print(3)", "added") == "3"
    finally:
        assert daemon.stop() == 0


THREAD = "import threading, time\nthreading.Thread(target=time.sleep, args=(900,)).start()\n"
REASONS = {name: words for name, (_, words) in WRONG.items()} | {
    "old": "built for cpython-2",
    "broken": "cannot preload bad: ZeroDivisionError: division by zero",
    "busy": "a module started a thread",
}


def test_the_death_of_one_pools_zygote_is_not_the_others(daemon: Daemon) -> None:
    sandboxes = [daemon.spawn(pool=name) for name in ("one", "default")]
    for each in sandboxes:
        each.wait_ready()
    os.kill(parent_of(sandboxes[0].pid), signal.SIGKILL)
    assert sandboxes[0].wait_exit().code == -signal.SIGKILL
    assert daemon.wait_for_pool("one", STARTING).why == "its zygote died"
    daemon.wait_for_pool("one", SERVING)
    assert alive(sandboxes[1].pid), "the other pool's sandbox does not notice"
    sandboxes[1].start("print(7)")
    assert sandboxes[1].finish().stdout == b"7\n"
    assert line(daemon, "import greeting; print(8)", "one") == "8"
    for each in sandboxes:
        each.close()


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])


def test_a_late_extension_module_names_the_pools_list(daemon: Daemon) -> None:
    said = line(daemon, "import late.machine", "late")
    assert said.startswith("ImportError: late.machine is an extension module")
    assert "preload list of pool 'late' (it preloads: greeting)" in said
    assert "'default' (it has no such list)" in line(daemon, "import _ctypes_test")
    assert "set preload = ['_crypt'] of pool 'default'" in line(daemon, "import crypt")


SQLITE = """
import sqlite3
rows = sqlite3.connect(":memory:")
rows.execute("create table t (word text, n integer)")
rows.executemany("insert into t values (?, ?)", [("a", 1), ("b", 2), ("a", 3)])
print(rows.execute("select word, sum(n) from t group by word order by word").fetchall())
"""
LARGE_SQLITE = """
import sqlite3
db = sqlite3.connect(":memory:")
db.execute("create table t (k text, n integer)")
words = ((f"key number {n * 7919 % 200000}", n) for n in range(200000))
db.executemany("insert into t values (?, ?)", words)
print(db.execute("select count(*) from (select k, sum(n) from t group by k order by 2)").fetchone())
db.execute("create temp table u as select * from t order by k desc")
class Mine(sqlite3.Connection):
    pass
other = sqlite3.connect(":memory:", factory=Mine)
other.deserialize(db.serialize())
print(type(other).__name__, other.in_transaction, other.execute("select count(*) from t").fetchone())
"""


def test_a_database_in_memory_sorts_in_memory(daemon: Daemon) -> None:
    """SQLite would put 200,000 groups into a temporary file."""
    assert line(daemon, LARGE_SQLITE).split("\n") == ["(200000,)", "Mine False (200000,)"]


CODECS = ("gb18030", "big5", "shift_jis", "euc_kr", "iso2022_jp", "big5hkscs", "cp950")


def test_compiled_modules_of_the_library_that_work_in_a_sandbox(daemon: Daemon) -> None:
    assert line(daemon, SQLITE) == "[('a', 4), ('b', 2)]"
    profile = "import cProfile; p = cProfile.Profile(); print(p.runcall(len, 'abc'))"
    assert line(daemon, profile) == "3"
    for name in CODECS:
        assert line(daemon, f"print('abc'.encode({name!r}).decode({name!r}))") == "abc"


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        ("ctypes", "it calls machine code and touches any memory"),
        ("ssl", "a sandbox has no network"),
        ("multiprocessing.shared_memory", "a sandbox starts no processes"),
        ("curses", "a sandbox has no terminal"),
    ],
)
def test_a_module_that_is_of_no_use_in_a_sandbox_says_why(
    daemon: Daemon, module: str, reason: str
) -> None:
    assert reason in line(daemon, f"import {module}")


def test_the_remedy_for_a_module_of_the_library_can_be_followed(tmp_path: Path) -> None:
    running = Daemon(tmp_path, "--pool", "default", "--preload", "ctypes,audioop")
    try:
        script = "import audioop, ctypes; print(audioop.max(bytes([1, 9]), 1), ctypes.sizeof(ctypes.c_int))"
        assert line(running, script) == "9 4"
    finally:
        assert running.stop() == 0


def test_preloading_the_library_leaves_a_sets_own_modules(sets: Path, tmp_path: Path) -> None:
    found = make("both", sets, GREETING, "greeting")
    running = Daemon(tmp_path, *options(both=found), "--preload", "audioop")
    try:
        said = "import sys; print('greeting' in sys.modules, 'audioop' in sys.modules)"
        assert line(running, said, "both") == "True True"
    finally:
        assert running.stop() == 0


def test_a_set_that_changes_while_its_pool_serves(sets: Path, tmp_path: Path) -> None:
    """The zygote that has it imported goes on, and none takes its place.  Pools rotate by themselves."""
    one = make("change", sets, GREETING, "greeting")
    pools = {"one": one, "two": make("other", sets, GREETING)}
    daemon = Daemon(tmp_path, *options(**pools), "--rotate-after", "2")
    try:
        for name in pools:
            daemon.wait_for_pool(name, SERVING)
        two = zygote_of(daemon, "two")
        first = {zygote_of(daemon, "one") for _ in range(2)}
        assert len(first) == 1
        daemon.wait_for_pool("one", SERVING)  # its successor is warm
        add(one)
        second = {zygote_of(daemon, "one") for _ in range(2)}
        assert len(second) == 1 and first != second
        daemon.wait_for_pool("one", SERVING)  # still; the next one was refused
        assert zygote_of(daemon, "one") in second
        os.kill(second.pop(), signal.SIGKILL)
        while "lib/more.py was added" not in daemon.wait_for_pool("one", FAILING).why:
            pass  # at first: its zygote died
        assert zygote_of(daemon, "two") == two
    finally:
        assert daemon.stop() == 0


def zygote_of(daemon: Daemon, pool: str) -> int:
    """Who forks the next sandbox."""
    sandbox = daemon.spawn(pool=pool)
    sandbox.wait_ready()
    found = parent_of(sandbox.pid)
    sandbox.kill()
    sandbox.wait_exit()
    sandbox.close()
    return found
