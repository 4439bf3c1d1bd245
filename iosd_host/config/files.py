# SPDX-License-Identifier: GPL-2.0-or-later
"""The serving side's configuration: /etc/iosd/iosd.toml and, beside it, pools.d/*.toml.

    [target]                    what `osd target serve` has flags for, and a few more keys
    [pools.NAME]                a pool, with tables [pools.NAME.limits], .maximum and .scale
    [manager]                   the resource manager, with tables [manager.workers] and .scale

and pools.d/NAME.toml has the same of one pool as [pool], [pool.limits] ....  Order of precedence: flag,
pools.d, iosd.toml, default.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from iosd_host.common import logs
from iosd_host.config.packages import DEFAULT_SETS
from iosd_host.config.pools import (
    DEFAULT,
    POOL_KEYS,
    SCALE_KEYS,
    TABLES,
    Pool,
    check_pools,
    make_pool,
)
from iosd_host.config.schema import (
    ConfigError,
    Key,
    Setting,
    check,
    choice,
    count,
    duration,
    endpoints,
    flag,
    http,
    portal,
    size,
    text,
    texts,
)
from iosd_host.policy.resources import default_workers

__all__ = [
    "DEFAULT_FILE",
    "HEADS_KEYS",
    "MANAGER_KEYS",
    "METHODS",
    "TARGET_KEYS",
    "Config",
    "flag_of",
    "in_force",
    "key_of",
    "load",
    "needs_restart",
    "pool_of",
]

DEFAULT_FILE = Path("/etc/iosd/iosd.toml")
LEVELS = ("full", "no-cgroup", "no-userns", "minimal", "best")

METHODS = ("nosec", "capkey", "cmdrsp", "alldata")

# Those that `osd target serve` has a flag for are named as that one, with _ for -.
TARGET_KEYS = (
    Key("data", text, None, "folder of the store"),
    Key("ssd", text, None, "folder on an SSD for the heads (first bytes) of objects"),
    Key("portal", portal, None, "address and port to listen on"),
    Key(
        "unsafe_portal",
        flag,
        None,
        "allow a portal that is not loopback with a tgtd that is not hardened",
    ),
    Key("tgtd", text, None, "iSCSI daemon: stock, hardened, or a path"),
    Key("allow", texts, None, "addresses or networks of initiators that may log in"),
    Key("name", text, None, "iSCSI name of the target"),
    Key("chap_user", text, None, "CHAP name that initiators log in with"),
    Key("chap_secret_file", text, None, "file with the secret of chap_user"),
    Key("chap_file", text, None, "file with CHAP accounts and the target's own account"),
    Key(
        "security", choice(*METHODS), None, "lowest security method of a store that is created now"
    ),
    Key("master_key", text, None, "file for a new store's master key [DATA.master-key]"),
    Key("uid", count(0, 2**31 - 1), None, "user to run tgtd as"),
    Key("uid_base", count(1, 2**31 - 2049), None, "user id before the first one of the sandboxes"),
    Key("workers", count(1, 64), None, "number of threads that run commands"),
    Key("isolation", choice(*LEVELS), None, "least isolation of scripts"),
    Key("cpu_share", count(0, 90), None, "least per cent of a busy processor for scripts"),
    Key("allow_bytecode", flag, None, "accept jobs that are .pyc files"),
    Key("no_sandboxes", flag, None, "serve storage only; run no scripts"),
    Key(
        "durability",
        choice("process", "sync"),
        None,
        "what an acknowledged write survives: a crash (process), or power loss (sync)",
    ),
    Key(
        "io",
        choice("cached", "direct"),
        None,
        "read and write object data through the page cache or directly",
    ),
    Key("checksums", choice("as-stored", "on", "off"), None, "checksums of every 4 KiB of data"),
    Key("verify", choice("scrub", "always"), None, "when to compare data with its checksums"),
    Key("script_turn", duration(0, 0.01), None, "time slice of a script while commands arrive"),
    Key("osc_compat", flag, None, "use OSC's dialect where it contradicts OSD-2"),
    Key("log_format", choice(*logs.FORMATS), None, "format of the log: text or json"),
    Key("log_level", choice(*logs.LEVELS), None, "lowest level to log"),
)
OWN_KEYS = (
    Key("memory_budget", size(1, 1 << 60), None, "memory limit of the jobs of all pools together"),
    Key("package_sets", text, str(DEFAULT_SETS), "folder that holds the package sets"),
)
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
# Those that `osd target serve` has a flag for are named as flag_of says.
HEADS_KEYS = (
    Key("size", size(0, 1 << 40), None, "head size of new objects [as the store was formatted]"),
    Key(
        "policy",
        choice("first", "small-only", "off"),
        "first",
        "which new objects begin on the SSD",
    ),
    Key(
        "high_water",
        count(1, 99),
        95,
        "per cent of the SSD above which new heads are stored on the data disk",
    ),
    Key("low_water", count(1, 99), 90, "per cent of the SSD below which heads move back to it"),
    Key(
        "rate",
        size(64 << 10, 1 << 40),
        64 << 20,
        "most bytes per second that move between SSD and data disk",
    ),
    Key(
        "on_ssd_loss",
        choice("fail", "read-through"),
        "fail",
        "without the SSD folder: do not start, or serve the rest",
    ),
)
LEAST, MOST = default_workers(os.cpu_count() or 1)
WORKERS_KEYS = (
    Key("auto", flag, True, "resize with the load"),
    Key("min", count(1, 64), LEAST, "smallest number of threads"),
    Key("max", count(1, 64), MOST, "largest number of threads [four a processor]"),
    Key("patience", duration(0.001, 60), 50_000, "time a command waits before jobs give way"),
)
MANAGER_TABLES = {"workers": WORKERS_KEYS, "scale": SCALE_KEYS}
KEYS = {f"target.{key.name}": key for key in (*TARGET_KEYS, *OWN_KEYS)}
KEYS |= {f"heads.{key.name}": key for key in HEADS_KEYS}
KEYS |= {f"manager.{key.name}": key for key in MANAGER_KEYS}
KEYS |= {f"manager.{part}.{key.name}": key for part, keys in MANAGER_TABLES.items() for key in keys}
OF_A_POOL = {key.name: key for key in POOL_KEYS}
OF_A_POOL |= {f"{part}.{key.name}": key for part, keys in TABLES.items() for key in keys}
# Of what is no pool's: what a running target takes; the rest needs a restart.
LIVE = ("target.memory_budget", "target.package_sets", "manager.workers.", "manager.scale.")


@dataclass(frozen=True)
class Config:
    """The settings of files and flags.

    Attributes:
        target: every key of TARGET_KEYS and OWN_KEYS.
        heads: every key of HEADS_KEYS.
        pools: complete; `default` is the first.
        manager: every key of MANAGER_KEYS, and of MANAGER_TABLES as "workers.KEY", "scale.KEY".
    """

    target: dict[str, Setting]
    heads: dict[str, Setting]
    pools: tuple[Pool, ...]
    manager: dict[str, Setting]

    @property
    def flags(self) -> dict[str, Any]:
        """Defaults of `osd target serve` without flags."""
        found = {key.name: self.target[key.name].value for key in TARGET_KEYS}
        for key in HEADS_KEYS:
            said = self.heads[key.name]
            found[flag_of(key.name)] = None if said.origin == "default" else said.value
        return {name: value for name, value in found.items() if value is not None}

    @property
    def memory_budget(self) -> int | None:
        """Bytes; None: not declared."""
        budget: int | None = self.target["memory_budget"].value
        return budget


def flag_of(name: str) -> str:
    """The parameter of `osd target serve` for a key of [heads]."""
    return name if name == "on_ssd_loss" else f"head_{name}"


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


def in_force(
    config: Config, standards: Mapping[str, Any], given: Mapping[str, Any] | None = None
) -> dict[str, Setting]:
    """Every setting that has a value, by its full name, written as in a file.

    Args:
        standards: what keys of [target] are that nobody says anything of.
        given: what flags say, by their parameters.
    """
    found: dict[str, Setting] = {}

    def add(name: str, setting: Setting) -> None:
        if setting.value is not None:
            shown = key_of(name).show(setting.value)
            found[name] = Setting([*shown] if isinstance(shown, tuple) else shown, setting.origin)

    for name, setting in config.target.items():
        if given and name in given:
            setting = Setting(given[name], f"--{name.replace('_', '-')}")
        elif setting.value is None and isinstance(standards.get(name), str | int):
            setting = Setting(standards[name], "default")
        add(f"target.{name}", setting)
    for name, setting in config.heads.items():
        flag = flag_of(name)
        if given and flag in given:
            setting = Setting(given[flag], f"--{flag.replace('_', '-')}")
        add(f"heads.{name}", setting)
    for name, setting in config.manager.items():
        add(f"manager.{name}", setting)
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
    package_sets: Path | None = None,
) -> Config:
    """Read the files and check all of it.

    Args:
        path: None: the system's, if it is there.
        flags: of pools: its origin, the pool's name, and what it says.
        package_sets: the folder of package sets, whatever the file says.

    Raises:
        ConfigError: a file cannot be read, a key is unknown, a value wrong, or the memory of all
            pools above the budget.
    """
    tables: dict[str, list[tuple[str, Mapping[str, Any]]]] = {DEFAULT: []}
    target = check({}, (*TARGET_KEYS, *OWN_KEYS), "", "target")
    heads = _heads_of({}, "")
    manager = _manager_of({}, "")
    if path is not None or DEFAULT_FILE.exists():
        path = path or DEFAULT_FILE
        for each in [path, *sorted(path.parent.joinpath("pools.d").glob("*.toml"))]:
            inside = read(each)
            if each == path:
                target |= _target_of(inside, each)
                heads |= _heads_of(inside.get("heads", {}), str(each))
                manager |= _manager_of(inside.get("manager", {}), str(each))
            for name, table in _pools_of(inside, each, each != path):
                tables.setdefault(name, []).append((str(each), table))
    for origin, name, table in flags:
        tables.setdefault(name, []).append((origin, table))
    if package_sets is not None:
        target["package_sets"] = Setting(str(package_sets), "--package-sets")
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
    found = check(tables.get("target", {}), (*TARGET_KEYS, *OWN_KEYS), str(path), "target")
    check(tables, (), str(path), "", ("target", "heads", "pools", "manager"))
    return found


def _heads_of(table: object, where: str) -> dict[str, Setting]:
    found = check(table, HEADS_KEYS, where, "heads")
    if found["low_water"].value > found["high_water"].value:
        raise ConfigError(f"{where}: [heads] low_water is above high_water")
    return found


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
