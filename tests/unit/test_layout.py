# SPDX-License-Identifier: GPL-2.0-or-later
"""How the Python packages are laid out: sizes of folders, cycles of imports, the order of folders.

Each rule is one item, which lists every offender.  All imports count: those for type checkers and those
inside functions too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES_MAX = 16
PACKAGES = ("pyosd", "iosd_host", "iosd_secmgr")
ROW = re.compile(r"^\| ((?:`[\w/]+`(?:, )?)+) \|", re.MULTILINE)

Imports = dict[str, frozenset[str]]


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules(package: str) -> dict[str, Path]:
    """Modules of a package; a compiled one has a .pyi file."""
    found = [*(ROOT / package).rglob("*.py"), *(ROOT / package).glob("*.pyi")]
    return {module_of(path): path for path in found}


def imported_by(name: str, path: Path) -> Iterator[str]:
    """Imports of the file, as full names: `from a import b` can be a.b or a."""
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


@cache
def imports(package: str) -> Imports:
    """Module -> the modules of the same package that it imports."""
    known = modules(package)
    found = {}
    for name, path in known.items():
        wanted = {
            each if each in known else each.rpartition(".")[0] for each in imported_by(name, path)
        }
        found[name] = frozenset((wanted & known.keys()) - {name})
    return found


def cycles(graph: Imports) -> Iterator[set[str]]:
    """One cycle after the other, each without the last module of those before it."""
    left = dict(graph)
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            cycle = error.args[1]
            yield set(cycle)
            left = {name: each - {cycle[0]} for name, each in left.items() if name != cycle[0]}
        else:
            return


def test_cycles_are_found() -> None:
    none: frozenset[str] = frozenset()
    graph = {"a": frozenset("b"), "b": frozenset("c"), "c": frozenset("b"), "d": none}
    assert list(cycles(graph)) == [{"b", "c"}]
    assert not [*cycles({"a": frozenset("b"), "b": none})]


def test_no_folder_is_a_heap() -> None:
    folders = {path.parent for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    sizes = {folder: len(list(folder.glob("*.py"))) for folder in sorted(folders)}
    found = [
        f"{folder.relative_to(ROOT)}: {size} files"
        for folder, size in sizes.items()
        if size > FILES_MAX
    ]
    assert not found, "\n".join(found)


def test_imports_make_no_cycles() -> None:
    found = [
        " <-> ".join(sorted(cycle)) for package in PACKAGES for cycle in cycles(imports(package))
    ]
    assert not found, "\n".join(found)


def rows(package: str) -> dict[str, int]:
    """Part of a package -> its row in the table of its README.md, the lowest first."""
    text = (ROOT / package / "README.md").read_text()
    found = {}
    for row, match in enumerate(ROW.finditer(text)):
        for part in re.findall(r"`([\w/]+)`", match.group(1)):
            name = package if part == package else f"{package}.{part.replace('/', '.')}"
            found[name] = row
    return found


def row_of(module: str, table: dict[str, int]) -> int | None:
    """The row of the part that a module belongs to: the longest name that leads to it."""
    package = module.partition(".")[0]
    name = module
    while name != package and name not in table:
        name = name.rpartition(".")[0]
    return table[name] if name != package or module == package else None


def test_every_part_has_a_row() -> None:
    for package in PACKAGES:
        table, known = rows(package), modules(package)
        assert [name for name in known if row_of(name, table) is None] == []
        assert sorted(set(table) - known.keys()) == []


def test_parts_import_only_from_rows_above() -> None:
    found = []
    for package in PACKAGES:
        table = rows(package)
        for name, wanted in imports(package).items():
            own = row_of(name, table) or 0
            found += [
                f"{name} imports {each}" for each in wanted if (row_of(each, table) or 0) > own
            ]
    assert not found, "\n".join(sorted(found))
