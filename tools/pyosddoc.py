# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints docs/pyosd.md, made of the docstrings and signatures of pyosd.

A test compares the file with this; ``python -m tools.pyosddoc >docs/pyosd.md`` brings it up to date.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyosd
from pyosd import aio, files, functions, testing
from pyosd.fs import FileSystem
from pyosd.fs.paths import PathInfo
from pyosd.functions import Functions

__all__ = ["INTERNAL", "manual"]

WIDTH = 100
INTERNAL = frozenset(
    {
        *(
            "call_again",
            "carry",
            "carry_stream",
            "describe",
            "end",
            "keep_spare",
            "lose",
            "see",
            "signer",
            "signs",
        ),
        *("set_running_or_notify_cancel", "settled_outcome", "take_spare", "transport"),
        "wait_for_end",
    }
)
"""Methods that other modules of pyosd call, and programs do not."""
CONSTANTS = {
    "ROOT": "The root, as ref().",
    "ALL": "All attributes of a page, or all pages.",
}
INTRODUCTION = """\
# Reference of `pyosd`

All public names of the Python client. This page is made from the docstrings, which `help(pyosd)`
shows too (`python -m tools.pyosddoc`). [The Python client](client.md) explains the library with
examples.

**Threads and coroutines.** Every method below that sends a command exists twice, with the same
name, parameters and meaning: in `pyosd.Target`, `Job` and `JobArray` for threads, and in
`pyosd.aio.AsyncTarget`, `AsyncJob` and `AsyncJobArray` for coroutines. A method for coroutines is
awaited; an iterator becomes an asynchronous one. [Differences](#differences) lists the exceptions.

**Exceptions.** Every method that sends a command raises, besides what it says itself:

- `OSDError` or a child: the target refused the command or failed. Nothing was changed unless the
  method says otherwise.
- `SessionLost`, `Unreachable`: no answer came. Whether the command acted is unknown.
- `ValueError`, `TypeError`: an argument does not fit its field or has the wrong type. Nothing was
  sent.
"""
DIFFERENCES = """\
## Differences

| Only for threads | Reason |
|---|---|
| `Target.run()`, `run_array()` | they can run scripts at the client; `exec()` runs them near the data |
| `Target.submit()`, `abort()` | `asyncio.create_task(target.call(request))` does the same |
| `Job.watch()`, `add_done_callback()` and others of `Future` | an asyncio task has them |
| `Executor` | `asyncio.gather()` over `exec()` does the same |
| `Many` | `async for` goes through a `Run`; its threads do the rest |

Files that `AsyncTarget.open()` gives are binary, so it has no parameters for text and buffers.

`AsyncTarget.array()` is awaited, because it asks for the indices of the array. `Target.array()`
asks for them when they are first used.
"""


def annotation(text: object) -> str:
    """A type as readers know it."""
    shown = text if isinstance(text, str) else inspect.formatannotation(text)
    shown = re.sub(r"ForwardRef\('([^']+)'\)", r"\1", shown)
    shown = re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])", "", shown)
    return shown.replace("Followed", "Job")


def default(value: object) -> str:
    """A default as it is written in a call."""
    if isinstance(value, enum.Flag):
        return f"{type(value).__name__}({value.value:#x})"
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if dataclasses.is_dataclass(value) or hasattr(value, "_fields"):
        return f"{type(value).__name__}()"
    return "..." if callable(value) or repr(value).startswith("<") else repr(value)


def parameter(each: inspect.Parameter) -> str:
    """One parameter with its type and default."""
    stars = "*" * (each.kind is each.VAR_POSITIONAL) or "**" * (each.kind is each.VAR_KEYWORD)
    text = f"{stars}{each.name}"
    if each.annotation is not each.empty:
        text += f": {annotation(each.annotation)}"
    if each.default is not each.empty:
        text += f" = {default(each.default)}"
    return text


def signature(name: str, function: Callable[..., Any]) -> str:
    """A function as it is declared, without self; folded where it is long."""
    found = inspect.signature(function)
    parts = list[str]()
    named = False
    for each in found.parameters.values():
        if each.name == "self":
            continue
        if each.kind is each.KEYWORD_ONLY and not named:
            named = True
            parts.append("*")
        named = named or each.kind is each.VAR_POSITIONAL
        parts.append(parameter(each))
    result = found.return_annotation
    arrow = "" if result is found.empty else f" -> {annotation(result)}"
    line = f"{name}({', '.join(parts)}){arrow}"
    if len(line) <= WIDTH:
        return line
    inside = "\n".join(f"    {each}," for each in parts)
    return f"{name}(\n{inside}\n){arrow}"


def text_of(thing: object) -> str:
    """A docstring as a block of text: its own line breaks say what belongs together."""
    return inspect.getdoc(thing) or ""


def block(declared: str, text: str) -> str:
    """A declaration with its text, as `help()` shows it."""
    body = textwrap.indent(text, "    ", lambda line: bool(line.strip()))
    return f"```text\n{declared}\n{body}\n```\n"


def methods(cls: type, without: frozenset[str] = frozenset()) -> Iterator[str]:
    """The public methods and properties of a class, in the order of the class and its bases."""
    seen = set(without | INTERNAL)
    for base in cls.__mro__:
        if not base.__module__.startswith("pyosd"):
            continue
        for name in [*vars(base)]:
            getattr(cls, name)  # makes a method that is made when it is first used
            each = inspect.getattr_static(cls, name)
            if name.startswith("_") or name in seen or not text_of(each):
                continue
            seen.add(name)
            if isinstance(each, property) and each.fget:
                result = inspect.signature(each.fget).return_annotation
                yield block(f"{name}: {annotation(result)}", text_of(each))
            elif isinstance(each, classmethod | staticmethod):
                yield block(signature(name, each.__func__), text_of(each))
            elif inspect.isfunction(each):
                yield block(signature(name, each), text_of(each))


def fields(cls: type) -> str:
    """The declaration of a class of values: its fields, or its members."""
    if issubclass(cls, enum.Enum):
        values = [(each.name, each.value) for each in cls]
        shown = [
            f"{name} = {f'{value:#x}' if isinstance(value, int) else repr(str(value))}"
            for name, value in values
            if isinstance(value, int | str)
        ]
        return f"class {cls.__name__}:\n" + "\n".join(f"    {each}" for each in shown)
    if issubclass(cls, BaseException) or not (
        dataclasses.is_dataclass(cls) or hasattr(cls, "_fields")
    ):
        bases = ", ".join(each.__name__ for each in cls.__bases__ if each is not object)
        return f"class {cls.__name__}" + (f"({bases})" if bases else "")
    return "class " + signature(cls.__name__, cls).removesuffix(" -> None")


def section(title: str, things: list[str]) -> Iterator[str]:
    yield f"## {title}\n"
    yield from things


def declared(name: str, thing: Any) -> str:
    """A function, a class or a constant of pyosd."""
    if inspect.isclass(thing):
        return block(fields(thing), text_of(thing))
    if inspect.isfunction(thing):
        return block(signature(name, thing), text_of(thing))
    value = f"{thing:#x}" if isinstance(thing, int) else repr(thing)
    return block(f"{name} = {value}", CONSTANTS[name])


def of_module(prefix: str, module: Any) -> Iterator[str]:
    """The names that a module exports."""
    for name in sorted(module.__all__):
        thing = getattr(module, name)
        if inspect.isfunction(thing) or inspect.isclass(thing):
            yield declared(name, thing).replace(f"{name}(", f"{prefix}.{name}(", 1)


def class_section(
    title: str, cls: type, without: frozenset[str] = frozenset(), values: Iterable[type] = ()
) -> Iterator[str]:
    """A class with its methods, and the classes of their values."""
    text = block(f"class {cls.__name__}", text_of(cls))
    shown = [declared(each.__name__, each) for each in values]
    yield from section(title, [text, *methods(cls, without), *shown])


def of_functions() -> Iterator[str]:
    """Target.functions, and the values of its methods."""
    public = [getattr(functions, name) for name in sorted(functions.__all__)]
    values = [each for each in public if each not in (Functions, functions.AsyncFunctions)]
    yield from class_section("`Target.functions`: stored code", Functions, values=values)


def of_many() -> Iterator[str]:
    """pyosd.many() and its classes."""
    yield from section("Many targets: `pyosd.many`", [declared("many", pyosd.many)])
    for cls in (pyosd.Many, pyosd.Run, pyosd.Upkeep):
        yield block(f"class {cls.__name__}", text_of(cls))
        yield from methods(cls)


def manual() -> str:
    """The whole page."""
    from pyosd.dask import Near

    public = {name: getattr(pyosd, name) for name in pyosd.__all__}
    errors = {n: t for n, t in public.items() if inspect.isclass(t) and issubclass(t, Exception)}
    large = ("Target", "Job", "JobArray", "Executor", "Commands", "Many", "Run", "Upkeep", "attr")
    of_commands = frozenset(dir(pyosd.Commands))
    of_job = frozenset(dir(pyosd.Job)) - {"result", "cancel", "progress"}
    first = (
        "connect",
        "discover",
        "as_completed",
        "wait",
        "function",
        "attr",
        "ref",
        "ROOT",
        "ALL",
    )
    values = [
        declared(name, thing)
        for name, thing in sorted(public.items())
        if inspect.isclass(thing) and name not in (*errors, *large)
    ]
    parts = [
        INTRODUCTION,
        *section("Connect, wait, name objects", [declared(n, public[n]) for n in first]),
        *class_section("`Target`: sessions and jobs", pyosd.Target, of_commands),
        *class_section("`Target` and `Commands`: commands", pyosd.Commands),
        *class_section("`Target.fs`: files by their paths", FileSystem, values=[PathInfo]),
        *of_functions(),
        *class_section("`Job`", pyosd.Job),
        *class_section("`JobArray`", pyosd.JobArray, of_job),
        *class_section("`Executor`", pyosd.Executor),
        *of_many(),
        *class_section("Dask: `pyosd.dask`", Near),
        *section("Coroutines: `pyosd.aio`", [declared("aio.connect", aio.connect)]),
        DIFFERENCES,
        *section("Exceptions", [declared(n, t) for n, t in errors.items()]),
        *section("Values", values),
        *section("Files: `pyosd.files`", list(of_module("files", files))),
        *section("Tests: `pyosd.testing`", list(of_module("testing", testing))),
    ]
    return "\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    print(manual(), end="")
