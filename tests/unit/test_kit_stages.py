# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of examples/functions that data pass through, compiled for this machine, against the same in
Python: `lines` against the function that comes with iosd, Blowfish against OpenSSL's.
"""

from __future__ import annotations

import importlib
import random
import sys
from collections.abc import Callable

import pytest
from cryptography.hazmat.decrepit.ciphers.algorithms import Blowfish
from cryptography.hazmat.primitives.ciphers import Cipher, modes
from hypothesis import example, given
from hypothesis import strategies as st

import pyosd.osd
from bench.fn_local import local
from pyosd.functions.stages import stage_args
from tests.images import bitmap, drawn, edge, filtered, image_of, median

KEY = bytes(range(3, 59))


@pytest.fixture(scope="module")
def stock_lines() -> Callable[[bytes], bytes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "osd", pyosd.osd)
        main: Callable[[bytes], bytes] = importlib.import_module("pyosd.functions.stock.lines").main
    return main


# ---- lines ----

SHORT = st.text("ab\r\n", max_size=3)


@given(data=st.text("ab\r\n", max_size=300), contains=SHORT, invert=st.booleans())
@example("a" * 64 + "b\r\n" + "a" * 70 + "\rb\n", "b", False)
@example("a" * 64 + "b\r\n" + "a" * 70 + "\rb\n", "b", True)
@example("\n" * 200 + "ab", "ab", False)
def test_lines(
    stock_lines: Callable[[bytes], bytes], data: str, contains: str, invert: bool
) -> None:
    """With the ends of lines, the text to find, and what is found at all places of sixteen bytes."""
    parameters = f"contains={contains}&invert={int(invert)}"
    text, stored = contains.encode(), data.encode()
    wanted = [each for each in stored.splitlines(keepends=True) if (text in each) != invert]
    assert local("lines", "main", parameters)(stored) == b"".join(wanted)
    assert stock_lines(stage_args(stored, parameters)) == b"".join(wanted)


@pytest.mark.parametrize("length", [1, 2, 15, 16, 17, 40])
def test_long_lines_and_texts(stock_lines: Callable[[bytes], bytes], length: int) -> None:
    draw = random.Random(length)
    text = ("ä" + "x" * length)[:length]
    lines = [
        "".join(draw.choices("xyä", k=draw.randrange(200))) + text * draw.randrange(2)
        for _ in range(300)
    ]
    stored = "\n".join(lines).encode()
    for parameters in (f"contains={text}", f"invert=0&contains=no&contains={text}&invert=1"):
        assert local("lines", "main", parameters)(stored) == stock_lines(
            stage_args(stored, parameters)
        )


def test_lines_without_a_text() -> None:
    for parameters in ("", "invert=1", "contain=a", "contains1=a"):
        with pytest.raises(ValueError, match="failed"):
            local("lines", "main", parameters)(b"a\n")
    assert local("lines", "main", "contains")(b"a\nb") == b"a\nb"
    assert local("lines", "main", "contains&invert=1")(b"a\nb") == b""


@pytest.mark.parametrize("invert", ["", "2", "yes", "11"])
def test_lines_with_another_value(stock_lines: Callable[[bytes], bytes], invert: str) -> None:
    """Readers never get the other lines because of a word that is none."""
    parameters = f"contains=a&invert={invert}"
    with pytest.raises(ValueError, match="failed"):
        local("lines", "main", parameters)(b"a\n")
    with pytest.raises(ValueError, match="0 or 1"):
        stock_lines(stage_args(b"a\n", parameters))


# ---- Blowfish ----


def cbc(data: bytes, key: bytes, number: int) -> bytes:
    """A block, encrypted: whole units of 8 bytes, then the rest."""
    one = Cipher(Blowfish(key), modes.ECB()).encryptor()
    vector = one.update(number.to_bytes(8))
    whole = len(data) // 8 * 8
    made = Cipher(Blowfish(key), modes.CBC(vector)).encryptor().update(data[:whole])
    mask = one.update((vector + made)[-8:])
    return made + bytes(a ^ b for a, b in zip(data[whole:], mask, strict=False))


@pytest.mark.parametrize("length", [0, 1, 7, 8, 63, 64, 71, 4095, 4096, 4097, 12345])
@pytest.mark.parametrize("key_bytes", [4, 16, 56])
def test_blowfish(length: int, key_bytes: int) -> None:
    key, data = KEY[:key_bytes], random.Random(length).randbytes(length)
    parameters = f"key={key.hex().upper() if length % 2 else key.hex()}"
    stored = b"".join(cbc(data[at : at + 4096], key, at // 4096) for at in range(0, length, 4096))
    assert local("blowfish", "encrypt", parameters)(data) == stored
    assert local("blowfish", "decrypt", parameters)(stored) == data


@pytest.mark.parametrize(
    "key", ["", "key=", "key=000102", "key=0001020", f"key={'0' * 114}", "key=0001020g"]
)
def test_no_key(key: str) -> None:
    with pytest.raises(ValueError, match="failed"):
        local("blowfish", "decrypt", key)(b"")


# ---- MPEG ----

SEQUENCE, GROUP, END = b"\0\0\1\xb3head", b"\0\0\1\xb8gop", b"\0\0\1\xb7"


def picture(kind: int, draw: random.Random) -> bytes:
    """A picture with its extension and some slices."""
    slices = [
        b"\0\0\1%c" % number + draw.randbytes(50).replace(b"\0", b"x") for number in (1, 0xAF)
    ]
    head = b"\0\0\1\0" + bytes((draw.randrange(256), kind << 3 | draw.randrange(8)))
    return b"".join((head, b"\0\0\1\xb5ext", b"\0\0\1\xb2user", *slices[: draw.randrange(3)]))


def test_pictures_that_are_left() -> None:
    draw = random.Random(7)
    for _ in range(50):
        parts = [(0, SEQUENCE)]
        for _ in range(draw.randrange(12)):
            kind = draw.choice((0, 0, 1, 2, 3, 4))
            parts.append((kind, picture(kind, draw) if kind else draw.choice((SEQUENCE, GROUP))))
        parts.append((0, END))
        stream = b"".join(each for _, each in parts)
        for parameters, kinds in (("", {0, 1}), ("pictures=I", {0, 1}), ("pictures=IP", {0, 1, 2})):
            wanted = b"".join(each for kind, each in parts if kind in kinds)
            assert local("mpeg", "main", parameters)(stream) == wanted


def test_pictures_at_the_ends_of_parts() -> None:
    """The function takes parts of 256 KiB; each start code is looked at once, wherever it is cut."""
    begin, left = b"\0\0\1\0\0\x08", b"\0\0\1\0\0\x10"
    for shift in range(-8, 9):
        first = begin.ljust((256 << 10) + shift, b"x")
        assert local("mpeg")(first + left + b"y" * 9) == first
        long = left.ljust((512 << 10) + shift, b"y")
        assert local("mpeg")(long + first) == first


@pytest.mark.parametrize(
    "data", [b"", b"\0\0\1", b"\0\0\1\0", b"\0\0\1\0\0", b"\0\0\1\0\0\x08", b"x" * 99]
)
def test_what_is_no_stream_stays(data: bytes) -> None:
    assert local("mpeg")(data) == data
    with pytest.raises(ValueError, match="failed"):
        local("mpeg", "main", "pictures=B")(data)


# ---- images ----


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("width", [1, 2, 3, 9, 16, 33, 50])
def test_images(width: int, channels: int) -> None:
    """Of widths that leave something to what is computed at the borders and one by one."""
    pixels = drawn(width, 4, channels)
    gradients, data = filtered(pixels, edge), image_of(pixels)
    assert local("image", "edge")(data) == image_of(gradients)
    assert local("image", "median")(data) == image_of(filtered(pixels, median))
    for threshold in (1, 128, 255):
        found = local("image", "bitmap", f"threshold={threshold}")(data)
        assert found == bitmap(gradients, threshold)
    with pytest.raises(ValueError, match="failed"):
        local("image", "bitmap", "threshold=256")(data)
