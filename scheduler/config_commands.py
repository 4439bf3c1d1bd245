# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd config check`, `osd config show` and `osd pool build`: what an administrator prepares."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from scheduler.commands import EXIT_CONFIG, EXIT_FAILED, read_config, serve
from scheduler.config import (
    DEFAULT_FILE,
    MANAGER_KEYS,
    MANAGER_TABLES,
    OWN_KEYS,
    TARGET_KEYS,
    Config,
)
from scheduler.packages import DEFAULT_SETS, PackagesError, PackageSet
from scheduler.packages import build as build_set
from scheduler.pools import POOL_KEYS, TABLES, Pool
from scheduler.schema import Key, Setting

__all__ = ["build", "check", "show"]

PATH = click.Path(exists=True, dir_okay=False, path_type=Path)
KEYS = {f"target.{key.name}": key for key in (*TARGET_KEYS, *OWN_KEYS)}
KEYS |= {f"manager.{key.name}": key for key in MANAGER_KEYS}
KEYS |= {f"manager.{part}.{key.name}": key for part, keys in MANAGER_TABLES.items() for key in keys}
KEYS |= {key.name: key for key in POOL_KEYS}
KEYS |= {f"{part}.{key.name}": key for part, keys in TABLES.items() for key in keys}


def settings_of(config: Config) -> Iterator[tuple[str, Setting]]:
    """Every setting by its full name; what the files say nothing of as `osd target serve` has it."""
    flags = {param.name: param.default for param in serve.params}
    for name, setting in config.target.items():
        standard = flags.get(name)
        known = setting.value is not None or not isinstance(standard, str | int)
        yield f"target.{name}", setting if known else Setting(standard, "default")
    for name, setting in config.manager.items():
        yield f"manager.{name}", setting
    for pool in config.pools:
        for name, setting in pool.settings.items():
            yield f"pools.{pool.name}.{name}", setting


def key_of(name: str) -> Key:
    """The row of a setting; a pool's name may hold dots."""
    if not name.startswith("pools."):
        return KEYS[name]
    words = name.split(".")
    inner = ".".join(words[-2:])
    return KEYS[inner if inner in KEYS else words[-1]]


def written(name: str, value: Any) -> str:
    """A value as it would stand in a file."""
    return json.dumps(key_of(name).show(value), ensure_ascii=False)


@click.command()
@click.option("--config", "path", type=PATH, help=f"[{DEFAULT_FILE}, if it is there]")
@click.option("--origin", is_flag=True, help="Say where each value comes from.")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text")
def show(path: Path | None, origin: bool, output: str) -> None:
    """Show what a target would be served with: files and defaults."""
    found = [
        (name, each) for name, each in settings_of(read_config(path)) if each.value is not None
    ]
    if output == "json":
        rows = [
            {"key": name, "value": key_of(name).show(each.value), "origin": each.origin}
            for name, each in found
        ]
        click.echo(json.dumps({"schema": "iosd.config/1", "settings": rows}))
        return
    lines = [(f"{name} = {written(name, each.value)}", each.origin) for name, each in found]
    width = max(len(line) for line, _ in lines)
    for line, where in lines:
        click.echo(f"{line:<{width}}  # {where}" if origin else line)


def summary(pool: Pool) -> str:
    """A pool in a line."""
    memory = KEYS["maximum.mem"].show(pool["maximum.mem"] or pool["limits.mem"])
    words = f"pool {pool.name}: {pool['max']} slots, {memory} a job"
    if pool.package_set is not None:
        words += f", package set {pool.package_set.id}"
    return words


@click.command()
@click.argument("path", metavar="[FILE]", type=PATH, required=False)
def check(path: Path | None) -> None:
    """Say what serving with FILE would do; 78: it would be refused, or a pool would not serve."""
    config = read_config(path)
    for pool in config.pools:
        click.echo(summary(pool))
    if config.memory_budget is not None:
        needed = sum(pool["max"] * pool["maximum.mem"] for pool in config.pools)
        budget = KEYS["target.memory_budget"].show(config.memory_budget)
        click.echo(f"memory: {KEYS['target.memory_budget'].show(needed)} of {budget}")
    missing = [pool for pool in config.pools if pool.missing]
    for pool in missing:
        click.echo(f"osd: pool {pool.name} would not serve: {pool.missing}", err=True)
    sys.exit(EXIT_CONFIG if missing else 0)


def describe(found: PackageSet) -> Iterator[str]:
    """What was built, and what to write into the configuration."""
    manifest = found.manifest()
    versions = ", ".join(f"{name} {version}" for name, version in manifest["distributions"].items())
    yield f"{found.id}: {versions}"
    yield f"preloads {', '.join(manifest['preload']) or 'nothing'}; {len(manifest['files'])} files"
    name = manifest["name"]
    yield f'to serve it: [pools.{name}] packages = "{name}", and start the target again'


@click.command()
@click.argument("name")
@click.argument("packages", nargs=-1)
@click.option("-r", "--from", "files", multiple=True, type=PATH, help="A file of requirements.")
@click.option(
    "--wheels",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Take wheels from this folder, and nothing from the network.",
)
@click.option(
    "--preload", multiple=True, metavar="MODULE", help="Instead of the PACKAGES' modules."
)
@click.option(
    "--package-sets",
    type=click.Path(path_type=Path),
    default=DEFAULT_SETS,
    show_default=True,
    help="Folder of package sets.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print the id alone.")
def build(
    name: str,
    packages: tuple[str, ...],
    files: tuple[Path, ...],
    wheels: Path | None,
    preload: tuple[str, ...],
    package_sets: Path,
    quiet: bool,
) -> None:
    """Make a package set with pip, for pools that say packages = "NAME".

    Installs wheels of PACKAGES (as pip names them) for this Python into a folder of its own,
    byte-compiles them and writes a manifest with every file's hash.  Nothing of a package is run.
    Older sets of the name stay; pools take the newest when the target starts.
    """
    try:
        found = build_set(
            name, packages, sets=package_sets, files=files, wheels=wheels, preload=preload
        )
    except PackagesError as error:
        click.echo(f"osd: {error}", err=True)
        sys.exit(EXIT_FAILED)
    click.echo(found.id)
    if not quiet:
        for line in describe(found):
            click.echo(line, err=True)
