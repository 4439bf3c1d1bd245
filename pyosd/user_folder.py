# SPDX-License-Identifier: GPL-2.0-or-later
"""The folders of the user for configuration, state and caches."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["user_folder"]


def user_folder(variable: str, below_home: str) -> Path:
    """The folder that a variable of XDG names, or else one below the home.

    A user without HOME who is in no list of users, as in a container, has the home /.
    """
    try:
        return Path(os.environ.get(variable) or f"~/{below_home}").expanduser()
    except RuntimeError:
        return Path("/", below_home)
