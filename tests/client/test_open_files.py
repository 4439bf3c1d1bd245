# SPDX-License-Identifier: GPL-2.0-or-later
"""target.open(): files of a target as files of Python, by both faces."""

from __future__ import annotations

import csv
import json
import os
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, cast

import pytest

from pyosd.commands import data as object_data
from pyosd.errors import NoSpace, SessionLost, UnprovenAnswer
from pyosd.fs.files import COPIED
from pyosd.target import Target
from pyosd.types import AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import Page

pytestmark = pytest.mark.tgtd
LARGE = (5 << 20) + 3


def test_text(target: Target, top: str) -> None:
    with target.open(f"{top}/t.csv", "w", newline="") as file:
        csv.writer(file).writerows([["n", "ä"], [1, 2]])
        assert not target.fs.exists(f"{top}/t.csv") and file.mode == "w"
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


def test_an_interrupted_write_leaves_no_object(
    target: Target, zone: ObjectRef, top: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> Iterator[None]:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(object_data, "write_range", interrupted)
    with pytest.raises(KeyboardInterrupt):
        target.fs.write_bytes(f"{top}/b", bytes(LARGE))
    assert target.list_objects(zone.partition_id) == []


def test_little_is_read_behind_the_end(target: Target, top: str) -> None:
    """A target sends zeros there: a small file took megabytes."""
    target.fs.write_bytes(f"{top}/f", b"one\ntwo\n")
    before = target.bytes_received
    with target.open(f"{top}/f", "rb") as file:
        assert file.read() == b"one\ntwo\n"
    with target.open(f"{top}/f") as text:
        assert [*text] == ["one\n", "two\n"]
    assert target.bytes_received - before < 64 << 10
    with target.open(f"{top}/f", "rb") as file, target.open(f"{top}/f", "ab") as other:
        assert file.read() == b"one\ntwo\n"
        for added in (b"three\n", bytes(LARGE)):
            other.write(added)
            other.flush()
            assert file.read() == added


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


def test_no_memory_is_used_after_an_exception(
    target: Target, top: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's buffers free theirs; the answers to commands under way were stored there later."""
    owners = list[object]()

    def watched(known: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any, **how: Any) -> Any:
            owners.extend(each.obj for each in args if isinstance(each, memoryview))
            return known(*args, **how)

        return noted

    for name in ("read_into", "write_range", "append"):
        monkeypatch.setattr(object_data, name, watched(getattr(object_data, name)))
    data = random.Random(3).randbytes(3 * COPIED + 5)
    for mode in ("wb", "ab", "r+b"):
        with target.open(f"{top}/f", mode) as file:
            file.write(data)
            file.write(b"end")
    whole, buffer = data + b"end", bytearray(len(data))
    with target.open(f"{top}/f", "rb") as file:
        assert file.read(10) + file.read(len(data)) == whole[:10] + (whole * 2)[10 : len(data) + 10]
        file.seek(5)
        assert (
            cast(Any, file).readinto(buffer) == len(data)
            and buffer == (whole * 2)[5 : len(data) + 5]
        )
        file.seek(0)
        assert file.read() == whole * 2
        file.seek(0)
        assert file.read(7) + file.readline() + file.read() == whole * 2
    assert len(owners) > 20 and None not in owners


@pytest.mark.parametrize(
    "error", [SessionLost("it ended"), UnprovenAnswer(0, 0, 0, "no proof"), KeyboardInterrupt()]
)
def test_nothing_is_appended_twice(
    target: Target, top: str, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """The answer to APPEND is lost.  Python's buffer would write the bytes again at close()."""
    known = object_data.append

    def lost(*args: Any) -> Any:
        yield from known(*args)
        raise error

    file = target.open(f"{top}/f", "ab")
    file.write(b"once")
    monkeypatch.setattr(object_data, "append", lost)
    with pytest.raises(type(error)):
        file.flush()
    monkeypatch.undo()
    with pytest.raises(OSError, match="open it again"):
        file.close()
    assert bytes(target.fs.read_bytes(f"{top}/f")) == b"once"


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


@pytest.fixture
def full(target: Target, zone: ObjectRef, top: str) -> list[ObjectRef]:
    """A file f, and no room for 5000 bytes more.  The objects that there are."""
    target.fs.write_bytes(f"{top}/f", b"as it was")
    quota = AttributeValue(Page.PARTITION_QUOTAS, 0x10001, (3000).to_bytes(8, "big"))
    target.set_attributes(ref(zone.partition_id), [quota])
    return target.list_objects(zone.partition_id)


@pytest.mark.parametrize("mode", ["w", "wb", "w+b", "x"])
@pytest.mark.parametrize("size", [5000, LARGE])
def test_a_failed_write_changes_nothing(
    target: Target, zone: ObjectRef, top: str, full: list[ObjectRef], mode: str, size: int
) -> None:
    """Of a short file the only write is that of close()."""
    path = f"{top}/{'g' if mode == 'x' else 'f'}"
    data: Any = bytes(size) if "b" in mode else "x" * size
    with pytest.raises(NoSpace), target.open(path, mode) as file:
        file.write(data)
    file = target.open(path, mode)
    with pytest.raises(NoSpace):
        file.write(data)
        file.close()
    with suppress(NoSpace):
        file.close()
    assert target.list_objects(zone.partition_id) == full
    assert bytes(target.fs.read_bytes(f"{top}/f")) == b"as it was"
    assert not target.fs.exists(f"{top}/g")


@pytest.mark.parametrize(("mode", "before"), [("wb", b""), ("ab", b"as it was")])
def test_a_write_that_succeeds_later(
    target: Target, top: str, full: list[ObjectRef], mode: str, before: bytes
) -> None:
    file = target.open(f"{top}/f", mode)
    file.write(bytes(5000))
    with pytest.raises(NoSpace):
        file.flush()
    none = AttributeValue(Page.PARTITION_QUOTAS, 0x10001, b"\xff" * 8)
    target.set_attributes(ref(full[0].partition_id), [none])
    file.close()
    assert bytes(target.fs.read_bytes(f"{top}/f")) == before + bytes(5000)


def test_a_failed_write_without_a_buffer(
    osd_url: str, target: Target, top: str, full: list[ObjectRef]
) -> None:
    """The caller may have missed the error of the write: close() reports it."""
    import asyncio

    from pyosd import aio

    raw = target.open(f"{top}/f", "wb", buffering=0)
    with pytest.raises(NoSpace):
        raw.write(bytes(5000))
    with pytest.raises(OSError, match="a write failed, so nothing has changed"):
        raw.close()

    async def work() -> None:
        async with aio.connect(osd_url) as other:
            file = await other.open(f"{top}/f", "wb")
            with pytest.raises(NoSpace):
                await file.write(bytes(5000))
            with pytest.raises(OSError, match="a write failed, so nothing has changed"):
                await file.close()

    asyncio.run(work())
    assert target.list_objects(full[0].partition_id) == full
    assert bytes(target.fs.read_bytes(f"{top}/f")) == b"as it was"


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
