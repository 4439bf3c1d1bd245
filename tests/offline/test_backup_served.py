# SPDX-License-Identifier: GPL-2.0-or-later
"""Backups of a store while clients change it.

Each client sends numbered commands one after the other.  A restored store must hold the effect of a
client's first k commands and of no later one but the one that was being executed; k must be possible at
one moment for all clients, and that moment must be the backup's.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import pyosd
from iosd_host.cli import backup as backup_commands
from iosd_host.control.messages import ErrorCode, TargetError, Type
from iosd_host.control.tool_link import ToolLink
from iosd_host.store_tools.backup.copying import Copier
from iosd_host.store_tools.opening.folders import open_roots
from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.errors import Unreachable
from pyosd.jobs import submit
from pyosd.jobs.job import Job
from pyosd.types import AttributeValue, ObjectRef, ref
from pyosd.wire.cdb import AttributeLists, Request
from pyosd.wire.job_status import JobState
from tests.harness import Harness, program
from tests.offline.stores import APPLICATION, Store
from tests.offline.test_backup import names, run
from tests.serving import Serving, missing, sandboxes_missing
from tests.waiting import until

HEAD = 64 << 10
OBJECTS = 12
BLOCK = 12 << 10
SPAN = 96 << 10
"""Objects have blocks up to here: heads and tails."""
ROUND = 120
"""Commands of each client before, while and after a backup is made, at least."""


def filled(number: int) -> bytes:
    return number.to_bytes(8, "big") * (BLOCK // 8)


@dataclass
class Client:
    """One initiator, in a partition of its own."""

    osd: Commands
    log: ObjectRef
    objects: list[ObjectRef]
    sent: list[float] = field(default_factory=lambda: [0.0])
    answered: list[float] = field(default_factory=lambda: [0.0])
    longest_s: float = 0.0
    error: BaseException | None = None

    @classmethod
    def new(cls, osd: Commands) -> Client:
        partition = osd.create_partition()
        return cls(osd, osd.create(partition), [osd.create(partition) for _ in range(OBJECTS)])

    def request(self, number: int) -> Request:
        """Command `number`: an APPEND, a WRITE, or a WRITE with an attribute."""
        if number % 3 == 0:
            return rq.append(self.log, number.to_bytes(8, "big"))
        obj, start = place(self.objects, number)
        if number % 3 == 1:
            return rq.write(obj, start, filled(number))
        value = AttributeValue(APPLICATION, 1, number.to_bytes(8, "big"))
        lists = AttributeLists((), (value,))
        return rq.write(obj, start, filled(number), attributes=lists)

    def work(self, stop: threading.Event) -> None:
        try:
            while not stop.is_set():
                begin = time.time()
                self.sent.append(begin)
                self.osd.call(self.request(len(self.sent) - 1))
                self.answered.append(time.time())
                self.longest_s = max(self.longest_s, self.answered[-1] - begin)
        except Unreachable:
            return
        except BaseException as error:
            self.error = error

    # ---- what a restored store has ----

    def moments(self, osd: Commands) -> list[tuple[float, float]]:
        """Times at which this client's commands had the effects that are there: the k-th sent before,
        the one after it answered later."""
        length = int.from_bytes(osd.get_attribute(self.log, 1, 0x82), "big")
        data = bytes(osd.read(self.log, 0, length)) if length else b""
        logged = [int.from_bytes(data[at : at + 8], "big") for at in range(0, length, 8)]
        assert logged == list(range(3, 3 * len(logged) + 1, 3))
        state = {obj: look_at(osd, obj) for obj in self.objects}
        found = []
        for last in range(3 * len(logged), min(3 * len(logged) + 4, len(self.sent))):
            if all(self.fits(obj, state[obj], last) for obj in self.objects):
                end = self.answered[last + 1] if last + 1 < len(self.answered) else time.time()
                found.append((self.sent[last], end))
        return found

    def fits(self, obj: ObjectRef, seen: tuple[bytes, bytes], last: int) -> bool:
        """Whether an object is as commands 1..last leave it, the next one perhaps half done."""
        data, attribute = seen
        expected, number = bytearray(), 0
        mine = next(n for n in range(1, OBJECTS + 1) if place(self.objects, n)[0] == obj)
        for n in range(mine, last + 1, OBJECTS):  # no other command is about it
            if n % 3:
                expected = put(expected, place(self.objects, n)[1], filled(n))
                number = n if n % 3 == 2 else number
        if attribute != (number.to_bytes(8, "big") if number else b""):
            return False
        if data == expected:
            return True
        n = last + 1  # a plain WRITE may be there in part
        if n % 3 != 1 or place(self.objects, n)[0] != obj:
            return False
        after = put(expected, place(self.objects, n)[1], filled(n))
        old = expected.ljust(len(after), b"\0")
        return len(expected) <= len(data) <= len(after) and all(
            byte in (old[at], after[at]) for at, byte in enumerate(data)
        )


def place(objects: list[ObjectRef], number: int) -> tuple[ObjectRef, int]:
    return objects[number * 7 % OBJECTS], number * 5 % (SPAN // BLOCK) * BLOCK


def put(data: bytearray, start: int, block: bytes) -> bytearray:
    found = bytearray(data.ljust(start + len(block), b"\0"))
    found[start : start + len(block)] = block
    return found


def look_at(osd: Commands, obj: ObjectRef) -> tuple[bytes, bytes]:
    length = int.from_bytes(osd.get_attribute(obj, 1, 0x82), "big")
    data = bytes(osd.read(obj, 0, length)) if length else b""
    return data, osd.get_attribute(obj, APPLICATION, 1)


@dataclass
class Served:
    """A store in two roots, clients that change it, and where its backups go."""

    folder: Path
    harness: Harness
    clients: list[Client]
    stop: threading.Event
    threads: list[threading.Thread]
    checksums: str

    @property
    def backups(self) -> Path:
        return self.folder / "backups"

    @property
    def words(self) -> list[str]:
        data, ssd = self.folder / "store", self.folder / "ssd"
        return ["--data", str(data), "--ssd", str(ssd), "--control", str(self.folder / "control")]

    def answered(self) -> int:
        return min(len(each.answered) for each in self.clients)

    def go_on(self) -> None:
        """Until every client has had some more answers."""
        goal = self.answered() + ROUND
        until(lambda: self.answered() >= goal)
        assert not [each.error for each in self.clients if each.error]

    def end(self) -> None:
        self.stop.set()
        for thread in self.threads:
            thread.join(60)
            assert not thread.is_alive()
        assert not [each.error for each in self.clients if each.error]


def begin(folder: Path, checksums: str) -> Served:
    (folder / "ssd").mkdir()
    options = {
        "dir": folder / "store",
        "ssd": folder / "ssd",
        "head_size": HEAD,
        "control": folder / "control",
        "checksums": checksums,
    }
    harness = Harness(program(), options, folder / "log")
    clients = [Client.new(harness.osd) for _ in range(2)]
    stop = threading.Event()
    threads = [threading.Thread(target=each.work, args=(stop,)) for each in clients]
    for thread in threads:
        thread.start()
    return Served(folder, harness, clients, stop, threads, checksums)


@pytest.fixture
def checksums() -> str:
    """Whether the store keeps checksums of data."""
    return "off"


@pytest.fixture
def served(folder: Path, checksums: str) -> Iterator[Served]:
    found = begin(folder, checksums)
    yield found
    found.stop.set()
    found.harness.finish()
    for thread in found.threads:
        thread.join(60)


def make(served: Served, *words: str) -> dict[str, object]:
    longest = ("--pause", "30s")  # this process may be stopped in the pause
    result = run(
        backup_commands.backup, "make", served.backups, *served.words, "--json", *longest, *words
    )
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def check_restored(served: Served, name: str, start: float, end: float) -> None:
    """The store of one moment between start and end."""
    folder = served.folder / f"restored {name}"
    store = Store(folder, True, None)  # type: ignore[arg-type]
    words = ["--data", str(store.data), "--ssd", str(store.ssd)]
    result = run(backup_commands.restore, served.backups, name, *words)
    assert result.exit_code == 0, result.output
    assert store.check() == []
    # With checksums, one that does not match its block fails the reads below.
    verify = "always" if served.checksums == "on" else "scrub"
    options = {"dir": store.data, "ssd": store.ssd, "head_size": HEAD, "verify": verify}
    harness = Harness(program(), options, folder / "log")
    found = [each.moments(harness.osd) for each in served.clients]
    harness.finish()
    possible = [
        (max(one[0], other[0], start), min(one[1], other[1], end))
        for one in found[0]
        for other in found[1]
    ]
    assert any(first <= last for first, last in possible), (found, start, end)


@pytest.mark.parametrize("checksums", ["off", "on"])
def test_each_backup_is_the_store_of_one_moment(served: Served, checksums: str) -> None:
    times = {}
    for _ in range(3):
        served.go_on()
        start = time.time()
        about = make(served)
        assert about["hot"]
        times[str(about["name"])] = start, time.time()
    served.go_on()
    served.end()
    result = run(backup_commands.backup, "verify", served.backups, "--all")
    assert result.exit_code == 0, result.output
    for name, (start, end) in times.items():
        check_restored(served, name, start, end)


def test_a_killed_backup_leaves_the_target_going(served: Served) -> None:
    """Killed at any instant; the store thaws because the connection ends."""
    make(served)
    whole = names(served.backups)
    for delay in (0.2, 0.35, 0.5, 0.8):
        words = ["make", str(served.backups), *served.words, "--pause", "30s"]
        code = "import sys; from iosd_host.cli.backup import backup as b; b(sys.argv[1:])"
        process = subprocess.Popen([sys.executable, "-c", code, *words], stdout=subprocess.DEVNULL)
        time.sleep(delay)  # any instant will do
        process.send_signal(signal.SIGKILL)
        process.wait()
        served.go_on()
        found = names(served.backups)  # one more if the kill came after it had its name
        assert found[: len(whole)] == whole and len(found) <= len(whole) + 1
        whole = found
    start = time.time()
    name = str(make(served)["name"])
    end = time.time()
    served.end()
    assert not [each for each in served.backups.iterdir() if each.suffix == ".partial"]
    check_restored(served, name, start, end)


def test_a_killed_target_ends_a_backup(served: Served) -> None:
    served.go_on()
    link = ToolLink(served.folder / "control", "test", 30.0)
    store = link.ask(Type.SNAPSHOT)["store"]
    assert isinstance(store, dict)
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys; from iosd_host.cli.backup import backup as b; b(sys.argv[1:])",
            "make",
            str(served.backups),
            *served.words,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    partial = "backups/*.partial"  # a short time; a backup that has ended is whole
    until(lambda: any(served.folder.glob(partial)) or process.poll() is not None, pause=0.001)
    served.harness.kill()
    _, said = process.communicate(timeout=60)
    link.close()
    if process.returncode:
        assert process.returncode == 1 and "nothing is taken" in said
        assert names(served.backups) == []
    assert not list(served.backups.glob("*.partial"))


def ask_freeze(link: ToolLink, freeze_ms: int, store: str | None = None) -> dict[str, object]:
    found = link.ask(Type.SNAPSHOT)["store"]
    assert isinstance(found, dict)
    return link.ask(
        Type.FREEZE, store=store or found["system_id"], wait_ms=1000, freeze_ms=freeze_ms
    )


def frozen(link: ToolLink, freeze_ms: int) -> None:
    """Freeze the store.  Tries again: commands that are stopped may take longer than it waits for them."""

    def freezes() -> bool:
        try:
            return ask_freeze(link, freeze_ms)["frozen"] is True
        except TargetError as error:
            assert error.code == ErrorCode.FAILED
            return False

    until(freezes)


def test_a_freeze_holds_commands_and_ends(served: Served) -> None:
    served.go_on()
    link = ToolLink(served.folder / "control", "test", 30.0)
    frozen(link, 20_000)
    before = [len(each.answered) for each in served.clients]
    other = ToolLink(served.folder / "control", "test", 30.0)
    with pytest.raises(TargetError, match="frozen already"):
        ask_freeze(other, 20_000)
    assert other.ask(Type.THAW)["lasted"] is False  # it is not the other's
    after = [len(each.answered) for each in served.clients]
    assert all(now <= then + 1 for now, then in zip(after, before, strict=True))
    assert link.ask(Type.THAW)["lasted"] is True
    served.go_on()
    frozen(link, 20_000)
    link.close()
    served.go_on()  # it thawed with the connection
    frozen(other, 50)
    served.go_on()  # it thawed by itself
    assert other.ask(Type.THAW)["lasted"] is False
    with pytest.raises(TargetError, match="this target serves the store"):
        ask_freeze(other, 50, "00" * 20)
    other.close()


def test_data_alone_waits(folder: Path) -> None:
    """A WRITE inside an object needs no transaction. It waits nevertheless, and a READ does not."""
    harness = Harness(
        program(), {"dir": folder / "store", "control": folder / "control"}, folder / "log"
    )
    osd = harness.osd
    one, other = (osd.create(osd.create_partition()) for _ in range(2))
    for obj in (one, other):
        osd.write(obj, 0, b"before")
        osd.flush(obj)
        osd.write(obj, 0, b"before")  # the first one after a flush changes the record
    link = ToolLink(folder / "control", "test", 30.0)
    frozen(link, 20_000)
    written = threading.Event()

    def write() -> None:
        osd.write(one, 0, b"during")
        written.set()

    thread = threading.Thread(target=write)
    thread.start()
    assert bytes(osd.read(other, 0, 6)) == b"before"
    assert not written.wait(0.3)  # time to go wrong in; the test is right without
    assert link.ask(Type.THAW)["lasted"] is True
    assert written.wait(60)
    thread.join()
    link.close()
    harness.finish()


def test_a_pause_that_is_too_short_takes_nothing(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is copied only when the store has thawed by itself and clients have changed it."""
    copy = Copier.copy_database

    def late(copier: Copier) -> int:
        served.go_on()
        return copy(copier)

    monkeypatch.setattr(Copier, "copy_database", late)
    words = ["make", str(served.backups), *served.words, "--pause", "50ms"]
    result = run(backup_commands.backup, *words)
    assert result.exit_code == 1 and "could not be copied within 50 ms" in result.output
    assert names(served.backups) == []
    assert not list(served.backups.glob("*.partial"))


@pytest.mark.tgtd
def test_as_people_run_it() -> None:
    """`osd target serve` by its user; the tool finds the target by itself."""
    if why := missing():
        pytest.skip(why)
    with Serving("--no-sandboxes") as serving, pyosd.connect(serving.url) as osd:
        obj = osd.create(osd.create_partition())
        osd.write(obj, 0, b"precious")
        backups = serving.folder / "backups"
        osd_program = Path(sys.executable).parent / "osd"
        command: list[str | Path] = [
            osd_program,
            "target",
            "backup",
            "make",
            backups,
            "--data",
            serving.data,
        ]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert "served, paused" in done.stdout
        osd.write(obj, 0, b"spoilt!!")
        owner = serving.data.stat().st_uid
        other = serving.folder / "other"
        command = [osd_program, "target", "restore", backups, "--data", other]
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert {path.stat().st_uid for path in (other, *other.rglob("*"))} == {owner}
        with Serving("--no-sandboxes", data=other) as second, pyosd.connect(second.url) as again:
            assert bytes(again.read(obj, 0, 8)) == b"precious"
        with open_roots(other, None) as roots:
            assert roots.main.superblock is not None


@pytest.mark.tgtd
@pytest.mark.sandbox
def test_jobs_and_a_manager(tmp_path: Path) -> None:
    """The manager keeps its place, jobs go on, and a job that had ended is in the backup as it ended."""
    if why := missing() or sandboxes_missing():
        pytest.skip(why)
    osd_program = Path(sys.executable).parent / "osd"
    with Serving(manager=True) as serving, pyosd.connect(serving.url) as osd:
        partition = osd.create_partition()
        stop = threading.Event()
        done: list[ObjectRef] = []

        def work() -> None:
            with pyosd.connect(serving.url) as mine:
                while not stop.is_set():
                    job = submit(mine, "print(1)", zone=ref(partition))
                    job.wait(60)
                    done.append(job.id)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        until(lambda: len(done) >= 20)
        ended = list(done)
        backups, other = serving.folder / "backups", serving.folder / "other"
        made: list[str | Path] = [
            osd_program,
            "target",
            "backup",
            "make",
            backups,
            "--data",
            serving.data,
        ]
        result = subprocess.run(made, check=False, capture_output=True, text=True, timeout=120)
        goal = len(done) + 10
        until(lambda: len(done) >= goal)
        stop.set()
        for thread in threads:
            thread.join(60)
        assert result.returncode == 0, result.stderr
        # One that is stopped for longer than its lease has to ask for its place again.
        displaced = re.findall("no resource manager any more: .*", serving.text())
        assert all(each.endswith("has not been heard of") for each in displaced), displaced
        again: list[str | Path] = [osd_program, "target", "restore", backups, "--data", other]
        subprocess.run(again, check=True, capture_output=True, timeout=120)
        with Serving("--no-sandboxes", data=other) as second, pyosd.connect(second.url) as back:
            states = {Job(back, each).status().state for each in ended}
            assert states == {JobState.COMPLETED}
