# SPDX-License-Identifier: GPL-2.0-or-later
"""The two tiers on block devices that the kernel throttles: loop devices, limited for one control group by
the blkio controller of cgroup v1.  Bytes go past the page cache (--io direct), but in the store that has
nothing else: there what is read is evicted first, and then read again.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.stats import REPORTED, Row, at_least, missing, row_of_pairs
from bench.tier_places import (
    CACHE,
    HDD,
    MEMORY,
    MEMORY_LEAST,
    SSD,
    TIERS,
    Place,
    pieces_of,
    place,
)

BLKIO = Path("/sys/fs/cgroup/blkio")
IMAGE_BYTES = 4 << 30
READ_AHEAD_KIB = 4096
THROTTLE_S = 0.2
KIB, MIB, HEAD = 1 << 10, 1 << 20, 2 << 20
SIZES = {4 * KIB: 64, 64 * KIB: 64, 512 * KIB: 128, HEAD: 32, 8 * MIB: 8, 64 * MIB: 1}
"""Objects of a sample by size: a throttle lets what it allows in 100 ms pass at once."""
QUICK_SIZES = (4 * KIB, HEAD, 8 * MIB)


AGAIN = "again"
NAMES = {
    SSD: "all on the SSD",
    HDD: "all on the hard disk",
    CACHE: "all on the hard disk behind the page cache, which has none of it when it is read",
    AGAIN: "all on the hard disk behind the page cache, which has all of it",
}


class Unavailable(Exception):
    """This host cannot do it; the text says why."""


@dataclass(frozen=True)
class Limits:
    """Bytes a second of reads and writes, and requests a second of either."""

    read_bytes_s: int
    write_bytes_s: int
    requests_s: int


# The kernel asks for a MiB in two requests: with fewer of them the hard disk had half its rate.
LIMITS = {SSD: Limits(275_000_000, 150_000_000, 5000), HDD: Limits(65_000_000, 65_000_000, 130)}
METHOD = (
    "loop devices throttled by blkio: 65 MB/s and 130 requests/s; 275/150 MB/s and 5000 requests/s"
)


def run(*command: str | Path) -> str:
    """Raises: Unavailable: it fails."""
    done = subprocess.run(
        [str(each) for each in command], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Unavailable(f"{command[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def check_host() -> None:
    """Raises: Unavailable."""
    if os.geteuid() != 0:
        raise Unavailable("needs root, for loop devices and control groups")
    if not (BLKIO / "blkio.throttle.read_bps_device").exists() and not any(
        BLKIO.glob("*/blkio.throttle.read_bps_device")
    ):
        raise Unavailable(f"no blkio throttle of cgroup v1 at {BLKIO}")
    for program in ("losetup", "mkfs.ext4", "mount"):
        if shutil.which(program) is None:
            raise Unavailable(f"no {program}")


@contextlib.contextmanager
def disk(folder: Path, name: str) -> Iterator[tuple[Path, str]]:
    """A fresh file system on a loop device.  Yields: where it is mounted, and the device's number."""
    image, mounted = folder / f"{name}.image", folder / name
    mounted.mkdir()
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    loop = run("losetup", "--find", "--show", image)
    try:
        run("mkfs.ext4", "-q", loop)
        queue = Path("/sys/block") / Path(loop).name
        (queue / "queue" / "read_ahead_kb").write_text(str(READ_AHEAD_KIB))
        run("mount", loop, mounted)
        try:
            yield mounted, (queue / "dev").read_text().strip()
        finally:
            run("umount", mounted)
    finally:
        run("losetup", "--detach", loop)


@contextlib.contextmanager
def throttle(devices: dict[str, str]) -> Iterator[Sequence[str]]:
    """A control group with the limits of both devices.  Yields: argv to put before a command's."""
    group = BLKIO / f"iosd-bench-{os.getpid()}"
    group.mkdir()
    try:
        for kind, number in devices.items():
            limits = LIMITS[kind]
            for file, value in (
                ("read_bps", limits.read_bytes_s),
                ("write_bps", limits.write_bytes_s),
                ("read_iops", limits.requests_s),
                ("write_iops", limits.requests_s),
            ):
                (group / f"blkio.throttle.{file}_device").write_text(f"{number} {value}")
        script = f'echo $$ >"{group}/cgroup.procs" && exec "$@"'
        yield ("sh", "-c", script, "sh")
    finally:
        group.rmdir()


@contextlib.contextmanager
def throttled_places() -> Iterator[tuple[dict[str, Place], Path]]:
    """All on the SSD, two tiers, all on the hard disk; and the folder below which all their files are.

    Raises: Unavailable.
    """
    check_host()
    roomy = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= MEMORY_LEAST
    with (
        tempfile.TemporaryDirectory(prefix="iosd-bench-", dir=MEMORY if roomy else None) as name,
        contextlib.ExitStack() as stack,
    ):
        folder = Path(name)
        folder.chmod(0o755)
        disks = {kind: stack.enter_context(disk(folder, kind)) for kind in LIMITS}
        prefix = stack.enter_context(throttle({kind: each[1] for kind, each in disks.items()}))
        fast, slow = (disks[kind][0] for kind in (SSD, HDD))
        direct = ("--io", "direct")
        options = {
            SSD: (fast / "all", direct),
            TIERS: (slow / "tiers", (*direct, "--ssd", str(fast / "heads"))),
            HDD: (slow / "all", direct),
            CACHE: (slow / "cached", ()),
        }
        places = {
            kind: stack.enter_context(place(*more, data=data, prefix=prefix))
            for kind, (data, more) in options.items()
        }
        yield places, folder


def evict(folder: Path) -> None:
    """Write back all data files and take them out of the page cache."""
    for path in folder.glob("data/*/*/*"):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fdatasync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def rows(quick: bool) -> Iterator[Row]:
    """tier_real_read_4k ...: against the SSD, the hard disk, and a store on that with the page cache."""
    try:
        with throttled_places() as (places, folder):
            for size, count in SIZES.items():
                if not quick or size in QUICK_SIZES:
                    yield from size_rows(places, folder, size, count, 1 if quick else 4)
    except Unavailable as error:
        yield missing("tier_real", REPORTED, str(error))


def size_rows(
    places: dict[str, Place], folder: Path, size: int, count: int, rounds: int
) -> Iterator[Row]:
    """All rows of one size."""
    pieces = pieces_of(size, size)
    found: dict[str, dict[str, list[float]]] = {"write": {}, "read": {}, AGAIN: {}}
    for number in range(rounds + 1):  # the first does not count
        for kind in list(places) if number % 2 else reversed(places):
            repeats = 5 if size <= 64 * KIB and kind in (SSD, TIERS) else 1
            figures = [timed(places[kind], kind, folder, count, pieces) for _ in range(repeats)]
            for direction, values in zip(found, zip(*figures, strict=True), strict=True):
                if number and values[0]:
                    found[direction].setdefault(kind, []).append(statistics.median(values))
    label = f"{size >> 20}m" if size >= MIB else f"{size >> 10}k"
    in_head = size <= HEAD
    aims = {SSD: at_least(0.95)} if in_head else {HDD: at_least(0.98)}
    again = found.pop(AGAIN)
    found["read"][AGAIN] = again[CACHE]
    for direction, by_kind in found.items():
        for baseline, words in NAMES.items():
            if baseline in by_kind:
                method = (
                    f"{direction} of {count} objects of {size} bytes; {METHOD}; two tiers / {words}"
                )
                pairs = list(zip(by_kind[TIERS], by_kind[baseline], strict=True))
                suffix = "" if baseline == SSD else f"_{baseline}"
                row_id = f"tier_real_{direction}_{label}{suffix}"
                aim = aims.get(baseline, REPORTED)
                yield row_of_pairs(row_id, pairs, aim, method, unit="MB/s")


def timed(
    each: Place, kind: str, folder: Path, count: int, pieces: Sequence[tuple[int, int]]
) -> tuple[float, float, float]:
    """MB/s of new objects written, then read, then read again where the page cache has them (else 0)."""
    objects = each.make(count)
    time.sleep(THROTTLE_S)  # each begins with as much to spare
    written = each.write(objects, pieces)
    if kind == CACHE:
        evict(folder / HDD / "cached")
    time.sleep(THROTTLE_S)
    read = each.read(objects, pieces)
    again = each.read(objects, pieces) if kind == CACHE else 0.0
    return written / 1e6, read / 1e6, again / 1e6
