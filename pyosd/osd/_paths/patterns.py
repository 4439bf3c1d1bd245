# SPDX-License-Identifier: GPL-2.0-or-later
"""Patterns of paths, for scripts and for the client: * ? [a-z] within a name, ** for any directories."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["has_pattern", "matcher", "may_lead"]

_MAGIC = re.compile(r"[*?[]")


def has_pattern(path: str) -> bool:
    """Whether it has one of the characters * ? [ of patterns."""
    return _MAGIC.search(path) is not None


@lru_cache(maxsize=64)
def _compiled(names: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("".join(_pieces(names)), re.DOTALL)


def _pieces(names: tuple[str, ...]) -> Iterator[str]:
    """Each name as a regular expression; ** stands for any number of names."""
    for at, name in enumerate(names):
        last = at == len(names) - 1
        if name == "**":
            yield ".*" if last else "(?:.*/)?"
        else:
            yield "".join(_of_name(name)) + ("" if last else "/")


def _of_name(name: str) -> Iterator[str]:
    """The pattern of one name, as a shell reads it."""
    at = 0
    while at < len(name):
        first = at + 2 + (name[at + 1 : at + 2] in ("!", "^"))  # a "]" before it is a character
        end = name.find("]", first) if name[at] == "[" else -1
        if name[at] == "[" and end > 0:
            inside = name[at + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            no = inside[0] in "!^"
            yield f"[{'^' if no else ''}{inside[1:] if no else inside}]"
            at = end
        else:
            yield {"*": "[^/]*", "?": "[^/]"}.get(name[at]) or re.escape(name[at])
        at += 1


def matcher(names: list[str]) -> re.Pattern[str]:
    """The regular expression of a pattern's names, for fullmatch() of a relative path.

    Raises: ValueError: a range of characters is none, as [z-a].
    """
    try:
        return _compiled(tuple(names))
    except re.error as error:
        raise ValueError(f"'{'/'.join(names)}' is no pattern: {error}") from None


def may_lead(rest: list[str], level: int, name: str) -> bool:
    """Whether matches of a pattern can be below a directory.

    Args: rest: the pattern's names.  level: how many directories are above it.  name: its own name.
    """
    if "**" in rest[: level + 1]:
        return True
    return level + 1 < len(rest) and matcher([rest[level]]).fullmatch(name) is not None
