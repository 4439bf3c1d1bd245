# SPDX-License-Identifier: GPL-2.0-or-later
"""Files that the target gets by one command when they are closed, and how many commands operations take."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import pytest

from pyosd.errors import NotEmpty
from pyosd.target import Target
from pyosd.types import ObjectRef
from tests.control.peer import Peer
from tests.osdfs.test_files import listed, refused
from tests.serving import Serving
from tests.waiting import until

pytestmark = pytest.mark.tgtd
NEW = os.O_CREAT | os.O_RDWR | os.O_TRUNC
FILES = 20
STORED_S = 1.0
"""Then the target gets a new file although it is open."""


class Commands:
    """Commands of initiators since begin(), by name."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self.begin()

    def begin(self) -> None:
        """Count from here on."""
        self._before = self._now()

    def _now(self) -> dict[str, int]:
        found = dict[str, int]()
        for each in self._peer.snapshot()["commands"]:
            found[each["command"]] = found.get(each["command"], 0) + each["count"]
        return found

    def so_far(self) -> int:
        """How many there were."""
        return sum(self._now().values()) - sum(self._before.values())


@pytest.fixture
def commands(serving: Serving) -> Iterator[Commands]:
    control = Path(serving.description["control"]).parent.parent / "control/socket"
    with Peer(control) as peer:
        yield Commands(peer)


# ---- commands ------------------------------------------------------------------------------------


def test_commands_of_small_files(top: Path, commands: Commands) -> None:
    """With some to spare: attributes are asked for again after a second, of which a busy machine may need
    several."""
    folders, found = (top / f"d{each}" for each in count()), list[int]()

    def taken(work: Callable[[Path], object], paths: Iterable[Path]) -> int:
        commands.begin()
        for each in paths:
            work(each)
        return commands.so_far()

    def sizes(folder: Path) -> None:
        assert [each.stat().st_size for each in os.scandir(folder)] == [1000] * FILES

    def are_few() -> bool:
        folder = next(folders)
        folder.mkdir()
        paths = [folder / f"f{each}" for each in range(FILES)]
        found[:] = (
            taken(lambda path: path.write_bytes(b"x" * 1000), paths),  # LOOKUP, PUT
            taken(sizes, [folder]),
            # LOOKUP if a second has passed, LOOKUP with data
            taken(lambda path: path.read_bytes(), paths),
            taken(lambda path: path.rename(path.with_suffix(".new")), paths),
            taken(lambda path: path.with_suffix(".new").unlink(), paths),
        )
        wanted = (2 * FILES, 0, 2 * FILES, 3 * FILES, 2 * FILES)
        return all(each <= few + 5 for each, few in zip(found, wanted, strict=True))

    until(are_few, lambda: f"few commands: {found}")


def test_absent_names_of_a_directory_that_was_just_made_are_not_asked_for(
    top: Path, target: Target, zone: ObjectRef, commands: Commands
) -> None:
    folder = top / "d"
    folder.mkdir()

    def asks_for_few() -> bool:  # unless a second passes
        commands.begin()
        assert not any((folder / f"f{each}").exists() for each in range(FILES))
        return commands.so_far() <= FILES / 2

    def made() -> bool:
        folder.rmdir()
        folder.mkdir()
        return asks_for_few()

    until(made, "few commands after mkdir")
    (folder / "a").write_bytes(b"1")
    (folder / "a").rename(folder / "b")
    (folder / "c").symlink_to("b")
    os.link(folder / "b", folder / "e")
    assert [(folder / each).exists() for each in "abcef"] == [False, True, True, True, False]
    (folder / "b").unlink()
    assert [(folder / each).exists() for each in "bce"] == [False, False, True]
    assert listed(folder) == ["c", "e"]
    target.fs.write_bytes(f"/{zone}/d/other", b"2")
    with refused(errno.EEXIST):
        os.open(folder / "other", NEW | os.O_EXCL)
    until((folder / "other").exists, "seen after a second")


def test_a_file_that_another_client_makes_is_seen_at_once(
    top: Path, target: Target, zone: ObjectRef
) -> None:
    assert listed(top) == []
    assert not (top / "a").exists()
    target.fs.write_bytes(f"/{zone}/a", b"1")
    assert (top / "a").read_bytes() == b"1"


def test_without_a_cache_absent_names_are_asked_for(
    mounted: Callable[..., Path], target: Target, zone: ObjectRef
) -> None:
    folder = mounted("--cache", "0") / "d"
    folder.mkdir()
    target.fs.write_bytes(f"/{zone}/d/other", b"2")
    assert (folder / "other").read_bytes() == b"2"


# ---- who sees a new file -------------------------------------------------------------------------


@contextlib.contextmanager
def opened(path: Path, flags: int = NEW) -> Iterator[int]:
    fd = os.open(path, flags, 0o640)
    try:
        yield fd
    finally:
        os.close(fd)


def test_a_new_file_is_here_at_once_and_elsewhere_when_it_is_closed(
    top: Path, target: Target, zone: ObjectRef
) -> None:
    path = top / "a"
    with opened(path) as fd:
        os.write(fd, b"12345")
        os.fchown(fd, 1000, 2000)
        os.fchmod(fd, 0o4755)
        assert path.stat().st_size == 5
        assert path.read_bytes() == b"12345"
        os.pwrite(fd, b"end", 7)
        os.ftruncate(fd, 9)
        assert path.read_bytes() == b"12345\0\0en"
        os.utime(fd, ns=(1_000_000_007, 2_000_000_009))
        with refused(errno.EEXIST):
            os.open(path, NEW | os.O_EXCL)
    found = path.stat()
    assert (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid) == (0o4755, 1000, 2000)
    assert (found.st_atime_ns, found.st_mtime_ns) == (1_000_000_007, 2_000_000_009)
    assert target.fs.read_bytes(f"/{zone}/a") == b"12345\0\0en"
    assert found.st_ino == target.fs.info(f"/{zone}/a").object.object_id


def test_a_file_that_is_made_at_once_gets_the_rest_when_it_is_closed(
    top: Path, target: Target, zone: ObjectRef, commands: Commands
) -> None:
    names = (f"a{each}" for each in count())

    def takes_few() -> bool:  # unless a second passes
        name, begun = next(names), time.monotonic()
        path, there = top / name, f"/{zone}/{name}"
        with opened(path, NEW | os.O_EXCL) as fd:
            assert target.fs.info(there).length == 0
            commands.begin()
            os.write(fd, b"12345")
            os.fchown(fd, 1000, 2000)
            os.fchmod(fd, 0o600)
            os.utime(fd, ns=(1_000_000_007, 2_000_000_009))
            assert path.read_bytes() == b"12345"
            found = path.stat()
            assert (found.st_size, found.st_mtime_ns) == (5, 2_000_000_009)
            assert found.st_ino == target.fs.info(there).object.object_id
            in_time = time.monotonic() - begun < STORED_S  # else the target has been read from
        taken = commands.so_far()
        found = path.stat()
        assert (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid) == (0o600, 1000, 2000)
        assert found.st_mtime_ns == 2_000_000_009
        assert found.st_atime_ns == 1_000_000_007 or not in_time
        assert target.fs.read_bytes(there) == b"12345"
        return in_time and taken <= 4  # LOOKUP of this test, WRITE with attributes, times

    until(takes_few, "few commands until it is closed")
    with opened(top / "empty", NEW | os.O_EXCL) as fd:
        os.fchmod(fd, 0o711)
    assert stat.S_IMODE((top / "empty").stat().st_mode) == 0o711


@pytest.mark.parametrize(
    "use", ["fsync", "list", "link", "rename", "xattr", "large", "wait", "replaced", "append"]
)
def test_what_stores_a_new_file(top: Path, target: Target, zone: ObjectRef, use: str) -> None:
    path, other, length = top / "d/a", "d/a", 5
    (top / "d").mkdir()
    begun = time.monotonic()
    with opened(path, NEW | os.O_APPEND if use == "append" else NEW) as fd:
        os.write(fd, b"12345")
        may_be_empty = use == "append" or time.monotonic() - begun > STORED_S
        match use:
            case "fsync":
                os.fsync(fd)
            case "list":
                assert listed(top / "d") == ["a"]
            case "link":
                (top / "b").hardlink_to(path)
                other = "b"
            case "rename":
                path.rename(top / "b")
                other = "b"
            case "xattr":
                os.setxattr(path, "user.a", b"1")
            case "large":
                os.pwrite(fd, b"6", 5 << 20)
                os.fsync(fd)
                length = (5 << 20) + 1
            case "wait" | "append":
                until(lambda: target.fs.exists(f"/{zone}/{other}"))
            case "replaced":
                (top / "d/b").write_bytes(b"new")
                (top / "d/b").rename(path)
                length = 3
        assert target.fs.info(f"/{zone}/{other}").length in (length, 0 if may_be_empty else length)
        assert os.pread(fd, 5, 0) == b"12345"
    assert target.fs.info(f"/{zone}/{other}").length == length


def test_a_directory_with_new_files_is_not_empty(top: Path) -> None:
    (top / "d").mkdir()
    (top / "e").mkdir()
    with opened(top / "d/a"), refused(errno.ENOTEMPTY):
        (top / "d").rmdir()
    with opened(top / "d/b"):
        with refused(errno.ENOTEMPTY):
            (top / "e").rename(top / "d")
        (top / "d/b").unlink()
    assert listed(top / "d") == ["a"]


def test_a_new_file_joins_the_one_that_another_client_made(
    top: Path, target: Target, zone: ObjectRef
) -> None:
    numbers = count()

    def joins(flags: int, content: bytes) -> bool:
        name, begun = f"a{next(numbers)}", time.monotonic()
        with opened(top / name, flags) as fd:
            target.fs.write_bytes(f"/{zone}/{name}", b"another")
            in_time = time.monotonic() - begun < STORED_S
            other = target.fs.info(f"/{zone}/{name}").object
            os.write(fd, b"mine")
        if in_time:  # else the new file may have been there first
            assert target.fs.info(f"/{zone}/{name}").object == other
            assert target.fs.read_bytes(f"/{zone}/{name}") == content
            assert (top / name).read_bytes() == content
        return in_time

    for flags, content in ((NEW, b"mine"), (NEW ^ os.O_TRUNC, b"mineher")):
        until(partial(joins, flags, content), "the other client is never in time")


def test_what_cannot_be_stored_is_reported_at_close(
    top: Path, target: Target, zone: ObjectRef
) -> None:
    path = top / "d/a"

    def without_directory() -> int | None:
        path.parent.mkdir(exist_ok=True)
        fd = os.open(path, NEW)
        os.write(fd, b"data")
        try:
            target.remove_directory(zone, "d")
        except NotEmpty:  # the file was stored after a second
            os.close(fd)
            path.unlink()
            return None
        return fd

    fd = until(without_directory, "the other client is never in time")
    with pytest.raises(OSError, match=rf"\[Errno ({errno.ENOENT}|{errno.ESTALE})\]"):
        os.fsync(fd)
    with pytest.raises(OSError, match=rf"\[Errno ({errno.ENOENT}|{errno.ESTALE})\]"):
        os.close(fd)


# ---- names that other clients move ---------------------------------------------------------------


def test_open_and_chmod_follow_a_name_that_another_client_moves(
    top: Path, target: Target, zone: ObjectRef
) -> None:
    path, moved = top / "a", f"/{zone}/a"
    for number in range(5):
        assert path.exists() == bool(number)
        target.fs.write_bytes(f"/{zone}/next", b"%d" % number)
        target.rename(zone, "next", "a", replace=True)  # another object has the name
        match number:
            case 0 | 1:
                assert path.read_bytes() == b"%d" % number
            case 2:
                path.chmod(0o600)
                assert (
                    target.get_attribute(target.fs.resolve(moved), 0xF001_0000, 1)[2:4]
                    == b"\x81\x80"
                )
            case 3:
                os.truncate(path, 0)
                assert target.fs.info(moved).length == 0
            case 4:
                path.write_bytes(b"written")
                assert target.fs.read_bytes(moved) == b"written"
    target.fs.unlink(moved)
    with refused(errno.ENOENT):
        path.read_bytes()


def test_xattrs_come_with_names(top: Path, commands: Commands) -> None:
    path = top / "a"
    path.write_bytes(b"1")
    os.setxattr(path, "user.small", b"1")
    os.setxattr(path, "user.large", bytes(3000))
    path.stat()
    commands.begin()
    for _ in range(10):
        assert os.getxattr(path, "user.small") == b"1"
    assert len(os.getxattr(path, "user.large")) == 3000
    os.removexattr(path, "user.large")
    assert os.listxattr(path) == ["user.small"]
