# SPDX-License-Identifier: GPL-2.0-or-later
"""The program as its surroundings may be: streams that are closed or full, Ctrl-C at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pyosd.cli.frame.codes import Exit
from tests import warm

SOURCE = Path(__file__).resolve().parents[2]
OSD = f"{sys.executable} -c 'from pyosd.cli import main; main(prog_name=\"osd\")'"


def run(words: str, **environment: str) -> tuple[int, str]:
    """In a shell; exit code, and what it said on stderr."""
    done = subprocess.run(
        ["bash", "-c", f"{OSD} {words}"],
        cwd=SOURCE,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stderr


def usage(words: str) -> tuple[int, str]:
    """Where streams are as usual: exit code, and what it said on stderr."""
    done = warm.osd(*words.split())
    return done.returncode, done.stderr


@pytest.mark.parametrize("words", ["reasons", "--help"])
def test_closed_output(words: str) -> None:
    assert run(f"{words} >&-") == (Exit.FAILED, "osd: input or output: Bad file descriptor\n")


def test_version_is_what_people_type_first(capfd: pytest.CaptureFixture[str]) -> None:
    subprocess.run(["bash", "-c", f"{OSD} --version; {OSD} version"], cwd=SOURCE, check=True)
    first, second = capfd.readouterr().out.splitlines()
    assert first.startswith("iosd ") and second.startswith(f"{first} (Python ")


def test_everything_closed() -> None:
    assert run("reasons <&- >&- 2>&-") == (Exit.FAILED, "")


def test_closed_input_is_no_empty_input() -> None:
    code, told = run("exec - --target iscsi://127.0.0.1:1/iqn.x/1 <&-")
    assert (code, told) == (Exit.NO_INPUT, "osd: -: Bad file descriptor\n")


@pytest.mark.parametrize("words", ["reasons", "--help", "version", "config show"])
def test_nowhere_to_write(words: str, tmp_path: Path) -> None:
    # `config show` asks the target that is served on this host, and refuses to choose among those of other
    # tests.
    told = run(f"{words} >/dev/full", IOSD_RUN=str(tmp_path))
    assert told == (Exit.FAILED, "osd: input or output: No space left on device\n")


@pytest.mark.parametrize(
    ("words", "message", "at"),
    [
        ("--nosuch", "no such option '--nosuch'. Options come after the verb", "osd"),
        ("nosuch", "no such command 'nosuch'.", "osd"),
        ("job lss", "no such command 'lss'. Did you mean 'ls'?", "osd job"),
        ("job wait --timeout soon 1/1", "invalid value for '--timeout'", "osd job wait"),
        ("target serve --workers 0", "invalid value for '--workers'", "osd target serve"),
        ("target check --rate much", "invalid value for '--rate'", "osd target check"),
        ("config check --nosuch", "no such option '--nosuch'", "osd config check"),
    ],
)
def test_wrong_usage_is_told_as_any_error(words: str, message: str, at: str) -> None:
    code, told = usage(words)
    first, *_, last = told.replace('"', "'").splitlines()
    assert (code, last) == (Exit.USAGE, f"  see: {at} --help")
    assert first.startswith("osd: ") and message.rstrip(".?") in first.replace(": --", " '--")
    assert "Error:" not in told and "Usage:" not in told


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("find /1 -name x", "  options of several letters begin with two dashes: --name"),
        ("cp file", "  it takes SOURCE... DESTINATION"),
        ("run job.py --column 3", "  words for the code that begin with a dash come after --"),
        ("job retry 1/1 --column 3", "  words for the code that begin with a dash come after --"),
        ("ls --target nonsense", "osd: 'nonsense' is not iscsi://HOST[:PORT]/NAME/LUN"),
        ("hook add 1/1 count --after 3", "osd: --after: the page must be from 0x10000"),
        ("ps --tail x", "osd: invalid value for '--tail': 'x' is not a whole number."),
        ("hook run 0x10000", "osd: '0x10000' is no user object"),
    ],
)
def test_wrong_usage_has_a_remedy(words: str, hint: str) -> None:
    code, told = usage(words)
    assert code == Exit.USAGE
    assert hint in told


@pytest.mark.parametrize(
    "words", ["--nosuch -o json", "doctor --nosuch -o json", "doctor -o json x"]
)
def test_wrong_usage_as_json(words: str) -> None:
    code, told = usage(words)
    found = json.loads(told)
    assert (code, found["error"]["name"]) == (Exit.USAGE, "USAGE")
    assert found["error"]["hint"].startswith("see: osd")


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
