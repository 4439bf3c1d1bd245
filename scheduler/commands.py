# SPDX-License-Identifier: GPL-2.0-or-later
"""The verbs of `osd` that belong to the target's host; joined to the program by entry points."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from scheduler import doctor as layers
from scheduler import logs, paths
from scheduler.chap import Accounts, SecretError, checked, read_accounts, read_secret
from scheduler.config import DEFAULT_FILE, HEADS_KEYS, METHODS, TARGET_KEYS, Config, flag_of, load
from scheduler.output import print_lines
from scheduler.param_type import Duration, ParamType
from scheduler.pools import DEFAULT, parse_flag
from scheduler.reload import Source
from scheduler.schema import SIZES, ConfigError, measure, split_portal
from scheduler.service import ServiceFailed
from scheduler.supervise import DEFAULT_NAME, LEVELS, Refused, TargetConfig
from scheduler.supervise import serve as run_target
from scheduler.users import OLD_UID, TARGET_USER, target_uid, uid_of

__all__ = ["doctor", "serve"]

EXIT_FAILED = 1
EXIT_CONFIG = 78


class Portal(ParamType[tuple[str, int]]):
    """ADDRESS:PORT, the port optional."""

    name = "ADDRESS[:PORT]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Split at the last colon that is not inside brackets."""
        if isinstance(value, tuple):
            return value
        try:
            return split_portal(str(value), 3260)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class ModuleOption(ParamType[str]):
    """KEY=VALUE for the module."""

    name = "KEY=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse what would not survive tgtd's own option string."""
        text = str(value)
        if "=" not in text or "," in text or ";" in text:
            self.fail("must be KEY=VALUE without comma or semicolon", param, ctx)
        return text


class Size(ParamType[int]):
    """Bytes, with a unit or without."""

    name = "SIZE"

    def __init__(self, least: str) -> None:
        """Take what is from least to 1TiB."""
        self.least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Bytes."""
        found, least = measure(value, SIZES), measure(self.least, SIZES)
        if found is None or least is None or not least <= found <= SIZES["TiB"]:
            self.fail(f"must be a size like 2MiB, {self.least} to 1TiB", param, ctx)
        return int(found)


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


def take_defaults(ctx: click.Context, param: click.Parameter, value: Path | None) -> Path | None:
    """What the file says of the target is what flags say that are not given."""
    ctx.default_map = {**(ctx.default_map or {}), **read_config(value).flags}
    return value


def read_config(path: Path | None, *others: Any) -> Config:
    """The configuration, or an end with 78 and what is wrong with it."""
    try:
        return load(path, *others)
    except ConfigError as error:
        click.echo(f"osd: {error}", err=True)
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


def source_of(ctx: click.Context, options: dict[str, Any]) -> Source:
    """Where the configuration of `serve` comes from."""
    flags = tuple(pool_flags(options["pool"], options["slots"], options["reuse"]))
    file, sets = options["config_file"], options["package_sets"]
    return Source(file, flags, sets, flags_given(ctx), standards())


def standards() -> dict[str, Any]:
    """What is served with where neither flags nor files say anything."""
    return {str(param.name): param.default for param in serve.params}


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


def administrators(credential: str | None, wanted: bool) -> str:
    """Whose commands a target obeys, for the person who serves it."""
    if credential:
        return f"its administrator is this user, by the credential {credential}"
    if wanted:
        return "its keys are a security manager's: clients get credentials there"
    return "it gives its user no credential (--security nosec)"


@click.command()
@click.option(
    "--config",
    "config_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    is_eager=True,
    callback=take_defaults,
    help=f"Configuration; flags win.  [default: {DEFAULT_FILE}, if there]",
)
@click.option(
    "--data", type=click.Path(path_type=Path), help="Folder of the store; made if absent."
)
@click.option("--ssd", type=click.Path(path_type=Path), help="Folder on an SSD for objects' heads.")
@click.option(
    "--portal",
    type=Portal(),
    default="127.0.0.1:3260",
    show_default=True,
    help="Where initiators log in.",
)
@click.option(
    "--unsafe-portal", is_flag=True, help="Allow a portal that is not loopback on a stock tgtd."
)
@click.option(
    "--tgtd",
    metavar="PATH|stock|hardened",
    envvar="IOSD_TGTD",
    help="The iSCSI daemon: the distribution's, or that of 'make tgtd' (docs/hardened-tgtd.md)."
    "  [default: hardened, if built]",
)
@click.option("--allow", multiple=True, metavar="ADDRESS", help="Initiators that may log in.")
@click.option(
    "--name",
    metavar="NAME",
    default=DEFAULT_NAME,
    show_default=True,
    help="iSCSI name of the target.",
)
@click.option(
    "--chap-user",
    metavar="NAME",
    help="Ask initiators for CHAP; secret: IOSD_CHAP_SECRET or the file.",
)
@click.option(
    "--chap-secret-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The secret of --chap-user; its owner's alone.",
)
@click.option(
    "--chap-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="CHAP accounts, also the target's own; TOML, its owner's alone.",
)
@click.option(
    "--security",
    type=click.Choice(METHODS),
    help="Least security method of a store that is made or formatted now; nosec: every user of this host "
    "is an administrator (docs/security.md).  [default: capkey on loopback, else cmdrsp]",
)
@click.option(
    "--master-key",
    type=click.Path(path_type=Path),
    help="Where a new store's master key is kept, out of tgtd's reach.  [default: DATA.master-key]",
)
@click.option(
    "--uid",
    type=click.IntRange(0),
    metavar="N",
    help="User of tgtd.  [default, as root: the owner of DATA, or one of its own for a new store]",
)
@click.option(
    "--uid-base",
    type=click.IntRange(1, 2**31 - 2049),
    metavar="N",
    help="Sandboxes run as the user ids that follow N, which nobody else of this host may have."
    "  [default: 2130706432]",
)
@click.option(
    "--workers", type=click.IntRange(1, 64), metavar="N", help="Threads that run commands."
)
@click.option(
    "--slots", type=click.IntRange(1, 64), metavar="N", help="Jobs at a time in pool default."
)
@click.option(
    "--pool",
    multiple=True,
    metavar="NAME[:KEY=VALUE,...]",
    help="A pool of sandboxes, beside those of the file (docs/pools.md).",
)
@click.option("--package-sets", type=click.Path(path_type=Path), help="Folder of package sets.")
@click.option(
    "--isolation",
    type=click.Choice([*LEVELS, "best"]),
    default="full",
    show_default=True,
    help="Of scripts, at least; best: what this host can give (docs/security.md).",
)
@click.option(
    "--cpu-share",
    type=click.IntRange(0, 90),
    metavar="PERCENT",
    help="Least share of a processor for all scripts together beside four other programs that compute "
    "there; 0: only what nobody else uses (docs/serving.md).  [default: 5]",
)
@click.option(
    "--reuse",
    type=click.Choice(["never", "verified", "trusted"]),
    help="Whether a used sandbox of pool default takes another job of the same principal: not; if CHAP "
    "has proved its name; always.  Faster, and no boundary (docs/security.md).  [default: never]",
)
@click.option(
    "--allow-bytecode",
    is_flag=True,
    help="Take jobs that are .pyc files: as trusted as native code (docs/security.md).",
)
@click.option(
    "--queue-per-principal",
    type=click.IntRange(1, 10_000),
    metavar="N",
    help="Jobs one principal may have in the queue; the longest array, too.  [default: 1000]",
)
@click.option("--no-sandboxes", is_flag=True, help="Storage only: no script runs.")
@click.option("--no-manager", is_flag=True, help="Sizes of pools and workers stay as configured.")
@click.option(
    "--durability",
    type=click.Choice(["process", "sync"]),
    default="process",
    show_default=True,
    help="What an acknowledged change survives: kill -9, or power loss too.",
)
@click.option(
    "--io",
    type=click.Choice(["cached", "direct"]),
    default="cached",
    show_default=True,
    help="Of objects' bytes: by the page cache, or past it (docs/tiers.md).",
)
@click.option(
    "--checksums",
    type=click.Choice(["as-stored", "on", "off"]),
    default="as-stored",
    show_default=True,
    help="Of every 4 KiB of data: as the store has it (a new one: off), on, or off (docs/reliability.md).",
)
@click.option(
    "--verify",
    type=click.Choice(["scrub", "always"]),
    default="scrub",
    show_default=True,
    help="Compare data with its checksums in the scrub, or with every READ too.",
)
@click.option(
    "--scrub-rate",
    type=Size("64KiB"),
    default="64MiB",
    show_default=True,
    help="Bytes a second that the scrub reads at most.",
)
@click.option(
    "--scrub-days",
    type=click.IntRange(0, 3650),
    metavar="N",
    default=30,
    show_default=True,
    help="Days from the end of a scrub to the next; 0: only when told to.",
)
@click.option(
    "--head-size",
    type=Size("0"),
    help="Bytes of new objects on the SSD, 0 allowed.  [default: as formatted; 2MiB]",
)
@click.option(
    "--head-policy",
    type=click.Choice(["first", "small-only", "off"]),
    default="first",
    show_default=True,
    help="Which objects begin on the SSD: all; those up to the head size; no new ones.",
)
@click.option(
    "--head-high-water",
    type=click.IntRange(1, 99),
    metavar="N",
    default=95,
    show_default=True,
    help="Per cent of the SSD: above it new heads go to --data.",
)
@click.option(
    "--head-low-water",
    type=click.IntRange(1, 99),
    metavar="N",
    default=90,
    show_default=True,
    help="Per cent of the SSD: below it heads are brought back.",
)
@click.option(
    "--head-rate",
    type=Size("64KiB"),
    default="64MiB",
    show_default=True,
    help="Bytes a second that are moved between SSD and --data at most.",
)
@click.option(
    "--on-ssd-loss",
    type=click.Choice(["fail", "read-through"]),
    default="fail",
    show_default=True,
    help="Without the SSD folder: do not start, or serve what lies elsewhere (docs/tiers.md).",
)
@click.option(
    "--script-turn",
    type=Duration(0, 0.01),
    default=1000,
    help="While commands come a script keeps a processor so long; 0s: as the kernel likes.  [default: 1ms]",
)
@click.option(
    "--osc-compat",
    is_flag=True,
    help="Speak OSC's dialect where it contradicts OSD-2 (docs/commands.md).",
)
@click.option(
    "--log-format",
    type=click.Choice(logs.FORMATS),
    envvar="IOSD_LOG_FORMAT",
    help="Of the log on stderr: lines, or a JSON object each (docs/logs.md).  [default: text]",
)
@click.option(
    "--log-level",
    type=click.Choice(logs.LEVELS),
    envvar="IOSD_LOG_LEVEL",
    help="Least level that is logged.  At info 20 jobs a second are logged one by one, at debug all.  "
    "[info; warning where stderr is a terminal]",
)
@click.option("--module", type=click.Path(exists=True, dir_okay=False, path_type=Path), hidden=True)
@click.option("--module-option", multiple=True, type=ModuleOption(), hidden=True)
@click.option(
    "--ready-fd",
    type=click.IntRange(1),
    metavar="N",
    help="Write the JSON lines to this descriptor.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    help="How it is printed.  [text]",
)
def serve(
    *,
    log_format: str | None,
    log_level: str | None,
    ready_fd: int | None,
    output: str,
    **options: Any,
) -> None:
    """Serve a target in the foreground, restarting what dies.

    Runs tgtd, the hardened one if it is built, with the module bs_iosd.so, iosd-sandboxd for its scripts,
    and the resource manager by which workers and pools follow the load.

    Ends cleanly on SIGTERM and SIGINT, or with its terminal, and leaves no process behind.  On SIGHUP it
    reads the configuration again, as 'osd config reload' has it do.
    """
    if log_level is None and log_format != "json" and sys.stderr.isatty():
        log_level = "warning"  # a person at the terminal wants to read what follows the URL
    logs.configure(log_format, log_level)
    source = source_of(click.get_current_context(), options)
    config = target_config(**options)
    if config.uid is not None and options["uid"] is None:  # as root
        own = target_uid(config.data)
        config = config if own is None else replace(config, uid=own)

    def announce(line: dict[str, Any]) -> None:
        text = json.dumps(line)
        if ready_fd is not None:
            with contextlib.suppress(BrokenPipeError):
                os.write(ready_fd, f"{text}\n".encode())
        if output == "json":
            logs.echo(text)
        elif line["event"] == "ready":
            logs.echo(line["url"])
            logs.echo(
                f"serving {line['data']}, isolation {line['isolation'] or 'none, storage only'}, "
                f"{line['tgtd']['kind']} tgtd {line['tgtd']['version']}\n"
                f"{administrators(line['credential'], config.local_credential)}\n"
                f"try: export IOSD_TARGET={line['url']}\n"
                "     osd target ping",
                err=True,
            )

    try:
        run_target(config, announce, source)
    except Refused as error:
        click.echo(f"osd: {error}", err=True)
        sys.exit(EXIT_CONFIG)
    except (ServiceFailed, paths.MissingComponent) as error:
        click.echo(f"osd: {error}", err=True)
        sys.exit(EXIT_FAILED)


@click.command()
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json"]),
    default="table",
    help="How it is printed.  [table]",
)
def doctor(output: str) -> None:
    """Look at what a target needs here; exit 1 if it lacks."""
    findings = list(layers.examine())
    ok = all(finding.state != "fail" for finding in findings)
    if output == "json":
        rows = [vars(finding) for finding in findings]
        click.echo(json.dumps({"schema": "iosd.doctor/1", "ok": ok, "layers": rows}))
    else:
        width = max(len(finding.layer) for finding in findings)
        print_lines(
            line
            for each in findings
            for line in (
                f"{each.state:<5} {each.layer:<{width}} {each.detail}",
                *([f"{'':<{width + 7}}{each.hint}"] if each.hint else []),
            )
        )
    if not ok:
        sys.exit(EXIT_FAILED)
