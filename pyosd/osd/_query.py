# SPDX-License-Identifier: GPL-2.0-or-later
"""Conditions on attribute values, as a target can answer them (OSD QUERY).

    (osd.attr(0x10000, 1) >= 5) & (osd.attr(0x10000, 1) <= 9) | (osd.attr(0x10000, 2) == "red")

Values compare as unsigned bytes; numbers are meant as setattr() stores them, 8 bytes big-endian.  An
object that lacks the attribute does not match.  A target takes lists of ranges of which all, or any,
must hold: what is neither is asked for in several queries whose answers are merged.

Lives here: conditions, and the query list's bytes.  Not here: sending one (_objects.py, pyosd.commands).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from ._errors import Invalid
from ._values import Settable, encode_value

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Condition", "Criterion", "Query", "attr", "encode_query_list"]

PAGE_END = 0x3000_0000  # of the pages of user objects
TERMS_MAX = 64
ENTRY = struct.Struct(">HHIIH")
HEADER = 4
ENTRY_FIXED = 12  # of what the entry's length counts


@dataclass(frozen=True)
class Criterion:
    """One criterion of a QUERY: minimum <= value <= maximum bytewise; b"": no bound."""

    page: int
    number: int
    minimum: bytes = b""
    maximum: bytes = b""

    def encode(self) -> bytes:
        """The entry as it stands in the query list.  Raises: Invalid: it does not fit one."""
        low, high = self.minimum, self.maximum
        length = ENTRY_FIXED + len(low) + len(high)
        try:
            head = ENTRY.pack(0, length, self.page, self.number, len(low))
        except struct.error:
            raise Invalid(
                f"no criterion of a query: {self.page:#x}/{self.number:#x} with values of {len(low)} "
                f"and {len(high)} bytes"
            ) from None
        return head + low + len(high).to_bytes(2, "big") + high


def encode_query_list(criteria: Iterable[Criterion], match_all: bool) -> bytes:
    """The query list, with zeros to a multiple of 8 (osd2-wire 3.9)."""
    content = struct.pack(">Bxxx", 1 if match_all else 0)
    content += b"".join(each.encode() for each in criteria)
    return content + bytes(-len(content) % 8)


@dataclass(frozen=True)
class Query:
    """The criteria of one QUERY: all must match, or at least one. Without criteria every object
    matches."""

    criteria: tuple[Criterion, ...]
    match_all: bool = True

    def encode(self) -> bytes:
        """Its query list."""
        return encode_query_list(self.criteria, self.match_all)

    @classmethod
    def decode(cls, content: bytes) -> Query:
        """Read a query list.  Raises: Invalid: it is none."""
        criteria, at = [], HEADER
        while at + 4 <= len(content) and any(content[at + 2 : at + 4]):
            criterion, length = decode_entry(content[at:])
            criteria.append(criterion)
            at += length
        if len(content) < HEADER or content[0] > 1:
            raise Invalid("no query list")
        return cls(tuple(criteria), content[0] == 1)


def decode_entry(data: bytes) -> tuple[Criterion, int]:
    """The criterion data begins with, and its length.  Raises: Invalid."""
    if len(data) >= ENTRY.size:
        _, length, page, number, low = ENTRY.unpack_from(data)
        at = ENTRY.size + low
        high = int.from_bytes(data[at : at + 2], "big")
        end = at + 2 + high
        if length == ENTRY_FIXED + low + high and end <= len(data):
            return Criterion(page, number, data[ENTRY.size : at], data[at + 2 : end]), end
    raise Invalid("a criterion of the query list is cut")


Term = tuple[Criterion, ...]  # all of them must hold; one for each attribute


def narrow(term: Term, criterion: Criterion) -> Term | None:
    """The term with one criterion more; None where nothing can match any more."""
    others = []
    for each in term:
        if (each.page, each.number) == (criterion.page, criterion.number):
            tops = [top for top in (each.maximum, criterion.maximum) if top]
            low, high = max(each.minimum, criterion.minimum), min(tops, default=b"")
            if high and low > high:
                return None
            criterion = Criterion(each.page, each.number, low, high)
        else:
            others.append(each)
    return (*others, criterion)


def both(left: Term, right: Term) -> Term | None:
    """The conjunction of two terms, or None if nothing can match."""
    joined: Term | None = left
    for criterion in right:
        if joined is not None:
            joined = narrow(joined, criterion)
    return joined


class Condition:
    """A condition of query(): comparisons of attr(), each in parentheses, joined by & and |.

    `and`, `or`, `not` and chains such as `1 <= a <= 5` raise TypeError: Python does not let a
    library see them.

    >>> year, kind = osd.attr(0x10000, 1), osd.attr(0x10000, 2)
    >>> list(p.query((year >= 1850) & (year < 1860) | (kind == "novel")))
    []

    Raises: Invalid: it needs more than 64 queries.
    """

    __slots__ = ("terms",)

    def __init__(self, terms: Iterable[Term]) -> None:
        self.terms = tuple(dict.fromkeys(terms))
        if len(self.terms) > TERMS_MAX:
            raise Invalid(f"the condition comes to {len(self.terms)} queries, above {TERMS_MAX}")

    def __and__(self, other: Condition) -> Condition:
        if not isinstance(other, Condition):
            return NotImplemented
        pairs = (both(a, b) for a in self.terms for b in other.terms)
        return Condition(term for term in pairs if term is not None)

    def __or__(self, other: Condition) -> Condition:
        if not isinstance(other, Condition):
            return NotImplemented
        return Condition((*self.terms, *other.terms))

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "conditions are joined by & and |, each comparison in parentheses; "
            "'and', 'or', 'not' and chains such as 1 <= a <= 5 cannot be passed on to a target"
        )

    def __repr__(self) -> str:
        return f"<osd.Condition {list(self.terms)}>"

    def queries(self) -> list[Query]:
        """The queries to send. The result has the objects that match at least one of them.  Empty:
        nothing can match."""
        if len(self.terms) > 1 and all(len(term) == 1 for term in self.terms):
            return [Query(tuple(term[0] for term in self.terms), match_all=False)]
        return [Query(term) for term in self.terms]


class attr:  # noqa: N801 -- reads as what it names
    """An attribute of user objects, to be compared with ==, <, <=, >, >= and, a number, with !=.

    Values are compared as unsigned bytes; a number as its 8 bytes, big-endian, as setattr() stores it.
    An object without the attribute does not match.

    Args: page, number: of an attribute of user objects.

    >>> u.setattr([(0x10000, 1, 1851)])
    >>> list(p.query(osd.attr(0x10000, 1) < 1900)) == [u]
    True

    Raises: Invalid: there is no such attribute, or no such comparison (< with text, an empty value).
    """

    __slots__ = ("number", "page")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, page: int, number: int) -> None:
        if not (0 <= page < PAGE_END and 0 <= number < 1 << 32):
            raise Invalid(f"{page:#x}/{number:#x} is no attribute of user objects")
        self.page = page
        self.number = number

    def _range(self, low: bytes = b"", high: bytes = b"") -> Condition:
        return Condition([(Criterion(self.page, self.number, low, high),)])

    def __ge__(self, value: Settable) -> Condition:
        return self._range(low=bound(value))

    def __le__(self, value: Settable) -> Condition:
        return self._range(high=bound(value))

    def __gt__(self, value: Settable) -> Condition:
        return self._range(low=bound(value) + b"\0")  # no bytes lie between

    def __lt__(self, value: Settable) -> Condition:
        if isinstance(value, int):
            return self._range(high=bound(value - 1)) if value > 0 else Condition([])
        data = bound(value)
        if not data.endswith(b"\0"):
            raise Invalid(
                "text and bytes cannot be compared by <, there is no last one before; use <="
            )
        return self._range(high=data[:-1]) if len(data) > 1 else Condition([])

    def __eq__(self, value: object) -> Condition:  # type: ignore[override]
        data = bound(value)
        return self._range(data, data)

    def __ne__(self, value: object) -> Condition:  # type: ignore[override]
        if not isinstance(value, int):
            raise Invalid(f"a target cannot look for what is not {value!r}")
        return (self < value) | (self > value)

    def defined(self) -> Condition:
        """Match the objects that have the attribute.

        >>> list(p.query(osd.attr(0x10000, 1).defined()))
        []
        """
        return self._range()

    def __repr__(self) -> str:
        return f"osd.attr({self.page:#x}, {self.number:#x})"


def bound(value: object) -> bytes:
    """A value to compare with, encoded as setattr() would.  Raises: Invalid."""
    if not isinstance(value, str | int | bytes | bytearray | memoryview):
        raise Invalid(f"attributes are compared with str, int or bytes, not {type(value).__name__}")
    data = encode_value(value)
    if not data:
        raise Invalid("an empty value is no value; .defined() tells whether there is one")
    return data
