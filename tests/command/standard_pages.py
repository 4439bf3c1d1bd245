# SPDX-License-Identifier: GPL-2.0-or-later
"""The standard's attributes, typed from osd2-wire 5.7-5.19: page, numbers, lengths, who sets them.

Lives here: what OSD-2 says, and which of its optional attributes this target leaves out.  Not
here: anything read from the target or its table (docs/attributes.md is made of that one).
"""

from __future__ import annotations

from dataclasses import dataclass

R, P, C, U = 0x9000_0000, 0x3000_0000, 0x6000_0000, 0
KINDS = {R: "root", P: "partition", C: "collection", U: "user object"}
ANY_LENGTH = (1, 0xFFFE)


@dataclass(frozen=True)
class Attribute:
    """lengths: all a defined value may have.  set: by clients.  optional: may have no value."""

    number: int
    lengths: tuple[int, int]
    set: bool = False
    optional: bool = False


@dataclass(frozen=True)
class StandardPage:
    """name: of the identification, behind the vendor.  form: bytes of the page form, if any."""

    number: int
    name: str
    attributes: tuple[Attribute, ...]
    form: int | None = None

    @property
    def base(self) -> int:
        return self.number & 0xF000_0000

    def __str__(self) -> str:
        return f"{self.number:08X}"


def fixed(length: int, *numbers: int) -> tuple[Attribute, ...]:
    """Read only, always there."""
    return tuple(Attribute(number, (length, length)) for number in numbers)


def settable(length: int, *numbers: int) -> tuple[Attribute, ...]:
    return tuple(Attribute(number, (length, length), set=True) for number in numbers)


def absent(*numbers: int) -> tuple[Attribute, ...]:
    """Optional ones this target does not have: length 0, not settable."""
    return tuple(Attribute(number, (0, 0), optional=True) for number in numbers)


def maybe(length: int, *numbers: int) -> tuple[Attribute, ...]:
    """Read only, there or not."""
    return tuple(Attribute(number, (length, length), optional=True) for number in numbers)


USERNAME = Attribute(0x9, ANY_LENGTH, set=True, optional=True)
TIMES = fixed(6, 1, 2, 3, 4, 5)
BYPASS = settable(1, 0xFFFF_FFFE)
TAG = settable(4, 0x4000_0001)
CONTAINER_DAMAGE = (*fixed(1, 1, 2), *fixed(6, 3, 4, 5, 6))
DAMAGE = (*fixed(1, 1), *fixed(6, 3, 4))

PAGES = (
    StandardPage(
        R + 1,
        "T10 Root Information",
        (
            *fixed(20, 0x3),
            *fixed(8, 0x4),
            *fixed(16, 0x5),
            *fixed(32, 0x6),
            *fixed(4, 0x7),
            Attribute(0x8, (1, 64)),
            Attribute(0x9, (1, 64), set=True, optional=True),
            *fixed(4, 0xA),
            *fixed(8, 0x80, 0x81, 0xC0),
            *absent(0x83),
            *fixed(6, 0x100),
            *settable(1, 0x110),
            *fixed(32, 0x111),
            *fixed(8, 0x120, 0x121, 0x122),
            *fixed(1, 0x123),
            *absent(0x1C1, 0x1C2, 0x1CC),
            *fixed(4, 0x200, 0x281, 0x2FD, 0x2FF),
            *maybe(4, 0x201),
            *absent(0x202, 0x241, 0x2FE),
            *absent(*range(0x300, 0x312)),
            *fixed(4, 0x700_0001, 0x700_0002, 0x700_0101, 0x700_F081, 0x700_F082, 0x700_FFEE),
            *absent(0x700_0003, 0x700_0100, 0x700_FFFF),
        ),
    ),
    StandardPage(
        R + 2,
        "T10 Root Quotas",
        (
            *settable(8, 0x1, 0x1_0001, 0x1_0002, 0x2_0002),
            *settable(4, 0x1_0081),
        ),
        0x24,
    ),
    StandardPage(R + 3, "T10 Root Timestamps", (*fixed(6, 2, 3), *BYPASS), 0x0D),
    StandardPage(
        R + 5,
        "T10 Root Policy/Security",
        (
            *settable(1, 0x1, 0x6),
            *settable(6, 0x2, 0x3, 0x9),
            *fixed(2, 0x7, 0xA),
            *settable(2, 0x5),
            *maybe(7, 0x7FFD),
            *absent(0x7FFE, 0x7FFF, *range(0x8000, 0x8010)),
            *fixed(1, *range(0x8000_0000, 0x8000_0020)),
        ),
        0x42,
    ),
    StandardPage(R + 6, "T10 Root Error Recovery", CONTAINER_DAMAGE, 28),
    StandardPage(
        P + 1,
        "T10 Partition Information",
        (
            *fixed(8, 0x1, 0x81, 0xC1),
            USERNAME,
            *absent(0x83, 0x84, 0xD1, 0xD2, 0x200, 0x201, 0x300, 0x301),
        ),
    ),
    StandardPage(
        P + 2,
        "T10 Partition Quotas",
        (*settable(8, 0x1, 0x1_0001, 0x1_0002), *settable(4, 0x1_0081)),
        0x1C,
    ),
    StandardPage(P + 3, "T10 Partition Timestamps", (*TIMES, *BYPASS), 0x1F),
    StandardPage(P + 4, "T10 Partition Attributes Access", ()),
    StandardPage(
        P + 5,
        "T10 Partition Policy/Security",
        (
            *settable(1, 0x1),
            *settable(6, 0x2, 0x3),
            *fixed(2, 0x4),
            *settable(2, 0x5),
            *absent(0x7FFF, *range(0x8000, 0x8010)),
            *settable(4, 0x4000_0001, 0x4000_0002),
        ),
        0x96,
    ),
    StandardPage(P + 6, "T10 Partition Error Recovery", CONTAINER_DAMAGE, 28),
    StandardPage(
        C + 1,
        "T10 Collection Information",
        (*fixed(8, 0x1, 0x2, 0x81), USERNAME, *fixed(1, 0xA), *absent(0x83)),
    ),
    StandardPage(C + 3, "T10 Collection Timestamps", TIMES, 0x1E),
    StandardPage(
        C + 4,
        "T10 Command Tracking",
        (
            *maybe(1, 0x1),
            *maybe(2, 0x2, 0x3),
            *maybe(252, 0x4),
            *fixed(8, 0x10),
            *maybe(8, 0x11, 0x12, 0x13),
        ),
    ),
    StandardPage(C + 5, "T10 Collection Policy/Security", TAG, 4),
    StandardPage(C + 6, "T10 Collection Error Recovery", DAMAGE, 14),
    StandardPage(
        U + 1,
        "T10 User Object Information",
        (
            *fixed(8, 0x1, 0x2, 0x81, 0xD1),
            USERNAME,
            *settable(8, 0x82),
            *absent(0x83, 0xD2),
        ),
    ),
    StandardPage(U + 2, "T10 User Object Quotas", settable(8, 0x1), 8),
    StandardPage(U + 3, "T10 User Object Timestamps", TIMES, 0x1E),
    StandardPage(U + 4, "T10 User Object Collections", (), 0),
    StandardPage(U + 5, "T10 User Object Policy/Security", TAG, 4),
    StandardPage(U + 6, "T10 User Object Error Recovery", DAMAGE, 14),
)
"""Every page but the directories."""

DIRECTORIES = {
    R: "T10 Root Directory",
    P: "T10 Partition Directory",
    C: "T10 Collection Directory",
    U: "T10 User Object Directory",
}
