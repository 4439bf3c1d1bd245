# SPDX-License-Identifier: GPL-2.0-or-later
"""Objects as files of numpy and pandas, at a client; in a sandbox they are a package set's."""

from __future__ import annotations

import gzip
import io

import pytest

import pyosd.osd as osd
from pyosd.osd import _current

pytestmark = pytest.mark.tgtd


@pytest.fixture
def fresh(serving, monkeypatch):
    """Makes user objects, over a session."""
    monkeypatch.setattr(_current, "_transport", None)
    with serving.connect() as session:
        osd.use(session)
        p = osd.partition().create()
        yield lambda content=b"": (
            u := osd.userobject(p.partition_id).create(),
            u.data.write(content),
        )[0]
        p.remove(contents=True)


def test_arrays(fresh) -> None:
    np = pytest.importorskip("numpy")
    numbers = np.arange(300_000, dtype="<u4").reshape(1000, 300)
    u = fresh()
    np.save(u.data, numbers)
    assert (np.load(u.data) == numbers).all()
    packed = fresh()
    np.savez_compressed(packed.data, a=numbers, b=numbers[0])
    with np.load(packed.data) as found:
        assert (found["a"] == numbers).all() and found["b"].shape == (300,)
    raw = fresh()
    raw.data.write(numbers)
    assert (np.frombuffer(raw.data.map(), "<u4") == numbers.ravel()).all()
    assert not np.frombuffer(raw.data.map(), "<u4").flags.writeable
    into = np.empty_like(numbers)
    assert raw.data.readinto(into) == numbers.nbytes and (into == numbers).all()
    total = sum(int(np.frombuffer(block, "<u4").sum()) for block in raw.data.blocks(1 << 16))
    assert total == int(numbers.sum(dtype="u8"))
    text = fresh()
    np.savetxt(text.data, numbers[:3, :4], fmt="%d", delimiter=",")
    assert (np.loadtxt(text.data, delimiter=",") == numbers[:3, :4]).all()


def test_tables(fresh) -> None:
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"name": ["é", "b"] * 5000, "n": range(10_000)})
    u = fresh()
    table.to_csv(u.data, index=False)
    assert u.data.readline() == b"name,n\n"
    pd.testing.assert_frame_equal(pd.read_csv(u.data), table)
    pieces = pd.read_csv(u.data, chunksize=3000)
    assert sum(piece["n"].sum() for piece in pieces) == table["n"].sum()
    packed = fresh(gzip.compress(table.to_csv(index=False).encode()))
    pd.testing.assert_frame_equal(pd.read_csv(packed.data, compression="gzip"), table)
    lines = fresh()
    table.to_json(io.TextIOWrapper(lines.data, encoding="utf-8"), orient="records", lines=True)
    pd.testing.assert_frame_equal(pd.read_json(lines.data, lines=True), table)
    pickled = fresh()
    table.to_pickle(pickled.data)
    pd.testing.assert_frame_equal(pd.read_pickle(pickled.data), table)
