# SPDX-License-Identifier: GPL-2.0-or-later
"""Modules of the user's own, packed into one archive that travels with the script's code.

Lives here: which files of a folder travel, and the archive's bytes.
Not here: how a script imports from it (osd/_archive.py), how code is compressed (source.py).
"""

from __future__ import annotations

import json
import os
import stat
import warnings
from collections.abc import Iterable, Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import zipfile

__all__ = [
    "CODE_MOST",
    "Modules",
    "PathLike",
    "check_syntax",
    "is_zipapp",
    "modules_of",
    "pack_zipapp",
]

PathLike: TypeAlias = str | os.PathLike[str]

CODE_MOST = 16 << 20  # bytes of code and modules together, before compression
FILES_MOST = 10_000
ZIP_MOST = 4 * CODE_MOST  # bytes of a .zip file, with what of it does not travel
ARCHIVES = (".pyz", ".zip")
LEFT_OUT = ("__pycache__",)
ENCRYPTED = 0x1  # bit of a ZIP entry's flags


class Modules:
    """Modules to send with jobs, read and checked once for all of them.

    Args: paths: each a module (FILE.py), a package (a folder with __init__.py), a folder to import
        from (any other), or a .pyz or .zip file to import from.
    Raises: ValueError: they cannot be sent; the text says why.  SyntaxError: one of them does not
        compile.  OSError: one cannot be read.
    """

    def __init__(self, *paths: PathLike) -> None:
        self.root = ""
        self._files: dict[str, bytes] = {}
        self._left = CODE_MOST
        for path in map(Path, paths):
            found = from_zip(path) if path.suffix in ARCHIVES else from_path(path)
            for name, size, read in found:
                self._add(name, size, read, path)

    @property
    def names(self) -> list[str]:
        """Of the modules and packages that can be imported."""
        return sorted({name.partition("/")[0].removesuffix(".py") for name in self._files})

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(map(len, self._files.values()))

    def take(self, more: Modules, path: Path) -> None:
        """Add those of another.  path: for the error.  Raises: ValueError: one is there twice."""
        if twice := self._files.keys() & more._files.keys():
            raise ValueError(f"{path}: '{min(twice)}' is there twice")
        self._files |= more._files

    def archive(self, main: bytes | None = None) -> bytes:
        """The archive with this script in it; None: __main__.py is the script.

        Raises: ValueError: it is too long, or has no __main__.py.
        """
        from pyosd.osd._archive import MAGIC, MAIN

        files = dict(self._files)
        if main is None:
            main = files.pop(MAIN, None)
        if main is None:
            raise ValueError(f"{self.root.rstrip('/')} has no {MAIN}")
        lengths = {name: len(content) for name, content in files.items()}
        head = json.dumps({"main": len(main), "root": self.root, "files": lengths})
        archive = b"".join((MAGIC, head.encode(), b"\n", main, *files.values()))
        if len(archive) > CODE_MOST:
            raise ValueError(self._too_long(len(archive)))
        return archive

    def _add(self, name: str, size: int, read: Reader, path: Path) -> None:
        check_name(name, path)
        if name in self._files:
            raise ValueError(f"{path}: '{name}' is there twice")
        if len(self._files) == FILES_MOST:
            raise ValueError(f"{path} has more than {FILES_MOST} files, which is the limit")
        self._left -= size
        if self._left < 0:
            raise ValueError(self._too_long(CODE_MOST - self._left, (size, name)))
        content = read(size)
        if name.endswith(".py"):
            check_syntax(content, name)
        self._files[name] = content

    def _too_long(self, size: int, *more: tuple[int, str]) -> str:
        sizes = [(len(each), name) for name, each in self._files.items()]
        largest, name = max([*more, *sizes], default=(size, "the script"))
        return (
            f"the code and its modules have at least {shown(size)}, and the limit is "
            f"{shown(CODE_MOST)}; the largest is {name} with {shown(largest)}"
        )


def shown(size: int) -> str:
    """Bytes for people."""
    return f"{size / (1 << 20):.1f} MiB"


class Reader:
    """Reads one file, at most as much as was counted."""

    def __init__(self, path: Path, archive: zipfile.ZipFile | None = None, name: str = "") -> None:
        self._path, self._archive, self._name = path, archive, name

    def __call__(self, size: int) -> bytes:
        try:
            with self._archive.open(self._name) if self._archive else self._path.open("rb") as file:
                content = file.read(size + 1)
        except Exception as error:
            if not self._archive:
                raise
            raise ValueError(f"{self._path}: cannot read '{self._name}': {error}") from None
        if len(content) != size:
            raise ValueError(f"{self._name or self._path} is not as long as it says")
        return content


Found: TypeAlias = tuple[str, int, Reader]  # path in the archive, bytes, how to read it


def from_path(path: Path) -> Iterator[Found]:
    """A module, a package, or all that is in a folder.  Raises: ValueError; OSError."""
    if path.is_dir():
        package = (path / "__init__.py").exists()
        before = f"{path.resolve().name}/" if package else ""
        for file in walk(path):
            status = file.stat()
            if not stat.S_ISREG(status.st_mode):
                raise ValueError(f"{file} is no ordinary file")
            yield before + file.relative_to(path).as_posix(), status.st_size, Reader(file)
    elif path.suffix == ".py":
        yield path.name, path.stat().st_size, Reader(path)
    else:
        path.stat()  # whether it is there at all
        raise ValueError(f"{path} is no folder, no .py file and no {' or '.join(ARCHIVES)} file")


def walk(folder: Path) -> Iterator[Path]:
    """The files of a folder that travel: modules, and the data that lies in packages.

    Raises: OSError: a folder cannot be read.
    """
    packages: set[str] = set()
    for parent, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(
            each for each in folders if each not in LEFT_OUT and not each.startswith(".")
        )
        in_package = "__init__.py" in names or str(Path(parent).parent) in packages
        if in_package:
            packages.add(parent)
        for name in sorted(names):
            if name.startswith(".") or name.endswith(".pyc"):
                continue
            if name.endswith((".py", *EXTENSION_SUFFIXES)) or in_package:
                yield Path(parent, name)


def unreadable(error: OSError) -> None:
    """A folder that is left out in silence would be an ImportError at the target."""
    raise error


def from_zip(path: Path) -> Iterator[Found]:
    """The entries of a .pyz or .zip file.  Raises: ValueError; OSError."""
    import zipfile  # takes as long to import as all of pyosd's own modules

    if path.stat().st_size > ZIP_MOST:
        raise ValueError(f"{path} is longer than {ZIP_MOST >> 20} MiB, which is the limit")
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is no zip archive: {error}") from None
    with archive:
        for each in archive.infolist():
            if each.is_dir() or each.filename.endswith(".pyc") or hidden(each.filename):
                continue
            if each.flag_bits & ENCRYPTED:
                raise ValueError(f"{path}: '{each.filename}' is encrypted")
            yield each.filename, each.file_size, Reader(path, archive, each.filename)


def hidden(name: str) -> bool:
    """Whether a file's name, or a folder's above it, says that it is not meant to be seen."""
    return any(part.startswith(".") and part.strip(".") for part in name.split("/"))


def check_name(name: str, path: Path) -> None:
    """Raises: ValueError: a file of this name cannot travel."""
    parts = name.split("/")
    if not all(parts) or {".", ".."} & {*parts} or "\\" in name or not name.isprintable():
        raise ValueError(f"{path}: {name!r} is no name for a file that travels")
    if name.endswith((*EXTENSION_SUFFIXES, ".so", ".pyd")):
        raise ValueError(
            f"{path}: '{name}' is a compiled module, which cannot travel; the package set of a pool "
            "can have it (osd pool build)"
        )
    if parts[0].removesuffix(".py") == "osd":
        raise ValueError(f"{path}: 'osd' is the module through which scripts reach objects")


def check_syntax(source: bytes, name: str) -> None:
    """Compile a script or a module.

    Raises: SyntaxError: it does not compile here, and so neither in a sandbox of the same Python.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, name, "exec", dont_inherit=True)
    except ValueError as error:  # zero bytes, until Python 3.12
        raise SyntaxError(str(error), (name, None, None, None)) from None
    except (MemoryError, RecursionError):
        return  # the target's interpreter may have more room


def is_zipapp(path: PathLike) -> bool:
    """Whether the path of a zipapp was given."""
    return Path(path).suffix == ".pyz"


def pack_zipapp(path: PathLike, more: Modules | None = None) -> bytes:
    """The archive of a zipapp; `more` modules may go with it.

    Raises: ValueError: it has no __main__.py, or one of them twice; as Modules().
    """
    found = Modules(path)
    found.root = f"{Path(path).name}/"
    if more is not None:
        found.take(more, Path(path))
    return found.archive()


def modules_of(given: Modules | PathLike | Iterable[PathLike]) -> Modules:
    """Modules as they are, one path of them, or several.  Raises: as Modules()."""
    if isinstance(given, Modules):
        return given
    return Modules(given) if isinstance(given, str | os.PathLike) else Modules(*given)
