# SPDX-License-Identifier: GPL-2.0-or-later
"""The keys of a pool that can change while it serves, and their form in requests to the target.

Pure.  Values are texts, as in a file or on a command line; schema.py gives them their meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from iosd_host.config.pools import (
    ACCESS_KEYS,
    LIMIT_KEYS,
    LIMITS,
    POOL_KEYS,
    SCALE_KEYS,
    SHARE,
    SHARE_KEYS,
)
from iosd_host.config.schema import ConfigError, Key, Setting, known

__all__ = ["LIVE_KEYS", "check_words", "frame_words", "note_of", "show_value"]

# Of a pool: these come with a process that serves it, and need another one: a reload makes it.
FIXED = ("engine", "packages", "preload")
LIVE_KEYS: dict[str, Key] = {key.name: key for key in POOL_KEYS if key.name not in FIXED}
LIVE_KEYS |= {f"{part}.{key.name}": key for part in ("limits", "maximum") for key in LIMIT_KEYS}
LIVE_KEYS |= {f"access.{key.name}": key for key in ACCESS_KEYS}
LIVE_KEYS |= {f"share.{key.name}": key for key in SHARE_KEYS}
LIVE_KEYS |= {f"scale.{key.name}": key for key in SCALE_KEYS}
# key -> how the target's pools file calls it (target/exec/pool/config.c)
FRAME = {"access.users": "users"}
FRAME |= {f"share.{key}": word for key, word in SHARE.items()}
FRAME |= {f"limits.{key}": word for key, (word, _, _) in LIMITS.items()}
FRAME |= {f"maximum.{key}": f"{word}_max" for key, (word, _, _) in LIMITS.items()}


def check_words(words: Mapping[str, Any], where: str = "pool set") -> dict[str, Setting]:
    """Values by key, converted.

    Raises:
        ConfigError: a key cannot be changed while the pool serves, or a value is wrong.
    """
    found = {}
    for name, value in words.items():
        if name in FIXED:
            raise ConfigError(
                f"{where}: '{name}' cannot be set while the pool serves: change the configuration's "
                "file, then 'osd config reload'"
            )
        known(name, LIVE_KEYS, "key", where)
        try:
            found[name] = Setting(LIVE_KEYS[name].convert(value), where)
        except ValueError as error:
            raise ConfigError(f"{where}: {name} must be {error}") from None
    return found


def frame_words(values: Mapping[str, Any]) -> dict[str, str]:
    """Converted values as the target is told them; `scale.*` is the manager's own, and left out."""
    return {
        FRAME.get(name, name): str(value)
        for name, value in values.items()
        if not name.startswith("scale.")
    }


def show_value(name: str, value: Any) -> str:
    """A converted value as it would be written: "512MiB"."""
    shown = LIVE_KEYS[name].show(value)
    return str(shown).lower() if isinstance(shown, bool) else str(shown)


NOTES = {
    "running": "jobs start again",
    "paused": "running jobs continue, others wait",
    "draining": "jobs it has run to their end, others are refused (BUSY)",
}


def note_of(was: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """When a change takes effect, for people; "" at once."""
    found: dict[str, None] = {}
    for key, value in now.items():
        before = was.get(key)
        if value == before:
            continue
        if key == "mode":
            found[NOTES.get(str(value), "")] = None
        elif key.startswith(("limits.", "maximum.")) or key in ("queue", "reuse"):
            found["for jobs that come from now on"] = None
        elif key in ("max", "active") and str(value).isdigit() and str(before).isdigit():
            grows = int(str(value)) > int(str(before))
            found[
                "takes effect as jobs arrive" if grows else "running jobs continue to their end"
            ] = None
    return "; ".join(filter(None, found))
