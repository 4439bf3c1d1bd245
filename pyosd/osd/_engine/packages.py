# SPDX-License-Identifier: GPL-2.0-or-later
"""A pool's package set, as its zygote sees it: checked file by file, then imported.

A set is a folder that `osd pool build` has made: `manifest.json`, which names every file below `lib/`
with its SHA-256, and `lib/`, which scripts can import from.  The manifest's own SHA-256 is part of the
set's id, and that is what the target's configuration names; so whatever was changed since, it shows.
"""

from __future__ import annotations

import _thread
import hashlib
import importlib
import json
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MANIFEST", "PackageSetError", "VerifiedPackageSet", "id_of", "import_all", "reseed"]

MANIFEST = "manifest.json"
SCHEMA = "iosd.packages/1"
DIGEST_SHOWN = 16  # hexadecimal digits of an id
MANIFEST_MOST = 64 << 20


seeds: list[Callable[[], None]] = []  # of the set's random numbers


class PackageSetError(ImportError):
    """The set is not what it should be; the text says in what."""


def id_of(name: str, manifest: bytes) -> str:
    """The id of a set: its name, and the start of its manifest's SHA-256."""
    return f"{name}-{hashlib.sha256(manifest).hexdigest()[:DIGEST_SHOWN]}"


class VerifiedPackageSet:
    """A set that is what it was when it was built.

    Args: folder: where it is.  wanted: the id it must have.

    Raises:
        PackageSetError: another id, another Python's, or a file that is not as it was built.
    """

    def __init__(self, folder: str, wanted: str) -> None:
        self.lib, self.id = f"{folder}/lib", wanted
        try:
            self.manifest = read_manifest(folder, wanted)
            check_files(self.lib, self.manifest["files"])
        except PackageSetError as error:
            raise self._named(error) from error

    def _named(self, error: PackageSetError) -> PackageSetError:
        return PackageSetError(f"package set {self.id}: {error}")

    def load(self, preload: list[str]) -> list[str]:
        """Make it importable, import what is to be imported ahead of need; give the names of that.

        Compiled modules below these names come along: sandboxes cannot import any later.  Names of
        the standard library's modules add to the set's own list, other names replace it.

        Raises:
            PackageSetError: one of them cannot be imported, or starts a thread.
        """
        library = [name for name in preload if in_library(name)]
        own = [name for name in preload if name not in library]
        names = (own or list(self.manifest["preload"])) + library
        sys.path.append(self.lib)
        try:
            import_all(names, self.manifest["extensions"])
        except PackageSetError as error:
            raise self._named(error) from error
        self.manifest = {}
        note_seeds()
        return names


def in_library(name: str) -> bool:
    """Whether a module is one of the standard library's."""
    return name.partition(".")[0] in sys.stdlib_module_names


def read_manifest(folder: str, wanted: str) -> dict[str, Any]:
    """The manifest, if it is the one that belongs to this id, for this interpreter."""
    try:
        with open(f"{folder}/{MANIFEST}", "rb") as file:  # noqa: PTH123 -- nothing but bytes
            raw = file.read(MANIFEST_MOST)
        manifest: dict[str, Any] = json.loads(raw)
        found = id_of(manifest["name"], raw)
        tag = manifest["python"]
    except OSError as error:
        raise PackageSetError(f"{MANIFEST} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise PackageSetError(f"{MANIFEST} is damaged") from None
    if found != wanted:
        raise PackageSetError(f"{MANIFEST} was changed, it is now that of {found}")
    if manifest.get("schema") != SCHEMA:
        raise PackageSetError(f"{MANIFEST} has a schema this release does not know")
    if tag != sys.implementation.cache_tag:
        own = sys.implementation.cache_tag
        raise PackageSetError(f"built for {tag}, sandboxes run {own}: build it again")
    return manifest


def check_files(lib: str, files: dict[str, str]) -> None:
    """Every file of the manifest is there with its content, and no other is."""
    left = dict(files)
    for parent, folders, names in os.walk(lib):
        folders.sort()
        for name in sorted(names):
            path = f"{parent}/{name}"
            shown = os.path.relpath(path, lib)
            digest = left.pop(shown, None)
            if digest is None:
                raise PackageSetError(f"lib/{shown} was added since it was built")
            try:
                with open(path, "rb", buffering=0) as file:  # noqa: PTH123
                    found = hashlib.file_digest(file, "sha256").hexdigest()
            except OSError as error:
                raise PackageSetError(f"lib/{shown} cannot be read: {error.strerror}") from None
            if found != digest:
                raise PackageSetError(f"lib/{shown} was changed since it was built")
    for shown in left:
        raise PackageSetError(f"lib/{shown} is missing")


def import_all(names: list[str], extensions: list[str]) -> None:
    """Import these, which must succeed, and the compiled modules below them, which may not."""
    for name in names:
        try:
            importlib.import_module(name)
        except BaseException as error:
            words = f"{type(error).__name__}: {error}"
            raise PackageSetError(f"cannot preload {name}: {words}") from error
    for extension in extensions:
        if extension in sys.modules or not any(extension.startswith(f"{n}.") for n in names):
            continue
        try:
            importlib.import_module(extension)
        except Exception:
            continue  # it wants something that is not in the set: scripts could not have it either
    if _thread._count():
        raise PackageSetError("a module started a thread: no sandbox could be forked safely")


def note_seeds() -> None:
    """As with `random`: sandboxes must not share a sequence."""
    numbers = sys.modules.get("numpy.random")
    if numbers is not None:
        seeds.append(numbers.seed)


def reseed() -> None:
    """Before another job in this sandbox: it shall not know the numbers to come."""
    for seed in seeds:
        seed()
