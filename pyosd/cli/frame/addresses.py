# SPDX-License-Identifier: GPL-2.0-or-later
"""Addresses as people type them where the target must be asked for the ids they stand for."""

from __future__ import annotations

from dataclasses import dataclass

from pyosd.types import ObjectRef

__all__ = ["JobName", "LoneId", "MemberRef"]


@dataclass(frozen=True)
class MemberRef(ObjectRef):
    """ARRAY[INDEX]: the ids are the array's, unless it is known by its name only."""

    index: int = 0
    name: str = ""

    def __str__(self) -> str:
        return f"{self.name or super().__str__()}[{self.index}]"


@dataclass(frozen=True)
class LoneId(ObjectRef):
    """A number without a slash where a job is wanted, as it was typed."""

    text: str = ""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class JobName(ObjectRef):
    """A job's name; the target is asked for the id."""

    name: str = ""

    def __str__(self) -> str:
        return self.name
