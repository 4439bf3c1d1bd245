# SPDX-License-Identifier: GPL-2.0-or-later
"""Values that osd.result() takes beside JSON, without numpy.  tests/exec/test_pools.py: with numpy."""

from __future__ import annotations

import array
import base64
import datetime
import decimal
import json
import math
import pathlib
import struct
import uuid
from typing import Any

import pytest

from pyosd.cli.jobs.result import as_lists
from pyosd.osd._results import decode, encode

WHEN = datetime.datetime(2026, 11, 23, 12, 30, tzinfo=datetime.UTC)
SOME_ID = uuid.UUID(int=5)


def back(value: object) -> Any:
    return decode(encode(value))


def test_values_that_become_text_or_lists() -> None:
    assert back([WHEN, WHEN.date(), WHEN.time(), SOME_ID, decimal.Decimal("1.10")]) == [
        "2026-11-23T12:30:00+00:00",
        "2026-11-23",
        "12:30:00",
        str(SOME_ID),
        "1.10",
    ]
    assert back({"a": array.array("d", [1, 2.5])}) == {"a": [1.0, 2.5]}
    assert back({WHEN.date(): {decimal.Decimal(1): ({SOME_ID: 1},)}, 2: None}) == {
        "2026-11-23": {"1": [{str(SOME_ID): 1}]},
        "2": None,
    }
    for wrong in ({1}, object(), {"a": {2}}, {b"key": 1}, 1j):
        with pytest.raises(TypeError):
            encode(wrong)


class DataFrame:
    """Stands for pandas' own, which the tests of the client do not have."""


class Sub(DataFrame):
    pass


@pytest.mark.parametrize(
    ("value", "instead"),
    [
        ({1}, "sorted(value)"),
        ({"a": b"x"}, "value.decode()"),
        ([pathlib.PurePath("x")], "str(value)"),
        (Sub(), "frame.to_dict('list')"),
    ],
)
def test_a_refusal_says_what_to_give_instead(value: object, instead: str) -> None:
    with pytest.raises(TypeError, match="is not JSON serializable") as refused:
        encode(value)
    assert instead in str(refused.value)


def said(kind: object, shape: object, data: object) -> bytes:
    if isinstance(data, bytes):
        data = base64.b64encode(data).decode()
    return json.dumps({"osd.ndarray": kind, "shape": shape, "data": data}).encode()


@pytest.fixture
def no_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "numpy", None)


@pytest.mark.parametrize(
    ("kind", "shape", "data", "value"),
    [
        ("<i4", [2, 2], struct.pack("<4i", 1, -2, 3, 4), [[1, -2], [3, 4]]),
        (">u2", [1, 3], struct.pack(">3H", 1, 2, 65535), [[1, 2, 65535]]),
        ("<f8", [], struct.pack("<d", 1.5), 1.5),
        ("<f2", [2], struct.pack("<2e", 1.5, -1), [1.5, -1.0]),
        ("|b1", [3], b"\1\0\1", [True, False, True]),
        ("<c16", [1], struct.pack("<2d", 1, 2), [1 + 2j]),
        ("<i8", [0], b"", []),
        ("<i8", [1 << 31, 0], b"", []),
        ("<i2", [2, 1, 2], struct.pack("<4h", 1, 2, 3, 4), [[[1, 2]], [[3, 4]]]),
    ],
)
def test_arrays_where_there_is_no_numpy(
    no_numpy: None, kind: str, shape: list[int], data: bytes, value: object
) -> None:
    assert decode(said(kind, shape, data)) == value


@pytest.mark.parametrize(
    "data",
    [
        said("<i4", [2], b"123"),
        said("<i4", [-1], b"1234"),
        said("<i4", [True], b"1234"),
        said("<i4", [1 << 32, 0], b""),
        said("<i4", [0] * 33, b""),
        said("<i4", 1, b"1234"),
        said("<O8", [1], bytes(8)),
        said("<i3", [1], bytes(3)),
        said("<b2", [1], bytes(2)),
        said("<f16", [1], bytes(16)),
        said(5, [1], b"1"),
        said("|u1", [1], "=="),
        said("|u1", [1], 7),
        b'{"osd.ndarray": 1}',
        b'{"osd.ndarray": "|u1", "shape": [1], "data": "AA==", "more": 1}',
    ],
)
def test_what_only_looks_like_an_array_is_left_alone(data: bytes) -> None:
    assert decode(data) == json.loads(data)


class Numbers:
    """What is known here of an array of numpy."""

    def __init__(self, *numbers: complex) -> None:
        self.numbers, self.size = [*numbers], len(numbers)

    def tolist(self) -> list[complex]:
        assert self.numbers, "numpy would make as many lists as the other dimensions say: 2**31"
        return self.numbers


def test_arrays_that_are_printed() -> None:
    assert as_lists({"a": [Numbers(1, 2j), Numbers()]}) == {"a": [[1, "2j"], []]}


def test_numbers_that_json_lacks_are_printed_as_text() -> None:
    shown = as_lists({"a": [math.nan, math.inf, 1.5], "b": Numbers(-math.inf)})
    assert shown == {"a": ["nan", "inf", 1.5], "b": ["-inf"]}
