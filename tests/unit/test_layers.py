# SPDX-License-Identifier: GPL-2.0-or-later
"""The dependency rule of target/README.md on every include and import; banned functions.

Each rule is one item, which lists every file that breaks it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache, partial
from pathlib import Path

import pytest

from iosd_host.config.pools import POOL_KEYS
from tools import structure

ROOT = Path(__file__).resolve().parents[2]

# folder of target/ -> folders whose headers it may include, besides its own
MAY_INCLUDE = {
    "base": set(),
    "wire": {"base"},
    "store": {"base", "wire"},
    "object": {"base", "wire", "store"},
    "security": {"base", "wire", "store", "object"},
    "function": {"base", "wire", "object", "security"},
    "exec": {"base", "wire", "object", "security", "function"},
    "command": {"base", "wire", "object", "security", "function", "exec"},
    "unit": {"base", "wire", "command"},
    "shim": {"base", "wire", "command", "unit"},
    "harness": {"base", "wire", "command", "unit"},
    "verify": {"base"},
    # Stores and options for tests: nothing of the product may include it.
    "testing": {"base", "wire", "store", "unit"},
}
# The rooms of exec/, from the lowest up -> the rooms that each may include.  A room has one header, which
# is its manual; only those named here have another.  Files in exec/ itself stand above all rooms.
EXEC_ROOMS = {
    "record": set(),
    "queue": set(),
    "advice": set(),
    "sandbox": set(),
    "used": set(),
    "session": {"record", "used"},
    "job": {"record", "queue"},
    "pool": {"record", "queue", "advice", "sandbox", "job"},
    "run": {"record", "queue", "sandbox", "used", "session", "job", "pool"},
    "flow": {"record", "queue", "job", "pool"},
    "tell": {"record", "queue", "sandbox", "used", "session", "job", "pool", "run", "flow"},
}
EXEC_HEADERS = {
    **{room: {f"{room}.h"} for room in EXEC_ROOMS},
    "job": {"job.h", "table.h"},
    "record": {"record.h", "reasons.h", "format.h"},
    "sandbox": {"sandbox.h", "reuse.h", "script_turns.h"},
}
# Headers of exec/ for others, implemented in a subfolder.
EXEC_CONTRACTS = {
    "pool": {"exec/admin.h"},
    "tell": {"exec/exec.h"},
}
# The layers of object/, from the lowest up; a file calls files of its own layer and of lower ones.
# "kept" and "data" stand side by side.
OBJECT_LAYERS = {
    "formats": {"attr_table", "copy_extents", "index_key", "key_list", "range_lock", "record"},
    "store": {
        *("created", "heads", "index_keep", "methods", "objects", "partition", "partition_record"),
        *("quota", "run", "space", "tally", "txn_store", "upkeep"),
    },
    "memory": {
        "cache",
        "data_version",
        "entry",
        "hook_mask",
        "name_cache",
        "source",
        "sums",
        "txn",
        "txn_run",
        "unsynced",
        "version",
        "view_members",
        "view_tree",
    },
    "kept": {
        "attr_charge",
        "attr_class",
        "attr_stored",
        "attr_time",
        "due",
        "hooks",
        "stack",
        "view_list",
    },
    "data": {"allocated", "change", "data", "grow", "pin", "resize", "settle", "share"},
    "objects": {
        *(
            "collection",
            "draft",
            "key_record",
            "list",
            "membership",
            "name_find",
            "name_inside",
            "name_walk",
            "names",
            "object",
            "object_record",
        ),
        *("object_removal", "partition_create", "tracking", "view_follow", "view_objects"),
    },
    "attributes": {
        *("attr", "attr_page", "attr_set", "attr_std", "charged_page", "copy", "figures_page"),
        *("head_page", "store_page", "version_page"),
    },
    "answers": {"extents", "facts", "index", "query", "query_index"},
    "upkeep": {
        *("check", "check_index", "check_object", "head_move", "index_build", "maintenance"),
        *("mover", "scrub", "sums_page"),
    },
    "assembly": {"open", "recovery"},
}
# Front ends and unit may use one header of command/: the request that travels the whole path.
COMMAND_CONTRACTS = {"command/request.h"}
# Opening a store and starting the job machinery happens where the pieces are put together.
ASSEMBLY = {
    "unit": {"store", "object", "security", "function", "exec"},
    "harness": {"store", "object"},
}
# Headers that C unit tests and their shared headers may include too.
OF_TESTS = {"testing"}

# header -> the only files that may include it (style guide, point 7)
KEPT_IN_ONE_PLACE = {
    r"db\.h": r"target/(store/attr_bdb\w*|verify/\w+)\.[ch]",
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


@cache
def text_of(path: Path) -> str:
    return path.read_text()


def code_of(path: Path) -> str:
    """The text of a C file without comments and strings."""
    return COMMENT_OR_STRING.sub(" ", text_of(path))


def includes(path: Path) -> Iterator[tuple[str, str]]:
    for match in INCLUDE.finditer(text_of(path)):
        yield match.group(1), match.group(2)


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def target_folder(path: Path) -> str:
    return path.relative_to(ROOT / "target").parts[0]


C_FILES = c_files("target", "sandbox", "pyosd/_core")
PRODUCT_FILES = [path for path in C_FILES if not path.name.startswith("test_")]


def judge(files: Iterable[Path], offence: Callable[[Path], str | None]) -> None:
    """Fail with a line for each file that `offence` has something to say about."""
    checked, found = 0, []
    for path in files:
        checked += 1
        if said := offence(path):
            found.append(f"{name(path)}: {said}")
    assert checked, "the rule applies to no file"
    assert not found, "\n".join(found)


def forbidden_include(path: Path) -> str:
    """Headers of folders that a file of target/ may not include."""
    folder = target_folder(path)
    allowed = MAY_INCLUDE[folder] | ASSEMBLY.get(folder, set()) | {folder}
    if path.name.startswith("test_"):
        allowed |= OF_TESTS | ({"object"} if folder == "testing" else set())
    contracts = COMMAND_CONTRACTS if folder in ("exec", "unit", "shim", "harness") else set()
    return ", ".join(
        f"includes {header}"
        for quote, header in includes(path)
        if quote == '"' and "/" in header
        if header not in contracts and header.split("/")[0] not in allowed
    )


def above_its_room(path: Path) -> str:
    """The headers of rooms of exec/ that this file of a room may not include."""
    room, *rest = path.relative_to(ROOT / "target" / "exec").parts
    if not rest or path.name.startswith("test_"):
        return ""
    allowed = {f"exec/{below}/" for below in EXEC_ROOMS[room] | {room}}
    return ", ".join(
        header
        for quote, header in includes(path)
        if quote == '"'
        and header.startswith("exec/")
        and header not in EXEC_CONTRACTS.get(room, ())
        and not header.startswith(tuple(allowed))
    )


def test_rooms_of_exec_include_only_lower_rooms() -> None:
    judge(c_files("target/exec"), above_its_room)


def test_object_is_built_in_layers() -> None:
    layers = {
        f"target/object/{file}.c": layer for layer, files in OBJECT_LAYERS.items() for file in files
    }
    order = list(OBJECT_LAYERS)
    room = next(
        each for each in structure.folders(structure.read(ROOT)) if each.name == "target/object"
    )
    calls = structure.calls_of(room.modules)
    assert set(calls) == set(layers)
    above = [
        f"{caller} calls {called}"
        for caller in calls
        for called in calls[caller]
        if order.index(layers[called]) > order.index(layers[caller])
        or (layers[caller], layers[called]) == ("data", "kept")
    ]
    assert not above, "\n".join(sorted(above))
    assert not structure.largest_cycle(room)


def test_rooms_of_exec_have_one_header() -> None:
    for room, headers in EXEC_HEADERS.items():
        found = {path.name for path in (ROOT / "target" / "exec" / room).glob("*.h")}
        assert {each for each in found if not each.startswith("test_")} == headers, room
    folders = {path.name for path in (ROOT / "target" / "exec").iterdir() if path.is_dir()}
    assert folders == set(EXEC_ROOMS)


def test_other_trees_use_base_and_wire_alone() -> None:
    others = set(MAY_INCLUDE) - {"base", "wire"}
    judge(
        c_files("sandbox", "pyosd/_core"),
        lambda path: ", ".join(
            f"includes {header}"
            for quote, header in includes(path)
            if quote == '"' and header.split("/")[0] in others
        ),
    )


def test_foreign_headers_stay_in_one_place() -> None:
    judge(
        C_FILES,
        lambda path: ", ".join(
            f"includes {header}"
            for _, header in includes(path)
            for pattern, keepers in KEPT_IN_ONE_PLACE.items()
            if re.fullmatch(pattern, header) and not re.fullmatch(keepers, name(path))
        ),
    )


def test_banned_functions() -> None:
    banned = re.compile(rf"(?<![\w.>])({'|'.join(BANNED)})\s*\(")
    judge(PRODUCT_FILES, lambda path: ", ".join(sorted(set(banned.findall(code_of(path))))))


def test_internal_failures_are_logged() -> None:
    """OSD_E_INTERNAL refers to the log: only `osd_internal()`, which writes the cause there, returns it."""
    allowed = {"target/base/status.c", "target/base/status.h", "target/command/sense_table.c"}
    judge(
        PRODUCT_FILES,
        lambda path: (
            "use osd_internal()"
            if "OSD_E_INTERNAL" in code_of(path) and name(path) not in allowed
            else None
        ),
    )


def test_c_files_open_with_licence_and_purpose() -> None:
    def offence(path: Path) -> str | None:
        first, second = text_of(path).split("\n", 2)[:2]
        if first != "/* SPDX-License-Identifier: GPL-2.0-or-later */":
            return "the first line is not the licence"
        return None if second.startswith(f"/* {path.name} -- ") else "say what lives here"

    judge(C_FILES, offence)


# A command's properties stand in its row of the table: code for all commands names no command.
GENERIC = (
    "target/command/authorise.c",
    "target/command/authorise_attributes.c",
    "target/command/copies.c",
    "target/command/dispatch.c",
    "target/command/phase.c",
    "target/command/prepare.c",
    "target/command/tracked.c",
    "target/command/tracked_run.c",
    "target/command/validate.c",
    "target/security/check.c",
    *(name(path) for path in c_files("target/unit", "target/shim")),
)


def test_code_for_all_commands_names_none() -> None:
    judge(
        [ROOT / path for path in GENERIC if not Path(path).name.startswith("test_")],
        lambda path: ", ".join(sorted(set(re.findall(r"\bOSD_SA_\w+", code_of(path))))),
    )


def test_command_names_no_page_of_exec() -> None:
    """It asks the providers of pages for what they can do (object/page_provider.h)."""
    judge(
        c_files("target/command"),
        lambda path: ", ".join(
            sorted(set(re.findall(r"\bOSD_PAGE_(?:JOB|EXEC)_\w+", code_of(path))))
        ),
    )


# The dialect of OSC's initiator: the option, the request that carries it, and what it changes.
OF_OSC = {
    *(f"target/command/{each}" for each in ("dispatch.h", "request.h", "prepare.c", "osc.c")),
    *(f"target/unit/{each}" for each in ("config.c", "config.h", "unit_open.c")),
    *(f"target/wire/{each}" for each in ("cdb.c", "cdb.h", "cdb_osc.c")),
}


def test_dialect_of_osc_stays_in_one_place() -> None:
    others = [path for path in PRODUCT_FILES if name(path) not in OF_OSC]
    judge(others, lambda path: "use command/osc.h" if "osc_compat" in code_of(path) else None)


# A byte of a CDB, or an address inside it.
CDB_BYTES = re.compile(r"(?<!uint8_t )\b(?:cdb|scb)\s*(?:\[|\+\s*\w)")
# The check values cover the bytes of the CDB; the embedded CDB is a field of its own.
READS_CDB_BYTES = {"target/security/check.c", "target/command/cmd_perform.c"}


def test_bytes_of_a_cdb_are_read_in_wire_alone() -> None:
    files = [
        path
        for path in PRODUCT_FILES
        if name(path).startswith("target/") and target_folder(path) != "wire"
        if name(path) not in READS_CDB_BYTES
    ]
    judge(files, lambda path: "use wire/cdb_peek.h" if CDB_BYTES.search(code_of(path)) else None)


def python_files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


@cache
def imported(path: Path) -> frozenset[str]:
    """Names of the modules that a Python file imports."""
    found = set()
    for node in ast.walk(ast.parse(text_of(path))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add(node.module or "")
    return frozenset(found)


PYTHON_FILES = python_files("pyosd", "iosd_host", "iosd_secmgr")


def imports_one_of(path: Path, packages: Collection[str]) -> str:
    found = sorted(module for module in imported(path) if module.split(".")[0] in packages)
    return f"imports {', '.join(found)}" if found else ""


def test_packages_do_not_import_one_another() -> None:
    forbidden = {
        "pyosd": ("iosd_host", "iosd_secmgr"),
        "iosd_host": ("iosd_secmgr",),
        "iosd_secmgr": ("iosd_host",),
    }
    for package, others in forbidden.items():
        judge(python_files(package), partial(imports_one_of, packages=others))


def test_zeromq_stays_in_the_resource_manager() -> None:
    keepers = {"iosd_host/manager/server.py", "iosd_host/manager/client.py"}
    others = [path for path in PYTHON_FILES if name(path) not in keepers]
    judge(others, lambda path: imports_one_of(path, ["zmq"]))


def test_berkeley_db_stays_in_the_offline_tools() -> None:
    others = [path for path in PYTHON_FILES if name(path) != "iosd_host/store_tools/opening/bdb.py"]
    judge(others, lambda path: imports_one_of(path, ["bsddb3", "berkeleydb"]))


def test_python_files_open_with_licence_and_purpose() -> None:
    def offence(path: Path) -> str | None:
        text = text_of(path)
        if not text.startswith("# SPDX-License-Identifier: GPL-2.0-or-later\n"):
            return "the first line is not the licence"
        return None if docstring.match(text) else "say what lives here"

    docstring = re.compile(r'(?:#.*\n|\n)*[rR]?"""\s*[^\s"]')
    files = python_files("pyosd", "iosd_host", "iosd_secmgr", "tests", "bench", "tools")
    judge([path for path in files if text_of(path).strip()], offence)


def test_no_promises_left() -> None:
    promise = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    judge(
        [*c_files("target", "sandbox", "pyosd"), *PYTHON_FILES],
        lambda path: "; ".join(
            f"line {number}: {line.strip()}"
            for number, line in enumerate(text_of(path).splitlines(), 1)
            if promise.search(line)
        ),
    )


def test_one_list_of_engines() -> None:
    """A configuration can name exactly the engines that the sandboxes have."""
    names = re.findall(r"\bX\((\w+)\)", (ROOT / "sandbox/engine_names.h").read_text())
    engine = next(key for key in POOL_KEYS if key.name == "engine")
    assert names and [engine.convert(each) for each in names] == names
    with pytest.raises(ValueError, match=f"^one of {', '.join(names)}$"):
        engine.convert("none of them")
