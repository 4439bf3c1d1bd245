# SPDX-License-Identifier: GPL-2.0-or-later
"""osd:// for programs that use fsspec: fsspec's own abstract tests, and programs that read and write."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyosd import connect
from pyosd.errors import NoSpace, NotFound, Unreachable
from pyosd.types import AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import Page

fsspec = pytest.importorskip("fsspec")

from fsspec.implementations.local import LocalFileSystem, make_path_posix  # noqa: E402
from fsspec.tests.abstract import (  # noqa: E402
    AbstractCopyTests,
    AbstractFixtures,
    AbstractGetTests,
    AbstractPipeTests,
    AbstractPutTests,
)

from pyosd.fronts.fsspec import IosdFileSystem  # noqa: E402

pytestmark = pytest.mark.tgtd
LARGE = (9 << 20) + 1


class Fixtures(AbstractFixtures):  # type: ignore[misc]
    """What fsspec's tests ask for."""

    @pytest.fixture
    def fs(self, osd_url: str) -> IosdFileSystem:
        return IosdFileSystem(osd_url)

    @pytest.fixture
    def fs_path(self, zone: ObjectRef) -> str:
        return str(zone)

    @pytest.fixture
    def fs_join(self) -> Any:
        return lambda *parts: "/".join(parts)

    @pytest.fixture
    def local_fs(self) -> LocalFileSystem:
        return LocalFileSystem(auto_mkdir=True)

    @pytest.fixture
    def local_join(self) -> Any:
        return lambda *parts: make_path_posix("/".join(map(str, parts)))

    @pytest.fixture
    def local_path(self, tmp_path: Path) -> str:
        return str(tmp_path)


class TestCopy(Fixtures, AbstractCopyTests):  # type: ignore[misc]
    """fsspec's."""


class TestGet(Fixtures, AbstractGetTests):  # type: ignore[misc]
    """fsspec's."""


class TestPut(Fixtures, AbstractPutTests):  # type: ignore[misc]
    """fsspec's."""


class TestPipe(Fixtures, AbstractPipeTests):  # type: ignore[misc]
    """fsspec's."""


@pytest.fixture
def fs(osd_url: str) -> IosdFileSystem:
    return IosdFileSystem(osd_url)


@pytest.fixture
def top(zone: ObjectRef) -> str:
    return str(zone)


def test_files(fs: IosdFileSystem, top: str) -> None:
    fs.pipe(f"{top}/a/b/f", b"0123456789")
    info = fs.info(f"{top}/a/b/f")
    assert (info["name"], info["size"], info["type"]) == (f"{top}/a/b/f", 10, "file")
    assert fs.cat_file(f"{top}/a/b/f", 2, -3) == b"23456"
    assert fs.cat_ranges([f"{top}/a/b/f"] * 4, [0, 5, 8, 9], [2, 6, 20, 9]) == [
        b"01",
        b"5",
        b"89",
        b"",
    ]
    assert fs.ls(f"{top}/a", detail=False) == [f"{top}/a/b"]
    assert fs.find(top) == [f"{top}/a/b/f"]
    assert fs.find(top, withdirs=True) == [top, f"{top}/a", f"{top}/a/b", f"{top}/a/b/f"]
    assert fs.glob(f"{top}/**/f") == [f"{top}/a/b/f"]
    before = fs.ukey(f"{top}/a/b/f")
    fs.pipe(f"{top}/a/b/f", b"new")
    assert fs.ukey(f"{top}/a/b/f") != before
    assert fs.modified(f"{top}/a/b/f").year >= 2024
    fs.mv(f"{top}/a/b/f", f"{top}/g")
    fs.mv(f"{top}/g", f"{int(top, 16)}/g")
    assert fs.cat(f"{top}/g") == b"new"
    fs.rmdir(f"{top}/a/b")
    with pytest.raises(FileNotFoundError):
        fs.info(f"{top}/a/b")
    fs.rm(f"{top}/a", recursive=True)
    assert fs.ls(top, detail=False) == [f"{top}/g"]
    with pytest.raises(FileExistsError):
        fs.pipe_file(f"{top}/g", b"x", mode="create")
    with pytest.raises(FileNotFoundError):
        fs.cat(f"{top}/none")
    found = fs.cat_ranges([f"{top}/none", f"{top}/g"], [0, 0], [1, 1])
    assert isinstance(found[0], FileNotFoundError)
    assert found[1] == b"n"


def test_open_files(fs: IosdFileSystem, osd_url: str, top: str) -> None:
    data = bytes(range(256)) * (LARGE // 256)
    with fs.open(f"{top}/d/f", "wb") as file:
        file.write(data)
        assert not fs.exists(f"{top}/d/f")
    assert fs.size(f"{top}/d/f") == len(data)
    with fs.open(f"{top}/d/f") as file:
        file.seek(-3, 2)
        assert file.read() == data[-3:]
    with fs.open(f"{top}/d/f", "ab") as file:
        file.write(b"more")
    assert fs.cat_file(f"{top}/d/f", -6) == data[-2:] + b"more"
    with fs.open(f"{top}/empty", "wb"):
        pass
    assert fs.cat(f"{top}/empty") == b""
    with fsspec.open(f"osd://{top}/t.gz", "wt", compression="gzip", target=osd_url) as file:
        file.write("text")
    with fsspec.open(f"osd://{top}/t.gz", "rt", compression="infer", target=osd_url) as file:
        assert file.read() == "text"
    with fs.transaction:
        with fs.open(f"{top}/later", "wb") as file:
            file.write(b"x")
        assert not fs.exists(f"{top}/later")
    assert fs.cat(f"{top}/later") == b"x"
    with pytest.raises(FileExistsError):
        fs.open(f"{top}/later", "xb")


@pytest.mark.parametrize("size", [5000, LARGE])
def test_what_fails_leaves_nothing(fs: IosdFileSystem, osd_url: str, top: str, size: int) -> None:
    fs.pipe_file(f"{top}/f", b"as it was")
    pid = int(top.strip("/"), 0)
    with connect(osd_url) as target:
        before = target.list_objects(PartitionId(pid))
        with pytest.raises(ZeroDivisionError), fs.open(f"{top}/f", "wb") as file:
            file.write(bytes(size))
            _ = 1 / 0
        quota = AttributeValue(Page.PARTITION_QUOTAS, 0x10001, (3000).to_bytes(8, "big"))
        target.set_attributes(ref(pid), [quota])
        with pytest.raises(NoSpace), fs.open(f"{top}/f", "wb") as file:
            file.write(bytes(size))
        assert target.list_objects(PartitionId(pid)) == before
    assert fs.cat_file(f"{top}/f") == b"as it was"


def test_an_unknown_option_is_refused(osd_url: str) -> None:
    """A misspelt target would be that of the environment."""
    with pytest.raises(TypeError, match="no storage option 'tgt'"):
        IosdFileSystem(tgt=osd_url)


def test_the_option_counts_more_than_the_environment(
    osd_url: str, top: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IOSD_TARGET", osd_url)
    with fsspec.open(f"osd://{top}/f", "wb") as file:
        file.write(b"abc")
    monkeypatch.setenv("IOSD_TARGET", "iscsi://127.0.0.1:1/iqn.2026-11.example:other/1")
    with fsspec.open(f"osd://{top}/f", "rb", target=osd_url) as file:
        assert file.read() == b"abc"
    with pytest.raises(Unreachable):
        fsspec.open(f"osd://{top}/f", "rb").open()


def test_a_directory_is_no_file(fs: IosdFileSystem, top: str) -> None:
    fs.pipe(f"{top}/folder/empty", b"")
    assert fs.open(f"{top}/folder/empty", "rb").read() == b""
    for path in (top, f"{top}/folder"):
        with pytest.raises(IsADirectoryError):
            fs.open(path, "rb")


def test_asynchronous(osd_url: str, top: str) -> None:
    async def work() -> None:
        fs = IosdFileSystem(osd_url, asynchronous=True, skip_instance_cache=True)
        await fs._pipe_file(f"{top}/f", b"abc")
        assert await fs._cat_file(f"{top}/f") == b"abc"
        async with await fs.open_async(f"{top}/f") as file:
            assert await file.read() == b"abc"
        await fs.aclose()

    asyncio.run(work())


def test_it_can_be_pickled(fs: IosdFileSystem, top: str) -> None:
    fs.pipe(f"{top}/f", b"x")
    assert pickle.loads(pickle.dumps(fs)).cat(f"{top}/f") == b"x"


@pytest.fixture
def options(osd_url: str) -> Iterator[dict[str, Any]]:
    yield {"target": osd_url}


def test_pandas_and_pyarrow(fs: IosdFileSystem, top: str, options: dict[str, Any]) -> None:
    pandas = pytest.importorskip("pandas")
    parquet = pytest.importorskip("pyarrow.parquet")
    dataset = pytest.importorskip("pyarrow.dataset")
    frame = pandas.DataFrame({"n": range(1000), "square": [n * n for n in range(1000)]})
    frame.to_csv(f"osd://{top}/t.csv", index=False, storage_options=options)
    assert pandas.read_csv(f"osd://{top}/t.csv", storage_options=options).equals(frame)
    frame.to_parquet(f"osd://{top}/set/1.parquet", storage_options=options)
    frame.to_parquet(f"osd://{top}/set/2.parquet", storage_options=options)
    assert parquet.read_table(f"{top}/set/1.parquet", filesystem=fs).num_rows == 1000
    found = dataset.dataset(f"{top}/set", filesystem=fs, format="parquet")
    assert found.to_table(filter=dataset.field("n") >= 990).num_rows == 20


def test_duckdb(fs: IosdFileSystem, top: str, tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    fs.pipe({f"{top}/a.csv": b"n,x\n1,2\n3,4\n", f"{top}/b.csv": b"n,x\n5,6\n"})
    connection = duckdb.connect()
    connection.register_filesystem(fs)
    query = f"select sum(n), sum(x) from read_csv('osd://{top}/*.csv')"
    assert connection.execute(query).fetchone() == (9, 12)


def test_xarray_and_zarr(top: str, options: dict[str, Any]) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("zarr")
    grid = xarray.Dataset({"t": (("y", "x"), [[1.0, 2.0], [3.0, 4.0]])})
    grid.to_zarr(f"osd://{top}/grid.zarr", storage_options=options, consolidated=False)
    back = xarray.open_zarr(
        f"osd://{top}/grid.zarr", storage_options=options, consolidated=False, chunks=None
    )
    assert float(back.t.sum()) == 10.0


def test_an_open_file_is_one_object(fs: IosdFileSystem, top: str) -> None:
    fs.pipe_file(f"{top}/f", b"a" * LARGE)
    with fs.open(f"{top}/f", "rb", block_size=1 << 16, cache_type="none") as file:
        assert file.read(5) == b"aaaaa"
        fs.pipe_file(f"{top}/f", b"b" * LARGE)
        with pytest.raises(NotFound):
            file.read(5)
    assert fs.cat_file(f"{top}/f", LARGE - 3) == b"bbb"
