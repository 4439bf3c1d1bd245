# SPDX-License-Identifier: GPL-2.0-or-later
"""Files of a target by their paths, target.fs and target.open(), by both faces where both have it."""

from __future__ import annotations

import csv
import json
import os
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pyosd import connect, errors
from pyosd.commands import names
from pyosd.commands.dialogue import Sleep
from pyosd.fs.paths import fixed_part, join, split
from pyosd.fs.transfer import FileMoved, Incoming, Outgoing, differs, get_files, put_files
from pyosd.osd._paths.patterns import matcher
from pyosd.target import Target
from pyosd.types import ObjectRef, ref
from tests.client.faces import Face

pytestmark = pytest.mark.tgtd
LARGE = (5 << 20) + 3


@pytest.fixture
def top(zone: ObjectRef) -> str:
    """The path of the test's partition."""
    return f"/{zone}"


@pytest.fixture
def fs(face: Face) -> Face:
    return Face(face.behind.fs, face._run)


def paths(found: list[Any]) -> list[str]:
    return [each.path for each in found]


# ---- texts ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/", []),
        ("", []),
        ("/a/b/", ["a", "b"]),
        ("a//b/./c", ["a", "b", "c"]),
        ("/a/../b", ["b"]),
        ("/../../a", ["a"]),
        ("osd:/a/b", ["a", "b"]),
        ("osd://a/b", ["a", "b"]),
    ],
)
def test_split(path: str, names: list[str]) -> None:
    assert split(path) == names
    assert join(path) == "/" + "/".join(names)


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("*.gz", ["a.gz", ".gz"], ["a.gzz", "d/a.gz", "agz"]),
        ("a?c", ["abc"], ["ac", "a/c", "abbc"]),
        ("[a-c]x", ["ax", "cx"], ["dx", "x"]),
        ("[!a]x", ["bx"], ["ax"]),
        ("[]]x", ["]x"], ["[x"]),
        ("[x", ["[x"], ["x"]),
        ("**/x", ["x", "a/x", "a/b/x"], ["ax", "a/bx"]),
        ("a/**", ["a/b", "a/b/c"], ["b/a", "a"]),
        ("a/**/z", ["a/z", "a/b/z", "a/b/c/z"], ["a/bz", "z"]),
        ("a.b+(c)", ["a.b+(c)"], ["axb+(c)"]),
    ],
)
def test_patterns(pattern: str, yes: list[str], no: list[str]) -> None:
    wanted = matcher(pattern.split("/"))
    assert [each for each in yes if not wanted.fullmatch(each)] == []
    assert [each for each in no if wanted.fullmatch(each)] == []


def test_a_range_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="is no pattern"):
        matcher(["[z-a]"])


def test_fixed_part() -> None:
    assert fixed_part("/a/b/*.x/c") == ("/a/b", ["*.x", "c"])
    assert fixed_part("/a/b") == ("/a/b", [])
    assert fixed_part("*") == ("/", ["*"])


# ---- files and directories -----------------------------------------------------------------------


def test_files_and_directories(fs: Face, zone: ObjectRef, top: str) -> None:
    assert fs.mkdir(f"{top}/a/b", parents=True) != fs.mkdir(f"{top}/c")
    made = fs.write_bytes(f"{top}/a/b/file", b"some bytes")
    info = fs.info(f"{top}/a/b/file")
    assert (info.object, info.length, info.is_directory) == (made, 10, False)
    assert info.path == f"{top}/a/b/file"
    assert info.name == "file"
    assert info.modified_ms > 1_600_000_000_000
    assert fs.resolve(f"{top}/a/b/file") == made
    assert fs.resolve(top) == zone
    assert paths(fs.ls(top)) == [f"{top}/a", f"{top}/c"]
    assert paths(fs.ls(f"{top}/a/b/file")) == [f"{top}/a/b/file"]
    assert paths(fs.walk(top)) == [f"{top}/a", f"{top}/a/b", f"{top}/a/b/file", f"{top}/c"]
    assert paths(fs.walk(top, 1)) == [f"{top}/a", f"{top}/c"]
    assert (fs.is_dir(f"{top}/a"), fs.is_file(f"{top}/a"), fs.exists(f"{top}/x")) == (
        True,
        False,
        False,
    )
    assert (fs.is_dir("/"), fs.is_dir(top), fs.exists("/0x7ffffff")) == (True, True, False)
    assert top in paths(fs.ls("/"))
    assert fs.du(top) == (1, 10)


def test_what_is_absent_or_of_another_kind(fs: Face, top: str) -> None:
    fs.mkdir(f"{top}/d")
    fs.write_bytes(f"{top}/f", b"")
    for path in (f"{top}/x", f"{top}/x/y", "/no-such-partition/f", "/no-such-partition"):
        with pytest.raises(FileNotFoundError):
            fs.info(path)
    with pytest.raises(NotADirectoryError):
        fs.info(f"{top}/f/g")
    with pytest.raises(IsADirectoryError):
        fs.read_bytes(f"{top}/d")
    with pytest.raises(IsADirectoryError):
        fs.write_bytes(f"{top}/d", b"")
    with pytest.raises(IsADirectoryError):
        fs.write_bytes(top, b"")
    with pytest.raises(FileExistsError):
        fs.mkdir(f"{top}/d")
    with pytest.raises(FileExistsError):
        fs.mkdir(top)
    fs.mkdir(f"{top}/d", exist_ok=True)
    with pytest.raises(FileNotFoundError):
        fs.mkdir(f"{top}/x/y")
    with pytest.raises(FileNotFoundError):
        fs.write_bytes(f"{top}/x/y", b"")
    with pytest.raises(ValueError, match="different partitions"):
        fs.rename(f"{top}/f", "/0x7ffffff/f")


def test_refusals_name_the_path_up_to_the_wrong_name(fs: Face, top: str) -> None:
    fs.mkdir(f"{top}/d")
    fs.write_bytes(f"{top}/f", b"")
    fs.mkdir(f"{top}/full/inside", parents=True)
    wrong: tuple[tuple[Callable[[], object], str], ...] = (
        (lambda: fs.resolve(f"{top}/d/x/y"), f"'{top}/d/x': no such file"),
        (lambda: fs.ls(f"{top}/x/y"), f"'{top}/x': no such file"),
        (lambda: fs.read_bytes(f"{top}/f/g"), f"'{top}/f': not a directory"),
        (lambda: fs.write_bytes(f"{top}/x/y", b""), f"'{top}/x': no such file"),
        (lambda: fs.write_bytes(f"{top}/x/y", bytes(2 << 20)), f"'{top}/x': no such file"),
        (lambda: fs.write_bytes(f"{top}/d", b""), f"'{top}/d' is a directory"),
        (lambda: fs.write_bytes(f"{top}/f", b"", exclusive=True), f"'{top}/f' exists"),
        (lambda: fs.mkdir(f"{top}/x/y"), f"'{top}/x': no such file"),
        (lambda: fs.mkdir(f"{top}/d"), f"'{top}/d' exists"),
        (lambda: fs.unlink(f"{top}/d/x"), f"'{top}/d/x': no such file"),
        (lambda: fs.rmdir(f"{top}/x"), f"'{top}/x': no such file"),
        (lambda: fs.rmdir(f"{top}/full"), f"'{top}/full': directory not empty"),
        (lambda: fs.rename(f"{top}/x", f"{top}/y"), f"'{top}/x': no such file"),
        (lambda: fs.rename(f"{top}/f", f"{top}/x/y"), f"'{top}/x': no such file"),
        (lambda: fs.rename(f"{top}/f", f"{top}/d"), f"'{top}/d' exists"),
        (lambda: fs.copy(f"{top}/f", f"{top}/x/y"), f"'{top}/x': no such file"),
    )
    for act, text in wrong:
        with pytest.raises(errors.OSDError) as caught:
            act()
        assert text in str(caught.value)


def test_nothing_is_left_of_what_fails(fs: Face, target: Target, zone: ObjectRef, top: str) -> None:
    fs.mkdir(f"{top}/d")
    for path, data in ((f"{top}/x/y", b"1"), (f"{top}/d", bytes(LARGE))):
        with pytest.raises(errors.OSDError):
            fs.write_bytes(path, data)
    assert target.list_objects(zone.partition_id) == []


def test_writing_replaces_at_once(fs: Face, target: Target, zone: ObjectRef, top: str) -> None:
    first = fs.write_bytes(f"{top}/f", b"old")
    second = fs.write_bytes(f"{top}/f", bytes(LARGE))
    assert first != second
    assert target.list_objects(zone.partition_id) == [second]
    assert fs.info(f"{top}/f").length == LARGE
    with pytest.raises(FileExistsError):
        fs.write_bytes(f"{top}/f", b"third", exclusive=True)
    assert target.list_objects(zone.partition_id) == [second]
    assert bytes(fs.read_bytes(f"{top}/f", LARGE - 3)) == bytes(3)
    assert bytes(fs.read_bytes(f"{top}/f", LARGE + 3, 5)) == b""
    assert len(fs.read_bytes(f"{top}/f", 1, 5)) == 5


def test_moves_links_and_copies(fs: Face, top: str) -> None:
    for name in "ab":
        fs.write_bytes(f"{top}/{name}", name.encode())
    with pytest.raises(FileExistsError):
        fs.rename(f"{top}/a", f"{top}/b")
    fs.rename(f"{top}/a", f"{top}/b", replace=True)
    assert bytes(fs.read_bytes(f"{top}/b")) == b"a"
    fs.link(f"{top}/b", f"{top}/c")
    assert fs.resolve(f"{top}/b") == fs.resolve(f"{top}/c")
    copy = fs.copy(f"{top}/b", f"{top}/d")
    assert copy != fs.resolve(f"{top}/b")
    assert bytes(fs.read_bytes(f"{top}/d")) == b"a"
    with pytest.raises(FileExistsError):
        fs.copy(f"{top}/b", f"{top}/d", replace=False)
    fs.unlink(f"{top}/b")
    assert bytes(fs.read_bytes(f"{top}/c")) == b"a"
    with pytest.raises(FileNotFoundError):
        fs.unlink(f"{top}/b")
    fs.unlink(f"{top}/b", missing_ok=True)


def test_trees_are_removed(fs: Face, target: Target, zone: ObjectRef, top: str) -> None:
    fs.mkdir(f"{top}/a/b/c", parents=True)
    for name in ("a/1", "a/b/2", "a/b/c/3"):
        fs.write_bytes(f"{top}/{name}", b"x")
    with pytest.raises(errors.NotEmpty):
        fs.rmdir(f"{top}/a")
    assert fs.rmtree(f"{top}/a") == 6
    assert fs.ls(top) == []
    assert target.list_objects(zone.partition_id) == []
    fs.write_bytes(f"{top}/z", b"x")
    assert fs.rmtree(top) == 1
    assert fs.ls(top) == []


def test_trees_deeper_than_a_command_has_room_for(fs: Face, target: Target, top: str) -> None:
    """A user who may make directories in one can nest them so."""
    name, bottom = "d" * 255, target.fs.resolve(top)
    for _ in range(17):
        bottom = target.make_directory(bottom, name).object
    target.put_name(bottom, "f", b"x")
    deep = f"{top}/" + f"{name}/" * 17 + "f"
    assert fs.info(deep).length == 1
    assert [each.path for each in fs.walk(top)][-1] == deep
    assert fs.glob(f"{top}/**/f")[0].path == deep
    assert (fs.du(top), fs.read_bytes(deep)) == ((1, 1), b"x")
    fs.write_bytes(f"{deep}2", b"yz")
    for wrong, error in ((f"{deep}3", errors.NoSuchName), (f"{deep}/x", errors.NotADirectory)):
        with pytest.raises(error):
            fs.info(wrong)
    with pytest.raises(errors.NotADirectory):
        fs.info(deep + f"/{name}" * 17)
    assert fs.rmtree(f"{top}/{name}") == 19
    assert fs.ls(top) == []


def test_globs(fs: Face, top: str) -> None:
    fs.mkdir(f"{top}/logs/old", parents=True)
    for name in ("logs/a.gz", "logs/b.txt", "logs/old/c.gz", "d.gz"):
        fs.write_bytes(f"{top}/{name}", b"")
    assert paths(fs.glob(f"{top}/logs/*.gz")) == [f"{top}/logs/a.gz"]
    assert sorted(paths(fs.glob(f"{top}/**/*.gz"))) == sorted(
        f"{top}/{each}" for each in ("d.gz", "logs/a.gz", "logs/old/c.gz")
    )
    assert paths(fs.glob(f"{top}/*/old/?.gz")) == [f"{top}/logs/old/c.gz"]
    assert paths(fs.glob(f"{top}/logs/a.gz")) == [f"{top}/logs/a.gz"]
    assert paths(fs.glob(f"{top}/logs/none*")) == []
    assert paths(fs.glob(f"{top}/none/*")) == []
    assert paths(fs.glob(f"{top}/none")) == []


def test_names_of_any_bytes(fs: Face, top: str) -> None:
    for name in ("Grüße", "\udcff\udcfe", "a b\n", "..."):
        fs.write_bytes(f"{top}/{name}", name.encode("utf-8", "surrogateescape"))
    for each in fs.ls(top):
        assert bytes(fs.read_bytes(each.path)) == each.name.encode("utf-8", "surrogateescape")
    assert len(fs.ls(top)) == 4


def test_partitions_have_names(fs: Face, target: Target, zone: ObjectRef, top: str) -> None:
    name = f"photos-{zone}"
    assert top in paths(fs.ls("/"))
    target.link(ref(), name, zone)
    made = fs.write_bytes(f"/{name}/a.jpg", b"x")
    assert fs.resolve(f"{top}/a.jpg") == made
    assert fs.info(f"/{name}/a.jpg").path == f"/{name}/a.jpg"
    assert f"/{name}" in paths(fs.ls("/"))
    assert top not in paths(fs.ls("/"))
    assert paths(fs.glob("/photos-*/a*")) == [f"/{name}/a.jpg"]
    target.unlink(ref(), name)


def test_objects_without_names_and_jobs_are_in_no_listing(
    fs: Face, target: Target, zone: ObjectRef, top: str
) -> None:
    target.create_and_write(zone.partition_id, b"no name")
    job = target.exec("import osd; osd.result(1)", zone=zone, surrogate=zone)
    assert job.result() == 1
    assert len(target.list_objects(zone.partition_id)) >= 1
    assert fs.ls(top) == []
    assert paths(fs.glob(f"{top}/**")) == []
    assert fs.du(top) == (0, 0)


def test_a_file_system_below_a_directory(fs: Face, top: str) -> None:
    directory = fs.mkdir(f"{top}/a/b", parents=True)
    below = Face(fs.behind.below(directory), fs._run)
    fs.write_bytes(f"{top}/a/b/f", b"x")
    assert paths(below.ls("/")) == ["/f"]
    assert bytes(below.read_bytes("f")) == b"x"
    assert bytes(below.read_bytes("../../f")) == b"x"
    below.write_bytes("g", b"new")
    below.write_bytes("g", bytes(LARGE))
    assert fs.info(f"{top}/a/b/g").length == LARGE
    with pytest.raises(FileExistsError):
        below.write_bytes("g", b"", exclusive=True)
    with pytest.raises(FileNotFoundError):
        below.write_bytes("none/g", b"")
    with pytest.raises(ValueError, match="below a partition"):
        below.copy("g", "h")
    assert paths(below.ls("/")) == ["/f", "/g"]
    assert below.mkdir("c/d", parents=True) == fs.resolve(f"{top}/a/b/c/d")


def test_a_long_listing(fs: Face, target: Target, zone: ObjectRef, top: str) -> None:
    """More entries than one answer holds."""
    names = [f"{n:05}-{'x' * 150}" for n in range(1500)]
    for name in names:
        target.create_name(zone, name)
    assert [each.name for each in fs.ls(top)] == names


# ---- open files ----------------------------------------------------------------------------------


def test_text(target: Target, top: str) -> None:
    with target.open(f"{top}/t.csv", "w", newline="") as file:
        csv.writer(file).writerows([["n", "ä"], [1, 2]])
        assert not target.fs.exists(f"{top}/t.csv")
    with target.open(f"{top}/t.csv", newline="") as file:
        assert list(csv.reader(file)) == [["n", "ä"], ["1", "2"]]
    with target.open(f"{top}/t.json", "w") as file:
        json.dump({"a": [1, 2]}, file)
    assert json.loads(bytes(target.fs.read_bytes(f"{top}/t.json"))) == {"a": [1, 2]}
    with target.open(f"{top}/t.csv") as file:
        assert [line.rstrip("\n") for line in file] == ["n,ä", "1,2"]


def test_bytes(target: Target, top: str) -> None:
    data = random.Random(3).randbytes(LARGE)
    with target.open(f"{top}/b", "wb") as file:
        for at in range(0, len(data), 77_777):
            file.write(data[at : at + 77_777])
    with target.open(f"{top}/b", "rb") as file:
        assert file.read() == data
        assert file.seek(-5, os.SEEK_END) == LARGE - 5
        assert (file.read(), file.read(), file.tell()) == (data[-5:], b"", LARGE)
        file.seek(1 << 20)
        assert file.read(3) == data[1 << 20 :][:3]
        with pytest.raises(OSError, match=r"not writable|write"):
            file.write(b"x")
    with target.open(f"{top}/b", "r+b") as file:
        file.seek(10)
        file.write(b"changed")
        file.seek(8)
        assert file.read(11) == data[8:10] + b"changed" + data[17:19]
    with target.open(f"{top}/b", "rb", buffering=0) as file:
        assert file.read(12) == data[:10] + b"ch"


def test_exclusive_and_append(target: Target, top: str) -> None:
    with target.open(f"{top}/x", "x") as file:
        file.write("one\n")
    with pytest.raises(FileExistsError):
        target.open(f"{top}/x", "x")
    first = target.open(f"{top}/y", "xb")
    with target.open(f"{top}/y", "xb") as second:
        second.write(b"second")
    first.write(b"first")
    with pytest.raises(FileExistsError):
        first.close()
    assert bytes(target.fs.read_bytes(f"{top}/y")) == b"second"
    for line in ("two\n", "three\n"):
        with target.open(f"{top}/x", "a") as file:
            file.write(line)
    with target.open(f"{top}/new", "a") as file:
        file.write("made")
    assert bytes(target.fs.read_bytes(f"{top}/x")) == b"one\ntwo\nthree\n"
    assert bytes(target.fs.read_bytes(f"{top}/new")) == b"made"


@pytest.mark.parametrize("mode", ["w", "wb", "w+b", "x"])
def test_a_failed_block_changes_nothing(
    target: Target, zone: ObjectRef, top: str, mode: str
) -> None:
    if mode != "x":
        target.fs.write_bytes(f"{top}/f", b"as it was")
    before = target.list_objects(zone.partition_id)
    with pytest.raises(ZeroDivisionError), target.open(f"{top}/f", mode) as file:
        file.write("half" if "b" not in mode else b"half")
        _ = 1 / 0
    assert file.closed
    assert target.list_objects(zone.partition_id) == before
    assert target.fs.exists(f"{top}/f") is (mode != "x")


@pytest.mark.parametrize("mode", ["", "q", "rw", "r+w", "rbt", "b", "rr"])
def test_modes_that_are_none(target: Target, top: str, mode: str) -> None:
    with pytest.raises(ValueError, match="mode"):
        target.open(f"{top}/f", mode)


def test_open_refuses(target: Target, top: str) -> None:
    target.fs.mkdir(f"{top}/d")
    for mode in ("r", "w", "a"):
        with pytest.raises(IsADirectoryError):
            target.open(f"{top}/d", mode)
    for path, mode in (("x", "r"), ("x/y", "w"), ("x/y", "a"), ("x", "r+")):
        with pytest.raises(FileNotFoundError):
            target.open(f"{top}/{path}", mode)
    with pytest.raises(ValueError, match="unbuffered"):
        target.open(f"{top}/f", "w", buffering=0)
    with pytest.raises(ValueError, match="encoding"):
        target.open(f"{top}/f", "wb", encoding="utf-8")


def test_files_of_coroutines(osd_url: str, zone: ObjectRef, top: str) -> None:
    import asyncio

    from pyosd import aio

    async def work() -> None:
        async with aio.connect(osd_url) as target:
            async with await target.open(f"{top}/f", "wb") as file:
                await file.write(b"one,")
                await file.write(bytes(LARGE))
                assert not await target.fs.exists(f"{top}/f")
            async with await target.open(f"{top}/f") as file:
                assert await file.read(4) == b"one,"
                assert len(await file.read()) == LARGE
                file.seek(2)
                assert await file.read(2) == b"e,"
                file.seek(0)
                assert sum([len(piece) async for piece in file]) == LARGE + 4
                with pytest.raises(ValueError, match="written"):
                    await file.write(b"x")
            with pytest.raises(ZeroDivisionError):
                async with await target.open(f"{top}/g", "xb") as file:
                    _ = 1 / 0
            assert not await target.fs.exists(f"{top}/g")
            with pytest.raises(ValueError, match="binary"):
                await target.open(f"{top}/f", "r")

    asyncio.run(work())


# ---- many local files ----------------------------------------------------------------------------


def tree(top: Path) -> dict[str, bytes]:
    made = random.Random(7)
    lengths = {"a": 10, "empty": 0, "d/exact": 1 << 20, "d/large": LARGE, "d/e/over": (1 << 20) + 1}
    found = {name: made.randbytes(length) for name, length in lengths.items()}
    found |= {f"many/{n}": bytes([n % 251]) * n for n in range(100)}
    for name, data in found.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(data)
    return found


def moved(target: Target, stream: Any) -> dict[str, FileMoved]:
    outcomes = list(target.carry_stream(stream))
    return {
        os.fsdecode(each.item.path)
        if isinstance(each.item, Outgoing)
        else each.item.info.path: each
        for each in outcomes
    }


def test_many_files_there_and_back(
    target: Target, zone: ObjectRef, top: str, tmp_path: Path
) -> None:
    files = tree(tmp_path / "in")
    fs, told = target.fs, list[int]()
    for folder in ("d/e", "many"):
        fs.mkdir(f"{top}/{folder}", parents=True)
    wanted = [Outgoing(tmp_path / "in" / name, name.encode()) for name in files]
    outcomes = moved(target, put_files(zone, wanted, depth=7, progress=told.append))
    assert outcomes.keys() == files.keys()
    assert [each for each in outcomes.values() if each.error] == []
    assert sum(told) == sum(map(len, files.values()))
    for name, data in files.items():
        assert bytes(fs.read_bytes(f"{top}/{name}")) == data
    incoming = [
        Incoming(each, tmp_path / "out" / each.path.removeprefix(f"{top}/"))
        for each in fs.walk(top)
        if not each.is_directory
    ]
    for each in incoming:
        each.destination.parent.mkdir(parents=True, exist_ok=True)
    assert all(not each.error for each in moved(target, get_files(incoming)).values())
    back = {
        str(path.relative_to(tmp_path / "out")): path.read_bytes()
        for path in (tmp_path / "out").rglob("*")
        if path.is_file()
    }
    assert back == files
    for each in incoming:
        assert each.destination.stat().st_mtime_ns == each.info.modified_ms * 1_000_000


def test_one_failure_does_not_stop_the_others(
    target: Target, zone: ObjectRef, top: str, tmp_path: Path
) -> None:
    (tmp_path / "f").write_bytes(b"x")
    (tmp_path / "large").write_bytes(bytes(LARGE))
    target.fs.mkdir(f"{top}/d")
    target.fs.write_bytes(f"{top}/there", b"old")
    wanted = [
        Outgoing(tmp_path / "f", b"fine"),
        Outgoing(tmp_path / "absent", b"absent"),
        Outgoing(tmp_path, b"folder"),
        Outgoing(tmp_path / "f", b"no/directory"),
        Outgoing(tmp_path / "large", b"d"),
        Outgoing(tmp_path / "f", b"there"),
        Outgoing(tmp_path / "large", b"fine-too"),
    ]
    outcomes = moved(target, put_files(zone, wanted, replace=False))
    failed = {name: type(each.error) for name, each in outcomes.items() if each.error}
    assert failed.keys() == {"absent", "folder", "no/directory", "d", "there"}
    assert failed["absent"] is FileNotFoundError
    assert issubclass(failed["there"], FileExistsError)
    assert bytes(target.fs.read_bytes(f"{top}/there")) == b"old"
    assert len(target.list_objects(zone.partition_id)) == 3
    info = target.fs.info(f"{top}/fine")
    target.fs.unlink(f"{top}/fine")
    gone = moved(target, get_files([Incoming(info, tmp_path / "back")]))
    assert isinstance(gone[f"{top}/fine"].error, errors.NotFound)
    assert not (tmp_path / "back").exists()
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith(".osd")] == []


def test_an_interrupt_leaves_nothing(target: Target, zone: ObjectRef, tmp_path: Path) -> None:
    """Neither objects without names, nor those made ahead; what was named stays."""
    for n in range(200):
        (tmp_path / str(n)).write_bytes(b"x" * n)
    wanted = [Outgoing(tmp_path / str(n), str(n).encode()) for n in range(200)]

    def interrupt(count: int) -> None:
        if count == 50:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        moved(target, put_files(zone, wanted, progress=interrupt))
    named = target.fs.ls(f"/{zone}")
    assert 50 <= len(named) < 200
    assert len(target.list_objects(zone.partition_id)) == len(named)
    for each in named:
        assert each.length == int(each.name)
    stream = target.carry_stream(put_files(zone, wanted))
    next(stream)
    stream.close()  # type: ignore[attr-defined]
    assert target.fs.exists(f"/{zone}/0")


def test_a_file_that_may_have_its_name_is_not_removed(
    target: Target, zone: ObjectRef, top: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The answer to PUT or LINK is lost: the file is there."""

    def lost(function: Any) -> Any:
        def act(*args: Any, **kwargs: Any) -> Any:
            yield from function(*args, **kwargs)
            raise errors.SessionLost("the connection ended")

        return act

    target.fs.write_bytes(f"{top}/f", b"old")
    for function, new in (("put_name", b"new"), ("link", bytes(LARGE))):
        monkeypatch.setattr(names, function, lost(getattr(names, function)))
        with pytest.raises(errors.SessionLost):
            target.fs.write_bytes(f"{top}/f", new)
        assert bytes(target.fs.read_bytes(f"{top}/f")) == new


def test_differences_are_found(target: Target, zone: ObjectRef, top: str, tmp_path: Path) -> None:
    for length in (0, 5, LARGE):
        path = tmp_path / str(length)
        path.write_bytes(bytes(length))
        wanted = [Outgoing(path, str(length).encode())]
        (done,) = moved(target, put_files(zone, wanted)).values()
        assert target.carry(differs(done)) is False
        with path.open("r+b") as file:
            file.seek(max(length - 1, 0))
            file.write(b"x")
        assert target.carry(differs(done)) is True


def test_a_large_file_that_changes_meanwhile(
    target: Target, zone: ObjectRef, top: str, tmp_path: Path
) -> None:
    """It is read again; what is stored here is of one version."""
    obj = target.fs.write_bytes(f"{top}/f", bytes(LARGE))
    pieces = list[int]()

    def disturb(count: int) -> None:
        if not pieces:
            target.write(obj, LARGE - 4, b"last")
        pieces.append(count)

    info = target.fs.info(f"{top}/f")
    outcomes = moved(target, get_files([Incoming(info, tmp_path / "f")], progress=disturb))
    assert not outcomes[f"{top}/f"].error
    assert (tmp_path / "f").read_bytes() == bytes(LARGE - 4) + b"last"
    assert sum(pieces) == LARGE


def test_a_partition_is_not_looked_up_by_a_name_that_is_a_number(target: Target) -> None:
    assert target.fs.resolve("/0x12345") == ref(0x12345)
    assert target.fs.resolve("/65536") == ref(0x10000)
    with pytest.raises(FileNotFoundError):
        target.fs.resolve("/12")


def test_a_busy_target_is_asked_for_a_name_again() -> None:
    """Nothing was done; it is asked at most so often."""
    steps = names.link(ref(0x10000), "a", ref(0x10000, 0x10000))
    request = next(steps)
    with pytest.raises(errors.TargetBusy):
        for _ in range(100):
            assert isinstance(steps.throw(errors.TargetBusy(0, 0, 0, "busy")), Sleep)
            assert steps.send(None) == request


def test_many_names_of_one_directory_at_a_time(target: Target, zone: ObjectRef) -> None:
    """Transactions lose to others; a client that lost too often asks again."""

    def name_and_rename(number: int) -> None:
        target.create_name(zone, f"made-{number}")
        target.rename(zone, f"made-{number}", f"named-{number}")

    with ThreadPoolExecutor(32) as clients:
        list(clients.map(name_and_rename, range(256)))
    found = target.list_names(zone, prefix="named-").entries
    assert len(found) == 256


def test_a_listing_while_files_come_and_go(osd_url: str, fs: Face, zone: ObjectRef) -> None:
    """An entry that is removed while its facts are read does not end the listing."""
    stop = threading.Event()

    def churn() -> None:
        with connect(osd_url) as target:
            while not stop.is_set():
                for each in range(20):
                    target.create_name(zone, f"f{each}")
                for each in range(20):
                    target.unlink(zone, f"f{each}")

    with ThreadPoolExecutor() as pool:
        worker = pool.submit(churn)
        try:
            for _ in range(400):
                assert len(fs.ls(f"/{zone}")) <= 20
        finally:
            stop.set()
        worker.result()


# ---- beside removals -----------------------------------------------------------------------------


def test_paths_that_go_meanwhile_are_absent(target: Target, zone: ObjectRef) -> None:
    """An empty file that comes and goes, and a partition, which a walk may meet."""
    fs, over = target.fs, threading.Event()

    def come_and_go() -> None:
        while not over.is_set():
            target.create_name(zone, "empty")
            target.unlink(zone, "empty")
            partition = target.create_partition()
            target.create_name(ref(partition), "file")
            target.remove_partition(partition, contents=True)

    with ThreadPoolExecutor(1) as pool:
        making = pool.submit(come_and_go)
        try:
            for _ in range(40):
                assert fs.exists(f"/{zone}/empty") in (True, False)
                assert any(each.object == zone for each in fs.walk("/", 2))
        finally:
            over.set()
        making.result()
