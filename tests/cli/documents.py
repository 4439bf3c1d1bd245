# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages of documentation as programs: their blocks, one shell script, and what it should print.

`sh tour` is run; `python file=NAME` is a file that is there from then on; `text` after a block that is
run is its output, in which ... stands for anything on a line.
"""

from __future__ import annotations

import linecache
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.cli.warm import warm_osd

BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.M | re.S)
MARK = "@@ block "
Capture = Callable[[], str]


@dataclass
class Step:
    """One block that is run.  expected: None: nothing is said of its output."""

    commands: str
    line: int
    expected: str | None = None
    files: dict[str, str] = field(default_factory=dict)


def steps(page: str) -> Iterator[Step]:
    """The steps of a page for its reader."""
    files: dict[str, str] = {}
    last: Step | None = None
    for found in BLOCK.finditer(page):
        kind, text = found[1], found[2]
        if kind == "sh tour":
            if last:
                yield last
            last, files = Step(text, page.count("\n", 0, found.start()) + 2, None, files), {}
        elif kind.startswith("python file="):
            files[kind.removeprefix("python file=")] = text
        elif kind == "python" and last:  # what follows is not the output of the shell
            yield last
            last = None
        elif kind == "text" and last is not None:
            assert last.expected is None, f"two outputs after line {last.line}"
            last.expected = text
    if last:
        yield last


def python_steps(page: str) -> Iterator[Step]:
    """Blocks of Python, each with the output shown behind it."""
    last: Step | None = None
    for found in BLOCK.finditer(page):
        if found[1] == "python":
            if last:
                yield last
            last = Step(found[2], page.count("\n", 0, found.start()) + 2)
        elif found[1] == "text" and last is not None and last.expected is None:
            last.expected = found[2]
    if last:
        yield last


def run_python(page: Path, namespace: dict[str, object], capture: Capture) -> None:
    """Run a page's blocks of Python, one after the other, with the names given to the first.

    capture: gives what was printed since it was called last.
    """
    for step in python_steps(page.read_text()):
        name = f"{page.name}:{step.line}"
        linecache.cache[name] = (len(step.commands), None, step.commands.splitlines(True), name)
        exec(compile(step.commands, name, "exec"), namespace)
        found = capture()
        if step.expected is not None:
            assert matches(step.expected, found), (
                f"{name}: expected\n{step.expected}\nfound\n{found}"
            )


def as_script(todo: list[Step]) -> str:
    """All of them in one shell, which says where each begins."""
    parts = []
    for number, step in enumerate(todo):
        for name, text in step.files.items():
            parts.append(f"cat >{name} <<'END OF FILE'\n{text}END OF FILE")
        parts.append(f"printf '%s\\n' '{MARK}{number}'\n{step.commands}")
    return "\n".join(parts)


def matches(expected: str, found: str) -> bool:
    """Whether the output is as shown.  `...` stands for a part of a line, alone for any lines.

    Beside load some verbs have a line about that.
    """
    found = re.sub(r"^starved: waited .*\n", "", found, flags=re.M)
    pattern = "".join(
        "(?:.*\n)*" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + "\n"
        for line in expected.rstrip("\n").split("\n")
    )
    return re.fullmatch(pattern, found.rstrip("\n") + "\n") is not None


def run_shell(
    script: str, folder: Path, environment: dict[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """Run it in a folder of its own."""
    pipes, work = folder / "pipes", folder / "work"
    pipes.mkdir()
    work.mkdir()
    with warm_osd(pipes, environment) as prelude:
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", prelude + script],
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )


def run_page(page: Path, folder: Path, environment: dict[str, str], timeout: float) -> None:
    """Do all a page says.  Raises: AssertionError: something else came out, or it failed."""
    todo = list(steps(page.read_text()))
    assert todo
    done = run_shell(as_script(todo), folder, environment, timeout)
    outputs = re.split(rf"^{MARK}\d+\n", done.stdout, flags=re.M)[1:]
    assert done.returncode == 0, (
        f"{page.name}:{todo[max(0, len(outputs) - 1)].line}:\n{done.stdout[-2000:]}{done.stderr}"
    )
    for step, found in zip(todo, outputs, strict=True):
        if step.expected is not None:
            assert matches(step.expected, found), (
                f"{page.name}:{step.line}: expected\n{step.expected}\nfound\n{found}"
            )
