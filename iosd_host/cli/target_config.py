# SPDX-License-Identifier: GPL-2.0-or-later
"""The configuration of a target from flags, files and defaults: what `osd target serve` will serve."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from iosd_host.common.users import OLD_UID, TARGET_USER, uid_of
from iosd_host.config.files import Config
from iosd_host.config.pools import DEFAULT, parse_flag
from iosd_host.config.schema import ISCSI_PORT, ConfigError, split_portal
from iosd_host.config.target_keys import OPTIONS
from iosd_host.serve.chap import Accounts, SecretError, checked, read_accounts, read_secret
from iosd_host.serve.parts import TargetConfig

__all__ = ["default_data", "pool_flags", "target_config"]


def default_uid() -> int:
    """The user of tgtd under systemd where nobody says another."""
    found = uid_of(TARGET_USER)
    return OLD_UID if found is None else found


def default_data() -> Path:
    """The default folder of a store."""
    if os.geteuid() == 0:
        return Path("/var/lib/iosd")
    return Path(os.environ.get("XDG_DATA_HOME", "~/.local/share")).expanduser() / "iosd"


def read_chap(user: str | None, secret_file: Path | None, file: Path | None) -> Accounts | None:
    """Take secrets from files or the environment, never from the command line."""
    if user is not None and file is not None:
        raise click.UsageError("--chap-file names the users; --chap-user is for one without it")
    try:
        if file is not None:
            return read_accounts(file)
        if user is None:
            return None
        if secret_file is not None:
            secret = read_secret(secret_file).strip()
        else:
            secret = os.environ.get("IOSD_CHAP_SECRET", "")
        return Accounts((checked(user, secret, "--chap-secret-file or IOSD_CHAP_SECRET"),))
    except SecretError as error:
        raise click.UsageError(str(error)) from None


def pool_flags(
    pools: tuple[str, ...], slots: int | None, reuse: str | None
) -> list[tuple[str, str, dict[str, Any]]]:
    """The pools that flags describe: flag, name, table."""
    flags: list[tuple[str, str, dict[str, Any]]] = []
    if slots is not None:
        flags.append(("--slots", DEFAULT, {"max": slots}))
    if reuse is not None:
        flags.append(("--reuse", DEFAULT, {"reuse": reuse}))
    try:
        flags += [(f"--pool {words}", *parse_flag(words)) for words in pools]
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    return flags


def options_of_module(config: Config) -> Iterator[str]:
    """The options of the module that are keys of the configuration."""
    for table, key in OPTIONS.values():
        value = getattr(config, table)[key.name].value
        if key.module and value is not None and value is not False:
            yield f"{key.module}={int(value) if value is True else value}"


def target_config(
    config: Config,
    *,
    secrets: bool = True,
    manager: bool = True,
    module: Path | None = None,
    module_options: Sequence[str] = (),
) -> TargetConfig:
    """The configuration from files, options and defaults.

    Args:
        secrets: read the CHAP accounts, whose file only its owner reads.
        manager: run a resource manager, if the configuration has one.
        module, module_options: of tests.
    """
    said = {name: setting.value for name, setting in config.target.items()}
    root, uid = os.geteuid() == 0, said["uid"]
    if uid is not None and uid != os.geteuid() and not root:
        raise click.UsageError("--uid needs root")
    files = [said[name] and Path(said[name]) for name in ("chap_secret_file", "chap_file")]
    use_manager = manager and config.manager["enabled"].value
    return TargetConfig(
        data=(Path(said["data"]) if said["data"] else default_data()).resolve(),
        portal=split_portal(said["portal"], ISCSI_PORT),
        name=said["name"],
        ssd=said["ssd"] and Path(said["ssd"]).resolve(),
        unsafe_portal=said["unsafe_portal"],
        tgtd=said["tgtd"],
        allow=said["allow"] or (),
        chap=read_chap(said["chap_user"], *files) if secrets else None,
        uid=(default_uid() if uid is None else uid) if root else None,
        uid_base=said["uid_base"],
        cpu_share=said["cpu_share"],
        isolation=said["isolation"],
        pools=config.pools,
        memory_budget=config.memory_budget,
        sandboxes=not said["no_sandboxes"],
        function_signers=said["function_signers"],
        function_policy=said["function_policy"],
        options=(*options_of_module(config), *module_options),
        module=module,
        security=said["security"],
        master_key=said["master_key"] and Path(said["master_key"]).resolve(),
        manager=config.manager if use_manager else None,
    )
