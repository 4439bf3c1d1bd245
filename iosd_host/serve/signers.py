# SPDX-License-Identifier: GPL-2.0-or-later
"""The file in which the module finds the policy and the list of signers of functions.

The target's user need not be able to read the administrator's list, so it gets a copy, which changes
only with a reload (target/function/signers.h).
"""

from __future__ import annotations

from pathlib import Path

from iosd_host.common.whole_file import write_whole
from iosd_host.config.schema import ConfigError

__all__ = ["signers_beside", "signers_text", "write_signers"]

MOST = 4 << 20


def signers_beside(pools: Path) -> Path:
    """The place of that file, given the file of the pools."""
    return pools.with_name("signers")


def signers_text(policy: str, signers: str | None) -> str:
    """The text of the file.

    Args: signers: a file as allowed_signers of ssh-keygen; None: nobody.

    Raises: ConfigError: the file cannot be read.
    """
    try:
        listed = Path(signers).read_text(encoding="utf-8") if signers else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"function_signers: cannot read {signers}: {error}") from None
    if len(listed) > MOST - len(policy) - 16:
        raise ConfigError(f"function_signers: {signers} must be at most 4 MiB")
    return f"policy {policy}\n{listed}"


def write_signers(text: str, path: Path) -> None:
    """Whole or not at all, whatever is in its place; readable for tgtd."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text.encode(), 0o644)
