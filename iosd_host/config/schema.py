# SPDX-License-Identifier: GPL-2.0-or-later
"""The keys that a table of a configuration file may have: one row each, and the check of values.

Pure.  Not here: the tables themselves (files.py, pools.py).

Validation libraries report a wrong value, but not the nearest key that exists, nor the origin of each
value, which `osd config show --origin` needs.
"""

from __future__ import annotations

import difflib
import ipaddress
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "ISCSI_PORT",
    "SECONDS",
    "SIZES",
    "Choice",
    "ConfigError",
    "Count",
    "Duration",
    "Key",
    "NumberInRange",
    "Setting",
    "Size",
    "check",
    "endpoints",
    "file",
    "flag",
    "http",
    "iscsi_name",
    "known",
    "measure",
    "networks",
    "path",
    "portal",
    "seconds_of",
    "signing_policy",
    "split_portal",
    "text",
    "texts",
]

SIZES = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
ISCSI_PORT = 3260  # of a portal that names none
SIGNING_LEVELS = ("unsigned", "signed", "named")
SIGNING_ENGINES = ("python", "wasm", "native", "java")
_NAME = re.compile(r"[A-Za-z0-9.:-]{1,223}")  # of a target; tgtd takes no other characters
_PART = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)\s*")  # of a time


class ConfigError(Exception):
    """The configuration is wrong; the text says where, and what would be right."""


Convert = Callable[[Any], Any]
"""Converts a value of TOML.  Raises: ValueError with the rest of "KEY must be ..."."""


@dataclass(frozen=True)
class Key:
    """One key: its values, and its option of `osd target serve`, if it has one.

    Attributes:
        default: None: the key is not set.
        meaning: one line for people.
        help: text of the option; "": meaning.
        unset: the effect if a key without a default is not set, for people.
        example: a value as in a file, if the default depends on the host.
        metavar: name of the option's value; "": that of its kind.
        envvar: environment variable that sets the option, too.
        module: option of the module in tgtd that gets the value; "": none.
    """

    name: str
    convert: Convert
    default: Any
    meaning: str
    help: str = field(default="", kw_only=True)
    unset: str = field(default="", kw_only=True)
    example: str = field(default="", kw_only=True)
    metavar: str = field(default="", kw_only=True)
    envvar: str | None = field(default=None, kw_only=True)
    module: str = field(default="", kw_only=True)

    def show(self, value: Any) -> Any:
        """A value as in a file: sizes and times with units."""
        return getattr(self.convert, "show", lambda plain: plain)(value)


@dataclass(frozen=True)
class Setting:
    """A value and its origin: a file, a flag, or "default"."""

    value: Any
    origin: str


def known(name: str, names: Iterable[str], what: str, where: str) -> None:
    """Refuse an unknown name, and suggest the nearest one."""
    choices = list(names)
    if name in choices:
        return
    near = difflib.get_close_matches(name, choices, 1)
    hint = f"; did you mean '{near[0]}'?" if near else f"; there are: {', '.join(choices)}"
    raise ConfigError(f"{where}: no such {what}: '{name}'{hint}")


def check(
    table: object, keys: Sequence[Key], where: str, path: str, parts: Sequence[str] = ()
) -> dict[str, Setting]:
    """The settings of one table, complete with defaults.

    Args: where: the file or flag, for messages and as origin.  path: the table's name, for messages.
    parts: names of tables inside it, left to the caller.
    """
    if not isinstance(table, Mapping):
        raise ConfigError(f"{where}: [{path}] is not a table")
    rows = {key.name: key for key in keys}
    found = {key.name: Setting(key.default, "default") for key in keys}
    for name, value in table.items():
        known(name, [*rows, *parts], f"key in [{path}]" if path else "table", where)
        if name in rows:
            try:
                found[name] = Setting(rows[name].convert(value), where)
            except ValueError as error:
                raise ConfigError(f"{where}: [{path}] {name} must be {error}") from None
    return found


# ---- kinds of values ---------------------------------------------------------------------------


def text(value: Any) -> str:
    """Printable text."""
    if not isinstance(value, str) or not value or not value.isprintable():
        raise ValueError("text")
    return value


def iscsi_name(value: Any) -> str:
    """Name of a target."""
    if not _NAME.fullmatch(text(value)):
        raise ValueError(
            "letters, digits, dots, colons and hyphens, like 'iqn.2026-11.iosd:target'"
        )
    return str(value)


def path(value: Any) -> str:
    """A path that may not exist."""
    return text(value)


def file(value: Any) -> str:
    """The path of a file that is read at the start."""
    return text(value)


def signing_policy(value: Any) -> str:
    """The signatures that functions need: words LEVEL or ENGINE:LEVEL."""
    words = text(value).split()
    for word in words:
        engine, colon, level = word.rpartition(":")
        if level not in SIGNING_LEVELS or (colon and engine not in SIGNING_ENGINES):
            raise ValueError(
                "words like 'signed' or 'wasm:named': levels are "
                f"{', '.join(SIGNING_LEVELS)}, engines {', '.join(SIGNING_ENGINES)}"
            )
    return " ".join(words)


def texts(value: Any) -> tuple[str, ...]:
    """A list of texts, or one text that joins them by +, as flags do."""
    found = value.split("+") if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(each, str) and each for each in found):
        raise ValueError('a list of texts: ["one", "two"]')
    return tuple(found)


def networks(value: Any) -> tuple[str, ...]:
    """Addresses and networks of initiators; ALL: any.  tgtd takes a wrong one without a word."""
    try:
        found = texts(value)
        for each in found:
            if each != "ALL":
                ipaddress.ip_network(each, strict=False)
    except ValueError:
        raise ValueError(
            'a list of addresses and networks, like "192.0.2.7" or "192.0.2.0/24"'
        ) from None
    return found


def split_portal(value: str, port: int | None = None) -> tuple[str, int]:
    """ADDRESS:PORT, an IPv6 address in brackets.  port: where none is said.  Raises: ValueError."""
    host, colon, said = value.rpartition(":")
    if port is not None and (not colon or (host.count(":") and not host.endswith("]"))):
        host, said = value, str(port)
    if not said.isascii() or not said.isdigit() or int(said) > 65535:
        raise ValueError(f"'{said}' is not a port number")
    return host.strip("[]"), int(said)


def portal(value: Any) -> str:
    """Address of tgtd: an IP address, and optionally a port."""
    try:
        ipaddress.ip_address(split_portal(text(value), ISCSI_PORT)[0])
    except ValueError:
        raise ValueError('an IP address and a port, like "127.0.0.1:3260"') from None
    return str(value)


def http(value: Any) -> str:
    """Address of metrics and console."""
    try:
        if text(value) != "none":
            ipaddress.ip_address(split_portal(value)[0])
    except ValueError:
        raise ValueError('an IP address and a port, like "127.0.0.1:8470", or "none"') from None
    return str(value)


def endpoints(value: Any) -> tuple[str, ...]:
    """Address of the resource manager."""
    try:
        found = texts(value)
        for each in found:
            scheme, _, rest = each.partition("://")
            if scheme == "tcp":
                split_portal(rest.removesuffix(":*") + ":0" if rest.endswith(":*") else rest)
            elif scheme != "ipc" or not rest:
                raise ValueError
    except ValueError:
        raise ValueError('a list of "tcp://ADDRESS:PORT" and "ipc://PATH"') from None
    return found


def flag(value: Any) -> bool:
    """True or false; a flag writes it as text."""
    value = {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


@dataclass(frozen=True, init=False)
class Choice:
    """One of these words."""

    words: tuple[str, ...]

    def __init__(self, *words: str) -> None:
        object.__setattr__(self, "words", words)

    def __call__(self, value: Any) -> str:
        if value not in self.words:
            near = difflib.get_close_matches(str(value), self.words, 1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise ValueError(f"one of {', '.join(self.words)}{hint}")
        return str(value)


@dataclass(frozen=True)
class Count:
    """A whole number in a range; a flag writes it as text."""

    least: int
    most: int

    def __call__(self, value: Any) -> int:
        if isinstance(value, str) and value.isascii() and value.isdigit():
            value = int(value)
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or not self.least <= value <= self.most:
            raise ValueError(f"a whole number from {self.least} to {self.most}")
        return int(value)


@dataclass(frozen=True)
class NumberInRange:
    """A number in a range, whole or not; a flag writes it as text."""

    least: float
    most: float

    def __call__(self, value: Any) -> float:
        try:
            found = float("" if isinstance(value, bool) else value)
        except (TypeError, ValueError):
            found = math.nan
        if not self.least <= found <= self.most:
            raise ValueError(f"a number from {self.least:g} to {self.most:g}")
        return found


def measure(value: Any, units: Mapping[str, float]) -> float | None:
    """A number with one of these units; None: it is none."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", str(value))
    if isinstance(value, bool) or not found or found[2] not in units:
        return None
    return float(found[1]) * units[found[2]]


def seconds_of(value: Any) -> float | None:
    """A time of numbers with units, the largest unit first: "90s", "1h30m"; None: it is none."""
    total, at, before, text = 0.0, 0, math.inf, str(value)
    while at < len(text):
        part = _PART.match(text, at)
        unit = SECONDS.get(part[2]) if part else None
        if part is None or unit is None or unit >= before:
            return None
        total, at, before = total + float(part[1]) * unit, part.end(), unit
    return total if at else None


@dataclass(frozen=True)
class Size:
    """Bytes, with a unit: "256MiB"."""

    least: int
    most: int

    def __call__(self, value: Any) -> int:
        number = measure(value, SIZES)
        if number is None or not self.least <= number <= self.most:
            least, most = show_size(self.least), show_size(self.most)
            raise ValueError(f'a size with a unit, like "256MiB", from {least} to {most}')
        return int(number)

    def show(self, value: Any) -> str:
        """Bytes in the largest unit that leaves no rest."""
        return show_size(value)


@dataclass(frozen=True)
class Duration:
    """A time with units, "30s" or "1h30m"; microseconds as the target requires."""

    least_s: float
    most_s: float

    def __call__(self, value: Any) -> int:
        number = seconds_of(value)
        if number is None or not self.least_s <= number <= self.most_s:
            bounds = f"from {self.least_s:g} to {self.most_s:g} s"
            raise ValueError(f'a time with a unit, like "30s", {bounds}')
        return round(number * 1_000_000)

    def show(self, value: Any) -> str:
        """Microseconds in the largest unit that leaves no rest."""
        return show_duration(value)


def show_size(value: Any) -> str:
    """Bytes in the largest unit that leaves no rest."""
    for unit, factor in reversed(SIZES.items()):
        if value and value % factor == 0:
            return f"{value // factor}{unit}"
    return "0"


def show_duration(value: Any) -> str:
    """Microseconds in the largest unit that leaves no rest; 0 is what follows from another key."""
    for unit, factor in reversed(SECONDS.items()):
        step = round(factor * 1_000_000)
        if value and value % step == 0:
            return f"{value // step}{unit}"
    return "0s"
