# SPDX-License-Identifier: GPL-2.0-or-later
"""What POSIX says about files and directories, on a mounted partition."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pyosd.target import Target
from pyosd.types import AttributeValue, ObjectRef, ref
from tests.waiting import until

pytestmark = pytest.mark.tgtd
NOREPLACE, EXCHANGE = 1, 2
KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE = 1, 2, 16
LIBC = ctypes.CDLL(None, use_errno=True)


def refused(number: int) -> pytest.RaisesExc[OSError]:
    return pytest.raises(OSError, match=rf"\[Errno {number}\]")


def rename2(old: Path, new: Path, flags: int) -> None:
    if LIBC.renameat2(-100, os.fsencode(old), -100, os.fsencode(new), flags):
        raise OSError(ctypes.get_errno(), "renameat2")


def fallocate(fd: int, mode: int, start: int, length: int) -> None:
    numbers = (ctypes.c_long(start), ctypes.c_long(length))
    if LIBC.fallocate(fd, mode, *numbers):
        raise OSError(ctypes.get_errno(), "fallocate")


def listed(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


# ---- names ---------------------------------------------------------------------------------------


def test_files_and_directories_are_names_and_objects(
    top: Path, target: Target, zone: ObjectRef
) -> None:
    (top / "d/e").mkdir(parents=True)
    (top / "d/e/file").write_bytes(b"some bytes")
    info = target.fs.info(f"/{zone}/d/e/file")
    assert (info.length, info.is_directory) == (10, False)
    assert (top / "d/e/file").stat().st_ino == info.object.object_id
    assert target.fs.read_bytes(f"/{zone}/d/e/file") == b"some bytes"
    assert listed(top / "d") == ["e"]
    target.fs.write_bytes(f"/{zone}/d/other", b"of another client")
    assert listed(top / "d") == ["e", "other"]
    assert (top / "d/other").read_bytes() == b"of another client"
    with refused(errno.ENOTEMPTY):
        (top / "d").rmdir()
    (top / "d/other").unlink()
    with refused(errno.ENOENT):
        (top / "d/other").stat()
    (top / "d/e/file").unlink()
    (top / "d/e").rmdir()
    (top / "d").rmdir()
    assert listed(top) == []
    assert target.fs.ls(f"/{zone}") == []


def test_creating_exclusively_and_over_what_is_there(top: Path) -> None:
    path = top / "a"
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o640))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    with refused(errno.EEXIST):
        os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    path.write_bytes(b"long content")
    path.write_bytes(b"short")
    assert path.read_bytes() == b"short"
    with refused(errno.EEXIST):
        path.mkdir()
    with refused(errno.ENOTDIR):
        (path / "below").write_bytes(b"")
    with refused(errno.EISDIR):
        os.open(top, os.O_WRONLY)
    with refused(errno.ENAMETOOLONG):
        (top / ("n" * 256)).write_bytes(b"")
    (top / ("n" * 255)).write_bytes(b"")


def test_rename(top: Path) -> None:
    (top / "a").write_bytes(b"a")
    (top / "b").write_bytes(b"b")
    with refused(errno.EEXIST):
        rename2(top / "a", top / "b", NOREPLACE)
    rename2(top / "a", top / "b", EXCHANGE)
    assert ((top / "a").read_bytes(), (top / "b").read_bytes()) == (b"b", b"a")
    rename2(top / "a", top / "c", NOREPLACE)
    (top / "c").rename(top / "b")
    assert listed(top) == ["b"]
    assert (top / "b").read_bytes() == b"b"
    (top / "d").mkdir()
    (top / "e/f").mkdir(parents=True)
    (top / "b").rename(top / "e/f/b")
    with refused(errno.ENOTEMPTY):
        (top / "d").rename(top / "e")
    (top / "e").rename(top / "d/e")
    assert (top / "d/e/f/b").read_bytes() == b"b"
    with refused(errno.EINVAL):
        (top / "d").rename(top / "d/e/inside")
    with refused(errno.ENOENT):
        (top / "absent").rename(top / "x")
    (top / "empty").mkdir()
    with refused(errno.EISDIR):
        (top / "d/e/f/b").rename(top / "empty")


def test_a_directory_that_another_client_moves(
    top: Path, mounted: Callable[..., Path], target: Target, zone: ObjectRef
) -> None:
    """Under its old name it is the same directory, until the kernel asks for that name again."""
    strict = mounted("--cache", "0")
    (top / "d").mkdir()
    (top / "d/f").write_bytes(b"old")
    assert listed(strict / "d") == ["f"]
    target.fs.rename(f"/{zone}/d", f"/{zone}/e")
    target.fs.mkdir(f"/{zone}/d")
    target.fs.write_bytes(f"/{zone}/d/f", b"new")
    assert (strict / "d/f").read_bytes() == b"new"
    assert (top / "d/f").read_bytes() in (b"old", b"new")
    until(lambda: (top / "d/f").read_bytes() == b"new", lambda: "the old directory has its name")
    assert (top / "e/f").read_bytes() == b"old"


def test_directories_that_another_client_turns_around(
    mounted: Callable[..., Path], target: Target, zone: ObjectRef
) -> None:
    """The inner one is the outer one now.  A program that has it open gets errors, others find both."""
    target.fs.mkdir(f"/{zone}/outer/inner", parents=True)
    for name in ("outer/f", "outer/inner/g"):
        target.fs.write_bytes(f"/{zone}/{name}", b"")
    top = mounted("--cache", "0")
    inner = os.open(top / "outer/inner", os.O_RDONLY)
    try:
        target.fs.rename(f"/{zone}/outer/inner", f"/{zone}/inner")
        target.fs.rename(f"/{zone}/outer", f"/{zone}/inner/outer")
        with os.scandir(inner) as entries:
            assert sorted(each.name for each in entries) == ["g", "outer"]
        with refused(errno.ELOOP):
            os.stat("outer", dir_fd=inner)
        with refused(errno.ESTALE):
            os.rename("g", top / "g", src_dir_fd=inner)
    finally:
        os.close(inner)
    (top / "inner/outer/f").rename(top / "inner/f")
    assert listed(top / "inner") == ["f", "g", "outer"]


def test_hard_links(top: Path) -> None:
    (top / "d").mkdir()
    (top / "a").write_bytes(b"1")
    (top / "d/b").hardlink_to(top / "a")
    assert (top / "a").stat().st_nlink == 2
    assert (top / "a").samefile(top / "d/b")
    (top / "d/b").write_bytes(b"22")
    assert (top / "a").read_bytes() == b"22"
    with refused(errno.EEXIST):
        (top / "d/b").hardlink_to(top / "a")
    changed = (top / "d/b").stat().st_ctime_ns
    until(lambda: time.time_ns() > changed + 10**6)  # the target's times have milliseconds
    (top / "a").unlink()
    assert (top / "d/b").stat().st_nlink == 1
    assert (top / "d/b").stat().st_ctime_ns > changed
    (top / "c").hardlink_to(top / "d/b")
    (top / "c").rename(top / "d/b")  # two names of one file: both stay
    assert (listed(top), listed(top / "d")) == (["c", "d"], ["b"])


def test_an_open_file_keeps_its_attributes_under_its_other_names(top: Path) -> None:
    with (top / "a").open("wb") as file:
        file.write(b"1")
        file.flush()
        (top / "b").hardlink_to(top / "a")
        (top / "a").unlink()
        os.fchmod(file.fileno(), 0o600)
        (top / "b").rename(top / "c")
        os.fchmod(file.fileno(), 0o640)
        (top / "c").unlink()
        os.fchmod(file.fileno(), 0o711)
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o711


def test_symbolic_links_and_other_kinds(top: Path, mounted: Callable[..., Path]) -> None:
    long = "x/" * 1500 + "end"
    (top / "s").symlink_to("to/nowhere")
    (top / "long").symlink_to(long)
    os.mkfifo(top / "fifo", 0o600)
    again = mounted()
    assert (again / "s").readlink() == Path("to/nowhere")
    assert str((again / "long").readlink()) == long
    assert (again / "s").lstat().st_size == 10
    assert stat.S_ISFIFO((again / "fifo").stat().st_mode)
    kinds = {each.name: each.is_symlink() for each in os.scandir(again)}
    assert kinds == {"s": True, "long": True, "fifo": False}
    with refused(errno.ENOENT):
        (top / "s").read_bytes()


def test_an_open_file_lives_without_a_name(top: Path, target: Target, zone: ObjectRef) -> None:
    (top / "d").mkdir()
    with (top / "d/a").open("w+b") as file, (top / "d/b").open("w+b") as replaced:
        file.write(b"kept")
        file.flush()
        replaced.write(b"replaced")
        replaced.flush()
        (top / "d/a").unlink()
        (top / "d/new").write_bytes(b"new")
        (top / "d/new").rename(top / "d/b")
        assert os.fstat(file.fileno()).st_nlink == 0
        for each, content in ((file, b"kept"), (replaced, b"replaced")):
            each.seek(0)
            assert each.read() == content
            each.write(b" and more")
            each.flush()
            os.fsync(each.fileno())
        (top / "d/b").unlink()
        (top / "d").rmdir()  # the files live elsewhere
    with (top / "two").open("w+b") as file:
        (top / "names").hardlink_to(top / "two")
        (top / "two").unlink()
        assert os.fstat(file.fileno()).st_nlink == 1
        (top / "names").unlink()
        assert os.fstat(file.fileno()).st_nlink == 0
    until(lambda: not target.list_names(zone).entries)


def test_many_entries(top: Path) -> None:
    names = {f"file-{each:04}-with-a-longer-name" for each in range(700)}
    for name in names:
        os.close(os.open(top / name, os.O_CREAT | os.O_WRONLY))
    assert {each.name for each in os.scandir(top)} == names
    with os.scandir(top) as entries:
        sizes = [each.stat().st_size for each in entries]
    assert sizes == [0] * 700


# ---- data ----------------------------------------------------------------------------------------


def test_data_at_offsets(top: Path) -> None:
    content = bytearray(os.urandom((5 << 20) + 17))
    path = top / "large"
    path.write_bytes(content)
    assert path.stat().st_size == len(content)
    with path.open("r+b") as file:
        for at in (0, 1, 4095, 1 << 20, (3 << 20) - 1, len(content) - 3):
            file.seek(at)
            file.write(b"abcdef")
            content[at : at + 6] = b"abcdef"
            file.flush()
            file.seek(max(at - 10, 0))
            assert file.read(30) == content[max(at - 10, 0) :][:30]
        os.fsync(file.fileno())
    assert path.read_bytes() == content
    os.truncate(path, 100)
    assert path.read_bytes() == content[:100]
    os.truncate(path, 5000)
    assert path.read_bytes() == content[:100] + bytes(4900)
    fd = os.open(path, os.O_RDWR)
    os.pwrite(fd, b"far", 1 << 30)
    assert os.fstat(fd).st_size == (1 << 30) + 3
    assert os.pread(fd, 10, (1 << 30) - 5) == bytes(5) + b"far"
    os.close(fd)


@pytest.mark.parametrize("use", ["stat", "unlink", "link", "list"])
def test_data_under_way_are_seen_after_a_use_of_the_name(top: Path, use: str) -> None:
    path = top / "a"
    with path.open("w+b", buffering=0) as file:
        file.write(b"Hello, World!")
        match use:
            case "stat":
                assert path.stat().st_size == 13
            case "unlink":
                path.unlink()
            case "link":
                (top / "b").hardlink_to(path)
            case "list":
                assert [each.stat().st_size for each in os.scandir(top)] == [13]
        assert os.pread(file.fileno(), 20, 0) == b"Hello, World!"


def test_append(top: Path, mounted: Callable[..., Path]) -> None:
    other = mounted()
    with (top / "log").open("ab") as one, (other / "log").open("ab") as two:
        for each in range(50):
            one.write(b"one %d\n" % each)
            two.write(b"two %d\n" % each)
            one.flush()
            two.flush()
    lines = (top / "log").read_bytes().splitlines()
    assert sorted(lines) == sorted(
        b"%s %d" % (who, n) for who in (b"one", b"two") for n in range(50)
    )
    assert [line for line in lines if line.startswith(b"one")] == [b"one %d" % n for n in range(50)]
    assert (top / "log").stat().st_size == sum(len(line) + 1 for line in lines)


def test_memory_maps(top: Path) -> None:
    path = top / "mapped"
    path.write_bytes(bytes(10_000))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as view:
        view[4090:4100] = b"0123456789"
        view.flush()
        assert os.pread(file.fileno(), 10, 4090) == b"0123456789"
    assert path.read_bytes()[4088:4102] == b"\0\x000123456789\0\0"


def test_holes(top: Path) -> None:
    path = top / "holes"
    path.write_bytes(b"x" * 20_000)
    fd = os.open(path, os.O_RDWR)
    fallocate(fd, PUNCH_HOLE | KEEP_SIZE, 5000, 10)
    fallocate(fd, PUNCH_HOLE | KEEP_SIZE, 19_000, 10_000)
    fallocate(fd, ZERO_RANGE, 19_990, 30)
    expected = b"x" * 5000 + bytes(10) + b"x" * 13_990 + bytes(1020)
    assert path.read_bytes() == expected
    with refused(errno.EOPNOTSUPP):  # the target reserves no space
        fallocate(fd, 0, 0, 1 << 20)
    os.close(fd)


# ---- attributes ----------------------------------------------------------------------------------


def test_attributes_are_those_of_the_object(
    top: Path, mounted: Callable[..., Path], target: Target, zone: ObjectRef
) -> None:
    path = top / "a"
    path.write_bytes(b"1")
    path.chmod(0o4711)
    os.chown(path, 1000, 2000)
    path.chmod(0o2711)
    os.utime(path, ns=(123456789_012345678, -5_000_000_001))
    found = (mounted() / "a").stat()
    assert (stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid) == (0o2711, 1000, 2000)
    assert (found.st_atime_ns, found.st_mtime_ns) == (123456789_012345678, -5_000_000_001)
    value = target.get_attribute(target.fs.resolve(f"/{zone}/a"), 0xF001_0000, 1)
    assert [int.from_bytes(value[at : at + 4]) for at in (0, 4, 8)] == [0o102711, 1000, 2000]
    now = time.time()
    path.write_bytes(b"2")
    assert abs(path.stat().st_mtime - now) < 60
    assert abs(path.stat().st_ctime - now) < 60


def test_times_after_2262_are_possible(top: Path) -> None:
    """More nanoseconds than 64 bits hold."""
    late = 10**10
    with (top / "a").open("wb", buffering=0) as file:
        for _ in range(2):  # the second time with data that are newer than the kernel's attributes
            file.write(b"1")
            os.utime(file.fileno(), (late, late))
            assert os.fstat(file.fileno()).st_mtime == late
    assert (top / "a").stat().st_mtime == late


def test_objects_of_other_clients_have_attributes(
    top: Path, target: Target, zone: ObjectRef
) -> None:
    target.fs.write_bytes(f"/{zone}/plain", b"12345")
    target.fs.mkdir(f"/{zone}/folder")
    odd = target.fs.write_bytes(f"/{zone}/odd", b"")
    target.set_attributes(odd, [AttributeValue(0xF001_0000, 1, b"not ours")])
    assert (top / "plain").stat().st_mode == stat.S_IFREG | 0o644
    assert (top / "plain").stat().st_uid == os.getuid()
    assert (top / "folder").stat().st_mode == stat.S_IFDIR | 0o755
    assert (top / "odd").stat().st_mode == stat.S_IFREG | 0o644


def test_extended_attributes(top: Path, mounted: Callable[..., Path]) -> None:
    path, again = top / "a", mounted()
    path.write_bytes(b"")
    os.setxattr(path, "user.one", b"1")
    os.setxattr(again / "a", "user.two", b"\0" * 1000)
    assert os.getxattr(path, "user.two") == bytes(1000)
    assert sorted(os.listxattr(path)) == ["user.one", "user.two"]
    with refused(errno.EEXIST):
        os.setxattr(path, "user.one", b"", os.XATTR_CREATE)
    with refused(errno.ENODATA):
        os.setxattr(path, "user.none", b"", os.XATTR_REPLACE)
    with refused(errno.ENOSPC):
        os.setxattr(path, "user.large", bytes(65_000))
    os.removexattr(path, "user.two")
    assert os.listxattr(again / "a") == ["user.one"]
    with refused(errno.ENODATA):
        os.getxattr(path, "user.two")


def test_a_write_takes_privileges_away(top: Path) -> None:
    path = top / "program"
    path.write_bytes(b"1")
    path.chmod(0o6777)
    child = os.fork()
    if child == 0:
        os.setresuid(65534, 65534, 65534)
        with path.open("ab") as file:
            file.write(b"2")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert stat.S_IMODE(path.stat().st_mode) == 0o777


def test_space(top: Path) -> None:
    found = os.statvfs(top)
    assert found.f_bavail * found.f_frsize > 1 << 20
    assert found.f_namemax == 255


# ---- tops ----------------------------------------------------------------------------------------


def test_a_directory_as_top(top: Path, mounted: Callable[..., Path]) -> None:
    (top / "d/e").mkdir(parents=True)
    below = mounted(path="/d")
    (below / "e/a").write_bytes(b"1")
    (below / "e/a").rename(below / "b")
    (below / "e/c").hardlink_to(below / "b")
    with (below / "b").open("rb") as file:
        (below / "b").unlink()
        (below / "e/c").unlink()
        assert file.read() == b"1"
    assert listed(top / "d/e") == []


def test_the_root_has_the_partitions(
    mounted: Callable[..., Path], target: Target, zone: ObjectRef
) -> None:
    other = ref(target.create_partition())
    name = f"named-{other.partition_id:x}"
    target.link(ref(), name, other)
    target.fs.write_bytes(f"/{name}/a", b"1")
    root = mounted(path="/..")
    assert {str(zone), name} <= set(listed(root))
    assert (root / name / "a").read_bytes() == b"1"
    (root / str(zone) / "b").write_bytes(b"2")
    with refused(errno.EXDEV):
        (root / str(zone) / "b").rename(root / name / "b")
    with refused(errno.EPERM):
        (root / "directory").mkdir()
    with refused(errno.ENOENT):
        (root / "absent").stat()
    inodes = {(root / str(zone) / "b").stat().st_ino, (root / name / "a").stat().st_ino}
    assert len(inodes) == 2
