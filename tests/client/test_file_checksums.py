# SPDX-License-Identifier: GPL-2.0-or-later
"""Files whose bytes change between client and target: the checksums of both differ."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import pyosd
from pyosd.errors import IntegrityError
from pyosd.fs.local import large
from pyosd.fs.transfer import FileMoved, Incoming, Outgoing, get_files, put_files
from pyosd.types import ObjectRef, ref
from tests.security.mitm import Mitm, Pdu, between
from tests.serving import Serving, missing, shared

pytestmark = pytest.mark.tgtd
MARK = b"these bytes change on the way"
SMALL, LARGE = 5000, (3 << 20) + 777


@pytest.fixture(scope="module")
def served() -> Iterator[Serving]:
    if why := missing():
        pytest.skip(why)
    with shared("--no-sandboxes") as made:
        yield made


@pytest.fixture
def way(served: Serving) -> Iterator[tuple[pyosd.Target, Mitm]]:
    with between(served.url) as (url, mitm), pyosd.connect(url) as target:
        yield target, mitm


@pytest.fixture
def zone(way: tuple[pyosd.Target, Mitm]) -> ObjectRef:
    return ref(way[0].create_partition())


def data_of(length: int) -> bytes:
    """With the mark not far from the end."""
    return bytes(length - 600) + MARK + bytes(600 - len(MARK))


def damage(pdu: Pdu) -> list[Pdu]:
    """Change a bit of the mark."""
    at = pdu.data.find(MARK)
    if at >= 0:
        pdu.data[at] ^= 0x10
    return [pdu]


def outcome(moved: Iterator[FileMoved]) -> FileMoved:
    (only,) = list(moved)
    return only


@pytest.fixture(params=[1, 1 << 20], ids=["thread", "at-once"], autouse=True)
def cpus(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a thread has the local side of large files."""
    monkeypatch.setattr(large, "_CPUS", request.param)


by_length = pytest.mark.parametrize("length", [SMALL, LARGE], ids=["small", "large"])


@by_length
def test_on_the_way_to_the_target(
    way: tuple[pyosd.Target, Mitm], zone: ObjectRef, tmp_path: Path, length: int
) -> None:
    target, mitm = way
    source = tmp_path / "file"
    source.write_bytes(data_of(length))
    mitm.to_target = damage
    wanted = [Outgoing(source, b"file")]
    moved = outcome(target.carry_stream(put_files(zone, wanted, checked=True)))
    assert isinstance(moved.error, IntegrityError)
    assert target.list_objects(zone.partition_id) == []
    mitm.to_target = lambda pdu: [pdu]
    moved = outcome(target.carry_stream(put_files(zone, wanted, checked=True)))
    assert moved.error is None
    assert moved.object is not None
    assert target.read_range(moved.object) == data_of(length)


@by_length
def test_on_the_way_from_the_target(
    way: tuple[pyosd.Target, Mitm], zone: ObjectRef, tmp_path: Path, length: int
) -> None:
    target, mitm = way
    fs = target.fs.below(zone)
    fs.write_bytes("file", data_of(length))
    wanted = [Incoming(fs.info("file"), tmp_path / "file")]
    mitm.to_initiator = damage
    moved = outcome(target.carry_stream(get_files(wanted, checked=True)))
    assert isinstance(moved.error, IntegrityError)
    assert [*tmp_path.iterdir()] == []
    mitm.to_initiator = lambda pdu: [pdu]
    moved = outcome(target.carry_stream(get_files(wanted, checked=True)))
    assert moved.error is None
    assert (tmp_path / "file").read_bytes() == data_of(length)
