# SPDX-License-Identifier: GPL-2.0-or-later
"""The commands and files of the documentation are typed and saved, on a separate target."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import pyosd.testing
from pyosd.offload.home import client_environment
from pyosd.types import PartitionId, ref
from tests.cli.documents import BLOCK, matches, python_steps, run_page, run_python, run_shell
from tests.machine import unavailable
from tests.processes import children_of_this, long_lived
from tests.serving import missing, sandboxes_missing
from tools.manpages import EXAMPLES, WITH_SECMGR

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 120
STAYS = ("mount", "reductionist")  # in the foreground; tests/osdfs and tests/client run them

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]


@pytest.fixture(scope="module")
def target() -> Iterator[pyosd.testing.ServedTarget]:
    why = missing() or sandboxes_missing()
    if why:
        unavailable("tgtd", why)
    before = children_of_this()
    with pyosd.testing.serve(manager=True) as served:
        started = children_of_this() - before
        long_lived.update(started)
        yield served
    long_lived.difference_update(started)


@pytest.fixture
def environment(target: pyosd.testing.ServedTarget, tmp_path: Path) -> dict[str, str]:
    path = f"{ROOT / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return client_environment() | {
        "IOSD_TARGET": target.url,
        "PATH": path,
        "XDG_CONFIG_HOME": str(tmp_path),
    }


def test_tutorial(environment: dict[str, str], tmp_path: Path) -> None:
    run_page(ROOT / "docs" / "tutorial.md", tmp_path, environment, DEADLINE_S)


def test_examples_of_the_manual_pages(environment: dict[str, str], tmp_path: Path) -> None:
    shown = [rows for noun, rows in EXAMPLES.items() if noun not in (*WITH_SECMGR, *STAYS)]
    lines = [line for rows in shown for line, _ in rows]
    done = run_shell("\n".join(lines), tmp_path, environment, DEADLINE_S)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("b'hello world\\n'") == 5


GUIDES = (
    "howto/failing-job.md",
    "howto/move-data.md",
    "howto/replay.md",
    "howto/slow-job.md",
)


@pytest.mark.parametrize(
    "name",
    [
        *("query.md", "pools.md", "names.md", "functions.md", "views.md", "hooks.md"),
        *GUIDES,
    ],
)
def test_page(name: str, environment: dict[str, str], tmp_path: Path) -> None:
    run_page(ROOT / "docs" / name, tmp_path, environment, DEADLINE_S)


def test_page_about_jobs(
    target: pyosd.testing.ServedTarget, environment: dict[str, str], tmp_path: Path
) -> None:
    """A script that is killed has seconds to clean up.  A busy machine may not let it run in these: then it
    gets a second try."""
    page, first, second = ROOT / "docs" / "jobs.md", tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    try:
        run_page(page, first, environment, DEADLINE_S)
    except AssertionError as error:
        expected, _, found = str(error).partition("\nfound\n")
        if "tidied up" not in expected or "tidied up" in found:
            raise
        with target.connect() as session:
            session.remove_partition(PartitionId(0x31000), contents=True)
        run_page(page, second, environment, DEADLINE_S)


def test_examples_of_the_client(
    target: pyosd.testing.ServedTarget, capsys: pytest.CaptureFixture[str]
) -> None:
    names: dict[str, object] = {"url": target.url, "__name__": "page"}
    run_python(ROOT / "docs" / "client.md", names, lambda: capsys.readouterr().out)


@pytest.mark.parametrize("name", ["functions.md", "views.md", "hooks.md"])
def test_python_of_a_page(
    name: str, target: pyosd.testing.ServedTarget, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their objects are those of the shell's examples, here in a partition of their own."""
    with target.connect() as session:
        pid = session.create_partition()
        names: dict[str, object] = {
            "url": target.url,
            "target": session,
            "partition": ref(pid),
            "log": session.create_and_write(pid, b"GET /a\nGET /b\nPUT /a\n"),
            "packed": session.create_and_write(pid, gzip.compress(b"alice 1\nbob 2\nalice 3\n")),
            "obj": session.create_and_write(pid, b""),
            "__name__": "page",
        }
        run_python(ROOT / "docs" / name, names, lambda: capsys.readouterr().out)


def test_examples_of_names(target: pyosd.testing.ServedTarget, environment: dict[str, str]) -> None:
    """In a process of its own: fsspec and Zarr keep threads until its end."""
    page = [*python_steps((ROOT / "docs" / "names.md").read_text())]
    head = f"from pyosd import connect, ref\nurl = {target.url!r}\ntarget = connect(url)\n"
    code = "\n".join([f"{head}pid = target.create_partition()", *(each.commands for each in page)])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert matches("".join(each.expected or "...\n" for each in page), done.stdout), done.stdout


def test_examples_of_scripts(target: pyosd.testing.ServedTarget) -> None:
    page = [*python_steps((ROOT / "docs" / "scripts.md").read_text())]
    expected = "".join(step.expected or "" for step in page)
    with target.connect() as session:
        code = "\n".join(step.commands for step in page)
        for run in (target.run, target.exec):
            outcome = run(code, zone=ref(session.create_partition()))
            assert outcome.output.decode() == expected, outcome.stderr.decode()


def test_example_of_the_readme(
    target: pyosd.testing.ServedTarget,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (step,) = python_steps((ROOT / "README.md").read_text())
    with target.connect() as session:
        session.fs.mkdir("/web", exist_ok=True)
        session.fs.write_bytes("/web/a", bytes(44))
    monkeypatch.setenv("IOSD_TARGET", target.url)
    exec(compile(step.commands, "README.md", "exec"), {"__name__": "page"})
    assert capsys.readouterr().out == "44\n"


def test_no_block_is_left_out() -> None:
    """Every block that looks like a program is run here, in the tour or elsewhere."""
    run = {"sh tour", "python", "python test", "text", "", "toml"}
    for page in ("tutorial.md", "query.md", "jobs.md", "client.md", "scripts.md"):
        kinds = {each[1] for each in BLOCK.finditer((ROOT / "docs" / page).read_text())}
        left = {each for each in kinds if each not in run and not each.startswith("python file=")}
        assert left <= ({"sh"} if page == "tutorial.md" else set()), f"{page}: {left}"
