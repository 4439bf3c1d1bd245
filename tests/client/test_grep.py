# SPDX-License-Identifier: GPL-2.0-or-later
"""Search in blocks finds what a search in the whole would, wherever the borders of blocks lie."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pyosd.osd import _grep
from pyosd.osd._errors import Invalid
from pyosd.osd._grep import Found, Line, compiled, find, grep

PATTERNS = [
    "a", "ab", "a+b", "^a", "b$", "^$", "", "[^a]b", r"\s", "a.*b", "(?:ab|ba)c", "a[^b]*b", "b*",
    r"(?<=a)b", r"b(?!a)", r"a\Z", r"\Aa", r"\bab\b", "a[^b]*+b", "(?>a+)b", "(?s)a.b", "ab\nc",
]  # fmt: skip
SHORT = 16
texts = st.text("abc\n ", max_size=150).map(str.encode)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks so small that every text has borders."""
    monkeypatch.setattr(_grep, "BLOCK", 8)
    monkeypatch.setattr(_grep, "CONTEXT", 4)


def reader(data: bytes) -> _grep.Read:
    def read(offset: int, buffer: memoryview) -> int:
        piece = data[offset : offset + len(buffer)]
        buffer[: len(piece)] = piece
        return len(piece)

    return read


@pytest.mark.parametrize("pattern", PATTERNS)
def test_lines(pattern: str) -> None:
    regex = compiled(pattern, False, False)

    @given(texts)
    def check(data: bytes) -> None:
        wanted, at = [], 0
        for line in data.split(b"\n"):
            if regex.search(line) and (at < len(data)):
                wanted.append(Line(at, line))
            at += len(line) + 1
        assert list(grep(reader(data), regex)) == wanted

    check()


@pytest.mark.parametrize("pattern", [each for each in PATTERNS if "\\A" not in each])
def test_matches(pattern: str) -> None:
    """As long as no match is longer than the span."""
    regex = compiled(pattern, False, False)

    @given(texts)
    def check(data: bytes) -> None:
        wanted = [Found(match.start(), match.group()) for match in regex.finditer(data)]
        assume(all(len(each.match) < SHORT for each in wanted))
        assert list(find(reader(data), regex, SHORT)) == wanted

    check()


def test_spans_and_context() -> None:
    data = b"x" * 30 + b"ab" + b"y" * 30
    for pad in range(20):
        text = b"-" * pad + data
        for pattern in ("ab", "(?<=x)ab(?=y)", r"xab"):
            regex = compiled(pattern, False, False)
            wanted = [(match.start(), match.group()) for match in regex.finditer(text)]
            assert list(find(reader(text), regex, 4)) == wanted


def test_lines_longer_than_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    """They come in pieces that overlap; what is found in the overlap is told once."""
    monkeypatch.setattr(_grep, "LINE_MAX", 16)
    monkeypatch.setattr(_grep, "SPAN", 4)
    regex = compiled("ab", False, False)
    for at in range(60):
        data = b"x" * at + b"ab" + b"y" * (60 - at) + b"\nab\n"
        found = list(grep(reader(data), regex))
        assert len(found) == 2, at
        first, last = found
        assert b"ab" in first.line and first.offset <= at < first.offset + len(first.line)
        assert last == Line(63, b"ab")


def test_patterns() -> None:
    assert compiled("é", False, False).pattern == "é".encode()
    assert compiled("a.b", True, False).pattern == rb"a\.b"
    assert compiled(re.compile("a", re.IGNORECASE), False, False).flags & re.IGNORECASE
    assert compiled(re.compile(b"a"), False, True).flags & re.IGNORECASE
    for bad in ("(", b"[", "(?u)a"):
        with pytest.raises(Invalid):
            compiled(bad, False, False)
    with pytest.raises(Invalid):
        next(find(reader(b"x"), re.compile(b"x"), 0))
