# SPDX-License-Identifier: GPL-2.0-or-later
"""Print docs/osd-module.md, made from the docstrings of the package that scripts import.

A test compares the file with this output, and runs the examples in a sandbox and at a client.
``python -m tools.moduledoc >docs/osd-module.md`` updates it.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pyosd.osd as osd

__all__ = ["documented", "manual"]

INTRODUCTION = """\
# The module `osd`

This page lists the names that a script can import. `python -m tools.moduledoc` makes it from the
docstrings, which `help(osd)` also prints. [Scripts](scripts.md) describes the rules of all names,
and the differences between a sandbox and a client.

"""
EXAMPLES = """
In the examples `p` is a partition with one user object, `u`, that holds the three lines `one`,
`two` and `three`. The arguments are the words `one` and `two`, the zone is the root. A test runs
each example with a new `p`, in a sandbox and at a client (`use` only at a client; `url` is the URL
of the target).
"""
SECTIONS = {
    "The job": (
        "args",
        "zone",
        "job",
        "array",
        "array_index",
        "over",
        "progress",
        "result",
        "log",
        "call",
    ),
    "Data that pass through a function": ("stage", "StageInput"),
    "Changes that a function checks or follows": ("change", "ObjectChange"),
    "Objects": ("OSDObject", "root", "partition", "collection", "userobject"),
    "Paths": ("open", "glob", "lookup", "PathName"),
    "Bytes": ("Data",),
    "Attributes and queries": ("Value", "attr", "Condition", "query"),
    "Errors": (
        *("OSDError", "NotFound", "PermissionDenied", "Exists", "NotEmpty", "Conflict"),
        *("NoSpace", "Invalid", "StorageError", "Ended"),
    ),
    "At a client": ("use", "Transport", "Context"),
}

NOT_CALLED = (
    "ObjectChange",
    "Data",
    "StageInput",
    "Condition",
    "Transport",
    "OSDObject",
)  # scripts are given them

OWN_USE = ("Condition.queries",)


def variables() -> dict[str, str]:
    """Docstrings of the names that are no classes or functions: the text behind each in the source."""
    found: dict[str, str] = {}
    for node in ast.walk(ast.parse(inspect.getsource(osd))):
        body = getattr(node, "body", None) or []
        for each, after in pairwise(body):
            text = after.value if isinstance(after, ast.Expr) else None
            if isinstance(each, ast.AnnAssign) and isinstance(text, ast.Constant):
                assert isinstance(each.target, ast.Name)
                found[each.target.id] = inspect.cleandoc(str(text.value))
    return found


def signature(name: str, value: Any) -> str:
    """How it is called, in the words of its source."""
    function = value.__init__ if inspect.isclass(value) else value
    if not inspect.isfunction(function):
        return name
    (node,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    assert isinstance(node, ast.FunctionDef)
    for kind in (node.args.posonlyargs, node.args.args):
        if kind and kind[0].arg == "self":
            del kind[0]
    given = ast.unparse(node.args).removeprefix("/, ").removesuffix(", /").removeprefix("/")
    if inspect.isclass(value):
        return f"{name}({given})"
    return f"{name}({given}) -> {ast.unparse(node.returns) if node.returns else 'None'}"


def members(name: str, value: type) -> Iterator[tuple[str, str, str]]:
    """Methods and properties, inherited ones of classes without a name of their own included."""
    hidden = [each for each in value.__mro__ if each.__module__.startswith("pyosd.osd")]
    shown = [each for each in hidden if each is value or each.__name__ not in osd.__all__]
    attributes = {key: each for kind in reversed(shown) for key, each in vars(kind).items()}
    for key, each in attributes.items():
        if key.startswith("_") or f"{name}.{key}" in OWN_USE:
            continue
        if isinstance(each, property | functools.cached_property):
            yield f"{name}.{key}", f"{name}.{key}", inspect.getdoc(each) or ""
        elif inspect.isfunction(each):
            yield f"{name}.{key}", signature(f"{name}.{key}", each), inspect.getdoc(each) or ""


def heading(name: str, value: Any) -> str:
    """The heading of a name: its signature, or the base class of an exception."""
    if not inspect.isclass(value):
        return signature(f"osd.{name}", value)
    if issubclass(value, BaseException):
        kinds = [each.__name__ for each in value.__bases__]
        return f"osd.{name}({', '.join(f'osd.{k}' if k in osd.__all__ else k for k in kinds)})"
    if dataclasses.is_dataclass(value):
        return f"osd.{name}({', '.join(each.name for each in dataclasses.fields(value))})"
    if name in NOT_CALLED:
        return f"osd.{name}"
    return signature(f"osd.{name}", value)


def documented() -> Iterator[tuple[str, str, str, int]]:
    """Every public name: as people write it, its signature, its docstring; level of its heading."""
    plain = variables()
    for names in SECTIONS.values():
        for name in names:
            if name in plain:
                yield name, f"osd.{name}", plain[name], 3
                continue
            value = getattr(osd, name)
            yield name, heading(name, value), inspect.getdoc(value) or "", 3
            if inspect.isclass(value):
                for each, how, text in members(name, value):
                    yield each, how, text, 4


def markdown(text: str) -> str:
    """A docstring with its examples as blocks, and what it says of arguments and errors apart."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if line.startswith(">>> ") and not inside:
            inside = True
            lines.append("```python")
        elif inside and not line.strip():
            inside = False
            lines.append("```")
        line = line if inside else line.strip()
        for word in ("Args:", "Returns:", "Raises:"):
            if line.startswith(word):
                if lines and lines[-1]:
                    lines.append("")
                line = f"*{word}*{line.removeprefix(word)}"
        lines.append(line)
    return "\n".join([*lines, *(["```"] if inside else [])])


def prose(text: str) -> str:
    """The module's own docstring: its indented example as a block."""
    head, example, rest = text.partition("    import osd\n")
    code, _, after = rest.partition("\n\nThe classes")
    return f"{head}```python\n{textwrap.dedent(example + code)}\n```\n\nThe classes{after}"


def manual() -> str:
    """The whole page."""
    parts = [INTRODUCTION + prose(inspect.getdoc(osd) or "") + "\n" + EXAMPLES]
    starts = {names[0]: title for title, names in SECTIONS.items()}
    for name, written, text, level in documented():
        if level == 3 and name in starts:
            parts.append(f"## {starts[name]}\n")
        parts.append(f"{'#' * level} `{written}`\n\n{markdown(text)}\n")
    return "\n".join(parts)


if __name__ == "__main__":
    print(manual(), end="")
