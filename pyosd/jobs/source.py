# SPDX-License-Identifier: GPL-2.0-or-later
"""The code of a job, as it is sent: source text or byte-code.

A caller gives source as text, as a file or as a function, and byte-code as a .pyc file.  Code is
compressed if it is shorter that way.  Functions travel as source with JSON arguments; nothing is
pickled.  Modules that a function uses, and functions of the standard library, travel by name: the
sandbox imports them.  Closures, lambdas, decorators and other globals cannot travel.  This module
refuses them before anything is submitted.
"""

from __future__ import annotations

import ast
import builtins
import dis
import inspect
import json
import os
import re
import sys
import threading
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeAlias

from pyosd.types import ObjectHandle, ObjectRef, shown
from pyosd.wire.exec_params import ArgsEncoding, ExecFlag

# Before 3.11.5, ast.parse() in one thread may fail because of one in another: they share a depth.
_PARSING = threading.Lock()


def _after_fork() -> None:
    """A thread that held it is not in this process."""
    if _PARSING.locked():
        _PARSING.release()


os.register_at_fork(after_in_child=_after_fork)

Code: TypeAlias = str | bytes | os.PathLike[str] | Callable[..., object]
"""Source text, the path of a script, or a function to send."""

PACKED_FROM = 4 << 10  # bytes; less is sent as it is: packing would save no time
_PAYS = 0.75  # of the length is the most that packed code may have
BYTECODE_SUFFIX = ".pyc"

OBJECT_KEY = "osd.object"
"""The one key of the JSON object that stands for an object among a function's arguments."""
_COLLECTION = 0x40  # OSD-2 object type

_CALL = """

import osd as _osd

_given = {given}
_value = {name}(*_given["args"], **_given["kwargs"])
if _value is not None:
    _osd.result(_value)
"""

_STORED = """
# {label}
_function = {name}


def main(given):
    if isinstance(given, dict) and given.keys() == {{"args", "kwargs"}}:
        return _function(*given["args"], **given["kwargs"])
    return _function(*([] if given is None else given if isinstance(given, list) else [given]))
"""

_ARRAY_MAP = """

import osd as _osd

_osd.result([{name}(*each) for each in {given}[_osd.array_index]])
"""
_MAP = """

import osd as _osd

_osd.result([{name}(*each) for each in {given}])
"""
_PLAIN = "_osd.args"
_WITH_OBJECTS = "_objects(_osd.args)"
_OBJECTS = f"""

def _objects(value):
    if isinstance(value, list):
        return [_objects(each) for each in value]
    if not isinstance(value, dict):
        return value
    if [*value] != ["{OBJECT_KEY}"]:
        return {{key: _objects(each) for key, each in value.items()}}
    partition, number, *kind = value["{OBJECT_KEY}"]
    if kind == [{_COLLECTION:#x}]:
        return _osd.collection(partition, number)
    if number:
        return _osd.userobject(partition, number)
    return _osd.partition(partition) if partition else _osd.root()
"""


def with_objects(value: object) -> tuple[Any, bool]:
    """Arguments of a function as JSON, and whether an ObjectRef or ObjectHandle is among them.

    Raises: ValueError: a dict has the key that stands for an object.
    """
    if isinstance(value, ObjectRef):
        return {OBJECT_KEY: [value.partition_id, value.object_id]}, True
    if isinstance(value, ObjectHandle):
        return {OBJECT_KEY: [value.partition_id, value.object_id, int(value.object_type)]}, True
    if isinstance(value, dict):
        if OBJECT_KEY in value:
            raise ValueError(f"no dict of a function's arguments may have the key '{OBJECT_KEY}'")
        pairs = {key: with_objects(each) for key, each in value.items()}
        return {key: each for key, (each, _) in pairs.items()}, any(f for _, f in pairs.values())
    if isinstance(value, list | tuple):
        items = [with_objects(each) for each in value]
        return [each for each, _ in items], any(found for _, found in items)
    return value, False


def _global_names(code: CodeType) -> Iterator[str]:
    """Names a function and the functions inside it look up as globals."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _global_names(constant)


def function_source(
    function: Callable[..., object], objects: bool = False, modules: Collection[str] = ()
) -> str:
    """Source of a script that calls the function with its job's arguments.

    Args: objects: with_objects() has found an ObjectRef among them.  modules: names of those that
        travel with it: what a function uses of them is imported.
    Raises: TypeError: it is no plain Python function; ValueError: it needs what cannot travel.
    """
    return _call(_CALL, function, objects, modules)


def module_source(function: Callable[..., object]) -> str:
    """Source of a module whose main() is the function, to be stored in a target.

    Raises: as function_source().
    """
    return f"{_definition(function, ())}\n\nmain = {function.__name__}\n"


def stored_source(function: Callable[..., object], label: str) -> str:
    """Source of a module whose main() calls a decorated function with arguments of call_arguments().

    Args: label: text that the hash of the source covers, too.
    Raises: as function_source().
    """
    definition = _definition(function, (), decorators=1)
    return f"{definition}\n{_STORED.format(label=label, name=function.__name__)}"


def map_source(
    function: Callable[..., object], objects: bool = False, modules: Collection[str] = ()
) -> str:
    """Source of a script that calls the function once for each tuple of its job's arguments.

    Its result is the list of results.  Args, Raises: as function_source().
    """
    return _call(_MAP, function, objects, modules)


def array_map_source(
    function: Callable[..., object], objects: bool = False, modules: Collection[str] = ()
) -> str:
    """The same for an array of jobs: each member takes the list that its index finds in the arguments."""
    return _call(_ARRAY_MAP, function, objects, modules)


def _call(
    template: str, function: Callable[..., object], objects: bool, modules: Collection[str]
) -> str:
    definition = _definition(function, modules) + (_OBJECTS if objects else "")
    given = _WITH_OBJECTS if objects else _PLAIN
    return definition + template.format(name=function.__name__, given=given)


def _definition(
    function: Callable[..., object], modules: Collection[str], decorators: int = 0
) -> str:
    imported = _import_by_name(function, getattr(function, "__name__", ""), modules)
    if imported:
        return f"from __future__ import annotations\n{imported}\n"
    if not isinstance(function, FunctionType):
        kind = type(function).__name__
        raise TypeError(f"only a plain function can be sent, not {kind}; write a def that calls it")
    name = function.__name__
    if name == "<lambda>":
        raise ValueError("a lambda cannot be sent: its source has no beginning; write a def")
    if function.__closure__:
        names = ", ".join(function.__code__.co_freevars)
        raise ValueError(f"{name}() uses variables of an outer function ({names}): pass arguments")
    imports = _imports(function, modules)
    try:
        import textwrap

        source = textwrap.dedent(inspect.getsource(function))
    except OSError:
        raise ValueError(f"the source of {name}() was not found") from None
    with _PARSING:
        definition = ast.parse(source).body[0]
    if not isinstance(definition, ast.FunctionDef) or len(definition.decorator_list) != decorators:
        hint = " with only @pyosd.function above it" if decorators else ""
        raise ValueError(f"{name}() has other decorators or is async: send a plain def{hint}")
    source = "".join(source.splitlines(keepends=True)[definition.lineno - 1 :])
    return "\n".join(["from __future__ import annotations", *imports, source])


def _imports(function: FunctionType, modules: Collection[str]) -> list[str]:
    """Statements that import what the function uses of other modules.

    Raises: ValueError: it uses a global that no statement imports.
    """
    known, own = function.__globals__, function.__name__
    used = {
        each
        for each in _global_names(function.__code__)
        if each in known and each != own and not hasattr(builtins, each)
    }
    found = {each: _import_by_name(known[each], each, modules) for each in sorted(used)}
    missing = ", ".join(each for each, statement in found.items() if not statement)
    if missing:
        raise ValueError(f"{own}() uses globals of its module ({missing}): import or define inside")
    return [*found.values()]


def _import_by_name(thing: object, name: str, modules: Collection[str]) -> str:
    """The statement that gives a thing that name: a module, or what the standard library or one of
    these modules has; "": none.
    """
    if isinstance(thing, ModuleType):
        module = "osd" if thing.__name__ == "pyosd.osd" else thing.__name__
        return f"import {module} as {name}" if module != "__main__" else ""
    home, own = getattr(thing, "__module__", None), getattr(thing, "__name__", None)
    if not isinstance(home, str) or not isinstance(own, str) or not name.isidentifier():
        return ""
    top = home.partition(".")[0]
    if (top not in sys.stdlib_module_names and top not in modules) or home == "__main__":
        return ""
    if getattr(sys.modules.get(home), own, None) is not thing:
        return ""
    return f"from {home} import {own} as {name}"


def check_text(code: str) -> None:
    """Code in a str is its text.  Raises: ValueError: it looks like the name of a file."""
    if re.fullmatch(r"\S*\w\.(py|pyc|pyz|wasm|so|jar)", code):
        raise ValueError(
            f"'{code}' would be the text of the code; a file is Path('{code}') of pathlib"
        )


def code_bytes(code: Code, objects: bool = False, modules: Collection[str] = ()) -> bytes:
    """The source to send.  Args, Raises: as function_source(), and OSError."""
    if isinstance(code, str):
        check_text(code)
        return code.encode()
    if isinstance(code, bytes):
        return code
    if isinstance(code, os.PathLike):
        return Path(code).read_bytes()
    return function_source(code, objects, modules).encode()


def is_bytecode(code: Code) -> bool:
    """Whether the path of a .pyc file was given; its content is the target's to judge."""
    return isinstance(code, os.PathLike) and Path(code).suffix == BYTECODE_SUFFIX


def is_binary(code: bytes) -> bool:
    """Whether it is a module for the engine wasm or a JAR, which no client compiles or packs."""
    return code.startswith((b"\0asm", b"PK\3\4"))


def pack(code: bytes, compress: bool | None = None) -> tuple[bytes, ExecFlag]:
    """The bytes to send for the code, and the flag of their packing.

    Args: compress: True or False: always, never; None: where it pays, but for WebAssembly and JARs.
    """
    pays = len(code) >= PACKED_FROM and not is_binary(code)
    if compress is False or (compress is None and not pays):
        return code, ExecFlag(0)
    packed = zlib.compress(code)
    if compress is None and len(packed) > _PAYS * len(code):
        return code, ExecFlag(0)
    return packed, ExecFlag.CODE_ZLIB


def code_name(code: Code) -> str:
    """A name for the job: the script's file name, the function's name, or "".

    Bytes of a file name that are not UTF-8, as names of jobs are, become "?".
    """
    if isinstance(code, str | bytes):
        return ""
    name = Path(code).name if isinstance(code, os.PathLike) else code.__name__
    return name.encode("utf-8", "replace").decode()


def positional_of(args: object) -> list[Any]:
    """The positional arguments of a function.  Raises: TypeError: something else, such as a text."""
    if args is None:
        return []
    if isinstance(args, str | bytes | Mapping) or not isinstance(args, Iterable):
        text = f"args of a function is a list of its positional arguments, not {shown(args)}"
        raise TypeError(text)
    return list(args)


def call_arguments(args: Sequence[object], kwargs: Mapping[str, object]) -> bytes:
    """Arguments of a function sent as source.  Raises: TypeError: not JSON."""
    return _json({"args": list(args), "kwargs": dict(kwargs)})


def encode_args(args: object) -> tuple[ArgsEncoding, bytes]:
    """Arguments of a script: None, bytes as they are, anything else as JSON.

    Raises: TypeError: not JSON.
    """
    if args is None:
        return ArgsEncoding.NONE, b""
    if isinstance(args, bytes | bytearray | memoryview):
        return ArgsEncoding.BYTES, bytes(args)
    return ArgsEncoding.JSON, _json(args)


def _json(args: object) -> bytes:
    try:
        return json.dumps(args).encode()
    except TypeError as error:
        convert = "convert it, as tolist() of numpy does"
        raise TypeError(f"arguments travel as JSON: {error}: {convert}") from None


def members_over(objects: Iterable[ObjectRef], batch: int) -> tuple[list[ObjectRef], range]:
    """The objects, and the indices of the members: one for each batch objects.

    Raises: ValueError: there are no objects, or batch is below 1.
    """
    found = list(objects)
    if batch < 1:
        raise ValueError("batch is 1 or more objects for each member")
    if not found:
        raise ValueError("there are no objects to run over")
    return found, range((len(found) + batch - 1) // batch)


def with_over(
    arguments: tuple[ArgsEncoding, bytes], objects: Sequence[ObjectRef], batch: int
) -> tuple[ArgsEncoding, bytes]:
    """Arguments as they are sent, with the objects around them.

    Raises: ValueError: the arguments are bytes, which have no room for them.
    """
    from pyosd.osd._results import OVER

    encoding, text = arguments
    if encoding is ArgsEncoding.BYTES:
        raise ValueError("args of bytes cannot go with over: give them as JSON")
    ids = [[each.partition_id, each.object_id] for each in objects]
    whole = json.dumps({OVER: {"batch": batch, "objects": ids}}, separators=(",", ":"))
    return ArgsEncoding.JSON, b'%s,"args":%s}' % (whole[:-1].encode(), text or b"null")
