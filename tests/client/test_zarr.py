# SPDX-License-Identifier: GPL-2.0-or-later
"""The store for Zarr passes Zarr's own tests of stores, and its set_if_not_exists() is atomic."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pyosd
from pyosd.types import ObjectRef

pytest.importorskip("zarr")

from zarr.abc.store import (  # noqa: E402
    OffsetByteRequest,
    RangeByteRequest,
    SuffixByteRequest,
)
from zarr.core.buffer import Buffer, cpu, default_buffer_prototype  # noqa: E402
from zarr.core.sync import _get_loop, sync  # noqa: E402
from zarr.testing.store import StoreTests  # noqa: E402

from pyosd.commands import data as object_data  # noqa: E402
from pyosd.fronts import zarr as zarr_front  # noqa: E402
from pyosd.fronts.zarr import IosdStore  # noqa: E402

pytestmark = pytest.mark.tgtd

Test = Callable[..., Any]


def waited(test: Test) -> Test:
    """Run a coroutine in Zarr's own loop, as Zarr does for its callers."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        sync(test(*args, **kwargs))

    return run


@pytest.fixture
def store_kwargs(osd_url: str, zone: ObjectRef) -> Iterator[dict[str, Any]]:
    yield {"path": f"/{zone}/grid.zarr", "target": osd_url}


@pytest.fixture(autouse=True)
def sessions(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Sessions end with the test."""
    made = list[IosdStore]()
    init = IosdStore.__init__

    def remembered(self: IosdStore, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        made.append(self)

    monkeypatch.setattr(IosdStore, "__init__", remembered)
    yield
    for each in made:
        sync(each.log_out(), loop=_get_loop())


class TestStore(StoreTests[IosdStore, cpu.Buffer]):
    """Zarr's tests."""

    store_cls = IosdStore
    buffer_cls = cpu.Buffer

    @pytest.fixture
    def store_kwargs(self, osd_url: str, zone: ObjectRef) -> dict[str, Any]:
        return {"path": f"/{zone}/grid.zarr", "target": osd_url}

    @pytest.fixture
    def store(self, open_kwargs: dict[str, Any]) -> IosdStore:
        return sync(IosdStore.open(**open_kwargs))

    @pytest.fixture
    def store_not_open(self, store_kwargs: dict[str, Any]) -> IosdStore:
        return IosdStore(**store_kwargs)

    async def set(self, store: IosdStore, key: str, value: Buffer) -> None:
        with pyosd.connect(store.url) as target:
            path = f"{store.path}/{key}"
            target.fs.mkdir(path.rpartition("/")[0], parents=True, exist_ok=True)
            target.fs.write_bytes(path, value.to_bytes())

    async def get(self, store: IosdStore, key: str) -> Buffer:
        with pyosd.connect(store.url) as target:
            return self.buffer_cls.from_bytes(bytes(target.fs.read_bytes(f"{store.path}/{key}")))

    def test_store_repr(self, store: IosdStore) -> None:
        assert repr(store) == f"IosdStore({store.path!r}, target={store.url!r})"

    def test_store_supports_writes(self, store: IosdStore) -> None:
        assert store.supports_writes

    def test_store_supports_listing(self, store: IosdStore) -> None:
        assert store.supports_listing


for _name, _test in inspect.getmembers(StoreTests, inspect.iscoroutinefunction):
    if _name.startswith("test_"):
        setattr(TestStore, _name, waited(_test))


def test_one_of_many_writers_is_first(store_kwargs: dict[str, Any]) -> None:
    stores = [IosdStore(**store_kwargs) for _ in range(6)]
    values = [cpu.Buffer.from_bytes(bytes([n]) * 100) for n in range(6)]

    async def race() -> bytes:
        await asyncio.gather(
            *(
                each.set_if_not_exists("c/0", value)
                for each, value in zip(stores, values, strict=True)
            )
        )
        found = await stores[0].get("c/0", default_buffer_prototype())
        assert found is not None
        for each, value in zip(stores, values, strict=True):
            await each.set_if_not_exists("c/0", value)
        again = await stores[1].get("c/0", default_buffer_prototype())
        assert again is not None
        assert again.to_bytes() == found.to_bytes()
        return found.to_bytes()

    first = sync(race())
    assert first in [value.to_bytes() for value in values]


def test_parts_of_a_value_that_is_replaced_meanwhile(
    store_kwargs: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, length, known = IosdStore(**store_kwargs), 200_000, object_data.read_range

    def replace(*args: Any) -> Any:
        monkeypatch.undo()
        with pyosd.connect(store.url) as target:
            target.fs.write_bytes(f"{store.path}/shard", b"new" + bytes(length) + b"new")
        return known(*args)

    async def parts() -> list[bytes]:
        found = list[bytes]()
        for wanted in (
            RangeByteRequest(0, 100_000),
            OffsetByteRequest(100_000),
            SuffixByteRequest(100_000),
        ):
            await store.set("shard", cpu.Buffer.from_bytes(bytes(length)))
            for module in (object_data, zarr_front):
                monkeypatch.setattr(module, "read_range", replace)
            part = await store.get("shard", default_buffer_prototype(), wanted)
            assert part is not None
            found.append(part.to_bytes())
        return found

    assert sync(parts()) == [
        b"new" + bytes(99_997),
        bytes(length - 99_997) + b"new",
        bytes(99_997) + b"new",
    ]


def test_arrays(store_kwargs: dict[str, Any]) -> None:
    import numpy
    import zarr

    store = IosdStore(**store_kwargs)
    made = zarr.create_array(store, shape=(100, 100), chunks=(10, 50), dtype="i4")
    made[:] = numpy.arange(10_000).reshape(100, 100)
    back = zarr.open_array(IosdStore(**store_kwargs, read_only=True), mode="r")
    found = numpy.asarray(back[:])
    assert (int(found[37, 41]), int(found.sum())) == (3741, 49_995_000)
