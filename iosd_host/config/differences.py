# SPDX-License-Identifier: GPL-2.0-or-later
"""The differences between two configurations, and the lines that describe them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from iosd_host.config.files import needs_restart, pool_of
from iosd_host.config.schema import Setting

__all__ = ["Differences", "compare", "lines_of"]


@dataclass
class Differences:
    """Changes of a new configuration.

    Attributes:
        added, removed: names of pools.
        changed, restart: full name -> what it was and is, None: not set; restart: from the next start.
    """

    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    changed: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    restart: dict[str, tuple[Any, Any]] = field(default_factory=dict)

    def fields(self) -> dict[str, Any]:
        """As config.reload answers it."""

        def rows(found: Mapping[str, tuple[Any, Any]]) -> list[dict[str, Any]]:
            return [{"key": key, "was": was, "is": now} for key, (was, now) in found.items()]

        return {
            "added": self.added,
            "removed": self.removed,
            "changed": rows(self.changed),
            "restart": rows(self.restart),
        }


def lines_of(fields: Mapping[str, Any]) -> Iterator[str]:
    """Differences for people, from what `fields` gives."""

    def text(value: Any) -> str:
        return "not set" if value is None else json.dumps(value, ensure_ascii=False)

    for name in fields["added"]:
        yield f"pool {name}: added"
    for name in fields["removed"]:
        yield f"pool {name}: removed; it ends with its last job"
    for row in fields["changed"]:
        yield f"{row['key']}: {text(row['was'])} -> {text(row['is'])}"
    for row in fields["restart"]:
        yield f"{row['key']}: {text(row['was'])} -> {text(row['is'])}, once the target is started again"


def compare(was: Mapping[str, Setting], now: Mapping[str, Setting]) -> Differences:
    """Differences between settings in force."""
    before, after = ({pool_of(key) for key in each} - {None} for each in (was, now))
    found = Differences(
        sorted(str(name) for name in after - before), sorted(str(name) for name in before - after)
    )
    for key in dict.fromkeys((*was, *now)):
        if pool_of(key) in (before ^ after):
            continue
        one, other = (each[key].value if key in each else None for each in (was, now))
        if one != other:
            (found.restart if needs_restart(key) else found.changed)[key] = (one, other)
    return found
