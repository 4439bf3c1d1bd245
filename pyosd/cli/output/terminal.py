# SPDX-License-Identifier: GPL-2.0-or-later
"""Bytes that somebody else wrote, shown on a terminal without the control sequences it would obey.

A script's output can hold control sequences that retitle the window, move the cursor over earlier lines, or
type for the reader.  Control characters are shown as ``cat -v`` shows them, but for line feed and tab.
Bytes for a pipe or a file are not changed.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Callable, Iterable
from typing import BinaryIO, Protocol, TextIO

import click

__all__ = [
    "RAW",
    "TEXT_OR_JSON",
    "Sink",
    "escaped",
    "file_error",
    "harmless",
    "output_option",
    "output_to",
    "print_names",
]

JOINERS = "\u200c\u200d"  # of scripts and emoji; no terminal obeys them
SHOWN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")  # categories of characters that nobody sees

RAW = click.option(
    "--raw",
    is_flag=True,
    help="Write the bytes unchanged.  Without it, control characters are escaped on a terminal.",
)


def output_option(
    *formats: str, text: str = ""
) -> Callable[[click.decorators.FC], click.decorators.FC]:
    """The option -o; the first format is the default.  text: its help; "": names the formats."""
    named = text or f"Output format: {', '.join(formats[:-1])} or {formats[-1]}."
    return click.option(
        "-o",
        "--output",
        type=click.Choice(formats),
        default=formats[0],
        help=f"{named}  [{formats[0]}]",
    )


TEXT_OR_JSON = output_option("text", "json", text="Output format: text, or one JSON object.")


class Sink(Protocol):
    """A stream of bytes, ours or one that shows control characters."""

    def write(self, data: bytes | memoryview, /) -> int:
        """All of it."""

    def writelines(self, lines: Iterable[bytes], /) -> None:
        """One after the other."""

    def flush(self) -> None:
        """To the reader."""


def _shown(each: str, category: str) -> str:
    code = ord(each)
    if each in "\n\t" or each in JOINERS or category not in SHOWN:
        return each
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x20 or code == 0x7F:
        return f"^{chr(code ^ 0x40)}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def escaped(text: str) -> str:
    """The text with what a terminal would obey shown as characters; lines stay lines."""
    if text.isprintable():
        return text
    from unicodedata import category

    return "".join(map(_shown, text, map(category, text)))


def harmless(text: str) -> str:
    """Text that somebody else wrote as one line: escaped(), and so are line feeds; tabs are blanks."""
    if text.isprintable():
        return text
    return escaped(text.expandtabs()).replace("\n", "^J")


def file_error(error: OSError, file: object = None) -> str:
    """The text of a system error with its file, whose name may hold anything."""
    name = os.fsdecode(error.filename) if isinstance(error.filename, bytes) else error.filename
    return f"{harmless(str(file or name or 'input or output'))}: {error.strerror or error}"


class Escaping:
    """A sink that shows control characters.  A character may come in pieces."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")

    def write(self, data: bytes | memoryview, /) -> int:
        """Returns how many bytes were taken: all."""
        self.stream.write(escaped(self.decoder.decode(bytes(data))).encode())
        return len(data)

    def writelines(self, lines: Iterable[bytes], /) -> None:
        """One after the other."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """To the terminal."""
        self.stream.flush()


def output_to(stream: TextIO, raw: bool = False) -> Sink:
    """The sink for bytes that somebody else wrote, in front of a stream of ours."""
    buffer = stream.buffer
    return buffer if raw or not stream.isatty() else Escaping(buffer)


def print_names(texts: Iterable[str], end: str = "\n") -> None:
    """Print texts that are or have names: harmless lines on a terminal, their very bytes elsewhere."""
    if sys.stdout.isatty():
        texts = map(harmless, texts)
    # In one piece, so that a pipe's reader may take the first lines and go, as head does.
    whole = "".join(f"{each}{end}" for each in texts).encode("utf-8", "surrogateescape")
    sys.stdout.flush()
    sys.stdout.buffer.write(whole)
    sys.stdout.buffer.flush()
