# SPDX-License-Identifier: GPL-2.0-or-later
"""A store that cannot be opened, fills up, or fails at its n-th call."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.errors import OSDError, Unreachable
from pyosd.functions.manifest import ManifestNumber
from pyosd.types import AttributeId, AttributeValue, ObjectRef, PartitionId
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists, Request
from tests.conftest import MakeHarness
from tests.expect import INTERNAL, MEDIUM, QUOTA, check
from tests.fault.history import (
    GREEN,
    SENSE_KEYS,
    STEPS,
    acknowledged,
    consistent,
    history,
    run_history,
)
from tests.harness import StartFailed, program
from tests.machine import unavailable

NOBODY = 65534
DISK_MIB = 768
LARGE = 16 << 20


def says(error: pytest.ExceptionInfo[StartFailed], *words: str) -> None:
    """The message is one a person can act on."""
    text = str(error.value)
    for word in words:
        assert word in text, text
    assert "assert" not in text.lower()


# ---- what the log says ----


def test_cause_of_an_internal_failure_is_logged(make_harness: MakeHarness, tmp_path: Path) -> None:
    """Also beside an initiator whose refused commands use up what may be logged of these."""
    harness = make_harness()
    osd, function = harness.osd, harness.osd.create(harness.osd.create_partition(PartitionId(0x12)))
    (tmp_path / "store" / "seal").symlink_to("seal")
    for _ in range(50):
        with contextlib.suppress(OSDError):
            osd.set_attributes(function, [AttributeValue(Page.VERSION, 1, b"read only")])
    with pytest.raises(OSDError) as error:
        osd.get_attributes(function, [AttributeId(Page.FUNCTION, ManifestNumber.BOX_KEY)])
    assert (error.value.asc, error.value.ascq) == (INTERNAL.asc, INTERNAL.ascq)
    log = harness.log.read_text()
    assert "internal failure: a system call on the store failed: Too many levels" in log
    assert "GET ATTRIBUTES (0x12/0x10000): internal failure; the cause is in the log" in log


# ---- opening ----


def test_second_opener_is_refused(make_harness: MakeHarness, tmp_path: Path) -> None:
    first = make_harness()
    obj = first.osd.create_and_write(first.osd.create_partition(), b"still there")
    with pytest.raises(StartFailed) as error:
        make_harness()
    says(error, str(tmp_path / "store"))
    assert bytes(first.osd.read(obj, 0, 20)) == b"still there"
    first.restart()
    assert bytes(first.osd.read(obj, 0, 20)) == b"still there"


def test_absent_directory_is_made_or_refused(make_harness: MakeHarness, tmp_path: Path) -> None:
    with pytest.raises(StartFailed) as error:
        make_harness(dir=tmp_path / "no" / "such" / "place")
    says(error, "no/such/place")


def test_directory_is_a_file(make_harness: MakeHarness, tmp_path: Path) -> None:
    (tmp_path / "store").write_text("not a folder")
    with pytest.raises(StartFailed) as error:
        make_harness()
    says(error, str(tmp_path / "store"))


def test_somebody_elses_directory(make_harness: MakeHarness, tmp_path: Path) -> None:
    """A folder with files that are not ours is never touched."""
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "thesis.tex").write_text("years of work")
    with pytest.raises(StartFailed) as error:
        make_harness()
    says(error, str(tmp_path / "store"))
    assert [each.name for each in (tmp_path / "store").iterdir()] == ["thesis.tex"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to become nobody")
def test_unreadable_directory(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir(mode=0o700)
    with tempfile.TemporaryDirectory(prefix="iosd-test-") as name:
        Path(name).chmod(0o755)
        done = subprocess.run(
            [str(shutil.copy(program(), name)), f"dir={folder}"],
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert done.returncode == 3
    assert str(folder) in done.stderr or "store" in done.stderr
    assert "ermission" in done.stderr


def test_lost_file_is_not_taken_for_zeros(make_harness: MakeHarness, tmp_path: Path) -> None:
    """Neither read nor copied, and a flush does not say that its bytes are stored."""
    harness = make_harness()
    obj = harness.osd.create_and_write(harness.osd.create_partition(), b"x" * 9000)
    harness.finish()
    (lost,) = (tmp_path / "store" / "data").glob("*/*/*h")
    lost.unlink()
    osd = make_harness().osd
    for request in (
        rq.read(obj, 0, 10),
        rq.flush(obj),
        rq.copy_user_object(obj, obj.partition_id),
        rq.punch(obj, 0, 10),
        rq.write(obj, 10, b"y"),
    ):
        check(osd.reply(request), MEDIUM)
    osd.write(obj, 0, b"y" * 9000)
    assert osd.read(obj, 0, 9001) == b"y" * 9000


def test_lost_file_of_an_object_that_was_written_at_a_crash(
    make_harness: MakeHarness, tmp_path: Path
) -> None:
    """Its bytes were stored before, so it does not become an empty object."""
    harness = make_harness()
    obj = harness.osd.create_and_write(harness.osd.create_partition(), b"x" * 9000)
    harness.osd.flush(obj)
    harness.osd.write(obj, 9000, b"y")
    harness.kill()
    (lost,) = (tmp_path / "store" / "data").glob("*/*/*h")
    lost.unlink()
    for _ in range(2):  # the second start finds what the first one has settled
        harness = make_harness()
        check(harness.osd.reply(rq.read(obj, 0, 10)), MEDIUM)
        harness.finish()
    osd = make_harness().osd
    osd.write(obj, 0, b"z" * 9000)
    assert osd.read(obj, 0, 9001) == b"z" * 9000


def superblock(folder: Path) -> Path:
    """The one small file of the store beside its database."""
    found = [each for each in folder.iterdir() if each.is_file() and each.stat().st_size]
    assert found, sorted(folder.iterdir())
    return min(found, key=lambda each: each.stat().st_size)


def test_damaged_superblock(make_harness: MakeHarness, tmp_path: Path) -> None:
    make_harness().finish()
    path = superblock(tmp_path / "store")
    path.write_bytes(path.read_bytes()[::-1])
    with pytest.raises(StartFailed) as error:
        make_harness()
    says(error, str(tmp_path / "store"))


def test_foreign_database(make_harness: MakeHarness, tmp_path: Path) -> None:
    """The database was replaced by something that is none."""
    make_harness().finish()
    databases = [p for p in (tmp_path / "store").rglob("*.db") if p.is_file()]
    assert databases
    for each in databases:
        each.write_bytes(b"SQLite format 3\0" + bytes(8192))
    with pytest.raises(StartFailed) as error:
        make_harness()
    says(error, str(tmp_path / "store"))


@pytest.mark.parametrize(
    "options",
    [{"workers": 0}, {"workers": "many"}, {"no_such": 1}, {"cache": "12XiB"}, {"durability": "x"}],
    ids=lambda options: next(iter(options)),
)
def test_bad_options(make_harness: MakeHarness, options: dict[str, object]) -> None:
    with pytest.raises(StartFailed) as error:
        make_harness(**options)
    says(error, next(iter(options)))


# ---- a full disk ----


@pytest.fixture
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A file system that is soon full, with room for the ballast; of DISK_MIB unless a test has
    another size."""
    folder = tmp_path / "disk"
    folder.mkdir()
    size = f"size={getattr(request, 'param', DISK_MIB)}m"
    command: list[str | Path] = ["mount", "-t", "tmpfs", "-o", size, "tmpfs", folder]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        unavailable("tgtd", "cannot mount a small tmpfs")
    yield folder
    subprocess.run(["umount", folder], check=True)


def fill(osd: Commands, pid: PartitionId) -> list[ObjectRef]:
    """Objects of LARGE bytes until there is no room for another."""
    filled: list[ObjectRef] = []
    data = b"f" * LARGE
    for _ in range(DISK_MIB):
        obj = osd.create(pid)
        reply = osd.reply(rq.write(obj, 0, data))
        if reply.error:
            check(reply, QUOTA)
            return filled
        filled.append(obj)
    raise AssertionError("more went onto the disk than it holds")


def check_filled(osd: Commands, filled: list[ObjectRef]) -> None:
    data = b"f" * LARGE
    for each in filled:
        assert bytes(osd.read(each, 0, LARGE)) == data  # a view is compared byte by byte


def until_there_is_room(osd: Commands, request: Request) -> None:
    """Removed objects give their blocks back soon, not within the REMOVE."""
    deadline = time.monotonic() + 60
    while (reply := osd.reply(request)).error:
        check(reply, QUOTA)
        assert time.monotonic() < deadline, "two objects removed, and still no room"


@pytest.mark.parametrize("small_disk", [256], indirect=True)
def test_disk_full(small_disk: Path, make_harness: MakeHarness) -> None:
    harness = make_harness(dir=small_disk / "store", cache="4MiB", ballast="64MiB")
    osd = harness.osd
    pid = osd.create_partition()
    filled = fill(osd, pid)
    assert len(filled) > 5
    check_filled(osd, filled)
    osd.remove(filled.pop())
    osd.remove(filled.pop())
    until_there_is_room(osd, rq.set_attributes(filled[0], attributes=AttributeLists((), (GREEN,))))
    obj = osd.create_and_write(pid, b"room again" * 1000)
    assert bytes(osd.read(obj, 0, 10)) == b"room again"
    harness.restart()
    assert harness.osd.get_attribute(filled[0], GREEN.page, GREEN.number) == b"green"


def test_recovery_when_clients_filled_the_disk(small_disk: Path, make_harness: MakeHarness) -> None:
    """The ballast is what recovery needs."""
    harness = make_harness(dir=small_disk / "store", cache="4MiB", ballast="64MiB")
    filled = fill(harness.osd, harness.osd.create_partition())
    harness.kill()
    harness.start()
    check_filled(harness.osd, filled)


def test_recovery_when_others_filled_the_disk(small_disk: Path, make_harness: MakeHarness) -> None:
    harness = make_harness(dir=small_disk / "store", cache="4MiB", ballast="64MiB")
    osd = harness.osd
    pid = osd.create_partition()
    filled = fill(osd, pid)
    acknowledged = 0
    for number in range(20_000):
        value = AttributeValue(Page.APPLICATION, number % 1000 + 1, bytes([number % 256]) * 500)
        request = rq.set_attributes(filled[0], attributes=AttributeLists((), (value,)))
        reply = osd.reply(request)
        if reply.error:
            check(reply, QUOTA)
            break
        acknowledged += 1
    stuffing = small_disk / "stuffing"
    with stuffing.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(65536))
    harness.kill()
    with pytest.raises(StartFailed) as error:
        harness.start()
    says(error, "full", str(small_disk / "store"))
    stuffing.unlink()
    harness.start()
    osd = harness.osd
    check_filled(osd, filled)
    for number in range(max(0, acknowledged - 1000), acknowledged):
        got = osd.get_attribute(filled[0], Page.APPLICATION, number % 1000 + 1)
        assert got == bytes([number % 256]) * 500
    osd.remove(filled[1])
    osd.write(filled[0], 0, b"writable again")


@pytest.mark.parametrize("small_disk", [64], indirect=True)
def test_every_removal_works_on_a_full_disk(small_disk: Path, make_harness: MakeHarness) -> None:
    """Also the one that is the first to find it full."""
    osd = make_harness(dir=small_disk / "store", cache="4MiB", ballast="4MiB").osd
    pid = osd.create_partition()
    objects = [osd.create(pid) for _ in range(100)]
    stuffing = small_disk / "stuffing"
    with stuffing.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(65536))
    for each in objects:
        osd.remove(each)
    assert list(osd.list_objects(pid)) == []


# ---- the n-th call of the store fails ----


SPENT = 20
"""Calls of the store that looking at it makes, before and after the history; about."""


STRIDES = {"memory": 7, "bdb": 19}
"""A run tries every seventh n, or on disk, where each n opens the store twice, every nineteenth.  The seed
chooses the first one; --all-faults (make faults) tries every n."""


Numbers = Callable[[str], Iterator[int]]


@pytest.fixture
def numbers(request: pytest.FixtureRequest, seed: int) -> Numbers:
    """Calls that fail on a backend."""
    every = request.config.getoption("--all-faults")

    def chosen(backend: str) -> Iterator[int]:
        stride = 1 if every else STRIDES[backend]
        return itertools.count(1 + seed % stride, stride)

    return chosen


@pytest.mark.parametrize("backend", ["memory", "bdb"])
def test_nth_call_fails(
    make_harness: MakeHarness, tmp_path: Path, numbers: Numbers, backend: str
) -> None:
    """For one n after another until nothing fires: an error with the right key, no harm done."""
    fired_late = 0
    for n in numbers(backend):
        options: dict[str, object] = {"memory": 1}
        if backend == "bdb":
            options = {"dir": tmp_path / f"store{n}"}
        try:
            harness = make_harness(fault=n, **options)
        except StartFailed as error:
            assert "device" in str(error)
            fired_late = n
            continue
        failed = run_history(harness)
        if failed:
            fired_late = n
        try:
            consistent(harness.osd)
        except OSDError as error:
            assert not failed and error.sense_key in SENSE_KEYS, error
            consistent(harness.osd)  # it fires once
        harness.kill()
        if backend == "bdb":
            again = make_harness(**options)
            consistent(again.osd)
            again.kill()
            shutil.rmtree(tmp_path / f"store{n}")
        if not failed and n > fired_late + SPENT:
            break
        assert n < 2000, "the faults never end"
    assert fired_late > 50, "hardly a call was made to fail"


def test_killed_at_nth_call(make_harness: MakeHarness, tmp_path: Path, numbers: Numbers) -> None:
    """The process dies inside its n-th call of the store: what was answered is there."""
    for n in numbers("bdb"):
        done = 0
        with contextlib.suppress(StartFailed):
            harness = make_harness(fault=n, fault_kill=1, dir=tmp_path / f"store{n}")
            with contextlib.suppress(Unreachable):
                for _ in history(harness.osd):
                    done += 1
            harness.kill()
        again = make_harness(dir=tmp_path / f"store{n}")
        consistent(again.osd)
        acknowledged(again.osd, done)
        again.kill()
        shutil.rmtree(tmp_path / f"store{n}")
        if done == STEPS:
            break
    assert n > 50


def test_recovery_does_not_write_the_log_anew(make_harness: MakeHarness, tmp_path: Path) -> None:
    """Berkeley DB would fill the newest file with zeros up to its 64 MiB; records may end in some."""
    harness = make_harness(dir=tmp_path / "store")
    (log,) = (tmp_path / "store" / "db").glob("log.*")
    length, zeros = log.stat().st_size, AttributeValue(0x10000, 1, bytes(60_000))
    assert length > 60 << 20
    obj = harness.osd.create(harness.osd.create_partition())
    harness.osd.set_attributes(obj, [zeros])
    for _ in range(3):
        harness.kill()
        if log.stat().st_size < length:  # as it was left by recoveries of releases before
            with log.open("ab") as file:
                file.write(bytes(length - log.stat().st_size))
        harness.start()
        assert log.stat().st_size < 4 << 20
        assert harness.osd.get_attribute(obj, 0x10000, 1) == zeros.value
        zeros = AttributeValue(0x10000, 1, bytes(len(zeros.value) + 1))
        harness.osd.set_attributes(obj, [zeros])
