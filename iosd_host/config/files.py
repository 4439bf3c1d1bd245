# SPDX-License-Identifier: GPL-2.0-or-later
"""The serving side's configuration: /etc/iosd/iosd.toml and, beside it, pools.d/*.toml.

    [target]                    what `osd target serve` has flags for, and a few more keys
    [pools.NAME]                a pool, with tables [pools.NAME.limits], .maximum and .scale
    [manager]                   the resource manager, with tables [manager.workers] and .scale

and pools.d/NAME.toml has the same of one pool as [pool], [pool.limits] ....  Order of precedence: flag,
pools.d, iosd.toml, default.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iosd_host.config.pools import (
    DEFAULT,
    POOL_KEYS,
    SCALE_KEYS,
    TABLES,
    Pool,
    check_pools,
    make_pool,
    processors,
)
from iosd_host.config.schema import (
    ConfigError,
    Count,
    Duration,
    Key,
    Setting,
    check,
    endpoints,
    flag,
    http,
    text,
    texts,
)
from iosd_host.config.target_keys import HEADS_KEYS, OPTIONS, TARGET_KEYS
from iosd_host.policy.resources import default_workers

__all__ = [
    "DEFAULT_FILE",
    "MANAGER_KEYS",
    "MANAGER_TABLES",
    "Config",
    "in_force",
    "key_of",
    "load",
    "needs_restart",
    "pool_of",
]

DEFAULT_FILE = Path("/etc/iosd/iosd.toml")
MANAGER_KEYS = (
    Key("enabled", flag, True, "run a resource manager beside the target"),
    Key(
        "listen",
        endpoints,
        (),
        "addresses to listen on besides this host's socket: tcp://...",
    ),
    Key("state", text, None, "folder for the manager's state [manager beside the store]"),
    Key("keys", text, None, "folder for the manager's keys [keys in state]"),
    Key(
        "http", http, None, "ADDRESS:PORT of metrics and console [127.0.0.1:8470, if free]; or none"
    ),
    Key("http_names", texts, (), "host names that browsers use for that address"),
)
LEAST, MOST = default_workers(processors())
WORKERS_KEYS = (
    Key("auto", flag, True, "resize with the load"),
    Key("min", Count(1, 64), LEAST, "smallest number of threads"),
    Key("max", Count(1, 64), MOST, "largest number of threads [four a processor]"),
    Key("patience", Duration(0.001, 60), 50_000, "time a command waits before jobs give way"),
)
MANAGER_TABLES = {"workers": WORKERS_KEYS, "scale": SCALE_KEYS}
KEYS = {f"target.{key.name}": key for key in TARGET_KEYS}
KEYS |= {f"heads.{key.name}": key for key in HEADS_KEYS}
KEYS |= {f"manager.{key.name}": key for key in MANAGER_KEYS}
KEYS |= {f"manager.{part}.{key.name}": key for part, keys in MANAGER_TABLES.items() for key in keys}
OF_A_POOL = {key.name: key for key in POOL_KEYS}
OF_A_POOL |= {f"{part}.{key.name}": key for part, keys in TABLES.items() for key in keys}
# Of what is no pool's: what a running target takes; the rest needs a restart.
LIVE = (
    *("target.memory_budget", "target.package_sets"),
    *("target.function_signers", "target.function_policy"),
    *("manager.workers.", "manager.scale."),
)


@dataclass(frozen=True)
class Config:
    """The settings of files and flags.

    Attributes:
        target: every key of TARGET_KEYS.
        heads: every key of HEADS_KEYS.
        pools: complete; `default` is the first.
        manager: every key of MANAGER_KEYS, and of MANAGER_TABLES as "workers.KEY", "scale.KEY".
    """

    target: dict[str, Setting]
    heads: dict[str, Setting]
    pools: tuple[Pool, ...]
    manager: dict[str, Setting]

    @property
    def memory_budget(self) -> int | None:
        """Bytes; None: not declared."""
        budget: int | None = self.target["memory_budget"].value
        return budget


def key_of(name: str) -> Key:
    """The row of a setting by its full name: target.KEY, manager.KEY, pools.NAME.KEY (with dots in it)."""
    if not name.startswith("pools."):
        return KEYS[name]
    words = name.split(".")
    inner = ".".join(words[-2:])
    return OF_A_POOL[inner if inner in OF_A_POOL else words[-1]]


def pool_of(name: str) -> str | None:
    """The pool that a setting is of, given by its full name."""
    if not name.startswith("pools."):
        return None
    words = name.split(".")
    return ".".join(words[1 : -2 if ".".join(words[-2:]) in OF_A_POOL else -1])


def needs_restart(name: str) -> bool:
    """Whether a running target goes on without a change of this setting, given by its full name."""
    return not name.startswith(("pools.", *LIVE))


def in_force(config: Config) -> dict[str, Setting]:
    """Every setting that has a value, by its full name, written as in a file."""
    found: dict[str, Setting] = {}

    def add(name: str, setting: Setting) -> None:
        if setting.value is not None:
            shown = key_of(name).show(setting.value)
            found[name] = Setting([*shown] if isinstance(shown, tuple) else shown, setting.origin)

    for table in ("target", "heads", "manager"):
        for name, setting in getattr(config, table).items():
            add(f"{table}.{name}", setting)
    for pool in config.pools:
        for name, setting in pool.settings.items():
            add(f"pools.{pool.name}.{name}", setting)
    return found


def read(path: Path) -> dict[str, Any]:
    """The tables of a file.  Raises: ConfigError."""
    try:
        return tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}") from None


def load(
    path: Path | None,
    flags: Sequence[tuple[str, str, Mapping[str, Any]]] = (),
    given: Mapping[str, Any] | None = None,
) -> Config:
    """Read the files and check all of it.

    Args:
        path: None: the system's, if it is there.
        flags: of pools: its origin, the pool's name, and what it says.
        given: of keys of [target] and [heads], by parameters of `osd target serve` (OPTIONS); values as
            they would stand in a file.

    Raises:
        ConfigError: a file cannot be read, a key is unknown, a value wrong, or the memory of all
            pools above the budget.
    """
    tables: dict[str, list[tuple[str, Mapping[str, Any]]]] = {DEFAULT: []}
    target = check({}, TARGET_KEYS, "", "target")
    heads = check({}, HEADS_KEYS, "", "heads")
    manager = _manager_of({}, "")
    if path is not None or DEFAULT_FILE.exists():
        path = path or DEFAULT_FILE
        for each in [path, *sorted(path.parent.joinpath("pools.d").glob("*.toml"))]:
            inside = read(each)
            if each == path:
                target |= _target_of(inside, each)
                heads |= check(inside.get("heads", {}), HEADS_KEYS, str(each), "heads")
                manager |= _manager_of(inside.get("manager", {}), str(each))
            for name, table in _pools_of(inside, each, each != path):
                tables.setdefault(name, []).append((str(each), table))
    for origin, name, table in flags:
        tables.setdefault(name, []).append((origin, table))
    _take_options(given or {}, target, heads)
    sets = Path(target["package_sets"].value)
    budget = target["memory_budget"].value
    # [manager.scale] holds for pools without values of their own.
    scale = {
        key.name: key.show(manager[f"scale.{key.name}"].value)
        for key in SCALE_KEYS
        if manager[f"scale.{key.name}"].origin != "default"
    }
    for said in tables.values():
        if scale:
            said.insert(0, (f"{path}, [manager.scale]", {"scale": scale}))
    pools = check_pools([make_pool(name, said, sets) for name, said in tables.items()], budget)
    return Config(target, heads, pools, manager)


def _target_of(tables: Mapping[str, Any], path: Path) -> dict[str, Setting]:
    found = check(tables.get("target", {}), TARGET_KEYS, str(path), "target")
    check(tables, (), str(path), "", ("target", "heads", "pools", "manager"))
    return found


def _take_options(
    given: Mapping[str, Any], target: dict[str, Setting], heads: dict[str, Setting]
) -> None:
    """The command line has precedence over files."""
    for parameter, value in given.items():
        table, key = OPTIONS[parameter]
        option = f"--{parameter.replace('_', '-')}"
        found = check({key.name: value}, [key], option, table)
        (target if table == "target" else heads).update(found)
    low, high = heads["low_water"], heads["high_water"]
    if low.value > high.value:
        origin = high.origin if low.origin == "default" else low.origin
        raise ConfigError(f"{origin}: [heads] low_water is above high_water")


def _manager_of(table: object, where: str) -> dict[str, Setting]:
    found = check(table, MANAGER_KEYS, where, "manager", [*MANAGER_TABLES])
    assert isinstance(table, Mapping)
    for part, keys in MANAGER_TABLES.items():
        inner = check(table.get(part, {}), keys, where, f"manager.{part}")
        found |= {f"{part}.{key}": setting for key, setting in inner.items()}
    least, most = found["workers.min"], found["workers.max"]
    if least.value > most.value and "default" not in (least.origin, most.origin):
        raise ConfigError(f"{where}: [manager.workers] min is above max")
    if least.origin == "default":
        found["workers.min"] = Setting(min(least.value, most.value), "default")
    if most.origin == "default":
        found["workers.max"] = Setting(max(least.value, most.value), "default")
    return found


def _pools_of(
    tables: Mapping[str, Any], path: Path, alone: bool
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if alone:
        check(tables, (), str(path), "", ("pool",))
        yield path.stem, tables.get("pool", {})
        return
    pools = tables.get("pools", {})
    if not isinstance(pools, Mapping):
        raise ConfigError(f"{path}: [pools] is not a table")
    yield from pools.items()
