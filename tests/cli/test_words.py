# SPDX-License-Identifier: GPL-2.0-or-later
"""Words of users: addresses, sizes, tags, attributes, options inside scripts."""

from __future__ import annotations

from typing import Any

import click
import pytest

from pyosd.cli.frame import params
from pyosd.cli.jobs.script import embedded_options, late_options
from pyosd.types import ROOT, ref
from pyosd.wire.exec_params import AfterEnd


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("root", ROOT),
        ("65536", ref(0x10000)),
        ("0x10000", ref(0x10000)),
        ("0x10000/0x10007", ref(0x10000, 0x10007)),
        ("65536/65543", ref(0x10000, 0x10007)),
        ("0xffffffffffffffff/1", ref((1 << 64) - 1, 1)),
    ],
)
def test_address(text: str, expected: object) -> None:
    assert params.ADDRESS.convert(text, None, None) == expected
    assert params.ADDRESS.convert(str(expected), None, None) == expected


@pytest.mark.parametrize("text", ["", "x", "1/", "-1", "0x1_0000_0000_0000_0000", "1/2/3"])
def test_address_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="PID/OID"):
        params.ADDRESS.convert(text, None, None)


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (params.SIZE, "4096", 4096),
        (params.SIZE, "256MiB", 256 << 20),
        (params.SIZE, "1.5k", 1536),
        (params.SIZE, "1GB", 10**9),
        (params.DURATION, "30s", 30.0),
        (params.DURATION, "500ms", 0.5),
        (params.DURATION, "2h", 7200.0),
        (params.NUMBER, "0x10", 16),
        (params.TAG, "a=b=c", ("a", "b=c")),
        (params.ATTRIBUTE, "0xa/1", (10, 1)),
        (params.ATTRIBUTE, "3", (3, 0xFFFF_FFFF)),
        (params.ATTRIBUTE, "all/all", (0xFFFF_FFFF, 0xFFFF_FFFF)),
    ],
)
def test_value(kind: click.ParamType[Any], text: str, expected: object) -> None:
    assert kind.convert(text, None, None) == expected


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("1/2", AfterEnd.COMPLETED),
        ("1/2:ok", AfterEnd.COMPLETED),
        ("1/2:afterok", AfterEnd.COMPLETED),
        ("1/2:failed", AfterEnd.FAILED),
        ("1/2:afternotok", AfterEnd.FAILED),
        ("1/2:any", AfterEnd.ANY),
        ("1/2:ended", AfterEnd.ANY),
        ("1/2:afterany", AfterEnd.ANY),
    ],
)
def test_after(text: str, condition: AfterEnd) -> None:
    after = params.AFTER.convert(text, None, None)
    assert (after.job, after.condition) == (ref(1, 2), condition)
    assert params.AFTER.convert(str(after), None, None) == after


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (params.SIZE, "12 parsecs"),
        (params.SIZE, "-1"),
        (params.DURATION, "soon"),
        (params.NUMBER, "-1"),
        (params.NUMBER, "0x1ffffffffffffffff"),
        (params.TAG, "novalue"),
        (params.TAG, "=x"),
        (params.ATTRIBUTE, "1/0x100000000"),
        (params.ATTRIBUTE, "x/1"),
    ],
)
def test_value_refused(kind: click.ParamType[Any], text: str) -> None:
    with pytest.raises(click.BadParameter):
        kind.convert(text, None, None)


def test_options_in_a_script() -> None:
    code = (
        b"#!/usr/bin/env osd-exec\n"
        b"# a comment\n"
        b"#OSD --limit-mem 256MiB --name 'two words'   # why\n"
        b"\n"
        b"#OSD\t--priority 5\n"
        b"#OSDX --not-ours\n"
        b"import osd\n"
        b"#OSD --too-late\n"
    )
    assert embedded_options(code) == [
        (3, ["--limit-mem", "256MiB", "--name", "two words"]),
        (5, ["--priority", "5"]),
    ]


def test_unbalanced_quote_in_a_script() -> None:
    with pytest.raises(click.UsageError, match="quotation"):
        embedded_options(b"#OSD --name 'x\n")


def test_options_of_a_script_with_a_byte_order_mark() -> None:
    assert embedded_options(b"\xef\xbb\xbf#OSD --hold\r\n") == [(1, ["--hold"])]


def test_options_that_come_too_late() -> None:
    code = b"#OSD --hold\nimport os\n\n#OSD --name x\n#OSDx\n  #OSD\t--pool x\n"
    assert late_options(code) == [4, 6]


@pytest.mark.parametrize("text", ["/", "/0x10000", "/photos/a b", "osd:/photos", "osd:a"])
def test_a_path_is_an_address(text: str) -> None:
    found = params.ADDRESS.convert(text, None, None)
    assert (found.partition_id, found.object_id, str(found)) == (0, 0, text)
    assert params.PATH.convert(text, None, None) == text


@pytest.mark.parametrize("text", ["", "a\0b"])
def test_path_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="NUL"):
        params.PATH.convert(text, None, None)
