# SPDX-License-Identifier: GPL-2.0-or-later
"""Files of views for programs: target.fs, open(), fsspec and Zarr (docs/views.md, "Names in a view")."""

from __future__ import annotations

import random
from typing import Any

import pytest

import pyosd
from pyosd.errors import OSDError
from pyosd.functions import Functions, FunctionStage
from pyosd.types import ObjectRef, ref
from tests.exec.test_stacks import SAME, put
from tests.exec.test_view_names import UPPER
from tests.serving import Serving

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]


@pytest.fixture
def upper(functions: Functions) -> FunctionStage:
    return FunctionStage(put(functions, UPPER, SAME, name="upper"))


def test_files_of_a_view(
    target: pyosd.Target, functions: Functions, zone: ObjectRef, upper: FunctionStage
) -> None:
    """Also a file that is longer than one command carries, in the view of a partition and a directory."""
    base = str(zone)
    large = random.Random(1).randbytes(1 << 20).hex().encode() + b"tail"
    target.fs.mkdir(f"{base}/d")
    target.fs.write_bytes(f"{base}/d/a.txt", b"text")
    whole, part = (
        functions.view_create(each, [upper]).id
        for each in (zone, target.fs.info(f"{base}/d").object)
    )
    target.fs.write_bytes(f"{base}/d/large", large)
    for top in (f"{ref(whole)}/d", f"{ref(part)}"):
        assert target.fs.read_bytes(f"{top}/a.txt") == b"TEXT"
        assert target.fs.info(f"{top}/a.txt").length == 4
        assert sorted(each.name for each in target.fs.ls(top)) == ["a.txt", "large"]
        with target.open(f"{top}/large", "rb") as file:
            assert file.read(64) == large[:64].upper()
            file.seek(-4, 2)
            assert file.read() == b"TAIL"
        with pytest.raises((OSDError, OSError)):
            target.fs.write_bytes(f"{top}/b.txt", b"x")
        with pytest.raises((OSDError, OSError)):
            target.fs.unlink(f"{top}/a.txt")


def test_a_writable_view_for_files(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    """Names and data go to the base, through the inverse."""
    gzipped = FunctionStage(functions.put_stock("gzip").id)
    view = str(ref(functions.view_create(zone, [gzipped], writable=True).id))
    large = random.Random(2).randbytes(3 << 20)
    target.fs.mkdir(f"{view}/d")
    for name, data in (("small", b"text"), ("large", large)):
        target.fs.write_bytes(f"{view}/d/{name}", data)
        assert target.fs.read_bytes(f"{view}/d/{name}") == data
        stored = target.fs.read_bytes(f"{zone}/d/{name}")
        assert stored[:2] == b"\x1f\x8b"
    with target.open(f"{view}/d/new", "wb") as file:
        file.write(b"one")
        file.write(b"two")
    assert target.fs.read_bytes(f"{view}/d/new") == b"onetwo"
    target.fs.rename(f"{view}/d/new", f"{view}/d/old")
    target.fs.unlink(f"{view}/d/old")
    assert sorted(each.name for each in target.fs.ls(f"{zone}/d")) == ["large", "small"]


def test_fsspec_in_a_view(
    target: pyosd.Target,
    functions: Functions,
    zone: ObjectRef,
    upper: FunctionStage,
    serving: Serving,
) -> None:
    pytest.importorskip("fsspec")
    from pyosd.fronts.fsspec import IosdFileSystem

    fs = IosdFileSystem(serving.url)
    fs.pipe(f"{zone}/a/f", b"0123abcd")
    view = str(ref(functions.view_create(zone, [upper]).id))
    part = functions.view_create(target.lookup(zone, "a").object, [upper]).id
    for top in (f"{view}/a", f"{ref(part)}"):
        assert fs.info(f"{top}/f")["size"] == 8
        assert fs.cat_file(f"{top}/f", 2, -1) == b"23ABC"
        assert fs.find(top) == [f"{top}/f"]
        before = fs.ukey(f"{top}/f")
        fs.pipe(f"{zone}/a/f", b"9999abcd")
        assert fs.ukey(f"{top}/f") != before
        with fs.open(f"{top}/f") as file:
            assert file.read() == b"9999ABCD"
        with pytest.raises((OSDError, OSError)):
            fs.pipe(f"{top}/g", b"x")
        fs.pipe(f"{zone}/a/f", b"0123abcd")


def test_zarr_in_a_view(
    target: pyosd.Target, functions: Functions, zone: ObjectRef, serving: Serving
) -> None:
    """An array that is stored through a writable view, and read through it and by a plain view of it."""
    zarr: Any = pytest.importorskip("zarr")
    numpy: Any = pytest.importorskip("numpy")
    from pyosd.fronts.zarr import IosdStore

    gzipped = FunctionStage(functions.put_stock("gzip").id)
    near = functions.view_create(zone, [gzipped], writable=True).id
    far = functions.view_create(near, []).id
    numbers = numpy.arange(4096, dtype="i4").reshape(64, 64)
    made = zarr.create_array(
        IosdStore(f"/{ref(near)}/array", target=serving.url),
        shape=(64, 64),
        chunks=(16, 64),
        dtype="i4",
    )
    made[:] = numbers
    read = zarr.open_array(IosdStore(f"/{ref(far)}/array", target=serving.url), mode="r")
    assert (read[:] == numbers).all() and (read[20:30, 5] == numbers[20:30, 5]).all()


def test_the_version_of_the_data(
    target: pyosd.Target, functions: Functions, zone: ObjectRef, upper: FunctionStage
) -> None:
    """It is the source's, also in a view of a view: it changes with the data that a READ returns."""
    source = target.create_and_write(zone.partition_id, b"text")
    near = functions.view_create(zone, [upper], writable=True).id
    far = functions.view_create(near, []).id
    for each in (ref(near, source.object_id), ref(far, source.object_id)):
        before = target.data_version(each)
        assert before == target.data_version(source) == target.read_with_version(each, 0, 4)[1]
        target.write(source, 0, b"t")
        assert target.data_version(each) == target.data_version(source) != before
    functions.attach(ref(near, source.object_id), [])
    target.remove(source)
    alone = target.create_and_write(zone.partition_id, b"x")
    functions.attach(alone, [upper])
    assert target.data_version(alone) == target.read_with_version(alone, 0, 1)[1]
    base = target.create_partition()
    lost = target.create(base)
    view = functions.view_create(base, []).id
    target.remove_partition(base, contents=True)
    assert target.data_version(ref(view, lost.object_id)) == b""
