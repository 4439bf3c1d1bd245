# SPDX-License-Identifier: GPL-2.0-or-later
"""The options of `osd exec`: on the command line and in the script, by name and type, and the request that
they make."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import click

from pyosd.cli.frame.params import DURATION, SIZE
from pyosd.cli.frame.verb import Verb
from pyosd.cli.jobs.script import RIGHTS, embedded_options, read_script
from pyosd.jobs.source import BYTECODE_SUFFIX, code_name, pack
from pyosd.types import ObjectRef, ref
from pyosd.wire.exec_params import After, HomeCost, Limits, parse_duration
from pyosd.wire.indices import Ranges, indices_in, ranges_of, text_of

__all__ = ["LIMITS", "REUSE", "WAIT", "Exec", "ExecOptions", "describe", "limit_options"]

Function = TypeVar("Function", bound=Callable[..., Any])

LIMITS = {
    "limit_wall": click.option(
        "--limit-wall", type=DURATION, help="Limit the time from start to end: 90s, 1h30m."
    ),
    "limit_cpu": click.option(
        "--limit-cpu", type=DURATION, help="Limit the processor time: 90s, 1h30m."
    ),
    "limit_mem": click.option(
        "--limit-mem", type=SIZE, help="Limit the memory: 256MiB.  Files may take a quarter of it."
    ),
    "limit_procs": click.option(
        "--limit-procs",
        type=click.IntRange(1),
        metavar="N",
        help="Limit the number of threads, including the first.",
    ),
    "limit_output": click.option(
        "--limit-output", type=SIZE, help="Limit the bytes that the code may print: 1MiB."
    ),
    "limit_io": click.option(
        "--limit-io",
        type=SIZE,
        help="Limit the bytes of objects that the code reads and writes: 1GiB.",
    ),
}
"""The options of limits by the names of their parameters."""
WAIT = "--wait"
REUSE = "--reuse-result"
OURS = {
    "raw": "--raw",
    "modules": "--with",
    "targets_file": "--targets",
    "where": "--where",
    "local": "--local",
    "target": "--target",
    "credentials": "--credentials",
    "profile": "--profile",
}
"""Options for the command line alone.  The script may be another's: it does not choose files of ours,
what reaches a terminal, or that it runs here, where it has our rights."""
FOR_EVER = "inf"  # seconds; float() reads it


def limit_options(*names: str) -> Callable[[Function], Function]:
    """Give a verb these options, in this order."""

    def with_options(function: Function) -> Function:
        for name in reversed(names):
            function = LIMITS[name](function)
        return function

    return with_options


@dataclass(eq=False, repr=False)  # nobody compares them, and each method takes time to make
class ExecOptions:
    """The options of `osd exec`; None: the option was not given.

    wait: seconds; infinity: until the end.  begin: milliseconds since 1970.  compress: None: if smaller.
    """

    script: str
    args: tuple[str, ...]
    zone: ObjectRef
    partition: ObjectRef | None
    name: str
    tags: tuple[tuple[str, str], ...]
    priority: int | None
    hold: bool
    begin: int | None
    reuse_result: float | None
    after: tuple[After, ...]
    array: tuple[Ranges, int] | None
    over: tuple[str, ...]
    batch: int
    key: str | None
    retries: int | None
    retry_on: dict[str, int] | None
    idempotent: bool
    expire: float | None
    grace: float | None
    pool: str
    rights: str
    limit_wall: float | None
    limit_cpu: float | None
    limit_mem: int | None
    limit_procs: int | None
    limit_output: int | None
    limit_io: int | None
    modules: tuple[str, ...]
    check: bool
    compress: bool | None
    wait: float | None
    no_wait: bool
    follow: bool
    where: str | None
    pure: bool
    local: bool
    targets_file: str | None
    dry_run: bool
    style: str
    raw: bool

    @property
    def script_name(self) -> str:
        """The script's file name, as messages and the job have it."""
        return "stdin" if self.script == "-" else code_name(Path(self.script))

    @property
    def is_bytecode(self) -> bool:
        """Whether the script is a .pyc file."""
        return self.script.endswith(BYTECODE_SUFFIX)

    @property
    def suffix(self) -> str:
        """The end of the script's file name as Python wants it."""
        return BYTECODE_SUFFIX if self.is_bytecode else ".py"

    @property
    def patience(self) -> float | None:
        """Seconds to wait for the end; None: for ever."""
        return None if self.wait == inf else self.wait

    @property
    def place(self) -> str:
        """The place where the script runs: near, local, or auto, which waits for its end."""
        if self.local:
            return "local"
        return self.where or ("auto" if self.pure and self.waits else "near")

    @property
    def waits(self) -> bool:
        """Wait if an option asks for it, or by default if stdout is a terminal."""
        if self.no_wait:
            return False
        return self.wait is not None or self.follow or sys.stdout.isatty() or self.where == "auto"

    @property
    def limits(self) -> Limits:
        """The limits of the job."""
        return Limits(
            wall=self.limit_wall,
            cpu=self.limit_cpu,
            mem=self.limit_mem,
            procs=self.limit_procs,
            output=self.limit_output,
            io=self.limit_io,
        )

    @property
    def limits_given(self) -> list[str]:
        """The flags of the limits that were given."""
        return [f"--{each.replace('_', '-')}" for each in LIMITS if getattr(self, each) is not None]

    @property
    def start_given(self) -> list[str]:
        """The flags that were given of those by which a job starts later."""
        given = {"--hold": self.hold, "--begin": self.begin, "--after": self.after}
        return [flag for flag, value in given.items() if value]

    def request(self) -> dict[str, Any]:
        """The arguments of Target.exec()."""
        return {
            "zone": self.zone,
            "args": list(self.args),
            "limits": self.limits,
            "name": self.name or self.script_name,
            "tags": dict(self.tags),
            "priority": self.priority,
            "hold": self.hold,
            "begin": self.begin and self.begin / 1000,
            "reuse": False if self.reuse_result is None else self.reuse_result,
            "after": self.after,
            "key": self.key,
            "idempotent": self.idempotent,
            "retries": self.retries,
            **(self.retry_on or {}),
            "expire": self.expire,
            "grace": self.grace,
            "pool": self.pool,
            "rights": RIGHTS[self.rights],
            "compress": self.compress,
            "bytecode": self.is_bytecode,
            "surrogate": None if self.partition is None else ref(self.partition.partition_id),
            "home": HomeCost() if self.pure else None,
            "array": self.array and indices_in(self.array[0]),
            "at_once": self.array[1] if self.array else 0,
        }


def describe(request: dict[str, Any], code: bytes) -> dict[str, Any]:
    """The output of a dry run."""
    import hashlib

    sent, packing = pack(code, request["compress"])
    limits = {key: value for key, value in vars(request["limits"]).items() if value is not None}
    return {
        "schema": "iosd.request/1",
        "script_bytes": len(code),
        "script_sha256": hashlib.sha256(code).hexdigest(),
        "sent_bytes": len(sent),
        "sent_sha256": hashlib.sha256(sent).hexdigest(),
        **request,
        "compress": "zlib" if packing else None,
        "zone": str(request["zone"]),
        "rights": request["rights"].name or "",
        "home": request["home"] and request["home"]._asdict(),
        "surrogate": request["surrogate"] and str(request["surrogate"]),
        "after": [str(each) for each in request["after"]],
        "limits": limits,
        "array": request["array"] and [request["array"][0], request["array"][-1]],
        "indices": request["array"] and text_of(ranges_of(request["array"])),
    }


class Exec(Verb):
    """Takes the script's own #OSD options before those of the command line, which win.

    waits: whether `osd run` or `osd submit` decides that; None: the options do.
    """

    waits: bool | None = None
    sections = MappingProxyType(
        {
            "Input": ("zone", "modules", "check", "compress", "rights", "pure"),
            "Place": ("where", "local", "targets_file"),
            "Job": ("name", "tags", "partition", "pool", "priority", "key", "expire"),
            "Start": ("hold", "begin", "after", "reuse_result"),
            "Limits": (*LIMITS, "grace"),
            "Arrays": ("array", "over", "batch"),
            "Retry": ("retries", "retry_on", "idempotent"),
            "Waiting and result": (
                "wait",
                "no_wait",
                "follow",
                "style",
                "raw",
                "output",
                "dry_run",
            ),
        }
    )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse once to find the script, and again with the options it carries."""
        args = [*bare_wait(args)]
        if ctx.resilient_parsing:  # a shell completes a word: the script may be missing yet
            return super().parse_args(ctx, args)
        look = click.Context(self, parent=ctx.parent, info_name=ctx.info_name)
        super().parse_args(look, [*args])
        self.check_waiting(ctx, look)
        words = []
        for number, each in embedded_options(read_script(ctx, look.params["script"])):
            self.check_line(ctx, number, bare_wait(each))
            words += bare_wait(each)
        rest = super().parse_args(ctx, [*words, *args])
        if ctx.params["pure"] and not (look.params["pure"] or ctx.params["local"]):
            ctx.params["where"] = ctx.params["where"] or "near"  # its lines do not bring it here
        if self.waits is not None:
            ctx.params["no_wait"] = not self.waits
        if self.waits and ctx.params["wait"] is None:
            ctx.params["wait"] = inf
        return rest

    def check_waiting(self, ctx: click.Context, look: click.Context) -> None:
        """Refuse options that contradict the verb.  Raises: UsageError."""
        if self.waits is False and look.params["where"] == "auto":
            raise click.UsageError(
                "'osd submit' does not wait; for --where auto use 'osd run'", ctx
            )
        if self.waits is True and look.params["no_wait"]:
            raise click.UsageError("'osd run' waits; to return at once use 'osd submit'", ctx)
        if self.waits is False and (look.params["wait"] is not None or look.params["follow"]):
            raise click.UsageError("'osd submit' does not wait; to wait use 'osd run'", ctx)

    def check_line(self, ctx: click.Context, number: int, words: list[str]) -> None:
        """Each line must make sense by itself.  Raises: UsageError: which does not."""
        look = click.Context(self, parent=ctx.parent, info_name=ctx.info_name)
        try:
            super().parse_args(look, [*words, "--", "SCRIPT"])
        except click.UsageError as error:
            raise click.UsageError(
                f"line {number} of the script: {error.format_message()}", ctx
            ) from None
        for name, flag in OURS.items():
            if look.params.get(name):
                raise click.UsageError(
                    f"line {number} of the script: {flag} is for the command line alone", ctx
                )
        if look.params["args"]:
            raise click.UsageError(
                f"line {number} of the script: '{look.params['script']}' is no option", ctx
            )


def bare_wait(args: list[str]) -> list[str]:
    """`--wait` and `--reuse-result` take the next word only if that is a duration, so that they never
    take the script.

    Raises: UsageError: a number without a unit follows, which may be an argument of the script.
    """
    end = args.index("--") if "--" in args else len(args)
    given: list[str] = []
    words = iter(args[:end])
    for word in words:
        if word not in (WAIT, REUSE):
            given.append(word)
            continue
        following = next(words, None)
        if following is not None and is_number(following):
            raise click.UsageError(
                f"{word} {following}: write {word}={following} for seconds, or {word} -- {following} if it "
                "is the script or an argument of it"
            )
        if following is not None and is_duration(following):
            given.append(f"{word}={following}")
            continue
        if following is not None and following[:1].isdigit() and not Path(following).exists():
            raise click.UsageError(
                f"{word} {following}: not a duration, such as 30s, 5min or 1h30m; write {word} -- "
                f"{following} if it is the script or an argument of it"
            )
        given.append(f"{word}={FOR_EVER}")
        if following is not None:
            given += bare_wait([following, *words])
    return given + args[end:]


def is_number(word: str) -> bool:
    """Whether it is a decimal number without a unit."""
    return word.replace(".", "", 1).isdecimal()


def is_duration(word: str) -> bool:
    """Whether parse_duration() reads it."""
    try:
        parse_duration(word)
    except ValueError:
        return False
    return True
