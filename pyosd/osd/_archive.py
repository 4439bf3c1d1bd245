# SPDX-License-Identifier: GPL-2.0-or-later
"""Modules that travel with a script, imported from memory: nothing is unpacked, no file is made.

An archive is bytes: MAGIC, a line of JSON, then the main script and the files, one after the other.
The line: {"main": length, "root": text, "files": {path: length, ...}}.  Paths are relative, with `/`;
`root` precedes them in file names that tracebacks show, and is "" unless a zipapp was sent.  MAGIC
holds a zero byte, so no source text and no byte-code begins like it.  pyosd/jobs/modules.py makes archives.
Its length is limited like that of code (16 MiB). More memory comes from the job's own limit.
Here too: how scripts are compiled.
"""

from __future__ import annotations

import json
import linecache
import sys
from importlib.machinery import ModuleSpec, PathFinder
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, ModuleType

__all__ = [
    "MAGIC",
    "ArchivedModules",
    "compile_code",
    "enter",
    "leave",
    "lines_of",
    "open_archive",
    "show_code",
]

MAGIC = b"\0iosd-modules 1\n"
INIT = "/__init__.py"
MAIN = "__main__.py"
PLACE = "<modules>/"  # what __path__ of a package says: no folder, so that nothing else is found


class ArchivedModules:
    """The modules of an archive: finder and loader for the import system."""

    def __init__(self, archive: bytes, root: str, files: dict[str, tuple[int, int]]) -> None:
        self._archive, self._root, self._files = archive, root, files
        self._folders = {
            "/".join(parts[:end])
            for parts in (path.split("/") for path in files)
            for end in range(1, len(parts))
        }

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's spec; None: another finder may have it.

        A folder without __init__.py is a namespace, unless a module of that name is elsewhere.
        """
        del target
        place = name.replace(".", "/")
        for file, package in ((place + INIT, True), (place + ".py", False)):
            if file in self._files:
                # Its type is no importlib.abc.Loader: that takes long to import.
                spec = ModuleSpec(name, self, origin=self._root + file, is_package=package)  # type: ignore[arg-type]
                spec.has_location = True
                if package:
                    spec.submodule_search_locations = [PLACE + place]
                return spec
        if place not in self._folders or PathFinder.find_spec(name, path) is not None:
            return None
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [PLACE + place]
        return spec

    def create_module(self, spec: ModuleSpec) -> None:
        """The usual kind of module."""
        del spec

    def exec_module(self, module: ModuleType) -> None:
        """Run its code."""
        exec(self.get_code(module.__name__), module.__dict__)

    def get_code(self, name: str) -> CodeType:
        """Its code, compiled."""
        file = self._file_of(name)
        return compile(self._bytes(file), self._root + file, "exec", dont_inherit=True)

    def get_source(self, name: str) -> str:
        """Its text, for tracebacks."""
        return self._bytes(self._file_of(name)).decode(errors="replace")

    def is_package(self, name: str) -> bool:
        """Whether it has modules of its own."""
        return self._file_of(name).endswith(INIT)

    def get_filename(self, name: str) -> str:
        """The name that tracebacks show."""
        return self._root + self._file_of(name)

    def get_data(self, path: str) -> bytes:
        """Content of a file of the archive, as pkgutil.get_data() asks for it."""
        file = path.removeprefix(self._root)
        if file not in self._files:
            raise FileNotFoundError(2, "not in the archive that came with the script", path)
        return self._bytes(file)

    def _file_of(self, name: str) -> str:
        place = name.replace(".", "/")
        for file in (place + INIT, place + ".py"):
            if file in self._files:
                return file
        raise ImportError(f"no module {name!r} came with the script", name=name)

    def _bytes(self, file: str) -> bytes:
        at, length = self._files[file]
        return self._archive[at : at + length]


def open_archive(archive: bytes, name: str) -> tuple[bytes, str, ArchivedModules]:
    """The main script, the name that tracebacks show for it, and the modules.

    Args: name: the script's own.
    Raises: ValueError: it is damaged.
    """
    end = archive.find(b"\n", len(MAGIC))
    try:
        head = json.loads(archive[len(MAGIC) : end])
        at, root = end + 1, head["root"]
        main = archive[at : at + length_of(head["main"])]
        at += head["main"]
        files: dict[str, tuple[int, int]] = {}
        for path, length in head["files"].items():
            files[path] = at, length_of(length)
            at += length
        root + ""
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        raise ValueError("the archive of modules is damaged") from None
    if end < 0 or at != len(archive):
        raise ValueError("the archive of modules is cut short, or bytes follow it")
    return main, root + MAIN if root else name, ArchivedModules(archive, root, files)


def length_of(number: object) -> int:
    """A length; negative ones and all else are none."""
    if type(number) is not int or number < 0:
        raise ValueError
    return number


def enter(archive: bytes, name: str) -> tuple[bytes, str]:
    """Make its modules importable, before those of files.  Returns, Raises: as open_archive()."""
    main, name, modules = open_archive(archive, name)
    at = sys.meta_path.index(PathFinder) if PathFinder in sys.meta_path else len(sys.meta_path)
    sys.meta_path.insert(at, modules)
    return main, name


def leave() -> None:
    """The next job does not find them."""
    sys.meta_path[:] = [each for each in sys.meta_path if type(each) is not ArchivedModules]


def compile_code(code: bytes, name: str) -> CodeType:
    """Compile; the source stays where tracebacks look for it."""
    show_code(name, len(code), lines_of(code))
    return compile(code, name, "exec", dont_inherit=True)


def lines_of(code: bytes) -> list[str]:
    """The lines of source text."""
    return code.decode(errors="replace").splitlines(keepends=True)


def show_code(name: str, length: int, lines: list[str]) -> None:
    """Put source text where tracebacks look for it."""
    linecache.cache[name] = (length, None, lines, name)
