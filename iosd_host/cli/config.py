# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd config check`, `show` and `reload`, `osd pool build`: the configuration, and package sets."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any

import click

from iosd_host.cli.host_verb import HostVerb, Settings
from iosd_host.cli.units import configured
from iosd_host.cli.verb import Admin, AdminChange, target_name, when
from iosd_host.common import places
from iosd_host.common.exit_codes import (
    EXIT_CONFIG,
)
from iosd_host.common.paths import MissingComponent
from iosd_host.config.differences import compare, lines_of
from iosd_host.config.files import DEFAULT_FILE, in_force, key_of, load
from iosd_host.config.packages import DEFAULT_SETS, PackageSet
from iosd_host.config.packages import build as build_set
from iosd_host.config.pools import Pool
from iosd_host.config.schema import ConfigError, Setting
from iosd_host.config.source import Source
from iosd_host.control.supervisor import ask_supervisor
from iosd_host.manager.client import ManagerError, user_name
from iosd_host.serve.preconditions import CannotServe, check_folders, check_portal
from iosd_host.serve.signers import signers_text
from iosd_host.serve.tgtd import find_tgtd
from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.params import InputPath
from pyosd.cli.frame.verb import Failure
from pyosd.cli.output.tables import print_lines
from pyosd.cli.output.terminal import output_option

__all__ = ["build", "check", "reload", "show"]

PATH = InputPath(dir_okay=False, path_type=Path)


class Several(Exception):
    """More than one target is served here; the text lists them."""


def served(name: str | None) -> dict[str, Any] | None:
    """The configuration that a supervisor of this host reports; None: no supervisor serves it.

    Args: name: iSCSI name or URL of the target; None: the only one.

    Raises:
        Several: and no name says which.
    """
    found = [
        each
        for each in places.running(places.TARGET)
        if name in (None, each["url"]) or target_name(name) == each["name"]
    ]
    exact = [each for each in found if each["url"] == name] or found
    if len(exact) > 1:
        urls = "\n  ".join(each["url"] for each in exact)
        raise Several(f"more than one target is served here; say which, --target URL:\n  {urls}")
    return exact[0] if exact else None


def served_with(path: Path | None, settings: Settings) -> dict[str, Any] | None:
    """The target of this host that a reload of a file would change; None: there is none.

    Without --target it is the one that is served with that file, else that of IOSD_TARGET or the profile.

    Raises:
        Several: nothing says which.
    """
    if settings.target is None:
        file = str((path or Path(DEFAULT_FILE)).resolve())
        same = [each for each in places.running(places.TARGET) if each["config"] == file]
        if len(same) == 1:
            return dict(same[0])
    return served(settings.target or os.environ.get("IOSD_TARGET") or settings.profile.target)


def about_a_file(verb: Callable[..., None]) -> Callable[..., None]:
    """FILE, or --config FILE as other verbs have it: `path` of the verb; None: neither is said."""

    @click.argument("file", metavar="[FILE]", type=PATH, required=False)
    @click.option("--config", type=PATH, help="Configuration file; the same as FILE.")
    @wraps(verb)
    def run(*args: Any, file: Path | None, config: Path | None, **options: Any) -> None:
        if file is not None and config is not None:
            raise click.UsageError("say FILE once, with --config or without")
        verb(*args, path=file or config, **options)

    return run


# ---- show ----


def settings_of_file(path: Path | None) -> list[dict[str, Any]]:
    """The configuration that serving with a file would use."""
    found = in_force(load(path))
    return [{"key": key, "value": each.value, "origin": each.origin} for key, each in found.items()]


def settings_now(admin: Admin) -> tuple[list[dict[str, Any]], str]:
    """The settings of a target of this host, and their source; [], "": there is none.

    The manager knows what was set since the start, the supervisor what was configured.
    """
    place = served(admin.target_said)
    try:
        if place is not None:
            admin.manager = admin.manager or place.get("manager")
            admin.target = place["name"]
        with admin.manager_client() as manager:
            rows = manager.ask("config.show", target=admin.target_name)["settings"]
            rows = [row | {"value": as_written(row["key"], row["value"])} for row in rows]
            return rows, f"the resource manager at {manager.access.url}"
    except ManagerError as error:
        if place is None:
            if error.code != "unreachable" or admin.manager:
                raise
            return [], ""
        if place.get("manager"):
            admin.say(f"without what was set while it serves: {error}")
        return place["settings"], f"the supervisor, process {place['pid']}"


def as_written(name: str, value: Any) -> Any:
    """A value, which the manager has as a text, as it would stand in a file."""
    try:
        key = key_of(name)
        shown = key.show(key.convert(value)) if value != "" else []
    except (KeyError, ValueError):  # not of the file: principals, how many slots are to work
        return value
    return [*shown] if isinstance(shown, tuple) else shown


def origin_of(row: dict[str, Any]) -> str:
    """The origin of a value, and its author."""
    if row["origin"] != "live":
        return str(row["origin"])
    why = f": {row['why']}" if row.get("why") else ""
    was = "" if row.get("was") is None else f"; configured {row['was']}"
    return f"live, {row.get('by')}, {when(row.get('when'))}{why}{was}"


class ConfigVerb(AdminChange):
    """A verb that may ask the manager, if there is one."""

    def own_options(self) -> list[click.Parameter]:
        """None but those it declares itself."""
        return []


@click.command(cls=ConfigVerb)
@about_a_file
@click.option("--origin", is_flag=True, help="Show which file, flag or default sets each value.")
@output_option("text", "json")
@click.pass_obj
def show(admin: Admin, path: Path | None, origin: bool) -> None:
    """Show the settings of a target and their origin.

    The command shows the target that is served here. With FILE, or without a target, it shows the
    settings for a future target. --origin adds the values set at run time, with author, time and
    reason.
    """
    try:
        rows, who = ([], "") if path else settings_now(admin)
    except Several as error:
        raise Failure(Exit.USAGE, str(error)) from None
    if not who:
        rows = settings_of_file(path)
    if admin.output == "json":
        admin.show_json("iosd.config/1", {"settings": rows})
        return
    if who:
        admin.say(f"asked {who}")
    lines = [
        (f"{row['key']} = {json.dumps(row['value'], ensure_ascii=False)}", origin_of(row))
        for row in rows
    ]
    width = max(len(line) for line, _ in lines)
    print_lines(f"{line:<{width}}  # {where}" if origin else line for line, where in lines)


# ---- check ----


def summary(pool: Pool) -> str:
    """A pool in a line."""
    memory = key_of(f"pools.{pool.name}.maximum.mem")
    slots = "1 slot" if pool["max"] == 1 else f"{pool['max']} slots"
    words = f"pool {pool.name}: {slots}, "
    words += f"{memory.show(pool['maximum.mem'] or pool['limits.mem'])} a job"
    if pool.package_set is not None:
        words += f", package set {pool.package_set.id}"
    return words


def refusal(path: Path | None) -> str:
    """Why serving with the file would be refused; "": it would not."""
    try:
        config = configured(path)
        with suppress(MissingComponent):  # 'osd doctor' reports it
            check_portal(config, hardened=find_tgtd(config.tgtd).hardened)
        check_folders(config)
        signers_text(config.function_policy, config.function_signers)
    except (CannotServe, ConfigError) as error:
        return str(error)
    except click.ClickException as error:
        return error.format_message()
    return ""


def against_served(path: Path | None, place: dict[str, Any]) -> Iterator[str]:
    """The changes that a reload would make to a target that is served here."""
    source = Source.of(place["config"], place["flags"])
    if path is not None and str(path.resolve()) != place["config"]:
        yield f"{place['url']} is served with {place['config'] or 'no file'}, not with {path};"
    try:
        _, settings = source.read(path)
    except ConfigError as error:  # together with its flags
        raise Failure(
            Exit.CONFIG, f"with the flags of the target that is served here: {error}"
        ) from None
    was = {row["key"]: Setting(row["value"], row["origin"]) for row in place["settings"]}
    lines = [*lines_of(compare(was, settings).fields())]
    yield f"a reload of {place['url']} would change {'this:' if lines else 'nothing'}"
    yield from (f"  {line}" for line in lines)


class CheckVerb(HostVerb):
    """A verb of this host that may be told which of the targets served here it is about."""

    left_out = frozenset({"target", "credentials"})


@click.command(cls=CheckVerb)
@about_a_file
@click.option(
    "--target",
    metavar="URL",
    help="Target to compare with.  [the one served with FILE, else IOSD_TARGET, profile]",
)
@click.pass_obj
def check(settings: Settings, path: Path | None) -> None:
    """Check a configuration and show what a reload would change.

    Without FILE it checks the configuration of this host. Exit 78: the configuration is refused, or
    a pool would not serve.
    """
    config = load(path)
    lines = [summary(pool) for pool in config.pools]
    if config.memory_budget is not None:
        budget = key_of("target.memory_budget")
        needed = sum(pool["max"] * pool["maximum.mem"] for pool in config.pools)
        lines.append(f"memory: {budget.show(needed)} of {budget.show(config.memory_budget)}")
    try:
        place = served_with(path, settings)
    except Several as error:
        place = None
        lines += f"not compared with a target that runs: {error}".splitlines()
    if place is not None:
        lines += against_served(path, place)
    print_lines(lines)
    if why := refusal(path):
        raise Failure(Exit.CONFIG, f"it would not be served: {why}")
    missing = [pool for pool in config.pools if pool.missing]
    for pool in missing:
        click.echo(f"osd: pool {pool.name} would not serve: {pool.missing}", err=True)
    sys.exit(EXIT_CONFIG if missing else 0)


# ---- reload ----


@click.command(cls=AdminChange)
@click.pass_obj
def reload(admin: Admin) -> None:
    """Reload the configuration of a running target.

    The configuration takes effect completely or not at all. If it has an error, the command reports
    it (exit 78) and changes nothing. New pools start. Removed pools end after their last job. Other
    pools get their new values.  Values set at run time (osd pool set) remain.

    In [target] only memory_budget, package_sets, function_signers and function_policy take effect,
    in [manager] only workers and scale. Other differences need a restart and are listed. The list
    of signers is read again, also if its path is the same. A looser policy is refused.
    """
    try:
        place = None if admin.manager else served(admin.target_said)
    except Several as error:
        raise Failure(Exit.USAGE, str(error)) from None
    if place is None:
        with admin.manager_client() as manager:
            result = manager.ask("config.reload", target=admin.target_name, why=admin.why)
    else:
        result = reload_here(place, admin.why)
    if admin.output == "json":
        admin.show_json("iosd.reload/1", result)
        return
    print_lines(
        [*lines_of(result)]
        or ["no value is different; files that the configuration names were read again"]
    )


def reload_here(place: dict[str, Any], why: str) -> dict[str, Any]:
    """Ask the supervisor, or end with what it says."""
    try:
        return ask_supervisor(place["socket"], "reload", by=user_name(), why=why)
    except ConfigError as error:
        raise Failure(Exit.CONFIG, f"{error}; nothing has changed") from None
    except PermissionError as error:
        raise Failure(Exit.NOT_PERMITTED, f"{error}: ask its manager, --manager") from None
    except OSError as error:
        raise Failure(Exit.UNREACHABLE, f"the supervisor of {place['url']}: {error}") from None


# ---- package sets ----


def describe(found: PackageSet) -> Iterator[str]:
    """The result of the build, and the lines for the configuration."""
    manifest = found.manifest()
    versions = ", ".join(f"{name} {version}" for name, version in manifest["distributions"].items())
    yield f"{found.id}: {versions}"
    yield f"preloads {', '.join(manifest['preload']) or 'nothing'}; {len(manifest['files'])} files"
    name = manifest["name"]
    yield f'to serve it: [pools.{name}] packages = "{name}", then "osd config reload"'


@click.command(cls=HostVerb)
@click.argument("name")
@click.argument("packages", nargs=-1)
@click.option(
    "-r",
    "--from",
    "files",
    multiple=True,
    type=PATH,
    help="Read packages from a requirements file.  May be given more than once.",
)
@click.option(
    "--wheels",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Take wheels from this folder only; do not use the network.",
)
@click.option(
    "--preload",
    multiple=True,
    metavar="MODULE",
    help="Module to import before a script starts.  [the modules of PACKAGES]",
)
@click.option(
    "--package-sets",
    type=click.Path(path_type=Path),
    default=DEFAULT_SETS,
    show_default=True,
    help="Folder that holds the package sets.",
)
@click.pass_obj
def build(
    settings: Settings,
    name: str,
    packages: tuple[str, ...],
    files: tuple[Path, ...],
    wheels: Path | None,
    preload: tuple[str, ...],
    package_sets: Path,
) -> None:
    """Build the package set NAME with pip, for pools that use it.

    The command installs wheels of PACKAGES (pip's names) for this Python into a new folder,
    byte-compiles them, and writes a manifest with the hash of every file. It runs no code of a
    package. Older sets of the same name remain. Pools use the newest when the target starts and at
    each reload.
    """
    found = build_set(
        name, packages, sets=package_sets, files=files, wheels=wheels, preload=preload
    )
    click.echo(found.id)
    for line in describe(found):
        settings.say(line)
