# SPDX-License-Identifier: GPL-2.0-or-later
"""The settings in force for a target: its configuration, and the overrides of administrators.

Keys are full names, `pools.default.max`, `manager.workers.min`, `target.memory_budget`; values are
texts as they stand in a file.  Pure except that it reads the configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from iosd_host.common import places
from iosd_host.config.files import in_force, key_of, load, pool_of
from iosd_host.config.pools import processors
from iosd_host.config.schema import Setting
from iosd_host.manager.state_store import Override
from iosd_host.policy.events import Bounds, Scale
from iosd_host.policy.resources import default_workers

__all__ = ["POOL", "PRINCIPAL", "WORKERS", "TargetSettings", "configured", "place_of", "served"]

POOL, PRINCIPAL, WORKERS = "pool", "principal", "workers"
TABLE = {POOL: "pools.{name}.{key}", PRINCIPAL: "principals.{name}.{key}"}
TABLE |= {WORKERS: "manager.workers.{key}"}
PoolFlags = Sequence[tuple[str, str, Mapping[str, Any]]]  # as config.load takes them
MICROSECONDS = ("interval", "cooldown")  # of Scale; its own unit is the second


def configured(path: Path | None, flags: PoolFlags = ()) -> dict[str, Setting]:
    """The settings of a file, or of the system's if there is one, and of flags.  Raises: ConfigError."""
    found = in_force(load(path, flags))
    return {name: Setting(_text(each.value), each.origin) for name, each in found.items()}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "+".join(value) if isinstance(value, tuple | list) else str(value)


def place_of(name: str, control: Path) -> dict[str, Any] | None:
    """Settings that the supervisor of a target reports, if one of this host serves it. control: the
    target's socket."""
    found = [each for each in places.running(places.TARGET) if each.get("name") == name]
    exact = [each for each in found if each.get("control") == str(control)]
    return exact[0] if exact else found[0] if len(found) == 1 else None


def served(name: str, control: Path) -> dict[str, Setting] | None:
    """The configuration that it reports; None: there is none."""
    place = place_of(name, control)
    if place is None or not isinstance(place.get("settings"), list):
        return None
    return {
        str(each["key"]): Setting(_text(each["value"]), str(each["origin"]))
        for each in place["settings"]
        if each.get("value") is not None
    }


class TargetSettings:
    """Of one target.

    Attributes:
        base: as configured.
        overrides: what administrators have set, by full name.
    """

    def __init__(self, base: Mapping[str, Setting], overrides: Iterable[Override]) -> None:
        self.base = dict(base)
        self.overrides = {full_name(each): each for each in overrides}

    def get(self, name: str) -> str | None:
        """The value that holds; None: nobody has said."""
        override = self.overrides.get(name)
        if override is not None:
            return str(override.value)
        setting = self.base.get(name)
        return None if setting is None else str(setting.value)

    def of(self, kind: str, name: str = "") -> dict[str, Override]:
        """The overrides of one pool, one principal or the workers, by their short keys."""
        found = self.overrides.values()
        return {each.key: each for each in found if (each.kind, each.name) == (kind, name)}

    def names(self, kind: str) -> list[str]:
        """Of which there are overrides."""
        return sorted({each.name for each in self.overrides.values() if each.kind == kind})

    def pools(self) -> set[str]:
        """That are configured."""
        return {name for name in map(pool_of, self.base) if name is not None}

    def bounds(self) -> Bounds:
        """Permitted actions of the policy."""
        least, most = default_workers(processors())
        least = self._value("manager.workers.min", least)
        most = self._value("manager.workers.max", most)
        auto = self._value("manager.workers.auto", True)
        standard = self._scale("manager.scale.", Scale())
        pools = self.pools() | set(self.names(POOL))
        return Bounds(
            workers=(min(least, most), most),
            workers_scale=Scale(**vars(standard) | {"auto": auto}),
            pools={name: self._of_pool(name, standard) for name in pools},
            memory=self._value("target.memory_budget", None),
            cores=processors(),
            patience=self._value("manager.workers.patience", 50_000) / 1e6,
        )

    def _of_pool(self, name: str, standard: Scale) -> Scale:
        """How it follows its load; a number of spares that somebody has said is the least."""
        scale, key = self._scale(f"pools.{name}.scale.", standard), f"pools.{name}.warm_spare"
        base = self.base.get(key)
        if key not in self.overrides and (base is None or base.origin == "default"):
            return scale
        least = self._value(key, scale.spares[0])
        return replace(scale, spares=(least, max(least, scale.spares[1])))

    def _value(self, name: str, default: Any) -> Any:
        """Converted."""
        text = self.get(name)
        if text is None:
            return default
        try:
            return key_of(name).convert(text)
        except (KeyError, ValueError):  # of another release's file
            return default

    def _scale(self, prefix: str, standard: Scale) -> Scale:
        values = {}
        for each in fields(Scale):
            name = f"{prefix}{each.name}"
            value = self._value(name, None)
            if value is not None:
                values[each.name] = value / 1e6 if each.name in MICROSECONDS else value
        return Scale(**vars(standard) | values)

    def show(self) -> list[dict[str, Any]]:
        """As config.show answers it."""
        found = []
        for name in sorted({*self.base, *self.overrides}):
            base, override = self.base.get(name), self.overrides.get(name)
            if override is None:
                assert base is not None
                found.append({"key": name, "value": base.value, "origin": base.origin})
                continue
            row = {"key": name, "value": override.value, "origin": "live", "by": override.by}
            row |= {"when": round(override.at * 1000), "why": override.why}
            found.append(row | {"was": base and base.value})
        return found


def full_name(override: Override) -> str:
    """`pools.default.max`."""
    return TABLE[override.kind].format(name=override.name, key=override.key)
