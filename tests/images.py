# SPDX-License-Identifier: GPL-2.0-or-later
"""Images as rows of pixels, and what functions make of them (examples/functions/image.c), in Python."""

from __future__ import annotations

import random
from collections.abc import Callable

Pixels = list[list[tuple[int, ...]]]


def drawn(width: int, height: int, channels: int, most: int = 255) -> Pixels:
    """Random pixels, always the same."""
    draw = random.Random(width * height)
    return [
        [tuple(draw.randrange(most + 1) for _ in range(channels)) for _ in range(width)]
        for _ in range(height)
    ]


def samples(pixels: Pixels) -> bytes:
    """The values of an image, row by row."""
    return bytes(value for row in pixels for pixel in row for value in pixel)


def image_of(pixels: Pixels, most: int = 255) -> bytes:
    """In PGM or PPM."""
    kind = b"P5" if len(pixels[0][0]) == 1 else b"P6"
    return b"%s\n%d %d\n%d\n" % (kind, len(pixels[0]), len(pixels), most) + samples(pixels)


def around(pixels: Pixels, y: int, x: int, channel: int) -> list[int]:
    """The pixel and those beside it, row by row."""

    def inside(at: int, end: int) -> int:
        return max(0, min(at, end - 1))

    return [
        pixels[inside(y + down, len(pixels))][inside(x + right, len(pixels[0]))][channel]
        for down in (-1, 0, 1)
        for right in (-1, 0, 1)
    ]


def edge(v: list[int]) -> int:
    x = v[2] + 2 * v[5] + v[8] - v[0] - 2 * v[3] - v[6]
    y = v[6] + 2 * v[7] + v[8] - v[0] - 2 * v[1] - v[2]
    return min(255, abs(x) + abs(y))


def median(v: list[int]) -> int:
    return sorted(v)[4]


def filtered(pixels: Pixels, of: Callable[[list[int]], int]) -> Pixels:
    """Each value computed of those around it."""
    return [
        [
            tuple(of(around(pixels, y, x, each)) for each in range(len(pixel)))
            for x, pixel in enumerate(row)
        ]
        for y, row in enumerate(pixels)
    ]


def bitmap(gradients: Pixels, threshold: int) -> bytes:
    """A PBM of the pixels with such a gradient in a channel."""
    width = len(gradients[0])
    bits = ["".join(str(int(max(each) >= threshold)) for each in row) for row in gradients]
    rows = [int(row.ljust(-(-width // 8) * 8, "0"), 2).to_bytes(-(-width // 8)) for row in bits]
    return b"P4\n%d %d\n" % (width, len(gradients)) + b"".join(rows)


def thumbnail(pixels: Pixels, size: int) -> Pixels:
    """At most so wide and high."""
    width, height = len(pixels[0]), len(pixels)

    def spans(side: int) -> list[range]:
        count = side if size >= max(width, height) else max(1, side * size // max(width, height))
        return [range(each * side // count, (each + 1) * side // count) for each in range(count)]

    def mean(values: list[int]) -> int:
        return (sum(values) + len(values) // 2) // len(values)

    return [
        [
            tuple(
                mean([pixels[y][x][channel] for y in ys for x in xs])
                for channel in range(len(pixels[0][0]))
            )
            for xs in spans(width)
        ]
        for ys in spans(height)
    ]
