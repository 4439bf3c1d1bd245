# SPDX-License-Identifier: GPL-2.0-or-later
"""Files of a target by their paths, target.fs and target.open(), by both faces where both have it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pyosd import connect, errors
from pyosd.commands import data as object_data
from pyosd.commands import names
from pyosd.commands.dialogue import Sleep
from pyosd.fs import dialogues, partitions
from pyosd.fs.paths import encoded, fixed_part, join, split
from pyosd.osd._paths.patterns import matcher
from pyosd.target import Target
from pyosd.types import ObjectRef, ref
from tests.client.faces import Face

pytestmark = pytest.mark.tgtd
LARGE = (5 << 20) + 3


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


@pytest.mark.parametrize("name", ["é" * 128, "a\0b"])
def test_no_name(name: str) -> None:
    with pytest.raises(errors.Invalid, match="a name has"):
        encoded(["logs", name])


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
    with pytest.raises(errors.NameChanged):
        fs.unlink(f"{top}/b", expected=ref(1, 2))
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


def test_the_name_of_another_partition(
    fs: Face, target: Target, zone: ObjectRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session can last for months, and other clients give a name to another partition meanwhile."""
    monkeypatch.setattr(partitions, "KEPT_S", 0.0)
    name = f"data-{zone}"
    target.link(ref(), name, zone)
    assert fs.resolve(f"/{name}") == zone
    other = ref(target.create_partition())
    target.link(ref(), name, other, replace=True)
    assert fs.write_bytes(f"/{name}/f", b"x").partition_id == other.partition_id
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


def test_functions_are_not_called_for_what_needs_no_length(
    fs: Face, top: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They read all data, and may fail."""

    def fails(_: ObjectRef) -> Any:
        raise errors.OSDError(0xB, 0x80, 0x2D, "a function failed")
        yield

    fs.write_bytes(f"{top}/f", b"")
    monkeypatch.setattr(object_data, "known_length", fails)
    assert fs.exists(f"{top}/f") and fs.is_file(f"{top}/f") and not fs.is_dir(f"{top}/f")
    with pytest.raises(errors.OSDError, match="a function failed"):
        fs.info(f"{top}/f")
    assert fs.rmtree(f"{top}/f") == 1
    assert not fs.exists(f"{top}/f")


def test_a_partition_that_another_client_makes_first(
    fs: Face, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    def later(name: str) -> None:
        known = getattr(dialogues, name)

        def second(*args: Any, **how: Any) -> Any:
            monkeypatch.setattr(dialogues, name, known)
            if name == "make_partition":
                target.create_partition(name=args[1])
            else:
                target.create_partition(args[0])
            return known(*args, **how)

        monkeypatch.setattr(dialogues, name, second)

    for name, path in (("make_partition", "/race"), ("create_partition", "/0x7777")):
        later(name)
        made = fs.mkdir(f"{path}1", exist_ok=True)
        assert made == target.fs.resolve(f"{path}1")
        later(name)
        with pytest.raises(FileExistsError):
            fs.mkdir(f"{path}2")
        for each in (1, 2):
            target.remove_partition(target.fs.resolve(f"{path}{each}").partition_id, True)
    later("make_partition")
    inside = fs.mkdir("/race3/a", parents=True)
    assert inside == target.fs.resolve("/race3/a")
    target.remove_partition(inside.partition_id, True)


# ---- beside removals -----------------------------------------------------------------------------


def test_a_file_that_is_replaced_meanwhile(
    fs: Face, target: Target, top: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old file or the new one is found: never none."""

    def replaced_at(name: str, data: bytes) -> None:
        known = getattr(object_data, name)

        def replace(*args: Any) -> Any:
            monkeypatch.setattr(object_data, name, known)
            target.fs.write_bytes(f"{top}/f", data)
            return known(*args)

        monkeypatch.setattr(object_data, name, replace)

    target.fs.write_bytes(f"{top}/f", b"")
    replaced_at("known_length", b"x" * LARGE)
    assert fs.info(f"{top}/f").length == LARGE
    replaced_at("read_range", b"y" * LARGE)
    assert bytes(fs.read_bytes(f"{top}/f")) == b"y" * LARGE
    replaced_at("read_range", b"z" * 5)
    assert bytes(fs.read_bytes(f"{top}/f", 2, LARGE)) == b"zzz"


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
