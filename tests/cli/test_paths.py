# SPDX-License-Identifier: GPL-2.0-or-later
"""Verbs about files by their paths: ls, stat, find, du, cat, cp, mv, rm, mkdir, sync."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

from pyosd import errors, files
from pyosd.commands import data as object_data
from pyosd.fs import transfer
from pyosd.target import Target
from tests.cli.conftest import LARGE, Run, contents, lines

pytestmark = pytest.mark.tgtd


def test_a_folder_there_and_back(osd: Run, top: str, tree: Path, tmp_path: Path) -> None:
    done = osd("cp", "-r", tree, f"osd:{top}")
    assert done.stdout == ""
    assert "5 files" in done.stderr
    names = [*contents(tree)]
    assert lines(osd, "find", top, "--type", "f") == sorted(
        f"{top}/photos/{each}" for each in names
    )
    osd("cp", "-r", f"osd:{top}/photos", tmp_path / "back")
    assert contents(tmp_path / "back") == contents(tree)
    osd("cp", "-r", f"osd:{top}/photos", tmp_path / "back")
    assert contents(tmp_path / "back" / "photos") == contents(tree)
    osd("cp", "-r", tree, f"osd:{top}/new")
    osd("cp", "-r", tree, f"osd:{top}/new")
    assert lines(osd, "ls", "-o", "id", f"{top}/new/photos") == [
        f"{top}/new/photos/{each}" for each in ("2024", "2025", "a.jpg", "empty")
    ]


def test_a_new_partition_is_reported(osd: Run, tree: Path) -> None:
    said = "/mistyped-cp is a new partition"
    assert said in osd("cp", "-r", tree, "osd:/mistyped-cp").stderr
    assert "new partition" not in osd("cp", "-r", tree, "osd:/mistyped-cp").stderr
    inside = osd("cp", "-r", "osd:/mistyped-cp", "osd:/mistyped-inside")
    assert "/mistyped-inside is a new partition" in inside.stderr
    planned = osd("sync", "-n", tree, "osd:/mistyped-sync/below")
    assert "/mistyped-sync would be a new partition" in planned.stderr
    done = osd("sync", tree, "osd:/mistyped-sync/below")
    assert "/mistyped-sync is a new partition" in done.stderr
    for name in ("cp", "inside", "sync"):
        osd("part", "rm", "--contents", "-y", f"/mistyped-{name}")


def test_copies_are_compared(
    osd: Run, top: str, tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    osd("cp", "-r", "--verify", "--check", tree, f"osd:{top}/p")
    osd("sync", "--verify", "--check", f"osd:{top}/p", tmp_path / "back")
    assert contents(tmp_path / "back") == contents(tree)
    small = transfer._small

    def damaged(path: Path) -> tuple[bytes, tuple[int, ...]]:
        data, identity = small(path) or (b"", ())
        return data[:-1] + b"?", identity

    monkeypatch.setattr(transfer, "_small", damaged)
    done = osd("cp", "--verify", tree / "a.jpg", f"osd:{top}/q", code=1)
    assert "a.jpg: the copy differs from its source" in done.stderr


def test_single_files(osd: Run, top: str, tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"1\n")
    (tmp_path / "two").write_bytes(b"2\n")
    osd("mkdir", f"{top}/d")
    osd("cp", tmp_path / "one", tmp_path / "two", f"osd:{top}/d")
    osd("cp", tmp_path / "one", f"osd:{top}/d/three")
    assert osd("cat", f"{top}/d/one", f"{top}/d/t*").stdout == "1\n1\n2\n"
    assert osd("cat", f"{top}/d/one", "--offset", 1, "--length", 5).stdout == "\n"
    osd("cp", f"osd:{top}/d/*", tmp_path / "none", code=1)
    (tmp_path / "out").mkdir()
    osd("cp", f"osd:{top}/d/t*", tmp_path / "out")
    assert contents(tmp_path / "out") == {"two": b"2\n", "three": b"1\n"}
    listed = osd("cp", "--names", f"osd:{top}/d/one", tmp_path / "x").stdout
    assert listed == f"{tmp_path}/x\n"


def test_streams(osd: Run, top: str) -> None:
    data = random.Random(1).randbytes(LARGE)
    osd("cp", "-", f"osd:{top}/f", data=data)
    assert osd("cp", f"osd:{top}/f", "-").stdout_bytes == data
    assert osd("cat", f"{top}/f", "--raw").stdout_bytes == data
    osd("cp", "-", f"osd:{top}/f", "--if-exists", "fail", code=1, data=b"x")
    osd("cp", "-", f"osd:{top}/f", "--if-exists", "skip", data=b"x")
    assert osd("cat", f"{top}/f", "--raw").stdout_bytes == data


def test_a_device_is_not_replaced(osd: Run, top: str, tmp_path: Path) -> None:
    osd("cp", "-", f"osd:{top}/f", data=b"1")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "stdout").symlink_to("/proc/self/fd/1")
    for name in ("fifo", "stdout"):
        said = osd("cp", f"osd:{top}/f", tmp_path / name, code=1).stderr
        assert f"{name}: it is no file that can be replaced; - is stdout" in said
    assert (tmp_path / "fifo").is_fifo() and (tmp_path / "stdout").is_symlink()


def test_if_exists(osd: Run, top: str, tree: Path, tmp_path: Path) -> None:
    osd("cp", "-r", tree, f"osd:{top}/p")
    (tree / "a.jpg").write_bytes(b"another")
    (tree / "new").write_bytes(b"new")
    osd("cp", "-r", tree, f"osd:{top}/p2")
    for word in ("fail", "skip", "replace"):
        osd("cp", tree / "a.jpg", f"osd:{top}/p/a.jpg", "--if-exists", word, code=word == "fail")
        same = osd("cat", f"{top}/p/a.jpg", "--raw").stdout_bytes == b"another"
        assert same is (word == "replace")
    (tmp_path / "back").mkdir()
    (tmp_path / "back" / "a.jpg").write_bytes(b"mine")
    osd("cp", f"osd:{top}/p/a.jpg", tmp_path / "back", "--if-exists", "fail", code=1)
    osd("cp", f"osd:{top}/p/a.jpg", tmp_path / "back", "--if-exists", "skip")
    assert (tmp_path / "back" / "a.jpg").read_bytes() == b"mine"
    osd("cp", f"osd:{top}/p/a.jpg", tmp_path / "back")
    assert (tmp_path / "back" / "a.jpg").read_bytes() == b"another"


def test_files_beside_folders_are_skipped(osd: Run, top: str, tree: Path) -> None:
    (tree.parent / "alone").write_bytes(b"x")
    osd("cp", "-r", tree.parent / "alone", tree, f"osd:{top}")
    (tree / "late").write_bytes(b"y")
    (tree.parent / "alone").write_bytes(b"another")
    words = ("cp", "-r", "--if-exists", "skip", "--names")
    done = osd(*words, tree.parent / "alone", tree, f"osd:{top}")
    assert done.stdout.splitlines() == [str(tree / "late")]
    assert osd("cat", f"{top}/alone").stdout == "x"


def test_copies_and_moves_inside(osd: Run, top: str, tree: Path) -> None:
    osd("cp", "-r", tree, f"osd:{top}/p")
    osd("cp", "-r", f"osd:{top}/p", f"osd:{top}/q")
    assert len(lines(osd, "find", f"{top}/q", "--type", "f")) == 5
    osd("cp", f"osd:{top}/p", f"osd:{top}/r", code=1)
    assert "is inside" in osd("cp", "-r", f"osd:{top}/p", f"osd:{top}/p/x", code=1).output
    osd("mv", f"{top}/q", f"{top}/moved")
    osd("mkdir", f"{top}/into")
    osd("mv", f"{top}/moved", f"{top}/p/a.jpg", f"{top}/into")
    assert lines(osd, "ls", "-o", "id", f"{top}/into") == [f"{top}/into/a.jpg", f"{top}/into/moved"]
    osd("mv", "-n", f"{top}/p/empty", f"{top}/into/a.jpg", code=1)
    osd("mv", f"{top}/p/empty", f"{top}/into/a.jpg")
    assert osd("cat", f"{top}/into/a.jpg").stdout == ""
    osd("mkdir", f"{top}/p/a.jpg", f"{top}/p/moved")
    refused = osd("mv", f"{top}/into/a.jpg", f"{top}/p", code=1).stderr
    assert refused == f"osd: '{top}/p/a.jpg' is a directory\n"
    refused = osd("mv", f"{top}/p/moved", f"{top}/into", code=1).stderr
    assert refused.startswith(f"osd: '{top}/into/moved': directory not empty")
    other = "/" + osd("part", "create").stdout.strip()
    osd("mv", f"{top}/into/a.jpg", f"{other}/b")
    assert lines(osd, "ls", "-o", "id", other) == [f"{other}/b"]
    osd("stat", f"{top}/into/a.jpg", code=66)
    assert "another partition" in osd("mv", f"{top}/into", f"{other}/c", code=1).output


def test_files_whose_functions_fail_are_moved_and_removed(
    osd: Run, top: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: object) -> None:
        raise errors.OSDError(0xB, 0x80, 0x2D, "a function failed")

    osd("cp", "-", f"osd:{top}/a", data=b"")
    monkeypatch.setattr(object_data, "known_length", fails)
    assert "a function failed" in osd("stat", f"{top}/a", code=1).stderr
    osd("mv", f"{top}/a", f"{top}/b")
    assert lines(osd, "ls", "-o", "id", top) == [f"{top}/b"]
    osd("rm", f"{top}/b")
    assert lines(osd, "ls", "-o", "id", top) == []


def test_a_name_in_place_of_an_id(osd: Run, top: str) -> None:
    refused = osd("part", "create", "/photos", code=2).stderr
    assert "'osd mkdir /photos' makes a partition with a name" in refused
    refused = osd("cat", f"{top}/0x10000", code=66).stderr
    assert f"such as 'osd obj read {top[1:]}/0x10000'" in refused
    refused = osd("cat", f"{top}/a\nb", code=66).stderr
    assert refused.startswith(f"osd: '{top}/a\\nb': no such file")


def test_two_files_of_one_name(osd: Run, top: str, tmp_path: Path) -> None:
    """As cp(1) and mv(1): none of them is lost."""
    for each in ("a", "b"):
        (tmp_path / each).mkdir()
        (tmp_path / each / "x").write_text(each)
    osd("cp", "-r", tmp_path / "a", tmp_path / "b", f"osd:{top}")
    for command in (
        ("cp", tmp_path / "a" / "x", tmp_path / "b" / "x", f"osd:{top}"),
        ("cp", f"osd:{top}/a/x", f"osd:{top}/b/x", tmp_path),
        ("cp", "-r", f"osd:{top}/a/x", f"osd:{top}/b/x", f"osd:{top}"),
        ("mv", f"{top}/a/x", f"{top}/b/x", top),
    ):
        assert "/x': give them different directories" in osd(*command, code=1).stderr
    assert osd("cat", f"{top}/a/x", f"{top}/b/x").stdout == "ab"
    assert not (tmp_path / "x").exists()


def test_mkdir_and_rm(osd: Run, top: str, pid: str) -> None:
    osd("mkdir", f"{top}/a/b", code=66)
    osd("mkdir", "-p", f"{top}/a/b", f"{top}/a/b")
    osd("mkdir", f"{top}/a", code=1)
    for name in ("1", "2", "b/3"):
        osd("cp", "-", f"osd:{top}/a/{name}", data=b"x")
    assert "-r removes it" in osd("rm", f"{top}/a", code=1).output
    osd("rm", f"{top}/a/[12]")
    osd("rm", f"{top}/a/1", code=66)
    osd("rm", "-f", f"{top}/a/1", f"{top}/none*")
    osd("rm", f"{top}/none*", code=66)
    assert "removed 3 names" in osd("rm", "-r", f"{top}/a").stderr
    assert osd("obj", "ls", pid, "-o", "id").stdout == ""
    assert "name one" in osd("rm", "-r", "/", code=1).output


def test_partitions_have_names(osd: Run, tree: Path, tmp_path: Path) -> None:
    osd("mkdir", "/holidays")
    osd("cp", tree / "a.jpg", "osd:/holidays")
    assert "'/holidays' exists" in osd("mkdir", "/holidays", code=1).stderr
    osd("mkdir", "-p", "/holidays", "/work/plans")
    assert lines(osd, "ls", "-d", "-o", "id", "/work/plans", "/holidays") == [
        "/work/plans",
        "/holidays",
    ]
    osd("mv", "/holidays", "/photos")
    assert lines(osd, "ls", "-o", "id", "/photos") == ["/photos/a.jpg"]
    assert "'holidays'" in osd("ls", "/holidays", code=66).stderr
    found = json.loads(osd("part", "ls", "-o", "json").stdout)["partitions"]
    (number,) = (each["id"] for each in found if each["name"] == "photos")
    for source, new in (("photos", f"{number}/a.jpg"), (number, "photos"), (number, "photos/b")):
        osd("mv", f"/{source}/a.jpg", f"/{new}")
    assert lines(osd, "ls", "-o", "id", "/photos") == ["/photos/b"]
    osd("mv", f"/{number}/b", "/photos/a.jpg")
    assert "another partition" in osd("mv", "/work", "/photos", code=1).stderr
    assert "is the id of a partition" in osd("mv", "/work", "/0x79fff", code=2).stderr
    osd("mkdir", "/0x79000")
    assert "exists" in osd("mkdir", "/0x79000", code=1).stderr
    osd("mv", "/0x79000", "/plain")
    assert "has the name 'plain'" in osd("part", "create", "--name", "plain", code=1).output
    osd("mkdir", "/w\udcff")
    assert osd("ls", "-d", "-o", "id", "/w\udcff").stdout_bytes == b"/w\xff\n"
    osd("part", "rm", "/w\udcff", "--yes")
    made = osd("part", "create", "0x79001", "--name", "other").stdout
    assert made == "0x79001\n"
    table = json.loads(osd("part", "ls", "-o", "json").stdout)["partitions"]
    named = {each["name"]: each["id"] for each in table}
    assert named["other"] == "0x79001" and named["plain"] == "0x79000"
    osd("rm", "-r", "/work/plans")
    osd("part", "rm", "/photos", "--contents", "--yes")
    osd("part", "rm", "/work", "/plain", "/other", "--yes")


def test_listings(osd: Run, top: str, tree: Path, pid: str) -> None:
    osd("cp", "-r", tree, f"osd:{top}")
    table = osd("ls", f"{top}/photos").stdout
    assert "LENGTH" in table
    assert [line.split()[-1] for line in table.splitlines()[1:]] == [
        "2024/",
        "2025/",
        "a.jpg",
        "empty",
    ]
    rows = json.loads(osd("ls", f"{top}/photos", "-o", "json").stdout)
    assert rows["schema"] == "iosd.paths/1"
    row = next(each for each in rows["paths"] if each["id"].endswith("a.jpg"))
    assert row["length_bytes"] == 10
    assert row["directory"] is False
    assert osd("obj", "stat", row["object"], "-o", "id").stdout.strip() == row["object"]
    assert pid in osd("ls", "/", "-o", "id").stdout
    assert lines(osd, "ls", "-d", "-o", "id", f"{top}/photos") == [f"{top}/photos"]
    assert len(lines(osd, "ls", "-R", "-o", "id", top)) == 10
    assert osd("stat", f"{top}/photos/a.jpg", "-o", "id").stdout.strip() == f"{top}/photos/a.jpg"
    osd("stat", f"{top}/nothing", code=66)
    osd("ls", f"{top}/photos/a.jpg/x", code=1)


def test_find_and_du(osd: Run, top: str, tree: Path) -> None:
    osd("cp", "-r", tree, f"osd:{top}")
    photos = f"{top}/photos"
    assert lines(osd, "find", top, "--name", "*.jpg") == [
        f"{photos}/2024/b c.jpg",
        f"{photos}/a.jpg",
    ]
    assert lines(osd, "find", top, "--larger", "1MiB") == [f"{photos}/2024/deep/ünder/large.bin"]
    assert lines(osd, "find", top, "--smaller", "1") == [f"{photos}/empty"]
    assert lines(osd, "find", top, "--type", "d", "--max-depth", 2) == [
        photos,
        f"{photos}/2024",
        f"{photos}/2025",
    ]
    assert lines(osd, "find", top, "--older", "1h") == []
    assert len(lines(osd, "find", top, "--newer", "1h", "--type", "f")) == 5
    assert osd("find", top, "--name", "empty", "-0").stdout == f"{photos}/empty\0"
    total = 10 + 70_000 + LARGE + (1 << 20)
    sums = json.loads(osd("du", top, "-o", "json").stdout)["uses"]
    found = {each["id"]: (each["files"], each["length_bytes"]) for each in sums}
    assert found[top] == (5, total)
    assert found[f"{photos}/2025"] == (1, 1 << 20)
    assert found[f"{photos}/2024/deep"] == (1, LARGE)
    assert len(lines(osd, "du", "-s", top)) == 2
    assert osd("du", f"{photos}/a.jpg").stdout.split()[-3:] == ["10", "1", f"{photos}/a.jpg"]


def test_one_that_fails(osd: Run, top: str, tree: Path) -> None:
    osd("mkdir", "-p", f"{top}/p/a.jpg")
    done = osd("cp", tree / "a.jpg", tree / "empty", f"osd:{top}/p", code=1)
    assert "is a directory" in done.stderr
    assert "1 of 2 files failed" in done.stderr
    assert osd("stat", f"{top}/p/empty", "-o", "id").stdout
    done = osd("cp", tree / "empty", f"osd:{top}/none/x", code=1)
    assert f"empty: '{top}/none': no such file or directory" in done.stderr
    done = osd("obj", "ls", f"{top}/none", code=66)
    assert done.stderr.startswith(f"osd: '{top}/none': no such file or directory")


def test_an_interrupted_copy_says_how_to_continue(
    osd: Run, top: str, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> object:
        raise KeyboardInterrupt

    stream = Target.carry_stream
    monkeypatch.setattr(Target, "carry_stream", interrupted)
    said = "interrupted, 0 files done; repeat the command for the rest"
    assert said in osd("cp", tree / "a.jpg", f"osd:{top}", code=130).stderr
    assert said in osd("cp", "-r", tree, f"osd:{top}", code=130).stderr
    other = "use 'osd sync SOURCE DESTINATION' for the rest"  # cp would copy into it now
    assert other in osd("cp", "-r", tree, f"osd:{top}/new", code=130).stderr
    monkeypatch.setattr(Target, "carry_stream", stream)
    monkeypatch.setattr(files, "put_many", lambda *_, **__: map(interrupted, [0]))
    assert said in osd("put", tree / "a.jpg", top, code=130).stderr
    monkeypatch.setattr(Target, "carry", interrupted)
    assert json.loads(osd("ls", top, "-o", "json", code=130).stderr)["error"]["code"] == 130


def test_a_copy_that_loses_the_target_says_how_to_continue(
    osd: Run, top: str, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object) -> object:
        raise errors.SessionLost("no answer")

    monkeypatch.setattr(Target, "carry_stream", lost)
    done = osd("cp", "-r", tree, f"osd:{top}", code=69)
    said = "osd: the target was lost, 0 files done; repeat the command for the rest"
    assert done.stderr.splitlines()[:2] == [said, "osd: no answer"]


def test_what_is_left_out_is_reported(osd: Run, top: str, tree: Path) -> None:
    os.mkfifo(tree / "pipe")
    (tree / "way").symlink_to(tree / "2024")
    (tree / "lost").symlink_to("nowhere")
    (tree / "copy").symlink_to("a.jpg")
    for words in (("cp", "-r", tree, f"osd:{top}"), ("sync", tree, f"osd:{top}/s")):
        done = osd(*words)
        assert f"{tree}/pipe: left out: it is no file" in done.stderr
        assert f"{tree}/way: left out: it is a link to a folder" in done.stderr
        assert f"{tree}/lost: left out" in done.stderr and "6 files" in done.stderr
    assert "left out" not in osd("sync", tree, f"osd:{top}/s", "--exclude", "*").output


def test_a_folder_that_cannot_be_made(osd: Run, top: str, tree: Path, tmp_path: Path) -> None:
    """Its files fail, and no others."""
    osd("cp", "-r", tree, f"osd:{top}")
    back = tmp_path / "back" / "photos"
    back.mkdir(parents=True)
    (back / "2024").write_text("in the way")
    done = osd("cp", "-r", f"osd:{top}/photos", tmp_path / "back", code=1)
    assert "2024: File exists" in done.stderr
    assert (back / "a.jpg").read_bytes() == (tree / "a.jpg").read_bytes()


def test_no_copy_leaves_the_destination_by_a_link(
    osd: Run, top: str, tree: Path, tmp_path: Path
) -> None:
    """A link below the folder is in the way, as for cp(1); the folder itself may be one."""
    osd("cp", "-r", tree, f"osd:{top}")
    outside, back = tmp_path / "outside", tmp_path / "back"
    outside.mkdir()
    (back / "photos").mkdir(parents=True)
    (back / "photos" / "2024").symlink_to(outside)
    (back / "photos" / "a.jpg").symlink_to(outside / "a.jpg")
    for words in (
        ("cp", "-r", f"osd:{top}/photos", back),
        ("sync", f"osd:{top}/photos", back / "photos"),
        ("get", top, back),
    ):
        done = osd(*words, code=1)
        assert "photos/2024' is a link" in done.stderr and not [*outside.iterdir()], words
        assert (back / "photos" / "2025" / "exact").read_bytes()
    assert not (back / "photos" / "a.jpg").is_symlink()
    (tmp_path / "here").symlink_to(outside)
    osd("cp", "-r", f"osd:{top}/photos", tmp_path / "here")
    osd("sync", f"osd:{top}/photos", tmp_path / "here" / "photos")
    assert contents(outside / "photos") == contents(tree)


def test_where_names_come_from(
    osd: Run, top: str, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    osd("mkdir", f"{top}/a", f"{top}/b", f"{top}/c")
    monkeypatch.chdir(tree / "2024")
    osd("cp", "-r", "..", f"osd:{top}/a")
    osd("cp", "-r", ".", f"osd:{top}/b")
    osd("cp", "-r", f"{tree}/2025/", f"osd:{top}/c")
    assert lines(osd, "ls", "-o", "id", f"{top}/a") == [f"{top}/a/photos"]
    assert lines(osd, "ls", "-o", "id", f"{top}/b") == [f"{top}/b/b c.jpg", f"{top}/b/deep"]
    assert lines(osd, "ls", "-o", "id", f"{top}/c") == [f"{top}/c/2025"]
    for words in (("cp", tree / "a.jpg", "osd:/"), ("sync", tree, "osd:/")):
        assert "stored in a partition" in osd(*words, code=1).output


def test_sides(osd: Run, top: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"x")
    assert f"write osd:{top}/f" in osd("cp", tmp_path / "f", f"{top}/f", code=2).output
    osd("cp", tmp_path / "f", f"osd:{top}/a", f"osd:{top}/b", code=2)
    osd("cp", "-", tmp_path / "f", code=2)
    osd("sync", f"osd:{top}/a", f"osd:{top}/b", code=2)


def test_paths_where_addresses_are_taken(osd: Run, top: str, pid: str) -> None:
    osd("mkdir", f"{top}/d")
    osd("cp", "-", f"osd:{top}/d/f", data=b"some text\n")
    assert osd("obj", "read", f"{top}/d/f").stdout == "some text\n"
    osd("obj", "append", f"{top}/d/f", data=b"more\n")
    assert osd("obj", "read", f"osd:{top}/d/f").stdout == "some text\nmore\n"
    osd("obj", "attr", "set", f"{top}/d/f", "0x10000/1", "green")
    assert "green" in osd("obj", "attr", "ls", f"{top}/d/f", "0x10000").stdout
    assert osd("part", "stat", top, "-o", "id").stdout.strip() == pid
    assert len(lines(osd, "col", "ls", f"{top}/d", "-o", "id")) == 1
    osd("obj", "read", f"{top}/d/none", code=66)
    osd("obj", "read", "/nowhere/f", code=66)


def test_the_profile_s_partition(osd: Run, top: str, pid: str, tmp_path: Path) -> None:
    osd("mkdir", f"{top}/d")
    assert "does not begin with a partition" in osd("ls", "d", code=2).output
    folder = tmp_path / "iosd"
    folder.mkdir()
    (folder / "config.toml").write_text(f"[profile.default]\npartition = {int(pid, 0)}\n")
    osd("cp", "-", "osd:d/f", data=b"x")
    assert osd("cat", "d/f").stdout == "x"
    assert lines(osd, "ls", "-o", "id") == [f"{top}/d"]
    assert lines(osd, "find") == [f"{top}/d", f"{top}/d/f"]


@pytest.mark.sandbox
def test_a_script_over_files(osd: Run, top: str, tmp_path: Path) -> None:
    script = tmp_path / "count.py"
    script.write_text(
        "import osd\nprint(osd.args, sorted(each.data.read().decode() for each in osd.over))\n"
    )
    osd("mkdir", f"{top}/d")
    for name in ("d/a.txt", "d/b.txt", "d/c.txt", "d/e.gz"):
        osd("cp", "-", f"osd:{top}/{name}", data=name.encode())
    words = ("exec", script, "--zone", f"{top}/d")
    done = osd(*words, "--over", f"{top}/d/*.txt", "--batch", 2, "--follow", "--wait", "--", "w")
    assert sorted(line.split(" | ")[1] for line in done.stdout.splitlines()) == [
        "['w'] ['d/a.txt', 'd/b.txt']",
        "['w'] ['d/c.txt']",
    ]
    plan = json.loads(osd(*words, "--over", f"{top}/*", "--dry-run").stdout)
    assert plan["over"] == [f"{top}/*"]
    assert "no file matches" in osd(*words, "--over", f"{top}/d", "--no-wait", code=66).output
    osd(*words, "--over", f"{top}/none*", "--no-wait", code=66)
    osd(*words, "--over", f"{top}/d/*", "--array", "0-3", code=2)
    osd(*words, "--over", f"{top}/d/*", "--local", code=2)
    assert "--batch goes with --over" in osd(*words, "--batch", 2, "--no-wait", code=2).output
