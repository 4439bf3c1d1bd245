# SPDX-License-Identifier: GPL-2.0-or-later
"""Pools as an administrator configures them: their schema, and their form for the target and iosd-sandboxd.

Pure except that it looks up package sets.  Not here: reading the tables (files.py).
"""

from __future__ import annotations

import ipaddress
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from iosd_host.config.packages import PackagesError, PackageSet, find
from iosd_host.config.schema import (
    Choice,
    ConfigError,
    Count,
    Duration,
    Key,
    NumberInRange,
    Setting,
    Size,
    check,
    flag,
    known,
    text,
    texts,
)
from iosd_host.policy.resources import SLOTS_MOST, default_slots

__all__ = [
    "DEFAULT",
    "LIMIT_KEYS",
    "POOL_KEYS",
    "SCALE_KEYS",
    "TABLES",
    "Pool",
    "check_pools",
    "make_pool",
    "parse_flag",
    "processors",
]

DEFAULT = "default"
NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
POOLS_MOST = 16
SANDBOXES_MOST = 320  # of iosd-sandboxd
MIB = 1 << 20
ONE_JOB = ("java", "native")
JAVA_LEAST = 128 * MIB
DAY_S = 86400.0


def principals(value: Any) -> str:
    """Users of a pool in the form that the module compares: "addr:ADDRESS" and "chap:NAME", with
    commas."""
    found = ",".join(map(_principal, texts(value) if value else ()))
    if not all("!" <= character <= "~" for character in found) or ";" in found or len(found) > 511:
        raise ValueError("principals, 511 bytes at most: addresses, names proven by CHAP")
    return found


def _principal(word: str) -> str:
    if word.startswith(("addr:", "chap:")):
        return word
    try:
        return f"addr:{ipaddress.ip_address(word)}"
    except ValueError:
        return f"chap:{_quoted(word)}"


def _quoted(name: str) -> str:
    """Escape a name as the module writes it (osd_log_quote)."""
    return "".join(
        chr(byte) if 0x20 <= byte < 0x7F and byte not in b"\\'" else f"\\x{byte:02x}"
        for byte in name.encode()
    )


POOL_KEYS = (
    Key(
        "engine",
        Choice("python", "wasm", "native", "java"),
        "python",
        "engine that runs the code",
    ),
    Key(
        "max",
        Count(1, SLOTS_MOST),
        None,
        "number of slots: jobs that run at once [a processor each, at least 2, if memory allows]",
    ),
    Key("min", Count(0, SLOTS_MOST), None, "smallest number of prestarted sandboxes [1]"),
    Key(
        "warm_spare",
        Count(0, 2 * SLOTS_MOST),
        None,
        "prestarted sandboxes beyond those that run jobs [max + 1]",
    ),
    Key(
        "idle_timeout",
        Duration(0.001, DAY_S),
        300_000_000,
        "idle time after which only min sandboxes stay prestarted",
    ),
    Key(
        "queue",
        Count(1, 10_000),
        10_000,
        "most jobs that may wait; further ones are refused with BUSY",
    ),
    Key("packages", text, None, "package set by name, id or path [none]"),
    Key(
        "preload",
        texts,
        (),
        "modules to import before a script starts [as the set was built]",
    ),
    Key(
        "max_jobs_per_sandbox",
        Count(1, 1_000_000),
        1000,
        "jobs after which a reused sandbox is replaced",
    ),
    Key(
        "reuse",
        Choice("never", "verified", "trusted"),
        "never",
        "when a sandbox runs another job of the same principal",
    ),
)
# Defaults of a job, and the maximum that it can request.
LIMIT_KEYS = (
    Key("wall", Duration(0.001, DAY_S), None, "wall-clock time of a job"),
    Key("cpu", Duration(0.001, DAY_S), None, "processor time of a job"),
    Key("mem", Size(32 * MIB, 1 << 50), None, "memory of a job"),
    Key("threads", Count(1, 16), None, "threads of a job"),
    Key("output", Size(1, 1 << 30), None, "standard output of a job"),
)
# key: how the module calls it, what it gets where nothing is said, and at most (None: no bound)
LIMITS: dict[str, tuple[str, int, int | None]] = {
    "wall": ("wall", 60_000_000, 86_400_000_000),
    "cpu": ("cpu", 0, 86_400_000_000),  # 0: as wall
    "mem": ("memory", 256 * MIB, None),
    "threads": ("threads", 1, 16),
    "output": ("output", 64 * MIB, 1 << 30),
}
# How many slots may work follows the load, within min and max: the resource manager's (events.Scale).
SCALE_KEYS = (
    Key(
        "auto",
        flag,
        True,
        "resize with the load; otherwise keep the size that an administrator set",
    ),
    Key("interval", Duration(0.02, 60), 1_000_000, "time between two checks while no job waits"),
    Key("wait_count", Count(1, 1000), 3, "checks in a row before the pool shrinks"),
    Key("up_factor", NumberInRange(1.01, 64), 2.0, "largest factor of growth in one step"),
    Key(
        "cooldown",
        Duration(0, 3600),
        5_000_000,
        "time to wait after a change in the other direction",
    ),
)
ACCESS_KEYS = (
    Key(
        "users", principals, "", "principals that may use the pool: addresses, CHAP names [anybody]"
    ),
)
# The share of the host that all jobs of a pool together can use.
SHARE_KEYS = (
    Key(
        "cpu",
        Count(1, 100),
        100,
        "percent of the host's processors that all jobs of the pool may use together; 100: all",
    ),
    Key(
        "bandwidth",
        Size(0, 1 << 50),
        0,
        "bytes that scripts of the pool may read and write in a second; 0: no bound",
    ),
    Key(
        "deadline",
        Duration(0, DAY_S),
        0,
        "time from a job's submission within which it must end, else it is given back; 0: none",
    ),
)
TABLES = {
    "limits": LIMIT_KEYS,
    "maximum": LIMIT_KEYS,
    "scale": SCALE_KEYS,
    "access": ACCESS_KEYS,
    "share": SHARE_KEYS,
}
# key: how the module calls it
SHARE = {"cpu": "cpu_share", "bandwidth": "bandwidth", "deadline": "deadline"}


@dataclass(frozen=True)
class Pool:
    """A pool, complete.

    Attributes:
        name: as jobs name it.
        settings: every key of POOL_KEYS, and of TABLES as "limits.KEY", "maximum.KEY", "scale.KEY".
        package_set: None: it has none.
        missing: why the set it names is not there; "" when it is.
    """

    name: str
    settings: dict[str, Setting]
    package_set: PackageSet | None = None
    missing: str = ""

    def __getitem__(self, key: str) -> Any:
        return self.settings[key].value

    def line(self) -> str:
        """The file for the module and iosd-sandboxd (target/wire/pool_file.h)."""
        words = {"name": self.name, "engine": self["engine"]}
        words |= {"max": self["max"], "min": self["min"]}
        words |= {"warm_spare": self["warm_spare"], "queue": self["queue"], "reuse": self["reuse"]}
        words["idle_timeout"] = self["idle_timeout"]
        words["max_jobs_per_sandbox"] = self["max_jobs_per_sandbox"]
        if self["access.users"]:
            words["users"] = self["access.users"]
        if self.package_set is not None:
            words |= {"set": self.package_set.id, "packages": self.package_set.folder}
        if self["preload"]:
            words["preload"] = ",".join(self["preload"])
        for key, word in SHARE.items():
            if self.settings[f"share.{key}"].origin != "default":
                words[word] = self[f"share.{key}"]
        for key, (word, _, _) in LIMITS.items():
            if self[f"limits.{key}"]:
                words[word] = self[f"limits.{key}"]
            if self[f"maximum.{key}"] is not None:
                words[f"{word}_max"] = self[f"maximum.{key}"]
        return ";".join(f"{key}={value}" for key, value in words.items())


def make_pool(name: str, tables: Sequence[tuple[str, Mapping[str, Any]]], sets: Path) -> Pool:
    """A pool from what files and flags say of it, the later ones winning.

    Args:
        tables: where each was said, and what; keys of POOL_KEYS, and tables of TABLES.
        sets: the folder of package sets.

    Raises:
        ConfigError: a key is unknown, a value is wrong, or they contradict each other.
    """
    if not NAME.fullmatch(name):
        where = tables[0][0] if tables else "pools"
        raise ConfigError(f"{where}: '{name}' is no name for a pool: letters, digits, _ . -")
    settings = _merge(name, tables)
    _complete(name, settings)
    _check_engine(name, settings)
    wanted = settings["packages"].value
    _check_words(name, settings, sets)
    if wanted is None:
        return Pool(name, settings)
    try:
        return Pool(name, settings, find(wanted, sets))
    except PackagesError as error:
        absent = PackageSet(Path(wanted).name, sets / wanted)
        return Pool(name, settings, absent, str(error))


def _check_words(name: str, settings: Mapping[str, Setting], sets: Path) -> None:
    """Paths and module names share a line of ours (Pool.line), and the modules must exist.

    Raises:
        ConfigError: one of them does not fit there, or is no module that this pool can have.
    """
    wanted, preload = settings["packages"], settings["preload"]
    words = [(each, preload) for each in preload.value]
    if wanted.value is not None:
        words += [(str(sets), wanted), (wanted.value, wanted)]
    for word, said in words:
        if ";" in word or not word.isprintable():
            raise ConfigError(f"{said.origin}: pool '{name}': '{word}' may hold no ';'")
    for module in preload.value:
        if wanted.value is None and module.partition(".")[0] not in sys.stdlib_module_names:
            raise ConfigError(
                f"{preload.origin}: pool '{name}': '{module}' of preload is no module of the standard "
                "library, and the pool names no package set (packages = ...)"
            )


def _merge(name: str, tables: Sequence[tuple[str, Mapping[str, Any]]]) -> dict[str, Setting]:
    settings: dict[str, Setting] = {}
    for where, table in [("", {}), *tables]:
        found = check(table, POOL_KEYS, where, f"pools.{name}", [*TABLES])
        for part, keys in TABLES.items():
            inner = check(table.get(part, {}), keys, where, f"pools.{name}.{part}")
            found |= {f"{part}.{key}": setting for key, setting in inner.items()}
        settings |= {
            key: setting
            for key, setting in found.items()
            if key not in settings or setting.origin != "default"
        }
    return settings


def processors() -> int:
    """Processors that this process may use, and with it the target that it starts."""
    return len(os.sched_getaffinity(0))


def host_memory() -> int:
    """Bytes."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _complete(name: str, settings: dict[str, Setting]) -> None:
    """Fill in what follows from the rest; refuse what contradicts it."""

    def default(key: str, value: Any) -> None:
        if settings[key].value is None:
            settings[key] = Setting(value, "default")

    each = settings["maximum.mem"].value or settings["limits.mem"].value or LIMITS["mem"][1]
    default("max", default_slots(processors(), host_memory(), each))
    default("min", 1)
    default("warm_spare", settings["max"].value + 1)
    if settings["min"].value > settings["max"].value:
        raise ConfigError(f"{settings['min'].origin}: pool '{name}': min is above max")
    for key, (_, standard, most) in LIMITS.items():
        asked, bound = settings[f"limits.{key}"], settings[f"maximum.{key}"]
        if bound.value is None and asked.value is not None and most is not None:
            default(f"maximum.{key}", max(most, asked.value))
        default(f"maximum.{key}", most)
        least = settings[f"maximum.{key}"].value
        default(f"limits.{key}", standard if least is None else min(standard, least))
        if least is not None and settings[f"limits.{key}"].value > least:
            where = asked.origin if bound.origin == "default" else bound.origin
            raise ConfigError(f"{where}: pool '{name}': limits.{key} is above maximum.{key}")


def _check_engine(name: str, settings: Mapping[str, Setting]) -> None:
    """Refuse what an engine cannot do: java and native run one job a process, and java needs 128 MiB."""
    engine, reuse, memory = settings["engine"].value, settings["reuse"], settings["limits.mem"]
    if engine in ONE_JOB and reuse.value != "never":
        raise ConfigError(f"{reuse.origin}: pool '{name}': the engine {engine} has no reuse")
    if engine == "java" and memory.value < JAVA_LEAST:
        raise ConfigError(
            f"{memory.origin}: pool '{name}': limits.mem is below 128 MiB, which the engine java needs"
        )


def check_pools(pools: Sequence[Pool], budget: int | None) -> tuple[Pool, ...]:
    """The same pools, if they can be served together.

    With a budget each pool needs a bound on memory; that of a pool without one is its default limit,
    so a job of it can ask for no more.

    Raises:
        ConfigError: with the numbers.
    """
    sandboxes = sum(2 * pool["max"] + pool["warm_spare"] + 1 for pool in pools)
    slots = sum(pool["max"] for pool in pools)
    if slots > SLOTS_MOST:
        sums = " + ".join(f"{pool['max']} ({pool.name})" for pool in pools)
        raise ConfigError(f"pools have {slots} slots together, at most {SLOTS_MOST} can be: {sums}")
    if sandboxes > SANDBOXES_MOST:
        raise ConfigError(
            f"pools may keep {sandboxes} sandboxes together, at most {SANDBOXES_MOST} can be: lower max "
            "or warm_spare"
        )
    if len(pools) > POOLS_MOST:
        raise ConfigError(f"{len(pools)} pools, at most {POOLS_MOST} can be")
    if budget is None:
        return tuple(pools)
    pools = [_bound_memory(pool) for pool in pools]
    needed = sum(pool["max"] * pool["maximum.mem"] for pool in pools)
    if needed > budget:
        sums = ", ".join(
            f"{pool.name} {pool['max']} x {pool['maximum.mem'] // MIB} MiB" for pool in pools
        )
        raise ConfigError(
            f"pools may need {needed // MIB} MiB, the budget is {budget // MIB} MiB: {sums}; "
            "lower max or maximum.mem, or raise memory_budget"
        )
    return tuple(pools)


def _bound_memory(pool: Pool) -> Pool:
    if pool["maximum.mem"] is not None:
        return pool
    bound = Setting(pool["limits.mem"], "memory_budget")
    return replace(pool, settings=pool.settings | {"maximum.mem": bound})


def parse_flag(words: str) -> tuple[str, dict[str, Any]]:
    """`--pool NAME[:KEY=VALUE,...]` as a name and a table; limits.mem=... names an inner key.

    Raises:
        ConfigError: it is not of that form.
    """
    name, _, rest = words.partition(":")
    table: dict[str, Any] = {}
    for word in filter(None, rest.split(",")):
        key, equals, value = word.partition("=")
        part, dot, inner = key.partition(".")
        if not equals:
            raise ConfigError(f"--pool {name}: '{word}' has no value: write KEY=VALUE")
        if dot:
            known(part, TABLES, "table", f"--pool {name}")
            table.setdefault(part, {})[inner] = value
        else:
            table[key] = value
    return name, table
