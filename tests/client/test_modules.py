# SPDX-License-Identifier: GPL-2.0-or-later
"""Own modules that travel with a script: which files, and what is refused before anything is sent."""

from __future__ import annotations

import importlib
import json
import os
import struct
import sys
import zipapp
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import pyosd
from pyosd.jobs.modules import CODE_MOST, Modules, pack_zipapp
from pyosd.osd import _archive
from pyosd.osd._archive import MAGIC, open_archive

MIB = 1 << 20


def files(modules: Modules) -> list[str]:
    archive = modules.archive(b"pass")
    return [*json.loads(archive[len(MAGIC) : archive.index(b"\n", len(MAGIC))])["files"]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A package with data, and a module and a namespace beside it."""
    place = tmp_path / "place"
    for name, content in {
        "kit/__init__.py": "NAME = 'kit'\n",
        "kit/deep/__init__.py": "",
        "kit/deep/words.py": "from .. import NAME\n\ndef fail():\n    raise KeyError(NAME)\n",
        "kit/data/names.txt": "a\nb\n",
        "kit/__pycache__/x.cpython-311.pyc": "",
        "alone.py": "import kit.deep.words\n\ndef twice(x):\n    return 2 * x\n",
        "spread/part.py": "VALUE = 9\n",
        ".hidden/x.py": "1 +",
        "large.csv": "left behind",
    }.items():
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return place


def test_what_travels(folder: Path) -> None:
    package = [
        "kit/__init__.py",
        "kit/data/names.txt",
        "kit/deep/__init__.py",
        "kit/deep/words.py",
    ]
    assert files(Modules(folder)) == ["alone.py", *package, "spread/part.py"]
    assert files(Modules(folder / "kit")) == package
    assert files(Modules(folder / "alone.py", str(folder / "kit"))) == ["alone.py", *package]
    assert Modules(folder).names == ["alone", "kit", "spread"]
    archive = folder.parent / "some.zip"
    with zipfile.ZipFile(archive, "w") as made:
        made.write(folder / "alone.py", "alone.py")
    assert files(Modules(archive)) == ["alone.py"]


@pytest.fixture
def importing() -> Iterator[None]:
    """Forget what a test imports."""
    before = set(sys.modules)
    yield
    _archive.leave()
    for each in set(sys.modules) - before:
        del sys.modules[each]


def test_they_are_imported_from_memory(folder: Path, importing: None) -> None:
    main, name = _archive.enter(Modules(folder).archive(b"the main script"), "main.py")
    assert (main, name) == (b"the main script", "main.py")
    import alone  # type: ignore[import-not-found]
    import spread.part  # type: ignore[import-not-found]

    assert alone.twice(4) == 8 and spread.part.VALUE == 9
    assert alone.kit.deep.words.NAME == "kit"
    assert alone.__file__ == "alone.py" and not Path("alone.py").exists()
    import pkgutil

    assert pkgutil.get_data("kit", "data/names.txt") == b"a\nb\n"
    with pytest.raises(FileNotFoundError):
        pkgutil.get_data("kit", "data/others.txt")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("kit.nothing")


def zip_of(path: Path, *names: str, content: bytes = b"") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name in names:
            made.writestr(name, content)
    return path


def bomb(path: Path) -> Path:
    return zip_of(path, "zeros.py", content=bytes(100 * MIB))


def lying_bomb(path: Path) -> Path:
    """Its directory says that the entry has 4 bytes."""
    raw = bomb(path).read_bytes()
    at = raw.rindex(b"PK\1\2")
    path.write_bytes(raw[: at + 24] + struct.pack("<I", 4) + raw[at + 28 :])
    return path


def encrypted(path: Path) -> Path:
    raw = bytearray(zip_of(path, "a.py").read_bytes())
    raw[raw.rindex(b"PK\1\2") + 8] |= 1
    path.write_bytes(raw)
    return path


def entry_changed(path: Path, offset: int, value: bytes) -> Path:
    """An archive whose directory holds these bytes there in its only entry."""
    raw = bytearray(zip_of(path, "a.py").read_bytes())
    at = raw.rindex(b"PK\1\2") + offset
    raw[at : at + len(value)] = value
    path.write_bytes(raw)
    return path


def later(path: Path) -> Path:
    return entry_changed(path, 6, b"\xff\0")


def wrong_name(path: Path) -> Path:
    entry_changed(path, 46, b"\xff")
    raw = bytearray(path.read_bytes())
    raw[raw.rindex(b"PK\1\2") + 9] |= 0x08  # the name is said to be UTF-8
    path.write_bytes(raw)
    return path


def twice(path: Path) -> Path:
    with pytest.warns(UserWarning, match="Duplicate"):
        return zip_of(path, "a.py", "a.py")


def damaged(path: Path) -> Path:
    raw = zip_of(path, "a.py", content=os.urandom(500)).read_bytes()
    path.write_bytes(raw[:60] + bytes(20) + raw[80:])
    return path


HOSTILE: dict[str, tuple[Callable[[Path], Path], str]] = {
    "a bomb": (bomb, "limit is 16.0 MiB; the largest is zeros.py with 100.0 MiB"),
    "a bomb that lies": (lying_bomb, "zeros.py"),
    "many entries": (lambda p: zip_of(p, *(f"m{n}.py" for n in range(10_001))), "10000 files"),
    "an absolute name": (lambda p: zip_of(p, "/etc/passwd"), "no name for a file that travels"),
    "a name above": (lambda p: zip_of(p, "../a.py"), "no name for a file that travels"),
    "a line end in a name": (lambda p: zip_of(p, "a\nb.py"), "no name for a file that travels"),
    "a name twice": (twice, "'a.py' is there twice"),
    "an encrypted entry": (encrypted, "'a.py' is encrypted"),
    "a damaged entry": (damaged, "cannot read 'a.py'"),
    "a compiled module": (lambda p: zip_of(p, "a.so"), "package set"),
    "osd itself": (lambda p: zip_of(p, "osd/__init__.py"), "'osd' is the module through which"),
    "a later zip": (later, "zip file version"),
    "a name in no encoding": (wrong_name, "no zip archive"),
    "no zip archive": (lambda p: p.write_bytes(b"x") and p, "no zip archive"),  # type: ignore[dict-item, return-value]
}


@pytest.mark.parametrize("name", HOSTILE)
def test_archives_that_cannot_travel(tmp_path: Path, name: str) -> None:
    make, words = HOSTILE[name]
    with pytest.raises(ValueError, match=words):
        Modules(make(tmp_path / "hostile.zip"))


def test_folders_that_cannot_travel(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").touch()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="no ordinary file"):
        Modules(tmp_path)
    (tmp_path / "pipe").unlink()
    (tmp_path / "model.bin").write_bytes(bytes(17 * MIB))
    with pytest.raises(
        ValueError, match=r"limit is 16.0 MiB; the largest is .*model.bin with 17.0"
    ):
        Modules(tmp_path)
    with pytest.raises(ValueError, match="no folder, no"):
        Modules(tmp_path / "model.bin")
    with pytest.raises(FileNotFoundError):
        Modules(tmp_path / "nowhere")
    (tmp_path / "model.bin").unlink()
    with pytest.raises(ValueError, match="the largest is the script"):
        Modules().archive(bytes(CODE_MOST))


def test_a_module_that_does_not_compile(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text("x = 1\ndef f(:\n")
    with pytest.raises(SyntaxError) as raised:
        Modules(tmp_path / "wrong.py")
    assert (raised.value.filename, raised.value.lineno) == ("wrong.py", 2)


def test_a_folder_that_cannot_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not left out in silence."""
    scandir = os.scandir

    def scan(path: Any) -> Any:
        if Path(path).name == "deep":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", scan)
    with pytest.raises(PermissionError):
        Modules(folder / "kit")


def test_a_zipapp_with_a_first_line(tmp_path: Path, folder: Path) -> None:
    (folder / "__main__.py").write_text("print(1)\n")
    app = tmp_path / "job.pyz"
    zipapp.create_archive(folder, app, interpreter="/usr/bin/env python3")
    archive = pack_zipapp(app)
    main, name, _ = open_archive(archive, "job.pyz")
    assert (main, name) == (b"print(1)\n", "job.pyz/__main__.py")
    assert archive == pack_zipapp(app), "the same bytes for the same key"
    with pytest.raises(ValueError, match="has no __main__"):
        pack_zipapp(zip_of(tmp_path / "no.pyz", "a.py"))
    with pytest.raises(ValueError, match="is there twice"):
        pack_zipapp(app, Modules(folder / "alone.py"))


@pytest.mark.parametrize(
    "archive",
    [
        MAGIC,
        MAGIC + b"\n",
        MAGIC + b"{}\n",
        MAGIC + b"[" * 100_000,
        MAGIC + b'{"main": -1, "root": "", "files": {}}\n',
        MAGIC + b'{"main": true, "root": "", "files": {}}\n',
        MAGIC + b'{"main": 5, "root": "", "files": {}}\npass',
        MAGIC + b'{"main": 4, "root": "", "files": {}}\npass\n',
        MAGIC + b'{"main": 4, "root": 3, "files": {}}\npass',
        MAGIC + b'{"main": 4, "root": "", "files": []}\npass',
        MAGIC + b'{"main": 0, "root": "", "files": {"a.py": 99999999999}}\n',
        MAGIC + b'{"main": 4, "root": "", "files": {}}',
    ],
)
def test_damaged_archives(archive: bytes) -> None:
    with pytest.raises(ValueError, match="the archive of modules"):
        open_archive(archive, "x")


# ---- as jobs ------------------------------------------------------------------------------------


def helper_result(n: int) -> Any:
    import alone

    return alone.twice(n)


@pytest.mark.tgtd
@pytest.mark.sandbox
def test_jobs_with_modules(
    target: pyosd.Target, zone: pyosd.ObjectRef, folder: Path, tmp_path: Path
) -> None:
    script = "import osd, alone, spread.part; osd.result([alone.twice(3), spread.part.VALUE])"
    job = target.exec(script, zone=zone, modules=folder)
    assert job.result(60) == [6, 9]
    fails = target.exec(
        "import kit.deep.words as w\nw.fail()\n", zone=zone, modules=[folder], name="main.py"
    )
    with pytest.raises(pyosd.ScriptError):
        fails.result(60)
    for line in ('File "main.py", line 2', 'File "kit/deep/words.py", line 4, in fail'):
        assert line in fails.traceback()
    assert "raise KeyError(NAME)" in fails.traceback()
    without = target.exec("import alone", zone=zone)
    with pytest.raises(pyosd.ScriptError, match="No module named 'alone'"):
        without.result(60)
    packed = Modules(folder)
    with pyosd.Executor(target, zone=zone, modules=packed) as executor:
        assert list(executor.map(helper_result, [1, 2], timeout=60)) == [2, 4]
        assert executor.submit(helper_result, 4).result(60) == 8


@pytest.mark.tgtd
@pytest.mark.sandbox
def test_a_zipapp_as_a_job(target: pyosd.Target, zone: pyosd.ObjectRef, folder: Path) -> None:
    (folder / "__main__.py").write_text(
        "import osd, sys, alone\nosd.result([sys.argv, __file__, alone.__file__])\n"
    )
    app = folder.parent / "job.pyz"
    zipapp.create_archive(folder, app)
    job = target.exec(app, zone=zone, args=["x"])
    shown = ["job.pyz", "x"], "job.pyz", "job.pyz/alone.py"
    assert job.result(60) == [*shown]


@pytest.mark.tgtd
@pytest.mark.sandbox
def test_a_damaged_archive_ends_the_job(target: pyosd.Target, zone: pyosd.ObjectRef) -> None:
    for more in (b"{}\n", b'{"main": 0, "root": "", "files": {"a": 1}}\n'):
        job = target.exec(MAGIC + more, zone=zone)
        with pytest.raises(pyosd.JobError, match="archive of modules") as raised:
            job.result(60)
        assert raised.value.reason == 205
