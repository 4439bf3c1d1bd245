# SPDX-License-Identifier: GPL-2.0-or-later
"""Calls of functions that are active in the target, inside the process of the script."""

from __future__ import annotations

import linecache
import sys
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from . import _archive
from ._current import current
from ._errors import OSDError
from ._transport import Call

if TYPE_CHECKING:
    from ._transport import Transport

__all__ = ["call", "compile_code"]

SHA256_BYTES = 32
SHOWN = 16  # digits of it in a module's name


def compile_code(code: bytes, name: str) -> CodeType:
    """Compile; the source stays where tracebacks look for it."""
    lines = code.decode(errors="replace").splitlines(keepends=True)
    linecache.cache[name] = (len(code), None, lines, name)
    return compile(code, name, "exec", dont_inherit=True)


def call(name: str | int, args: object = None, *, method: str = "", partition: int = 0) -> Any:
    """Call an active function of the target here, in this sandbox, and return what it returns.

    The function has the zone, the limits and the rights of this job.  Its access class restricts it
    further until it returns.  Its module is loaded once in a job.  Arguments and result are passed
    as they are, without a copy.  osd.args and osd.job are those of the job.  Functions can call each
    other, 16 deep.

    Args: name: its alias, at least 8 digits of its SHA-256, or its object id.
        args: what its entry point is given.  method: the entry point; "": the first of its manifest.
        partition: its partition.  0: that of the function that calls, or else the only one that has
        active functions.

    Raises: NotFound: no active function has this name.  Invalid: there is no such entry point; it runs
        in another engine; 16 functions wait already.  What the function raises.
    """
    transport = current()
    by_id = isinstance(name, int)
    entry, words = method.encode(), b"" if isinstance(name, int) else name.encode()
    object_id = name if isinstance(name, int) else 0
    try:
        length, _, found = transport.call(
            Call.ENTER, partition, object_id, len(entry), 0, entry + words
        )
    except OSDError as error:
        why = str(error).partition(": ")[2] or str(error)
        shown = f"{name:#x}" if by_id else str(name)
        raise type(error)(f"function {shown}: {why}") from None
    try:
        module = load(transport, str(name), found[:SHA256_BYTES], length)
        entry_point = vars(module).get(found[SHA256_BYTES:].decode())
        if not callable(entry_point):
            raise TypeError(f"function {name} has no entry point {found[SHA256_BYTES:].decode()!r}")
        return entry_point(args)
    finally:
        transport.call(Call.LEAVE, 0, 0)


def load(transport: Transport, name: str, digest: bytes, length: int) -> ModuleType:
    """The module of the function that was entered, made at the first call of this job."""
    known: dict[bytes, ModuleType] = vars(transport).setdefault("functions", {})
    if digest in known:
        return known[digest]
    code = b""
    while len(code) < length:
        piece = transport.call(Call.CODE, 0, 0, len(code))[2]
        if not piece:
            raise OSDError(f"the code of function {name} ends early")
        code += piece
    if code.startswith(_archive.MAGIC):
        code, name = _archive.enter(code, name)
    module = ModuleType(f"function_{digest.hex()[:SHOWN]}")
    module.__file__ = name
    known[digest] = sys.modules[module.__name__] = module
    try:
        exec(compile_code(code, name), vars(module))
    except BaseException:
        del known[digest], sys.modules[module.__name__]
        raise
    return module
