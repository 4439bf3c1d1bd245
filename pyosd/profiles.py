# SPDX-License-Identifier: GPL-2.0-or-later
"""The client's configuration: ~/.config/iosd/config.toml with one table [profile.NAME] a target.

Order of precedence: flag or argument, environment, profile, default.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from pyosd.identity import Identity, from_environment
from pyosd.iscsi.login import Chap
from pyosd.security.credentials import CredentialSource
from pyosd.user_folder import user_folder

__all__ = [
    "Profile",
    "ProfileError",
    "access",
    "config_path",
    "load_profile",
    "present",
    "target_url",
]

DEFAULT_PROFILE = "default"
NOBODY = Identity()
KEYS = {"target": str, "targets": str, "partition": int} | {
    each.replace("_", "-"): str for each in Identity._fields
}


class ProfileError(ValueError):
    """The configuration file is wrong or lacks something; the text says where."""


class Profile(NamedTuple):
    """The settings of a profile. Each can be absent."""

    target: str | None = None
    targets: str | None = None
    partition: int | None = None
    identity: Identity = NOBODY
    unread: str = ""  # the file of another user that was left out of account


def config_path() -> Path:
    """Path of the file."""
    return user_folder("XDG_CONFIG_HOME", ".config") / "iosd" / "config.toml"


def _known(name: str, names: Any, what: str, path: Path) -> None:
    if name not in names:
        import difflib

        near = difflib.get_close_matches(name, list(names), 1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise ProfileError(f"{path}: no such {what}: '{name}'{hint}")


def _parsed(text: str) -> dict[str, Any]:
    """The tables of a file.  Raises: ValueError."""
    import tomllib

    return tomllib.loads(text)


def load_profile(name: str | None) -> Profile:
    """Read a profile.

    Args:
        name: which; None: "default", if there is one.

    Raises:
        ProfileError: the file, a key or a value is wrong, or the named profile is absent.
    """
    path = config_path()
    try:
        tables = _parsed(path.read_text())
    except (FileNotFoundError, NotADirectoryError):  # HOME can be /dev/null
        tables = {}
    except PermissionError:
        if name is not None:
            raise ProfileError(
                f"{path}: not readable by this user; HOME names its owner's"
            ) from None
        return Profile(
            unread=str(path)
        )  # su and sudo keep HOME: another user's profiles are none of ours
    except (OSError, ValueError) as error:
        raise ProfileError(f"{path}: {error}") from None
    for key, value in tables.items():
        if key != "profile" and isinstance(value, dict):
            raise ProfileError(f"{path}: [{key}]: a profile is a table [profile.{key}]")
        _known(key, ("profile",), "key", path)
    profiles = tables.get("profile", {})
    if not isinstance(profiles, dict):
        raise ProfileError(f"{path}: 'profile' is not a table")
    if name is None and DEFAULT_PROFILE not in profiles:
        return Profile()
    _known(name or DEFAULT_PROFILE, profiles, "profile", path)
    return _profile(profiles[name or DEFAULT_PROFILE], path)


def _profile(table: dict[str, Any], path: Path) -> Profile:
    for key, value in table.items():
        _known(key, KEYS, "key", path)
        if not isinstance(value, KEYS[key]):
            form = "a number, such as 0x10000" if KEYS[key] is int else "a text in quotation marks"
            raise ProfileError(f"{path}: '{key}' is not {form}")
    said = {key.replace("-", "_"): value for key, value in table.items()}
    identity = Identity(**{key: value for key, value in said.items() if key in Identity._fields})
    return Profile(said.get("target"), said.get("targets"), said.get("partition"), identity)


def present() -> Profile:
    """The profile that IOSD_PROFILE names, or "default".  Raises: ProfileError."""
    return load_profile(os.environ.get("IOSD_PROFILE"))


def target_url(url: str | None = None) -> str:
    """The URL, or else that of IOSD_TARGET, or of the profile.  Raises: ProfileError: none has one."""
    found = url or os.environ.get("IOSD_TARGET") or present().target
    if not found:
        raise ProfileError(
            f"no target: give its URL, set IOSD_TARGET, or write 'target' into {config_path()}"
        )
    return found


def access(url: str) -> tuple[Chap | None, CredentialSource | None]:
    """CHAP and credentials for that target, of the environment and the profile.

    Raises: ProfileError; OSError; ValueError: a file is not its owner's alone, or no such file.
    """
    identity = from_environment().over(present().identity)
    return identity.chap(), identity.source(url)
