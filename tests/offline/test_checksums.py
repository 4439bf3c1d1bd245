# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd target check --checksums`: turned bytes are found where the target closed or was killed, and not
taken for damage where a power failure may have made them; files of checksums are repaired."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from iosd_host.store_tools.format.records import MetaKind
from iosd_host.store_tools.format.sums import SumsRun
from iosd_host.store_tools.format.superblock import Superblock
from iosd_host.store_tools.opening.bdb import StoreDatabase, Table
from pyosd.types import AttributeValue, ObjectRef, ref
from tests.conftest import MakeHarness
from tests.harness import Harness
from tests.offline.tool_process import run_apart
from tests.waiting import until

BLOCK = 4096
DATA = bytes(range(256)) * 80
ROOT, PAGE, STATE, ENDED = ref(0, 0), 0xB000_0004, 2, 6
HEAD = 3 * BLOCK


class Roots:
    """A store with two roots that keeps checksums, and one object in both."""

    def __init__(self, folder: Path, make_harness: MakeHarness) -> None:
        self.main, self.ssd = folder / "main", folder / "ssd"
        self.ssd.mkdir()
        self.make_harness = make_harness
        self.harness = self.serve()
        osd = self.harness.osd
        self.obj = osd.create(osd.create_partition())
        osd.write(self.obj, 0, DATA)

    def serve(self, **options: object) -> Harness:
        roots = {"dir": self.main, "ssd": self.ssd, "head_size": HEAD}
        settings = {"checksums": "on", "scrub_days": 0} | options
        self.harness = self.make_harness(**roots, **settings)
        return self.harness

    def path(self, end: str) -> Path:
        root = self.main if end.startswith("t") else self.ssd
        (found,) = (root / "data").glob(f"*/*/*.*{end}")
        return found

    def turn_over(self, end: str, at: int) -> None:
        data = bytearray(self.path(end).read_bytes())
        data[at] ^= 1
        with self.path(end).open("r+b") as file:
            file.write(data)

    def tool(self, verb: str, *options: str) -> list[dict[str, Any]]:
        argv = ["--data", str(self.main), "--ssd", str(self.ssd), "--json", *options]
        result = run_apart(verb, argv)
        rows = [json.loads(line) for line in result.output.splitlines()]
        assert rows
        bad = any(each.get("error") and not each.get("done") for each in rows)
        assert result.exit_code == (65 if bad else 0), rows
        return rows

    def errors(self, *options: str) -> list[tuple[str, str]]:
        rows = self.tool("check", *options)
        return [(each["kind"], each["detail"]) for each in rows if each.get("error")]

    def fail_power(self) -> None:
        """As if the machine had been restarted before the store was closed."""
        with StoreDatabase(self.main / "db") as database, database.transaction() as transaction:
            key = MetaKind.SUMS.key
            run = SumsRun.decode(database.get(Table.META, key) or b"")
            run = replace(run, boot=b"another kernel!!")
            transaction.put(Table.META, key, run._LAYOUT.pack(1, *vars(run).values()))


@pytest.fixture
def roots(tmp_path: Path, make_harness: MakeHarness) -> Roots:
    return Roots(tmp_path, make_harness)


def told(obj: ObjectRef, first: int, last: int) -> tuple[str, str]:
    return "block-damaged", f"bytes {first} to {last} differ from their checksums"


@pytest.mark.parametrize("killed", [False, True])
def test_check_finds_turned_bytes(roots: Roots, killed: bool) -> None:
    (roots.harness.kill if killed else roots.harness.finish)()
    assert roots.errors("--checksums") == []
    roots.turn_over("h", 100)
    roots.turn_over("t", 5)
    roots.turn_over("t", BLOCK + 5)
    assert roots.errors() == []
    found = [told(roots.obj, 0, BLOCK - 1), told(roots.obj, HEAD, HEAD + 2 * BLOCK - 1)]
    assert roots.errors("--checksums", "--rate", "1GiB") == found
    repaired = roots.tool("repair", "--yes")
    assert not any(each.get("done") for each in repaired)
    assert roots.errors("--checksums") == found
    rows = roots.tool("dump", "0x10000/0x10000")
    sums = [each for each in rows if each["what"] == "checksums"]
    assert [(each["known"], each["unknown"], each["sealed"]) for each in sums] == [
        (3, 0, False),
        (2, 0, False),
    ]


def scrubbed(roots: Roots) -> None:
    osd = roots.serve().osd
    osd.set_attributes(ROOT, [AttributeValue(PAGE, STATE, b"\x01")])
    until(lambda: any(osd.get_attribute(ROOT, PAGE, ENDED)))


@pytest.mark.parametrize("sealed", [False, True])
def test_a_power_failure_is_no_damage(roots: Roots, sealed: bool) -> None:
    """A file that was being written can then be a mixture of old and new bytes.  Sealed files are
    not."""
    if sealed:
        roots.harness.finish()
        scrubbed(roots)
    roots.harness.kill()
    roots.fail_power()
    roots.turn_over("h", 100)
    found = [told(roots.obj, 0, BLOCK - 1)] if sealed else []
    assert roots.errors("--checksums") == found
    # The target sees it in the same way.
    osd = roots.serve(verify="always").osd
    if not sealed:
        osd.read(roots.obj, 0, len(DATA))
        roots.harness.finish()
        assert roots.errors("--checksums") == []
        return
    with pytest.raises(Exception, match="from byte 0 of the object"):
        osd.read(roots.obj, 0, len(DATA))
    # Written to and killed by another failure: it is no longer sealed.
    osd.write(roots.obj, 0, DATA)
    roots.harness.kill()
    roots.fail_power()
    roots.turn_over("h", 100)
    assert roots.errors("--checksums") == []


def test_files_of_checksums_are_mended(roots: Roots) -> None:
    roots.harness.finish()
    sums = roots.path("hs")
    orphan = sums.with_name(f"{sums.name[:16]}.{77:016x}hs")
    damaged = bytearray(sums.read_bytes())
    damaged[9] ^= 1
    sums.write_bytes(damaged)
    orphan.write_bytes(damaged)
    kinds = [kind for kind, _ in roots.errors("--checksums")]
    assert sorted(kinds) == ["orphan-sums", "sums-damaged"]
    roots.tool("repair", "--yes")
    assert not orphan.exists()
    assert [kind for kind, _ in roots.errors("--checksums")] == ["sums-damaged"]
    # The target gives it up as well, and the scrub makes it again.
    scrubbed(roots)
    roots.harness.finish()
    assert roots.errors("--checksums") == []
    roots.turn_over("h", 1)
    assert roots.errors("--checksums") == [told(roots.obj, 0, BLOCK - 1)]


def test_superblocks_keep_the_feature(roots: Roots) -> None:
    roots.harness.finish()
    for root in (roots.main, roots.ssd):
        path = root / "superblock"
        assert Superblock.decode(path.read_bytes()).features == 1
        path.unlink()
    roots.tool("repair", "--yes")
    assert Superblock.decode((roots.main / "superblock").read_bytes()).features == 1
    roots.turn_over("h", 1)
    assert roots.errors("--checksums") == [told(roots.obj, 0, BLOCK - 1)]


def test_a_lost_file_leaves_its_checksums(roots: Roots) -> None:
    """A file moved to lost+found gets new ones from the scrub; the old ones go."""
    roots.harness.finish()
    with StoreDatabase(roots.main / "db") as database, database.transaction() as transaction:
        (key,) = (key for key, _ in database.walk(Table.OBJECTS))
        transaction.remove(Table.OBJECTS, key)
    roots.tool("repair", "--yes")
    assert roots.errors("--checksums") == []
    scrubbed(roots)
