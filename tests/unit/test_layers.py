# SPDX-License-Identifier: GPL-2.0-or-later
"""The dependency rule of target/README.md on every include and import; banned functions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduler.pools import POOL_KEYS

ROOT = Path(__file__).resolve().parents[2]

# folder of target/ -> folders whose headers it may include, besides its own
MAY_INCLUDE = {
    "base": set(),
    "wire": {"base"},
    "store": {"base", "wire"},
    "object": {"base", "wire", "store"},
    "security": {"base", "wire", "store", "object"},
    "exec": {"base", "wire", "object", "security"},
    "command": {"base", "wire", "object", "security", "exec"},
    "unit": {"base", "wire", "command"},
    "shim": {"base", "wire", "command", "unit"},
    "harness": {"base", "wire", "command", "unit"},
    # Stores and options for tests: nothing of the product may include it.
    "testing": {"base", "wire", "store", "unit"},
}
# Front ends and unit may use one header of command/: the request that travels the whole path.
COMMAND_CONTRACTS = {"command/request.h"}
# Opening a store and starting the job machinery happens where the pieces are put together.
ASSEMBLY = {"unit": {"store", "object", "security", "exec"}, "harness": {"store", "object"}}
# What C unit tests, and headers they share, may include too.
OF_TESTS = {"testing"}

# header -> the only files that may include it (style guide, point 7)
KEPT_IN_ONE_PLACE = {
    r"db\.h": r"target/store/attr_bdb\w*\.[ch]",
    r"Python\.h": r"(sandbox/python|pyosd/_core)/.*",
    r"seccomp\.h": r"sandbox/.*",
}
BANNED = (
    "alloca",
    "asctime",
    "atof",
    "atoi",
    "atol",
    "ctime",
    "gets",
    "gmtime",
    "localtime",
    "mktemp",
    "rand",
    "sprintf",
    "strcat",
    "strcpy",
    "strncat",
    "strncpy",
    "strtok",
    "tmpnam",
    "vfork",
    "vsprintf",
)
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.MULTILINE)
COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def c_files(*folders: str) -> list[Path]:
    return sorted(
        path for folder in folders for path in (ROOT / folder).rglob("*.[ch]") if path.is_file()
    )


def includes(path: Path) -> Iterator[tuple[str, str]]:
    for match in INCLUDE.finditer(path.read_text()):
        yield match.group(1), match.group(2)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def target_folder(path: Path) -> str:
    return path.relative_to(ROOT / "target").parts[0]


@pytest.mark.parametrize("path", c_files("target"), ids=name)
def test_target_includes_only_lower_folders(path: Path) -> None:
    folder = target_folder(path)
    allowed = MAY_INCLUDE[folder] | ASSEMBLY.get(folder, set()) | {folder}
    if path.name.startswith("test_"):
        allowed |= OF_TESTS | ({"object"} if folder == "testing" else set())
    for quote, header in includes(path):
        if quote != '"' or "/" not in header:
            continue
        if header in COMMAND_CONTRACTS and folder in ("exec", "unit", "shim", "harness"):
            continue
        assert header.split("/")[0] in allowed, f"{name(path)} includes {header}"


@pytest.mark.parametrize("path", c_files("sandbox", "pyosd/_core"), ids=name)
def test_other_trees_use_base_and_wire_alone(path: Path) -> None:
    for quote, header in includes(path):
        top = header.split("/")[0]
        if quote == '"' and top in MAY_INCLUDE:
            assert top in ("base", "wire"), f"{name(path)} includes {header}"


@pytest.mark.parametrize("path", c_files("target", "sandbox", "pyosd/_core"), ids=name)
def test_foreign_headers_stay_in_one_place(path: Path) -> None:
    for _, header in includes(path):
        for pattern, keepers in KEPT_IN_ONE_PLACE.items():
            if re.fullmatch(pattern, header):
                assert re.fullmatch(keepers, name(path)), f"{name(path)} includes {header}"


PRODUCT_FILES = [
    path
    for path in c_files("target", "sandbox", "pyosd/_core")
    if not path.name.startswith("test_")
]


@pytest.mark.parametrize("path", PRODUCT_FILES, ids=name)
def test_banned_functions(path: Path) -> None:
    code = COMMENT_OR_STRING.sub(" ", path.read_text())
    found = re.findall(rf"(?<![\w.>])({'|'.join(BANNED)})\s*\(", code)
    assert not found, f"{name(path)} calls {', '.join(sorted(set(found)))}"


@pytest.mark.parametrize("path", c_files("target", "sandbox", "pyosd/_core"), ids=name)
def test_c_file_opens_with_licence_and_purpose(path: Path) -> None:
    first, second = path.read_text().split("\n", 2)[:2]
    assert first == "/* SPDX-License-Identifier: GPL-2.0-or-later */"
    assert second.startswith(f"/* {path.name} -- "), f"{name(path)}: say what lives here"


# What a command is like stands in its row of the table: code for all commands names none of them.
GENERIC = (
    "target/command/authorise.c",
    "target/command/authorise_attributes.c",
    "target/command/copies.c",
    "target/command/dispatch.c",
    "target/command/phase.c",
    "target/command/prepare.c",
    "target/command/tracked.c",
    "target/command/validate.c",
    "target/security/check.c",
    *(name(path) for path in c_files("target/unit", "target/shim")),
)


@pytest.mark.parametrize("path", [ROOT / path for path in GENERIC], ids=name)
def test_code_for_all_commands_names_none(path: Path) -> None:
    if path.name.startswith("test_"):
        return
    code = COMMENT_OR_STRING.sub(" ", path.read_text())
    found = re.findall(r"\bOSD_SA_\w+", code)
    assert not found, f"{name(path)} names {', '.join(sorted(set(found)))}: make it a column"


# A byte of a CDB, or an address inside it.
CDB_BYTES = re.compile(r"(?<!uint8_t )\b(?:cdb|scb)\s*(?:\[|\+\s*\w)")
# The check values cover the bytes of the CDB; the embedded CDB is a field of its own.
READS_CDB_BYTES = {"target/security/check.c", "target/command/cmd_perform.c"}


@pytest.mark.parametrize(
    "path",
    [path for path in PRODUCT_FILES if "target/" in name(path) and target_folder(path) != "wire"],
    ids=name,
)
def test_bytes_of_a_cdb_are_read_in_wire_alone(path: Path) -> None:
    if name(path) in READS_CDB_BYTES:
        return
    code = COMMENT_OR_STRING.sub(" ", path.read_text())
    found = CDB_BYTES.findall(code)
    assert not found, f"{name(path)} reads bytes of a CDB: wire/cdb_peek.h does"


def python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module or ""


@pytest.mark.parametrize("path", python_files("pyosd", "scheduler"), ids=name)
def test_packages_do_not_import_one_another(path: Path) -> None:
    foreign = {"pyosd": "scheduler", "scheduler": "pyosd"}[path.relative_to(ROOT).parts[0]]
    for module in imported(path):
        assert module.split(".")[0] != foreign, f"{name(path)} imports {module}"


@pytest.mark.parametrize("path", python_files("pyosd", "scheduler"), ids=name)
def test_zeromq_stays_in_the_resource_manager(path: Path) -> None:
    if any(module.split(".")[0] == "zmq" for module in imported(path)):
        assert name(path) in ("scheduler/server.py", "scheduler/admin/client.py")


@pytest.mark.parametrize("path", python_files("pyosd", "scheduler"), ids=name)
def test_berkeley_db_stays_in_the_offline_tools(path: Path) -> None:
    if any(module.split(".")[0] in ("bsddb3", "berkeleydb") for module in imported(path)):
        assert name(path) == "scheduler/store_tools/bdb.py"


@pytest.mark.parametrize(
    "path", python_files("pyosd", "scheduler", "tests", "bench", "tools"), ids=name
)
def test_python_file_opens_with_licence_and_purpose(path: Path) -> None:
    text = path.read_text()
    if not text.strip():
        return
    assert text.startswith("# SPDX-License-Identifier: GPL-2.0-or-later\n"), name(path)
    assert ast.get_docstring(ast.parse(text)), f"{name(path)}: say what lives here"


SOURCES = [*c_files("target", "sandbox", "pyosd"), *python_files("pyosd", "scheduler")]


@pytest.mark.parametrize("path", SOURCES, ids=name)
def test_no_promises_left(path: Path) -> None:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        found = re.search(r"\b(TODO|FIXME|XXX|HACK)\b", line)
        assert not found, f"{name(path)}:{number}: {line.strip()}"


def test_one_list_of_engines() -> None:
    """What a configuration may name is what the sandboxes have."""
    names = re.findall(
        r"\bX\((\w+)\)$", (ROOT / "sandbox/engine_names.h").read_text(), re.MULTILINE
    )
    engine = next(key for key in POOL_KEYS if key.name == "engine")
    assert names and [engine.convert(each) for each in names] == names
    with pytest.raises(ValueError, match=f"^one of {', '.join(names)}$"):
        engine.convert("none of them")
