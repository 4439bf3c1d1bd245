# SPDX-License-Identifier: GPL-2.0-or-later
"""The functions that a script at a client calls (osd.call()): the rules of
target/exec/session/function.c, over ordinary commands.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from pyosd import errors
from pyosd.functions import Access, Function, Functions
from pyosd.security.code_box import MAGIC as BOX
from pyosd.types import ObjectRef, ref

from .._errors import Invalid, NotFound, PermissionDenied
from .._transport import CALL_IO_MAX, Call

if TYPE_CHECKING:
    from pyosd.commands import Commands

__all__ = ["CHANGES", "CalledFunctions"]

DEPTH = 16
ENGINE = "python"
PARTITIONS = range(1, 0x10000)  # ids of function partitions
CHANGES = frozenset(
    {Call.CREATE_PARTITION, Call.REMOVE_PARTITION, Call.CREATE, Call.REMOVE, Call.SETATTR}
    | {Call.CREATE_COLLECTION, Call.REMOVE_COLLECTION, Call.COLLECTION_ADD, Call.COLLECTION_DROP}
    | {Call.SWAPATTR, Call.ADDATTR, Call.WRITE, Call.APPEND, Call.TRUNCATE, Call.CLEAR, Call.PUNCH}
)


class CalledFunctions:
    """The functions that run, one inside the other."""

    def __init__(self, commands: Commands) -> None:
        self.commands = commands
        self.running: list[tuple[Access, int]] = []
        self.code = b""

    def permits(self, op: int) -> bool:
        """Whether the access classes of all of them permit this call on an object."""
        least = min((access for access, _ in self.running), default=Access.WRITE)
        return least == Access.WRITE or (least == Access.READ and op not in CHANGES)

    def enter(self, obj: ObjectRef, names: bytes, method_bytes: int) -> tuple[int, int, bytes]:
        """Find a function and take its code.  Returns: the answer of ENTER."""
        method, name = names[:method_bytes].decode(), names[method_bytes:].decode()
        if len(self.running) == DEPTH:
            raise Invalid(f"{obj}: functions call each other more than {DEPTH} deep")
        partition = obj.partition_id or self.partition()
        found = self.find(partition, name or obj.object_id)
        manifest = found.manifest
        if manifest.engine != ENGINE:
            raise Invalid(f"{found.id}: the function runs in another engine than the script")
        if method and method not in manifest.methods:
            raise Invalid(f"{found.id}: the function has no such entry point")
        functions = Functions(self.commands, partition)
        self.code = functions.code(found)
        digest = hashlib.sha256(self.code).digest()
        if digest.hex() != found.sha256:
            raise NotFound(f"{found.id}: the function's code has changed since it was activated")
        if self.code.startswith(BOX):
            raise PermissionDenied(f"{found.id}: its code is encrypted: call it with osd fn call")
        self.running.append((manifest.access, partition))
        answer = digest + (method or manifest.methods[0]).encode()
        return len(self.code), int(manifest.access), answer

    def partition(self) -> int:
        """That of the function that runs, or else the only one that has active functions."""
        if self.running:
            return self.running[-1][1]
        every = [each for each in self.commands.list_partitions() if each in PARTITIONS]
        found = [each for each in every if self.active(each)]
        if not found:
            raise NotFound("0x0/0x0: no function is active")
        if len(found) > 1:
            raise Invalid("0x0/0x0: several partitions have active functions; name one")
        return found[0]

    def active(self, partition: int) -> list[Function]:
        """Its active functions."""
        return [each for each in Functions(self.commands, partition).ls() if each.active]

    def find(self, partition: int, name: str | int) -> Function:
        """The active function of this name or id."""
        target = ref(partition, name) if isinstance(name, int) else name
        try:
            found = Functions(self.commands, partition).show(target)
        except (errors.NotFound, ValueError) as error:
            kind = NotFound if isinstance(error, errors.NotFound) else Invalid
            raise kind(f"{ref(partition)}: {error}") from None
        if not found.active:
            raise NotFound(f"{found.id}: the function is not active")
        return found

    def piece(self, offset: int) -> bytes:
        """Code of the function that was entered last."""
        if not self.code or offset > len(self.code):
            raise Invalid("0x0/0x0: no function was entered")
        return self.code[offset : offset + CALL_IO_MAX]

    def leave(self) -> None:
        """The function entered last has returned."""
        if not self.running:
            raise Invalid("0x0/0x0: no function runs")
        self.running.pop()
        self.code = b""
