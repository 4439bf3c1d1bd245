# SPDX-License-Identifier: GPL-2.0-or-later
"""The configuration of a target from flags, files and defaults: what `osd target serve` will serve."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from iosd_host.common.exit_codes import EXIT_CONFIG
from iosd_host.common.users import OLD_UID, TARGET_USER, uid_of
from iosd_host.config.files import HEADS_KEYS, TARGET_KEYS, Config, flag_of, load
from iosd_host.config.pools import DEFAULT, parse_flag
from iosd_host.config.schema import ConfigError
from iosd_host.serve.chap import Accounts, SecretError, checked, read_accounts, read_secret
from iosd_host.serve.parts import TargetConfig
from pyosd.cli.frame.failure import print_error

__all__ = ["default_data", "flags_given", "pool_flags", "read_config", "target_config"]


def default_uid() -> int:
    """The user of tgtd under systemd where nobody says another."""
    found = uid_of(TARGET_USER)
    return OLD_UID if found is None else found


def default_data() -> Path:
    """Where a store goes unless told otherwise."""
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


def read_config(path: Path | None, *others: Any) -> Config:
    """The configuration, or an end with 78 and what is wrong with it."""
    try:
        return load(path, *others)
    except ConfigError as error:
        print_error(EXIT_CONFIG, str(error))
        sys.exit(EXIT_CONFIG)


def pool_flags(
    pools: tuple[str, ...], slots: int | None, reuse: str | None
) -> list[tuple[str, str, dict[str, Any]]]:
    """What flags say of pools: flag, name, table."""
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


def flags_given(ctx: click.Context) -> dict[str, Any]:
    """What the command line says of keys of [target] and [heads], by parameter."""
    said = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)
    found = {}
    names = [key.name for key in TARGET_KEYS] + [flag_of(key.name) for key in HEADS_KEYS]
    for name in names:
        value = ctx.params.get(name)
        if ctx.get_parameter_source(name) in said:
            if isinstance(value, tuple) and name == "portal":
                value = "{}:{}".format(*value)
            found[name] = str(value) if isinstance(value, Path) else value
    return found


def target_config(
    *,
    config_file: Path | None,
    data: Path | None,
    ssd: Path | None,
    portal: tuple[str, int],
    unsafe_portal: bool,
    tgtd: str | None,
    allow: tuple[str, ...],
    name: str,
    chap_user: str | None,
    chap_secret_file: Path | None,
    chap_file: Path | None,
    security: str | None,
    master_key: Path | None,
    uid: int | None,
    uid_base: int | None,
    workers: int | None,
    slots: int | None,
    pool: tuple[str, ...],
    package_sets: Path | None,
    isolation: str,
    cpu_share: int | None,
    reuse: str | None,
    allow_bytecode: bool,
    queue_per_principal: int | None,
    no_sandboxes: bool,
    durability: str,
    head_size: int | None,
    head_policy: str,
    head_high_water: int,
    head_low_water: int,
    head_rate: int,
    on_ssd_loss: str,
    io: str,
    checksums: str,
    verify: str,
    scrub_rate: int,
    scrub_days: int,
    script_turn: int,
    osc_compat: bool,
    module: Path | None,
    module_option: tuple[str, ...],
    no_manager: bool,
) -> TargetConfig:
    """What the options of `osd target serve`, files and defaults among them, come to."""
    settings = read_config(config_file, pool_flags(pool, slots, reuse), package_sets)
    options = [f"durability={durability}", f"on_ssd_loss={on_ssd_loss}", f"io={io}"]
    options += [f"heads={head_policy}", f"head_high={head_high_water}"]
    options += [f"head_low={head_low_water}", f"head_rate={head_rate}"]
    options += [f"checksums={checksums}", f"verify={verify}"]
    options += [f"scrub_rate={scrub_rate}", f"scrub_days={scrub_days}"]
    options += [f"script_turn={script_turn}", *module_option]
    if head_size is not None:
        options.append(f"head_size={head_size}")
    if head_low_water > head_high_water:
        raise click.UsageError("--head-low-water must not be above --head-high-water")
    if allow_bytecode:
        options.append("allow_bytecode=1")
    if queue_per_principal is not None:
        options.append(f"queue_principal={queue_per_principal}")
    if osc_compat:
        options.append("osc_compat=1")
    if workers is not None:
        options.append(f"workers={workers}")
    use_manager = settings.manager["enabled"].value and not no_manager
    root = os.geteuid() == 0
    if uid is not None and uid != os.geteuid() and not root:
        raise click.UsageError("--uid needs root")
    return TargetConfig(
        data=(data or default_data()).resolve(),
        portal=portal,
        name=name,
        ssd=ssd and ssd.resolve(),
        unsafe_portal=unsafe_portal,
        tgtd=tgtd,
        allow=allow,
        chap=read_chap(chap_user, chap_secret_file, chap_file),
        uid=(default_uid() if uid is None else uid) if root else None,
        uid_base=uid_base,
        cpu_share=cpu_share,
        isolation=isolation,
        pools=settings.pools,
        memory_budget=settings.memory_budget,
        sandboxes=not no_sandboxes,
        options=tuple(options),
        module=module,
        security=security,
        master_key=master_key and master_key.resolve(),
        manager=settings.manager if use_manager else None,
    )
