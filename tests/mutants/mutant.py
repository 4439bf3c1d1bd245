# SPDX-License-Identifier: GPL-2.0-or-later
"""One mutant."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    """A change of one place.  before: text that is there exactly once.  tests: words for pytest."""

    name: str
    file: str
    before: str
    after: str
    tests: tuple[str, ...]


def mutant(name: str, file: str, before: str, after: str, *tests: str) -> Mutant:
    return Mutant(name, file, before, after, tests)
