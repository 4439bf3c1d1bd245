# SPDX-License-Identifier: GPL-2.0-or-later
"""Package sets: the packages that scripts of a pool can import beside the standard library.

`build` makes one with pip, once, on the target's host: a folder whose name is its id, byte-compiled,
owned by the user who ran it, written by nobody afterwards, with a manifest that names every file with its
SHA-256 (pyosd/osd/_engine/packages.py checks it, in the zygote, before anything of it is imported).

    <sets>/<name>/<name>-<16 digits>/manifest.json, lib/...
    <sets>/<name>/current -> <name>-<16 digits>
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import importlib.metadata

__all__ = ["DEFAULT_SETS", "PackageSet", "PackagesError", "build", "find", "seal"]

DEFAULT_SETS = Path("/var/lib/iosd-packages")
MANIFEST = "manifest.json"
SCHEMA = "iosd.packages/1"
CURRENT = "current"
DIGEST_SHOWN = 16
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
TESTS = re.compile(r"(^|\.)_?tests?(\.|$)|_tests?$")
INSIDE = "/iosd/packages/lib"  # where sandboxes see it (sandbox/root.h)


class PackagesError(Exception):
    """A set cannot be made, or is not there; the text says why and what to do."""


@dataclass(frozen=True)
class PackageSet:
    """A set on this host.

    Attributes:
        id: its name, a hyphen, and the start of its manifest's SHA-256; the name of its folder, too.
        folder: holds manifest.json and lib/.
    """

    id: str
    folder: Path

    def manifest(self) -> dict[str, Any]:
        """Contents of manifest.json.  Raises: PackagesError."""
        try:
            manifest: dict[str, Any] = json.loads((self.folder / MANIFEST).read_bytes())
        except OSError as error:
            raise PackagesError(f"{self.folder} is no package set: {error.strerror}") from None
        except ValueError:
            raise PackagesError(f"{self.folder / MANIFEST} is damaged: build it again") from None
        return manifest


def build(
    name: str,
    requirements: Sequence[str],
    *,
    sets: Path = DEFAULT_SETS,
    files: Sequence[Path] = (),
    wheels: Path | None = None,
    preload: Sequence[str] = (),
) -> PackageSet:
    """Make a set and let `current` name it; earlier ones stay as they are.

    Args:
        name: of the set: letters, digits, `_`, `.` and `-`.
        requirements, files: what pip is to install; at least one.
        sets: the folder of all sets.
        wheels: take wheels from this folder only, and nothing from the network.
        preload: modules to import ahead of need; none: the packages asked for by name.

    Raises:
        PackagesError: pip fails, or the folder cannot be written.
    """
    if not NAME.fullmatch(name) or name == CURRENT:
        raise PackagesError(f"'{name}' is no name for a set: letters, digits, '_', '.' and '-'")
    if not requirements and not files:
        raise PackagesError("name at least one package, or a file of requirements")
    home = sets / name
    try:
        home.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=".building-", dir=home))
    except OSError as error:
        raise PackagesError(f"cannot write to {home}: {error.strerror}") from None
    try:
        lib = work / "lib"
        install(lib, requirements, files, wheels)
        return seal(name, work, home, set(named(requirements, files)), preload)
    finally:
        shutil.rmtree(work, ignore_errors=True)
        with contextlib.suppress(OSError):  # it holds sets, unless the first one has failed
            home.rmdir()


def seal(
    name: str, work: Path, home: Path, asked: set[str], preload: Sequence[str] = ()
) -> PackageSet:
    """Make a set of what lies in `work`/lib, and move it to its place below `home`.

    Args: asked: distributions whose modules are preloaded where `preload` names none.
    """
    lib = work / "lib"
    compile_all(lib)
    settle_modes(work)
    return put_in_place(home, work, describe(name, lib, asked, preload))


def install(
    lib: Path, requirements: Sequence[str], files: Sequence[Path], wheels: Path | None
) -> None:
    """Let pip fill the folder, from wheels only: nothing of a package runs while it is built."""
    # -P: no module of the folder that we are called in, which may be anybody's.
    command = [sys.executable, "-P", "-m", "pip", "--isolated", "--disable-pip-version-check"]
    command += ["install", "--quiet", "--no-input", "--target", str(lib)]
    command += ["--no-compile", "--only-binary=:all:", "--root-user-action=ignore"]
    if wheels is not None:
        command += ["--no-index", "--find-links", str(wheels)]
    for file in files:
        command += ["--requirement", str(file)]
    done = subprocess.run(
        [*command, "--", *requirements],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise PackagesError(f"pip does not install it:\n{done.stderr.strip()}")
    shutil.rmtree(lib / "bin", ignore_errors=True)  # programs; sandboxes run none


def compile_all(lib: Path) -> None:
    """Byte-compile once: sandboxes can write nothing.  The manifest's hashes replace the checks of
    byte-code against its source, so none is made at import.  Not the packages' own tests: they are
    half of the modules of many, and no script imports them."""
    import compileall
    import py_compile

    compileall.compile_dir(
        lib,
        quiet=2,
        rx=re.compile(r"[/\\]tests?[/\\]"),
        stripdir=str(lib),
        prependdir=INSIDE,
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )


def settle_modes(work: Path) -> None:
    """Readable for all, since a sandbox has a user of its own; writable for the owner only."""
    work.chmod(0o755)
    for parent, folders, names in os.walk(work):
        for each in folders:
            (Path(parent) / each).chmod(0o755)
        for each in names:
            path = Path(parent) / each
            if path.is_symlink() or not path.is_file():
                raise PackagesError(f"{path.relative_to(work)} is no ordinary file")
            path.chmod(0o644)


def named(requirements: Iterable[str], files: Iterable[Path]) -> Iterator[str]:
    """The distributions asked for, in the form in which their names are compared."""
    lines = list(requirements)
    for file in files:
        lines += file.read_text().splitlines()
    for line in lines:
        found = re.match(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)", line)
        if found:
            yield canonical(found[1])


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def describe(name: str, lib: Path, asked: set[str], preload: Sequence[str]) -> dict[str, Any]:
    """The manifest.  The same content gives the same bytes, and so the same id."""
    import importlib.metadata

    found = sorted(importlib.metadata.distributions(path=[str(lib)]), key=lambda d: d.name)
    names = list(preload)
    if not names:
        names = sorted({top for d in found if canonical(d.name) in asked for top in tops(d, lib)})
    return {
        "schema": SCHEMA,
        "name": name,
        "python": sys.implementation.cache_tag,
        "distributions": {each.name: each.version for each in found},
        "preload": names,
        "extensions": sorted(extensions(lib)),
        "files": {
            str(path.relative_to(lib)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(lib.rglob("*"))
            if path.is_file()
        },
    }


def tops(distribution: importlib.metadata.Distribution, lib: Path) -> Iterator[str]:
    """The modules of a distribution that scripts import by one name."""
    for file in distribution.files or ():
        top = file.parts[0]
        if len(file.parts) == 2 and file.parts[1] == "__init__.py" and top.isidentifier():
            yield top
        elif len(file.parts) == 1 and top.endswith(".py") and not top.startswith("_"):
            yield top.removesuffix(".py")
        elif len(file.parts) == 1 and not top.startswith("_") and extension_name(Path(top)):
            yield extension_name(Path(top))


def extensions(lib: Path) -> Iterator[str]:
    """Compiled modules; sandboxes can only import them ahead of need."""
    for path in lib.rglob("*.so"):
        module = extension_name(path.relative_to(lib))
        if module and not TESTS.search(module):
            yield module


def extension_name(path: Path) -> str:
    """The module's name, "" where the file is a library of another kind."""
    for suffix in EXTENSION_SUFFIXES:
        if path.name.endswith(suffix):
            parts = [*path.parts[:-1], path.name.removesuffix(suffix)]
            return ".".join(parts) if all(part.isidentifier() for part in parts) else ""
    return ""


def put_in_place(home: Path, work: Path, manifest: dict[str, Any]) -> PackageSet:
    """Move a set to the folder of its id.  One that is there stays, for sandboxes import from it, unless
    it is damaged."""
    raw = json.dumps(manifest, indent=1, sort_keys=True).encode()
    (work / MANIFEST).write_bytes(raw)
    (work / MANIFEST).chmod(0o644)
    found = id_of(manifest["name"], raw)
    folder = home / found
    aside = home / f".damaged-{os.getpid()}"
    if folder.exists() and not is_whole(PackageSet(found, folder)):
        folder.rename(aside)
    if not folder.exists():
        work.rename(folder)
    shutil.rmtree(aside, ignore_errors=True)
    link = home / f".{CURRENT}-{os.getpid()}"
    link.unlink(missing_ok=True)
    link.symlink_to(found)
    link.replace(home / CURRENT)
    return PackageSet(found, folder)


def is_whole(found: PackageSet) -> bool:
    """Whether a pool would serve it: its files are as they were built, and no other user can write them
    (sandbox/package_set.c)."""
    from pyosd.osd._engine.packages import PackageSetError, VerifiedPackageSet

    for path in (found.folder, *found.folder.rglob("*")):
        status = path.lstat()
        if status.st_uid not in (0, os.geteuid()) or status.st_mode & 0o022:
            return False
    try:
        VerifiedPackageSet(str(found.folder), found.id)
    except PackageSetError:
        return False
    return True


def id_of(name: str, manifest: bytes) -> str:
    """The same as in osd/_engine/packages.py."""
    return f"{name}-{hashlib.sha256(manifest).hexdigest()[:DIGEST_SHOWN]}"


def find(text: str, sets: Path = DEFAULT_SETS) -> PackageSet:
    """The set that a configuration names: `NAME` for its newest, an id, or the path of a set.

    Its content is not checked: its zygote does that, and reports the result.

    Raises:
        PackagesError: there is none of that name.
    """
    name = text.rpartition("-")[0]
    for folder in (Path(text),) if "/" in text else (sets / text / CURRENT, sets / name / text):
        if folder.is_dir():
            found = folder.resolve()
            return PackageSet(found.name, found)
    place = "" if "/" in text else f" in {sets}"
    raise PackagesError(f"no package set '{text}'{place}: make it with 'osd pool build'")
