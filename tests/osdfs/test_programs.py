# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that nobody here wrote work on a mounted partition."""

from __future__ import annotations

import random
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.tgtd
NOBODY = 65534

MAIN = '#include "part.h"\nint main(void) { return part(40) + part(-42); }\n'
PART = '#include "part.h"\nint part(int value) { return value + 1; }\n'
MAKEFILE = """objects = main.o part.o
program: $(objects)
\tcc -o $@ $(objects)
%.o: %.c part.h
\tcc -c -o $@ $<
"""


def run(*words: object, cwd: Path) -> str:
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def contents(folder: Path) -> dict[str, object]:
    """Of each file below: kind, permissions, time and content."""
    found = dict[str, object]()
    for path in folder.rglob("*"):
        facts = path.lstat()
        content = (
            path.readlink()
            if path.is_symlink()
            else path.read_bytes()
            if path.is_file()
            else sorted(each.name for each in path.iterdir())
        )
        time_ns = 0 if path.is_symlink() or path.is_dir() else facts.st_mtime_ns
        found[str(path.relative_to(folder))] = (
            facts.st_mode,
            facts.st_nlink * path.is_file(),
            time_ns,
            content,
        )
    return found


def test_tar(top: Path, tmp_path: Path) -> None:
    source, choices = tmp_path / "tree", random.Random(1)
    for each in range(60):
        path = source / f"d{each % 7}" / f"e{each % 3}" / f"file {each} ü"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(choices.randbytes(choices.choice([0, 10, 5000, 200_000])))
        path.chmod(0o400 | choices.randrange(0o200))
    (source / "link").symlink_to("d1/nowhere")
    (source / "hard").hardlink_to(source / "d0/e0/file 0 ü")
    run("tar", "--format=posix", "-cf", "tree.tar", "-C", tmp_path, "tree", cwd=top)
    run("tar", "xpf", "tree.tar", cwd=top)
    assert contents(top / "tree") == contents(source)
    run("tar", "--format=posix", "-cf", tmp_path / "again.tar", "tree", cwd=top)
    (tmp_path / "back").mkdir()
    run("tar", "xpf", tmp_path / "again.tar", cwd=tmp_path / "back")
    assert contents(tmp_path / "back/tree") == contents(source)
    run("rm", "-rf", "tree", cwd=top)
    assert [each.name for each in top.iterdir()] == ["tree.tar"]


def test_git(top: Path, tmp_path: Path) -> None:
    if not shutil.which("git"):
        pytest.skip("git is missing")
    repository = top / "repository"
    git = ("git", "-c", "user.name=test", "-c", "user.email=test@localhost")
    run("git", "init", "-q", repository, cwd=top)
    for each in range(30):
        (repository / f"file{each}").write_text(f"{each}\n" * 100)
    run(*git, "add", ".", cwd=repository)
    run(*git, "commit", "-qm", "first", cwd=repository)
    (repository / "file3").write_text("changed\n")
    run(*git, "mv", "file4", "moved", cwd=repository)
    run(*git, "commit", "-qam", "second", cwd=repository)
    run("git", "clone", "-q", repository, top / "clone", cwd=top)
    run("git", "clone", "-q", f"file://{repository}", tmp_path / "local", cwd=top)
    run("git", "fsck", "--strict", cwd=top / "clone")
    run("git", "gc", "-q", cwd=repository)
    assert run("git", "status", "--porcelain", cwd=repository) == ""
    for clone in (top / "clone", tmp_path / "local"):
        assert run("git", "log", "--oneline", cwd=clone).count("\n") == 2
        assert (clone / "file3").read_text() == "changed\n"


def test_make(top: Path) -> None:
    for name, text in (("main.c", MAIN), ("part.c", PART), ("Makefile", MAKEFILE)):
        (top / name).write_text(text)
    (top / "part.h").write_text("int part(int value);\n")
    run("make", "-j2", cwd=top)
    run("./program", cwd=top)
    assert "is up to date" in run("make", cwd=top)
    (top / "part.c").write_text(PART + "\n")
    assert run("make", cwd=top).count("cc -c") == 1
    assert stat.S_IMODE((top / "program").stat().st_mode) & 0o111
