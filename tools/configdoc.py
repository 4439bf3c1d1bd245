# SPDX-License-Identifier: GPL-2.0-or-later
"""Every key of the serving side's configuration, from the schema.

``python -m tools.configdoc`` prints the /etc/iosd/iosd.toml that is installed, with every line commented
out.  iosd.toml(5) has the same rows.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from iosd_host.config.files import (
    MANAGER_KEYS,
    MANAGER_TABLES,
    in_force,
    load,
    needs_restart,
)
from iosd_host.config.pools import POOL_KEYS, TABLES
from iosd_host.config.schema import Key
from iosd_host.config.target_keys import HEADS_KEYS, TARGET_KEYS

__all__ = ["ROWS", "SECTIONS", "Row", "default_file", "rows"]

POOL = "pools.default"
ABOUT = {
    "limits": "What a job gets that asks for nothing.",
    "maximum": "What a job may ask for.",
    "share": "What all jobs of the pool together may take of the host.",
    "scale": "How this pool follows its load.",
    "access": "Who may use it.",
}
SECTIONS: dict[str, tuple[Sequence[Key], str]] = {
    "target": (TARGET_KEYS, "The target."),
    "heads": (HEADS_KEYS, "Objects' heads on the SSD (docs/tiers.md)."),
    "manager": (MANAGER_KEYS, "The resource manager."),
    "manager.workers": (MANAGER_TABLES["workers"], "Threads that run commands."),
    "manager.scale": (MANAGER_TABLES["scale"], "How pools follow their load that say nothing."),
    POOL: (POOL_KEYS, "A pool of sandboxes; other names make other pools."),
    **{f"{POOL}.{part}": (keys, ABOUT[part]) for part, keys in TABLES.items()},
}
# Keys that have no default, or one that follows from the host or from other keys: a value that could be
# there.  All of them together are a configuration that can be served.
EXAMPLES = {
    **{f"target.{key.name}": key.example for key in TARGET_KEYS if key.example},
    **{f"heads.{key.name}": key.example for key in HEADS_KEYS if key.example},
    "manager.state": '"/var/lib/iosd-manager"',
    "manager.keys": '"/etc/iosd/keys"',
    "manager.http": '"127.0.0.1:9464"',
    f"{POOL}.max": "4",
    f"{POOL}.min": "4",
    f"{POOL}.warm_spare": "5",
    f"{POOL}.packages": '"numpy"',
    f"{POOL}.preload": '["numpy"]',
    f"{POOL}.access.users": '["alice"]',
    f"{POOL}.limits.cpu": '"60s"',
    f"{POOL}.maximum.mem": '"1GiB"',
}
HEAD = """\
# /etc/iosd/iosd.toml: the configuration of a target.  iosd.toml(5) describes each key.
# `osd config check` shows what a target with this file would do, `osd config show --origin` the source of
# each value.  `osd config reload` applies changes, except of keys that need a restart.  A pool may have a
# file of its own, pools.d/NAME.toml beside this one.
#
# Everything is commented out.  Each line has the default.  It has an example if there is no default, or
# if the default depends on the host.
"""


@dataclass(frozen=True)
class Row:
    """A key: its table, name and meaning, and a value as it would be written.

    Attributes:
        default: whether the value is what holds where nothing is said, on every host.
    """

    section: str
    name: str
    meaning: str
    value: str
    default: bool


def _defaults() -> dict[str, str]:
    with tempfile.NamedTemporaryFile(suffix=".toml") as empty:
        found = in_force(load(Path(empty.name)))
        return {name: json.dumps(setting.value) for name, setting in found.items()}


def rows() -> Iterator[Row]:
    """All keys, table by table."""
    defaults = _defaults()
    for section, (keys, _) in SECTIONS.items():
        for key in keys:
            name = f"{section}.{key.name}"
            example = EXAMPLES.get(name)
            value = example if example is not None else defaults.get(name, "")
            meaning = key.meaning + " (needs a restart)" * needs_restart(name)
            yield Row(section, key.name, meaning, value, example is None)


ROWS = tuple(rows())


def default_file() -> str:
    """The file that is installed."""
    parts = [HEAD]
    for section, (_, about) in SECTIONS.items():
        parts.append(f"\n# {about}\n#[{section}]\n")
        parts += [
            f"\n# {row.meaning}\n#{row.name} = {row.value}\n"
            for row in ROWS
            if row.section == section
        ]
    return "".join(parts)


if __name__ == "__main__":
    print(default_file(), end="")
