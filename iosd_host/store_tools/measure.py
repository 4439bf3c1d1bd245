# SPDX-License-Identifier: GPL-2.0-or-later
"""How fast the device below a folder is: access time, and throughput by size of the transfer.

By direct I/O on a file without a name, which is gone however this ends.  Time and space are bounded.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from iosd_host.common.exit_codes import EXIT_FAILED
from iosd_host.store_tools.opening.folders import Refused, refusal

__all__ = ["BLOCKS", "MeasuredDevice", "Rate", "measure"]

ACCESS_BYTES = 4 << 10
BLOCKS = tuple(ACCESS_BYTES << (2 * step) for step in range(7))
"""Sizes of transfers: 4 KiB to 16 MiB."""
LARGEST = BLOCKS[-1]
FILL_BYTES = 1 << 20
ACCESSES = 1000  # at most
IN_MEMORY = ("tmpfs", "ramfs")

Move = Callable[[int, Sequence[memoryview], int], int]
"""os.preadv or os.pwritev."""


@dataclass(frozen=True)
class Rate:
    """Bytes a second of transfers of one size, one after the other through the file."""

    block_bytes: int
    read_bytes_s: float
    write_bytes_s: float


@dataclass(frozen=True)
class MeasuredDevice:
    """The measurements of the device of a folder.

    access_s: median time of reading 4 KiB anywhere in a file of file_bytes, of so many accesses.
    """

    path: Path
    file_system: str
    number: int
    access_s: float
    accesses: int
    file_bytes: int
    rates: tuple[Rate, ...]

    @property
    def best_write(self) -> Rate:
        """The size at which writes are fastest."""
        return max(self.rates, key=lambda rate: rate.write_bytes_s)


def file_system_of(path: Path) -> str:
    """The type of the file system a folder is on; empty: not known."""
    device = path.stat().st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        mount, _, rest = line.partition(" - ")
        if mount.split()[2] == wanted:
            return rest.split()[0]
    return ""


@contextlib.contextmanager
def scratch(folder: Path) -> Iterator[int]:
    """A descriptor for direct I/O.  Raises: Refused: the file system knows none."""
    try:
        descriptor = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno in (errno.EINVAL, errno.EOPNOTSUPP, errno.EISDIR):
            raise no_direct(folder, os.strerror(error.errno)) from None
        raise refusal(error, folder) from None
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def no_direct(folder: Path, why: str) -> Refused:
    """Figures of the page cache would say nothing of a device."""
    return Refused(EXIT_FAILED, f"'{folder}' cannot be measured: no direct I/O there ({why})")


def measure(folder: Path, seconds: float, space: int) -> MeasuredDevice:
    """Measure the device below a folder.

    Args: seconds: about how long it may take.  space: bytes of the file, at least 16 MiB; no more than
        a quarter of what is free is taken.
    Raises: Refused: no direct I/O, or no room.
    """
    kind = file_system_of(folder)
    if kind in IN_MEMORY:
        raise no_direct(folder, f"{kind} is memory")
    with scratch(folder) as descriptor, mmap.mmap(-1, LARGEST) as buffer:
        buffer.write(random.Random(1).randbytes(LARGEST))
        wanted = min(space, os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize // 4)
        if wanted < LARGEST:
            raise Refused(
                EXIT_FAILED, f"'{folder}' has no room for a file of 16 MiB to measure with"
            )
        try:
            with memoryview(buffer) as view:
                length = fill(descriptor, view, wanted // LARGEST * LARGEST, seconds / 4)
                times = accesses(descriptor, view[:ACCESS_BYTES], length, seconds / 4)
                rates = throughput(descriptor, view, length, seconds / 2)
        except OSError as error:
            raise refusal(error, folder) from None
        number = os.fstat(descriptor).st_dev
    return MeasuredDevice(folder, kind, number, statistics.median(times), len(times), length, rates)


def fill(descriptor: int, view: memoryview, wanted: int, seconds: float) -> int:
    """Write the file, until time is up but 16 MiB at least.  Returns: its length, in 16 MiB."""
    start = time.perf_counter()
    length = 0
    while length < wanted:
        at = length % LARGEST
        length += os.pwritev(descriptor, [view[at : at + FILL_BYTES]], length)
        if length % LARGEST == 0 and time.perf_counter() - start > seconds:
            break
    os.fdatasync(descriptor)
    return length


def accesses(descriptor: int, view: memoryview, length: int, seconds: float) -> list[float]:
    """Seconds of reads at random places."""
    rng = random.Random(2)
    start = time.perf_counter()
    times: list[float] = []
    while len(times) < ACCESSES:
        offset = rng.randrange(length // ACCESS_BYTES) * ACCESS_BYTES
        began = time.perf_counter()
        os.preadv(descriptor, [view], offset)
        ended = time.perf_counter()
        times.append(ended - began)
        if ended - start > seconds:
            break
    return times


def throughput(descriptor: int, view: memoryview, length: int, seconds: float) -> tuple[Rate, ...]:
    """Reads and writes of each size."""
    each = seconds / (2 * len(BLOCKS))

    def rate_of(move: Move, piece: memoryview) -> float:
        """One transfer after the other, through the file and from its start again."""
        start = time.perf_counter()
        done = 0
        while True:
            done += move(descriptor, [piece], done % length)
            took = time.perf_counter() - start
            if took > each:
                return done / took

    return tuple(
        Rate(block, rate_of(os.preadv, view[:block]), rate_of(os.pwritev, view[:block]))
        for block in BLOCKS
    )
