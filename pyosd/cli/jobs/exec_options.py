# SPDX-License-Identifier: GPL-2.0-or-later
"""The options of `osd exec` by name and type, and the request that they make."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from pyosd.cli.jobs.script import RIGHTS
from pyosd.jobs.source import BYTECODE_SUFFIX, pack
from pyosd.types import ObjectRef, ref
from pyosd.wire.exec_params import After, Limits
from pyosd.wire.indices import Ranges, indices_in, ranges_of, text_of

__all__ = ["LIMITS", "ExecOptions", "describe"]

LIMITS = ("limit_wall", "limit_cpu", "limit_mem", "limit_procs", "limit_output", "limit_io")


@dataclass(frozen=True)
class ExecOptions:
    """What was given to `osd exec`; None: the option was not given.

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
    after: tuple[After, ...]
    array: tuple[Ranges, int] | None
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
    local: bool
    dry_run: bool
    style: str
    raw: bool

    @property
    def script_name(self) -> str:
        """The script's file name, as messages and the job have it."""
        return "stdin" if self.script == "-" else Path(self.script).name

    @property
    def is_bytecode(self) -> bool:
        """Whether the script is a .pyc file."""
        return self.script.endswith(BYTECODE_SUFFIX)

    @property
    def patience(self) -> float | None:
        """Seconds to wait for the end; None: for ever."""
        return None if self.wait == inf else self.wait

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
            "array": self.array and indices_in(self.array[0]),
            "at_once": self.array[1] if self.array else 0,
        }


def describe(request: dict[str, Any], code: bytes) -> dict[str, Any]:
    """The output of a dry run."""
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
        "surrogate": request["surrogate"] and str(request["surrogate"]),
        "after": [str(each) for each in request["after"]],
        "limits": limits,
        "array": request["array"] and [request["array"][0], request["array"][-1]],
        "indices": request["array"] and text_of(ranges_of(request["array"])),
    }
