# SPDX-License-Identifier: GPL-2.0-or-later
"""Search in an object's bytes, in memory that does not grow with the object.

Blocks are read one after the other, each like one atomic read. With descriptors this is as fast as
a map, and the object can shrink meanwhile.  Lines and matches across the border of two blocks are
found. A line is searched when it is complete. A match is reported when later bytes cannot make it
longer, unless it is longer than its span.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from ._errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Read: TypeAlias = Callable[[int, memoryview], int]
    """Fill a buffer from an offset on; fewer bytes only at the end."""

__all__ = ["SPAN", "Found", "Line", "Pattern", "compiled", "find", "grep"]

Pattern: TypeAlias = "str | bytes | re.Pattern[str] | re.Pattern[bytes]"
Regex: TypeAlias = "re.Pattern[bytes]"

BLOCK = 1 << 20
LINE_MAX = 4 << 20
SPAN = 64 << 10
CONTEXT = 256  # bytes kept before a block, for what a pattern looks back at
END = b"\n"
# Parts of patterns that can match beyond their line when they search a whole block.
BEYOND_LINES = re.compile(rb"\\[AZ]|\(\?[=!<>]|[+*?}]\+")


class Line(NamedTuple):
    """A line that matches: where it begins, and its bytes without the end."""

    offset: int
    line: bytes


class Found(NamedTuple):
    """A match: where it begins, and its bytes."""

    offset: int
    match: bytes


def compiled(pattern: Pattern, literal: bool, ignore_case: bool) -> Regex:
    """The expression over bytes.  Raises: Invalid: it is none."""
    flags = re.IGNORECASE if ignore_case else 0
    if isinstance(pattern, re.Pattern):
        flags |= pattern.flags & ~re.UNICODE
        pattern = pattern.pattern
    source = pattern.encode() if isinstance(pattern, str) else bytes(pattern)
    if literal:
        source = re.escape(source)
    try:
        return re.compile(source, flags | re.MULTILINE)
    except (re.error, ValueError) as error:
        raise Invalid(f"no regular expression: {error}") from None


# ---- lines --------------------------------------------------------------------------------------


def grep(read: Read, regex: Regex) -> Iterator[Line]:
    """Lines with a match, in order."""
    search = each_line if BEYOND_LINES.search(regex.pattern) else candidates
    buffer = bytearray(BLOCK)
    offset, held, overlap = 0, 0, 0  # of the buffer; bytes of a line not all there; of them seen
    while True:
        if len(buffer) - held < BLOCK:  # a new one: who read to the old one may still hold it
            buffer = buffer + bytes(len(buffer))
        wanted = memoryview(buffer)[held:]
        got = read(offset + held, wanted)
        last = got < len(wanted)
        wanted.release()
        end = held + got
        cut = end if last else buffer.rfind(END, held, end) + 1
        if cut:
            yield from search(regex, buffer[:cut], offset, overlap)
            overlap = 0
        elif end >= LINE_MAX:
            yield from search(regex, buffer[:end], offset, overlap)
            cut, overlap = end - SPAN, SPAN
        if last:
            return
        held = end - cut
        buffer[:held] = buffer[cut:end]
        offset += cut


def candidates(regex: Regex, block: bytearray, offset: int, overlap: int) -> Iterator[Line]:
    """Look for the expression in the block, then at the line it was found in.

    Should that not match by itself (a match may run over the end of its line), the rest of the block
    is gone through line by line.
    """
    at = 0
    while at < len(block) and (match := regex.search(block, at)):
        start = block.rfind(END, at, match.start()) + 1 or at
        if start == len(block):
            return  # behind the last line's end
        end = block.find(END, match.start())
        end = len(block) if end < 0 else end
        line = bytes(block[start:end])
        if start == at == 0 and overlap:
            yield from each_line(regex, block, offset, overlap)
            return
        if not regex.search(line):
            yield from each_line(regex, block[start:], offset + start, 0)
            return
        yield Line(offset + start, line)
        at = end + 1


def each_line(regex: Regex, block: bytearray, offset: int, overlap: int) -> Iterator[Line]:
    """Search every line; of the first one overlap bytes were searched before."""
    at = 0
    while at < len(block):
        end = block.find(END, at)
        end = len(block) if end < 0 else end
        line = bytes(block[at:end])
        seen = overlap if at == 0 else 0
        if any(match.end() > seen or not seen for match in regex.finditer(line)):
            yield Line(offset + at, line)
        at = end + 1


# ---- matches --------------------------------------------------------------------------------------


def find(read: Read, regex: Regex, span: int) -> Iterator[Found]:
    """Matches anywhere, in order; they do not overlap."""
    if span < 1:
        raise Invalid(f"a span of {span} bytes")
    buffer = bytearray(CONTEXT + span + max(BLOCK, span))
    offset, start, held = 0, 0, 0  # of the buffer; where to look from; bytes in it
    while True:
        wanted = memoryview(buffer)[held:]
        got = read(offset + held, wanted)
        last = got < len(wanted)
        wanted.release()
        end = held + got
        sure = end if last else end - span  # matches that begin before it are all there
        for match in regex.finditer(buffer, start, end):
            if match.start() >= sure and not last:
                break
            yield Found(offset + match.start(), match.group())
            start = match.end() + (match.start() == match.end())
        if last:
            return
        start = max(start, sure)
        keep = max(0, start - CONTEXT)
        held = end - keep
        buffer[:held] = buffer[keep:end]
        offset, start = offset + keep, start - keep
