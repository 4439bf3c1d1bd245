# SPDX-License-Identifier: GPL-2.0-or-later
"""Many local files into a target and back: put_files(), get_files(), differs()."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pyosd import errors
from pyosd.commands import dialogue, names
from pyosd.files import entries, entry, get
from pyosd.fs import transfer
from pyosd.fs.transfer import FileMoved, Incoming, Outgoing, differs, get_files, put_files
from pyosd.target import Target
from pyosd.types import AttributeValue, ObjectRef
from pyosd.wire.attributes import LOGICAL_LENGTH
from tests.waiting import until

pytestmark = pytest.mark.tgtd
LARGE = (5 << 20) + 3


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
    outcomes = moved(target, put_files(zone, wanted, parallel=7, progress=told.append))
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


def test_an_empty_file_takes_few_bytes(target: Target, top: str, tmp_path: Path) -> None:
    """A READ of a megabyte would bring as many zeros."""
    target.fs.write_bytes(f"{top}/empty", b"")
    info, before = target.fs.info(f"{top}/empty"), target.bytes_received
    assert moved(target, get_files([Incoming(info, tmp_path / "empty")]))[info.path].error is None
    assert (tmp_path / "empty").read_bytes() == b""
    assert target.bytes_received - before < 4096
    target.fs.write_bytes(f"{top}/grown", b"")
    info = target.fs.info(f"{top}/grown")
    target.append(info.object, bytes(LARGE))
    assert moved(target, get_files([Incoming(info, tmp_path / "grown")]))[info.path].error is None
    assert (tmp_path / "grown").read_bytes() == bytes(LARGE)
    target.remove(info.object)
    gone = moved(target, get_files([Incoming(info, tmp_path / "gone")]))[info.path]
    assert isinstance(gone.error, errors.NotFound) and not (tmp_path / "gone").exists()


def test_a_file_that_does_not_say_its_length(target: Target, zone: ObjectRef, top: str) -> None:
    source = Path("/proc/version")
    assert source.stat().st_size == 0
    (done,) = moved(target, put_files(zone, [Outgoing(source, b"version")])).values()
    assert bytes(target.fs.read_bytes(f"{top}/version")) == source.read_bytes()
    assert done.length == len(source.read_bytes())


def test_a_small_file_with_a_bad_sector(
    target: Target, zone: ObjectRef, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first read returns the bytes before it, and only the next one fails."""
    source, known = tmp_path / "f", os.read
    source.write_bytes(bytes(10_000))

    def read(descriptor: int, count: int) -> bytes:
        if not os.path.sameopenfile(descriptor, opened):
            return known(descriptor, count)
        at = os.lseek(descriptor, 0, os.SEEK_CUR)
        if at == 4096:
            raise OSError(errno.EIO, "bad sector")
        return known(descriptor, min(count, 4096 - at))

    with source.open("rb") as file:
        opened = file.fileno()
        monkeypatch.setattr(os, "read", read)
        (done,) = moved(target, put_files(zone, [Outgoing(source, b"f")])).values()
    assert isinstance(done.error, OSError) and done.error.errno == errno.EIO
    assert target.list_objects(zone.partition_id) == []


@pytest.mark.parametrize("length", [10, LARGE])
def test_a_replaced_file_keeps_its_mode(
    target: Target, zone: ObjectRef, top: str, tmp_path: Path, length: int
) -> None:
    target.fs.write_bytes(f"{top}/f", bytes(length))
    info, modes = target.fs.info(f"{top}/f"), set[int]()
    for mode in (0o600, 0o755, 0o444):
        (tmp_path / "f").write_bytes(b"old")
        (tmp_path / "f").chmod(mode)

        def look(count: int) -> None:
            modes.update(each.stat().st_mode & 0o077 for each in tmp_path.glob(".osd-*"))

        stream = get_files([Incoming(info, tmp_path / "f")], progress=look)
        assert [each.error for each in moved(target, stream).values()] == [None]
        assert (tmp_path / "f").stat().st_mode & 0o777 == mode
        assert (tmp_path / "f").read_bytes() == bytes(length)
        (tmp_path / "f").unlink()
    assert modes <= {0}


def test_a_file_system_without_owners_takes_files(
    target: Target, top: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EINVAL, "no such owner")

    monkeypatch.setattr(os, "fchmod", refused)
    monkeypatch.setattr(os, "fchown", refused)
    target.fs.write_bytes(f"{top}/f", b"new")
    (tmp_path / "f").write_bytes(b"old")
    stream = get_files([Incoming(target.fs.info(f"{top}/f"), tmp_path / "f")])
    assert [each.error for each in moved(target, stream).values()] == [None]
    assert (tmp_path / "f").read_bytes() == b"new"


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


UNPROVEN = errors.UnprovenAnswer(0, 0, 0, "the answer has no proof")


@pytest.mark.parametrize("error", [errors.SessionLost("the connection ended"), UNPROVEN])
def test_a_file_that_may_have_its_name_is_not_removed(
    target: Target, zone: ObjectRef, top: str, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """The answer to PUT or LINK is lost: the file is there."""

    def lost(function: Any) -> Any:
        def act(*args: Any, **kwargs: Any) -> Any:
            yield from function(*args, **kwargs)
            raise error

        return act

    target.fs.write_bytes(f"{top}/f", b"old")
    for function, new in (("put_name", b"new"), ("link", bytes(LARGE))):
        monkeypatch.setattr(names, function, lost(getattr(names, function)))
        with pytest.raises(type(error)):
            target.fs.write_bytes(f"{top}/f", new)
        assert bytes(target.fs.read_bytes(f"{top}/f")) == new


@pytest.mark.parametrize("commands", [["PUT"], ["PUT", "WRITE"], ["PUT", "WRITE", "LINK"]])
def test_a_small_file_whose_answer_has_no_proof(
    target: Target,
    zone: ObjectRef,
    top: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    commands: list[str],
) -> None:
    """It keeps the name that it may have got, and an object without a name is removed."""
    answers = list[Any]()

    def refused(*args: Any, **kwargs: Any) -> Any:
        return replace(names.put_params(*args, **kwargs), checksum=0)

    def finish(started: Any) -> Any:
        answers.append((yield from dialogue.finish(started)))
        if len(answers) == len(commands):
            raise UNPROVEN
        return answers[-1]

    if commands != ["PUT"]:
        monkeypatch.setattr(transfer, "put_params", refused)
        monkeypatch.setattr(transfer, "needs_steps", lambda error: True)
    monkeypatch.setattr(transfer, "finish", finish)
    wanted = [Outgoing(tmp_path / name, name.encode()) for name in ("f", "other")]
    for each in wanted:
        each.source.write_bytes(b"new")
    target.fs.write_bytes(f"{top}/f", b"old")
    outcomes = moved(target, put_files(zone, wanted, parallel=1))
    assert outcomes["f"].error is UNPROVEN and outcomes["other"].error is None
    stays = b"old" if commands[-1] == "WRITE" else b"new"
    assert bytes(target.fs.read_bytes(f"{top}/f")) == stays
    assert len(target.list_objects(zone.partition_id)) == 2


def test_a_large_file_whose_answer_has_no_proof(
    target: Target, zone: ObjectRef, top: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def act(*args: Any) -> Any:
        yield from names.act(*args)
        raise UNPROVEN

    monkeypatch.setattr(transfer, "act", act)
    target.fs.write_bytes(f"{top}/f", b"old")
    (tmp_path / "f").write_bytes(bytes(LARGE))
    (done,) = moved(target, put_files(zone, [Outgoing(tmp_path / "f", b"f")])).values()
    assert done.error is UNPROVEN
    assert bytes(target.fs.read_bytes(f"{top}/f")) == bytes(LARGE)


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


@pytest.mark.parametrize("new", [b"a longer text", b"short", b"eleven byte", b""])
@pytest.mark.parametrize("replaced", [False, True])
@pytest.mark.parametrize("checked", [False, True])
def test_a_small_file_of_the_target_that_changes_meanwhile(
    target: Target, top: str, tmp_path: Path, new: bytes, replaced: bool, checked: bool
) -> None:
    """What is stored here is the file as it is now, and no part of it."""
    obj = target.fs.write_bytes(f"{top}/f", b"eleven byte")
    info = target.fs.info(f"{top}/f")
    if replaced:
        target.fs.write_bytes(f"{top}/f", new)
    else:
        target.set_attributes(obj, [AttributeValue(*LOGICAL_LENGTH, bytes(8))])
        if new:
            target.write(obj, 0, new)
    incoming = [Incoming(info, tmp_path / "f")]
    outcomes = moved(target, get_files(incoming, fs=target.fs, checked=checked))
    assert outcomes[info.path].error is None
    assert (tmp_path / "f").read_bytes() == new
    assert outcomes[info.path].object == target.fs.info(info.path).object


def test_get_of_an_object_that_changes_meanwhile(
    target: Target, zone: ObjectRef, tmp_path: Path
) -> None:
    obj = target.fs.below(zone).write_bytes("f", b"eleven byte")
    listed = [*entries(target, zone.partition_id), entry(target, obj)]
    target.append(obj, b", and more")
    for each in listed:
        get(target, each, tmp_path / "f")
        assert (tmp_path / "f").read_bytes() == b"eleven byte, and more"


def test_a_file_of_the_target_that_is_gone(target: Target, top: str, tmp_path: Path) -> None:
    infos = []
    for name in ("f", "d"):
        target.fs.write_bytes(f"{top}/{name}", b"data")
        infos.append(target.fs.info(f"{top}/{name}"))
        target.fs.unlink(f"{top}/{name}")
    target.fs.mkdir(f"{top}/d")
    wanted = [Incoming(each, tmp_path / each.name) for each in infos]
    gone, directory = moved(target, get_files(wanted, fs=target.fs)).values()
    assert isinstance(gone.error, errors.NoSuchName)
    assert isinstance(directory.error, errors.IsADirectory)
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("to_target", [True, False])
def test_a_listing_that_fails(
    target: Target, zone: ObjectRef, top: str, tmp_path: Path, to_target: bool
) -> None:
    """Such as of a folder that cannot be read: the outcomes of files under way come first."""
    there = [f"{n}" for n in range(5)]
    for name in there:
        target.fs.write_bytes(f"{top}/{name}", name.encode())
    failure, outcomes = PermissionError(errno.EACCES, "a folder"), list[FileMoved]()

    def outgoing() -> Iterator[Outgoing]:
        for name in [*there, "absent"]:
            if name in there:
                (tmp_path / name).write_bytes(b"new")
            yield Outgoing(tmp_path / name, name.encode())
        raise failure

    def incoming() -> Iterator[Incoming]:
        for each in target.fs.ls(top):
            yield Incoming(each, tmp_path / each.name)
        raise failure

    stream = put_files(zone, outgoing()) if to_target else get_files(incoming())
    with pytest.raises(PermissionError) as caught:
        outcomes.extend(target.carry_stream(stream))
    assert caught.value is failure
    assert sorted(each.local.name for each in outcomes if not each.error) == there
    for name in there:
        stored = target.fs.read_bytes(f"{top}/{name}")
        assert bytes(stored) == (tmp_path / name).read_bytes()


def rewrite(path: Path, data: bytes) -> None:
    """Give a file other data of the same length, and another time."""
    before = path.stat().st_ctime_ns

    def written() -> bool:
        path.write_bytes(data)
        return path.stat().st_ctime_ns != before

    until(written)


@pytest.mark.parametrize("replace", [True, False])
def test_a_small_file_that_changes_meanwhile(
    target: Target, zone: ObjectRef, top: str, tmp_path: Path, replace: bool
) -> None:
    """It is stored again: the copy would be younger than the change, so `osd sync` would leave it."""
    wanted = [Outgoing(tmp_path / name, name.encode()) for name in ("first", "f")]
    for each in wanted:
        each.source.write_bytes(b"old")
    told = list[int]()

    def progress(count: int) -> None:
        if not told:
            rewrite(tmp_path / "f", b"new")
        told.append(count)

    stream = put_files(zone, wanted, replace=replace, parallel=2, progress=progress)
    outcomes = moved(target, stream)
    assert [each.error for each in outcomes.values()] == [None, None] and sum(told) == 6
    assert bytes(target.fs.read_bytes(f"{top}/f")) == b"new"
    assert target.fs.info(f"{top}/f").object == outcomes["f"].object
    assert len(target.list_objects(zone.partition_id)) == 2


def test_a_small_file_that_changes_again_and_again(
    target: Target, zone: ObjectRef, top: str, tmp_path: Path
) -> None:
    """No copy stays whose time would hide the change."""
    wanted = [Outgoing(tmp_path / name, name.encode()) for name in ("first", "f")]
    for each in wanted:
        each.source.write_bytes(b"old")
    stream = put_files(
        zone, wanted, parallel=2, progress=lambda count: rewrite(tmp_path / "f", b"new")
    )
    outcomes = moved(target, stream)
    assert outcomes["first"].error is None
    assert "changed while it was read" in str(outcomes["f"].error)
    assert [each.name for each in target.fs.ls(top)] == ["first"]
    assert len(target.list_objects(zone.partition_id)) == 1
