# SPDX-License-Identifier: GPL-2.0-or-later
"""The methods of Functions and AsyncFunctions, as dialogues.  The texts are those of the methods.

Not here: calls (calling.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from pyosd import errors
from pyosd.commands.attributes import get_attribute, get_attributes, set_attributes
from pyosd.commands.collections import list_attributes, list_partitions
from pyosd.commands.data import read_range, write_range
from pyosd.commands.dialogue import Dialogue, collected
from pyosd.commands.execute import activate_function
from pyosd.commands.objects import create_and_write, create_partition
from pyosd.commands.objects import remove as remove_object
from pyosd.functions.capacity import FunctionCapacity, decode_capacity
from pyosd.functions.manifest import (
    ALL_IDS,
    CALL_IDS,
    Access,
    Contract,
    Function,
    FunctionCalls,
    Manifest,
    ManifestNumber,
    decode,
    decode_calls,
    encode,
)
from pyosd.functions.stock import STOCK
from pyosd.jobs.modules import check_syntax
from pyosd.jobs.source import check_text, module_source
from pyosd.security.code_box import encrypt
from pyosd.security.function_signature import sign, statement
from pyosd.types import ROOT, AttributeId, AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import ALL, Page
from pyosd.wire.exec_params import Limits

__all__ = ["Named"]

FIRST, LAST = 0x1, 0xFFFF  # ids of function partitions
ENGINES = {".py": "python", ".wasm": "wasm", ".so": "native", ".jar": "java"}

FunctionCode: TypeAlias = str | bytes | os.PathLike[str] | Callable[..., object]
Named: TypeAlias = str | int | ObjectRef | Function
"""A function: its name, at least 8 hexadecimal digits of its SHA-256, its object id, or what put() gave."""


# ---- where they are ------------------------------------------------------------------------------


def find_partition(table: Any) -> Dialogue[PartitionId]:
    """The partition of these functions: the given one, or else the only one there is.

    A user who may not list the partitions gets 0x1, which put() makes.

    Raises: NotFound: there is none.  ValueError: there are several.
    """
    if table.partition is None:
        try:
            found = [each for each in (yield from list_partitions()) if FIRST <= each <= LAST]
        except errors.PermissionDenied:
            found = [PartitionId(FIRST)]
        if not found:
            why = "the target has no functions yet: 'osd fn put' or 'osd fn stock' makes their partition"
            raise errors.NotFound(0, 0, 0, why)
        if len(found) > 1:
            names = ", ".join(f"{each:#x}" for each in found)
            how = f"--partition {found[0]:#x}, or pyosd.functions.Functions(target, {found[0]:#x})"
            raise ValueError(f"the target has function partitions {names}: name one, such as {how}")
        table.partition = found[0]
    return PartitionId(table.partition)


def make_partition(table: Any) -> Dialogue[PartitionId]:
    """The same, made if it is not there."""
    try:
        found = yield from find_partition(table)
    except errors.NotFound:
        found = table.partition = PartitionId(FIRST)
    if found not in (yield from list_partitions()):
        with suppress(errors.Exists):  # another client has just made it
            yield from create_partition(found)
    return found


def ls(table: Any) -> Dialogue[list[Function]]:
    """All functions of the partition, by name."""
    partition = yield from find_partition(table)
    found = yield from collected(list_attributes(partition, ALL_IDS))
    functions = [decode(ref(partition, each.object_id), each.attributes) for each in found]
    return sorted(functions, key=lambda each: (each.name, each.id))


def show(table: Any, name: Named) -> Dialogue[Function]:
    """Find one function.

    Args:
        name: its alias, the first 8 or more digits of its SHA-256, or its ids.  If several functions have
            the alias, the active one counts.

    Raises: NotFound; ValueError: several functions have the alias, and none is active, or the digits.
    """
    if isinstance(name, Function):
        name = name.id
    if isinstance(name, int):
        name = ref((yield from find_partition(table)), name)
    if isinstance(name, ObjectRef):
        return decode(name, (yield from get_attributes(name, ALL_IDS)))
    found = [each for each in (yield from ls(table)) if is_named(each, name)]
    best = [each for each in found if each.active] or found
    if not best:
        hint = f": 'osd fn stock {name}' stores the one of iosd" if name in STOCK else ""
        raise errors.NotFound(0, 0, 0, f"no function has the name '{name}'{hint}")
    if len(best) > 1:
        ids = ", ".join(str(each.id) for each in best)
        raise ValueError(f"'{name}' is the name of several functions ({ids}): use an id")
    return best[0]


def is_named(function: Function, name: str) -> bool:
    """Whether it has this alias, or a SHA-256 that begins so."""
    digits = len(name) >= 8 and function.sha256.startswith(name)
    return function.name == name or digits


# ---- their life ----------------------------------------------------------------------------------


def code_of(code: FunctionCode) -> bytes:
    """The bytes to store.  Raises: TypeError, ValueError: it cannot be sent; OSError."""
    if isinstance(code, str):
        check_text(code)
        return code.encode()
    if isinstance(code, bytes):
        return code
    if isinstance(code, os.PathLike):
        return Path(code).read_bytes()
    return module_source(code).encode()


def manifest_of(code: FunctionCode, **given: Any) -> Manifest:
    """The manifest: name and engine are those of the file if they are not given."""
    if isinstance(code, os.PathLike):
        path = Path(code)
        given["name"] = given["name"] or path.stem
        given["engine"] = given["engine"] or ENGINES.get(path.suffix, "python")
    elif not isinstance(code, str | bytes):
        given["name"] = given["name"] or getattr(code, "__name__", "")
    given["engine"] = given["engine"] or "python"
    return Manifest(**given)


def sealed(function: ObjectRef, content: bytes) -> Dialogue[bytes]:
    """Encrypt code to the key of the target.  Raises: OSDError: it has none."""
    key = yield from get_attribute(function, Page.FUNCTION, ManifestNumber.BOX_KEY)
    if not key:
        raise errors.OSDError(0, 0, 0, "this target takes no encrypted code")
    return encrypt(content, bytes(key))


def put(
    table: Any,
    code: FunctionCode,
    *,
    name: str = "",
    engine: str = "",
    access: Access = Access.NONE,
    methods: Iterable[str] = ("main",),
    pool: str = "",
    limits: Limits | None = None,
    version: str = "",
    description: str = "",
    contract: Contract | None = None,
    activate: bool = True,
    sign_with: str | os.PathLike[str] | None = None,
    encrypted: bool = False,
    check: bool = True,
) -> Dialogue[Function]:
    """Store a function, and activate it.

    An active function of the same name is replaced in one step: each call finds the old version or
    the new one. Then the old one is removed.

    Args:
        code: source text, bytes, a path, or a plain Python function with one parameter.
        name: its alias: letters, digits, ".", "_" and "-".  "": that of the file or function.
        engine: the engine that runs it.  "": the one for the suffix of the file, else python.
        access: what calls can do in their zone.
        methods: entry points; a call that names none calls the first.
        pool: pool of its calls.  "": the pool `default`.
        limits: defaults of a call, and the most that a call can have.
        version, description: text for people.
        contract: for a function that data pass through, see attach(); access is NONE then.
        activate: activate it; if False, only store it.
        sign_with: file of a key with which ssh-keygen signs it.
        encrypted: encrypt the code, so that only the target can read it; needs the package cryptography.
        check: compile code of the engine python here before it is sent.

    Raises: OSDError: the target refused it, and stores nothing.  Unreachable, TaskAborted,
        UnprovenAnswer, StorageError: the function may be stored and active; put it again.  TypeError,
        ValueError, OSError: the code cannot be sent.  SyntaxError: it does not compile.  ImportError:
        cryptography is missing.
    """
    if not isinstance(access, Access):
        raise TypeError(f"access is one of pyosd.functions.Access, not {access!r}")
    manifest = manifest_of(
        code,
        name=name,
        engine=engine,
        access=access,
        methods=tuple(methods),
        pool=pool,
        limits=limits or Limits(),
        version=version,
        description=description,
        contract=contract,
    )
    attributes, content = encode(manifest), code_of(code)
    if check and manifest.engine == "python":
        check_syntax(content, manifest.name or "function")
    partition = yield from make_partition(table)
    before = [each for each in (yield from ls(table)) if each.name == manifest.name and each.name]
    made = yield from create_and_write(partition, b"" if encrypted else content)
    try:
        if encrypted:
            content = yield from sealed(made, content)
            yield from write_range(made, 0, content)
        if sign_with is not None:
            values = {each.id.number: each.value for each in attributes}
            signature = sign(statement(content, values), sign_with)
            attributes.append(AttributeValue(Page.FUNCTION, ManifestNumber.SIGNATURE, signature))
        yield from set_attributes(made, attributes)
    except (errors.OSDError, OSError, ValueError, ImportError):
        yield from remove_if_there(made)
        raise
    if activate:
        yield from activate_new(made)
        for each in before:
            yield from remove_if_there(each.id)
    return (yield from show(table, made))


def activate_new(made: ObjectRef) -> Dialogue[None]:
    """Activate a new function in the place of the old one.  If it is certainly not active, remove it."""
    try:
        yield from activate_function(made, replace=True)
    except (*errors.MAY_HAVE_ACTED, errors.StorageError):
        raise  # it may be active, and the old one no longer
    except (errors.OSDError, OSError, ValueError):
        yield from remove_if_there(made)
        raise


def remove_if_there(function: ObjectRef) -> Dialogue[None]:
    """Remove a function that another client may remove at the same time."""
    with suppress(errors.NotFound):
        yield from remove_object(function)


def put_stock(
    table: Any, name: str, *, pool: str = "", sign_with: str | os.PathLike[str] | None = None
) -> Dialogue[Function]:
    """Store and activate a function that comes with iosd, under its name.

    Args:
        name: one of those that `osd fn stock` lists, such as gzip.
        pool: pool of its calls.  A function that needs a package needs a pool with that package.
        sign_with: as for put().

    Raises: ValueError: there is no such function, or it needs a pool; as put().
    """
    found = STOCK.get(name)
    if found is None:
        raise ValueError(f"iosd has no function '{name}'; it has {', '.join(sorted(STOCK))}")
    if found.package and not pool:
        raise ValueError(f"'{name}' needs a pool whose package set has {found.package}")
    return (
        yield from put(
            table,
            found.file,
            name=name,
            methods=found.methods,
            contract=found.contract,
            access=found.access,
            description=found.description,
            pool=pool,
            sign_with=sign_with,
        )
    )


def activate(table: Any, name: Named) -> Dialogue[Function]:
    """Permit calls of a stored function, and deactivate another one of the same name in the same step."""
    found = yield from show(table, name)
    yield from activate_function(found.id, replace=True)
    return (yield from show(table, found.id))


def deactivate(table: Any, name: Named) -> Dialogue[Function]:
    """Refuse calls of a function, which stays in the store.  Calls under way continue."""
    found = yield from show(table, name)
    yield from activate_function(found.id, deactivate=True)
    return replace(found, active=False, sha256="", activated=None)


def remove(table: Any, name: Named, *, force: bool = False) -> Dialogue[None]:
    """Remove a function, active or stored.

    Args: force: deactivate it first.  Calls under way continue with the code that they have.

    Raises: FunctionInUse: it is active, and calls of it are under way.
    """
    found = yield from show(table, name)
    if force and found.active:
        yield from activate_function(found.id, deactivate=True)
    try:
        yield from remove_object(found.id)
    except errors.FunctionInUse as error:
        users = (yield from calls(table, found)).under_way
        raise error.used_by(map(str, users)) from None


def code(table: Any, name: Named) -> Dialogue[bytes]:
    """The code of a function."""
    found = yield from show(table, name)
    return bytes((yield from read_range(found.id, 0, found.size)))


def calls(table: Any, name: Named) -> Dialogue[FunctionCalls]:
    """The numbers of calls of an active function, and the last failure.

    The target counts them in memory, from the activation or from its own start.  `Target.jobs()` lists
    the calls with a record.
    """
    found = name if isinstance(name, Function) else (yield from show(table, name))
    return decode_calls((yield from get_attributes(found.id, CALL_IDS)))


def capacity(table: Any) -> Dialogue[FunctionCapacity]:
    """The engines of the target, how many functions are active, and what they reserve.

    Raises: OSDError: the target runs no functions.
    """
    return decode_capacity(
        (yield from get_attributes(ROOT, [AttributeId(Page.FUNCTIONS_ROOT, ALL)]))
    )
