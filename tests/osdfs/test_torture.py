# SPDX-License-Identifier: GPL-2.0-or-later
"""One file under random operations, by system calls, as fsx does; a bytearray says what it must hold."""

from __future__ import annotations

import json
import mmap
import os
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.osdfs.test_files import KEEP_SIZE, PUNCH_HOLE, ZERO_RANGE, fallocate

pytestmark = pytest.mark.tgtd
MOST = 300_000
PAGE = mmap.PAGESIZE
STEPS = 600


class TorturedFile:
    """The file and its model.  Each method named do_... is one operation."""

    def __init__(self, folders: list[Path], choices: random.Random) -> None:
        self.folders, self.choices = folders, choices
        self.model = bytearray()
        self.history = list[str]()
        self.folder = folders[0]
        self.fd = os.open(self.folder / "fsx", os.O_RDWR | os.O_CREAT)

    def run(self, steps: int) -> None:
        operations = [getattr(self, name) for name in sorted(dir(self)) if name.startswith("do_")]
        for _ in range(steps):
            self.choices.choice(operations)()
        self.do_reopen()
        self.check(0, MOST)
        os.close(self.fd)

    def note(self, *words: object) -> None:
        self.history.append(" ".join(map(str, words)))

    def check(self, start: int, length: int) -> None:
        found = os.pread(self.fd, length, start)
        expected = bytes(self.model[start : start + length])
        if found != expected:
            at = next(
                (i for i, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b),
                min(len(found), len(expected)),
            )
            last = "\n".join(self.history[-30:])
            pytest.fail(
                f"{len(found)} bytes, {len(expected)} expected, differ at {start + at}\n{last}"
            )

    def span(self) -> tuple[int, int]:
        start = self.choices.randrange(MOST)
        longest = self.choices.choice([16, 5000, 70_000])
        return start, self.choices.randrange(1, min(longest, MOST - start) + 1)

    def put(self, start: int, data: bytes) -> None:
        self.grow(start + len(data))
        self.model[start : start + len(data)] = data

    def grow(self, length: int) -> None:
        self.model += bytes(max(length - len(self.model), 0))

    def do_write(self) -> None:
        start, length = self.span()
        self.note("write", start, length)
        data = self.choices.randbytes(length)
        assert os.pwrite(self.fd, data, start) == length
        self.put(start, data)

    def do_read(self) -> None:
        self.check(*self.span())

    def do_truncate(self) -> None:
        length = self.choices.randrange(MOST)
        self.note("truncate", length)
        os.ftruncate(self.fd, length)
        del self.model[length:]
        self.grow(length)

    def do_punch(self) -> None:
        start, length = self.span()
        self.note("punch", start, length)
        fallocate(self.fd, PUNCH_HOLE | KEEP_SIZE, start, length)
        end = min(start + length, len(self.model))
        self.model[start:end] = bytes(max(end - start, 0))

    def do_zero(self) -> None:
        start, length = self.span()
        self.note("zero", start, length)
        fallocate(self.fd, ZERO_RANGE, start, length)
        self.put(start, bytes(length))

    def do_append(self) -> None:
        if len(self.model) > MOST:
            return
        data = self.choices.randbytes(self.choices.randrange(1, 9000))
        self.note("append", len(self.model), len(data))
        with (self.folder / "fsx").open("ab", buffering=0) as file:
            file.write(data)
        self.model += data

    def do_map_write(self) -> None:
        start, length = self.span()
        if start + length > len(self.model):
            return
        self.note("map write", start, length)
        first = start // PAGE * PAGE
        data = self.choices.randbytes(length)
        with mmap.mmap(self.fd, start + length - first, offset=first) as view:
            view[start - first :] = data
            view.flush()
        self.put(start, data)

    def do_map_read(self) -> None:
        start, length = self.span()
        if start + length > len(self.model):
            return
        first = start // PAGE * PAGE
        with mmap.mmap(self.fd, start + length - first, offset=first, prot=mmap.PROT_READ) as view:
            assert view[start - first :] == self.model[start : start + length], self.history[-30:]

    def do_length(self) -> None:
        assert os.fstat(self.fd).st_size == len(self.model), self.history[-30:]

    def do_sync(self) -> None:
        self.note("fsync")
        os.fsync(self.fd)

    def do_reopen(self) -> None:
        """On any of the mounts."""
        os.close(self.fd)
        self.folder = self.choices.choice(self.folders)
        self.note("open", self.folder)
        self.fd = os.open(self.folder / "fsx", os.O_RDWR)
        self.check(0, MOST)


@pytest.mark.parametrize("round_", range(2))
def test_a_file_holds_what_was_written(
    top: Path, mounted: Callable[..., Path], seed: int, round_: int
) -> None:
    folders = [top] if round_ == 0 else [top, mounted()]
    TorturedFile(folders, random.Random(f"{seed}-{round_}")).run(STEPS)


def test_the_same_on_a_local_file(seed: int) -> None:
    """The model is right: a local file system passes, too.  One in memory has not all operations."""
    with tempfile.TemporaryDirectory(prefix="iosd-test-", dir="/var/tmp") as folder:
        TorturedFile([Path(folder)], random.Random(seed)).run(STEPS)


def test_two_mounts_see_what_the_other_has_closed(
    top: Path, mounted: Callable[..., Path], seed: int
) -> None:
    choices, folders = random.Random(seed), [top, mounted()]
    expected = dict[str, bytes]()
    for _ in range(150):
        name, folder = f"f{choices.randrange(6)}", choices.choice(folders)
        match choices.randrange(5):
            case 0:
                expected[name] = choices.randbytes(choices.randrange(20_000))
                (folder / name).write_bytes(expected[name])
            case 1 if name in expected:
                new = f"f{choices.randrange(6)}"
                (folder / name).rename(folder / new)
                expected[new] = expected.pop(name)
            case 2 if name in expected:
                (folder / name).unlink()
                del expected[name]
            case 3 if expected.get(name):
                at, data = choices.randrange(len(expected[name])), choices.randbytes(700)
                with (folder / name).open("r+b") as file:
                    file.seek(at)
                    file.write(data)
                old = expected[name]
                expected[name] = old[:at] + data + old[at + 700 :]
            case _:
                for each in folders:
                    assert {path.name: path.read_bytes() for path in each.iterdir()} == expected
                    sizes = {path.name: path.stat().st_size for path in each.iterdir()}
                    assert sizes == {key: len(value) for key, value in expected.items()}


def test_a_short_campaign(serving: object, capsys: pytest.CaptureFixture[str]) -> None:
    """The command for long ones, tests/osdfs/fsx.py."""
    from tests.osdfs import fsx

    folder = Path(tempfile.mkdtemp(prefix="iosd-fsx-"))  # tgtd's user cannot look into pytest's
    folder.chmod(0o755)
    try:
        assert fsx.main([str(folder), "--minutes", "0.1", "--kills"]) == 0
        found = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert found["steps"] > 50 and found["kills"] > 0 and found["failed"] == []
    finally:
        shutil.rmtree(folder)
