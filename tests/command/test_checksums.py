# SPDX-License-Identifier: GPL-2.0-or-later
"""Checksums of data: a byte that is turned over on the disk is found by READ, when asked, and by the
scrub; nothing else is said to be damaged."""

from __future__ import annotations

import os
import random
from pathlib import Path
from time import time

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.errors import OSDError
from pyosd.types import AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import LOGICAL_LENGTH
from tests.conftest import MakeHarness
from tests.expect import MEDIUM, OK, check
from tests.harness import Harness, StartFailed
from tests.waiting import until

BLOCK = 4096
DATA = bytes(range(256)) * 64
ROOT = ref(0, 0)
PAGE = 0xB000_0004
KEPT, STATE, RATE, ENDED, OBJECTS, BLOCKS, MADE, DAMAGED, LIST = 1, 2, 3, 6, 7, 8, 9, 10, 15
IDLE, RUNNING, STOPPED = range(3)


def files_of(folder: Path, obj: ObjectRef, part: str = "h") -> list[Path]:
    """The object's data files (h, t) or their sums (hs, ts) in a root."""
    return sorted(
        (folder / "data").glob(f"{obj.partition_id:016x}.*/*/{obj.object_id:016x}.*{part}")
    )


def turn_over(folder: Path, obj: ObjectRef, at: int, part: str = "h") -> None:
    """Change one byte on the disk, past the target."""
    (path,) = files_of(folder, obj, part)
    with path.open("r+b") as file:
        byte = os.pread(file.fileno(), 1, at)
        os.pwrite(file.fileno(), bytes([byte[0] ^ 0x10]), at)


def number(osd: Commands, which: int) -> int:
    return int.from_bytes(osd.get_attribute(ROOT, PAGE, which), "big")


def damaged_blocks(osd: Commands) -> list[tuple[int, int, int]]:
    value = osd.get_attribute(ROOT, PAGE, LIST)
    words = [int.from_bytes(value[at : at + 8], "big") for at in range(0, len(value), 8)]
    return list(zip(words[::3], words[1::3], words[2::3], strict=True))


def set_number(osd: Commands, which: int, value: int, width: int) -> None:
    osd.set_attributes(ROOT, [AttributeValue(PAGE, which, value.to_bytes(width, "big"))])


def scrub(osd: Commands) -> None:
    """A whole pass, from its beginning to its end."""
    until(lambda: number(osd, STATE) != RUNNING)
    before = number(osd, ENDED)
    until(lambda: time() * 1000 > before + 1)  # the next end is later by the attribute's unit
    set_number(osd, STATE, 1, 1)
    until(lambda: number(osd, STATE) == IDLE and number(osd, ENDED) > before)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


def objects(osd: Commands) -> ObjectRef:
    return osd.create(osd.create_partition())


# ---- READ


@pytest.fixture
def checked(make_harness: MakeHarness, store: Path) -> Harness:
    return make_harness(dir=store, checksums="on", verify="always", scrub_days=0)


@pytest.mark.parametrize(
    ("start", "length"), [(0, len(DATA)), (BLOCK, BLOCK), (BLOCK + 7, 1), (2 * BLOCK - 1, 100)]
)
def test_read_finds_a_turned_byte(checked: Harness, store: Path, start: int, length: int) -> None:
    osd = checked.osd
    obj = objects(osd)
    osd.write(obj, 0, DATA)
    assert bytes(osd.read(obj, start, length)) == DATA[start : start + length]
    turn_over(store, obj, BLOCK + 100)
    reply = check(osd.reply(rq.read(obj, start, length)), MEDIUM)
    assert reply.sense is not None
    assert reply.sense.named_object == obj
    assert reply.sense.information == BLOCK
    assert bytes(reply.response.data_in) == b""
    assert damaged_blocks(osd) == [(obj.partition_id, obj.object_id, BLOCK)]
    # Other blocks are as good as ever; a scattered READ finds it as well.
    assert bytes(osd.read(obj, 0, BLOCK)) == DATA[:BLOCK]
    assert bytes(osd.read(obj, 2 * BLOCK, BLOCK)) == DATA[2 * BLOCK : 3 * BLOCK]
    pieces = rq.read_pieces(obj, [(0, 5), (BLOCK, 5)])
    assert check(osd.reply(pieces), MEDIUM).sense.information == BLOCK  # type: ignore[union-attr]


def test_damage_stays_until_the_block_is_written(checked: Harness, store: Path) -> None:
    osd = checked.osd
    obj = objects(osd)
    osd.write(obj, 0, DATA)
    turn_over(store, obj, BLOCK + 100)
    osd.write(obj, BLOCK + 1000, b"a part of it")
    check(osd.reply(rq.read(obj, BLOCK, 1)), MEDIUM)
    osd.write(obj, BLOCK, DATA[:BLOCK])
    assert bytes(osd.read(obj, BLOCK, BLOCK)) == DATA[:BLOCK]


def test_a_copy_has_the_damage(checked: Harness, store: Path) -> None:
    osd = checked.osd
    obj = objects(osd)
    osd.write(obj, 0, DATA)
    turn_over(store, obj, BLOCK + 100)
    other = ref(obj.partition_id, obj.object_id + 1000)
    check(osd.reply(rq.copy_user_object(obj, other.partition_id, other.object_id)), OK)
    check(osd.reply(rq.read(other, 0, len(DATA))), MEDIUM)
    # Bytes that would come to lie elsewhere in their blocks are not copied at all.
    check(osd.reply(rq.punch(obj, 0, 10)), MEDIUM)
    assert bytes(osd.read(obj, 0, BLOCK)) == DATA[:BLOCK]


def test_without_verification_read_does_not_look(make_harness: MakeHarness, store: Path) -> None:
    osd = make_harness(dir=store, checksums="on", scrub_days=0).osd
    obj = objects(osd)
    osd.write(obj, 0, DATA)
    turn_over(store, obj, 0)
    check(osd.reply(rq.read(obj, 0, len(DATA))), OK)


# ---- the scrub


def test_the_scrub_finds_a_turned_byte(make_harness: MakeHarness, store: Path) -> None:
    osd = make_harness(dir=store, checksums="on", scrub_days=0).osd
    found = [objects(osd) for _ in range(40)]
    for obj in found:
        osd.write(obj, 0, DATA)
    scrub(osd)
    assert (number(osd, OBJECTS), number(osd, DAMAGED), number(osd, MADE)) == (40, 0, 0)
    assert number(osd, BLOCKS) == 40 * 4
    turn_over(store, found[7], 3 * BLOCK + 5)
    turn_over(store, found[30], 5)
    scrub(osd)
    assert number(osd, DAMAGED) == 2
    places = {(found[7].partition_id, found[7].object_id, 3 * BLOCK)}
    places |= {(found[30].partition_id, found[30].object_id, 0)}
    assert set(damaged_blocks(osd)) == places
    # Written again, and removed: the next pass finds nothing.
    osd.write(found[7], 0, DATA)
    osd.remove(found[30])
    scrub(osd)
    assert (number(osd, DAMAGED), damaged_blocks(osd)) == (0, [])


def test_data_from_before_gets_sums(make_harness: MakeHarness, store: Path) -> None:
    harness = make_harness(dir=store)
    obj = objects(harness.osd)
    harness.osd.write(obj, 0, DATA)
    assert number(harness.osd, KEPT) == 0
    with pytest.raises(OSDError):
        set_number(harness.osd, STATE, 1, 1)
    harness.finish()
    harness = make_harness(dir=store, checksums="on", scrub_days=0)
    assert number(harness.osd, KEPT) == 1
    scrub(harness.osd)
    assert number(harness.osd, MADE) == 4
    harness.finish()
    # On from now on, without being told again.
    osd = make_harness(dir=store, verify="always", scrub_days=0).osd
    turn_over(store, obj, 0)
    check(osd.reply(rq.read(obj, 0, 1)), MEDIUM)


def test_off_removes_the_sums(make_harness: MakeHarness, store: Path) -> None:
    harness = make_harness(dir=store, checksums="on", scrub_days=0)
    obj = objects(harness.osd)
    harness.osd.write(obj, 0, DATA)
    assert len(files_of(store, obj, "hs")) == 1
    harness.finish()
    harness = make_harness(dir=store, checksums="off")
    assert files_of(store, obj, "hs") == []
    turn_over(store, obj, 0)
    harness.finish()
    harness = make_harness(dir=store, checksums="on", verify="always", scrub_days=0)
    check(harness.osd.reply(rq.read(obj, 0, len(DATA))), OK)


def test_verify_needs_sums(make_harness: MakeHarness, store: Path) -> None:
    with pytest.raises(StartFailed, match="checksums=on"):
        make_harness(dir=store, verify="always")


def test_the_scrub_goes_on_after_a_restart(make_harness: MakeHarness, store: Path) -> None:
    harness = make_harness(dir=store, checksums="on", scrub_days=0, scrub_rate="64KiB")
    for each in range(64):  # the later ones take minutes: it does not get to the end of them
        harness.osd.write(objects(harness.osd), 0, DATA * (1 if each < 8 else 16))
    set_number(harness.osd, STATE, 1, 1)
    until(lambda: number(harness.osd, OBJECTS) >= 3)
    harness.restart()
    assert number(harness.osd, STATE) == RUNNING
    until(lambda: number(harness.osd, OBJECTS) >= 5)
    set_number(harness.osd, STATE, 0, 1)
    until(lambda: number(harness.osd, STATE) == STOPPED)
    there = number(harness.osd, OBJECTS)
    assert there < 64
    set_number(harness.osd, RATE, 1 << 30, 8)
    set_number(harness.osd, STATE, 1, 1)
    until(lambda: number(harness.osd, STATE) == IDLE)
    assert 64 <= number(harness.osd, OBJECTS) <= 67  # those under way are looked at again
    assert number(harness.osd, DAMAGED) == 0


def test_it_comes_by_itself(make_harness: MakeHarness, store: Path) -> None:
    """A store that has never been looked at is, as soon as it is served."""
    osd = make_harness(dir=store, checksums="on").osd
    until(lambda: number(osd, ENDED) > 0)


# ---- two roots


def test_a_moved_head_takes_its_sums_along(make_harness: MakeHarness, tmp_path: Path) -> None:
    main, ssd = tmp_path / "main", tmp_path / "ssd"
    ssd.mkdir()
    harness = make_harness(
        dir=main, ssd=ssd, head_size="10000", checksums="on", verify="always", scrub_days=0
    )
    osd = harness.osd
    obj = objects(osd)
    osd.write(obj, 0, DATA)
    turn_over(ssd, obj, BLOCK + 5)
    turn_over(main, obj, 100, "t")
    check(osd.reply(rq.read(obj, 0, BLOCK)), OK)
    osd.set_attributes(ROOT, [AttributeValue(0xB000_0003, 6, b"\x01")])
    until(lambda: bool(files_of(main, obj, "h")) and not files_of(ssd, obj, "h*"))
    reply = check(osd.reply(rq.read(obj, 0, 10_000)), MEDIUM)
    assert reply.sense is not None
    assert reply.sense.information == BLOCK
    reply = check(osd.reply(rq.read(obj, 10_000, 10)), MEDIUM)
    assert reply.sense is not None
    assert reply.sense.information == 10_000
    scrub(osd)
    assert number(osd, DAMAGED) == 2
    assert files_of(ssd, obj, "hs") == []


# ---- anything


def test_nothing_else_is_damaged(make_harness: MakeHarness, store: Path, seed: int) -> None:
    """Random changes, with a restart now and then: each READ is compared by the target, and by us."""
    rng = random.Random(seed)
    harness = make_harness(dir=store, checksums="on", verify="always", scrub_days=0)
    obj, model = objects(harness.osd), bytearray()
    for _ in range(400):
        osd = harness.osd
        start, length = rng.randrange(40_000), rng.choice([1, 100, 4096, 8192, 20_000])
        start -= start % BLOCK if rng.random() < 0.5 else 0
        data = rng.randbytes(length)
        match rng.randrange(7):
            case 0 | 1 | 2:
                osd.write(obj, start, data)
                model.extend(bytes(max(0, start + length - len(model))))
                model[start : start + length] = data
            case 3:
                osd.append(obj, data)
                model += data
            case 4:
                osd.clear(obj, start, length)
                model.extend(bytes(max(0, start + length - len(model))))
                model[start : start + length] = bytes(length)
            case 5 if start < len(model):
                osd.punch(obj, start, length)
                del model[start : start + length]
            case 6:
                value = start.to_bytes(8, "big")
                attribute = AttributeValue(LOGICAL_LENGTH.page, LOGICAL_LENGTH.number, value)
                osd.set_attributes(obj, [attribute])
                model.extend(bytes(max(0, start - len(model))))
                del model[start:]
        if rng.random() < 0.02:
            harness.restart()
        at = rng.randrange(len(model) + 1)
        assert bytes(harness.osd.read(obj, 0, len(model))) == model
        assert bytes(harness.osd.read(obj, at, 5000)) == model[at : at + 5000]
    scrub(harness.osd)
    assert number(harness.osd, DAMAGED) == 0
