# SPDX-License-Identifier: GPL-2.0-or-later
"""One name of a class or of a type has one meaning in all Python packages."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("pyosd", "iosd_host", "iosd_secmgr")
SCRIPTS = (
    "pyosd/osd/"  # the package `osd`: scripts in a sandbox import it, and nothing else of pyosd
)

FACES = "scripts catch it as osd.X, programs as pyosd.X; the same refusal at either end"
ON_PURPOSE = {
    "Conflict": FACES,
    "Exists": FACES,
    "Invalid": FACES,
    "NoSpace": FACES,
    "NotEmpty": FACES,
    "NotFound": FACES,
    "OSDError": FACES,
    "PermissionDenied": FACES,
    "StorageError": FACES,
    "ObjectType": "the types of T10 OSD-2 at either end; scripts also see ABSENT",
}
"""Names that `osd` and one other module define, and the reason."""


def types_of(tree: ast.Module) -> Iterator[str]:
    """Classes at any depth, and types that a module defines by an assignment."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) and not is_variable(node) else []
        names = [each.id for each in targets if isinstance(each, ast.Name)]
        yield from (name for name in names if is_type_name(name))


def is_variable(node: ast.Assign) -> bool:
    """Whether it is a type variable, which means nothing outside its module."""
    return isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "TypeVar"


def is_type_name(name: str) -> bool:
    """CapitalWords; a constant is all capitals."""
    return name[:1].isupper() and not name.isupper()


@cache
def definitions() -> dict[str, list[str]]:
    """Name -> the files that define it, once for each definition."""
    found = defaultdict(list)
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for name in types_of(ast.parse(path.read_text())):
                found[name].append(str(path.relative_to(ROOT)))
    return found


def test_types_are_found() -> None:
    tree = ast.parse(
        "class A:\n    class B: ...\nCase = dict[str, int]\nMOST = 3\nAny1 = TypeVar('Any1')\n_x = 1\n"
    )
    assert [*types_of(tree)] == ["A", "B", "Case"]


def test_one_name_has_one_meaning() -> None:
    found = [
        f"{name}: {', '.join(places)}"
        for name, places in sorted(definitions().items())
        if len(places) > 1 and name not in ON_PURPOSE
    ]
    assert not found, "rename them for what they are:\n" + "\n".join(found)


def test_names_on_purpose_are_those_of_scripts_and_of_one_other() -> None:
    known = definitions()
    wrong = [
        f"{name}: {', '.join(known[name])}"
        for name in ON_PURPOSE
        if sorted(place.startswith(SCRIPTS) for place in known[name]) != [False, True]
    ]
    assert not wrong, "\n".join(wrong)
