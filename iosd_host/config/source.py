# SPDX-License-Identifier: GPL-2.0-or-later
"""The source of a configuration: a file, and the flags of the command line that override it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from iosd_host.config.files import Config, in_force, load
from iosd_host.config.schema import Setting

__all__ = ["Source"]


@dataclass(frozen=True)
class Source:
    """Source of a configuration, so that it can be read again.

    Attributes:
        path: the file; None: the system's, if it is there.
        pools: what flags say of pools: origin, name, table.
        given: what flags say of keys of [target] and [heads], as config.load takes it.
    """

    path: Path | None = None
    pools: tuple[tuple[str, str, Mapping[str, Any]], ...] = ()
    given: Mapping[str, Any] = field(default_factory=dict)

    def read(self, path: Path | None = None) -> tuple[Config, dict[str, Setting]]:
        """The configuration, and its settings in_force.  path: another file.  Raises: ConfigError."""
        config = load(path or self.path, self.pools, self.given)
        return config, in_force(config)

    def fields(self) -> dict[str, Any]:
        """As JSON."""
        return {"pools": self.pools, "given": dict(self.given)}

    @classmethod
    def of(cls, path: str | None, fields: Mapping[str, Any]) -> Source:
        """From JSON."""
        pools = tuple((origin, name, table) for origin, name, table in fields["pools"])
        return cls(Path(path) if path else None, pools, fields["given"])
