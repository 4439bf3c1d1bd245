# SPDX-License-Identifier: GPL-2.0-or-later
"""The target ends in the middle: operations wait or fail, and work again when it is back."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from pyosd.types import ref
from tests.machine import unavailable, without_fuse
from tests.osdfs.conftest import MountedFiles
from tests.osdfs.test_files import refused
from tests.osdfs.test_small_files import STORED_S
from tests.serving import Serving, missing
from tests.waiting import until

pytestmark = pytest.mark.tgtd
ROUNDS = 3


@pytest.fixture
def own() -> Iterator[Serving]:
    """A target that may be killed."""
    for layer, why in (("tgtd", missing()), ("fuse", without_fuse())):
        if why:
            unavailable(layer, why)
    served = Serving("--no-sandboxes")
    try:
        yield served
    finally:
        served.stop(check=False)


def fails() -> pytest.RaisesExc[OSError]:
    return refused(errno.EIO)


def is_told(act: Callable[[], object]) -> bool:
    """Whether it fails because the target is away."""
    try:
        act()
    except OSError as error:
        assert error.errno == errno.EIO, error
        return True
    return False


def partition_of(serving: Serving) -> str:
    with serving.connect() as target:
        return str(ref(target.create_partition()))


def test_what_was_closed_is_there_after_kills(own: Serving, seed: int) -> None:
    """A command on names whose fate is unknown fails with EIO; then the file is old, new or absent."""
    choices, stop = random.Random(seed), threading.Event()
    contents = dict[str, set[bytes | None]]()
    done = failed = 0

    def work(top: Path) -> None:
        nonlocal done, failed
        while not stop.is_set():
            name, data = f"f{choices.randrange(20)}", choices.randbytes(choices.randrange(300_000))
            held = contents.setdefault(name, {None})
            try:
                if choices.random() < 0.2:
                    held.add(None)
                    (top / name).unlink(missing_ok=True)
                    contents[name] = {None}
                    continue
                held.add(data)
                (top / "new").write_bytes(data)
                (top / "new").rename(top / name)
                contents[name] = {data}
                done += 1
            except OSError as error:
                assert error.errno in (errno.EIO, errno.ENOENT), error
                failed += 1

    def goes_on() -> None:
        known = done + 1  # one may be under way
        until(lambda: done > known)

    files = MountedFiles(own.url, f"/{partition_of(own)}")
    with files as top:
        worker = threading.Thread(target=work, args=(top,))
        worker.start()
        try:
            for _ in range(ROUNDS):
                own.kill("tgtd")
                own.restarted()
                goes_on()
                time.sleep(choices.uniform(0.2, 0.5))  # work goes on meanwhile
            until(lambda: len(contents) > 5, "several files")
        finally:
            stop.set()
            worker.join(60)
        assert not worker.is_alive()
        for name, held in contents.items():
            path = top / name
            assert (path.read_bytes() if path.exists() else None) in held, name
    assert failed <= 2 * ROUNDS, files.text()


def test_one_file_is_written_through_a_kill(own: Serving) -> None:
    """Data commands are sent again: the program does not notice."""
    data = os.urandom(40 << 20)
    with MountedFiles(own.url, f"/{partition_of(own)}") as top, (top / "a").open("wb") as file:
        for at in range(0, len(data), 1 << 20):
            file.write(data[at : at + (1 << 20)])
            if at == 10 << 20:
                own.kill("tgtd")
        file.flush()
        os.fsync(file.fileno())
        own.restarted()
        assert (top / "a").read_bytes() == data


def test_a_target_that_stays_away(own: Serving) -> None:
    """Every operation fails in time, also those at the same time, and the file system is unmounted."""
    files = MountedFiles(own.url, f"/{partition_of(own)}", "--patience", "2s")
    with files as top:
        (top / "a").write_bytes(b"1")
        begun = time.monotonic()
        file = (top / "b").open("wb", buffering=0)
        own.kill_all()
        told = [is_told(partial(file.write, b"lost"))]
        may_be_stored = time.monotonic() - begun > STORED_S
        told += [is_told(partial(os.fsync, file.fileno())), is_told(file.close)]
        # What is lost of a stored file is told once, perhaps by the write; without an object there is
        # nothing to close either.
        assert any(told) if may_be_stored else told == [False, True, True]
        begun = time.monotonic()
        for _ in range(20):
            with fails():
                (top / "a").read_bytes()
        assert time.monotonic() - begun < 20
        assert "the target is away" in files.text()


def test_pages_that_are_lost_after_the_last_close_are_logged(own: Serving) -> None:
    """mmap.mmap() would hold the file open by another descriptor."""
    libc, size = ctypes.CDLL(None), 64 << 10
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    files = MountedFiles(own.url, f"/{partition_of(own)}", "--patience", "2s")
    with files as top:
        (top / "a").write_bytes(bytes(size))
        fd = os.open(top / "a", os.O_RDWR)
        pages = libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
        os.close(fd)
        ctypes.memset(pages, 1, size)
        own.kill_all()
        libc.munmap(pages, size)
        until(lambda: "are lost: the target is away" in files.text(), files.text)


def test_the_first_operation_after_a_restart_connects_anew(own: Serving) -> None:
    files = MountedFiles(own.url, f"/{partition_of(own)}")
    with files as top:
        (top / "a").write_bytes(b"1")
        own.kill("tgtd")
        own.restarted()
        assert (top / "a").read_bytes() == b"1"
