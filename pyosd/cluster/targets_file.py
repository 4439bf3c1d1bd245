# SPDX-License-Identifier: GPL-2.0-or-later
"""The file that names the targets of a cluster: TOML with a table [targets], NAME = "URL"."""

from __future__ import annotations

import tomllib
from pathlib import Path

from pyosd.iscsi.session import TargetAddress

__all__ = ["read_targets"]


def read_targets(path: str | Path) -> dict[str, str]:
    """The names and URLs in a file.

    Raises: OSError: it cannot be read; ValueError: it is no such file; the text says why.
    """
    try:
        found = tomllib.loads(Path(path).read_bytes().decode())
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    targets = found.pop("targets", None)
    if found:
        raise ValueError(f"{path}: no such key: '{next(iter(found))}'; there is only [targets]")
    if not isinstance(targets, dict) or not targets:
        raise ValueError(f'{path}: it has no table [targets] with lines NAME = "URL"')
    for name, url in targets.items():
        if not isinstance(url, str):
            raise ValueError(f"{path}: the URL of '{name}' is not a text")
        try:
            secret = TargetAddress.parse(url).chap is not None
        except ValueError as error:
            raise ValueError(f"{path}: {name}: {error}") from None
        if secret:
            raise ValueError(
                f"{path}: the URL of '{name}' has a secret: say it in IOSD_CHAP_SECRET, or in a file "
                "that a profile's 'chap-secret-file' names"
            )
    return targets
