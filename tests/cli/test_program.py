# SPDX-License-Identifier: GPL-2.0-or-later
"""The program as its surroundings may be: streams that are closed or full, Ctrl-C at once."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pyosd.cli.frame.codes import Exit

SOURCE = Path(__file__).resolve().parents[2]
OSD = f"{sys.executable} -c 'from pyosd.cli import main; main(prog_name=\"osd\")'"


def run(words: str) -> tuple[int, str]:
    """In a shell; exit code, and what it said on stderr."""
    done = subprocess.run(
        ["bash", "-c", f"{OSD} {words}"],
        cwd=SOURCE,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("words", ["reasons", "--help"])
def test_closed_output(words: str) -> None:
    assert run(f"{words} >&-") == (Exit.OK, "")


def test_version_is_what_people_type_first(capfd: pytest.CaptureFixture[str]) -> None:
    subprocess.run(["bash", "-c", f"{OSD} --version; {OSD} version"], cwd=SOURCE, check=True)
    first, second = capfd.readouterr().out.splitlines()
    assert first.startswith("iosd ") and second.startswith(f"{first} (Python ")


def test_everything_closed() -> None:
    assert run("reasons <&- >&- 2>&-") == (Exit.OK, "")


def test_closed_input_is_no_empty_input() -> None:
    code, told = run("exec - --target iscsi://127.0.0.1:1/iqn.x/1 <&-")
    assert (code, told) == (Exit.NO_INPUT, "osd: -: Bad file descriptor\n")


@pytest.mark.parametrize("words", ["reasons", "--help", "version", "config show"])
def test_nowhere_to_write(words: str) -> None:
    code, told = run(f"{words} >/dev/full")
    assert code == Exit.FAILED
    *_, last = told.splitlines()  # `config show` may find somebody's target, and says so
    assert last == "osd: input or output: No space left on device"


AT_ONCE = """
import os, signal, sys

class Interrupt:
    def find_spec(self, name, *_):
        if name == "pyosd":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupt())
sys.path.insert(1, "pyosd")
from _program import main
main()
"""


@pytest.mark.parametrize(("how", "code"), [("default", -signal.SIGINT), ("ignore", Exit.OK)])
def test_interrupt_before_anything_is_imported(how: str, code: int) -> None:
    done = subprocess.run(
        ["env", f"--{how}-signal=INT", sys.executable, "-c", AT_ONCE, "version"],
        cwd=SOURCE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (code, "")
