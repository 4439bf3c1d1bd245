# SPDX-License-Identifier: GPL-2.0-or-later
"""How functions and their partitions are named on the command line."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import click
from click.shell_completion import CompletionItem

from pyosd.cli.frame import completion_words
from pyosd.cli.frame.codes import Exit
from pyosd.cli.frame.param_type import ParamType
from pyosd.cli.frame.verb import Failure
from pyosd.commands.pool_status import GONE
from pyosd.errors import PermissionDenied
from pyosd.functions import Functions
from pyosd.functions.dialogues import FIRST, LAST
from pyosd.jobs.refusal import explain_absent
from pyosd.target import Target
from pyosd.types import ObjectRef

__all__ = ["NAME", "PARTITION", "check_pool", "functions_of"]


class FunctionName(ParamType[str | int | ObjectRef]):
    """The name or id of a function."""

    name = "NAME"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete with names that the target has now."""
        return [CompletionItem(each) for each in completion_words.functions(ctx, incomplete)]

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str | int | ObjectRef:
        """Distinguish ids from names: a name has a letter that is no hexadecimal digit, or few digits."""
        if isinstance(value, int | ObjectRef):  # click converts defaults again
            return value
        text = str(value)
        if "/" in text:
            try:
                return ObjectRef.parse(text)
            except ValueError:
                self.fail(f"'{text}' is not PID/OID (decimal or 0x)", param, ctx)
        if re.fullmatch(r"0x[0-9a-fA-F]+", text):
            return int(text, 16)
        if re.fullmatch(r"[0-9]{1,7}", text):
            return int(text)
        return text


class PartitionParam(ParamType[int]):
    """The id of a function partition."""

    name = "PID"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse and check the range."""
        try:
            found = int(str(value), 0)
        except ValueError:
            found = 0
        if not FIRST <= found <= LAST:
            self.fail(f"'{value}' is not the id of a function partition, 0x1 to 0xffff", param, ctx)
        return found


NAME = FunctionName()
PARTITION = click.option(
    "--partition",
    type=PartitionParam(),
    help="Function partition, 0x1 to 0xffff.  [the only one; 'put' makes 0x1]",
)


def functions_of(target: Target, partition: int | None) -> Functions:
    """The functions of the partition that was named."""
    return Functions(target, partition)


def check_pool(target: Target, pool: str) -> None:
    """Raises: Failure: the target has no such pool.  "": the default one.

    A user who may not read the names of the pools learns it from the first call.
    """
    if not pool:
        return
    with contextlib.suppress(PermissionDenied):
        known = [each.name for each in target.pools() if each.state not in GONE]
        if absent := explain_absent(pool, known):
            raise Failure(Exit.FAILED, absent)
